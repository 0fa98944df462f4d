//! The backlog of a workflow: times of its schedule that are planned and have no slots yet. A year of seconds is one stretch.
//!
//! No slot lies in a backlog: a time of which a slot is made is taken out. Which times a stretch holds is for the
//! schedule of now to say.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::event::{Origin, SlotEvent};
use crate::id::BackfillId;
use crate::ranges::Range;
use crate::slot::Slot;
use crate::state::SlotState;
use crate::time::CronSchedule;

/// The shortest step between times.
const TICK: SignedDuration = SignedDuration::from_millis(1);

/// A range of planned times, all planned alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stretch {
    /// The range of the times.
    #[serde(flatten)]
    pub range: Range,
    /// When it was planned.
    pub since: Timestamp,
    /// The backfill that asked for it; none where the schedule alone did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<BackfillId>,
    /// The priority; a larger one starts first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// That its times were killed before any of them had a slot; none where they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed: Option<Kill>,
}

/// The end of what was planned and never had slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// When they were killed.
    pub at: Timestamp,
    /// The actor who asked for it.
    pub by: Actor,
    /// The reason, as it was given or as the scheduler words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

impl Stretch {
    /// The state of all its times: they wait, or were killed.
    #[must_use]
    pub fn state(&self) -> SlotState {
        if self.killed.is_some() { SlotState::Killed } else { SlotState::Waiting }
    }

    /// The slot of one of its times as all would see it: without events of its own.
    #[must_use]
    pub fn slot(&self) -> Slot {
        let since = self.killed.as_ref().map_or(self.since, |kill| kill.at);
        Slot {
            priority: self.priority,
            backfill: self.backfill.clone(),
            requested: self.backfill.is_some(),
            asked_at: self.backfill.as_ref().map(|_| self.since),
            ..Slot::new(self.state(), since)
        }
    }

    /// The events that make a slot of one of its times what it counts as.
    #[must_use]
    pub fn events(&self) -> Vec<SlotEvent> {
        let origin = if self.backfill.is_some() { Origin::Backfill } else { Origin::Schedule };
        let (priority, backfill) = (self.priority, self.backfill.clone());
        let planned = SlotEvent::Planned { origin, priority, backfill, by: None, reason: None };
        let killed = self.killed.as_ref().map(|kill| {
            let Kill { by, reason, .. } = kill.clone();
            SlotEvent::Killed { by, reason }
        });
        std::iter::once(planned).chain(killed).collect()
    }

    fn over(&self, range: Range) -> Stretch {
        Stretch { range, ..self.clone() }
    }
}

/// The stretches of a workflow, ascending; no two overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Backlog {
    stretches: Vec<Stretch>,
}

impl Backlog {
    /// The backlog of a workflow that has none.
    pub const EMPTY: Backlog = Backlog { stretches: Vec::new() };

    /// Whether nothing is planned but slots.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// All of it, ascending.
    #[must_use]
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The stretch that a moment lies in.
    #[must_use]
    pub fn at(&self, at: Timestamp) -> Option<&Stretch> {
        let next = self.stretches.partition_point(|one| one.range.end <= at);
        self.stretches.get(next).filter(|one| one.range.contains(at))
    }

