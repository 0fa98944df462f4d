//! Secrets from the script to the page, on servers and workers, and commands as other users.

use std::path::Path;

use crate::support::{Folder, Server, eventually, kelos};

const VALUE: &str = "hunter2-or-more";

const WAREHOUSE: &str = r#"kelos.workflow("load", {
    schedule: "0 0 1 1 1 ? 2020",
    startTime: "2020-01-01T00:00Z",
    shell: 'echo "password $DB_PASSWORD"; echo "{\\"token\\": \\"$DB_PASSWORD\\"}" > "$KELOS_OUTPUTS"; echo "$DB_PASSWORD" >&2',
    env: {DB_PASSWORD: {secret: "SOURCE"}},
});
"#;

const SLOT: &str = "2020-01-01T01:00Z";

fn folder(source: &str) -> Folder {
    Folder::with(&[("workflows/warehouse.js", &WAREHOUSE.replace("SOURCE", source))])
}

/// All files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map_while(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn up(folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> Server {
    let args: Vec<&str> = std::iter::once("up").chain(args.iter().copied()).collect();
    Server::run(kelos(&args).current_dir(folder.path()).envs(variables.iter().copied()), "Stop with")
}

#[track_caller]
fn ends(folder: &Folder, workflow: &str, state: &str) {
    eventually(&format!("{workflow} {state}"), || {
        folder.states(workflow).first().is_some_and(|now| now == state).then_some(())
    });
}

#[test]
fn a_secret_is_given_to_the_command_and_is_nowhere_else() {
    let folder = folder("env:KELOS_SECRET_DB");
    let _server = up(&folder, &[], &[("KELOS_SECRET_DB", VALUE)]);
    folder.run(&["rerun", "load", SLOT]).ok();
    ends(&folder, "load", "succeeded");
    let log = folder.run(&["logs", "load", SLOT]).ok();
    assert!(log.contains("password ••••••\n") && log.contains("KELOS_OUTPUTS has a secret, which is masked"), "{log}");
    for args in [&["why", "load", SLOT, "--json"][..], &["events", "--json"], &["export", "load"], &["ls", "--json"]] {
        let said = folder.run(args);
        assert!(!said.out.contains(VALUE) && !said.err.contains(VALUE), "{args:?}: {}", said.out);
    }
    let why = folder.json(&["why", "load", SLOT, "--json"]);
    assert_eq!(why["runs"][0]["outputs"]["token"], "••••••");
    assert_eq!(files_with(folder.path(), VALUE), [""; 0], "no file has it, the database included");
}

