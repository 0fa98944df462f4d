//! Cron expressions: of five fields as crontab reads them, and of six or seven as Quartz does.
//!
//! The fields are separated by blanks; control characters, of which tabs are some, are refused. A [`Cron`] knows no time zone: it is a set of civil times, from 1970 to
//! 2199, to the second. [`CronSchedule`](super::CronSchedule) places it in a zone.
//!
//! # Unix
//!
//! Minute, hour, day of month, month, day of week. Each takes `*`, numbers, `a-b`, steps of either (`*/5`, `10-40/15`), and lists of
//! these; months and weekdays have names, too. 0 and 7 are Sunday. Where both day fields choose days, either one suffices; a
//! field that begins with `*` chooses none, though its steps count. Ranges don't run over the end, a step needs a range, and the
//! signs of Quartz are refused, but for a `?` beside weekdays with names. `tests/cron_unix.rs` holds it against a matcher that goes minute by minute.
//!
//! # Quartz
//!
//! Second, minute, hour, day of month, month, day of week and, if you like, year.
//!
//! | field | values | signs |
//! |---|---|---|
//! | second, minute | 0-59 | `*` `,` `-` `/` |
//! | hour | 0-23 | `*` `,` `-` `/` |
//! | day of month | 1-31 | `*` `,` `-` `/` `?` `L` `L-3` `LW` `L-3W` `15W` |
//! | month | 1-12, JAN-DEC | `*` `,` `-` `/` |
//! | day of week | 1-7, SUN-SAT | `*` `,` `-` `/` `?` `L` `6L` `6#3` |
//! | year | four digits | `*` `,` `-` `/` |
//!
//! Exactly one of the two day fields is `?`. Ranges may run over the end: `22-2`, `FRI-MON`. Names may
//! be in any case.
//!
//! What is accepted and what it means is held against real Quartz, line by line, by `tests/cron_quartz.rs`,
//! also where Quartz is odd: an eighth field is ignored; so is text after a complete item (`MONDAY` and
//! `MON/2` are `MON`); a range can't mix names and numbers; `1W,15W` counts as `1W` alone, and `MON,FRI#2`
//! as `MON#2` alone. On purpose we refuse the few expressions that Quartz accepts without meaning to: 98
//! and 99 as a value, a weekday out of range before `#`, `0W`, and a year field without a year.

mod bits;
mod days;
mod error;
mod item;
mod parse;
mod search;
mod unix;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::{Date, DateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use error::{CronDialect, CronError, CronField};
pub(super) use search::FiringDay;

use super::dates::Dates;

/// A cron expression: a set of civil times. Equal if the text is equal. Cheap to clone.
#[derive(Clone)]
pub struct Cron {
    text: Arc<str>,
    dialect: CronDialect,
    times: DayTimes,
    days: days::DayRule,
    months: u64,
    years: bits::Years,
    hours_stepped: bool,
    minutes_stepped: bool,
    /// The dates that it is confined to, or that it leaves out; not a part of any text.
    dates: Option<DateRule>,
}

/// The dates that a calendar confines its boundaries to, or leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DateRule {
    Only(Dates),
    Except(Dates),
}

/// The times of a day that fire, the same on every day; bit `n` is the value `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DayTimes {
    hours: u64,
    minutes: u64,
    seconds: u64,
}

impl Cron {
    /// Reads an expression: five fields as crontab does, six and seven as Quartz does.
    ///
    /// # Errors
    ///
    /// Refuses what these refuse; the error names the field, its place, and what was expected.
    pub fn parse(expression: &str) -> Result<Cron, CronError> {
        parse::without_control_characters(expression)?;
        parse::parse(expression)
    }

    /// Reads an expression that was stored. Versions before control characters were refused took them as blanks.
    ///
    /// # Errors
    ///
    /// As [`Cron::parse`] does, but for control characters.
    pub fn read_stored(expression: &str) -> Result<Cron, CronError> {
        parse::parse(expression)
    }

