//! Kinds of identifiers in job ids: the values that they may have, and their normal form.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};

/// The kind of an identifier: the values that it may have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Kind {
    /// Any text.
    #[default]
    Text,
    /// A whole number; `007` is `7`.
    Integer {
        /// The least, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<i64>,
        /// The greatest, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<i64>,
    },
    /// A day of the calendar.
    Date {
        /// The form in which it is written.
        #[serde(default)]
        form: DateForm,
    },
    /// One of these.
    Choice {
        /// The choices.
        of: Vec<Arc<str>>,
    },
    /// A text in which a regular expression is found.
    Pattern {
        /// The expression; `^` and `$` bind it to the ends.
        pattern: Pattern,
    },
}

/// The form of a day in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DateForm {
    /// `20140601`.
    #[default]
    #[serde(rename = "yyyymmdd")]
    Compact,
    /// `2014-06-01`.
    #[serde(rename = "yyyy-mm-dd")]
    Dashed,
}

impl DateForm {
    fn as_str(self) -> &'static str {
        match self {
            DateForm::Compact => "yyyymmdd",
            DateForm::Dashed => "yyyy-mm-dd",
        }
    }

    fn day(self, text: &str) -> Option<Date> {
        let numbers = match self {
            DateForm::Compact if text.len() == 8 => (text.get(..4), text.get(4..6), text.get(6..)),
            DateForm::Dashed if text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-") => {
                (text.get(..4), text.get(5..7), text.get(8..))
            }
            _ => return None,
        };
        let (Some(year), Some(month), Some(day)) = numbers else { return None };
        let digits = [year, month, day].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        let (Ok(year), Ok(month), Ok(day)) = (year.parse(), month.parse(), day.parse()) else { return None };
        Date::new(year, month, day).ok().filter(|_| digits)
    }

    /// A day in this form.
    #[must_use]
    pub fn write(self, day: Date) -> String {
        match self {
            DateForm::Compact => format!("{:04}{:02}{:02}", day.year(), day.month(), day.day()),
            DateForm::Dashed => format!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day()),
        }
    }
}

/// A regular expression that has been understood.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Pattern, String> {
        Regex::new(text).map(Pattern).map_err(|error| format!("\"{text}\" is not a regular expression: {error}"))
    }

    /// The expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Pattern::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.as_str().to_owned()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Kind {
    /// A text in its normal form: what it is compared by, and what derived job ids are made of.
    ///
    /// # Errors
    /// What was expected, completing "expected …".
    pub fn normal(&self, text: &str) -> Result<Arc<str>, String> {
        match self {
            Kind::Integer { min, max } => integer(text, *min, *max),
            _ if self.accepts(text) => Ok(text.into()),
            Kind::Date { form } => Err(format!("a day of the calendar as {}", form.as_str())),
            Kind::Choice { of } => Err(format!("one of {}", of.join(", "))),
            Kind::Pattern { pattern } => Err(format!("a text that matches {}", pattern.as_str())),
            Kind::Text => Err("a text".to_owned()),
        }
    }

    /// The start, in UTC, of the day that a value names; none where it names none.
    #[must_use]
    pub fn day(&self, value: &str) -> Option<Timestamp> {
        let Kind::Date { form } = self else { return None };
        Some(form.day(value)?.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }

    fn accepts(&self, text: &str) -> bool {
        match self {
            Kind::Text | Kind::Integer { .. } => true,
            Kind::Date { form } => form.day(text).is_some(),
            Kind::Choice { of } => of.iter().any(|one| **one == *text),
            Kind::Pattern { pattern } => pattern.0.is_match(text),
        }
    }
}

fn integer(text: &str, min: Option<i64>, max: Option<i64>) -> Result<Arc<str>, String> {
    let bounds = || match (min, max) {
        (None, None) => "a whole number".to_owned(),
        (Some(min), None) => format!("a whole number, at least {min}"),
        (None, Some(max)) => format!("a whole number, at most {max}"),
        (Some(min), Some(max)) => format!("a whole number from {min} to {max}"),
    };
    let number = text.parse::<i64>().map_err(|_| bounds())?;
    let inside = min.is_none_or(|min| min <= number) && max.is_none_or(|max| number <= max);
    if inside { Ok(number.to_string().into()) } else { Err(bounds()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(kind: &Kind, text: &str) -> Result<String, String> {
        kind.normal(text).map(|text| text.to_string())
    }

    #[test]
    fn each_kind_has_its_normal_form_and_says_what_it_expects() {
        let client = Kind::Integer { min: Some(1), max: Some(9999) };
        assert_eq!(normal(&client, "007").as_deref(), Ok("7"));
        assert_eq!(normal(&client, "11aa").unwrap_err(), "a whole number from 1 to 9999");
        assert_eq!(normal(&client, "0").unwrap_err(), "a whole number from 1 to 9999");
        let day = Kind::Date { form: DateForm::Compact };
        assert_eq!(normal(&day, "20140606").as_deref(), Ok("20140606"));
        for wrong in ["20149606", "20141299", "2014606", "2014-6-6", "+0140606", "", "äöüß"] {
            assert_eq!(normal(&day, wrong).unwrap_err(), "a day of the calendar as yyyymmdd", "{wrong}");
        }
        assert_eq!(normal(&Kind::Date { form: DateForm::Dashed }, "2016-02-29").as_deref(), Ok("2016-02-29"));
        assert!(normal(&Kind::Date { form: DateForm::Dashed }, "2015-02-29").is_err());
        let choice = Kind::Choice { of: vec!["profile".into(), "purchase".into()] };
        assert_eq!(normal(&choice, "Profile").unwrap_err(), "one of profile, purchase");
        let pattern = Kind::Pattern { pattern: Pattern::new("^(client|profile)").unwrap() };
        assert_eq!(normal(&pattern, "profile-x").as_deref(), Ok("profile-x"));
        assert_eq!(normal(&pattern, "xprofile").unwrap_err(), "a text that matches ^(client|profile)");
        assert!(Pattern::new("(").unwrap_err().starts_with("\"(\" is not a regular expression"));
    }
}
