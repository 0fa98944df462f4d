//! Several nodes over one log in a folder: with real processes.

use std::path::Path;

use crate::support::nodes::{Ledger, Nodes};
use crate::support::{Folder, Server, eventually, kelos, run_in};

/// A workflow with one slot: the hour that began last.
fn once(id: &str, shell: &str) -> String {
    let hour = jiff::Timestamp::now().as_second() / 3600 * 3600;
    let moment = |second| jiff::Timestamp::from_second(second).expect("a moment");
    format!(
        "celos.defineWorkflow({{ id: '{id}', schedule: celos.hourlySchedule(), startTime: '{}', endTime: '{}', \
         schedulingStrategy: celos.serialSchedulingStrategy(1), trigger: celos.alwaysTrigger(), \
         externalService: celos.commandExternalService({{ shell: {shell:?} }}) }});\n",
        moment(hour),
        moment(hour + 1)
    )
}

/// The states of a workflow's slots, as a node has them.
fn states(nodes: &Nodes, node: usize, workflow: &str) -> String {
    nodes.run(&["slots", workflow, "--all", "--server", &nodes.all[node].address()]).ok()
}

#[test]
fn a_standby_takes_definitions_and_changes_and_has_them_at_once() {
    let mut nodes = Nodes::of_file(4);
    (0..3).for_each(|node| nodes.all[node].start());
    let leader = nodes.led();
    let standby = (leader + 1) % 3;
    assert!(nodes.deploy(standby, "once", &once("once", "true")).ends_with("once is deployed\n"));
    for node in 0..3 {
        eventually("the workflow", || {
            let found = nodes.all[node].get("/api/v1/workflows/once")?;
            (found.status == 200).then_some(())
        });
        eventually("success", || states(&nodes, node, "once").contains("succeeded").then_some(()));
    }
    // A node shows what it has acknowledged, and says how far that is in the log.
    for value in 1..20 {
        let written = nodes.all[standby].put("key", value).expect("an answer");
        assert_eq!(written.status, 200, "{}", written.body);
        let read = nodes.all[standby].get("/api/v1/registers/test/key").expect("an answer");
        assert_eq!(read.body["value"], value);
        assert!(read.entry >= written.entry && written.entry.is_some(), "{:?} {:?}", read.entry, written.entry);
    }
    // A node with nothing begins with what the others have.
    nodes.all[3].start();
    assert_eq!(nodes.all[3].register("key"), Some(19));
    eventually("the workflow", || nodes.all[3].get("/api/v1/workflows/once").filter(|found| found.status == 200));
    let said = eventually("four nodes", || {
        let said = nodes.run(&["nodes", "--server", &nodes.all[3].address()]).ok();
        (said.contains("n0") && said.contains("n1") && said.contains("n2") && said.contains("n3")).then_some(said)
    });
    assert_eq!((said.matches("leads").count(), said.matches("stands by").count()), (1, 3), "{said}");
    assert!(said.contains(&format!("epoch 1: n{leader} since 20")) && said.contains("(the first leader)"), "{said}");
    assert!(said.contains(&format!("the log is {}, and its last entry ", nodes.store())), "{said}");
    // All run the same program, so that there is nothing to raise, and nothing that could be.
    let raise =
        |more: &[&str]| nodes.run(&[&["nodes", "raise", "--server", &nodes.all[standby].address()], more].concat());
    assert_eq!(raise(&["--dry-run"]).ok(), "entries are written in form 4 already: there is nothing to raise\n");
    let refused = raise(&["--form", "5"]).fails(1);
    assert!(refused.contains("to 5: the program of the leader writes up to form 4"), "{refused}");
}

