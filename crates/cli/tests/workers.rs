//! Workers as real processes on one folder: they share jobs, and are killed at bad moments.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Said, Server, eventually, kelos, run_in};
use serde_json::Value;

/// Notes its start and waits for a file `go` (or the end of its folder), then notes its end.
const HELD: &str = "echo $$ >> starts; while [ -e starts ] && [ ! -e go ]; do sleep 0.02; done; echo {job_id} >> ends";

/// A folder of apps that run these commands; ids are made of a date and a number.
fn folder(apps: &[(&str, &str)]) -> Folder {
    let described = |(name, command): &(&str, &str)| {
        (
            name.to_string(),
            serde_json::json!({ "job_id": "{date}_{client_id}", "bash_cmd": command, "concurrency": 100 }),
        )
    };
    let tasks: serde_json::Map<String, Value> = apps.iter().map(described).collect();
    Folder::with(&[("tasks.json", &Value::Object(tasks).to_string())])
}

fn worker(folder: &Folder, args: &[&str]) -> Server {
    let args: Vec<&str> = std::iter::once("worker").chain(args.iter().copied()).collect();
    Server::start(folder.path(), &args, "is running")
}

fn lines(folder: &Folder, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn has_lines(folder: &Folder, name: &str, count: usize) {
    eventually(&format!("{count} lines in {name}"), || (lines(folder, name).len() == count).then_some(()));
}

fn submit(folder: &Folder, app: &str, jobs: &[&str]) {
    let args: Vec<&str> = ["submit", "-a", app, "-j"].into_iter().chain(jobs.iter().copied()).collect();
    folder.run(&args).ok();
}

#[track_caller]
fn all_succeed(folder: &Folder, app: &str, count: usize) {
    eventually("all succeeded", || {
        let said = folder.run(&["slots", app, "--all", "--json"]);
        // After the end of a leader it takes a moment until another one is there.
        let slots: Value = serde_json::from_str(&said.out).ok().filter(|_| said.code == 0)?;
        let slots = slots["items"].as_array()?.clone();
        let states: Vec<&str> = slots.iter().filter_map(|slot| slot["state"].as_str()).collect();
        (states.len() == count && states.iter().all(|state| *state == "succeeded")).then_some(())
    });
}

/// The results of a job's runs, oldest first.
fn results(folder: &Folder, app: &str, job: &str) -> Vec<String> {
    let why: Value = serde_json::from_str(&folder.run(&["why", app, job, "--json"]).ok()).expect("JSON");
    let runs = why["runs"].as_array().expect("runs");
    let mut found: Vec<(u64, String)> = runs
        .iter()
        .map(|run| (run["number"].as_u64().expect("a number"), run["state"].as_str().expect("a state").to_owned()))
        .collect();
    found.sort();
    found.into_iter().map(|(_, state)| state).collect()
}

fn written(folder: &Folder) -> Value {
    let text = std::fs::read_to_string(folder.path().join(".kelos/server.json")).expect("server.json");
    serde_json::from_str(&text).expect("JSON")
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[track_caller]
fn ends(pid: &str) {
    eventually("the command ended", || (!is_alive(pid)).then_some(()));
}

fn says(folder: &Folder, args: &[&str]) -> Said {
    folder.run(args)
}

#[test]
fn two_workers_share_jobs_and_each_runs_once() {
    // The first job waits for the second, so one worker alone gets nowhere.
    let command = "echo {job_id} >> ran; while [ $(wc -l < ran) -lt 2 ]; do sleep 0.02; done";
    let folder = folder(&[("app1", command)]);
    let jobs: Vec<String> = (1..=12).map(|client| format!("20140101_{client}")).collect();
    submit(&folder, "app1", &jobs.iter().map(String::as_str).collect::<Vec<_>>());
    let one = worker(&folder, &["-n", "1"]);
    let other = worker(&folder, &["-a", "app1", "-n", "1"]);
    all_succeed(&folder, "app1", 12);
    let mut ran = lines(&folder, "ran");
    ran.sort();
    let mut expected = jobs.clone();
    expected.sort();
    assert_eq!(ran, expected);
    assert!(other.stop().success());
    assert!(one.stop().success());
}

/// Asks a worker at its own address.
fn ask(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_worker_shows_its_metrics_and_whether_it_is_ready() {
    let folder = folder(&[("app1", "true")]);
    submit(&folder, "app1", &["20140101_1"]);
    let args = ["worker", "-n", "3", "--metrics", "127.0.0.1:0"];
    let worker = Server::start(folder.path(), &args, "its metrics are at");
    let address = worker.address().trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
    eventually("a run was counted", || {
        ask(&address, "/metrics").contains("kelos_worker_runs_total{outcome=\"succeeded\"} 1").then_some(())
    });
    let text = ask(&address, "/metrics");
    assert!(text.contains("\nkelos_worker_places 3\n") && text.contains("\nkelos_worker_connected 1\n"), "{text}");
    assert!(ask(&address, "/health/live").starts_with("HTTP/1.1 200"), "it is live");
    assert!(ask(&address, "/health/ready").ends_with("ready\n"), "it is ready");
    assert!(worker.stop().success());
}

#[test]
fn an_address_of_metrics_that_is_taken_is_told() {
    let folder = folder(&[("app1", "true")]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let said = folder.run(&["worker", "--metrics", &address]).fails(1);
    let expected = format!("failed to listen on {address} for --metrics: Address already in use");
    assert!(said.contains(&expected) && said.contains("a free port, such as 127.0.0.1:9475"), "{said}");
    let said = folder.run(&["worker", "--metrics", "9475"]).fails(2);
    assert!(said.contains("invalid value '9475' for '--metrics <ADDRESS:PORT>'"), "{said}");
}

#[test]
fn fault_8_the_command_of_a_killed_worker_is_ended_and_its_job_taken_over() {
    let folder = folder(&[("app1", HELD), ("other", "true")]);
    let _leader = worker(&folder, &["-a", "other"]);
    let victim = worker(&folder, &["-a", "app1"]);
    submit(&folder, "app1", &["20140101_1"]);
    has_lines(&folder, "starts", 1);
    victim.crash();
    ends(&lines(&folder, "starts")[0]);
    let _next = worker(&folder, &["-a", "app1"]);
    has_lines(&folder, "starts", 2);
    folder.write("go", "");
    all_succeed(&folder, "app1", 1);
    assert_eq!(lines(&folder, "ends").len(), 1);
    assert_eq!(results(&folder, "app1", "20140101_1"), ["unknown", "succeeded"]);
}

#[test]
fn a_run_outlives_the_leader_and_is_reported_to_the_next() {
    let folder = folder(&[("app1", HELD), ("other", "true")]);
    let leader = worker(&folder, &["-a", "other"]);
    let _doer = worker(&folder, &["-a", "app1"]);
    submit(&folder, "app1", &["20140101_1"]);
    has_lines(&folder, "starts", 1);
    leader.crash();
    folder.write("go", "");
    all_succeed(&folder, "app1", 1);
    assert_eq!((lines(&folder, "starts").len(), lines(&folder, "ends").len()), (1, 1));
    assert_eq!(results(&folder, "app1", "20140101_1"), ["succeeded"]);
}

#[test]
fn after_the_end_of_all_workers_what_they_left_is_ended_and_done_again() {
    let folder = folder(&[("app1", HELD)]);
    let (one, other) = (worker(&folder, &["-n", "1"]), worker(&folder, &["-n", "1"]));
    submit(&folder, "app1", &["20140101_1", "20140101_2"]);
    has_lines(&folder, "starts", 2);
    one.crash();
    other.crash();
    let _next = worker(&folder, &["-n", "2"]);
    lines(&folder, "starts").iter().take(2).for_each(|pid| ends(pid));
    has_lines(&folder, "starts", 4);
    folder.write("go", "");
    all_succeed(&folder, "app1", 2);
    assert_eq!(lines(&folder, "ends").len(), 2);
}

#[test]
fn the_exit_code_of_a_run_tells_how_the_job_ended() {
    let folder = folder(&[("good", "echo hello from {job_id}"), ("bad", "echo oh; exit 3")]);
    let err = says(&folder, &["run", "good", "--timeout", "0.1"]).fails(4);
    assert!(err.contains("failed to find a job of good within 0.1 s"), "{err}");
    submit(&folder, "good", &["20140101_1"]);
    submit(&folder, "bad", &["20140101_1"]);
    let good = says(&folder, &["run", "good", "--timeout", "60"]);
    assert_eq!((good.code, good.out.as_str()), (0, "hello from 20140101_1\n"), "{}", good.err);
    assert_eq!(good.err, "run 1 of good@20140101_1 succeeded\n");
    let bad = says(&folder, &["run", "bad", "--timeout", "60", "--max-retry", "1"]);
    assert_eq!((bad.code, bad.out.as_str()), (1, "oh\n"), "{}", bad.err);
    assert!(bad.err.contains("run 1 of bad@20140101_1 failed: exited with status 3"), "{}", bad.err);
    let err = says(&folder, &["run", "nothing"]).fails(1);
    assert!(err.contains("no workflow is named \"nothing\""), "{err}");
    let _worker = worker(&folder, &[]);
    assert_eq!(folder.states("bad"), ["failed"], "one attempt in all was asked for");
}

/// Apps of which one takes few jobs, and another depends on it.
fn parents() -> Folder {
    let tasks = serde_json::json!({
        "first": { "job_id": "{n}", "bash_cmd": "true", "valid_if_or": { "n": ["1", "2"] } },
        "second": { "job_id": "{n}", "bash_cmd": "true", "depends_on": { "app_name": ["first"] } },
    });
    Folder::with(&[("tasks.json", &tasks.to_string())])
}

#[test]
fn a_run_of_a_job_that_is_not_valid_says_so_at_once() {
    let folder = parents();
    let err = says(&folder, &["run", "first", "--job-id", "5", "--timeout", "100000"]).fails(1);
    assert!(err.contains("failed to run first@5: it was skipped: the job is not valid: expected n to be"), "{err}");
}

#[test]
fn a_run_says_what_its_job_waits_for() {
    let folder = parents();
    let err = says(&folder, &["run", "second", "--timeout", "0.1"]).fails(4);
    assert!(err.contains("`kelos submit -a second -j JOB_ID` submits one"), "{err}");
    let err = says(&folder, &["run", "second", "--job-id", "1", "--timeout", "0.1"]).fails(4);
    assert!(err.contains("second@1: it could not start within 0.1 s: waits for 1 job: first@1"), "{err}");
    let err = says(&folder, &["run", "second", "--timeout", "0.1"]).fails(4);
    assert!(err.contains("1 job of second waits for parents, such as second@1: waits for 1 job"), "{err}");
    let err = says(&folder, &["run", "second", "--job-id", "5", "--timeout", "0.1"]).fails(4);
    assert!(err.contains("second@5: it could not start"), "{err}");
    assert!(err.contains("first@5 skipped"), "{err}");
    let err = says(&folder, &["run", "second", "--timeout", "0.1"]).fails(4);
    assert!(err.contains("2 jobs of second wait for parents"), "{err}");
}

#[test]
fn a_run_past_the_scheduler_leaves_no_state() {
    let folder = folder(&[("good", "echo hello from {job_id}"), ("bad", "exit 3")]);
    let out = says(&folder, &["run", "good", "--bypass-scheduler", "--job-id", "20140101_07"]).ok();
    assert_eq!(out, "hello from 20140101_07\n");
    says(&folder, &["run", "bad", "--bypass-scheduler", "--job-id", "20140101_1"]).fails(1);
    assert!(!folder.path().join(".kelos").exists());
    let err = says(&folder, &["run", "good", "--bypass-scheduler", "--job-id", "1"]).fails(1);
    assert!(err.contains("failed to run good 1: "), "{err}");
}

#[test]
fn of_two_runs_of_one_job_id_exactly_one_happens() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    let start = || {
        let mut command = kelos(&["run", "app1", "--job-id", "20140101_1", "--timeout", "60"]);
        command.current_dir(folder.path()).spawn().expect("kelos")
    };
    let mut both = [start(), start()];
    let mut codes = both.each_mut().map(|one| one.wait().expect("its end").code());
    codes.sort();
    assert_eq!((codes, lines(&folder, "ran").len()), ([Some(0), Some(1)], 1));
    let err = says(&folder, &["run", "app1", "--job-id", "20140101_1"]).fails(1);
    assert!(err.contains("it exists already, and is succeeded"), "{err}");
}

#[test]
fn a_crontab_of_short_runs_strands_no_job() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    for client in 1..=4 {
        let job = format!("20140101_{client}");
        submit(&folder, "app1", &[&job]);
        let said = says(&folder, &["run", "app1", "--timeout", "0"]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    assert_eq!(folder.states("app1"), ["succeeded"; 4]);
    assert_eq!(lines(&folder, "ran").len(), 4);
    assert!(std::fs::read_dir(folder.path().join(".kelos/workers")).expect("a folder").next().is_none());
}

#[test]
fn of_many_submits_and_runs_at_once_in_a_fresh_folder_no_job_is_left_with_nobody() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    std::thread::scope(|scope| {
        for client in 1..=5 {
            let job = format!("20140101_{client}");
            let folder = &folder;
            scope.spawn(move || submit(folder, "app1", &[&job]));
        }
        for _ in 0..3 {
            scope.spawn(|| says(&folder, &["run", "app1", "--timeout", "0"]));
        }
    });
    let states = folder.states("app1");
    assert!(states.len() == 5 && states.iter().all(|state| state == "succeeded" || state == "queued"), "{states:?}");
    let left = states.iter().filter(|state| *state == "queued").count();
    for _ in 0..left {
        says(&folder, &["run", "app1", "--timeout", "0"]).ok();
    }
    assert_eq!(folder.states("app1"), ["succeeded"; 5]);
    assert_eq!(lines(&folder, "ran").len(), 5);
}

#[test]
fn fault_3_what_has_succeeded_is_not_run_again_by_being_submitted_again() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    submit(&folder, "app1", &["20140101_1"]);
    submit(&folder, "app1", &["20140101_1"]);
    says(&folder, &["run", "app1", "--timeout", "60"]).ok();
    submit(&folder, "app1", &["20140101_1"]);
    says(&folder, &["run", "app1", "--timeout", "0.2"]).fails(4);
    assert_eq!(lines(&folder, "ran").len(), 1);
}

#[test]
fn fault_5_a_command_that_is_missing_is_a_failure_and_counts_as_an_attempt() {
    let folder = folder(&[("app1", "no-such-program {job_id}")]);
    submit(&folder, "app1", &["20140101_1"]);
    for number in 1..=2 {
        let err = says(&folder, &["run", "app1", "--timeout", "60", "--max-retry", "2"]).fails(1);
        let expected = format!("run {number} of app1@20140101_1 failed: exited with status 127");
        assert!(err.contains(&expected), "{err}");
    }
    says(&folder, &["run", "app1", "--timeout", "0.2", "--max-retry", "2"]).fails(4);
}

#[test]
fn fault_10_a_job_that_runs_does_not_block_those_behind_it() {
    let command =
        "echo {job_id} >> starts; while [ {client_id} = 1 ] && [ -e starts ] && [ ! -e go ]; do sleep 0.02; done";
    let folder = folder(&[("app1", command)]);
    let _held = worker(&folder, &["-n", "1"]);
    submit(&folder, "app1", &["20140101_1"]);
    has_lines(&folder, "starts", 1);
    submit(&folder, "app1", &["20140101_2", "20140101_3"]);
    says(&folder, &["run", "app1", "--timeout", "60"]).ok();
    says(&folder, &["run", "app1", "--timeout", "60"]).ok();
    assert_eq!(lines(&folder, "starts"), ["20140101_1", "20140101_2", "20140101_3"]);
    folder.write("go", "");
    all_succeed(&folder, "app1", 3);
}

#[test]
fn fault_11_the_same_job_id_of_two_apps_is_two_jobs() {
    let folder = folder(&[("app1", "echo one >> ran"), ("app2", "echo two >> ran")]);
    folder.run(&["submit", "-a", "app1", "app2", "-j", "20140101_1"]).ok();
    let _worker = worker(&folder, &["-n", "2"]);
    all_succeed(&folder, "app1", 1);
    all_succeed(&folder, "app2", 1);
    let mut ran = lines(&folder, "ran");
    ran.sort();
    assert_eq!(ran, ["one", "two"]);
}

#[test]
fn only_who_can_read_the_token_gets_jobs() {
    let folder = folder(&[("app1", "true")]);
    let _worker = worker(&folder, &[]);
    let mode = std::fs::metadata(folder.path().join(".kelos/server.json")).expect("server.json").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let address = written(&folder)["address"].as_str().expect("an address").to_owned();
    let url = format!("{address}/api/v1/workers/thief/offer");
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    for (header, value) in [("authorization", "Bearer guess"), ("x-nothing", "at all")] {
        let request = agent.post(&url).header(header, value).content_type("application/json");
        let said = request.send("{\"free\":1,\"count\":1}").expect("an answer").body_mut().read_to_string();
        let problem: Value = serde_json::from_str(&said.expect("text")).expect("JSON");
        assert_eq!(problem["type"], "urn:kelos:problem:unknown-worker");
    }
}

#[test]
fn questions_are_answered_where_nobody_works() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    submit(&folder, "app1", &["20140101_1"]);
    let slots = folder.run(&["slots", "app1"]).ok();
    assert!(slots.contains("20140101_1") && slots.contains("queued"), "{slots}");
    // Whoever was killed leaves word of where it was.
    worker(&folder, &["-a", "app1"]).crash();
    let why = folder.run(&["why", "app1", "20140101_1"]).ok();
    assert!(why.contains("app1@20140101_1"), "{why}");
    folder.run(&["kill", "app1", "20140101_1"]);
    folder.run(&["rerun", "app1", "20140101_1"]);
    let _worker = worker(&folder, &[]);
    all_succeed(&folder, "app1", 1);
}

#[test]
fn commands_tell_of_mistakes_in_the_apps_that_they_are_about() {
    let tasks = r#"{
        "a": {"job_id": "{n}", "bash_cmd": "true"},
        "b": {"job_id": "{n}", "bash_cmd": "true", "depends_on": {"app_name": ["nowhere"]}}
    }"#;
    let folder = Folder::with(&[("tasks.json", tasks)]);
    let mistake = "no workflow is named \"nowhere\"";
    let said = folder.run(&["submit", "-a", "a", "-j", "1"]);
    assert!(said.code == 0 && !said.err.contains(mistake), "{said:?}");
    let said = folder.run(&["submit", "-a", "b", "-j", "1"]);
    assert!(said.code != 0 && said.err.contains(mistake), "{said:?}");
    assert!(!said.err.contains("WARN"), "{said:?}");
}