#[test]
fn what_can_not_be_read_fails_the_run_and_what_is_not_allowed_refuses_it() {
    let missing = folder("env:KELOS_SECRET_NOT_SET");
    let _server = up(&missing, &[], &[]);
    missing.run(&["rerun", "load", SLOT]).ok();
    ends(&missing, "load", "failed");
    let why = missing.run(&["why", "load", SLOT]).ok();
    let told = "failed to read the secret env:KELOS_SECRET_NOT_SET: the variable is not set in the environment of the process that starts the run";
    assert!(why.contains(told), "{why}");

    let hostile = folder("file:/etc/passwd");
    let checked = hostile.run(&["check"]).ok();
    let told = "\"load\" can never run: the secret file:/etc/passwd is not allowed for the project \"warehouse\"";
    assert!(checked.contains(told), "{checked}");
    let server = up(&hostile, &[], &[]);
    assert!(server.said.contains(told), "{}", server.said);
    hostile.run(&["rerun", "load", SLOT]).ok();
    ends(&hostile, "load", "failed");
    let why = hostile.run(&["why", "load", SLOT]).ok();
    assert!(why.contains("could not be started: the secret file:/etc/passwd is not allowed"), "{why}");
    let checked = |config: &str| {
        let config = hostile.write("config.json", config);
        hostile.run(&["check", "--config", config.to_str().unwrap()]).out
    };
    assert!(
        checked(r#"{"secrets": {"warehouse": ["exec:pass show *"]}}"#)
            .contains("a command is allowed as a whole, without *")
    );
    let out = checked(r#"{"secrets": {"warehose": ["file:/etc/passwd"]}}"#);
    assert!(
        out.contains("project \"warehose\" is named here, and nobody defines it (did you mean \"warehouse\"?)"),
        "{out}"
    );
    assert!(out.contains(": \"load\" can never run"), "{out}");
    assert!(checked(r#"{"secrets": {"warehouse": ["file:/etc/passwd"]}}"#).contains("1 workflow in 2 files"));
}

/// The server dies between the intent to start and the start itself: the command that prints the secret is still running.
#[test]
fn a_server_that_is_killed_while_it_reads_a_secret_starts_the_run_later() {
    let folder = Folder::with(&[]);
    let printer = folder
        .write("printer", "#!/bin/sh\necho $$ >> asked\nuntil test -e go; do sleep 0.01; done\necho hunter2-or-more\n");
    std::fs::set_permissions(&printer, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let source = format!("exec:{}", printer.display());
    folder.write("workflows/warehouse.js", &WAREHOUSE.replace("SOURCE", &source));
    let config = serde_json::json!({"secrets": {"warehouse": [source]}}).to_string();
    let config = folder.write("config.json", &config);
    let args = ["--config", config.to_str().unwrap()];
    let mut server = up(&folder, &args, &[]);
    folder.run(&["rerun", "load", SLOT]).ok();
    let asked = folder.path().join("asked");
    eventually("the secret is asked for", || asked.exists().then_some(()));
    server.die();
    std::fs::write(folder.path().join("go"), "").unwrap();
    let _server = up(&folder, &args, &[]);
    ends(&folder, "load", "succeeded");
    assert_eq!(std::fs::read_to_string(&asked).unwrap().lines().count(), 2, "it was read again");
    assert!(folder.run(&["logs", "load", SLOT]).ok().contains("password ••••••\n"));
    let runs = folder.json(&["why", "load", SLOT, "--json"])["runs"].as_array().unwrap().len();
    assert_eq!(runs, 1, "it is the same run");
    let found = files_with(&folder.path().join(".kelos"), VALUE);
    assert_eq!(found, [""; 0]);
}

/// The operator of a worker's machine decides what jobs may read there.
#[test]
fn a_worker_reads_secrets_where_it_is_and_as_its_own_list_allows() {
    let app = |source: &str| serde_json::json!({"job_id": "{date}", "bash_cmd": "echo password $DB", "env": {"DB": {"secret": source}}, "max_retry": 1});
    let folder = Folder::with(&[]);
    let token = folder.write("token", "hunter2-or-more\n");
    let of_file = format!("file:{}", token.display());
    let tasks =
        serde_json::json!({"env": app("env:KELOS_SECRET_DB"), "file": app(&of_file), "other": app("file:/etc/passwd")});
    folder.write("tasks.json", &tasks.to_string());
    let config = folder
        .write("config.json", &serde_json::json!({"secrets": {"*": ["env:KELOS_SECRET_DB", of_file]}}).to_string());
    for name in ["env", "file", "other"] {
        folder.run(&["submit", "-a", name, "-j", "20200101"]).ok();
    }
    let args = ["worker", "--config", config.to_str().unwrap()];
    let mut command = kelos(&args);
    let _worker = Server::run(command.current_dir(folder.path()).env("KELOS_SECRET_DB", VALUE), "is running");
    for name in ["env", "file"] {
        ends(&folder, name, "succeeded");
        assert_eq!(folder.run(&["logs", name, "20200101"]).ok(), "password ••••••\n");
    }
    ends(&folder, "other", "failed");
    std::fs::remove_file(token).unwrap();
    assert_eq!(files_with(folder.path(), VALUE), [""; 0]);
}

#[test]
fn commands_run_as_the_users_that_the_operator_lists() {
    let script = r#"
kelos.workflow("named", {schedule: "0 0 1 1 1 ? 2020", startTime: "2020-01-01T00:00Z", shell: "id -un", cwd: "/", runAs: "USER"});
kelos.workflow("usual", {schedule: "0 0 1 1 1 ? 2020", startTime: "2020-01-01T00:00Z", shell: "id -un", cwd: "/"});
kelos.workflow("forbidden", {schedule: "0 0 1 1 1 ? 2020", startTime: "2020-01-01T00:00Z", shell: "id -un", runAs: "daemon"});
"#;
    // Without root's rights there is one user that the server can start commands as: its own.
    let own = String::from_utf8(std::process::Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let is_root = own.trim() == "root";
    if !is_root {
        println!("SKIPPED in part: only root can start commands as another user");
    }
    let user = if is_root { "nobody" } else { own.trim() };
    let folder = Folder::with(&[("workflows/reports.js", &script.replace("USER", user))]);
    let config = folder.write("config.json", &serde_json::json!({"runAs": {"reports": [user]}}).to_string());
    let server = up(&folder, &["--config", config.to_str().unwrap()], &[]);
    let told = format!(
        "\"forbidden\" can never run: the project \"reports\" may not run commands as the user \"daemon\"; it may run as {user}"
    );
    assert!(server.said.contains(&told), "{}", server.said);
    for (workflow, state) in [("named", "succeeded"), ("usual", "succeeded"), ("forbidden", "failed")] {
        folder.run(&["rerun", workflow, SLOT]).ok();
        ends(&folder, workflow, state);
    }
    for workflow in ["named", "usual"] {
        assert_eq!(folder.run(&["logs", workflow, SLOT]).ok(), format!("{user}\n"), "{workflow}");
    }
    let why = folder.run(&["why", "forbidden", SLOT]).ok();
    assert!(
        why.contains("could not be started: the project \"reports\" may not run commands as the user \"daemon\""),
        "{why}"
    );
}
