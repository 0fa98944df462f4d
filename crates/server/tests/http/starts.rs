//! Starts of workflows that have times: slots of the moments of the requests, beside those of the schedule.

use axum::http::StatusCode;
use kelos_model::SlotState;
use serde_json::json;

use crate::pages::{assert_says, form, page};
use crate::support::{NOW, Server, moment, workflow};

/// Its trigger is never met.
const NEVER: &str = "startTime: '2015-09-13T15:00Z', trigger: celos.notTrigger(celos.alwaysTrigger())";

#[tokio::test(flavor = "multi_thread")]
async fn a_started_slot_is_an_item_of_the_interface_and_goes_at_once() {
    let server = Server::start(&workflow("w", NEVER)).await;
    server.step(NOW).await;
    let asked = json!({ "arguments": { "day": "monday" }, "reason": "a try" }).to_string();
    let started = server.post_json("/api/v1/workflows/w/start", &asked).await.ok().json();
    let time = started["time"].as_str().unwrap().to_owned();
    let slot = moment("w", &time);
    server.step(NOW).await;
    server.until_state(&slot, SlotState::Running).await;
    let found = server.get(&format!("/api/v1/workflows/w/slots/{time}")).await.ok().json();
    assert_eq!((&found["time"], &found["state"]), (&json!(time), &json!("running")));
    let key = server.get(&format!("/api/v1/workflows/w/slots/_{time}")).await.ok().json();
    assert_eq!(key, found, "the text of its key names it, too");
    let why = server.get(&format!("/api/v1/workflows/w/slots/{time}/why")).await.ok();
    assert!(why.text.contains("Fired by hand"), "{}", why.text);
    let all = server.get("/api/v1/slots?workflow=w").await.ok().json();
    let times: Vec<&str> = all["items"].as_array().unwrap().iter().filter_map(|item| item["time"].as_str()).collect();
    assert_eq!(times, [&*time, "2015-09-13T15:00:00.000Z"]);
    let other = server.get("/api/v1/workflows/w/slots/2015-09-13T15:00:00.500Z/why").await.ok();
    assert!(other.text.contains("nobody started its workflow at that moment"), "{}", other.text);
    let large = json!({ "arguments": { "a": "x".repeat(70_000) } }).to_string();
    assert_eq!(server.post_json("/api/v1/workflows/w/start", &large).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(server.post_json("/api/v1/workflows/nobody/start", "{}").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn celos_hears_nothing_of_it() {
    let server = Server::start(&workflow("w", NEVER)).await;
    server.step(NOW).await;
    let before = server.statuses("w", NOW).await;
    let started = server.post_json("/api/v1/workflows/w/start", "{}").await.ok().json();
    let time = started["time"].as_str().unwrap();
    assert_eq!(server.statuses("w", "2015-09-13T15:59Z").await, before);
    assert_eq!(server.get(&format!("/slot-state?id=w&time={time}")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_start_it_by_a_form() {
    let script =
        [workflow("w", NEVER), workflow("after", "trigger: celos.successTrigger('w'), startTime: '2015-09-13T15:00Z'")];
    let server = Server::start(&script.join("\n")).await;
    server.step(NOW).await;
    let own = page(&server, "/ui/workflows/w").await;
    assert_says(&own, &["Start…", "It runs once, now: as a slot of this moment, without its trigger."]);
    let started = form(&server, "/ui/schedules/w/fire", "arguments=day%3Dmonday&reason=now", "same-origin").await;
    assert_eq!(started.status, StatusCode::SEE_OTHER, "{started:?}");
    server.step(NOW).await;
    let slot = page(&server, started.header("location")).await;
    assert_says(&slot, &["Fired by hand", "day monday", "It waits for no other slot.", "No other slot waits for it."]);
    assert_says(&page(&server, "/ui").await, &["w", "after"]);
}
