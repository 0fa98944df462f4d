//! A page under way: what leads to its rows, and how far that is followed.

use std::cmp::Reverse;

use kelos_store::adapter::Span;
use kelos_store::{Order, Page, PageRequest, SlotFilter};

use super::blocks::Bounds;
use super::fault::Fault;
use super::rows::{Names, column};

/// The most rows that a page may read and pass over.
pub(super) const PASSED_OVER: usize = 4_000;

/// An index, and the condition under which it holds what is sought, in listing order.
#[derive(Debug)]
pub(super) struct Road {
    pub(super) index: &'static str,
    /// SQL that ends in "AND ", with numbers and `?1` for text.
    pub(super) prefix: String,
    pub(super) text: Option<String>,
    /// Whether those that succeeded are in it, some of which may be in blocks.
    pub(super) has_blocks: bool,
}

impl Road {
    pub(super) fn new(index: &'static str, prefix: impl Into<String>) -> Self {
        Self { index, prefix: prefix.into(), text: None, has_blocks: false }
    }

    /// A road on which the slots in blocks are beside it.
    pub(super) fn with_blocks(index: &'static str, prefix: impl Into<String>) -> Self {
        Self { has_blocks: true, ..Road::new(index, prefix) }
    }
}

pub(super) fn bounds(filter: &SlotFilter) -> Bounds {
    filter.range.map_or((i64::MIN, i64::MAX), |range| (range.start.as_millisecond(), range.end.as_millisecond()))
}

/// A page under way: what was found, and where the search had to stop. Places are compared as they follow each other where the
/// newest comes first.
pub(super) struct PageBuilder<K, T> {
    pub(super) rows: Vec<(K, T)>,
    order: Order,
    /// The position up to which rows were read.
    stopped: Option<K>,
    passed_over: usize,
    /// One row more than fits the page shows that there is another page.
    enough: usize,
}

impl<K: Ord + Clone, T> PageBuilder<K, T> {
    pub(super) fn new(paging: &PageRequest<'_>) -> Self {
        let enough = paging.size().saturating_add(1);
        Self { rows: Vec::new(), order: paging.order, stopped: None, passed_over: 0, enough }
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.enough || self.stopped.is_some()
    }

    /// The number of rows that are still missing.
    pub(super) fn room(&self) -> usize {
        self.enough.saturating_sub(self.rows.len())
    }

    /// The place at which it stopped; none if it did not.
    pub(super) fn stopped(&self) -> Option<&K> {
        self.stopped.as_ref()
    }

    /// Lets it stop somewhere else, or go on.
    pub(super) fn stop(&mut self, place: Option<K>) {
        self.stopped = place;
    }

    pub(super) fn pass_over(&mut self, place: K) {
        self.pass_over_many(1, place);
    }

    /// Passes over rows of which none comes after a place.
    pub(super) fn pass_over_many(&mut self, many: usize, place: K) {
        self.passed_over += many;
        if self.passed_over >= PASSED_OVER {
            self.stopped = Some(place);
        }
    }

    /// The page that several roads lead to.
    pub(super) fn page(roads: Vec<Self>, paging: &PageRequest<'_>, cursor: impl Fn(&K) -> String) -> Page<T> {
        let compare = |a: &K, b: &K| paging.order.of(a.cmp(b));
        let stopped = roads.iter().filter_map(|found| found.stopped.clone()).min_by(compare);
        let mut rows = roads.into_iter().flat_map(|found| found.rows).collect::<Vec<_>>();
        rows.sort_by(|a, b| compare(&a.0, &b.0));
        if let Some(stopped) = &stopped {
            rows.retain(|(place, _)| compare(place, stopped).is_le());
        }
        let full = rows.len() > paging.size();
        rows.truncate(paging.size());
        let next = if full { rows.last().map(|(place, _)| cursor(place)) } else { stopped.as_ref().map(cursor) };
        Page { rows: rows.into_iter().map(|(_, row)| row).collect(), next }
    }
}

impl<T> PageBuilder<Reverse<u64>, T> {
    /// Follows a chain from its newest link backwards; each link is older than the one that names it. For the oldest
    /// rows it is followed to its end, or to where its history was removed.
    pub(super) fn follow(
        &mut self,
        span: Span,
        head: u64,
        mut link: impl FnMut(u64) -> Result<Option<T>, Fault>,
        previous: impl Fn(&T) -> u64,
        passes: impl Fn(&T) -> bool,
    ) -> Result<(), Fault> {
        let mut seq = head;
        while seq > 0 && column(seq) >= span.first && !(self.order == Order::Newest && self.is_full()) {
            let Some(found) = link(seq)? else { break };
            let before = previous(&found);
            if before >= seq {
                let what = format!("number {seq} of the log names number {before} as the one before it");
                return Err(Fault::Damaged(what));
            }
            if span.contains(seq) && passes(&found) {
                self.rows.push((Reverse(seq), found));
            }
            seq = before;
        }
        Ok(())
    }
}

/// The number of a filter's workflow, if it has one; none if that workflow doesn't exist.
pub(super) fn known_workflow(names: &Names, name: Option<&kelos_model::WorkflowId>) -> Option<Option<i64>> {
    match name {
        None => Some(None),
        Some(name) => names.number(name).map(Some),
    }
}
