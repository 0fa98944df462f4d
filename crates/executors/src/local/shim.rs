//! The shim: the small process between the server and one command, a fork of the [fork server](super::fork_server), without
//! a runtime and without threads.

use std::fs;
use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kelos_model::variables::is_credential;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::error::{At, LocalError};
use super::fence::{BootMoment, FenceWatch};
use super::folder_watch::FolderWatch;
use super::log::LogWriter;
use super::marks::Stream;
use super::outputs::{self, OUTPUTS_VARIABLE, OutputsPlace};
use super::procs::{self, ProcessId, Stat, TAG_VARIABLE, Tree};
use super::records::{self, CLAIM, Claim, EXIT, Exit, FOLDER_GONE, Outcome, RunSpec, SPEC};
use super::run_secrets::RunSecrets;
use super::streams::Streams;
use super::supervise::{Signals, StartedCommand, Supervisor};
use super::user::SystemUser;

/// The first word to the launcher: this shim holds the claim.
pub(crate) const SAY_CLAIMED: &str = "claimed";
/// The first word to the launcher: another process holds the claim, this shim ran nothing.
pub(crate) const SAY_TAKEN: &str = "taken";
/// The second word to the launcher, followed by the process id of the command.
pub(crate) const SAY_STARTED: &str = "started";

/// The last message to the launcher, followed by the outcome as it is in the folder.
pub(crate) const SAY_ENDED: &str = "ended";
/// The word to the launcher when there is no claim and no command, followed by the reason.
pub(crate) const SAY_FAILED: &str = "failed";

/// The default where the spec has none, which the launcher prevents.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(10);
/// The default where the spec has none, which the launcher prevents.
pub(crate) const DEFAULT_LOG_LIMIT: u64 = 16 * 1024 * 1024;

/// For how long the shim tries to write the outcome down, should the disk be full.
const WRITE_EXIT_FOR: Duration = Duration::from_secs(60);

/// Runs the command whose folder this is, until it is over; gives the exit status of the process.
pub(crate) fn run(dir: &Path, voice: PipeWriter, secrets: Option<OwnedFd>) -> i32 {
    let complain_in = dir.to_owned();
    std::panic::set_hook(Box::new(move |panic| records::complain(&complain_in, &panic.to_string())));
    match look_after(dir, &voice, secrets) {
        Ok(()) => 0,
        Err(error) => {
            // For a launcher that waits for the claim; a later one finds it in the folder.
            say_failed(&voice, &error.to_string());
            records::complain(dir, &format!("failed to {error}"));
            1
        }
    }
}

fn look_after(dir: &Path, voice: &PipeWriter, secrets: Option<OwnedFd>) -> Result<(), LocalError> {
    let (signals, me) = detach().at("prepare the shim in", dir)?;
    let mut spec: RunSpec =
        records::read(dir, SPEC)?.ok_or(io::ErrorKind::NotFound.into()).at("read", &dir.join(SPEC))?;
    match secrets {
        Some(memory) => spec.secrets = RunSecrets::of_memory(memory).at("read the secrets of the run in", dir)?,
        None if spec.has_secrets => {
            return Err(io::Error::other("its shim was not handed them")).at("read the secrets of the run in", dir);
        }
        None => {}
    }
    let claim = Claim {
        run_id: spec.run_id.clone(),
        tag: procs::unique().at("prepare the shim in", dir)?,
        shim: Some(me),
        host: procs::host().at("prepare the shim in", dir)?,
        claimed_at_ms: records::now_ms(),
    };
    if !records::create_once(dir, CLAIM, &claim)? {
        say(voice, SAY_TAKEN);
        return Ok(());
    }
    say(voice, SAY_CLAIMED);
    let folder = FolderWatch::new(dir, &claim.tag, Instant::now());
    // Synced, so that even a power failure can't make the run appear as not started.
    let exit = match records::sync(dir, CLAIM) {
        Ok(()) => run_claimed(dir, &spec, &claim, me, signals, voice),
        Err(error) => not_started(format!("failed to {error}")),
    };
    write_exit(dir, &exit, voice, &folder)
}

