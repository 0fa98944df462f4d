//! Cron times of triggers: each that passes is a fact for the workflow that waits for it, and for nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::WorkflowEvent;
use kelos_model::ranges::Range;
use kelos_model::retry::scramble;
use kelos_model::workflow::CatchUp;
use kelos_model::{Breach, Invariant, Occurrence, WorkflowId};

use crate::Core;
use crate::breaches::Breaches;
use crate::plan::TICK;
use crate::tick::share;
use crate::workflows::WorkflowState;

/// What is late by less counts whatever the policy: a leader was changed, or the machine was busy.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// So many missed times are made up at most, and counted at most in a turn: programs share them.
const MOST_MISSED: usize = 1000;

/// A cron time.
type Time = (Timestamp, Arc<str>);

/// When the next cron time of each workflow's trigger counts, and what of that the turn has counted: those of all workflows count
/// in one order.
#[derive(Default)]
pub(crate) struct Firings {
    by_workflow: BTreeMap<WorkflowId, Timestamp>,
    in_order: BTreeSet<(Timestamp, WorkflowId)>,
    /// How many cron times of each program the turn has counted.
    counted: BTreeMap<WorkflowId, usize>,
    /// The moment at which the turn has counted all that had passed.
    counted_at: Option<Timestamp>,
    breaches: Breaches,
}

impl Firings {
    /// Sets the moment of a workflow; none where nothing is to count.
    fn set(&mut self, id: &WorkflowId, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.by_workflow.insert(id.clone(), at),
            None => self.by_workflow.remove(id),
        };
        if let Some(before) = before
            && !self.in_order.remove(&(before, id.clone()))
        {
            self.breaches.report(Invariant::TimersAreSet, id);
        }
        self.in_order.extend(at.map(|at| (at, id.clone())));
    }

    /// The workflows whose moments have come, and when.
    fn passed(&self, now: Timestamp) -> BTreeSet<(Timestamp, WorkflowId)> {
        self.in_order.iter().take_while(|(at, _)| *at <= now).cloned().collect()
    }

    /// The moment of a workflow, where that has come.
    fn passed_of(&self, id: &WorkflowId, now: Timestamp) -> Option<Timestamp> {
        self.by_workflow.get(id).copied().filter(|at| *at <= now)
    }

    /// Uses up one of so many that may count of a program in a turn. Says whether there was one.
    fn use_up(&mut self, program: &WorkflowId, most: usize) -> bool {
        let counted = self.counted.entry(program.clone()).or_default();
        let may = *counted < most;
        *counted += usize::from(may);
        may
    }

    /// Notes that the turn counts what has passed by a moment. Says whether it had not done so yet.
    fn begin(&mut self, now: Timestamp) -> bool {
        self.counted_at.replace(now) != Some(now)
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }

    /// Ends a turn.
    pub(crate) fn settle(&mut self) {
        self.counted.clear();
        self.counted_at = None;
    }

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

impl Core {
    /// Sets the timer for the next cron time of a workflow's trigger, be it one that has passed.
    pub(crate) fn arm_firing(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        let waits = self.listeners.has(id) && !task.row.definition.trigger.firings().is_empty();
        if !waits || !task.row.present || task.row.paused || !task.row.enabled || task.is_frozen() {
            return self.firings.set(id, None);
        }
        if task.row.moments.fired_until.is_none() {
            task.row.moments.fired_until = Some(self.now);
            self.turn.workflows.insert(id.clone());
        }
        let next = next_times(task).map(|(due, _)| due);
        self.firings.set(id, next);
    }

    /// Counts the next cron time of a workflow's trigger, if it has passed: one, so that those of all workflows count in their order.
    fn fire_next(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        let missed = task.pass_over_missed(self.now);
        let passed = task.take_passed(self.now);
        if missed.is_some() || passed.is_some() {
            self.turn.workflows.insert(id.clone());
        }
        if let Some(Missed { range, times }) = missed {
            self.record_workflow(id, WorkflowEvent::Missed { range, times });
        }
        if let Some((due, times)) = passed {
            for (time, cron) in times {
                self.collect(id, &Occurrence::Fired { cron, time }, None, due);
            }
        }
        self.arm_firing(id);
    }

    /// Counts the cron times that have passed and wait for a tick: they come before what comes now.
    pub(crate) fn fire_passed(&mut self) {
        if self.firings.begin(self.now) {
            self.fire_due();
        }
    }

    /// Counts the cron times that have passed, in their order, and of each program no more than its share. What is left is due
    /// with the next turn.
    pub(crate) fn fire_due(&mut self) {
        let mut passed = self.firings.passed(self.now);
        let programs: BTreeSet<_> = passed.iter().map(|(_, id)| self.programs.of(id)).collect();
        let most = share(MOST_MISSED, programs.len());
        while let Some((_, id)) = passed.pop_first() {
            if self.firings.use_up(self.programs.of(&id), most) {
                self.fire_next(&id);
                passed.extend(self.firings.passed_of(&id, self.now).map(|next| (next, id)));
            }
        }
    }
}

/// Times that passed while nobody scheduled, and are left out.
struct Missed {
    range: Range,
    times: u32,
}

