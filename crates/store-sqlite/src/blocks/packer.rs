//! Puts slots into blocks.

use jiff::Timestamp;
use kelos_model::SlotKey;
use kelos_store::adapter::cursor::{beyond_time, order_time};
use rusqlite::{Connection, TransactionBehavior};

use super::super::check::Sum;
use super::super::epochs;
use super::super::fault::Fault;
use super::super::rows::{SLOT, read_slot_of};
use super::{PackedSlot, blocks_among, coding, remove, write};

/// The slots of a block. Few in unit tests, so that a short history makes many blocks.
const SIZE: usize = if cfg!(test) { 2 } else { 256 };
/// The most workflows that are looked at for a block after a turn: most of them have none to make.
const LOOKED_AT: usize = 4;
/// The most rows that are looked at after a turn, so that those that can't be packed yet, such as all jobs of a quarter, hold nobody up.
const VISITED: usize = if cfg!(test) { 8 } else { 4_096 };
/// The fewest slots that make a block where the rows that may be looked at end.
const FEWEST: usize = SIZE.div_ceil(8);
/// The most blocks that are made anew because slots come between theirs.
const MERGED: usize = 8;

/// Puts slots into blocks, and knows how far it has come.
#[derive(Debug, Default)]
pub(in super::super) struct Packer {
    /// The workflow whose slots come next.
    workflow: i64,
    /// The key beyond which they come; none at the first.
    after: Option<SlotKey>,
}

impl Packer {
    /// Puts the slots of one block away, if there are so many whose history was removed, which it was up to a moment: after a turn that
    /// removed some, in a transaction of its own, because nothing else depends on it.
    ///
    /// Blocks of a workflow have no slots between those of others, so that a slot is found in one of them. Where slots come between those of
    /// blocks, these are made anew; and where those are many, the slots wait for others that lie nearer.
    pub(in super::super) fn step(
        &mut self,
        conn: &mut Connection,
        epoch: u64,
        removed_until: Timestamp,
    ) -> Result<(), Fault> {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if epochs::current(&tx)? != epoch {
            return Ok(());
        }
        let mut room = VISITED;
        for _ in 0..LOOKED_AT {
            let Stretch { slots, last } = self.packable(&tx, removed_until.as_millisecond(), &mut room)?;
            let Some(last) = last else {
                let next = "SELECT coalesce(min(id), 0) FROM workflows WHERE id > ?1 AND slots >= ?2";
                let next = tx.prepare_cached(next)?.query_row((self.workflow, SIZE as i64), |row| row.get(0))?;
                *self = Packer { workflow: next, after: None };
                continue;
            };
            self.after = Some(last);
            if slots.len() >= FEWEST && pack(&tx, slots)? {
                return Ok(tx.commit()?);
            }
        }
        Ok(())
    }

    /// The next slots of the workflow whose history was removed and that a block can have, by looking at so many rows.
    fn packable(&self, conn: &Connection, until: i64, room: &mut usize) -> Result<Stretch, Fault> {
        let after = self.after.as_ref();
        let (at, beyond) = (after.map_or(i64::MIN, order_time), after.map(beyond_time).unwrap_or_default());
        let mut slots = Vec::new();
        for place in ["scheduled_at = ?2 AND key < ?3", "scheduled_at > ?2 AND ?3 IS NOT NULL"] {
            let sql = format!(
                "SELECT {SLOT}, state = 6 AND last_run > 0 AND run_alive = 0 \
                 AND NOT EXISTS (SELECT 1 FROM events WHERE seq = last_event) AS is_old \
                 FROM slots INDEXED BY slots_of WHERE workflow = ?1 AND {place} AND scheduled_at <= ?4 \
                 ORDER BY scheduled_at, key DESC"
            );
            let mut statement = conn.prepare_cached(&sql)?;
            let mut rows = statement.query((self.workflow, at, &*beyond, until))?;
            while let Some(row) = rows.next()? {
                *room = room.saturating_sub(1);
                let is_old: bool = row.get("is_old")?;
                if !is_old && *room > 0 {
                    continue;
                }
                let (key, slot) = read_slot_of(row)?;
                let last = key.clone();
                if let Some(slot) = slot.filter(|_| is_old) {
                    let slot = PackedSlot { workflow: self.workflow, key, slot };
                    if coding::fits(&slot)? {
                        slots.push(slot);
                    }
                }
                if slots.len() == SIZE || *room == 0 {
                    return Ok(Stretch { slots, last: Some(last) });
                }
            }
        }
        Ok(Stretch { slots, last: None })
    }
}

/// The slots of a stretch of a workflow that a block can have.
struct Stretch {
    slots: Vec<PackedSlot>,
    /// The last key that was looked at; none if there are no more.
    last: Option<SlotKey>,
}

/// Puts slots of a workflow into blocks, and says whether it did: not where they lie between those of many.
fn pack(conn: &Connection, mut slots: Vec<PackedSlot>) -> Result<bool, Fault> {
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return Ok(false) };
    let places = [(first.at(), &*first.beyond()), (last.at(), &*last.beyond())];
    let between = blocks_among(conn, first.workflow, places, MERGED + 1)?;
    if between.len() > MERGED {
        return Ok(false);
    }
    let sql = "DELETE FROM slots WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ?3";
    let mut delete = conn.prepare_cached(sql)?;
    for slot in &slots {
        delete.execute((slot.at(), slot.workflow, &*slot.beyond()))?;
    }
    for (id, others) in between {
        remove(conn, id, &others)?;
        slots.extend(others);
    }
    slots.sort_by(PackedSlot::compare);
    for block in slots.chunks(SIZE) {
        write(conn, block, &mut Sum::default())?;
    }
    Ok(true)
}
