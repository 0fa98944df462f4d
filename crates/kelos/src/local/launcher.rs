//! The server's side of a run: starts shims, reads what they write, and settles what they leave
//! behind.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Map, Value};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Interest};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::task::spawn_blocking;

use super::error::{At, LocalError, StartError};
use super::log::{self, LogChunk};
use super::outputs::read_outputs;
use super::paths::{RunDirs, RunRef, make_dir, remove_dir};
use super::procs::ProcessId;
use super::records::{self, CLAIM, Exit, RunSpec, SPEC};
use super::shim::{DEFAULT_GRACE, DEFAULT_LOG_LIMIT, SAY_CLAIMED, SAY_STARTED, SAY_TAKEN};
use super::state::{Look, bury, external_id, kill_below, look};

/// How often to look where the kernel has no pidfds to wait on.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How much of a shim's complaint is read.
const LONGEST_WORDS: u64 = 4096;

/// How often in a row, a second apart, a failure to read a run's files is waited out.
const WAIT_PATIENCE: u32 = 60;

/// What holds for a run whose spec doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a command that was told to end may take before it is killed.
    pub grace: Duration,
    /// How many bytes of output are kept.
    pub log_limit_bytes: u64,
    /// What a shim may take beyond the grace of its command before the server ends it the hard way:
    /// for one that hangs. More than the three seconds for which a shim tries to kill.
    pub shim_margin: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { grace: DEFAULT_GRACE, log_limit_bytes: DEFAULT_LOG_LIMIT, shim_margin: Duration::from_secs(5) }
    }
}

/// A run that is in the hands of a shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The process id of the command, for people; that of the shim when there is no command (yet).
    pub external_id: String,
    /// The run had been started before (it may even be over), and nothing was started now.
    pub adopted: bool,
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nobody has claimed it, nothing has run. A shim may still be on its way: [`Launcher::start`]
    /// or [`Launcher::cancel`] it, but don't take it for over.
    NotStarted,
    /// Its shim is alive.
    Running {
        /// See [`Started::external_id`].
        external_id: String,
    },
    /// It is over; the outcome may be [`Outcome::Unknown`](super::Outcome::Unknown).
    Ended(Exit),
}

/// Starts, finds again, and ends local commands. Cheap to clone; everything it knows is on disk.
#[derive(Clone, Debug)]
pub struct Launcher {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dirs: RunDirs,
    shim_command: Vec<OsString>,
    limits: Limits,
}

impl Launcher {
    /// Keeps its runs below `root`. `shim_command` is the program and the leading arguments that
    /// end up in [`shim_main`](super::shim_main) with the folder of the run as the last argument:
    /// mostly [`own_shim`].
    pub fn new(root: impl AsRef<Path>, shim_command: Vec<OsString>, limits: Limits) -> Result<Self, LocalError> {
        let root = root.as_ref();
        let absolute = std::path::absolute(root).at("find", root)?;
        Ok(Self { inner: Arc::new(Inner { dirs: RunDirs::new(absolute), shim_command, limits }) })
    }

    /// Where the folders of the runs are.
    pub fn dirs(&self) -> &RunDirs {
        &self.inner.dirs
    }

    /// Hands a run to a shim and returns once the run is claimed, and started if it can be.
    ///
    /// May be repeated: a run that was claimed before is adopted, whatever has become of it. A
    /// command that can't be started is no error here but an
    /// [`Outcome::FailedToStart`](super::Outcome::FailedToStart).
    pub async fn start(&self, spec: &RunSpec) -> Result<Started, StartError> {
        if spec.argv.is_empty() {
            return Err(StartError::EmptyCommand(spec.run_id.clone()));
        }
        let dir = self.inner.dirs.path(&spec.run);
        let prepared = {
            let (inner, spec, dir) = (Arc::clone(&self.inner), spec.clone(), dir.clone());
            blocking(move || inner.prepare(spec, &dir)).await?
        };
        let Some(mut shim) = prepared else {
            return self.adopt(spec, dir).await;
        };
        let (mut voice, errors) = (shim.stdout.take(), shim.stderr.take());
        let heard = listen(&mut voice).await;
        let shim_pid = shim.id();
        tokio::spawn(async move {
            // Only to reap it: the outcome is in the folder. Its voice is kept so that it can tell
            // that there is a server.
            let _ = shim.wait().await;
            drop(voice);
        });
        match heard {
            Heard::Started(pid) => Ok(Started { external_id: pid, adopted: false }),
            Heard::Claimed => {
                Ok(Started { external_id: shim_pid.map(|pid| pid.to_string()).unwrap_or_default(), adopted: false })
            }
            Heard::Taken => self.adopt(spec, dir).await,
            // It died right after claiming: the run is settled as any other whose shim died.
            Heard::Nothing if dir.join(CLAIM).exists() => self.adopt(spec, dir).await,
            Heard::Nothing => Err(StartError::Shim { run_id: spec.run_id.clone(), why: last_words(errors).await }),
        }
    }

