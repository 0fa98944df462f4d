//! Blocks of slots: those that succeeded long ago, and whose history was removed, some hundred to a row.
//!
//! A slot's row takes about 100 bytes with its indexes, and stays for ever. In a block it takes few, and nothing of it is lost: whoever reads
//! slots finds it there, and it gets a row again when it changes. Blocks belong to this file, as indexes do: no turn knows of them, and two
//! nodes with the same log may have different ones.

mod coding;
mod walk;

use jiff::Timestamp;
use kelos_model::{Slot, SlotKey, SlotRef, SlotState};
use kelos_store::SlotRow;
use kelos_store::adapter::SlotPlace;
use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::check::{self, Binding, Sum};
use super::epochs;
use super::fault::Fault;
use super::rows::{Names, SLOT, read_slot};

pub(super) use walk::{BlockWalk, Depth, Find, SlotMerge};

pub(super) const BLOCK: &str = "id, workflow, first, last, slots, body, check_value";

/// The slots of a block. Few in unit tests, so that a short history makes many blocks.
const SIZE: usize = if cfg!(test) { 2 } else { 256 };
/// The most workflows that are looked at for a block after a turn: most of them have none to make.
const LOOKED_AT: usize = 4;

/// Milliseconds `[start, end)`.
pub(super) type Bounds = (i64, i64);

/// A slot of a block. Its key is its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BlockSlot {
    /// Its time, in milliseconds.
    pub(super) at: i64,
    pub(super) slot: Slot,
}

/// A slot of a block, and the number of its workflow.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedSlot {
    pub(super) workflow: i64,
    pub(super) at: i64,
    pub(super) slot: Slot,
}

impl PlacedSlot {
    /// Its position in the listing.
    pub(super) fn place(&self, names: &Names) -> Result<SlotPlace, Fault> {
        let key = String::new();
        Ok(SlotPlace { at: std::cmp::Reverse(self.at), workflow: names.name(self.workflow)?.clone(), key })
    }

    fn id(&self, names: &Names) -> Result<SlotRef, Fault> {
        Ok(SlotRef::new(names.name(self.workflow)?.clone(), SlotKey::Time(moment(self.at)?)))
    }

    /// All of it.
    pub(super) fn whole(&self, names: &Names) -> Result<SlotRow, Fault> {
        Ok(SlotRow { id: self.id(names)?, slot: self.slot.clone() })
    }

    /// Its name and its state.
    pub(super) fn name_and_state(&self, names: &Names) -> Result<(SlotRef, SlotState), Fault> {
        Ok((self.id(names)?, self.slot.state))
    }
}

fn moment(millis: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_millisecond(millis).map_err(|error| Fault::Damaged(error.to_string()))
}

/// Reads the columns [`BLOCK`].
fn read(row: &Row<'_>) -> Result<(i64, Vec<BlockSlot>), Fault> {
    check::test(row, 0..6, 6, "a block of slots")?;
    let slots = coding::decode(row.get_ref(5)?.as_blob()?)?;
    if slots.len() as i64 != row.get::<_, i64>(4)? {
        return Err(Fault::Damaged("a block of slots has not as many as its row says".to_owned()));
    }
    Ok((row.get(1)?, slots))
}

/// A condition on `?1`, which is null where the slots of all workflows are sought.
const fn of(workflow: Option<i64>) -> &'static str {
    match workflow {
        Some(_) => "workflow = ?1",
        None => "?1 IS NULL",
    }
}

