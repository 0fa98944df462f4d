//! The times of backlogs as rows of slots: readers see planned times as if each had its row already.
//!
//! Absent: where backlogs are stored. An adapter reads them in the same transaction as the rows beside them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::time::CronSchedule;
use kelos_model::workflow::PlanState;
use kelos_model::{Backlog, Slot, SlotKey, SlotRef, SlotState, Stretch, WorkflowId};

use crate::contract::StoreError;
use crate::cursor::SlotPlace;
use crate::queries::{Order, Page, PageRequest, SlotFilter};
use crate::tally::{Columns, Tally};

/// The shortest step between times.
const TICK: SignedDuration = SignedDuration::from_millis(1);

/// The backlogs of some workflows, with the schedules that name the times in them.
#[derive(Default)]
pub struct Backlogs {
    workflows: BTreeMap<WorkflowId, (Backlog, CronSchedule)>,
}

impl Backlogs {
    /// Adds the backlog of a workflow.
    pub fn add(&mut self, id: WorkflowId, planned: &PlanState) {
        if let Some(schedule) = planned.schedule_of_backlog() {
            self.workflows.insert(id, (planned.backlog.clone(), schedule));
        }
    }

    /// The slot of a time.
    pub fn slot(&self, id: &SlotRef) -> Option<Slot> {
        let at = id.key.time()?;
        let (backlog, schedule) = self.workflows.get(&id.workflow)?;
        backlog.at(at).filter(|_| schedule.contains(at)).map(Stretch::slot)
    }

    /// Adds the slots that a filter selects to the counts of rows.
    pub fn add_counts(&self, filter: &SlotFilter, counts: &mut BTreeMap<SlotState, u64>) {
        for (_, (backlog, schedule)) in self.filtered(filter.workflow.as_ref()) {
            for stretch in backlog.within(bounds(filter)).filter(|stretch| passes(filter, stretch)) {
                let count = schedule.count(stretch.range);
                if count > 0 {
                    *counts.entry(stretch.state()).or_default() += count;
                }
            }
        }
    }

    /// Adds the slots in columns of time to the tallies of rows.
    pub fn add_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
        tallies: &mut BTreeMap<WorkflowId, Vec<Tally>>,
    ) {
        for (id, (backlog, schedule)) in self.filtered(workflow) {
            let mut cells = BTreeMap::new();
            for (column, start, end) in columns.each() {
                for stretch in backlog.within(Range::new(moment(start), moment(end))) {
                    let count = schedule.count(stretch.range);
                    *cells.entry((column, stretch.state())).or_default() += u32::try_from(count).unwrap_or(u32::MAX);
                }
            }
            cells.retain(|_, count: &mut u32| *count > 0);
            if cells.is_empty() {
                continue;
            }
            let of_rows = tallies.entry(id.clone()).or_default();
            for tally in of_rows.iter() {
                *cells.entry((tally.column, tally.state)).or_default() += tally.count;
            }
            *of_rows = cells.into_iter().map(|((column, state), count)| Tally { column, state, count }).collect();
        }
    }

    /// A page of rows merged with those of backlogs; `make` gives the row of a slot, `name` the slot of a row.
    pub fn merge<T>(
        &self,
        page: Page<T>,
        filter: &SlotFilter,
        paging: &PageRequest<'_>,
        name: impl Fn(&T) -> &SlotRef,
        make: impl Fn(SlotRef, &Stretch) -> T,
    ) -> Result<Page<T>, StoreError> {
        if self.workflows.is_empty() {
            return Ok(page);
        }
        let after = paging.from.map(SlotPlace::parse).transpose()?;
        // Rows beyond the end of the page have not been read yet.
        let end = page.next.as_deref().map(SlotPlace::parse).transpose()?;
        let compare = |a: &SlotPlace, b: &SlotPlace| paging.order.of(a.cmp(b));
        let is_within = |place: &SlotPlace| end.as_ref().is_none_or(|end| compare(place, end).is_le());
        let walk = Walk::new(self, filter, paging.order, after.as_ref());
        let mut found: Vec<(SlotPlace, T)> = walk
            .take_while(|(place, _)| is_within(place))
            .take(paging.size().saturating_add(1))
            .map(|(place, stretch)| {
                let slot = SlotRef::at(place.workflow.clone(), moment(place.at.0));
                (place, make(slot, &stretch))
            })
            .collect();
        found.extend(page.rows.into_iter().map(|row| {
            let id = name(&row);
            (SlotPlace::new(id.workflow.clone(), &id.key), row)
        }));
        found.sort_by(|a, b| compare(&a.0, &b.0));
        let is_full = found.len() > paging.size();
        found.truncate(paging.size());
        let next = if is_full { found.last().map(|(place, _)| place.cursor()) } else { page.next };
        Ok(Page { rows: found.into_iter().map(|(_, row)| row).collect(), next })
    }

    fn filtered<'a>(
        &'a self,
        workflow: Option<&'a WorkflowId>,
    ) -> impl Iterator<Item = (&'a WorkflowId, &'a (Backlog, CronSchedule))> {
        self.workflows.iter().filter(move |(id, _)| workflow.is_none_or(|workflow| workflow == *id))
    }
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(if millis < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

fn bounds(filter: &SlotFilter) -> Range {
    filter.range.unwrap_or(Range::new(Timestamp::MIN, Timestamp::MAX))
}

/// Whether a filter selects the times of a stretch; its workflow and its range are checked elsewhere.
fn passes(filter: &SlotFilter, stretch: &Stretch) -> bool {
    (filter.states.is_empty() || filter.states.contains(&stretch.state()))
        && filter.backfill.as_ref().is_none_or(|backfill| stretch.backfill.as_ref() == Some(backfill))
        && !filter.collecting
        && !filter.without_backlogs
}

/// An iterator over the times of backlogs, in the order of a list.
struct Walk<'a> {
    filter: &'a SlotFilter,
    order: Order,
    /// The next time of each workflow.
    heads: Vec<Head<'a>>,
}