/// Becomes a process of its own: in a session that no other shim is in, and the parent of every orphan of the command.
fn detach() -> io::Result<(Signals, ProcessId)> {
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok((Signals::install()?, ProcessId::current()?))
}

/// From the claim on there is always an outcome.
fn run_claimed(dir: &Path, spec: &RunSpec, claim: &Claim, me: ProcessId, signals: Signals, voice: &PipeWriter) -> Exit {
    let mut fence = spec.fence.clone().map(FenceWatch::new);
    if let Some(fence) = &mut fence
        && fence.is_over(BootMoment::now())
    {
        return not_started(fence.why());
    }
    let started = match start(dir, spec, claim, &signals) {
        Ok(started) => started,
        Err(error) => {
            outputs::discard_of(dir, &claim.tag);
            return not_started(spec.secrets.mask().text(&error));
        }
    };
    let started_at_ms = records::now_ms();
    let job_pid = started.pid.as_raw_nonzero().get();
    // For people and for the server's bookkeeping: a run without this note is as good a run.
    if let Some(stat) = Stat::of(job_pid)
        && let Err(error) = records::add_command(dir, stat.id)
    {
        records::complain(dir, &format!("failed to note the command's process: {error}"));
    }
    say(voice, &format!("{SAY_STARTED} {job_pid}"));
    let tree = Tree { tag: claim.tag.clone(), shim: me };
    let supervisor = Supervisor::new(started, tree, signals, spec.grace.unwrap_or(DEFAULT_GRACE));
    let supervisor = supervisor.within(fence).watching(FolderWatch::new(dir, &claim.tag, Instant::now()));
    let outcome = supervisor.run(spec.timeout);
    Exit { outcome, started_at_ms: Some(started_at_ms), ended_at_ms: records::now_ms().max(started_at_ms) }
}

fn not_started(error: String) -> Exit {
    Exit { outcome: Outcome::FailedToStart { error }, started_at_ms: None, ended_at_ms: records::now_ms() }
}

fn start(dir: &Path, spec: &RunSpec, claim: &Claim, signals: &Signals) -> Result<StartedCommand, String> {
    let limit = spec.log_limit_bytes.unwrap_or(DEFAULT_LOG_LIMIT);
    let mut log = LogWriter::new(dir, limit).hiding(spec.secrets.mask());
    spec.notes.iter().for_each(|note| log.write(Stream::Kelos, format!("kelos: {note}\n").as_bytes()));
    let user = spec.run_as.as_deref().map(SystemUser::find).transpose()?;
    let outputs = OutputsPlace::prepare(dir, &claim.tag, user.as_ref(), spec.has_secrets)
        .map_err(|error| why_no_outputs(user.as_ref(), &error))?;
    let mut command = command(spec, user.as_ref())?;
    command.env("KELOS_RUN_ID", &spec.run_id).env(TAG_VARIABLE, &claim.tag).env(OUTPUTS_VARIABLE, outputs.path());
    let (output, stdout, stderr) =
        Streams::new(signals).map_err(|error| format!("failed to create a pipe: {error}"))?;
    if let Some(user) = user.as_ref().filter(|user| user.is_another()) {
        // So that it may open /dev/stdout and /dev/stderr; where that is not to be had, it can still write to them.
        let _ = std::os::unix::fs::fchown(&stdout, Some(user.uid.as_raw()), None);
        let _ = std::os::unix::fs::fchown(&stderr, Some(user.uid.as_raw()), None);
    }
    command.stdout(stdout).stderr(stderr);
    // `command` and its ends of the pipes are dropped when this function returns, so that they end with the job.
    let child = command.spawn().map_err(|error| {
        let of_user = user.as_ref().and_then(|user| user.why_not_started(&spec.argv[0], &error));
        of_user.unwrap_or_else(|| why_not_started(&spec.argv[0], &error))
    })?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("the system gave no process id")?;
    Ok(StartedCommand { pid, output, log, outputs })
}

fn why_no_outputs(user: Option<&SystemUser>, error: &io::Error) -> String {
    user.and_then(|user| user.why_not_started("a command", error))
        .unwrap_or_else(|| format!("failed to create the folder for its outputs: {error}"))
}

