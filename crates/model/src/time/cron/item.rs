//! One item of a field's list: `*`, `5`, `MON-FRI`, `10-40/15`, `L-3W`, `6#3`.
//!
//! What is refused and what an accepted item means follow Quartz to the letter, also where Quartz is
//! odd: text after a complete item is ignored (`MONDAY` is `MON`, and so is `MON/2`), and a name and
//! a number don't mix in a range. The few places where we refuse more are listed in
//! `tests/cron_quartz.rs`.

use super::bits::{self, Years};
use super::error::{CronField, Fault, fault};

pub(super) const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
pub(super) const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The items of one field that have been read so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// The values, for every field but the year.
    pub(super) set: u64,
    /// The values of the year field.
    pub(super) years: Years,
    /// Whether there was any item at all.
    pub(super) any: bool,
    /// `?` was given.
    pub(super) unspecified: bool,
    /// A wildcard or a step was given.
    pub(super) stepped: bool,
    /// `L` or `L-n` in the days of the month.
    pub(super) last: Option<i8>,
    /// `W`.
    pub(super) nearest: bool,
    /// `nL` in the days of the week.
    pub(super) last_weekday: bool,
    /// `n#k` in the days of the week.
    pub(super) nth: Option<i8>,
}

/// Reads one item, in upper case, into the draft of its field.
pub(super) fn read(draft: &mut Draft, item: &str, field: CronField) -> Result<(), Fault> {
    let already = std::mem::replace(&mut draft.any, true);
    match item.as_bytes()[0] {
        b'A'..=b'Z' if !is_last(item) => read_name(draft, item, field),
        b'L' => read_last(draft, item, field, already),
        b'?' => read_unspecified(draft, item, field),
        b'*' | b'/' => read_wildcard(draft, item, field),
        b'0'..=b'9' => read_number(draft, item, field),
        _ => fault("can't be read", field.values()),
    }
}

/// `L`, `LW`, `L-3`, `L-3W`.
fn is_last(item: &str) -> bool {
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    matches!(item, "L" | "LW")
        || item.strip_prefix("L-").is_some_and(|rest| digits(rest.strip_suffix('W').unwrap_or(rest)))
}

fn read_name(draft: &mut Draft, item: &str, field: CronField) -> Result<(), Fault> {
    let first = name(item.get(..3), field)?;
    match item.as_bytes().get(3) {
        Some(b'-') => {
            let second = name(item.get(4..7), field)
                .or_else(|_| fault("has no end that it can read", "two names, or two numbers, around \"-\""))?;
            fill(draft, field, first, Some(second), 1)?;
        }
        Some(b'#') if field == CronField::DayOfWeek => {
            draft.nth = Some(nth(&item[4..])?);
            insert(draft, field, first);
        }
        Some(b'L') if field == CronField::DayOfWeek => {
            draft.last_weekday = true;
            insert(draft, field, first);
        }
        _ => insert(draft, field, first),
    }
    Ok(())
}

/// The value of a month's or weekday's three-letter name.
fn name(text: Option<&str>, field: CronField) -> Result<i64, Fault> {
    let names: &[&str] = match field {
        CronField::Month => &MONTHS,
        CronField::DayOfWeek => &WEEKDAYS,
        _ => &[],
    };
    match names.iter().position(|name| Some(*name) == text) {
        Some(n) => Ok(n as i64 + 1),
        None if names.is_empty() => fault("is not a number", field.values()),
        None => fault("is not a name it knows", field.values()),
    }
}

fn read_unspecified(draft: &mut Draft, item: &str, field: CronField) -> Result<(), Fault> {
    if !matches!(field, CronField::DayOfMonth | CronField::DayOfWeek) {
        return fault("takes no \"?\"", format!("{}, or * for every one", field.values()));
    }
    if item.chars().count() > 2 {
        return fault("can't be read", "nothing after \"?\"");
    }
    draft.unspecified = true;
    Ok(())
}

fn read_wildcard(draft: &mut Draft, item: &str, field: CronField) -> Result<(), Fault> {
    draft.stepped = true;
    let step = match item.strip_prefix('*').unwrap_or(item).strip_prefix('/') {
        Some(step) => integer(step)?,
        None => 1,
    };
    check_step(step, field)?;
    let (min, _) = field.limits();
    fill(draft, field, min, None, step.max(1))
}

fn read_last(draft: &mut Draft, item: &str, field: CronField, already: bool) -> Result<(), Fault> {
    match field {
        CronField::DayOfMonth => {
            let rest = &item[1..];
            draft.nearest |= rest.ends_with('W');
            let rest = rest.trim_end_matches('W');
            let offset = match rest.strip_prefix('-') {
                Some("") if !draft.nearest => {
                    return fault("ends too early", "a number after \"L-\"");
                }
                Some(digits) => digits.parse().unwrap_or(if digits.is_empty() { 0 } else { i8::MAX }),
                None => 0,
            };
            if offset > 30 {
                return fault("is out of range", "at most 30 days before the last one");
            }
            draft.last = Some(offset);
        }
        CronField::DayOfWeek => insert(draft, field, 7),
        // Quartz passes over it; a field that has nothing else is refused as empty.
        _ => draft.any = already,
    }
    Ok(())
}

