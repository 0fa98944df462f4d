//! Triggers and constraints, as definitions have them.

use kelos_model::trigger::{Conditions, FileSystem};
use kelos_model::{Constraint, Gate, Otherwise, ReasonKind, Trigger};
use serde::{Deserialize, Serialize};

use crate::Code;

/// A trigger: a tree over leaves that look at the clock, at other slots, or at the outside world.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TriggerDto {
    /// `always`, `and`, `or`, `not`, `offset`, `delay`, `success`, `job`, `hdfs-path`, `local-path`, `path`, `function`,
    /// `partitions`, `ended`, `fired` or `signal`.
    #[serde(rename = "type")]
    pub kind: Code,
    /// Of `offset` and `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// Of `success`, `job` and `ended`: the other workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Of `job`: a template of its job id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Of `hdfs-path`, `local-path` and `path`: a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file system that a path without a scheme belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What must hold of what is at the path, beside that it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<ConditionsDto>,
    /// Of `function`: the file that defined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Of `partitions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Of `partitions`: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Of `ended`: `succeeded`, `failed`, `killed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Code>,
    /// Of `fired`: an expression of five or six fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Of `fired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Of `signal`: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The nested triggers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub nested: Vec<TriggerDto>,
}

/// What must hold of what is at a path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConditionsDto {
    /// Files of the folder whose names match this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// How many files must be there at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u32>,
    /// How many bytes must be in it at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
    /// For how many seconds nothing must have been written to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_age_seconds: Option<u32>,
}

/// A gate after the trigger, and what happens to a slot that it doesn't let through.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConstraintDto {
    /// `concurrency`, `delay`, `window` or `since-last-run`.
    #[serde(rename = "type")]
    pub kind: Code,
    /// Of `concurrency`: fewer runs of the program than this must go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Of `delay` and `since-last-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// Of `window`: when it opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Of `window`: when it closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Of `window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// `wait` or `abort`.
    pub otherwise: Code,
}

impl From<&Conditions> for ConditionsDto {
    fn from(conditions: &Conditions) -> ConditionsDto {
        let Conditions { glob, min_count, min_bytes, min_age_seconds } = conditions.clone();
        ConditionsDto { glob, min_count, min_bytes, min_age_seconds }
    }
}

impl TriggerDto {
    /// The name of its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.kind.as_str()
    }
}

impl From<&Trigger> for TriggerDto {
    fn from(trigger: &Trigger) -> TriggerDto {
        let nested = trigger.nested().iter().map(TriggerDto::from).collect();
        let of = |kind: ReasonKind| TriggerDto { kind: kind.as_str().to_owned().into(), ..TriggerDto::default() };
        let own = match trigger {
            Trigger::Always => of(ReasonKind::Always),
            Trigger::And { .. } => of(ReasonKind::And),
            Trigger::Or { .. } => of(ReasonKind::Or),
            Trigger::Not { .. } => of(ReasonKind::Not),
            Trigger::Offset { seconds, .. } => TriggerDto { seconds: Some(*seconds), ..of(ReasonKind::Offset) },
            Trigger::Delay { seconds } => TriggerDto { seconds: Some(*seconds), ..of(ReasonKind::Delay) },
            Trigger::Success { workflow } => {
                TriggerDto { workflow: Some(workflow.to_string()), ..of(ReasonKind::Success) }
            }
            Trigger::Job { workflow, job } => {
                TriggerDto { workflow: Some(workflow.to_string()), job: Some(job.clone()), ..of(ReasonKind::Job) }
            }
            Trigger::Path(check) => {
                let kind = match check.system {
                    FileSystem::Hdfs => ReasonKind::HdfsPath,
                    FileSystem::Local => ReasonKind::LocalPath,
                    FileSystem::Any => ReasonKind::Path,
                };
                let conditions = Some(ConditionsDto::from(&check.conditions)).filter(|_| !check.conditions.is_empty());
                let (path, base) = (Some(check.path.clone()), Some(check.base.clone()));
                TriggerDto { path, base, conditions, ..of(kind) }
            }
            Trigger::Partitions { dataset, count } => {
                TriggerDto { dataset: Some(dataset.to_string()), count: Some(*count), ..of(ReasonKind::Partitions) }
            }
            Trigger::Ended { program, states } => TriggerDto {
                workflow: Some(program.to_string()),
                states: states.iter().map(|state| state.as_str().into()).collect(),
                ..of(ReasonKind::Ended)
            },
            Trigger::Fired { firing } => TriggerDto {
                cron: Some(firing.text().to_owned()),
                zone: Some(firing.zone().name().to_owned()),
                ..of(ReasonKind::Fired)
            },
            Trigger::Signal { name } => TriggerDto { signal: Some(name.to_string()), ..of(ReasonKind::Signal) },
            Trigger::Function { function } => {
                TriggerDto { file: Some(function.file.clone()), ..of(ReasonKind::Function) }
            }
        };
        TriggerDto { nested, ..own }
    }
}

impl From<&Constraint> for ConstraintDto {
    fn from(constraint: &Constraint) -> ConstraintDto {
        let of = |kind: &'static str| ConstraintDto { kind: kind.into(), ..ConstraintDto::default() };
        let gate = match &constraint.gate {
            Gate::Concurrency(limit) => ConstraintDto { limit: Some(*limit), ..of("concurrency") },
            Gate::Delay(millis) => ConstraintDto { millis: Some(*millis), ..of("delay") },
            Gate::SinceLastRun(millis) => ConstraintDto { millis: Some(*millis), ..of("since-last-run") },
            Gate::Window(window) => ConstraintDto {
                from: Some(window.start().to_owned()),
                to: Some(window.end().to_owned()),
                zone: Some(window.zone().name().to_owned()),
                ..of("window")
            },
        };
        let otherwise = match constraint.otherwise {
            Otherwise::Wait => "wait",
            Otherwise::Abort => "abort",
        };
        ConstraintDto { otherwise: otherwise.into(), ..gate }
    }
}
