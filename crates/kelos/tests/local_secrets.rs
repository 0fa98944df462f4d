//! Commands that are given secrets, and commands of other users of the system.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use kelos_executors::local::{Launcher, Limits, Outcome, RunSecrets, RunSpec};

use crate::local_support::{Fixture, SHIM, code, is_alive, launcher, read, until};

const VALUE: &str = "hunter2-or-more";

/// A command that is given a secret as the variable `DB`.
fn with_secret(mut spec: RunSpec) -> RunSpec {
    let env = [("DB".to_owned(), VALUE.to_owned())].into();
    spec.secrets = RunSecrets { env, hidden: vec![VALUE.to_owned()] };
    spec
}

/// All files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files_with(&entry.path(), text));
        } else if String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap_or_default()).contains(text) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn a_secret_reaches_the_command_and_no_file() {
    let fixture = Fixture::new();
    let spec = with_secret(fixture.script(
        r#"test "${#DB}" = 15 || exit 9
        echo "out $DB"; echo "err $DB" >&2; printf 'x%sy' "$DB" | base64
        printf '{"token": "%s", "rows": 3}' "$DB" > "$KELOS_OUTPUTS""#,
    ));
    assert!(!format!("{spec:?}").contains(VALUE));
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    let log = fixture.log(&spec.run);
    assert!(log.contains("out ••••••\n") && log.contains("err ••••••\n"), "{log}");
    assert!(!log.contains("hunter2") && !log.contains("aHVudGVyMi"), "{log}");
    let said =
        "kelos: what it wrote to KELOS_OUTPUTS has a secret, which is masked: declare the secret where it is needed";
    assert!(log.ends_with(&format!("{said}\n")), "{log}");
    let outputs = fixture.launcher.outputs(&spec.run).await.unwrap().unwrap();
    assert_eq!(serde_json::Value::from(outputs), serde_json::json!({"token": "••••••", "rows": 3}));
    assert_eq!(files_with(&fixture.root(), VALUE), [""; 0]);
}

/// Programs flush in the middle of a word, and a pipe may be read at any byte.
#[tokio::test]
async fn a_secret_that_is_written_in_two_pieces_is_hidden() {
    let fixture = Fixture::new();
    let script = "printf hunter2-; echo > half; until test -e go; do sleep 0.01; done; printf 'or-more; hunter2-or-'; echo less >&2";
    let spec = with_secret(fixture.script(script));
    fixture.launcher.start(&spec).await.unwrap();
    until("the first half", || fixture.work("half").exists());
    assert_eq!(fixture.log(&spec.run), "", "what may be a secret waits");
    std::fs::write(fixture.work("go"), "").unwrap();
    assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap().outcome, code(0));
    let log = fixture.log(&spec.run);
    assert_eq!(log.replace("less\n", ""), "••••••; hunter2-or-", "the end is no secret");
}

