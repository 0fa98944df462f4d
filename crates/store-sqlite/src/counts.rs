//! Counts of slots by state, and the list of live slots.

use std::collections::BTreeMap;

use kelos_model::{SlotState, WorkflowId};
use kelos_store::adapter::Tallies;
use kelos_store::{Columns, SlotFilter, SlotRow, Tally};
use rusqlite::{Connection, Params, params};

use super::blocks::{BlockFilter, Bounds};
use super::fault::Fault;
use super::listing::{bounds, known_workflow};
use super::rows::{COUNTED, Names, SLOT, STEP_SLOT, counted_of, read_counted, read_slot_state};

/// How many rows of slots a workflow has in a range, without reading them.
const COUNT_OF: &str = "SELECT count(*) FROM slots INDEXED BY slots_of \
                        WHERE workflow = ?1 AND scheduled_at >= ?2 AND scheduled_at < ?3";

type Counts = BTreeMap<SlotState, u64>;

/// The number of slots that match a filter, by state.
pub(super) fn slot_counts(conn: &Connection, names: &Names, filter: &SlotFilter) -> Result<Counts, Fault> {
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Counts::new());
    };
    let (start, end) = bounds(filter);
    let mut counts = match (&filter.backfill, workflow) {
        (backfill, workflow) if filter.collecting => {
            let sql = "SELECT state, count(*) FROM slots INDEXED BY slots_collecting \
                       WHERE collected IS NOT NULL AND state < 6 AND scheduled_at >= ?1 AND scheduled_at < ?2 \
                       AND (?3 IS NULL OR workflow = ?3) AND (?4 IS NULL OR backfill = ?4) GROUP BY state";
            let backfill = backfill.as_ref().map(|backfill| backfill.as_str());
            count(conn, sql, params![start, end, workflow, backfill])?
        }
        (Some(backfill), workflow) => {
            let sql = "SELECT state, count(*) FROM slots INDEXED BY slots_backfill WHERE backfill = ?1 \
                       AND scheduled_at >= ?2 AND scheduled_at < ?3 AND (?4 IS NULL OR workflow = ?4) GROUP BY state";
            let mut counts = count(conn, sql, params![backfill.as_str(), start, end, workflow])?;
            let packed = BlockFilter { backfill: Some(backfill), ..BlockFilter::new(workflow, (start, end)) };
            *counts.entry(SlotState::Succeeded).or_default() += packed.count(conn)?;
            counts
        }
        (None, Some(workflow)) => count_of(conn, workflow, filter)?,
        (None, None) if filter.range.is_some() => {
            let sql = "SELECT state, count(*) FROM slots NOT INDEXED \
                       WHERE scheduled_at >= ?1 AND scheduled_at < ?2 GROUP BY state";
            let mut counts = count(conn, sql, [start, end])?;
            *counts.entry(SlotState::Succeeded).or_default() += BlockFilter::new(None, (start, end)).count(conn)?;
            counts
        }
        (None, None) => {
            let sql = "SELECT state, count(*) FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 GROUP BY state";
            with_succeeded(count(conn, sql, [])?, total_slots(conn)?)
        }
    };
    counts.retain(|state, count| *count > 0 && (filter.states.is_empty() || filter.states.contains(state)));
    Ok(counts)
}

/// The slots of a workflow: those that did not succeed are counted by state, the total without reading rows.
fn count_of(conn: &Connection, workflow: i64, filter: &SlotFilter) -> Result<Counts, Fault> {
    let (start, end) = bounds(filter);
    let values = [workflow, start, end];
    let troubled = "SELECT state, count(*) FROM slots INDEXED BY slots_troubled WHERE state > 6 \
                    AND workflow = ?1 AND scheduled_at >= ?2 AND scheduled_at < ?3 GROUP BY state";
    let live = "SELECT state, count(*) FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 AND state < 6 \
                AND workflow = ?1 AND scheduled_at >= ?2 AND scheduled_at < ?3 GROUP BY state";
    let mut counts = count(conn, troubled, values)?;
    counts.append(&mut count(conn, live, values)?);
    let total = if filter.range.is_some() {
        total_of(conn, workflow, (start, end))?
    } else {
        counted_of(conn, workflow)?.unwrap_or_default().slots
    };
    Ok(with_succeeded(counts, total))
}

/// How many slots a workflow has in a range.
fn total_of(conn: &Connection, workflow: i64, (start, end): Bounds) -> Result<u64, Fault> {
    let rows: u64 = conn.prepare_cached(COUNT_OF)?.query_row([workflow, start, end], |row| row.get(0))?;
    Ok(rows + BlockFilter::new(Some(workflow), (start, end)).count(conn)?)
}

/// Those that succeeded are not counted one by one: they are what is left of the total.
fn with_succeeded(mut counts: Counts, total: u64) -> Counts {
    let others = counts.values().sum::<u64>();
    counts.insert(SlotState::Succeeded, total.saturating_sub(others));
    counts
}

fn count(conn: &Connection, sql: &str, values: impl Params) -> Result<Counts, Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut counts = Counts::new();
    while let Some(row) = rows.next()? {
        counts.insert(read_slot_state(row, 0)?, row.get(1)?);
    }
    Ok(counts)
}

/// Slots that are walked for each cell of an overview before they are counted instead.
const WALKED_FOR_A_CELL: u64 = 16;

