//! Kelos as a library: a scheduler for recurring data jobs that explains every decision.
//!
//! [`start`] starts an engine on a store, with executors of your own; the [`Handle`] takes definitions, requests and queries. With
//! the feature `node`, [`Node`] runs a complete Kelos in one process: store, scripts, executors and engine.
//!
//! Without features this is the engine alone, with a store in memory and local files: no JavaScript, no HTTP, no client of any
//! server, and nothing is read from the environment. `full` has all that the server of Kelos needs.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "embed")]
pub mod embed;
#[cfg(feature = "node")]
#[doc(hidden)]
pub mod history;
#[cfg(feature = "node")]
mod node;
#[cfg(feature = "nodes")]
#[doc(hidden)]
pub mod nodes;
pub mod requests;

/// Clusters of Kafka: their topics become facts and signals, and jobs send messages.
#[cfg(feature = "kafka")]
pub mod kafka {
    pub use kelos_kafka::{
        Cluster, Delivery, IncomingMessage, Kafka, KafkaError, OutgoingMessage, Setting, Start, Topic,
    };
}

/// Times, as all of the interface has them: in the version with which it was built.
pub use jiff;
pub use kelos_core::Config;
pub use kelos_engine::clock::{Clock, system_clock};
pub use kelos_engine::executor::{Executor, Executors, Reports, RunInput, Start};
pub use kelos_engine::job::{Functions, NoFunctions};
pub use kelos_engine::{AskError, Definitions, EngineParts, Handle, Pace, Project, Status, start};
pub use kelos_model::run::Report;
pub use kelos_model::time::{CronSchedule, Schedule};
pub use kelos_model::workflow::{CatchUp, DefinitionVersion, ProjectVersion, VersionChoice, WaitStart};
pub use kelos_model::{
    Actor, Arguments, Constraint, Event, EventRecord, Job, Outcome, Parameter, ParameterKind, RetryPolicy, Run, RunId,
    RunState, Slot, SlotKey, SlotRef, SlotState, Trigger, Workflow, WorkflowId,
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
#[cfg(feature = "scripts")]
pub use node::{ProblemSource, not_shared};
