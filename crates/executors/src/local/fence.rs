//! The fence of runs whose leader is on another machine: a lease file that their worker renews, and that the shim of each command reads.
//!
//! The leader gives a run up that it has not heard of for longer than the run's lease, and may start another one then. So the shim ends
//! the command by itself, whatever has become of the worker, once the lease has run out by the clock of this machine.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The lease file, in the folder of all runs.
pub(crate) const LEASE: &str = "lease";

/// The time between SIGTERM and SIGKILL of a command whose lease has run out.
pub const FENCE_GRACE: Duration = Duration::from_secs(1);

/// The longest time between two looks at the clock: a machine that slept wakes up late.
pub(crate) const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);

/// The time that a leader waits beyond a lease, so that no command is alive any more: the looks at the clock, the grace, and the kill itself.
const MARGIN: Duration = Duration::from_secs(5);

/// The share of a lease by which clocks of two machines may differ over its time.
const DRIFT: u32 = 1000;

/// Tries to read the lease file, which may be read while it is written.
const READS: usize = 5;

/// Length of a moment in the lease file: digits, a space and a check value.
const RECORD: usize = 20 + 1 + 8;

/// The time after which no command lives whose lease began this long ago, by a clock of another machine.
#[must_use]
pub fn surely_over(lease: Duration) -> Duration {
    lease.saturating_add(lease / DRIFT).saturating_add(MARGIN)
}

/// A moment of this machine since it was started, by a clock that never goes back and that counts while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootMoment(Duration);

impl BootMoment {
    /// The current moment.
    #[must_use]
    pub fn now() -> BootMoment {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        BootMoment(Duration::new(seconds, nanos))
    }
}

/// The lease file of a worker, which it renews with each answer of the leader.
#[derive(Debug)]
pub struct LeaseFile {
    file: File,
    renewed: BootMoment,
}

impl LeaseFile {
    /// The lease file of a folder of runs. Runs that an earlier process of this worker left go on under it.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn open(runs: &Path) -> io::Result<LeaseFile> {
        let path = runs.join(LEASE);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        Ok(LeaseFile { file, renewed: BootMoment(Duration::ZERO) })
    }

    /// Notes that the leader has heard of this worker at this moment or later. Written in place, so that a full disk stops nothing.
    ///
    /// # Errors
    /// When the file can't be written: the shims know nothing of it then.
    pub fn renew(&mut self, at: BootMoment) -> io::Result<()> {
        if at <= self.renewed {
            return Ok(());
        }
        self.file.write_all_at(record(at).as_bytes(), 0)?;
        self.renewed = at;
        Ok(())
    }
}

fn record(at: BootMoment) -> String {
    let digits = format!("{:020}", at.0.as_millis());
    format!("{digits} {:08x}", crc32fast::hash(digits.as_bytes()))
}

fn read(path: &Path) -> Option<BootMoment> {
    let file = File::open(path).ok()?;
    (0..READS).find_map(|_| {
        let mut bytes = [0; RECORD];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let at = BootMoment(Duration::from_millis(text.get(..20)?.parse().ok()?));
        (record(at) == text).then_some(at)
    })
}

/// The fence of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fence {
    /// The lease file of its worker.
    file: PathBuf,
    /// The time for which the run may go on without a word from the leader.
    lease_ms: u64,
}

impl Fence {
    /// The fence of a run in a folder of runs.
    pub(crate) fn new(runs: &Path, lease: Duration) -> Fence {
        Fence { file: runs.join(LEASE), lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX) }
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// The reason for which a command is ended whose lease has run out.
    pub(crate) fn why(&self) -> String {
        fenced(self.lease())
    }
}

/// The beginning of that reason, by which the leader knows it.
const FENCED: &str = "its worker had no answer from the leader for ";

/// The reason for which a command is ended whose lease has run out.
pub(crate) fn fenced(lease: Duration) -> String {
    format!("{FENCED}{lease:?}, so its command was ended")
}

/// Whether a command was ended because its lease had run out, by the reason of its unknown outcome.
pub(crate) fn is_fenced(reason: &str) -> bool {
    reason.starts_with(FENCED)
}

/// A fence that a shim keeps.
#[derive(Debug)]
pub(crate) struct FenceWatch {
    fence: Fence,
    /// The last word from the leader, as far as is known.
    renewed: Option<BootMoment>,
}

impl FenceWatch {
    pub(crate) fn new(fence: Fence) -> FenceWatch {
        let renewed = read(&fence.file);
        FenceWatch { fence, renewed }
    }

    /// Whether the lease has run out. The file is only read where the last known word is too old.
    pub(crate) fn is_over(&mut self, now: BootMoment) -> bool {
        let (lease, last) = (self.fence.lease(), self.renewed);
        let is_old = |at: Option<BootMoment>| at.is_none_or(|at| now.0 >= at.0.saturating_add(lease));
        if !is_old(last) {
            return false;
        }
        // A file that can't be read renews nothing.
        self.renewed = read(&self.fence.file).max(last);
        is_old(self.renewed)
    }

    pub(crate) fn why(&self) -> String {
        self.fence.why()
    }
}

/// The fence of a run that this process does itself: there is no shim to keep it.
#[derive(Debug)]
pub struct OwnFence(FenceWatch);

impl OwnFence {
    /// The fence of a run in a folder of runs, whose worker renews its lease there.
    #[must_use]
    pub fn new(runs: &Path, lease: Duration) -> OwnFence {
        OwnFence(FenceWatch::new(Fence::new(runs, lease)))
    }

    /// Waits until the lease has run out. Gives the reason for which the run has to end.
    pub async fn over(mut self) -> String {
        while !self.0.is_over(BootMoment::now()) {
            tokio::time::sleep(LOOK_AT_CLOCK).await;
        }
        self.0.why()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootMoment {
        BootMoment(Duration::from_millis(millis))
    }

    #[test]
    fn a_fence_is_over_a_lease_after_the_last_word_of_the_leader() {
        let folder = tempfile::tempdir().unwrap();
        let fence = Fence::new(folder.path(), Duration::from_secs(10));
        assert!(
            FenceWatch::new(fence.clone()).is_over(at(0)),
            "a worker that never heard of the leader may run nothing"
        );
        let mut lease = LeaseFile::open(folder.path()).unwrap();
        lease.renew(at(5_000)).unwrap();
        let mut watch = FenceWatch::new(fence);
        assert!(!watch.is_over(at(14_999)));
        assert!(watch.is_over(at(15_000)));
        lease.renew(at(9_000)).unwrap();
        assert!(!watch.is_over(at(15_000)), "the file is read again");
        lease.renew(at(7_000)).unwrap();
        assert!(!watch.is_over(at(18_999)) && watch.is_over(at(19_000)), "an answer that was overtaken renews nothing");
        drop(LeaseFile::open(folder.path()).unwrap());
        assert!(!watch.is_over(at(18_000)), "the next process of the worker takes nothing back");
        std::fs::write(folder.path().join(LEASE), "00000000000000099999 00000000").unwrap();
        assert!(watch.is_over(at(19_000)), "what is damaged renews nothing");
    }

    #[test]
    fn the_leader_waits_longer_than_the_shim() {
        for seconds in [1, 60, 86_400] {
            let lease = Duration::from_secs(seconds);
            assert!(surely_over(lease) > lease + LOOK_AT_CLOCK + FENCE_GRACE + Duration::from_secs(2));
        }
    }
}
