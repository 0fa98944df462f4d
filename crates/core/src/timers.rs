//! What time alone will wake: a table of moments, and its minimum.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::{Probe, SlotRef, WorkflowId};

/// What a moment is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A schedule's next time has passed.
    Plan(WorkflowId),
    /// A cron time of a workflow's trigger has passed.
    Fire(WorkflowId),
    /// A slot's delay, timeout or back-off has passed.
    Slot(SlotRef),
    /// A run has not been heard of for long.
    Run(SlotRef),
    /// A probe is due to be asked again.
    Probe(Probe),
    /// A workflow at the front of its lines has waited long.
    Line(WorkflowId),
}

/// One moment for each timer.
#[derive(Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Timestamp, Timer)>,
    by_timer: BTreeMap<Timer, Timestamp>,
}

impl Timers {
    /// Sets a timer, whatever it was set to before.
    pub(crate) fn set(&mut self, timer: Timer, at: Timestamp) {
        if let Some(before) = self.by_timer.insert(timer.clone(), at) {
            if before == at {
                return;
            }
            self.by_time.remove(&(before, timer.clone()));
        }
        self.by_time.insert((at, timer));
    }

    pub(crate) fn clear(&mut self, timer: &Timer) {
        if let Some(at) = self.by_timer.remove(timer) {
            self.by_time.remove(&(at, timer.clone()));
        }
    }

    pub(crate) fn get(&self, timer: &Timer) -> Option<Timestamp> {
        self.by_timer.get(timer).copied()
    }

    /// Moves some timers by the same span.
    pub(crate) fn shift(&mut self, by: SignedDuration, mut which: impl FnMut(&Timer) -> bool) {
        let moved = self.by_timer.iter().filter(|(timer, _)| which(timer));
        for (timer, at) in moved.map(|(timer, at)| (timer.clone(), *at)).collect::<Vec<_>>() {
            if let Ok(at) = at.checked_add(by) {
                self.set(timer, at);
            }
        }
    }

    /// The workflows whose cron times have passed, and when the first of them did.
    pub(crate) fn firings(&self, now: Timestamp) -> BTreeSet<(Timestamp, WorkflowId)> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        due.filter_map(|(at, timer)| if let Timer::Fire(id) = timer { Some((*at, id.clone())) } else { None }).collect()
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes one timer whose moment has come.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<Timer> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, timer) = self.by_time.pop_first()?;
        self.by_timer.remove(&timer);
        Some(timer)
    }
}
