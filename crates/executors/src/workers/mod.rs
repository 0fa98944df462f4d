//! Workers: processes that execute runs for a leader, on the same machine and on one folder of state.
//!
//! The leader has a [`Hub`]: an executor that assigns runs to workers, receives their reports, and ends the runs of a
//! worker that falls silent. A [`Worker`] executes runs by executors of its own. The two exchange a [`Word`] and its
//! [`Answer`]; the transport between them is a [`Door`], which others implement.
//!
//! What holds, and why:
//!
//! - *A run is at one worker at a time.* The hub assigns it to a session, and takes it back only once its command is
//!   ended.
//! - *Reports of a worker that was given up don't count.* Each session has a name that only its hub accepts; messages
//!   of a session that ended are refused, and the worker then ends its runs.
//! - *Nothing is lost with the leader.* A report is repeated until it is committed; each message of a worker lists its
//!   runs, so the next leader knows them before it would give them up.
//! - *No wait is in vain.* A leader that ends takes back the runs that no worker fetched. The next one waits for
//!   workers that are alive, by the [`Roll`] of the folder, and for no others.
//!
//! Absent: the assignment of runs to offers. The core decides that; the hub only chooses another worker if that one is
//! gone.

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

/// The time after which a silent worker loses its runs.
pub const LEASE: Duration = Duration::from_secs(10);

/// A message of a worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Word {
    /// The name of its session; none in the first message.
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
    /// The number of attempts for its jobs, if it differs from that of their workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The runs that it has, except for those whose end was acknowledged.
    pub runs: Vec<Claimed>,
    /// Its reports on them.
    pub reports: Vec<Told>,
    /// The longest time that it waits for an answer, in milliseconds.
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
    /// The run.
    pub run: RunId,
    /// Its id in the executor, once it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

/// A report on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The run.
    pub run: RunId,
    /// The report.
    pub what: Report,
}

/// A process, for those who share its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The scope in which its number is unique.
    pub host: String,
    /// Its number, and when it began.
    pub id: ProcessId,
}

impl Process {
    /// The calling process.
    ///
    /// # Errors
    /// When the system gives no information about processes.
    pub fn own() -> std::io::Result<Process> {
        Ok(Process { host: crate::local::host()?, id: ProcessId::current()? })
    }

    /// Whether it is on this machine, so that its end can be seen.
    fn is_here(&self) -> bool {
        crate::local::host().is_ok_and(|host| host == self.host)
    }
}

/// An answer of the hub.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// The name of the session.
    pub session: String,
    /// The time after which a silent worker loses its runs, in milliseconds.
    pub lease_millis: u64,
    /// Runs to be done.
    pub starts: Vec<Order>,
    /// Runs to be ended.
    pub cancels: Vec<RunId>,
    /// Runs whose reports are not accepted: the worker has to end them without further reports.
    pub refused: Vec<RunId>,
}

/// A run to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The run.
    pub run: RunId,
    /// The workflow of its job.
    pub workflow: Arc<Workflow>,
    /// The job's settings, templates filled.
    pub settings: Map<String, Value>,
    /// The job's properties, templates filled.
    pub properties: Map<String, Value>,
    /// The arguments from the facts that its slot collected.
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
    /// The number of further runs that it accepts.
    pub free: u32,
    /// Its runs.
    pub runs: Vec<RunId>,
}
