//! Workers: processes that do runs for a leader, on the same machine and on one folder of state.
//!
//! The leader has a [`Hub`]: an executor that hands runs to workers, hears what becomes of them, and ends what a worker
//! leaves behind that falls silent. A [`Worker`] does runs by executors of its own. What the two say to each other is a
//! [`Word`] and its [`Answer`]; how it gets from one to the other is a [`Door`], and somebody else's.
//!
//! What holds, and why:
//!
//! - *A run is at one worker at a time.* The desk gives it to a session, and takes it back only once its command is ended.
//! - *A worker that was given up is not believed.* Each session has a name that only its desk knows to be good; words of
//!   a session that ended are refused, and the worker then ends what it has.
//! - *Nothing is lost with the leader.* A report is said again until it is committed; what a worker has it says with each
//!   word, so the next leader hears of it before it would give it up.
//! - *Nobody is waited for in vain.* A leader that ends takes back what no worker fetched. The next one waits for workers that
//!   are alive, by the [`Roll`] of the folder, and for no others.
//!
//! Absent: which run goes to whom. The core decides that, by what workers offer; the desk only looks for another worker
//! where that one is gone.

mod desk;
mod roll;
mod state;
#[cfg(test)]
mod tests;
mod verdict;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kelos_model::run::Report;
use kelos_model::{RunId, SlotRef, Workflow, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use desk::{Hub, HubError};
pub use roll::{Roll, Signature};
pub use worker::{Door, News, NoAnswer, RunEnd, Worker, WorkerOffer};

use crate::local::ProcessId;
use kelos_engine::executor::RunInput;

/// How long a worker may be silent before its runs are taken from it.
pub const LEASE: Duration = Duration::from_secs(10);

/// What a worker says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Word {
    /// What the desk called its session; none with the first word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Grows with each word: an offer that was overtaken by a later one does not count.
    pub count: u64,
    /// Jobs of these workflows it would do; none means of all.
    pub workflows: BTreeSet<WorkflowId>,
    /// Only this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<SlotRef>,
    /// So many more runs than it has.
    pub free: u32,
    /// How often a job that it does is attempted in all, where that differs from what its workflow says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The runs that it has, but for those whose end was heard.
    pub runs: Vec<Claimed>,
    /// What became of them.
    pub reports: Vec<Told>,
    /// How long it waits for something to do.
    pub wait_millis: u64,
    /// That it wants nothing more, and ends once it has nothing.
    pub leaves: bool,
    /// With that: that it does not do what was given to it meanwhile, so that others may.
    pub declines: bool,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// A run that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// Which.
    pub run: RunId,
    /// What its executor calls it, once it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Which.
    pub run: RunId,
    /// What.
    pub what: Report,
}

/// A process, for those who share its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Where its number means something.
    pub host: String,
    /// Its number, and when it began.
    pub id: ProcessId,
}

impl Process {
    /// This one.
    ///
    /// # Errors
    /// Where the system says nothing of processes.
    pub fn own() -> std::io::Result<Process> {
        Ok(Process { host: crate::local::host()?, id: ProcessId::current()? })
    }

    /// Whether it is on this machine, so that its end can be seen.
    fn is_here(&self) -> bool {
        crate::local::host().is_ok_and(|host| host == self.host)
    }
}

/// What a desk answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// What it calls the session.
    pub session: String,
    /// How long the worker may be silent.
    pub lease_millis: u64,
    /// Runs to be done.
    pub starts: Vec<Order>,
    /// Runs to be ended.
    pub cancels: Vec<RunId>,
    /// Runs that it does not take the worker's word for: they are to be ended, and nothing of them is to be said any more.
    pub refused: Vec<RunId>,
}

/// A run to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Which.
    pub run: RunId,
    /// Whose job.
    pub workflow: Arc<Workflow>,
    /// The job's settings, templates filled.
    pub settings: Map<String, Value>,
    /// The job's properties, templates filled.
    pub properties: Map<String, Value>,
    /// What it is given of what its slot collected.
    #[serde(default)]
    pub given: RunInput,
}

/// A worker, as its desk sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: Arc<str>,
    /// Jobs of these workflows it does; none means of all.
    pub workflows: BTreeSet<WorkflowId>,
    /// How many more runs it takes.
    pub free: u32,
    /// What it has.
    pub runs: Vec<RunId>,
}
