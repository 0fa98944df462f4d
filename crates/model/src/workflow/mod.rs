//! Definitions: what a workflow is.

mod catch_up;
mod endless;
mod endless_wait;
pub mod flow;
mod keys;
mod lateness;
mod nesting;
mod opening;
mod past;
mod pool;
mod row;
mod source;
mod wait;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use catch_up::{LATE, PlanMisfires};
pub use endless::SLOWED;
pub use endless_wait::{EndlessWait, EndlessWaits, WaitCause, WaitExtent};
pub use keys::{CatchUp, EVENT_TIMEOUT_MILLIS, EventKeys, Keys, Program};
pub use opening::HoldBack;
pub use past::{HeldBack, PastSlots, PastTimes, WorkflowPast};
pub use pool::{PoolUse, TokenRate};
pub use row::{LastRun, Moments, PlanState, WorkflowRow};
pub use source::{Provenance, Source};
pub use wait::WaitStart;

use crate::batch::BatchRule;
use crate::constraint::{Constraint, Gate};
use crate::deadline::Deadline;
use crate::dormant::Dormant;
use crate::function::FunctionRef;
use crate::id::WorkflowId;
use crate::jobs::JobKeys;
use crate::key::SlotKey;
use crate::parameter::Parameter;
use crate::project::{ProjectName, former_member};
use crate::ranges::Range;
use crate::retry::{OnUnknown, RetryPolicy};
use crate::sharing::Shares;
use crate::slot::Slot;
use crate::time::schedule::{CronSchedule, Schedule};
use crate::time::{Firing, Zone};
use crate::trigger::Trigger;
use crate::workers::{FUNCTION, Label, LossPolicy};
use flow::Flow;

pub use crate::version::{
    DefinedVersion, DefinitionVersion, LONGEST_VERSION, ProjectVersion, VersionChoice, VersionError,
};

/// A named definition: keys, trigger, retry and job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Its name, unique on a server.
    pub id: WorkflowId,
    /// The unit of deployment that owns it; for scripts, the name of the file without `.js`.
    pub project: String,
    /// The source of the definition.
    pub source: Source,
    /// The source of its slots.
    pub keys: Keys,
    /// The trigger, which says when a slot may start.
    pub trigger: Trigger,
    /// The constraints, which are checked once the trigger is met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How many of its slots may run at a time, oldest first; 0 lets none run, none sets no limit.
    #[serde(deserialize_with = "limit")]
    pub concurrency: Option<u32>,
    /// The way in which adjacent slots are put together for one run; none runs each by itself. Only where slots have times of a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchRule>,
    /// The pools whose permits each of its runs holds, ascending by pool, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
    /// The pools of which its runs may take permits while they are live, ascending by pool, each once. How many they take they say then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<PoolUse>,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// No slot before this moment is planned by the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// No slot at or after this moment is planned by the schedule; of slots about periods none whose period ends later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Timestamp>,
    /// The treatment of times of its schedule that passed unplanned; none plans all of the planning window, as Celos does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// A slot that still waits this long after its scheduled time, or after it was opened, expires. None waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout_seconds: Option<u64>,
    /// The moment from which that counts.
    #[serde(default, skip_serializing_if = "WaitStart::is_time")]
    pub wait_from: WaitStart,
    /// The deadline of its slots: one that has not succeeded by then is late. None says of none that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// The job that is executed.
    pub job: Job,
    /// The graph of steps that the job is; then its executor is [`FLOW`](crate::flow::FLOW).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Arc<Flow>>,
    /// The arguments that its runs expect; where none are named, they take any. Those of an event schedule are those of its program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// The paths that its runs write, each a template: absolute, with a scheme, or where the server works. The scheduler waits for
    /// none of them; [`PathGraph`](crate::paths::PathGraph) finds by them who writes what others wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The version of its project, with which its runs are marked. Nothing is run again because it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ProjectVersion>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
    /// The declaration of what its project lets others see and send, as the file or the request with the definition has it.
    #[serde(default, skip_serializing_if = "Shares::is_empty")]
    pub shares: Shares,
}

impl Workflow {
    /// A workflow of a project of the same name, always ready, with one run at a time; all else is left unsaid.
    #[must_use]
    pub fn new(id: WorkflowId, schedule: Schedule, job: Job) -> Workflow {
        Workflow::keyed(id, Keys::Schedule(schedule), job)
    }

