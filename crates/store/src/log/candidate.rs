//! Whether a node may compete for the lease: not while it could not do a leader's work, and not before others where they should go first.

use std::sync::Arc;
use std::time::Duration;

use super::LeaseRecord;

/// The wall clock of a node, in milliseconds since 1970.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The largest difference between the clock of a node that leads and other clocks.
pub const MOST_CLOCK_ERROR: Duration = Duration::from_secs(5);

/// The first extra wait of a node that others should go before, and the longest.
const FIRST_WAIT: u32 = 2;
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// How many times an extra wait it is until that is forgotten.
const REMEMBERED: u32 = 16;

/// The reasons for which a node does not compete, each completing "failed to …", and what it waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidate {
    /// The local state can't be written or read, or has another past than the log.
    pub(super) own: Option<String>,
    /// Whether the store tells the time.
    pub(super) tells_time: bool,
    /// Its clock differs from that of the store.
    pub(super) clock_of_store: Option<String>,
    /// Its clock differs from those of the other nodes.
    pub(super) clock_of_nodes: Option<String>,
    /// Another process has its name.
    pub(super) twin: Option<String>,
    /// The leader that can't be reached, and the reason for taking the lease from it although it is renewed.
    pub(super) deposes: Option<((u64, u64), String)>,
    /// The leader can't be reached. That alone keeps nobody from leading.
    pub(super) unreached: Option<String>,
    deferral: Option<Deferral>,
}

/// An extra wait.
#[derive(Debug, Clone, Copy)]
struct Deferral {
    wait: Duration,
    /// When it was last imposed, by the monotonic clock.
    at: Duration,
}

impl Candidate {
    /// The obstacle that keeps the node from leading; none if it may compete.
    pub(super) fn obstacle(&self) -> Option<&String> {
        self.own.as_ref().or(self.twin.as_ref()).or(self.clock())
    }

    /// What is wrong with its clock. That of the store decides where it tells the time.
    pub(super) fn clock(&self) -> Option<&String> {
        if self.tells_time { self.clock_of_store.as_ref() } else { self.clock_of_nodes.as_ref() }
    }

    /// Has others go first, for twice as long each time that it happens again soon.
    pub(super) fn defer(&mut self, now: Duration, lease_lasts: Duration) {
        let wait = match self.deferral.filter(|last| now < last.at + last.wait * REMEMBERED) {
            Some(last) => (last.wait * 2).min(LONGEST_WAIT.max(lease_lasts * FIRST_WAIT)),
            None => lease_lasts * FIRST_WAIT,
        };
        self.deferral = Some(Deferral { wait, at: now });
    }

    /// How much longer than others it waits before it takes a lease.
    pub(super) fn extra_wait(&self, now: Duration) -> Duration {
        let counts = |last: &Deferral| now < last.at + last.wait * REMEMBERED;
        self.deferral.filter(counts).map_or(Duration::ZERO, |last| last.wait)
    }

    /// The reason for taking a lease from a leader that renews it.
    pub(super) fn deposes(&self, record: &LeaseRecord) -> Option<&str> {
        let (taking, reason) = self.deposes.as_ref()?;
        (*taking == (record.epoch, record.nonce)).then_some(reason)
    }
}

/// The words for a clock that is off by so many milliseconds: ahead where that is positive.
#[must_use]
pub fn clock_error(millis: i64, of: &str) -> Option<String> {
    let most = MOST_CLOCK_ERROR.as_secs();
    if Duration::from_millis(millis.unsigned_abs()) <= MOST_CLOCK_ERROR {
        return None;
    }
    let (seconds, side) = (millis.unsigned_abs() / 1000, if millis > 0 { "ahead of" } else { "behind" });
    Some(format!("compete for the lead: the clock of this node is {seconds} s {side} {of}; expected at most {most} s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_millis(2500);

    #[test]
    fn others_go_first_for_twice_as_long_each_time_and_not_for_ever() {
        let mut candidate = Candidate::default();
        let second = Duration::from_secs;
        assert_eq!(candidate.extra_wait(second(100)), Duration::ZERO);
        let waits = [100, 130, 200].map(|at| {
            candidate.defer(second(at), LASTS);
            candidate.extra_wait(second(at + 1)).as_secs()
        });
        assert_eq!(waits, [5, 10, 20]);
        assert_eq!(candidate.extra_wait(second(200 + 20 * 16)), Duration::ZERO);
        candidate.defer(second(600), LASTS);
        assert_eq!(candidate.extra_wait(second(601)).as_secs(), 5);
        (0..20).for_each(|_| candidate.defer(second(602), LASTS));
        assert_eq!(candidate.extra_wait(second(603)), LONGEST_WAIT);
    }

    #[test]
    fn a_clock_may_differ_by_some_seconds() {
        assert_eq!(clock_error(5_000, "the store"), None);
        assert_eq!(clock_error(-5_000, "the store"), None);
        let ahead = clock_error(86_400_000, "that of the store").unwrap();
        assert!(ahead.contains("is 86400 s ahead of that of the store; expected at most 5 s"), "{ahead}");
        assert!(clock_error(-6_000, "the store").unwrap().contains("6 s behind the store"));
    }
}