#[test]
fn another_node_leads_after_a_kill_and_after_a_signal() {
    let mut nodes = Nodes::of_file(3);
    nodes.all.iter_mut().for_each(|node| node.start());
    let leader = nodes.led();
    assert_eq!(nodes.all[leader].put("before", 1).expect("an answer").status, 200);
    nodes.all[leader].kill();
    // Whoever is asked waits for the next leader, a while.
    let standby = (leader + 1) % 3;
    eventually("written", || nodes.all[standby].put("meanwhile", 2).filter(|answer| answer.status == 200));
    let second = nodes.led();
    assert_ne!(second, leader);
    for node in [standby, second] {
        assert_eq!(nodes.all[node].register("before"), Some(1));
    }
    nodes.all[leader].start();
    nodes.all[second].stop();
    let third = nodes.led();
    assert_ne!(third, second);
    eventually("written", || nodes.all[third].put("after", 3).filter(|answer| answer.status == 200));
    for (key, value) in [("before", 1), ("meanwhile", 2), ("after", 3)] {
        assert_eq!(nodes.all[third].register(key), Some(value));
    }
    let said = nodes.run(&["nodes", "--server", &nodes.all[third].address()]).ok();
    for (node, why) in [
        (third, "the leader before gave the lead back"),
        (second, "the leader before was not heard of"),
        (leader, "the first leader"),
    ] {
        let line = said.lines().find(|line| line.contains(why)).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(&format!(": n{node} since 20")), "{said}");
    }
}

#[test]
fn runs_go_on_while_the_leader_changes_and_end_once() {
    let mut nodes = Nodes::of_file(2).with(0, &["--at-a-time", "2"]).with(1, &["--at-a-time", "0"]);
    let ledger = Ledger::new(nodes.folder.path());
    let gate = |name: &str| {
        let file = nodes.folder.path().join(name);
        (ledger.around(&format!("until [ -e {} ]; do sleep 0.1; done", file.display())), file)
    };
    let ((first, opens_first), (second, opens_second)) = (gate("first.open"), gate("second.open"));
    nodes.all[0].start();
    assert_eq!(nodes.led(), 0);
    nodes.all[1].start();
    nodes.deploy(0, "first", &once("first", &first));
    eventually("it runs", || (ledger.counts("first") == (1, 0)).then_some(()));
    // The node that leads dies, and comes back to its commands.
    nodes.all[0].kill();
    eventually("the other leads", || (nodes.leader() == Some(1)).then_some(()));
    nodes.all[0].start();
    std::fs::write(opens_first, "").expect("a file");
    eventually("success", || states(&nodes, 1, "first").contains("succeeded").then_some(()));
    // A node runs a command while the leader dies, which is another one.
    nodes.deploy(0, "second", &once("second", &second));
    eventually("it runs", || (ledger.counts("second") == (1, 0)).then_some(()));
    nodes.all[1].kill();
    eventually("the other leads", || (nodes.leader() == Some(0)).then_some(()));
    std::fs::write(opens_second, "").expect("a file");
    eventually("success", || states(&nodes, 0, "second").contains("succeeded").then_some(()));
    assert_eq!((ledger.counts("first"), ledger.counts("second")), ((1, 1), (1, 1)));
}

#[test]
fn what_lies_on_the_disk_of_a_node_is_ignored_and_kept() {
    let mut nodes = Nodes::of_file(2);
    (0..2).for_each(|node| nodes.all[node].start());
    let leader = nodes.led();
    nodes.deploy(leader, "once", &once("once", "true"));
    let definitions = nodes.all[leader].state().join("definitions");
    let [foreign, deployed] = ["foreign.js", "once.js"].map(|file| definitions.join("workflows").join(file));
    let was = std::fs::read_to_string(&deployed).expect("a script");
    std::fs::write(&foreign, once("foreign", "true")).expect("a file");
    std::fs::write(&deployed, "broken(").expect("a file");
    let aside = definitions.join("ignored/workflows");
    eventually("set aside", || (aside.join("foreign.js").exists() && aside.join("once.js").exists()).then_some(()));
    eventually("restored", || (std::fs::read_to_string(&deployed).ok()? == was).then_some(()));
    assert!(!foreign.exists());
    assert_eq!(std::fs::read_to_string(aside.join("once.js")).expect("a file"), "broken(");
    let problems = nodes.all[leader].get("/api/v1/problems").expect("an answer").body.to_string();
    assert_eq!(problems.matches("file-ignored").count(), 2, "{problems}");
    assert!(problems.contains("ignored/workflows/foreign.js"), "{problems}");
    // While it does not run, too; and the next deployment takes nothing of it along.
    nodes.all[leader].stop();
    std::fs::write(&foreign, once("foreign", "true")).expect("a file");
    nodes.all[leader].start();
    nodes.deploy(leader, "twice", &once("twice", "true"));
    for node in 0..2 {
        eventually("the workflow", || {
            nodes.all[node].get("/api/v1/workflows/twice").filter(|found| found.status == 200)
        });
        assert_eq!(nodes.all[node].get("/api/v1/workflows/foreign").expect("an answer").status, 404);
    }
    assert!(!foreign.exists());
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).expect("a folder");
    for file in std::fs::read_dir(from).expect("files") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

