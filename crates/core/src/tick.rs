//! A tick: fire timers, plan, look, dispatch, until nothing more can happen at this moment.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{Recall, SlotKey, SlotRef, SlotState, WorkflowId};

use crate::dispatch::allows;
use crate::timers::Timer;
use crate::{Command, Core, Only};

/// How many slots a tick may still look at.
struct Looks {
    /// Of each workflow.
    share: usize,
    /// Of those of which some were.
    left: BTreeMap<WorkflowId, usize>,
}

impl Looks {
    fn of(&self, id: &WorkflowId) -> usize {
        self.left.get(id).copied().unwrap_or(self.share)
    }

    fn use_up(&mut self, id: WorkflowId, looks: usize) {
        let left = self.of(&id).saturating_sub(looks);
        self.left.insert(id, left);
    }
}

/// What each of so many workflows has of what a tick may do.
fn share(most: usize, workflows: usize) -> usize {
    (most / workflows.max(1)).max(1)
}

impl Core {
    pub(crate) fn tick(&mut self, only: &Only, look_again: bool) {
        // A step of a server that is stepped by hand is about everything.
        let most = if look_again { usize::MAX } else { self.config.at_once.max(1) };
        self.fire_timers();
        if look_again {
            self.to_plan.extend(self.tasks.keys().cloned());
            self.ask_all_probes(only);
        }
        let to_plan = take(&mut self.to_plan, only);
        to_plan.iter().for_each(|id| self.arm_firing(id));
        self.fire_timers();
        let planned = share(most, to_plan.len());
        for id in to_plan {
            self.plan(&id, planned);
        }
        self.ask_again(most);
        // Who was held before has come further than who waits for its trigger, and goes first.
        self.judge_held(only, Some(self.now));
        let mut looks = Looks { share: share(most, self.dirty.iter().count()), left: BTreeMap::new() };
        // Looking can change a state that others look at; each slot changes state a bounded number of times.
        loop {
            loop {
                let slots = self.take_dirty(only, &mut looks);
                if slots.is_empty() {
                    break;
                }
                for slot in slots {
                    self.look(&slot);
                }
            }
            if self.awaits_store() {
                break;
            }
            self.judge_held(only, None);
            self.deliver_ends();
            if !self.push() && !self.may_look(only, &looks) && !self.may_admit(only) {
                break;
            }
        }
        self.recall_upstream();
        // What the store is about to answer may have to go first; the turn ticks again after it.
        if self.awaits_store() {
            return;
        }
        self.ticked = self.now;
        let woken = take(&mut self.to_dispatch, only);
        self.dispatch(&woken, only);
    }

    /// Whether the store is asked for something that may have to go first.
    fn awaits_store(&self) -> bool {
        let is_recall = |command: &Command| matches!(command, Command::Recall(_));
        !self.turn.to_recall.is_empty() || self.turn.step.commands.iter().any(is_recall)
    }

    /// Fires the timers whose moment has come: most of them only note what is to be done.
    fn fire_timers(&mut self) {
        while let Some(timer) = self.timers.pop(self.now) {
            match timer {
                Timer::Plan(id) => {
                    self.to_plan.insert(id);
                }
                Timer::Fire(id) => self.fire_next(&id),
                Timer::Slot(slot) => {
                    self.dirty.insert(slot);
                }
                Timer::Run(slot) => self.ask_about(&slot),
                Timer::Probe(probe) => {
                    if let Some(workflow) = self.waits_for(&probe) {
                        self.to_ask.entry(workflow).or_default().insert(probe);
                    }
                }
                Timer::Line(id) => self.mark_pools_of(&id),
            }
        }
    }

    /// Asks again what is due to be, of each workflow its share.
    fn ask_again(&mut self, most: usize) {
        let asked = share(most, self.to_ask.len());
        let mut due = Vec::new();
        for probes in self.to_ask.values_mut() {
            let rest = probes.iter().nth(asked).cloned().map(|first| probes.split_off(&first)).unwrap_or_default();
            due.append(&mut std::mem::replace(probes, rest).into_iter().collect());
        }
        self.to_ask.retain(|_, probes| !probes.is_empty());
        due.iter().for_each(|probe| self.probe_due(probe));
    }

    /// Whether any slot may be looked at in this tick.
    fn may_look(&self, only: &Only, looks: &Looks) -> bool {
        let mut woken = self.dirty.iter().filter(|(id, _)| allows(only, id));
        woken.any(|(id, keys)| looks.of(id) > 0 || self.has_held(id) && keys.iter().any(|key| self.is_held(id, key)))
    }

    fn has_held(&self, id: &WorkflowId) -> bool {
        self.tasks.get(id).is_some_and(|task| task.held > 0)
    }

    fn is_held(&self, id: &WorkflowId, key: &SlotKey) -> bool {
        let live = self.tasks.get(id).and_then(|task| task.slots.get(key));
        live.is_some_and(|live| live.slot.state == SlotState::Held)
    }

    /// Takes the slots that are to be looked at and are not held, of each workflow its share.
    fn take_dirty(&mut self, only: &Only, looks: &mut Looks) -> Vec<SlotRef> {
        let woken: Vec<WorkflowId> =
            self.dirty.iter().map(|(id, _)| id).filter(|id| allows(only, id)).cloned().collect();
        let mut taken = Vec::new();
        for id in woken {
            let has_held = self.has_held(&id);
            let slots = self.tasks.get(&id).map(|task| &task.slots);
            let is_held = |key: &SlotKey| {
                let live = slots.and_then(|slots| slots.get(key)).filter(|_| has_held);
                live.is_some_and(|live| live.slot.state == SlotState::Held)
            };
            let of_it = self.dirty.take(&id, looks.of(&id), |key| !is_held(key));
            looks.use_up(id, of_it.len());
            taken.extend(of_it);
        }
        taken
    }

    /// Takes the held slots that are to be looked at.
    pub(crate) fn take_dirty_held(&mut self, only: &Only) -> Vec<SlotRef> {
        let woken = self.dirty.iter().map(|(id, _)| id).filter(|id| allows(only, id) && self.has_held(id));
        let mut taken = Vec::new();
        for id in woken.cloned().collect::<Vec<_>>() {
            let slots = self.tasks.get(&id).map(|task| &task.slots);
            let live = |key: &SlotKey| slots.and_then(|slots| slots.get(key));
            let is_held = |key: &SlotKey| live(key).is_some_and(|live| live.slot.state == SlotState::Held);
            taken.extend(self.dirty.take(&id, usize::MAX, is_held));
        }
        taken
    }

    /// Asks the store for upstream slots that looking came across, all in one question.
    pub(crate) fn recall_upstream(&mut self) {
        let wanted = std::mem::take(&mut self.turn.to_recall);
        if !wanted.is_empty() {
            self.command(Command::Recall(Recall::Slots(wanted.into_iter().collect())));
        }
    }
}

fn take(set: &mut BTreeSet<WorkflowId>, only: &Only) -> BTreeSet<WorkflowId> {
    let Some(only) = only else { return std::mem::take(set) };
    let taken = set.intersection(only).cloned().collect();
    set.retain(|id| !only.contains(id));
    taken
}
