//! What lies between two moments: the slots of each workflow as boxes, or several of them as one.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Weekday;
use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::time::{CronSchedule, Zone};
use kelos_model::workflow::DefinitionVersion;
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoreError, Tally};

use super::days::columns_of;
use super::{Days, ScheduledWorkflow, Selection};
use crate::account;
use crate::out_of_range::OutOfRange;

/// The most hours of a part of time: those of ten years.
pub const MOST_HOURS: u32 = 87_720;
/// The most rows of a page.
pub const MOST_ROWS: usize = 50;
/// The most slots of a row that are shown one by one.
const ONE_BY_ONE: usize = 240;
/// The most columns of a row whose slots are counted.
const MOST_COLUMNS: i64 = 150;
/// As many slots say what they wait for.
const MOST_BLOCKED: usize = 20;
/// Of as many columns that may have slots out of range the slots are read.
const MOST_READ: usize = 40;
/// From so many rows on the slots of all workflows are counted together.
const COUNTED_TOGETHER: usize = 20;
const HOUR: i64 = 3_600_000;

/// The part of time to look at, and the workflows.
#[derive(Debug, Clone)]
pub struct FocusQuery {
    /// The workflows.
    pub of: Selection,
    /// The moments.
    pub range: Range,
    /// The zone of the days in which slots are counted that are too many to be shown one by one.
    pub zone: Zone,
    /// Whether to tell the version of the definition with which each slot last ran.
    pub versions: bool,
    /// Workflows that are passed over, of those in the order of their ids.
    pub skip: usize,
}

/// The slots in a part of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Focus {
    /// The workflows with their slots, by id.
    pub rows: Vec<FocusRow>,
    /// How many workflows come before these.
    pub before: usize,
    /// How many workflows come after these.
    pub more: usize,
    /// Slots that wait, the oldest first.
    pub blocked: Vec<BlockedSlot>,
    /// Whether more slots wait than are explained.
    pub is_partial: bool,
}

/// The slots of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct FocusRow {
    /// The workflow.
    pub workflow: WorkflowId,
    /// Whether its slots are about periods.
    pub is_of_periods: bool,
    /// Whether a person has paused it.
    pub is_paused: bool,
    /// Whether it is no longer defined.
    pub is_removed: bool,
    /// Its slots, by time.
    pub boxes: Vec<FocusBox>,
}

/// A slot, or several side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct FocusBox {
    /// From the time of the first to the end of the last; empty for a slot at a time that is about no period.
    pub range: Range,
    /// The slot, if it is one.
    pub slot: Option<SlotRef>,
    /// How many are in which state.
    pub states: BTreeMap<SlotState, u64>,
    /// How many are still to be planned.
    pub to_come: u64,
    /// How many are out of range, by reason. Of slots that are too many to be shown one by one these may be more.
    pub out_of_range: BTreeMap<OutOfRange, u64>,
    /// The version of the definition with which they last ran, if it is known.
    pub version: Option<DefinitionVersion>,
}

/// A slot that waits, and for what.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockedSlot {
    /// The slot.
    pub slot: SlotRef,
    /// Its state.
    pub state: SlotState,
    /// The obstacles, in words.
    pub blockers: Vec<String>,
}

impl FocusBox {
    fn of(slot: SlotRef, range: Range, state: Option<SlotState>, version: Option<DefinitionVersion>) -> FocusBox {
        let states = state.into_iter().map(|state| (state, 1)).collect();
        let (to_come, out_of_range) = (u64::from(state.is_none()), BTreeMap::new());
        FocusBox { range, slot: Some(slot), states, to_come, out_of_range, version }
    }

    /// How many slots it stands for.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.states.values().sum::<u64>() + self.to_come
    }

    /// The state of all of them; none if they are not alike.
    #[must_use]
    pub fn only(&self) -> Option<SlotState> {
        let state = self.states.keys().next().filter(|_| self.states.len() == 1 && self.to_come == 0);
        state.copied()
    }

    /// Takes in the next one, if both are done with the same version or both are to come, both are in range or out of it for the same
    /// reason, and nothing is between them.
    fn takes(&mut self, next: &FocusBox) -> bool {
        let is_done = |one: &FocusBox| one.only() == Some(SlotState::Succeeded);
        let is_to_come = |one: &FocusBox| one.states.is_empty();
        let alike = is_done(self) && is_done(next) || is_to_come(self) && is_to_come(next);
        let alike = alike && self.out_of_range.keys().eq(next.out_of_range.keys());
        if !alike || self.version != next.version || self.range.is_empty() || self.range.end != next.range.start {
            return false;
        }
        self.range.end = next.range.end;
        self.slot = None;
        self.to_come += next.to_come;
        next.states.iter().for_each(|(state, count)| *self.states.entry(*state).or_default() += count);
        self.out_of_range.iter_mut().zip(next.out_of_range.values()).for_each(|((_, count), more)| *count += more);
        true
    }
}

