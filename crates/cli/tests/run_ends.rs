//! Every run ends once, and a command inherits nothing of Kelos: folders that are removed, descriptors, credentials, signals, full disks.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::support::{Folder, Said, Server, eventually, kelos};

/// One app, whose jobs run this.
fn app(command: &str) -> Folder {
    let tasks = serde_json::json!({"app": {"job_id": "{n}", "max_retry": 1, "bash_cmd": command}});
    Folder::with(&[("tasks.json", &tasks.to_string())])
}

/// Runs the job of that app, with further variables.
fn run_job(folder: &Folder, variables: &[(&str, &str)]) -> Said {
    let mut command = kelos(&["run", "app", "--job-id", "1"]);
    command.current_dir(folder.path()).envs(variables.iter().copied());
    Said::of(command.output().expect("kelos"))
}

#[test]
fn a_run_whose_folder_is_removed_ends_as_unknown() {
    let said = run_job(&app("rm -rf \"$(dirname \"$KELOS_OUTPUTS\")\"; echo gone"), &[]);
    let err = said.fails(1);
    assert!(err.contains("outcome unknown: the folder of the run was removed or moved while it ran"), "{err}");
}

#[test]
fn a_run_whose_folder_is_moved_is_ended_and_its_outcome_is_unknown() {
    let said = run_job(&app("run=$(dirname \"$KELOS_OUTPUTS\"); mv \"$run\" \"$run-moved\" && sleep 1000"), &[]);
    let err = said.fails(1);
    assert!(err.contains("the folder of the run was removed or moved while it ran, so its command was ended"), "{err}");
}

#[test]
fn credentials_of_kelos_reach_neither_shims_nor_commands() {
    let folder =
        app("env | grep -c sesame; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c sesame; env | grep -c '^KELOS_LOG='");
    let credentials =
        ["KELOS_TOKEN", "KELOS_REDIS_PASSWORD", "KELOS_WEBHDFS_TOKEN", "KELOS_SECRET_DB", "KELOS_STORE_OLD"];
    let mut variables: Vec<(&str, &str)> = credentials.map(|name| (name, "sesame")).into();
    variables.push(("KELOS_LOG", "warn"));
    assert_eq!(run_job(&folder, &variables).ok(), "0\n0\n1\n");
}

#[test]
fn commands_and_shims_have_no_descriptors_of_whoever_started_kelos() {
    let folder = app("ls -l /proc/self/fd /proc/$PPID/fd | grep -c lock.file; true");
    let program = assert_cmd::cargo::cargo_bin!("kelos").to_path_buf();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" run app --job-id 1 9> lock.file"]).arg(program).current_dir(folder.path());
    assert_eq!(Said::of(shell.stdin(Stdio::null()).output().expect("sh")).ok(), "0\n");
}

#[test]
fn what_a_command_leaves_in_the_background_is_ended_with_a_note() {
    let out = run_job(&app("sleep 1000 & echo started"), &[]).ok();
    let note = "kelos: the command has ended and left a process in the background, which Kelos ends";
    assert_eq!(out, format!("started\n{note}\n"));
}

