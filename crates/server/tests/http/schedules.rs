//! Event schedules and facts over the native API.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::jobs::step;
use crate::support::{Server, moment};

const SCRIPT: &str = r#"
    application({ name: "Purchase" });
    const job = celos.commandExternalService({ command: ["true"] });
    program("History", job);
    program("Cleanup", job);
    program("Loader", job, { kind: ProgramType.SPARK });
    schedule("Nightly", "History").withConcurrency(1).abortIfNotMet().triggerByTime("0 4 * * *");
"#;

const ALL: &str = "/api/v1/schedules";
const ONE: &str = "/api/v1/schedules/Purchase.onPartitions";

async fn server() -> Server {
    Server::start(SCRIPT).await
}

fn partitions(count: u32) -> Value {
    json!({ "name": "onPartitions", "program": "Purchase.History",
            "trigger": { "type": "partitions", "dataset": "purchases", "count": count } })
}

async fn create(server: &Server, body: Value) -> Value {
    server.post_json(ALL, &body.to_string()).await.ok().json()
}

async fn tell(server: &Server, body: Value) -> Value {
    let told = server.post_json("/api/v1/facts", &body.to_string()).await.ok().json();
    step(server).await;
    told
}

/// Status, kind and detail of a refusal.
async fn refused(server: &Server, method: Method, path: &str, body: &str) -> String {
    let reply = server.ask(method, path, body).await;
    let problem = reply.json();
    let kind = problem["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    format!("{} {kind}: {}", reply.status.as_u16(), problem["detail"].as_str().unwrap())
}

async fn decisions(server: &Server, path: &str) -> Vec<String> {
    let page = server.get(&format!("{path}/decisions")).await.ok().json();
    let told = |one: &Value| format!("{}: {}", one["kind"].as_str().unwrap(), one["text"].as_str().unwrap());
    page["items"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_lives() {
    let server = server().await;
    let mut body = partitions(4);
    body["description"] = "when four are there".into();
    body["constraints"] = json!([{ "type": "concurrency", "limit": 1 }]);
    body["properties"] = json!({ "triggered.by": "data" });
    let created = create(&server, body).await;
    assert_eq!(
        (&created["id"], &created["project"], &created["enabled"], &created["standing"]),
        (
            &json!("Purchase.onPartitions"),
            &json!("Purchase"),
            &json!(false),
            &json!("nothing is pending: disabled since 2015-09-13T15:01Z")
        )
    );
    assert_eq!(created["constraints"], json!([{ "type": "concurrency", "limit": 1, "otherwise": "abort" }]));
    assert_eq!((&created["timeoutMillis"], &created["catchUp"]), (&json!(86_400_000), &json!("latest")));
    let enabled = server.post(&format!("{ONE}/enable")).await.ok().json();
    assert_eq!(enabled["enabled"], true);
    let again = refused(&server, Method::POST, &format!("{ONE}/enable"), "").await;
    assert_eq!(
        again,
        "409 already-enabled: failed to enable it: Purchase.onPartitions is enabled already"
            .replace("failed to enable it: ", "")
    );
    assert_eq!(
        tell(&server, json!({ "dataset": "purchases", "partitions": 3 })).await,
        json!({ "new": 1, "known": 0 })
    );
    let shown = server.get(ONE).await.ok().json();
    assert_eq!(shown["standing"], "waiting: 3 of 4 partitions of purchases");
    let pending = &shown["pending"][0];
    assert_eq!(pending["collected"]["tallies"][0]["about"], "partition:purchases");
    assert_eq!(pending["expires"], "2015-09-14T15:01:00.000Z");
    let slots = server.get("/api/v1/slots?workflow=Purchase.onPartitions").await.ok().json();
    assert_eq!(slots["items"][0]["collected"]["words"], json!(["3 partitions of purchases"]));
    tell(&server, json!({ "dataset": "purchases" })).await;
    let running = moment("Purchase.onPartitions", "2015-09-13T15:01Z");
    assert!(server.is_running(&running, 1));
    // The next one is ended by the constraint, and says so.
    tell(&server, json!({ "dataset": "purchases", "partitions": 4 })).await;
    server.end(&running, 1, true).await;
    let expected = [
        "aborted: a constraint was not met: 1 run of Purchase.History is live, the limit is 1",
        "fired: run 1 succeeded",
        "schedule: enabled by api",
        "schedule: created by api",
    ];
    assert_eq!(decisions(&server, ONE).await, expected);
    let shown = server.get(ONE).await.ok().json();
    assert_eq!(shown["counts"], json!({ "succeeded": 1, "skipped": 1 }));
    assert_eq!(
        (&shown["lastRun"]["state"], &shown["lastSuccess"]),
        (&json!("succeeded"), &json!("2015-09-13T15:01:00.000Z"))
    );
    let gone = server.ask(Method::DELETE, ONE, "").await.ok().json();
    assert_eq!(gone["id"], "Purchase.onPartitions");
    let unknown = refused(&server, Method::GET, ONE, "").await;
    assert_eq!(unknown, "404 schedule-not-found: no event schedule is named \"Purchase.onPartitions\"");
    assert_eq!(decisions(&server, ONE).await[0], "schedule: deleted by api");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_keeps_what_is_not_named_and_ends_what_is_pending() {
    let server = server().await;
    let cron = |cron: &str| json!({ "type": "fired", "cron": cron });
    let mut body = partitions(2);
    body["trigger"] = json!({ "type": "or", "nested": [body["trigger"], cron("0 4 * * *")] });
    body["timeZone"] = "Europe/Berlin".into();
    body["constraints"] = json!([{ "type": "window", "from": "22:00", "to": "06:00" }]);
    body["properties"] = json!({ "a": "1" });
    body["enabled"] = true.into();
    let created = create(&server, body).await;
    assert_eq!(created["timeZone"], "Europe/Berlin");
    assert_eq!(created["next"]["local"], "2015-09-14T04:00:00+02:00");
    tell(&server, json!({ "dataset": "purchases" })).await;
    let change = json!({ "trigger": cron("30 5 * * *"), "description": "later", "startTime": "2015-10-01" });
    let changed = server.ask(Method::PATCH, ONE, &change.to_string()).await.ok().json();
    assert_eq!(
        (&changed["trigger"], &changed["properties"], &changed["enabled"]),
        (
            &json!({ "type": "fired", "cron": "30 5 * * *", "zone": "Europe/Berlin" }),
            &json!({ "a": "1" }),
            &json!(true)
        )
    );
    assert_eq!((&changed["next"]["time"], &changed["version"]), (&json!("2015-10-01T03:30:00.000Z"), &json!(2)));
    assert_eq!(decisions(&server, ONE).await[1], "changed: the schedule was changed by api");
    let moved = server.ask(Method::PATCH, ONE, r#"{"timeZone": "UTC", "startTime": null}"#).await.ok().json();
    assert_eq!((&moved["constraints"][0]["zone"], &moved["startTime"]), (&json!("UTC"), &Value::Null));
    let body = json!({ "trigger": cron("0 0 * * *"), "program": "Cleanup" });
    let replaced = server.ask(Method::PUT, ONE, &body.to_string()).await.ok().json();
    assert_eq!((&replaced["program"], &replaced["constraints"]), (&json!("Purchase.Cleanup"), &json!([])));
    assert_eq!((&replaced["properties"], &replaced["description"]), (&json!({}), &Value::Null));
    assert_eq!(replaced["enabled"], true, "an update keeps the status");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_created_or_none() {
    let server = server().await;
    let mut other = partitions(1);
    other["name"] = "other".into();
    let mut bad = partitions(0);
    bad["name"] = "bad".into();
    let told = refused(&server, Method::POST, ALL, &json!([other, bad]).to_string()).await;
    assert_eq!(told, "400 bad-body: schedule 2: 0 partitions of purchases are met by anything: expected at least 1");
    let told = refused(&server, Method::POST, ALL, &json!([other, other]).to_string()).await;
    assert_eq!(told, "400 bad-body: Purchase.other is given twice: expected each once");
    let mut taken = partitions(1);
    taken["name"] = "Nightly".into();
    let told = refused(&server, Method::POST, ALL, &json!([other, taken]).to_string()).await;
    assert_eq!(told, "409 name-taken: a workflow named \"Purchase.Nightly\" exists already, expected a new name");
    assert_eq!(server.get(ALL).await.ok().json()["items"].as_array().unwrap().len(), 1);
    let created = create(&server, json!([other, partitions(1)])).await;
    assert_eq!(created["items"].as_array().unwrap().len(), 2);
    let ids = |page: Value| -> Vec<String> {
        let ids = page["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    let found = async |query: &str| ids(server.get(&format!("{ALL}?{query}")).await.ok().json());
    assert_eq!(found("trigger=partitions").await, ["Purchase.onPartitions", "Purchase.other"]);
    assert_eq!(found("trigger=fired&project=Purchase&program=Purchase.History").await, ["Purchase.Nightly"]);
    assert_eq!(found("name=other&enabled=false").await, ["Purchase.other"]);
    assert!(found("enabled=true").await.is_empty());
    let page = server.get(&format!("{ALL}?limit=2")).await.ok().json();
    assert_eq!(page["next"], "Purchase.onPartitions");
    assert_eq!(found("limit=2&cursor=Purchase.onPartitions").await, ["Purchase.other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_fired_and_a_program_is_started() {
    let server = server().await;
    create(&server, partitions(1)).await;
    let body = r#"{"arguments": {"day": "monday"}, "unconstrained": true, "reason": "a try"}"#;
    let fired = server.post_json(&format!("{ONE}/fire"), body).await.ok().json();
    assert_eq!(
        fired["collected"]["asked"],
        json!({ "arguments": { "day": "monday" }, "unconstrained": true, "by": "api" }),
        "{fired}"
    );
    step(&server).await;
    assert!(server.is_running(&moment("Purchase.onPartitions", "2015-09-13T15:01Z"), 1));
    let started = server.post("/api/v1/workflows/Purchase.spark:Loader/start").await.ok().json();
    assert_eq!(
        (&started["workflow"], &started["time"]),
        (&json!("Purchase.spark:Loader"), &json!("2015-09-13T15:01:00.000Z"))
    );
    let nobody = refused(&server, Method::POST, "/api/v1/workflows/nobody/start", "").await;
    assert_eq!(nobody, "404 workflow-not-found: no workflow is named \"nobody\"");
    let shown = server.get("/api/v1/workflows/Purchase.Nightly").await.ok().json();
    assert_eq!(
        (&shown["schedule"], &shown["nextTimes"][0]),
        (&json!({ "runs": "Purchase.History" }), &json!("2015-09-14T04:00:00.000Z"))
    );
    assert_eq!(shown["scheduleProblem"], Value::Null);
    let times = server.get("/api/v1/workflows/Purchase.Nightly/times?count=2").await.ok().json();
    assert_eq!(times["times"], json!(["2015-09-14T04:00:00.000Z", "2015-09-15T04:00:00.000Z"]));
    let program = server.get("/api/v1/workflows/Purchase.History").await.ok().json();
    assert_eq!((&program["schedule"], &program["nextTimes"]), (&json!({ "onRequest": true }), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_count_once_and_are_listed() {
    let server = server().await;
    let facts = json!([
        { "source": "s3", "key": "a", "dataset": "purchases", "keys": ["2015/09/13"] },
        { "source": "s3", "key": "a", "dataset": "purchases" },
        { "program": "Sales.Report", "state": "failed", "run": "7", "arguments": { "src": "/x" }, "outputs": { "n": 1 } },
        { "signal": "go", "payload": { "why": "now" } },
    ]);
    assert_eq!(tell(&server, facts).await, json!({ "new": 3, "known": 1 }));
    let once = |key: &str, body: &str| {
        let request = Request::builder().method(Method::POST).uri("/api/v1/facts").header("idempotency-key", key);
        request.header("kelos-user", "ann").body(Body::from(body.to_owned())).unwrap()
    };
    let told = server.send(once("k1", r#"{"signal": "go"}"#)).await.ok().json();
    assert_eq!(told, json!({ "new": 1, "known": 0 }));
    let told = server.send(once("k1", r#"{"signal": "go"}"#)).await.ok().json();
    assert_eq!(told, json!({ "new": 0, "known": 1 }));
    let several = server.send(once("k1", r#"[{"signal": "go"}]"#)).await;
    assert_eq!(
        several.json()["detail"],
        "the header `Idempotency-Key` names a single fact: expected a `key` in each of several"
    );
    let listed = server.get("/api/v1/facts?limit=1000").await.ok().json();
    let items = listed["items"].as_array().unwrap();
    let words: Vec<_> = items.iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(words, ["signal go", "signal go", "Sales.Report failed (7)", "a new partition of purchases"]);
    assert_eq!((&items[0]["source"], &items[0]["key"]), (&json!("ann"), &json!("k1")));
    assert_eq!((&items[2]["arguments"], &items[2]["outputs"]), (&json!({ "src": "/x" }), &json!({ "n": 1 })));
    assert_eq!(items[3]["keys"], json!(["2015/09/13"]));
    let some = server.get("/api/v1/facts?about=signal:go&source=api").await.ok().json();
    assert_eq!(some["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_schedules_and_facts_are_told_what_was_expected() {
    let server = server().await;
    let mut told = Vec::new();
    for body in bad_schedules() {
        told.push(format!("{body}\n  {}", refused(&server, Method::POST, ALL, &body.to_string()).await));
    }
    for body in [
        json!({ "name": "other" }),
        json!({ "project": "Sales" }),
        json!({ "enabled": true }),
        json!({ "program": "Nobody" }),
    ] {
        let path = "/api/v1/schedules/Purchase.Nightly";
        told.push(format!("PATCH {body}\n  {}", refused(&server, Method::PATCH, path, &body.to_string()).await));
    }
    for body in bad_facts() {
        let short: String = body.to_string().chars().take(80).collect();
        told.push(format!("{short}\n  {}", refused(&server, Method::POST, "/api/v1/facts", &body.to_string()).await));
    }
    insta::assert_snapshot!(told.join("\n"));
    assert!(server.get("/api/v1/facts").await.ok().json()["items"].as_array().unwrap().is_empty());
}

/// Bodies that define no event schedule.
fn bad_schedules() -> Vec<Value> {
    let with = |field: &str, value: Value| {
        let mut body = partitions(1);
        body[field] = value;
        body
    };
    let trigger = |trigger: Value| with("trigger", trigger);
    vec![
        json!({}),
        json!({ "program": "Purchase.History", "name": "x" }),
        json!({ "program": "Purchase.History", "trigger": { "type": "signal", "signal": "x" } }),
        with("program", "Purchase.Nobody".into()),
        with("program", "Purchase.Nightly".into()),
        with("program", "Purchase.spark:Loader".into()),
        with("name", "".into()),
        with("name", "a:b".into()),
        with("timeoutMillis", 0.into()),
        with("timeoutMillis", (-1).into()),
        with("timeZone", "Mars/North".into()),
        with("catchUp", "never".into()),
        with("colour", "red".into()),
        with("startTime", "tomorrow".into()),
        with("constraints", json!([{ "type": "concurrency", "limit": 0 }])),
        with("constraints", json!([{ "type": "delay", "millis": 5, "otherwise": "abort" }])),
        with("constraints", json!([{ "type": "window", "from": "25:00", "to": "06:00" }])),
        with("constraints", json!([{ "type": "moon" }])),
        trigger(json!({ "type": "fired", "cron": "* * *" })),
        trigger(json!({ "type": "fired", "cron": "0 4 * * 8" })),
        trigger(json!({ "type": "ended", "workflow": "w", "states": ["running"] })),
        trigger(json!({ "type": "delay", "seconds": 5 })),
        trigger(json!({ "type": "not", "nested": [{ "type": "signal", "signal": "stop" }] })),
        trigger(json!({ "type": "and", "nested": [] })),
        trigger(json!({ "type": "not", "nested": [] })),
        trigger(json!({ "type": "partitions", "dataset": "ds", "number": 1 })),
        trigger(json!({ "type": "function" })),
        json!("nonsense"),
    ]
}

/// Bodies that publish no fact.
fn bad_facts() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "dataset": "ds", "signal": "go" }),
        json!({ "dataset": "" }),
        json!({ "dataset": "ds", "payload": 1 }),
        json!({ "dataset": "ds", "partitions": -1 }),
        json!({ "dataset": "ds", "partitions": 1, "keys": ["a", "b"] }),
        json!({ "program": "w" }),
        json!({ "program": "w", "state": "running" }),
        json!({ "program": "a/b", "state": "failed" }),
        json!({ "signal": "x".repeat(501) }),
        json!({ "signal": "x", "key": "" }),
        json!([{ "signal": "x" }, { "signal": "x", "colour": "red" }]),
        json!(7),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_runs_again_is_decided_anew() {
    let server = server().await;
    let mut body = partitions(1);
    body["constraints"] = json!([{ "type": "since-last-run", "millis": 3_600_000, "otherwise": "wait" }]);
    create(&server, body).await;
    server.post_json(&format!("{ONE}/fire"), r#"{ "reason": "a try" }"#).await.ok();
    step(&server).await;
    let slot = moment("Purchase.onPartitions", "2015-09-13T15:01Z");
    server.end(&slot, 1, true).await;
    step(&server).await;
    assert_eq!(decisions(&server, ONE).await[0], "fired: run 1 succeeded, as api asked");
    let rerun = format!("/api/v1/workflows/{}/slots/2015-09-13T15:01Z/rerun", slot.workflow);
    server.post(&rerun).await.ok();
    step(&server).await;
    assert_eq!(decisions(&server, ONE).await[0], "pending: run again by api: held since 2015-09-13T15:01Z");
    let all = server.get(ALL).await.ok().json();
    assert!(all["items"].as_array().unwrap().iter().all(|one| one["counts"].is_null()), "{all}");
    assert_eq!(server.get(ONE).await.ok().json()["counts"], json!({ "held": 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_goes_round_for_ever_is_created_with_a_warning() {
    let server = server().await;
    let mut body = partitions(1);
    body["trigger"] = json!({ "type": "ended", "workflow": "Purchase.History", "states": ["succeeded"] });
    let made = create(&server, body).await;
    let told = "it waits for the end of its own program, which is an endless loop: each run of Purchase.History that ended as \
                succeeded triggers the next at once; a delay, or a duration since the last run, slows it";
    assert_eq!(made["warnings"], json!([told]));
    let slow = r#"{ "constraints": [{ "type": "delay", "millis": 1000 }] }"#;
    assert_eq!(server.ask(Method::PATCH, ONE, slow).await.ok().json()["warnings"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_says_so_and_takes_what_comes() {
    let server = server().await;
    let mut body = partitions(1);
    body["constraints"] = json!([{ "type": "window", "from": "22:00", "to": "06:00" }]);
    body["enabled"] = true.into();
    create(&server, body).await;
    for _ in 0..3 {
        tell(&server, json!({ "dataset": "purchases" })).await;
    }
    let shown = server.get(ONE).await.ok().json();
    let closed = "The window 22:00-06:00 UTC is closed, and opens at 2015-09-13T22:00Z";
    assert_eq!(shown["standing"], format!("held: {closed}"));
    assert_eq!(shown["pending"][0]["explanation"]["nested"][0]["type"], "window");
    let slot = "/api/v1/workflows/Purchase.onPartitions/slots/2015-09-13T15:01Z";
    let why = server.get(&format!("{slot}/why")).await.ok().json();
    assert_eq!(why["constraints"]["nested"][0]["text"], closed);
    assert_eq!(why["expires"], "2015-09-14T15:01:00.000Z");
    server.post(&format!("{ONE}/disable")).await.ok();
    server.post(&format!("{ONE}/enable")).await.ok();
    tell(&server, json!({ "dataset": "purchases" })).await;
    let expected = [
        "pending: held since 2015-09-13T15:01Z",
        "schedule: enabled by api",
        "disabled: the schedule was disabled by api; 2 more facts came while it was held",
        "schedule: disabled by api",
        "schedule: created by api",
    ];
    assert_eq!(decisions(&server, ONE).await, expected);
    // Page by page nothing is lost or doubled.
    let (mut cursor, mut paged) = (String::new(), Vec::new());
    loop {
        let page = server.get(&format!("{ONE}/decisions?limit=1{cursor}")).await.ok().json();
        paged.extend(page["items"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    paged.sort();
    let mut whole: Vec<_> = expected.iter().filter_map(|one| one.split_once(": ")).map(|(_, text)| text).collect();
    whole.sort_unstable();
    assert_eq!(paged, whole);
    let bad = refused(&server, Method::GET, &format!("{ONE}/decisions?cursor=x"), "").await;
    assert_eq!(bad, "400 bad-query: failed to read on from \"x\": expected the `next` of an earlier page");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_one_project_with_the_script_that_defines_it() {
    let server = server().await;
    create(&server, partitions(1)).await;
    let projects = server.get("/api/v1/projects").await.ok().json();
    let all: Vec<_> =
        projects["items"].as_array().unwrap().iter().map(|one| (&one["name"], &one["workflows"])).collect();
    let ids = json!([
        "Purchase.Cleanup",
        "Purchase.History",
        "Purchase.Nightly",
        "Purchase.onPartitions",
        "Purchase.spark:Loader"
    ]);
    assert_eq!(all, [(&json!("test"), &ids)]);
    assert_eq!(server.get("/api/v1/facts/sources").await.ok().json(), json!({ "items": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_from_what_has_no_schedules() {
    let server = server().await;
    let asked = async |query: &str| refused(&server, Method::GET, &format!("{ALL}?{query}"), "").await;
    assert_eq!(asked("program=Nobody").await, "404 program-not-found: there is no workflow \"Nobody\" to run");
    assert_eq!(asked("project=Nowhere").await, "404 project-not-found: there is no project \"Nowhere\"");
    assert!(
        asked("trigger=time").await.starts_with("400 bad-query: `trigger` is \"time\", expected fired, partitions")
    );
    for query in ["program=Purchase.Cleanup", "trigger=signal", "project=Purchase&enabled=true"] {
        assert_eq!(server.get(&format!("{ALL}?{query}")).await.ok().json()["items"], json!([]), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_another_kind_says_so_by_its_name() {
    let server = server().await;
    let mut body = partitions(1);
    body["program"] = "Purchase.Loader".into();
    let why = "400 bad-body: Purchase.spark:Loader is a spark program: only workflows can be scheduled";
    assert_eq!(refused(&server, Method::POST, ALL, &body.to_string()).await, why);
}

/// A trigger may be given as the line that people type, as a whole or in parts, and is answered as JSON.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_may_stand_where_a_trigger_may() {
    let server = server().await;
    let mut body = partitions(1);
    body["timeZone"] = "Asia/Tokyo".into();
    body["trigger"] = "and(time(0 4 * * *), partitions(purchases, 4))".into();
    let made = create(&server, body.clone()).await;
    let expected = json!({ "type": "and", "nested": [
        { "type": "fired", "cron": "0 4 * * *", "zone": "Asia/Tokyo" },
        { "type": "partitions", "dataset": "purchases", "count": 4 },
    ] });
    assert_eq!(made["trigger"], expected);
    // What is answered may be given again.
    let given = json!({ "trigger": { "type": "or", "nested": [made["trigger"], "signal(go)"] } }).to_string();
    let changed = server.ask(Method::PATCH, ONE, &given).await.ok().json();
    assert_eq!(changed["trigger"]["nested"], json!([expected, { "type": "signal", "signal": "go" }]));
    body["trigger"] = json!({ "type": "or", "nested": ["signal(go)", "delay(soon)"] });
    let told = refused(&server, Method::POST, ALL, &body.to_string()).await;
    let why = "400 bad-body: `trigger.nested[1]`, at character 7: \"soon\" is not a duration: expected a form such as 90s, 15m, \
               36h, 7d or 2w";
    assert_eq!(told, why);
    body["trigger"] = "function(a.js, 0, x)".into();
    let told = refused(&server, Method::POST, ALL, &body.to_string()).await;
    assert_eq!(told, "400 bad-body: `trigger`: a function can't be given here: only its own script can ask it");
}
