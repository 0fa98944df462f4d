//! Cron times of triggers: each that passes is a fact for the workflow that waits for it, and for nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::WorkflowEvent;
use kelos_model::ranges::Range;
use kelos_model::retry::scramble;
use kelos_model::workflow::CatchUp;
use kelos_model::{Occurrence, WorkflowId};

use crate::Core;
use crate::memory::Task;
use crate::plan::TICK;
use crate::tick::share;

/// What is late by less counts whatever the policy: a leader was changed, or the machine was busy.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// So many missed times are made up at most, and counted at most in a turn: programs share them.
const MOST_MISSED: usize = 1000;

/// A cron time.
type Time = (Timestamp, Arc<str>);

/// When the next cron time of each workflow's trigger counts: those of all workflows count in one order.
#[derive(Default)]
pub(crate) struct Firings {
    by_workflow: BTreeMap<WorkflowId, Timestamp>,
    in_order: BTreeSet<(Timestamp, WorkflowId)>,
}

impl Firings {
    /// Sets the moment of a workflow; none where nothing is to count.
    fn set(&mut self, id: &WorkflowId, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.by_workflow.insert(id.clone(), at),
            None => self.by_workflow.remove(id),
        };
        if let Some(before) = before {
            self.in_order.remove(&(before, id.clone()));
        }
        self.in_order.extend(at.map(|at| (at, id.clone())));
    }

    fn get(&self, id: &WorkflowId) -> Option<Timestamp> {
        self.by_workflow.get(id).copied()
    }

    /// The workflows whose moments have come, and when.
    fn passed(&self, now: Timestamp) -> BTreeSet<(Timestamp, WorkflowId)> {
        self.in_order.iter().take_while(|(at, _)| *at <= now).cloned().collect()
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }
}

impl Core {
    /// Sets the timer for the next cron time of a workflow's trigger, be it one that has passed.
    pub(crate) fn arm_firing(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        let waits = !task.subjects.is_empty() && !task.row.definition.trigger.firings().is_empty();
        if !waits || !task.row.present || task.row.paused || task.is_frozen() {
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
        self.pass_over_missed(id);
        if let Some((due, times)) = self.tasks.get(id).and_then(next_times)
            && due <= self.now
        {
            self.count_times(id, times, due);
        }
        self.arm_firing(id);
    }

    /// Counts the cron times that have passed and wait for a tick: they come before what comes now.
    pub(crate) fn fire_passed(&mut self) {
        if self.turn.fired_until.replace(self.now) != Some(self.now) {
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
            if !self.tasks.contains_key(&id) {
                self.no_workflow(&id);
                continue;
            }
            let fired = self.turn.fired.entry(self.programs.of(&id).clone()).or_default();
            if *fired >= most {
                continue;
            }
            *fired += 1;
            self.fire_next(&id);
            let next = self.firings.get(&id).filter(|next| *next <= self.now);
            passed.extend(next.map(|next| (next, id)));
        }
    }

    fn count_times(&mut self, id: &WorkflowId, times: Vec<Time>, due: Timestamp) {
        if let Some((time, _)) = times.first() {
            self.done_until(id, *time);
        }
        for (time, cron) in times {
            self.fired(id, &cron, time);
            self.collect(id, &Occurrence::Fired { cron, time }, None, due);
        }
    }

    /// Keeps when an expression of an event schedule last counted.
    fn fired(&mut self, id: &WorkflowId, cron: &Arc<str>, time: Timestamp) {
        if let Some(task) = self.tasks.get_mut(id).filter(|task| task.row.definition.keys.events().is_some()) {
            task.row.moments.fired.insert(cron.clone(), time);
        }
    }

    fn done_until(&mut self, id: &WorkflowId, time: Timestamp) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.row.moments.fired_until = Some(time);
            self.turn.workflows.insert(id.clone());
        }
    }

    /// Leaves out what passed while nobody scheduled, as the policy has it.
    fn pass_over_missed(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get(id) else { return self.no_workflow(id) };
        let policy = task.row.definition.keys.events().map(|events| events.catch_up).unwrap_or_default();
        if policy == CatchUp::All {
            return;
        }
        let Some(missed) = missed(task, self.now) else { return };
        let Some(last) = missed.last().copied() else { return };
        // What is hardly late comes after the missed ones, and is then the latest.
        let newer = || times_after(task, last).is_some_and(|(time, _)| time <= self.now);
        let all = policy == CatchUp::Skip || newer();
        let left_out = if all { &missed[..] } else { missed.split_last().map_or(&[][..], |(_, before)| before) };
        let done = if all { last } else { last - TICK };
        let (Some(first), Some(end)) = (left_out.first(), left_out.last()) else { return };
        let range = Range::new(*first, *end + TICK);
        let times = u32::try_from(left_out.len()).unwrap_or(u32::MAX);
        self.done_until(id, done);
        self.record_workflow(id, WorkflowEvent::Missed { range, times });
    }
}

/// The times that are late, ascending: the last ones where there are many. None where nothing is late.
fn missed(task: &Task, now: Timestamp) -> Option<Vec<Timestamp>> {
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
fn next_times(task: &Task) -> Option<(Timestamp, Vec<Time>)> {
    let (time, together) = times_after(task, task.row.moments.fired_until?)?;
    Some((late_by(time, jitter(task), task.row.id.as_str()), together))
}

/// The first time of a trigger after a moment that counts, and which expressions have it.
fn times_after(task: &Task, after: Timestamp) -> Option<(Timestamp, Vec<Time>)> {
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

fn end_time(task: &Task) -> Option<Timestamp> {
    task.row.definition.keys.events().and_then(|events| events.end_time)
}

fn jitter(task: &Task) -> u64 {
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
