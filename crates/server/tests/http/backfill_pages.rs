//! The pages of backfills.

use axum::http::{Method, StatusCode};

use crate::pages::{assert_harmless, assert_says, form, page, words};
use crate::support::{NOW, Server, slot, workflow};

/// Names and reasons that would be scripts, if pages let them.
const HOSTILE: &str = "a<img src=x onerror=alert(1)>'&";
const HOSTILE_HREF: &str = "/ui/backfills/a%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%27%26";

/// Four slots of the past, of which the first runs.
async fn going() -> Server {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:30Z'")).await;
    make(&server, "past", "2015-09-01T00:00Z", "2015-09-01T04:00Z").await;
    server.step(NOW).await;
    server
}

async fn make(server: &Server, name: &str, from: &str, to: &str) {
    let request = serde_json::json!({ "workflow": "w", "name": name, "from": from, "to": to });
    server.post_json("/api/v1/backfills", &request.to_string()).await.ok();
}

async fn send(server: &Server, action: &str, fields: &str) {
    let reply = form(server, &format!("/ui/backfills/past/{action}"), fields, "same-origin").await;
    assert_eq!((reply.status, reply.header("location")), (StatusCode::SEE_OTHER, "/ui/backfills/past"), "{reply:?}");
}

#[tokio::test]
async fn every_slot_is_shown_before_a_backfill_is_made() {
    let server = Server::start(&workflow("w", "")).await;
    let empty = page(&server, "/ui/new-backfill").await;
    assert!(empty.contains("<option value=\"w\">"), "{empty}");
    assert_says(&empty, &["One backfill opens at most 1000000 slots one by one, and none of the future;"]);
    let of_workflow = page(&server, "/ui/workflows/w").await;
    assert!(of_workflow.contains("action=\"/ui/new-backfill\""), "one way leads to the preview");

    let wanted =
        "workflow=w&from=2015-08-01T00%3A00&to=2015-08-01T03%3A00&mode=missing&priority=-1&name=&reason=the+disk";
    let preview = page(&server, &format!("/ui/new-backfill?{wanted}")).await;
    let expected = [
        "It would affect 3 slots, and leave 0 unchanged.",
        "2015-08-01T01:00Z",
        "because: the disk",
        "Backfill 3 slots",
    ];
    assert_says(&preview, &expected);
    assert_says(&page(&server, "/ui/backfills").await, &["No backfill has been made."]);

    let made = form(&server, "/ui/new-backfill", wanted, "same-origin").await;
    let href = "/ui/backfills/w-2015-08-01T00:00Z-2015-08-01T03:00Z";
    assert_eq!((made.status, made.header("location")), (StatusCode::SEE_OTHER, href));
    assert_says(&page(&server, href).await, &["0 of 3 slots ended", "Asked for by web", "Why the disk", "Priority -1"]);
    assert_says(&page(&server, "/ui/workflows/w").await, &["0 of 3", "going on"]);

    for odd in [wanted.replace("missing", "none"), wanted.replace("=w&", "=&")] {
        assert_eq!(form(&server, "/ui/new-backfill", &odd, "same-origin").await.status, StatusCode::BAD_REQUEST);
    }
    let nobody = server.get(&format!("/ui/new-backfill?{}", wanted.replace("=w&", "=nobody&"))).await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    let foreign = form(&server, "/ui/new-backfill", wanted, "cross-site").await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn thousands_of_slots_are_shown_page_by_page() {
    let server = Server::start(&workflow("w", "")).await;
    let wanted = "workflow=w&from=2015-01-01T00%3A00&to=2015-04-11T00%3A00";
    let first = page(&server, &format!("/ui/new-backfill?{wanted}")).await;
    assert_says(&first, &["It would affect 2400 slots", "page 1 of 3", "Later times"]);
    assert_eq!(first.matches("/ui/workflows/w/slots/").count(), 1000);
    let last = page(&server, &format!("/ui/new-backfill?{wanted}&page=2")).await;
    assert_eq!(last.matches("/ui/workflows/w/slots/").count(), 400);
    assert!(last.contains("slots/2015-04-10T23:00Z") && !last.contains("Later times"));
}

#[tokio::test]
async fn one_is_paused_resumed_and_put_first_on_its_page() {
    let server = going().await;
    let told = page(&server, "/ui/backfills/past").await;
    assert_says(&told, &["going on", "0 of 4 slots ended", "Q queued 3", "R running 1", "no estimate yet"]);
    assert!(told.contains("aria-label=\"1 running, 3 queued\""), "{told}");
    send(&server, "pause", "reason=lunch").await;
    let told = page(&server, "/ui/backfills/past").await;
    assert_says(
        &told,
        &["paused", "no estimate yet: it is paused by web", "Paused by web at 2015-09-13T15:01Z", "Resume…"],
    );
    assert!(!told.contains("past/pause"), "what is paused is not paused again");
    assert_says(&page(&server, "/ui/backfills").await, &["past paused", "0 of 4"]);
    assert_says(&page(&server, "/ui/activity").await, &["backfill past paused by web, lunch"]);
    let why = page(&server, "/ui/workflows/w/slots/2015-09-01T01:00Z").await;
    assert_says(&why, &["its backfill past is paused by web"]);

    send(&server, "prioritise", "priority=5&reason=").await;
    assert_says(&page(&server, "/ui/backfills/past").await, &["Priority 5"]);
    send(&server, "resume", "").await;
    assert_says(&page(&server, "/ui/backfills/past").await, &["going on", "Resumed 2015-09-13T15:01Z", "Pause…"]);
    send(&server, "cancel", "").await;
    let told = page(&server, "/ui/backfills/past").await;
    assert_says(&told, &["cancelled", "3 of 4 slots ended", "K killed 3"]);
    assert!(!told.contains("past/resume") && !told.contains("past/rerun"));

    for (action, fields, status) in [("prioritise", "", 400), ("explode", "", 404), ("resume", "", 409)] {
        let reply = form(&server, &format!("/ui/backfills/past/{action}"), fields, "same-origin").await;
        assert_eq!(reply.status, status, "{action}: {reply:?}");
    }
    assert_eq!(server.get("/ui/backfills/none").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn its_failures_come_first_and_are_run_again() {
    let server = going().await;
    for hour in 0..4 {
        server.step(NOW).await;
        server.end(&slot("w", &format!("2015-09-01T0{hour}:00Z")), 1, hour == 1).await;
    }
    let told = page(&server, "/ui/backfills/past").await;
    assert_says(
        &told,
        &[
            "ended",
            "4 of 4 slots ended",
            "3 F failed exited with status 3 2015-09-01T03:00Z , 2015-09-01T02:00Z , 2015-09-01T00:00Z",
            "Rerun 3 failures",
        ],
    );
    let failed = page(&server, "/ui/backfills/past?state=failed").await;
    assert_eq!(failed.matches("class=\"square").count(), 3);
    send(&server, "rerun", "reason=again").await;
    assert_says(&page(&server, "/ui/backfills/past").await, &["1 of 4 slots ended", "W waiting 3"]);
    assert_says(&page(&server, "/ui/workflows/w/slots/2015-09-01T00:00Z").await, &["reopened by web, again"]);
    // What a person opens again is not the backfill's any more.
    server.step(NOW).await;
    server.end(&slot("w", "2015-09-01T00:00Z"), 2, true).await;
    server.post("/api/v1/workflows/w/slots/2015-09-01T00:00Z/rerun").await.ok();
    assert_says(
        &page(&server, "/ui/backfills/past").await,
        &["1 slot of it was rerun by hand, or adopted by a later backfill."],
    );
}

#[tokio::test]
async fn the_list_is_paged_and_filtered() {
    let server = Server::start(&(workflow("w", "") + &workflow("other", ""))).await;
    for number in 0..27 {
        make(&server, &format!("b{number}"), "2015-08-01T00:00Z", "2015-08-01T01:00Z").await;
    }
    let first = page(&server, "/ui/backfills").await;
    assert!(first.contains("/ui/backfills/b26\"") && first.contains("/ui/backfills/b2\""), "{first}");
    assert!(!first.contains("/ui/backfills/b1\""));
    assert!(first.contains("href=\"/ui/backfills?before=b2\""));
    let rest = page(&server, "/ui/backfills?before=b2").await;
    assert!(rest.contains("/ui/backfills/b1\"") && rest.contains("/ui/backfills/b0\"") && rest.contains("Newest"));
    assert!(!rest.contains("Earlier"));
    assert_says(&page(&server, "/ui/backfills?workflow=other").await, &["No backfill has been made."]);
    assert!(words(&page(&server, "/ui/workflows/w").await).contains("all 27 of them"));
}

#[tokio::test]
async fn names_and_reasons_are_texts() {
    let server = Server::start(&workflow("w", "")).await;
    let request = serde_json::json!({
        "workflow": "w", "name": HOSTILE, "reason": "<script>x</script>", "from": "2015-08-01T00:00Z", "to": "2015-08-01T01:00Z"
    });
    server.post_json("/api/v1/backfills", &request.to_string()).await.ok();
    let by = axum::http::Request::builder().method(Method::POST).header("kelos-user", "<b>bold</b>");
    let by = by.uri(HOSTILE_HREF.replace("/ui/", "/api/v1/") + "/pause").body(String::new().into()).unwrap();
    server.send(by).await.ok();
    let fields = "workflow=w&from=2015-08-02T00:00&to=2015-08-02T01:00&name=%3Cimg%3E&reason=%3Cscript%3E";
    let preview = format!("/ui/new-backfill?{fields}");
    for uri in [HOSTILE_HREF, "/ui/backfills", "/ui/workflows/w", "/ui/activity", &preview] {
        assert_harmless(&page(&server, uri).await);
    }
    assert_says(&page(&server, HOSTILE_HREF).await, &[HOSTILE, "Why <script>x</script>", "Paused by <b>bold</b>"]);
}
