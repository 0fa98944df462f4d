//! Timers, and the earliest of them. They are kept by workflow, so that one with many due timers does not delay the
//! others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::{Breach, Invariant, WorkflowId};

use crate::breaches::Breaches;

/// A set of timers, each with one moment.
pub(crate) struct Timers<T> {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<(Timestamp, T)>>,
    /// The first moment of each workflow.
    firsts: BTreeSet<(Timestamp, WorkflowId)>,
    /// The moment and the workflow of each timer.
    by_timer: BTreeMap<T, (Timestamp, WorkflowId)>,
    breaches: Breaches,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers {
            by_workflow: BTreeMap::new(),
            firsts: BTreeSet::new(),
            by_timer: BTreeMap::new(),
            breaches: Breaches::default(),
        }
    }
}

impl<T: Ord + Clone> Timers<T> {
    /// Sets a timer of a workflow, and replaces its earlier moment.
    pub(crate) fn set(&mut self, workflow: &WorkflowId, timer: T, at: Timestamp) {
        let before = self.by_timer.insert(timer.clone(), (at, workflow.clone()));
        if let Some((before, of)) = before {
            if before == at && of == *workflow {
                return;
            }
            self.take_out(&of, before, &timer);
        }
        let all = self.by_workflow.entry(workflow.clone()).or_default();
        let first = all.first().map(|(at, _)| *at);
        all.insert((at, timer));
        if first.is_none_or(|first| at < first) {
            self.move_first(workflow, first, Some(at));
        }
    }

    /// Clears a timer.
    pub(crate) fn clear(&mut self, timer: &T) {
        if let Some((at, workflow)) = self.by_timer.remove(timer) {
            self.take_out(&workflow, at, timer);
        }
    }

    fn take_out(&mut self, workflow: &WorkflowId, at: Timestamp, timer: &T) {
        let was_there = self.by_workflow.get_mut(workflow).is_some_and(|all| all.remove(&(at, timer.clone())));
        let Some(all) = self.by_workflow.get(workflow).filter(|_| was_there) else {
            return self.breaches.report(Invariant::TimersAreSet, workflow);
        };
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

    /// The moment of a timer.
    pub(crate) fn get(&self, timer: &T) -> Option<Timestamp> {
        self.by_timer.get(timer).map(|(at, _)| *at)
    }

    /// Moves some timers by a span.
    pub(crate) fn shift(&mut self, by: SignedDuration, mut which: impl FnMut(&T) -> bool) {
        let moved = self.by_timer.iter().filter(|(timer, _)| which(timer));
        for (timer, (at, workflow)) in moved.map(|(timer, set)| (timer.clone(), set.clone())).collect::<Vec<_>>() {
            if let Ok(at) = at.checked_add(by) {
                self.set(&workflow, timer, at);
            }
        }
    }

    /// The workflows with due timers, and the first moment of each.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, &WorkflowId)> {
        self.firsts.iter().map(|(at, id)| (*at, id)).take_while(move |(at, _)| *at <= now)
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.firsts.first().map(|(at, _)| *at)
    }

    /// Takes a due timer of a workflow.
    pub(crate) fn pop(&mut self, workflow: &WorkflowId, now: Timestamp) -> Option<T> {
        let (_, timer) = self.by_workflow.get(workflow)?.first().filter(|(at, _)| *at <= now)?;
        let timer = timer.clone();
        if self.get(&timer).is_none() {
            // It would stay the first forever.
            self.breaches.report(Invariant::TimersAreSet, workflow);
            return None;
        }
        self.clear(&timer);
        Some(timer)
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}
