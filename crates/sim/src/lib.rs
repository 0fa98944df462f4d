//! The cellar: simulation and judges. For tests only.
//!
//! A seed makes a workload and a row of faults. [`drive`] runs them through the real loop
//! ([`kelos_engine::turn::Turns`]) over a virtual clock, a faulty store and fake executors; [`judge`] says what
//! must hold whatever happened. [`spec`] is the plain full scan, and [`lockstep`] holds the incremental
//! core against it. A seed reproduces its failure exactly.

pub mod apps;
pub mod drive;
pub mod faulty;
pub mod fleet;
pub mod judge;
pub mod lockstep;
pub mod past;
pub mod planted;
pub mod rng;
pub mod spec;
pub mod workload;
pub mod world;

/// A page that holds everything.
const ALL: usize = 1 << 40;

/// Runs all simulations of one seed.
///
/// # Errors
/// What was found wrong, in words.
pub fn check_seed(seed: u64) -> Result<Figures, String> {
    let lockstep = lockstep::run(seed).map_err(|wrong| format!("seed {seed}, lockstep with the full scan: {wrong}"))?;
    let mut figures = drive::run(seed).map_err(|wrong| format!("seed {seed}, with faults: {wrong}"))?;
    figures.compared = lockstep;
    Ok(figures)
}

/// What a simulation went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Turns taken.
    pub turns: u64,
    /// Events committed.
    pub events: u64,
    /// Runs that executors started.
    pub runs: u64,
    /// Crashes and failed commits, from which it recovered.
    pub recoveries: u64,
    /// Slot states compared with the full scan.
    pub compared: u64,
    /// How often a workflow was frozen.
    pub frozen: u64,
    /// Inputs that were set aside.
    pub set_aside: u64,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.turns += other.turns;
        self.events += other.events;
        self.runs += other.runs;
        self.recoveries += other.recoveries;
        self.compared += other.compared;
        self.frozen += other.frozen;
        self.set_aside += other.set_aside;
    }
}
