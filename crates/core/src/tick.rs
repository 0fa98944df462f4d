//! A tick: fire timers, plan, evaluate, dispatch, until nothing more is possible at this moment.

use kelos_model::WorkflowId;

use crate::budget::{Budget, share};
use crate::past::PastOf;
use crate::programs::About;
use crate::rota::both_ends;
use crate::wakes::Due;
use crate::{Core, WorkflowFilter};

impl Core {
    pub(crate) fn tick<E>(&mut self, only: &WorkflowFilter, look_again: bool, past: PastOf<'_, E>) -> Result<(), E> {
        // A step of a server that is stepped by hand has no limit.
        let most = if look_again { usize::MAX } else { self.config.at_once.max(1) };
        self.fire_timers(most);
        if look_again {
            self.workflows.ids().for_each(|id| self.planner.plan_soon(id));
            self.wakes.probes.ask_all(only, self.now);
        }
        self.plan_due(only, most, past)?;
        self.wakes.probes.ask_due(self.now, most);
        // A slot that was held before is ahead of one that waits for its trigger, and is evaluated first.
        let mut held = Budget::new(most, self.programs.woken());
        self.judge_held(only, Some(self.now), &mut held);
        let mut looks = Budget::new(most, self.wakes.dirty.workflows().count());
        let mut drawn = Budget::new(most, self.planner.count_to_draw());
        // An evaluation may change a state that other triggers refer to; each slot changes its state a bounded number
        // of times.
        loop {
            loop {
                let woken = self.wakes.dirty.take_share(only, &mut looks);
                if woken.is_empty() {
                    break;
                }
                woken.iter().for_each(|slot| self.look(slot));
            }
            // Slots that wait for answers of the past may have to run first.
            let mut recalled = self.hear_of_past(past)?;
            if !recalled {
                self.judge_held(only, None, &mut held);
                self.deliver_ends();
                let opened = self.push() | self.draw_backlogs(only, &mut drawn, past)?;
                recalled = self.hear_of_past(past)?;
                let about = About { only, before: None };
                let may_judge = || self.programs.has_next(&about, |program| held.of(program) > 0);
                let may_look = || self.wakes.dirty.has_share(only, &looks);
                if !recalled && !opened && !may_look() && !may_judge() {
                    break;
                }
            }
            if recalled && looks.is_for_all() {
                // An evaluation that only showed what had to be read does not count.
                looks = Budget::new(most, self.wakes.dirty.workflows().count());
            }
        }
        self.ticked = self.now;
        self.send_questions();
        self.dispatch(only, past)?;
        // Runs of flows that have begun open their first steps.
        while self.advance_flows(past)? {
            self.dispatch(only, past)?;
        }
        Ok(())
    }

    /// Fires the timers that are due, a share for each workflow. Of too many workflows it serves those that have waited longest, and the
    /// latest.
    fn fire_timers(&mut self, most: usize) {
        let due = self.wakes.due(self.now);
        let share = share(most, due.len());
        for id in both_ends(due, most) {
            self.fire_timers_of(&id, share);
        }
        self.fire_due();
    }

    /// Fires timers of a workflow. Most of them only note work for later.
    pub(crate) fn fire_timers_of(&mut self, id: &WorkflowId, most: usize) {
        for _ in 0..most {
            match self.wakes.pop(id, self.now) {
                Some(Due::Plan(id)) => self.planner.plan_soon(&id),
                Some(Due::Look(slot)) => self.wake(slot),
                Some(Due::Ask(slot)) => self.ask_about(&slot),
                Some(Due::Late(slot)) => self.pass_deadline(&slot),
                None => return,
            }
        }
    }
}
