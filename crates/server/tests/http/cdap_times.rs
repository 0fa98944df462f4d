//! Next and previous times in the dialect of CDAP.

use serde_json::{Value, json};

use crate::cdap_support::{Cdap, all, any, body, partition, time};

fn millis(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

fn entry(schedule: &str, at: &str) -> Value {
    json!({ "id": format!("DEFAULT.default:App:-SNAPSHOT:WORKFLOW:Wf:{schedule}"), "time": millis(at) })
}

#[tokio::test(flavor = "multi_thread")]
async fn next_times_are_those_of_enabled_schedules_one_for_each_expression() {
    let server = Cdap::start().await;
    let next = async || server.get("apps/App/workflows/Wf/nextruntime").await.ok().json();
    assert_eq!(next().await, json!([]));
    server.schedule("daily", time("0 4 * * *")).await;
    server.schedule("data", partition("ds", 1)).await;
    let twice = any(&[time("*/5 * * * *"), all(&[time("*/5 * * * *"), partition("ds", 2)]), time("0 0 12 * * ?")]);
    server.schedule("mixed", twice).await;
    server.put("apps/App/schedules/off", &body(time("0 5 * * *"))).await.ok();
    let expected = json!([
        entry("daily", "2026-11-22T04:00:00Z"),
        entry("mixed:*/5 * * * *", "2026-11-21T10:05:00Z"),
        entry("mixed:0 0 12 * * ?", "2026-11-21T12:00:00Z"),
    ]);
    assert_eq!(next().await, expected);
    assert_eq!(server.get("apps/App/versions/-SNAPSHOT/workflows/Wf/nextruntime").await.json(), expected);
    assert_eq!(server.get("apps/App/versions/v2/workflows/Wf/nextruntime").await.ok().json(), json!([]));
    server.post("apps/App/schedules/daily/disable", &Value::Null).await.ok();
    assert_eq!(next().await.as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn next_times_heed_the_start_the_end_and_the_zone() {
    let server = Cdap::start().await;
    let mut sent = body(json!({ "type": "TIME", "cronExpression": "0 4 * * *", "timeZone": "Europe/Berlin" }));
    sent["startTime"] = json!("2026-12-24T03:00Z");
    server.put("apps/App/schedules/s", &sent).await.ok();
    server.post("apps/App/schedules/s/enable", &Value::Null).await.ok();
    let next = async || server.get("apps/App/workflows/Wf/nextruntime").await.ok().json();
    assert_eq!(next().await, json!([entry("s", "2026-12-24T03:00:00Z")]));
    server.post("apps/App/schedules/s/update", &json!({ "startTime": "", "endTime": "2026-11-22T03:00Z" })).await.ok();
    assert_eq!(next().await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn previous_times_are_those_that_fired_also_where_a_schedule_is_disabled_now() {
    let server = Cdap::start().await;
    let previous = async || server.get("apps/App/workflows/Wf/previousruntime").await.ok().json();
    server.schedule("often", time("* * * * *")).await;
    server.schedule("both", all(&[time("0 * * * * ?"), partition("ds", 1)])).await;
    server.schedule("never", time("0 4 * * *")).await;
    assert_eq!(previous().await, json!([]));
    server.pass(30).await;
    server.pass(60).await;
    // The second was collected by the slot of the first.
    let expected = json!([entry("both:0 * * * * ?", "2026-11-21T10:02:00Z"), entry("often", "2026-11-21T10:02:00Z")]);
    assert_eq!(previous().await, expected);
    server.post("apps/App/schedules/often/disable", &Value::Null).await.ok();
    server.pass(60).await;
    assert_eq!(previous().await[1], entry("often", "2026-11-21T10:02:00Z"));
    assert_eq!(previous().await[0], entry("both:0 * * * * ?", "2026-11-21T10:03:00Z"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_programs_are_asked_about_at_once() {
    let server = Cdap::start().await;
    server.schedule("s", time("0 4 * * *")).await;
    let about = json!([
        { "appId": "App", "programType": "Workflow", "programId": "Wf" },
        { "appId": "App", "programType": "WORKFLOW", "programId": "Missing" },
        { "appId": "Nope", "programType": "workflow", "programId": "Wf" },
        { "appId": "App", "programType": "workflows", "programId": "P1" },
        { "appId": "App", "programType": "Spark", "programId": "Loader" },
    ]);
    let next = server.post("nextruntime", &about).await.ok().json();
    let named = |kind: &str, id: &str, status: u16| json!({ "appId": "App", "programType": kind, "programId": id, "statusCode": status });
    let mut found = named("Workflow", "Wf", 200);
    found["schedules"] = json!([entry("s", "2026-11-22T04:00:00Z")]);
    assert_eq!(next[0], found);
    let mut missing = named("Workflow", "Missing", 404);
    missing["error"] =
        json!("no workflow \"Missing\" in application \"App\" (version -SNAPSHOT) of namespace \"default\"");
    assert_eq!(next[1], missing);
    let codes: Vec<_> = next.as_array().unwrap().iter().map(|one| one["statusCode"].as_u64().unwrap()).collect();
    assert_eq!(codes, [200, 404, 404, 200, 400]);
    assert_eq!(next[3]["schedules"], json!([]));
    let previous = server.post("previousruntime", &about).await.ok().json();
    assert_eq!(previous[0]["schedules"], json!([]));
    assert_eq!(server.post("nextruntime", &json!([])).await.ok().json(), json!([]));
    let bad = server.post("nextruntime", &json!([{ "appId": "App", "programId": "Wf" }])).await;
    assert_eq!(bad.told(), (400, "[0].programType is missing, expected a name"));
    let many = server.post("nextruntime", &Value::Array(vec![about[0].clone(); 1001])).await;
    assert_eq!(many.told(), (400, "the body has 1001 programs, expected at most 1000"));
    assert_eq!(server.post("nextruntime", &json!({})).await.told(), (400, "the body is {}, expected a list"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stretch_of_time_has_runs_that_were_and_times_to_come() {
    let server = Cdap::start().await;
    server.schedule("often", time("*/5 * * * *")).await;
    server.schedule("data", partition("ds", 1)).await;
    server.put("apps/App/schedules/off", &body(time("* * * * *"))).await.ok();
    server.post("apps/App/workflows/Wf/start", &Value::Null).await.ok();
    server.partitions("ds", 1).await;
    server.pass(270).await;
    server.end_all(true).await;
    let now = server.now().as_second();
    let records = async |start: i64, duration: i64, more: &str| {
        let path = format!("/v3/dashboard?start={start}&duration={duration}&namespace=prod{more}");
        server.get(&path).await.ok().json().as_array().unwrap().clone()
    };
    // The start is inclusive, the end is not.
    let coming = records(now + 300, 7200, "&namespace=default").await;
    assert_eq!(coming.len(), 24);
    let first = json!({
        "namespace": "default", "application": { "name": "App", "version": "-SNAPSHOT" }, "type": "WORKFLOW",
        "program": "Wf", "startMethod": "SCHEDULED", "start": now + 300,
    });
    assert_eq!(coming[0], first);
    let all = records(now - 300, 601, "&namespace=default").await;
    let methods: Vec<_> = all.iter().map(|one| one["startMethod"].as_str().unwrap()).collect();
    assert_eq!(methods, ["SCHEDULED", "TRIGGERED", "MANUAL", "SCHEDULED"]);
    assert_eq!((&all[0]["status"], &all[0]["end"]), (&json!("COMPLETED"), &json!(now)));
    assert_eq!(records(now - 300, 601, "").await.len(), 0);
    assert_eq!(
        server.get("/v3/dashboard?start=0&namespace=x").await.told(),
        (400, "the query parameter duration is missing")
    );
    assert_eq!(server.get("/v3/dashboard?start=0&duration=-1&namespace=x").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_time_is_kept_however_much_came_after_it_but_not_by_a_schedule_made_anew() {
    let server = Cdap::start().await;
    let previous = async || server.get("apps/App/workflows/Wf/previousruntime").await.ok().json();
    let trigger = || any(&[time("0 1 10 * * ?"), partition("ds", 1)]);
    server.schedule("s", trigger()).await;
    server.pass(30).await;
    let expected = json!([entry("s:0 1 10 * * ?", "2026-11-21T10:01:00Z")]);
    assert_eq!(previous().await, expected);
    for _ in 0..30 {
        server.partitions("ds", 1).await;
        server.pass(1).await;
    }
    assert_eq!((server.runs("App.s"), previous().await), (31, expected.clone()));
    // A change of something else keeps it.
    server.post("apps/App/schedules/s/update", &json!({ "description": "new" })).await.ok();
    server.post("apps/App/schedules/s/disable", &Value::Null).await.ok();
    assert_eq!(previous().await, expected);
    server
        .post("apps/App/schedules/s/update", &json!({ "trigger": any(&[time("0 2 10 * * ?"), partition("ds", 1)]) }))
        .await
        .ok();
    assert_eq!(previous().await, json!([]), "another expression has not fired yet");
    server.delete("apps/App/schedules/s").await.ok();
    server.schedule("s", trigger()).await;
    assert_eq!(previous().await, json!([]), "it is another schedule of that name");
}
