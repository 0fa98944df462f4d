//! Explanations from the log: why a slot did or did not run, what it waits for, what comes next.
//!
//! Everything here reads [`Queries`](kelos_store::Queries) and writes nothing; the state that is only in memory (the
//! next evaluation, the position in the queue) is requested from the engine's handle, and left out while the engine is
//! busy or stands by.

mod account;
pub mod backfill;
pub mod critical_path;
mod definitions;
pub mod expectation;
pub mod failures;
pub mod flow;
mod flow_run;
pub mod forecast;
pub mod graph;
mod history;
pub mod jobs;
pub mod out_of_range;
pub mod paths;
pub mod periods;
pub mod roots;
mod rows;
mod run_times;
pub mod schedule;
pub mod schedules;
pub mod stuck;
pub mod verify;
pub mod why;

#[cfg(test)]
mod world;
