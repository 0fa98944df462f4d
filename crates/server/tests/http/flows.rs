//! Runs of flows over the native API: starts with a name, steps, items, signals and going on after a failure.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::flow::{FLOW, Flow, ItemList, SignalWait};
use kelos_model::workflow::{Job, Keys, Program};
use kelos_model::{SlotKey, SlotRef, SlotState, Step, Workflow, WorkflowId};
use serde_json::{Map, Value, json};

use crate::support::{NOW, Server};

fn step(text: &str, needs: &[&str]) -> Step {
    let needs = needs.iter().map(|name| name.parse().unwrap()).collect();
    Step { needs, ..Step::new(text.parse().unwrap(), Job::new("oozie", Map::new())) }
}

/// `load`, then `each` of its files and `ok` after a signal, then `ship`.
pub(crate) async fn server() -> Server {
    let mut each = step("each", &["load"]);
    each.for_each = Some(ItemList { input: "files".to_owned(), most: 100, concurrency: None });
    let signal = SignalWait { name: "approval".to_owned(), within_seconds: None };
    let ok = Step { needs: vec!["load".parse().unwrap()], ..Step::waiting_for("ok".parse().unwrap(), signal) };
    let steps = vec![step("load", &[]), each, ok, step("ship", &["each", "ok"])];
    let keys = |name: &str| Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
    let id = |name: &str| WorkflowId::new(name).unwrap();
    let flow = Some(Arc::new(Flow { steps }));
    let etl = Workflow { flow, ..Workflow::keyed(id("etl"), keys("etl"), Job::new(FLOW, Map::new())) };
    let plain = Workflow::keyed(id("plain"), keys("plain"), Job::new("oozie", Map::new()));
    let server = Server::start("").await;
    server.node.handle().define(vec![Arc::new(etl), Arc::new(plain)], BTreeMap::new()).unwrap();
    server.step(NOW).await;
    server
}

pub(crate) fn slot(key: &str) -> SlotRef {
    SlotRef::new(WorkflowId::new("etl").unwrap(), SlotKey::parse(key).unwrap())
}

const RUN: &str = "/api/v1/workflows/etl/slots/order-42";

impl Server {
    async fn flow(&self) -> Value {
        self.get(&format!("{RUN}/flow")).await.ok().json()
    }

    /// The code of the refusal of a request.
    async fn refused(&self, method: &str, uri: &str, body: &str) -> (u16, String, String) {
        let reply = self.ask(method.parse().unwrap(), uri, body).await;
        let problem = reply.json();
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        (reply.status.as_u16(), text("code"), text("detail"))
    }

    pub(crate) async fn start_order(&self) -> Value {
        let asked = json!({ "key": "order-42", "arguments": { "day": "monday", "password": "x" } }).to_string();
        self.post_json("/api/v1/workflows/etl/start", &asked).await.ok().json()
    }
}

