//! Kelos as a library: plan, gate, run and explain recurring data work.
//!
//! [`Node::start`] puts a whole Kelos together in one process: store, scripts, executors and engine.

mod node;

pub use node::{LEASE, Node, NodeConfig, NodeError, local_executors};
