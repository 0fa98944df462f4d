//! Values that many types share: times, codes, pages and lists.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use kelos_model::SlotState;
use kelos_model::time::{format_full, format_short, parse_instant};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in UTC, to the millisecond: `2015-09-13T13:40:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime, examples("2015-09-13T13:40:00.000Z")))]
pub struct Instant(pub Timestamp);

impl Instant {
    /// The short form, to the second, without seconds that are zero: `2015-09-13T13:40Z`.
    #[must_use]
    pub fn short(self) -> String {
        format_short(Timestamp::from_second(self.0.as_second()).unwrap_or(self.0))
    }

    /// The short form with milliseconds, if there are any.
    #[must_use]
    pub fn exact(self) -> String {
        format_short(self.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_full(self.0))
    }
}

impl From<Timestamp> for Instant {
    fn from(at: Timestamp) -> Instant {
        Instant(at)
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_full(self.0))
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_instant(&text).map(Instant).map_err(serde::de::Error::custom)
    }
}

/// A stable word of a list that may grow: a state, a kind, a verdict. A client that does not know it can still show it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String))]
pub struct Code(Cow<'static, str>);

impl Code {
    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&'static str> for Code {
    fn from(word: &'static str) -> Code {
        Code(Cow::Borrowed(word))
    }
}

impl From<String> for Code {
    fn from(word: String) -> Code {
        Code(Cow::Owned(word))
    }
}

impl PartialEq<str> for Code {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl std::borrow::Borrow<str> for Code {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PageDto<T> {
    /// The rows. A page may hold fewer than requested although the list continues.
    pub items: Vec<T>,
    /// The `cursor` of the next page; none at the end.
    pub next: Option<String>,
}

/// A whole list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListDto<T> {
    /// The rows.
    pub items: Vec<T>,
}

impl<T> ListDto<T> {
    /// A list of rows, each converted.
    pub fn of<M>(rows: impl IntoIterator<Item = M>) -> ListDto<T>
    where
        T: From<M>,
    {
        ListDto { items: rows.into_iter().map(T::from).collect() }
    }
}

/// The number of slots in each state; states without slots are omitted.
pub type Counts = BTreeMap<Code, u64>;

/// The counts of states that have slots.
#[must_use]
pub fn counts(counts: BTreeMap<SlotState, u64>) -> Counts {
    counts.into_iter().filter(|(_, slots)| *slots > 0).map(|(state, slots)| (state.as_str().into(), slots)).collect()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(crate) fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Distinguishes null from a missing field.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
