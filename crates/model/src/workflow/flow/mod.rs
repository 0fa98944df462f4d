//! Flows: jobs that are graphs of steps, between which data is passed.
//!
//! The slot of a workflow with a flow is a run of the flow. Its steps are slots that belong to this slot, named by [`StepKey`], and follow
//! the definition with which the run began. What may start next, and how the run ends, follows from the states of the steps alone: see
//! [`FlowGraph`]. Absent: slots, outputs that are kept, and time.
//!
//! [`StepKey`]: crate::key::StepKey

mod flaw;
mod graph;
mod merge;
mod progress;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::step_name::{StepName, StepNameError};
pub use flaw::{FlowFlaw, MOST_STEPS};
pub use graph::{FlowGraph, OpenedStep};
pub use merge::{FailedStep, InputMerge, formatted, formatted_key, listed_outputs};
pub use progress::{FlowEnd, StepProgress};

use super::{Job, PoolUse, Workflow};
use crate::repeated::RepeatedStep;
use crate::retry::RetryPolicy;

/// The executor of a workflow whose job is a flow. The scheduler itself runs the graph.
pub const FLOW: &str = "flow";

/// The executor of a step that waits for a signal. The scheduler itself ends it.
pub const SIGNAL: &str = "signal";

/// The executor of a step that is done for each item of a list. The scheduler itself starts the items.
pub const FOR_EACH: &str = "for-each";

/// The executors whose runs the scheduler carries out by itself: they take no place among the runs that work.
#[must_use]
pub fn is_carried_out_by_the_scheduler(executor: &str) -> bool {
    matches!(executor, FLOW | SIGNAL | FOR_EACH)
}

/// Items that a list may have where a step says nothing.
pub const MOST_ITEMS: u32 = 10_000;

/// A graph of steps, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flow {
    /// The steps.
    pub steps: Vec<Step>,
}

/// A step of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name, unique in its flow.
    pub name: StepName,
    /// Its job: of a step that waits for a signal the executor is [`SIGNAL`].
    pub job: Job,
    /// The steps that must have succeeded before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<StepName>,
    /// The steps of which it handles the failure: it starts when one of them has failed, and only then. A step has either these or
    /// [`Step::needs`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handles: Vec<StepName>,
    /// Whether it handles a failure at once; otherwise it waits until every step has ended that was running when the other one failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// The list whose items it is done for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ItemList>,
    /// The signal that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalWait>,
    /// Its inputs where nobody gives others.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// The retry policy.
    #[serde(default)]
    pub retry: RetryPolicy,
    /// The pools whose permits each of its runs holds, ascending by pool, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
    /// The pools of which its runs may take permits while they are live, ascending by pool, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<PoolUse>,
    /// The signals that its runs may wait for while they are live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// The list of a step that is done for each item of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemList {
    /// The name of the input that is the list.
    pub input: String,
    /// A longer list fails the step.
    #[serde(default = "most_items")]
    pub most: u32,
    /// The most items that may run at a time; none sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

fn most_items() -> u32 {
    MOST_ITEMS
}

/// A signal that a step waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalWait {
    /// The name of the signal.
    pub name: String,
    /// The step fails if the signal has not come this many seconds after the step was opened. None waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_seconds: Option<u64>,
}

impl Step {
    /// A step of a name that does a job, needs nothing and handles nothing.
    #[must_use]
    pub fn new(name: StepName, job: Job) -> Step {
        Step {
            name,
            job,
            needs: Vec::new(),
            handles: Vec::new(),
            at_once: false,
            for_each: None,
            signal: None,
            inputs: Map::new(),
            retry: RetryPolicy::default(),
            pools: Vec::new(),
            within: Vec::new(),
            signals: Vec::new(),
            about: None,
        }
    }

    /// A step that waits for a signal, whose payload is its output.
    #[must_use]
    pub fn waiting_for(name: StepName, signal: SignalWait) -> Step {
        Step { signal: Some(signal), ..Step::new(name, Job::new(SIGNAL, Map::new())) }
    }

    /// The names of the signals that it waits for, or may wait for while it runs.
    pub fn awaited_signals(&self) -> impl Iterator<Item = &str> {
        self.signal.iter().map(|signal| &*signal.name).chain(self.signals.iter().map(String::as_str))
    }

    /// Whether it starts because another step failed.
    #[must_use]
    pub fn is_error_step(&self) -> bool {
        !self.handles.is_empty()
    }
}

impl Flow {
    /// The step of a name.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name.as_str() == name)
    }

    /// The names of the signals that its steps wait for, or may wait for while they run.
    pub fn signals(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().flat_map(Step::awaited_signals)
    }

    /// The flow of a run that does one step again: that step alone, which is given what it was given then. An item of a list is a step by
    /// itself. None where the flow has no such step.
    #[must_use]
    pub fn repeating(&self, repeated: &RepeatedStep) -> Option<Flow> {
        let step = self.step(repeated.step.as_str())?.clone();
        let for_each = step.for_each.filter(|_| !repeated.is_item);
        let (needs, handles, inputs) = (Vec::new(), Vec::new(), repeated.inputs.clone());
        Some(Flow { steps: vec![Step { for_each, needs, handles, inputs, ..step }] })
    }

    /// A step as the scheduler and the executors see it: a workflow with the step's job, retry policy and pools, and the keys of the
    /// flow's. `items` says that it is one item of a list; otherwise a step with a list starts its items and does nothing itself.
    #[must_use]
    pub fn as_workflow(of: &Workflow, step: &Step, items: bool) -> Workflow {
        let is_list = step.for_each.is_some() && !items;
        let job = if is_list { Job::new(FOR_EACH, Map::new()) } else { step.job.clone() };
        let (pools, within) = match is_list {
            true => (Vec::new(), Vec::new()),
            false => (step.pools.clone(), step.within.clone()),
        };
        let concurrency = step.for_each.as_ref().filter(|_| items).and_then(|list| list.concurrency);
        let retry = if is_list { RetryPolicy::default() } else { step.retry };
        Workflow {
            source: of.source.clone(),
            project: of.project.clone(),
            concurrency,
            pools,
            within,
            retry,
            version: of.version.clone(),
            ..Workflow::keyed(of.id.clone(), of.keys.clone(), job)
        }
    }
}