/// A node that was alone when it wrote `late`, and a log that has lost that.
fn ahead() -> Nodes {
    let mut nodes = Nodes::of_file(2);
    nodes.all[0].start();
    nodes.led();
    nodes.all[1].start();
    assert_eq!(nodes.all[1].put("early", 1).expect("an answer").status, 200);
    nodes.all.iter_mut().for_each(|node| node.stop());
    let (log, older) = (nodes.folder.path().join("log"), nodes.folder.path().join("older"));
    copy(&log, &older);
    nodes.all[0].start();
    nodes.led();
    assert_eq!(nodes.all[0].put("late", 2).expect("an answer").status, 200);
    assert!(nodes.all[0].recover(&[]).fails(1).contains("another process uses it"), "while it runs");
    nodes.all[0].stop();
    copy(&older, &log);
    let state = nodes.all[0].state();
    let said = nodes.run(&["serve", "--port", "0", "--store", nodes.store(), "--state", state.to_str().expect("text")]);
    let said = said.fails(1);
    assert!(said.contains("lacks or has differently; `kelos recover` says what can be done"), "{said}");
    let found = nodes.all[0].recover(&[]);
    assert_eq!(found.code, 1, "{}{}", found.out, found.err);
    assert!(found.out.contains("--append-tail") && found.out.contains("--accept-loss"), "{}", found.out);
    assert!(nodes.all[1].recover(&[]).ok().contains("it lacks nothing"));
    nodes
}

#[test]
fn a_log_that_lost_its_end_gets_it_back_from_a_node() {
    let mut nodes = ahead();
    assert!(nodes.all[0].recover(&["--append-tail"]).ok().contains("the log has what this node has"));
    for node in [1, 0] {
        nodes.all[node].start();
        nodes.led();
        assert_eq!((nodes.all[node].register("early"), nodes.all[node].register("late")), (Some(1), Some(2)));
    }
    eventually("written", || nodes.all[0].put("later", 3).filter(|answer| answer.status == 200));
    assert_eq!(nodes.all[0].register("later"), Some(3));
}

#[test]
fn a_log_that_lost_its_end_can_be_taken_as_it_is() {
    let mut nodes = ahead();
    let said = nodes.all[0].recover(&["--accept-loss"]).ok();
    assert!(said.contains("was put aside as ") && said.contains("kelos.db.ahead-"), "{said}");
    for node in [0, 1] {
        nodes.all[node].start();
        nodes.led();
        assert_eq!((nodes.all[node].register("early"), nodes.all[node].register("late")), (Some(1), None));
    }
}

