//! Pages of slots: which index leads to them, and how far it is followed.

use kelos_model::{SlotRef, SlotState};
use kelos_store::adapter::SlotPlace;
use kelos_store::{Page, PageRequest, SlotFilter, SlotRow};
use rusqlite::Connection;

use super::blocks::{Depth, PackedSlot};
use super::fault::Fault;
use super::listing::{PageBuilder, Road, known_workflow};
use super::rows::{Names, SLOT, STATE, slot_state};
use super::slot_walk::SlotWalk;

/// The indexes by which the slots of a filter are found. Several are merged.
fn slot_roads(conn: &Connection, filter: &SlotFilter, workflow: Option<i64>) -> Result<Vec<Road>, Fault> {
    let states = &filter.states;
    let only_troubled = !states.is_empty() && states.iter().all(|state| *state > SlotState::Succeeded);
    Ok(match (&filter.backfill, workflow) {
        (None, Some(workflow)) if filter.collecting => {
            vec![Road::new("INDEXED BY slots_collecting", format!("workflow = {workflow} AND "))]
        }
        (Some(backfill), _) => {
            let text = Some(backfill.as_str().to_owned());
            vec![Road { text, ..Road::with_blocks("INDEXED BY slots_backfill", "backfill = ?1 AND ") }]
        }
        (None, Some(workflow)) if only_troubled => {
            vec![Road::new("INDEXED BY slots_troubled", format!("state > 6 AND workflow = {workflow} AND "))]
        }
        // For all states, the index passes over no rows; in the table, slots of other workflows are in between.
        (None, Some(workflow)) if !states.is_empty() && is_dense(conn, workflow)? => {
            vec![Road::with_blocks("NOT INDEXED", "")]
        }
        (None, Some(workflow)) => {
            let prefix = format!("workflow = {workflow} AND ");
            vec![Road::with_blocks("INDEXED BY slots_of", prefix)]
        }
        (None, None) if !states.is_empty() && !states.contains(&SlotState::Succeeded) => {
            let mut numbers = states.iter().map(|state| slot_state(*state)).collect::<Vec<_>>();
            numbers.sort_unstable();
            numbers.dedup();
            let road =
                |state| Road::new("INDEXED BY slots_unsucceeded", format!("state <> 6 AND state = {state} AND "));
            numbers.into_iter().map(road).collect()
        }
        (None, None) => vec![Road::with_blocks("NOT INDEXED", "")],
    })
}

/// All of it.
pub(super) const WHOLE: Depth<SlotRow> = Depth { columns: SLOT, read: Names::read_slot_row, packed: PackedSlot::whole };

/// Its name and its state.
pub(super) const NAME_AND_STATE: Depth<(SlotRef, SlotState)> =
    Depth { columns: STATE, read: Names::read_slot_name_and_state, packed: PackedSlot::name_and_state };

/// A page of slots.
pub(super) fn slots<T>(
    conn: &Connection,
    names: &Names,
    depth: &Depth<T>,
    filter: &SlotFilter,
    paging: &PageRequest<'_>,
) -> Result<Page<T>, Fault> {
    let after = paging.from.map(SlotPlace::parse).transpose()?;
    let Some(workflow) = known_workflow(names, filter.workflow.as_ref()) else {
        return Ok(Page { rows: Vec::new(), next: None });
    };
    let mut roads = Vec::new();
    for road in slot_roads(conn, filter, workflow)? {
        let (after, found) = (after.as_ref(), PageBuilder::new(paging));
        roads.push(SlotWalk { conn, names, depth, filter, workflow, road: &road, after, found }.walk()?);
    }
    Ok(PageBuilder::page(roads, paging, SlotPlace::cursor))
}

/// Whether a workflow has so large a share of all slots that reading all of them costs less than looking up each of its
/// own.
fn is_dense(conn: &Connection, workflow: i64) -> Result<bool, Fault> {
    let mut share =
        conn.prepare_cached("SELECT slots * 3 >= (SELECT sum(slots) FROM workflows) FROM workflows WHERE id = ?1")?;
    Ok(share.query_row([workflow], |row| row.get(0))?)
}
