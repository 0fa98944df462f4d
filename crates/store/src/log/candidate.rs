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

/// How long a node leads, and is heard of, until it is no fault of its own that another one takes the lease from it.
const LASTING: Duration = Duration::from_secs(20);

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
    /// Another process of its name leads.
    pub(super) leading_twin: Option<String>,
    /// The leader hears of another process of its name.
    pub(super) reported_twin: Option<String>,
    /// Whether other nodes reached it when it led last.
    pub(super) is_reached: bool,
    /// The leader that can't be reached, and the reason for taking the lease from it although it is renewed.
    pub(super) deposes: Option<((u64, u64), String)>,
    /// The leader can't be reached. That alone keeps no node from leading.
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

impl Deferral {
    /// Whether it is not forgotten by now.
    fn counts(&self, now: Duration) -> bool {
        now < self.at + self.wait * REMEMBERED
    }
}

impl Candidate {
    /// The obstacle that keeps the node from leading; none if it may compete.
    pub(super) fn obstacle(&self) -> Option<&String> {
        let twin = self.leading_twin.as_ref().or(self.reported_twin.as_ref());
        self.own.as_ref().or(twin).or(self.clock())
    }

    /// The fault of its clock. That of the store decides where it tells the time.
    pub(super) fn clock(&self) -> Option<&String> {
        if self.tells_time { self.clock_of_store.as_ref() } else { self.clock_of_nodes.as_ref() }
    }

    /// Another node, which did not reach this one, took the lease from it after a time. Two that can't reach each other get longer waits
    /// each time. One that the others reach keeps its own, so that a node with a fault can't make it wait.
    pub(super) fn was_deposed(&mut self, now: Duration, led_for: Duration, lease_lasts: Duration) {
        match &mut self.deferral {
            Some(last) if last.counts(now) && self.is_reached && led_for >= LASTING => last.at = now,
            _ => self.defer(now, lease_lasts),
        }
    }

    /// Has others go first, for twice as long each time that it happens again soon.
    pub(super) fn defer(&mut self, now: Duration, lease_lasts: Duration) {
        let wait = match self.deferral.filter(|last| last.counts(now)) {
            Some(last) => (last.wait * 2).min(LONGEST_WAIT.max(lease_lasts * FIRST_WAIT)),
            None => lease_lasts * FIRST_WAIT,
        };
        self.deferral = Some(Deferral { wait, at: now });
    }

    /// How much longer than others it waits before it takes a lease.
    pub(super) fn extra_wait(&self, now: Duration) -> Duration {
        self.deferral.filter(|last| last.counts(now)).map_or(Duration::ZERO, |last| last.wait)
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
    fn a_leader_that_others_reach_waits_no_longer_each_time() {
        let (mut reached, mut alone) = (Candidate { is_reached: true, ..Candidate::default() }, Candidate::default());
        let second = Duration::from_secs;
        for at in [100, 130, 160] {
            reached.was_deposed(second(at), second(30), LASTS);
            alone.was_deposed(second(at), second(30), LASTS);
        }
        assert_eq!((reached.extra_wait(second(161)).as_secs(), alone.extra_wait(second(161)).as_secs()), (5, 20));
        reached.was_deposed(second(165), second(5), LASTS);
        assert_eq!(reached.extra_wait(second(166)).as_secs(), 10, "its own take-over did not last");
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
