//! Details of a slot that only the scheduler's memory has.

use jiff::Timestamp;
use kelos_model::dormant::Dormant;
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
    /// Whether it needs a worker and no worker serves its workflow.
    pub no_worker: bool,
    /// Whether it needs a worker and all workers that serve its workflow are busy.
    pub workers_busy: bool,
    /// The reason why the success of its ended run is not recorded yet.
    pub finishing: Option<Reason>,
    /// The number of runs of its program that are live or about to start, as constraints count them.
    pub program_runs: u32,
    /// The slots that it waits for to run together with them, while it is queued.
    pub batch: Option<BatchWait>,
    /// The latest answers to the probes that it waits for.
    pub answers: Vec<(Probe, ProbeAnswer)>,
}
