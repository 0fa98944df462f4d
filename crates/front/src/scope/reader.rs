//! A reader that answers as if nothing existed but what a caller may see.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::backfill::Backfill;
use kelos_model::history::RemovedHistory;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{EventRecord, Run, Slot, SlotRef, SlotState, WorkflowId};
use kelos_store::adapter::SlotPlace;
use kelos_store::{
    About, BackfillFilter, Columns, Digest, EventFilter, Page, PageRequest, PastDefinition, Queries, Recount, Register,
    RegisterKeys, RunFilter, SlotFilter, SlotRow, Space, StoreError, Tally, TurnColumns, TurnContent, TurnRecord,
};

use super::View;

/// Rows that are read at a time to find the few that are seen.
const AT_ONCE: usize = 500;
/// Most rows that one page reads through. A page that ends there may have fewer rows than asked for, and the list goes on.
const MOST_READ: usize = 50_000;

/// A reader that answers as if nothing existed but what a view has.
///
/// Positions in the log are those of the whole log: from the gaps one can tell that others do something, but not what.
pub(super) struct ScopedQueries {
    inner: Arc<dyn Queries>,
    view: Arc<View>,
}

impl ScopedQueries {
    /// A reader of what a view has.
    #[must_use]
    pub(super) fn new(inner: Arc<dyn Queries>, view: Arc<View>) -> ScopedQueries {
        ScopedQueries { inner, view }
    }

    fn has(&self, workflow: &WorkflowId) -> bool {
        self.view.has(workflow)
    }

    /// The workflows that are seen, if they are few and the filter has their lists apart.
    fn few(&self, filter: &SlotFilter) -> Option<Vec<&WorkflowId>> {
        // The slots of a backfill are those of one workflow.
        if filter.backfill.is_some() {
            return None;
        }
        let few: Vec<_> = self.view.workflows().take(MOST_MERGED + 1).collect();
        (few.len() <= MOST_MERGED).then_some(few)
    }

    fn has_event(&self, record: &EventRecord) -> Result<bool, StoreError> {
        self.view.has_event(&record.event, |backfill| Ok(self.inner.backfill(backfill)?.map(|found| found.workflow)))
    }
}

