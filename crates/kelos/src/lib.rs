//! Kelos as a library: plan, gate, run and explain recurring data work.
//!
//! [`engine::start`] gives a [`Handle`]; a [`scripts::ScriptFolder`] feeds it definitions, executors do the
//! runs, and [`why`] says why a slot stands where it stands, at any moment.

pub mod backfill;
pub mod celos_db;
pub mod clock;
pub mod critical_path;
pub mod deploy;
pub mod dry_run;
pub mod engine;
pub mod executor;
pub mod export;
pub mod graph;
pub mod http;
pub mod import;
pub mod job;
pub mod jobs;
pub mod local;
pub mod node;
pub mod prober;
pub mod rehearsal;
pub mod schedule;
pub mod schedules;
pub mod scripts;
pub mod shadow;
pub mod sources;
pub mod stolos;
pub mod stuck;
pub mod turn;
pub mod verify;
pub mod why;
pub mod workers;

pub use engine::{AskError, EngineParts, Handle, MENDING, Pace, Status};
pub use node::{Node, NodeConfig, NodeError};

pub use kelos_core as core;
pub use kelos_model as model;
pub use kelos_script as script;
pub use kelos_storage as storage;
pub use kelos_store as store;