impl WorkflowState {
    /// Leaves out what passed while nobody scheduled, as the policy has it.
    fn pass_over_missed(&mut self, now: Timestamp) -> Option<Missed> {
        let policy = self.row.definition.keys.events().map(|events| events.catch_up).unwrap_or_default();
        if policy == CatchUp::All {
            return None;
        }
        let missed = missed(self, now)?;
        let last = missed.last().copied()?;
        // What is hardly late comes after the missed ones, and is then the latest.
        let newer = || times_after(self, last).is_some_and(|(time, _)| time <= now);
        let all = policy == CatchUp::Skip || newer();
        let left_out = if all { &missed[..] } else { missed.split_last().map_or(&[][..], |(_, before)| before) };
        let done = if all { last } else { last - TICK };
        let range = Range::new(*left_out.first()?, *left_out.last()? + TICK);
        self.row.moments.fired_until = Some(done);
        Some(Missed { range, times: u32::try_from(left_out.len()).unwrap_or(u32::MAX) })
    }

    /// Takes the next times of its trigger, where they count by now: from when on they do, and which they are.
    fn take_passed(&mut self, now: Timestamp) -> Option<(Timestamp, Vec<Time>)> {
        let (due, times) = next_times(self).filter(|(due, _)| *due <= now)?;
        let moments = &mut self.row.moments;
        for (time, cron) in &times {
            moments.fired_until = Some(*time);
            if self.row.definition.keys.events().is_some() {
                moments.fired.insert(cron.clone(), *time);
            }
        }
        Some((due, times))
    }
}

/// The times that are late, ascending: the last ones where there are many. None where nothing is late.
fn missed(task: &WorkflowState, now: Timestamp) -> Option<Vec<Timestamp>> {
    let until = task.row.moments.fired_until?;
    // What may still be drawn to come is not missed.
    let late = now.checked_sub(LATE).ok()?.checked_sub(millis(jitter(task))).ok()?;
    let (first, _) = times_after(task, until)?;
    if first >= late {
        return None;
    }
    let mut times = Vec::new();
    for firing in task.row.definition.trigger.firings() {
        let mut before = end_time(task).map_or(late, |end| end.min(late));
        for _ in 0..MOST_MISSED {
            let Some(time) = firing.schedule().previous_before(before).filter(|time| *time >= first) else { break };
            times.push(time);
            before = time;
        }
    }
    times.sort_unstable();
    times.dedup();
    Some(times)
}

/// When the next times of a trigger count, and which they are: several where expressions fire together.
fn next_times(task: &WorkflowState) -> Option<(Timestamp, Vec<Time>)> {
    let (time, together) = times_after(task, task.row.moments.fired_until?)?;
    Some((late_by(time, jitter(task), task.row.id.as_str()), together))
}

/// The first time of a trigger after a moment that counts, and which expressions have it.
fn times_after(task: &WorkflowState, after: Timestamp) -> Option<(Timestamp, Vec<Time>)> {
    let definition = &task.row.definition;
    // What is before the start does not count, so it is not looked at.
    let after = definition.start_time.map_or(after, |start| after.max(start - TICK));
    let firings = definition.trigger.firings();
    let next = firings.iter().filter_map(|firing| Some((firing.schedule().next_after(after)?, firing.name())));
    let next: Vec<Time> = next.collect();
    let time = next.iter().map(|(time, _)| *time).min()?;
    if end_time(task).is_some_and(|end| time >= end) {
        return None;
    }
    let mut together: Vec<Time> = next.into_iter().filter(|(other, _)| *other == time).collect();
    together.sort();
    Some((time, together))
}

fn end_time(task: &WorkflowState) -> Option<Timestamp> {
    task.row.definition.keys.events().and_then(|events| events.end_time)
}

fn jitter(task: &WorkflowState) -> u64 {
    task.row.definition.keys.events().map_or(0, |events| events.jitter_millis)
}

fn millis(millis: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// When a time counts that may be late by up to so many milliseconds: a draw that the time and the name seed.
fn late_by(time: Timestamp, jitter_millis: u64, name: &str) -> Timestamp {
    if jitter_millis == 0 {
        return time;
    }
    let named = name.bytes().fold(0_u64, |hash, byte| scramble(hash ^ u64::from(byte)));
    let draw = scramble(named ^ time.as_millisecond().cast_unsigned()) % jitter_millis.saturating_add(1);
    time.checked_add(millis(draw)).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> WorkflowId {
        name.parse().expect("an id")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn moments_come_in_one_order_whoever_has_them() {
        let mut firings = Firings::default();
        firings.set(&id("b"), Some(at(5)));
        firings.set(&id("a"), Some(at(9)));
        firings.set(&id("c"), Some(at(7)));
        firings.set(&id("a"), Some(at(6)));
        firings.set(&id("c"), None);
        assert_eq!(firings.passed(at(6)), BTreeSet::from([(at(5), id("b")), (at(6), id("a"))]));
        assert_eq!((firings.next(), firings.passed_of(&id("a"), at(5))), (Some(at(5)), None));
        assert_eq!(firings.take_breach(), None);
    }

    #[test]
    fn a_program_counts_no_more_than_its_share_in_a_turn() {
        let mut firings = Firings::default();
        assert_eq!([1, 2, 3].map(|_| firings.use_up(&id("p"), 2)), [true, true, false]);
        assert!(firings.use_up(&id("q"), 2), "another program has a share of its own");
        assert_eq!([at(1), at(1), at(2)].map(|now| firings.begin(now)), [true, false, true]);
        firings.settle();
        assert!(firings.use_up(&id("p"), 2) && firings.begin(at(2)), "the next turn counts anew");
    }

    #[test]
    fn a_moment_that_stands_in_no_order_is_a_breach() {
        let mut firings = Firings::default();
        firings.set(&id("a"), Some(at(5)));
        firings.in_order.clear();
        firings.set(&id("a"), None);
        assert_eq!(firings.take_breach(), Some(Breach::of(Invariant::TimersAreSet, &id("a"))));
    }
}
