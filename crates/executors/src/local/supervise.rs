//! From the start of a command to the end of its last process.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::libc::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use super::fence::{BootMoment, FENCE_GRACE, FenceWatch, LOOK_AT_CLOCK};
use super::folder_watch::{ENDED_WITHOUT_FOLDER, FolderWatch};
use super::log::LogWriter;
use super::marks::Stream;
use super::outputs::{OUTPUTS_VARIABLE, OutputsPlace};
use super::procs::Tree;
use super::records::Outcome;
use super::streams::{Ready, Streams};

/// The time that background processes have to finish their output after the command has ended, and again after SIGTERM.
const TRAILING: Duration = Duration::from_millis(200);

/// Between two rounds of killing, in case a process was started during one.
const KILL_AGAIN: Duration = Duration::from_millis(10);

/// After this much killing what is left can't be killed (it hangs in the kernel), and the run ends
/// without it.
const GIVE_UP: Duration = Duration::from_secs(3);

/// Signals to the shim, as something that `poll` can wait for.
///
/// Handlers and not a blocked set read by a signalfd, because the command would inherit the blocked
/// set.
pub(crate) struct Signals {
    wake: UnixStream,
    stop: Arc<AtomicBool>,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Signals {
    pub(crate) fn install() -> io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            // The flag first: by the time of the wake-up it is set.
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, sender)?;
        Ok(Self { wake, stop })
    }

    fn clear(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.wake.read(&mut bytes), Ok(read) if read > 0) {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command runs.
    Command,
    /// The command has ended by itself; others may still have something to say.
    Trailing,
    /// All processes got SIGTERM.
    Polite,
    /// All processes are killed, until none is left.
    Hard,
}

/// A command that was started, and where what it writes goes.
pub(crate) struct StartedCommand {
    pub(crate) pid: Pid,
    pub(crate) output: Streams,
    pub(crate) log: LogWriter,
    pub(crate) outputs: OutputsPlace,
}

/// Supervises one command and all processes that it starts.
pub(crate) struct Supervisor {
    command: Pid,
    tree: Tree,
    grace: Duration,
    signals: Signals,
    output: Streams,
    log: LogWriter,
    outputs: OutputsPlace,
    buffer: Vec<u8>,
    /// The status with which the command itself ended.
    status: Option<WaitStatus>,
    /// The reason for which it was stopped, if it was.
    stopped: Option<Outcome>,
    phase: Phase,
    /// When the phase is over; never when absent.
    until: Option<Instant>,
    give_up: Option<Instant>,
    /// The fence that it keeps, until the lease has run out.
    fence: Option<FenceWatch>,
    /// The folder of the run, which it watches until the command is being ended.
    folder: Option<FolderWatch>,
}

impl Supervisor {
    pub(crate) fn new(command: StartedCommand, tree: Tree, signals: Signals, grace: Duration) -> Self {
        let StartedCommand { pid, output, log, outputs } = command;
        Self {
            command: pid,
            tree,
            grace,
            signals,
            output,
            log,
            outputs,
            buffer: vec![0; 64 * 1024],
            status: None,
            stopped: None,
            phase: Phase::Command,
            until: None,
            give_up: None,
            fence: None,
            folder: None,
        }
    }

    /// The same, for a command that ends with a lease.
    pub(crate) fn within(self, fence: Option<FenceWatch>) -> Self {
        Self { fence, ..self }
    }

