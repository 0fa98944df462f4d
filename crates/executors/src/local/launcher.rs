//! The server's side of a run: starts shims, reads what they write, and settles what they leave
//! behind.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::time::format_short;
use rustix::process::Signal;
use serde_json::{Map, Value};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;

use super::blocking::blocking;
use super::copies::OutputCopies;
use super::error::{At, LocalError, StartError};
use super::fence::{Fence, OwnFence};
use super::folder::OutputFolder;
use super::heard::{FirstWord, Voice, Voices};
use super::kept::RemovedRuns;
use super::outputs::{Unsound, read_outputs};
use super::own::OwnLog;
use super::paths::{RunDirs, RunRef, make_dir, remove_dir};
use super::procs::ProcessId;
use super::records::{self, CLAIM, Exit, RunSpec, SPEC};
use super::shim::{DEFAULT_GRACE, DEFAULT_LOG_LIMIT};
use super::spawner::{ForkServer, NoServer, Spawner};
use super::state::{Check, Look, bury, external_id, kill_below, look};

/// The polling interval where the kernel has no pidfds to wait for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The number of attempts to hand over a run before its start is given up for now.
const START_ATTEMPTS: usize = 3;

/// The number of failures in a row, a second apart, to read a run's files that are waited out.
const WAIT_PATIENCE: u32 = 60;

/// The defaults for runs whose specs don't set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// The most bytes of output that are kept.
    pub log_limit_bytes: u64,
    /// The time that a shim has beyond the grace of its command before the server kills it: it hangs then. More than
    /// the three seconds for which a shim tries to kill.
    pub shim_margin: Duration,
    /// For how long the process that forks the shims may do nothing before it is replaced.
    pub start_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grace: DEFAULT_GRACE,
            log_limit_bytes: DEFAULT_LOG_LIMIT,
            shim_margin: Duration::from_secs(5),
            start_patience: Duration::from_secs(30),
        }
    }
}

/// A run that is in the hands of a shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimRun {
    /// The process id of the command, for people; that of the shim when there is no command (yet).
    pub external_id: String,
    /// The run had been started before (it may even be over), and nothing was started now.
    pub adopted: bool,
}

/// Starts, finds again, and ends local commands. Cheap to clone; everything it knows is on disk.
#[derive(Clone, Debug)]
pub struct Launcher {
    inner: Arc<LauncherState>,
    /// Copies of the output of ended runs, if they are kept.
    copies: Option<OutputCopies>,
}

#[derive(Debug)]
struct LauncherState {
    dirs: RunDirs,
    spawner: Spawner,
    voices: Voices,
    limits: Limits,
}

impl Launcher {
    /// Keeps its runs below `root`. `shim_command` is the program and the arguments that end up in
    /// [`shim_main`](super::shim_main): mostly [`own_shim`]. It is executed once, with the first run.
    pub fn new(root: impl AsRef<Path>, shim_command: Vec<OsString>, limits: Limits) -> Result<Self, LocalError> {
        let root = root.as_ref();
        let absolute = std::path::absolute(root).at("find", root)?;
        let spawner = Spawner::new(shim_command, limits.start_patience);
        let inner = LauncherState { dirs: RunDirs::new(absolute), spawner, voices: Voices::default(), limits };
        Ok(Self { inner: Arc::new(inner), copies: None })
    }

    /// The same, which copies the output of runs to this place once they have ended.
    #[must_use]
    pub fn with_copies(self, copies: Option<OutputCopies>) -> Self {
        Self { copies, ..self }
    }

    /// The folders of the runs.
    pub fn dirs(&self) -> &RunDirs {
        &self.inner.dirs
    }

    /// The output of a run that this process does itself.
    pub fn own_log(&self, run: &RunRef) -> OwnLog {
        OwnLog::new(self.inner.dirs.path(run), self.inner.limits.log_limit_bytes)
    }

    /// The fence of a run that this process does itself for a leader on another machine.
    #[must_use]
    pub fn own_fence(&self, lease: Duration) -> OwnFence {
        OwnFence::new(self.inner.dirs.root(), lease)
    }

