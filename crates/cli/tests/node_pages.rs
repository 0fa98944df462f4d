//! Nodes that share a log, as real processes.

use std::time::Duration;

use crate::support::{Folder, Server, within};
use serde_json::Value;

/// The time until a node follows, or leads: also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn node(log: &Folder, state: &Folder, name: &str) -> Server {
    node_with(log, state, name, &[])
}

fn node_with(log: &Folder, state: &Folder, name: &str, more: &[&str]) -> Server {
    let store = format!("file:{}", log.text());
    let args = ["serve", "--port", "0", "--store", &store, "--state", state.text(), "--node", name, "--at-a-time", "2"];
    Server::start(state.path(), &[&args, more].concat(), "whichever node leads schedules")
}

/// The nodes as one of them shows them, by whether they lead.
fn nodes(folder: &Folder, server: &Server) -> Vec<(String, bool)> {
    let said = folder.run(&["nodes", "--json", "--server", server.address()]);
    // Without a leader there is none who would tell.
    let found: Value = serde_json::from_str(&said.out).unwrap_or_default();
    let one = |node: &Value| (node["name"].as_str().expect("a name").to_owned(), node["leads"] == true);
    found["nodes"].as_array().into_iter().flatten().map(one).collect()
}

fn page(server: &Server, path: &str) -> String {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("{}{path}", server.address())).call().expect("an answer");
    answer.body_mut().read_to_string().expect("text")
}

#[test]
fn every_node_shows_the_nodes_and_a_standby_takes_over() {
    let (log, one, two) = (Folder::with(&[]), Folder::with(&[]), Folder::with(&[]));
    let first = node(&log, &one, "one");
    within(PATIENCE, "the first leads", || (nodes(&one, &first) == [("one".to_owned(), true)]).then_some(()));
    let second = node(&log, &two, "two");
    let both = [("one".to_owned(), true), ("two".to_owned(), false)];
    within(PATIENCE, "the leader has heard of both", || (nodes(&two, &second) == both).then_some(()));
    for server in [&first, &second] {
        // Each node hears of the others in its own time.
        let shown = within(PATIENCE, "both nodes are there", || {
            Some(page(server, "/ui/nodes")).filter(|shown| shown.contains("1 other node could take over"))
        });
        for text in ["<b>one</b> leads since", ">stands by<", "href=\"/ui/nodes\""] {
            assert!(shown.contains(text), "{text} is not in {shown}");
        }
        assert!(shown.contains("href=\"/ui/workers\""), "each node runs commands: {shown}");
        within(PATIENCE, "both nodes run commands", || {
            page(server, "/ui/workers").contains("2 workers connected").then_some(())
        });
    }
    let has_applied = || {
        let metrics = page(&second, "/metrics");
        let count = metrics.lines().find_map(|line| line.strip_prefix("kelos_log_apply_seconds_count "));
        count.is_some_and(|count| count != "0").then_some(())
    };
    within(PATIENCE, "the standby has applied entries", has_applied);
    first.crash();
    within(PATIENCE, "the second leads", || nodes(&two, &second).contains(&("two".to_owned(), true)).then_some(()));
    let shown = page(&second, "/ui/nodes");
    assert!(shown.contains("<b>two</b> leads since"), "{shown}");
    assert!(second.stop().success());
}

