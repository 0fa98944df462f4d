//! Calendars: what a period is. A period reaches from one boundary of a calendar to the next, and the slot that is about it is
//! named by its start.

use std::fmt;

use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::cron::{Cron, DateRule};
use super::cron_schedule::{CronSchedule, Fold, Gap};
use super::dates::Dates;
use super::text::format_short;
use super::zone::Zone;
use crate::ranges::Range;

/// The numbers of hours that a day can be divided into periods of.
pub const HOURS: [u8; 7] = [1, 2, 3, 4, 6, 8, 12];

/// A calendar: the time line cut into periods without gaps, in a zone. Cheap to clone.
///
/// Its boundaries are the times of a cron schedule, so that all that is known of times holds for them. Where clocks are put
/// forward over a midnight, the day begins with the first instant after the gap; where a midnight comes twice, with the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "CalendarUnit", into = "CalendarUnit")]
pub struct Calendar {
    unit: CalendarUnit,
    schedule: CronSchedule,
}

/// The length of a calendar's periods.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "period", rename_all = "lowercase", deny_unknown_fields)]
pub enum CalendarUnit {
    /// So many hours, from midnight in UTC.
    Hourly {
        /// The number of hours, one of [`HOURS`].
        #[serde(default = "one", skip_serializing_if = "is_one")]
        hours: u8,
    },
    /// A day of a zone, of 23, 24 or 25 hours.
    Daily {
        /// The zone.
        #[serde(default)]
        zone: Zone,
    },
    /// Seven days of a zone.
    Weekly {
        /// The zone.
        #[serde(default)]
        zone: Zone,
        /// The day of the week on which it begins.
        #[serde(default = "monday", with = "weekday")]
        first: Weekday,
    },
    /// A month of a zone.
    Monthly {
        /// The zone.
        #[serde(default)]
        zone: Zone,
    },
    /// From a business day of a zone to the next: a weekend belongs to the day before it.
    Business {
        /// The zone.
        #[serde(default)]
        zone: Zone,
        /// The days of the week that are no business days.
        #[serde(default = "weekend", skip_serializing_if = "is_weekend", with = "weekdays")]
        weekend: Vec<Weekday>,
        /// The dates that are no business days.
        #[serde(default, skip_serializing_if = "Dates::is_empty")]
        holidays: Dates,
    },
    /// From one of some dates of a zone to the next. The last date is only an end.
    Dates {
        /// The zone.
        #[serde(default)]
        zone: Zone,
        /// The dates.
        dates: Dates,
    },
}

/// The days that are no business days where nothing is said.
pub const WEEKEND: [Weekday; 2] = [Weekday::Saturday, Weekday::Sunday];

fn weekend() -> Vec<Weekday> {
    WEEKEND.to_vec()
}

fn is_weekend(days: &[Weekday]) -> bool {
    days == WEEKEND
}

fn one() -> u8 {
    1
}

fn monday() -> Weekday {
    Weekday::Monday
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_one(hours: &u8) -> bool {
    *hours == 1
}

/// A calendar without periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// A number of hours that doesn't divide a day into periods.
    #[error("{hours} hours don't divide a day: expected 1, 2, 3, 4, 6, 8 or 12, or days, weeks or months")]
    Hours {
        /// The number of hours.
        hours: u8,
    },
    /// A week without business days.
    #[error("every day of the week belongs to the weekend: expected one business day at least")]
    Weekend,
    /// So few dates that there is no period between them.
    #[error("{dates} dates have no period between them: expected two at least, of which the last is only an end")]
    Dates {
        /// The number of dates.
        dates: usize,
    },
}

/// A period: the half-open interval from one boundary of a calendar to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its start, by which its slot is named.
    pub start: Timestamp,
    /// Its end, at which its slot is due.
    pub end: Timestamp,
    /// The zone of its calendar.
    pub zone: Zone,
}

impl Period {
    /// The moments in it.
    #[must_use]
    pub fn range(&self) -> Range {
        Range::new(self.start, self.end)
    }

    /// Its length.
    #[must_use]
    pub fn length(&self) -> SignedDuration {
        self.end.duration_since(self.start)
    }
}

/// Writes `2026-03-29T00:00Z to 2026-03-30T00:00Z`.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", format_short(self.start), format_short(self.end))
    }
}

impl Calendar {
    /// Periods of so many hours, from midnight in UTC.
    ///
    /// # Errors
    /// When they don't divide a day.
    pub fn hours(hours: u8) -> Result<Calendar, CalendarError> {
        Calendar::try_from(CalendarUnit::Hourly { hours })
    }