fn command(spec: &RunSpec, user: Option<&SystemUser>) -> Result<Command, String> {
    let (program, args) = spec.argv.split_first().ok_or("the command is empty, expected at least a program")?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).process_group(0);
    match user {
        Some(user) => user.adopt(&mut command),
        None if spec.inherit_env => without_credentials(&mut command),
        None => drop(command.env_clear()),
    }
    if let Some(name) = spec.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(format!("the environment name `{}` is not valid", name.escape_debug()));
    }
    command.envs(&spec.env).envs(&spec.secrets.env);
    if let Some(cwd) = &spec.cwd {
        // Checked in advance, as the error of the system wouldn't tell whether the folder or the program is missing.
        match fs::metadata(cwd) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => {
                return Err(format!("the working directory `{}` is not a directory", cwd.display()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("the working directory `{}` does not exist", cwd.display()));
            }
            Err(error) => {
                return Err(format!("failed to enter the working directory `{}`: {error}", cwd.display()));
            }
        };
    }
    match (user, &spec.cwd) {
        (Some(user), cwd) => user.switch(&mut command, cwd.as_deref()),
        (None, Some(cwd)) => drop(command.current_dir(cwd)),
        (None, None) => {}
    }
    Ok(command)
}

/// Keeps credentials from a command that the one who started this shim left in its environment.
fn without_credentials(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_credential)) {
        command.env_remove(name);
    }
}

fn why_not_started(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            format!("the program `{program}`, or the interpreter it names, does not exist")
        }
        io::ErrorKind::NotFound => format!("the program `{program}` is in no folder of PATH"),
        io::ErrorKind::PermissionDenied => format!("the program `{program}` is not executable"),
        _ => format!("failed to start `{program}`: {error}"),
    }
}

/// A full disk may have room again in a moment, and the outcome is known only here.
fn write_exit(dir: &Path, exit: &Exit, voice: &PipeWriter, folder: &FolderWatch) -> Result<(), LocalError> {
    let deadline = Instant::now() + WRITE_EXIT_FOR;
    loop {
        match records::create_once(dir, EXIT, exit) {
            // A server that is there keeps the outcome durably in a moment; then syncing here would
            // only hold it up. A power failure in that moment makes the outcome unknown.
            Ok(true) if server_listens(voice) => {
                say_ended(voice, exit);
                return Ok(());
            }
            Ok(true) => return records::sync(dir, EXIT),
            // The server gave this shim up and wrote the outcome itself.
            Ok(false) => return Ok(()),
            // The outcome can't be kept, nor what the command gave.
            Err(_) if !folder.is_there() => {
                say_ended(voice, &without_folder(exit));
                return Ok(());
            }
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(500)),
        }
    }
}

/// The outcome of a run whose folder is gone. One that was cancelled was cancelled.
fn without_folder(exit: &Exit) -> Exit {
    let outcome = match &exit.outcome {
        known @ (Outcome::Killed | Outcome::FailedToStart { .. } | Outcome::Unknown { .. } | Outcome::Lost { .. }) => {
            known.clone()
        }
        _ => Outcome::Unknown { why: FOLDER_GONE.to_owned() },
    };
    Exit { outcome, ..exit.clone() }
}

/// Whether the other end of the pipe is still open.
fn server_listens(voice: &PipeWriter) -> bool {
    let mut fds = [PollFd::new(voice, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok() && !fds[0].revents().contains(PollFlags::ERR)
}

fn say_ended(voice: &PipeWriter, exit: &Exit) {
    if let Ok(text) = serde_json::to_string(exit) {
        say(voice, &format!("{SAY_ENDED} {text}"));
    }
}

/// Sends the launcher, if it is still alive, the reason for which the command does not run.
pub(crate) fn say_failed(voice: &PipeWriter, why: &str) {
    say(voice, &format!("{SAY_FAILED} {}", why.replace('\n', " ")));
}

/// Sends a message to the launcher, if it is still alive. These short messages always fit into a pipe, so a server that
/// hangs blocks no shim.
fn say(mut voice: &PipeWriter, words: &str) {
    let _ = voice.write_all(format!("{words}\n").as_bytes());
}
