//! Flows: graphs of steps as values, what they mean as definitions, and their runs.
//!
//! A [`Step`] is an async function with a name; a [`Part`] is a graph of steps; a [`Flow`] is a part that a [`Project`](super::Project) runs
//! under a name. Absent: how runs are carried out, which the scheduler does for flows of all doors.

mod checks;
mod definition;
mod graph;
mod part;
mod rehearsed;
mod run;
mod running;
mod signals;
mod step;

pub use definition::{Flow, flow};
pub use part::Part;
pub use rehearsed::RehearsedFlow;
pub use run::{FlowRun, StepRun};
pub use running::RunningFlow;
pub(super) use signals::SignalTypes;
pub use step::{Step, StepFunction, signal, step};
