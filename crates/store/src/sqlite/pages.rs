//! Pages of slots and runs: which index leads to them, and how far it is followed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kelos_model::{Run, RunState, SlotState};
use rusqlite::{Connection, ToSql};

use super::fault::Fault;
use super::rows::{Names, RUN, SLOT, read_place, read_run_state, read_slot_state, slot_state};
use crate::contract::{Page, RunFilter, SlotFilter, SlotRow};
use crate::cursor::{SlotPlace, parse_seq};

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
        Self {
            index,
            prefix: prefix.into(),
            text: None,
        }
    }
}

/// Milliseconds `[start, end)`.
type Bounds = (i64, i64);

fn bounds(filter: &SlotFilter) -> Bounds {
    filter.range.map_or((i64::MIN, i64::MAX), |range| {
        (range.start.as_millisecond(), range.end.as_millisecond())
    })
}

/// Which indexes lead to the slots of a filter. Several are merged.
fn slot_roads(filter: &SlotFilter, workflow: Option<i64>) -> Vec<Road> {
    let states = &filter.states;
    let only_troubled =
        !states.is_empty() && states.iter().all(|state| *state > SlotState::Succeeded);
    match (&filter.backfill, workflow) {
        (Some(backfill), _) => {
            let text = Some(backfill.as_str().to_owned());
            vec![Road {
                text,
                ..Road::new("INDEXED BY slots_backfill", "backfill = ?1 AND ")
            }]
        }
        (None, Some(workflow)) if only_troubled => {
            vec![Road::new(
                "INDEXED BY slots_troubled",
                format!("state > 6 AND workflow = {workflow} AND "),
            )]
        }
        (None, Some(workflow)) => vec![Road::new(
            "NOT INDEXED",
            format!("workflow = {workflow} AND "),
        )],
        (None, None) if !states.is_empty() && !states.contains(&SlotState::Succeeded) => {
            let mut numbers = states
                .iter()
                .map(|state| slot_state(*state))
                .collect::<Vec<_>>();
            numbers.sort_unstable();
            numbers.dedup();
            let road = |state| {
                Road::new(
                    "INDEXED BY slots_unsucceeded",
                    format!("state <> 6 AND state = {state} AND "),
                )
            };
            numbers.into_iter().map(road).collect()
        }
        (None, None) => vec![Road::new("INDEXED BY slots_newest", "")],
    }
}

/// A page under way: what was found, and where the search had to stop.
struct Found<K, T> {
    rows: Vec<(K, T)>,
    /// Nothing after this place was looked at.
    stopped: Option<K>,
    passed_over: usize,
    wanted: usize,
}

impl<K: Ord + Clone, T> Found<K, T> {
    /// One row more than fits the page tells that the list goes on.
    fn new(limit: usize) -> Self {
        Self {
            rows: Vec::new(),
            stopped: None,
            passed_over: 0,
            wanted: limit.saturating_add(1),
        }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.wanted || self.stopped.is_some()
    }

    fn pass_over(&mut self, place: K) {
        self.passed_over += 1;
        if self.passed_over >= PASSED_OVER {
            self.stopped = Some(place);
        }
    }

    /// The page that several roads lead to.
    fn page(roads: Vec<Self>, limit: usize, cursor: impl Fn(&K) -> String) -> Page<T> {
        let stopped = roads.iter().filter_map(|found| found.stopped.clone()).min();
        let mut rows = roads
            .into_iter()
            .flat_map(|found| found.rows)
            .collect::<Vec<_>>();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(stopped) = &stopped {
            rows.retain(|(place, _)| place <= stopped);
        }
        let full = rows.len() > limit;
        rows.truncate(limit);
        let next = if full {
            rows.last().map(|(place, _)| cursor(place))
        } else {
            stopped.as_ref().map(cursor)
        };
        Page {
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            next,
        }
    }
}

/// A page of slots.
pub(super) fn slots(
    conn: &Connection,
    names: &Names,
    filter: &SlotFilter,
    from: Option<&str>,
    limit: usize,
) -> Result<Page<SlotRow>, Fault> {
    let after = from.map(SlotPlace::parse).transpose()?;
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Page {
            rows: Vec::new(),
            next: None,
        });
    };
    let limit = limit.max(1);
    let mut roads = Vec::new();
    for road in slot_roads(filter, workflow) {
        let mut found = Found::new(limit);
        let mut walk = SlotWalk {
            conn,
            names,
            filter,
            workflow,
            road: &road,
            found: &mut found,
        };
        walk.walk(after.as_ref())?;
        roads.push(found);
    }
    Ok(Found::page(roads, limit, SlotPlace::cursor))
}

