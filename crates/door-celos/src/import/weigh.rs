//! Whether a slot may be imported beside existing data: changes by Kelos are kept.

use std::collections::BTreeSet;

use kelos_model::event::Origin;
use kelos_model::{Event, Slot, SlotEvent, SlotRef, SlotState, WorkflowEvent, WorkflowId};
use kelos_store::{EventFilter, PageRequest, Queries, StoreError};

use super::{Arrival, Names};

/// How many events are read at once.
const PAGE: usize = 10_000;

/// The decision on a slot to import.
pub(super) enum SlotDecision {
    /// It is imported.
    Comes,
    /// It exists already, in the same state.
    Same,
    /// It has changed here, and stays in this state.
    Stays(SlotState),
}

pub(super) fn weigh(
    reader: &dyn Queries,
    id: &SlotRef,
    here: Option<&Slot>,
    arrival: &Arrival,
) -> Result<SlotDecision, StoreError> {
    let Some(here) = here else { return Ok(SlotDecision::Comes) };
    let same =
        here.state == arrival.state && here.retries == arrival.retries && here.external_id == arrival.external_id;
    if same {
        return Ok(SlotDecision::Same);
    }
    let idle = here.state == SlotState::Waiting && here.last_run == 0;
    if idle && is_untouched(reader, id)? {
        return Ok(SlotDecision::Comes);
    }
    Ok(SlotDecision::Stays(here.state))
}

/// Whether only the schedule or an import has changed a slot.
fn is_untouched(reader: &dyn Queries, id: &SlotRef) -> Result<bool, StoreError> {
    let idle = |event: &Event| {
        let Event::Slot { what, .. } = event else { return false };
        match what {
            SlotEvent::Planned { origin, .. } => *origin == Origin::Schedule,
            SlotEvent::Looked { .. } | SlotEvent::Imported { .. } => true,
            _ => false,
        }
    };
    let history = reader.history(id)?;
    Ok(history.iter().all(|record| idle(&record.event)) && !reader.lacks_history(id, &history)?)
}

/// Requests of people that an import must not undo.
#[derive(Default)]
pub(super) struct Doings {
    /// Workflows that were resumed.
    pub(super) resumed: BTreeSet<WorkflowId>,
    /// Registers that were ever set or deleted, by bucket and key.
    pub(super) registers: Names,
}

impl Doings {
    pub(super) fn read(reader: &dyn Queries) -> Result<Doings, StoreError> {
        let mut doings = Doings::default();
        let mut after = 0;
        loop {
            let page = reader.events(&EventFilter::after(after), PageRequest::oldest(PAGE))?;
            for record in page.rows {
                after = record.seq;
                doings.note(record.event);
            }
            if page.next.is_none() {
                return Ok(doings);
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Workflow { workflow, what: WorkflowEvent::Resumed { .. } } => {
                self.resumed.insert(workflow);
            }
            Event::Register { bucket, key, .. } => {
                self.registers.insert((bucket, key));
            }
            _ => {}
        }
    }
}
