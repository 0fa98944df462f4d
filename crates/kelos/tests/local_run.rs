//! Local commands from start to end.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use kelos_executors::local::{Check, LocalError, Outcome, RunRef, RunSpec, StartError};

use crate::local_support::{Fixture, code, is_alive, launcher, read, until};

/// What a shim does about signals is not passed on to its command.
#[tokio::test]
async fn a_command_starts_from_plain_signals() {
    let fixture = Fixture::new();
    let spec = fixture.command(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    let log = fixture.log(&spec.run);
    for line in log.lines() {
        let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        // The numbers above are the C library's own.
        assert_eq!(mask & 0x7fff_ffff, 0, "{log}");
    }
    assert_eq!(log.lines().count(), 2);
}

/// A tree that spreads: a background child, one in a session of its own, one that also cleared its
/// environment, and a grandchild whose parent is gone. Each writes its process id to a file.
const SPREAD: &str = r#"
    sleep 1000 & echo $! > child
    setsid sh -c 'echo $$ > escaped; exec sleep 1000' &
    env -i PATH="$PATH" setsid sh -c 'echo $$ > bare; exec sleep 1000' &
    (sh -c 'echo $$ > orphan; exec sleep 1000' &)
    echo $$ > main
"#;
const SPREAD_FILES: [&str; 5] = ["child", "escaped", "bare", "orphan", "main"];

#[tokio::test]
async fn the_exit_status_is_the_commands() {
    let fixture = Fixture::new();
    let spec = fixture.script("exit 7");
    let exit = fixture.run(&spec).await;
    assert_eq!(exit.outcome, code(7));
    assert!(exit.started_at_ms.unwrap() <= exit.ended_at_ms);
    assert_eq!(fixture.launcher.check(&spec.run).await.unwrap(), Check::Ended(exit));
    let complaints = fixture.launcher.dirs().path(&spec.run).join("shim.err");
    assert!(!complaints.exists(), "{}", read(&complaints));
}

#[tokio::test]
async fn a_signal_is_told() {
    let fixture = Fixture::new();
    let exit = fixture.run(&fixture.script("kill -9 $$")).await;
    assert_eq!(exit.outcome, Outcome::Signalled { signal: 9 });
}

#[tokio::test]
async fn the_command_sees_its_values_and_no_input() {
    let fixture = Fixture::new();
    let mut spec = fixture.script("cat; echo \"$SLOT $KELOS_RUN_ID\"; echo oops >&2; pwd");
    spec.env.insert("SLOT".into(), "2026-11-05".into());
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    let cwd = fixture.work("").canonicalize().unwrap();
    // Its two streams are read apart: what is written to both at once may change places.
    let log = fixture.log(&spec.run);
    let written: Vec<&str> = log.lines().filter(|line| *line != "oops").collect();
    assert_eq!(written, ["2026-11-05 flow@key#1", &cwd.display().to_string()]);
    assert_eq!(log.lines().count(), 3, "{log}");
}

#[tokio::test]
async fn the_servers_environment_can_be_kept_from_the_command() {
    let fixture = Fixture::new();
    let mut spec = fixture.command(["/usr/bin/env"]);
    spec.inherit_env = false;
    spec.env.insert("ONLY".into(), "this".into());
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    let log = fixture.log(&spec.run);
    let mut names: Vec<_> = log.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["KELOS_OUTPUTS", "KELOS_RUN_ID", "KELOS_RUN_TAG", "ONLY"]);
}