    /// The parts of it that lie in a range, ascending.
    pub fn within(&self, range: Range) -> impl DoubleEndedIterator<Item = Stretch> + '_ {
        let first = self.stretches.partition_point(|one| one.range.end <= range.start);
        let last = self.stretches.partition_point(|one| one.range.start < range.end).max(first);
        let inside = self.stretches.get(first..last).unwrap_or_default().iter();
        inside.map(move |one| one.over(Range::new(one.range.start.max(range.start), one.range.end.min(range.end))))
    }

    /// Adds a stretch, in the place of what was there.
    pub fn put(&mut self, stretch: Stretch) {
        if stretch.range.is_empty() {
            return;
        }
        self.take(stretch.range);
        let next = self.stretches.partition_point(|one| one.range.start < stretch.range.start);
        self.stretches.insert(next, stretch);
        self.join(next);
        self.join(next.saturating_sub(1));
    }

    /// Makes one of a stretch and the next, where they touch and were planned alike.
    fn join(&mut self, index: usize) {
        let [one, next] = self.stretches.get(index..index + 2).unwrap_or_default() else { return };
        if one.range.end == next.range.start && one.over(next.range) == *next {
            let end = next.range.end;
            self.stretches.remove(index + 1);
            self.stretches[index].range.end = end;
        }
    }

    /// Takes a range out.
    pub fn take(&mut self, range: Range) {
        if range.is_empty() {
            return;
        }
        let first = self.stretches.partition_point(|one| one.range.end <= range.start);
        let last = self.stretches.partition_point(|one| one.range.start < range.end).max(first);
        let rest: Vec<Stretch> = self.stretches[first..last]
            .iter()
            .flat_map(|one| {
                let before = Range::new(one.range.start, one.range.end.min(range.start));
                let after = Range::new(one.range.start.max(range.end), one.range.end);
                [one.over(before), one.over(after)]
            })
            .filter(|one| !one.range.is_empty())
            .collect();
        self.stretches.splice(first..last, rest);
    }

    /// Takes one time out, of which there is a slot from now on.
    pub fn take_time(&mut self, at: Timestamp) {
        self.take(Range::new(at, at.checked_add(TICK).unwrap_or(Timestamp::MAX)));
    }

    /// Forgets stretches around a moment in which the schedule has no time any more.
    pub fn trim(&mut self, at: Timestamp, schedule: &CronSchedule) {
        let next = self.stretches.partition_point(|one| one.range.end < at);
        let is_idle = |one: &Stretch| schedule.times(one.range.start, one.range.end).next().is_none();
        for index in [next + 1, next] {
            if self.stretches.get(index).is_some_and(is_idle) {
                self.stretches.remove(index);
            }
        }
    }

    /// The stretches of a backfill whose times wait, ascending.
    pub fn of<'a>(&'a self, backfill: &'a BackfillId) -> impl Iterator<Item = &'a Stretch> {
        self.stretches.iter().filter(move |one| one.backfill.as_ref() == Some(backfill) && one.killed.is_none())
    }

    /// How many times of a schedule lie in it.
    #[must_use]
    pub fn count(&self, schedule: &CronSchedule) -> u64 {
        self.stretches.iter().map(|one| schedule.count(one.range)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a moment")
    }

    fn stretch(start: i64, end: i64, priority: i32) -> Stretch {
        let backfill = (priority > 0).then(|| BackfillId::new("b").expect("a name"));
        Stretch { range: Range::new(at(start), at(end)), since: at(0), backfill, priority, killed: None }
    }

    proptest! {
        #[test]
        fn agrees_with_a_map_of_points(
            steps in prop::collection::vec((0_i32..4, 0_i64..60, 0_i64..60), 1..30), a in 0_i64..60, b in 0_i64..60,
        ) {
            let (mut backlog, mut points) = (Backlog::default(), BTreeMap::new());
            for (what, start, end) in steps {
                match what {
                    0 => backlog.take(Range::new(at(start), at(end))),
                    1 => backlog.take_time(at(start)),
                    priority => backlog.put(stretch(start, end, priority - 2)),
                }
                let end = if what == 1 { start + 1 } else { end };
                for point in start..end {
                    if what < 2 { points.remove(&point); } else { points.insert(point, what - 2); }
                }
            }
            for point in 0..60 {
                prop_assert_eq!(backlog.at(at(point)).map(|one| one.priority), points.get(&point).copied());
            }
            let inside: BTreeMap<i64, i32> = backlog.within(Range::new(at(a), at(b)))
                .flat_map(|one| (one.range.start.as_millisecond()..one.range.end.as_millisecond()).map(move |point| (point, one.priority)))
                .collect();
            prop_assert_eq!(inside, points.range(a..b.max(a)).map(|(point, priority)| (*point, *priority)).collect());
            let pairs = backlog.stretches().windows(2);
            for pair in pairs {
                let apart = pair[0].range.end < pair[1].range.start || pair[0].priority != pair[1].priority;
                prop_assert!(apart && pair[0].range.end <= pair[1].range.start, "{pair:?}");
            }
            let text = serde_json::to_string(&backlog).expect("json");
            prop_assert_eq!(serde_json::from_str::<Backlog>(&text).expect("the same"), backlog);
        }
    }

    #[test]
    fn what_holds_no_time_is_forgotten() {
        let hourly = CronSchedule::hourly();
        let mut backlog = Backlog::default();
        backlog.put(stretch(0, 3 * 3_600_000, 0));
        assert_eq!(backlog.count(&hourly), 3);
        backlog.take_time(at(0));
        backlog.trim(at(0), &hourly);
        backlog.take_time(at(7_200_000));
        backlog.trim(at(7_200_000), &hourly);
        assert_eq!(backlog.stretches(), [stretch(1, 7_200_000, 0)]);
        backlog.take_time(at(3_600_000));
        backlog.trim(at(3_600_000), &hourly);
        assert!(backlog.is_empty());
    }
}
