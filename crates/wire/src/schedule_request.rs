//! The definition of an event schedule in a request: all of a new one, or the changes to one.

use std::collections::BTreeMap;

use kelos_model::time::Window;
use kelos_model::time::Zone;
use kelos_model::workflow::CatchUp;
use kelos_model::{Constraint, Gate, Otherwise};
use serde::{Deserialize, Serialize};

use crate::value::present;
use crate::{ConstraintDto, Instant, TriggerDto};

/// The definition of a new event schedule, or the changes to one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleRequest {
    /// Its name, unique in its project. Required for a new schedule; the name of an existing one can't be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project that owns it; by default that of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The workflow that it runs, by its id or by its name in the project. Required for a new schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its description; null for none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    /// Its trigger. Required for a new schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerDto>,
    /// Its constraints, which are evaluated once the trigger is met; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Vec<ConstraintRequest>>,
    /// Arguments of its runs; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, String>>,
    /// Milliseconds after its creation at which a slot that has not been queued expires; a day by default, and for null.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub timeout_millis: Option<Option<u64>>,
    /// The time zone of cron expressions and windows that name none, such as `Europe/Berlin`; UTC by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Facts before this time are ignored; null for no limit.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub start_time: Option<Option<Instant>>,
    /// Facts at this time and later are ignored; null for no limit.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub end_time: Option<Option<Instant>>,
    /// The longest random delay of a cron time, in milliseconds; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_millis: Option<u64>,
    /// The handling of misfires; `latest` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUpRequest>,
    /// Whether a new schedule is enabled at once. Not for an existing one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// The handling of misfires, which are cron times that passed while no server was scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CatchUpRequest {
    /// Misfires are ignored unless they are less than a minute late.
    Skip,
    /// The latest misfire counts.
    Latest,
    /// All misfires count, up to a thousand.
    All,
}

impl From<CatchUpRequest> for CatchUp {
    fn from(catch_up: CatchUpRequest) -> CatchUp {
        match catch_up {
            CatchUpRequest::Skip => CatchUp::Skip,
            CatchUpRequest::Latest => CatchUp::Latest,
            CatchUpRequest::All => CatchUp::All,
        }
    }
}

/// A constraint in a request, in the same form as in answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ConstraintRequest {
    /// A limit of the program's live runs.
    Concurrency {
        /// The number of live runs, from 1, at which the constraint is not met.
        limit: u32,
        /// The effect on a slot that does not meet it; `abort` by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        otherwise: Option<OtherwiseRequest>,
    },
    /// A delay after the creation of the slot.
    Delay {
        /// The delay in milliseconds, from 1.
        millis: u64,
        /// The effect on a slot that does not meet it: only `wait` is possible.
        #[serde(skip_serializing_if = "Option::is_none")]
        otherwise: Option<OtherwiseRequest>,
    },
    /// A window of the day.
    Window {
        /// The time of day at which it opens, such as `22:00`.
        from: String,
        /// The time of day at which it closes, such as `06:00`.
        to: String,
        /// Its time zone; that of the schedule by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        /// The effect on a slot that does not meet it; `wait` by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        otherwise: Option<OtherwiseRequest>,
    },
    /// A minimum time since the start of the program's last run that is live or succeeded.
    SinceLastRun {
        /// The time in milliseconds, from 1.
        millis: u64,
        /// The effect on a slot that does not meet it; `abort` by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        otherwise: Option<OtherwiseRequest>,
    },
}

/// The effect of a constraint on a slot that does not meet it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OtherwiseRequest {
    /// It waits until the constraint is met.
    Wait,
    /// It is aborted.
    Abort,
}

impl ConstraintRequest {
    /// Its `type`, the same word as [`ConstraintDto::kind`].
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            ConstraintRequest::Concurrency { .. } => "concurrency",
            ConstraintRequest::Delay { .. } => "delay",
            ConstraintRequest::Window { .. } => "window",
            ConstraintRequest::SinceLastRun { .. } => "since-last-run",
        }
    }

    /// The constraint of the model; a window that names no zone is in `zone`.
    ///
    /// # Errors
    /// When a time of day or a zone is invalid, in words.
    pub fn read(self, zone: &Zone) -> Result<Constraint, String> {
        let (gate, otherwise) = match self {
            ConstraintRequest::Concurrency { limit, otherwise } => (Gate::Concurrency(limit), otherwise),
            ConstraintRequest::Delay { millis, otherwise } => (Gate::Delay(millis), otherwise),
            ConstraintRequest::SinceLastRun { millis, otherwise } => (Gate::SinceLastRun(millis), otherwise),
            ConstraintRequest::Window { from, to, zone: own, otherwise } => {
                let own = own.map(|name| Zone::parse(&name).map_err(|error| error.to_string())).transpose()?;
                let window = Window::new(&from, &to, own.unwrap_or_else(|| zone.clone()));
                (Gate::Window(window.map_err(|error| error.to_string())?), otherwise)
            }
        };
        let by_default = Constraint::new(gate);
        let otherwise = otherwise.map(|otherwise| match otherwise {
            OtherwiseRequest::Wait => Otherwise::Wait,
            OtherwiseRequest::Abort => Otherwise::Abort,
        });
        Ok(Constraint { otherwise: otherwise.unwrap_or(by_default.otherwise), ..by_default })
    }
}

impl TryFrom<&ConstraintDto> for ConstraintRequest {
    type Error = String;

    /// The request for a constraint that a server answered with.
    fn try_from(constraint: &ConstraintDto) -> Result<ConstraintRequest, String> {
        let kind = constraint.kind.as_str();
        let lacking = |field: &str| format!("a {kind} constraint has no `{field}`");
        let otherwise = match constraint.otherwise.as_str() {
            "wait" => Some(OtherwiseRequest::Wait),
            "abort" => Some(OtherwiseRequest::Abort),
            "" => None,
            other => return Err(format!("a {kind} constraint has an unknown `otherwise`: {other}")),
        };
        let millis = || constraint.millis.ok_or_else(|| lacking("millis"));
        Ok(match kind {
            "concurrency" => {
                let limit = constraint.limit.ok_or_else(|| lacking("limit"))?;
                ConstraintRequest::Concurrency { limit, otherwise }
            }
            "delay" => ConstraintRequest::Delay { millis: millis()?, otherwise },
            "since-last-run" => ConstraintRequest::SinceLastRun { millis: millis()?, otherwise },
            "window" => ConstraintRequest::Window {
                from: constraint.from.clone().ok_or_else(|| lacking("from"))?,
                to: constraint.to.clone().ok_or_else(|| lacking("to"))?,
                zone: constraint.zone.clone(),
                otherwise,
            },
            other => return Err(format!("it has a constraint of an unknown kind: {other}")),
        })
    }
}
