//! The history that turns remove from the database: events, the runs that they dispatched, and the records of old turns.

use jiff::Timestamp;

/// The history that one turn removes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trim {
    /// The turn up to which history may be incomplete from now on. Its own record stays, and vouches for what was before it: only the
    /// records between the first one and it go.
    pub until: u64,
    /// The positions of the log whose events go, with the runs that were dispatched and the facts that were named there: the first and
    /// the last of each stretch, ascending. None is after the last event of that turn. Runs that gave outputs stay, for what depends on
    /// them.
    pub stretches: Vec<(u64, u64)>,
}

impl Trim {
    /// The removal of events at these positions, in any order.
    #[must_use]
    pub fn of(until: u64, mut positions: Vec<u64>) -> Trim {
        positions.sort_unstable();
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for position in positions {
            match stretches.last_mut() {
                Some((_, last)) if position <= last.saturating_add(1) => *last = position,
                _ => stretches.push((position, position)),
            }
        }
        Trim { until, stretches }
    }

    /// The removal of what either removes.
    #[must_use]
    pub fn and(&self, other: &Trim) -> Trim {
        let both = self.stretches.iter().chain(&other.stretches);
        let positions = both.flat_map(|(first, last)| *first..=*last).collect();
        Trim::of(self.until.max(other.until), positions)
    }

    /// The part of its stretches that lies within the log up to an event.
    pub fn within(&self, last: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let cut = self.stretches.iter().map(move |(first, end)| (*first, (*end).min(last)));
        cut.filter(|(first, end)| first <= end)
    }
}

/// The part of a history that was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedHistory {
    /// The turn up to which history may be incomplete; 0 if nothing was removed.
    pub turn: u64,
    /// The last event of that turn.
    pub event: u64,
    /// The moment of that turn.
    pub at: Option<Timestamp>,
    /// The number of events that were removed.
    pub events: u64,
    /// The number of runs that were removed.
    pub runs: u64,
    /// Whether the database had no history before there were bounds, so that nobody has to agree to them.
    pub is_new: bool,
}

impl RemovedHistory {
    /// Whether an event with this position may have been removed.
    #[must_use]
    pub fn covers(&self, event: u64) -> bool {
        event <= self.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_become_stretches() {
        let trim = Trim::of(7, vec![9, 3, 4, 5, 11, 10, 1, 4]);
        assert_eq!(trim.stretches, [(1, 1), (3, 5), (9, 11)]);
        assert_eq!(trim.within(10).collect::<Vec<_>>(), [(1, 1), (3, 5), (9, 10)]);
        assert_eq!(trim.within(2).collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(Trim::of(7, Vec::new()).stretches, []);
        let both = trim.and(&Trim { until: 5, stretches: vec![(2, 3)] });
        assert_eq!(both, Trim { until: 7, stretches: vec![(1, 5), (9, 11)] });
    }
}
