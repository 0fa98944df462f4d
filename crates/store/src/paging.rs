//! Lists by pages, in either order.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Where a page starts: opaque to callers, who hand back what [`Page::next`] gave them.
pub type Cursor = String;

/// A page of rows. A filter may let few rows through: a page may then hold fewer rows than asked for, even
/// none, although the list goes on. Only `next` tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page starts; none at the end.
    pub next: Option<Cursor>,
}

/// The end of a list that comes first. Each order is the other one turned round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
}

impl Order {
    /// How two rows follow each other that compare so where the newest comes first.
    pub fn of(self, newest_first: Ordering) -> Ordering {
        match self {
            Order::Newest => newest_first,
            Order::Oldest => newest_first.reverse(),
        }
    }
}

/// The part of a list that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    /// The end that comes first.
    pub order: Order,
    /// Where to go on: [`Page::next`] of a page in the same order; none begins with the first page.
    pub from: Option<&'a str>,
    /// How many rows at the most; none counts as one.
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

    /// The page after the one that gave this cursor.
    #[must_use]
    pub const fn after(self, cursor: Option<&'a str>) -> Self {
        Self { from: cursor, ..self }
    }

    /// How many rows a page has at the most.
    pub fn size(&self) -> usize {
        self.limit.max(1)
    }
}
