//! The policy: three looks at all folders, each with little memory, and a verdict on each folder.
//!
//! A folder is kept for the days of its project, and as one of the newest of its workflow however old it is. If those that are kept take
//! more than all together may, the oldest go, by whole hours. A run that may still be needed stays in any case, and so does one that
//! ended within the last hour.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use jiff::{SignedDuration, Timestamp};

use super::settings::{Retention, Term};
use super::size::size_text;

/// The time for which a run stays that has ended: its output may still be on the way to elsewhere.
const RECENT: SignedDuration = SignedDuration::from_hours(1);

const HOUR: i64 = 3_600;
const DAY_SECONDS: i64 = 86_400;

/// A folder of a run, as far as the policy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepsake<'a> {
    /// The project of its workflow.
    pub project: &'a str,
    /// The name by which folders of one workflow are known.
    pub workflow: &'a str,
    /// When its run ended.
    pub ended_at: Timestamp,
    /// The bytes that it takes.
    pub bytes: u64,
}

/// The state of affairs around the run of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// It has ended, its outcome is known, and nothing goes on with its slot.
    Settled,
    /// It, its slot, or the run of its flow is live.
    Live,
    /// Its outcome is not known, or nothing is known of it.
    Unknown,
}

/// The reason for which a folder goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is older than its project keeps.
    Age {
        /// Days that are kept.
        days: u32,
    },
    /// All folders together took more than they may.
    Space {
        /// Bytes that they may take.
        output: u64,
    },
}

impl Removal {
    /// The reason in words that follow "it was removed": `after 90 days`.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Removal::Age { days: 1 } => "after 1 day".to_owned(),
            Removal::Age { days } => format!("after {days} days"),
            Removal::Space { output } => format!("so that all output takes at most {}", size_text(output)),
        }
    }
}

/// The first look: which are the newest of each workflow.
#[derive(Debug)]
pub struct Ranks {
    term: Term,
    now: Timestamp,
    newest: BTreeMap<String, BinaryHeap<Reverse<Timestamp>>>,
}

impl Ranks {
    /// A look at this moment.
    #[must_use]
    pub fn new(term: Term, now: Timestamp) -> Ranks {
        Ranks { term, now, newest: BTreeMap::new() }
    }

    /// Takes in a folder.
    pub fn note(&mut self, folder: Keepsake<'_>) {
        let runs = usize::try_from(self.term.of(folder.project).runs).unwrap_or(usize::MAX);
        if !self.newest.contains_key(folder.workflow) {
            self.newest.insert(folder.workflow.to_owned(), BinaryHeap::new());
        }
        let Some(newest) = self.newest.get_mut(folder.workflow) else { return };
        newest.push(Reverse(folder.ended_at));
        if newest.len() > runs {
            newest.pop();
        }
    }

    /// Ends the look, and begins the second one.
    #[must_use]
    pub fn room(self) -> Room {
        let Ranks { term, now, newest } = self;
        let oldest = |(workflow, heap): (String, BinaryHeap<Reverse<Timestamp>>)| {
            // All of few stay.
            Some((workflow, heap.into_iter().map(|Reverse(at)| at).min()?))
        };
        let ranked = newest.into_iter().filter_map(oldest).collect();
        Room { policy: Policy { term, now, ranked, before: Timestamp::MIN }, hours: BTreeMap::new() }
    }
}

/// The second look: how much those take that age leaves, by the hour of their end.
#[derive(Debug)]
pub struct Room {
    policy: Policy,
    hours: BTreeMap<i64, u64>,
}

impl Room {
    /// Takes in a folder.
    pub fn note(&mut self, folder: Keepsake<'_>) {
        if self.policy.by_age(folder).is_none() {
            let bytes = self.hours.entry(folder.ended_at.as_second().div_euclid(HOUR)).or_default();
            *bytes = bytes.saturating_add(folder.bytes);
        }
    }

    /// Ends the look.
    #[must_use]
    pub fn policy(self) -> Policy {
        let mut taken: u64 = 0;
        let full = self.hours.iter().rev().find(|(_, bytes)| {
            taken = taken.saturating_add(**bytes);
            taken > self.policy.term.output
        });
        let end = full.and_then(|(hour, _)| Timestamp::from_second((hour + 1) * HOUR).ok());
        Policy { before: end.unwrap_or(Timestamp::MIN), ..self.policy }
    }
}

/// The verdict on each folder, after both looks.
#[derive(Debug)]
pub struct Policy {
    term: Term,
    now: Timestamp,
    /// The end of the oldest of the newest runs of each workflow.
    ranked: BTreeMap<String, Timestamp>,
    /// Runs that ended before go, so that the rest has room.
    before: Timestamp,
}

impl Policy {
    /// The reason for which a folder goes; none if it stays.
    #[must_use]
    pub fn verdict(&self, folder: Keepsake<'_>, standing: Situation) -> Option<Removal> {
        if standing != Situation::Settled {
            return None;
        }
        self.ripe(folder)
    }

    /// The same of a folder whose run is settled.
    #[must_use]
    pub fn ripe(&self, folder: Keepsake<'_>) -> Option<Removal> {
        if folder.ended_at.checked_add(RECENT).is_ok_and(|end| end > self.now) {
            return None;
        }
        let by_space = || Removal::Space { output: self.term.output };
        self.by_age(folder).or_else(|| (folder.ended_at < self.before).then(by_space))
    }

