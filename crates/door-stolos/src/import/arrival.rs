//! The translation of a job's state in Stolos.

use kelos_model::event::Origin;
use kelos_model::{Actor, SlotEvent, SlotRef, SlotState, Workflow};

use super::{FROM, JobRecord};

/// The default priority of Stolos, which is the last.
const LAST_PRIORITY: i32 = 100;

/// The actor who requests jobs with a priority of their own.
pub(super) fn importer() -> Actor {
    Actor::system(format!("import from {FROM}"))
}

/// A job to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The job, its id in the normal form.
    pub(super) job: SlotRef,
    /// Its state after the import.
    pub(super) state: SlotState,
    /// How many attempts have failed.
    pub(super) retries: u32,
    /// Its priority in the queue of Stolos; none if it is not there.
    pub(super) priority: Option<i32>,
    /// Its state in Stolos, in Stolos's terms.
    pub(super) there: String,
}

impl Arrival {
    /// Reads the record of a job; none if Stolos has no state for it.
    ///
    /// # Errors
    /// In words, if it is not a job of the app, or its state is not known.
    pub(super) fn read(
        definition: &Workflow,
        id: &str,
        record: &JobRecord,
        priority: Option<i32>,
    ) -> Result<Option<Arrival>, String> {
        let state = match record.state.as_str() {
            "" => return Ok(None),
            "pending" => SlotState::Waiting,
            "completed" => SlotState::Succeeded,
            "failed" => SlotState::Failed,
            "skipped" => SlotState::Skipped,
            other => {
                return Err(format!("its state is {other:?}, expected pending, completed, failed or skipped"));
            }
        };
        let there = match (state, priority) {
            (SlotState::Waiting, None) => "pending, not in the queue".to_owned(),
            _ => record.state.clone(),
        };
        let job = SlotRef::new(definition.id.clone(), definition.keys.read(id)?);
        // Stolos keeps the count for ever; here a success ends it.
        let retries = if matches!(state, SlotState::Waiting | SlotState::Failed) { record.retries } else { 0 };
        Ok(Some(Arrival { job, state, retries, priority, there }))
    }

    /// The event that imports it. Only a request can give a job a priority.
    pub(super) fn event(&self, exists: bool) -> SlotEvent {
        let urgent = self.priority.filter(|priority| (1..LAST_PRIORITY).contains(priority));
        if let Some(priority) = urgent.filter(|_| !exists && self.state == SlotState::Waiting && self.retries == 0) {
            return SlotEvent::Planned {
                origin: Origin::Request,
                priority: LAST_PRIORITY - priority,
                backfill: None,
                by: Some(importer()),
                reason: Some(format!("pending in Stolos, with priority {priority}")),
            };
        }
        SlotEvent::Imported {
            from: FROM.to_owned(),
            state: self.state,
            retries: self.retries,
            external_id: None,
            requested: false,
            there: self.there.clone(),
        }
    }
}
