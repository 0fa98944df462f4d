//! Instants as text: read generously, written in one of two forms.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday};
use jiff::tz::Offset;

/// A text that is no instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeTextError {
    /// The text can't be read as a time.
    #[error(
        "time {text:?} {problem} at {}: expected a form such as 2013-11-26, 2013-11-26T17Z, 2013-11-26T17:23Z or 2013-11-26T17:23:05.123Z",
        place(.rest)
    )]
    Form {
        /// The text as given.
        text: String,
        /// The problem; completes "the time ...".
        problem: &'static str,
        /// The text from the place of the problem on.
        rest: String,
    },
    /// The time has an offset from UTC.
    #[error("time {text:?} must be in UTC, but isn't: expected \"Z\" or \"+00:00\" at its end")]
    NotUtc {
        /// The text as given.
        text: String,
    },
}

/// The place of a problem, in words.
pub(super) fn place(rest: &str) -> String {
    if rest.is_empty() { "its end".to_owned() } else { format!("{rest:?}") }
}

/// Reads an instant in ISO 8601 form, in UTC: a date, optionally `T` and a time, optionally `Z` or
/// `+00:00`.
///
/// The date may be cut short (`2013-11`, `2013`), count days (`2013-330`) or weeks (`2013-W48-2`); the
/// time may be cut short (`T17`, `T17:23`). The last part of a time may have a fraction of any length,
/// which is cut to milliseconds. Without an offset the time is taken to be in UTC.
///
/// # Errors
///
/// If the text has another form, names a time that doesn't exist, or has an offset other than zero.
pub fn parse_instant(text: &str) -> Result<Timestamp, TimeTextError> {
    let mut reader = Reader { rest: text };
    let read = reader.instant();
    let rest = reader.rest.to_owned();
    let text = text.to_owned();
    match read {
        Ok(at) => Ok(at),
        Err(Problem::Form(problem)) => Err(TimeTextError::Form { text, problem, rest }),
        Err(Problem::NotUtc) => Err(TimeTextError::NotUtc { text }),
    }
}

/// `45 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: two units at the most.
pub fn span(seconds: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let sign = if seconds < 0 { "-" } else { "" };
    let mut rest = seconds.saturating_abs();
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        if rest >= size && parts.len() < 2 {
            parts.push(format!("{} {unit}", rest / size));
        }
        rest %= size;
    }
    if parts.is_empty() { "0 s".to_owned() } else { format!("{sign}{}", parts.join(" ")) }
}

/// How long something took, to the tenth of a second where it was short.
pub fn took(from: Timestamp, to: Timestamp) -> String {
    let millis = to.as_millisecond().saturating_sub(from.as_millisecond());
    if (0..10_000).contains(&millis) {
        return format!("{}.{} s", millis / 1000, millis % 1000 / 100);
    }
    span(millis / 1000)
}

/// `2013-11-26T17:23:05.123Z`: always to the millisecond.
pub fn format_full(at: Timestamp) -> String {
    let civil = floor_to_millisecond(at);
    format!("{}:{:02}.{:03}Z", minutes(civil), civil.second(), civil.millisecond())
}

/// `2013-11-26T17:23Z`: without milliseconds that are zero, and then without seconds that are zero.
pub fn format_short(at: Timestamp) -> String {
    let civil = floor_to_millisecond(at);
    match (civil.second(), civil.millisecond()) {
        (0, 0) => format!("{}Z", minutes(civil)),
        (second, 0) => format!("{}:{second:02}Z", minutes(civil)),
        _ => format_full(at),
    }
}

fn minutes(at: DateTime) -> String {
    let year = match at.year() {
        year @ 0.. => format!("{year:04}"),
        year => format!("-{:04}", year.unsigned_abs()),
    };
    format!("{year}-{:02}-{:02}T{:02}:{:02}", at.month(), at.day(), at.hour(), at.minute())
}

/// The moment of so many milliseconds since 1970, up to the last one that there is, which is in the last second; none beyond.
#[must_use]
pub fn moment_of_millis(millis: i64) -> Option<Timestamp> {
    let nanos = i32::try_from(millis.rem_euclid(1000)).ok()? * 1_000_000;
    Timestamp::new(millis.div_euclid(1000), nanos).ok()
}

fn floor_to_millisecond(at: Timestamp) -> DateTime {
    let floor = at.as_nanosecond().div_euclid(1_000_000) * 1_000_000;
    Offset::UTC.to_datetime(Timestamp::from_nanosecond(floor).unwrap_or(at))
}

