//! A walk along an index of slots in the order of their listing: by time, by the name of the workflow, by the rest of
//! the key.
//!
//! Slots in blocks are among them, where the index has those that succeeded. The indexes contain the numbers of workflows and not their names. So the slots of one time are sorted here; if they
//! are too many, each workflow is queried on its own.

use std::cmp::Reverse;

use kelos_model::{SlotState, WorkflowId};
use kelos_store::adapter::SlotPlace;
use kelos_store::{Order, SlotFilter};
use rusqlite::{CachedStatement, Connection, ToSql};

use super::blocks::{BlockFilter, BlockWalk, Bounds, Depth, Find, SlotMerge};
use super::counts::with_slots;
use super::fault::Fault;
use super::listing::{PASSED_OVER, PageBuilder, Road, bounds};
use super::rows::Names;

/// Slots of one time that are put in order here.
const MOST_OF_A_TIME: usize = PASSED_OVER;

/// A key that comes after all others of a time.
const BEYOND_ALL: &str = "\u{10ffff}";

pub(super) struct SlotWalk<'a, T> {
    pub(super) conn: &'a Connection,
    pub(super) names: &'a Names,
    pub(super) depth: &'a Depth<T>,
    pub(super) filter: &'a SlotFilter,
    pub(super) workflow: Option<i64>,
    pub(super) road: &'a Road,
    /// The end of the previous page.
    pub(super) after: Option<&'a SlotPlace>,
    pub(super) found: PageBuilder<SlotPlace, T>,
}

/// The slots of one time, as far as the page has room for them.
struct Group<T> {
    at: i64,
    rows: Vec<(SlotPlace, T)>,
    /// The last place of those kept, once there were more than the page has room for.
    last: Option<SlotPlace>,
    looked_at: usize,
    passed_over: usize,
    /// The last position, in order, of all slots that were read.
    furthest: Option<SlotPlace>,
}

impl<T> Group<T> {
    fn new(at: i64) -> Self {
        Self { at, rows: Vec::new(), last: None, looked_at: 0, passed_over: 0, furthest: None }
    }

    /// Keeps no more rows than a page has room for.
    fn trim(&mut self, order: Order, room: usize) {
        self.rows.sort_by(|a, b| order.of(a.0.cmp(&b.0)));
        self.rows.truncate(room);
        self.last = self.rows.last().filter(|_| self.rows.len() == room).map(|(place, _)| place.clone());
    }
}

impl<'a, T> SlotWalk<'a, T> {
    pub(super) fn walk(mut self) -> Result<PageBuilder<SlotPlace, T>, Fault> {
        match self.workflow {
            Some(number) => self.one(number)?,
            None => self.all()?,
        }
        Ok(self.found)
    }

    fn order(&self) -> Order {
        self.found.order()
    }

    fn is_before(&self, a: &SlotPlace, b: &SlotPlace) -> bool {
        self.order().of(a.cmp(b)).is_lt()
    }

    /// One workflow's slots are in order: first the rest of the time at which the page before ended, then all times beyond.
    fn one(&mut self, number: i64) -> Result<(), Fault> {
        let (mut start, mut end) = bounds(self.filter);
        if let Some(Reverse(at)) = self.after.map(|after| after.at) {
            if (start..end).contains(&at) {
                self.of_time(at, number)?;
            }
            match self.order() {
                Order::Newest => end = end.min(at),
                Order::Oldest => start = start.max(at.saturating_add(1)),
            }
        }
        let others = format!("scheduled_at >= ?2 AND scheduled_at < ?3 ORDER BY {}", self.by_time());
        self.stretch(&others, &[&start, &end], self.blocks(Some(number), (start, end)))?;
        self.stop_behind_own(number)
    }

