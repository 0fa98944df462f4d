//! The fork server: the small process that becomes the shim of each run by forking itself.
//!
//! It is this program executed again, once for each launcher, by the hidden subcommand. It has one thread, and does nothing
//! but wait for words of its server: the folder of a run, and the pipe by which the shim of that run answers. A fork of it
//! costs a tenth of what executing the whole program does. It keeps nothing: what becomes of a run is between the shim and
//! the folder, so it may be killed at any time, and ends by itself when its server has ended.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, IoSliceMut, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::unistd::{ForkResult, fork};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

use super::descriptors::close_inherited;
use super::file_limit::survive_file_limit;
use super::{procs, shim};

/// The message by which a fork server announces that it is ready.
pub(crate) const READY: &[u8] = b"ready";

/// More than any path has.
const LONGEST_PATH: usize = 8192;

/// Forks shims for the launcher at the other end of standard input, until the launcher ends; returns the exit status
/// for the caller to pass on.
///
/// A program that uses a [`Launcher`](super::Launcher) calls this first thing in its `main`, before any thread or
/// runtime, when it was started with the arguments that the launcher was given.
pub fn shim_main() -> i32 {
    match serve() {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            1
        }
    }
}

fn serve() -> io::Result<()> {
    close_inherited()?;
    let server = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    prepare()?;
    send(&server, READY, SendFlags::NOSIGNAL)?;
    // Errors from here on have no reader; shims write theirs to the folders of their runs.
    let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    drop(nowhere);
    let mut path = vec![0; LONGEST_PATH];
    loop {
        let Order { length, voice, secrets } = match hear(&server, &mut path) {
            Ok(Some(order)) => order,
            Ok(None) => return Ok(()),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        match fork_here() {
            Ok(ForkResult::Parent { .. }) => {}
            Ok(ForkResult::Child) => {
                drop(server);
                std::process::exit(shim::run(Path::new(OsStr::from_bytes(&path[..length])), voice, secrets));
            }
            Err(error) => shim::say_failed(&voice, &format!("fork a shim: {}", io::Error::from(error))),
        }
    }
}

/// Leaves the server's session, so that neither its terminal nor its end reaches a shim, and learns what all shims need.
#[allow(unsafe_code)]
fn prepare() -> io::Result<()> {
    // Fails only for the leader of a process group, when started by hand.
    let _ = rustix::process::setsid();
    // Signals that the server or its supervisor blocks would never arrive at a shim, nor at its command.
    SigSet::empty().thread_set_mask().map_err(io::Error::from)?;
    survive_file_limit()?;
    // SAFETY: ignoring a signal installs no code. The system then reaps shims by itself; their exit statuses are not
    // needed.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }.map_err(io::Error::from)?;
    procs::host()?;
    Ok(())
}

/// A run that a shim is to be forked for.
struct Order {
    /// The length of the path of its folder.
    length: usize,
    /// The pipe for the messages of the shim.
    voice: PipeWriter,
    /// The memory with its secrets, if it has some.
    secrets: Option<OwnedFd>,
}

/// The next run; none once the server has ended.
fn hear(server: &OwnedFd, path: &mut [u8]) -> rustix::io::Result<Option<Order>> {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let heard = recvmsg(server, &mut [IoSliceMut::new(path)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
        if heard.bytes == 0 {
            return Ok(None);
        }
        let mut files = rights.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        if let Some(voice) = files.next() {
            return Ok(Some(Order { length: heard.bytes, voice: voice.into(), secrets: files.next() }));
        }
    }
}

#[allow(unsafe_code)]
fn fork_here() -> nix::Result<ForkResult> {
    // SAFETY: this process has one thread, so no lock is held by another one, and memory is whole in the child.
    unsafe { fork() }
}