enum Problem {
    Form(&'static str),
    NotUtc,
}

use Problem::{Form, NotUtc};

/// The rest of the text; after an error it begins at the error.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn instant(&mut self) -> Result<Timestamp, Problem> {
        let date = self.date()?;
        let mut millis = 0;
        if self.eat_either("T", "t") {
            if self.digits() > 0 {
                millis = self.time()?;
            }
            self.offset()?;
        }
        if !self.rest.is_empty() {
            return Err(Form("goes on unexpectedly"));
        }
        let midnight = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0));
        let millis = midnight.map(|midnight| midnight.as_millisecond() + millis);
        millis.ok().and_then(moment_of_millis).ok_or(Form("is too far off"))
    }

    fn date(&mut self) -> Result<Date, Problem> {
        let start = self.rest;
        let year = self.number(4, 4, "has no year of four digits")? as i16;
        if !self.eat("-") {
            return self.existing(start, Date::new(year, 1, 1).ok());
        }
        if self.eat_either("W", "w") {
            return self.week_date(start, year);
        }
        if self.digits() == 3 {
            let day = self.number(3, 3, "has no day of the year")? as i16;
            let first = Date::new(year, 1, 1).ok();
            let date = first.and_then(|first| first.with().day_of_year(day).build().ok());
            return self.existing(start, date);
        }
        let month = self.number(1, 2, "has no month")? as i8;
        let day = self.number_after("-", "has no day")?.unwrap_or(1) as i8;
        self.existing(start, Date::new(year, month, day).ok())
    }

    fn week_date(&mut self, start: &'a str, year: i16) -> Result<Date, Problem> {
        let week = self.number(1, 2, "has no week")? as i8;
        let day = self.number_after("-", "has no day of the week")?.unwrap_or(1) as i8;
        let weekday = Weekday::from_monday_one_offset(day).ok();
        let date = weekday.and_then(|day| ISOWeekDate::new(year, week, day).ok());
        self.existing(start, date.map(ISOWeekDate::date))
    }

    /// The date if there is such a date; else the error is at the date's beginning.
    fn existing(&mut self, start: &'a str, date: Option<Date>) -> Result<Date, Problem> {
        date.ok_or_else(|| {
            self.rest = start;
            Form("has a date that doesn't exist")
        })
    }

    /// The milliseconds since midnight of a time of day: hours, then perhaps minutes and seconds, the
    /// last of them perhaps with a fraction.
    fn time(&mut self) -> Result<i64, Problem> {
        let mut millis = 0;
        for (unit, limit) in [(3_600_000, 24), (60_000, 60), (1000, 60)] {
            let start = self.rest;
            let value = self.number(1, 2, "has no number")?;
            if value >= limit {
                self.rest = start;
                return Err(Form("has a time of day that doesn't exist"));
            }
            millis += value * unit;
            if self.eat_either(".", ",") {
                return Ok(millis + self.fraction(unit)?);
            }
            if unit == 1000 || !self.eat(":") {
                break;
            }
        }
        Ok(millis)
    }

    /// A decimal fraction of `unit` milliseconds; digits beyond the 12th are too small to matter.
    fn fraction(&mut self, unit: i64) -> Result<i64, Problem> {
        let (digits, rest) = self.rest.split_at(self.digits());
        if digits.is_empty() {
            return Err(Form("has no digits in its fraction"));
        }
        self.rest = rest;
        let scale = |value: i64, digit: u8| value * 10 + i64::from(digit - b'0');
        let padded = digits.bytes().chain(std::iter::repeat(b'0')).take(12).fold(0, scale);
        Ok((i128::from(padded) * i128::from(unit) / 1_000_000_000_000) as i64)
    }

    /// `Z`, an offset of zero, or nothing.
    fn offset(&mut self) -> Result<(), Problem> {
        if self.rest.is_empty() || self.eat_either("Z", "z") {
            return Ok(());
        }
        if !self.rest.starts_with(['+', '-']) {
            return Err(Form("goes on unexpectedly"));
        }
        let offset = &self.rest[1..];
        if matches!(offset, "00" | "0000" | "00:00" | "00:00:00") {
            self.rest = "";
            return Ok(());
        }
        let readable = offset.chars().all(|c| c.is_ascii_digit() || c == ':');
        let elsewhere = readable && offset.contains(|c| matches!(c, '1'..='9'));
        Err(if elsewhere { NotUtc } else { Form("has no offset") })
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn eat_either(&mut self, this: &str, that: &str) -> bool {
        self.eat(this) || self.eat(that)
    }

    /// How many digits come next.
    fn digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    /// A number of at least `min` and at most `max` digits.
    fn number(&mut self, min: usize, max: usize, problem: &'static str) -> Result<i64, Problem> {
        let count = self.digits();
        if !(min..=max).contains(&count) {
            return Err(Form(problem));
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().map_err(|_| Form(problem))
    }

    /// A number of one or two digits, if `sign` comes before it.
    fn number_after(&mut self, sign: &str, problem: &'static str) -> Result<Option<i64>, Problem> {
        match self.eat(sign) {
            true => self.number(1, 2, problem).map(Some),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        parse_instant(text).map_or_else(|error| error.to_string(), format_full)
    }

    #[test]
    fn reads_every_form() {
        for (text, full) in [
            ("2013", "2013-01-01T00:00:00.000Z"),
            ("2013-11", "2013-11-01T00:00:00.000Z"),
            ("2013-11-26", "2013-11-26T00:00:00.000Z"),
            ("2013-11-26T", "2013-11-26T00:00:00.000Z"),
            ("2013-11-26TZ", "2013-11-26T00:00:00.000Z"),
            ("2013-11-26T14Z", "2013-11-26T14:00:00.000Z"),
            ("2013-11-26T14.5Z", "2013-11-26T14:30:00.000Z"),
            ("2015-09-13T13:40Z", "2015-09-13T13:40:00.000Z"),
            ("2015-09-13T13:40", "2015-09-13T13:40:00.000Z"),
            ("2015-09-13T13:40.25Z", "2015-09-13T13:40:15.000Z"),
            ("2015-09-13T13:40:05Z", "2015-09-13T13:40:05.000Z"),
            ("2015-09-13t13:40:05,1z", "2015-09-13T13:40:05.100Z"),
            ("2015-09-13T13:40:05.123999999999999Z", "2015-09-13T13:40:05.123Z"),
            ("2015-09-13T13:40:05.123+00:00", "2015-09-13T13:40:05.123Z"),
            ("2015-09-13T13:40:05-00:00", "2015-09-13T13:40:05.000Z"),
            ("2013-330", "2013-11-26T00:00:00.000Z"),
            ("2013-W48-2T10Z", "2013-11-26T10:00:00.000Z"),
            ("2013-W48", "2013-11-25T00:00:00.000Z"),
            ("2013-1-5T4:5Z", "2013-01-05T04:05:00.000Z"),
            ("0001-01-01T00:00Z", "0001-01-01T00:00:00.000Z"),
            ("2016-02-29", "2016-02-29T00:00:00.000Z"),
        ] {
            assert_eq!(read(text), full, "{text}");
        }
    }

    #[test]
    fn refuses_other_offsets() {
        for text in ["2013-11-26T14+01:00", "2013-11-26T14:00-08:00", "2013-11-26T14:00+0530"] {
            let expected = "must be in UTC, but isn't: expected \"Z\" or \"+00:00\" at its end";
            assert_eq!(read(text), format!("time {text:?} {expected}"));
        }
    }

    #[test]
    fn says_where_it_stops_understanding() {
        for (text, part) in [
            ("", "has no year of four digits at its end"),
            ("T14Z", "has no year of four digits at \"T14Z\""),
            ("yesterday", "has no year of four digits at \"yesterday\""),
            ("13-11-26", "has no year of four digits at \"13-11-26\""),
            ("2013-11-31", "has a date that doesn't exist at \"2013-11-31\""),
            ("2015-02-29T10Z", "has a date that doesn't exist at \"2015-02-29T10Z\""),
            ("2015-366", "has a date that doesn't exist"),
            ("2013-W54", "has a date that doesn't exist"),
            ("2013-11-26T24:00Z", "has a time of day that doesn't exist at \"24:00Z\""),
            ("2013-11-26T10:60Z", "has a time of day that doesn't exist at \"60Z\""),
            ("2013-11-26T10:00:60Z", "has a time of day that doesn't exist at \"60Z\""),
            ("2013-11-26T10:00:00.Z", "has no digits in its fraction at \"Z\""),
            ("2013-11-26 10:00Z", "goes on unexpectedly at \" 10:00Z\""),
            ("2013-11-26T10:00ZZ", "goes on unexpectedly at \"Z\""),
            ("2013-11-26T10:00:00é", "goes on unexpectedly at \"é\""),
            ("2013-11-26T10:00+", "has no offset at \"+\""),
            ("2013-11-26T10:00+0", "has no offset at \"+0\""),
        ] {
            let message = read(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn the_last_moment_is_read_as_it_is_written() {
        let end = format_full(Timestamp::MAX);
        assert_eq!(end, "9999-12-30T22:00:00.999Z");
        assert_eq!(parse_instant(&end).map(format_full), Ok(end));
        let last = Timestamp::MAX.as_millisecond();
        assert_eq!(moment_of_millis(last).map(|at| at.as_millisecond()), Some(last));
        assert_eq!(moment_of_millis(last + 1), None);
        assert_eq!(moment_of_millis(-1).map(|at| at.as_millisecond()), Some(-1));
        assert!(parse_instant("9999-12-31T00:00Z").is_err());
    }

    #[test]
    fn the_short_form_drops_what_is_zero() {
        let short = |text| format_short(parse_instant(text).expect("an instant"));
        assert_eq!(short("2013-11-26T17:23:00.000Z"), "2013-11-26T17:23Z");
        assert_eq!(short("2013-11-26T17:23:05.000Z"), "2013-11-26T17:23:05Z");
        assert_eq!(short("2013-11-26T17:23:00.100Z"), "2013-11-26T17:23:00.100Z");
        assert_eq!(short("2013-11-26"), "2013-11-26T00:00Z");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis in -62_135_596_800_000_i64..253_402_207_200_000) {
            let at = Timestamp::from_millisecond(millis).expect("an instant");
            prop_assert_eq!(parse_instant(&format_full(at)), Ok(at));
            prop_assert_eq!(parse_instant(&format_short(at)), Ok(at));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,24}", near in "[0-9TZW:.+-]{0,24}") {
            let _ = parse_instant(&text);
            let _ = parse_instant(&near);
            let _ = parse_instant(&format!("2013-11-26T{near}"));
        }
    }
}
