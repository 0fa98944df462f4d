//! Blocks of slots: those that succeeded long ago, and whose history was removed, some hundred to a row.
//!
//! A slot's row takes about 100 bytes with its indexes, and stays for ever. In a block it takes few, and nothing of it is lost: whoever reads
//! slots finds it there, and it gets a row again when it changes. Blocks belong to this file, as indexes do: no turn knows of them, and two
//! nodes with the same log may have different ones.
//!
//! A block has slots of one workflow, by time, and of one time by the rest of the key, the greatest first: as `slots_of` has them. Where a
//! block begins and ends is in its row, and so is in `backfill_blocks` which backfills it has slots of.

mod coding;
mod packer;
mod upgrade;
mod walk;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::{BackfillId, Slot, SlotKey, SlotRef, SlotState};
use kelos_store::SlotRow;
use kelos_store::adapter::SlotPlace;
use kelos_store::adapter::cursor::{beyond_time, kind, order_time};
use rusqlite::{Connection, Row};

use super::check::{self, Binding, Sum};
use super::fault::Fault;
use super::rows::Names;

#[cfg(test)]
pub(super) use coding::FIRST_FORM;
pub(super) use packer::Packer;
pub(super) use upgrade::step;
pub(super) use walk::{BlockWalk, Depth, Find, SlotMerge};

pub(super) const BLOCK: &str = "id, workflow, first, last, slots, body, first_key, last_key, check_value";

/// Milliseconds `[start, end)`.
pub(super) type Bounds = (i64, i64);

/// A slot in a block.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PackedSlot {
    /// The number of its workflow.
    pub(super) workflow: i64,
    pub(super) key: SlotKey,
    pub(super) slot: Slot,
}

impl PackedSlot {
    /// Its time, in milliseconds.
    pub(super) fn at(&self) -> i64 {
        order_time(&self.key)
    }

    /// The rest of its key.
    fn beyond(&self) -> Cow<'_, str> {
        beyond_time(&self.key)
    }

    /// Compares the places of two slots in a block.
    fn compare(&self, other: &PackedSlot) -> Ordering {
        self.at().cmp(&other.at()).then_with(|| other.beyond().cmp(&self.beyond()))
    }

    /// Its position in the listing.
    pub(super) fn place(&self, names: &Names) -> Result<SlotPlace, Fault> {
        Ok(SlotPlace::new(names.name(self.workflow)?.clone(), &self.key))
    }

    fn id(&self, names: &Names) -> Result<SlotRef, Fault> {
        Ok(SlotRef::new(names.name(self.workflow)?.clone(), self.key.clone()))
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

/// A choice of slots in blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockFilter<'f> {
    /// Only of this workflow.
    pub(super) workflow: Option<i64>,
    /// Only of this backfill.
    pub(super) backfill: Option<&'f BackfillId>,
    pub(super) bounds: Bounds,
}

impl<'f> BlockFilter<'f> {
    /// The slots of a workflow, or of all, within bounds.
    pub(super) fn new(workflow: Option<i64>, bounds: Bounds) -> Self {
        Self { workflow, backfill: None, bounds }
    }

    /// The condition on a block that may have some of them, with [`BlockFilter::values`].
    fn condition(&self) -> String {
        let of_workflow = if self.workflow.is_some() { "workflow = ?1" } else { "?1 IS NULL" };
        let of_backfill = match self.backfill {
            Some(_) => "id IN (SELECT block FROM backfill_blocks WHERE backfill = ?2)",
            None => "?2 IS NULL",
        };
        format!("{of_workflow} AND {of_backfill} AND last >= ?3 AND first < ?4")
    }

    fn values(&self) -> (Option<i64>, Option<&'f str>, i64, i64) {
        (self.workflow, self.backfill.map(BackfillId::as_str), self.bounds.0, self.bounds.1)
    }

    fn passes(&self, slot: &PackedSlot) -> bool {
        let (start, end) = self.bounds;
        let is_of_backfill = self.backfill.is_none_or(|backfill| slot.slot.backfill.as_ref() == Some(backfill));
        is_of_backfill && (start..end).contains(&slot.at())
    }

    /// Calls back for each of them, in no order. False ends it.
    pub(super) fn each(&self, conn: &Connection, each: impl FnMut(PackedSlot) -> bool) -> Result<(), Fault> {
        self.each_in(conn, "true", each)
    }