#[test]
fn commands_below_a_folder_find_its_jobs() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    let below = folder.path().join("a/b");
    std::fs::create_dir_all(&below).expect("a folder");
    run_in(&below, &["submit", "-a", "app1", "-j", "20140101_1", "20140101_2"]).ok();
    run_in(&below, &["run", "app1", "--timeout", "60"]).ok();
    let _worker = Server::start(&below, &["worker"], "is running");
    all_succeed(&folder, "app1", 2);
    assert_eq!(run_in(&below, &["slots", "app1"]).ok().matches("succeeded").count(), 2);
    assert!(!below.join(".kelos").exists() && !folder.path().join("a/.kelos").exists());
    assert_eq!(lines(&folder, "ran").len(), 2);
}

#[test]
fn a_worker_says_that_a_server_runs_its_jobs_itself() {
    let folder = folder(&[("app1", "true")]);
    let _up = Server::up(&folder);
    let err = says(&folder, &["worker"]).fails(1);
    assert!(err.contains("the server there runs them itself") && err.contains("kelos up --workers"), "{err}");
}

#[test]
fn a_worker_is_told_of_apps_that_nobody_has() {
    let folder = folder(&[("app1", "true")]);
    let err = says(&folder, &["worker", "-a", "app1", "ap2"]).fails(1);
    assert!(err.contains("no workflow is named \"ap2\""), "{err}");
    assert!(!Path::new(&folder.path().join(".kelos/server.json")).exists(), "it ended in good order");
}

