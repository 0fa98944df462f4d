//! Functions that scripts leave behind: named here, called outside the step.

use serde::{Deserialize, Serialize};

/// A function that stayed in its script.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FunctionRef {
    /// The file that defined it.
    pub file: String,
    /// Its place among the functions that the file left behind, from 0.
    pub index: u32,
    /// A digest of its source, so that a changed function is a changed definition.
    pub digest: String,
}
