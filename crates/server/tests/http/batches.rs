//! Slots that run together: what the API and the pages say of each.

use std::io::Write;

use kelos_executors::run_ref;
use kelos_model::RunId;
use serde_json::json;

use crate::support::{NOW, Server, slot, workflow};

const SLOTS: &str = "/api/v1/workflows/w/slots";

/// A server with a batch of three hours that runs, and whose run has written a line.
async fn running() -> Server {
    let server = Server::start(&workflow("w", "startTime: '2015-09-13T13:00Z', batch: {size: 3, delay: '5m'}")).await;
    server.step(NOW).await;
    let run = RunId { slot: slot("w", "2015-09-13T13:00Z"), number: 1 };
    let folder = server.node.launcher().dirs().path(&run_ref(&run));
    std::fs::create_dir_all(&folder).unwrap();
    let mut file = std::fs::File::create(folder.join("log")).unwrap();
    file.write_all(b"three hours\n").unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_has_the_output_of_the_run_that_serves_it() {
    let server = running().await;
    let of = |time: &str| format!("{SLOTS}/2015-09-13T{time}Z");
    for time in ["13:00", "14:00", "15:00"] {
        assert_eq!(server.get(&format!("{}/runs/1/log", of(time))).await.ok().text, "three hours\n");
        let runs = server.get(&format!("{}/runs", of(time))).await.json();
        let batch =
            json!({ "first": "2015-09-13T13:00:00.000Z", "run": 1, "last": "2015-09-13T15:00:00.000Z", "slots": 3 });
        assert_eq!(runs["items"][0]["batch"], batch, "{runs}");
    }
    server.end(&slot("w", "2015-09-13T13:00Z"), 1, true).await;
    let why = server.get(&format!("{}/why", of("14:00"))).await.json();
    let headline = why["headline"].as_str().unwrap();
    let together = "; together with 2015-09-13T13:00Z to 2015-09-13T15:00Z, in run 1 of 2015-09-13T13:00Z";
    assert!(headline.starts_with("run 1 succeeded at ") && headline.ends_with(together), "{headline}");
    let definition = server.get("/api/v1/workflows/w").await.json();
    assert_eq!(definition["definition"]["batch"], json!({ "size": 3, "delayMillis": 300_000 }), "{definition}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_lead_to_the_run_that_did_the_work_and_say_what_a_kill_ends() {
    let server = running().await;
    let page = server.get("/ui/workflows/w/slots/2015-09-13T15:00Z").await.ok().text;
    for expected in [
        "three hours",
        "3 slots together, from ",
        "/ui/workflows/w/slots/2015-09-13T13:00Z",
        "Kills its run, which serves 3 slots, and all of these.",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let page = server.get("/ui/workflows/w").await.ok().text;
    assert!(page.contains("up to 3 adjacent slots a run; fewer wait for others, up to 5 min"), "{page}");
}