    /// When a folder goes that stays now, if nothing comes that is newer; none of one of the newest of its workflow.
    #[must_use]
    pub fn due(&self, folder: Keepsake<'_>) -> Option<Timestamp> {
        if self.is_ranked(folder) {
            return None;
        }
        end_of(self.term.of(folder.project), folder.ended_at)
    }

    fn by_age(&self, folder: Keepsake<'_>) -> Option<Removal> {
        let keeping = self.term.of(folder.project);
        let is_old = end_of(keeping, folder.ended_at).is_some_and(|end| end <= self.now);
        (is_old && !self.is_ranked(folder)).then_some(Removal::Age { days: keeping.days })
    }

    fn is_ranked(&self, folder: Keepsake<'_>) -> bool {
        self.ranked.get(folder.workflow).is_some_and(|oldest| folder.ended_at >= *oldest)
    }
}

/// The end of the days of a folder.
fn end_of(keeping: Retention, ended_at: Timestamp) -> Option<Timestamp> {
    ended_at.checked_add(SignedDuration::from_secs(i64::from(keeping.days) * DAY_SECONDS)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Folder = (usize, i64, u64, Situation);

    const PROJECTS: [&str; 3] = ["a", "a", "b"];
    const WORKFLOWS: [&str; 3] = ["a1", "a2", "b1"];

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000_000).unwrap()
    }

    fn keepsake((workflow, age, bytes, _): Folder) -> Keepsake<'static> {
        let ended_at = now() - SignedDuration::from_secs(age);
        Keepsake { project: PROJECTS[workflow], workflow: WORKFLOWS[workflow], ended_at, bytes }
    }

    fn decided(term: &Term, folders: &[Folder]) -> Vec<Option<Removal>> {
        let mut ranks = Ranks::new(term.clone(), now());
        folders.iter().for_each(|folder| ranks.note(keepsake(*folder)));
        let mut room = ranks.room();
        folders.iter().for_each(|folder| room.note(keepsake(*folder)));
        let policy = room.policy();
        folders.iter().map(|folder| policy.verdict(keepsake(*folder), folder.3)).collect()
    }

    /// The same by plain comparison of each folder with all others.
    fn specified(term: &Term, folders: &[Folder]) -> Vec<Option<Removal>> {
        let by_age = |folder: &Folder| {
            let keeping = term.of(PROJECTS[folder.0]);
            let newer = folders.iter().filter(|other| other.0 == folder.0 && other.1 < folder.1).count();
            let is_old = folder.1 >= i64::from(keeping.days) * 86_400;
            (is_old && newer >= keeping.runs as usize).then_some(Removal::Age { days: keeping.days })
        };
        let hour = |folder: &Folder| keepsake(*folder).ended_at.as_second() / 3600;
        let kept_since = |from: i64| -> u64 {
            folders.iter().filter(|one| by_age(one).is_none() && hour(one) >= from).map(|one| one.2).sum()
        };
        let decide = |folder: &Folder| {
            let stays = folder.3 != Situation::Settled || folder.1 < 3600;
            let by_space = (kept_since(hour(folder)) > term.output).then_some(Removal::Space { output: term.output });
            if stays { None } else { by_age(folder).or(by_space) }
        };
        folders.iter().map(decide).collect()
    }

    fn folder() -> impl Strategy<Value = Folder> {
        let standing =
            prop_oneof![8 => Just(Situation::Settled), 1 => Just(Situation::Live), 1 => Just(Situation::Unknown)];
        let age = prop_oneof![0_i64..7200, 0_i64..400_000, (0_i64..5).prop_map(|day| day * 86_400)];
        (0_usize..3, age, 0_u64..100, standing)
    }

    proptest! {
        #[test]
        fn the_looks_agree_with_the_plain_rule(
            folders in proptest::collection::vec(folder(), 0..40),
            (days, runs, own_days, own_runs) in (1_u32..4, 0_u32..6, 1_u32..4, 0_u32..6),
            output in 0_u64..3000,
        ) {
            let projects = BTreeMap::from([("b".to_owned(), Retention { days: own_days, runs: own_runs })]);
            let term = Term { usual: Retention { days, runs }, projects, output, archive: None };
            prop_assert_eq!(decided(&term, &folders), specified(&term, &folders));
        }
    }

    #[test]
    fn a_folder_that_stays_says_when_it_goes() {
        let term = Term { usual: Retention { days: 2, runs: 1 }, ..Term::default() };
        let [old, new] = [(0, 100_000, 1, Situation::Settled), (0, 10, 1, Situation::Settled)];
        let mut ranks = Ranks::new(term, now());
        [old, new].into_iter().for_each(|folder| ranks.note(keepsake(folder)));
        let policy = ranks.room().policy();
        assert_eq!(policy.verdict(keepsake(old), old.3), None);
        assert_eq!(policy.due(keepsake(old)), Some(now() + SignedDuration::from_secs(2 * 86_400 - 100_000)));
        assert_eq!(policy.due(keepsake(new)), None, "the newest one stays however old it gets");
    }

    #[test]
    fn reasons_are_said() {
        assert_eq!(Removal::Age { days: 90 }.words(), "after 90 days");
        let output = 10_000_000_000;
        assert_eq!(Removal::Space { output }.words(), "so that all output takes at most 10 GB");
    }
}