    /// The same times, where the dates allow them.
    pub(super) fn on(self, dates: DateRule) -> Cron {
        let years = match &dates {
            DateRule::Only(only) => bits::Years::of(only.iter().map(|date| date.year())),
            DateRule::Except(_) => self.years,
        };
        Cron { years, dates: Some(dates), ..self }
    }

    /// The days of the month that begins on a date, bit `n` for day `n`.
    fn days_of(&self, first: Date) -> u64 {
        let days = self.days.mask(first);
        match &self.dates {
            None => days,
            Some(DateRule::Only(dates)) => days & dates.in_month(first),
            Some(DateRule::Except(dates)) => days & !dates.in_month(first),
        }
    }

    /// The dialect in which it was read.
    pub fn dialect(&self) -> CronDialect {
        self.dialect
    }

    /// The weekdays that it chooses, from Sunday on; none where it chooses none, or not each one of a month.
    pub fn weekdays(&self) -> Option<[bool; 7]> {
        let set = self.days.weekdays()?;
        Some([1, 2, 3, 4, 5, 6, 7].map(|day: u32| set >> day & 1 == 1))
    }

    /// Whether another expression, perhaps of another dialect, has the same times and means the same by them.
    pub(super) fn has_same_times(&self, other: &Cron) -> bool {
        let parts = |one: &Cron| (one.times, one.months, one.years, one.hours_stepped, one.minutes_stepped);
        parts(self) == parts(other) && self.days.has_same_days(other.days)
    }

    /// The expression as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first civil time strictly after `after`, in whole seconds; `None` if there is none up to the end
    /// of 2199.
    pub fn next_after(&self, after: DateTime) -> Option<DateTime> {
        let from = search::local_seconds(after) + 1;
        search::civil(self.first_in(from, i64::MAX, &mut FiringDay::unknown())?)
    }

    /// The last civil time strictly before `before`, in whole seconds; `None` if there is none since the
    /// beginning of 1970.
    pub fn previous_before(&self, before: DateTime) -> Option<DateTime> {
        let fraction = i64::from(before.subsec_nanosecond() > 0);
        let upto = search::local_seconds(before) - 1 + fraction;
        search::civil(self.last_in(i64::MIN, upto)?)
    }

    /// Whether the hours are given by a wildcard or a step, as in `*`, `0/6` or `8-18/2`.
    pub fn has_stepped_hours(&self) -> bool {
        self.hours_stepped
    }

