//! Nodes that can't do the work of a leader, or not yet: with real processes over a log in a folder.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::link::{Link, TO_SERVER};
use crate::support::nodes::Nodes;
use crate::support::{Folder, Server, copy, eventually};

/// An address at which no server answers.
const NOWHERE: &str = "http://127.0.0.1:1";

#[test]
fn a_leader_that_no_node_reaches_is_replaced() {
    // Nothing is there until the leader is up.
    let link = Link::to(SocketAddr::from(([127, 0, 0, 1], 1)));
    let place = format!("http://{}", link.address());
    let mut nodes = Nodes::of_file(3).with(0, &["--advertise", &place]);
    nodes.all[0].start();
    assert_eq!(nodes.led(), 0);
    let server = nodes.all[0].address();
    link.lead_to(server.trim_start_matches("http://").parse().expect("an address"));
    (1..3).for_each(|node| nodes.all[node].start());
    let listed = |node: usize| nodes.run(&["nodes", "--server", &nodes.all[node].address()]).ok();
    for node in 1..3 {
        eventually("all know each other", || (listed(node).matches("stands by").count() == 2).then_some(()));
    }
    link.cut(TO_SERVER);
    let began = Instant::now();
    let leader = eventually("another leads", || (1..3).find(|node| nodes.leader() == Some(*node)));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    eventually("written", || nodes.all[3 - leader].put("key", 1).filter(|answer| answer.status == 200));
    let said = listed(leader);
    assert!(said.contains(&format!("could not reach the leader n0 at {place}: ")), "{said}");
    // It reports to the new leader, and stands by.
    eventually("three nodes", || (listed(leader).matches("stands by").count() == 2).then_some(()));
}

#[test]
fn each_node_lists_the_nodes_also_without_a_leader() {
    let mut nodes = Nodes::of_file(2);
    (0..2).for_each(|node| nodes.all[node].start());
    let leader = nodes.led();
    let standby = 1 - leader;
    let list = |nodes: &Nodes| nodes.run(&["nodes", "--server", &nodes.all[standby].address()]).ok();
    eventually("both nodes", || (list(&nodes).contains("n0") && list(&nodes).contains("n1")).then_some(()));
    // It hangs, and the other one has not taken over yet, or just has.
    nodes.all[leader].signal("STOP");
    for _ in 0..5 {
        let said = list(&nodes);
        assert!(said.contains("n0") && said.contains("n1") && said.contains("the log is file:"), "{said}");
    }
    nodes.all[leader].signal("CONT");
    // From now on the leader's address is wrong, and the list says which node can't reach it.
    nodes.all[standby].stop();
    nodes.all[leader].stop();
    let mut nodes = Nodes::of_file(2).with(0, &["--advertise", NOWHERE]);
    (0..2).for_each(|node| {
        nodes.all[node].start();
        eventually("it leads", || nodes.leader());
    });
    let said = eventually("it says so", || {
        let said = nodes.run(&["nodes", "--server", &nodes.all[1].address()]).ok();
        said.contains("failed to reach the leader n0").then_some(said)
    });
    assert!(said.contains(NOWHERE), "{said}");
}

#[test]
fn a_node_that_starts_while_the_store_is_away_answers_reads() {
    let mut nodes = Nodes::of_file(1);
    nodes.all[0].start();
    nodes.led();
    assert_eq!(nodes.all[0].put("key", 7).expect("an answer").status, 200);
    nodes.all[0].stop();
    let state = nodes.all[0].state();
    let mut command = crate::support::kelos(&["serve", "--port=0", "--at-a-time=0", "--state"]);
    command.arg(&state).env("KELOS_STORE", "redis://127.0.0.1:1/0").current_dir(nodes.folder.path());
    let server = Server::run(&mut command, "kelos deploy --server");
    let get = |path: &str| -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent.get(format!("{}{path}", server.address())).call().expect("an answer");
        (answer.status().as_u16(), answer.body_mut().read_to_string().expect("text"))
    };
    let (status, register) = get("/api/v1/registers/test/key");
    assert!(status == 200 && register.contains("\"value\":7"), "{status} {register}");
    assert_eq!(get("/health/ready").0, 503);
    let said = nodes.run(&["nodes", "--server", server.address()]).ok();
    assert!(said.contains("no node leads at the moment") && said.contains("onnection refused"), "{said}");
    assert!(server.stop().success());
}

