//! The wakes of slots: timers, changes of other slots, answers to probes. Cost follows events: a waiting slot costs
//! nothing until one of them comes.
//!
//! Absent: the decision whether a woken slot starts, and the states of slots.

mod agenda;
mod bonds;
mod dirty;
mod probes;
#[cfg(test)]
mod tests;
mod timers;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::trigger::Waker;
use kelos_model::{Breach, Probe, ProbeAnswer, SlotRef, SlotState, WorkflowId};

use crate::keyed::SlotMap;
use agenda::Agenda;
pub(crate) use dirty::Dirty;
pub(crate) use probes::{Probes, Waits};
use timers::Timers;
pub(crate) use upstream::{Audience, Upstream};

/// The purpose of a timer that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// The next time of a schedule has passed.
    Plan(WorkflowId),
    /// The delay, timeout or back-off of a slot has passed.
    Look(SlotRef),
    /// There is no recent news of a run.
    Ask(SlotRef),
    /// The deadline of a slot has passed.
    Late(SlotRef),
}

/// Everything that can wake a slot.
pub(crate) struct Wakes {
    /// The timers for the next times of schedules.
    plans: Timers<WorkflowId>,
    /// The timers of slots.
    looks: Agenda,
    /// The timers after which runs without news are checked.
    runs: Agenda,
    /// The timers for the deadlines of slots.
    deadlines: Agenda,
    /// The time without news after which a run is checked.
    patience: SignedDuration,
    pub(crate) probes: Probes,
    pub(crate) upstream: Upstream,
    /// The probes that slots wait for.
    questions: SlotMap<Box<[Arc<Probe>]>>,
    /// The slots to be evaluated.
    pub(crate) dirty: Dirty,
}

impl Wakes {
    pub(crate) fn new(waits: Waits) -> Wakes {
        Wakes {
            plans: Timers::default(),
            looks: Agenda::default(),
            runs: Agenda::default(),
            deadlines: Agenda::default(),
            patience: waits.patience,
            probes: Probes::new(waits),
            upstream: Upstream::default(),
            questions: SlotMap::default(),
            dirty: Dirty::default(),
        }
    }

    /// Sets everything that wakes a slot, including a timer for the first of its moments and `also_at`. Returns the
    /// slots of the past that have to be read for that.
    pub(crate) fn subscribe(
        &mut self,
        slot: &SlotRef,
        wakers: &[Waker],
        also_at: Option<Timestamp>,
        now: Timestamp,
        in_memory: impl Fn(&SlotRef) -> Option<(SlotState, Timestamp)>,
    ) -> Vec<SlotRef> {
        let moments = wakers.iter().filter_map(|waker| if let Waker::At(at) = waker { Some(*at) } else { None });
        match moments.chain(also_at).filter(|at| *at > now).min() {
            Some(at) => self.looks.set(slot, at),
            None => self.looks.clear(slot),
        }
        let probes = wakers.iter().filter_map(|waker| if let Waker::Probe(probe) = waker { Some(probe) } else { None });
        self.wait_on(slot, probes.collect(), now);
        let upstream = wakers.iter().filter_map(|waker| if let Waker::Slot(slot) = waker { Some(slot) } else { None });
        self.upstream.look_at(slot, upstream.cloned().collect(), in_memory)
    }

    /// Removes everything that wakes a slot.
    pub(crate) fn unsubscribe(&mut self, slot: &SlotRef) {
        self.looks.clear(slot);
        for probe in self.questions.remove(slot).unwrap_or_default() {
            self.probes.unwatch(&probe, slot);
        }
        self.upstream.look_at(slot, BTreeSet::new(), |_| None);
    }

    /// Sets the probes that a slot waits for.
    fn wait_on(&mut self, slot: &SlotRef, probes: Vec<&Probe>, now: Timestamp) {
        let before = self.questions.remove(slot).unwrap_or_default();
        let mut waited_on: Vec<Arc<Probe>> = Vec::with_capacity(probes.len());
        for probe in probes {
            let same = before.iter().chain(&waited_on).find(|one| ***one == *probe).cloned();
            if same.as_ref().is_none_or(|same| !waited_on.contains(same)) {
                waited_on.push(same.unwrap_or_else(|| self.probes.watch(probe, slot, now)));
            }
        }
        for probe in before.iter().filter(|probe| !waited_on.contains(probe)) {
            self.probes.unwatch(probe, slot);
        }
        if !waited_on.is_empty() {
            self.questions.insert(slot, waited_on.into());
        }
    }

