//! Instants as people type them: `yesterday`, `-2d`, `06:00`, or written out.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset};
use jiff::{SignedDuration, Timestamp};

use super::duration::parse_duration;
use super::text::{TimeTextError, parse_instant, place};
use super::zone::Zone;
use crate::similar::closest;

/// The forms that [`parse_typed`] reads, for messages and help.
pub const TYPED_FORMS: &str = "now, -90m, -2d, today, yesterday, 06:00, \"yesterday 06:00\", 2013-11-26, 2013-11-26T17:23Z \
                               or 2013-11-26T17:23+02:00";

/// An instant as it was typed, and how exactly it was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedTime {
    /// Written out, with `Z` or an offset from UTC.
    Absolute(Timestamp),
    /// The present moment, or one a length of time before or after it.
    Relative(Timestamp),
    /// Read in the zone: a time of day, or a date with a time and without an offset.
    Local(Timestamp),
    /// A whole day of the zone.
    Day {
        /// Its first instant.
        start: Timestamp,
        /// The first instant of the day after it.
        end: Timestamp,
    },
}

impl TypedTime {
    /// The instant; of a day, the first.
    #[must_use]
    pub fn at(self) -> Timestamp {
        match self {
            TypedTime::Absolute(at) | TypedTime::Relative(at) | TypedTime::Local(at) => at,
            TypedTime::Day { start, .. } => start,
        }
    }

    /// Whether it depends on the zone.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, TypedTime::Local(_) | TypedTime::Day { .. })
    }
}

/// A text that names no instant, or more than one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypedTimeError {
    /// The text is no instant that is written out.
    #[error(transparent)]
    Text(TimeTextError),
    /// No place has such an offset from UTC.
    #[error("time {text:?} has no such offset: expected one such as \"Z\" or \"+02:00\" at its end")]
    Offset {
        /// The text as given.
        text: String,
    },
    /// The text can't be read as a time.
    #[error("time {text:?} {problem}: expected {TYPED_FORMS}{}", suggestion(.likely))]
    Form {
        /// The text as given.
        text: String,
        /// The problem; completes "the time ...".
        problem: String,
        /// The word that was probably meant.
        likely: Option<&'static str>,
    },
    /// The clocks of the zone are put forward over this time.
    #[error(
        "time {text:?} does not exist on {date} in {zone}, where the clocks are put forward over it: expected another one"
    )]
    Gap {
        /// The text as given.
        text: String,
        /// The day.
        date: Date,
        /// The zone.
        zone: Zone,
    },
    /// The clocks of the zone are put back over this time.
    #[error(
        "time {text:?} occurs twice on {date} in {zone}, where the clocks are put back over it: expected {first} or {second}"
    )]
    Fold {
        /// The text as given.
        text: String,
        /// The day.
        date: Date,
        /// The zone.
        zone: Zone,
        /// The first of the two, written out.
        first: String,
        /// The second of the two, written out.
        second: String,
    },
}

fn suggestion(likely: &Option<&'static str>) -> String {
    likely.map(|word| format!("; did you mean {word:?}?")).unwrap_or_default()
}

/// Reads an instant that is written out: everything that [`parse_instant`] reads, also with an offset from UTC. Without an offset it is
/// one of the zone; a date is its first instant.
///
/// # Errors
/// When the text has another form, or names no instant or two of them.
pub fn parse_written(text: &str, zone: &Zone) -> Result<Timestamp, TypedTimeError> {
    match parse_instant(text) {
        Ok(at) if has_offset(text) => Ok(at),
        Ok(at) => in_zone(text, at, zone).map(TypedTime::at),
        Err(TimeTextError::NotUtc { text }) => {
            elsewhere(&text).map(TypedTime::at).ok_or(TypedTimeError::Offset { text })
        }
        Err(error) => Err(TypedTimeError::Text(error)),
    }
}

/// Whether an instant that is written out depends on no zone.
#[must_use]
pub fn has_offset(text: &str) -> bool {
    let clock = text.split_once(['T', 't']).map_or("", |(_, clock)| clock);
    clock.contains(['Z', 'z', '+', '-'])
}

