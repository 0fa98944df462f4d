//! Values that many types share: times, codes, pages and lists.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use kelos_model::SlotState;
use kelos_model::time::{TypedTimeError, Zone, format_full, format_short, has_offset, parse_instant, parse_written};
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

/// A time of a request, as it is written: without an offset it is one of a time zone that is known later, such as that of the workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimeText(String);

impl TimeText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names no offset, so that it depends on the zone.
    #[must_use]
    pub fn is_local(&self) -> bool {
        !has_offset(&self.0)
    }

    /// The moment, in a zone; a date is the first instant of its day.
    ///
    /// # Errors
    /// When the clocks of the zone pass over it, or show it twice.
    pub fn in_zone(&self, zone: &Zone) -> Result<Timestamp, TypedTimeError> {
        parse_written(&self.0, zone)
    }
}

impl fmt::Display for TimeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<Timestamp> for TimeText {
    fn from(at: Timestamp) -> TimeText {
        TimeText(format_full(at))
    }
}

impl FromStr for TimeText {
    type Err = TypedTimeError;

    fn from_str(text: &str) -> Result<TimeText, TypedTimeError> {
        // UTC has every time of day once, so that only the form can be wrong.
        parse_written(text, &Zone::utc()).map(|_| TimeText(text.to_owned()))
    }
}

impl Serialize for TimeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TimeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
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
