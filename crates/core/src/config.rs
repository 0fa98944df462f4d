//! The settings that an operator may tune.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use kelos_model::ranges::Range;
use kelos_model::{Workflow, WorkflowId};

/// The settings that an operator may tune.
#[derive(Debug, Clone)]
pub struct Config {
    /// How far back from now slots are planned. A slot that exists is never forgotten because it is old.
    pub planning_window: SignedDuration,
    /// The wait between the first two checks of a probe.
    pub probe_first: SignedDuration,
    /// The longest wait between two checks of a probe. The wait grows by half with each check, up to this.
    pub probe_longest: SignedDuration,
    /// The limit on the live runs of all workflows together.
    pub max_running: u32,
    /// The time without news after which a run is checked, and a probe without an answer is asked again.
    pub patience: SignedDuration,
    /// The executors whose runs are left to workers; none where the scheduler's own process does them all. A slot that is ready then waits
    /// for a worker that offers to run it.
    pub by_workers: BTreeSet<String>,
    /// The most slots that a tick plans, evaluates, judges by constraints, and checks, each, and the most timers that
    /// it fires; workflows share them. The rest is left for the next tick, which is due at once. A server that is
    /// stepped by hand has no such limit.
    pub at_once: usize,
    /// The most times of a workflow that become slots when they are planned together; more stay in its backlog. It is also
    /// the upper limit of [`Config::most_queued`].
    pub frontier: usize,
    /// Whether projects are kept apart: what one has of another, or sends to it, needs its consent.
    pub isolated: bool,
    /// The breach that the simulation causes on purpose. None anywhere else.
    pub planted: Option<PlantedBreach>,
}

/// A breach that the simulation causes on purpose, at the next event of one kind.
#[derive(Debug, Clone)]
pub struct PlantedBreach {
    /// The workflow of the slots.
    pub workflow: WorkflowId,
    /// The range of time in which it happens.
    pub within: Range,
    /// The event that shows it.
    pub when: PlantedIn,
}

/// The kind of event that shows a planted breach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedIn {
    /// A slot is planned by its schedule, or opened by a fact.
    Planning,
    /// A slot collects a fact.
    Collecting,
    /// A trigger is evaluated.
    Looking,
    /// A slot is dispatched.
    Dispatching,
    /// A run has ended.
    Reporting,
    /// A request is carried out.
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
            by_workers: BTreeSet::new(),
            at_once: 1024,
            frontier: 1024,
            isolated: false,
            planted: None,
        }
    }
}

/// The fewest slots of a workflow that are queued before the next ones stay in its backlog.
const FEWEST_QUEUED: usize = 32;

impl Config {
    /// The most queued slots of a workflow before the next ones stay in its backlog: twice as many as may run at a time. Once
    /// half of them are left, more are drawn from the backlog. With fewer than may run at a time, permits would stay unused
    /// for the length of a tick. Of slots that run together in batches, at least two batches are queued.
    #[must_use]
    pub fn most_queued(&self, definition: &Workflow) -> usize {
        let size = definition.batch.map_or(1, |batch| batch.size);
        let slots = definition.concurrency.map(|runs| runs.saturating_mul(size));
        self.queued_beside(slots).max(two_batches(definition))
    }

    /// The most slots of a workflow that are planned at once before the rest goes into its backlog.
    pub(crate) fn most_planned(&self, definition: &Workflow) -> usize {
        self.frontier.max(1).max(two_batches(definition))
    }

    /// Whether workers run the jobs of a definition.
    #[must_use]
    pub fn leaves_to_workers(&self, definition: &Workflow) -> bool {
        self.by_workers.contains(&definition.job.executor)
    }

    fn queued_beside(&self, running: Option<u32>) -> usize {
        let places = running.map_or(usize::MAX, |places| usize::try_from(places).unwrap_or(usize::MAX));
        places.saturating_mul(2).max(FEWEST_QUEUED).min(self.frontier).max(1)
    }

    /// Sets the limit on live runs, and raises the frontier so that enough slots are queued for it.
    pub fn set_max_running(&mut self, runs: u32) {
        self.max_running = runs;
        self.frontier = self.frontier.max(usize::try_from(runs).unwrap_or(usize::MAX).saturating_mul(2));
    }
}

/// The slots of two batches; none of a workflow without batches.
fn two_batches(definition: &Workflow) -> usize {
    definition.batch.map_or(0, |batch| usize::try_from(batch.size).unwrap_or(usize::MAX).saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_slots_are_queued_as_may_run_soon() {
        let mut config = Config::default();
        let queued = [None, Some(0), Some(1), Some(100), Some(5_000)].map(|runs| config.queued_beside(runs));
        assert_eq!(queued, [1024, 32, 32, 200, 1024]);
        config.set_max_running(4_000);
        assert_eq!((config.queued_beside(Some(3_000)), config.queued_beside(None)), (6_000, 8_000));
        config.frontier = 5;
        assert_eq!((config.queued_beside(Some(1)), config.queued_beside(None)), (5, 5));
    }
}