/// Reads an instant as people type it: everything that [`parse_instant`] reads, and
///
/// - the same with an offset from UTC: `2013-11-26T17:23+02:00`. Without one it is of the zone, and a date is a whole day of it;
/// - `now`, and a length of time before or after it: `-2d`, `-90m`, `+1h`, `now-2d`;
/// - `today` and `yesterday`, which are days of the zone and begin with their first instant;
/// - a time of day, today's or, with the day before it, yesterday's: `06:00`, `yesterday 06:00`. It is one of the zone, unless it
///   ends with `Z` or an offset.
///
/// A time of day that the zone leaves out, or has twice, is refused, with what to write instead.
///
/// # Errors
/// When the text has another form, or names no instant or two of them.
pub fn parse_typed(text: &str, now: Timestamp, zone: &Zone) -> Result<TypedTime, TypedTimeError> {
    let text = text.trim();
    let problem = match parse_instant(text) {
        Ok(at) if has_offset(text) => return Ok(TypedTime::Absolute(at)),
        Ok(at) => return in_zone(text, at, zone),
        Err(TimeTextError::NotUtc { .. }) => {
            return elsewhere(text).ok_or(TypedTimeError::Offset { text: text.to_owned() });
        }
        Err(TimeTextError::Form { problem, rest, .. }) => format!("{problem} at {}", place(&rest)),
    };
    if let Some(length) = relative(text) {
        let at = length.and_then(|seconds| now.checked_add(SignedDuration::from_secs(seconds)).ok());
        return at
            .map(TypedTime::Relative)
            .ok_or_else(|| form(text, "has no length of time such as 90m, 36h, 2d or 1w"));
    }
    let (day, clock) = text.split_once(' ').unwrap_or((text, ""));
    match (days_ago(day), clock) {
        (Some(days), "") => whole_day(now, days, zone).ok_or_else(|| form(text, "is too far off")),
        (Some(days), clock) => at_clock(text, clock.trim_start(), now, days, zone),
        (None, "") if is_clock(text) => at_clock(text, text, now, 0, zone),
        // Only of what begins like a date is it told where it goes wrong as one.
        _ if text.starts_with(|first: char| first.is_ascii_digit()) => Err(form(text, &problem)),
        _ => Err(form(text, "is not understood")),
    }
}

/// Whether it begins like a time of day and not like a date.
fn is_clock(text: &str) -> bool {
    let hour = text.split_once(':').map(|(hour, _)| hour);
    hour.is_some_and(|hour| matches!(hour.len(), 1 | 2) && hour.bytes().all(|byte| byte.is_ascii_digit()))
}

fn form(text: &str, problem: &str) -> TypedTimeError {
    let likely = closest(text, ["now", "today", "yesterday"]).filter(|word| !text.starts_with(word));
    TypedTimeError::Form { text: text.to_owned(), problem: problem.to_owned(), likely }
}

/// An instant with an offset other than zero behind it.
fn elsewhere(text: &str) -> Option<TypedTime> {
    let (civil, offset) = text.split_at_checked(text.rfind(['+', '-'])?)?;
    let seconds = i64::from(read_offset(offset)?.seconds());
    let at = parse_instant(civil).ok()?.checked_sub(SignedDuration::from_secs(seconds)).ok()?;
    Some(TypedTime::Absolute(at))
}

/// Reads `Z`, `+02`, `+0200` and `+02:00`.
fn read_offset(text: &str) -> Option<Offset> {
    if text == "Z" || text == "z" {
        return Some(Offset::UTC);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let seconds = i32::from(number(hours, 23)?) * 3600 + i32::from(number(minutes, 59)?) * 60;
    Offset::from_seconds(sign * seconds).ok()
}

/// A number of one or two digits, up to a limit.
fn number(digits: &str, limit: i8) -> Option<i8> {
    let is_number = matches!(digits.len(), 1 | 2) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number <= limit)
}

/// The seconds after now of `now`, `-2d`, `+1h` and `now-2d`, where they can be read; none where the text has none of these forms.
fn relative(text: &str) -> Option<Option<i64>> {
    let length = text.strip_prefix("now").unwrap_or(text);
    if length.is_empty() {
        return (!text.is_empty()).then_some(Some(0));
    }
    if !length.starts_with(['+', '-']) {
        return None;
    }
    let unsigned = length.get(1..).filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    // A number without a unit would be one of seconds, which nobody means.
    let has_unit = length.ends_with(|last: char| last.is_ascii_alphabetic());
    let seconds = unsigned.filter(|_| has_unit).and_then(|rest| parse_duration(rest).ok());
    Some(seconds.and_then(|seconds| if length.starts_with('-') { seconds.checked_neg() } else { Some(seconds) }))
}