fn states(flow: &Value) -> Vec<&str> {
    flow["steps"].as_array().unwrap().iter().map(|step| step["state"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_name_is_started_once_and_shows_its_steps() {
    let server = server().await;
    let first = server.start_order().await;
    assert_eq!((&first["key"], &first["existed"]), (&json!(".order-42"), &json!(false)));
    let again = server.start_order().await;
    assert_eq!((&again["key"], &again["existed"]), (&json!(".order-42"), &json!(true)));
    server.step(NOW).await;
    server.until_state(&slot(".order-42.load"), SlotState::Running).await;
    let flow = server.flow().await;
    assert_eq!(states(&flow), ["running", "not-opened", "not-opened", "not-opened"]);
    assert_eq!(flow["steps"][3]["text"], "waits for each and ok to succeed");
    assert_eq!(flow["steps"][3]["key"], ".order-42.ship");
    assert_eq!((&flow["run"]["arguments"]["day"], &flow["definitionVersion"]), (&json!("monday"), &json!(1)));
    assert_eq!(flow["run"]["arguments"]["password"], "x", "data is shown as it was sent");
    server.give(&slot(".order-42.load"), 1, &json!({ "files": ["a", "b", "c"] })).await;
    server.end(&slot(".order-42.load"), 1, true).await;
    server.step(NOW).await;
    server.until_state(&slot(".order-42.each:2"), SlotState::Running).await;
    let flow = server.flow().await;
    assert_eq!(states(&flow), ["succeeded", "running", "awaits-signal", "not-opened"]);
    assert_eq!(flow["steps"][1]["items"], json!({ "total": 3, "counts": { "running": 3 }, "partial": false }));
    assert_eq!(flow["steps"][1]["inputs"]["files"], json!(["a", "b", "c"]));
    let items = server.get(&format!("{RUN}.each/items?limit=2")).await.ok().json();
    assert_eq!((&items["items"][1]["inputs"]["item"], &items["next"]), (&json!("b"), &json!("1")));
    let page = server.get(&format!("{RUN}/flow?limit=1&cursor=load")).await.ok().json();
    assert_eq!((&page["steps"][0]["step"], &page["next"]), (&json!("each"), &json!("each")));
    let why = server.get(&format!("{RUN}.ship/why")).await.ok().json();
    assert_eq!((&why["headline"], &why["state"]), (&json!("waits for each and ok to succeed"), &Value::Null));
    let why = server.get(&format!("{RUN}/why")).await.ok().json();
    assert!(why["headline"].as_str().unwrap().contains("ok waits for the signal approval since"), "{why}");
    for part in ["upstream", "critical-path", "history", "runs"] {
        server.get(&format!("{RUN}/{part}")).await.ok();
        server.get(&format!("{RUN}.load/{part}")).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_come_before_and_while_a_run_waits_and_are_refused_otherwise() {
    let server = server().await;
    let signal = json!({ "signal": "approval", "payload": { "by": ["ann"] } }).to_string();
    let early = server.post_json(&format!("{RUN}/signal"), &signal).await.ok().json();
    assert_eq!((&early["key"], &early["state"]), (&json!(".order-42"), &json!("waiting")));
    assert_eq!(server.start_order().await["existed"], false, "a signal starts nothing");
    server.step(NOW).await;
    server.until_state(&slot(".order-42.load"), SlotState::Running).await;
    assert_eq!(server.flow().await["signals"], json!({ "approval": { "by": ["ann"] } }));
    let uri = format!("{RUN}/signal");
    server.post_json(&uri, r#"{ "signal": "approval" }"#).await.ok();
    server.get(&format!("{RUN}/history")).await.ok();
    let misspelt = server.refused("POST", &uri, r#"{ "signal": "aproval" }"#).await;
    assert_eq!((misspelt.0, misspelt.1.as_str()), (404, "signal-not-found"));
    assert!(misspelt.2.contains("did you mean approval?"), "{}", misspelt.2);
    for (bad, said) in [
        ("{", "the body is not JSON"),
        ("{}", "missing field `signal`"),
        (r#"{ "signal": "approval", "payload": nothing }"#, "the body is not JSON"),
        (r#"{ "signal": "approval", "pay": 1 }"#, "unknown field `pay`"),
    ] {
        let refused = server.refused("POST", &uri, bad).await;
        assert_eq!((refused.0, refused.1.as_str()), (400, "bad-body"), "{bad}");
        assert!(refused.2.contains(said), "{}", refused.2);
    }
    let large = json!({ "signal": "approval", "payload": "x".repeat(70_000) }).to_string();
    assert_eq!(server.refused("POST", &uri, &large).await.1, "arguments-too-large");
    assert_eq!(server.refused("POST", &format!("{RUN}.load/signal"), &signal).await.1, "no-flow");
    let nobody = server.refused("POST", "/api/v1/workflows/etl/slots/2015-09-13T15:00Z/signal", &signal).await;
    assert_eq!((nobody.0, nobody.1.as_str()), (404, "slot-not-found"));
    assert_eq!(server.refused("POST", "/api/v1/workflows/plain/slots/a1/signal", &signal).await.1, "no-flow");
    assert_eq!(server.refused("POST", "/api/v1/workflows/x/slots/.a/signal", &signal).await.1, "workflow-not-found");
    server.post(&format!("{RUN}/kill")).await.ok();
    assert_eq!(server.refused("POST", &uri, &signal).await.1, "already-final");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_goes_on_and_a_step_is_rerun_by_its_run() {
    let server = server().await;
    server.start_order().await;
    server.step(NOW).await;
    let load = slot(".order-42.load");
    server.until_state(&load, SlotState::Running).await;
    assert_eq!(server.refused("POST", &format!("{RUN}/resume"), "").await.1, "still-live");
    server.end(&load, 1, false).await;
    server.until_state(&slot(".order-42"), SlotState::Failed).await;
    let flow = server.flow().await;
    assert_eq!((&flow["failed"], &flow["steps"][3]["state"]), (&json!(["load"]), &json!("never-runs")));
    let outcome = &flow["run"]["outcome"]["text"];
    assert_eq!(outcome, "step load failed: exited with status 3");
    let unknown = server.refused("POST", &format!("{RUN}/resume"), r#"{ "from": "lod" }"#).await;
    assert_eq!((unknown.0, unknown.1.as_str()), (404, "step-not-found"));
    assert_eq!(server.refused("POST", &format!("{RUN}/resume"), r#"{ "from": "a b" }"#).await.1, "bad-body");
    server.post_json(&format!("{RUN}/resume"), r#"{ "from": "load", "reason": "again" }"#).await.ok();
    server.step(NOW).await;
    server.until_state(&load, SlotState::Running).await;
    server.end(&load, 2, false).await;
    server.until_state(&slot(".order-42"), SlotState::Failed).await;
    let rerun = server.post(&format!("{RUN}.load/rerun")).await.ok().json();
    assert_eq!((&rerun["key"], &rerun["state"]), (&json!(".order-42"), &json!("waiting")), "of the run");
    let downstream = server.refused("POST", &format!("{RUN}.load/rerun"), r#"{ "downstream": true }"#).await;
    assert_eq!((downstream.0, downstream.1.as_str()), (400, "bad-body"));
    server.step(NOW).await;
    server.until_state(&load, SlotState::Running).await;
    server.post(&format!("{RUN}.load/kill")).await.ok();
    server.until_state(&slot(".order-42"), SlotState::Failed).await;
    server.until(|server| !server.node.reader().slot(&load).unwrap().unwrap().run_alive).await;
    let mark = server.post_json(&format!("{RUN}.load/mark"), r#"{ "state": "succeeded" }"#).await.ok().json();
    assert_eq!((&mark["key"], &mark["state"]), (&json!(".order-42.load"), &json!("succeeded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_run_or_no_name_is_told() {
    let server = server().await;
    for (key, said) in [("a b", "can't name a run"), ("2015-09-13", "can't name a run"), ("", "can't name a run")] {
        let body = json!({ "key": key }).to_string();
        let refused = server.refused("POST", "/api/v1/workflows/etl/start", &body).await;
        assert_eq!((refused.0, refused.1.as_str()), (400, "bad-body"), "{key}");
        assert!(refused.2.contains(said), "{}", refused.2);
    }
    let missing = server.refused("GET", &format!("{RUN}/flow"), "").await;
    assert_eq!((missing.0, missing.1.as_str()), (404, "slot-not-found"));
    server.start_order().await;
    server.post("/api/v1/workflows/plain/start").await.ok();
    server.post_json("/api/v1/workflows/plain/start", r#"{ "key": "a1" }"#).await.ok();
    let plain = server.refused("GET", "/api/v1/workflows/plain/slots/a1/flow", "").await;
    assert_eq!((plain.0, plain.1.as_str()), (409, "no-flow"));
    assert_eq!(server.refused("GET", "/api/v1/workflows/x/slots/.a/flow", "").await.1, "workflow-not-found");
    assert_eq!(server.refused("GET", &format!("{RUN}/flow?cursor=nothing"), "").await.1, "bad-query");
    assert_eq!(server.refused("GET", &format!("{RUN}/items"), "").await.1, "no-flow");
    assert_eq!(server.refused("GET", &format!("{RUN}.nothing/items"), "").await.1, "slot-not-found");
    for act in ["kill", "skip"] {
        let refused = server.refused("POST", &format!("{RUN}.ship/{act}"), "").await;
        assert_eq!((refused.0, refused.1.as_str()), (404, "slot-not-found"), "{act}");
        assert!(refused.2.contains("expected a step that its run has opened"), "{}", refused.2);
    }
    let time = server.refused("GET", "/api/v1/workflows/etl/slots/2015-13-13/flow", "").await;
    assert_eq!((time.0, time.1.as_str()), (400, "bad-path"), "a mistyped time is no name");
}

const START: &str = "/api/v1/workflows/etl/start";

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_run_that_has_ended_is_done_again() {
    let server = server().await;
    server.start_order().await;
    server.step(NOW).await;
    let load = slot(".order-42.load");
    server.until_state(&load, SlotState::Running).await;
    let again = json!({ "step": "load", "of": "order-42", "key": "again-1", "arguments": { "day": "friday" } });
    let live = server.refused("POST", START, &again.to_string()).await;
    assert_eq!((live.0, live.1.as_str()), (409, "still-live"));
    assert!(live.2.contains("only a step of a run that has ended can be done again"), "{}", live.2);
    server.end(&load, 1, false).await;
    server.until_state(&slot(".order-42"), SlotState::Failed).await;
    let started = server.post_json(START, &again.to_string()).await.ok().json();
    assert_eq!((&started["key"], &started["existed"]), (&json!(".again-1"), &json!(false)));
    assert_eq!(server.post_json(START, &again.to_string()).await.ok().json()["existed"], true);
    server.step(NOW).await;
    let step = slot(".again-1.load");
    server.until_state(&step, SlotState::Running).await;
    let run = "/api/v1/workflows/etl/slots/again-1";
    let flow = server.get(&format!("{run}/flow")).await.ok().json();
    assert_eq!(states(&flow), ["running", "not-in-run", "not-in-run", "not-in-run"]);
    assert_eq!(flow["repeats"], json!({ "workflow": "etl", "key": ".order-42.load" }), "{flow}");
    assert_eq!(
        (&flow["steps"][0]["inputs"]["day"], &flow["run"]["arguments"]),
        (&json!("friday"), &json!({ "day": "friday" }))
    );
    server.end(&step, 1, true).await;
    server.until_state(&slot(".again-1"), SlotState::Succeeded).await;
    assert_eq!(server.node.reader().slot(&slot(".order-42")).unwrap().unwrap().state, SlotState::Failed);
    let history = server.get(&format!("{run}/history")).await.ok().json().to_string();
    assert!(history.contains(r#""repeats":"order-42.load""#), "{history}");
    let why = server.get(&format!("{run}/why")).await.ok().json();
    assert!(why["headline"].as_str().unwrap().ends_with("it only does etl@order-42.load again"), "{why}");
    // Without a name it is named by its moment.
    let body = json!({ "step": "load", "of": ".order-42" }).to_string();
    let unnamed = server.post_json(START, &body).await.ok().json();
    assert!(unnamed["time"].is_string() && unnamed["existed"] == false, "{unnamed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_done_again_is_told() {
    let server = server().await;
    server.start_order().await;
    server.step(NOW).await;
    server.until_state(&slot(".order-42.load"), SlotState::Running).await;
    server.end(&slot(".order-42.load"), 1, false).await;
    server.until_state(&slot(".order-42"), SlotState::Failed).await;
    for (body, status, code, said) in [
        (json!({ "step": "load" }), 400, "bad-body", "expected `of` beside it"),
        (json!({ "of": "order-42" }), 400, "bad-body", "expected `step` beside it"),
        (
            json!({ "step": "a b", "of": "order-42" }),
            400,
            "bad-body",
            "expected a step such as load, or an item load:3",
        ),
        (json!({ "step": "load", "of": "order-42.load" }), 400, "bad-body", "of a run"),
        (json!({ "step": "load", "of": "2015-13-01" }), 400, "bad-path", "expected"),
        (json!({ "step": "load", "of": "order-43" }), 404, "slot-not-found", "etl@order-43 does not exist"),
        (json!({ "step": "lod", "of": "order-42" }), 404, "step-not-found", "did you mean load?"),
        (json!({ "step": "ship", "of": "order-42" }), 409, "never-ran", "never ran"),
        (json!({ "step": "each:1", "of": "order-42" }), 409, "never-ran", "expected an item of a list"),
        (json!({ "step": "ok", "of": "order-42" }), 409, "only-waits", "only waits for the signal approval"),
        (json!({ "step": "load", "of": "order-42", "key": "order-42" }), 409, "name-taken", "expected a new name"),
        (
            json!({ "step": "load", "of": "order-42", "arguments": { "dya": 1 } }),
            400,
            "arguments-mismatched",
            "did you mean day?",
        ),
        (
            json!({ "step": "load", "of": "order-42", "arguments": { "day": 1 } }),
            400,
            "arguments-mismatched",
            "expected a text",
        ),
        (
            json!({ "step": "load", "of": "order-42", "arguments": { "x": "x".repeat(65_500) } }),
            400,
            "arguments-too-large",
            "",
        ),
    ] {
        let refused = server.refused("POST", START, &body.to_string()).await;
        assert_eq!((refused.0, refused.1.as_str()), (status, code), "{body}: {}", refused.2);
        assert!(refused.2.contains(said), "{body}: {}", refused.2);
    }
    server.post_json("/api/v1/workflows/plain/start", r#"{ "key": "a1" }"#).await.ok();
    let plain = json!({ "step": "load", "of": "a1" }).to_string();
    assert_eq!(server.refused("POST", "/api/v1/workflows/plain/start", &plain).await.1, "no-flow");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_starts_of_a_name_at_the_same_time_one_is_the_first() {
    let server = server().await;
    for name in 0..20 {
        let body = json!({ "key": format!("twin-{name}") }).to_string();
        let (one, other) = tokio::join!(server.post_json(START, &body), server.post_json(START, &body));
        let existed = [one.ok().json()["existed"].clone(), other.ok().json()["existed"].clone()];
        assert!(existed.contains(&json!(true)) && existed.contains(&json!(false)), "{existed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_reads_as_a_mistyped_time_is_one_where_there_is_such_a_run() {
    let server = server().await;
    server.post_json(START, r#"{ "key": "monday" }"#).await.ok();
    let flow = server.get("/api/v1/workflows/etl/slots/monday/flow").await.ok().json();
    assert_eq!(flow["key"], ".monday");
    server.get("/api/v1/workflows/etl/slots/monday.load/why").await.ok();
    let reply = server.ask("GET".parse().unwrap(), "/api/v1/workflows/etl/slots/tuesday/flow", "").await;
    assert_eq!((reply.status.as_u16(), reply.json()["code"].as_str()), (400, Some("bad-path")));
    let hint = "no run of etl is named tuesday; one that nobody has started yet is written .tuesday";
    assert_eq!(reply.json()["hint"], hint, "{}", reply.text);
}
