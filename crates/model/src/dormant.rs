//! Why the scheduler leaves a live slot alone, as data. Words are made of it where it is shown.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::actor::Actor;
use crate::id::BackfillId;
use crate::jobs::JobIdError;
use crate::time::{ScheduleProblem, format_short};

/// The reason that a live slot is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dormant {
    /// Its workflow is paused.
    Paused,
    /// Its workflow is frozen: the scheduler found something wrong in itself about it.
    Frozen,
    /// Its workflow is not defined any more.
    Gone,
    /// The definition of its workflow refers to something that another project does not share.
    MissingConsent {
        /// The reference, in words.
        what: String,
        /// The line of the other project's script that allows it.
        line: String,
    },
    /// Its backfill is paused.
    BackfillPaused {
        /// The backfill.
        backfill: BackfillId,
        /// The actor that paused it.
        by: Actor,
    },
    /// The definition of its workflow has not been loaded since the start.
    Unloaded,
    /// Its workflow has no times.
    NoTimes(NoTimes),
    /// Its workflow starts later, and it was not requested.
    NotBegun {
        /// When the workflow starts.
        start: Timestamp,
    },
    /// Its workflow ended before, and it was not requested.
    Over {
        /// When the workflow ended.
        end: Timestamp,
    },
    /// Its time left the schedule.
    NotInSchedule,
    /// Its workflow has no job ids.
    NotKeyed,
    /// The definition of its workflow's jobs has a mistake.
    FaultyJobs {
        /// The mistake.
        why: String,
    },
    /// Its job id has another normal form by now.
    Renamed {
        /// The new form.
        now: Arc<str>,
    },
    /// Its job id is none of its workflow.
    NoJobId(JobIdError),
    /// It is named by a moment, and its workflow has times by now.
    NoMoments,
    /// A signal came for it, and nobody has started it yet.
    NotStarted,
}

/// The reason that a workflow has no times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTimes {
    /// Its schedule can't be resolved.
    Unresolved(ScheduleProblem),
    /// Its slots come to be by facts and requests.
    Moments,
    /// Its slots are jobs.
    Jobs,
    /// It has no schedule.
    NoSchedule,
}

impl Dormant {
    /// The code, which stays the same for ever.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Dormant::Paused => "paused",
            Dormant::Frozen => "frozen",
            Dormant::Gone => "gone",
            Dormant::MissingConsent { .. } => "not-shared",
            Dormant::BackfillPaused { .. } => "backfill-paused",
            Dormant::Unloaded => "unloaded",
            Dormant::NoTimes(_) => "no-times",
            Dormant::NotBegun { .. } => "not-begun",
            Dormant::Over { .. } => "over",
            Dormant::NotInSchedule => "not-in-schedule",
            Dormant::NotKeyed => "not-keyed",
            Dormant::FaultyJobs { .. } => "faulty-jobs",
            Dormant::Renamed { .. } => "renamed",
            Dormant::NoJobId(_) => "no-job-id",
            Dormant::NoMoments => "no-moments",
            Dormant::NotStarted => "not-started",
        }
    }
}

impl fmt::Display for Dormant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dormant::Paused => f.write_str("its workflow is paused"),
            Dormant::Frozen => {
                f.write_str("its workflow is frozen: an internal check of the scheduler failed, see Problems")
            }
            Dormant::Gone => f.write_str("its workflow is no longer defined"),
            Dormant::MissingConsent { what, line } => write!(f, "{what}; that project can allow it by {line}"),
            Dormant::BackfillPaused { backfill, by } => write!(f, "its backfill {backfill} is paused by {by}"),
            Dormant::Unloaded => f.write_str("it has not been loaded yet"),
            Dormant::NoTimes(why) => why.fmt(f),
            Dormant::NotBegun { start } => {
                write!(f, "its workflow starts only at {}: rerun the slot to run it anyway", format_short(*start))
            }
            Dormant::Over { end } => {
                write!(f, "its workflow ends at {}: rerun the slot to run it anyway", format_short(*end))
            }
            Dormant::NotInSchedule => f.write_str("its time is no longer in the workflow's schedule"),
            Dormant::NotKeyed => f.write_str("its workflow has no job ids"),
            Dormant::FaultyJobs { why } => f.write_str(why),
            Dormant::Renamed { now } => write!(f, "its job id is written {now} now"),
            Dormant::NoJobId(why) => why.fmt(f),
            Dormant::NoMoments => f.write_str("its workflow has slots by time now"),
            Dormant::NotStarted => f.write_str("a signal has come for it, and nobody has started it"),
        }
    }
}

impl fmt::Display for NoTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTimes::Unresolved(problem) => problem.fmt(f),
            NoTimes::Moments => f.write_str("facts and requests open its slots, not times: fire it"),
            NoTimes::Jobs => f.write_str("its slots are jobs, named by job ids"),
            NoTimes::NoSchedule => f.write_str("it has no schedule"),
        }
    }
}
