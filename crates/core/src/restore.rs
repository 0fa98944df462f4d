//! Recovery: the only way to build a scheduler with a past.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::flow::{FLOW, is_carried_out_by_the_scheduler};
use kelos_model::{Run, RunId, Slot, SlotRef, SlotState, Workflow};

use crate::turn::Turn;
use crate::{Command, Config, Core, RestoredState};

impl Core {
    /// Restores a scheduler at the end of the store's log. The commands check all live runs. Slots are evaluated once
    /// the definitions have been given.
    #[must_use]
    pub fn restore(config: Config, restored: RestoredState, now: Timestamp) -> (Core, Vec<Command>) {
        let mut core = Core::new(config);
        core.now = now;
        core.turn = Turn::after(restored.seq);
        for mut row in restored.workflows {
            for (pool, full_at) in &row.moments.spent {
                core.permits.restore_spent(pool, *full_at);
            }
            core.slots.add_workflow(&row.id);
            core.slots.restore_backlog(&row.id, &mut row.planned);
            core.workflows.restore(row);
        }
        for row in restored.backfills {
            core.workflows.follow_pause(&row);
            core.backfills.restore(row);
        }
        // Before any slots are restored: joining counts the runs that a workflow has, and each must count once.
        for id in core.workflows.ids().cloned().collect::<Vec<_>>() {
            core.join_program(&id);
        }
        for run in restored.runs.iter().filter(|run| run.is_follower()) {
            // Before the slots are restored: each run of theirs would count.
            core.permits.follow_along(&run.id.slot);
            core.batches.join(run.leader().slot, run.id.slot.clone());
        }
        for run in restored.runs.iter().filter(|run| run.executor == FLOW) {
            core.permits.carry_out(&run.id.slot);
        }
        core.restore_flows(&restored.pinned, &restored.slots);
        for (id, slot) in restored.slots {
            match id.key.step() {
                Some(_) => core.restore_step(&id, slot),
                None => core.restore_slot(&id, slot),
            }
        }
        for id in core.workflows.ids().cloned().collect::<Vec<_>>() {
            core.agree_on_terms(&id);
            if let Some(workflow) = core.workflows.known(&id) {
                core.planner.agree(&id, workflow);
            }
            core.listen_to_facts(&id);
        }
        for run in restored.runs {
            core.slots.restore_run(run);
        }
        core.fence();
        let commands = core.ask_about_runs();
        (core, commands)
    }

    fn restore_slot(&mut self, id: &SlotRef, slot: Slot) {
        let Some(workflow) = self.workflows.known(&id.workflow) else { return };
        self.permits.follow(id, None, &slot, workflow.is_in_line(&slot));
        self.programs.follow(id, None, &slot);
        if let Some(at) = workflow.comes_at(&id.key, &slot, self.now).filter(|_| slot.state == SlotState::Queued) {
            // All others are evaluated in any case.
            self.wakes.look_at_moment(id, at);
        }
        self.workflows.follow_collector(id, &slot);
        // The executors are asked at once; this timer covers a lost answer.
        self.wakes.watch_run(id, slot.run_alive && !self.permits.is_following(id), self.now);
        self.slots.restore(id, slot);
    }

    /// Has the definitions ready that live runs of flows follow.
    fn restore_flows(&mut self, pinned: &[(u32, Arc<Workflow>)], slots: &[(SlotRef, Slot)]) {
        for (number, definition) in pinned {
            self.flows.pin(definition, *number);
        }
        for (id, slot) in slots.iter().filter(|(_, slot)| slot.run_of_flow().is_some()) {
            let present = self.workflows.get(&id.workflow).map(|one| (one.definition().clone(), one.version()));
            if let Some((definition, number)) = present
                && slot.run_of_flow().is_some_and(|run| run.definition == number)
            {
                self.flows.pin(&definition, number);
            }
            self.flows.restore(id, slot);
        }
    }

    fn restore_step(&mut self, id: &SlotRef, slot: Slot) {
        let Some(definition) = self.definition_of(id) else { return };
        if !is_carried_out_by_the_scheduler(&definition.job.executor) {
            self.agree_on_step(id);
            self.permits.follow(id, None, &slot, slot.state == SlotState::Queued);
            self.wakes.watch_run(id, slot.run_alive, self.now);
        }
        match slot.state {
            SlotState::Waiting => self.wakes.dirty.insert(id.clone()),
            SlotState::Backoff => self.wakes.look_at_moment(id, slot.due.unwrap_or(self.now)),
            _ => {}
        }
        self.slots.restore(id, slot);
    }

    fn ask_about_runs(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        for (id, workflow) in self.workflows.iter() {
            let steps = self.slots.steps_of_workflow(id).map(|(slot, live)| (slot.clone(), live));
            for (slot, live) in self.slots.of(id).chain(steps).filter(|(_, live)| live.slot.run_alive) {
                let is_by_itself = |run: &Run| run.is_follower() || is_carried_out_by_the_scheduler(&run.executor);
                if live.run().is_some_and(is_by_itself) {
                    continue;
                }
                let run = RunId { slot, number: live.slot.last_run };
                let known = live.run();
                let executor =
                    known.map_or_else(|| workflow.definition().job.executor.clone(), |run| run.executor.clone());
                let external_id = known.and_then(|run| run.external_id.clone());
                let wanted = matches!(live.slot.state, SlotState::Dispatched | SlotState::Running);
                commands.push(Command::CheckRun {
                    run: run.clone(),
                    executor: executor.clone(),
                    external_id: external_id.clone(),
                });
                if !wanted {
                    commands.push(Command::CancelRun { run, executor, external_id });
                }
            }
        }
        commands
    }
}
