//! What the system refuses: a port that is held for a moment, files beyond `ulimit -f`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::support::{Folder, Server, eventually, kelos};

/// A workflow with a slot for each of so many minutes, run at once.
fn eager(id: &str, minutes: i64, shell: &str) -> String {
    let from = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() - 60 * minutes).expect("a time");
    format!(
        r#"celos.defineWorkflow({{
            "id": "{id}",
            "schedule": celos.minutelySchedule(),
            "startTime": "{from}",
            "schedulingStrategy": celos.serialSchedulingStrategy(2),
            "trigger": celos.alwaysTrigger(),
            "externalService": celos.commandExternalService({{"shell": {shell:?}}})
        }});
"#
    )
}

#[test]
fn a_port_that_is_in_use_for_a_moment_is_waited_for() {
    let folder = Folder::with(&[("workflows/eager.js", &eager("eager", 3, "true"))]);
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = held.local_addr().expect("its address").port();
    let child = kelos(&["up", "--port", &port.to_string()]).current_dir(folder.path()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("kelos");
    let mut said = BufReader::new(child.stderr.take().expect("what it says")).lines().map_while(Result::ok);
    let waits = format!("port {port} is in use; waiting up to 5 s for it");
    assert!(said.any(|line| line == waits), "it gave up, or waits without a word");
    drop(held);
    eventually("an answer", || (folder.run(&["ls"]).code == 0).then_some(()));
    child.kill().expect("a kill");
    child.wait().expect("its end");
}

#[test]
fn a_command_gets_no_files_but_its_own() {
    let folder = Folder::with(&[(
        "workflows/eager.js",
        &eager("eager", 3, "ls -l /proc/self/fd > files.$$; mv files.$$ files"),
    )]);
    let _server = Server::up(&folder);
    let files = eventually("a list", || std::fs::read_to_string(folder.path().join("files")).ok());
    // What the test itself was given by others is passed on, as by any program.
    assert!(!files.contains("socket:") && !files.contains(".kelos") && !files.contains("eventpoll"), "{files}");
}

#[test]
fn a_limit_on_the_size_of_files_is_told_and_loses_nothing() {
    let note = "echo ran >> ran; grep SigIgn /proc/self/status > ignored.$$; mv ignored.$$ ignored";
    let folder = Folder::with(&[("workflows/few.js", &eager("few", 3, note))]);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f 2400; exec \"$0\" up --planning-window 30d"]);
    command.arg(assert_cmd::cargo::cargo_bin!("kelos")).current_dir(folder.path()).stdin(Stdio::null());
    let server = Server::run(&mut command, "Stop with Ctrl-C");
    let ended = |folder: &Folder| {
        let states = folder.states("few");
        (states.len() >= 3 && states.iter().all(|state| state == "succeeded")).then_some(states.len())
    };
    eventually("all succeeded", || ended(&folder));
    let ignored = std::fs::read_to_string(folder.path().join("ignored")).expect("what a command ignores");
    let mask = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).expect("signals");
    assert_eq!(mask & (1 << 24), 0, "a command dies of SIGXFSZ as it does without Kelos: {ignored}");

    // What may go by anything but time and success has a slot for each time, and no backlog.
    let many =
        eager("many", 40_000, "sleep 1000").replace("celos.alwaysTrigger()", "celos.orTrigger(celos.alwaysTrigger())");
    folder.write("workflows/many.js", &many);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let health = format!("{}/api/v1/health", server.address());
    let told = eventually("the trouble is told", || {
        let said = agent.get(&health).call().expect("the server lives").body_mut().read_to_string().expect("text");
        said.contains("ulimit -f").then_some(said)
    });
    assert!(told.contains("\"troubled\"") && told.contains("no file may have more than"), "{told}");
    server.crash();

    folder.write("workflows/many.js", "");
    let before = std::fs::read_to_string(folder.path().join("ran")).expect("runs").lines().count();
    let _server = Server::up(&folder);
    let known = eventually("all known", || ended(&folder));
    assert!(known >= before, "{before} ran, {known} are known");
}
