//! What becomes of local commands when servers and shims die.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kelos_executors::local::{Check, Limits, Outcome, RunRef, RunSpec};
use nix::sys::signal::Signal;

use crate::local_support::{Fixture, SHIM, code, is_alive, kill, launcher, launcher_with, parent, read, until};

/// Counts itself and ends with status 9 once it may.
const UNTIL_GO: &str = "echo ran >> count; while [ ! -e go ]; do sleep 0.01; done; exit 9";

/// A server of its own, killed without warning as soon as the run is started.
fn start_by_a_server_that_dies(fixture: &Fixture, spec: &RunSpec) {
    let text = serde_json::to_string(spec).unwrap();
    let mut server =
        Command::new(SHIM).arg("serve").arg(fixture.root()).arg(text).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("started "), "{line:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_new_runtime_adopts_the_run() {
    let fixture = Fixture::new();
    let spec = fixture.script(UNTIL_GO);
    let first = tokio::runtime::Runtime::new().unwrap();
    let started = first.block_on(fixture.launcher.start(&spec)).unwrap();
    drop(first);
    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        let launcher = launcher(&fixture.root());
        assert_eq!(launcher.check(&spec.run).await.unwrap(), Check::Running { external_id: started.external_id });
        let waiting = tokio::spawn({
            let (launcher, run) = (launcher.clone(), spec.run.clone());
            async move { launcher.wait(&run).await }
        });
        std::fs::write(fixture.work("go"), "").unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().outcome, code(9));
    });
}

#[tokio::test]
async fn a_run_outlives_its_server() {
    let fixture = Fixture::new();
    let spec = fixture.script(UNTIL_GO);
    start_by_a_server_that_dies(&fixture, &spec);
    assert!(matches!(fixture.launcher.check(&spec.run).await.unwrap(), Check::Running { .. }));
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted);
    std::fs::write(fixture.work("go"), "").unwrap();
    assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap().outcome, code(9));
    assert_eq!(read(&fixture.work("count")), "ran\n");
}

/// The server dies before, while and after its shim takes the claim; the next server starts the run
/// again, as it can't know.
#[tokio::test]
async fn whenever_the_server_dies_nothing_is_run_twice() {
    let fixture = Fixture::new();
    for number in 0..40 {
        let mut spec = fixture.script(&format!("echo ran >> count-{number}; exit 9"));
        (spec.run.number, spec.run_id) = (number, format!("flow@key#{number}"));
        let text = serde_json::to_string(&spec).unwrap();
        let mut server =
            Command::new(SHIM).arg("serve").arg(fixture.root()).arg(text).stdout(Stdio::null()).spawn().unwrap();
        // Not to wait for something, but to hit every moment of a start.
        std::thread::sleep(Duration::from_micros(250) * u32::try_from(number).unwrap());
        server.kill().unwrap();
        server.wait().unwrap();
        fixture.launcher.start(&spec).await.unwrap();
        let exit = fixture.launcher.wait(&spec.run).await.unwrap();
        assert_eq!(exit.outcome, code(9), "run {number}");
        let count = read(&fixture.work(&format!("count-{number}")));
        assert_eq!(count, "ran\n", "run {number}");
    }
}

#[tokio::test]
async fn an_adopted_run_can_be_cancelled() {
    let fixture = Fixture::new();
    let spec = fixture.script(UNTIL_GO);
    start_by_a_server_that_dies(&fixture, &spec);
    assert_eq!(fixture.launcher.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
}

#[tokio::test]
async fn a_run_that_ended_without_a_server_is_known() {
    let fixture = Fixture::new();
    let spec = fixture.script(UNTIL_GO);
    start_by_a_server_that_dies(&fixture, &spec);
    std::fs::write(fixture.work("go"), "").unwrap();
    let shim = fixture.shim_pid(&spec.run);
    until("the end of the shim", || !is_alive(shim));
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted);
    match fixture.launcher.check(&spec.run).await.unwrap() {
        Check::Ended(exit) => assert_eq!(exit.outcome, code(9)),
        other => panic!("{other:?}"),
    }
    assert_eq!(read(&fixture.work("count")), "ran\n");
}