fn days_ago(word: &str) -> Option<i64> {
    match word {
        "today" => Some(0),
        "yesterday" => Some(1),
        _ => None,
    }
}

fn date_before(date: Date, days: i64) -> Option<Date> {
    date.checked_sub(SignedDuration::from_hours(24 * days)).ok()
}

/// An instant of the zone that is written out without an offset; `utc` is the same text read in UTC.
fn in_zone(text: &str, utc: Timestamp, zone: &Zone) -> Result<TypedTime, TypedTimeError> {
    let civil = Offset::UTC.to_datetime(utc);
    if text.contains(['T', 't']) {
        return at_civil(text, civil, zone);
    }
    let day = day_of(civil.date(), zone).ok_or_else(|| form(text, "is too far off"))?;
    // A year, a month or a week is named by its first day, and is longer.
    let parts: Vec<&str> = text.split('-').collect();
    let is_day = parts.len() == 3 || matches!(&parts[..], [_, day] if day.len() == 3 && !day.starts_with(['W', 'w']));
    Ok(if is_day { day } else { TypedTime::Local(day.at()) })
}

/// The day of the zone that is so many days before that of the present moment.
fn whole_day(now: Timestamp, days: i64, zone: &Zone) -> Option<TypedTime> {
    day_of(date_before(zone.rules().to_datetime(now).date(), days)?, zone)
}

/// A day of the zone.
fn day_of(date: Date, zone: &Zone) -> Option<TypedTime> {
    // Where midnight is left out the day begins after the gap, and where it comes twice with the first.
    let first = |date: Date| zone.rules().to_ambiguous_timestamp(date.at(0, 0, 0, 0)).compatible().ok();
    let end = date.tomorrow().ok().and_then(first).unwrap_or(Timestamp::MAX);
    Some(TypedTime::Day { start: first(date)?, end })
}

/// A time of day of the day that is so many days before that of the present moment: `06:00`, `6:00:30`, `06:00+02:00`.
fn at_clock(text: &str, clock: &str, now: Timestamp, days: i64, zone: &Zone) -> Result<TypedTime, TypedTimeError> {
    let no_time = || form(text, "has no time of day such as 06:00");
    let far = || form(text, "is too far off");
    let split = clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len());
    let (digits, offset) = clock.split_at(split);
    let time = read_clock(digits).ok_or_else(no_time)?;
    if !offset.is_empty() {
        let offset = read_offset(offset).ok_or_else(no_time)?;
        let date = date_before(offset.to_datetime(now).date(), days).ok_or_else(far)?;
        return offset.to_timestamp(date.to_datetime(time)).map(TypedTime::Absolute).map_err(|_| far());
    }
    let date = date_before(zone.rules().to_datetime(now).date(), days).ok_or_else(far)?;
    at_civil(text, date.to_datetime(time), zone)
}

/// A date and a time of the zone, where it has them once.
fn at_civil(text: &str, local: DateTime, zone: &Zone) -> Result<TypedTime, TypedTimeError> {
    let far = || form(text, "is too far off");
    let date = local.date();
    let (text, zone) = (text.to_owned(), zone.clone());
    let read = zone.rules().to_ambiguous_timestamp(local);
    match read.offset() {
        AmbiguousOffset::Unambiguous { .. } => read.unambiguous().map(TypedTime::Local).map_err(|_| far()),
        AmbiguousOffset::Gap { .. } => Err(TypedTimeError::Gap { text, date, zone }),
        AmbiguousOffset::Fold { before, after } => {
            let written = |offset: Offset| format!("{local}{offset}");
            Err(TypedTimeError::Fold { text, date, zone, first: written(before), second: written(after) })
        }
    }
}

/// Reads `06:00` and `06:00:30`.
fn read_clock(text: &str) -> Option<Time> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "0"));
    Time::new(number(hour, 23)?, number(minute, 59)?, number(second, 59)?, 0).ok()
}

#[cfg(test)]
mod tests;
