//! Timers: a table of the moments at which something is to be looked at, and its minimum. They are kept by workflow, so that one
//! that has many due does not keep the others waiting.

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
}

/// One moment for each timer.
#[derive(Default)]
pub(crate) struct Timers {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<(Timestamp, Timer)>>,
    /// The first moment of each workflow.
    firsts: BTreeSet<(Timestamp, WorkflowId)>,
    /// Cron times of triggers: those of all workflows count in one order.
    firings: BTreeSet<(Timestamp, WorkflowId)>,
    /// To when each is set, and for which workflow.
    by_timer: BTreeMap<Timer, (Timestamp, WorkflowId)>,
}

impl Timers {
    /// Sets a timer of a workflow, whatever it was set to before.
    pub(crate) fn set(&mut self, workflow: &WorkflowId, timer: Timer, at: Timestamp) {
        let before = self.by_timer.insert(timer.clone(), (at, workflow.clone()));
        if let Some((before, of)) = before {
            if before == at && of == *workflow {
                return;
            }
            self.take_out(&of, before, &timer);
        }
        if matches!(timer, Timer::Fire(_)) {
            self.firings.insert((at, workflow.clone()));
            return;
        }
        let all = self.by_workflow.entry(workflow.clone()).or_default();
        let first = all.first().map(|(at, _)| *at);
        all.insert((at, timer));
        if first.is_none_or(|first| at < first) {
            self.move_first(workflow, first, Some(at));
        }
    }

    pub(crate) fn clear(&mut self, timer: &Timer) {
        if let Some((at, workflow)) = self.by_timer.remove(timer) {
            self.take_out(&workflow, at, timer);
        }
    }

    fn take_out(&mut self, workflow: &WorkflowId, at: Timestamp, timer: &Timer) {
        if matches!(timer, Timer::Fire(_)) {
            self.firings.remove(&(at, workflow.clone()));
            return;
        }
        let Some(all) = self.by_workflow.get_mut(workflow) else { return };
        all.remove(&(at, timer.clone()));
        let first = all.first().map(|(at, _)| *at);
        if all.is_empty() {
            self.by_workflow.remove(workflow);
        }
        if first.is_none_or(|first| at < first) {
            self.move_first(workflow, Some(at), first);
        }
    }

    fn move_first(&mut self, workflow: &WorkflowId, before: Option<Timestamp>, now: Option<Timestamp>) {
        if let Some(before) = before {
            self.firsts.remove(&(before, workflow.clone()));
        }
        if let Some(now) = now {
            self.firsts.insert((now, workflow.clone()));
        }
    }

    pub(crate) fn get(&self, timer: &Timer) -> Option<Timestamp> {
        self.by_timer.get(timer).map(|(at, _)| *at)
    }

    /// Moves some timers by the same span.
    pub(crate) fn shift(&mut self, by: SignedDuration, mut which: impl FnMut(&Timer) -> bool) {
        let moved = self.by_timer.iter().filter(|(timer, _)| which(timer));
        for (timer, (at, workflow)) in moved.map(|(timer, set)| (timer.clone(), set.clone())).collect::<Vec<_>>() {
            if let Ok(at) = at.checked_add(by) {
                self.set(&workflow, timer, at);
            }
        }
    }

    /// The workflows whose cron times have passed, and when the first of them did.
    pub(crate) fn firings(&self, now: Timestamp) -> BTreeSet<(Timestamp, WorkflowId)> {
        self.firings.iter().take_while(|(at, _)| *at <= now).cloned().collect()
    }

    /// The workflows that have anything due but cron times.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<WorkflowId> {
        self.firsts.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let firsts = self.firsts.first().into_iter().chain(self.firings.first());
        firsts.map(|(at, _)| *at).min()
    }

    /// Takes one timer of a workflow whose moment has come.
    pub(crate) fn pop(&mut self, workflow: &WorkflowId, now: Timestamp) -> Option<Timer> {
        let (_, timer) = self.by_workflow.get(workflow)?.first().filter(|(at, _)| *at <= now)?;
        let timer = timer.clone();
        self.clear(&timer);
        Some(timer)
    }
}
