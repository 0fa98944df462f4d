//! Kelos as a library: plan, gate, run and explain recurring data work.
//!
//! [`start`] starts an engine on a store, with executors of your own; [`Handle`] tells it of definitions and asks it for things. With
//! the feature `node`, [`Node`] puts a whole Kelos together in one process: store, scripts, executors and engine.
//!
//! Without features this is the engine alone, with a store in memory and this machine's files: no JavaScript, no HTTP, no client of any
//! server, and nothing is read from the environment. `full` is all that the server of Kelos has.

#[cfg(feature = "node")]
mod node;

pub use kelos_core::Config;
pub use kelos_engine::clock::{Clock, system_clock};
pub use kelos_engine::executor::{Executor, Executors, Reports, RunInput, Start};
pub use kelos_engine::job::{Functions, NoFunctions};
pub use kelos_engine::{AskError, Definitions, EngineParts, Handle, Pace, Project, Status, start};
pub use kelos_model::run::Report;
pub use kelos_model::time::{CronSchedule, Schedule};
pub use kelos_model::{
    Actor, Event, EventRecord, Job, Outcome, RetryPolicy, Run, RunId, RunState, Slot, SlotKey, SlotRef, SlotState,
    Trigger, Workflow, WorkflowId,
};
pub use kelos_storage::{Storage, StorageConfig};
pub use kelos_store::{
    EventFilter, Journal, MemoryStore, Page, PageRequest, Queries, RunFilter, SlotFilter, StoreError,
};
#[cfg(feature = "sqlite")]
pub use kelos_store_sqlite::SqliteStore;

#[cfg(feature = "node")]
pub use kelos_executors::local::own_shim;
#[cfg(feature = "node")]
pub use node::{LEASE, Node, NodeConfig, NodeError, local_executors};
