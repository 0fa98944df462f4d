//! What the native API says about requests that it can't answer.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::Value;

use crate::support::{NOW, Reply, Server, workflow};

const SLOT: &str = "/api/v1/workflows/w/slots/2015-09-13T15:00Z";

fn told(reply: &Reply) -> String {
    assert_eq!(reply.header("content-type"), "application/problem+json", "{reply:?}");
    let problem = reply.json();
    assert_eq!(problem["status"], reply.status.as_u16());
    assert!(problem["instance"].as_str().unwrap().starts_with("/api"), "{reply:?}");
    let kind = problem["type"].as_str().unwrap().strip_prefix("urn:kelos:problem:").unwrap();
    assert_eq!(problem["code"], kind);
    assert!(include_str!("../../../../docs/codes.md").contains(&format!("`{kind}`")), "docs/codes.md has no {kind}");
    format!("{} {kind}: {}", reply.status.as_u16(), problem["detail"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_request_is_told_what_was_expected() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T14:00Z'")).await;
    server.step(NOW).await;
    let mut all = Vec::new();
    for (method, path, body) in BAD {
        let reply = server.ask(method.parse().unwrap(), &path.replace("SLOT", SLOT), body).await;
        all.push(format!("{method} {path} {body}\n  {}", told(&reply)));
    }
    insta::assert_snapshot!(all.join("\n"));
}

const BAD: &[(&str, &str, &str)] = &[
    ("GET", "/api", ""),
    ("GET", "/api/v1/nothing", ""),
    ("GET", "/api/v2/slots", ""),
    ("DELETE", "/api/v1/slots", ""),
    ("PUT", "/api/v1/backfills", ""),
    ("GET", "/api/v1/slots?limt=3", ""),
    ("GET", "/api/v1/health?x=1", ""),
    ("GET", "/api/v1/slots?limit=1&limit=2", ""),
    ("GET", "/api/v1/slots?limit=0", ""),
    ("GET", "/api/v1/slots?limit=1001", ""),
    ("GET", "/api/v1/slots?limit=many", ""),
    ("GET", "/api/v1/slots?state=done", ""),
    ("GET", "/api/v1/slots?from=yesterday", ""),
    ("GET", "/api/v1/slots?from=2015-09-13T15:00%2B25:00", ""),
    ("GET", "/api/v1/slots?from=2015-09-13&to=2015-09-12", ""),
    ("GET", "/api/v1/slots?cursor=nonsense", ""),
    ("GET", "/api/v1/slots?workflow=a/b", ""),
    ("GET", "/api/v1/runs?state=queued", ""),
    ("GET", "/api/v1/runs?cursor=nonsense", ""),
    ("GET", "/api/v1/events?after=-1", ""),
    ("GET", "/api/v1/events/stream?after=1000000", ""),
    ("GET", "/api/v1/workflows?paused=maybe", ""),
    ("GET", "/api/v1/workflows/x", ""),
    ("GET", "/api/v1/workflows/x/definitions", ""),
    ("GET", "/api/v1/workflows/x/times", ""),
    ("POST", "/api/v1/workflows/x/pause", ""),
    ("GET", "/api/v1/workflows/w/slots/noon", ""),
    ("GET", "/api/v1/workflows/w/slots/2015-09-13T15:01Z", ""),
    ("GET", "/api/v1/workflows/w/slots/2015-09-13T15:01Z/history", ""),
    ("GET", "/api/v1/workflows/w/slots/2015-09-13T15:01Z/runs", ""),
    ("GET", "SLOT/runs/7", ""),
    ("GET", "SLOT/runs/first", ""),
    ("GET", "SLOT/runs/7/log", ""),
    ("POST", "SLOT/rerun", ""),
    ("POST", "SLOT/rerun", "{\"raison\": \"x\"}"),
    ("POST", "SLOT/kill", "{\"reason\": 5}"),
    ("POST", "SLOT/kill", "{reason"),
    ("POST", "/api/v1/workflows/w/slots/2015-09-13T15:01Z/kill", ""),
    ("POST", "/api/v1/step", "{\"time\": \"noon\"}"),
    ("POST", "/api/v1/step", "{\"workflows\": [\"\"]}"),
    ("POST", "/api/v1/step", "{\"workflows\": [\"w\", \"x\"]}"),
    ("POST", "/api/v1/backfills", ""),
    ("POST", "/api/v1/backfills", "{\"workflow\": \"w\", \"from\": \"2015-09-02\", \"to\": \"2015-09-01\"}"),
    ("POST", "/api/v1/backfills", "{\"workflow\": \"x\", \"from\": \"2015-09-01\", \"to\": \"2015-09-02\"}"),
    (
        "POST",
        "/api/v1/backfills",
        "{\"workflow\": \"w\", \"from\": \"2015-09-01\", \"to\": \"2015-09-02\", \"mode\": \"some\"}",
    ),
    ("POST", "/api/v1/backfills", "[]"),
    ("GET", "/api/v1/workflows/x/slots/2015-09-13T15:00Z/why", ""),
    ("GET", "/api/v1/backfills/x", ""),
    ("POST", "/api/v1/backfills/x/cancel", ""),
    ("POST", "/api/v1/backfills/x/pause", ""),
    ("POST", "/api/v1/backfills/x/resume", "{\"because\": \"x\"}"),
    ("POST", "/api/v1/backfills/x/rerun", ""),
    ("PATCH", "/api/v1/backfills/x", ""),
    ("PATCH", "/api/v1/backfills/x", "{\"priority\": 3}"),
    ("PATCH", "/api/v1/backfills/x", "{\"priority\": 3000000000}"),
    ("GET", "/api/v1/registers/b/k", ""),
    ("PUT", "/api/v1/registers/b/k", "nonsense"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_has_ended_is_not_killed() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:00Z'")).await;
    server.post(&format!("{SLOT}/kill")).await.ok();
    let again = server.post(&format!("{SLOT}/kill")).await;
    assert_eq!(
        told(&again),
        "409 already-final: w@2015-09-13T15:00Z is killed: only a slot that has not ended can be killed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_told_the_right_ones() {
    let server = Server::start("").await;
    let reply = server.ask(Method::PATCH, "/api/v1/registers/b/k", "").await;
    assert_eq!(reply.status, 405);
    assert_eq!(reply.header("allow"), "GET,HEAD,PUT,DELETE");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_limited() {
    let server = Server::start("").await;
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let reply = server.ask(Method::PUT, "/api/v1/registers/b/k", &large).await;
    assert!(told(&reply).starts_with("413 too-large: "), "{reply:?}");
    assert_eq!(server.ask(Method::PUT, "/register?bucket=b&key=k", &large).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_bodies_are_refused_by_their_header() {
    let server = Server::start("").await;
    let put = |uri: &str, encoding: &str| {
        Request::put(uri).header("content-encoding", encoding).body(Body::from("1")).unwrap()
    };
    let reply = server.send(put("/api/v1/registers/b/k", "gzip")).await;
    assert_eq!(told(&reply), "415 encoded-body: the body is encoded as \"gzip\", expected one that is not compressed");
    assert_eq!(server.send(put("/register?bucket=b&key=k", "gzip")).await.status, 415);
    server.send(put("/api/v1/registers/b/k", "identity")).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_can_t_be_read_are_refused() {
    let server = Server::start("").await;
    let request = Request::get("/api/v1/events/stream").header("last-event-id", "x").body(Body::empty());
    let reply = server.send(request.unwrap()).await;
    assert_eq!(
        told(&reply),
        "400 bad-header: the header `Last-Event-ID` must be the id of an event of this stream, a number"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_ended_says_so() {
    let server = Server::start(&workflow("w", "")).await;
    server.node.stop().await;
    let reply = server.post("/api/v1/workflows/w/pause").await;
    assert!(told(&reply).starts_with("503 no-answer: failed to get an answer from the scheduler: it "), "{reply:?}");
    assert_eq!(server.post("/pause?id=w&paused=true").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_answer_is_named_with_its_trouble() {
    // Nothing listens on port 1.
    let script = workflow("w", r#""trigger": celos.pathTrigger("http://127.0.0.1:1/in/${hour}")"#);
    let server = Server::start(&script).await;
    let mut endpoints = Value::Null;
    for _ in 0..5 {
        server.step("2015-09-13T15:00Z").await;
        endpoints = server.get("/api/v1/endpoints").await.ok().json();
        if endpoints["items"][0]["broken"].is_object() {
            break;
        }
    }
    assert_eq!(endpoints["items"][0]["name"], "http://127.0.0.1:1");
    let broken = &endpoints["items"][0]["broken"];
    assert!(broken["lastError"].as_str().unwrap().contains("refused"), "{endpoints}");
    assert!(broken["since"].is_string() && broken["nextTrySeconds"].is_u64(), "{endpoints}");
    let why = server.get("/api/v1/workflows/w/slots/2015-09-13T14:00Z/why").await.ok().json();
    let blocker = why["blockers"][0].as_str().unwrap();
    assert!(blocker.contains("can't be checked") && blocker.contains("so since "), "{blocker}");
}
