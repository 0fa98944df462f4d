//! The steps of a run of a flow.

use kelos_model::SlotRef;
use kelos_store::adapter::StepKeys;
use kelos_store::{Order, Page, PageRequest, SlotRow};
use rusqlite::{Connection, params};

use super::fault::Fault;
use super::rows::{Names, STEP_SLOT};

/// A page of the steps of a run, by their keys. Costs as much as the rows it returns.
pub(super) fn page(
    conn: &Connection,
    names: &Names,
    run: &SlotRef,
    paging: &PageRequest<'_>,
) -> Result<Page<SlotRow>, Fault> {
    let keys = StepKeys::of(&run.key);
    let (mut after, mut before) = keys.between(paging)?;
    let backwards = if paging.order == Order::Oldest { " DESC" } else { "" };
    let sql = format!(
        "SELECT {STEP_SLOT} FROM steps WHERE workflow = ?1 AND key > ?2 AND key < ?3 ORDER BY workflow, key{backwards}"
    );
    let (number, enough) = (names.number(&run.workflow), paging.size().saturating_add(1));
    let mut statement = conn.prepare_cached(&sql)?;
    let mut found = Vec::new();
    // Once for the run, and once more for each other run whose steps lie among its own.
    'lies_together: loop {
        let mut rows = statement.query(params![number, after, before])?;
        while found.len() < enough {
            let Some(row) = rows.next()? else { break };
            let others = keys.others(row.get_ref(2)?.as_str()?);
            if let Some((first, last)) = others {
                match paging.order {
                    Order::Newest => after = last,
                    Order::Oldest => before = first,
                }
                continue 'lies_together;
            }
            found.push(names.read_slot_row(row)?);
        }
        return Ok(StepKeys::page(found, paging));
    }
}