/// Calls back for each slot in blocks, of one workflow or of all, within bounds; in no order. False ends it.
pub(super) fn each(
    conn: &Connection,
    workflow: Option<i64>,
    (start, end): Bounds,
    mut each: impl FnMut(i64, BlockSlot) -> bool,
) -> Result<(), Fault> {
    let sql = format!("SELECT {BLOCK} FROM slot_blocks WHERE {} AND last >= ?2 AND first < ?3", of(workflow));
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![workflow, start, end])?;
    while let Some(row) = rows.next()? {
        let (number, slots) = read(row)?;
        for slot in slots.into_iter().filter(|slot| (start..end).contains(&slot.at)) {
            if !each(number, slot) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The slots of a workflow in blocks, within bounds; in no order.
pub(super) fn within(
    conn: &Connection,
    names: &Names,
    workflow: Option<i64>,
    bounds: Bounds,
) -> Result<Vec<SlotRow>, Fault> {
    let mut placed = Vec::new();
    each(conn, workflow, bounds, |workflow, BlockSlot { at, slot }| {
        placed.push(PlacedSlot { workflow, at, slot });
        true
    })?;
    placed.iter().map(|slot| slot.whole(names)).collect()
}

/// The number of slots in blocks, of one workflow or of all, within bounds.
pub(super) fn count(conn: &Connection, workflow: Option<i64>, (start, end): Bounds) -> Result<u64, Fault> {
    let within = "first >= ?2 AND last < ?3";
    let sql = format!("SELECT coalesce(sum(slots), 0) FROM slot_blocks WHERE {} AND {within}", of(workflow));
    let whole: u64 = conn.prepare_cached(&sql)?.query_row(params![workflow, start, end], |row| row.get(0))?;
    let sql = format!(
        "SELECT {BLOCK} FROM slot_blocks WHERE {} AND last >= ?2 AND first < ?3 AND NOT ({within})",
        of(workflow)
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![workflow, start, end])?;
    let mut cut = 0;
    while let Some(row) = rows.next()? {
        cut += read(row)?.1.iter().filter(|slot| (start..end).contains(&slot.at)).count() as u64;
    }
    Ok(whole + cut)
}

/// The slot of a workflow at a time, if it is in a block.
pub(super) fn slot(conn: &Connection, workflow: i64, at: i64) -> Result<Option<Slot>, Fault> {
    Ok(block_with(conn, workflow, at)?
        .and_then(|(_, slots)| slots.into_iter().find(|one| one.at == at))
        .map(|one| one.slot))
}

/// The block of a slot: its number, and its slots.
fn block_with(conn: &Connection, workflow: i64, at: i64) -> Result<Option<(i64, Vec<BlockSlot>)>, Fault> {
    let sql = format!("SELECT {BLOCK} FROM slot_blocks WHERE workflow = ?1 AND last >= ?2 AND first <= ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([workflow, at])?;
    while let Some(row) = rows.next()? {
        let (_, slots) = read(row)?;
        if slots.iter().any(|one| one.at == at) {
            return Ok(Some((row.get(0)?, slots)));
        }
    }
    Ok(None)
}

/// Takes a slot that gets a row again out of its block. Says whether it was in one.
pub(super) fn take(conn: &Connection, workflow: i64, at: i64, sum: &mut Sum) -> Result<bool, Fault> {
    let Some((id, mut slots)) = block_with(conn, workflow, at)? else { return Ok(false) };
    slots.retain(|one| one.at != at);
    conn.prepare_cached("DELETE FROM slot_blocks WHERE id = ?1")?.execute([id])?;
    if !slots.is_empty() {
        write(conn, workflow, &slots, sum)?;
    }
    Ok(true)
}

/// Writes a block of slots, which are in the order of their times.
fn write(conn: &Connection, workflow: i64, slots: &[BlockSlot], sum: &mut Sum) -> Result<(), Fault> {
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return Ok(()) };
    let id: i64 =
        conn.prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM slot_blocks")?.query_row([], |row| row.get(0))?;
    let sql = format!("INSERT INTO slot_blocks ({BLOCK}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let (mut statement, body) = (conn.prepare_cached(&sql)?, coding::encode(slots)?);
    let mut row = Binding::new(&mut statement, sum);
    row.number(id)?.number(workflow)?.number(first.at)?.number(last.at)?.number(slots.len() as i64)?;
    row.bytes(&body)?.check_value()?.execute()?;
    Ok(())
}

/// Puts slots into blocks, and knows how far it has come.
#[derive(Debug, Default)]
pub(super) struct Packer {
    /// The workflow, and the time beyond which its slots come next.
    at: (i64, i64),
}

impl Packer {
    /// Puts the slots of one block away, if there are so many whose history was removed, which it was up to a moment: after a turn that
    /// removed some, in a transaction of its own, because nothing else depends on it.
    pub(super) fn step(&mut self, conn: &mut Connection, epoch: u64, removed_until: Timestamp) -> Result<(), Fault> {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if epochs::current(&tx)? != epoch {
            return Ok(());
        }
        for _ in 0..LOOKED_AT {
            let (workflow, after) = self.at;
            let slots = packable(&tx, workflow, after, removed_until.as_millisecond())?;
            if let Some(last) = slots.last().filter(|_| slots.len() == SIZE) {
                let mut delete =
                    tx.prepare_cached("DELETE FROM slots WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ''")?;
                for slot in &slots {
                    delete.execute([slot.at, workflow])?;
                }
                drop(delete);
                write(&tx, workflow, &slots, &mut Sum::default())?;
                self.at = (workflow, last.at);
                return Ok(tx.commit()?);
            }
            let next = "SELECT coalesce(min(id), 0) FROM workflows WHERE id > ?1 AND slots >= ?2";
            let next = tx.prepare_cached(next)?.query_row([workflow, SIZE as i64], |row| row.get(0))?;
            self.at = (next, i64::MIN);
        }
        Ok(())
    }
}

/// The first slots of a workflow after a time whose history was removed and that a block can have.
fn packable(conn: &Connection, workflow: i64, after: i64, until: i64) -> Result<Vec<BlockSlot>, Fault> {
    let sql = format!(
        "SELECT {SLOT} FROM slots INDEXED BY slots_of WHERE workflow = ?1 AND scheduled_at > ?2 AND scheduled_at <= ?3 \
         AND key = '' AND kind = 0 AND state = 6 AND last_run > 0 AND backfill IS NULL \
         AND NOT EXISTS (SELECT 1 FROM events WHERE seq = last_event) ORDER BY scheduled_at"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([workflow, after, until])?;
    let mut slots = Vec::new();
    while slots.len() < SIZE {
        let Some(row) = rows.next()? else { break };
        let slot = read_slot(row)?;
        if coding::fits(&slot) {
            slots.push(BlockSlot { at: row.get(0)?, slot });
        }
    }
    Ok(slots)
}

/// The slots of a block as a text of JSON, for the view `slots`: state and key are those of all.
pub(super) fn as_json(body: &[u8]) -> Result<String, Fault> {
    let row = |BlockSlot { at, slot }: BlockSlot| {
        serde_json::json!({
            "at": at,
            "since": slot.since.as_millisecond(),
            "runs": slot.last_run,
            "retries": slot.retries,
            "priority": slot.priority,
            "external_id": slot.external_id,
            "last_event": slot.last_event,
            "late": slot.late.map(Timestamp::as_millisecond),
        })
    };
    let rows: Vec<_> = coding::decode(body)?.into_iter().map(row).collect();
    Ok(serde_json::Value::from(rows).to_string())
}
