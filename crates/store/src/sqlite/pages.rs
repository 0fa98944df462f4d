//! Pages of slots: which index leads to them, and how far it is followed.

use std::cmp::Reverse;

use kelos_model::{SlotRef, SlotState};
use rusqlite::{Connection, Row, ToSql};

use super::fault::Fault;
use super::rows::{Names, SLOT, STATE, read_place, read_slot_state, slot_state};
use crate::contract::{Page, SlotFilter, SlotRow};
use crate::cursor::SlotPlace;

/// How many rows a page may look at and pass over.
const PASSED_OVER: usize = 4_000;

/// An index, and the condition under which it holds what is sought, in listing order.
#[derive(Debug)]
struct Road {
    index: &'static str,
    /// SQL that ends in "AND ", with numbers and `?1` for text.
    prefix: String,
    text: Option<String>,
}

impl Road {
    fn new(index: &'static str, prefix: impl Into<String>) -> Self {
        Self { index, prefix: prefix.into(), text: None }
    }
}

/// Milliseconds `[start, end)`.
pub(super) type Bounds = (i64, i64);

pub(super) fn bounds(filter: &SlotFilter) -> Bounds {
    filter.range.map_or((i64::MIN, i64::MAX), |range| (range.start.as_millisecond(), range.end.as_millisecond()))
}

/// Which indexes lead to the slots of a filter. Several are merged.
fn slot_roads(conn: &Connection, filter: &SlotFilter, workflow: Option<i64>) -> Result<Vec<Road>, Fault> {
    let states = &filter.states;
    let only_troubled = !states.is_empty() && states.iter().all(|state| *state > SlotState::Succeeded);
    Ok(match (&filter.backfill, workflow) {
        (Some(backfill), _) => {
            let text = Some(backfill.as_str().to_owned());
            vec![Road { text, ..Road::new("INDEXED BY slots_backfill", "backfill = ?1 AND ") }]
        }
        (None, Some(workflow)) if only_troubled => {
            vec![Road::new("INDEXED BY slots_troubled", format!("state > 6 AND workflow = {workflow} AND "))]
        }
        // Where all states are sought, the index passes over nothing; the table has others' slots between.
        (None, Some(workflow)) if !states.is_empty() && is_dense(conn, workflow)? => vec![Road::new("NOT INDEXED", "")],
        (None, Some(workflow)) => {
            let prefix = format!("workflow = {workflow} AND ");
            vec![Road::new("INDEXED BY slots_of", prefix)]
        }
        (None, None) if !states.is_empty() && !states.contains(&SlotState::Succeeded) => {
            let mut numbers = states.iter().map(|state| slot_state(*state)).collect::<Vec<_>>();
            numbers.sort_unstable();
            numbers.dedup();
            let road =
                |state| Road::new("INDEXED BY slots_unsucceeded", format!("state <> 6 AND state = {state} AND "));
            numbers.into_iter().map(road).collect()
        }
        (None, None) => vec![Road::new("NOT INDEXED", "")],
    })
}

/// A page under way: what was found, and where the search had to stop.
pub(super) struct Found<K, T> {
    pub(super) rows: Vec<(K, T)>,
    /// Nothing after this place was looked at.
    stopped: Option<K>,
    passed_over: usize,
    wanted: usize,
}

impl<K: Ord + Clone, T> Found<K, T> {
    /// One row more than fits the page tells that the list goes on.
    pub(super) fn new(limit: usize) -> Self {
        Self { rows: Vec::new(), stopped: None, passed_over: 0, wanted: limit.saturating_add(1) }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.wanted || self.stopped.is_some()
    }

    pub(super) fn pass_over(&mut self, place: K) {
        self.passed_over += 1;
        if self.passed_over >= PASSED_OVER {
            self.stopped = Some(place);
        }
    }

    /// The page that several roads lead to.
    pub(super) fn page(roads: Vec<Self>, limit: usize, cursor: impl Fn(&K) -> String) -> Page<T> {
        let stopped = roads.iter().filter_map(|found| found.stopped.clone()).min();
        let mut rows = roads.into_iter().flat_map(|found| found.rows).collect::<Vec<_>>();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(stopped) = &stopped {
            rows.retain(|(place, _)| place <= stopped);
        }
        let full = rows.len() > limit;
        rows.truncate(limit);
        let next = if full { rows.last().map(|(place, _)| cursor(place)) } else { stopped.as_ref().map(cursor) };
        Page { rows: rows.into_iter().map(|(_, row)| row).collect(), next }
    }
}