    /// Hands a run to a shim and returns once the run is claimed, and started if it can be.
    ///
    /// May be repeated: a run that was claimed before is adopted, whatever has become of it. A
    /// command that can't be started is no error here but an
    /// [`Outcome::FailedToStart`](super::Outcome::FailedToStart).
    pub async fn start(&self, spec: &RunSpec) -> Result<ShimRun, StartError> {
        if spec.argv.is_empty() {
            return Err(StartError::EmptyCommand(spec.run_id.clone()));
        }
        let dir = self.inner.dirs.path(&spec.run);
        let claimed = {
            let (inner, spec, dir) = (Arc::clone(&self.inner), spec.clone(), dir.clone());
            blocking(move || inner.prepare(spec, &dir)).await?
        };
        if claimed {
            return self.adopt(spec, dir).await;
        }
        let secrets = match spec.secrets.is_empty() {
            true => None,
            false => Some(spec.secrets.to_memory().at("keep the secrets of a run in memory for", &dir)?),
        };
        for _ in 0..START_ATTEMPTS {
            let (pipe, server) =
                self.inner.spawner.fork(&dir, secrets.as_ref()).await.map_err(|error| no_server(spec, error))?;
            let mut voice = Voice::new(pipe);
            match self.first_word(&mut voice, &server, spec).await {
                FirstWord::Claimed => return self.claimed(spec, dir, voice).await,
                FirstWord::Taken => return self.adopt(spec, dir).await,
                FirstWord::Failed(why) => return Err(StartError::Shim { run_id: spec.run_id.clone(), why }),
                // It died right after claiming: the run is settled as any other whose shim died.
                FirstWord::Silence if dir.join(CLAIM).exists() => return self.adopt(spec, dir).await,
                // The fork server died with the run in its hands. Should its shim live after all, one of the two will not
                // get the claim.
                FirstWord::Silence => {}
            }
        }
        let why = "the fork server was ended again and again".to_owned();
        Err(StartError::Shim { run_id: spec.run_id.clone(), why })
    }

    /// A fork server that is stopped would hold up all runs; one that is killed may be replaced at any time.
    async fn first_word(&self, voice: &mut Voice, server: &Arc<ForkServer>, spec: &RunSpec) -> FirstWord {
        if let Ok(word) = tokio::time::timeout(self.inner.limits.start_patience, voice.first()).await {
            return word;
        }
        tracing::warn!(run = spec.run_id, "the process that starts commands does not answer, it is replaced");
        self.inner.spawner.give_up(server).await;
        voice.first().await
    }

    async fn claimed(&self, spec: &RunSpec, dir: PathBuf, mut voice: Voice) -> Result<ShimRun, StartError> {
        let external_id = match voice.started().await {
            Some(pid) => pid,
            // There is no command; what there is to see is the shim.
            None => self.adopt(spec, dir.clone()).await?.external_id,
        };
        self.inner.voices.keep(dir, voice);
        Ok(ShimRun { external_id, adopted: false })
    }

