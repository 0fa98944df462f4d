//! A walk along slots in the order of their listing, whether they are in rows or in blocks.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use kelos_model::SlotState;
use kelos_store::Order;
use kelos_store::adapter::SlotPlace;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::{Connection, Row, Rows};

use super::super::fault::Fault;
use super::super::rows::{Names, RowResult, read_slot_state};
use super::{BLOCK, BlockFilter, PackedSlot, read};

/// Blocks whose edges are read at a time.
const EDGES: i64 = 64;

/// The part of a slot that is read: the columns, which start with those of `STATE`, and the conversion of a row.
pub(in super::super) struct Depth<T> {
    pub(in super::super) columns: &'static str,
    pub(in super::super) read: fn(&Names, &Row<'_>) -> RowResult<T>,
    /// The same of a slot in a block.
    pub(in super::super) packed: fn(&PackedSlot, &Names) -> RowResult<T>,
}

/// A slot that a walk comes to.
pub(in super::super) enum Find<'f> {
    /// In a row, with the columns of a [`Depth`].
    Row(&'f Row<'f>),
    /// In a block.
    Packed(&'f PackedSlot),
}

/// A position in a walk along slots, by the number of the workflow.
#[derive(Debug, PartialEq, Eq)]
struct WalkPosition {
    order: Order,
    at: i64,
    workflow: i64,
    beyond: String,
}

impl WalkPosition {
    fn new(order: Order, slot: &PackedSlot) -> WalkPosition {
        WalkPosition { order, at: slot.at(), workflow: slot.workflow, beyond: slot.beyond().into_owned() }
    }

    /// Compares it with another position, by what comes first in the walk.
    fn compare(&self, at: i64, workflow: i64, beyond: &str) -> Ordering {
        let newest_first = at.cmp(&self.at).then(self.workflow.cmp(&workflow)).then_with(|| (*self.beyond).cmp(beyond));
        self.order.of(newest_first)
    }
}

impl PartialOrd for WalkPosition {
    fn partial_cmp(&self, other: &WalkPosition) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WalkPosition {
    fn cmp(&self, other: &WalkPosition) -> Ordering {
        self.compare(other.at, other.workflow, &other.beyond)
    }
}

impl Find<'_> {
    /// Its time, in milliseconds.
    pub(in super::super) fn at(&self) -> Result<i64, Fault> {
        match self {
            Find::Row(row) => Ok(row.get(0)?),
            Find::Packed(slot) => Ok(slot.at()),
        }
    }

    /// The number of its workflow.
    pub(in super::super) fn workflow(&self) -> Result<i64, Fault> {
        match self {
            Find::Row(row) => Ok(row.get(1)?),
            Find::Packed(slot) => Ok(slot.workflow),
        }
    }

    /// Its position in the listing.
    pub(in super::super) fn place(&self, names: &Names) -> Result<SlotPlace, Fault> {
        match self {
            Find::Row(row) => names.read_place(row),
            Find::Packed(slot) => slot.place(names),
        }
    }

    /// Its state.
    pub(in super::super) fn state(&self) -> Result<SlotState, Fault> {
        match self {
            Find::Row(row) => read_slot_state(row, 3),
            Find::Packed(slot) => Ok(slot.slot.state),
        }
    }

    /// The part of it that is read.
    pub(in super::super) fn read<T>(&self, names: &Names, depth: &Depth<T>) -> Result<T, Fault> {
        match self {
            Find::Row(row) => (depth.read)(names, row),
            Find::Packed(slot) => (depth.packed)(slot, names),
        }
    }
}

/// Rows and blocks, merged.
pub(in super::super) struct SlotMerge<'s> {
    rows: Rows<'s>,
    packed: Option<BlockWalk<'s>>,
    /// Whether the last that was given was in a row; none before the first.
    was_row: Option<bool>,
}

impl<'s> SlotMerge<'s> {
    /// Rows in the order of a walk, and the blocks beside them, if any are sought.
    pub(in super::super) fn new(rows: Rows<'s>, packed: Option<BlockWalk<'s>>) -> Self {
        Self { rows, packed, was_row: None }
    }

    /// The next slot.
    pub(in super::super) fn next(&mut self) -> Result<Option<Find<'_>>, Fault> {
        if self.was_row != Some(false) {
            self.rows.advance()?;
        }
        if self.was_row != Some(true)
            && let Some(packed) = &mut self.packed
        {
            packed.advance()?;
        }
        let row = self.rows.get();
        let packed = self.packed.as_ref().and_then(BlockWalk::head);
        let is_row = match (row, packed) {
            (None, None) => return Ok(None),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(row), Some((place, _))) => place.compare(row.get(0)?, row.get(1)?, row.get_ref(2)?.as_str()?).is_gt(),
        };
        self.was_row = Some(is_row);
        let found = if is_row { row.map(Find::Row) } else { packed.map(|(_, slot)| Find::Packed(slot)) };
        Ok(found)
    }
}

