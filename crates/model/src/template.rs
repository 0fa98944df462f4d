//! One way of filling `${year}` everywhere: paths, properties, arguments, environments.

use std::borrow::Cow;

use crate::key::SlotKey;

/// The named values that a key yields, in a fixed order.
#[must_use]
pub fn values(key: &SlotKey) -> Vec<(&'static str, String)> {
    match key {
        SlotKey::Time(at) => {
            let t = at.to_zoned(jiff::tz::TimeZone::UTC).datetime();
            vec![
                ("year", format!("{:04}", t.year())),
                ("month", format!("{:02}", t.month())),
                ("day", format!("{:02}", t.day())),
                ("hour", format!("{:02}", t.hour())),
                ("minute", format!("{:02}", t.minute())),
                ("second", format!("{:02}", t.second())),
                ("millisecond", format!("{:03}", t.millisecond())),
            ]
        }
    }
}

/// Replaces each `${name}` that the key knows; others stay as they are, because Oozie's own
/// expressions use the same form.
#[must_use]
pub fn fill<'a>(template: &'a str, key: &SlotKey) -> Cow<'a, str> {
    if !template.contains("${") {
        return Cow::Borrowed(template);
    }
    Cow::Owned(fill_from(template, &values(key)))
}

/// Replaces each `${name}` found in `values`, in one pass: a value that looks like a template is not filled again.
#[must_use]
pub fn fill_from(template: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        filled.push_str(before);
        let known = from.find('}').and_then(|end| {
            let name = &from[2..end];
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, end))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_and_others_stay() {
        let key = SlotKey::parse("2015-09-03T04:05:06.007Z").unwrap();
        let filled = fill("/x/${year}-${month}-${day}/${hour}${minute}${second}.${millisecond}/${wf:id()}/${", &key);
        assert_eq!(filled, "/x/2015-09-03/040506.007/${wf:id()}/${");
    }
}