    /// Each hour, in UTC.
    #[must_use]
    pub fn hourly() -> Calendar {
        Calendar::of(CalendarUnit::Hourly { hours: 1 })
    }

    /// Each day of a zone.
    #[must_use]
    pub fn daily(zone: Zone) -> Calendar {
        Calendar::of(CalendarUnit::Daily { zone })
    }

    /// Each week of a zone, from a day of the week on.
    #[must_use]
    pub fn weekly(zone: Zone, first: Weekday) -> Calendar {
        Calendar::of(CalendarUnit::Weekly { zone, first })
    }

    /// Each month of a zone.
    #[must_use]
    pub fn monthly(zone: Zone) -> Calendar {
        Calendar::of(CalendarUnit::Monthly { zone })
    }

    /// From a business day of a zone to the next: those of Monday to Friday that are no holidays. Friday's period reaches until Monday.
    ///
    /// ```
    /// use kelos_model::time::{Calendar, Dates, Zone};
    ///
    /// let target2: Dates = "2026-04-03 Good Friday\n2026-04-06 Easter Monday".parse()?;
    /// let days = Calendar::business_days(Zone::parse("Europe/Paris")?, &target2);
    /// let maundy_thursday = days.period_with("2026-04-04T12:00Z".parse()?).unwrap();
    /// assert_eq!(maundy_thursday.to_string(), "2026-04-01T22:00Z to 2026-04-06T22:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn business_days(zone: Zone, holidays: &Dates) -> Calendar {
        Calendar::of(CalendarUnit::Business { zone, weekend: weekend(), holidays: holidays.clone() })
    }

    /// From one of some dates of a zone to the next: the periods of an accounting year, the sprints of a team. The last date is only an end.
    ///
    /// # Errors
    /// When there are not two dates.
    pub fn of_dates(zone: Zone, dates: &Dates) -> Result<Calendar, CalendarError> {
        Calendar::try_from(CalendarUnit::Dates { zone, dates: dates.clone() })
    }

    fn of(unit: CalendarUnit) -> Calendar {
        let cron = unit.cron();
        let schedule = CronSchedule::new(cron, unit.zone(), Gap::Shift, Fold::Auto).of_periods();
        Calendar { unit, schedule }
    }

    /// The length of its periods.
    #[must_use]
    pub fn unit(&self) -> &CalendarUnit {
        &self.unit
    }

    /// Its boundaries, as the schedule of slots about the periods between them.
    #[must_use]
    pub fn schedule(&self) -> &CronSchedule {
        &self.schedule
    }

    /// Its zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        self.schedule.zone()
    }

    /// The day of its zone with which the period that begins at a moment begins; none if that is no boundary, and none of hours.
    #[must_use]
    pub fn day(&self, start: Timestamp) -> Option<Date> {
        let is_of_days = !matches!(self.unit, CalendarUnit::Hourly { .. }) && self.schedule.contains(start);
        is_of_days.then(|| start.to_zoned(self.zone().rules().clone()).date())
    }

    /// The period that begins at a moment; none if the moment is no boundary.
    #[must_use]
    pub fn period_of(&self, start: Timestamp) -> Option<Period> {
        let end = self.schedule.contains(start).then(|| self.next(start)).flatten()?;
        Some(Period { start, end, zone: self.zone().clone() })
    }

    /// The period that a moment lies in; none before 1970 and after 2199.
    #[must_use]
    pub fn period_with(&self, at: Timestamp) -> Option<Period> {
        self.period_of(self.truncate(at)?)
    }

    /// The last boundary up to a moment, which may be the moment itself.
    #[must_use]
    pub fn truncate(&self, at: Timestamp) -> Option<Timestamp> {
        self.schedule.last_until(at)
    }

    /// The first boundary from a moment on, which may be the moment itself.
    #[must_use]
    pub fn ceil(&self, at: Timestamp) -> Option<Timestamp> {
        self.schedule.first_from(at)
    }

    /// The first boundary after a moment.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next_after(after)
    }
}

impl CalendarUnit {
    fn zone(&self) -> Zone {
        match self {
            CalendarUnit::Hourly { .. } => Zone::utc(),
            CalendarUnit::Daily { zone }
            | CalendarUnit::Weekly { zone, .. }
            | CalendarUnit::Monthly { zone }
            | CalendarUnit::Business { zone, .. }
            | CalendarUnit::Dates { zone, .. } => zone.clone(),
        }
    }