/// How much of a slot is read: the columns, which start with those of [`STATE`], and what is made of them.
pub(super) struct Depth<T> {
    columns: &'static str,
    read: fn(&Names, &Row<'_>) -> Result<T, Fault>,
}

/// All of it.
pub(super) const WHOLE: Depth<SlotRow> = Depth { columns: SLOT, read: Names::read_slot_row };

/// Its name and its state.
pub(super) const NAME_AND_STATE: Depth<(SlotRef, SlotState)> =
    Depth { columns: STATE, read: Names::read_slot_name_and_state };

/// A page of slots.
pub(super) fn slots<T>(
    conn: &Connection,
    names: &Names,
    depth: &Depth<T>,
    filter: &SlotFilter,
    (from, limit): (Option<&str>, usize),
) -> Result<Page<T>, Fault> {
    let after = from.map(SlotPlace::parse).transpose()?;
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Page { rows: Vec::new(), next: None });
    };
    let limit = limit.max(1);
    let mut roads = Vec::new();
    for road in slot_roads(conn, filter, workflow)? {
        let mut found = Found::new(limit);
        let mut walk = SlotWalk { conn, names, depth, filter, workflow, road: &road, found: &mut found };
        walk.walk(after.as_ref())?;
        roads.push(found);
    }
    Ok(Found::page(roads, limit, SlotPlace::cursor))
}

/// Slots in one state, oldest time first.
pub(super) fn oldest_slots(
    conn: &Connection,
    names: &Names,
    state: SlotState,
    limit: usize,
) -> Result<Vec<SlotRow>, Fault> {
    // The index has what did not succeed; its condition has to be repeated for it to be used.
    let index = if state == SlotState::Succeeded {
        "NOT INDEXED WHERE"
    } else {
        "INDEXED BY slots_unsucceeded WHERE state <> 6 AND"
    };
    let sql = format!("SELECT {SLOT} FROM slots {index} state = {} ORDER BY scheduled_at LIMIT ?1", slot_state(state));
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(names.read_slot_row(row)?);
    }
    Ok(found)
}

/// Whether so many of all slots are a workflow's that going through all of them costs less than looking
/// up each of its own.
fn is_dense(conn: &Connection, workflow: i64) -> Result<bool, Fault> {
    let mut share =
        conn.prepare_cached("SELECT slots * 3 >= (SELECT sum(slots) FROM workflows) FROM workflows WHERE id = ?1")?;
    Ok(share.query_row([workflow], |row| row.get(0))?)
}

/// The number of a filter's workflow, if it has one; none when nobody knows that workflow.
pub(super) fn known_workflow(names: &Names, name: Option<&kelos_model::WorkflowId>) -> Option<Option<i64>> {
    match name {
        None => Some(None),
        Some(name) => names.number(name).map(Some),
    }
}

struct SlotWalk<'a, T> {
    conn: &'a Connection,
    names: &'a Names,
    depth: &'a Depth<T>,
    filter: &'a SlotFilter,
    workflow: Option<i64>,
    road: &'a Road,
    found: &'a mut Found<SlotPlace, T>,
}

impl<T> SlotWalk<'_, T> {
    /// First the rest of the time at which the page before ended, then all earlier times: both are one
    /// stretch of the index each.
    fn walk(&mut self, after: Option<&SlotPlace>) -> Result<(), Fault> {
        let (start, mut end) = bounds(self.filter);
        if let Some(SlotPlace { at: Reverse(at), workflow, key }) = after {
            if (start..end).contains(at) {
                let rest = "scheduled_at = ?2 AND (workflow, key) > (?3, ?4) ORDER BY workflow, key";
                self.stretch(rest, &[at, workflow, key])?;
            }
            end = end.min(*at);
        }
        let earlier = "scheduled_at >= ?2 AND scheduled_at < ?3 ORDER BY scheduled_at DESC, workflow, key";
        self.stretch(earlier, &[&start, &end])
    }

    fn stretch(&mut self, condition: &str, values: &[&dyn ToSql]) -> Result<(), Fault> {
        if self.found.is_full() {
            return Ok(());
        }
        let Road { index, prefix, text } = self.road;
        let columns = self.depth.columns;
        let sql = format!("SELECT {columns} FROM slots {index} WHERE {prefix}{condition}");
        let mut statement = self.conn.prepare_cached(&sql)?;
        if let Some(text) = text {
            statement.raw_bind_parameter(1, text)?;
        }
        for (index, value) in values.iter().enumerate() {
            statement.raw_bind_parameter(2 + index, value)?;
        }
        let mut rows = statement.raw_query();
        while !self.found.is_full() {
            let Some(row) = rows.next()? else { break };
            if self.passes(row)? {
                self.found.rows.push((read_place(row)?, (self.depth.read)(self.names, row)?));
            } else {
                self.found.pass_over(read_place(row)?);
            }
        }
        Ok(())
    }

    fn passes(&self, row: &Row<'_>) -> Result<bool, Fault> {
        let states = &self.filter.states;
        let right_state = states.is_empty() || states.contains(&read_slot_state(row, 3)?);
        let right_workflow = self.workflow.is_none_or(|workflow| row.get(1) == Ok(workflow));
        Ok(right_state && right_workflow)
    }
}
