//! The deletions of turns.

use serde::{Deserialize, Serialize};

use crate::record::Deletions;
use crate::stored::form::forms;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Deletions")]
pub(crate) struct StoredDeletions {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    registers: Vec<(String, String)>,
}

forms! {
    StoredDeletions of Deletions,
}
