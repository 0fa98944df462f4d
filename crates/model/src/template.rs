//! One way of filling `${year}` everywhere: paths, properties, arguments, environments.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::key::SlotKey;
use crate::time::{Period, Zone};

/// A key, and the named values that it yields: the parts of its time, and the identifiers of a job id; and those that a run is
/// given beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValues {
    key: SlotKey,
    /// The time of the key, or its moment; of a job the start, in UTC, of the day that one of its identifiers names.
    time: Option<Timestamp>,
    /// The end of the period that the slot is about, if it is about one.
    end: Option<Timestamp>,
    /// The time of the last slot that the run serves, if it may serve several.
    last: Option<Timestamp>,
    /// The zone in which times are named: that of the calendar where the slot is about a period, otherwise UTC.
    zone: Zone,
    identifiers: Vec<(Arc<str>, Arc<str>)>,
    /// The arguments of a run, by name.
    arguments: Vec<(Arc<str>, Arc<str>)>,
}

impl KeyValues {
    /// The values of a key whose identifiers are known, and whose time is that of a day that one of them names where the key has
    /// none itself.
    pub(crate) fn new(key: SlotKey, identifiers: Vec<(Arc<str>, Arc<str>)>, day: Option<Timestamp>) -> KeyValues {
        let (end, last, zone) = (None, None, Zone::utc());
        KeyValues { time: key.time().or(day), end, last, zone, key, identifiers, arguments: Vec::new() }
    }

    /// The values of a moment.
    #[must_use]
    pub fn at(time: Timestamp) -> KeyValues {
        KeyValues::new(SlotKey::Time(time), Vec::new(), None)
    }

    /// The same for a slot about a period: its start and its end are named in the zone of the calendar.
    #[must_use]
    pub fn about(self, period: Period) -> KeyValues {
        KeyValues { end: Some(period.end), zone: period.zone, ..self }
    }

    /// The same for a run that may serve several slots: the time of the last of them is named, too.
    #[must_use]
    pub fn up_to(self, last: Timestamp) -> KeyValues {
        KeyValues { last: Some(last), ..self }
    }

    /// The same with further names, which take precedence over all others. A text fills as it is, everything else as JSON.
    #[must_use]
    pub fn with<'a>(mut self, arguments: impl IntoIterator<Item = (&'a String, &'a Value)>) -> KeyValues {
        self.arguments =
            arguments.into_iter().map(|(name, value)| (name.as_str().into(), text(value).into())).collect();
        self
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &SlotKey {
        &self.key
    }

    /// The moment that the key stands for.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        self.time
    }

    /// When the slot is due: at the end of its period, or at its time.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.end.or(self.time)
    }

    /// The identifiers of a job id, in their order.
    #[must_use]
    pub fn identifiers(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.identifiers
    }

    /// The same, so many seconds later; none where time ends or there is no time. A job stays the job that it is.
    #[must_use]
    pub fn offset(&self, seconds: i64) -> Option<KeyValues> {
        let later = |at: Timestamp| at.checked_add(SignedDuration::from_secs(seconds)).ok();
        let time = later(self.time?)?;
        let end = match self.end {
            Some(end) => Some(later(end)?),
            None => None,
        };
        let key = if self.key.time().is_some() { SlotKey::Time(time) } else { self.key.clone() };
        Some(KeyValues { key, time: Some(time), end, ..self.clone() })
    }

    /// Names and values, in a fixed order: an argument takes precedence over an identifier of the same name, and that over a part
    /// of the time.
    #[must_use]
    pub fn named(&self) -> Vec<(Cow<'_, str>, String)> {
        let given = self.arguments.iter().chain(&self.identifiers);
        let given = given.map(|(name, value)| (Cow::Borrowed(&**name), value.to_string()));
        let of = |at: Option<Timestamp>| at.map(|at| parts(at, &self.zone)).into_iter().flatten();
        let start = of(self.time).map(|(name, value)| (Cow::Borrowed(name), value));
        let end = of(self.end).zip(END_NAMES).map(|((_, value), name)| (Cow::Borrowed(name), value));
        let last = of(self.last).zip(LAST_NAMES).map(|((_, value), name)| (Cow::Borrowed(name), value));
        given.chain(start).chain(end).chain(last).collect()
    }

    /// Whether a name has a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.named().iter().any(|(known, _)| known == name)
    }

    /// Replaces each `${name}` that is known; others stay as they are, because Oozie's own
    /// expressions use the same form.
    #[must_use]
    pub fn fill<'a>(&self, template: &'a str) -> Cow<'a, str> {
        if !template.contains("${") {
            return Cow::Borrowed(template);
        }
        Cow::Owned(fill_from(template, &self.named()))
    }
}

