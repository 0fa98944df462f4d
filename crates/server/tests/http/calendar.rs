//! How much of each day is done.

use axum::http::StatusCode;
use serde_json::json;

use crate::pages::{assert_harmless, assert_says, page};
use crate::support::{Server, slot, workflow};

/// Hours, the days of a zone, and the hours of another project.
async fn chain() -> Server {
    let start = "startTime: '2015-09-12T20:00Z'";
    let hours = workflow("hours", &format!("{start}, tags: ['etl']"));
    let days = workflow(
        "days",
        "schedule: celos.calendar('daily', {timeZone: 'Europe/Paris'}), startTime: '2015-09-10T22:00Z'",
    );
    let server = Server::start(&(hours + &days)).await;
    server.step("2015-09-13T13:30Z").await;
    server
}

#[tokio::test]
async fn a_day_has_the_slots_whose_times_are_in_it() {
    let server = chain().await;
    let found = server.get("/api/v1/calendar?from=2015-09-12&to=2015-09-14&workflow=hours").await.ok().json();
    let days = found["days"].as_array().unwrap();
    assert_eq!(
        (days.len(), &found["workflows"], &found["zone"], &found["partial"]),
        (2, &json!(1), &json!("UTC"), &json!(false))
    );
    assert_eq!((&days[0]["date"], &days[0]["total"], &days[1]["total"]), (&json!("2015-09-12"), &json!(4), &json!(24)));
    let parts = ["done", "failed", "running", "stuck", "toDo", "ended"];
    let sum: u64 = parts.iter().map(|part| days[1][part].as_u64().unwrap()).sum();
    assert_eq!(sum, 24, "{found}");
    // In Paris the day begins two hours earlier.
    let paris = server.get("/api/v1/calendar?from=2015-09-12&workflow=hours&zone=Europe/Paris").await.ok().json();
    assert_eq!((&paris["days"][0]["total"], &paris["days"][1]["total"]), (&json!(2), &json!(24)));
    assert_eq!(paris["days"][1]["from"], "2015-09-12T22:00:00.000Z");
}

#[tokio::test]
async fn a_period_belongs_to_the_day_in_which_it_begins() {
    let server = chain().await;
    let uri = "/api/v1/calendar?from=2015-09-10&workflow=days&zone=Europe/Paris";
    let found = server.get(uri).await.ok().json();
    let totals: Vec<u64> = found["days"].as_array().unwrap().iter().map(|day| day["total"].as_u64().unwrap()).collect();
    // The 13th has not ended: its slot is still to come.
    assert_eq!(totals, [0, 1, 1, 1], "{found}");
    assert_eq!((&found["days"][3]["toDo"], &found["days"][0]["percent"]), (&json!(1), &json!(null)));
    let first =
        server.slots("days", "2015-09-13T13:30Z").await.into_iter().find(|(_, state)| state == "RUNNING").unwrap().0;
    server.end(&slot("days", &first), 1, true).await;
    let found = server.get(uri).await.ok().json();
    let percents: Vec<_> = found["days"].as_array().unwrap().iter().map(|day| day["percent"].clone()).collect();
    assert_eq!(percents.iter().filter(|percent| **percent == json!(100)).count(), 1, "{found}");
}

#[tokio::test]
async fn a_paused_workflow_has_all_to_do_that_passed_meanwhile() {
    let server = chain().await;
    server.post("/api/v1/workflows/hours/pause").await.ok();
    let found = server.get("/api/v1/calendar?from=2015-09-13&workflow=hours").await.ok().json();
    assert_eq!(found["days"][0]["total"], 24, "{found}");
}

#[tokio::test]
async fn workflows_are_chosen_by_project_and_tag_and_mistakes_are_told() {
    let server = chain().await;
    let number =
        async |query: &str| server.get(&format!("/api/v1/calendar?{query}")).await.ok().json()["workflows"].clone();
    assert_eq!((number("").await, number("tag=etl").await, number("tag=no").await), (json!(2), json!(1), json!(0)));
    for (query, said) in [
        ("from=2015-9-1", "is no day, expected one such as 2026-03-29"),
        ("from=2015-09-02&to=2015-09-01", "`from` is 2015-09-02, which is after `to`, 2015-09-01"),
        ("from=1970-01-01", "are too many days, expected at most 3660"),
        ("zone=Moon", "unknown time zone"),
        ("workflow=nobody", "nobody"),
    ] {
        let reply = server.get(&format!("/api/v1/calendar?{query}")).await;
        assert!(reply.status.is_client_error() && reply.text.contains(said), "{query}: {reply:?}");
    }
}

#[tokio::test]
async fn the_page_leads_from_a_day_to_what_lies_in_it() {
    let server = chain().await;
    let shown = page(&server, "/ui/calendar?workflow=hours&months=1").await;
    assert_harmless(&shown);
    assert_says(
        &shown,
        &["Calendar", "1 workflow, 13 days: 0 of 28 slots done", "September 2015", "Mo Tu We", "13 0 %"],
    );
    assert!(shown.contains("data-events"), "it goes on with the clock");
    assert!(
        shown.contains("title=\"2015-09-12: 0 of 4 slots done, 4 to do\"")
            || shown.contains("2015-09-12: 0 of 4 slots done, 1 running"),
        "{shown}"
    );
    assert!(shown.contains("/ui/focus?from=2015-09-12T00:00Z&amp;to=2015-09-13T00:00Z&amp;workflow=hours"), "{shown}");
    let none = page(&server, "/ui/calendar?workflow=hour").await;
    assert_says(&none, &["No workflow has ever been named \"hour\". Did you mean \"hours\"?"]);
    let past = page(&server, "/ui/calendar?to=2014-01").await;
    assert_says(&past, &["There are no slots in these days", "Later"]);
    assert!(!past.contains("data-events"), "nothing happens in the past");
    assert_eq!(server.get("/ui/calendar?months=x").await.status, StatusCode::BAD_REQUEST);
}
