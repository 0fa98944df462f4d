//! The definition of an event schedule in a request: all of a new one, or the changes to one.

use std::collections::BTreeMap;

use kelos_model::workflow::CatchUp;
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
    pub constraints: Option<Vec<ConstraintDto>>,
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
    /// The deadline of its slots, as in scripts: a length of time such as `2h`, or an object such as
    /// `{"at": "07:30", "zone": "Europe/Berlin"}`; null for none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub deadline: Option<Option<serde_json::Value>>,
    /// The handling of misfires; `latest` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUpRequest>,
    /// The things that its project shares with others, as `kelos.project({shares})` says it in scripts; nothing for null.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub shares: Option<Option<serde_json::Value>>,
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