#[tokio::test]
async fn no_list_of_processes_shows_a_secret() {
    let fixture = Fixture::new();
    let spec = with_secret(fixture.script("echo $$ > main; exec sleep 1000"));
    fixture.launcher.start(&spec).await.unwrap();
    let command = fixture.pid("main");
    let shim = fixture.shim_pid(&spec.run);
    for pid in [command, shim] {
        assert!(!read(Path::new(&format!("/proc/{pid}/cmdline"))).contains(VALUE));
        let environ = std::fs::metadata(format!("/proc/{pid}/environ")).unwrap();
        assert_eq!(environ.permissions().mode() & 0o077, 0, "only its own user may read it");
    }
    for fd in std::fs::read_dir(format!("/proc/{shim}/fd")).unwrap() {
        let target = std::fs::read_link(fd.unwrap().path()).unwrap_or_default();
        assert!(!target.to_string_lossy().contains("memfd"), "the shim has closed the memory: {target:?}");
    }
    assert_eq!(files_with(&fixture.root(), VALUE), [""; 0]);
    // A server that comes later ends it, and its output stays hidden: the shim has the mask.
    let next = launcher(&fixture.root());
    assert_eq!(next.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
    until("the end of the command", || !is_alive(command));
}

#[tokio::test]
async fn a_shim_that_is_killed_leaves_no_secret_behind() {
    let fixture = Fixture::new();
    let spec =
        with_secret(fixture.script("echo \"{\\\"t\\\": \\\"$DB\\\"}\" > $KELOS_OUTPUTS; echo > done; exec sleep 1000"));
    fixture.launcher.start(&spec).await.unwrap();
    until("its outputs", || fixture.work("done").exists());
    assert_eq!(files_with(&fixture.root(), VALUE).len(), 1, "its outputs wait to be masked");
    assert_eq!(fixture.launcher.outputs(&spec.run).await, Ok(None), "and are not read before");
    let shim = rustix::process::Pid::from_raw(fixture.shim_pid(&spec.run)).unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    let outcome = fixture.launcher.wait(&spec.run).await.unwrap().outcome;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert_eq!(files_with(&fixture.root(), VALUE), [""; 0]);
}

/// Two projects of one server may not be allowed the same secrets.
#[tokio::test]
async fn variables_for_secrets_are_not_inherited() {
    let fixture = Fixture::new();
    let shim = ["/usr/bin/env", "KELOS_SECRET_OTHER=hunter2", "PLAIN=shown", SHIM, "__shim"].map(Into::into).to_vec();
    let launcher = Launcher::new(fixture.root(), shim, Limits::default()).unwrap();
    let spec = fixture.script("env | grep -E '^(KELOS_SECRET|PLAIN)'");
    launcher.start(&spec).await.unwrap();
    assert_eq!(launcher.wait(&spec.run).await.unwrap().outcome, code(0));
    assert_eq!(fixture.log(&spec.run), "PLAIN=shown\n");
}

/// Prints how fast output goes through the mask of a run, beside that of a run without secrets.
#[tokio::test]
#[ignore = "a measurement: cargo test --release -p kelos --test library -- --ignored --nocapture a_hundred"]
async fn a_hundred_megabytes_are_masked() {
    for masked in [false, true] {
        let fixture = Fixture::new();
        let spec =
            fixture.script("yes 'loaded 4711 rows into warehouse.orders by hunter2-or-less' | head -c 100000000");
        let spec = if masked { with_secret(spec) } else { spec };
        let begun = std::time::Instant::now();
        assert_eq!(fixture.run(&spec).await.outcome, code(0));
        let seconds = begun.elapsed().as_secs_f64();
        println!("100 MB, {}: {seconds:.2} s, {:.0} MB/s", if masked { "masked" } else { "plain" }, 100.0 / seconds);
    }
}

/// The user of the tests of other users.
const OTHER: &str = "nobody";

/// Whether this process may switch users; it says so where not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: only root can start commands as another user");
    }
    is_root
}

/// A command of another user, in a folder that everybody may enter.
fn of_other(fixture: &Fixture, script: &str) -> RunSpec {
    let mut spec = fixture.script(script);
    spec.run_as = Some(OTHER.to_owned());
    spec.cwd = Some("/".into());
    spec
}

#[tokio::test]
async fn a_command_of_another_user_has_its_rights_and_nothing_of_the_server() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let shim = ["/usr/bin/env", "AWS_SECRET_ACCESS_KEY=hunter2", SHIM, "__shim"].map(Into::into).to_vec();
    let launcher = Launcher::new(fixture.root(), shim, Limits::default()).unwrap();
    let mut spec = of_other(
        &fixture,
        r#"id -un; id -Gn; grep -E '^(Uid|Gid|CapPrm|CapEff|CapInh|CapAmb)' /proc/self/status; echo "$USER $LOGNAME $OWN"
        env | grep -c AWS; cat "$FOLDER/claim" 2>&1 | grep -c 'Permission denied'; echo to-stderr > /dev/stderr
        printf '{"rows": 3}' > "$KELOS_OUTPUTS"; ls -ld "$(dirname "$KELOS_OUTPUTS")" | cut -c1-10"#,
    );
    spec.env.insert("OWN".to_owned(), "yes".to_owned());
    spec.env.insert("FOLDER".to_owned(), fixture.launcher.dirs().path(&spec.run).display().to_string());
    launcher.start(&spec).await.unwrap();
    assert_eq!(launcher.wait(&spec.run).await.unwrap().outcome, code(0), "{}", fixture.log(&spec.run));
    let log = fixture.log(&spec.run);
    let lines: Vec<&str> = log.lines().filter(|line| *line != "to-stderr").collect();
    let user = nix::unistd::User::from_name(OTHER).unwrap().unwrap();
    assert_eq!(lines[0], OTHER, "{log}");
    let ids = |id: u32| format!("{id}\t{id}\t{id}\t{id}");
    assert!(!lines[1].split(' ').any(|group| group == "root"), "{log}");
    assert!(log.contains(&format!("Uid:\t{}", ids(user.uid.as_raw()))), "{log}");
    assert!(log.contains(&format!("Gid:\t{}", ids(user.gid.as_raw()))), "{log}");
    assert_eq!(log.matches("\t0000000000000000").count(), 4, "no capability is left: {log}");
    assert!(log.contains(&format!("{OTHER} {OTHER} yes")), "{log}");
    assert_eq!(lines[lines.len() - 3..], ["0", "1", "drwx------"], "{log}");
    let outputs = launcher.outputs(&spec.run).await.unwrap().unwrap();
    assert_eq!(outputs["rows"], 3);
    let folder = std::fs::metadata(fixture.launcher.dirs().path(&spec.run)).unwrap();
    assert_eq!((folder.uid(), folder.permissions().mode() & 0o777), (0, 0o700), "the folder stays the server's");
}

