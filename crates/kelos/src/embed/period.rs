//! The period that a slot is about.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use kelos_model::time::{Period as ModelPeriod, Zone};

use super::input::{Input, SlotInput};

/// The period that a slot is about: from one boundary of a calendar to the next.
///
/// It is a type of its own, which serde does not read: what serde reads is the input of a job on demand.
///
/// ```
/// use kelos::embed::{Calendar, Context, Period, Project, Rehearsal, Zone, job};
///
/// async fn visits(_: Context, day: Period, _: ()) -> Result<i64, String> {
///     Ok(day.hours())
/// }
///
/// let days = Calendar::daily(Zone::parse("Europe/Paris")?);
/// let visits = job("visits", visits).with(()).every(&days);
/// let mut rehearsal = Rehearsal::at("2026-03-27T00:00Z", Project::new("web", "1.0").add(visits))?;
/// rehearsal.run_until("2026-03-30T00:00Z")?;
/// // The day on which clocks are put forward.
/// assert_eq!(rehearsal.output::<i64>("visits", "2026-03-28T23:00Z")?, 23);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The start, by which the slot is named.
    pub start: Timestamp,
    /// The end, at which the slot is due. It is the start of the next period.
    pub end: Timestamp,
    /// The zone of the calendar.
    pub zone: Zone,
    /// The starts of the periods that it is made of: its own, or several where the job works in [batches](super::Job::in_batches).
    pub starts: Vec<Timestamp>,
}

impl Period {
    /// The date of the start, in the zone of the calendar.
    ///
    /// ```
    /// # use kelos::embed::{Context, Period};
    /// async fn visits(_: Context, day: Period, _: ()) -> Result<String, String> {
    ///     Ok(format!("/visits/{}", day.date()))
    /// }
    /// ```
    #[must_use]
    pub fn date(&self) -> Date {
        self.zone.rules().to_datetime(self.start).date()
    }

    /// The periods that it is made of, ascending: itself, or those of a [batch](super::Job::in_batches).
    ///
    /// ```
    /// # use kelos::embed::{Context, Period};
    /// async fn load(context: Context, hours: Period, _: ()) -> Result<usize, String> {
    ///     for hour in hours.periods() {
    ///         context.log(format!("loading {hour}"));
    ///     }
    ///     Ok(hours.periods().count())
    /// }
    /// ```
    pub fn periods(&self) -> impl Iterator<Item = Period> {
        let ends = self.starts.iter().skip(1).chain(std::iter::once(&self.end));
        self.starts.iter().zip(ends).map(|(start, end)| Period {
            start: *start,
            end: *end,
            zone: self.zone.clone(),
            starts: vec![*start],
        })
    }

    /// The whole hours in it: 23, 24 or 25 for a day.
    ///
    /// ```
    /// # use kelos::embed::{Context, Period};
    /// async fn mean(_: Context, day: Period, visits: i64) -> Result<i64, String> {
    ///     // Of 23 or 25 hours on two days of the year.
    ///     Ok(visits / day.hours())
    /// }
    /// ```
    #[must_use]
    pub fn hours(&self) -> i64 {
        self.end.duration_since(self.start).as_hours()
    }
}

/// A period, and what a step of a [flow](super::flow()) or a job is given besides: what those gave that it depends on, and its arguments.
///
/// ```
/// use kelos::embed::{Calendar, Context, InPeriod, flow, step};
///
/// #[derive(serde::Deserialize)]
/// struct Table {
///     table: String,
/// }
///
/// async fn load(context: Context, hour: InPeriod<Table>, _: ()) -> Result<(), String> {
///     context.log(format!("loading {} of {}", hour.input.table, hour.period));
///     Ok(())
/// }
///
/// let load = step("load", load).with(()).inputs(serde_json::json!({ "table": "clicks" }));
/// let clicks = flow("clicks", load).every(&Calendar::hourly());
/// ```
///
/// Of a job that covers others it has a list, which is named like the other job:
///
/// ```
/// # use kelos::embed::{Calendar, Context, InPeriod, Period, Zone, job};
/// #[derive(serde::Deserialize)]
/// struct Hours {
///     clicks: Vec<u64>,
/// }
///
/// async fn sum(_: Context, day: InPeriod<Hours>, _: ()) -> Result<u64, String> {
///     Ok(day.input.clicks.iter().sum())
/// }
/// # async fn count(_: Context, _: Period, _: ()) -> Result<serde_json::Value, String> { Ok(serde_json::json!({ "clicks": 3 })) }
///
/// // Each hour gives one value under the name of its job, which is the value in the list.
/// let clicks = job("clicks", count).with(()).every(&Calendar::hourly());
/// let visits = job("visits", sum).with(()).every(&Calendar::daily(Zone::utc())).covers(&clicks);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InPeriod<T> {
    /// The period of the run.
    pub period: Period,
    /// The input of the step or the run.
    pub input: T,
}

impl<T: Input> Input for InPeriod<T> {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        Ok(InPeriod { period: Period::read(slot)?, input: T::read(slot)? })
    }

    fn is_of_period() -> bool {
        true
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.start, self.end)
    }
}

impl From<ModelPeriod> for Period {
    fn from(ModelPeriod { start, end, zone }: ModelPeriod) -> Period {
        Period { start, end, zone, starts: vec![start] }
    }
}

impl Input for Period {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        let keys = &slot.workflow.keys;
        // A slot that somebody started by hand is about the period that its moment lies in.
        let around = || keys.calendar()?.period_with(slot.key.time()?);
        let period = keys.period_of_run(slot.key, slot.batch).map(|period| (period, slot.times()));
        let period = period.map(|(period, starts)| Period { starts, ..Period::from(period) });
        let period = period.or_else(|| around().map(Period::from));
        period.ok_or_else(|| format!("{} begins no period of its calendar", slot.key.short()))
    }

    fn is_of_period() -> bool {
        true
    }
}