#[tokio::test]
async fn a_dead_shim_makes_the_outcome_unknown_and_leaves_nobody() {
    let fixture = Fixture::new();
    // A child of the group, one in a session of its own, and one without the environment.
    let spec = fixture.script(
        "echo ran >> count
         setsid sh -c 'echo $$ > escaped; exec sleep 1000' &
         env -i /bin/sh -c 'echo $$ > bare; exec /bin/sleep 1000' &
         echo $$ > main; wait",
    );
    fixture.launcher.start(&spec).await.unwrap();
    let pids = ["main", "escaped", "bare"].map(|file| fixture.pid(file));
    let waiting = tokio::spawn({
        let (launcher, run) = (fixture.launcher.clone(), spec.run.clone());
        async move { launcher.wait(&run).await }
    });
    kill(fixture.shim_pid(&spec.run), Signal::SIGKILL);
    let exit = waiting.await.unwrap().unwrap();
    let Outcome::Unknown { why } = &exit.outcome else { panic!("{exit:?}") };
    assert_eq!(why, "the process that looked after the command died");
    assert!(!pids.into_iter().any(is_alive));
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted);
    assert_eq!(fixture.launcher.check(&spec.run).await.unwrap(), Check::Ended(exit.clone()));
    assert_eq!(fixture.launcher.cancel(&spec.run).await.unwrap(), exit);
    assert_eq!(read(&fixture.work("count")), "ran\n");
}

#[tokio::test]
async fn a_shim_that_hangs_is_killed_with_its_run() {
    let fixture = Fixture::new();
    let mut spec = fixture.script(
        "env -i PATH=\"$PATH\" setsid sh -c 'echo $$ > bare; exec sleep 1000' &
         echo $$ > main; exec sleep 1000",
    );
    spec.grace = Some(Duration::from_millis(10));
    let limits = Limits { shim_margin: Duration::from_millis(200), ..Limits::default() };
    let launcher = launcher_with(&fixture.root(), limits);
    launcher.start(&spec).await.unwrap();
    let pids = [fixture.pid("main"), fixture.pid("bare"), fixture.shim_pid(&spec.run)];
    kill(pids[2], Signal::SIGSTOP);
    assert_eq!(launcher.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
    assert!(!pids.into_iter().any(is_alive));
}

#[tokio::test]
async fn a_claim_of_another_boot_is_unknown_and_nobody_is_killed() {
    let fixture = Fixture::new();
    let spec = fixture.script(UNTIL_GO);
    fixture.launcher.start(&spec).await.unwrap();
    let mut claim = fixture.json(&spec.run, "claim");
    claim["host"] = "another boot".into();
    claim.as_object_mut().unwrap().remove("check");
    let path = fixture.launcher.dirs().path(&spec.run).join("claim");
    std::fs::write(path, claim.to_string()).unwrap();
    let shim = fixture.shim_pid(&spec.run);
    match fixture.launcher.check(&spec.run).await.unwrap() {
        Check::Ended(exit) => assert!(matches!(exit.outcome, Outcome::Unknown { .. }), "{exit:?}"),
        other => panic!("{other:?}"),
    }
    assert!(is_alive(shim), "in truth it is this boot's, and must not be touched");
    std::fs::write(fixture.work("go"), "").unwrap();
    until("the end of the shim", || !is_alive(shim));
    match fixture.launcher.check(&spec.run).await.unwrap() {
        Check::Ended(exit) => assert!(matches!(exit.outcome, Outcome::Unknown { .. }), "an outcome never changes"),
        other => panic!("{other:?}"),
    }
}

/// Another run of the same command.
fn numbered(spec: &RunSpec, number: u64) -> RunSpec {
    let mut spec = spec.clone();
    (spec.run.number, spec.run_id) = (number, format!("flow@key#{number}"));
    spec
}

#[tokio::test]
async fn a_dead_fork_server_costs_no_run() {
    let fixture = Fixture::new();
    let first = fixture.script(UNTIL_GO);
    fixture.launcher.start(&first).await.unwrap();
    let fork_server = parent(fixture.shim_pid(&first.run));
    kill(fork_server, Signal::SIGKILL);
    until("the end of the fork server", || !is_alive(fork_server));
    let second = numbered(&first, 2);
    assert!(!fixture.launcher.start(&second).await.unwrap().adopted);
    assert_ne!(parent(fixture.shim_pid(&second.run)), fork_server);
    assert!(matches!(fixture.launcher.check(&first.run).await.unwrap(), Check::Running { .. }));
    std::fs::write(fixture.work("go"), "").unwrap();
    for spec in [&first, &second] {
        assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap().outcome, code(9));
    }
    assert_eq!(read(&fixture.work("count")), "ran\nran\n");
}

