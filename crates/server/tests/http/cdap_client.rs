//! Clients of CDAP, played: what they send, in their order, and what they expect.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::cdap_support::{Cdap, body, partition, time};

/// The paths that the client makes: always with a version.
fn path(schedule: &str) -> String {
    format!("/v3/namespaces/default/apps/App/versions/-SNAPSHOT/schedules/{schedule}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_schedules_works_unchanged() {
    let server = Cdap::start().await;
    // Its objects have all fields, with nulls where nothing is known.
    let detail = json!({
        "namespace": "default", "application": "App", "applicationVersion": "-SNAPSHOT", "name": "nightly",
        "description": "at night", "program": { "programName": "Wf", "programType": "WORKFLOW" },
        "properties": { "k": "v" }, "trigger": { "cronExpression": "0 4 * * *", "type": "TIME" },
        "constraints": [{ "maxConcurrency": 1, "type": "CONCURRENCY", "waitUntilMet": false }],
        "timeoutMillis": 86_400_000, "status": null, "lastUpdateTime": null,
    });
    let add = server.put(&path("nightly"), &detail).await;
    assert_eq!(add.told(), (200, ""));
    assert_eq!(server.put(&path("nightly"), &detail).await.status, 409);

    let update = json!({ "name": "nightly", "description": "later", "trigger": { "cronExpression": "0 5 * * *", "type": "TIME" } });
    assert_eq!(server.post(&format!("{}/update", path("nightly")), &update).await.told(), (200, ""));

    let list = server.get("apps/App/workflows/Wf/schedules").await;
    assert_eq!(list.header("content-type"), "application/json");
    let list = list.ok().json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!((&list[0]["description"], &list[0]["properties"]), (&json!("later"), &json!({ "k": "v" })));
    assert_eq!(list[0]["trigger"]["cronExpression"], "0 5 * * *");
    assert_eq!(list[0]["constraints"], detail["constraints"]);

    let status = async || server.get(&format!("{}/status", path("nightly"))).await.ok().json();
    let next = async || server.get("apps/App/workflows/Wf/nextruntime").await.ok().json();
    assert_eq!((status().await, next().await), (json!({ "status": "SUSPENDED" }), json!([])));
    let act = async |action: &str| server.ask(Method::POST, &format!("{}/{action}", path("nightly")), "").await;
    assert_eq!(act("resume").await.status, 200);
    let refused = act("resume").await;
    assert_eq!((refused.status.as_u16(), refused.header("kelos-code")), (409, "already-enabled"));
    assert_eq!(status().await, json!({ "status": "SCHEDULED" }));
    let five: jiff::Timestamp = "2026-11-22T05:00:00Z".parse().unwrap();
    assert_eq!(next().await[0]["time"], five.as_millisecond());

    let start = server.now().as_millisecond();
    server.pass(1).await;
    assert_eq!(act("suspend").await.status, 200);
    assert_eq!(act("suspend").await.status, 409);
    assert_eq!(status().await, json!({ "status": "SUSPENDED" }));
    let end = server.now().as_millisecond() + 1;
    let again = format!("schedules/re-enable?start-time-millis={start}&end-time-millis={end}");
    assert_eq!(server.ask(Method::PUT, &again, "").await.told(), (200, ""));
    assert_eq!(status().await, json!({ "status": "SCHEDULED" }));

    assert_eq!(server.delete(&path("nightly")).await.told(), (200, ""));
    assert_eq!(server.delete(&path("nightly")).await.status, 404);
    assert_eq!(server.get("apps/App/workflows/Wf/schedules").await.ok().json(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn why_somebody_changes_schedules_is_in_the_log() {
    let server = Cdap::start().await;
    let detail = json!({
        "program": { "programName": "Wf", "programType": "WORKFLOW" },
        "trigger": { "cronExpression": "0 4 * * *", "type": "TIME" },
    });
    let one = path("nightly");
    server.put(&format!("{one}?reason=new%20data"), &detail).await.ok();
    let update = json!({ "description": "later" });
    server.post(&format!("{one}/update?reason=late%20data"), &update).await.ok();
    for (action, reason) in [("enable", "it%20may"), ("disable", "a%20holiday"), ("resume", ""), ("suspend", "again")] {
        server.ask(Method::POST, &format!("{one}/{action}?reason={reason}"), "").await.ok();
    }
    server.delete(&format!("{one}?reason=no%20more")).await.ok();
    let log = Request::get("/api/v1/events?workflow=App.nightly&limit=1000").body(Body::empty()).unwrap();
    let log = server.send(log).await.ok().json();
    let items = log["items"].as_array().unwrap();
    let mut told: Vec<(u64, String)> = items
        .iter()
        .filter(|one| one["subject"] == "workflow")
        .map(|one| (one["seq"].as_u64().unwrap(), format!("{} {}", one["event"], one["reason"])))
        .collect();
    told.sort();
    let expected = [
        r#""defined" "new data""#,
        r#""defined" "late data""#,
        r#""enabled" "it may""#,
        r#""disabled" "a holiday""#,
        r#""enabled" null"#,
        r#""disabled" "again""#,
        r#""removed" "no more""#,
    ];
    assert_eq!(told.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_programs_starts_a_run_and_sees_it_end() {
    let server = Cdap::start().await;
    let status = async || server.get("apps/App/workflows/Wf/status").await.ok().json();
    let runs = async |query: &str| server.get(&format!("apps/App/workflows/Wf/runs{query}")).await.ok().json();
    assert_eq!((status().await, runs("").await), (json!({ "status": "STOPPED" }), json!([])));
    assert_eq!(server.post("apps/App/workflows/Wf/start", &json!({ "src": "/data" })).await.told(), (200, ""));
    server.settle().await;
    assert_eq!(status().await, json!({ "status": "RUNNING" }));
    assert_eq!(runs("?status=RUNNING").await[0]["start"], server.now().as_second());
    server.pass(5).await;
    server.end_all(true).await;
    let ended = runs("?status=completed").await;
    assert_eq!((&ended[0]["status"], &ended[0]["end"]), (&json!("COMPLETED"), &json!(server.now().as_second())));
    assert_eq!((runs("?status=FAILED").await, runs("?limit=0").await), (json!([]), json!([])));
    // Runs of its schedules are runs of the program.
    server.schedule("s", partition("ds", 1)).await;
    server.partitions("ds", 1).await;
    assert_eq!(runs("").await.as_array().unwrap().len(), 2);
    assert_eq!(
        (status().await, runs("").await[0]["properties"]["schedule"].clone()),
        (json!({ "status": "RUNNING" }), json!("App.s"))
    );
    assert_eq!(server.delete("apps/App/schedules/s").await.status, 200);
    assert_eq!((status().await, runs("").await.as_array().unwrap().len()), (json!({ "status": "RUNNING" }), 2));
    let now = server.now().as_second();
    assert_eq!(runs(&format!("?start={now}")).await.as_array().unwrap().len(), 1);
    assert_eq!(runs(&format!("?end={now}")).await.as_array().unwrap().len(), 1);
    assert_eq!(server.get("apps/App/workflows/Wf/runs?status=SLOW").await.status, 400);
    assert_eq!(server.post("apps/App/workflows/Nope/start", &Value::Null).await.status, 404);
    assert_eq!(server.post("apps/App/workflows/Wf/start", &json!({ "a": {} })).await.status, 400);
    assert_eq!(server.ask(Method::POST, "apps/App/workflows/Wf/start", "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sees_what_there_is_and_is_told_how_applications_come() {
    let server = Cdap::start().await;
    let named = async |path: &str| server.names(path).await.join(" ");
    assert_eq!(named("/v3/namespaces").await, "default prod");
    assert_eq!(named("apps").await, "App App Other");
    let app = server.get("apps/App").await.ok().json();
    let programs: Vec<_> =
        app["programs"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(programs, ["P1", "P2", "Wf", "Mr", "Loader"]);
    assert_eq!(server.get("apps/Nope").await.status, 404);
    let deploy = server.put("apps/App", &json!({ "app.deploy.update.schedules": false })).await;
    assert!(deploy.status == 501 && deploy.text.contains("App.js"), "{deploy:?}");
    assert_eq!(server.post("apps", &Value::Null).await.status, 501);
    let mut sent = body(time("* * * * *"));
    sent["program"]["programType"] = json!("SPARK");
    sent["program"]["programName"] = json!("Loader");
    assert_eq!(server.put("apps/App/schedules/s", &sent).await.status, 400);
}
