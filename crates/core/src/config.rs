//! The settings that an operator may tune.

use jiff::SignedDuration;
use kelos_model::WorkflowId;
use kelos_model::ranges::Range;

/// The settings that an operator may tune.
#[derive(Debug, Clone)]
pub struct Config {
    /// How far back from now slots are planned. A slot that exists is never forgotten because it is old.
    pub planning_window: SignedDuration,
    /// Wait between the first two looks at a probe.
    pub probe_first: SignedDuration,
    /// The wait grows by half with each look, up to this.
    pub probe_longest: SignedDuration,
    /// Live runs of all workflows together.
    pub max_running: u32,
    /// A run that has not been heard of for this long is asked about, and so is a probe without an answer.
    pub patience: SignedDuration,
    /// Whether jobs are run by workers only: a job that may go waits for one that has offered to do it.
    pub by_workers: bool,
    /// So many slots a tick plans, looks at, judges by their constraints, and asks about again, each, and so many timers it fires;
    /// workflows share them. What is left is for the next tick, which is due at once. A step of a server that is stepped by hand has no such limit.
    pub at_once: usize,
    /// So many slots of a workflow are queued before the next are left in its backlog, and from half as many on more are made of
    /// that. With fewer than may run at a time, places stay free for the length of a tick.
    pub frontier: usize,
    /// What the simulation breaks on purpose. None anywhere else.
    pub planted: Option<PlantedBreach>,
}

/// An invariant that the simulation breaks on purpose: something happens to a slot of a workflow, within a span of time.
#[derive(Debug, Clone)]
pub struct PlantedBreach {
    /// The workflow of the slots.
    pub workflow: WorkflowId,
    /// When.
    pub within: Range,
    /// What happens.
    pub when: PlantedIn,
}

/// The work in which a planted breach shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedIn {
    /// A slot is planned by its schedule, or comes to be by a fact.
    Planning,
    /// A slot collects a fact.
    Collecting,
    /// A trigger is looked at.
    Looking,
    /// A slot is given its permits.
    Dispatching,
    /// A run has ended.
    Reporting,
    /// Somebody asks for something.
    Asking,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            planning_window: SignedDuration::from_hours(7 * 24),
            probe_first: SignedDuration::from_secs(1),
            probe_longest: SignedDuration::from_secs(30),
            max_running: 256,
            patience: SignedDuration::from_mins(5),
            by_workers: false,
            at_once: 1024,
            frontier: 1024,
            planted: None,
        }
    }
}

impl Config {
    /// Has so many runs of all workflows be alive at a time, and enough slots queued for them.
    pub fn set_max_running(&mut self, runs: u32) {
        self.max_running = runs;
        self.frontier = self.frontier.max(usize::try_from(runs).unwrap_or(usize::MAX).saturating_mul(2));
    }
}
