//! Counts of what Kelos does, as text for Prometheus.
//!
//! [`Metrics`] follows the log of a node, leader and standby alike: it counts what is stored once, at its start, and from then on the
//! events. So a scrape reads neither slots nor runs, and no turn ever waits for it. [`WorkerMetrics`] counts what a worker does. All
//! [families](FAMILIES) are described in `docs/metrics.md`. What is *absent*: HTTP, and labels of single slots.

mod families;
mod follower;
mod ledger;
mod node;
mod reasons;
mod text;
mod worker;
mod workflow;

pub use families::FAMILIES;
pub use node::{Metrics, Selection};
pub use text::{CONTENT_TYPE, Family, Kind};
pub use worker::WorkerMetrics;
