//! The fields of an expression as crontab reads them.
//!
//! Everything is refused that crontab refuses or passes over in silence, such as `5/10`, which it reads as `5`. A `?` for an open day
//! is understood, since people bring it along from Quartz; numbers of weekdays beside it are not, for they were counted there.

use std::ops::Range;

use super::days::DayRule;
use super::error::{CronField, Fault, fault};
use super::item::{MONTHS, WEEKDAYS};

/// A field that has been read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The values; weekdays from 1 = Sunday to 7 = Saturday.
    pub(super) set: u64,
    /// Whether a wildcard or a step was given.
    pub(super) stepped: bool,
    /// Whether it begins with a wildcard, and so chooses no days.
    is_open: bool,
}

/// Reads a field, in upper case. A fault has its place in the text.
pub(super) fn read(text: &str, field: CronField) -> Result<Draft, (Range<usize>, Fault)> {
    let is_day = matches!(field, CronField::DayOfMonth | CronField::DayOfWeek);
    let text = if is_day && text == "?" { "*" } else { text };
    let mut draft = Draft { is_open: text.starts_with('*'), ..Draft::default() };
    let mut start = 0;
    for item in text.split(',') {
        let end = start + item.len();
        read_item(&mut draft, item, field).map_err(|fault| (start..end, fault))?;
        start = end + 1;
    }
    Ok(draft)
}

/// The fault of two day fields together: a `?`, which is Quartz's, beside weekdays by numbers.
pub(super) fn days_fault(of_month: &str, of_week: &str) -> Option<Fault> {
    let is_counted = of_week.contains(|letter: char| letter.is_ascii_digit()) && of_month == "?";
    is_counted.then(|| Fault {
        problem: "has numbers beside the \"?\" of Quartz, where 1 is Sunday; in 5 fields it is Monday".into(),
        expected: "names such as MON-FRI, or the 6 fields of Quartz, which begin with the second".into(),
    })
}

/// The rule for the days. If both fields choose days, either one suffices.
pub(super) fn days(of_month: &Draft, of_week: &Draft) -> DayRule {
    let (days, weekdays) = (of_month.set, of_week.set);
    let (all_days, all_weekdays) = (every(CronField::DayOfMonth), 0b1111_1110);
    match (of_month.is_open, of_week.is_open) {
        (false, false) => DayRule::Either { days, weekdays },
        _ if weekdays == all_weekdays => DayRule::Days(days),
        _ if days == all_days => DayRule::Weekdays(weekdays),
        _ => DayRule::Both { days, weekdays },
    }
}

fn read_item(draft: &mut Draft, item: &str, field: CronField) -> Result<(), Fault> {
    if item.is_empty() {
        return fault("has an empty item", format!("{} between the commas", values(field)));
    }
    if let Some(sign) = sign_of_quartz(item, field) {
        return fault(
            format!("has {sign:?}, which only Quartz knows"),
            format!("{}, or the 6 fields of Quartz, which begin with the second", values(field)),
        );
    }
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(read_step(step, field)?)),
        None => (item, None),
    };
    draft.stepped |= step.is_some() || range == "*";
    let (first, last) = match range.split_once('-') {
        _ if range == "*" => limits(field),
        Some((first, last)) => read_range(first, last, field)?,
        None if step.is_some() => {
            return fault(
                "has a step without a range",
                format!("a range before the \"/\", as in {}", stepped(range, field)),
            );
        }
        None => (value(range, field)?, value(range, field)?),
    };
    let mut value = first;
    while value <= last {
        draft.set |= bit(value, field);
        value += step.unwrap_or(1);
    }
    Ok(())
}

/// The set of one value. 0 and 7 are Sunday, which is the first weekday inside.
fn bit(value: u32, field: CronField) -> u64 {
    match field {
        CronField::DayOfWeek => 1 << (value % 7 + 1),
        _ => 1 << value,
    }
}

/// All values of a field that is no weekday.
fn every(field: CronField) -> u64 {
    let (first, last) = limits(field);
    (first..=last).fold(0, |set, value| set | bit(value, field))
}

fn limits(field: CronField) -> (u32, u32) {
    match field {
        CronField::DayOfWeek => (0, 7),
        _ => {
            let (first, last) = field.limits();
            (first as u32, last as u32)
        }
    }
}

/// The values of a field, in words.
fn values(field: CronField) -> &'static str {
    match field {
        CronField::DayOfWeek => "0-7 (0 and 7 are Sunday) or SUN-SAT",
        _ => field.values(),
    }
}

/// A sign that Quartz has for days.
fn sign_of_quartz(item: &str, field: CronField) -> Option<char> {
    let is_day = matches!(field, CronField::DayOfMonth | CronField::DayOfWeek);
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    item.chars().find(|sign| matches!(sign, '?' | '#')).or_else(|| {
        let sign = item.chars().last().filter(|sign| is_day && matches!(sign, 'L' | 'W'));
        sign.filter(|_| digits(item.trim_end_matches(['L', 'W'])) || item.starts_with("L-"))
    })
}

