//! Leaps of the clock: stretches of time that no turn vouches for, so that history which is old only because of one may be young.
//!
//! A machine without a clock of its own, or a copy of one, may begin far ahead of the time, and all history then looks old. The log says it:
//! a server that runs takes a turn at least once a day ([`LOOK_OF_LIFE`]), so a gap of more than that is a time in which it did not run, or a
//! time that never was. Nothing tells the two apart but a person. Absent: the consent, and what is removed.

use jiff::{SignedDuration, Timestamp};
use kelos_model::history::Term;
use kelos_store::{PageRequest, Queries, StoreError, TurnRecord};

/// The age of the newest turn at which a leader takes one to show that it runs.
pub const LOOK_OF_LIFE: SignedDuration = SignedDuration::from_hours(24);

/// The shortest and the longest gap between turns from which on it is a leap; between them it is the shortest term of all projects.
const SHORTEST: SignedDuration = SignedDuration::from_hours(2 * 24);
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Turns that are read at a time to see whether the clock came back, and the most pages of them.
const PAGE: usize = 500;
const PAGES: usize = 20;

/// A gap between two turns in a row, or after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLeap {
    /// The moment of the turn before it.
    pub from: Timestamp,
    /// The moment of the turn after it, or of the look.
    pub to: Timestamp,
}

/// The latest leap that makes history look old at a moment: one that the clock has not come back from, and that is not older than
/// the longest term. Once that has passed after a leap, what was before it is old in any case.
///
/// # Errors
/// When the store can't be read.
pub fn leap(reader: &dyn Queries, term: &Term, now: Timestamp) -> Result<Option<ClockLeap>, StoreError> {
    let Some(newest) = reader.turns(PageRequest::newest(1))?.rows.pop() else { return Ok(None) };
    let search = Search { reader, now, least: least(term), since: since(term, now) };
    if now.duration_since(newest.at) > search.least {
        return Ok(Some(ClockLeap { from: newest.at, to: now }));
    }
    // The turns before were removed, but for the first.
    let whole = reader.removed_history()?.turn;
    let oldest = search.first_after(whole.saturating_sub(1))?;
    oldest.map_or(Ok(None), |oldest| search.between(oldest, newest))
}

/// The shortest gap that is a leap.
fn least(term: &Term) -> SignedDuration {
    let days = term.projects.values().chain([&term.usual]).map(|keeping| keeping.days).min().unwrap_or(0);
    SignedDuration::from_hours(i64::from(days) * 24).clamp(SHORTEST, LONGEST)
}

/// The moment from which on a leap matters.
fn since(term: &Term, now: Timestamp) -> Timestamp {
    let days = term.projects.values().chain([&term.usual]).map(|keeping| keeping.days).max().unwrap_or(0);
    now.checked_sub(SignedDuration::from_hours(i64::from(days) * 24)).unwrap_or(Timestamp::MIN)
}

struct Search<'a> {
    reader: &'a dyn Queries,
    now: Timestamp,
    least: SignedDuration,
    since: Timestamp,
}

