//! The connection of the server to its fork server, which is started with the first run and again when it has ended.

use std::ffi::OsString;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kelos_model::variables::is_credential;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv,
    sendmsg, socketpair,
};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Mutex;

use super::blocking::blocking;
use super::fork_server::READY;

/// Between two attempts to hand a run over while the fork server is busy with others.
const BUSY: Duration = Duration::from_micros(500);

/// The most bytes of a fork server's error output that are read.
const LONGEST_WORDS: u64 = 4096;

/// The reason for which there is no fork server.
#[derive(Debug)]
pub(crate) enum NoServer {
    /// Its program could not be executed.
    Spawn { program: String, source: io::Error },
    /// It ended before it was ready; its last words.
    Ended(String),
}

/// Has shims forked for runs.
#[derive(Debug)]
pub(crate) struct Spawner {
    command: Vec<OsString>,
    /// For how long a fork server may take nothing before it is replaced.
    patience: Duration,
    /// Runs are handed over one after the other; the first that finds the fork server ended starts it again.
    server: Mutex<Option<Arc<ForkServer>>>,
}

/// A fork server that was ready once.
#[derive(Debug)]
pub(crate) struct ForkServer {
    line: OwnedFd,
    process: std::sync::Mutex<Child>,
}

impl Spawner {
    pub(crate) fn new(command: Vec<OsString>, patience: Duration) -> Self {
        Self { command, patience, server: Mutex::default() }
    }

    /// Has a shim forked for the run of this folder, and handed the memory with its secrets; gives what the shim will say, and who forks it. A fork server that
    /// dies before it has forked takes the shim's voice with it.
    pub(crate) async fn fork(
        &self,
        dir: &Path,
        secrets: Option<&OwnedFd>,
    ) -> Result<(Receiver, Arc<ForkServer>), NoServer> {
        let trouble = |source| NoServer::Spawn { program: self.program(), source };
        let mut current = self.server.lock().await;
        let (voice, end) = io::pipe().map_err(trouble)?;
        let (voice, end) = (Receiver::from_owned_fd(voice.into()).map_err(trouble)?, OwnedFd::from(end));
        let files: Vec<BorrowedFd<'_>> = std::iter::once(end.as_fd()).chain(secrets.map(AsFd::as_fd)).collect();
        let mut fresh = false;
        loop {
            let server = match &*current {
                Some(server) => Arc::clone(server),
                None => {
                    let command = self.command.clone();
                    fresh = true;
                    let server = Arc::new(blocking(move || ForkServer::start(&command)).await?);
                    Arc::clone(current.insert(server))
                }
            };
            match self.hand_over(&server, dir, &files).await {
                Ok(()) => return Ok((voice, server)),
                // It was killed, or it hangs.
                Err(error) => {
                    server.end();
                    *current = None;
                    if fresh {
                        return Err(trouble(error.into()));
                    }
                }
            }
        }
    }

    /// Waits, within the patience, until it can take one more.
    async fn hand_over(&self, server: &ForkServer, dir: &Path, files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let deadline = Instant::now() + self.patience;
        loop {
            match server.hand_over(dir, files) {
                // The last one: as many files are on their way as may be.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::TOOMANYREFS) if Instant::now() < deadline => {
                    tokio::time::sleep(BUSY).await;
                }
                result => return result,
            }
        }
    }

    /// Ends a fork server that hangs, so that the next run gets another one. Shims that it has forked are not affected.
    pub(crate) async fn give_up(&self, server: &Arc<ForkServer>) {
        let mut current = self.server.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, server)) {
            *current = None;
        }
        server.end();
    }

    fn program(&self) -> String {
        self.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Executes the program of a fork server with its end of the line. The end in this process is closed, so that the end of the program is heard.
fn execute(command: &[OsString], line: OwnedFd) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut process = Command::new(program);
    // A shim is handed what its job declares, and passes on the rest of its environment.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_credential)) {
        process.env_remove(name);
    }
    process.args(arguments).stdin(Stdio::from(line)).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
}

impl ForkServer {
    /// Executes the program and waits until it is ready.
    fn start(command: &[OsString]) -> Result<Self, NoServer> {
        let program = command.first().cloned().unwrap_or_default();
        let trouble = |source| NoServer::Spawn { program: program.to_string_lossy().into_owned(), source };
        let (line, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|error| trouble(error.into()))?;
        let mut process = execute(command, theirs).map_err(trouble)?;
        let errors = process.stderr.take();
        let server = Self { line, process: std::sync::Mutex::new(process) };
        let mut word = [0; READY.len()];
        let heard = loop {
            match recv(&server.line, &mut word, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                heard => break heard,
            }
        };
        if heard.is_ok_and(|(length, _)| &word[..length] == READY) {
            return Ok(server);
        }
        let mut said = Vec::new();
        if let Some(errors) = errors {
            let _ = errors.take(LONGEST_WORDS).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        Err(NoServer::Ended(
            said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned(),
        ))
    }

    /// Hands over a run: its folder, the end of the pipe for its shim's messages, and the memory with its secrets, if it has some.
    fn hand_over(&self, dir: &Path, files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(files));
        let path = [IoSlice::new(dir.as_os_str().as_bytes())];
        sendmsg(&self.line, &path, &mut rights, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
    }

    fn end(&self) {
        let mut process = self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        self.end();
    }
}
