//! What does not get on, as a page and as JSON.

use kelos_model::SlotState;

use crate::support::{Server, slot, workflow};

/// What the page at a path says, without its marks.
async fn said(server: &Server) -> String {
    let page = server.get("/ui/stuck").await.ok().text;
    let pieces = page.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    pieces.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_which_all_goes_well_says_so() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T15:00Z'")).await;
    server.step("2015-09-13T15:00Z").await;
    assert!(said(&server).await.contains("fine Nothing is late"));
    let list = server.get("/api/v1/stuck").await.ok().json();
    assert_eq!(list, serde_json::json!({ "items": [], "more": 0, "partial": false }));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_slots_and_failures_are_told_with_their_reason_and_a_way_on() {
    let script = workflow("bad", "startTime: '2015-09-13T14:00Z'")
        + &workflow("down", "startTime: '2015-09-13T11:00Z', trigger: celos.successTrigger('bad')")
        + &workflow("further", "startTime: '2015-09-13T12:00Z', trigger: celos.successTrigger('down')");
    let server = Server::start(&script).await;
    // Each is planned in time: what catches up would count from its planning.
    for hour in 11..=14 {
        server.step(&format!("2015-09-13T{hour}:01Z")).await;
    }
    server.step("2015-09-13T15:00Z").await;
    let failing = slot("bad", "2015-09-13T14:00Z");
    server.end(&failing, 1, false).await;
    server.until_state(&failing, SlotState::Failed).await;
    let list = server.get("/api/v1/stuck").await.ok().json();
    let told: Vec<_> = list["items"].as_array().unwrap().iter().collect();
    assert_eq!((&told[0]["kind"], &told[0]["workflow"]), (&"late".into(), &"down".into()), "{list}");
    assert_eq!((&told[0]["time"], &told[0]["others"]), (&"2015-09-13T11:00:00.000Z".into(), &2.into()));
    assert_eq!(told[0]["beyondSeconds"], 2 * 3600 + 60);
    let later = |at: &str| {
        format!("waits for bad@2015-09-13T{at}Z, which does not exist: its workflow starts later, at 2015-09-13T14:00Z")
    };
    assert_eq!(told[0]["reason"], later("11:00"), "{list}");
    let further = format!("waits for down@2015-09-13T12:00Z, which {}", later("12:00"));
    assert_eq!(told[1]["reason"], further, "{list}");
    assert_eq!((&told[2]["kind"], &told[2]["workflow"]), (&"failed".into(), &"bad".into()), "{list}");
    let page = said(&server).await;
    for text in ["5 late, 1 failed.", "down@2015-09-13T11:00Z", "and 2 later slots", "exited with status 3", "Rerun…"]
    {
        assert!(page.contains(text), "{text} is not in {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_of_a_paused_workflow_can_be_resumed() {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T13:00Z'")).await;
    server.step("2015-09-13T13:30Z").await;
    server.post("/api/v1/workflows/w/pause").await.ok();
    let page = said(&server).await;
    assert!(page.contains("paused") && page.contains("its workflow is paused; 2 slots are due"), "{page}");
    assert!(page.contains("Resume"), "{page}");
}