impl Search<'_> {
    /// The latest leap between two turns. Only stretches of turns that are longer than a leap are looked into, so it reads few turns of a
    /// long log.
    fn between(&self, from: TurnRecord, to: TurnRecord) -> Result<Option<ClockLeap>, StoreError> {
        let mut stretches = vec![(from, to)];
        while let Some((from, to)) = stretches.pop() {
            if to.at < self.since || to.at.duration_since(from.at) <= self.least {
                continue;
            }
            match self.middle(&from, &to)? {
                Some(middle) => stretches.extend([(from, middle), (middle, to)]),
                None if to.at <= self.now && !self.came_back(&to)? => {
                    return Ok(Some(ClockLeap { from: from.at, to: to.at }));
                }
                None => {}
            }
        }
        Ok(None)
    }

    /// A turn between two others; none if they follow each other.
    fn middle(&self, from: &TurnRecord, to: &TurnRecord) -> Result<Option<TurnRecord>, StoreError> {
        let mut end = to.turn;
        while end > from.turn + 1 {
            let half = from.turn + (end - from.turn) / 2;
            match self.first_after(half - 1)?.filter(|found| found.turn < to.turn) {
                Some(found) => return Ok(Some(found)),
                // Records from there on were removed.
                None => end = half,
            }
        }
        Ok(None)
    }

    /// Whether a turn soon after this one has an earlier time.
    fn came_back(&self, turn: &TurnRecord) -> Result<bool, StoreError> {
        let mut last = turn.turn;
        for _ in 0..PAGES {
            let after = last.to_string();
            let page = self.reader.turns(PageRequest::oldest(PAGE).after(Some(&after)))?.rows;
            if page.iter().any(|later| later.at < turn.at) {
                return Ok(true);
            }
            let Some(end) = page.last() else { return Ok(false) };
            last = end.turn;
        }
        Ok(false)
    }

    /// The first turn with a larger number.
    fn first_after(&self, turn: u64) -> Result<Option<TurnRecord>, StoreError> {
        let after = turn.to_string();
        let paging = PageRequest::oldest(1);
        let page = self.reader.turns(if turn == 0 { paging } else { paging.after(Some(&after)) })?;
        Ok(page.rows.into_iter().next())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kelos_model::history::Retention;
    use kelos_store::{Commit, Journal, MemoryStore, StoredState};

    use super::*;

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn store(moments: impl IntoIterator<Item = i64>) -> MemoryStore {
        let mut store = MemoryStore::new();
        let lease = store.lease("node", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        for moment in moments {
            let registers = vec![("b".to_owned(), "k".to_owned(), Some(serde_json::json!(moment)))];
            store.commit(lease, &Commit { at: at(moment), registers, ..Commit::default() }).unwrap();
        }
        store
    }

    fn term(days: u32) -> Term {
        Term { usual: Retention { days, runs: 5 }, projects: BTreeMap::new(), output: 0, archive: None }
    }

    /// The leap of a log that is kept for ninety days, in seconds.
    fn found(store: &MemoryStore, now: i64) -> Option<(i64, i64)> {
        let leap = leap(&*store.reader(), &term(90), at(now)).unwrap();
        leap.map(|leap| (leap.from.as_second(), leap.to.as_second()))
    }

    #[test]
    fn a_clock_that_is_ahead_of_the_newest_turn_has_leapt() {
        let log = store((0..100).map(|n| n * HOUR));
        let last = 99 * HOUR;
        assert_eq!(found(&log, last + 7 * DAY), None);
        assert_eq!(found(&log, last + 7 * DAY + 1), Some((last, last + 7 * DAY + 1)));
        assert_eq!(found(&store([]), 900 * DAY), None, "nothing is there to lose");
    }

    #[test]
    fn a_leap_stays_one_after_the_turns_that_follow_it() {
        let ahead = 120 * DAY;
        let hours = |from: i64, count: i64| (0..count).map(move |n| from + n * HOUR);
        let log = store(hours(0, 1000).chain(hours(999 * HOUR + ahead, 700)));
        let (from, to) = (999 * HOUR, 999 * HOUR + ahead);
        let end = to + 699 * HOUR;
        assert_eq!(found(&log, end), Some((from, to)));
        // The longest term has passed since: what was before is old however long the leap was.
        let log = store(hours(0, 10).chain(hours(9 * HOUR + ahead, 91 * 24)));
        assert_eq!(found(&log, 9 * HOUR + ahead + 91 * DAY), None);
    }

    #[test]
    fn a_clock_that_came_back_has_not_leapt() {
        let hours = |from: i64, count: i64| (0..count).map(move |n| from + n * HOUR);
        let log = store(hours(0, 50).chain(hours(120 * DAY, 30)).chain(hours(50 * HOUR, 2)));
        assert_eq!(found(&log, 52 * HOUR), None);
        assert_eq!(found(&log, 5 * DAY), None);
        // It comes to the time of the leap again, and the log has no gap.
        let log = store(hours(0, 50).chain(hours(120 * DAY, 30)).chain(hours(50 * HOUR, 130 * 24)));
        assert_eq!(found(&log, 132 * DAY), None);
    }

    #[test]
    fn the_latest_of_several_leaps_is_found_among_turns_that_were_removed() {
        let mut log = store([0, 20 * DAY, 21 * DAY, 40 * DAY, 41 * DAY]);
        assert_eq!(found(&log, 41 * DAY), Some((21 * DAY, 40 * DAY)));
        let lease = log.lease("node", at(41 * DAY), 1000).unwrap().unwrap();
        let trim = kelos_model::history::Trim::of(4, Vec::new());
        log.commit(lease, &Commit { at: at(42 * DAY), trim: Some(trim), ..Commit::default() }).unwrap();
        assert_eq!(found(&log, 42 * DAY), None, "only the first turn is left of those before");
    }

    #[test]
    fn short_terms_make_shorter_gaps_leaps() {
        let least_of = |days| least(&term(days)).as_hours() / 24;
        assert_eq!([1, 3, 7, 90].map(least_of), [2, 3, 7, 7]);
        let mut mixed = term(90);
        mixed.projects.insert("p".to_owned(), Retention { days: 4, runs: 0 });
        assert_eq!(least(&mixed).as_hours(), 4 * 24);
    }
}
