//! Cron expressions as event schedules have them: five fields, six or seven.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use super::cron::{Cron, CronDialect, CronError};
use super::schedule::{CronSchedule, Fold, Gap};
use super::zone::Zone;

/// When an event schedule fires: a cron expression in a zone. Five fields are read as crontab reads them, six and seven as Quartz does.
/// Cheap to clone.
///
/// Expressions of CDAP, and those that were stored before Unix's were known, have five fields that mean what they mean in Quartz:
/// see [`Firing::read_by_quartz`]. An expression that means the same either way is the same [`Firing`].
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
    /// Whether Quartz reads its five fields.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    quartz: bool,
}

fn is_utc(zone: &Zone) -> bool {
    *zone == Zone::utc()
}

/// The reason that an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FiringError {
    /// The number of fields.
    #[error(
        "\"{text}\" has {fields} fields, expected 5 (minute hour day-of-month month day-of-week), or 6 (second first) or 7 \
         (year last), each after a single space"
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
    /// Reads an expression: five fields as crontab does, six and seven as Quartz does. Blanks at its end say nothing, as in Java.
    ///
    /// # Errors
    /// When it has another number of fields, separated by single spaces, when a field is wrong, when it has control characters, or
    /// when it never fires.
    pub fn parse(text: &str, zone: Zone) -> Result<Firing, FiringError> {
        without_control_characters(text)?;
        Firing::read_by(CronDialect::Unix, text, zone, Cron::parse)
    }

    /// Reads an expression that was stored, by the dialect that was stored with it. Versions before control characters were refused took
    /// them as blanks.
    ///
    /// # Errors
    /// As [`Firing::parse`] does, but for control characters.
    pub fn read_stored(dialect: CronDialect, text: &str, zone: Zone) -> Result<Firing, FiringError> {
        Firing::read_by(dialect, text, zone, Cron::read_stored)
    }

    fn read_by(
        dialect: CronDialect,
        text: &str,
        zone: Zone,
        read: impl Fn(&str) -> Result<Cron, CronError>,
    ) -> Result<Firing, FiringError> {
        let text = trimmed(text);
        let as_quartz = quartz(text).and_then(|longer| Ok(read(&longer)?));
        if dialect == CronDialect::Quartz {
            return Firing::of(text, as_quartz?, zone);
        }
        fields(text)?;
        let cron = read(text)?;
        let is_same = |longer: &Cron| longer.has_same_times(&cron);
        let cron = as_quartz.ok().filter(is_same).unwrap_or(cron);
        Firing::of(text, cron, zone)
    }

    /// Reads an expression as Quartz does, also where it has five fields: 1 is Sunday.
    ///
    /// # Errors
    /// As [`Firing::parse`] does.
    pub fn read_by_quartz(text: &str, zone: Zone) -> Result<Firing, FiringError> {
        without_control_characters(text)?;
        Firing::read_by(CronDialect::Quartz, text, zone, Cron::parse)
    }

    fn of(text: &str, cron: Cron, zone: Zone) -> Result<Firing, FiringError> {
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

    /// The expression in words that mean its times everywhere: as it was given, but with six fields where it has five that
    /// crontab would read otherwise.
    #[must_use]
    pub fn plain_text(&self) -> &str {
        if self.is_of_quartz_alone() { self.schedule.cron().as_str() } else { &self.text }
    }

    /// Whether its times are Unix's, and not Quartz's.
    #[must_use]
    pub fn is_of_unix_alone(&self) -> bool {
        self.schedule.cron().dialect() == CronDialect::Unix
    }

    /// Whether it has five fields that mean other times to crontab than it has, or none.
    #[must_use]
    pub fn is_of_quartz_alone(&self) -> bool {
        let has_five = self.text.split(' ').count() == 5;
        let by_crontab = || Firing::read_stored(CronDialect::Unix, &self.text, self.zone().clone());
        has_five && !self.is_of_unix_alone() && by_crontab().as_ref() != Ok(self)
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

/// Refuses control characters by their places in the text that was given, of which Quartz is given another.
fn without_control_characters(text: &str) -> Result<(), CronError> {
    let text = trimmed(text);
    if text.contains(char::is_control) { Cron::parse(text).map(drop) } else { Ok(()) }
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches(|letter: char| letter.is_ascii_whitespace())
}

/// The fields of an expression.
fn fields(text: &str) -> Result<Vec<&str>, FiringError> {
    let fields: Vec<&str> = text.split(' ').collect();
    if !(5..=7).contains(&fields.len()) || fields.iter().any(|field| field.is_empty()) {
        return Err(FiringError::Fields { text: text.to_owned(), fields: fields.len() });
    }
    Ok(fields)
}

/// The expression as Quartz has it. Of two day fields one must be open, so a `*` beside a chosen day becomes `?`.
fn quartz(text: &str) -> Result<Cow<'_, str>, FiringError> {
    let [minute, hour, day, month, weekday] = fields(text)?[..] else { return Ok(Cow::Borrowed(text)) };
    let weekday = if day != "?" && weekday == "*" { "?" } else { weekday };
    let day = if weekday != "?" && day == "*" { "?" } else { day };
    Ok(Cow::Owned(format!("0 {minute} {hour} {day} {month} {weekday}")))
}

impl TryFrom<FiringParts> for Firing {
    type Error = FiringError;
    fn try_from(parts: FiringParts) -> Result<Firing, FiringError> {
        if parts.quartz {
            Firing::read_by_quartz(&parts.cron, parts.zone)
        } else {
            Firing::parse(&parts.cron, parts.zone)
        }
    }
}

impl From<Firing> for FiringParts {
    fn from(firing: Firing) -> FiringParts {
        let quartz = firing.is_of_quartz_alone();
        FiringParts { cron: firing.text.to_string(), zone: firing.zone().clone(), quartz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Firing, FiringError> {
        Firing::parse(text, Zone::utc())
    }

    fn quartz(text: &str) -> Result<Firing, FiringError> {
        Firing::read_by_quartz(text, Zone::utc())
    }

    #[test]
    fn vectors_of_the_reference() {
        let invalid = "* * * ?|* * * ? 1 ?|2 6 ? * 0,1,4,5|* * * * 1 *|* * * * 1 1|* * * 1 1 *|* * 1 * 1|? ? ? ? ?";
        for text in invalid.split('|') {
            assert!(quartz(text).is_err(), "{text}");
        }
        let valid = "* * * 1 *|* * 1 1 *|* * * 1 1|2 6 ? * 1,4,5|* * ? 1 1|* * * 1 ?|* * ? 1 *|* * * ? 1 1|* * * * 1 ?|* * * ? 1 *";
        for text in valid.split('|') {
            assert_eq!(quartz(text).map(|firing| firing.text().to_owned()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn five_fields_are_those_of_a_crontab() {
        let days = |text: &str| parse(text).expect("an expression").schedule().cron().weekdays();
        let monday = Some([false, true, false, false, false, false, false]);
        assert_eq!(days("0 4 * * 1"), monday);
        assert_eq!(days("0 4 * * MON"), monday);
        assert_eq!(days("0 0 4 ? * 2"), monday);
        assert_eq!(days("0 0 4 ? * 2 2030"), monday);
        assert_eq!(quartz("0 4 * * 2").expect("an expression").schedule().cron().weekdays(), monday);
        assert!(parse("0 4 1 * 1").expect("either day").is_of_unix_alone());
        assert!(parse("0 4 ? * 2").is_err());
    }

    #[test]
    fn five_fields_that_mean_the_same_to_both_are_the_same() {
        for text in ["* * * * *", "0 4 * * *", "*/5 8-18/2 1,15 JAN-MAR *", "0 4 ? * MON-FRI", "0 4 * * 1-7"] {
            assert_eq!(parse(text), quartz(text), "{text}");
            assert!(!parse(text).expect("an expression").is_of_unix_alone(), "{text}");
        }
        for text in ["0 4 * * 1", "0 4 */2 * *"] {
            let (unix, of_quartz) = (parse(text).expect("an expression"), quartz(text).expect("an expression"));
            assert_eq!(unix == of_quartz, text.ends_with('*'), "{text}");
        }
        let sunday = quartz("0 4 * * 1").expect("an expression");
        assert_eq!((sunday.text(), sunday.plain_text()), ("0 4 * * 1", "0 0 4 ? * 1"));
        assert_eq!(quartz("0 22-2 * * *").expect("an expression").plain_text(), "0 0 22-2 * * ?");
    }

    #[test]
    fn json_says_who_reads_five_fields_where_that_matters() {
        let json =
            |firing: Result<Firing, FiringError>| serde_json::to_string(&firing.expect("a firing")).expect("json");
        assert_eq!(json(parse("0 4 * * 1")), r#"{"cron":"0 4 * * 1"}"#);
        assert_eq!(json(quartz("0 4 * * 1")), r#"{"cron":"0 4 * * 1","quartz":true}"#);
        assert_eq!(json(quartz("0 4 * * *")), r#"{"cron":"0 4 * * *"}"#);
        for firing in [parse("0 4 * * 1"), quartz("0 4 * * 1")] {
            let read: Firing = serde_json::from_str(&json(firing.clone())).expect("a firing");
            assert_eq!(Ok(read), firing);
        }
    }

    #[test]
    fn five_fields_become_six() {
        let cron = |text: &str| quartz(text).expect("an expression").schedule().cron().to_string();
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
