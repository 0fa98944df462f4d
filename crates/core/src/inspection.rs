//! Details of a slot that only the scheduler's memory has.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::dormant::Dormant;
use kelos_model::workers::Label;
use kelos_model::workflow::ProjectVersion;
use kelos_model::{Probe, ProbeAnswer, Reason};

use crate::capacity::PoolPlace;

/// A wait of queued slots for others of their batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchWait {
    /// The number of those that are ready.
    pub ready: u32,
    /// The most slots of a run.
    pub size: u32,
    /// The moment at which they run in any case; none if others are about to be queued.
    pub until: Option<Timestamp>,
}

/// The reason for which no worker takes a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerWait {
    /// No worker serves its workflow. The labels are those that such a worker needs.
    None(BTreeSet<Label>),
    /// No program is connected that has the functions of its workflow as they were deployed last.
    Program {
        /// The project of the workflow.
        project: String,
        /// The version of the definition in force, where it has one.
        version: Option<ProjectVersion>,
        /// So many programs are connected that have another definition of the workflow.
        outdated: u32,
    },
    /// So many workers serve its workflow, and none of them has all of these labels.
    Labels(BTreeSet<Label>, u32),
    /// All workers that may run it are busy. The labels are those that such a worker needs.
    Busy(BTreeSet<Label>),
}

/// Details of a slot that only the scheduler's memory has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inspection {
    /// The next moment at which its trigger is evaluated again by itself; none if only an event can cause that.
    pub next_look: Option<Timestamp>,
    /// The number of queued slots of its workflow that are ahead of it. For a held slot that waits for fewer runs of
    /// its program: the number of held slots that are ahead of it.
    pub ahead: u32,
    /// The number of live runs of its workflow.
    pub active: u32,
    /// Whether the limit on the live runs of all workflows is reached.
    pub at_global_limit: bool,
    /// The state of each pool of its workflow while it is queued, and of each pool that its live run waits for.
    pub pools: Vec<PoolPlace>,
    /// The reason why the scheduler leaves it alone, such as a pause, a removal or a changed schedule.
    pub dormant: Option<Dormant>,
    /// The worker that it waits for, while it is queued.
    pub worker: Option<WorkerWait>,
    /// The reason why the success of its ended run is not recorded yet.
    pub finishing: Option<Reason>,
    /// The number of runs of its program that are live or about to start, as constraints count them.
    pub program_runs: u32,
    /// The slots that it waits for to run together with them, while it is queued.
    pub batch: Option<BatchWait>,
    /// The latest answers to the probes that it waits for.
    pub answers: Vec<(Probe, ProbeAnswer)>,
}
