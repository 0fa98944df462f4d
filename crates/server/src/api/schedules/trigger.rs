//! Triggers as people write them in JSON.

use kelos_model::project::dataset_named;
use kelos_model::time::{Firing, Zone};
use kelos_model::trigger::{Conditions, FileSystem, PathCheck};
use kelos_model::{SlotState, Trigger, WorkflowId};
use serde::Deserialize;
use utoipa::ToSchema;

/// A trigger, in the form in which answers have it. What asks a script's function can't be given here.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum TriggerRequest {
    /// All of them.
    And {
        /// Which.
        #[schema(no_recursion)]
        nested: Vec<TriggerRequest>,
    },
    /// One of them.
    Or {
        /// Which.
        #[schema(no_recursion)]
        nested: Vec<TriggerRequest>,
    },
    /// Not the nested one.
    Not {
        /// Exactly one.
        #[schema(no_recursion)]
        nested: Vec<TriggerRequest>,
    },
    /// So many new partitions of a dataset.
    Partitions {
        /// The dataset: `purchases`, or `prod:purchases` in a namespace.
        dataset: String,
        /// How many; 1 where not given.
        #[serde(default = "one")]
        count: u32,
    },
    /// A run of a program ended.
    Ended {
        /// Whose run.
        #[schema(value_type = String)]
        workflow: WorkflowId,
        /// How: some of `succeeded`, `failed`, `killed`; any where not given.
        #[serde(default)]
        states: Vec<String>,
    },
    /// A time of a cron expression.
    Fired {
        /// An expression of five fields, or six with seconds first.
        cron: String,
        /// Its zone; `timeZone` where not given.
        zone: Option<String>,
    },
    /// A signal.
    Signal {
        /// Its name.
        signal: String,
    },
    /// More than so many seconds have passed since the slot came to be.
    Delay {
        /// Seconds.
        seconds: i64,
    },
    /// The slot of another workflow with the same key has succeeded.
    Success {
        /// The other workflow.
        #[schema(value_type = String)]
        workflow: WorkflowId,
    },
    /// A job has succeeded.
    Job {
        /// Whose job.
        #[schema(value_type = String)]
        workflow: WorkflowId,
        /// A template of its job id.
        job: String,
    },
    /// Something is at a path.
    Path {
        /// A template: `s3://logs/${year}`.
        path: String,
        /// The file system that a path without a scheme belongs to.
        base: Option<String>,
        /// What must hold of it.
        #[schema(value_type = Option<Object>)]
        conditions: Option<Conditions>,
    },
}

fn one() -> u32 {
    1
}

impl TriggerRequest {
    /// The trigger that is meant; times without a zone are in this one.
    ///
    /// # Errors
    /// In words, when there is no such trigger.
    pub(crate) fn read(self, zone: &Zone) -> Result<Trigger, String> {
        let all =
            |nested: Vec<TriggerRequest>| nested.into_iter().map(|one| one.read(zone)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            TriggerRequest::And { nested } => Trigger::And { triggers: all(nested)? },
            TriggerRequest::Or { nested } => Trigger::Or { triggers: all(nested)? },
            TriggerRequest::Not { nested } => not(all(nested)?)?,
            TriggerRequest::Partitions { dataset, count } => {
                Trigger::Partitions { dataset: dataset_named(&dataset).into(), count }
            }
            TriggerRequest::Ended { workflow, states } => Trigger::Ended { program: workflow, states: ends(&states)? },
            TriggerRequest::Fired { cron, zone: own } => {
                let zone = own.map_or_else(|| Ok(zone.clone()), |name| read_zone(&name))?;
                Trigger::Fired { firing: Firing::parse(&cron, zone).map_err(|error| error.to_string())? }
            }
            TriggerRequest::Signal { signal } => Trigger::Signal { name: signal.into() },
            TriggerRequest::Delay { seconds } => Trigger::Delay { seconds },
            TriggerRequest::Success { workflow } => Trigger::Success { workflow },
            TriggerRequest::Job { workflow, job } => Trigger::Job { workflow, job },
            TriggerRequest::Path { path, base, conditions } => {
                let check = PathCheck::new(FileSystem::Any, &path, base.as_deref().unwrap_or("file:///"));
                Trigger::Path(PathCheck { conditions: conditions.unwrap_or_default(), ..check })
            }
        })
    }
}

fn not(mut nested: Vec<Trigger>) -> Result<Trigger, String> {
    match (nested.len(), nested.pop()) {
        (1, Some(trigger)) => Ok(Trigger::Not { trigger: Box::new(trigger) }),
        (number, _) => Err(format!("a `not` of {number} triggers: expected exactly one in `nested`")),
    }
}

/// The ends of runs that are named; all of them where none is.
fn ends(names: &[String]) -> Result<Vec<SlotState>, String> {
    let ends = kelos_model::facts::ENDS;
    if names.is_empty() {
        return Ok(ends.to_vec());
    }
    names.iter().map(|name| end(name)).collect()
}

/// The end of a run that is named.
pub(crate) fn end(name: &str) -> Result<SlotState, String> {
    let ends = kelos_model::facts::ENDS;
    let known = SlotState::parse(name).filter(|state| ends.contains(state));
    known
        .ok_or_else(|| format!("\"{name}\" is not how a run ends: expected {}", ends.map(SlotState::as_str).join(", ")))
}

pub(crate) fn read_zone(name: &str) -> Result<Zone, String> {
    Zone::parse(name).map_err(|error| error.to_string())
}

/// The same trigger with all its times in another zone.
pub(crate) fn rezoned(trigger: Trigger, zone: &Zone) -> Result<Trigger, String> {
    let all =
        |triggers: Vec<Trigger>| triggers.into_iter().map(|one| rezoned(one, zone)).collect::<Result<Vec<_>, _>>();
    let boxed = |trigger: Box<Trigger>| rezoned(*trigger, zone).map(Box::new);
    Ok(match trigger {
        Trigger::And { triggers } => Trigger::And { triggers: all(triggers)? },
        Trigger::Or { triggers } => Trigger::Or { triggers: all(triggers)? },
        Trigger::Not { trigger } => Trigger::Not { trigger: boxed(trigger)? },
        Trigger::Offset { seconds, trigger } => Trigger::Offset { seconds, trigger: boxed(trigger)? },
        Trigger::Fired { firing } => {
            let firing = Firing::parse(firing.text(), zone.clone()).map_err(|error| error.to_string())?;
            Trigger::Fired { firing }
        }
        other => other,
    })
}
