//! Times of a backlog: they have no events in the log, so their history is that of the backlog, and their trigger is
//! evaluated when somebody asks.

use jiff::Timestamp;
use kelos_core::Inspection;
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Evaluation, evaluate};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, SlotEvent, SlotRef, Stretch};
use kelos_store::{Queries, StoreError};

use super::facts::StoreFacts;

/// The backlog or backfill that contains a time which is no slot yet.
pub(super) fn part_of(reader: &dyn Queries, row: &WorkflowRow, slot: &SlotRef) -> Result<Option<Stretch>, StoreError> {
    let stretch = slot.key.time().and_then(|at| row.planned.backlog.at(at));
    let Some(stretch) = stretch else { return Ok(None) };
    Ok(reader.slot(slot)?.is_some_and(|slot| slot.is_only_planned()).then(|| stretch.clone()))
}

/// The events that the log would have if each time had its own, with an evaluation of its trigger now.
pub(super) fn history(
    reader: &dyn Queries,
    row: &WorkflowRow,
    slot: &SlotRef,
    stretch: &Stretch,
    now: Timestamp,
) -> Result<Vec<EventRecord>, StoreError> {
    let record = |at, what| EventRecord { seq: 0, at, previous: 0, event: Event::Slot { slot: slot.clone(), what } };
    let killed_at = stretch.killed.as_ref().map_or(stretch.since, |kill| kill.at);
    let moments = [stretch.since, killed_at];
    let mut history: Vec<EventRecord> =
        stretch.events().into_iter().zip(moments).map(|(what, at)| record(at, what)).collect();
    if stretch.killed.is_none() && now >= stretch.since {
        let view = StoreFacts::new(reader, now);
        let definition = &row.definition;
        let values = KeyValues::of(&definition.keys, &slot.key);
        let Evaluation { explanation, .. } = evaluate(&definition.trigger, &slot.workflow, &values, &view);
        view.check()?;
        history.push(record(now, SlotEvent::Looked { explanation }));
    }
    Ok(history)
}

/// The reason for which a time waits although its trigger is met.
pub(super) fn turn(inspection: Option<&Inspection>) -> String {
    match inspection.map_or(0, |inspection| inspection.ahead) {
        0 => "it is still in the backlog of its workflow".to_owned(),
        1 => "1 slot of its workflow is ahead".to_owned(),
        ahead => format!("{ahead} slots of its workflow are ahead"),
    }
}
