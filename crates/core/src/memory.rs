//! What is kept in memory of a workflow and of a slot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::time::schedule::CronSchedule;
use kelos_model::trigger::Waker;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, Run, Slot, SlotKey, SlotState};

use crate::pools::Rank;

/// A workflow: its row, and what is derived from it and its live slots.
pub(crate) struct Task {
    pub(crate) row: WorkflowRow,
    /// Its schedule after following what it depends on, or why that can't be done.
    pub(crate) schedule: Result<CronSchedule, String>,
    pub(crate) slots: BTreeMap<SlotKey, Live>,
    /// Queued slots in the order in which they go: priority, then oldest first.
    pub(crate) queue: BTreeSet<(Reverse<i32>, SlotKey)>,
    /// Live runs.
    pub(crate) active: u32,
    /// Where it stands in the lines of its pools.
    pub(crate) rank: Option<Rank>,
    /// Since when the slot that it stands there with is queued.
    pub(crate) queued_at: Option<Timestamp>,
    /// Whether it is in the line for the limit on all runs.
    pub(crate) starved: bool,
    /// Its backfills that are paused, and who paused them.
    pub(crate) pauses: BTreeMap<BackfillId, String>,
}

/// A slot in memory: live, or recalled for this turn.
pub(crate) struct Live {
    pub(crate) slot: Slot,
    /// What can wake it, while it waits.
    pub(crate) wakers: Vec<Waker>,
    /// Its latest run, while that is alive. Most slots in memory wait, so room for it is made when it is there.
    pub(crate) run: Option<Box<Run>>,
    /// The worker that its run was given to.
    pub(crate) worker: Option<Arc<str>>,
    /// Why the executor put off the start, and how often it did.
    pub(crate) deferred: Option<(String, u32)>,
}

impl Live {
    pub(crate) fn new(slot: Slot) -> Live {
        Live { slot, wakers: Vec::new(), run: None, worker: None, deferred: None }
    }

    pub(crate) fn place(&self, key: &SlotKey) -> (Reverse<i32>, SlotKey) {
        (Reverse(self.slot.priority), key.clone())
    }
}

impl Task {
    pub(crate) fn new(row: WorkflowRow) -> Task {
        Task {
            row,
            schedule: Err("it has not been loaded yet".to_owned()),
            slots: BTreeMap::new(),
            queue: BTreeSet::new(),
            active: 0,
            rank: None,
            queued_at: None,
            starved: false,
            pauses: BTreeMap::new(),
        }
    }

    /// Why the scheduler leaves a slot alone, in words; none when it doesn't.
    pub(crate) fn dormant(&self, key: &SlotKey) -> Option<String> {
        if self.row.paused {
            return Some("its workflow is paused".to_owned());
        }
        if !self.row.present {
            return Some("its workflow is not defined any more".to_owned());
        }
        if let Some((backfill, by)) = self.slots.get(key).and_then(|live| self.pause_of(&live.slot)) {
            return Some(format!("its backfill {backfill} is paused by {by}"));
        }
        match (&self.schedule, key) {
            (Err(why), _) => Some(why.clone()),
            (Ok(schedule), SlotKey::Time(at)) if !schedule.contains(*at) => {
                Some("its time is not in the workflow's schedule any more".to_owned())
            }
            (Ok(_), SlotKey::Time(_)) => None,
            (Ok(_), SlotKey::Job(_)) => Some("its workflow has no job ids any more".to_owned()),
        }
    }

    /// The paused backfill that a slot belongs to, and who paused it. What has a run goes on.
    fn pause_of(&self, slot: &Slot) -> Option<(&BackfillId, &String)> {
        let backfill = slot.backfill.as_ref().filter(|_| slot.state.is_idle())?;
        self.pauses.get_key_value(backfill)
    }

    /// Whether a slot stands in the queue. Those of a paused backfill don't, so that passing over them costs nothing.
    pub(crate) fn is_in_line(&self, slot: &Slot) -> bool {
        slot.state == SlotState::Queued && self.pause_of(slot).is_none()
    }
}