    /// The same with keys of any kind.
    #[must_use]
    pub fn keyed(id: WorkflowId, keys: Keys, job: Job) -> Workflow {
        Workflow {
            project: id.to_string(),
            id,
            source: Source::default(),
            keys,
            trigger: Trigger::Always,
            constraints: Vec::new(),
            concurrency: Some(1),
            batch: None,
            pools: Vec::new(),
            within: Vec::new(),
            retry: RetryPolicy::default(),
            start_time: None,
            end_time: None,
            catch_up: None,
            wait_timeout_seconds: None,
            wait_from: WaitStart::Time,
            deadline: None,
            job,
            flow: None,
            parameters: Vec::new(),
            writes: Vec::new(),
            version: None,
            about: About::default(),
            shares: Shares::default(),
        }
    }
}

/// Reads a limit. Definitions of before there could be none had the largest number there.
fn limit<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let limit = Option::<u32>::deserialize(deserializer)?;
    Ok(limit.filter(|limit| *limit < u32::MAX))
}

impl Workflow {
    /// Whether it runs functions of a program: its own job, or steps.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        let is_function = |job: &Job| job.executor == FUNCTION;
        let steps = self.flow.iter().flat_map(|flow| &flow.steps);
        is_function(&self.job) || steps.into_iter().any(|step| is_function(&step.job))
    }

    /// Whether its slots, or those of its steps, are done again where an outcome is unknown.
    #[must_use]
    pub fn is_done_again(&self) -> bool {
        let steps = self.flow.iter().flat_map(|flow| &flow.steps).map(|step| &step.retry);
        std::iter::once(&self.retry).chain(steps).any(|retry| retry.on_unknown == OnUnknown::Again)
    }

    /// The same where nothing is done again: an unknown outcome counts as a failed attempt.
    #[must_use]
    pub fn never_again(&self) -> Workflow {
        let never = |retry: &mut RetryPolicy| {
            if retry.on_unknown == OnUnknown::Again {
                retry.on_unknown = OnUnknown::Retry;
            }
        };
        let mut workflow = self.clone();
        never(&mut workflow.retry);
        if let Some(flow) = &mut workflow.flow {
            Arc::make_mut(flow).steps.iter_mut().for_each(|step| never(&mut step.retry));
        }
        workflow
    }

    /// The sentence about a limit of zero, with which nothing would ever run. Celos's scripts may have one of them.
    #[must_use]
    pub fn limit_of_zero(&self) -> Option<String> {
        if self.concurrency == Some(0) {
            return Some("has a concurrency of 0, expected a whole number >= 1".to_owned());
        }
        let lists =
            self.flow.iter().flat_map(|flow| &flow.steps).filter_map(|step| Some((step, step.for_each.as_ref()?)));
        lists.into_iter().find_map(|(step, list)| {
            let limits = [("most", Some(list.most)), ("concurrency", list.concurrency)];
            let (limit, _) = limits.into_iter().find(|(_, limit)| *limit == Some(0))?;
            Some(format!("has a step {} with a list whose {limit} is 0, expected a whole number >= 1", step.name))
        })
    }

    /// The time zone of its times: that of its schedule or its calendar; of an event schedule that of all its cron expressions and windows,
    /// if it is one. None where it borrows the times of another workflow, or has none.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        match &self.keys {
            Keys::Schedule(schedule) => schedule.zone(),
            Keys::Jobs(_) | Keys::Requests(_) => None,
            Keys::Events(_) => {
                let windows = self.constraints.iter().filter_map(|constraint| match &constraint.gate {
                    Gate::Window(window) => Some(window.zone()),
                    _ => None,
                });
                let mut zones = self.trigger.firings().into_iter().map(Firing::zone).chain(windows);
                let first = zones.next()?;
                zones.all(|other| other == first).then_some(first)
            }
        }
    }

    /// The program that it runs: its own workflow, or that of an event schedule.
    #[must_use]
    pub fn program(&self) -> &WorkflowId {
        self.keys.events().map_or(&self.id, |events| &events.program)
    }

    /// The provenance of its definition. Requests give event schedules only: another definition that is stored as one of theirs
    /// is a program's, from before provenance was stored.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        match self.source.provenance {
            Provenance::Api if self.keys.events().is_none() => Provenance::Code,
            provenance => provenance,
        }
    }

    /// The same, given by another.
    #[must_use]
    pub fn given_by(mut self: Arc<Workflow>, provenance: Provenance) -> Arc<Workflow> {
        if self.source.provenance != provenance {
            Arc::make_mut(&mut self).source.provenance = provenance;
        }
        self
    }

    /// The id that a schedule or a program had before separators inside of its name were escaped. None where it is the same.
    #[must_use]
    pub fn former_id(&self) -> Option<WorkflowId> {
        let (kind, name) = match &self.keys {
            Keys::Events(events) => (None, &events.name),
            Keys::Requests(program) => (program.kind.as_deref(), &program.name),
            Keys::Schedule(_) | Keys::Jobs(_) => return None,
        };
        let is_member = ProjectName::read(&self.project).member(kind, name).is_ok_and(|id| id == self.id);
        let former = WorkflowId::new(&former_member(&self.project, kind, name)).ok()?;
        (is_member && former != self.id).then_some(former)
    }

    /// The reason why one of its slots by time is left alone that lies before its start or beyond its end and was not requested.
    #[must_use]
    pub fn out_of_bounds(&self, key: &SlotKey, slot: Option<&Slot>) -> Option<Dormant> {
        let SlotKey::Time(at) = key else { return None };
        if slot.is_some_and(|slot| slot.requested) {
            return None;
        }
        if let Some(start) = self.start_time.filter(|start| at < start) {
            return Some(Dormant::NotBegun { start });
        }
        let is_beyond = |end: &Timestamp| at >= end || self.keys.period_of(key).is_some_and(|one| one.end > *end);
        self.end_time.filter(is_beyond).map(|end| Dormant::Over { end })
    }

    /// The range of the times of its schedule between its start and its end.
    #[must_use]
    pub fn bounds(&self, schedule: &CronSchedule) -> Range {
        // A period that ends with the end is in it.
        let end = |end: Timestamp| match schedule.is_of_periods() {
            true => schedule.last_until(end).unwrap_or(Timestamp::MIN),
            false => end,
        };
        Range::new(self.start_time.unwrap_or(Timestamp::MIN), self.end_time.map_or(Timestamp::MAX, end))
    }
}

