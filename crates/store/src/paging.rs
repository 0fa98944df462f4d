//! Paging, in either order.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// The start of a page: opaque to callers, who pass on [`Page::next`].
pub type Cursor = String;

/// A page of rows. If a filter selects few rows, a page may hold fewer rows than asked for, even
/// none, although the list continues. Only `next` shows whether it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The start of the next page; none at the end.
    pub next: Option<Cursor>,
}

/// The order of a list. Each is the reverse of the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
}

impl Order {
    /// Turns the order of two rows, given as in a list with the newest first, into that of this list.
    pub fn of(self, newest_first: Ordering) -> Ordering {
        match self {
            Order::Newest => newest_first,
            Order::Oldest => newest_first.reverse(),
        }
    }
}

/// The requested part of a list.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// The end that comes first.
    pub order: Order,
    /// The start of the page: [`Page::next`] of a page in the same order; none is the start of the list.
    pub from: Option<&'a str>,
    /// How many rows a page has at most; 0 counts as 1.
    pub limit: usize,
}

impl<'a> PageRequest<'a> {
    /// The first page of a list, newest first.
    #[must_use]
    pub const fn newest(limit: usize) -> Self {
        Self { order: Order::Newest, from: None, limit }
    }

    /// The first page of a list, oldest first.
    #[must_use]
    pub const fn oldest(limit: usize) -> Self {
        Self { order: Order::Oldest, from: None, limit }
    }

    /// The page after the one that returned this cursor.
    #[must_use]
    pub const fn after(self, cursor: Option<&'a str>) -> Self {
        Self { from: cursor, ..self }
    }

    /// How many rows a page has at the most.
    pub fn size(&self) -> usize {
        self.limit.max(1)
    }
}
