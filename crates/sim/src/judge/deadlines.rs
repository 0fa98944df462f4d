//! The judge of deadlines: the log and the definitions in it say which slots were late, and when that was known.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::event::{Event, WorkflowEvent};
use kelos_model::{EventRecord, Slot, SlotEvent, SlotRef, Workflow, WorkflowId, slot};
use kelos_store::Queries;

/// Checks that a slot was recorded as late only once its deadline had passed while it was live, and before the end of a run that ended
/// after its deadline. That it is recorded once for each opening is the fold's own rule. Returns how many were late.
///
/// # Errors
/// The violation.
pub(super) fn hold(reader: &dyn Queries, log: &[EventRecord]) -> Result<u64, String> {
    let mut late = 0;
    let mut definitions: BTreeMap<&WorkflowId, Workflow> = BTreeMap::new();
    let mut slots: BTreeMap<&SlotRef, Slot> = BTreeMap::new();
    for record in log {
        match &record.event {
            Event::Workflow { workflow, what: WorkflowEvent::Defined { version, .. } } => {
                let past = reader.definitions(workflow, Some(*version)).map_err(|error| error.to_string())?;
                definitions.extend(past.into_iter().map(|past| (workflow, past.definition)));
            }
            Event::Slot { slot: id, what } => {
                let before = slots.remove(id);
                let deadline = definitions.get(&id.workflow).zip(before.as_ref());
                let deadline = deadline.and_then(|(one, slot)| one.deadline_of(&id.key, slot));
                late += u64::from(matches!(what, SlotEvent::Late { .. }));
                let wrong = wrong(what, before.as_ref(), deadline.filter(|at| *at <= record.at));
                wrong.map_or(Ok(()), |wrong| Err(format!("event {}: {id} {wrong}: {before:?}", record.seq)))?;
                slots.extend(slot::apply(before, what, record.at, record.seq).map(|after| (id, after)));
            }
            _ => {}
        }
    }
    Ok(late)
}

/// The fault of an event, if the deadline of its slot had passed by then, or had not.
fn wrong(what: &SlotEvent, before: Option<&Slot>, passed: Option<Timestamp>) -> Option<&'static str> {
    let is_late = before.is_some_and(|slot| slot.late.is_some());
    match what {
        SlotEvent::Late { deadline } if passed != Some(*deadline) => Some("was not late by this deadline"),
        SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } | SlotEvent::Failed { .. }
            if passed.is_some() && !is_late =>
        {
            Some("ended after its deadline, and was never late")
        }
        _ => None,
    }
}

/// Whether a live slot that the scheduler has in hand is late, and nothing says so.
pub(super) fn is_unsaid(definition: &Workflow, id: &SlotRef, slot: &Slot, by: Timestamp) -> bool {
    !slot.is_only_planned() && slot.late.is_none() && definition.missed_deadline(&id.key, slot, by).is_some()
}
