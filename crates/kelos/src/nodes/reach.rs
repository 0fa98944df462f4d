//! Conclusions of a node from the answers of others: whether the leader can still be reached, and which clock is wrong. Without IO.

use std::time::{Duration, Instant};

use kelos_store::log::{MOST_CLOCK_ERROR, clock_error};

/// How long a leader that renews its lease may be out of reach before a node takes the lease from it, if no other node reaches it.
const UNREACHED: Duration = Duration::from_secs(4);

/// The same where no other node answers, or none is known because no leader has told this one of the others: it may be the one that is cut
/// off.
const UNREACHED_ALONE: Duration = Duration::from_secs(30);

/// The word of another node about the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It reaches the leader.
    Reaches,
    /// It does not, either.
    Misses,
    /// It does not answer.
    Silent,
}

/// For how long a node has failed to reach the leader of an epoch.
#[derive(Debug, Default)]
pub struct Reach(Option<(u64, Instant)>);

impl Reach {
    /// The leader has answered, or there is none.
    pub fn answered(&mut self) {
        self.0 = None;
    }

    /// The leader of an epoch was asked at a moment, and did not answer. Returns whether others should be asked about it.
    pub fn missed(&mut self, epoch: u64, asked: Instant) -> bool {
        match self.0 {
            Some((of, since)) if of == epoch => asked.saturating_duration_since(since) >= UNREACHED,
            _ => {
                self.0 = Some((epoch, asked));
                false
            }
        }
    }

    /// Whether to take the lease from the leader, as far as others answer by now. Without others it matters whether this node would know of
    /// them.
    #[must_use]
    pub fn gives_up(&self, now: Instant, others: &[Sight], knows_all: bool) -> bool {
        let Some((_, since)) = self.0 else { return false };
        let passed = now.saturating_duration_since(since);
        if others.contains(&Sight::Reaches) || passed < UNREACHED {
            return false;
        }
        knows_all && others.is_empty() || others.contains(&Sight::Misses) || passed >= UNREACHED_ALONE
    }
}

/// The error of a node's clock, by how many milliseconds it is ahead of each other node's: that of a leader counts if most others say so, that
/// of another node also if the leader alone does.
#[must_use]
pub fn clock_error_among(leads: bool, ahead_of: &[i64]) -> Option<String> {
    let most = i64::try_from(MOST_CLOCK_ERROR.as_millis()).unwrap_or(i64::MAX);
    let (wrong, right): (Vec<i64>, Vec<i64>) = ahead_of.iter().partition(|millis| millis.saturating_abs() > most);
    let is_outvoted = wrong.len() > right.len() && (!leads || wrong.len() > 1);
    let of = if wrong.len() == 1 { "that of the leader" } else { "those of most other nodes" };
    wrong.first().filter(|_| is_outvoted).and_then(|millis| clock_error(*millis, of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_given_up_when_no_other_node_reaches_it() {
        let (began, mut reach) = (Instant::now(), Reach::default());
        let at = |seconds| began + Duration::from_secs(seconds);
        assert!(!reach.missed(7, at(0)) && !reach.missed(7, at(3)) && reach.missed(7, at(4)));
        assert!(!reach.gives_up(at(3), &[], true));
        assert!(reach.gives_up(at(4), &[], true), "there are two nodes");
        assert!(!reach.gives_up(at(29), &[], false) && reach.gives_up(at(30), &[], false), "there may be others");
        assert!(reach.gives_up(at(4), &[Sight::Misses, Sight::Silent], true));
        assert!(reach.gives_up(at(4), &[Sight::Misses], false), "one that the log names");
        assert!(!reach.gives_up(at(100), &[Sight::Misses, Sight::Reaches], true), "this node is the one with a fault");
        assert!(!reach.gives_up(at(4), &[Sight::Silent], true) && reach.gives_up(at(30), &[Sight::Silent], true));
        assert!(!reach.missed(8, at(40)), "another leader");
        reach.answered();
        assert!(!reach.gives_up(at(90), &[], true));
    }

    #[test]
    fn the_clock_of_most_nodes_is_right() {
        const DAY: i64 = 86_400_000;
        let wrong = |leads, ahead: &[i64]| clock_error_among(leads, ahead).is_some();
        assert!(!wrong(true, &[]) && !wrong(false, &[4_000, -4_000]));
        assert!(wrong(true, &[DAY, DAY]) && wrong(false, &[DAY, DAY + 900]));
        assert!(!wrong(false, &[-DAY, 0]), "the leader's is wrong");
        // Of two nodes either may be wrong, and the one that does not lead says so.
        assert!(!wrong(true, &[DAY]) && wrong(false, &[-DAY]));
    }
}
