//! What lies between two moments.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::pages::{assert_harmless, assert_says, page};
use crate::support::{Server, slot, workflow};

/// Days of a zone, hours of a cron schedule that wait for the days, and minutes.
async fn chain() -> Server {
    let days =
        "schedule: celos.calendar('daily', {timeZone: 'Europe/Paris'}), startTime: '2015-09-08T22:00Z', tags: ['etl']";
    let hours = "startTime: '2015-09-13T10:00Z', trigger: celos.successTrigger('days')";
    let minutes = "schedule: celos.cronSchedule('0 * * * * ?'), startTime: '2015-09-13T08:00Z'";
    let scripts = [workflow("days", days), workflow("hours", hours), workflow("minutes", minutes)];
    let server = Server::start(&scripts.join("\n")).await;
    server.step("2015-09-13T13:30Z").await;
    server
}

async fn boxes(server: &Server, query: &str) -> Vec<(String, String, u64, Value, u64)> {
    let found = server.get(&format!("/api/v1/focus?{query}")).await.ok().json();
    let boxes = found["rows"][0]["boxes"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().replace(":00.000Z", "Z");
    let told = |one: &Value| {
        let (total, to_come) = (one["total"].as_u64().unwrap(), one["toCome"].as_u64().unwrap());
        (text(&one["from"]), text(&one["to"]), total, one["states"].clone(), to_come)
    };
    boxes.iter().map(told).collect()
}

fn one(from: &str, to: &str, total: u64, states: Value, to_come: u64) -> (String, String, u64, Value, u64) {
    (from.to_owned(), to.to_owned(), total, states, to_come)
}

#[tokio::test]
async fn periods_are_boxes_and_those_that_are_done_side_by_side_are_one() {
    let server = chain().await;
    for day in ["2015-09-08T22:00Z", "2015-09-09T22:00Z"] {
        server.end(&slot("days", day), 1, true).await;
        server.step("2015-09-13T13:30Z").await;
    }
    let found = boxes(&server, "workflow=days&from=2015-09-09T00:00Z&to=2015-09-14T00:00Z").await;
    let expected = [
        one("2015-09-08T22:00Z", "2015-09-10T22:00Z", 2, json!({"succeeded": 2}), 0),
        one("2015-09-10T22:00Z", "2015-09-11T22:00Z", 1, json!({"running": 1}), 0),
        one("2015-09-11T22:00Z", "2015-09-12T22:00Z", 1, json!({"queued": 1}), 0),
        one("2015-09-12T22:00Z", "2015-09-14T22:00Z", 2, json!({}), 2),
    ];
    assert_eq!(found, expected);
    let versions = "/api/v1/focus?workflow=days&from=2015-09-09T00:00Z&to=2015-09-14T00:00Z&versions=true";
    let found = server.get(versions).await.ok().json();
    let versions: Vec<&Value> =
        found["rows"][0]["boxes"].as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(versions, [&json!(1), &json!(1), &json!(null), &json!(null)], "{found}");
}

#[tokio::test]
async fn times_are_ticks_and_what_waits_says_for_what() {
    let server = chain().await;
    let query = "workflow=hours&from=2015-09-13T10:00Z&to=2015-09-13T12:00Z";
    let found = boxes(&server, query).await;
    let expected = ["2015-09-13T10:00Z", "2015-09-13T11:00Z"].map(|at| one(at, at, 1, json!({"waiting": 1}), 0));
    assert_eq!(found, expected);
    let found = server.get(&format!("/api/v1/focus?{query}")).await.ok().json();
    let blocked = &found["blocked"][0];
    assert_eq!(
        (&blocked["workflow"], &blocked["time"], &blocked["state"]),
        (&json!("hours"), &json!("2015-09-13T10:00:00.000Z"), &json!("waiting"))
    );
    assert!(blocked["blockers"][0].as_str().unwrap().contains("days"), "{found}");
}

#[tokio::test]
async fn what_is_too_much_is_counted() {
    let server = chain().await;
    let found = boxes(&server, "workflow=minutes&from=2015-09-13T08:00Z&to=2015-09-13T16:00Z").await;
    let totals: Vec<(u64, u64)> = found.iter().map(|(_, _, total, _, to_come)| (*total, *to_come)).collect();
    assert_eq!(totals, [(60, 0), (60, 0), (60, 0), (60, 0), (60, 0), (60, 30), (120, 120)], "{found:?}");
}

#[tokio::test]
async fn the_page_draws_it_and_leads_on() {
    let server = chain().await;
    server.end(&slot("days", "2015-09-08T22:00Z"), 1, true).await;
    let shown =
        page(&server, "/ui/focus?from=2015-09-09T00:00Z&to=2015-09-14T00:00Z&zone=Europe/Paris&versions=1").await;
    assert_harmless(&shown);
    assert_says(
        &shown,
        &[
            "2015-09-09 02:00 – 2015-09-14 02:00 CEST: 3 workflows",
            "days, 2015-09-09 00:00 to 2015-09-10 00:00 CEST: succeeded, version #1",
            "Blocked by",
            "hours@2015-09-13T10:00Z W waiting",
            "Versions: #1",
            "Thu 10 Sep 12:00 Fri 11 Sep",
        ],
    );
    assert!(shown.contains("href=\"/ui/workflows/days/slots/2015-09-08T22:00Z\""), "{shown}");
    assert!(shown.contains("data-events"), "it goes on with the clock");
    let tagged = page(&server, "/ui/focus?from=2015-09-01&to=2015-09-02&tag=etl").await;
    assert_says(&tagged, &["1 workflow, 0 slots.", "Later"].map(|text| text.trim_end_matches('.')));
    assert!(!tagged.contains("data-events"), "nothing happens in the past");
    for (query, said) in [
        ("hours=0", "expected a number of hours, 1 to 87720"),
        ("from=2015-09-02&to=2015-09-01", "must be before"),
        ("skip=-1", "expected the number of workflows to pass over"),
        ("zone=Moon", "expected UTC or a name"),
    ] {
        let reply = server.get(&format!("/ui/focus?{query}")).await;
        assert!(reply.status == StatusCode::BAD_REQUEST && reply.text.contains(said), "{query}: {reply:?}");
    }
    let far = server.get("/api/v1/focus?from=1970-01-01&to=2015-01-01").await;
    assert!(far.status == StatusCode::BAD_REQUEST && far.text.contains("too far apart"), "{far:?}");
    assert_eq!(
        server.get("/api/v1/focus?from=2015-01-01&to=2015-01-02&workflow=nobody").await.status,
        StatusCode::NOT_FOUND
    );
}

const AFTERNOON: &str = "from=2015-09-13T08:00Z&to=2015-09-13T13:00Z";

/// Three hours that are done, with another definition since.
async fn moved(now: &str) -> Server {
    let hours = workflow("hours", "startTime: '2015-09-13T10:00Z'");
    let server = Server::start(&format!("{hours}\n{}", workflow("other", "startTime: '2015-09-13T12:00Z'"))).await;
    for hour in ["2015-09-13T10:00Z", "2015-09-13T11:00Z", "2015-09-13T12:00Z"] {
        server.step("2015-09-13T12:30Z").await;
        server.end(&slot("hours", hour), 1, true).await;
    }
    server.write("test.js", &format!("{now}\n{}", workflow("other", "startTime: '2015-09-13T12:00Z'")));
    server.post("/clear-cache").await.ok();
    server
}

async fn out_of_range(server: &Server, query: &str) -> Value {
    let found = server.get(&format!("/api/v1/focus?{query}")).await.ok().json();
    let row = found["rows"].as_array().unwrap().iter().find(|row| row["workflow"] == "hours").cloned();
    let row = row.unwrap_or_else(|| panic!("{found}"));
    row["boxes"].as_array().unwrap().iter().map(|one| json!([one["total"], one["outOfRange"]])).collect()
}

#[tokio::test]
async fn what_a_moved_start_leaves_behind_is_marked() {
    let server = moved(&workflow("hours", "startTime: '2015-09-13T12:00Z'")).await;
    let earlier = json!({"its workflow starts later, at 2015-09-13T12:00Z": 1});
    assert_eq!(out_of_range(&server, AFTERNOON).await, json!([[1, earlier], [1, earlier], [1, null]]));
    let shown = page(&server, &format!("/ui/focus?{AFTERNOON}")).await;
    assert_harmless(&shown);
    assert_says(
        &shown,
        &["hours, 2015-09-13 10:00 UTC: succeeded; out of range: its workflow starts later, at 2015-09-13T12:00Z"],
    );
    assert_eq!(shown.matches("class=\"out-of-range\"").count(), 2, "{shown}");
    // Counted in months they are too many to be told apart from the rest of theirs, and are read.
    let years = "from=2008-01-01T00:00Z&to=2015-09-14T00:00Z&workflow=hours";
    let months = out_of_range(&server, years).await;
    let month = months.as_array().unwrap().last().unwrap();
    assert_eq!(month[1], json!({"its workflow starts later, at 2015-09-13T12:00Z": 2}), "{months}");
    let day = server.get("/api/v1/calendar?from=2015-09-13&to=2015-09-13&workflow=hours").await.ok().json();
    assert_eq!((&day["days"][0]["done"], &day["days"][0]["outOfRange"]), (&3.into(), &0.into()), "a day of both");
}

#[tokio::test]
async fn what_a_changed_calendar_leaves_behind_is_marked() {
    let six = "schedule: celos.calendar('hourly', {hours: 6}), startTime: '2015-09-13T00:00Z', catchUp: 'latest'";
    let server = moved(&workflow("hours", six)).await;
    let no_time = json!({"its workflow's schedule has no such time": 1});
    let found = out_of_range(&server, "from=2015-09-13T08:00Z&to=2015-09-13T12:00Z").await;
    assert_eq!(found, json!([[1, no_time], [1, no_time]]));
}

#[tokio::test]
async fn what_a_removed_workflow_did_stays() {
    let server = moved("").await;
    let gone = json!({"its workflow is no longer defined": 1});
    assert_eq!(out_of_range(&server, AFTERNOON).await, json!([[1, gone], [1, gone], [1, gone]]));
    let shown = page(&server, &format!("/ui/focus?{AFTERNOON}")).await;
    assert_says(&shown, &["hours removed", "hours, 2015-09-13 12:00 UTC: succeeded; out of range: its workflow is no"]);
    let later = server.get("/api/v1/focus?from=2015-09-13T13:00Z&to=2015-09-14T00:00Z").await.ok().json();
    assert_eq!(later["rows"].as_array().unwrap().len(), 1, "it has nothing there: {later}");
    let day = server.get("/api/v1/calendar?from=2015-09-12&to=2015-09-13").await.ok().json();
    assert_eq!(day["workflows"], 1, "{day}");
    let counts =
        |n: usize| [&day["days"][n]["done"], &day["days"][n]["outOfRange"]].map(|count| count.as_u64().unwrap());
    assert_eq!([counts(0), counts(1)], [[0, 0], [3, 3]], "{day}");
    let shown = page(&server, "/ui/calendar?months=1").await;
    assert_harmless(&shown);
    assert_says(&shown, &["2015-09-13: 3 of", "3 done out of range"]);
    let alone = server.get("/api/v1/calendar?from=2015-09-13&to=2015-09-13&workflow=hours").await.ok().json();
    assert_eq!((&alone["days"][0]["done"], &alone["days"][0]["outOfRange"]), (&3.into(), &3.into()), "{alone}");
}
