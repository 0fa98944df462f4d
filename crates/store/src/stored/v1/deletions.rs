//! The deletions of turns.

use serde::{Deserialize, Serialize};

use kelos_model::history::Trim;

use crate::record::Deletions;
use crate::stored::form::{As, forms};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Deletions")]
pub(crate) struct StoredDeletions {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    registers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredTrim>>")]
    history: Option<Trim>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Trim")]
pub(crate) struct StoredTrim {
    until: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stretches: Vec<(u64, u64)>,
}

forms! {
    StoredDeletions of Deletions,
    StoredTrim of Trim,
}