#[test]
fn rules_of_addresses_hold_at_every_node_that_has_the_key_of_sessions() {
    let rules = r#"{ "access": { "addresses": [
        { "from": "10.1.0.0/16", "name": "hadoop", "roles": ["operate"] },
        { "from": "127.0.0.1/32", "name": "nodes", "roles": ["worker", "view"] } ] } }"#;
    let (log, one, two) = (Folder::with(&[]), Folder::with(&[]), Folder::with(&[]));
    let config = one.write("rules.json", rules).to_str().expect("UTF-8").to_owned();
    let first = node_with(&log, &one, "one", &["--config", &config]);
    within(PATIENCE, "the first leads", || (nodes(&one, &first) == [("one".to_owned(), true)]).then_some(()));
    // Another key is drawn where none is copied.
    let proxied = ["--config", &config, "--trusted-proxy", "127.0.0.1"];
    let second = node_with(&log, &two, "two", &proxied);
    let pause = |server: &Server, client: &str| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let asked = agent.post(format!("{}/api/v1/workflows/tick/pause", server.address()));
        let answer = asked.header("x-forwarded-for", client).send_empty().expect("an answer");
        answer.status().as_u16()
    };
    assert_eq!(pause(&second, "10.1.2.3"), 403, "the node itself may not do that");
    assert!(second.stop().success());

    std::fs::copy(one.path().join("session.key"), two.path().join("session.key")).expect("the key is copied");
    let second = node_with(&log, &two, "two", &proxied);
    assert_eq!(pause(&second, "10.1.2.3"), 404, "the client may, and there is no such workflow");
    assert_eq!(pause(&second, "10.2.2.3"), 401, "there is no rule for this client");
    assert!(second.stop().success());
}

#[test]
fn nodes_with_one_key_of_sessions_know_each_other_and_have_one_owner() {
    let (log, one, two) = (Folder::with(&[]), Folder::with(&[]), Folder::with(&[]));
    let first = node_with(&log, &one, "one", &["--auth"]);
    within(PATIENCE, "the first has its files", || one.path().join("owner.token").exists().then_some(()));
    std::fs::copy(one.path().join("session.key"), two.path().join("session.key")).expect("the key is copied");
    let second = node_with(&log, &two, "two", &["--auth"]);
    let owner = |folder: &Folder| std::fs::read_to_string(folder.path().join("owner.token")).expect("a token");
    assert_eq!(owner(&one), owner(&two));
    // Each node reports to the leader without a token of its own, and the leader knows the owner at any node.
    let asked = ["nodes", "--json", "--server", second.address(), "--token-file", "owner.token"];
    within(PATIENCE, "the leader has heard of both", || {
        let found: Value = serde_json::from_str(&two.run(&asked).out).unwrap_or_default();
        let mut names: Vec<_> = found["nodes"].as_array()?.iter().map(|node| node["name"].clone()).collect();
        names.sort_by_key(ToString::to_string);
        (names == ["one", "two"]).then_some(())
    });
    let asked = ["workers", "--json", "--server", second.address(), "--token-file", "owner.token"];
    within(PATIENCE, "both nodes run commands", || {
        (two.run(&asked).out.matches("\"remote\":true").count() == 2).then_some(())
    });
    assert!(second.stop().success());
    assert!(first.stop().success());
}

#[test]
fn a_node_with_another_key_of_sessions_is_none_and_runs_commands_by_a_token() {
    let (log, one, two) = (Folder::with(&[]), Folder::with(&[]), Folder::with(&[]));
    let first = node_with(&log, &one, "one", &["--auth"]);
    within(PATIENCE, "the first has its files", || one.path().join("owner.token").exists().then_some(()));
    let owner = ["--server", first.address(), "--token-file", "owner.token"];
    let made = within(PATIENCE, "the first leads", || {
        let made = one.run(&[&["token", "add", "w", "--role", "worker"], &owner[..]].concat());
        (made.code == 0).then_some(made.out)
    });
    two.write("worker.token", &made);
    let second = node_with(&log, &two, "two", &["--auth", "--token-file", "worker.token"]);
    let workers = [&["workers", "--json"], &owner[..]].concat();
    within(PATIENCE, "both nodes run commands", || {
        (one.run(&workers).out.matches("\"remote\":true").count() == 2).then_some(())
    });
    let found: Value = serde_json::from_str(&one.run(&[&["nodes", "--json"], &owner[..]].concat()).out).expect("nodes");
    assert_eq!(found["nodes"].as_array().map(Vec::len), Some(1), "{found}");
    assert!(second.stop().success());
    assert!(first.stop().success());
}
