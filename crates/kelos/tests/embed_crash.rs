//! Programs that are killed within a flow: the next one does the step again that was live, three times at most, unless it must not be done
//! twice. A test runs itself once more as the program that it kills.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kelos::SlotState;
use kelos::embed::{Context, FlowRun, LossPolicy, Project, RunningProject, flow, step};

/// The variable that names its folder to the program that is to be killed.
const FOLDER: &str = "KELOS_TEST_KILLED_FOLDER";
/// The variable that names the attempt in which it is to be killed.
const ATTEMPT: &str = "KELOS_TEST_KILLED_ATTEMPT";

const PATIENCE: Duration = Duration::from_secs(60);

async fn nothing(_: Context, (): (), (): ()) -> Result<(), String> {
    Ok(())
}

/// Waits for a file, which no program that is killed ever sees.
async fn wait(_: Context, (): (), go: PathBuf) -> Result<(), String> {
    while !go.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Flows that differ in what follows when the program is killed within `two`.
fn project(folder: &Path) -> Project {
    let (one, two) = (|| step("one", nothing).with(()), || step("two", wait).with(folder.join("go")));
    Project::new("shop", "1.0")
        .folder(folder.join("data"))
        .add(flow("again", one() >> two()))
        .add(flow("once", one() >> two().on_lost(LossPolicy::End)))
        .add(flow("all-once", one() >> two()).on_lost(LossPolicy::End))
}

/// Runs a test on a runtime of its own.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

fn look(running: &RunningProject, id: &str) -> FlowRun {
    running.flow(id).look("x").unwrap()
}

/// The number of attempts of `two`, and its state.
fn two(run: &FlowRun) -> (u32, SlotState) {
    let two = run.step("two").expect("it was opened");
    (two.attempts, two.state)
}

/// Lives until it is killed, and says when it is within an attempt of `two`.
fn live(folder: &Path, attempt: u32) {
    run(async {
        let running = project(folder).start().await.unwrap();
        let flows = ["again", "once", "all-once"];
        if attempt == 1 {
            for id in flows {
                running.flow(id).start("x", &()).await.unwrap();
            }
        }
        let is_within = |id: &&str| {
            let run = running.flow(id).look("x");
            run.is_ok_and(|run| run.step("two").is_some_and(|_| two(&run) == (attempt, SlotState::Running)))
        };
        let wanted = if attempt == 1 { &flows[..] } else { &flows[..1] };
        while !wanted.iter().all(is_within) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fs::write(folder.join(format!("within-{attempt}")), "").unwrap();
        std::future::pending::<()>().await;
    });
}

/// Starts the program of a test, and kills it once it is within an attempt of `two`.
fn kill_within(test: &str, folder: &Path, attempt: u32) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", &format!("embed_crash::{test}"), "--nocapture"]).stdout(Stdio::null());
    let mut program = program.env(FOLDER, folder).env(ATTEMPT, attempt.to_string()).spawn().unwrap();
    let (sign, until) = (folder.join(format!("within-{attempt}")), Instant::now() + PATIENCE);
    while !sign.exists() {
        assert!(program.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(Instant::now() < until, "it did not come to attempt {attempt}");
        std::thread::sleep(Duration::from_millis(5));
    }
    program.kill().unwrap();
    program.wait().unwrap();
}

/// Whether this is the program that is to be killed; it does not come back then.
fn is_program() -> bool {
    let Some(folder) = std::env::var_os(FOLDER) else { return false };
    let attempt = std::env::var(ATTEMPT).unwrap().parse().unwrap();
    live(Path::new(&folder), attempt);
    true
}

#[test]
fn a_step_is_done_again_after_its_program_was_killed() {
    if is_program() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    kill_within("a_step_is_done_again_after_its_program_was_killed", folder.path(), 1);
    run(async {
        fs::write(folder.path().join("go"), "").unwrap();
        let running = project(folder.path()).start().await.unwrap();
        let again = running.flow("again").end("x").await.unwrap();
        assert!(again.is_success(), "{again:?}");
        assert_eq!(two(&again), (2, SlotState::Succeeded));
        assert_eq!(again.step("one").unwrap().attempts, 1, "what was done is not done again");
        for id in ["once", "all-once"] {
            let once = running.flow(id).end("x").await.unwrap();
            assert_eq!((once.state, two(&once)), (SlotState::Failed, (1, SlotState::Failed)), "{once:?}");
            let reason = once.reason.unwrap_or_default();
            assert!(reason.contains("the program that did it has ended"), "{reason}");
        }
        running.stop().await;
    });
}

#[test]
fn a_step_with_which_its_program_always_dies_fails_in_the_end() {
    if is_program() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for attempt in 1..=4 {
        kill_within("a_step_with_which_its_program_always_dies_fails_in_the_end", folder.path(), attempt);
    }
    run(async {
        let running = project(folder.path()).start().await.unwrap();
        let ended = running.flow("again").end("x").await.unwrap();
        assert_eq!((ended.state, two(&ended)), (SlotState::Failed, (4, SlotState::Failed)), "{ended:?}");
        // A person says that it may be done once more.
        fs::write(folder.path().join("go"), "").unwrap();
        running.flow("again").resume("x").await.unwrap();
        assert!(running.flow("again").end("x").await.unwrap().is_success());
        assert_eq!(two(&look(&running, "again")), (5, SlotState::Succeeded));
        running.stop().await;
    });
}
