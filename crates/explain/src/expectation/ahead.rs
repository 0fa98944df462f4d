//! The live slots that will be late, as far as recorded runs tell.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, SlotRef, WorkflowId};
use kelos_store::{Queries, SlotRow, StoreError};

use super::{Expectation, Forecast};
use crate::stuck::{live, rests};

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
    let (live, mut is_partial) = live(reader)?;
    let mut pauses = Pauses { reader, known: BTreeMap::new() };
    let mut open = Vec::new();
    for (id, row) in &workflows {
        for slot in live.get(id).into_iter().flatten() {
            if let Some(deadline) = deadline_ahead(row, slot, now)
                && !pauses.holds(slot)?
            {
                open.push((deadline, &slot.id));
            }
        }
    }
    open.sort();
    is_partial |= open.len() > MOST_FORESEEN;
    open.truncate(MOST_FORESEEN);
    let (mut forecast, mut rows) = (Forecast::new(reader, now), Vec::new());
    for (deadline, slot) in open {
        if let Some(expected) = forecast.of(slot)?.filter(|expected| expected.end > deadline) {
            rows.push(LateAhead { slot: slot.clone(), deadline, expected });
        }
    }
    Ok(LatenessForecast { rows, is_partial })
}

/// The deadline of a slot that has not missed it.
fn deadline_ahead(row: &WorkflowRow, slot: &SlotRow, now: Timestamp) -> Option<Timestamp> {
    let definition = &row.definition;
    if slot.slot.late.is_some() || definition.out_of_bounds(&slot.id.key, Some(&slot.slot)).is_some() {
        return None;
    }
    definition.deadline_of(&slot.id.key, &slot.slot).filter(|deadline| *deadline > now)
}

/// The backfills that are paused, as far as they were read.
struct Pauses<'a> {
    reader: &'a dyn Queries,
    known: BTreeMap<BackfillId, bool>,
}

impl Pauses<'_> {
    /// Whether the backfill that asked for a slot is paused.
    fn holds(&mut self, slot: &SlotRow) -> Result<bool, StoreError> {
        let Some(id) = &slot.slot.backfill else { return Ok(false) };
        if let Some(known) = self.known.get(id) {
            return Ok(*known);
        }
        let is_paused = self.reader.backfill(id)?.is_some_and(|backfill| backfill.paused.is_some());
        self.known.insert(id.clone(), is_paused);
        Ok(is_paused)
    }
}
