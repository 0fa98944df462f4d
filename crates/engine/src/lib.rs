//! The engine: one thread that owns the store's writing side and takes turns.
//!
//! Requests and reports are messages to it. The thread drains them, takes one turn for all, and then
//! performs the commands. Reads bypass it.

pub mod clock;
mod deployments;
pub mod executor;
mod handle;
pub mod inbox;
pub mod job;
mod leader;
mod leadership;
pub mod leap;
pub mod prober;
pub mod program;
pub mod reads;
pub mod secrets;
pub mod sources;
mod stepping;
mod timed;
pub mod timings;
mod trace;
pub mod trimming;
pub mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock, mpsc};
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::{Ask, Config, Input, Reply, TakenName, Warrant, WorkflowFilter};
use kelos_model::references::MissingConsent;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Workflow};
use kelos_storage::Storage;
use kelos_store::{Journal, Queries};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{oneshot, watch};

pub use deployments::Project;
pub use handle::{AskError, Handle, Lens};
pub use leadership::wait_after;
pub use trace::TraceIds;

use crate::clock::Clock;
use crate::executor::Executors;
use crate::job::Functions;
use crate::timings::Timings;

/// The mover of the engine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The engine: it schedules automatically.
    ByItself,
    /// The caller of [`Handle::step`]: between steps inputs are recorded, and nothing is planned, evaluated or
    /// dispatched.
    Stepped,
}

/// The parts that an engine is made of.
pub struct EngineParts {
    /// The store of the state.
    pub store: Box<dyn Journal>,
    /// Name of this process among those that may lead.
    pub node: String,
    /// The source of the time.
    pub clock: Clock,
    /// The mover of the clock.
    pub pace: Pace,
    /// The scheduler's tunables.
    pub config: Config,
    /// The executors of the runs.
    pub executors: Executors,
    /// Functions of scripts.
    pub functions: Arc<dyn Functions>,
    /// The file systems of paths.
    pub storage: Storage,
    /// The runtime for probes and blocking calls.
    pub runtime: Runtime,
    /// The duration of a lease that is not renewed.
    pub lease: Duration,
    /// Whether runs are given the context of their trace.
    pub traces: bool,
}

/// The status of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It has not led yet.
    Starting,
    /// It leads and writes.
    Leading {
        /// The epoch of its lease.
        epoch: u64,
    },
    /// Another process leads on the same data; it waits.
    Standby,
    /// The store fails; it tries again.
    Troubled {
        /// The error of the store.
        reason: String,
    },
    /// The stored data is damaged; nothing is scheduled until it is repaired. [`MENDING`] says how.
    Damaged {
        /// The damage that was found.
        reason: String,
    },
    /// It has ended.
    Stopped,
}

/// The advice for people on damage.
pub const MENDING: &str = "stop the server and run `kelos verify` to see what is damaged; then restore a backup of the database, \
    or accept it as it is with `kelos verify --accept`";

/// All definitions of files, or of the embedding program.
#[derive(Clone, Default)]
pub struct Definitions {
    /// The provenance of these definitions. Those of others stay as they are.
    pub provenance: Provenance,
    /// The workflows.
    pub all: Vec<Arc<Workflow>>,
    /// The text of each file that they are from.
    pub sources: BTreeMap<String, Arc<str>>,
    /// The units of deployment that there are, also those that define nothing.
    pub projects: BTreeMap<String, Project>,
    /// Whether these are all projects: one that was deployed before and is not among them is removed, with its
    /// schedules.
    pub is_whole: bool,
    /// The actors who deployed projects, where known.
    pub deployers: BTreeMap<String, Actor>,
}

impl Definitions {
    /// The same, after others that were not processed yet: their deployers count as deployers of these.
    fn after(mut self, before: Definitions) -> Definitions {
        for (project, by) in before.deployers {
            self.deployers.entry(project).or_insert(by);
        }
        self
    }
}

pub(crate) enum Message {
    Input(Input),
    Ask {
        by: Actor,
        ask: Ask,
        warrant: Option<Arc<Warrant>>,
        reply: oneshot::Sender<Reply>,
    },
    Step {
        at: Timestamp,
        only: WorkflowFilter,
        done: oneshot::Sender<()>,
    },
    /// Answered after the commit of the turn that processes it, and with it all that was sent before.
    Barrier(oneshot::Sender<u64>),
    Definitions(Definitions),
    Stop(oneshot::Sender<()>),
}

/// The state that the engine's thread publishes.
pub(crate) struct EngineView {
    pub(crate) status: watch::Sender<Status>,
    /// Grows with each commit, also with those of another process that leads: followers read on from the log.
    pub(crate) commits: watch::Sender<u64>,
    /// The moment of the latest step, where the engine is stepped.
    pub(crate) stepped_at: RwLock<Option<Timestamp>>,
    /// Definitions that are left out, since their names are others'.
    pub(crate) taken: RwLock<BTreeSet<TakenName>>,
    /// References that other projects don't share: their workflows lie dormant.
    pub(crate) unshared: RwLock<BTreeSet<MissingConsent>>,
    pub(crate) timings: Timings,
}

/// Starts an engine on a thread of its own.
///
/// # Errors
/// When the thread can't be started.
pub fn start(parts: EngineParts) -> std::io::Result<Handle> {
    let (send, receive) = mpsc::channel();
    let reader: Arc<dyn Queries> = parts.store.reader();
    let shown = Arc::new(EngineView {
        status: watch::Sender::new(Status::Starting),
        commits: watch::Sender::new(0),
        stepped_at: RwLock::new(None),
        taken: RwLock::default(),
        unshared: RwLock::default(),
        timings: Timings::default(),
    });
    let handle =
        Handle::new(send.clone(), reader, shown.clone(), parts.clock.clone(), parts.pace, parts.executors.clone());
    let leader = leader::Leader::new(parts, send, receive, shown);
    std::thread::Builder::new().name("kelos-engine".to_owned()).spawn(move || leader.run())?;
    Ok(handle)
}
