//! A walk along slots in the order of their listing, whether they are in rows or in blocks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use kelos_model::SlotState;
use kelos_store::Order;
use kelos_store::adapter::SlotPlace;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::{Connection, Row, Rows, params};

use super::super::fault::Fault;
use super::super::rows::{Names, RowResult, read_slot_state};
use super::{BLOCK, BlockSlot, Bounds, PlacedSlot, of, read};

/// Blocks whose edges are read at a time.
const EDGES: i64 = 64;

/// The part of a slot that is read: the columns, which start with those of `STATE`, and the conversion of a row.
pub(in super::super) struct Depth<T> {
    pub(in super::super) columns: &'static str,
    pub(in super::super) read: fn(&Names, &Row<'_>) -> RowResult<T>,
    /// The same of a slot in a block.
    pub(in super::super) packed: fn(&PlacedSlot, &Names) -> RowResult<T>,
}

/// A slot that a walk comes to.
pub(in super::super) enum Find<'f> {
    /// In a row, with the columns of a [`Depth`].
    Row(&'f Row<'f>),
    /// In a block.
    Packed(&'f PlacedSlot),
}

/// A position in a walk: the time and the number of a workflow, so that what comes later is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WalkPosition(i64, i64);

impl WalkPosition {
    fn new(order: Order, at: i64, workflow: i64) -> WalkPosition {
        match order {
            Order::Newest => WalkPosition(at.saturating_neg(), workflow),
            Order::Oldest => WalkPosition(at, workflow.saturating_neg()),
        }
    }
}

impl Find<'_> {
    /// Its time, in milliseconds.
    pub(in super::super) fn at(&self) -> Result<i64, Fault> {
        match self {
            Find::Row(row) => Ok(row.get(0)?),
            Find::Packed(slot) => Ok(slot.at),
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
    order: Order,
    /// Whether the last that was given was in a row; none before the first.
    was_row: Option<bool>,
}

impl<'s> SlotMerge<'s> {
    /// Rows in the order of a walk, and the blocks beside them, if any are sought.
    pub(in super::super) fn new(rows: Rows<'s>, packed: Option<BlockWalk<'s>>, order: Order) -> Self {
        Self { rows, packed, order, was_row: None }
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
            (Some(row), Some((place, _))) => {
                let (at, workflow, key) = (row.get(0)?, row.get(1)?, row.get_ref(2)?.as_str()?);
                // Of one time and one workflow, the key that is only a time comes first or last.
                let is_beside = self.order.of(key.cmp("")).is_lt();
                let at = WalkPosition::new(self.order, at, workflow);
                at < place || at == place && is_beside
            }
        };
        self.was_row = Some(is_row);
        let found = if is_row { row.map(Find::Row) } else { packed.map(|(_, slot)| Find::Packed(slot)) };
        Ok(found)
    }
}

/// A walk along the slots in blocks. A block is read when the walk comes to it.
pub(in super::super) struct BlockWalk<'a> {
    conn: &'a Connection,
    workflow: Option<i64>,
    bounds: Bounds,
    order: Order,
    /// The blocks that come next, by the time at which they begin.
    edges: VecDeque<(i64, i64)>,
    /// The last edge that was read; none once all were.
    read_to: Option<(i64, i64)>,
    /// The blocks that the walk is within, by their next slot.
    open: BinaryHeap<Reverse<(WalkPosition, usize)>>,
    blocks: Vec<VecDeque<PlacedSlot>>,
}

impl<'a> BlockWalk<'a> {
    /// A walk along the slots of a workflow, or of all, within bounds.
    pub(in super::super) fn new(conn: &'a Connection, workflow: Option<i64>, bounds: Bounds, order: Order) -> Self {
        let beginning = match order {
            Order::Newest => (i64::MAX, i64::MAX),
            Order::Oldest => (i64::MIN, i64::MIN),
        };
        let (edges, open, blocks) = (VecDeque::new(), BinaryHeap::new(), Vec::new());
        Self { conn, workflow, bounds, order, edges, read_to: Some(beginning), open, blocks }
    }

    fn head(&self) -> Option<(WalkPosition, &PlacedSlot)> {
        let Reverse((place, block)) = self.open.peek()?;
        Some((*place, self.blocks.get(*block)?.front()?))
    }

    /// Goes to the next slot, or to the first.
    fn advance(&mut self) -> Result<(), Fault> {
        if let Some(Reverse((_, block))) = self.open.pop() {
            self.blocks[block].pop_front();
            self.enter(block);
        }
        // A block that begins at the next slot or before may have one that comes first.
        while let Some((edge, id)) = self.next_edge()? {
            let comes = WalkPosition::new(self.order, edge, 0).0;
            if self.open.peek().is_some_and(|Reverse((place, _))| place.0 < comes) {
                break;
            }
            self.edges.pop_front();
            self.open(id)?;
        }
        Ok(())
    }

    fn enter(&mut self, block: usize) {
        if let Some(slot) = self.blocks[block].front() {
            self.open.push(Reverse((WalkPosition::new(self.order, slot.at, slot.workflow), block)));
        }
    }

    fn next_edge(&mut self) -> Result<Option<(i64, i64)>, Fault> {
        if self.edges.is_empty()
            && let Some((edge, id)) = self.read_to.take()
        {
            self.edges = self.read_edges(edge, id)?;
            self.read_to = self.edges.back().copied();
        }
        Ok(self.edges.front().copied())
    }

    fn read_edges(&self, edge: i64, id: i64) -> Result<VecDeque<(i64, i64)>, Fault> {
        let (column, beyond, order) = match self.order {
            Order::Newest => ("last", "<", "DESC"),
            Order::Oldest => ("first", ">", "ASC"),
        };
        let sql = format!(
            "SELECT {column}, id FROM slot_blocks WHERE {} AND last >= ?2 AND first < ?3 AND ({column}, id) {beyond} (?4, ?5) \
             ORDER BY {column} {order}, id {order} LIMIT {EDGES}",
            of(self.workflow)
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let values = params![self.workflow, self.bounds.0, self.bounds.1, edge, id];
        let edges = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        Ok(edges)
    }

    fn open(&mut self, id: i64) -> Result<(), Fault> {
        let mut statement = self.conn.prepare_cached(&format!("SELECT {BLOCK} FROM slot_blocks WHERE id = ?1"))?;
        let mut rows = statement.query([id])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        let (workflow, slots) = read(row)?;
        let (start, end) = self.bounds;
        let placed = |BlockSlot { at, slot }| PlacedSlot { workflow, at, slot };
        let within = slots.into_iter().filter(|slot| (start..end).contains(&slot.at)).map(placed);
        let mut slots: VecDeque<_> = within.collect();
        if self.order == Order::Newest {
            slots.make_contiguous().reverse();
        }
        self.blocks.push(slots);
        self.enter(self.blocks.len() - 1);
        Ok(())
    }
}