struct Head<'a> {
    backlog: &'a Backlog,
    schedule: &'a CronSchedule,
    place: SlotPlace,
    stretch: Stretch,
}

impl<'a> Walk<'a> {
    fn new(all: &'a Backlogs, filter: &'a SlotFilter, order: Order, after: Option<&SlotPlace>) -> Self {
        let mut walk = Walk { filter, order, heads: Vec::new() };
        for (id, (backlog, schedule)) in all.filtered(filter.workflow.as_ref()) {
            let mut rest = bounds(filter);
            if let Some(after) = after {
                let at = moment(after.at.0);
                // Of the same time, only names that come later are left.
                let has_passed = order.of(id.cmp(&after.workflow)).is_le();
                match order {
                    Order::Newest => rest.end = rest.end.min(if has_passed { at } else { at + TICK }),
                    Order::Oldest => rest.start = rest.start.max(if has_passed { at + TICK } else { at }),
                }
            }
            walk.heads.extend(walk.head(id, backlog, schedule, rest));
        }
        walk
    }

    /// The first time of a workflow in the rest of a range.
    fn head(&self, id: &WorkflowId, backlog: &'a Backlog, schedule: &'a CronSchedule, rest: Range) -> Option<Head<'a>> {
        let mut within = backlog.within(rest).filter(|stretch| passes(self.filter, stretch));
        let first = |stretch: Stretch| {
            let Range { start, end } = stretch.range;
            let time = match self.order {
                Order::Newest => schedule.previous_before(end).filter(|time| *time >= start),
                Order::Oldest => schedule.times(start, end).next(),
            };
            let place = SlotPlace::new(id.clone(), &SlotKey::Time(time?));
            Some(Head { backlog, schedule, place, stretch })
        };
        match self.order {
            Order::Newest => within.rev().find_map(first),
            Order::Oldest => within.find_map(first),
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = (SlotPlace, Stretch);

    fn next(&mut self) -> Option<Self::Item> {
        let order = self.order;
        let by_place = |(_, a): &(usize, &Head<'_>), (_, b): &(usize, &Head<'_>)| order.of(a.place.cmp(&b.place));
        let (index, _) = self.heads.iter().enumerate().min_by(by_place)?;
        let head = self.heads.swap_remove(index);
        let Reverse(at) = head.place.at;
        let mut rest = bounds(self.filter);
        match order {
            Order::Newest => rest.end = moment(at),
            Order::Oldest => rest.start = moment(at) + TICK,
        }
        let next = self.head(&head.place.workflow, head.backlog, head.schedule, rest);
        self.heads.extend(next);
        Some((head.place, head.stretch))
    }
}
