//! Deadlines: the moment until which a slot should have succeeded.

use std::fmt;

use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Span, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::{Dates, DayTime, WEEKEND, WindowError, Zone, format_duration, parse_duration};

/// The number of days that a deadline may lie behind the first one that is possible.
pub const MOST_DAYS: u32 = 366;

/// So many days in a row are looked through for a deadline: ten years, however many of them are holidays.
const DAYS_TO_LOOK: usize = 3660;

/// The forms in which a deadline is written.
const FORM: &str = "a length of time such as \"2h\", or {at: \"07:30\", zone: \"Europe/Berlin\"}";

/// The deadline of a workflow's slots. It is counted from the moment at which a slot is due: its time, or the end of its period; of a slot
/// without a time, and of a slot that a person or a dependency opened later, from its opening.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "DeadlineForm")]
pub enum Deadline {
    /// So many seconds later.
    After(u64),
    /// At a time of the day.
    At(LocalDeadline),
}

/// A time of the day in a zone: the first such time from the given moment on, or so many days later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDeadline {
    time: DayTime,
    zone: Zone,
    days: u32,
    business_days: bool,
    holidays: Dates,
}

/// The written form of a deadline.
#[derive(Serialize)]
#[serde(untagged)]
enum DeadlineForm {
    After(String),
    At(LocalForm),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LocalForm {
    at: String,
    #[serde(default)]
    zone: Option<Zone>,
    #[serde(default, skip_serializing_if = "is_zero")]
    days: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    business_days: bool,
    #[serde(default, skip_serializing_if = "Dates::is_empty")]
    holidays: Dates,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(days: &u32) -> bool {
    *days == 0
}

/// A value that is no deadline; the message says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeadlineError(String);

impl Deadline {
    /// Reads a deadline: a text such as `2h`, or an object with a time of the day. A zone that is not said is the given one.
    ///
    /// # Errors
    /// When the value has another form.
    pub fn read(value: &Value, zone: &Zone) -> Result<Deadline, DeadlineError> {
        match value {
            Value::String(text) => Deadline::of_text(text),
            Value::Object(_) => {
                let form = LocalForm::deserialize(value)
                    .map_err(|error| DeadlineError(format!("{error}; expected {FORM}")))?;
                LocalDeadline::of(form, zone).map(Deadline::At)
            }
            _ => Err(unreadable(value)),
        }
    }

    /// Reads a length of time such as `2h`.
    ///
    /// # Errors
    /// When the text has another form, or says no time at all.
    pub fn of_text(text: &str) -> Result<Deadline, DeadlineError> {
        let seconds = parse_duration(text).ok().and_then(|seconds| u64::try_from(seconds).ok());
        let seconds = seconds.filter(|seconds| *seconds > 0).map(Deadline::After);
        seconds.ok_or_else(|| unreadable(&Value::from(text)))
    }

    /// The deadline of what was due at a moment; none beyond the end of time, or where ten years have no business day.
    #[must_use]
    pub fn after(&self, due: Timestamp) -> Option<Timestamp> {
        match self {
            Deadline::After(seconds) => due.checked_add(SignedDuration::from_secs(i64::try_from(*seconds).ok()?)).ok(),
            Deadline::At(local) => local.after(due),
        }
    }
}

impl From<LocalDeadline> for Deadline {
    fn from(local: LocalDeadline) -> Deadline {
        Deadline::At(local)
    }
}

/// A second at least.
impl From<std::time::Duration> for Deadline {
    fn from(length: std::time::Duration) -> Deadline {
        Deadline::After(length.as_secs().max(1))
    }
}

fn unreadable(value: &Value) -> DeadlineError {
    DeadlineError(format!("{value} is no deadline: expected {FORM}"))
}

impl LocalDeadline {
    fn of(form: LocalForm, zone: &Zone) -> Result<LocalDeadline, DeadlineError> {
        let LocalForm { at, zone: own, days, business_days, holidays } = form;
        let local = LocalDeadline::new(&at, own.unwrap_or_else(|| zone.clone()))?;
        match business_days {
            true => local.business_days_later(days, &holidays),
            false if holidays.is_empty() => local.days_later(days),
            false => {
                Err(DeadlineError("holidays without business days: expected businessDays: true beside them".to_owned()))
            }
        }
    }

    /// The first such time of a zone, `07:30`.
    ///
    /// # Errors
    /// When it is no time of the day.
    pub fn new(at: &str, zone: Zone) -> Result<LocalDeadline, DeadlineError> {
        let time = at.parse().map_err(|error: WindowError| DeadlineError(error.to_string()))?;
        Ok(LocalDeadline { time, zone, days: 0, business_days: false, holidays: Dates::default() })
    }

    /// The same time so many days later.
    ///
    /// # Errors
    /// When they are more than [`MOST_DAYS`].
    pub fn days_later(self, days: u32) -> Result<LocalDeadline, DeadlineError> {
        match days > MOST_DAYS {
            true => Err(DeadlineError(format!("{days} days are too many: expected {MOST_DAYS} at most"))),
            false => Ok(LocalDeadline { days, ..self }),
        }
    }

    /// The same time so many business days later, and with 0 on a business day: one of Monday to Friday that is no holiday.
    ///
    /// # Errors
    /// When they are more than [`MOST_DAYS`].
    pub fn business_days_later(self, days: u32, holidays: &Dates) -> Result<LocalDeadline, DeadlineError> {
        LocalDeadline { business_days: true, holidays: holidays.clone(), ..self }.days_later(days)
    }

    /// The time of the day, as it was given.
    #[must_use]
    pub fn time(&self) -> &str {
        self.time.text()
    }

    /// The zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The number of days that it lies behind the first one that is possible.
    #[must_use]
    pub fn days(&self) -> u32 {
        self.days
    }

    /// Whether only business days count.
    #[must_use]
    pub fn is_by_business_days(&self) -> bool {
        self.business_days
    }

    /// The dates that are no business days.
    #[must_use]
    pub fn holidays(&self) -> &Dates {
        &self.holidays
    }

    fn after(&self, due: Timestamp) -> Option<Timestamp> {
        let rules = self.zone.rules();
        let first = rules.to_datetime(due).date();
        let days = first.series(Span::new().days(1)).take(DAYS_TO_LOOK).filter(|day| self.counts(*day));
        // A time that clocks leave out comes as much later; of one that they repeat, the first counts.
        let moments = days.filter_map(|day| {
            let at = rules.to_ambiguous_timestamp(day.to_datetime(self.time.civil()?));
            at.compatible().ok()
        });
        moments.filter(|at| *at >= due).nth(usize::try_from(self.days).ok()?)
    }

    /// Whether a day is one on which it can be.
    fn counts(&self, day: Date) -> bool {
        !self.business_days || !is_weekend(day.weekday()) && !self.holidays.contains(day)
    }
}

fn is_weekend(day: Weekday) -> bool {
    WEEKEND.contains(&day)
}

/// Writes `2h`, or `07:30 Europe/Berlin, 1 business day later`.
impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deadline::After(seconds) => write!(f, "{}", format_duration(i64::try_from(*seconds).unwrap_or(i64::MAX))),
            Deadline::At(local) => {
                write!(f, "{} {}", local.time.text(), local.zone)?;
                let kind = if local.business_days { "business day" } else { "day" };
                match local.days {
                    0 if local.business_days => f.write_str(", on a business day"),
                    0 => Ok(()),
                    1 => write!(f, ", 1 {kind} later"),
                    days => write!(f, ", {days} {kind}s later"),
                }
            }
        }
    }
}

