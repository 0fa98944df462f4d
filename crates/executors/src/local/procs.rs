//! Processes as `/proc` shows them, signalled only when they are still the ones that were meant.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The environment variable that marks every process of a run. Its value differs for each claim,
/// unlike a run id, which another server on the same machine may use as well.
pub(crate) const TAG_VARIABLE: &str = "KELOS_RUN_TAG";

/// One process for ever: a process id alone is used again, together with the start time it isn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its process number.
    pub pid: i32,
    /// Clock ticks from boot to the start of the process.
    pub started: u64,
}

/// The line of `/proc/<pid>/stat` that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) id: ProcessId,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Ended, and only waiting for its parent to ask.
    pub(crate) dead: bool,
}

/// The time that the processes of a run have to disappear after they were killed.
const DISAPPEAR: Duration = Duration::from_secs(3);

impl Stat {
    /// The process with this id, if there is one.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Every process that can be seen.
    pub(crate) fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries.flatten().filter_map(|entry| Self::of(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// Whether the process was started with this entry in its environment.
    fn has_tag(&self, entry: &[u8]) -> bool {
        fs::read(format!("/proc/{}/environ", self.id.pid))
            .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|found| found == entry))
    }
}

/// The program's name is in parentheses and may hold anything, so the fields are counted from the
/// last one.
fn parse_stat(pid: i32, line: &str) -> Option<Stat> {
    let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Stat { id: ProcessId { pid, started }, parent, group, session, dead })
}

impl ProcessId {
    /// The calling process.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn current() -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Stat::of(pid).map(|stat| stat.id).ok_or_else(|| io::Error::other("/proc is not mounted"))
    }

    /// Whether it still runs; one that ended and was not reaped does not.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.id == self && !stat.dead)
    }

    /// A handle that refers to this process even if its number is reused; `None` if it has ended.
    pub(crate) fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Compared after opening: from here on the number can't move to another process without the
        // handle noticing.
        Ok(self.is_alive().then_some(handle))
    }

    /// Signals this process and no other. `false`: it has ended.
    pub(crate) fn signal(self, signal: Signal) -> io::Result<bool> {
        let sent = match self.open() {
            Ok(Some(handle)) => pidfd_send_signal(handle, signal),
            Ok(None) => return Ok(false),
            // A kernel without pidfds: compared right before, which is the best there is.
            Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => match Pid::from_raw(self.pid) {
                Some(pid) if self.is_alive() => kill_process(pid, signal),
                _ => return Ok(false),
            },
            Err(error) => return Err(error),
        };
        match sent {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The scope in which a process id is unique: this boot of the machine, in this process id namespace.
pub(crate) fn host() -> io::Result<String> {
    // A process changes neither.
    static HOST: OnceLock<String> = OnceLock::new();
    if let Some(host) = HOST.get() {
        return Ok(host.clone());
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::read_link("/proc/self/ns/pid")?;
    Ok(HOST.get_or_init(|| format!("{} {}", boot.trim(), namespace.display())).clone())
}

/// A random unique value.
pub(crate) fn unique() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

/// The processes of a run, seen from outside.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The value of the run's tag in the environment.
    pub(crate) tag: String,
    /// The shim: ancestor of all, as it adopts orphans, and leader of the session.
    pub(crate) shim: ProcessId,
}

impl Tree {
    /// Every living process of the run but the shim and the caller: those with the tag, those of the shim's session,
    /// and all descendants of either or of the shim.
    pub(crate) fn members(&self) -> Vec<Stat> {
        let all = Stat::all();
        let entry = format!("{TAG_VARIABLE}={}", self.tag).into_bytes();
        // The shim's number belongs to its session while that has members, unless another process
        // got it before.
        let number_is_ours = all.iter().all(|stat| stat.id.pid != self.shim.pid || stat.id == self.shim);
        let is_own = |stat: &Stat| {
            let in_session = number_is_ours && stat.session == self.shim.pid && stat.id.started >= self.shim.started;
            stat.id == self.shim || in_session || stat.has_tag(&entry)
        };
        let mut queue: Vec<i32> = all.iter().filter(|stat| is_own(stat)).map(|stat| stat.id.pid).collect();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in &all {
            children.entry(stat.parent).or_default().push(stat.id.pid);
        }
        let mut found = HashSet::new();
        while let Some(pid) = queue.pop() {
            if found.insert(pid) {
                queue.extend(children.get(&pid).into_iter().flatten());
            }
        }
        let me = rustix::process::getpid().as_raw_nonzero().get();
        found.remove(&me);
        all.into_iter().filter(|stat| found.contains(&stat.id.pid) && stat.id != self.shim && !stat.dead).collect()
    }

    /// Kills every process of the run, again and again until none is left, or none can be. Blocks
    /// for a short while.
    pub(crate) fn kill(&self) -> io::Result<()> {
        let deadline = Instant::now() + DISAPPEAR;
        loop {
            let members = self.members();
            if members.is_empty() {
                return Ok(());
            }
            for member in &members {
                // One that can't be killed must not save the others; the deadline reports it.
                let _ = member.id.signal(Signal::KILL);
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{} do not end", members.len())));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_may_hold_anything() {
        let line = "42 (a) R b (c) S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2\n";
        let stat = parse_stat(42, line).unwrap();
        assert_eq!(stat.id, ProcessId { pid: 42, started: 98765 });
        assert_eq!((stat.parent, stat.group, stat.session, stat.dead), (7, 42, 40, false));
        assert!(parse_stat(42, "42 (half").is_none());
    }

    #[test]
    fn a_recycled_number_is_another_process() {
        let me = ProcessId::current().unwrap();
        assert!(me.is_alive());
        let other = ProcessId { started: me.started + 1, ..me };
        assert!(!other.is_alive());
        assert!(!other.signal(Signal::KILL).unwrap());
    }
}