/// The number of a filter's workflow, if it has one; none when nobody knows that workflow.
fn known_workflow(names: &Names, name: Option<&kelos_model::WorkflowId>) -> Option<Option<i64>> {
    match name {
        None => Some(None),
        Some(name) => names.number(name).map(Some),
    }
}

struct SlotWalk<'a> {
    conn: &'a Connection,
    names: &'a Names,
    filter: &'a SlotFilter,
    workflow: Option<i64>,
    road: &'a Road,
    found: &'a mut Found<SlotPlace, SlotRow>,
}

impl SlotWalk<'_> {
    /// First the rest of the time at which the page before ended, then all earlier times: both are one
    /// stretch of the index each.
    fn walk(&mut self, after: Option<&SlotPlace>) -> Result<(), Fault> {
        let (start, mut end) = bounds(self.filter);
        if let Some(SlotPlace {
            at: Reverse(at),
            workflow,
            key,
        }) = after
        {
            if (start..end).contains(at) {
                let rest =
                    "scheduled_at = ?2 AND (workflow, key) > (?3, ?4) ORDER BY workflow, key";
                self.stretch(rest, &[at, workflow, key])?;
            }
            end = end.min(*at);
        }
        let earlier =
            "scheduled_at >= ?2 AND scheduled_at < ?3 ORDER BY scheduled_at DESC, workflow, key";
        self.stretch(earlier, &[&start, &end])
    }

    fn stretch(&mut self, condition: &str, values: &[&dyn ToSql]) -> Result<(), Fault> {
        if self.found.is_full() {
            return Ok(());
        }
        let Road {
            index,
            prefix,
            text,
        } = self.road;
        let sql = format!("SELECT {SLOT} FROM slots {index} WHERE {prefix}{condition}");
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
                self.found
                    .rows
                    .push((read_place(row)?, self.names.read_slot_row(row)?));
            } else {
                self.found.pass_over(read_place(row)?);
            }
        }
        Ok(())
    }

    fn passes(&self, row: &rusqlite::Row<'_>) -> Result<bool, Fault> {
        let states = &self.filter.states;
        let right_state = states.is_empty() || states.contains(&read_slot_state(row, 3)?);
        let right_workflow = self
            .workflow
            .is_none_or(|workflow| row.get(0) == Ok(workflow));
        Ok(right_state && right_workflow)
    }
}

/// How many slots of a filter are in each state.
pub(super) fn slot_counts(
    conn: &Connection,
    names: &Names,
    filter: &SlotFilter,
) -> Result<BTreeMap<SlotState, u64>, Fault> {
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(BTreeMap::new());
    };
    let mut counts = match (&filter.backfill, workflow, filter.range) {
        (None, None, None) => count_all(conn)?,
        (backfill, workflow, _) => {
            let (start, end) = bounds(filter);
            let (index, mut condition) = match (backfill, workflow) {
                (Some(_), _) => ("INDEXED BY slots_backfill", "backfill = ?3 AND ".to_owned()),
                (None, Some(_)) => ("NOT INDEXED", String::new()),
                (None, None) => ("INDEXED BY slots_newest", String::new()),
            };
            if let Some(workflow) = workflow {
                condition.push_str(&format!("workflow = {workflow} AND "));
            }
            let sql = format!(
                "SELECT state, count(*) FROM slots {index} WHERE {condition}scheduled_at >= ?1 AND scheduled_at < ?2 GROUP BY state"
            );
            let mut statement = conn.prepare_cached(&sql)?;
            statement.raw_bind_parameter(1, start)?;
            statement.raw_bind_parameter(2, end)?;
            if let Some(backfill) = backfill {
                statement.raw_bind_parameter(3, backfill.as_str())?;
            }
            read_counts(statement.raw_query())?
        }
    };
    counts.retain(|state, count| {
        *count > 0 && (filter.states.is_empty() || filter.states.contains(state))
    });
    Ok(counts)
}

/// Those that succeeded are not counted one by one: they are what is left of the total.
fn count_all(conn: &Connection) -> Result<BTreeMap<SlotState, u64>, Fault> {
    let sql = "SELECT state, count(*) FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 GROUP BY state";
    let mut statement = conn.prepare_cached(sql)?;
    let mut counts = read_counts(statement.raw_query())?;
    let total = total_slots(conn)?;
    let others = counts.values().sum::<u64>();
    counts.insert(SlotState::Succeeded, total.saturating_sub(others));
    Ok(counts)
}

/// How many slots there are.
pub(super) fn total_slots(conn: &Connection) -> Result<u64, Fault> {
    let mut total = conn.prepare_cached("SELECT coalesce(sum(slots), 0) FROM workflows")?;
    Ok(total.query_row([], |row| row.get(0))?)
}