/// The line that says which turn is the last.
#[track_caller]
fn digest(said: &str) -> String {
    said.lines().find(|line| line.contains("with the digest")).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn data_are_moved_to_a_log_and_back_as_they_are() {
    let folder = Folder::with(&[("workflows/once.js", &once("once", "true"))]);
    ["defaults", "db"].iter().for_each(|name| std::fs::create_dir(folder.path().join(name)).expect("a folder"));
    let serve = |db: &str, workflows: &str, defaults: &str| {
        let args =
            ["serve", "--port=0", "--autoSchedule=1", "--db", db, "--workflows", workflows, "--defaults", defaults];
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        move |folder: &Folder| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            Server::start(folder.path(), &args, "answers at")
        }
    };
    let succeeded = |server: &Server| {
        eventually("success", || {
            let said = folder.run(&["slots", "once", "--all", "--server", server.address()]);
            (said.code == 0 && said.out.contains("succeeded")).then_some(())
        });
    };
    let own = serve("db", "workflows", "defaults");
    let server = own(&folder);
    succeeded(&server);
    let log = format!("file:{}/log", folder.text());
    // The log has only a note of its snapshot, by which nodes find it that were not told.
    let snapshots = format!("file:{}/snapshots", folder.text());
    let to = ["move", "--to", &log, "--db", "db", "--workflows", "workflows", "--defaults", "defaults"];
    let to = [&to[..], &["--snapshots", &snapshots]].concat();
    assert!(folder.run(&to).fails(1).contains("a server uses it; stop that first"));
    assert!(server.stop().success());
    let secret = folder.run(&["move", "--to", "postgres://kelos:hunter2@127.0.0.1:9/kelos", "--db", "db"]).fails(2);
    assert!(secret.contains("everybody on this machine can read") && !secret.contains("hunter2"), "{secret}");
    let missing = folder.run(&["move", "--to", "env:NO_SUCH_LOG", "--db", "db"]).fails(2);
    assert!(missing.contains("there is no variable NO_SUCH_LOG"), "{missing}");
    let there = folder.run(&to).ok();
    assert!(folder.run(&to).fails(1).contains("expected an empty one"));
    // The old place is that of a node now.
    let mut sealed = own(&folder);
    sealed.hear("it is the state of a node that follows a log");
    assert!(sealed.stop().success());
    let node = ["serve", "--port=0", "--store", &log, "--state"];
    let as_node = |state: &str| Server::start(folder.path(), &[&node[..], &[state]].concat(), "kelos deploy --server");
    let back = |state: &str| folder.run(&["move", "--from", &log, "--state", state]);
    // Back at once: nothing has changed.
    copy_all(&folder, "log", "log.again");
    let again = format!("file:{}/log.again", folder.text());
    let home = folder.run(&["move", "--from", &again, "--state", "home"]).ok();
    assert_eq!(digest(&there), digest(&home));
    let refused = run_in(folder.path(), &["serve", "--port=0", "--store", &again, "--state", "db"]).fails(1);
    assert!(refused.contains("has moved its data to a file"), "{refused}");
    // And after a node has led, which has the definitions from the log.
    let server = as_node("db");
    let other = as_node("other");
    for server in [&server, &other] {
        succeeded(server);
    }
    assert!(back("later").fails(1).contains("stop all nodes first"));
    for server in [server, other] {
        assert!(server.stop().success());
    }
    digest(&back("later").ok());
    // The command that it prints works.
    let server = serve("later", "later/definitions/workflows", "later/definitions/defaults")(&folder);
    succeeded(&server);
    assert!(server.stop().success());
}

fn copy_all(folder: &Folder, from: &str, to: &str) {
    copy(&folder.path().join(from), &folder.path().join(to));
}

#[test]
fn nodes_that_can_not_be_are_told_what_was_expected() {
    let mut nodes = Nodes::of_file(1);
    nodes.all[0].start();
    let (store, state) = (nodes.store().to_owned(), nodes.all[0].state());
    let told = |args: &[&str], code| nodes.run(&[&["serve", "--port", "0"], args].concat()).fails(code);
    let taken = told(&["--store", &store, "--state", state.to_str().expect("text")], 1);
    assert!(taken.contains("another process uses it; each node needs a folder of its own"), "{taken}");
    for (address, expected) in [
        ("", "expected one that begins with postgres://, redis://"),
        ("mongodb://127.0.0.1/kelos", "expected one that begins with postgres://, redis://"),
        ("file:", "expected a folder after file:, such as file:/"),
        ("file:/proc/nowhere", "make /proc/nowhere: "),
        ("postgres://", "failed to use the address of the log"),
    ] {
        let said = told(&["--store", address, "--state", "other"], 1);
        assert!(said.contains("failed to use the address of the log") && said.contains(expected), "{address}: {said}");
    }
    let password = told(&["--store", "postgres://kelos:hunter2@127.0.0.1:1/kelos", "--state", "other"], 2);
    assert!(password.contains("which everybody on this machine can read"), "{password}");
    assert!(password.contains("KELOS_STORE") && !password.contains("hunter2"), "{password}");
    assert!(told(&["--store", &store], 2).contains("--state <DIR>"));
    assert!(told(&["--state", "other"], 2).contains("--store <URL>"));
    assert!(told(&["--store", &store, "--state", "other", "--db", "db"], 2).contains("cannot be used with"));
    // That port has no listener.
    let mut away = kelos(&["serve", "--port", "0", "--state", "other"]);
    away.current_dir(nodes.folder.path()).env("KELOS_STORE", "redis://kelos:hunter2@127.0.0.1:1/0");
    let away = crate::support::Said::of(away.output().expect("kelos")).fails(1);
    assert!(away.contains("Connection refused") && !away.contains("hunter2"), "{away}");
}
