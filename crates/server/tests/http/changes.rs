//! What people do to slots: marking, skipping, and opening again with what depends on them.

use serde_json::{Value, json};

use crate::support::{NOW, Server, slot, workflow};

const ONE: &str = "startTime: '2015-09-13T15:00Z'";
const SLOT: &str = "/api/v1/workflows/w/slots/2015-09-13T15:00Z";
const DOWN: &str = "/api/v1/workflows/down/slots/2015-09-13T15:00Z";

/// `w`, and `down` that waits for its success; the run of `w` goes on.
async fn chain() -> Server {
    let down = format!("{ONE}, trigger: celos.successTrigger('w')");
    let server = Server::start(&[workflow("w", ONE), workflow("down", &down)].join("\n")).await;
    server.step(NOW).await;
    server
}

async fn state(server: &Server, path: &str) -> String {
    server.get(path).await.ok().json()["state"].as_str().unwrap().to_owned()
}

async fn headline(server: &Server, path: &str) -> Value {
    server.get(&format!("{path}/why")).await.ok().json()["headline"].clone()
}

/// Kind and detail of a refusal, and its hint.
async fn refused(server: &Server, path: &str, body: &str) -> (String, String) {
    let reply = server.post_json(path, body).await;
    let problem = reply.json();
    let kind = problem["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let hint = problem["hint"].as_str().unwrap_or_default().to_owned();
    (format!("{} {kind}: {}", reply.status.as_u16(), problem["detail"].as_str().unwrap()), hint)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_marked_as_succeeded_and_what_depends_on_it_goes() {
    let server = chain().await;
    server.end(&slot("w", "2015-09-13T15:00Z"), 1, false).await;
    let body = r#"{"state": "succeeded", "reason": "loaded by hand"}"#;
    let marked = server.post_json(&format!("{SLOT}/mark"), body).await.ok().json();
    assert_eq!((&marked["state"], &marked["lastRun"]), (&json!("succeeded"), &json!(1)));
    let why = headline(&server, SLOT).await;
    assert_eq!(why, "marked as succeeded by api at 2015-09-13T15:01Z (loaded by hand)");
    server.step(NOW).await;
    assert_eq!(state(&server, DOWN).await, "running");
    let history = server.get(&format!("{SLOT}/history")).await.ok().json();
    let last = history["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["event"], &last["by"], &last["reason"]),
        (&json!("marked-succeeded"), &json!("api"), &json!("loaded by hand"))
    );
    let (again, _) = refused(&server, &format!("{SLOT}/mark"), body).await;
    assert_eq!(again, "409 already-succeeded: w@2015-09-13T15:00Z has succeeded already");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_marked_while_it_runs() {
    let server = chain().await;
    let (detail, hint) = refused(&server, &format!("{SLOT}/mark"), r#"{"state": "succeeded"}"#).await;
    assert_eq!(
        detail,
        "409 run-alive: run 1 of w@2015-09-13T15:00Z has not ended, and downstream slots would start: only a slot \
         without a live run can be marked as succeeded"
    );
    assert_eq!(hint, "kill it first, and mark it once its run has ended");
    let (detail, _) = refused(&server, &format!("{SLOT}/mark"), r#"{"state": "failed"}"#).await;
    assert!(detail.contains("`succeeded`"), "{detail}");
    let (detail, _) = refused(&server, &format!("{SLOT}/mark"), "").await;
    assert!(detail.contains("`state`"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_or_runs_is_skipped() {
    let server = chain().await;
    for path in [DOWN, SLOT] {
        let body = r#"{"reason": "a holiday"}"#;
        assert_eq!(server.post_json(&format!("{path}/skip"), body).await.ok().json()["state"], "skipped");
    }
    let why = headline(&server, DOWN).await;
    assert!(why.as_str().unwrap().starts_with("skipped by api at "), "{why}");
    assert!(why.as_str().unwrap().ends_with(" (a holiday)"), "{why}");
    assert_eq!(server.statuses("w", NOW).await, ["KILLED"], "Celos has no other word for it");
    let history = server.get(&format!("{DOWN}/history")).await.ok().json();
    assert_eq!(history["items"].as_array().unwrap().last().unwrap()["event"], "skipped");
    let (again, _) = refused(&server, &format!("{SLOT}/skip"), "").await;
    assert_eq!(
        again,
        "409 already-final: w@2015-09-13T15:00Z is skipped: only a slot that has not ended can be skipped"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_depends_on_a_slot_is_opened_with_it() {
    let server = chain().await;
    server.end(&slot("w", "2015-09-13T15:00Z"), 1, true).await;
    server.step(NOW).await;
    let named = |workflow: &str| json!({ "workflow": workflow, "time": "2015-09-13T15:00:00.000Z" });
    let some = |workflow: &str| json!({ "count": 1, "slots": [named(workflow)] });
    let none = json!({ "count": 0, "slots": [] });
    let rerun = format!("{SLOT}/rerun");
    let tried = server.post_json(&rerun, r#"{"downstream": true, "dryRun": true}"#).await.ok().json();
    let would = json!({
        "dryRun": true, "created": none, "reopened": some("w"), "killed": some("down"), "untouched": 0
    });
    assert_eq!(tried, would);
    assert_eq!(state(&server, SLOT).await, "succeeded", "nothing was changed");
    let (detail, hint) = refused(&server, &rerun, r#"{"downstream": true}"#).await;
    assert_eq!(
        detail,
        "409 downstream-live: down@2015-09-13T15:00Z is running: only slots without a live run can be rerun"
    );
    assert!(hint.contains("killLive"), "{hint}");
    assert_eq!(state(&server, SLOT).await, "succeeded", "all or nothing");
    let body = r#"{"downstream": true, "killLive": true, "reason": "wrong input"}"#;
    let done = server.post_json(&rerun, body).await.ok().json();
    assert_eq!((&done["dryRun"], &done["killed"]), (&json!(false), &some("down")));
    assert_eq!((state(&server, SLOT).await, state(&server, DOWN).await), ("waiting".into(), "waiting".into()));
    let history = server.get(&format!("{DOWN}/history")).await.ok().json();
    let reasons: Vec<_> =
        history["items"].as_array().unwrap().iter().filter_map(|event| event["reason"].as_str()).collect();
    assert_eq!(reasons, ["wrong input; with w@2015-09-13T15:00Z"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_of_a_lone_rerun_is_refused() {
    let server = chain().await;
    let (detail, _) = refused(&server, &format!("{SLOT}/rerun"), r#"{"dryRun": true}"#).await;
    assert_eq!(detail, "400 bad-body: `dryRun` was given without `downstream`");
    let (detail, _) = refused(&server, &format!("{SLOT}/rerun"), r#"{"killLive": true}"#).await;
    assert_eq!(detail, "400 bad-body: `killLive` was given without `downstream`");
    let path = "/api/v1/workflows/w/slots/2015-09-13T15:01Z/rerun";
    let (detail, _) = refused(&server, path, r#"{"downstream": true}"#).await;
    assert!(detail.starts_with("404 not-in-schedule: "), "{detail}");
}
