//! Reading all pages of a list.

use std::fmt::Debug;

use crate::{About, EventFilter, Page, PageRequest, Queries, RunFilter, SlotFilter, SlotRow, StoreError, TurnRecord};
use kelos_model::{EventRecord, Run, SlotRef};

fn walk<T: Debug>(limit: usize, read: impl Fn(Option<&str>) -> Result<Page<T>, StoreError>) -> Vec<T> {
    let mut rows = Vec::new();
    let mut from = None;
    loop {
        let page = read(from.as_deref()).expect("a page is read");
        assert!(page.rows.len() <= limit, "a page of {} rows, asked for {limit}", page.rows.len());
        rows.extend(page.rows);
        if page.next.is_none() {
            return rows;
        }
        assert_ne!(page.next, from, "a page leads to itself");
        from = page.next;
    }
}

/// The whole list, newest first, after a check that the other order is its reverse.
fn both<T: Debug + PartialEq>(limit: usize, read: impl Fn(PageRequest<'_>) -> Result<Page<T>, StoreError>) -> Vec<T> {
    let newest_first = walk(limit, |from| read(PageRequest::newest(limit).after(from)));
    let mut oldest_first = walk(limit, |from| read(PageRequest::oldest(limit).after(from)));
    oldest_first.reverse();
    same(&oldest_first, &newest_first, "oldest first, turned round");
    newest_first
}

/// All slots of a filter, newest first.
pub(super) fn slots(reader: &dyn Queries, filter: &SlotFilter, limit: usize) -> Vec<SlotRow> {
    both(limit, |paging| reader.slots(filter, paging))
}

/// All steps of a run, ascending.
pub(super) fn steps(reader: &dyn Queries, run: &SlotRef, limit: usize) -> Vec<SlotRow> {
    both(limit, |paging| reader.steps(run, paging))
}

/// All runs of a filter, newest first.
pub(super) fn runs(reader: &dyn Queries, filter: &RunFilter, limit: usize) -> Vec<Run> {
    both(limit, |paging| reader.runs(filter, paging))
}

/// All events about something, oldest first.
pub(super) fn events(reader: &dyn Queries, about: About, limit: usize) -> Vec<EventRecord> {
    let filter = EventFilter::about(about);
    let mut newest_first = both(limit, |paging| reader.events(&filter, paging));
    newest_first.reverse();
    newest_first
}

/// The records of all turns, oldest first.
pub(super) fn turns(reader: &dyn Queries, limit: usize) -> Vec<TurnRecord> {
    let mut newest_first = both(limit, |paging| reader.turns(paging));
    newest_first.reverse();
    newest_first
}

/// Compares two lists and shows only the first difference.
///
/// # Panics
/// Where they differ.
pub(super) fn same<T: PartialEq + Debug>(found: &[T], expected: &[T], what: impl std::fmt::Display) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{what}: row {index}");
    }
    assert_eq!(found.len(), expected.len(), "{what}: the number of rows");
}
