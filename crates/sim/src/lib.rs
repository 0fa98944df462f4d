//! The cellar: simulation and judges. For tests only.
//!
//! A seed generates a workload and a sequence of faults. [`drive`] runs them through the real loop
//! ([`kelos_engine::turn::Turns`]) over a virtual clock, a faulty store and fake executors; [`judge`] checks
//! what must hold whatever happened. [`spec`] is the plain full scan, and [`lockstep`] compares the incremental
//! core with it. A seed reproduces its failure exactly.

pub mod apps;
pub mod drive;
pub mod faulty;
pub mod fleet;
pub mod inputs;
pub mod judge;
pub mod lockstep;
pub mod nodes;
pub mod past;
pub mod planted;
pub mod rng;
pub mod spec;
pub mod trims;
pub mod workload;
pub mod world;

/// The limit of a page that holds everything.
const ALL: usize = 1 << 40;

/// The first seed of the simulation of several nodes.
pub const FIRST_OF_NODES: u64 = 3_000_000;

/// Seeds from here on have deadlines, and one server again.
pub const FIRST_WITH_DEADLINES: u64 = 4_500_000;

/// Runs all simulations of one seed.
///
/// # Errors
/// The violation, in words.
pub fn check_seed(seed: u64) -> Result<Figures, String> {
    if (FIRST_OF_NODES..FIRST_WITH_DEADLINES).contains(&seed) {
        return nodes::run(seed).map_err(|wrong| format!("seed {seed}, nodes over one log: {wrong}"));
    }
    let lockstep = lockstep::run(seed).map_err(|wrong| format!("seed {seed}, lockstep with the full scan: {wrong}"))?;
    let mut figures = drive::run(seed).map_err(|wrong| format!("seed {seed}, with faults: {wrong}"))?;
    figures.compared = lockstep;
    Ok(figures)
}

/// The figures of a simulation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// How many turns were taken.
    pub turns: u64,
    /// How many events were committed.
    pub events: u64,
    /// How many runs executors started.
    pub runs: u64,
    /// How many crashes and failed commits were recovered from.
    pub recoveries: u64,
    /// How often live runs were granted permits that they asked for.
    pub granted: u64,
    /// The number of runs that did a step of another run again.
    pub repeated: u64,
    /// How many slot states were compared with the full scan.
    pub compared: u64,
    /// How often a workflow was frozen.
    pub frozen: u64,
    /// How many slots were late.
    pub late: u64,
    /// How many events were removed from the log.
    pub removed: u64,
    /// How many inputs were set aside.
    pub set_aside: u64,
    /// How often a node began to lead.
    pub reigns: u64,
    /// The number of entries in logs.
    pub entries: u64,
    /// The number of snapshots that were stored in logs.
    pub snapshots: u64,
    /// How often the form of entries was to be raised.
    pub raised: u64,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.turns += other.turns;
        self.events += other.events;
        self.runs += other.runs;
        self.recoveries += other.recoveries;
        self.granted += other.granted;
        self.repeated += other.repeated;
        self.compared += other.compared;
        self.frozen += other.frozen;
        self.late += other.late;
        self.removed += other.removed;
        self.set_aside += other.set_aside;
        self.reigns += other.reigns;
        self.entries += other.entries;
        self.snapshots += other.snapshots;
        self.raised += other.raised;
    }
}