    /// If it stopped at a slot of another workflow, it stops behind the workflow's own slots of that time: on the way, the slots of a time
    /// follow each other by the numbers of their workflows, and pages by their names.
    fn stop_behind_own(&mut self, number: i64) -> Result<(), Fault> {
        let name = self.names.name(number)?;
        let Some(other) = self.found.stopped().filter(|place| place.workflow != *name).cloned() else { return Ok(()) };
        let at = other.at.0;
        let other = self.names.number(&other.workflow);
        let (own_come, behind) = match self.order() {
            Order::Newest => (other < Some(number), BEYOND_ALL),
            Order::Oldest => (other > Some(number), ""),
        };
        if own_come {
            self.found.stop(None);
            self.of_time(at, number)?;
        }
        if !own_come || !self.found.is_full() {
            let place = SlotPlace { at: Reverse(at), workflow: name.clone(), key: behind.to_owned() };
            self.found.stop(Some(place));
        }
        Ok(())
    }

    fn by_time(&self) -> &'static str {
        match self.order() {
            Order::Newest => "scheduled_at DESC, workflow, key",
            Order::Oldest => "scheduled_at, workflow DESC, key DESC",
        }
    }

    /// A workflow's slots of one time, as far as the page before did not have them.
    fn of_time(&mut self, at: i64, number: i64) -> Result<(), Fault> {
        let name = self.names.name(number)?;
        let after = self.after.filter(|after| after.at.0 == at);
        let compared = after.map(|after| self.order().of(name.cmp(&after.workflow)));
        if compared.is_some_and(std::cmp::Ordering::is_lt) {
            return Ok(());
        }
        let key = after.filter(|after| *name == after.workflow).map(|after| &after.key);
        let (beyond, by_key) = match self.order() {
            Order::Newest => (">", "key"),
            Order::Oldest => ("<", "key DESC"),
        };
        let of = "scheduled_at = ?2 AND workflow = ?3";
        let blocks = self.blocks(Some(number), (at, at.saturating_add(1)));
        match key {
            Some(key) => {
                let condition = format!("{of} AND key {beyond} ?4 ORDER BY {by_key}");
                self.stretch(&condition, &[&at, &number, key], blocks.map(|blocks| blocks.after(key)))
            }
            None => self.stretch(&format!("{of} ORDER BY {by_key}"), &[&at, &number], blocks),
        }
    }

    fn all(&mut self) -> Result<(), Fault> {
        let (mut start, mut end) = bounds(self.filter);
        if let Some(Reverse(at)) = self.after.map(|after| after.at) {
            match self.order() {
                Order::Newest => end = end.min(at.saturating_add(1)),
                Order::Oldest => start = start.max(at),
            }
        }
        while let Some(at) = self.groups(start, end)? {
            self.by_name(at)?;
            match self.order() {
                Order::Newest => end = at,
                Order::Oldest => start = at.saturating_add(1),
            }
        }
        Ok(())
    }

    /// Puts time by time in order. Gives the time that has too many slots for it; those before it are done.
    fn groups(&mut self, start: i64, end: i64) -> Result<Option<i64>, Fault> {
        let condition = format!("scheduled_at >= ?2 AND scheduled_at < ?3 ORDER BY {}", self.by_time());
        let mut statement = self.prepare(&condition, &[&start, &end])?;
        let mut slots = SlotMerge::new(statement.raw_query(), self.blocks(None, (start, end)));
        let mut group: Option<Group<T>> = None;
        while !self.found.is_full() {
            let found = slots.next()?;
            let at = found.as_ref().map(Find::at).transpose()?;
            if let Some(done) = group.take_if(|group| Some(group.at) != at) {
                self.take(done);
                if self.found.is_full() {
                    break;
                }
            }
            let (Some(found), Some(at)) = (found, at) else { break };
            let group = group.get_or_insert_with(|| Group::new(at));
            group.looked_at += 1;
            if group.looked_at > MOST_OF_A_TIME {
                return Ok(Some(at));
            }
            self.sort_in(&found, group)?;
        }
        Ok(None)
    }

    fn sort_in(&self, slot: &Find<'_>, group: &mut Group<T>) -> Result<(), Fault> {
        let place = slot.place(self.names)?;
        if self.after.is_some_and(|after| !self.is_before(after, &place)) {
            return Ok(());
        }
        if group.furthest.as_ref().is_none_or(|furthest| self.is_before(furthest, &place)) {
            group.furthest = Some(place.clone());
        }
        if !self.passes(slot)? {
            group.passed_over += 1;
        } else if group.last.as_ref().is_none_or(|last| self.is_before(&place, last)) {
            let room = self.found.room();
            group.rows.push((place, slot.read(self.names, self.depth)?));
            if group.rows.len() >= room.saturating_mul(2) {
                group.trim(self.order(), room);
            }
        }
        Ok(())
    }

    /// Takes the slots of a time over.
    fn take(&mut self, mut group: Group<T>) {
        group.trim(self.order(), self.found.room());
        self.found.rows.append(&mut group.rows);
        if let Some(furthest) = group.furthest {
            self.found.pass_over_many(group.passed_over, furthest);
        }
    }

    /// Asks one workflow after the other for its slots of a time.
    fn by_name(&mut self, at: i64) -> Result<(), Fault> {
        let named = |number| Ok((self.names.name(number)?.clone(), number));
        let mut workflows = with_slots(self.conn)?.into_iter().map(named).collect::<Result<Vec<_>, Fault>>()?;
        workflows.sort_by(|a: &(WorkflowId, i64), b| self.order().of(a.0.cmp(&b.0)));
        for (name, number) in workflows {
            if self.found.is_full() {
                break;
            }
            let rows = self.found.rows.len();
            self.of_time(at, number)?;
            if self.found.rows.len() == rows && !self.found.is_full() {
                self.found.pass_over(SlotPlace { at: Reverse(at), workflow: name, key: String::new() });
            }
        }
        Ok(())
    }

    /// The slots in blocks, where the index has such.
    fn blocks(&self, workflow: Option<i64>, bounds: Bounds) -> Option<BlockWalk<'a>> {
        let states = &self.filter.states;
        let are_sought = states.is_empty() || states.contains(&SlotState::Succeeded);
        let are_there = self.road.has_blocks && are_sought && !self.filter.collecting;
        are_there.then(|| {
            let filter = BlockFilter { backfill: self.filter.backfill.as_ref(), ..BlockFilter::new(workflow, bounds) };
            BlockWalk::new(self.conn, filter, self.order())
        })
    }

    fn prepare(&self, condition: &str, values: &[&dyn ToSql]) -> Result<CachedStatement<'a>, Fault> {
        let Road { index, prefix, text, .. } = self.road;
        let columns = self.depth.columns;
        let collecting = if self.filter.collecting { "collected IS NOT NULL AND state < 6 AND " } else { "" };
        let sql = format!("SELECT {columns} FROM slots {index} WHERE {prefix}{collecting}{condition}");
        let mut statement = self.conn.prepare_cached(&sql)?;
        if let Some(text) = text {
            statement.raw_bind_parameter(1, text)?;
        }
        for (index, value) in values.iter().enumerate() {
            statement.raw_bind_parameter(2 + index, value)?;
        }
        Ok(statement)
    }

    /// Reads a stretch of the index in its own order, and the slots in blocks that are within.
    fn stretch(&mut self, condition: &str, values: &[&dyn ToSql], blocks: Option<BlockWalk<'a>>) -> Result<(), Fault> {
        if self.found.is_full() {
            return Ok(());
        }
        let mut statement = self.prepare(condition, values)?;
        let mut slots = SlotMerge::new(statement.raw_query(), blocks);
        while !self.found.is_full() {
            let Some(slot) = slots.next()? else { break };
            let place = slot.place(self.names)?;
            if self.passes(&slot)? {
                self.found.rows.push((place, slot.read(self.names, self.depth)?));
            } else {
                self.found.pass_over(place);
            }
        }
        Ok(())
    }

    fn passes(&self, slot: &Find<'_>) -> Result<bool, Fault> {
        let states = &self.filter.states;
        let right_state = states.is_empty() || states.contains(&slot.state()?);
        let number = slot.workflow()?;
        let right_workflow = self.workflow.is_none_or(|workflow| number == workflow);
        Ok(right_state && right_workflow)
    }
}
