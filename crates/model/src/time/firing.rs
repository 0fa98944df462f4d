//! Cron expressions as event schedules have them: five fields or six.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use super::cron::{Cron, CronError};
use super::schedule::{CronSchedule, Fold, Gap};
use super::zone::Zone;

/// When an event schedule fires: an expression of five fields (minute hour day-of-month month day-of-week) or six (second
/// first), in a zone. The fields mean what they mean in Quartz, also where there are five: 1 is Sunday. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "FiringParts", into = "FiringParts")]
pub struct Firing {
    text: Arc<str>,
    schedule: CronSchedule,
}

#[derive(Serialize, Deserialize)]
struct FiringParts {
    cron: String,
    #[serde(default, skip_serializing_if = "is_utc")]
    zone: Zone,
}

fn is_utc(zone: &Zone) -> bool {
    *zone == Zone::utc()
}

/// The reason that an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FiringError {
    /// The number of fields.
    #[error(
        "\"{text}\" has {fields} fields, expected 5 (minute hour day-of-month month day-of-week) or 6 (second first), each \
         after a single space"
    )]
    Fields {
        /// The expression.
        text: String,
        /// How many there are.
        fields: usize,
    },
    /// It has no time at all.
    #[error("\"{text}\" never fires: no day is like that")]
    Never {
        /// The expression.
        text: String,
    },
    /// A field.
    #[error(transparent)]
    Field(#[from] CronError),
}

impl Firing {
    /// Reads an expression. Blanks at its end say nothing, as in Java.
    ///
    /// # Errors
    /// When it has neither five nor six fields, separated by single spaces, when a field is wrong, or when it never fires.
    pub fn parse(text: &str, zone: Zone) -> Result<Firing, FiringError> {
        let text = text.trim_end_matches(|letter: char| letter.is_ascii_whitespace());
        let cron = Cron::parse(&quartz(text)?)?;
        if cron.next_after(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).is_none() {
            return Err(FiringError::Never { text: text.to_owned() });
        }
        Ok(Firing { text: text.into(), schedule: CronSchedule::new(cron, zone, Gap::default(), Fold::default()) })
    }

    /// The expression as it was given, without blanks at its end.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        self.schedule.zone()
    }

    /// The same expression in another zone.
    #[must_use]
    pub fn within(&self, zone: Zone) -> Firing {
        let schedule = CronSchedule::new(self.schedule.cron().clone(), zone, self.schedule.gap(), self.schedule.fold());
        Firing { text: self.text.clone(), schedule }
    }

    /// Its times.
    #[must_use]
    pub fn schedule(&self) -> &CronSchedule {
        &self.schedule
    }

    /// The name of facts about its times: the expression, with the zone where that is not UTC.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        if is_utc(self.zone()) { self.text.clone() } else { format!("{} {}", self.text, self.zone()).into() }
    }
}

/// The expression with six fields. Of two day fields one must be open, so a `*` beside a chosen day becomes `?`.
fn quartz(text: &str) -> Result<Cow<'_, str>, FiringError> {
    let fields: Vec<&str> = text.split(' ').collect();
    let wrong = || FiringError::Fields { text: text.to_owned(), fields: fields.len() };
    if fields.iter().any(|field| field.is_empty()) {
        return Err(wrong());
    }
    match fields[..] {
        [_, _, _, _, _, _] => Ok(Cow::Borrowed(text)),
        [minute, hour, day, month, weekday] => {
            let weekday = if day != "?" && weekday == "*" { "?" } else { weekday };
            let day = if weekday != "?" && day == "*" { "?" } else { day };
            Ok(Cow::Owned(format!("0 {minute} {hour} {day} {month} {weekday}")))
        }
        _ => Err(wrong()),
    }
}

impl TryFrom<FiringParts> for Firing {
    type Error = FiringError;
    fn try_from(parts: FiringParts) -> Result<Firing, FiringError> {
        Firing::parse(&parts.cron, parts.zone)
    }
}

impl From<Firing> for FiringParts {
    fn from(firing: Firing) -> FiringParts {
        FiringParts { cron: firing.text.to_string(), zone: firing.zone().clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Firing, FiringError> {
        Firing::parse(text, Zone::utc())
    }

    #[test]
    fn vectors_of_the_reference() {
        let invalid =
            "* * * ?|* * * * 1 ? *|* * * ? 1 ?|2 6 ? * 0,1,4,5|* * * * 1 *|* * * * 1 1|* * * 1 1 *|* * 1 * 1|? ? ? ? ?";
        for text in invalid.split('|') {
            assert!(parse(text).is_err(), "{text}");
        }
        let valid = "* * * 1 *|* * 1 1 *|* * * 1 1|2 6 ? * 1,4,5|* * ? 1 1|* * * 1 ?|* * ? 1 *|* * * ? 1 1|* * * * 1 ?|* * * ? 1 *";
        for text in valid.split('|') {
            assert_eq!(parse(text).map(|firing| firing.text().to_owned()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn five_fields_become_six() {
        let cron = |text: &str| parse(text).expect("an expression").schedule().cron().to_string();
        assert_eq!(cron("* * * * *"), "0 * * * * ?");
        assert_eq!(cron("0 4 * * 1"), "0 0 4 ? * 1");
        assert_eq!(cron("0 4 ? * *"), "0 0 4 ? * *");
        for text in ["0 4 * * *  ", "0 4 * * *\t"] {
            assert_eq!(parse(text).map(|firing| firing.text().to_owned()), Ok("0 4 * * *".to_owned()));
        }
        assert!(parse(" 0 4 * * *").is_err() && parse("   ").is_err());
        let double = parse("0  4 * * *").expect_err("a double space").to_string();
        assert_eq!(
            parse("0 0 30 2 *").map_err(|error| error.to_string()),
            Err("\"0 0 30 2 *\" never fires: no day is like that".to_owned())
        );
        assert!(parse("0 0 29 2 *").is_ok());
        assert!(double.starts_with("\"0  4 * * *\" has 6 fields, expected 5"), "{double}");
    }
}