/// The fork server dies before, while and after it forks a shim.
#[tokio::test(flavor = "multi_thread")]
async fn whenever_the_fork_server_dies_nothing_is_run_twice_and_nothing_is_lost() {
    let fixture = Fixture::new();
    let base = fixture.script("echo ran >> count-$KELOS_RUN_ID; exit 9");
    let shim = fixture.script("exec sleep 1000");
    for number in 0..40 {
        let victim = numbered(&shim, 1000 + number);
        fixture.launcher.start(&victim).await.unwrap();
        let fork_server = parent(fixture.shim_pid(&victim.run));
        let spec = numbered(&base, number);
        let starting = tokio::spawn({
            let (launcher, spec) = (fixture.launcher.clone(), spec.clone());
            async move { launcher.start(&spec).await }
        });
        // Not to wait for something, but to hit every moment of a start.
        std::thread::sleep(Duration::from_micros(50) * u32::try_from(number).unwrap());
        kill(fork_server, Signal::SIGKILL);
        starting.await.unwrap().unwrap();
        assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap().outcome, code(9), "run {number}");
        assert_eq!(read(&fixture.work(&format!("count-flow@key#{number}"))), "ran\n", "run {number}");
        assert_eq!(fixture.launcher.cancel(&victim.run).await.unwrap().outcome, Outcome::Killed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_server_that_hangs_is_replaced() {
    let fixture = Fixture::new();
    let limits = Limits { start_patience: Duration::from_millis(300), ..Limits::default() };
    let launcher = launcher_with(&fixture.root(), limits);
    let first = fixture.script(UNTIL_GO);
    launcher.start(&first).await.unwrap();
    let fork_server = parent(fixture.shim_pid(&first.run));
    kill(fork_server, Signal::SIGSTOP);
    let second = numbered(&first, 2);
    launcher.start(&second).await.unwrap();
    until("the end of the fork server", || !is_alive(fork_server));
    std::fs::write(fixture.work("go"), "").unwrap();
    for spec in [&first, &second] {
        assert_eq!(launcher.wait(&spec.run).await.unwrap().outcome, code(9));
    }
    assert_eq!(read(&fixture.work("count")), "ran\nran\n");
}

#[tokio::test]
async fn the_fork_server_ends_with_its_server_and_runs_do_not() {
    let fixture = Fixture::new();
    let spec = fixture.script("while [ ! -e fork ]; do sleep 0.01; done; echo ran >> count; exit 9");
    let text = serde_json::to_string(&spec).unwrap();
    let mut server =
        Command::new(SHIM).arg("serve").arg(fixture.root()).arg(text).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let fork_server = parent(fixture.shim_pid(&spec.run));
    server.kill().unwrap();
    server.wait().unwrap();
    until("the end of the fork server", || !is_alive(fork_server));
    assert!(is_alive(fixture.shim_pid(&spec.run)));
    std::fs::write(fixture.work("fork"), "").unwrap();
    assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap().outcome, code(9));
}

/// Earlier versions execute a whole program as the shim of each run. Such a run is in its folder as any other.
#[tokio::test]
async fn a_run_of_an_earlier_version_is_adopted() {
    let fixture = Fixture::new();
    let run = RunRef::new("flow", "key", 7);
    let dir = fixture.launcher.dirs().path(&run);
    std::fs::create_dir_all(&dir).unwrap();
    let script = "while [ ! -e go ]; do sleep 0.01; done
         echo '{\"outcome\":\"exited\",\"code\":5,\"started_at_ms\":1,\"ended_at_ms\":2}' > \"$0/exit.new\"
         mv \"$0/exit.new\" \"$0/exit.json\"";
    let mut shim = Command::new("sh");
    let mut shim = shim.args(["-c", script]).arg(&dir).current_dir(fixture.work("")).spawn().unwrap();
    let pid = i32::try_from(shim.id()).unwrap();
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    let started: u64 = stat[stat.rfind(')').unwrap()..].split(' ').nth(20).unwrap().parse().unwrap();
    let boot = read(Path::new("/proc/sys/kernel/random/boot_id"));
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let claim = serde_json::json!({
        "run_id": "flow@key#7", "tag": "of an earlier version", "shim": { "pid": pid, "started": started },
        "host": format!("{} {}", boot.trim(), namespace.display()), "claimed_at_ms": 1,
    });
    std::fs::write(dir.join("claim"), format!("{claim}\n{{\"pid\":1,\"started\":2}}")).unwrap();
    let mut spec = fixture.script("echo ran >> count");
    (spec.run, spec.run_id) = (run.clone(), "flow@key#7".into());
    assert_eq!(fixture.launcher.check(&run).await.unwrap(), Check::Running { external_id: "1".into() });
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted);
    let waiting = tokio::spawn({
        let launcher = fixture.launcher.clone();
        async move { launcher.wait(&run).await }
    });
    std::fs::write(fixture.work("go"), "").unwrap();
    assert_eq!(tokio::task::spawn_blocking(move || shim.wait()).await.unwrap().unwrap().code(), Some(0));
    assert_eq!(waiting.await.unwrap().unwrap().outcome, code(5));
    assert_eq!(read(&fixture.work("count")), "");
}
