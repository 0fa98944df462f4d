//! The live slots that will be late, as far as recorded runs tell.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, Slot, SlotRef, SlotState, WorkflowId};
use kelos_store::{Queries, StoreError};

use super::Forecast;
use crate::expectation::Expectation;
use crate::rows;
use crate::stuck::rests;

/// The most slots whose end is expected in one look: those with the earliest deadlines.
pub const MOST_FORESEEN: usize = 1_000;

/// A live slot that will be late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateAhead {
    /// The slot.
    pub slot: SlotRef,
    /// Its deadline.
    pub deadline: Timestamp,
    /// The expected end, which is later.
    pub expected: Expectation,
}

/// The live slots that will be late.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatenessForecast {
    /// The earliest deadline first.
    pub rows: Vec<LateAhead>,
    /// Whether there are more slots with a deadline than were looked at.
    pub is_partial: bool,
}

/// Finds the live slots that are expected to end after their deadline. Slots that are left alone, such as those of a paused workflow, are
/// none, and neither are those that are late already. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn late_ahead(reader: &dyn Queries, now: Timestamp) -> Result<LatenessForecast, StoreError> {
    let workflows = reader.workflows(None)?.into_iter();
    let workflows = workflows.filter(|row| row.present && row.definition.deadline.is_some() && !rests(row));
    let workflows: BTreeMap<WorkflowId, WorkflowRow> = workflows.map(|row| (row.id.clone(), row)).collect();
    if workflows.is_empty() {
        return Ok(LatenessForecast::default());
    }
    let (open, is_partial) = open(reader, &workflows, now)?;
    let (mut forecast, mut rows) = (Forecast::new(reader, now), Vec::new());
    for (deadline, slot) in open {
        if let Some(expected) = forecast.of(&slot)?.filter(|expected| expected.end > deadline) {
            rows.push(LateAhead { slot, deadline, expected });
        }
    }
    Ok(LatenessForecast { rows, is_partial })
}

/// The slots of these workflows that have not missed their deadlines, the earliest deadlines first, and whether there are more.
fn open(
    reader: &dyn Queries,
    workflows: &BTreeMap<WorkflowId, WorkflowRow>,
    now: Timestamp,
) -> Result<(BTreeSet<(Timestamp, SlotRef)>, bool), StoreError> {
    let mut pauses = Pauses { reader, known: BTreeMap::new() };
    let (mut open, mut is_partial) = (BTreeSet::new(), false);
    for state in rows::live_states() {
        // Most slots are of other workflows, or late: their rows are not read.
        let take = |(id, _): (SlotRef, SlotState)| {
            let Some(row) = workflows.get(&id.workflow).filter(|row| may_be_in_time(row, &id, now)) else {
                return Ok(true);
            };
            let Some(slot) = reader.slot(&id)? else { return Ok(true) };
            if let Some(deadline) = deadline_ahead(row, &id, &slot, now)
                && !pauses.holds(&slot)?
            {
                open.insert((deadline, id));
            }
            if open.len() > MOST_FORESEEN {
                open.pop_last();
                is_partial = true;
            }
            Ok(true)
        };
        rows::each(state, |filter, paging| reader.slot_states(filter, paging), take)?;
    }
    Ok((open, is_partial))
}

/// Whether the deadline of a slot is ahead, as far as its key tells.
fn may_be_in_time(row: &WorkflowRow, slot: &SlotRef, now: Timestamp) -> bool {
    let definition = &row.definition;
    let due = slot.key.time().and_then(|_| definition.keys.due(&slot.key));
    let deadline = due.and_then(|due| definition.deadline.as_ref()?.after(due));
    deadline.is_none_or(|deadline| deadline > now)
}

/// The deadline of a slot that has not missed it.
fn deadline_ahead(row: &WorkflowRow, id: &SlotRef, slot: &Slot, now: Timestamp) -> Option<Timestamp> {
    let definition = &row.definition;
    if slot.late.is_some() || definition.out_of_bounds(&id.key, Some(slot)).is_some() {
        return None;
    }
    definition.deadline_of(&id.key, slot).filter(|deadline| *deadline > now)
}

/// The backfills that are paused, as far as they were read.
struct Pauses<'a> {
    reader: &'a dyn Queries,
    known: BTreeMap<BackfillId, bool>,
}

impl Pauses<'_> {
    /// Whether the backfill that asked for a slot is paused.
    fn holds(&mut self, slot: &Slot) -> Result<bool, StoreError> {
        let Some(id) = &slot.backfill else { return Ok(false) };
        if let Some(known) = self.known.get(id) {
            return Ok(*known);
        }
        let is_paused = self.reader.backfill(id)?.is_some_and(|backfill| backfill.paused.is_some());
        self.known.insert(id.clone(), is_paused);
        Ok(is_paused)
    }
}