    /// The latest answers to the probes that a slot waits for.
    pub(crate) fn answers(&self, slot: &SlotRef) -> Vec<(Probe, ProbeAnswer)> {
        let probes = self.questions.get(slot).into_iter().flatten();
        probes.filter_map(|probe| Some((Probe::clone(probe), self.probes.answer(probe)?))).collect()
    }

    /// The next moment at which a slot is evaluated by itself; for a probe in flight, the moment at which it was sent.
    pub(crate) fn next_look(&self, slot: &SlotRef) -> Option<Timestamp> {
        let probes = self.questions.get(slot).into_iter().flatten();
        let probes = probes.filter_map(|probe| self.probes.next_look(probe));
        probes.chain(self.looks.get(slot)).min()
    }

    /// Sets the timer of a slot, in addition to everything else that wakes it.
    pub(crate) fn look_at_moment(&mut self, slot: &SlotRef, at: Timestamp) {
        self.looks.set(slot, at);
    }

    /// Clears the timer of a slot.
    pub(crate) fn forget_moment(&mut self, slot: &SlotRef) {
        self.looks.clear(slot);
    }

    /// Starts or stops the timer after which a run without news is checked.
    pub(crate) fn watch_run(&mut self, slot: &SlotRef, is_alive: bool, now: Timestamp) {
        // A moment beyond the end of time is never reached.
        match now.checked_add(self.patience).ok().filter(|_| is_alive) {
            Some(at) => self.runs.set(slot, at),
            None => self.runs.clear(slot),
        }
    }

    /// Sets the timer for the deadline of a slot.
    pub(crate) fn watch_deadline(&mut self, slot: &SlotRef, at: Timestamp) {
        self.deadlines.set(slot, at);
    }

    /// Clears the timer for the deadline of a slot.
    pub(crate) fn forget_deadline(&mut self, slot: &SlotRef) {
        self.deadlines.clear(slot);
    }

    /// Sets or clears the timer for the next time of a workflow's schedule.
    pub(crate) fn plan_at(&mut self, id: &WorkflowId, at: Option<Timestamp>) {
        match at {
            Some(at) => self.plans.set(id, id.clone(), at),
            None => self.plans.clear(id),
        }
    }

    /// Moves waits back with the clock, including the timers of the given slots: a wait is a span.
    pub(crate) fn shift(&mut self, by: SignedDuration, waits: impl Fn(&SlotRef) -> bool) {
        self.runs.shift(by, |_| true);
        self.looks.shift(by, waits);
        self.probes.shift(by);
    }

    /// The workflows with due timers, in the order of their first ones.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<WorkflowId> {
        let mut firsts: BTreeMap<&WorkflowId, Timestamp> = BTreeMap::new();
        let of_slots = [&self.looks, &self.runs, &self.deadlines].into_iter().flat_map(|agenda| agenda.due(now));
        for (at, id) in of_slots.chain(self.plans.due(now)) {
            let first = firsts.entry(id).or_insert(at);
            *first = at.min(*first);
        }
        let in_order: BTreeSet<(Timestamp, &WorkflowId)> = firsts.into_iter().map(|(id, at)| (at, id)).collect();
        in_order.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Whether a timer of a workflow's slots is due.
    pub(crate) fn has_due_look(&self, id: &WorkflowId, now: Timestamp) -> bool {
        self.looks.first_of(id).is_some_and(|at| at <= now)
    }

    /// Takes the first due timer of a workflow.
    pub(crate) fn pop(&mut self, id: &WorkflowId, now: Timestamp) -> Option<Due> {
        let (plan, look, run) = (self.plans.get(id), self.looks.first_of(id), self.runs.first_of(id));
        let late = self.deadlines.first_of(id);
        let first = [plan, look, run, late].into_iter().flatten().min().filter(|at| *at <= now);
        if plan.is_some() && plan == first {
            self.plans.clear(id);
            Some(Due::Plan(id.clone()))
        } else if look.is_some() && look == first {
            self.looks.pop(id).map(Due::Look)
        } else if run.is_some() && run == first {
            self.runs.pop(id).map(Due::Ask)
        } else if first.is_some() {
            self.deadlines.pop(id).map(Due::Late)
        } else {
            None
        }
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        let of_timers = self.plans.take_breach().or_else(|| self.looks.take_breach());
        let of_runs = of_timers.or_else(|| self.runs.take_breach()).or_else(|| self.deadlines.take_breach());
        of_runs.or_else(|| self.probes.take_breach()).or_else(|| self.upstream.take_breach())
    }

    /// The next moment at which a timer is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let next = [self.plans.next(), self.looks.next(), self.runs.next(), self.deadlines.next(), self.probes.next()];
        next.into_iter().flatten().min()
    }
}
