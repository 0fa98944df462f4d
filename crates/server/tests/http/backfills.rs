//! Backfills: asked for, tried, looked at, cancelled.

use kelos_model::SlotState;
use serde_json::{Value, json};

use crate::support::{NOW, Server, Setup, slot, workflow};

const DAY: &str = r#""workflow": "w", "from": "2015-09-01T00:00Z", "to": "2015-09-01T04:00Z""#;

async fn make(server: &Server, rest: &str) -> Value {
    server.post_json("/api/v1/backfills", &format!("{{{DAY}{rest}}}")).await.ok().json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing() {
    let server = Server::start(&workflow("w", "")).await;
    let before = server.get("/api/v1/health").await.json()["lastSeq"].clone();
    let made = make(&server, r#", "dryRun": true"#).await;
    assert_eq!(
        made,
        json!({
            "id": "w-2015-09-01T00:00Z-2015-09-01T04:00Z", "dryRun": true,
            "from": "2015-09-01T00:00:00.000Z", "to": "2015-09-01T04:00:00.000Z", "zone": "UTC",
            "created": { "count": 4, "times": [
                "2015-09-01T00:00:00.000Z", "2015-09-01T01:00:00.000Z", "2015-09-01T02:00:00.000Z", "2015-09-01T03:00:00.000Z"
            ] },
            "reopened": { "count": 0, "times": [] }, "adopted": { "count": 0, "times": [] }, "untouched": 0
        })
    );
    assert_eq!(server.get("/api/v1/health").await.json()["lastSeq"], before);
    assert_eq!(server.get("/api/v1/backfills").await.ok().json(), json!({ "items": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_goes_from_asking_to_done() {
    for on_disk in [false, true] {
        let server =
            Server::with(Setup { on_disk, ..Setup::default() }, &workflow("w", "startTime: '2015-09-13T15:30Z'")).await;
        let reply =
            server.post_json("/api/v1/backfills", &format!(r#"{{{DAY}, "name": "my backfill", "priority": 3}}"#)).await;
        assert_eq!((reply.status.as_u16(), reply.header("location")), (201, "/api/v1/backfills/my%20backfill"));
        server.step(NOW).await;
        let location = reply.header("location").to_owned();
        let progress = async || server.get(&location).await.ok().json();
        let now = progress().await;
        assert_eq!(now["counts"], json!({ "queued": 3, "running": 1 }));
        assert_eq!(
            (&now["total"], &now["ended"], &now["share"], &now["by"]),
            (&4.into(), &0.into(), &0.0.into(), &"api".into())
        );
        let first = slot("w", "2015-09-01T00:00Z");
        server.end(&first, 1, true).await;
        assert_eq!((&progress().await["share"], &progress().await["ended"]), (&0.25.into(), &1.into()));
        let of = server.get("/api/v1/slots?backfill=my%20backfill&state=succeeded").await.ok().json();
        assert_eq!(of["items"][0]["priority"], 3);

        let cancelled = server.post(&format!("{location}/cancel")).await.ok().json();
        assert_eq!((&cancelled["share"], &cancelled["cancelledAt"]), (&1.0.into(), &NOW.into()));
        assert_eq!(cancelled["counts"], json!({ "succeeded": 1, "killed": 3 }));
        assert_eq!(server.post(&format!("{location}/cancel")).await.ok().json(), cancelled);
        let list = server.get("/api/v1/backfills?workflow=w").await.ok().json();
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_of_seconds_waits_its_turn() {
    for on_disk in [false, true] {
        let each_second = "startTime: '2015-09-13T15:30Z', schedule: celos.cronSchedule('* * * * * ?')";
        let server = Server::with(Setup { on_disk, ..Setup::default() }, &workflow("w", each_second)).await;
        let year = r#"{"workflow": "w", "from": "2014-01-01T00:00Z", "to": "2015-01-01T00:00Z", "name": "year"}"#;
        let made = server.post_json("/api/v1/backfills", year).await.ok().json();
        assert_eq!(made["created"]["count"], 31_536_000);
        assert_eq!(made["created"]["times"].as_array().unwrap().len(), 1000);
        server.step(NOW).await;
        let first = slot("w", "2014-01-01T00:00Z");
        server.until_state(&first, SlotState::Running).await;
        server.end(&first, 1, true).await;

        let progress = server.get("/api/v1/backfills/year").await.ok().json();
        assert_eq!(progress["total"], 31_536_000);
        assert_eq!(progress["counts"]["succeeded"], 1);
        assert!(progress["counts"]["waiting"].as_u64().unwrap() > 31_500_000, "{progress}");
        let waiting = server.get("/api/v1/slots?backfill=year&state=waiting&limit=2").await.ok().json();
        let times: Vec<&Value> = waiting["items"].as_array().unwrap().iter().map(|item| &item["time"]).collect();
        assert_eq!(times, ["2014-12-31T23:59:59.000Z", "2014-12-31T23:59:58.000Z"]);

        let why = server.get("/api/v1/workflows/w/slots/2014-07-01T00:00Z/why").await.ok().json();
        assert_eq!((&why["state"], &why["decision"]), (&"waiting".into(), &Value::Null));
        assert!(why["headline"].as_str().unwrap().ends_with(" slots of its workflow are ahead"), "{why}");
        server.get("/ui/workflows/w/slots/2014-07-01T00:00Z").await.ok();

        server.post("/api/v1/backfills/year/cancel").await.ok();
        let why = server.get("/api/v1/workflows/w/slots/2014-07-01T00:00Z/why").await.ok().json();
        assert_eq!(why["state"], "killed");
        assert!(why["headline"].as_str().unwrap().contains("(backfill year was cancelled)"), "{why}");
        server.post("/rerun?id=w&time=2014-07-01T00:00:00Z").await.ok();
        server.until_state(&slot("w", "2014-07-01T00:00Z"), SlotState::Waiting).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_opened_again_as_the_mode_says() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:30Z'")).await;
    server.post("/kill?id=w&time=2015-09-01T01:00Z").await.ok();
    server.post("/rerun?id=w&time=2015-09-01T02:00Z").await.ok();
    let counts = |made: &Value| ["created", "reopened", "adopted"].map(|kind| made[kind]["count"].as_u64().unwrap());
    assert_eq!(counts(&make(&server, r#", "dryRun": true"#).await), [2, 0, 0], "what goes anyway is not put off");
    let made = make(&server, r#", "mode": "unsuccessful", "priority": 1"#).await;
    assert_eq!((counts(&made), &made["untouched"]), ([2, 1, 1], &0.into()));
    server.until_state(&slot("w", "2015-09-01T01:00Z"), SlotState::Waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_used_once() {
    let server = Server::start(&workflow("w", "")).await;
    assert_eq!(make(&server, "").await["id"], "w-2015-09-01T00:00Z-2015-09-01T04:00Z");
    assert_eq!(make(&server, "").await["id"], "w-2015-09-01T00:00Z-2015-09-01T04:00Z-2");
    make(&server, r#", "name": "mine""#).await;
    let again = server.post_json("/api/v1/backfills", &format!(r#"{{{DAY}, "name": "mine"}}"#)).await;
    assert_eq!((again.status.as_u16(), &again.json()["type"]), (409, &"urn:kelos:problem:name-taken".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_paused_resumed_and_put_first() {
    for on_disk in [false, true] {
        let setup = Setup { on_disk, ..Setup::default() };
        let server = Server::with(setup, &workflow("w", "startTime: '2015-09-13T15:30Z'")).await;
        make(&server, r#", "name": "past", "reason": "the disk was full""#).await;
        server.step(NOW).await;
        let paused = server.post_json("/api/v1/backfills/past/pause", r#"{"reason": "lunch"}"#).await.ok().json();
        assert_eq!((&paused["pausedAt"], &paused["pausedBy"]), (&NOW.into(), &"api".into()));
        assert_eq!((&paused["reason"], &paused["resumedAt"]), (&"the disk was full".into(), &Value::Null));
        let told = json!({ "doneAt": null, "text": "no estimate yet: it is paused by api" });
        assert_eq!(paused["estimate"], told);
        assert_eq!(server.post("/api/v1/backfills/past/pause").await.ok().json(), paused, "twice is fine");

        // What runs goes on; what is queued is left alone, and says why.
        server.end(&slot("w", "2015-09-01T00:00Z"), 1, true).await;
        server.step(NOW).await;
        assert!(!server.is_running(&slot("w", "2015-09-01T01:00Z"), 1));
        let why = server.get("/api/v1/workflows/w/slots/2015-09-01T01:00Z/why").await.ok().json();
        assert_eq!(why["blockers"][0], "its backfill past is paused by api", "{why}");

        let request = r#"{"priority": 7, "reason": "first of all"}"#;
        let first = server.ask(axum::http::Method::PATCH, "/api/v1/backfills/past", request).await.ok().json();
        assert_eq!(first["priority"], 7);
        let live = server.get("/api/v1/slots?backfill=past&state=queued").await.ok().json();
        assert!(live["items"].as_array().unwrap().iter().all(|slot| slot["priority"] == 7), "{live}");

        let resumed = server.post("/api/v1/backfills/past/resume").await.ok().json();
        assert_eq!((&resumed["pausedAt"], &resumed["resumedAt"]), (&Value::Null, &NOW.into()));
        server.step(NOW).await;
        assert!(server.is_running(&slot("w", "2015-09-01T01:00Z"), 1));

        let log = server.get("/api/v1/events?limit=1000").await.ok().json();
        let mine = log["items"].as_array().unwrap().iter().filter(|event| event["subject"] == "backfill");
        let told: Vec<_> = mine.map(|event| (event["event"].as_str().unwrap(), event["reason"].as_str())).collect();
        let expected = [
            ("created", Some("the disk was full")),
            ("paused", Some("lunch")),
            ("prioritised", Some("first of all")),
            ("resumed", None),
        ];
        assert_eq!(told, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_of_it_is_opened_again_and_stays_its_own() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:30Z'")).await;
    make(&server, r#", "name": "past""#).await;
    for hour in 0..4 {
        server.step(NOW).await;
        server.end(&slot("w", &format!("2015-09-01T0{hour}:00Z")), 1, hour % 2 == 0).await;
    }
    let over = server.get("/api/v1/backfills/past").await.ok().json();
    assert_eq!((&over["ended"], &over["failures"]), (&4.into(), &2.into()));
    assert_eq!(over["estimate"], json!({ "doneAt": null, "text": "all its slots have ended" }));
    let causes = server.get("/api/v1/backfills/past/causes").await.ok().json();
    assert_eq!((&causes["failures"], &causes["read"]), (&2.into(), &2.into()));
    let cause = &causes["items"][0];
    assert_eq!((&cause["state"], &cause["reason"]), (&"failed".into(), &"exited with status 3".into()));
    assert_eq!((&cause["exitStatus"], &cause["lastLine"]), (&3.into(), &Value::Null));
    let slots: Vec<_> = cause["slots"].as_array().unwrap().iter().map(|slot| slot["time"].as_str().unwrap()).collect();
    assert_eq!(slots, ["2015-09-01T03:00:00.000Z", "2015-09-01T01:00:00.000Z"]);
    assert_eq!(server.get("/api/v1/backfills/none/causes").await.status.as_u16(), 404);

    let late = server.post("/api/v1/backfills/past/pause").await;
    assert_eq!((late.status.as_u16(), &late.json()["type"]), (409, &"urn:kelos:problem:backfill-over".into()));

    let again = server.post("/api/v1/backfills/past/rerun").await.ok().json();
    assert_eq!(again["counts"], json!({ "waiting": 2, "succeeded": 2 }));
    assert_eq!((&again["ended"], &again["failures"]), (&2.into(), &0.into()));
    let waits = &again["estimate"];
    assert_eq!(waits["text"], "no estimate yet: all remaining slots wait for their triggers");
    server.step(NOW).await;
    let goes = server.get("/api/v1/backfills/past").await.ok().json();
    assert_eq!(goes["estimate"]["text"], "from the pace of its last 4 slots", "{goes}");

    server.post("/api/v1/backfills/past/cancel").await.ok();
    let late = server.post("/api/v1/backfills/past/resume").await;
    assert_eq!((late.status.as_u16(), &late.json()["type"]), (409, &"urn:kelos:problem:backfill-cancelled".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_version_made_is_made_again() {
    for on_disk in [false, true] {
        let of_version =
            |version: &str| workflow("w", &format!("startTime: '2015-09-13T14:00Z', version: '{version}'"));
        let server = Server::with(Setup { on_disk, ..Setup::default() }, &of_version("1.3")).await;
        server.step(NOW).await;
        server.end(&slot("w", "2015-09-13T14:00Z"), 1, true).await;
        server.step(NOW).await;
        server.write("test.js", &of_version("1.4"));
        server.post("/clear-cache").await.ok();
        server.end(&slot("w", "2015-09-13T15:00Z"), 1, true).await;
        server.step(NOW).await;
        assert_eq!(server.statuses("w", NOW).await, ["SUCCESS", "SUCCESS"], "nothing runs again by itself");
        let day = r#""workflow": "w", "from": "2015-09-13T00:00Z", "to": "2015-09-14T00:00Z""#;
        let ask = async |rest: &str| server.post_json("/api/v1/backfills", &format!("{{{day}, {rest}}}")).await;
        let refused = ask(r#""madeBy": "1.5""#).await;
        let why = "no definition of w has the version 1.5, expected 1.4 (#2) or 1.3 (#1)";
        assert_eq!(refused.status.as_u16(), 404, "{}", refused.text);
        assert_eq!((&refused.json()["code"], &refused.json()["detail"]), (&"version-not-found".into(), &why.into()));
        let refused = ask(r##""madeBy": "#x""##).await;
        assert_eq!(refused.status.as_u16(), 400, "{}", refused.text);
        let preview = ask(r##""madeBy": "#2", "dryRun": true"##).await.ok().json();
        assert_eq!((&preview["reopened"]["count"], &preview["untouched"]), (&0.into(), &2.into()), "{preview}");
        let preview = ask(r#""madeBy": "1.3", "dryRun": true"#).await.ok().json();
        assert_eq!((&preview["reopened"]["count"], &preview["created"]["count"]), (&2.into(), &0.into()), "{preview}");
        let made = ask(r#""madeBy": "1.3", "name": "again""#).await;
        assert_eq!(made.status.as_u16(), 201, "{}", made.text);
        let row = server.get("/api/v1/backfills/again").await.ok().json();
        assert_eq!((&row["mode"], &row["slots"]), (&"all".into(), &2.into()), "{row}");
        server.step(NOW).await;
        let first = "/api/v1/workflows/w/slots/2015-09-13T14:00Z";
        server.end(&slot("w", "2015-09-13T14:00Z"), 2, true).await;
        let why = server.get(&format!("{first}/why")).await.ok().json();
        assert_eq!((&why["projectVersion"], &why["definitionVersion"]), (&"1.4".into(), &2.into()), "{why}");
        let runs = server.get(&format!("{first}/runs")).await.ok().json();
        let versions = [0, 1].map(|n| runs["items"][n]["projectVersion"].clone());
        assert_eq!(versions, ["1.3", "1.4"], "{runs}");
        let page = server.get("/ui/workflows/w/slots/2015-09-13T14:00Z").await.ok().text;
        assert!(page.contains("Made by version 1.4."), "{page}");
        let focus = "from=2015-09-13T13:00Z&to=2015-09-13T17:00Z&versions=";
        let found = server.get(&format!("/api/v1/focus?{focus}true")).await.ok().json();
        assert_eq!(found["rows"][0]["boxes"][0]["projectVersion"], "1.4", "{found}");
        let page = server.get(&format!("/ui/focus?{focus}1")).await.ok().text;
        assert!(page.contains("1.4 (#2)"), "{page}");
        let events = server.get("/api/v1/events?limit=500").await.ok().text;
        assert!(events.contains(r#""madeBy":"1.3""#), "{events}");
        let query = "workflow=w&from=2015-09-13T00:00&to=2015-09-13T16:00&made_by=1.4";
        let page = server.get(&format!("/ui/new-backfill?{query}")).await.ok().text;
        assert!(page.contains("done slots that version 1.4 made"), "{page}");
    }
}
