//! Metrics and health: what Prometheus reads and load balancers ask for.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{Method, StatusCode};
use kelos_core::TrimHistory;
use kelos_metrics::{FAMILIES, Kind};
use kelos_model::history::Trim;
use kelos_model::{Actor, SlotRef, SlotState};
use kelos_store::{PageRequest, SlotFilter};

use crate::access::{By, Guarded};
use crate::flows;
use crate::support::{NOW, PATIENCE, Reply, Server, Setup, slot, workflow};

/// The numbers of a text, by name and labels.
type Numbers = BTreeMap<String, f64>;

fn numbers(text: &str) -> Numbers {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut found = Numbers::new();
    for line in lines {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no number: {line}"));
        let value = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(found.insert(name.to_owned(), value).is_none(), "twice: {line}");
    }
    found
}

async fn scrape(server: &Server) -> Reply {
    server.get("/metrics").await.ok()
}

/// Scrapes until all events are counted that are in the log now.
async fn counted(server: &Server) -> Numbers {
    let last = server.node.reader().last_seq().unwrap();
    let wait = async {
        loop {
            let found = numbers(&scrape(server).await.text);
            let is_counted = found["kelos_metrics_complete"] > 0.0 && found["kelos_events_total"] >= last as f64;
            // The first scrapes do not wait for an engine that takes its time.
            if is_counted && found.contains_key("kelos_runs_limit") {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the log was never counted")
}

/// The metrics of all workflows agree with what the store counts.
fn assert_true(server: &Server, found: &Numbers) {
    for row in server.node.reader().workflows(None).unwrap() {
        let filter = SlotFilter { workflow: Some(row.id.clone()), ..SlotFilter::default() };
        let counts = server.node.reader().slot_counts(&filter).unwrap();
        for state in SlotState::ALL {
            let project = &row.definition.project;
            let name = format!("kelos_slots{{project=\"{project}\",workflow=\"{}\",state=\"{state}\"}}", row.id);
            let told = found.get(&name).copied().unwrap_or(0.0);
            assert_eq!(told, counts.get(&state).copied().unwrap_or(0) as f64, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_slots_runs_and_reasons() {
    let script = workflow("w", "retryStrategy: undefined, maxRetryCount: 0, trigger: celos.delayTrigger(0)")
        + &workflow("later", "trigger: celos.delayTrigger(7200)");
    let server = Server::start(&script).await;
    server.step("2015-09-13T15:01:00.000Z").await;
    let found = counted(&server).await;
    assert_true(&server, &found);
    assert_eq!(found["kelos_leader"], 1.0);
    assert_eq!(found["kelos_ready"], 1.0);
    assert_eq!(found["kelos_build_info{version=\"1.2.3\"}"], 1.0);
    assert_eq!(found["kelos_runs_limit"], 256.0);
    let w = "project=\"test\",workflow=\"w\"";
    assert_eq!(found[&format!("kelos_slots{{{w},state=\"running\"}}")], 1.0);
    assert!(found["kelos_turn_seconds_count{part=\"commit\"}"] > 0.0);
    let waiting = "kelos_slots_waiting{project=\"test\",workflow=\"later\",reason=\"delay-until\"}";
    assert_eq!(found[waiting], 2.0, "{found:?}");

    let oldest = server.slots("w", "2015-09-13T15:01:00.000Z").await.pop().unwrap().0;
    server.end(&slot("w", &oldest), 1, true).await;
    server.step("2015-09-13T15:01:00.000Z").await;
    let found = counted(&server).await;
    assert_true(&server, &found);
    assert_eq!(found[&format!("kelos_runs_total{{{w},outcome=\"succeeded\"}}")], 1.0);
    assert_eq!(found[&format!("kelos_slot_transitions_total{{{w},state=\"succeeded\"}}")], 1.0);
    assert_eq!(found[&format!("kelos_run_seconds_count{{{w}}}")], 1.0);
    assert_eq!(found[&format!("kelos_run_seconds_bucket{{{w},le=\"+Inf\"}}")], 1.0);

    // A slot that had ended is opened again: its state before is read from the log.
    server.post(&format!("/rerun?id=w&time={oldest}")).await.ok();
    let found = counted(&server).await;
    assert_true(&server, &found);
    assert_eq!(found[&format!("kelos_slots{{{w},state=\"succeeded\"}}")], 0.0);
}

/// Removes the history of a slot that has ended.
async fn trim(server: &Server, slot: &SlotRef) {
    // The last event of a log is never removed.
    server.ask(Method::PUT, "/register?bucket=b&key=k", "1").await.ok();
    let reader = server.node.reader();
    let turn = reader.turns(PageRequest::newest(1)).unwrap().rows.pop().unwrap().turn;
    let trim = Trim::of(turn, reader.history(slot).unwrap().iter().map(|record| record.seq).collect());
    server.node.handle().ask(&Actor::system("history"), TrimHistory { trim }).await.unwrap();
    let history = reader.history(slot).unwrap();
    assert!(history.is_empty() && reader.lacks_history(slot, &history).unwrap(), "{history:?}");
}

/// The numbers of slots that are not zero.
fn of_slots(found: &Numbers) -> Numbers {
    let kept = ["kelos_slots", "kelos_start_lateness", "kelos_finish_lateness", "kelos_backfill"];
    // States that were left are shown by those who saw them.
    let is_kept = |(name, value): &(&String, &f64)| kept.iter().any(|kept| name.starts_with(kept)) && **value > 0.0;
    found.iter().filter(is_kept).map(|(name, value)| (name.clone(), *value)).collect()
}

/// Waits for the counts, which agree with the store and with those of a ledger that begins now.
async fn counted_as_anew(server: Server) -> (Server, Numbers) {
    let found = counted(&server).await;
    assert_true(&server, &found);
    let router = server.router.clone();
    let mut anew = server.beside();
    assert_eq!(of_slots(&found), of_slots(&counted(&anew).await));
    anew.router = router;
    (anew, found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_whose_history_was_removed_is_counted_when_it_is_opened_again() {
    let script = workflow("w", "retryStrategy: undefined, maxRetryCount: 0");
    let server = Server::start(&script).await;
    let now = "2015-09-13T15:01:00.000Z";
    server.step(now).await;
    let oldest = server.slots("w", now).await.pop().unwrap().0;
    let id = slot("w", &oldest);
    server.end(&id, 1, true).await;
    counted(&server).await;
    trim(&server, &id).await;

    server.post(&format!("/rerun?id=w&time={oldest}")).await.ok();
    let (server, found) = counted_as_anew(server).await;
    let w = "project=\"test\",workflow=\"w\"";
    assert_eq!(found[&format!("kelos_slots{{{w},state=\"succeeded\"}}")], 0.0, "{found:?}");
    server.step(now).await;
    server.until(|server| server.is_running(&id, 2)).await;
    server.end(&id, 2, false).await;
    server.until_state(&id, SlotState::Failed).await;
    let (server, found) = counted_as_anew(server).await;
    assert_eq!(found[&format!("kelos_runs_total{{{w},outcome=\"failed\"}}")], 1.0, "{found:?}");
    assert_eq!(found[&format!("kelos_slot_transitions_total{{{w},state=\"failed\"}}")], 1.0, "{found:?}");

    // What is left of a history may say in which state a slot ended.
    server.post(&format!("/rerun?id=w&time={oldest}")).await.ok();
    let (server, _) = counted_as_anew(server).await;
    server.post(&format!("/kill?id=w&time={oldest}")).await.ok();
    server.until_state(&id, SlotState::Killed).await;
    counted(&server).await;
    trim(&server, &id).await;
    server
        .post_json(
            &format!("/api/v1/workflows/w/slots/{oldest}/mark"),
            r#"{"state": "succeeded", "reason": "by hand"}"#,
        )
        .await
        .ok();
    server.until_state(&id, SlotState::Succeeded).await;
    counted_as_anew(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_counted_beside_the_runs_of_their_flows() {
    let server = flows::server().await;
    server.start_order().await;
    server.step(NOW).await;
    let load = flows::slot(".order-42.load");
    server.until_state(&load, SlotState::Running).await;
    assert!(!counted(&server).await.keys().any(|name| name.starts_with("kelos_steps_total")));
    server.give(&load, 1, &serde_json::json!({ "files": ["a"] })).await;
    server.end(&load, 1, true).await;
    let found = counted(&server).await;
    assert_eq!(found["kelos_steps_total{project=\"etl\",workflow=\"etl\",outcome=\"succeeded\"}"], 1.0);
    assert_eq!(found["kelos_steps_total{project=\"etl\",workflow=\"etl\",outcome=\"failed\"}"], 0.0);
    assert_eq!(found["kelos_runs_total{project=\"etl\",workflow=\"etl\",outcome=\"succeeded\"}"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_start_later_count_what_is_stored() {
    let script = workflow("w", "") + &workflow("later", "trigger: celos.delayTrigger(7200)");
    let server = Server::with(Setup { on_disk: true, ..Setup::default() }, &script).await;
    server.step("2015-09-13T15:01:00.000Z").await;
    let oldest = server.slots("w", "2015-09-13T15:01:00.000Z").await.pop().unwrap().0;
    server.end(&slot("w", &oldest), 1, true).await;
    server.step("2015-09-13T15:01:00.000Z").await;
    let first = counted(&server).await;
    let server = server.beside();
    let second = counted(&server).await;
    assert_true(&server, &second);
    assert_eq!(of_slots(&first), of_slots(&second));
    assert!(first["kelos_store_bytes"] > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn backlogs_and_backfills_are_counted() {
    let script = workflow("w", "schedule: celos.minutelySchedule(), trigger: celos.delayTrigger(864000000)");
    let server = Server::with(Setup { on_disk: true, ..Setup::default() }, &script).await;
    server.step("2015-09-13T15:01:00.000Z").await;
    let request = r#"{"workflow": "w", "from": "2015-01-01T00:00Z", "to": "2015-03-01T00:00Z"}"#;
    let location = server.post_json("/api/v1/backfills", request).await.ok().header("location").to_owned();
    let found = counted(&server).await;
    assert_true(&server, &found);
    assert_eq!(found["kelos_backfills"], 1.0);
    assert_eq!(found["kelos_backfill_slots"], 84_960.0);
    let backlog = "kelos_slots_waiting{project=\"test\",workflow=\"w\",reason=\"backlog\"}";
    assert!(found[backlog] > 80_000.0, "{found:?}");
    assert!(found["kelos_start_lateness_seconds{project=\"test\",workflow=\"w\"}"] >= 604_000.0, "{found:?}");
    let later = server.beside();
    assert_true(&later, &counted(&later).await);
    later.post(&format!("{location}/cancel")).await.ok();
    let found = counted(&later).await;
    assert_true(&later, &found);
    assert_eq!(found["kelos_backfill_slots"], 0.0);
    assert_true(&later.beside(), &found);
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_beyond_the_cap_are_added_up() {
    let script: String = ["a", "b", "c"].map(|id| workflow(id, "")).concat();
    let server = Server::start(&script).await.with_metrics(1, false);
    server.step("2015-09-13T15:01:00.000Z").await;
    let found = counted(&server).await;
    let running: Vec<_> = found
        .iter()
        .filter(|(name, _)| name.contains("state=\"running\"") && name.starts_with("kelos_slots{"))
        .collect();
    let expected = ["project=\"test\",workflow=\"a\"", "workflow=\"other\""];
    let expected = expected.map(|labels| format!("kelos_slots{{{labels},state=\"running\"}}"));
    assert_eq!(running, [(&expected[0], &1.0), (&expected[1], &2.0)]);
    assert_eq!(found["kelos_metrics_other_workflows"], 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_has_only_families_that_are_described_each_once() {
    let server = Server::start(&workflow("w", "")).await;
    counted(&server).await;
    let reply = scrape(&server).await;
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let mut seen = BTreeSet::new();
    let mut current = None;
    for line in reply.text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            let family = FAMILIES.iter().find(|family| family.name == name).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(words, family.help);
            assert!(seen.insert(name.to_owned()), "{name} comes twice");
            current = Some(family);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let family = current.unwrap();
            assert_eq!(kind, format!("{} {}", family.name, family.kind.name()));
        } else {
            let (name, labels) = line.split_once(['{', ' ']).unwrap();
            let family = current.unwrap();
            let suffixes: &[&str] = if family.kind == Kind::Histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.iter().any(|suffix| format!("{}{suffix}", family.name) == name), "{line}");
            let labels = labels.split_once('}').map_or("", |(labels, _)| labels);
            for label in labels.split("\",").filter(|label| !label.is_empty()) {
                let name = label.split_once('=').unwrap().0;
                assert!(name == "le" || family.labels.contains(&name), "{line}");
            }
        }
    }
}

/// Scrapes with a credential until what is stored is counted.
async fn complete(guarded: &Guarded, by: By<'_>) -> String {
    let wait = async {
        loop {
            let text = guarded.get(by, "/metrics").await.ok().text;
            if text.contains("kelos_metrics_complete 1") {
                return text;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("what is stored was never counted")
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_those_who_may_view_and_show_what_they_see() {
    let scripts = [("a.js", workflow("own", "")), ("b.js", workflow("foreign", ""))];
    let guarded = Guarded::start(&scripts).await;
    let refused = guarded.get(By::Nobody, "/metrics").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{refused:?}");
    assert_eq!(guarded.get(By::Nobody, "/health/live").await.told(), (200, "live\n"));
    assert_eq!(guarded.get(By::Nobody, "/health/ready").await.told(), (200, "ready\n"));
    let token = guarded.token("prometheus", &["view@a"]).await;
    let some = complete(&guarded, By::Token(&token)).await;
    assert!(some.contains("workflow=\"own\"") && !some.contains("foreign"), "{some}");
    assert!(!some.contains("kelos_store_bytes") && !some.contains("kelos_runs_limit"), "{some}");
    let all = guarded.token("all", &["view"]).await;
    let all = complete(&guarded, By::Token(&all)).await;
    assert!(all.contains("workflow=\"own\"") && all.contains("workflow=\"foreign\""), "{all}");
    let public = guarded.with_public_metrics();
    let all = complete(&public, By::Nobody).await;
    assert!(all.contains("workflow=\"foreign\"") && all.contains("kelos_store_bytes"), "{all}");
    assert_eq!(public.get(By::Nobody, "/api/v1/workflows").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_in_plain_text() {
    let server = Server::start(&workflow("w", "")).await;
    assert_eq!(server.get("/health/live").await.told(), (200, "live\n"));
    assert_eq!(server.get("/health/ready").await.told(), (200, "ready\n"));
    server.node.stop().await;
    assert_eq!(server.get("/health/live").await.told(), (200, "live\n"));
    assert_eq!(server.get("/health/ready").await.told(), (503, "not ready: the server is stopping\n"));
    assert_eq!(numbers(&scrape(&server).await.text)["kelos_ready"], 0.0);
    assert_eq!(server.post("/metrics").await.status, StatusCode::METHOD_NOT_ALLOWED);
}

mod real {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs a real server: servers/run with prometheus -- cargo test -- --ignored real::"]
    async fn promtool_takes_the_text() {
        let promtool = std::env::var("KELOS_TEST_PROMTOOL").expect("KELOS_TEST_PROMTOOL, which servers/run sets");
        let server = Server::start(&workflow("w", "")).await;
        server.step("2015-09-13T15:01:00.000Z").await;
        counted(&server).await;
        let text = scrape(&server).await.text;
        let mut checked = Command::new(promtool)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool");
        checked.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("all is read");
        let output = checked.wait_with_output().expect("promtool ends");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
