//! Times: schedules, cron expressions of triggers, windows of the day.

use std::sync::Arc;

use jiff::civil::Weekday;
use kelos_model::WorkflowId;
use kelos_model::time::Window;
use kelos_model::time::schedule::{Fold, Gap, Schedule};
use kelos_model::time::{Calendar, CalendarUnit, Cron, CronDialect, CronSchedule, Dates, Firing, WEEKEND, Zone};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::StoredName;
use crate::stored::form::{As, Form, forms};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Schedule", rename_all = "snake_case")]
pub(super) enum StoredSchedule {
    Cron(#[serde(with = "As::<StoredCronSchedule>")] CronSchedule),
    Dependent(#[serde(with = "As::<StoredName>")] WorkflowId),
    Calendar(#[serde(with = "As::<StoredCalendar>")] Calendar),
}

/// The length of a calendar's periods, with its zone.
#[derive(Serialize, Deserialize)]
#[serde(tag = "period", rename_all = "lowercase", deny_unknown_fields)]
enum StoredCalendar {
    Hourly {
        #[serde(default = "one", skip_serializing_if = "is_one")]
        hours: u8,
    },
    Daily {
        #[serde(with = "As::<StoredZone>")]
        zone: Zone,
    },
    Weekly {
        #[serde(with = "As::<StoredZone>")]
        zone: Zone,
        #[serde(with = "As::<StoredWeekday>")]
        first: Weekday,
    },
    Monthly {
        #[serde(with = "As::<StoredZone>")]
        zone: Zone,
    },
    Business {
        #[serde(with = "As::<StoredZone>")]
        zone: Zone,
        #[serde(default = "usual_weekend", skip_serializing_if = "is_usual_weekend")]
        weekend: Vec<StoredDay>,
        #[serde(default, skip_serializing_if = "Dates::is_empty", with = "As::<StoredDates>")]
        holidays: Dates,
    },
    Dates {
        #[serde(with = "As::<StoredZone>")]
        zone: Zone,
        #[serde(with = "As::<StoredDates>")]
        dates: Dates,
    },
}

/// A day of the week in a list.
#[derive(PartialEq, Serialize, Deserialize)]
struct StoredDay(#[serde(with = "As::<StoredWeekday>")] Weekday);

fn usual_weekend() -> Vec<StoredDay> {
    WEEKEND.map(StoredDay).into()
}

fn is_usual_weekend(days: &[StoredDay]) -> bool {
    days == usual_weekend()
}

/// Dates, each as its text.
pub(super) struct StoredDates;

impl Form<Dates> for StoredDates {
    fn write<S: Serializer>(value: &Dates, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(value.iter().map(|date| date.to_string()))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dates, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.join("\n").parse().map_err(D::Error::custom)
    }
}

fn one() -> u8 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_one(hours: &u8) -> bool {
    *hours == 1
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Weekday", rename_all = "lowercase")]
enum StoredWeekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Form<Calendar> for StoredCalendar {
    fn write<S: Serializer>(value: &Calendar, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = match value.unit().clone() {
            CalendarUnit::Hourly { hours } => StoredCalendar::Hourly { hours },
            CalendarUnit::Daily { zone } => StoredCalendar::Daily { zone },
            CalendarUnit::Weekly { zone, first } => StoredCalendar::Weekly { zone, first },
            CalendarUnit::Monthly { zone } => StoredCalendar::Monthly { zone },
            CalendarUnit::Business { zone, weekend, holidays } => {
                StoredCalendar::Business { zone, weekend: weekend.into_iter().map(StoredDay).collect(), holidays }
            }
            CalendarUnit::Dates { zone, dates } => StoredCalendar::Dates { zone, dates },
        };
        stored.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Calendar, D::Error> {
        let unit = match StoredCalendar::deserialize(deserializer)? {
            StoredCalendar::Hourly { hours } => CalendarUnit::Hourly { hours },
            StoredCalendar::Daily { zone } => CalendarUnit::Daily { zone },
            StoredCalendar::Weekly { zone, first } => CalendarUnit::Weekly { zone, first },
            StoredCalendar::Monthly { zone } => CalendarUnit::Monthly { zone },
            StoredCalendar::Business { zone, weekend, holidays } => CalendarUnit::Business {
                zone,
                weekend: weekend.into_iter().map(|StoredDay(day)| day).collect(),
                holidays,
            },
            StoredCalendar::Dates { zone, dates } => CalendarUnit::Dates { zone, dates },
        };
        Calendar::try_from(unit).map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Gap", rename_all = "snake_case")]
enum StoredGap {
    Shift,
    Skip,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Fold", rename_all = "snake_case")]
enum StoredFold {
    Auto,
    First,
    Second,
    Both,
}

/// A cron expression, as it was written.
struct StoredCron;

impl Form<Cron> for StoredCron {
    fn write<S: Serializer>(value: &Cron, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.as_str())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cron, D::Error> {
        Cron::read_stored(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A zone, by its name.
pub(super) struct StoredZone;

impl Form<Zone> for StoredZone {
    fn write<S: Serializer>(value: &Zone, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.name())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zone, D::Error> {
        Zone::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn is_utc(zone: &Zone) -> bool {
    *zone == Zone::utc()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCronSchedule {
    #[serde(with = "As::<StoredCron>")]
    cron: Cron,
    #[serde(default, with = "As::<StoredZone>")]
    zone: Zone,
    #[serde(default, with = "As::<StoredGap>")]
    gap: Gap,
    #[serde(default, with = "As::<StoredFold>")]
    fold: Fold,
}

impl Form<CronSchedule> for StoredCronSchedule {
    fn write<S: Serializer>(value: &CronSchedule, serializer: S) -> Result<S::Ok, S::Error> {
        let (cron, zone) = (value.cron().clone(), value.zone().clone());
        StoredCronSchedule { cron, zone, gap: value.gap(), fold: value.fold() }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CronSchedule, D::Error> {
        let StoredCronSchedule { cron, zone, gap, fold } = StoredCronSchedule::deserialize(deserializer)?;
        Ok(CronSchedule::new(cron, zone, gap, fold))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredFiring {
    cron: Arc<str>,
    #[serde(default, skip_serializing_if = "is_utc", with = "As::<StoredZone>")]
    zone: Zone,
    /// Whether crontab reads it, which had five fields read by Quartz before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unix: bool,
}

impl Form<Firing> for StoredFiring {
    fn write<S: Serializer>(value: &Firing, serializer: S) -> Result<S::Ok, S::Error> {
        let unix = value.is_of_unix_alone();
        StoredFiring { cron: value.text().into(), zone: value.zone().clone(), unix }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Firing, D::Error> {
        let StoredFiring { cron, zone, unix } = StoredFiring::deserialize(deserializer)?;
        let dialect = if unix { CronDialect::Unix } else { CronDialect::Quartz };
        Firing::read_stored(dialect, &cron, zone).map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredWindow {
    start: Arc<str>,
    end: Arc<str>,
    #[serde(default, with = "As::<StoredZone>")]
    zone: Zone,
}

impl Form<Window> for StoredWindow {
    fn write<S: Serializer>(value: &Window, serializer: S) -> Result<S::Ok, S::Error> {
        let (start, end) = (value.start().into(), value.end().into());
        StoredWindow { start, end, zone: value.zone().clone() }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Window, D::Error> {
        let StoredWindow { start, end, zone } = StoredWindow::deserialize(deserializer)?;
        Window::new(&start, &end, zone).map_err(D::Error::custom)
    }
}

forms! {
    StoredSchedule of Schedule,
    StoredGap of Gap,
    StoredFold of Fold,
    StoredWeekday of Weekday,
}
