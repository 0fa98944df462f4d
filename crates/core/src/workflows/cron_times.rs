//! Cron times of triggers: those that have passed, and the misfires among them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::retry::scramble;
use kelos_model::workflow::{CatchUp, LATE};
use kelos_model::{Invariant, WorkflowId};

use super::{WorkflowState, Workflows};
use crate::moments::TICK;

/// The most misfires that are counted for a trigger, and the most cron times that a turn counts; programs share the
/// latter.
pub(crate) const MOST_MISSED: usize = 1000;

/// A cron time, and the name of its expression.
type CronTime = (Timestamp, Arc<str>);

/// Misfires that don't count.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfires {
    /// The range from the first to the last of them.
    pub(crate) range: Range,
    /// Their number.
    pub(crate) times: u32,
}

/// The next passed cron times of a workflow's trigger.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CronTimes {
    /// Misfires that don't count. The times after them are counted in their order.
    Missed(Misfires),
    /// The first cron time that counts, with its expressions, and the moment from which on it does.
    Next(Timestamp, Vec<CronTime>),
}

impl Workflows {
    /// The next cron time of a workflow's trigger, even if it has passed; none if it waits for none.
    pub(crate) fn next_firing(&mut self, id: &WorkflowId, now: Timestamp) -> Option<Timestamp> {
        let one = self.known(id)?;
        let waits = one.is_open() && one.is_enabled() && !one.row.definition.trigger.firings().is_empty();
        if !waits {
            return None;
        }
        if one.row.moments.fired_until.is_none() {
            self.change(id)?.row.moments.fired_until = Some(now);
        }
        next_times(self.get(id)?).map(|(due, _)| due)
    }

    /// Takes the misfires of a workflow's trigger, or else its next cron time if that has passed.
    pub(crate) fn take_passed(&mut self, id: &WorkflowId, now: Timestamp) -> Option<CronTimes> {
        let Some(one) = self.all.get_mut(id) else {
            self.breaches.report(Invariant::WorkflowIsKnown, id);
            return None;
        };
        let missed = one.pass_over_missed(now).map(CronTimes::Missed);
        let taken = missed.or_else(|| one.take_passed(now).map(|(due, times)| CronTimes::Next(due, times)))?;
        self.changed.insert(id.clone());
        Some(taken)
    }
}

impl WorkflowState {
    /// Takes the misfires that don't count by the catch-up policy.
    fn pass_over_missed(&mut self, now: Timestamp) -> Option<Misfires> {
        let policy = self.row.definition.keys.events().map(|events| events.catch_up).unwrap_or_default();
        if policy == CatchUp::All {
            return None;
        }
        let missed = missed(self, now)?;
        let last = missed.last().copied()?;
        // A time that is only slightly late comes after the misfires, and is then the latest.
        let newer = || times_after(self, last).is_some_and(|(time, _)| time <= now);
        let all = policy == CatchUp::Skip || newer();
        let left_out = if all { &missed[..] } else { missed.split_last().map_or(&[][..], |(_, before)| before) };
        let done = if all { last } else { last - TICK };
        let range = Range::new(*left_out.first()?, *left_out.last()? + TICK);
        self.row.moments.fired_until = Some(done);
        Some(Misfires { range, times: u32::try_from(left_out.len()).unwrap_or(u32::MAX) })
    }

    /// Takes the next cron times if they count by now, with the moment from which on they do.
    fn take_passed(&mut self, now: Timestamp) -> Option<(Timestamp, Vec<CronTime>)> {
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

/// The misfires, ascending; only the last ones if there are many. None if there are none.
fn missed(workflow: &WorkflowState, now: Timestamp) -> Option<Vec<Timestamp>> {
    let until = workflow.row.moments.fired_until?;
    // A time that its jitter may still put off is not a misfire.
    let late = now.checked_sub(LATE).ok()?.checked_sub(millis(jitter(workflow))).ok()?;
    let (first, _) = times_after(workflow, until)?;
    if first >= late {
        return None;
    }
    let mut times = Vec::new();
    for firing in workflow.row.definition.trigger.firings() {
        let mut before = end_time(workflow).map_or(late, |end| end.min(late));
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

/// The next cron times and the moment from which on they count; there are several if expressions fire together.
fn next_times(workflow: &WorkflowState) -> Option<(Timestamp, Vec<CronTime>)> {
    let (time, together) = times_after(workflow, workflow.row.moments.fired_until?)?;
    Some((late_by(time, jitter(workflow), workflow.row.id.as_str()), together))
}

/// The first cron time after a moment, with its expressions.
fn times_after(workflow: &WorkflowState, after: Timestamp) -> Option<(Timestamp, Vec<CronTime>)> {
    let definition = &workflow.row.definition;
    // Times before the start don't count.
    let after = definition.start_time.map_or(after, |start| after.max(start - TICK));
    let firings = definition.trigger.firings();
    let next = firings.iter().filter_map(|firing| Some((firing.schedule().next_after(after)?, firing.name())));
    let next: Vec<CronTime> = next.collect();
    let time = next.iter().map(|(time, _)| *time).min()?;
    if end_time(workflow).is_some_and(|end| time >= end) {
        return None;
    }
    let mut together: Vec<CronTime> = next.into_iter().filter(|(other, _)| *other == time).collect();
    together.sort();
    Some((time, together))
}

fn end_time(workflow: &WorkflowState) -> Option<Timestamp> {
    workflow.row.definition.keys.events().and_then(|events| events.end_time)
}

fn jitter(workflow: &WorkflowState) -> u64 {
    workflow.row.definition.keys.events().map_or(0, |events| events.jitter_millis)
}

fn millis(millis: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// The moment of a cron time with its jitter, a random delay that is seeded by the time and the name.
fn late_by(time: Timestamp, jitter_millis: u64, name: &str) -> Timestamp {
    if jitter_millis == 0 {
        return time;
    }
    let named = name.bytes().fold(0_u64, |hash, byte| scramble(hash ^ u64::from(byte)));
    let draw = scramble(named ^ time.as_millisecond().cast_unsigned()) % jitter_millis.saturating_add(1);
    time.checked_add(millis(draw)).unwrap_or(time)
}
