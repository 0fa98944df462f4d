//! The facts about a slot that only the scheduler's memory has.

use jiff::Timestamp;
use kelos_model::dormant::Dormant;
use kelos_model::{Probe, ProbeAnswer, Reason};

use crate::capacity::PoolPlace;

/// The facts about a slot that only the scheduler's memory has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inspection {
    /// When it is looked at next by itself; none when only an event can wake it.
    pub next_look: Option<Timestamp>,
    /// Queued slots of its workflow that go first; while it waits for fewer runs of its program, those that are held for
    /// that and go first.
    pub ahead: u32,
    /// Live runs of its workflow.
    pub active: u32,
    /// Whether all places for runs, of all workflows, are taken.
    pub at_global_limit: bool,
    /// What it finds at the pools of its workflow, while it is queued.
    pub pools: Vec<PoolPlace>,
    /// Why the scheduler leaves it alone: paused, removed, not in the schedule any more.
    pub dormant: Option<Dormant>,
    /// Whether it is for workers to run, and none of them serves its workflow.
    pub no_worker: bool,
    /// Whether it is for workers to run, and those that serve its workflow have no room.
    pub workers_busy: bool,
    /// The reason that holds up the success of its run, which has ended.
    pub finishing: Option<Reason>,
    /// Runs of its program that go on, or are about to start: those that constraints count.
    pub program_runs: u32,
    /// The last answers to the questions that it waits on.
    pub answers: Vec<(Probe, ProbeAnswer)>,
}
