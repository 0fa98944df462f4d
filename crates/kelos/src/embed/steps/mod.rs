//! Graphs of steps as values, and what they mean as definitions.
//!
//! A [`Step`] is an async function with a name; a [`Part`] is a graph of steps, which a [`Flow`](super::Flow) of a project runs. Absent: how
//! runs are carried out, which the scheduler does for flows of all doors.

mod checks;
mod graph;
mod part;
mod signals;
mod step;

pub use part::Part;
pub(super) use signals::SignalTypes;
pub use step::{Step, StepFunction, signal, step};