/// Reads what lies in a part of time.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, query: &FocusQuery, now: Timestamp) -> Result<Focus, StoreError> {
    let mut workflows = query.of.read(reader, query.range)?;
    let before = query.skip.min(workflows.len());
    workflows.drain(..before);
    let more = workflows.len().saturating_sub(MOST_ROWS);
    workflows.truncate(MOST_ROWS);
    let mut found = Focus { before, more, ..Focus::default() };
    let mut many = Vec::new();
    for (place, workflow) in workflows.iter().enumerate() {
        let boxes = one_by_one(reader, query, workflow, now)?;
        if boxes.is_none() {
            many.push((place, workflow));
        }
        found.rows.push(FocusRow {
            workflow: workflow.row.id.clone(),
            is_of_periods: workflow.schedule().is_some_and(CronSchedule::is_of_periods),
            is_paused: workflow.row.paused,
            is_removed: !workflow.row.present,
            boxes: boxes.unwrap_or_default(),
        });
    }
    for (place, boxes) in counted(reader, query, &many, now)? {
        found.rows[place].boxes = boxes;
    }
    explain(reader, &mut found, now)?;
    Ok(found)
}

/// The slots of a workflow one by one; none if there are too many.
fn one_by_one(
    reader: &dyn Queries,
    query: &FocusQuery,
    workflow: &ScheduledWorkflow,
    now: Timestamp,
) -> Result<Option<Vec<FocusBox>>, StoreError> {
    let range = reaching_into(workflow.schedule(), query.range);
    let too_many = |schedule: &CronSchedule| schedule.times(range.start, range.end).nth(ONE_BY_ONE).is_some();
    if workflow.schedule().is_some_and(too_many) {
        return Ok(None);
    }
    let id = workflow.row.id.clone();
    let filter = SlotFilter { workflow: Some(id.clone()), range: Some(range), ..SlotFilter::default() };
    let page = reader.slots(&filter, PageRequest::oldest(ONE_BY_ONE + 1))?;
    if page.rows.len() > ONE_BY_ONE {
        return Ok(None);
    }
    let versions = if query.versions { versions(reader, &id, &page.rows)? } else { vec![None; page.rows.len()] };
    let mut boxes = Vec::new();
    for (SlotRow { id: slot, slot: own }, version) in page.rows.into_iter().zip(versions) {
        let Some(time) = slot.key.time() else { continue };
        let out_of_range = workflow.out_of_range(&slot.key).map(|reason| (reason, 1)).into_iter().collect();
        let shown = FocusBox::of(slot, about(workflow.schedule(), time), Some(own.state), version);
        boxes.push(FocusBox { out_of_range, ..shown });
    }
    let known: BTreeSet<Timestamp> = boxes.iter().map(|one| one.range.start).collect();
    if let Some((schedule, to_come)) = workflow.to_come(now) {
        let part = both(to_come, range);
        for time in schedule.times(part.start, part.end).filter(|time| !known.contains(time)) {
            boxes.push(FocusBox::of(SlotRef::at(id.clone(), time), about(Some(schedule), time), None, None));
        }
    }
    boxes.sort_by_key(|one| (one.range.start, one.range.end));
    Ok(Some(joined(boxes)))
}

fn both(one: Range, other: Range) -> Range {
    Range::new(one.start.max(other.start), one.end.min(other.end))
}

/// The times whose slots are shown: also that of the period in which the range begins.
fn reaching_into(schedule: Option<&CronSchedule>, range: Range) -> Range {
    let begun =
        schedule.filter(|schedule| schedule.is_of_periods()).and_then(|schedule| schedule.last_until(range.start));
    Range::new(begun.unwrap_or(range.start), range.end)
}

/// The period of a time; an empty one where it is about none.
fn about(schedule: Option<&CronSchedule>, time: Timestamp) -> Range {
    let end = schedule.filter(|schedule| schedule.is_of_periods() && schedule.contains(time));
    Range::new(time, end.map_or(time, |schedule| schedule.due(time)))
}