/// A walk along the slots in blocks. A block is read when the walk comes to it.
pub(in super::super) struct BlockWalk<'a> {
    conn: &'a Connection,
    filter: BlockFilter<'a>,
    order: Order,
    /// Of the slots of a time, only those after a key.
    after: Option<&'a str>,
    /// The beginnings of the blocks that come next, and their numbers.
    edges: VecDeque<(WalkPosition, i64)>,
    /// How many of them were read; none once all were.
    read: Option<usize>,
    /// The blocks that the walk is within, by their next slot.
    open: BinaryHeap<Reverse<(WalkPosition, usize)>>,
    blocks: Vec<VecDeque<PackedSlot>>,
}

impl<'a> BlockWalk<'a> {
    /// A walk along the slots of a filter.
    pub(in super::super) fn new(conn: &'a Connection, filter: BlockFilter<'a>, order: Order) -> Self {
        let (edges, open, blocks) = (VecDeque::new(), BinaryHeap::new(), Vec::new());
        Self { conn, filter, order, after: None, edges, read: Some(0), open, blocks }
    }

    /// A walk along the slots of one time, which the filter has, after a key.
    pub(in super::super) fn after(self, key: &'a str) -> Self {
        Self { after: Some(key), ..self }
    }

    fn head(&self) -> Option<(&WalkPosition, &PackedSlot)> {
        let Reverse((place, block)) = self.open.peek()?;
        Some((place, self.blocks.get(*block)?.front()?))
    }

    /// Goes to the next slot, or to the first.
    fn advance(&mut self) -> Result<(), Fault> {
        if let Some(Reverse((_, block))) = self.open.pop() {
            self.blocks[block].pop_front();
            self.enter(block);
        }
        // A block that begins before the next slot may have one that comes first.
        self.read_on()?;
        while let Some((edge, id)) = self.edges.front() {
            if self.open.peek().is_some_and(|Reverse((place, _))| place < edge) {
                break;
            }
            let id = *id;
            self.edges.pop_front();
            self.open(id)?;
            self.read_on()?;
        }
        Ok(())
    }

    fn enter(&mut self, block: usize) {
        if let Some(slot) = self.blocks[block].front() {
            self.open.push(Reverse((WalkPosition::new(self.order, slot), block)));
        }
    }

    /// Reads the next edges, if there is none.
    fn read_on(&mut self) -> Result<(), Fault> {
        if self.edges.is_empty()
            && let Some(read) = self.read.take()
        {
            self.edges = self.read_edges(read)?;
            self.read = Some(read + self.edges.len()).filter(|_| !self.edges.is_empty());
        }
        Ok(())
    }

    fn read_edges(&self, passed: usize) -> Result<VecDeque<(WalkPosition, i64)>, Fault> {
        // In the order of the indexes, so that nothing is sorted.
        let (at, beyond, order) = match self.order {
            Order::Newest => ("last", "last_key", "last DESC, workflow, last_key"),
            Order::Oldest => ("first", "first_key", "first, workflow DESC, first_key DESC"),
        };
        let after = match (self.after, self.order) {
            (None, _) => "?5 IS NULL",
            (Some(_), Order::Newest) => "(first < ?3 OR first_key > ?5)",
            (Some(_), Order::Oldest) => "(last >= ?4 OR last_key < ?5)",
        };
        let sql = format!(
            "SELECT {at}, workflow, {beyond}, id FROM slot_blocks WHERE {} AND {after} ORDER BY {order} LIMIT {EDGES} OFFSET ?6",
            self.filter.condition()
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let (workflow, backfill, start, end) = self.filter.values();
        let edges = statement.query_map((workflow, backfill, start, end, self.after, passed), |row| {
            let (at, workflow, beyond) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((WalkPosition { order: self.order, at, workflow, beyond }, row.get(3)?))
        })?;
        Ok(edges.collect::<Result<_, _>>()?)
    }

    fn open(&mut self, id: i64) -> Result<(), Fault> {
        let mut statement = self.conn.prepare_cached(&format!("SELECT {BLOCK} FROM slot_blocks WHERE id = ?1"))?;
        let mut rows = statement.query([id])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        let comes = |slot: &PackedSlot| self.after.is_none_or(|key| self.order.of((*slot.beyond()).cmp(key)).is_gt());
        let within = read(row)?.into_iter().filter(|slot| self.filter.passes(slot) && comes(slot));
        let mut slots: VecDeque<_> = within.collect();
        if self.order == Order::Newest {
            slots.make_contiguous().reverse();
        }
        self.blocks.push(slots);
        self.enter(self.blocks.len() - 1);
        Ok(())
    }
}
