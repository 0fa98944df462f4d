//! The native API: workflows, slots, runs, registers, the server itself.

use axum::body::Body;
use axum::http::{Method, Request};
use kelos_engine::Pace;
use kelos_model::SlotState;
use serde_json::{Value, json};

use crate::support::{NOW, Server, Setup, at, slot, workflow};

const ONE: &str = "startTime: '2015-09-13T15:00Z'";
const SLOT: &str = "/api/v1/workflows/w/slots/2015-09-13T15:00Z";

fn ids(reply: &Value) -> Vec<&str> {
    reply["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_how_it_is() {
    let stepped = Server::start("").await;
    let health = stepped.get("/api/v1/health").await.ok().json();
    assert_eq!(health, json!({ "status": "stepped", "failures": 0, "lastSeq": 0, "now": NOW }));
    let leading = Server::with(Setup { pace: Pace::ByItself, ..Setup::default() }, "").await;
    assert_eq!(leading.get("/api/v1/health").await.ok().json()["status"], "leading");
    assert_eq!(leading.get("/api/v1/version").await.ok().json(), json!({ "name": "kelos", "version": "1.2.3" }));
    leading.node.stop().await;
    let stopped = leading.get("/api/v1/health").await;
    assert_eq!((stopped.status.as_u16(), &stopped.json()["status"]), (503, &"stopped".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_are_found_by_what_they_say_of_themselves() {
    let script = [
        workflow("alpha", "tags: ['etl', 'nightly'], description: 'Loads the warehouse'"),
        workflow("beta", "tags: ['etl']"),
        workflow("gamma", ""),
    ];
    let server = Server::start(&script.join("\n")).await;
    server.post("/api/v1/workflows/gamma/pause").await.ok();
    let found = async |query: &str| server.get(&format!("/api/v1/workflows?{query}")).await.ok().json();
    assert_eq!(ids(&found("").await), ["alpha", "beta", "gamma"]);
    assert_eq!(ids(&found("tag=etl").await), ["alpha", "beta"]);
    assert_eq!(ids(&found("q=WAREhouse").await), ["alpha"]);
    assert_eq!(ids(&found("paused=true").await), ["gamma"]);
    assert_eq!(ids(&found("paused=false&q=eta").await), ["beta"]);
    assert_eq!(ids(&found("project=test").await), ["alpha", "beta", "gamma"]);
    assert_eq!(ids(&found("project=other").await), [""; 0]);
    assert_eq!(
        found("q=alpha").await["items"][0],
        json!({
            "id": "alpha", "project": "test", "present": true, "enabled": true, "paused": false, "version": 1,
            "schedule": { "cron": "0 0 * * * ?", "zone": "UTC", "gap": "shift", "fold": "both" }, "zone": "UTC",
            "executor": "oozie", "description": "Loads the warehouse", "url": null, "tags": ["etl", "nightly"],
            "source": { "provenance": "file", "file": "test.js", "line": 1 }
        })
    );
    server.write("test.js", &script[0]);
    server.post("/clear-cache").await.ok();
    assert_eq!(ids(&found("").await), ["alpha"]);
    assert_eq!(ids(&found("removed=true").await), ["beta", "gamma"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_shown_in_full() {
    let fields = "startTime: '2015-09-13T13:00Z', maxRetryCount: 3, waitTimeoutSeconds: 7200,
        trigger: celos.andTrigger(celos.delayTrigger(5), celos.hdfsCheckTrigger('/x/${year}', 'hdfs://n'), celos.successTrigger('up')),
        contacts: [{ name: 'Jo', email: 'jo@example.com' }]";
    let server = Server::start(&workflow("w", fields)).await;
    server.step(NOW).await;
    let shown = server.get("/api/v1/workflows/w").await.ok().json();
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_kept_with_their_sources() {
    let first = workflow("w", "maxRetryCount: 1");
    let server = Server::start(&first).await;
    server.write("test.js", &workflow("w", "maxRetryCount: 2"));
    server.post("/clear-cache").await.ok();
    let past = server.get("/api/v1/workflows/w/definitions").await.ok().json();
    let versions: Vec<_> = past["items"].as_array().unwrap().iter().map(|past| &past["version"]).collect();
    assert_eq!(versions, [2, 1]);
    assert_eq!(past["items"][1]["source"], first);
    assert_eq!(past["items"][0]["definition"]["retry"]["count"], 2);
    let first = server.get("/api/v1/workflows/w/definitions/1").await.ok().json();
    assert_eq!(first, past["items"][1]);
    let none = server.get("/api/v1/workflows/w/definitions/3").await;
    assert_eq!((none.status.as_u16(), none.json()["code"].clone()), (404, json!("version-not-found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_says_with_which_definition_it_began() {
    let server = Server::start(&workflow("w", ONE)).await;
    server.step(NOW).await;
    let runs = async || server.get(&format!("{SLOT}/runs")).await.ok().json()["items"].clone();
    assert_eq!(runs().await[0]["definitionVersion"], 1, "{}", runs().await);
    server.write("test.js", &workflow("w", &format!("{ONE}, tags: ['later']")));
    server.post("/clear-cache").await.ok();
    assert_eq!(runs().await[0]["definitionVersion"], 1, "what came later is not what it began with");
    let one = server.get(&format!("{SLOT}/runs/1")).await.ok().json();
    assert_eq!(one["definitionVersion"], 1);
    let page = server.get("/ui/workflows/w/slots/2015-09-13T15:00Z").await.ok().text;
    assert!(page.contains("/ui/workflows/w/versions/1"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_go_both_ways() {
    let server = Server::start(&workflow("w", "schedule: celos.cronSchedule('0 0 12 * * ?')")).await;
    let times = async |query: &str| {
        let reply = server.get(&format!("/api/v1/workflows/w/times?{query}")).await.ok().json();
        let times = reply["times"].as_array().unwrap();
        times.iter().map(|time| time.as_str().unwrap()[8..13].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(times("count=3").await, ["14T12", "15T12", "16T12"]);
    assert_eq!(times("after=2015-09-01T12:00Z&count=2").await, ["02T12", "03T12"], "after is exclusive");
    assert_eq!(times("before=2015-09-05T12:00Z&count=2").await, ["03T12", "04T12"]);
    assert_eq!(times("after=2015-09-01&before=2015-09-03T12:00Z").await, ["01T12", "02T12"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_paged_and_filtered() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T11:00Z'")).await;
    server.step(NOW).await;
    let hours = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|slot| slot["time"].as_str().unwrap()[11..13].to_owned()).collect()
    };
    let first = server.get("/api/v1/slots?workflow=w&limit=3").await.ok().json();
    assert_eq!(hours(&first), ["15", "14", "13"]);
    let cursor = first["next"].as_str().unwrap();
    let second = server.get(&format!("/api/v1/slots?workflow=w&limit=3&cursor={cursor}")).await.ok().json();
    assert_eq!(hours(&second), ["12", "11"]);
    assert_eq!(second["next"], Value::Null);
    let range = server.get("/api/v1/slots?from=2015-09-13T12:00Z&to=2015-09-13T14:00Z").await.ok().json();
    assert_eq!(hours(&range), ["13", "12"]);
    let running = server.get("/api/v1/slots?state=running,failed").await.ok().json();
    assert_eq!(hours(&running), ["11"]);
    assert_eq!(
        running["items"][0],
        json!({
            "workflow": "w", "time": "2015-09-13T11:00:00.000Z", "state": "running", "since": NOW, "retries": 0,
            "lastRun": 1, "runAlive": true, "externalId": "0000001-oozie-W", "priority": 0, "backfill": null, "due": null
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_tells_its_whole_story() {
    for on_disk in [false, true] {
        let server = Server::with(Setup { on_disk, ..Setup::default() }, &workflow("w", ONE)).await;
        server.step(NOW).await;
        server.end(&slot("w", "2015-09-13T15:00Z"), 1, false).await;
        assert_eq!(server.get(SLOT).await.ok().json()["state"], "failed");
        let reopened =
            server.post_json(&format!("{SLOT}/rerun"), r#"{"reason":"the disk was full"}"#).await.ok().json();
        assert_eq!(reopened["state"], "waiting");
        let history = server.get(&format!("{SLOT}/history")).await.ok().json();
        insta::allow_duplicates! {
            insta::assert_snapshot!(serde_json::to_string_pretty(&history).unwrap());
        }
        let runs = server.get(&format!("{SLOT}/runs")).await.ok().json();
        assert_eq!(runs["items"].as_array().unwrap().len(), 1);
        assert_eq!(runs["items"][0], server.get(&format!("{SLOT}/runs/1")).await.ok().json());
        // A list of the runs of all slots does not look for their definitions.
        let mut listed = server.get("/api/v1/runs?state=failed").await.ok().json()["items"][0].clone();
        listed["definitionVersion"] = json!(1);
        assert_eq!(runs["items"][0], listed);
        assert_eq!(
            runs["items"][0],
            json!({
                "workflow": "w", "time": "2015-09-13T15:00:00.000Z", "number": 1, "state": "failed", "executor": "oozie",
                "externalId": "0000001-oozie-W", "dispatchedAt": NOW, "startedAt": NOW, "endedAt": NOW, "definitionVersion": 1,
                "outcome": { "result": "failed", "code": "exit-status", "text": "exited with status 3", "exitStatus": 3 }
            })
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_says_what_stands_in_the_way() {
    let fields = format!("{ONE}, trigger: celos.successTrigger('upstream')");
    let server = Server::start(&workflow("w", &fields)).await;
    server.step(NOW).await;
    let why = server.get(&format!("{SLOT}/why")).await.ok().json();
    assert_eq!(why["state"], "waiting");
    assert_eq!(why["blockers"], json!(["Workflow slot upstream@2015-09-13T15:00Z is not ready"]));
    assert_eq!(
        why["trigger"]["evidence"],
        json!({
            "read": "slot", "workflow": "upstream", "time": "2015-09-13T15:00:00.000Z"
        })
    );
    let before = server.get(&format!("{SLOT}/why?at=2015-09-13T14:00Z")).await.ok().json();
    assert_eq!((&before["state"], &before["headline"]), (&Value::Null, &"its time had not come".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_goes_into_the_log() {
    let server = Server::start(&workflow("w", ONE)).await;
    let kill = |by: &str| Request::post(format!("{SLOT}/kill")).header("kelos-user", by).body(Body::empty()).unwrap();
    server.send(kill("jo")).await.ok();
    server.post(&format!("{SLOT}/rerun")).await.ok();
    server.post("/kill?id=w&time=2015-09-13T15:00Z").await.ok();
    let rerun = Request::post(format!("{SLOT}/rerun"));
    server.send(rerun.header("kelos-user", "anna").body(Body::empty()).unwrap()).await.ok();
    // The scripts of the pages say so of themselves.
    server.send(kill("web")).await.ok();
    let history = server.get(&format!("{SLOT}/history")).await.ok().json();
    let by: Vec<_> = history["items"].as_array().unwrap().iter().filter_map(|event| event["by"].as_str()).collect();
    assert_eq!(by, ["jo", "api", "celos-api", "anna", "web"]);
    let kinds: Vec<_> =
        history["items"].as_array().unwrap().iter().filter_map(|event| event["actor"]["kind"].as_str()).collect();
    assert_eq!(kinds, ["person", "unknown", "unknown", "person", "unknown"]);
    assert_eq!(server.send(kill(" ")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_can_be_seen() {
    let server = Server::start(&workflow("w", "")).await;
    assert_eq!(server.post("/api/v1/workflows/w/pause").await.ok().json()["paused"], true);
    assert_eq!(server.post("/api/v1/workflows/w/resume").await.ok().json()["paused"], false);
    let events = server.get("/api/v1/events?workflow=w").await.ok().json();
    let kinds: Vec<_> = events["items"].as_array().unwrap().iter().map(|event| &event["event"]).collect();
    assert_eq!(kinds, ["defined", "paused", "resumed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_somebody_asks_goes_into_the_log() {
    let server = Server::start(&workflow("w", "")).await;
    server.post_json("/api/v1/workflows/w/pause", r#"{"reason":"the cluster moves"}"#).await.ok();
    server.post_json("/api/v1/workflows/w/resume", r#"{"reason":"it has moved"}"#).await.ok();
    server.ask(Method::PUT, "/api/v1/registers/b/k?reason=a%20new%20limit", "7").await.ok();
    server.ask(Method::DELETE, "/api/v1/registers/b/k?reason=no%20limit", "").await;
    let events = server.get("/api/v1/events").await.ok().json();
    let reasons: Vec<_> =
        events["items"].as_array().unwrap().iter().filter_map(|event| event["reason"].as_str()).collect();
    assert_eq!(reasons, ["the cluster moves", "it has moved", "a new limit", "no limit"]);
    assert_eq!(server.ask(Method::PUT, "/api/v1/registers/b/k?raeson=x", "7").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_paged_to_the_end() {
    let server = Server::start(&[workflow("w", ONE), workflow("other", ONE)].join("\n")).await;
    server.step(NOW).await;
    let (mut after, mut seqs) = (0, Vec::new());
    loop {
        let page = server.get(&format!("/api/v1/events?after={after}&limit=3")).await.ok().json();
        seqs.extend(page["items"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()));
        after = page["last"].as_u64().unwrap();
        if page["end"] == true {
            break;
        }
    }
    let last = server.get("/api/v1/health").await.json()["lastSeq"].as_u64().unwrap();
    assert_eq!(seqs, (1..=last).collect::<Vec<_>>());
    let page = server.get(&format!("/api/v1/events?after={after}")).await.ok().json();
    assert_eq!(page, json!({ "items": [], "last": last, "end": true }));
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_set_listed_and_deleted() {
    let server = Server::start("").await;
    let uri = "/api/v1/registers/b%2Fx/k.1";
    let put = server.ask(Method::PUT, uri, "[1]").await.ok().json();
    assert_eq!(put, json!({ "bucket": "b/x", "key": "k.1", "value": [1] }));
    assert_eq!(server.get(uri).await.ok().json(), put);
    assert_eq!(server.get("/api/v1/registers/b%2Fx?prefix=k").await.ok().json(), json!({ "items": [put] }));
    assert_eq!(server.get("/api/v1/registers/b%2Fx?prefix=l").await.ok().json(), json!({ "items": [] }));
    assert_eq!(server.ask(Method::DELETE, uri, "").await.told(), (204, ""));
    assert_eq!(server.get(uri).await.status, 404);
    assert_eq!(server.ask(Method::PUT, uri, "").await.status, 400, "nothing is no JSON");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_can_be_asked_for() {
    let server = Server::start(&[workflow("w", ONE), workflow("other", ONE)].join("\n")).await;
    let body = format!(r#"{{"time":"{NOW}","workflows":["w"]}}"#);
    let stepped = server.post_json("/api/v1/step", &body).await.ok().json();
    assert_eq!(stepped["time"], NOW);
    assert_eq!(server.get(SLOT).await.ok().json()["state"], "running");
    assert_eq!(server.get("/api/v1/workflows/other/slots/2015-09-13T15:00Z").await.status, 404);
    server.post("/api/v1/step").await.ok();
    assert_eq!(server.get("/api/v1/workflows/other/slots/2015-09-13T15:00Z").await.ok().json()["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_schedules_by_itself_needs_no_step() {
    let server = Server::with(Setup { pace: Pace::ByItself, ..Setup::default() }, &workflow("w", ONE)).await;
    let id = slot("w", "2015-09-13T15:00Z");
    server.until_state(&id, SlotState::Running).await;
    server.end(&id, 1, true).await;
    assert_eq!(server.get(SLOT).await.ok().json()["state"], "succeeded");
    let step = server.post_json("/api/v1/step", &format!(r#"{{"time":"{NOW}"}}"#)).await;
    assert_eq!((step.status.as_u16(), &step.json()["type"]), (409, &"urn:kelos:problem:not-stepped".into()));
    server.post("/api/v1/step").await.ok();
    assert_eq!(at(NOW), server.node.handle().now());
}

/// A workflow whose job is given secrets under names that tell, and one that doesn't.
const WITH_SECRETS: &str = "externalService: celos.commandExternalService({command: ['curl', '--token', 't0k3n'],
    env: {DBPASS: 's3cr3t', REGION: 's3cr3t', TZ: 'UTC'}})";

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_by_every_api() {
    let server = Server::start(&workflow("w", WITH_SECRETS)).await;
    server.write("test.js", &workflow("w", &WITH_SECRETS.replace("'UTC'", "'CET'")));
    server.post("/clear-cache").await.ok();
    let shown = server.get("/api/v1/workflows/w").await.ok();
    let env = &shown.json()["definition"]["job"]["settings"]["env"];
    assert_eq!(*env, serde_json::json!({"DBPASS": "••••••", "REGION": "••••••", "TZ": "CET"}));
    let past = server.get("/api/v1/workflows/w/definitions").await.ok();
    for path in [
        "/api/v1/workflows/w",
        "/api/v1/workflows/w/definitions",
        "/api/v1/workflows",
        "/ui/workflows/w",
        "/ui/workflows/w/versions/1",
    ] {
        let text = server.get(path).await.ok().text;
        assert!(!text.contains("s3cr3t") && !text.contains("t0k3n"), "{path}: {text}");
    }
    assert!(past.text.contains("TZ: 'UTC'") && past.text.contains("TZ: 'CET'"), "{past:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_defines_is_defined_by_files() {
    let server = Server::start(&workflow("w", "")).await;
    let events = server.get("/api/v1/events?workflow=w").await.ok().json();
    let defined = events["items"].as_array().unwrap().iter().find(|event| event["event"] == "defined").unwrap();
    assert_eq!(defined["actor"], json!({ "kind": "system", "name": "files" }), "{defined}");
}
