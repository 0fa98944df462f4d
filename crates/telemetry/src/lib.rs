//! Traces and lineage, read from the log and sent to collectors.
//!
//! A leg for each: `traces` posts spans of runs and slots to a collector of OpenTelemetry, `lineage` posts events of runs to one of
//! OpenLineage. A leg is a reader of the log with a cursor of its own, which is kept in a register, so that a new leader goes on where the
//! last one was; no turn ever waits for it. What it sends is made from what is stored, with ids that follow from names: sent twice, it is
//! the same, so that a crash repeats things and loses none.
//!
//! Absent: writing anything else to the log, and metrics, which collectors read at `/metrics`.

mod account;
mod ids;
mod leg;
mod lineage;
mod receiver;
mod sender;
mod settings;
mod spans;

pub use sender::{LegStatus, Telemetry, TelemetryParts};
pub use settings::TelemetrySettings;
