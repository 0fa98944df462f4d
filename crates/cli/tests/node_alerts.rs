//! What a leader tells of the nodes beside it: with real processes.

use std::sync::mpsc::Receiver;

use crate::support::nodes::Nodes;
use crate::support::webhook::{Post, webhook};
use crate::support::{PATIENCE, eventually};

/// The conditions, phases and titles of the notices that come, up to the first of a condition in a phase.
fn told(posts: &Receiver<Post>, condition: &str, phase: &str) -> Vec<(String, String, String)> {
    let mut told = Vec::new();
    loop {
        let post = posts.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error} after {told:?}"));
        let text = |field: &str| post.body[field].as_str().expect(field).to_owned();
        told.push((text("condition"), text("phase"), text("title")));
        if told.last().is_some_and(|(is, at, _)| is == condition && at == phase) {
            return told;
        }
    }
}

/// The titles of those among them that begin an alert of a condition.
fn opened<'t>(told: &'t [(String, String, String)], condition: &str) -> Vec<&'t str> {
    told.iter().filter(|(is, at, _)| is == condition && at == "opened").map(|(.., title)| title.as_str()).collect()
}

#[test]
fn the_next_leader_tells_of_one_that_died_and_of_a_node_that_is_away() {
    let (hook, posts) = webhook(|_| "204 No Content");
    let mut nodes = Nodes::of_file(2).with(0, &["--config", "alerts.json"]).with(1, &["--config", "alerts.json"]);
    let rules = serde_json::json!({"alerts": {
        "channels": {"hook": {"webhook": hook}},
        "rules": [{"to": ["hook"], "when": ["leader", "nodes"], "after": "0s"}],
    }});
    nodes.folder.write("alerts.json", &rules.to_string());
    nodes.all[0].start();
    assert_eq!(nodes.led(), 0);
    nodes.all[1].start();
    eventually("both nodes know each other", || {
        nodes.run(&["nodes", "--server", &nodes.all[0].address()]).ok().contains("n1").then_some(())
    });

    nodes.all[0].kill();
    let told_of = told(&posts, "nodes", "opened");
    let [leader] = opened(&told_of, "leader")[..] else { panic!("{told_of:?}") };
    assert!(leader.starts_with("node n1 leads since 20"), "{leader}");
    assert!(leader.ends_with(": n0, which led before, was not heard of"), "{leader}");
    let [away] = opened(&told_of, "nodes")[..] else { panic!("{told_of:?}") };
    assert!(away.starts_with("no other node could take over: n0 is not heard of since 20"), "{away}");

    nodes.all[0].start();
    assert_eq!(opened(&told(&posts, "nodes", "over"), "leader"), [] as [&str; 0]);

    // One that was asked to end has recorded what it told, and given the lead back: its successor is no news, but it is away.
    nodes.all[1].stop();
    let told_of = told(&posts, "nodes", "opened");
    let [(_, _, away)] = &told_of[..] else { panic!("{told_of:?}") };
    assert!(away.starts_with("no other node could take over: n1 is not heard of since 20"), "{away}");
}