impl TryFrom<Value> for Deadline {
    type Error = DeadlineError;

    fn try_from(value: Value) -> Result<Deadline, DeadlineError> {
        Deadline::read(&value, &Zone::utc())
    }
}

impl From<Deadline> for DeadlineForm {
    fn from(deadline: Deadline) -> DeadlineForm {
        match &deadline {
            Deadline::After(_) => DeadlineForm::After(deadline.to_string()),
            Deadline::At(local) => DeadlineForm::At(LocalForm {
                at: local.time.text().to_owned(),
                zone: Some(local.zone.clone()),
                days: local.days,
                business_days: local.business_days,
                holidays: local.holidays.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Actor;
    use crate::event::{Origin, SlotEvent};
    use crate::slot::apply;
    use crate::state::SlotState;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn deadline(value: &Value) -> Deadline {
        Deadline::read(value, &Zone::utc()).expect("a deadline")
    }

    fn after(value: &Value, due: &str) -> String {
        deadline(value).after(at(due)).map(|at| at.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_length_of_time_counts_from_the_moment_at_which_a_slot_is_due() {
        assert_eq!(after(&json!("2h"), "2026-03-01T00:00Z"), "2026-03-01T02:00:00Z");
        assert_eq!(Deadline::After(u64::MAX).after(at("2026-03-01T00:00Z")), None);
    }

    #[test]
    fn a_time_of_the_day_is_the_first_from_then_on() {
        let early = json!({"at": "07:30", "zone": "Europe/Berlin"});
        assert_eq!(after(&early, "2026-03-01T00:00Z"), "2026-03-01T06:30:00Z");
        assert_eq!(after(&early, "2026-03-01T06:30Z"), "2026-03-01T06:30:00Z", "the moment itself");
        assert_eq!(after(&early, "2026-03-01T06:31Z"), "2026-03-02T06:30:00Z");
        let later = json!({"at": "07:30", "zone": "Europe/Berlin", "days": 2});
        assert_eq!(after(&later, "2026-03-01T00:00Z"), "2026-03-03T06:30:00Z");
    }

    #[test]
    fn clocks_that_are_put_forward_or_back_move_the_moment_and_not_the_time() {
        let early = json!({"at": "07:30", "zone": "Europe/Berlin"});
        // On 2026-03-29 clocks in Berlin go from 02:00 to 03:00, on 2026-10-25 from 03:00 to 02:00.
        assert_eq!(after(&early, "2026-03-28T23:00Z"), "2026-03-29T05:30:00Z");
        assert_eq!(after(&early, "2026-10-24T22:00Z"), "2026-10-25T06:30:00Z");
        let night = json!({"at": "02:30", "zone": "Europe/Berlin"});
        assert_eq!(after(&night, "2026-03-28T23:00Z"), "2026-03-29T01:30:00Z", "left out: 03:30");
        assert_eq!(after(&night, "2026-10-24T22:00Z"), "2026-10-25T00:30:00Z", "repeated: the first");
        assert_eq!(after(&night, "2026-10-25T01:00Z"), "2026-10-26T01:30:00Z", "the second is none");
    }

    #[test]
    fn business_days_pass_over_weekends_and_holidays() {
        let business = |days: u32| json!({"at": "09:00", "days": days, "businessDays": true, "holidays": ["2026-04-03", "2026-04-06"]});
        // 2026-04-02 is the Thursday before Easter.
        assert_eq!(after(&business(0), "2026-04-02T00:00Z"), "2026-04-02T09:00:00Z");
        assert_eq!(after(&business(1), "2026-04-02T00:00Z"), "2026-04-07T09:00:00Z");
        assert_eq!(after(&business(0), "2026-04-04T00:00Z"), "2026-04-07T09:00:00Z");
    }

    #[test]
    fn what_is_no_deadline_is_refused_with_what_was_expected() {
        let refused = |value: Value| Deadline::read(&value, &Zone::utc()).expect_err("no deadline").to_string();
        for value in [json!("soon"), json!("0s"), json!("-2h"), json!(5), json!(null)] {
            assert_eq!(refused(value.clone()), format!("{value} is no deadline: expected {FORM}"));
        }
        assert!(refused(json!({"at": "25:00"})).contains("expected HH:mm"));
        assert!(refused(json!({"at": "07:30", "zone": "Berlin"})).contains("Europe/Berlin"));
        assert!(refused(json!({"at": "07:30", "day": 1})).contains("unknown field `day`"));
        assert_eq!(refused(json!({"at": "07:30", "days": 367})), "367 days are too many: expected 366 at most");
        assert!(refused(json!({"at": "07:30", "holidays": ["2026-12-25"]})).contains("expected businessDays: true"));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        for (value, words) in [
            (json!("90m"), "90m"),
            (json!({"at": "7:30", "zone": "Europe/Berlin"}), "7:30 Europe/Berlin"),
            (json!({"at": "07:30", "zone": "UTC", "businessDays": true}), "07:30 UTC, on a business day"),
            (json!({"at": "07:30", "zone": "UTC", "days": 1}), "07:30 UTC, 1 day later"),
            (
                json!({"at": "07:30", "zone": "UTC", "days": 2, "businessDays": true, "holidays": ["2026-12-25"]}),
                "07:30 UTC, 2 business days later",
            ),
        ] {
            let read = deadline(&value);
            assert_eq!((serde_json::to_value(&read).expect("json"), read.to_string()), (value, words.to_owned()));
        }
    }

    #[test]
    fn a_slot_is_late_once_for_each_opening() {
        let moment = at("2026-03-01T05:00Z");
        let late = SlotEvent::Late { deadline: moment };
        let slot = apply(None, &SlotEvent::planned(Origin::Schedule, 0), moment, 1).expect("a slot");
        let slot = apply(Some(slot), &late, moment, 2).expect("it is late");
        assert_eq!((slot.late, slot.state, slot.last_event), (Some(moment), SlotState::Waiting, 2));
        assert_eq!(apply(Some(slot.clone()), &late, moment, 3), None);
        let by = || Actor::system("t");
        let killed = apply(Some(slot), &SlotEvent::Killed { by: by(), reason: None }, moment, 3).expect("it is killed");
        assert_eq!((killed.late, apply(Some(killed.clone()), &late, moment, 4)), (Some(moment), None));
        let reopened = SlotEvent::Reopened { by: by(), reason: None, priority: 0, backfill: None };
        assert_eq!(apply(Some(killed), &reopened, moment, 4).expect("it is open").late, None);
    }
}