#[test]
fn an_app_with_a_concurrency_of_zero_is_refused() {
    let folder = Folder::with(&[("tasks.json", r#"{"a": {"job_id": "{d}", "bash_cmd": "true", "concurrency": 0}}"#)]);
    let said = folder.run(&["check", "."]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!((said.out + &said.err).contains("concurrency of a is 0, expected a whole number >= 1"));
}

#[test]
fn a_byte_order_mark_of_utf_8_is_skipped_and_one_of_utf_16_is_named() {
    let text = r#"{"a": {"job_id": "{d}", "bash_cmd": "true"}}"#;
    let folder = Folder::with(&[("tasks.json", &format!("\u{feff}{text}"))]);
    folder.run(&["check", "."]).ok();
    let units: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(folder.path().join("tasks.json"), units).expect("a file");
    let said = folder.run(&["check", "."]);
    assert!((said.out + &said.err).contains("begins with the byte order mark of UTF-16, expected UTF-8"));
}

/// A command whose standard output is full.
fn full(folder: &Folder, args: &[&str]) -> Said {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    Said::of(kelos(args).current_dir(folder.path()).stdout(full).output().expect("kelos"))
}

#[test]
fn what_can_not_be_written_to_standard_output_is_an_error() {
    let folder =
        Folder::with(&[("workflows/w.js", r#"kelos.workflow("w", {schedule: "hourly", command: ["true"]});"#)]);
    for args in [
        &["types"][..],
        &["schema", "tasks"],
        &["completions", "bash"],
        &["cron", "0 0 * * *"],
        &["check", "."],
        &["plan", ".", "--from", "2026-01-01", "--to", "2026-01-02"],
        &["--help"],
        &["--version"],
    ] {
        let err = full(&folder, args).fails(1);
        let said = "error: failed to write to standard output: No space left on device (os error 28)\n";
        assert!(err.ends_with(said), "{args:?}: {err}");
    }
    let mut piped = Command::new("sh");
    piped.args(["-c", "\"$0\" types | true"]).arg(assert_cmd::cargo::cargo_bin!("kelos"));
    assert_eq!(Said::of(piped.current_dir(folder.path()).output().expect("sh")).err, "", "a broken pipe is quiet");
}

#[test]
fn a_token_that_can_not_be_shown_is_not_made() {
    let folder = Folder::with(&[]);
    let server = Server::start(folder.path(), &["up", "--auth"], "Stop with Ctrl-C");
    full(&folder, &["token", "add", "ci", "--role", "view"]).fails(1);
    let tokens = folder.json(&["token", "list", "--json"]);
    assert_eq!(tokens["items"].as_array().map(Vec::len), Some(0), "{tokens}");
    drop(server);
}

#[test]
fn a_server_outlives_the_signals_by_which_others_are_told_something() {
    let folder = Folder::with(&[("config.json", "{}")]);
    let log = folder.path().join("log");
    let mut command = kelos(&["up", "--config", "config.json"]);
    command.current_dir(folder.path()).stderr(File::create(&log).expect("a file"));
    let mut server = Server::run(command.env("KELOS_LOG", "info"), "Stop with Ctrl-C");
    folder.write("config.json", "{\"limits\": {}}");
    for (signal, said) in [
        ("HUP", "SIGHUP: scripts and apps were loaded again"),
        ("USR1", "SIGUSR1 means nothing here"),
        ("USR2", "SIGUSR2 means nothing here"),
    ] {
        server.signal(signal);
        eventually(said, || std::fs::read_to_string(&log).expect("a log").contains(said).then_some(()));
    }
    let log = std::fs::read_to_string(&log).expect("a log");
    assert!(log.contains("config.json has changed, which needs a restart"), "{log}");
    assert!(server.try_wait().is_none());
    folder.run(&["ls"]).ok();
    assert!(server.stop().success());
}

/// Starts a run of a flow and waits for its end.
fn start(folder: &Folder, flow: &str, more: &[&str]) -> Said {
    folder.run(&[&["start", flow, "--key", "r1", "--wait"], more].concat())
}

#[test]
fn values_that_can_not_be_given_as_they_are_fail_the_run() {
    let folder = Folder::with(&[(
        "workflows/w.js",
        r#"
        kelos.flow("nul", {steps: {
            a: {shell: "printf '{\"x\": \"a\\\\u0000b\"}' > $KELOS_OUTPUTS"},
            b: {needs: "a", shell: 'echo "x is [${x-unset}]"'},
        }});
        kelos.flow("nums", {steps: {a: {shell: "printf '{\"id\": 12345678901234567890123, \"n\": 9007199254740993}' > $KELOS_OUTPUTS"}}});
        kelos.flow("fits", {steps: {
            a: {shell: "printf '{\"n\": 9007199254740993, \"m\": 18446744073709551615}' > $KELOS_OUTPUTS"},
            b: {needs: "a", shell: 'test "$n $m" = "9007199254740993 18446744073709551615"'},
        }});
        kelos.flow("day", {steps: {a: {command: ["echo", "${year}"]}}});
        "#,
    )]);
    let _server = Server::up(&folder);
    eventually("the flows", || folder.run(&["ls"]).ok().contains("fits").then_some(()));
    let why = |flow: &str| folder.run(&["why", flow, "r1"]).ok();
    start(&folder, "nul", &[]).fails(1);
    assert!(why("nul").contains("has a NUL character, which no variable can have"), "{}", why("nul"));
    start(&folder, "nums", &[]).fails(1);
    assert!(why("nums").contains("its outputs can't be kept: the number at line 1 column 8"), "{}", why("nums"));
    start(&folder, "fits", &[]).ok();
    start(&folder, "day", &[]).fails(1);
    assert!(why("day").contains("`command[1]` has ${year}, which has no value in this run"), "{}", why("day"));
    folder.write("arguments.json", r#"{"id": 12345678901234567890123}"#);
    let err = folder.run(&["start", "fits", "--key", "r2", "--arguments-file", "arguments.json"]).fails(2);
    assert!(err.contains("does not fit into 64 bits"), "{err}");
}
