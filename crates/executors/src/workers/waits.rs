//! The waits of a worker on a disk of its own, by its lease.
//!
//! A node that stands still, or that a network has swallowed, takes connections and does not answer. The commands of a worker have to
//! survive that: it has to hear from another node before their lease is over. When it asks, its lease was last renewed as long ago as it
//! waited for something to do the time before. So with a lease L, in the worst case,
//!
//! - L/5 have passed when it asks the node that does not answer,
//! - that node has L/5, and another L/6 for the answer: until 0.57 L,
//! - each further node has L/6: the second one until 0.73 L, the third one until 0.9 L.
//!
//! With the shortest lease, 15 s, that is 3 s, 8.5 s, 11 s and 13.5 s; with 60 s it is 12 s, 29 s, and then 5 s for each node. Pauses
//! between them are 0.1 s at first, and never more than 1 s.

use std::time::Duration;

use super::SHORTEST_LEASE;

/// The longest wait for something to do: a proxy may end connections that are idle for longer.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The longest time that an answer may take beyond the wait for something to do.
const LONGEST_ANSWER: Duration = Duration::from_secs(5);

/// The waits of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waits {
    /// How long the leader may wait for something to do.
    pub(super) for_work: Duration,
    /// How long an answer may take for which the leader does not wait.
    pub(super) for_answer: Duration,
    /// How long any answer may take.
    pub(super) at_most: Duration,
}

impl Waits {
    /// Those of a worker with this lease; until one is known, with the shortest that there is.
    pub(super) fn of(lease: Option<Duration>) -> Waits {
        let lease = lease.unwrap_or(SHORTEST_LEASE);
        let (for_work, for_answer) = ((lease / 5).min(LONGEST_WAIT), (lease / 6).min(LONGEST_ANSWER));
        Waits { for_work, for_answer, at_most: for_work + for_answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_other_nodes_are_asked_before_the_lease_is_over() {
        for seconds in [15, 20, 30, 60, 120, 3600] {
            let lease = Duration::from_secs(seconds);
            let waits = Waits::of(Some(lease));
            let pauses = Duration::from_millis(100 + 200);
            let heard = waits.for_work + waits.at_most + waits.for_answer * 2 + pauses;
            assert!(heard + lease / 15 < lease, "{heard:?} of {lease:?}");
        }
        assert_eq!(Waits::of(None), Waits::of(Some(SHORTEST_LEASE)));
    }
}