    /// The same of the blocks of which a condition holds, too.
    fn each_in(&self, conn: &Connection, blocks: &str, mut each: impl FnMut(PackedSlot) -> bool) -> Result<(), Fault> {
        let sql = format!("SELECT {BLOCK} FROM slot_blocks WHERE {} AND {blocks}", self.condition());
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query(self.values())?;
        while let Some(row) = rows.next()? {
            for slot in read(row)?.into_iter().filter(|slot| self.passes(slot)) {
                if !each(slot) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Their rows, in no order.
    pub(super) fn rows(&self, conn: &Connection, names: &Names) -> Result<Vec<SlotRow>, Fault> {
        let mut found = Vec::new();
        self.each(conn, |slot| {
            found.push(slot);
            true
        })?;
        found.iter().map(|slot| slot.whole(names)).collect()
    }

    /// How many they are. Blocks that the bounds cut are read.
    pub(super) fn count(&self, conn: &Connection) -> Result<u64, Fault> {
        let within = "first >= ?3 AND last < ?4";
        let of_block = match self.backfill {
            Some(_) => "(SELECT n.slots FROM backfill_blocks AS n WHERE n.backfill = ?2 AND n.block = id)",
            None => "slots",
        };
        let sql =
            format!("SELECT coalesce(sum({of_block}), 0) FROM slot_blocks WHERE {} AND {within}", self.condition());
        let mut count: u64 = conn.prepare_cached(&sql)?.query_row(self.values(), |row| row.get(0))?;
        self.each_in(conn, &format!("NOT ({within})"), |_| {
            count += 1;
            true
        })?;
        Ok(count)
    }
}

/// Reads the columns [`BLOCK`].
fn read(row: &Row<'_>) -> Result<Vec<PackedSlot>, Fault> {
    check::test(row, 0..8, 8, "a block of slots")?;
    let (workflow, slots) = (row.get(1)?, coding::decode(row.get_ref(5)?.as_blob()?)?);
    if slots.len() as i64 != row.get::<_, i64>(4)? {
        return Err(Fault::Damaged("a block of slots has not as many as its row says".to_owned()));
    }
    Ok(slots.into_iter().map(|(key, slot)| PackedSlot { workflow, key, slot }).collect())
}

/// The slot of a workflow with a key, if it is in a block.
pub(super) fn slot(conn: &Connection, workflow: i64, key: &SlotKey) -> Result<Option<Slot>, Fault> {
    let found = block_with(conn, workflow, key)?;
    Ok(found.and_then(|(_, slots)| slots.into_iter().find(|one| one.key == *key)).map(|one| one.slot))
}

/// The block of a slot: its number, and its slots.
fn block_with(conn: &Connection, workflow: i64, key: &SlotKey) -> Result<Option<(i64, Vec<PackedSlot>)>, Fault> {
    let (at, beyond) = (order_time(key), beyond_time(key));
    let place = (at, &*beyond);
    let found = blocks_among(conn, workflow, [place, place], usize::MAX)?;
    Ok(found.into_iter().find(|(_, slots)| slots.iter().any(|one| one.key == *key)))
}

/// The blocks of a workflow that have slots between two places, or may have some: their numbers, and their slots; no more than a few.
fn blocks_among(
    conn: &Connection,
    workflow: i64,
    [(first, first_key), (last, last_key)]: [(i64, &str); 2],
    few: usize,
) -> Result<Vec<(i64, Vec<PackedSlot>)>, Fault> {
    // The first bounds are those of the index.
    let sql = format!(
        "SELECT {BLOCK} FROM slot_blocks WHERE workflow = ?1 AND last >= ?2 AND first <= ?4 \
         AND (last > ?2 OR last_key <= ?3) AND (first < ?4 OR first_key >= ?5)"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query((workflow, first, first_key, last, last_key))?;
    let mut found = Vec::new();
    while found.len() < few {
        let Some(row) = rows.next()? else { break };
        found.push((row.get(0)?, read(row)?));
    }
    Ok(found)
}

/// Takes a slot that gets a row again out of its block. Says whether it was in one.
pub(super) fn take(conn: &Connection, workflow: i64, key: &SlotKey, sum: &mut Sum) -> Result<bool, Fault> {
    let Some((id, mut slots)) = block_with(conn, workflow, key)? else { return Ok(false) };
    remove(conn, id, &slots)?;
    slots.retain(|one| one.key != *key);
    write(conn, &slots, sum)?;
    Ok(true)
}

/// Removes a block, whose slots these are.
fn remove(conn: &Connection, id: i64, slots: &[PackedSlot]) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM slot_blocks WHERE id = ?1")?.execute([id])?;
    for backfill in coding::backfills(slots) {
        let sql = "DELETE FROM backfill_blocks WHERE backfill = ?1 AND block = ?2";
        conn.prepare_cached(sql)?.execute((backfill.as_str(), id))?;
    }
    Ok(())
}

/// Writes a block of slots of a workflow, which are in order. None make no block.
fn write(conn: &Connection, slots: &[PackedSlot], sum: &mut Sum) -> Result<(), Fault> {
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return Ok(()) };
    let id: i64 =
        conn.prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM slot_blocks")?.query_row([], |row| row.get(0))?;
    let sql = format!("INSERT INTO slot_blocks ({BLOCK}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let (mut statement, body) = (conn.prepare_cached(&sql)?, coding::encode(slots)?);
    let mut row = Binding::new(&mut statement, sum);
    row.number(id)?.number(first.workflow)?.number(first.at())?.number(last.at())?.number(slots.len() as i64)?;
    row.bytes(&body)?.text(&*first.beyond())?.text(&*last.beyond())?.check_value()?.execute()?;
    write_backfills(conn, id, slots)
}

/// Says of which backfills a block has slots, and how many.
fn write_backfills(conn: &Connection, id: i64, slots: &[PackedSlot]) -> Result<(), Fault> {
    for backfill in coding::backfills(slots) {
        let of_it = slots.iter().filter(|one| one.slot.backfill.as_ref() == Some(backfill)).count();
        let sql = "INSERT INTO backfill_blocks (backfill, block, slots) VALUES (?1, ?2, ?3)";
        conn.prepare_cached(sql)?.execute((backfill.as_str(), id, of_it as i64))?;
    }
    Ok(())
}

/// The backfills of all blocks, ascending, with the block and the number of slots of it.
type BackfillBlocks = Vec<(String, i64, i64)>;

/// They, as the blocks say.
fn backfills_by_block(conn: &Connection) -> Result<BackfillBlocks, Fault> {
    let mut statement = conn.prepare("SELECT id, body FROM slot_blocks")?;
    let mut rows = statement.query([])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        for backfill in coding::decode(row.get_ref(1)?.as_blob()?)?.into_iter().filter_map(|(_, slot)| slot.backfill) {
            *found.entry((backfill.to_string(), id)).or_default() += 1;
        }
    }
    Ok(found.into_iter().map(|((backfill, id), slots)| (backfill, id, slots)).collect())
}

/// A message where the table of the backfills' blocks is not as the blocks say.
pub(super) fn backfills_disagree(conn: &Connection) -> Result<Option<String>, Fault> {
    let mut statement = conn.prepare("SELECT backfill, block, slots FROM backfill_blocks ORDER BY backfill, block")?;
    let said = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let said: BackfillBlocks = said.collect::<Result<_, _>>()?;
    let differ = said != backfills_by_block(conn)?;
    Ok(differ.then(|| "the blocks of backfills are not those that have their slots".to_owned()))
}

/// Makes the table of the backfills' blocks anew.
pub(super) fn accept_backfills(conn: &Connection) -> Result<(), Fault> {
    conn.execute("DELETE FROM backfill_blocks", [])?;
    for row in backfills_by_block(conn)? {
        conn.execute("INSERT INTO backfill_blocks (backfill, block, slots) VALUES (?1, ?2, ?3)", row)?;
    }
    Ok(())
}

/// The slots of a block as a text of JSON, for the view `slots`: their state is that of all.
pub(super) fn as_json(body: &[u8]) -> Result<String, Fault> {
    let row = |(key, slot): (SlotKey, Slot)| {
        serde_json::json!({
            "kind": kind(&key),
            "at": order_time(&key),
            "key": beyond_time(&key),
            "since": slot.since.as_millisecond(),
            "runs": slot.last_run,
            "retries": slot.retries,
            "priority": slot.priority,
            "backfill": slot.backfill,
            "external_id": slot.external_id,
            "last_event": slot.last_event,
            "late": slot.late.map(Timestamp::as_millisecond),
        })
    };
    let rows: Vec<_> = coding::decode(body)?.into_iter().map(row).collect();
    Ok(serde_json::Value::from(rows).to_string())
}
