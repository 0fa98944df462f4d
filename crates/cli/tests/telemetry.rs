//! Traces and lineage: what collectors are told, and that nothing is lost while they are away or the server is killed.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use crate::support::webhook::{Post, webhook};
use crate::support::{Folder, PATIENCE, Server, eventually};
use serde_json::Value;

const SCRIPT: &str = r#"
kelos.workflow("extract", { schedule: "0 0 1 1 *", catchUp: "skip", writes: ["/out/${year}"], shell: 'echo $TRACEPARENT > FOLDER/context' });
kelos.workflow("load", { schedule: "0 0 1 1 *", catchUp: "skip", after: "extract", retry: {count: 0}, shell: 'exit 3' });
kelos.flow("etl", { steps: { one: { shell: "true" } } });
"#;

fn folder(config: &Value) -> Folder {
    let folder = Folder::with(&[]);
    let place = folder.path().display().to_string();
    folder.write("workflows/w.js", &SCRIPT.replace("FOLDER", &place));
    folder.write("config.json", &config.to_string());
    folder
}

fn up(folder: &Folder) -> Server {
    let server = Server::start(folder.path(), &["up", "--config", "config.json"], "Stop with Ctrl-C");
    eventually("the workflows", || folder.run(&["ls"]).ok().contains("load").then_some(()));
    server
}

/// The spans that come, by name and id, until one has a name.
fn spans(posts: &Receiver<Post>, until: &str) -> BTreeMap<(String, String), Value> {
    let mut spans = BTreeMap::new();
    while !spans.keys().any(|(name, _)| name == until) {
        let post = posts.recv_timeout(PATIENCE).expect("a post");
        for span in post.body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans") {
            let text = |field: &str| span[field].as_str().expect("a text").to_owned();
            spans.insert((text("name"), text("spanId")), span.clone());
        }
    }
    spans
}

fn named<'a>(spans: &'a BTreeMap<(String, String), Value>, name: &str) -> &'a Value {
    spans.iter().find(|((found, _), _)| found == name).map(|(_, span)| span).expect(name)
}

#[test]
fn spans_of_runs_lie_in_those_of_their_slots_and_the_job_knows_its_own() {
    // The collector is away at first.
    let (address, posts) = webhook(|number| if number < 1 { "503 Service Unavailable" } else { "200 OK" });
    let folder =
        folder(&serde_json::json!({"traces": {"to": address, "service": "shop", "headers": {"x-team": "data"}}}));
    let server = up(&folder);
    folder.run(&["rerun", "extract", "2026-01-01T00:00Z"]).ok();
    folder.run(&["rerun", "load", "2026-01-01T00:00Z"]).ok();
    let found = spans(&posts, "load");
    let (extract, run) = (named(&found, "extract"), named(&found, "extract run"));
    assert_eq!((&run["traceId"], &run["parentSpanId"]), (&extract["traceId"], &extract["spanId"]));
    let context = std::fs::read_to_string(folder.path().join("context")).expect("a context");
    let id = |field: &str| run[field].as_str().expect("an id").to_owned();
    assert_eq!(context.trim(), format!("00-{}-{}-01", id("traceId"), id("spanId")));
    assert_eq!(run["status"]["code"], 1);
    let (load, failed) = (named(&found, "load"), named(&found, "load run"));
    assert_eq!(load["links"][0]["spanId"], extract["spanId"], "{load}");
    assert_eq!((&failed["status"]["code"], &failed["status"]["message"]), (&2.into(), &"exited with status 3".into()));
    assert!(failed["startTimeUnixNano"].as_str() <= failed["endTimeUnixNano"].as_str());

    // Killed before it has noted how far it was, it tells the same again; a rerun is a span of its own in the same trace.
    server.crash();
    let _again = up(&folder);
    folder.run(&["rerun", "extract", "2026-01-01T00:00Z"]).ok();
    let mut repeated = BTreeMap::new();
    while repeated.iter().filter(|((name, _), _)| name == "extract").count() < 2 {
        repeated.append(&mut spans(&posts, "extract"));
    }
    assert_eq!(named(&repeated, "load run"), failed);
    assert!(
        repeated.values().filter(|span| span["name"] == "extract").all(|span| span["traceId"] == extract["traceId"])
    );
}

#[test]
fn lineage_has_each_run_with_its_time_its_parent_and_what_it_writes() {
    let (address, posts) = webhook(|_| "201 Created");
    let folder = folder(&serde_json::json!({"lineage": {"to": address, "namespace": "shop"}}));
    let _server = up(&folder);
    folder.run(&["rerun", "extract", "2026-01-01T00:00Z"]).ok();
    folder.run(&["rerun", "load", "2026-01-01T00:00Z"]).ok();
    folder.run(&["start", "etl", "--key", "order-42", "--wait"]).ok();
    let mut events: BTreeMap<(String, String), Value> = BTreeMap::new();
    while events.len() < 8 {
        let event = posts.recv_timeout(PATIENCE).expect("a post").body;
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        events.insert((text(&event["job"]["name"]), text(&event["eventType"])), event);
    }
    let event = |job: &str, kind: &str| events.get(&(job.to_owned(), kind.to_owned())).expect(job);
    for event in events.values() {
        for field in ["eventTime", "producer", "schemaURL"] {
            assert!(event[field].is_string(), "{event}");
        }
        let facets = event["run"]["facets"].as_object().into_iter().chain(event["job"]["facets"].as_object()).flatten();
        facets.for_each(|(_, facet)| {
            assert!(facet["_producer"].is_string() && facet["_schemaURL"].is_string(), "{facet}")
        });
        assert_eq!(event["run"]["runId"].as_str().map(str::len), Some(36));
        assert_eq!(event["job"]["namespace"], "shop");
    }
    let (began, ended) = (event("extract", "START"), event("extract", "COMPLETE"));
    assert_eq!(began["run"]["runId"], ended["run"]["runId"]);
    assert_eq!(ended["run"]["facets"]["nominalTime"]["nominalStartTime"], "2026-01-01T00:00:00Z");
    assert_eq!(ended["outputs"], serde_json::json!([{"namespace": "file", "name": "/out/2026"}]));
    assert_eq!(event("load", "FAIL")["run"]["facets"]["errorMessage"]["message"], "exited with status 3");
    let parent = &event("etl.one", "COMPLETE")["run"]["facets"]["parent"];
    assert_eq!(
        (&parent["run"]["runId"], &parent["job"]["name"]),
        (&event("etl", "COMPLETE")["run"]["runId"], &"etl".into())
    );
}

#[test]
fn a_collector_that_is_away_is_on_problems_and_holds_nothing_up() {
    let folder = folder(&serde_json::json!({"traces": {"to": "http://127.0.0.1:1/v1/traces"}}));
    let server = up(&folder);
    folder.run(&["rerun", "extract", "2026-01-01T00:00Z"]).ok();
    let told = eventually("the problem", || {
        let asked = ureq::get(format!("{}/api/v1/problems", server.address())).call();
        let problems = asked.expect("an answer").body_mut().read_to_string().expect("a text");
        Some(problems).filter(|told| told.contains("telemetry-fails"))
    });
    assert!(told.contains("failed to post to http://127.0.0.1:1/v1/traces"), "{told}");
    eventually("the run", || {
        folder.run(&["why", "extract", "2026-01-01T00:00Z"]).ok().contains("succeeded").then_some(())
    });
}