/// The versions with which slots last ran.
fn versions(
    reader: &dyn Queries,
    id: &WorkflowId,
    rows: &[SlotRow],
) -> Result<Vec<Option<DefinitionVersion>>, StoreError> {
    let ran: Vec<u64> = rows.iter().map(|row| row.slot.last_run_seq).filter(|seq| *seq > 0).collect();
    let mut known = reader.versions_at(id, &ran)?.into_iter();
    Ok(rows.iter().map(|row| if row.slot.last_run_seq > 0 { known.next().flatten() } else { None }).collect())
}

/// The boxes, with those in one that may be.
fn joined(boxes: Vec<FocusBox>) -> Vec<FocusBox> {
    let mut found: Vec<FocusBox> = Vec::new();
    for next in boxes {
        if !found.last_mut().is_some_and(|last| last.takes(&next)) {
            found.push(next);
        }
    }
    found
}

/// The slots of workflows that have too many, counted in columns.
fn counted(
    reader: &dyn Queries,
    query: &FocusQuery,
    workflows: &[(usize, &ScheduledWorkflow)],
    now: Timestamp,
) -> Result<Vec<(usize, Vec<FocusBox>)>, StoreError> {
    if workflows.is_empty() {
        return Ok(Vec::new());
    }
    let cells = cells(&query.zone, query.range);
    let empty = |range: &Range| {
        let (states, out_of_range) = (BTreeMap::new(), BTreeMap::new());
        FocusBox { range: *range, slot: None, states, to_come: 0, out_of_range, version: None }
    };
    let mut rows: BTreeMap<&WorkflowId, Vec<FocusBox>> =
        workflows.iter().map(|(_, one)| (&one.row.id, cells.iter().map(empty).collect())).collect();
    for (place, columns) in columns_of(&cells) {
        let mut count = |id: &WorkflowId, tallies: &[Tally]| {
            let Some(row) = rows.get_mut(id) else { return };
            for tally in tallies {
                if let Some(cell) = row.get_mut(place + tally.column as usize) {
                    *cell.states.entry(tally.state).or_default() += u64::from(tally.count);
                }
            }
        };
        if workflows.len() > COUNTED_TOGETHER {
            reader.slot_tallies(&columns, None)?.iter().for_each(|(id, tallies)| count(id, tallies));
        } else {
            for (_, one) in workflows {
                let tallies = reader.slot_tallies(&columns, Some(&one.row.id))?;
                tallies.iter().for_each(|(id, tallies)| count(id, tallies));
            }
        }
    }
    let mut left = MOST_READ;
    for (_, one) in workflows {
        let row = rows.get_mut(&one.row.id).into_iter().flatten();
        row.filter(|cell| cell.total() > 0)
            .try_for_each(|cell| mark_out_of_range(reader, one, cell, now, &mut left))?;
    }
    let finished = |(place, one): &(usize, &ScheduledWorkflow)| {
        let mut boxes = rows.remove(&one.row.id).unwrap_or_default();
        if let Some((schedule, to_come)) = one.to_come(now) {
            boxes.iter_mut().for_each(|cell| cell.to_come += schedule.count(both(cell.range, to_come)));
        }
        boxes.retain(|cell| cell.total() > 0);
        (*place, joined(boxes))
    };
    Ok(workflows.iter().map(finished).collect())
}

/// Counts the slots of a cell that are out of range. Where its workflow starts or ends within it, or it has more than the workflow would have
/// planned there, they are read, for a limited number of cells: of slots that are started by hand there may be any number.
fn mark_out_of_range(
    reader: &dyn Queries,
    workflow: &ScheduledWorkflow,
    cell: &mut FocusBox,
    now: Timestamp,
    left: &mut usize,
) -> Result<(), StoreError> {
    if let Some(reason) = workflow.whole_out_of_range(cell.range) {
        cell.out_of_range = [(reason, cell.total())].into();
        return Ok(());
    }
    if *left == 0 || !may_be_out_of_range(workflow, cell, now) {
        return Ok(());
    }
    *left -= 1;
    let filter =
        SlotFilter { workflow: Some(workflow.row.id.clone()), range: Some(cell.range), ..SlotFilter::default() };
    for (slot, _) in reader.slot_states(&filter, PageRequest::oldest(ONE_BY_ONE))?.rows {
        if let Some(reason) = workflow.out_of_range(&slot.key) {
            *cell.out_of_range.entry(reason).or_default() += 1;
        }
    }
    Ok(())
}

