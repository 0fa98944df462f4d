//! Executors, which perform runs.
//!
//! Commands behind a shim, so that they outlive the server; HTTP services; Oozie; Spark; and workers, which perform
//! runs by executors of their own. Each recognises a repeated start by the run's id and never blocks the engine.
//! Absent: the order of runs, which the core decides.

mod command;
#[cfg(feature = "http")]
pub mod http;
pub mod local;
#[cfg(feature = "http")]
mod oozie;
#[cfg(feature = "http")]
mod services;
mod spark;
pub mod workers;

use kelos_engine::executor::Executors;
use kelos_engine::secrets::Secrets;
use tokio::runtime::Handle;

use local::Launcher;

pub use command::{CommandExecutor, evaluated, run_ref};
pub(crate) use command::{insist, outcome_of};
#[cfg(feature = "http")]
pub use oozie::{NodeRecords, OozieExecutor, OozieWaits, Records};
#[cfg(feature = "http")]
pub use services::HttpExecutor;
pub use spark::SparkExecutor;

/// The executors that need nothing but this machine: those of a worker, and of every node.
#[must_use]
pub fn local_executors(launcher: &Launcher, secrets: &Secrets, runtime: &Handle) -> Executors {
    let commands = CommandExecutor::new(launcher.clone(), runtime.clone()).with_secrets(secrets.clone());
    Executors::default().with("spark", SparkExecutor::new(commands.clone())).with("command", commands)
}