#[test]
fn a_worker_says_that_there_are_no_apps_and_waits_for_them() {
    let folder = Folder::with(&[]);
    let mut worker = worker(&folder, &[]);
    worker.hear("there are no apps here yet: tasks.json is missing in ");
    folder.write("tasks.json", r#"{"app1": {"job_id": "{n}", "bash_cmd": "true"}}"#);
    eventually("the app is there", || (folder.run(&["submit", "-a", "app1", "-j", "1"]).code == 0).then_some(()));
    worker.hear("app1@1 run 1 succeeded");
}

#[test]
fn that_the_apps_are_gone_is_said_once() {
    let folder = folder(&[("app1", "true"), ("app2", "true")]);
    submit(&folder, "app1", &["20140101_1"]);
    std::fs::remove_file(folder.path().join("tasks.json")).expect("no file");
    let gone = "tasks.json is gone: 2 workflows of it are not defined any more";
    let err = says(&folder, &["run", "app1", "--timeout", "0.1"]).fails(4);
    assert!(err.contains(gone), "{err}");
    let err = says(&folder, &["run", "app1", "--timeout", "0.1"]).fails(4);
    assert!(!err.contains(gone), "{err}");
}

#[test]
fn whoever_submits_or_runs_is_not_told_what_is_unusual_about_apps() {
    let odd = r#"{"app1": {"job_id": "{n}", "bash_cmd": "true", "team": "true"}}"#;
    let folder = Folder::with(&[("tasks.json", odd)]);
    assert!(folder.run(&["check"]).out.contains("\"team\""));
    assert_eq!(says(&folder, &["submit", "-a", "app1", "-j", "1"]).err, "");
    assert_eq!(says(&folder, &["run", "app1", "--timeout", "60"]).err, "run 1 of app1@1 succeeded\n");
    folder.write("tasks.json", &odd.replace("bash_cmd", "depends_on"));
    let err = says(&folder, &["submit", "-a", "app1", "-j", "2"]).err;
    assert!(err.contains("tasks.json:1:"), "{err}");
}

#[test]
fn a_server_may_hand_its_jobs_to_workers() {
    let folder = folder(&[("app1", "echo {job_id} >> ran")]);
    let up = Server::start(folder.path(), &["up", "--workers"], "Stop with Ctrl-C");
    submit(&folder, "app1", &["20140101_1"]);
    let why = folder.run(&["why", "app1", "20140101_1"]).ok();
    assert!(why.contains("worker"), "{why}");
    let _worker = worker(&folder, &[]);
    all_succeed(&folder, "app1", 1);
    assert_eq!(written(&folder)["address"], up.address());
}

#[test]
fn the_names_and_options_of_stolos_are_understood() {
    let folder = folder(&[("app1", "echo base-{app_name}-{job_id}-{client_id}")]);
    let stolos = |name: &str, args: &[&str]| {
        let program = folder.path().join(name);
        if !program.exists() {
            std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("kelos"), &program).expect("a link");
        }
        let output = Command::new(program).args(args).current_dir(folder.path()).env("STOLOS_TIMEOUT", "60").output();
        let output = output.expect("stolos");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let submitted = stolos("stolos-submit", &["-a", "app1", "-j", "20140101_1", "20140101_2"]);
    assert_eq!(submitted, (Some(0), "app1@20140101_1 was opened\napp1@20140101_2 was opened\n".to_owned()));
    assert_eq!(stolos("stolos", &["-a", "app1"]), (Some(0), "base-app1-20140101_1-1\n".to_owned()));
    let more = stolos("stolos", &["-a", "app1", "--qb_redis_host", "x", "--bash_cmd", "x{job_id}", "y", "z"]);
    assert_eq!(more, (Some(0), "base-app1-20140101_2-2x20140101_2 y z\n".to_owned()));
    let late = stolos(
        "stolos",
        &["--bypass_scheduler", "-a", "app1", "--job_id", "20140101_7", "--watch", "0.2", "--bash_cmd", "; sleep 60"],
    );
    assert_eq!(late, (Some(1), "base-app1-20140101_7-7\n".to_owned()));
}

#[test]
fn jobs_may_begin_with_a_minus_and_commands_may_name_the_runner_s_options() {
    let app =
        r#"{"count": {"job_id": "{n}", "bash_cmd": "echo {n} {max_retry} {qb_zookeeper_timeout}", "max_retry": 3}}"#;
    let folder = Folder::with(&[("tasks.json", app)]);
    assert_eq!(
        folder.run(&["submit", "-a", "count", "-j", "-1", "2"]).ok(),
        "count@-1 was opened\ncount@2 was opened\n"
    );
    assert_eq!(folder.run(&["run", "count", "--timeout", "60"]).ok(), "-1 3 5\n");
    assert!(folder.run(&["why", "count", "-1"]).ok().starts_with("count@-1  succeeded"));
    assert_eq!(folder.run(&["parents", "count", "-1"]).ok(), "count -1 waits for nothing\n");
}

fn signal(which: &str, pid: &str) {
    assert!(Command::new("kill").args([which, pid]).status().expect("kill").success());
}

/// Whether a process does something of its own when it is interrupted.
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

#[test]
fn a_run_on_its_way_out_can_be_interrupted() {
    let folder = folder(&[("app1", "true"), ("other", "true")]);
    let leader = worker(&folder, &["-a", "other", "-n", "1"]);
    let pid = leader.said.split(':').nth(1).expect("a name").to_owned();
    let mut run = kelos(&["run", "app1", "--timeout", "60"]).current_dir(folder.path()).spawn().expect("kelos");
    let url = format!("{}/api/v1/workers", written(&folder)["address"].as_str().expect("an address"));
    let heard = || ureq::get(&url).call().ok()?.body_mut().read_to_string().ok();
    eventually("two workers", || heard().filter(|text| text.matches("\"name\"").count() == 2));
    eventually("that it listens to signals", || catches_interrupts(run.id()).then_some(()));
    // It can't say that it leaves, and nobody tells it why there was no job.
    signal("-STOP", &pid);
    let code = eventually("its end", || {
        signal("-INT", &run.id().to_string());
        run.try_wait().expect("a process")
    });
    signal("-CONT", &pid);
    assert!([Some(4), Some(130)].contains(&code.code()), "{code}");
    assert!(leader.stop().success());
}

#[test]
fn fault_8_a_worker_that_hung_is_not_believed_and_begins_anew() {
    let folder = folder(&[("app1", HELD), ("other", "true")]);
    let _leader = worker(&folder, &["-a", "other"]);
    let mut hung = worker(&folder, &["-a", "app1", "-n", "1"]);
    // Its name says its process.
    let pid = hung.said.split(':').nth(1).expect("a name").to_owned();
    submit(&folder, "app1", &["20140101_1"]);
    has_lines(&folder, "starts", 1);
    signal("-STOP", &pid);
    let _next = worker(&folder, &["-a", "app1", "-n", "1"]);
    has_lines(&folder, "starts", 2);
    ends(&lines(&folder, "starts")[0]);
    signal("-CONT", &pid);
    hung.hear("it registers again");
    folder.write("go", "");
    all_succeed(&folder, "app1", 1);
    assert_eq!(lines(&folder, "ends").len(), 1);
    assert_eq!(results(&folder, "app1", "20140101_1"), ["unknown", "succeeded"]);
    assert!(hung.stop().success());
}
