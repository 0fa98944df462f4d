//! The engine: one thread that owns the store's writing side and takes turns.
//!
//! Whoever wants something sends a message; whoever did something reports one. The thread drains what
//! has come, takes one turn for all of it, and then performs the commands. Reads go past it.

pub mod clock;
mod deployments;
pub mod executor;
mod handle;
pub mod job;
mod leader;
pub mod prober;
pub mod sources;
mod stepping;
pub mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock, mpsc};
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::{Ask, Config, Input, Reply, TakenName, WorkflowFilter};
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Workflow};
use kelos_storage::Storage;
use kelos_store::{Journal, Queries};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{oneshot, watch};

pub use deployments::Project;
pub use handle::{AskError, Handle};

use crate::clock::Clock;
use crate::executor::Executors;
use crate::job::Functions;

/// Who moves the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The engine: it schedules automatically.
    ByItself,
    /// Somebody outside, by [`Handle::step`]: between steps what happens is recorded, and nothing is
    /// planned, looked at or dispatched.
    Stepped,
}

/// What an engine is made of.
pub struct EngineParts {
    /// Where the state lives.
    pub store: Box<dyn Journal>,
    /// Name of this process among those that may lead.
    pub node: String,
    /// Where the time comes from.
    pub clock: Clock,
    /// Who moves it.
    pub pace: Pace,
    /// The scheduler's tunables.
    pub config: Config,
    /// Who does the runs.
    pub executors: Executors,
    /// Functions of scripts.
    pub functions: Arc<dyn Functions>,
    /// Where paths are looked at.
    pub storage: Storage,
    /// Where probes and blocking calls work.
    pub runtime: Runtime,
    /// How long a lease lasts that is not renewed.
    pub lease: Duration,
}

/// What an engine is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It has not led yet.
    Starting,
    /// It writes.
    Leading {
        /// The epoch of its lease.
        epoch: u64,
    },
    /// Another process leads on the same data; it waits.
    Standby,
    /// The store fails; it tries again.
    Troubled {
        /// What the store said.
        reason: String,
    },
    /// What is stored is damaged; nothing is scheduled until that is mended. [`MENDING`] says how.
    Damaged {
        /// What was found.
        reason: String,
    },
    /// It has ended.
    Stopped,
}

/// What to do about damage, for people.
pub const MENDING: &str = "stop the server and run `kelos verify` to see what is damaged; then restore a backup of the database, \
    or accept it as it is with `kelos verify --accept`";

/// What is defined by files, or by the program that has the engine: all of it.
#[derive(Clone, Default)]
pub struct Definitions {
    /// Whose definitions these are. Those of others stay as they are.
    pub provenance: Provenance,
    /// The workflows.
    pub all: Vec<Arc<Workflow>>,
    /// The text of each file that they are from.
    pub sources: BTreeMap<String, Arc<str>>,
    /// The units of deployment that there are, also those that define nothing.
    pub projects: BTreeMap<String, Project>,
    /// Whether these are all projects: one that was deployed before and is not among them is gone, and its schedules with it.
    pub is_whole: bool,
    /// Who deployed a project, where that is known.
    pub deployers: BTreeMap<String, Actor>,
}

impl Definitions {
    /// The same, where others came just before that nobody has taken in: who deployed those deployed these.
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
        reply: oneshot::Sender<Reply>,
    },
    Step {
        at: Timestamp,
        only: WorkflowFilter,
        done: oneshot::Sender<()>,
    },
    /// Answered after the commit of the turn that takes it, and with it all that was sent before.
    Barrier(oneshot::Sender<()>),
    Definitions(Definitions),
    Stop(oneshot::Sender<()>),
}

/// What the engine's thread shows to the outside.
pub(crate) struct EngineView {
    pub(crate) status: watch::Sender<Status>,
    /// Grows with each commit, also with those of another process that leads: followers read on from the log.
    pub(crate) commits: watch::Sender<u64>,
    /// The moment of the latest step, where the engine is stepped.
    pub(crate) stepped_at: RwLock<Option<Timestamp>>,
    /// Definitions that are left out, since their names are others'.
    pub(crate) taken: RwLock<BTreeSet<TakenName>>,
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
    });
    let handle =
        Handle::new(send.clone(), reader, shown.clone(), parts.clock.clone(), parts.pace, parts.executors.clone());
    let leader = leader::Leader::new(parts, send, receive, shown);
    std::thread::Builder::new().name("kelos-engine".to_owned()).spawn(move || leader.run())?;
    Ok(handle)
}