#[test]
fn a_second_process_of_a_node_that_leads_is_refused() {
    let mut nodes = Nodes::of_file(1);
    nodes.all[0].start();
    nodes.led();
    let args = ["serve", "--port", "0", "--store", nodes.store(), "--state", "other", "--node", "n0"];
    let refused = nodes.run(&args).fails(1);
    let place = nodes.all[0].address();
    assert!(refused.contains(&format!("another process at {place} leads as node n0, and is alive")), "{refused}");
    assert!(refused.contains("--node"), "{refused}");
    // One that died may start again at once.
    nodes.all[0].kill();
    nodes.all[0].start();
    nodes.led();
}

/// Two nodes, of which each has written what the other one lacks: the log lost its end, and went on.
fn forked() -> (Nodes, u64) {
    // That a worker has come would be a turn, too.
    let mut nodes = Nodes::of_file(2).with(0, &["--at-a-time", "0"]).with(1, &["--at-a-time", "0"]);
    nodes.all[0].start();
    nodes.led();
    assert_eq!(nodes.all[0].put("early", 1).expect("an answer").status, 200);
    nodes.all[0].stop();
    let (log, older) = (nodes.folder.path().join("log"), nodes.folder.path().join("older"));
    copy(&log, &older);
    nodes.all[0].start();
    nodes.led();
    assert_eq!(nodes.all[0].put("late", 2).expect("an answer").status, 200);
    nodes.all[0].stop();
    std::fs::remove_dir_all(&log).expect("a folder");
    copy(&older, &log);
    nodes.all[1].start();
    nodes.led();
    for value in 0..9 {
        assert_eq!(nodes.all[1].put("other", value).expect("an answer").status, 200);
    }
    nodes.all[1].stop();
    let report = nodes.all[0].recover(&[]);
    assert_eq!(report.code, 1, "{}{}", report.out, report.err);
    let from = report.out.split("--discard-log-from ").nth(1).and_then(|rest| rest.split(' ').next());
    let from = from.and_then(|from| from.parse().ok()).unwrap_or_else(|| panic!("{}", report.out));
    let says = |words: &str| assert!(report.out.contains(words), "{words}: {}", report.out);
    says(&format!("the log went on without this node, from entry {from}: it has 9 turns of n1 with 9 events, from 20"));
    says("only this node has 1 turn of n0 with 1 events, from 20");
    (nodes, from)
}

#[test]
fn a_log_that_went_on_is_not_dropped_unless_that_is_named() {
    let (mut nodes, from) = forked();
    let refused = nodes.all[0].recover(&["--append-tail"]).fails(1);
    assert!(refused.contains(&format!("from entry {from}, and 9 turns would be lost")), "{refused}");
    let wrong = (from + 1).to_string();
    assert!(nodes.all[0].recover(&["--append-tail", "--discard-log-from", &wrong]).fails(1).contains("and not with"));
    let said =
        nodes.all[0].recover(&["--export", "tails", "--append-tail", "--discard-log-from", &from.to_string()]).ok();
    assert!(said.contains("the log has what this node has") && said.contains("refuses to start"), "{said}");
    let tail = |name: &str| std::fs::read_to_string(nodes.folder.path().join("tails").join(name)).expect("a file");
    assert!(tail("node-tail.json").contains("\"late\"") && !tail("node-tail.json").contains("\"other\""));
    assert_eq!(tail("log-tail.json").matches("\"other\"").count(), 9, "{}", tail("log-tail.json"));
    nodes.all[0].start();
    nodes.led();
    assert_eq!((nodes.all[0].register("late"), nodes.all[0].register("other")), (Some(2), None));
    // The node that had the rest has another past now.
    assert!(nodes.all[1].recover(&["--accept-loss"]).ok().contains("was put aside"));
    nodes.all[1].start();
    assert_eq!(nodes.all[1].register("late"), Some(2));
}

#[test]
fn a_log_that_went_on_can_be_taken_as_it_is() {
    let (mut nodes, _) = forked();
    nodes.all[0].recover(&["--accept-loss"]).ok();
    nodes.all[0].start();
    nodes.led();
    assert_eq!((nodes.all[0].register("late"), nodes.all[0].register("other")), (None, Some(8)));
}

/// A folder that `kelos up` ran, with a script that succeeded.
fn ran(script: &str) -> Folder {
    let text = "celos.defineWorkflow({ id: 'once', schedule: celos.hourlySchedule(), startTime: '2026-01-01T00:00Z', \
                endTime: '2026-01-01T01:00Z', schedulingStrategy: celos.serialSchedulingStrategy(1), \
                trigger: celos.alwaysTrigger(), externalService: celos.commandExternalService({ shell: 'true' }) });\n";
    let folder = Folder::with(&[(script, text), ("notes.txt", "nothing")]);
    let server = Server::up(&folder);
    eventually("planned", || folder.run(&["ls"]).out.contains("once").then_some(()));
    assert!(server.stop().success());
    folder
}