fn read_counts(mut rows: rusqlite::Rows<'_>) -> Result<BTreeMap<SlotState, u64>, Fault> {
    let mut counts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        counts.insert(read_slot_state(row, 0)?, row.get(1)?);
    }
    Ok(counts)
}

/// Which indexes lead to the runs of a filter. Several are merged.
fn run_roads(filter: &RunFilter, workflow: Option<i64>) -> Vec<Road> {
    let states = &filter.states;
    let all = match workflow {
        Some(workflow) => Road::new("INDEXED BY runs_of", format!("workflow = {workflow} AND ")),
        None => Road::new("NOT INDEXED", ""),
    };
    if states.is_empty() || states.contains(&RunState::Succeeded) {
        return vec![all];
    }
    let mut roads = Vec::new();
    if states.iter().any(|state| !state.is_final()) {
        roads.push(Road::new("INDEXED BY runs_open", "state < 2 AND "));
    }
    if states.iter().any(|state| *state > RunState::Succeeded) {
        roads.push(match workflow {
            Some(workflow) => Road::new(
                "INDEXED BY runs_troubled_of",
                format!("state > 2 AND workflow = {workflow} AND "),
            ),
            None => Road::new("INDEXED BY runs_troubled", "state > 2 AND "),
        });
    }
    roads
}

/// A page of runs.
pub(super) fn runs(
    conn: &Connection,
    names: &Names,
    filter: &RunFilter,
    from: Option<&str>,
    limit: usize,
) -> Result<Page<Run>, Fault> {
    let before = from.map_or(Ok(i64::MAX as u64), parse_seq)?;
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Page {
            rows: Vec::new(),
            next: None,
        });
    };
    let limit = limit.max(1);
    let mut roads = Vec::new();
    for road in run_roads(filter, workflow) {
        roads.push(walk_runs(
            conn,
            names,
            filter,
            workflow,
            &road,
            (before, limit),
        )?);
    }
    Ok(Found::page(roads, limit, |Reverse(seq): &Reverse<u64>| {
        seq.to_string()
    }))
}

fn walk_runs(
    conn: &Connection,
    names: &Names,
    filter: &RunFilter,
    workflow: Option<i64>,
    Road { index, prefix, .. }: &Road,
    (before, limit): (u64, usize),
) -> Result<Found<Reverse<u64>, Run>, Fault> {
    let mut found = Found::new(limit);
    let sql = format!("SELECT {RUN} FROM runs {index} WHERE {prefix}seq < ?1 ORDER BY seq DESC");
    let mut statement = conn.prepare_cached(&sql)?;
    statement.raw_bind_parameter(1, super::rows::column(before))?;
    let mut rows = statement.raw_query();
    while !found.is_full() {
        let Some(row) = rows.next()? else { break };
        let seq = Reverse(row.get(0)?);
        let right_state =
            filter.states.is_empty() || filter.states.contains(&read_run_state(row, 6)?);
        let right_workflow = workflow.is_none_or(|workflow| row.get(1) == Ok(workflow));
        if right_state && right_workflow {
            found.rows.push((seq, names.read_run(row)?));
        } else {
            found.pass_over(seq);
        }
    }
    Ok(found)
}

/// The live slots' share of all decides whether to go through the index or through the table.
pub(super) fn live_slots(conn: &Connection, names: &Names) -> Result<Vec<SlotRow>, Fault> {
    let count =
        "SELECT count(*) FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 AND state < 6";
    let live = conn
        .prepare_cached(count)?
        .query_row([], |row| row.get::<_, u64>(0))?;
    let mut slots = Vec::with_capacity(usize::try_from(live).unwrap_or(0));
    let mut read = |sql: &str| -> Result<(), Fault> {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            slots.push(names.read_slot_row(row)?);
        }
        Ok(())
    };
    if live > total_slots(conn)? / 4 {
        read(&format!(
            "SELECT {SLOT} FROM slots NOT INDEXED WHERE state < 6"
        ))?;
    } else {
        read(&format!(
            "SELECT {SLOT} FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 AND state < 6"
        ))?;
    }
    read(&format!(
        "SELECT {SLOT} FROM slots INDEXED BY slots_ending WHERE run_alive = 1 AND state >= 6"
    ))?;
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::super::rows::run_state;
    use super::*;

    #[test]
    fn the_numbers_in_the_schema_are_those_of_the_states() {
        assert_eq!(slot_state(SlotState::Succeeded), 6);
        assert_eq!(run_state(RunState::Succeeded), 2);
    }
}