/// Whether some of the slots of a cell may be out of range, to which nothing that is to come is added yet.
fn may_be_out_of_range(workflow: &ScheduledWorkflow, cell: &FocusBox, now: Timestamp) -> bool {
    let Some(schedule) = workflow.schedule() else { return false };
    let bounds = workflow.row.definition.bounds(schedule);
    let is_cut = [bounds.start, bounds.end].iter().any(|bound| cell.range.start < *bound && *bound < cell.range.end);
    let planned = workflow.to_come(now).map_or(bounds, |(_, to_come)| Range::new(bounds.start, to_come.start));
    is_cut || cell.total() > schedule.count(both(cell.range, planned))
}

/// A range in parts that people know: hours, days, weeks or months of a zone.
fn cells(zone: &Zone, range: Range) -> Vec<Range> {
    let (first, last) = (Days::date(zone, range.start), Days::date(zone, range.end));
    let days = Days::of(zone, first, last);
    let hours = range.end.duration_since(range.start).as_millis() as i64 / HOUR;
    let step = [1, 2, 3, 6, 12].into_iter().find(|step| hours / step <= MOST_COLUMNS);
    let mut cells: Vec<Range> = match step {
        Some(step) if hours <= 7 * 24 => {
            let step = SignedDuration::from_hours(step);
            let from_midnight = |day: Range| {
                let mut starts: Vec<Timestamp> = Vec::new();
                let mut at = day.start;
                while at < day.end {
                    starts.push(at);
                    at = at.saturating_add(step).unwrap_or(day.end);
                }
                let ends = starts.clone().into_iter().skip(1).chain([day.end]);
                starts.into_iter().zip(ends).map(|(start, end)| Range::new(start, end)).collect::<Vec<_>>()
            };
            days.each().flat_map(|(_, day)| from_midnight(day)).collect()
        }
        _ if hours <= MOST_COLUMNS * 24 => days.each().map(|(_, day)| day).collect(),
        _ if hours <= MOST_COLUMNS * 24 * 7 => Days::parts(zone, first, last, |day| day.weekday() == Weekday::Monday),
        _ => Days::parts(zone, first, last, |day| day.day() == 1),
    };
    cells.retain(|cell| cell.end > range.start && cell.start < range.end);
    cells
}

/// Adds the obstacles of the waiting slots of the rows.
fn explain(reader: &dyn Queries, found: &mut Focus, now: Timestamp) -> Result<(), StoreError> {
    let waits = |one: &FocusBox| {
        let state = one.only().filter(|state| {
            matches!(state, SlotState::Waiting | SlotState::Held | SlotState::Queued | SlotState::Backoff)
        })?;
        Some((one.slot.clone()?, state))
    };
    let mut waiting: Vec<(SlotRef, SlotState)> =
        found.rows.iter().flat_map(|row| &row.boxes).filter_map(waits).collect();
    waiting.sort_by_key(|(slot, _)| slot.key.time());
    found.is_partial = waiting.len() > MOST_BLOCKED;
    waiting.truncate(MOST_BLOCKED);
    for (slot, state) in waiting {
        let blockers = account::read(reader, &slot, now, true, None)?.blockers;
        found.blocked.push(BlockedSlot { slot, state, blockers });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn told(zone: &str, from: &str, to: &str) -> (usize, String, i64) {
        let cells = cells(&Zone::parse(zone).unwrap(), Range::new(at(from), at(to)));
        let first = cells[0];
        (cells.len(), first.start.to_string(), first.end.duration_since(first.start).as_hours())
    }

    #[test]
    fn what_is_too_much_is_counted_in_parts_that_people_know() {
        let expect = |count, start: &str, hours| (count, start.to_owned(), hours);
        assert_eq!(told("UTC", "2026-03-29T00:30:00Z", "2026-03-29T06:00:00Z"), expect(6, "2026-03-29T00:00:00Z", 1));
        assert_eq!(
            told("Europe/Paris", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            expect(23, "2026-03-28T23:00:00Z", 1)
        );
        assert_eq!(told("UTC", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"), expect(31, "2026-03-01T00:00:00Z", 24));
        assert_eq!(
            told("UTC", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            expect(53, "2025-12-29T00:00:00Z", 168)
        );
        assert_eq!(
            told("UTC", "2016-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            expect(120, "2016-01-01T00:00:00Z", 744)
        );
    }
}