    fn cron(&self) -> Cron {
        let cron = Cron::parse(&self.expression()).expect("a valid constant");
        match self {
            CalendarUnit::Business { holidays, .. } => cron.on(DateRule::Except(holidays.clone())),
            CalendarUnit::Dates { dates, .. } => cron.on(DateRule::Only(dates.clone())),
            _ => cron,
        }
    }

    fn expression(&self) -> String {
        match self {
            CalendarUnit::Hourly { hours: 1 } => "0 0 * * * ?".to_owned(),
            CalendarUnit::Hourly { hours } => format!("0 0 0/{hours} * * ?"),
            CalendarUnit::Daily { .. } | CalendarUnit::Dates { .. } => "0 0 0 * * ?".to_owned(),
            // Quartz counts from 1 = Sunday.
            CalendarUnit::Weekly { first, .. } => format!("0 0 0 ? * {}", first.to_sunday_one_offset()),
            CalendarUnit::Monthly { .. } => "0 0 0 1 * ?".to_owned(),
            CalendarUnit::Business { weekend, .. } => {
                let open = Weekday::Monday.cycle_forward().take(7).filter(|day| !weekend.contains(day));
                let open: Vec<String> = open.map(|day| day.to_sunday_one_offset().to_string()).collect();
                format!("0 0 0 ? * {}", open.join(","))
            }
        }
    }
}

impl TryFrom<CalendarUnit> for Calendar {
    type Error = CalendarError;

    fn try_from(unit: CalendarUnit) -> Result<Calendar, CalendarError> {
        match unit {
            CalendarUnit::Hourly { hours } if !HOURS.contains(&hours) => Err(CalendarError::Hours { hours }),
            CalendarUnit::Business { weekend, .. }
                if Weekday::Monday.cycle_forward().take(7).all(|day| weekend.contains(&day)) =>
            {
                Err(CalendarError::Weekend)
            }
            CalendarUnit::Dates { dates, .. } if dates.len() < 2 => Err(CalendarError::Dates { dates: dates.len() }),
            unit => Ok(Calendar::of(unit)),
        }
    }
}

impl From<Calendar> for CalendarUnit {
    fn from(calendar: Calendar) -> CalendarUnit {
        calendar.unit
    }
}

/// Writes `each hour`, `each 6 hours`, `each day of Europe/Paris`, `each week of UTC, from Monday`, `each business day of UTC, with 6
/// holidays`.
impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            CalendarUnit::Hourly { hours: 1 } => f.write_str("each hour"),
            CalendarUnit::Hourly { hours } => write!(f, "each {hours} hours"),
            CalendarUnit::Daily { zone } => write!(f, "each day of {zone}"),
            CalendarUnit::Weekly { zone, first } => write!(f, "each week of {zone}, from {first:?}"),
            CalendarUnit::Monthly { zone } => write!(f, "each month of {zone}"),
            CalendarUnit::Business { zone, holidays, .. } => {
                let (number, s) = (holidays.len(), if holidays.len() == 1 { "" } else { "s" });
                write!(f, "each business day of {zone}, with {number} holiday{s}")
            }
            CalendarUnit::Dates { zone, dates } => {
                write!(f, "from each of {} dates of {zone} to the next", dates.len())
            }
        }
    }
}

/// The written form of a day of the week: `monday`.
mod weekday {
    use jiff::civil::Weekday;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's with passes a reference")]
    pub(super) fn serialize<S: Serializer>(day: &Weekday, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&name(*day))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Weekday, D::Error> {
        let text = String::deserialize(deserializer)?;
        read(&text).map_err(serde::de::Error::custom)
    }

    pub(super) fn name(day: Weekday) -> String {
        format!("{day:?}").to_lowercase()
    }

    pub(super) fn read(text: &str) -> Result<Weekday, String> {
        let mut days = Weekday::Monday.cycle_forward().take(7);
        let wrong = || format!("unknown day {text:?}: expected one such as \"monday\" or \"sunday\"");
        days.find(|day| name(*day) == text).ok_or_else(wrong)
    }
}

/// The written form of days of the week: `["saturday", "sunday"]`.
mod weekdays {
    use jiff::civil::Weekday;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::weekday;

    pub(super) fn serialize<S: Serializer>(days: &[Weekday], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(days.iter().map(|day| weekday::name(*day)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Weekday>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().map(|name| weekday::read(name).map_err(serde::de::Error::custom)).collect()
    }
}