/// A job: an executor with its settings and properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Name of the executor: `command`, `oozie`.
    pub executor: String,
    /// The settings of the executor; strings inside are templates.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// The properties that the job is given.
    #[serde(default)]
    pub properties: Properties,
    /// The labels of workers that may run it, all of them. Where the server runs jobs itself they say nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub runs_on: BTreeSet<Label>,
    /// The treatment of a run whose worker is lost.
    #[serde(default, skip_serializing_if = "LossPolicy::is_default")]
    pub on_lost: LossPolicy,
}

impl Job {
    /// A job for an executor, given nothing but its settings.
    #[must_use]
    pub fn new(executor: &str, settings: Map<String, Value>) -> Job {
        let (properties, runs_on, on_lost) = Default::default();
        Job { executor: executor.to_owned(), settings, properties, runs_on, on_lost }
    }
}

/// The properties of a job: data, or a script's function of the slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Properties {
    /// The same for each slot, but for the templates inside.
    Fixed(Map<String, Value>),
    /// Asked of the script when a run is started.
    Function(FunctionRef),
}

impl Default for Properties {
    fn default() -> Self {
        Properties::Fixed(Map::new())
    }
}

/// A description of a workflow for people; the scheduler reads none of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct About {
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A page about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The people or teams to ask about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contacts: Vec<Contact>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl About {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == About::default()
    }
}

/// A person or a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// Name, where given.
    pub name: Option<String>,
    /// Address, where given.
    pub email: Option<String>,
}

/// Those of workflows that have job ids, as a [`JobGraph`] is put together of them.
pub fn keyed<'w>(
    workflows: impl IntoIterator<Item = &'w Workflow, IntoIter: Clone>,
) -> impl Iterator<Item = (&'w WorkflowId, &'w JobKeys)> + Clone {
    workflows.into_iter().filter_map(|one| Some((&one.id, one.keys.jobs()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(json: &str) -> Source {
        serde_json::from_str(json).expect("a source")
    }

    #[test]
    fn a_source_of_before_says_its_provenance_by_its_file() {
        let of_file = source(r#"{"file":"a.js","line":3}"#);
        assert_eq!(of_file, Source::file("a.js", 3));
        assert_eq!(serde_json::to_string(&of_file).expect("json"), r#"{"file":"a.js","line":3}"#);
        assert_eq!(source(r#"{"file":"","line":0}"#).provenance, Provenance::Api);
        for (provenance, file) in [(Provenance::Api, "a.js"), (Provenance::Code, ""), (Provenance::File, "")] {
            let source = Source { provenance, file: file.to_owned(), line: 0 };
            let json = serde_json::to_string(&source).expect("json");
            assert!(json.contains(provenance.as_str()), "{json}");
            assert_eq!(serde_json::from_str::<Source>(&json).expect("a source"), source);
        }
    }

    #[test]
    fn what_is_no_event_schedule_was_never_made_by_a_request() {
        let id = WorkflowId::new("a").expect("an id");
        let mut one = Workflow::new(id, Schedule::Cron(crate::time::CronSchedule::hourly()), Job::new("x", Map::new()));
        one.source = source(r#"{"file":"","line":0}"#);
        assert_eq!(one.provenance(), Provenance::Code);
        one.keys = Keys::Events(Box::new(EventKeys::new("s", one.id.clone())));
        assert_eq!(one.provenance(), Provenance::Api);
    }
}
