//! A broken invariant as people see it: its workflow is frozen, told of wherever one looks, and resumed.

use axum::http::StatusCode;
use kelos_core::{PlantedBreach, PlantedIn};
use kelos_model::SlotState;
use kelos_model::ranges::Range;

use crate::pages::page;
use crate::support::{Server, Setup, at, slot, workflow};

/// Two workflows; something that happens to slots of `bad` breaks an invariant, for a while.
async fn server(when: PlantedIn) -> Server {
    let within = Range::new(at("2015-09-13T13:20Z"), at("2015-09-13T14:10Z"));
    let planted = PlantedBreach { workflow: "bad".parse().unwrap(), within, when };
    let script =
        workflow("bad", "startTime: '2015-09-13T13:00Z'") + &workflow("good", "startTime: '2015-09-13T13:00Z'");
    Server::with(Setup { planted: Some(planted), ..Setup::default() }, &script).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_breaks_is_frozen_and_told_of_until_somebody_resumes_it() {
    let server = server(PlantedIn::Looking).await;
    for name in ["good", "bad"] {
        server.step("2015-09-13T13:05Z").await;
        server.until_state(&slot(name, "2015-09-13T13:00Z"), SlotState::Running).await;
    }
    server.step("2015-09-13T14:01Z").await;
    server.until_state(&slot("good", "2015-09-13T14:00Z"), SlotState::Queued).await;
    let of_bad = server.get("/api/v1/workflows/bad").await.ok().json();
    assert_eq!((&of_bad["frozen"]["code"], &of_bad["paused"]), (&"planted".into(), &false.into()), "{of_bad}");
    assert!(of_bad["frozen"]["text"].as_str().unwrap().starts_with("bad@2015-09-13T14:00Z: "), "{of_bad}");
    let of_good = server.get("/api/v1/workflows/good").await.ok().json();
    assert!(of_good["frozen"].is_null(), "{of_good}");

    let health = server.get("/api/v1/health").await.ok().json();
    assert_eq!((&health["status"], &health["frozen"][0]["workflow"]), (&"stepped".into(), &"bad".into()), "{health}");
    assert!(health["hint"].as_str().unwrap().contains("resume the workflow"), "{health}");
    let problems = page(&server, "/ui/problems").await;
    for text in ["Frozen workflows", "the simulation broke it", "/ui/workflows/bad/resume", "What to do"] {
        assert!(problems.contains(text), "{text} is not in {problems}");
    }
    let own = page(&server, "/ui/workflows/bad").await;
    assert!(own.contains("frozen") && own.contains("/resume"), "{own}");
    let stuck = server.get("/api/v1/stuck").await.ok().json();
    assert_eq!(
        (&stuck["items"][0]["workflow"], &stuck["items"][0]["kind"]),
        (&"bad".into(), &"frozen".into()),
        "{stuck}"
    );
    let why = server.get("/api/v1/workflows/bad/slots/2015-09-13T14:00Z/why").await.ok().json();
    assert!(why.to_string().contains("its workflow is frozen"), "{why}");

    // What runs goes on, and counts.
    server.end(&slot("bad", "2015-09-13T13:00Z"), 1, true).await;
    server.until_state(&slot("bad", "2015-09-13T13:00Z"), SlotState::Succeeded).await;

    // It stays so, whatever time it is, until somebody resumes it.
    server.step("2015-09-13T14:30Z").await;
    assert!(!server.get("/api/v1/health").await.ok().json()["frozen"].is_null());
    server.post("/api/v1/workflows/bad/resume").await.ok();
    server.step("2015-09-13T14:30Z").await;
    server.until_state(&slot("bad", "2015-09-13T14:00Z"), SlotState::Running).await;
    assert!(server.get("/api/v1/health").await.ok().json()["frozen"].is_null());
    let events = server.get("/api/v1/events?limit=200").await.ok().text;
    assert!(events.contains("\"frozen\"") && events.contains("\"thawed\""), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_what_breaks_hears_so() {
    let server = server(PlantedIn::Asking).await;
    server.step("2015-09-13T13:30Z").await;
    server.until_state(&slot("bad", "2015-09-13T13:00Z"), SlotState::Running).await;
    let reply = server.post("/api/v1/workflows/bad/slots/2015-09-13T13:00Z/kill").await;
    assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR, "{reply:?}");
    let problem = reply.json();
    assert_eq!(problem["type"], "urn:kelos:problem:broken-invariant", "{problem}");
    assert!(problem["hint"].as_str().unwrap().contains("/api/v1/workflows/bad/resume"), "{problem}");
    // What runs goes on, and counts.
    let slot = slot("bad", "2015-09-13T13:00Z");
    server.end(&slot, 1, true).await;
    server.until_state(&slot, SlotState::Succeeded).await;
}