    /// Whether the hours or the minutes are given by a wildcard or a step: such an expression means
    /// "every so often" rather than "at that time of the day".
    pub fn is_interval(&self) -> bool {
        self.hours_stepped || self.minutes_stepped
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({:?})", self.text)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Cron) -> bool {
        self.text == other.text && self.dates == other.dates
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.dates.hash(state);
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(expression: &str) -> Result<Cron, CronError> {
        Cron::parse(expression)
    }
}

impl Serialize for Cron {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Cron {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cron, D::Error> {
        // What is planned of a workflow is stored in this form, and no door takes it.
        let text = String::deserialize(deserializer)?;
        Cron::read_stored(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of an expression that is refused.
    pub(super) fn message(expression: &str) -> String {
        let error = Cron::parse(expression).expect_err("an expression to refuse");
        assert_eq!(error.text, expression[error.span.clone()]);
        error.to_string()
    }

    #[test]
    fn errors_name_the_field_its_place_and_what_was_expected() {
        assert_eq!(
            message("0 0 0 ? * 8"),
            r#"day-of-week field "8" is out of range: expected 1-7 or SUN-SAT (field 6 of "0 0 0 ? * 8")"#
        );
        assert_eq!(
            message("0 1,75 * * * ?"),
            r#"minute field "75" is out of range: expected 0-59 (field 2 of "0 1,75 * * * ?")"#
        );
        assert_eq!(
            message("0 0 0 1 fob ?"),
            r#"month field "fob" is not a name it knows: expected 1-12 or JAN-DEC (field 5 of "0 0 0 1 fob ?")"#
        );
        assert_eq!(
            message("0 0/24 25 * * ?"),
            r#"hour field "25" is out of range: expected 0-23 (field 3 of "0 0/24 25 * * ?")"#
        );
    }

    #[test]
    fn errors_tell_of_missing_fields_and_of_day_fields_that_exclude_each_other() {
        assert_eq!(
            message("0 0 * *"),
            r#"day-of-week field is missing, as there are 4 of 5: expected 5 fields, minute hour day-of-month month day-of-week, as a crontab has, or 6 or 7 as Quartz has, second minute hour day-of-month month day-of-week [year] (field 5 of "0 0 * *")"#
        );
        assert_eq!(
            message("@daily"),
            r#"minute field "@daily" is a word of some crontabs: expected 0 0 * * * (field 1 of "@daily")"#
        );
        assert_eq!(
            message("CRON_TZ=Asia/Tokyo 0 6 * * *"),
            r#"minute field "CRON_TZ=Asia/Tokyo" names a time zone: expected the fields alone, and the time zone beside the expression: timeZone (field 1 of "CRON_TZ=Asia/Tokyo 0 6 * * *")"#
        );
        assert_eq!(
            message("0 0 0 * * *"),
            r#"day-of-week field "*" chooses days, and so does day-of-month: expected "?" in exactly one of day-of-month and day-of-week (field 6 of "0 0 0 * * *")"#
        );
    }

    #[test]
    fn control_characters_are_refused() {
        assert_eq!(
            message("0 4\t* * *"),
            r#"hour field "\t" is a control character: expected blanks between the fields (field 2 of "0 4\t* * *")"#
        );
        for control in ('\0'..=' ').chain('\u{7f}'..='\u{9f}').filter(|one| one.is_control()) {
            for expression in ["# 4 * * *", "0 4 * * *#", "#0 4 * * *", "0 4 #* * *", "0 0 4# * * ?", "0 0 4 * * ? #"] {
                let expression = expression.replace('#', &control.to_string());
                assert!(Cron::parse(&expression).is_err(), "{expression:?}");
            }
        }
        assert_eq!(Cron::read_stored("0\t4 * * *").expect("an expression").as_str(), "0\t4 * * *");
    }

    #[test]
    fn every_prefix_and_every_odd_character_is_read_or_refused() {
        let expression = "0 0/15,30 8-18/2 ? JAN-FEB,12 FRI#2 2016-2020/2";
        for (n, _) in expression.char_indices() {
            let _ = Cron::parse(&expression[..n]);
            for odd in ["é", "\u{1F600}", "\n", "\0", ",", "L", "#", "-", "/", "99999999999"] {
                let _ = Cron::parse(&format!("{}{odd}{}", &expression[..n], &expression[n..]));
            }
        }
    }

    #[test]
    fn fractions_of_a_second_are_never_copied() {
        let cron = Cron::parse("0 0 * * * ?").expect("a cron expression");
        let noon = DateTime::constant(2016, 2, 29, 12, 0, 0, 0);
        let later = DateTime::constant(2016, 2, 29, 12, 0, 0, 345_000_000);
        assert_eq!(cron.next_after(later), Some(DateTime::constant(2016, 2, 29, 13, 0, 0, 0)));
        assert_eq!(cron.previous_before(later), Some(noon));
        assert_eq!(cron.next_after(DateTime::MIN), Some(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)));
        assert_eq!(cron.next_after(DateTime::MAX), None);
        assert_eq!(cron.previous_before(DateTime::MIN), None);
        assert_eq!(cron.previous_before(DateTime::MAX), Some(DateTime::constant(2199, 12, 31, 23, 0, 0, 0)));
    }

    #[test]
    fn text_goes_round_through_json() {
        let cron = Cron::parse(" 0 0 6 ? * mon-Fri ").expect("a cron expression");
        let json = serde_json::to_string(&cron).expect("json");
        assert_eq!(json, r#"" 0 0 6 ? * mon-Fri ""#);
        assert_eq!(serde_json::from_str::<Cron>(&json).expect("a cron expression"), cron);
        assert_eq!(cron.to_string(), " 0 0 6 ? * mon-Fri ");
    }
}
