//! Permits: which queued slots may run now.

use kelos_model::{RunId, SlotEvent, SlotKey, SlotRef, SlotState, WorkflowId};

use crate::{Command, Core, Only};

impl Core {
    /// Dispatches what the workflow's concurrency allows: by priority, then oldest first.
    pub(crate) fn dispatch(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get(id) else { return };
        if task.row.paused || !task.row.present {
            return;
        }
        let places = task.row.definition.concurrency.saturating_sub(task.active);
        let free = self.config.max_running.saturating_sub(self.running);
        let may_go = |key: &SlotKey| {
            // A killed run that is still dying holds its slot back; so does a time that left the schedule.
            task.slots.get(key).is_some_and(|live| !live.slot.run_alive) && task.dormant(key).is_none()
        };
        let going = task.queue.iter().map(|(_, key)| key).filter(|key| may_go(key));
        // One more than there is room for tells whether the limit on all runs holds anything back.
        let wanted: Vec<_> = going.take(places.min(free.saturating_add(1)) as usize).cloned().collect();
        let starved = wanted.len() > free as usize;
        for key in wanted.into_iter().take(free as usize) {
            self.dispatch_slot(&SlotRef::new(id.clone(), key));
        }
        if starved && !self.starved.contains(id) {
            self.starved.push_back(id.clone());
        }
    }

    /// Gives places that became free to the workflows that the limit on all runs held back, in turn.
    pub(crate) fn dispatch_starved(&mut self, only: &Only) {
        let mut waiting = std::mem::take(&mut self.starved);
        while self.running < self.config.max_running {
            let next = waiting.iter().position(|id| only.as_ref().is_none_or(|only| only.contains(id)));
            let Some(id) = next.and_then(|next| waiting.remove(next)) else { break };
            self.dispatch(&id);
        }
        // Those that still wait come before those that had a turn and want another.
        waiting.append(&mut self.starved);
        self.starved = waiting;
    }

    fn dispatch_slot(&mut self, slot: &SlotRef) {
        let Some(task) = self.tasks.get(&slot.workflow) else { return };
        let Some(live) = task.slots.get(&slot.key) else { return };
        debug_assert_eq!(live.slot.state, SlotState::Queued, "only queued slots are in the queue");
        let number = live.slot.last_run + 1;
        let workflow = task.row.definition.clone();
        if self.record(slot, SlotEvent::Dispatched { run: number }) {
            let run = RunId { slot: slot.clone(), number };
            self.command(Command::StartRun { run, workflow });
        }
    }
}
