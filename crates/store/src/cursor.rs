//! Cursors: the starts of pages, as text. Callers treat them as opaque; a store checks what it reads back.

use std::borrow::Cow;
use std::cmp::Reverse;

use jiff::Timestamp;
use kelos_model::ranges::Range;
use kelos_model::{SlotKey, WorkflowId};

use crate::contract::StoreError;
use crate::queries::{Cursor, Order, PageRequest};

/// A slot's place in the list of all slots: newest time first, then by the name of the workflow, then by the rest of
/// the key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotPlace {
    /// The slot's time, in milliseconds.
    pub at: Reverse<i64>,
    /// The name of its workflow.
    pub workflow: WorkflowId,
    /// [`beyond_time`] of its key.
    pub key: String,
}

impl SlotPlace {
    /// The place of a key of a workflow.
    pub fn new(workflow: WorkflowId, key: &SlotKey) -> Self {
        let at = Reverse(order_time(key));
        Self { at, workflow, key: beyond_time(key).into_owned() }
    }

    /// The cursor of a page that begins after it.
    pub fn cursor(&self) -> Cursor {
        let workflow = self.workflow.as_str();
        format!("{}.{}.{workflow}{}", self.at.0, workflow.len(), self.key)
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// If it was not made by [`SlotPlace::cursor`].
    pub fn parse(cursor: &str) -> Result<Self, StoreError> {
        Self::read(cursor).ok_or_else(|| StoreError::Cursor { cursor: cursor.to_owned() })
    }

    fn read(cursor: &str) -> Option<Self> {
        let mut parts = cursor.splitn(3, '.');
        let at = Reverse(parts.next()?.parse().ok()?);
        let length = parts.next()?.parse().ok()?;
        let (workflow, key) = parts.next()?.split_at_checked(length)?;
        Some(Self { at, workflow: WorkflowId::new(workflow).ok()?, key: key.to_owned() })
    }
}

// The numbers of the kinds of keys in columns and digests. Never change a number: existing databases contain it.

/// A time of a schedule.
pub const TIME: i64 = 0;
/// A job id.
pub const JOB: i64 = 1;
/// The moment at which a slot was opened.
pub const MOMENT: i64 = 2;
/// A name that somebody gave to a run.
pub const NAMED: i64 = 3;
/// A step of a run of a flow.
pub const STEP: i64 = 4;

/// The result of [`beyond_time`] for a moment, so that the slot of a moment and that of a time have different places.
pub const OF_MOMENT: &str = "_";

/// The number of a key's kind.
pub fn kind(key: &SlotKey) -> i64 {
    match key {
        SlotKey::Time(_) => TIME,
        SlotKey::Job(_) => JOB,
        SlotKey::Moment(_) => MOMENT,
        SlotKey::Named(_) => NAMED,
        SlotKey::Step(_) => STEP,
    }
}

/// The time of a key in milliseconds, where it has one.
pub fn time(key: &SlotKey) -> Option<i64> {
    key.time().map(Timestamp::as_millisecond)
}

/// The time by which a key is listed, in milliseconds. A key without one is listed under 1970: SQLite allows no null in a primary
/// key of a table without rowids.
pub fn order_time(key: &SlotKey) -> i64 {
    time(key).unwrap_or(0)
}

/// Whether a key is listed within a range, compared in milliseconds.
pub fn is_listed_in(range: &Range, key: &SlotKey) -> bool {
    (range.start.as_millisecond()..range.end.as_millisecond()).contains(&order_time(key))
}

/// The part of a key besides its kind and its time: the whole id of a job, the name of a run, or the text of a step. A key is stored and compared as two
/// numbers and a mostly empty text.
pub fn beyond_time(key: &SlotKey) -> Cow<'_, str> {
    match key {
        SlotKey::Time(_) => "".into(),
        SlotKey::Job(id) => (&**id).into(),
        SlotKey::Moment(_) => OF_MOMENT.into(),
        SlotKey::Named(_) | SlotKey::Step(_) => key.to_string().into(),
    }
}

