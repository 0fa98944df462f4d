//! The timeline, the critical path and runs by time.

use axum::http::StatusCode;
use kelos_model::SlotState;

use crate::pages::{assert_harmless, assert_says, page, words};
use crate::support::{Server, slot, workflow};

const TIME: &str = "2015-09-13T13:00Z";

/// Two workflows, one of which waits for the other; the first has run.
async fn chain() -> Server {
    let up = workflow("up", "tags: ['etl']");
    let server = Server::start(&(up + &workflow("down", "trigger: celos.successTrigger('up')"))).await;
    server.step("2015-09-13T13:30Z").await;
    server
}

/// The time of the slot whose run goes on.
async fn running(server: &Server, id: &str) -> String {
    let slots = server.slots(id, "2015-09-13T13:30Z").await;
    slots.into_iter().rev().find(|(_, status)| status == "RUNNING").expect("a slot that runs").0
}

#[tokio::test]
async fn runs_are_bars_that_lead_to_their_slots() {
    let server = chain().await;
    let time = running(&server, "up").await;
    let shown = page(&server, "/ui/timeline").await;
    assert_harmless(&shown);
    assert_says(
        &shown,
        &["Timeline", "2015-09-13 09:15 – 2015-09-13 15:15 UTC: 1 run (1 running)", "up 1", "run 1: running"],
    );
    assert!(shown.contains("data-events"), "it goes on with the clock");
    let short = kelos_model::time::format_short(kelos_model::time::parse_instant(&time).unwrap());
    assert!(shown.contains(&format!("href=\"/ui/workflows/up/slots/{short}?run=1\"")), "{shown}");
    server.end(&slot("up", &time), 1, false).await;
    let ended = page(&server, "/ui/timeline?as=table&state=failed&find=U&tag=etl").await;
    assert_says(&ended, &["1 run (1 failed)", &format!("up@{short} #1 F failed 2015-09-13 13:30:00 0.0 s")]);
    for none in ["state=succeeded", "find=down", "tag=nothing", "project=nobody"] {
        assert_says(
            &page(&server, &format!("/ui/timeline?{none}")).await,
            &["No run was under way in this time that passes the filter."],
        );
    }
}

#[tokio::test]
async fn a_window_in_the_past_stays_and_has_nothing_of_now() {
    let server = chain().await;
    let past = page(&server, "/ui/timeline?from=2015-09-10T00:00Z&to=2015-09-10T06:00Z&zone=Europe/Berlin").await;
    assert_says(
        &past,
        &["2015-09-10 02:00 – 2015-09-10 08:00 CEST: 0 runs", "No run was under way in this time.", "Later"],
    );
    assert!(!past.contains("data-events"), "nothing happens in the past");
}

#[tokio::test]
async fn what_is_asked_wrongly_is_told_in_words() {
    let server = chain().await;
    let wrong = [
        ("hours=0", "The parameter \"hours\" is \"0\", expected a number of hours, 1 to 744."),
        ("by=moon", "expected workflow or pool"),
        ("state=happy", "expected one of dispatched, running, succeeded, failed, killed, unknown"),
        ("zone=Moon", "expected UTC or a name such as Europe/Berlin"),
        ("slot=up", "expected a slot such as ID@2015-09-13T13:40Z or ID@JOB_ID"),
        ("from=2015-09-13&to=2015-09-12", "must be before"),
        ("as=poem", "expected bars or table"),
        ("nonsense=1", "Unknown query parameter `nonsense`, expected one of"),
    ];
    for (query, expected) in wrong {
        let reply = server.get(&format!("/ui/timeline?{query}")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(words(&reply.text).contains(expected), "{query}: {}", words(&reply.text));
    }
    let reply = server.get("/ui/timeline?slot=up@1999-01-01T00:00Z").await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert_says(&reply.text, &["There is no slot up@1999-01-01T00:00Z, so it has no critical path."]);
}

#[tokio::test]
async fn the_critical_path_of_a_slot_is_shown_and_told() {
    let server = chain().await;
    let time = running(&server, "up").await;
    let href = format!("/ui/timeline?slot=down@{time}");
    let waits = page(&server, &href).await;
    assert_says(
        &waits,
        &["Critical path of down@", "now; it has not ended", "waited 1 h 31 min for up@", "Show all runs alike"],
    );
    server.end(&slot("up", &time), 1, true).await;
    server.step("2015-09-13T13:31Z").await;
    server.until_state(&slot("down", &time), SlotState::Running).await;
    let path = server.get(&format!("/api/v1/workflows/down/slots/{time}/critical-path")).await.ok().json();
    let links: Vec<_> =
        path["links"].as_array().unwrap().iter().map(|link| link["workflow"].as_str().unwrap()).collect();
    assert_eq!((&path["isOver"], &path["workflow"]), (&false.into(), &"down".into()));
    assert_eq!(links.last(), Some(&"down"));
    let own = page(&server, &format!("/ui/workflows/down/slots/{time}")).await;
    assert!(own.contains("href=\"/ui/timeline?slot=down%40"), "{own}");
    let none = server.get("/api/v1/workflows/down/slots/1999-01-01T00:00Z/critical-path").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn runs_are_listed_by_when_they_were_under_way() {
    let server = chain().await;
    let count = async |query: &str| {
        server.get(&format!("/api/v1/runs?{query}")).await.ok().json()["items"].as_array().unwrap().len()
    };
    assert_eq!(count("from=2015-09-13T15:00Z").await, 1);
    assert_eq!(count("to=2015-09-13T13:30Z").await, 0);
    assert_eq!(count("from=2015-09-13T16:00Z&to=2015-09-13T17:00Z").await, 1, "it goes on");
    let wrong = server.get("/api/v1/runs?from=2015-09-13&to=2015-09-12").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn nothing_that_a_script_says_becomes_a_part_of_the_timeline() {
    const HOSTILE: &str = "a<img src=x onerror=alert(1)>\\\"'&";
    let server = Server::start(&workflow("WILL BE REPLACED", "").replace("WILL BE REPLACED", HOSTILE)).await;
    server.step(TIME).await;
    for query in ["", "?as=table", "?find=%3Cimg", "?by=pool"] {
        let shown = page(&server, &format!("/ui/timeline{query}")).await;
        assert_harmless(&shown);
        assert_says(&shown, &["a<img src=x onerror=alert(1)>\"'&"]);
    }
}