/// A page of the rows that are seen, out of a list that has others as well. The page ends as if the others did not exist.
fn page_of_seen<T>(
    paging: PageRequest<'_>,
    read: impl Fn(PageRequest<'_>) -> Result<Page<T>, StoreError>,
    is_seen: impl Fn(&T) -> Result<bool, StoreError>,
) -> Result<Page<T>, StoreError> {
    let size = paging.size();
    let mut rows: Vec<T> = Vec::new();
    let mut from = paging.from.map(str::to_owned);
    let mut was_read = 0;
    // The start of the next page, once this one is full: it counts only if something that is seen follows.
    let mut full_at = None;
    loop {
        let missing = size.saturating_sub(rows.len());
        let request = PageRequest { from: from.as_deref(), limit: missing.max(AT_ONCE), ..paging };
        let mut page = read(request)?;
        let seen = page.rows.iter().map(&is_seen).collect::<Result<Vec<_>, _>>()?;
        if full_at.is_some() && seen.contains(&true) {
            return Ok(Page { rows, next: full_at });
        }
        if full_at.is_none() && seen.iter().filter(|seen| **seen).count() > missing {
            // It is read once more up to the row that fills it, because only the store can say where the next page starts.
            let last = seen.iter().enumerate().filter(|(_, seen)| **seen).nth(missing - 1).map_or(0, |(at, _)| at);
            page = read(PageRequest { limit: last + 1, ..request })?;
            let seen = page.rows.iter().map(&is_seen).collect::<Result<Vec<_>, _>>()?;
            rows.extend(page.rows.into_iter().zip(seen).filter_map(|(row, seen)| seen.then_some(row)));
            return Ok(Page { rows, next: page.next });
        }
        was_read += page.rows.len();
        if full_at.is_none() {
            rows.extend(page.rows.into_iter().zip(seen).filter_map(|(row, seen)| seen.then_some(row)));
        }
        if page.next.is_none() {
            return Ok(Page { rows, next: None });
        }
        if was_read >= MOST_READ {
            return Ok(Page { rows, next: full_at.or(page.next) });
        }
        if full_at.is_none() && rows.len() >= size {
            full_at.clone_from(&page.next);
        }
        from = page.next;
    }
}

/// Most workflows whose lists are merged. A view with more of them reads the list of all, and passes over what it has not.
const MOST_MERGED: usize = 200;

/// A page of slots out of the lists of single workflows, which are in one order and have cursors of one form.
fn merged_page<T>(
    workflows: &[&WorkflowId],
    paging: PageRequest<'_>,
    read: impl Fn(&WorkflowId, PageRequest<'_>) -> Result<Page<T>, StoreError>,
    slot: impl Fn(&T) -> &SlotRef,
) -> Result<Page<T>, StoreError> {
    let size = paging.size();
    let (mut rows, mut goes_on) = (Vec::new(), false);
    for workflow in workflows {
        let page = read(workflow, paging)?;
        goes_on |= page.next.is_some();
        let placed = |row: T| {
            let SlotRef { workflow, key } = slot(&row);
            (SlotPlace::new(workflow.clone(), key), row)
        };
        rows.extend(page.rows.into_iter().map(placed));
    }
    rows.sort_by(|(one, _), (other, _)| paging.order.of(one.cmp(other)));
    goes_on |= rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| goes_on).map(|(place, _)| place.cursor());
    Ok(Page { rows: rows.into_iter().map(|(_, row)| row).collect(), next })
}

fn nothing<T>() -> Page<T> {
    Page { rows: Vec::new(), next: None }
}

impl Queries for ScopedQueries {
    fn workflows(&self, only: Option<&WorkflowId>) -> Result<Vec<WorkflowRow>, StoreError> {
        if only.is_some_and(|id| !self.has(id)) {
            return Ok(Vec::new());
        }
        let rows = self.inner.workflows(only)?.into_iter();
        // A definition that was changed just now may be of another project than the view knows.
        Ok(rows.filter(|row| self.has(&row.id) && self.view.has_project(&row.definition.project)).collect())
    }

    fn definitions(&self, id: &WorkflowId, version: Option<u32>) -> Result<Vec<PastDefinition>, StoreError> {
        if self.has(id) { self.inner.definitions(id, version) } else { Ok(Vec::new()) }
    }

    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError> {
        if self.has(&id.workflow) {
            return self.inner.slot(id);
        }
        if !self.view.borders_on(&id.workflow) || id.key.step().is_some() {
            return Ok(None);
        }
        Ok(self.inner.slot(id)?.map(|slot| Slot::new(slot.state, slot.since)))
    }

    fn slots(&self, filter: &SlotFilter, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        match &filter.workflow {
            Some(workflow) if !self.has(workflow) => Ok(nothing()),
            Some(_) => self.inner.slots(filter, paging),
            None => match self.few(filter) {
                Some(few) => {
                    let read = |workflow: &WorkflowId, paging: PageRequest<'_>| {
                        self.inner.slots(&SlotFilter { workflow: Some(workflow.clone()), ..filter.clone() }, paging)
                    };
                    merged_page(&few, paging, read, |row| &row.id)
                }
                None => page_of_seen(
                    paging,
                    |paging| self.inner.slots(filter, paging),
                    |row| Ok(self.has(&row.id.workflow)),
                ),
            },
        }
    }

    fn slot_states(
        &self,
        filter: &SlotFilter,
        paging: PageRequest<'_>,
    ) -> Result<Page<(SlotRef, SlotState)>, StoreError> {
        match &filter.workflow {
            Some(workflow) if !self.has(workflow) => Ok(nothing()),
            Some(_) => self.inner.slot_states(filter, paging),
            None => match self.few(filter) {
                Some(few) => {
                    let read = |workflow: &WorkflowId, paging: PageRequest<'_>| {
                        let of_one = SlotFilter { workflow: Some(workflow.clone()), ..filter.clone() };
                        self.inner.slot_states(&of_one, paging)
                    };
                    merged_page(&few, paging, read, |(slot, _)| slot)
                }
                None => {
                    let read = |paging: PageRequest<'_>| self.inner.slot_states(filter, paging);
                    page_of_seen(paging, read, |(slot, _)| Ok(self.has(&slot.workflow)))
                }
            },
        }
    }

    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError> {
        match &filter.workflow {
            Some(workflow) if !self.has(workflow) => Ok(BTreeMap::new()),
            Some(_) => self.inner.slot_counts(filter),
            None => {
                let mut counts = BTreeMap::new();
                for workflow in self.view.workflows() {
                    let own = SlotFilter { workflow: Some(workflow.clone()), ..filter.clone() };
                    for (state, count) in self.inner.slot_counts(&own)? {
                        *counts.entry(state).or_default() += count;
                    }
                }
                Ok(counts)
            }
        }
    }

    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        if workflow.is_some_and(|id| !self.has(id)) {
            return Ok(BTreeMap::new());
        }
        let mut tallies = self.inner.slot_tallies(columns, workflow)?;
        tallies.retain(|id, _| self.has(id));
        Ok(tallies)
    }

    fn steps(&self, run: &SlotRef, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        if self.has(&run.workflow) { self.inner.steps(run, paging) } else { Ok(nothing()) }
    }

    fn runs(&self, filter: &RunFilter, paging: PageRequest<'_>) -> Result<Page<Run>, StoreError> {
        let named = filter.workflow.as_ref().or(filter.slot.as_ref().map(|slot| &slot.workflow));
        match named {
            Some(workflow) if !self.has(workflow) => Ok(nothing()),
            Some(_) => self.inner.runs(filter, paging),
            None => page_of_seen(
                paging,
                |paging| self.inner.runs(filter, paging),
                |run| Ok(self.has(&run.id.slot.workflow)),
            ),
        }
    }

    fn events(&self, filter: &EventFilter, paging: PageRequest<'_>) -> Result<Page<EventRecord>, StoreError> {
        let named = match &filter.about {
            About::Workflow(id) | About::WorkflowItself(id) => Some(id),
            About::Slot(slot) => Some(&slot.workflow),
            About::Access => return Ok(nothing()),
            About::Anything | About::Facts => None,
        };
        match named {
            Some(workflow) if !self.has(workflow) => Ok(nothing()),
            Some(_) => self.inner.events(filter, paging),
            None => page_of_seen(paging, |paging| self.inner.events(filter, paging), |record| self.has_event(record)),
        }
    }

    fn turns(&self, _: PageRequest<'_>) -> Result<Page<TurnRecord>, StoreError> {
        Ok(nothing())
    }

    fn turn_body(&self, turn: &TurnRecord, _: &mut dyn TurnColumns) -> Result<TurnContent, StoreError> {
        // A turn has the events of all projects, and no part of it gives its digest.
        let missing = (turn.events > 0).then_some(turn.first_event);
        Ok(TurnContent { missing, ..TurnContent::default() })
    }

    fn recount(&self, turn: &TurnRecord, before: &Digest) -> Result<Recount, StoreError> {
        self.inner.recount(turn, before)
    }

    fn removed_history(&self) -> Result<RemovedHistory, StoreError> {
        self.inner.removed_history()
    }

    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError> {
        Ok(Arc::new(ScopedQueries::new(self.inner.frozen()?, self.view.clone())))
    }

    fn backfills(&self, filter: &BackfillFilter) -> Result<Vec<Backfill>, StoreError> {
        let mut backfills = self.inner.backfills(filter)?;
        backfills.retain(|backfill| self.has(&backfill.workflow));
        Ok(backfills)
    }

    fn registers(&self, bucket: Option<&str>, keys: RegisterKeys<'_>) -> Result<Vec<Register>, StoreError> {
        if bucket.is_some_and(|bucket| !self.view.has_bucket(bucket)) {
            return Ok(Vec::new());
        }
        let mut registers = self.inner.registers(bucket, keys)?;
        registers.retain(|register| self.view.has_bucket(&register.bucket));
        Ok(registers)
    }

    fn live_slots(&self) -> Result<Vec<SlotRow>, StoreError> {
        let rows = self.inner.live_slots()?.into_iter();
        Ok(rows.filter(|row| self.has(&row.id.workflow)).collect())
    }

    /// Of all projects together, so it is nobody's who sees some of them.
    fn space(&self) -> Result<Option<Space>, StoreError> {
        Ok(None)
    }

    fn damage(&self, _: usize) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of numbers, of which a page's cursor is the last that was read; the even ones are seen.
    fn read(all: u32) -> impl Fn(PageRequest<'_>) -> Result<Page<u32>, StoreError> {
        move |paging| {
            let from = paging.from.map_or(0, |from| from.parse().unwrap());
            let rows: Vec<u32> = (from + 1..=all).take(paging.size()).collect();
            let last = rows.last().copied().unwrap_or(all);
            Ok(Page { rows, next: (last < all).then(|| last.to_string()) })
        }
    }

    fn page(all: u32, from: Option<&str>, limit: usize, seen: impl Fn(&u32) -> bool) -> (Vec<u32>, Option<String>) {
        let paging = PageRequest::oldest(limit).after(from);
        let page = page_of_seen(paging, read(all), |row| Ok(seen(row))).unwrap();
        (page.rows, page.next)
    }

    #[test]
    fn pages_are_full_and_end_as_if_the_other_rows_did_not_exist() {
        let even = |row: &u32| row.is_multiple_of(2);
        assert_eq!(page(10, None, 3, even), (vec![2, 4, 6], Some("6".to_owned())));
        assert_eq!(page(10, Some("6"), 3, even), (vec![8, 10], None));
        // Only rows that are not seen follow: there is no other page.
        assert_eq!(page(7, None, 3, even), (vec![2, 4, 6], None));
        assert_eq!(page(6_000, None, 2, |row| [1, 5_999].contains(row)), (vec![1, 5_999], None));
        let (rows, next) = page(6_000, None, 1, |row| [1, 5_999].contains(row));
        assert_eq!((rows, page(6_000, next.as_deref(), 1, |row| [1, 5_999].contains(row)).0), (vec![1], vec![5_999]));
    }

    #[test]
    fn every_row_that_is_seen_comes_once_whatever_the_size_of_pages() {
        for limit in [1, 2, 7, 499, 500, 501] {
            let (mut all, mut from) = (Vec::new(), None);
            loop {
                let (rows, next) = page(2_000, from.as_deref(), limit, |row| row.is_multiple_of(3));
                assert!(rows.len() <= limit);
                all.extend(rows);
                from = next;
                if from.is_none() {
                    break;
                }
            }
            assert_eq!(all, (1..=2_000_u32).filter(|row| row.is_multiple_of(3)).collect::<Vec<_>>(), "{limit}");
        }
    }

    #[test]
    fn a_page_does_not_read_for_ever() {
        let (rows, next) = page(200_000, None, 10, |row| *row == 150_000);
        assert!(rows.is_empty() && next.is_some());
    }
}
