//! Cron expressions in time zones, with what daylight saving does to them.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::cron::Cron;
use super::zone::Zone;

/// The treatment of a time that a zone leaves out, when clocks are put forward over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It fires at the first instant after the gap; several times lost in one gap fire there once.
    ///
    /// An expression whose hours are a wildcard or a step (`*`, `0/2`) and that has a time within the
    /// hour after the gap has no such stand-in: it just continues, and an hourly job doesn't run twice.
    #[default]
    Shift,
    /// It doesn't fire.
    Skip,
}

/// The treatment of a time that a zone has twice, when clocks are put back over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// `Both` if hours or minutes are a wildcard or a step (`*`, `0/15`), so that "every 15 minutes"
    /// stays every 15 minutes; `First` for fixed times, so that "daily at 02:30" stays daily.
    #[default]
    Auto,
    /// It fires at the first pass only.
    First,
    /// It fires at the second pass only.
    Second,
    /// It fires at both passes.
    Both,
}

/// A cron expression in a time zone, with its daylight-saving policy. Cheap to clone.
///
/// All its times are whole seconds, from 1970 to 2199 in civil time of the zone. In UTC they are
/// crontab's or Quartz's, as the number of fields has it; in a zone with daylight saving [`Gap`] and [`Fold`] say what happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CronSchedule(Arc<Parts>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    cron: Cron,
    #[serde(default)]
    zone: Zone,
    #[serde(default)]
    gap: Gap,
    #[serde(default)]
    fold: Fold,
    /// Whether a slot is about the period from its time to the next, and due at the end of that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    periods: bool,
}

static HOURLY: LazyLock<CronSchedule> = LazyLock::new(|| CronSchedule::constant("0 0 * * * ?"));
static MINUTELY: LazyLock<CronSchedule> = LazyLock::new(|| CronSchedule::constant("0 * * * * ?"));

impl CronSchedule {
    /// A schedule from its parts.
    pub fn new(cron: Cron, zone: Zone, gap: Gap, fold: Fold) -> CronSchedule {
        CronSchedule(Arc::new(Parts { cron, zone, gap, fold, periods: false }))
    }

    /// The schedule of an expression in UTC, where gaps and folds don't exist.
    pub fn utc(cron: Cron) -> CronSchedule {
        CronSchedule::new(cron, Zone::utc(), Gap::default(), Fold::default())
    }

    /// Every hour on the hour, in UTC: `0 0 * * * ?`.
    pub fn hourly() -> CronSchedule {
        HOURLY.clone()
    }

    /// Every minute on the minute, in UTC: `0 * * * * ?`.
    pub fn minutely() -> CronSchedule {
        MINUTELY.clone()
    }

    fn constant(expression: &str) -> CronSchedule {
        CronSchedule::utc(Cron::parse(expression).expect("a valid constant"))
    }

    /// The same times, as those at which periods begin: the slots are about these, and due at their ends.
    pub(super) fn of_periods(self) -> CronSchedule {
        CronSchedule(Arc::new(Parts { periods: true, ..Parts::clone(&self.0) }))
    }

    /// Whether its slots are about periods, and due at their ends.
    pub fn is_of_periods(&self) -> bool {
        self.0.periods
    }

    /// The expression.
    pub fn cron(&self) -> &Cron {
        &self.0.cron
    }

    /// The zone in which the expression is read.
    pub fn zone(&self) -> &Zone {
        &self.0.zone
    }

    /// The policy for times that a zone leaves out.
    pub fn gap(&self) -> Gap {
        self.0.gap
    }

    /// The policy for times that a zone has twice, as it was given.
    pub fn fold(&self) -> Fold {
        self.0.fold
    }

    /// The policy for times that a zone has twice, with `Auto` decided: never `Auto`.
    pub fn effective_fold(&self) -> Fold {
        match self.0.fold {
            Fold::Auto if self.cron().is_interval() => Fold::Both,
            Fold::Auto => Fold::First,
            fold => fold,
        }
    }
}
