//! Readings of the log: why a slot did or did not run, what holds others up, what comes next.
//!
//! Everything here asks [`Queries`](kelos_store::Queries) and writes nothing; what memory alone knows (the next look, the place in the
//! queue) is asked of the engine's handle, and answers are given without it while the engine is busy or stands by.

pub mod backfill;
pub mod critical_path;
pub mod graph;
pub mod jobs;
pub mod schedule;
pub mod schedules;
pub mod stuck;
pub mod verify;
pub mod why;
