//! Alerts of a real server: what is late from the beginning, and what is over once it is told.

use serde_json::json;

use crate::support::webhook::webhook;
use crate::support::{Folder, PATIENCE, Server, eventually};

#[test]
fn what_is_late_in_the_first_planning_is_told_and_once() {
    let (hook, posts) = webhook(|_| "204 No Content");
    let script = r#"kelos.workflow("a", {schedule: "hourly", catchUp: "all", deadline: "5m", trigger: celos.fileCheckTrigger("never"), command: ["true"]});"#;
    let rules =
        json!({"alerts": {"channels": {"hook": {"webhook": hook}}, "rules": [{"to": ["hook"], "when": ["late"]}]}});
    let folder = Folder::with(&[("workflows/a.js", script), ("alerts.json", &rules.to_string())]);
    let start = || Server::start(folder.path(), &["up", "--config", "alerts.json"], "Stop with Ctrl-C");
    let alerts = || folder.json(&["alerts", "--json"]);

    let server = start();
    let told = posts.recv_timeout(PATIENCE).expect("a notice").body;
    assert_eq!((&told["condition"], &told["phase"]), (&json!("late"), &json!("opened")), "{told}");
    assert!(told["count"].as_u64().is_some_and(|count| count > 0), "{told}");
    eventually("the channel has accepted it", || (alerts()["channels"][0]["sent"] == 1).then_some(()));
    server.stop();

    // What was told is no news to the next process, and the channel is known to work.
    let server = start();
    eventually("alerts go on", || (alerts()["sends"] == true).then_some(()));
    let found = alerts();
    assert_eq!((&found["open"][0]["condition"], &found["channels"][0]["sent"]), (&json!("late"), &json!(0)), "{found}");
    assert!(found["channels"][0]["sentAt"].is_string(), "{found}");
    server.stop();
    let opened: Vec<_> = posts.try_iter().filter(|post| post.body["phase"] == "opened").map(|post| post.body).collect();
    assert_eq!(opened, [] as [serde_json::Value; 0]);
}

#[test]
fn the_end_of_a_backfill_is_told_and_is_no_open_alert() {
    let (hook, posts) = webhook(|_| "204 No Content");
    let script = r#"kelos.workflow("a", {schedule: "hourly", catchUp: "skip", command: ["true"]});"#;
    let rules =
        json!({"alerts": {"channels": {"hook": {"webhook": hook}}, "rules": [{"to": ["hook"], "when": ["backfill"]}]}});
    let folder = Folder::with(&[("workflows/a.js", script), ("alerts.json", &rules.to_string())]);
    let server = Server::start(folder.path(), &["up", "--config", "alerts.json"], "Stop with Ctrl-C");
    eventually("loaded", || (folder.json(&["ls", "--json"])["items"].as_array()?.len() == 1).then_some(()));
    folder.run(&["backfill", "a", "--from", "2024-01-01T00:00Z", "--to", "2024-01-01T03:00Z"]).ok();
    let told = posts.recv_timeout(PATIENCE).expect("a notice").body;
    assert_eq!(told["condition"], "backfill", "{told}");
    let found = folder.json(&["alerts", "--json"]);
    assert_eq!((&found["open"], &found["news"][0]["condition"]), (&json!([]), &json!("backfill")), "{found}");
    server.stop();
}
