//! What an operator may tune.

use jiff::SignedDuration;

/// What an operator may tune.
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
        }
    }
}