/// The number of slots by state in each column. Few slots are walked; many are counted, which costs a lookup for each
/// cell and about a fifth of the walk for each slot.
pub(super) fn slot_tallies(
    conn: &Connection,
    names: &Names,
    columns: &Columns,
    workflow: Option<&WorkflowId>,
) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, Fault> {
    let Some(workflow) = known_workflow(names, workflow) else {
        return Ok(BTreeMap::new());
    };
    let workflows = match workflow {
        Some(one) => vec![one],
        None => with_slots(conn)?,
    };
    let patience = WALKED_FOR_A_CELL * u64::from(columns.count) * workflows.len() as u64;
    let walked =
        if seem_more(conn, columns, &workflows, patience)? { None } else { walked(conn, columns, workflow, patience)? };
    let tallies = walked.map_or_else(|| counted(conn, columns, workflow, &workflows), Ok)?;
    let named = |(number, tallies)| Ok((names.name(number)?.clone(), tallies));
    tallies.by_workflow().into_iter().map(named).collect()
}

pub(super) fn with_slots(conn: &Connection) -> Result<Vec<i64>, Fault> {
    let mut statement = conn.prepare_cached("SELECT id FROM workflows WHERE slots > 0")?;
    let found = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found)
}

/// Workflows whose slots are counted to tell whether a walk would be given up.
const SAMPLED: usize = 8;

/// Whether the slots of all workflows in a range seem to be more than `patience`, by those of some workflows. A wrong answer costs time
/// and nothing else.
fn seem_more(conn: &Connection, columns: &Columns, workflows: &[i64], patience: u64) -> Result<bool, Fault> {
    let (start, end) = columns.bounds();
    let (mut seen, mut sampled) = (0_u64, 0_u64);
    for workflow in workflows.iter().step_by(workflows.len().div_ceil(SAMPLED).max(1)) {
        seen += total_of(conn, *workflow, (start, end))?;
        sampled += 1;
    }
    Ok(seen.saturating_mul(workflows.len() as u64) / sampled.max(1) > patience)
}

/// Counts by reading each slot; none if there are more of them than `patience`. The slots of all workflows in a range
/// are adjacent in the table; those of one workflow are looked up.
fn walked(conn: &Connection, columns: &Columns, of: Option<i64>, patience: u64) -> Result<Option<Tallies>, Fault> {
    let (index, which) = match of {
        Some(_) => ("INDEXED BY slots_of", "workflow = ?3 AND"),
        None => ("NOT INDEXED", "?3 IS NULL AND"),
    };
    let sql = format!(
        "SELECT workflow, scheduled_at, state FROM slots {index} WHERE {which} scheduled_at >= ?1 AND scheduled_at < ?2"
    );
    let (start, end) = columns.bounds();
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![start, end, of])?;
    let (mut tallies, mut seen) = (Tallies::new(*columns), 0);
    while let Some(row) = rows.next()? {
        seen += 1;
        if seen > patience {
            return Ok(None);
        }
        tallies.add(row.get(0)?, row.get(1)?, read_slot_state(row, 2)?);
    }
    BlockFilter::new(of, (start, end)).each(conn, |slot| {
        seen += 1;
        tallies.add(slot.workflow, slot.at(), slot.slot.state);
        seen <= patience
    })?;
    Ok((seen <= patience).then_some(tallies))
}

/// Reads the slots that did not succeed, and counts all of them in the index: the difference has succeeded.
fn counted(conn: &Connection, columns: &Columns, of: Option<i64>, workflows: &[i64]) -> Result<Tallies, Fault> {
    let mut tallies = Tallies::new(*columns);
    let (start, end) = columns.bounds();
    let others = "SELECT workflow, scheduled_at, state FROM slots INDEXED BY slots_unsucceeded \
                  WHERE state <> 6 AND state IN (0, 1, 2, 3, 4, 5, 7, 8, 9, 10) \
                  AND scheduled_at >= ?1 AND scheduled_at < ?2 AND (?3 IS NULL OR workflow = ?3)";
    let mut statement = conn.prepare_cached(others)?;
    let mut rows = statement.query(params![start, end, of])?;
    while let Some(row) = rows.next()? {
        tallies.add(row.get(0)?, row.get(1)?, read_slot_state(row, 2)?);
    }
    let mut statement = conn.prepare_cached(COUNT_OF)?;
    for workflow in workflows {
        for (column, start, end) in columns.each() {
            let total = statement.query_row([*workflow, start, end], |row| row.get(0))?;
            tallies.rest_succeeded(*workflow, column, total);
        }
    }
    BlockFilter::new(of, (start, end)).each(conn, |slot| {
        tallies.add(slot.workflow, slot.at(), slot.slot.state);
        true
    })?;
    Ok(tallies)
}

/// The number of slots.
fn total_slots(conn: &Connection) -> Result<u64, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COUNTED} FROM workflows"))?;
    let mut rows = statement.query([])?;
    let mut total = 0;
    while let Some(row) = rows.next()? {
        total += read_counted(row)?.slots;
    }
    Ok(total)
}

/// The live slots, with those that are steps. Their share of all decides whether to go through the index or through the table.
pub(super) fn live_slots(conn: &Connection, names: &Names) -> Result<Vec<SlotRow>, Fault> {
    let count = "SELECT count(*) FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 AND state < 6";
    let live = conn.prepare_cached(count)?.query_row([], |row| row.get::<_, u64>(0))?;
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
        read(&format!("SELECT {SLOT} FROM slots NOT INDEXED WHERE state < 6"))?;
    } else {
        read(&format!("SELECT {SLOT} FROM slots INDEXED BY slots_unsucceeded WHERE state <> 6 AND state < 6"))?;
    }
    read(&format!("SELECT {SLOT} FROM slots INDEXED BY slots_ending WHERE run_alive = 1 AND state >= 6"))?;
    read(&format!("SELECT {STEP_SLOT} FROM steps INDEXED BY steps_live WHERE state < 6 OR run_alive = 1"))?;
    Ok(slots)
}
