//! Alerts of what is late from the beginning, by a real server.

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
