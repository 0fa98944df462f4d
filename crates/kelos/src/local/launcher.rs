//! The server's side of a run: starts shims, reads what they write, and settles what they leave
//! behind.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, BufReader, Interest};
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;

use super::error::{At, LocalError, StartError};
use super::log::{self, LogChunk};
use super::paths::{RunDirs, RunRef};
use super::procs::{self, ProcessId, Tree};
use super::records::{
    self, CHILD, CLAIM, Claim, EXIT, Exit, HARD_KILLED, Outcome, RunSpec, SHIM_ERR, SPEC,
};
use super::shim::{DEFAULT_GRACE, DEFAULT_LOG_LIMIT, SAY_CLAIMED, SAY_STARTED, SAY_TAKEN};

/// How often to look where the kernel has no pidfds to wait on.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How often making a folder is tried when the removal of a neighbour takes its parents away.
const MAKE_DIR_ATTEMPTS: usize = 10;

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
        Self {
            grace: DEFAULT_GRACE,
            log_limit_bytes: DEFAULT_LOG_LIMIT,
            shim_margin: Duration::from_secs(5),
        }
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
    /// It is over; the outcome may be [`Outcome::Unknown`].
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
    /// end up in [`shim_main`](super::shim_main) with the folder of the run as the last argument;
    /// `/proc/self/exe` as the program stays right when the executable is replaced by a newer one.
    pub fn new(
        root: impl AsRef<Path>,
        shim_command: Vec<OsString>,
        limits: Limits,
    ) -> Result<Self, LocalError> {
        let root = root.as_ref();
        let absolute = std::path::absolute(root).at("find", root)?;
        Ok(Self {
            inner: Arc::new(Inner {
                dirs: RunDirs::new(absolute),
                shim_command,
                limits,
            }),
        })
    }

    /// Where the folders of the runs are.
    pub fn dirs(&self) -> &RunDirs {
        &self.inner.dirs
    }

    /// Hands a run to a shim and returns once the run is claimed, and started if it can be.
    ///
    /// May be repeated: a run that was claimed before is adopted, whatever has become of it. A
    /// command that can't be started is no error here but an [`Outcome::FailedToStart`].
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
        let heard = listen(&mut shim).await;
        let shim_pid = shim.id();
        // Only to reap it: the outcome is in the folder.
        tokio::spawn(async move { shim.wait().await });
        match heard {
            Heard::Started(pid) => Ok(Started {
                external_id: pid,
                adopted: false,
            }),
            Heard::Claimed => Ok(Started {
                external_id: shim_pid.map(|pid| pid.to_string()).unwrap_or_default(),
                adopted: false,
            }),
            Heard::Taken => self.adopt(spec, dir).await,
            Heard::Nothing => Err(StartError::Shim {
                run_id: spec.run_id.clone(),
                why: last_words(&dir),
            }),
        }
    }

    /// What is known of a run. Where a shim has died without an outcome, this ends what it left
    /// running and writes the outcome down.
    pub async fn check(&self, run: &RunRef) -> Result<Check, LocalError> {
        let (dir, run) = (self.inner.dirs.path(run), run.clone());
        blocking(move || look(&dir, &run).map(Look::into_check)).await
    }

    /// Waits for the end of a run that was started, by this launcher or by an earlier one.
    pub async fn wait(&self, run: &RunRef) -> Result<Exit, LocalError> {
        loop {
            let (dir, this) = (self.inner.dirs.path(run), run.clone());
            match blocking(move || look(&dir, &this)).await? {
                Look::Ended(exit) => return Ok(exit),
                Look::NotStarted => return Err(LocalError::NotStarted(run.to_string())),
                Look::Running { shim, .. } => gone(shim).await,
            }
        }
    }

    /// Ends a run, politely first, and returns how it ended once it has: not necessarily as killed,
    /// as it may have ended by itself just before. A run that was not started yet never will be.
    pub async fn cancel(&self, run: &RunRef) -> Result<Exit, LocalError> {
        let (dir, this) = (self.inner.dirs.path(run), run.clone());
        let seen = blocking(move || {
            loop {
                match look(&dir, &this)? {
                    Look::NotStarted if !bury(&dir, &this)? => {}
                    Look::NotStarted => return look(&dir, &this),
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
    pub async fn read_log(
        &self,
        run: &RunRef,
        offset: u64,
        max_len: usize,
    ) -> Result<LogChunk, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || log::read_log(&dir, offset, max_len)).await
    }

    /// How many bytes a run has written so far, dropped ones included.
    pub async fn log_len(&self, run: &RunRef) -> Result<u64, LocalError> {
        let dir = self.inner.dirs.path(run);
        blocking(move || log::log_len(&dir)).await
    }

    /// Removes all that is kept of a run that is over. Nothing there is fine too.
    ///
    /// Only for runs that will never be started again: with the claim goes the memory that the run
    /// was started.
    pub async fn remove(&self, run: &RunRef) -> Result<(), LocalError> {
        let (dir, run) = (self.inner.dirs.path(run), run.clone());
        blocking(move || match look(&dir, &run)? {
            Look::Running { .. } => Err(LocalError::StillRunning(run.to_string())),
            Look::NotStarted | Look::Ended(_) => remove_dir(&dir),
        })
        .await
    }

    async fn adopt(&self, spec: &RunSpec, dir: PathBuf) -> Result<Started, StartError> {
        let run_id = spec.run_id.clone();
        blocking(move || {
            let claim: Claim = records::read(&dir, CLAIM)?
                .ok_or(io::ErrorKind::NotFound.into())
                .at("read", &dir)?;
            if claim.run_id != run_id {
                return Err(StartError::Conflict {
                    run_id,
                    owner: claim.run_id,
                    dir,
                });
            }
            Ok(Started {
                external_id: external_id(&dir, claim.shim),
                adopted: true,
            })
        })
        .await
    }

    async fn stop(&self, run: &RunRef, shim: ProcessId) -> Result<Exit, LocalError> {
        let stop = |source| LocalError::Process {
            doing: "stop",
            run: run.to_string(),
            source,
        };
        shim.signal(Signal::TERM).map_err(stop)?;
        let dir = self.inner.dirs.path(run);
        let grace = {
            let dir = dir.clone();
            let spec: Option<RunSpec> = blocking(move || records::read(&dir, SPEC))
                .await
                .unwrap_or_default();
            spec.and_then(|spec| spec.grace)
                .unwrap_or(self.inner.limits.grace)
        };
        if let Ok(exit) = tokio::time::timeout(
            grace.saturating_add(self.inner.limits.shim_margin),
            self.wait(run),
        )
        .await
        {
            return exit;
        }
        tracing::warn!(%run, "the shim of a cancelled run does not end, it is killed");
        // First the note, so that whoever finds the shim dead knows that the run was killed.
        blocking(move || records::create_once(&dir, HARD_KILLED, &true, false)).await?;
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
        spec.log_limit_bytes
            .get_or_insert(self.limits.log_limit_bytes);
        records::replace(dir, SPEC, &spec)?;
        let (program, args) = match self.shim_command.split_first() {
            Some((program, args)) => (program.clone(), args),
            None => (OsString::from("/proc/self/exe"), &[][..]),
        };
        let errors = dir.join(SHIM_ERR);
        let errors = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&errors)
            .at("create", &errors)?;
        // No process group and no session here: those would need code between fork and exec, which
        // costs this big process dearly. The shim does both as soon as it runs.
        Command::new(&program)
            .args(args)
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map(Some)
            .map_err(|source| StartError::Spawn {
                run_id: spec.run_id,
                program: program.to_string_lossy().into_owned(),
                source,
            })
    }
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

async fn listen(shim: &mut Child) -> Heard {
    let Some(stdout) = shim.stdout.take() else {
        return Heard::Nothing;
    };
    let mut lines = BufReader::with_capacity(64, stdout).lines();
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

fn last_words(dir: &Path) -> String {
    let said = fs::read(dir.join(SHIM_ERR)).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    said.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it said nothing")
        .to_owned()
}

/// [`Check`] with what the launcher needs to act on it.
enum Look {
    NotStarted,
    Running {
        shim: ProcessId,
        external_id: String,
    },
    Ended(Exit),
}

impl Look {
    fn into_check(self) -> Check {
        match self {
            Self::NotStarted => Check::NotStarted,
            Self::Running { external_id, .. } => Check::Running { external_id },
            Self::Ended(exit) => Check::Ended(exit),
        }
    }
}

fn look(dir: &Path, run: &RunRef) -> Result<Look, LocalError> {
    if let Some(exit) = read_exit(dir)? {
        return Ok(Look::Ended(exit));
    }
    let claim = match records::read::<Claim>(dir, CLAIM) {
        Ok(Some(claim)) => claim,
        Ok(None) => return Ok(Look::NotStarted),
        // It is created whole, so only a damaged disk gets here; there is nobody to watch and
        // nobody to kill.
        Err(LocalError::BadRecord { source, .. }) => {
            return settle(
                dir,
                Outcome::Unknown {
                    why: format!("the claim of the run is damaged: {source}"),
                },
            );
        }
        Err(error) => return Err(error),
    };
    let Some(shim) = claim.shim else {
        return settle(dir, Outcome::Killed);
    };
    let is_here = procs::host().at("read", Path::new("/proc"))? == claim.host;
    if is_here && shim.is_alive() {
        return Ok(Look::Running {
            shim,
            external_id: external_id(dir, Some(shim)),
        });
    }
    // The shim may have written the outcome and ended between the two looks.
    if let Some(exit) = read_exit(dir)? {
        return Ok(Look::Ended(exit));
    }
    if !is_here {
        let why = "the machine or the container was restarted while it ran".to_owned();
        return settle(dir, Outcome::Unknown { why });
    }
    let tree = Tree {
        tag: claim.tag,
        shim,
    };
    tree.kill().map_err(|source| LocalError::Process {
        doing: "kill",
        run: run.to_string(),
        source,
    })?;
    if dir.join(HARD_KILLED).exists() {
        return settle(dir, Outcome::Killed);
    }
    settle(
        dir,
        Outcome::Unknown {
            why: "the process that looked after the command died".to_owned(),
        },
    )
}

/// A damaged outcome is one that nobody knows.
fn read_exit(dir: &Path) -> Result<Option<Exit>, LocalError> {
    match records::read(dir, EXIT) {
        Err(LocalError::BadRecord { source, .. }) => {
            let outcome = Outcome::Unknown {
                why: format!("the record of its end is damaged: {source}"),
            };
            Ok(Some(Exit {
                outcome,
                started_at_ms: None,
                ended_at_ms: records::now_ms(),
            }))
        }
        other => other,
    }
}

/// Writes down the outcome of a run without a shim, unless somebody else was first: then theirs
/// holds.
fn settle(dir: &Path, outcome: Outcome) -> Result<Look, LocalError> {
    let exit = Exit {
        outcome,
        started_at_ms: None,
        ended_at_ms: records::now_ms(),
    };
    records::create_once(dir, EXIT, &exit, true)?;
    Ok(Look::Ended(read_exit(dir)?.unwrap_or(exit)))
}

/// Claims a run for nobody, so that no shim ever runs it. `false`: a shim was faster.
fn bury(dir: &Path, run: &RunRef) -> Result<bool, LocalError> {
    make_dir(dir)?;
    let spec: Option<RunSpec> = records::read(dir, SPEC)?;
    let claim = Claim {
        run_id: spec.map_or_else(|| run.to_string(), |spec| spec.run_id),
        tag: String::new(),
        shim: None,
        host: String::new(),
        claimed_at_ms: records::now_ms(),
    };
    records::create_once(dir, CLAIM, &claim, true)
}

fn external_id(dir: &Path, shim: Option<ProcessId>) -> String {
    let command: Option<ProcessId> = records::read(dir, CHILD).unwrap_or_default();
    command
        .or(shim)
        .map(|process| process.pid.to_string())
        .unwrap_or_default()
}

/// Waits until a process has ended, whoever's child it is.
async fn gone(process: ProcessId) {
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

/// Makes the folder of a run, for its owner alone.
fn make_dir(dir: &Path) -> Result<(), LocalError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let mut attempt = 1;
    loop {
        match builder.create(dir) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && attempt < MAKE_DIR_ATTEMPTS =>
            {
                attempt += 1
            }
            result => return result.at("create", dir),
        }
    }
}

/// Takes the folder out of sight first, so that a crash in between doesn't leave half of one that
/// looks like a run that never started. Its parents go with the last of their runs.
fn remove_dir(dir: &Path) -> Result<(), LocalError> {
    let Some(name) = dir.file_name() else {
        return Ok(());
    };
    let mut hidden = OsString::from(".gone-");
    hidden.push(name);
    let hidden = dir.with_file_name(hidden);
    remove_if_there(&hidden)?;
    match fs::rename(dir, &hidden) {
        Ok(()) => remove_if_there(&hidden)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).at("remove", dir),
    }
    for parent in dir.ancestors().skip(1).take(2) {
        // Refused while there are other runs.
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

fn remove_if_there(dir: &Path) -> Result<(), LocalError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.at("remove", dir),
    }
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
