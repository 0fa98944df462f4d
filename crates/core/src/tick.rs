//! A tick: fire timers, plan, look, dispatch, until nothing more can happen at this moment.

use std::collections::BTreeSet;

use kelos_model::{Recall, SlotRef, SlotState, WorkflowId};

use crate::timers::Timer;
use crate::{Command, Core, Only};

impl Core {
    pub(crate) fn tick(&mut self, only: &Only, look_again: bool) {
        self.fire_timers();
        if look_again {
            self.to_plan.extend(self.tasks.keys().cloned());
            self.ask_all_probes(only);
        }
        let to_plan = take(&mut self.to_plan, only);
        to_plan.iter().for_each(|id| self.arm_firing(id));
        self.fire_timers();
        for id in to_plan {
            self.plan(&id);
        }
        // Who was held before has come further than who waits for its trigger, and goes first.
        self.judge_held(only, Some(self.now));
        // Looking can change a state that others look at; each slot changes state a bounded number of times.
        loop {
            while let Some(slots) = self.take_dirty(only, false) {
                for slot in slots {
                    self.look(&slot);
                }
            }
            if self.awaits_store() {
                break;
            }
            self.judge_held(only, None);
            self.deliver_ends();
            if !self.push() && self.dirty_is_empty(only) && !self.may_admit(only) {
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
                Timer::Probe(probe) => self.probe_due(&probe),
                Timer::Line(id) => self.mark_pools_of(&id),
            }
        }
    }

    fn dirty_is_empty(&self, only: &Only) -> bool {
        match only {
            None => self.dirty.is_empty(),
            Some(only) => !self.dirty.iter().any(|slot| only.contains(&slot.workflow)),
        }
    }

    /// Takes the slots that are to be looked at: those that are held, or all others.
    pub(crate) fn take_dirty(&mut self, only: &Only, held: bool) -> Option<BTreeSet<SlotRef>> {
        let wanted = |slot: &SlotRef| {
            let is_held = self.live(slot).is_some_and(|live| live.slot.state == SlotState::Held);
            is_held == held && only.as_ref().is_none_or(|only| only.contains(&slot.workflow))
        };
        let (taken, others): (BTreeSet<_>, _) = self.dirty.iter().cloned().partition(wanted);
        self.dirty = others;
        (!taken.is_empty()).then_some(taken)
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
