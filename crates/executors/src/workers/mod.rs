//! Workers: processes that execute runs for a leader: on the same machine and on one folder of state, or on other machines with folders
//! of their own.
//!
//! The leader has a [`Hub`]: an executor that hands runs to workers, receives their reports, and ends the runs of a worker whose
//! heartbeat stops. A [`Worker`] does runs by executors of its own. It sends an [`OfferRequest`](kelos_wire::OfferRequest) and gets an
//! [`AssignmentDto`](kelos_wire::AssignmentDto), through a [`Door`] that the program provides.
//!
//! What holds, and why:
//!
//! - *A run is at one worker at a time.* The hub assigns it to a session, and takes it back only once its command is
//!   ended.
//! - *Reports of a worker that was given up don't count.* Each session has a name that only its hub accepts; messages
//!   of a session that ended are refused, and the worker then ends its runs.
//! - *Nothing is lost with the leader.* A report is repeated until it is committed; each message of a worker lists its
//!   runs, so the next leader knows them before it would give them up.
//! - *Only the leader hears workers.* A hub takes messages from the moment at which its restored runs are in its table until its epoch
//!   ends. All that it knows of sessions belongs to that epoch, and each answer names it: a worker ignores an older one than it has heard of.
//! - *The disk of a worker decides.* Before a run counts as unknown or never begun, its worker is asked for it by name, if it is there. A run
//!   is refused only if the log says that it is over, or another worker has it.
//! - *One process has a name.* Another one gets it only if the former has certainly ended, or once its lease is over.
//! - *No wait is in vain.* A leader that ends takes back the runs that no worker fetched. The next one waits for
//!   workers that are alive, by the [`Roll`] of the folder, and for no others.
//! - *The log says who has a run.* A run is given to the worker that it was dispatched to and to no other, and a worker on another
//!   machine is in the log before it is told anything. So each later leader knows for which worker it has to wait, and for how long;
//!   once that worker asks for more without naming the run, the run never began.
//! - *A lost worker on another machine is fenced.* The shim of each of its commands ends it by itself once the lease has run out by its own
//!   clock; the hub ends the run in the log only after that ([`surely_over`](crate::local::surely_over)), without reading folders.
//!
//! Absent: the assignment of runs to offers. The core decides that; the hub returns a run to the queue if its worker is gone or full.

mod complaints;
mod desk;
mod disk;
mod door;
mod elsewhere;
mod entry;
mod hands;
#[cfg(feature = "http")]
mod line;
#[cfg(feature = "http")]
mod lines;
mod output;
mod refusal;
mod roll;
mod session;
mod state;
mod terms;
#[cfg(test)]
mod tests;
mod verdict;
mod waits;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::workers::Label;
use kelos_model::{RunId, WorkflowId};
use kelos_wire::{OfferedProjectDto, ProcessDto, ProcessIdDto, RemoteWorkerDto, WorkerFoldersDto};
use serde::{Deserialize, Serialize};

pub use desk::Hub;
pub use disk::{Disk, DiskError, HeldFolders, HeldRuns};
pub use door::{Door, NoAnswer};
pub use hands::WorkerOffer;
#[cfg(feature = "http")]
pub use line::{AddressError, CONNECT, RemoteLine, detail, escaped, is_passing};
#[cfg(feature = "http")]
pub use lines::WorkerLine;
pub use output::OutputReader;
pub use refusal::{HeldName, HubError};
pub use roll::{Roll, Signature};
pub use terms::Terms;
pub use worker::{News, RunEnd, Worker, WorkerHome};

use crate::local::ProcessId;

/// The time after which a silent worker loses its runs.
pub const LEASE: Duration = Duration::from_secs(15);

/// The shortest lease of a worker: a change of leader takes some seconds, and no command ends with it.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(15);

/// The time after which a silent worker on another machine loses its runs: a network may fail for a moment.
pub const REMOTE_LEASE: Duration = Duration::from_secs(60);

/// A process, which other processes on its machine can find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The machine.
    pub host: String,
    /// Its identity on that machine.
    pub id: ProcessId,
}

impl Process {
    /// The current process.
    ///
    /// # Errors
    /// When the system does not identify processes.
    pub fn own() -> std::io::Result<Process> {
        Ok(Process { host: crate::local::host()?, id: ProcessId::current()? })
    }

    /// Whether it is on this machine, so that its end can be seen.
    fn is_here(&self) -> bool {
        crate::local::host().is_ok_and(|host| host == self.host)
    }

    /// Its identity as one text, for the log.
    fn text(&self) -> String {
        format!("{} {} {}", self.host, self.id.pid, self.id.started)
    }
}

impl From<Process> for ProcessDto {
    fn from(process: Process) -> ProcessDto {
        let Process { host, id: ProcessId { pid, started } } = process;
        ProcessDto { host, id: ProcessIdDto { pid, started } }
    }
}

impl From<ProcessDto> for Process {
    fn from(process: ProcessDto) -> Process {
        let ProcessDto { host, id: ProcessIdDto { pid, started } } = process;
        Process { host, id: ProcessId { pid, started } }
    }
}

/// A worker as its hub knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Its name.
    pub name: Arc<str>,
    /// Jobs of these workflows it does; none means of all.
    pub workflows: BTreeSet<WorkflowId>,
    /// The project whose functions it has.
    pub project: Option<OfferedProjectDto>,
    /// Its labels.
    pub labels: BTreeSet<Label>,
    /// The number of further runs that it accepts.
    pub free: u32,
    /// Its runs.
    pub runs: Vec<RunId>,
    /// The description of one on another machine.
    pub remote: Option<RemoteWorkerDto>,
    /// The folders of its runs, if it has told of them since it registered; only of one on another machine.
    pub folders: Option<WorkerFoldersDto>,
    /// When it registered.
    pub since: Timestamp,
    /// Whether it accepts no more runs, and ends once it has none.
    pub leaves: bool,
    /// The time of its last heartbeat, if that is missed.
    pub away_since: Option<Timestamp>,
}