fn read_step(text: &str, field: CronField) -> Result<u32, Fault> {
    let (_, last) = limits(field);
    match number(text) {
        Some(0) => fault("has a step of 0", "a step of at least 1"),
        Some(step) if step <= last => Ok(step),
        Some(_) => fault("has too large a step", format!("a step of at most {last}")),
        None => fault("can't be read", "a number after \"/\" and nothing more"),
    }
}

fn read_range(first: &str, last: &str, field: CronField) -> Result<(u32, u32), Fault> {
    let (first, end) = (value(first, field)?, value(last, field)?);
    // At the end of a week Sunday is 7.
    let is_sunday = field == CronField::DayOfWeek && last == "SUN" && first > 0;
    let end = if is_sunday { 7 } else { end };
    if end < first {
        let (smallest, largest) = limits(field);
        let largest = if field == CronField::DayOfWeek { largest - 1 } else { largest };
        return fault("ends before it starts", format!("two ranges, as in {first}-{largest},{smallest}-{end}"));
    }
    Ok((first, end))
}

fn value(text: &str, field: CronField) -> Result<u32, Fault> {
    let names: (u32, &[&str]) = match field {
        CronField::Month => (1, &MONTHS),
        CronField::DayOfWeek => (0, &WEEKDAYS),
        _ => (0, &[]),
    };
    if let Some(place) = names.1.iter().position(|name| *name == text) {
        return Ok(names.0 + place as u32);
    }
    let (smallest, largest) = limits(field);
    match number(text) {
        Some(value) if (smallest..=largest).contains(&value) => Ok(value),
        Some(_) => fault("is out of range", values(field)),
        None => fault("can't be read", values(field)),
    }
}

/// A number of digits alone; one that is far too large for any field is as good as another.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u32::MAX))
}

/// An example of a step with a range that begins at a value.
fn stepped(range: &str, field: CronField) -> String {
    let (smallest, largest) = limits(field);
    format!("{}-{largest}/2", value(range, field).unwrap_or(smallest))
}

#[cfg(test)]
mod tests {
    use crate::time::Cron;
    use crate::time::cron::tests::message;

    #[test]
    fn errors_say_what_a_crontab_would_have() {
        assert_eq!(
            message("0 4 * * 8"),
            r#"day-of-week field "8" is out of range: expected 0-7 (0 and 7 are Sunday) or SUN-SAT (field 5 of "0 4 * * 8")"#
        );
        assert_eq!(
            message("0 22-2 * * *"),
            r#"hour field "22-2" ends before it starts: expected two ranges, as in 22-23,0-2 (field 2 of "0 22-2 * * *")"#
        );
        assert_eq!(
            message("5/10 * * * *"),
            r#"minute field "5/10" has a step without a range: expected a range before the "/", as in 5-59/2 (field 1 of "5/10 * * * *")"#
        );
        assert_eq!(
            message("0 4 * * 5L"),
            r#"day-of-week field "5L" has 'L', which only Quartz knows: expected 0-7 (0 and 7 are Sunday) or SUN-SAT, or the 6 fields of Quartz, which begin with the second (field 5 of "0 4 * * 5L")"#
        );
        assert_eq!(
            message("0 4 ? * 2"),
            r#"day-of-week field "2" has numbers beside the "?" of Quartz, where 1 is Sunday; in 5 fields it is Monday: expected names such as MON-FRI, or the 6 fields of Quartz, which begin with the second (field 5 of "0 4 ? * 2")"#
        );
        assert_eq!(
            message("0 4 1,,2 * *"),
            r#"day-of-month field has an empty item: expected 1-31 between the commas (field 3 of "0 4 1,,2 * *")"#
        );
        assert_eq!(
            message("0 4 * fob *"),
            r#"month field "fob" can't be read: expected 1-12 or JAN-DEC (field 4 of "0 4 * fob *")"#
        );
    }

    #[test]
    fn what_crontab_does_not_have_is_refused() {
        let expressions = "60 * * * *|* 24 * * *|* * 0 * *|* * 32 * *|* * * 13 *|* * * * L|* * L * *|* * 15W * *|* * * * 5L|\
            * * * * FRI#2|* * * * 5#2|*/0 * * * *|*/60 * * * *|1-2-3 * * * *|-1 * * * *|+1 * * * *|1- * * * *|1/ * * * *|\
            */2/2 * * * *|** * * * *|* * * * MONDAY|* * * * 6-2|* * * * SAT-MON|* * * DEC-JAN *|@ * * * *|1,2, * * * *|\
            99999999999 * * * *|* * L-3 * *|* * LW * *|? * * * *|* * 1,? * *|* * ? * 1-5";
        for expression in expressions.split('|') {
            assert!(Cron::parse(expression).is_err(), "{expression}");
        }
        let weekdays = |expression: &str| Cron::parse(expression).expect("an expression").weekdays();
        assert_eq!(weekdays("0 7 ? * MON-FRI"), weekdays("0 7 * * 1-5"));
        assert_eq!(weekdays("0 7 * * FRI-SUN"), weekdays("0 7 * * 5-7"));
    }
}