    /// The same, for a command that ends with the folder of its run.
    pub(crate) fn watching(self, folder: FolderWatch) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// Waits for the end of the run.
    pub(crate) fn run(mut self, timeout: Option<Duration>) -> Outcome {
        // A timeout beyond what the clock can say is none.
        self.until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let look = self.folder.as_ref().map(FolderWatch::next);
            let next = self.until.into_iter().chain(look).min();
            let wait = next.map(|next| next.saturating_duration_since(Instant::now()));
            let wait = match &self.fence {
                Some(_) => Some(wait.map_or(LOOK_AT_CLOCK, |wait| wait.min(LOOK_AT_CLOCK))),
                None => wait,
            };
            self.wait_for_something(wait);
            let anybody_left = self.reap();
            if !anybody_left || !self.advance(Instant::now()) {
                break;
            }
        }
        self.read_the_rest();
        self.log.finish();
        self.take_outputs();
        self.outcome()
    }

    /// Waits for output, a signal, or the time to be up; takes what there is.
    fn wait_for_something(&mut self, wait: Option<Duration>) {
        for ready in self.output.wait(wait) {
            match ready {
                Ready::Output(stream) => self.read_output(stream),
                Ready::Other => self.signals.clear(),
            }
        }
    }

    fn read_output(&mut self, stream: Stream) {
        let read = self.output.read(stream, &mut self.buffer);
        if read > 0 {
            self.log.write(stream, &self.buffer[..read]);
        }
    }

    /// Reaps the processes that have ended. `false`: none is left. As the shim adopts every orphan, that is exact: no
    /// child means no descendant.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Moves on to the next phase when it is time. `false`: nothing more can be done.
    fn advance(&mut self, now: Instant) -> bool {
        self.keep_fence(now);
        self.keep_with_folder(now);
        let is_due = self.until.is_some_and(|until| now >= until);
        match self.phase {
            Phase::Command if self.status.is_some() => self.enter(Phase::Trailing, now + TRAILING),
            Phase::Command if self.signals.stop.load(Ordering::SeqCst) => self.stop(Outcome::Killed, now),
            Phase::Command if is_due => self.stop(Outcome::TimedOut, now),
            Phase::Trailing if is_due => {
                self.note_what_is_left();
                self.tell_to_end();
                self.enter(Phase::Polite, now + TRAILING);
            }
            Phase::Polite | Phase::Hard if is_due => {
                let give_up = *self.give_up.get_or_insert(now + GIVE_UP);
                if now >= give_up {
                    self.log.complain("failed to kill all processes of the run");
                    self.stopped = self.stopped.take().map(with_processes_left);
                    return false;
                }
                self.kill();
                self.enter(Phase::Hard, now + KILL_AGAIN);
            }
            _ => {}
        }
        true
    }

    /// Ends the command once its lease has run out; one that is being ended gets no more time than that.
    fn keep_fence(&mut self, now: Instant) {
        let Some(why) = self.fence.as_mut().and_then(|fence| fence.is_over(BootMoment::now()).then(|| fence.why()))
        else {
            return;
        };
        self.fence = None;
        let latest = now + FENCE_GRACE;
        match self.phase {
            Phase::Command if self.status.is_none() => {
                self.log.write(Stream::Kelos, format!("kelos: {why}\n").as_bytes());
                self.stop(Outcome::Unknown { why }, now);
            }
            _ => {}
        }
        self.until = Some(self.until.map_or(latest, |until| until.min(latest)));
    }

    /// Ends the command once the folder of its run is gone; nobody could find it there any more.
    fn keep_with_folder(&mut self, now: Instant) {
        if self.phase != Phase::Command || self.status.is_some() {
            self.folder = None;
        }
        if self.folder.as_mut().is_some_and(|folder| folder.is_gone(now)) {
            self.folder = None;
            self.stop(Outcome::Unknown { why: ENDED_WITHOUT_FOLDER.to_owned() }, now);
            let latest = now + FENCE_GRACE;
            self.until = Some(self.until.map_or(latest, |until| until.min(latest)));
        }
    }

    fn enter(&mut self, phase: Phase, until: Instant) {
        self.phase = phase;
        self.until = Some(until);
    }

    fn stop(&mut self, why: Outcome, now: Instant) {
        self.stopped = Some(why);
        self.tell_to_end();
        self.phase = Phase::Polite;
        self.until = now.checked_add(self.grace);
    }

    /// Notes in the output that the command is over and processes of it are not.
    fn note_what_is_left(&mut self) {
        let left = self.tree.members().len();
        if left == 0 {
            return;
        }
        let processes = if left == 1 { "a process".to_owned() } else { format!("{left} processes") };
        let said = format!("kelos: the command has ended and left {processes} in the background, which Kelos ends\n");
        self.log.write(Stream::Kelos, said.as_bytes());
    }

    /// Sends SIGTERM to the whole tree: first to the command's group, then to processes that have left it.
    fn tell_to_end(&self) {
        self.signal_group(Signal::TERM);
        let group = self.command.as_raw_nonzero().get();
        let told = self.status.is_none();
        for member in self.tree.members() {
            if !(told && member.group == group) {
                let _ = member.id.signal(Signal::TERM);
            }
        }
    }

    fn kill(&self) {
        self.signal_group(Signal::KILL);
        for member in self.tree.members() {
            let _ = member.id.signal(Signal::KILL);
        }
    }

    /// Only while the command is not reaped: until then its number, and so the group's, can't belong to another
    /// process.
    fn signal_group(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process_group(self.command, signal);
        }
    }

    /// Reads the rest of the pipes. Limited in time, as a process outside the tree may hold one open for ever.
    fn read_the_rest(&mut self) {
        let until = Instant::now() + TRAILING;
        while !self.output.have_ended() && Instant::now() < until {
            let ready = self.output.wait(Some(Duration::ZERO));
            let mut outputs = ready.into_iter().filter(|ready| *ready != Ready::Other).peekable();
            if outputs.peek().is_none() {
                return;
            }
            outputs.for_each(|ready| {
                if let Ready::Output(stream) = ready {
                    self.read_output(stream);
                }
            });
        }
    }

    /// Takes the outputs; logs the reason for which they are not accepted, and that a secret was in them.
    fn take_outputs(&mut self) {
        let said = match self.outputs.take(&self.log.mask()) {
            Ok(false) => return,
            Ok(true) => format!(
                "kelos: what it wrote to {OUTPUTS_VARIABLE} has a secret, which is masked: declare the secret where it is needed\n"
            ),
            Err(why) => format!("kelos: what it wrote to {OUTPUTS_VARIABLE} is left out: {why}\n"),
        };
        self.log.write(Stream::Kelos, said.as_bytes());
    }

    fn outcome(self) -> Outcome {
        if let Some(stopped) = self.stopped {
            return stopped;
        }
        let Some(status) = self.status else {
            return Outcome::Unknown { why: "the command was reaped by somebody else".to_owned() };
        };
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Outcome::Exited { code },
            (None, Some(signal)) => Outcome::Signalled { signal },
            (None, None) => Outcome::Unknown { why: format!("the command ended with the status {status:?}") },
        }
    }
}

/// The outcome of a command whose processes could not all be killed.
fn with_processes_left(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Unknown { why } => Outcome::Lost { why },
        known => known,
    }
}