#[test]
fn all_scripts_are_moved_whatever_the_layout() {
    for script in ["workflow.js", "workflows/once.js"] {
        let folder = ran(script);
        let log = format!("file:{}/log", folder.text());
        let said = folder.run(&["move", "--to", &log]).ok();
        let name = Path::new(script).file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(said.contains(&format!("moved 1 files of definitions: workflows/{name}\n")), "{script}: {said}");
        let node = ["serve", "--port=0", "--store", &log, "--state", ".kelos", "--node", "n"];
        let server = Server::start(folder.path(), &node, "kelos deploy --server");
        eventually("the workflow", || {
            folder.run(&["ls", "--server", server.address()]).out.contains("once").then_some(())
        });
        assert!(server.stop().success());
        // It has led on the log, whose epochs go on, and is as sound as before.
        let verified = folder.run(&["verify", "--db", ".kelos"]).ok();
        assert!(!verified.contains("damaged"), "{verified}");
        let back = folder.run(&["move", "--from", &log, "--state", ".kelos"]).ok();
        assert!(back.contains(&format!("workflows/{name}")), "{back}");
        folder.run(&["verify", "--db", ".kelos"]).ok();
    }
}

#[test]
fn a_worker_asks_the_next_node_where_one_does_not_answer() {
    let mut nodes = Nodes::of_file(1).with(0, &["--at-a-time", "0"]);
    nodes.all[0].start();
    nodes.led();
    let home = Folder::with(&[]);
    let servers = format!("{NOWHERE},{}", nodes.all[0].address());
    let mut command = crate::support::kelos(&["worker", "--server", &servers, "--dir", home.text()]);
    // The variable is that of the nodes on the same machine.
    command.current_dir(home.path()).env("KELOS_STORE", nodes.store());
    let worker = Server::run(&mut command, "asks ");
    eventually("the worker is there", || {
        let found = nodes.all[0].get("/api/v1/workers")?;
        found.body["items"].as_array()?.iter().any(|one| one["remote"] == true).then_some(())
    });
    assert!(worker.stop().success());
    let mut both = crate::support::kelos(&["worker", "--server", &servers, "--store", "file:elsewhere"]);
    let refused = crate::support::Said::of(both.current_dir(home.path()).output().expect("kelos")).fails(2);
    assert!(refused.contains("expected one of them"), "{refused}");
}

#[test]
fn a_standby_answers_a_worker_once_the_leader_that_hangs_was_replaced() {
    let mut nodes = Nodes::of_file(3);
    for node in 0..3 {
        nodes = nodes.with(node, &["--at-a-time", "0"]);
    }
    nodes.all.iter_mut().for_each(|node| node.start());
    let offer = kelos_wire::OfferRequest { count: 1, free: 1, wait_millis: 60_000, ..Default::default() };
    let offer = serde_json::to_string(&offer).expect("an offer");
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent: ureq::Agent = config.timeout_global(Some(Duration::from_secs(20))).build().into();
    let status = eventually("an answer in time", || {
        let leader = nodes.led();
        let url = format!("{}/api/v1/workers/w1/offer", nodes.all[(leader + 1) % 3].address());
        nodes.all[leader].signal("STOP");
        // None where it was stopped while it wrote: then it holds the lock of the log in the folder, and nothing can be told of it.
        let answer = agent.post(&url).header("content-type", "application/json").send(&offer).ok();
        nodes.all[leader].signal("CONT");
        answer.map(|answer| answer.status().as_u16())
    });
    assert_eq!(status, 503);
}

#[test]
fn options_of_a_worker_are_refused_only_where_they_mean_nothing() {
    let folder = Folder::with(&[]);
    let refused = folder.run(&["worker", "--store", "file:log", "--metrics", "127.0.0.1:0"]).fails(2);
    assert!(refused.contains("has /metrics at its own address"), "{refused}");
    let refused = folder.run(&["worker", "--auth"]).fails(2);
    assert!(refused.contains("use --auth: expected --store, too"), "{refused}");
    let args = ["worker", "--server", NOWHERE, "--dir", "home", "--metrics", "127.0.0.1:0"];
    let mut command = crate::support::kelos(&args);
    Server::run(command.current_dir(folder.path()).env("KELOS_STORE", "file:log"), "asks ").crash();
}