/// The names that each time has values for; of a slot about a period these are of its start, and with `end_` before them of its end.
pub const TIME_NAMES: [&str; 7] = ["year", "month", "day", "hour", "minute", "second", "millisecond"];

/// The names that have values where a slot is about a period: those of its end.
pub const END_NAMES: [&str; 7] =
    ["end_year", "end_month", "end_day", "end_hour", "end_minute", "end_second", "end_millisecond"];

/// The names that have values where a run may serve several slots: those of the time of the last.
pub const LAST_NAMES: [&str; 7] =
    ["last_year", "last_month", "last_day", "last_hour", "last_minute", "last_second", "last_millisecond"];

/// Whether a name is that of a part of a time, which has a value where a slot has such a time.
#[must_use]
pub fn is_part_of_time(name: &str) -> bool {
    [TIME_NAMES, END_NAMES, LAST_NAMES].iter().any(|names| names.contains(&name))
}

/// The names in the placeholders of a template that consist of letters, digits and `_`. Others, such as `${wf:id()}`, are nobody's
/// names here.
pub fn plain_placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split("${").skip(1).filter_map(|from| {
        let (name, _) = from.split_once('}')?;
        let is_plain = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        (is_plain && name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')).then_some(name)
    })
}

/// The parts of a time in a zone.
pub(crate) fn parts(time: Timestamp, zone: &Zone) -> [(&'static str, String); 7] {
    let t = time.to_zoned(zone.rules().clone()).datetime();
    [
        ("year", format!("{:04}", t.year())),
        ("month", format!("{:02}", t.month())),
        ("day", format!("{:02}", t.day())),
        ("hour", format!("{:02}", t.hour())),
        ("minute", format!("{:02}", t.minute())),
        ("second", format!("{:02}", t.second())),
        ("millisecond", format!("{:03}", t.millisecond())),
    ]
}

/// Replaces each `${name}` found in `values`, in one pass: a value that looks like a template is not filled again.
#[must_use]
pub fn fill_from<N: AsRef<str>>(template: &str, values: &[(N, String)]) -> String {
    let mut filled = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        filled.push_str(before);
        let known = from.find('}').and_then(|end| {
            let name = &from[2..end];
            values.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| (value, end))
        });
        match known {
            Some((value, end)) => {
                filled.push_str(value);
                rest = &from[end + 1..];
            }
            None => {
                filled.push_str("${");
                rest = &from[2..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// A value as a template is filled with it: a text as it is, everything else as JSON.
#[must_use]
pub fn text(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_and_others_stay() {
        let values = KeyValues::at("2015-09-03T04:05:06.007Z".parse().unwrap());
        let filled = values.fill("/x/${year}-${month}-${day}/${hour}${minute}${second}.${millisecond}/${wf:id()}/${");
        assert_eq!(filled, "/x/2015-09-03/040506.007/${wf:id()}/${");
    }

    #[test]
    fn names_in_placeholders_are_found() {
        let names: Vec<&str> = plain_placeholders("${year}/${wf:id()}/${a b}${größe_1}${}${1}$${x}${open").collect();
        assert_eq!(names, ["year", "größe_1", "x"]);
    }

    #[test]
    fn each_name_of_a_time_has_a_value() {
        assert_eq!(parts(Timestamp::UNIX_EPOCH, &Zone::utc()).map(|(name, _)| name), TIME_NAMES);
    }

    #[test]
    fn an_argument_goes_before_a_part_of_the_time() {
        let given = [("day", "${month}".into()), ("cleanup_dir", "/tmp".into()), ("rows", Value::from(12))];
        let given = given.map(|(name, value): (&str, Value)| (name.to_owned(), value));
        let values = KeyValues::at("2015-09-03T04:05:06.007Z".parse().unwrap());
        let values = values.with(given.iter().map(|(name, value)| (name, value)));
        assert_eq!(values.fill("${cleanup_dir}/${year}/${day}/${rows}"), "/tmp/2015/${month}/12");
    }
}