/// An item that begins with a number: `5`, `5/10`, `5-10`, `5-10/2`, `5L`, `5W`, `5#3`.
fn read_number(draft: &mut Draft, item: &str, field: CronField) -> Result<(), Fault> {
    let (value, rest) = number(item)?;
    match rest.as_bytes().first() {
        Some(b'-') => return read_range(draft, value, &rest[1..], field),
        Some(b'/') => return read_steps(draft, value, &rest[1..], field),
        Some(sign @ (b'L' | b'W' | b'#')) => read_sign(draft, *sign, &rest[1..], field)?,
        _ => {}
    }
    checked(value, field)?;
    insert(draft, field, value);
    Ok(())
}

/// The sign after a day: `L`, `W` or `#`.
fn read_sign(draft: &mut Draft, sign: u8, rest: &str, field: CronField) -> Result<(), Fault> {
    let home = match sign {
        b'W' => CronField::DayOfMonth,
        _ => CronField::DayOfWeek,
    };
    if field != home {
        let sign = char::from(sign).to_string();
        return fault(format!("has a {sign:?}, which is for {home}"), field.values());
    }
    match sign {
        b'W' => draft.nearest = true,
        b'L' => draft.last_weekday = true,
        _ => draft.nth = Some(nth(rest)?),
    }
    Ok(())
}

fn read_range(draft: &mut Draft, start: i64, rest: &str, field: CronField) -> Result<(), Fault> {
    let (end, rest) = number(rest)?;
    let step = match rest.strip_prefix('/') {
        Some(step) => {
            draft.stepped = true;
            number(step)?.0
        }
        None => 1,
    };
    checked(start, field)?;
    if field != CronField::Year && end > field.limits().1 {
        return fault("is out of range", field.values());
    }
    if step == 0 {
        insert(draft, field, start);
        return Ok(());
    }
    fill(draft, field, start, Some(end), step)
}

fn read_steps(draft: &mut Draft, start: i64, rest: &str, field: CronField) -> Result<(), Fault> {
    let (step, tail) = number(rest)?;
    if rest.len() - tail.len() == 1 && !tail.is_empty() {
        return fault("can't be read", "a number after \"/\" and nothing more");
    }
    check_step(step, field)?;
    checked(start, field)?;
    draft.stepped = true;
    if step == 0 {
        insert(draft, field, start);
        return Ok(());
    }
    fill(draft, field, start, None, step)
}

/// The digits that `text` begins with, as a number, and what follows them.
fn number(text: &str) -> Result<(i64, &str), Fault> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    match text[..end].parse::<i32>() {
        Ok(n) => Ok((n.into(), &text[end..])),
        Err(_) if end == 0 => fault("can't be read", "a number here, as in 5, 5-10 or 5-10/2"),
        Err(_) => fault("is out of range", "a smaller number"),
    }
}

/// All of `text` as a number, which may have a sign.
fn integer(text: &str) -> Result<i64, Fault> {
    match text.parse::<i32>() {
        Ok(n) => Ok(n.into()),
        Err(_) => fault("can't be read", "a number after \"/\" and nothing more"),
    }
}

/// The number after `#`.
fn nth(text: &str) -> Result<i8, Fault> {
    match text.parse::<i8>() {
        Ok(n @ 1..=5) => Ok(n),
        _ => fault("is out of range", "a number from 1 to 5 after \"#\""),
    }
}

/// Refuses a value that the field doesn't have. Any year may be asked for, though most never come;
/// 99 is not a year but Quartz's inner sign for "every".
fn checked(value: i64, field: CronField) -> Result<(), Fault> {
    let (min, max) = field.limits();
    let right = match field {
        CronField::Year => value != 99,
        _ => (min..=max).contains(&value),
    };
    if right { Ok(()) } else { fault("is out of range", field.values()) }
}

fn check_step(step: i64, field: CronField) -> Result<(), Fault> {
    if field == CronField::Year || step <= field.limits().1 {
        return Ok(());
    }
    fault("has too large a step", format!("a step of at most {}", field.limits().1))
}

fn insert(draft: &mut Draft, field: CronField, value: i64) {
    match field {
        CronField::Year => draft.years.insert(value),
        _ => draft.set |= 1 << value,
    }
}

/// Adds every `step`-th value from `start` to `end`, or to the field's largest. A range that ends
/// before it starts runs over the field's end: `22-2`, `FRI-MON`; not so in years.
fn fill(draft: &mut Draft, field: CronField, start: i64, end: Option<i64>, step: i64) -> Result<(), Fault> {
    let (min, max) = field.limits();
    let end = end.unwrap_or(max);
    if field == CronField::Year {
        return fill_years(draft, start, end, step);
    }
    let count = max - min + 1;
    let stop = if end < start { end + count } else { end };
    let mut value = start;
    while value <= stop {
        insert(draft, field, (value - min).rem_euclid(count) + min);
        value += step;
    }
    Ok(())
}

fn fill_years(draft: &mut Draft, start: i64, end: i64, step: i64) -> Result<(), Fault> {
    if end < start {
        return fault("ends before it starts", "years in ascending order");
    }
    let (first, last) = (i64::from(bits::FIRST_YEAR), i64::from(bits::LAST_YEAR));
    let skipped = (first - start).max(0);
    let mut year = start + (skipped + step - 1) / step * step;
    while year <= end.min(last) {
        draft.years.insert(year);
        year += step;
    }
    Ok(())
}