#[tokio::test]
async fn what_can_not_start_says_why() {
    let fixture = Fixture::new();
    std::fs::write(fixture.work("data"), "").unwrap();
    std::fs::write(fixture.work("script"), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(fixture.work("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut no_folder = fixture.command(["true"]);
    no_folder.cwd = Some("/no/such/folder".into());
    let mut file_as_folder = fixture.command(["true"]);
    file_as_folder.cwd = Some(fixture.work("data"));
    let mut bad_name = fixture.command(["true"]);
    bad_name.env.insert("a=b".into(), String::new());
    let cases = [
        (fixture.command(["no-such-program"]), "the program `no-such-program` is in no folder of PATH"),
        (fixture.command(["/no/program"]), "the program `/no/program`, or the interpreter it names, does not exist"),
        (fixture.command(["./script"]), "the program `./script`, or the interpreter it names, does not exist"),
        (fixture.command(["./data"]), "the program `./data` is not executable"),
        (fixture.command(["a\0b"]), "failed to start `a\0b`: nul byte found in provided data"),
        (no_folder, "the working directory `/no/such/folder` does not exist"),
        (file_as_folder, "is not a directory"),
        (bad_name, "the environment name `a=b` is not valid"),
    ];
    for (number, (mut spec, expected)) in cases.into_iter().enumerate() {
        spec.run.number = number as u64;
        let exit = fixture.run(&spec).await;
        assert_eq!(exit.started_at_ms, None);
        match exit.outcome {
            Outcome::FailedToStart { error } => assert!(error.contains(expected), "{error}"),
            other => panic!("{expected}: {other:?}"),
        }
    }
    let nothing = fixture.launcher.start(&fixture.command([])).await.unwrap_err();
    assert!(matches!(nothing, StartError::EmptyCommand(_)), "{nothing}");
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let fixture = Fixture::new();
    let mut spec = fixture.script(&format!("trap '' TERM; {SPREAD} wait"));
    spec.timeout = Some(Duration::from_millis(500));
    spec.grace = Some(Duration::from_millis(50));
    assert_eq!(fixture.run(&spec).await.outcome, Outcome::TimedOut);
    // On a very busy machine the time may be up before all of them exist.
    for file in SPREAD_FILES {
        if let Ok(pid) = read(&fixture.work(file)).trim().parse() {
            assert!(!is_alive(pid), "{file} lives");
        }
    }
}

#[tokio::test]
async fn cancelling_ends_the_whole_tree() {
    let fixture = Fixture::new();
    let mut spec = fixture.script(&format!("trap '' TERM; {SPREAD} wait"));
    spec.grace = Some(Duration::from_millis(50));
    fixture.launcher.start(&spec).await.unwrap();
    let pids = SPREAD_FILES.map(|file| fixture.pid(file));
    assert!(pids.into_iter().all(is_alive));
    assert_eq!(fixture.launcher.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
    assert!(!pids.into_iter().any(is_alive));
}

#[tokio::test]
async fn cancelling_lets_the_command_clean_up() {
    let fixture = Fixture::new();
    let spec = fixture.script("trap 'echo cleaned; exit 3' TERM; echo ready > ready; while :; do sleep 0.01; done");
    fixture.launcher.start(&spec).await.unwrap();
    fixture.line("ready");
    assert_eq!(fixture.launcher.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
    assert!(fixture.log(&spec.run).ends_with("cleaned\n"), "after whatever the shell says");
}

#[tokio::test]
async fn the_grace_is_for_the_children_too() {
    let fixture = Fixture::new();
    let child = "trap \"sleep 0.3; echo child cleaned; exit\" TERM; echo ready > ready; while :; do sleep 0.01; done";
    // The command itself dies of the signal at once.
    let spec = fixture.script(&format!("sh -c '{child}' & wait"));
    fixture.launcher.start(&spec).await.unwrap();
    fixture.line("ready");
    assert_eq!(fixture.launcher.cancel(&spec.run).await.unwrap().outcome, Outcome::Killed);
    assert!(fixture.log(&spec.run).ends_with("child cleaned\n"), "after whatever the shell says");
}

#[tokio::test]
async fn a_run_is_over_when_its_command_is_over() {
    let fixture = Fixture::new();
    let files = "while [ ! -s child -o ! -s escaped -o ! -s bare -o ! -s orphan ]; do sleep 0.01; done";
    let spec = fixture.script(&format!("{SPREAD} {files}; seq 100000; exit 5"));
    assert_eq!(fixture.run(&spec).await.outcome, code(5));
    for file in SPREAD_FILES {
        assert!(!is_alive(fixture.pid(file)), "{file} lives");
    }
    let note = "kelos: the command has ended and left 4 processes in the background, which Kelos ends\n";
    assert!(fixture.log(&spec.run).ends_with(&format!("\n100000\n{note}")), "all output is there");
}

#[tokio::test]
async fn cancelling_what_has_ended_changes_nothing() {
    let fixture = Fixture::new();
    let spec = fixture.script("exit 4");
    let exit = fixture.run(&spec).await;
    assert_eq!(fixture.launcher.cancel(&spec.run).await.unwrap(), exit);
}

#[tokio::test]
async fn what_is_cancelled_before_it_starts_never_runs() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo ran >> count");
    assert_eq!(fixture.launcher.check(&spec.run).await.unwrap(), Check::NotStarted);
    let exit = fixture.launcher.cancel(&spec.run).await.unwrap();
    assert_eq!((&exit.outcome, exit.started_at_ms), (&Outcome::Killed, None));
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted);
    assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap(), exit);
    assert_eq!(read(&fixture.work("count")), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_run_twice() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo ran >> count; while [ ! -e go ]; do sleep 0.01; done");
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (launcher, spec) = (launcher(&fixture.root()), spec.clone());
        starts.spawn(async move { launcher.start(&spec).await.unwrap().adopted });
    }
    let adopted = starts.join_all().await;
    assert_eq!(adopted.iter().filter(|adopted| !**adopted).count(), 1, "{adopted:?}");
    assert_eq!(fixture.line("count"), "ran");
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted);
    std::fs::write(fixture.work("go"), "").unwrap();
    assert_eq!(fixture.launcher.wait(&spec.run).await.unwrap().outcome, code(0));
    assert!(fixture.launcher.start(&spec).await.unwrap().adopted, "one that is over stays over");
    assert_eq!(fixture.line("count"), "ran");
}

#[tokio::test]
async fn a_folder_belongs_to_one_run_id() {
    let fixture = Fixture::new();
    let mut spec = fixture.script("exit 0");
    fixture.run(&spec).await;
    spec.run_id = "another".into();
    let error = fixture.launcher.start(&spec).await.unwrap_err();
    assert!(error.to_string().contains("belongs to run `flow@key#1`"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_no_shim_is_an_error() {
    let fixture = Fixture::new();
    for (program, expected) in [("/no/shim", "spawn `/no/shim`"), ("false", "it said nothing")] {
        let launcher =
            kelos_executors::local::Launcher::new(fixture.root(), vec![program.into()], Default::default()).unwrap();
        let error = launcher.start(&fixture.script("echo ran >> count")).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(fixture.run(&fixture.script("exit 2")).await.outcome, code(2), "it can still be started");
}

#[tokio::test]
async fn odd_names_stay_below_the_root() {
    let fixture = Fixture::new();
    let root = fixture.root();
    let long = "x".repeat(300);
    let names = ["..", ".", "", "a/b", "/etc", "../../x", "täglich ☂", "a\nb", &long, &format!("{long}y")];
    for name in names {
        let run = RunRef::new(name, name, 1);
        let spec = RunSpec::new(run.clone(), format!("id of {name}"), ["sh", "-c", "echo \"$KELOS_RUN_ID\""]);
        assert_eq!(fixture.run(&spec).await.outcome, code(0), "{name:?}");
        let dir = fixture.launcher.dirs().path(&run).canonicalize().unwrap();
        let below = dir.strip_prefix(root.canonicalize().unwrap()).unwrap();
        assert_eq!(below.components().count(), 3, "{name:?}: {}", below.display());
        assert_eq!(fixture.log(&run), format!("id of {name}\n"), "{name:?}");
    }
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), names.len());
}

#[tokio::test]
async fn a_run_can_be_removed_once_it_is_over() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo ready > ready; while [ ! -e go ]; do sleep 0.01; done");
    let mut other = spec.clone();
    (other.run.number, other.run_id) = (2, "flow@key#2".into());
    fixture.launcher.start(&spec).await.unwrap();
    let refused = fixture.launcher.remove(&spec.run).await.unwrap_err();
    assert!(matches!(refused, LocalError::StillRunning(_)), "{refused}");
    std::fs::write(fixture.work("go"), "").unwrap();
    fixture.launcher.wait(&spec.run).await.unwrap();
    fixture.run(&other).await;
    fixture.launcher.remove(&spec.run).await.unwrap();
    fixture.launcher.remove(&spec.run).await.unwrap();
    assert_eq!(fixture.launcher.check(&spec.run).await.unwrap(), Check::NotStarted);
    assert_eq!(fixture.log(&other.run), "", "the other run is still there");
    fixture.launcher.remove(&other.run).await.unwrap();
    assert_eq!(std::fs::read_dir(fixture.root()).unwrap().count(), 0, "empty folders go too");
}

#[tokio::test]
async fn waiting_for_what_never_started_is_an_error() {
    let fixture = Fixture::new();
    let error = fixture.launcher.wait(&RunRef::new("flow", "key", 9)).await.unwrap_err();
    assert_eq!(error.to_string(), "find run `flow@key#9`: it was never started");
}

#[tokio::test]
async fn secrets_are_for_the_owner_alone() {
    let fixture = Fixture::new();
    let spec = fixture.script("exit 0");
    fixture.run(&spec).await;
    let dir = fixture.launcher.dirs().path(&spec.run);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    until("the folder", || dir.exists());
    assert_eq!((mode(&dir), mode(&dir.join("spec.json"))), (0o700, 0o600));
}
