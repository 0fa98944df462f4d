//! Real runs in a rehearsal: local commands in a folder of the test's own.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use kelos_core::Input;
use kelos_engine::executor::{Executor, Reports, Start};
use kelos_engine::secrets::Secrets;
use kelos_executors::local::{self, Launcher};
use kelos_executors::{CommandExecutor, run_ref};
use kelos_model::run::Report;
use kelos_model::{FailureCode, Outcome, RunId};
use serde_json::{Map, Value};
use tokio::runtime::Handle as Runtime;

use super::disk;

/// A command of a test may take so long, by the machine's clock.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most bytes of a failed command's output that are shown.
const LAST_WORDS: usize = 400;

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(20);

/// The outputs of a run, if it gave any, and its outcome.
type RunEnd = (Option<Map<String, Value>>, Outcome);

/// The environment of real commands.
#[derive(Clone)]
pub struct Real {
    /// The runtime on which runs are watched.
    pub runtime: Runtime,
    /// The program, and its first arguments, that becomes a run's guardian.
    pub shim: Vec<OsString>,
    /// Whether the folders of tests are left behind.
    pub keep: bool,
}

/// The real commands of one test. Its folder is deleted with it.
pub(super) struct RealRuns {
    folder: Folder,
    root: PathBuf,
    launcher: Launcher,
    executor: CommandExecutor,
}

impl RealRuns {
    /// Makes a folder, with copies of what the commands need of the project.
    pub(super) fn prepare(real: &Real, project: &Path, copy: &[String]) -> Result<RealRuns, String> {
        let folder = Folder::make(real.keep)?;
        let root = folder.path.join("files");
        std::fs::create_dir(&root).map_err(|error| format!("make {}: {error}", root.display()))?;
        for path in copy {
            disk::copy(&project.join(path), &root.join(path))?;
        }
        let launcher = Launcher::new(folder.path.join("runs"), real.shim.clone(), local::Limits::default());
        let launcher = launcher.map_err(|error| error.to_string())?;
        let executor =
            CommandExecutor::new(launcher.clone(), real.runtime.clone()).with_secrets(Secrets::of_rehearsal());
        Ok(RealRuns { folder, root, launcher, executor })
    }

    /// The folder that the commands work in.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder, where it stays behind.
    pub(super) fn kept(&self) -> Option<PathBuf> {
        self.folder.keep.then(|| self.root.clone())
    }

    /// A name that no other test has.
    pub(super) fn name(&self) -> String {
        self.folder.path.file_name().unwrap_or_default().to_string_lossy().replace('-', "_")
    }

    /// Runs a command and waits for its end; what it gives comes first.
    pub(super) fn run(&self, start: Start) -> Result<RunEnd, String> {
        let executor = &start.workflow.job.executor;
        if executor != "command" {
            return Err(format!(
                "run {} for real: a test can do that with commands, not with \"{executor}\"; say in runs what becomes \
                 of it: runs: {{{:?}: {{}}}}",
                start.run.slot.short(),
                start.run.slot.workflow.as_str()
            ));
        }
        let (run, start) = (start.run.clone(), self.within(start));
        let (say, hear) = channel();
        let reports = Reports::new(move |input| drop(say.send(input)));
        self.executor.start(start, reports.clone());
        if let Some((outputs, outcome)) = end_of(&hear, PATIENCE)? {
            return Ok((outputs, self.with_last_words(&run, outcome)));
        }
        self.executor.cancel(&run, None, reports);
        end_of(&hear, GRACE)?;
        let reason = format!("it took longer than {} s, and a test does not wait longer", PATIENCE.as_secs());
        Ok((None, Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::TIMED_OUT) }))
    }

    /// A failure with the end of the command's output.
    fn with_last_words(&self, run: &RunId, outcome: Outcome) -> Outcome {
        let Outcome::Failed { reason, exit_status, code } = outcome else { return outcome };
        let dir = self.launcher.dirs().path(&run_ref(run));
        let said = local::log_len(&dir).and_then(|length| {
            let from = length.saturating_sub(LAST_WORDS as u64);
            local::read_log(&dir, from, LAST_WORDS)
        });
        let said = said.map(|chunk| String::from_utf8_lossy(&chunk.bytes).trim().to_owned()).unwrap_or_default();
        let reason = if said.is_empty() { reason } else { format!("{reason}; its output ends with: {said}") };
        Outcome::Failed { reason, exit_status, code }
    }

    /// The run with its working folder in the test's own.
    fn within(&self, mut start: Start) -> Start {
        let own = |cwd: &str| self.root.join(cwd).to_string_lossy().into_owned();
        let properties = start.properties.get("cwd");
        let cwd = properties.or(start.settings.get("cwd")).and_then(|cwd| cwd.as_str()).unwrap_or_default();
        let cwd = own(cwd);
        start.properties.shift_remove("cwd");
        start.settings.insert("cwd".to_owned(), cwd.into());
        start
    }
}

/// The end of a run, or none where it does not come in time.
fn end_of(hear: &Receiver<Input>, patience: Duration) -> Result<Option<RunEnd>, String> {
    let until = Instant::now() + patience;
    let mut given = None;
    loop {
        match hear.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Input::RunReported { report: Report::Gave { outputs }, .. }) => given = Some(outputs),
            Ok(Input::RunReported { report: Report::Ended { outcome }, .. }) => return Ok(Some((given, outcome))),
            Ok(Input::RunReported { run, report: Report::Deferred { reason } }) => {
                return Err(format!("start {}: {reason}", run.slot.short()));
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err("hear of a run: its executor is gone".to_owned()),
        }
    }
}

/// A folder that only its owner can read, deleted with its test.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn make(keep: bool) -> Result<Folder, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let temp = std::env::temp_dir();
        let temp = std::fs::canonicalize(&temp).map_err(|error| format!("find {}: {error}", temp.display()))?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = temp.join(format!("kelos-test-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder { path, keep }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("make {}: {error}", path.display())),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!("failed to remove {}: {error}", self.path.display());
        }
    }
}
