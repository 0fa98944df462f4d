//! Commands about the nodes that share a log.

mod list;
mod moving;

pub(crate) use list::{NodesArgs, run};
pub(crate) use moving::{MoveArgs, RecoverArgs, move_data, recover};