/// The server reads as root what the command wrote: it must not be led elsewhere.
#[tokio::test]
async fn a_link_that_another_user_plants_is_not_followed() {
    if !is_root() {
        return;
    }
    for (plant, told) in [
        ("ln -s /etc/shadow $KELOS_OUTPUTS", "it is a symbolic link"),
        ("mkfifo $KELOS_OUTPUTS", "it is not a file"),
        ("mkdir $KELOS_OUTPUTS", "it is not a file"),
        (
            "echo '{}' > $KELOS_OUTPUTS; ln $KELOS_OUTPUTS $KELOS_OUTPUTS.2",
            "it is not a file of the user who ran the command",
        ),
    ] {
        let fixture = Fixture::new();
        let spec = of_other(&fixture, &format!("{plant}; dirname $KELOS_OUTPUTS"));
        assert_eq!(fixture.run(&spec).await.outcome, code(0));
        let log = fixture.log(&spec.run);
        assert!(log.contains(told), "{plant}: {log}");
        assert_eq!(fixture.launcher.outputs(&spec.run).await, Ok(None));
        assert!(!Path::new(log.lines().next().unwrap()).exists(), "its folder is gone");
    }
}

#[tokio::test]
async fn a_command_of_another_user_is_adopted_and_killed_with_its_tree() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    std::fs::set_permissions(fixture.work(""), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::set_permissions(fixture.root().parent().unwrap(), PermissionsExt::from_mode(0o711)).unwrap();
    let mut spec = with_secret(of_other(
        &fixture,
        "trap '' TERM; setsid sh -c 'echo $$ > escaped; exec sleep 1000' & echo $$ > main; echo \"pw $DB\"; while :; do sleep 1; done",
    ));
    spec.cwd = Some(fixture.work(""));
    spec.grace = Some(std::time::Duration::ZERO);
    fixture.launcher.start(&spec).await.unwrap();
    let pids = [fixture.pid("main"), fixture.pid("escaped")];
    assert_ne!(std::fs::metadata(format!("/proc/{}", pids[0])).unwrap().uid(), 0);
    until("its output", || fixture.log(&spec.run) == "pw ••••••\n");
    let next = launcher(&fixture.root());
    assert!(next.start(&spec).await.unwrap().adopted);
    assert_eq!(next.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
    until("the end of the tree", || !pids.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn what_another_user_can_not_do_is_told() {
    let fixture = Fixture::new();
    let refused = async |spec: &RunSpec| match fixture.run(spec).await.outcome {
        Outcome::FailedToStart { error } => error,
        other => panic!("expected that it does not start, not {other:?}"),
    };
    let mut unknown = fixture.script("true");
    unknown.run_as = Some("no-such-user".to_owned());
    assert_eq!(refused(&unknown).await, "failed to find the user `no-such-user`: this machine has no such user");
    let mut locked = of_other(&fixture, "true");
    locked.run.number = 2;
    if is_root() {
        std::fs::set_permissions(fixture.work(""), PermissionsExt::from_mode(0o700)).unwrap();
        locked.cwd = Some(fixture.work(""));
        let told = "the user `nobody` may not execute `sh`, or may not enter its working directory";
        assert_eq!(refused(&locked).await, told);
    } else {
        let told = refused(&locked).await;
        assert!(told.starts_with("the server may not start commands as the user `nobody`: it runs as `"), "{told}");
    }
}

/// The user of the server itself needs no right to switch.
#[tokio::test]
async fn the_own_user_may_be_named() {
    let fixture = Fixture::new();
    let own = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
    let mut spec = fixture.script("id -un; echo $HOME; printf '{\"rows\": 1}' > $KELOS_OUTPUTS");
    spec.run_as = Some(own.name.clone());
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    assert_eq!(fixture.log(&spec.run), format!("{}\n{}\n", own.name, own.dir.display()));
    assert_eq!(fixture.launcher.outputs(&spec.run).await.unwrap().unwrap()["rows"], 1);
}