/// The key with a kind, a time and the text of [`beyond_time`]; none if there is no such key.
pub fn whole_key(kind: i64, at: Option<Timestamp>, beyond: &str) -> Option<SlotKey> {
    match (kind, at, beyond) {
        (TIME, Some(at), "") => Some(SlotKey::Time(at)),
        (JOB, _, id) if !id.is_empty() => Some(SlotKey::Job(id.into())),
        (MOMENT, Some(at), OF_MOMENT) => Some(SlotKey::Moment(at)),
        (NAMED, _, text) => SlotKey::parse(text).ok().filter(|key| matches!(key, SlotKey::Named(_))),
        (STEP, _, text) => SlotKey::parse(text).ok().filter(|key| matches!(key, SlotKey::Step(_))),
        _ => None,
    }
}

/// A range of the numbers that order a list: positions of the log, or turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first of them.
    pub first: i64,
    /// The number after the last.
    pub end: i64,
}

impl Span {
    /// All numbers.
    pub const WHOLE: Span = Span { first: 0, end: i64::MAX };

    /// The numbers after a position, up to and including another one.
    pub fn between(after: u64, until: u64) -> Span {
        let number = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX).saturating_add(1);
        Span { first: number(after), end: number(until) }
    }

    /// The part of it that is left for a page.
    ///
    /// # Errors
    /// If the cursor of the page is no position.
    pub fn of(self, paging: &PageRequest<'_>) -> Result<Span, StoreError> {
        let Some(cursor) = paging.from else { return Ok(self) };
        let seq = cursor.parse::<u64>().ok().and_then(|seq| i64::try_from(seq).ok());
        let seq = seq.ok_or_else(|| StoreError::Cursor { cursor: cursor.to_owned() })?;
        Ok(match paging.order {
            Order::Newest => Span { end: self.end.min(seq), ..self },
            Order::Oldest => Span { first: self.first.max(seq.saturating_add(1)), ..self },
        })
    }

    /// The numbers that are in both.
    pub fn and(self, other: Span) -> Span {
        Span { first: self.first.max(other.first), end: self.end.min(other.end) }
    }

    /// Whether a position lies in it.
    #[must_use]
    pub fn contains(self, seq: u64) -> bool {
        i64::try_from(seq).is_ok_and(|seq| (self.first..self.end).contains(&seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_nonsense_is_named() {
        for (at, workflow, key) in [(0, "a", ""), (-5, "App.b", ""), (1_700_000_000_000, "7.é~-", "a.b.ü")] {
            let workflow = WorkflowId::new(workflow).unwrap();
            let place = SlotPlace { at: Reverse(at), workflow, key: key.to_owned() };
            assert_eq!(SlotPlace::parse(&place.cursor()).unwrap(), place);
        }
        for nonsense in
            ["", "1", "1.2", "x.1.a", "1.y.a", "1.0.", "1.2.a", "1.1.é", "1.-1.a", "99999999999999999999.1.a"]
        {
            let words = SlotPlace::parse(nonsense).unwrap_err().to_string();
            assert_eq!(words, format!("read on from \"{nonsense}\": expected the `next` of an earlier page"));
        }
    }

    #[test]
    fn a_page_goes_on_beyond_its_cursor_in_either_order() {
        let all = Span::between(3, 9);
        assert_eq!(all, Span { first: 4, end: 10 });
        let after = |paging: PageRequest<'_>| all.of(&paging).map_err(|error| error.to_string());
        assert_eq!(after(PageRequest::newest(1)), Ok(all));
        assert_eq!(after(PageRequest::newest(1).after(Some("7"))), Ok(Span { first: 4, end: 7 }));
        assert_eq!(after(PageRequest::oldest(1).after(Some("7"))), Ok(Span { first: 8, end: 10 }));
        for nonsense in ["-1", "18446744073709551615", "", "x"] {
            assert!(after(PageRequest::oldest(1).after(Some(nonsense))).is_err(), "{nonsense}");
        }
    }
}