    /// What is known of a run. Where a shim has died without an outcome, this ends what it left
    /// running and writes the outcome down.
    pub async fn check(&self, run: &RunRef) -> Result<Check, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || look(&dir).map(Look::into_check)).await
    }

    /// Waits for the end of a run that was started, by this launcher or by an earlier one.
    ///
    /// Trouble with files, such as too many of them being open, is waited out for a minute: it must
    /// not make a run look over that isn't.
    pub async fn wait(&self, run: &RunRef) -> Result<Exit, LocalError> {
        let mut patience = WAIT_PATIENCE;
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

    /// Reads a piece of a run's output, see [`read_log`](super::read_log).
    pub async fn read_log(&self, run: &RunRef, offset: u64, max_len: usize) -> Result<LogChunk, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || log::read_log(&dir, offset, max_len)).await
    }

    /// How many bytes a run has written so far, dropped ones included.
    pub async fn log_len(&self, run: &RunRef) -> Result<u64, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || log::log_len(&dir)).await
    }

    /// What the command of a run has given to those that it triggers, where it has and that is sound.
    pub async fn outputs(&self, run: &RunRef) -> Option<Map<String, Value>> {
        let dir = self.inner.dirs.path(run);
        spawn_blocking(move || read_outputs(&dir).ok().flatten()).await.ok().flatten()
    }

    /// Removes all that is kept of a run that is over. Nothing there is fine too.
    ///
    /// Only for runs that will never be started again: with the claim goes the memory that the run
    /// was started.
    pub async fn remove(&self, run: &RunRef) -> Result<(), LocalError> {
        let (dir, run) = (self.inner.dirs.path(run), run.clone());
        blocking(move || match look(&dir)? {
            Look::Running { .. } => Err(LocalError::StillRunning(run.to_string())),
            Look::NotStarted | Look::Ended(_) => remove_dir(&dir),
        })
        .await
    }

    async fn adopt(&self, spec: &RunSpec, dir: PathBuf) -> Result<Started, StartError> {
        let run_id = spec.run_id.clone();
        blocking(move || {
            let (claim, command) = records::read_claim(&dir)?.ok_or(io::ErrorKind::NotFound.into()).at("read", &dir)?;
            // One that was cancelled before it started is nobody's.
            if claim.run_id != run_id && claim.shim.is_some() {
                return Err(StartError::Conflict { run_id, owner: claim.run_id, dir });
            }
            Ok(Started { external_id: external_id(command, claim.shim), adopted: true })
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

impl Inner {
    /// Makes the folder and spawns the shim; `None` when the run was claimed before.
    fn prepare(&self, mut spec: RunSpec, dir: &Path) -> Result<Option<Child>, StartError> {
        if dir.join(CLAIM).exists() {
            return Ok(None);
        }
        make_dir(dir)?;
        spec.grace.get_or_insert(self.limits.grace);
        spec.log_limit_bytes.get_or_insert(self.limits.log_limit_bytes);
        records::replace(dir, SPEC, &spec)?;
        let mut shim_command = self.shim_command.iter();
        let program = shim_command.next().cloned().unwrap_or_default();
        // No process group and no session here: those would need code between fork and exec, which
        // costs this big process dearly. The shim does both as soon as it runs.
        Command::new(&program)
            .args(shim_command)
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map(Some)
            .map_err(|source| StartError::Spawn {
                run_id: spec.run_id,
                program: program.to_string_lossy().into_owned(),
                source,
            })
    }
}

/// The shim command of a program that calls [`shim_main`](super::shim_main) for the hidden
/// subcommand `__shim`. Names the program by what runs now, so it stays right when the executable
/// is replaced by a newer one.
pub fn own_shim() -> Vec<OsString> {
    vec!["/proc/self/exe".into(), "__shim".into()]
}

/// What a shim said before it fell silent.
enum Heard {
    /// The command runs, with this process id.
    Started(String),
    /// The run is claimed, but there is no command.
    Claimed,
    /// Somebody else holds the claim.
    Taken,
    /// The shim ended without a claim.
    Nothing,
}

async fn listen(voice: &mut Option<ChildStdout>) -> Heard {
    let Some(voice) = voice else {
        return Heard::Nothing;
    };
    let mut lines = BufReader::with_capacity(64, voice).lines();
    match lines.next_line().await {
        Ok(Some(line)) if line == SAY_CLAIMED => {}
        Ok(Some(line)) if line == SAY_TAKEN => return Heard::Taken,
        _ => return Heard::Nothing,
    }
    match lines.next_line().await {
        Ok(Some(line)) => match line.strip_prefix(SAY_STARTED) {
            Some(pid) => Heard::Started(pid.trim().to_owned()),
            None => Heard::Claimed,
        },
        _ => Heard::Claimed,
    }
}

/// The last line that a shim which has ended wrote to its standard error.
async fn last_words(errors: Option<ChildStderr>) -> String {
    let mut said = Vec::new();
    if let Some(errors) = errors {
        let _ = errors.take(LONGEST_WORDS).read_to_end(&mut said).await;
    }
    let said = String::from_utf8_lossy(&said);
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}

/// Waits until a process has ended, whoever's child it is.
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

/// Runs file and process work off the async threads.
async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}