    /// The state of a run. If a shim has died without an outcome, this ends what it left running and stores the
    /// outcome.
    pub async fn check(&self, run: &RunRef) -> Result<Check, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || look(&dir).map(Look::into_check)).await
    }

    /// Waits for the end of a run that was started, by this launcher or by an earlier one.
    ///
    /// Errors with files, such as too many of them being open, are waited out for a minute: they must not make a live
    /// run appear to be over.
    pub async fn wait(&self, run: &RunRef) -> Result<Exit, LocalError> {
        let mut patience = WAIT_PATIENCE;
        if let Some(exit) = self.inner.voices.ended(&self.inner.dirs.path(run)).await {
            return Ok(exit);
        }
        loop {
            let dir = self.inner.dirs.path(run);
            match blocking(move || look(&dir)).await {
                Ok(Look::Ended(exit)) => return Ok(exit),
                Ok(Look::NotStarted) => return Err(LocalError::NotStarted(run.to_string())),
                Ok(Look::Running { shim, .. }) => {
                    patience = WAIT_PATIENCE;
                    gone(shim).await;
                }
                Err(error) if patience > 0 => {
                    tracing::warn!(%run, "failed to {error}; trying again");
                    patience -= 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends a run, politely first, and returns how it ended once it has: not necessarily as killed,
    /// as it may have ended by itself just before. A run that was not started yet never will be.
    pub async fn cancel(&self, run: &RunRef) -> Result<Exit, LocalError> {
        let dir = self.inner.dirs.path(run);
        let seen = blocking(move || {
            loop {
                match look(&dir)? {
                    Look::NotStarted if !bury(&dir)? => {}
                    Look::NotStarted => return look(&dir),
                    other => return Ok(other),
                }
            }
        });
        match seen.await? {
            Look::Running { shim, .. } => self.stop(run, shim).await,
            Look::Ended(exit) => Ok(exit),
            Look::NotStarted => Err(LocalError::NotStarted(run.to_string())),
        }
    }

    /// The output of a run on this machine.
    pub fn output(&self, run: &RunRef) -> OutputFolder {
        OutputFolder::of_run(self.inner.dirs.path(run))
    }

    /// The copy of the output of a run that has no files here; none where copies are not kept, or there is none of it.
    ///
    /// # Errors
    /// In words that complete "failed to …", if the place of the copies can't be read.
    pub async fn copied_output(&self, run: &RunRef) -> Result<Option<OutputFolder>, String> {
        match &self.copies {
            Some(copies) => copies.fetch(run).await,
            None => Ok(None),
        }
    }

    /// Whether a run has files here.
    pub fn has(&self, run: &RunRef) -> bool {
        self.inner.dirs.path(run).is_dir()
    }

    /// The reason for which a run has no files here, if they were or may have been removed.
    pub async fn removal(&self, run: &RunRef, ended_at: Option<Timestamp>) -> Option<LocalError> {
        let (dirs, run) = (self.inner.dirs.clone(), run.clone());
        let found = spawn_blocking(move || {
            let removed = RemovedRuns::new(dirs.root());
            match removed.find(&dirs.path_below(&run)) {
                Some((at, why)) => Some(LocalError::Removed { run: run.to_string(), on: format_short(at), why }),
                None => removed.may_have_dropped(ended_at).then(|| LocalError::RemovedOrNone(run.to_string())),
            }
        });
        found.await.ok().flatten()
    }

    /// Copies the output of a run that has ended, where copies are kept.
    pub async fn keep_copy(&self, run: &RunRef) {
        if let Some(copies) = &self.copies {
            copies.keep(run, &self.inner.dirs.path(run)).await;
        }
    }

    /// The command of a run as it was started, without the secrets that it declares; none of a run that has no files here.
    pub async fn spec(&self, run: &RunRef) -> Result<Option<RunSpec>, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || records::read(&dir, SPEC)).await
    }

    /// The outputs of a run, if its command wrote valid ones.
    ///
    /// # Errors
    /// The failure of the run, if they are not kept although it goes without them.
    pub async fn outputs(&self, run: &RunRef) -> Result<Option<Map<String, Value>>, kelos_model::Outcome> {
        let dir = self.inner.dirs.path(run);
        match spawn_blocking(move || read_outputs(&dir)).await {
            Ok(Ok(outputs)) => Ok(outputs),
            Ok(Err(Unsound::TooLarge(bytes))) => {
                Err(kelos_model::Outcome::gave_too_much(usize::try_from(bytes).unwrap_or(usize::MAX)))
            }
            Ok(Err(Unsound::TooDeep(error))) => Err(kelos_model::Outcome::gave_too_deep(error)),
            Ok(Err(Unsound::Number(number))) => Err(kelos_model::Outcome::gave_long_number(number)),
            Ok(Err(Unsound::Other(_))) | Err(_) => Ok(None),
        }
    }

    /// Removes all files of a run that is over. No error if there are none.
    ///
    /// Only for runs that will never be started again: without the claim it isn't known any more that the run was
    /// started.
    pub async fn remove(&self, run: &RunRef) -> Result<(), LocalError> {
        let (dir, run) = (self.inner.dirs.path(run), run.clone());
        blocking(move || match look(&dir)? {
            Look::Running { .. } => Err(LocalError::StillRunning(run.to_string())),
            Look::NotStarted | Look::Ended(_) => remove_dir(&dir),
        })
        .await
    }

    async fn adopt(&self, spec: &RunSpec, dir: PathBuf) -> Result<ShimRun, StartError> {
        let run_id = spec.run_id.clone();
        blocking(move || {
            let (claim, command) = records::read_claim(&dir)?.ok_or(io::ErrorKind::NotFound.into()).at("read", &dir)?;
            // A run that was cancelled before it started has an empty claim.
            if claim.run_id != run_id && claim.shim.is_some() {
                return Err(StartError::Conflict { run_id, owner: claim.run_id, dir });
            }
            Ok(ShimRun { external_id: external_id(command, claim.shim), adopted: true })
        })
        .await
    }

    async fn stop(&self, run: &RunRef, shim: ProcessId) -> Result<Exit, LocalError> {
        let stop = |source| LocalError::Process { doing: "stop", run: run.to_string(), source };
        shim.signal(Signal::TERM).map_err(stop)?;
        let dir = self.inner.dirs.path(run);
        let grace = {
            let dir = dir.clone();
            let spec: Option<RunSpec> = blocking(move || records::read(&dir, SPEC)).await.unwrap_or_default();
            spec.and_then(|spec| spec.grace).unwrap_or(self.inner.limits.grace)
        };
        if let Ok(exit) =
            tokio::time::timeout(grace.saturating_add(self.inner.limits.shim_margin), self.wait(run)).await
        {
            return exit;
        }
        tracing::warn!(%run, "the shim of a cancelled run does not end, it is killed");
        blocking(move || kill_below(&dir, shim)).await?;
        shim.signal(Signal::KILL).map_err(stop)?;
        self.wait(run).await
    }
}

impl LauncherState {
    /// Makes the folder and writes the spec. `true`: the run was claimed before.
    fn prepare(&self, mut spec: RunSpec, dir: &Path) -> Result<bool, StartError> {
        if dir.join(CLAIM).exists() {
            return Ok(true);
        }
        make_dir(dir)?;
        spec.grace.get_or_insert(self.limits.grace);
        spec.log_limit_bytes.get_or_insert(self.limits.log_limit_bytes);
        spec.fence = spec.lease.map(|lease| Fence::new(self.dirs.root(), lease));
        spec.has_secrets = !spec.secrets.is_empty();
        records::replace(dir, SPEC, &spec)?;
        Ok(false)
    }
}

/// The shim command of a program that calls [`shim_main`](super::shim_main) for the hidden
/// subcommand `__shim`. Names the program by what runs now, so it stays right when the executable
/// is replaced by a newer one.
pub fn own_shim() -> Vec<OsString> {
    vec!["/proc/self/exe".into(), "__shim".into()]
}

fn no_server(spec: &RunSpec, error: NoServer) -> StartError {
    let run_id = spec.run_id.clone();
    match error {
        NoServer::Spawn { program, source } => StartError::Spawn { run_id, program, source },
        NoServer::Ended(why) => StartError::Shim { run_id, why },
    }
}

/// Waits until a process has ended, whether or not it is a child of this one.
pub(crate) async fn gone(process: ProcessId) {
    match process.open() {
        Ok(Some(handle)) => {
            if let Ok(handle) = watch(handle)
                && handle.readable().await.is_ok()
            {
                return;
            }
        }
        Ok(None) => return,
        Err(_) => {}
    }
    while process.is_alive() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A pidfd becomes readable when its process ends.
#[allow(unsafe_code)]
fn watch(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped, and the
    // `AsyncFd` owns it.
    Ok(unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) }?)
}
