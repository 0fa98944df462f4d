//! Calls about programs and their runs in the dialect of CDAP, and what is said of calls that are not supported.

use axum::http::Method;
use kelos_core::FireRequest;
use kelos_model::{Actor, SlotState, WorkflowId};
use serde_json::{Value, json};

use crate::cdap_support::{Cdap, partition};

const WF: &str = "apps/App/workflows/Wf";

async fn start(server: &Cdap, path: &str) {
    server.post(&format!("{path}/start"), &Value::Null).await.ok();
    server.settle().await;
}

async fn runs(server: &Cdap, query: &str) -> Vec<Value> {
    server.get(&format!("{WF}/runs{query}")).await.ok().json().as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_is_shown_and_stopped_by_its_name() {
    let server = Cdap::start().await;
    start(&server, WF).await;
    server.pass(1).await;
    start(&server, WF).await;
    let all = runs(&server, "").await;
    let name = all[1]["runid"].as_str().unwrap();
    assert_eq!(name, "App.Wf@2026-11-21T10:00:30.000Z~1", "nothing in it has to be escaped in an address");
    let one = format!("{WF}/runs/{name}");
    assert_eq!(server.get(&one).await.ok().json(), all[1]);
    // The form that runs have elsewhere is understood, too.
    assert_eq!(server.get(&one.replace('~', "%23")).await.ok().json(), all[1]);
    assert_eq!(server.post(&format!("{one}/stop"), &Value::Null).await.told(), (200, ""));
    server.settle().await;
    let statuses: Vec<_> = runs(&server, "").await.iter().map(|run| run["status"].clone()).collect();
    assert_eq!(statuses, ["RUNNING", "KILLED"]);
    let told = "the run \"App.Wf@2026-11-21T10:00:30.000Z~1\" of workflow \"Wf\" in application \"App\" (version -SNAPSHOT) of \
                namespace \"default\" is KILLED, and not running";
    assert_eq!(server.post(&format!("{one}/stop"), &Value::Null).await.told(), (400, told));
    // A run of another program is none of this one.
    assert_eq!(server.get(&format!("apps/App/workflows/P1/runs/{name}")).await.status, 404);
    assert_eq!(server.get(&one.replace("~1", "~2")).await.status, 404);
    let nonsense = server.get(&format!("{WF}/runs/nonsense")).await;
    assert!(nonsense.status == 400 && nonsense.text.starts_with("the run in the path is \"nonsense\""), "{nonsense:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_stopped_with_all_its_runs() {
    let server = Cdap::start().await;
    let stop = async || server.post(&format!("{WF}/stop"), &Value::Null).await;
    let told = "workflow \"Wf\" in application \"App\" (version -SNAPSHOT) of namespace \"default\" is not running";
    assert_eq!(stop().await.told(), (400, told));
    server.schedule("s", partition("ds", 1)).await;
    server.partitions("ds", 1).await;
    start(&server, WF).await;
    start(&server, "apps/App/workflows/P1").await;
    assert_eq!(stop().await.told(), (200, ""));
    server.settle().await;
    assert_eq!(
        (server.slots("App.s", SlotState::Killed).len(), server.slots("App.Wf", SlotState::Killed).len()),
        (1, 1)
    );
    assert_eq!(server.slots("App.P1", SlotState::Running).len(), 1);
    assert_eq!(server.get(&format!("{WF}/status")).await.ok().json(), json!({ "status": "STOPPED" }));
    let graceful = server.post(&format!("{WF}/stop?graceful=5"), &Value::Null).await;
    assert!(graceful.status == 501 && graceful.text.contains("graceful"), "{graceful:?}");
    assert_eq!(server.post("apps/App/workflows/Nope/stop", &Value::Null).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_counted_and_asked_about_for_many_programs_at_once() {
    let server = Cdap::start().await;
    server.schedule("s", partition("ds", 1)).await;
    server.partitions("ds", 1).await;
    start(&server, WF).await;
    assert_eq!(server.get(&format!("{WF}/runcount")).await.ok().json(), json!(2));
    assert_eq!(server.get("apps/App/spark/Loader/runcount").await.ok().json(), json!(0));
    assert_eq!(server.get("apps/App/workflows/Nope/runcount").await.status, 404);
    let about = json!([
        { "appId": "App", "programType": "Workflow", "programId": "Wf" },
        { "appId": "App", "programType": "spark", "programId": "Loader" },
        { "appId": "Nope", "programType": "Workflow", "programId": "Wf" },
    ]);
    let answers = async |what: &str| server.post(what, &about).await.ok().json();
    let field = |answers: &Value, name: &str| -> Vec<Value> {
        answers.as_array().unwrap().iter().map(|one| one[name].clone()).collect()
    };
    let status = answers("status").await;
    assert_eq!(field(&status, "status"), [json!("RUNNING"), json!("STOPPED"), Value::Null]);
    assert_eq!(field(&status, "statusCode"), [200, 200, 404]);
    assert!(status[2]["error"].as_str().unwrap().contains("Nope"));
    assert_eq!(field(&answers("runcount").await, "runCount"), [json!(2), json!(0), Value::Null]);
    let newest = answers("runs").await;
    assert_eq!((newest[0]["runs"].as_array().unwrap().len(), &newest[1]["runs"]), (1, &json!([])));
    assert_eq!(newest[0]["runs"][0], runs(&server, "").await[0]);
    let bad = server.post("status", &json!([{ "appId": "App", "programType": "poem", "programId": "Wf" }])).await;
    assert_eq!(
        bad.told(),
        (400, "[0].programType is \"poem\", expected WORKFLOW, MAPREDUCE, SPARK, SERVICE or WORKER")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_long_ago_are_found_and_no_list_is_cut_silently() {
    let server = Cdap::start().await;
    let first = server.now().as_second();
    let fire = || FireRequest {
        workflow: WorkflowId::new("App.Wf").unwrap(),
        key: None,
        priority: 0,
        arguments: std::collections::BTreeMap::default(),
        unconstrained: false,
        reason: None,
    };
    for round in 0..12 {
        for _ in 0..90 {
            server.node.handle().ask(&Actor::person("test"), fire()).await.unwrap();
        }
        server.settle().await;
        server.end_all(true).await;
        assert_eq!(server.get(&format!("{WF}/runcount")).await.ok().json(), json!((round + 1) * 90));
        server.pass(60).await;
    }
    assert_eq!(runs(&server, "").await.len(), 100, "as many as where nothing is said");
    assert_eq!(runs(&server, "?limit=2147483647").await.len(), 1080);
    assert_eq!(runs(&server, &format!("?limit=2000&start={first}&end={}", first + 1)).await.len(), 90);
    assert_eq!(runs(&server, &format!("?limit=2000&end={}", first + 61)).await.len(), 180);
    assert_eq!(runs(&server, &format!("?limit=2000&start={}", first + 660)).await.len(), 90);
    assert_eq!(runs(&server, &format!("?limit=2000&start={}&end={first}", first + 1)).await.len(), 0);
    assert_eq!(runs(&server, "?limit=0").await.len(), 0);
    let negative = server.get(&format!("{WF}/runs?limit=-1")).await;
    assert_eq!(negative.told(), (400, "limit is -1, expected a whole number from 0"));
    let twice = server.get(&format!("{WF}/runs?limit=1&limit=2")).await;
    assert_eq!(twice.told(), (400, "the query parameter limit is there twice, expected it once"));
    let dashboard = server.get(&format!("/v3/dashboard?start={first}&duration=720&namespace=default")).await;
    assert_eq!(dashboard.ok().json().as_array().unwrap().len(), 1080);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_has_what_was_under_way_and_all_times_to_come() {
    let server = Cdap::start().await;
    start(&server, WF).await;
    server.pass(600).await;
    let now = server.now().as_second();
    let records = async |start: i64, duration: i64| {
        let path = format!("/v3/dashboard?start={start}&duration={duration}&namespace=default");
        server.get(&path).await
    };
    let running = records(now - 60, 61).await.ok().json();
    assert_eq!((running.as_array().unwrap().len(), &running[0]["start"]), (1, &json!(now - 600)));
    server.end_all(true).await;
    server.pass(60).await;
    assert_eq!(records(now - 60, 61).await.ok().json()[0]["end"], json!(now));
    assert_eq!(records(now + 1, 30).await.ok().json(), json!([]));
    server.schedule("often", json!({ "type": "TIME", "cronExpression": "* * * * * ?" })).await;
    assert_eq!(records(now + 100, 3600).await.ok().json().as_array().unwrap().len(), 3600);
    let long = records(now + 100, 90_000).await;
    assert_eq!(long.told(), (400, "duration: it has more than 50000 runs, expected a shorter stretch of time"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_supported_says_so_and_is_no_missing_program() {
    let server = Cdap::start().await;
    for (method, path) in [
        (Method::GET, "apps/App/workflows/Wf/runtimeargs"),
        (Method::PUT, "apps/App/workflows/Wf/runtimeargs"),
        (Method::GET, "apps/App/workflows/Wf"),
        (Method::POST, "apps/App/workflows/Wf/debug"),
        (Method::GET, "apps/App/workflows/Wf/logs"),
        (Method::GET, "apps/App/schedules/s/poem"),
        (Method::POST, "instances"),
        (Method::GET, "data/datasets"),
        (Method::PUT, "/v3/namespaces/new"),
        (Method::GET, "/v3/metadata/search"),
    ] {
        let reply = server.ask(method.clone(), path, "").await;
        assert!(reply.status == 501 && reply.text.contains("not supported"), "{method} {path}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_may_end_in_a_slash() {
    let server = Cdap::start().await;
    server.schedule("s", partition("ds", 1)).await;
    for path in
        ["apps/App/schedules", "apps/App/schedules/s", "apps", "/v3/namespaces", "/v3/namespaces/default", "apps/App"]
    {
        let (plain, slashed) = (server.get(path).await.ok(), server.get(&format!("{path}/")).await);
        assert_eq!(slashed.ok().json(), plain.json(), "{path}");
    }
    assert_eq!(server.names("apps/App/schedules/?trigger-type=time").await, [""; 0]);
    assert_eq!(server.post("apps/App/workflows/Wf/start/", &json!({ "a": "b" })).await.status, 200);
    assert_eq!(server.delete("apps/App/schedules/s/").await.status, 200);
    assert_eq!(server.get("apps/App/schedules/s/").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_there_where_it_has_applications() {
    let server = Cdap::start().await;
    let expected = json!({ "name": "prod", "description": "", "config": {} });
    assert_eq!(server.get("/v3/namespaces/prod").await.ok().json(), expected);
    assert_eq!(server.get("/v3/namespaces/default").await.status, 200);
    assert_eq!(server.get("/v3/namespaces/none").await.told(), (404, "no namespace \"none\": it has no application"));
    assert_eq!(server.get("/v3/namespaces/none/apps").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_truth_values_are_arguments() {
    let server = Cdap::start().await;
    server.post(&format!("{WF}/start"), &json!({ "n": 5, "on": true, "x": 1.5, "s": "t" })).await.ok();
    server.settle().await;
    let slot = &server.slots("App.Wf", SlotState::Running)[0];
    let asked = slot.collected.as_ref().unwrap().asked.as_ref().unwrap();
    let given: Vec<_> =
        asked.arguments.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
    assert_eq!(given, ["n=5", "on=true", "s=t", "x=1.5"]);
    let wrong = server.post(&format!("{WF}/start"), &json!({ "a": [] })).await;
    assert_eq!(wrong.told(), (400, "a is [], expected a text, a number, true or false"));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_nobody_knows_are_refused() {
    let server = Cdap::start().await;
    let mut sent = crate::cdap_support::body(partition("ds", 1));
    sent["timeoutMilis"] = json!(5);
    let reply = server.put("apps/App/schedules/s", &sent).await;
    assert!(reply.status == 400 && reply.text.starts_with("timeoutMilis is unknown, expected name, "), "{reply:?}");
    let mut sent = crate::cdap_support::body(partition("ds", 1));
    sent["trigger"]["dataset"]["name"] = json!("x");
    let reply = server.put("apps/App/schedules/s", &sent).await;
    assert_eq!(reply.told(), (400, "trigger.dataset.name is unknown, expected namespace, dataset, entity"));
}
