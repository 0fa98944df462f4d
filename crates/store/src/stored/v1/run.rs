//! Outcomes of runs, the permits that they hold, and their batches.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::{Batch, FailureCode, Hold, Outcome, PoolId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::StoredName;
use crate::stored::form::{As, Form, Plain, forms};

/// A kind of failure, by its name.
pub(super) struct StoredFailureCode;

impl Form<FailureCode> for StoredFailureCode {
    fn write<S: Serializer>(value: &FailureCode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.as_str())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FailureCode, D::Error> {
        String::deserialize(deserializer).map(FailureCode::from)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome", tag = "result", rename_all = "kebab-case")]
pub(crate) enum StoredOutcome {
    Succeeded,
    Failed {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_status: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredFailureCode>>")]
        code: Option<FailureCode>,
    },
    Refused {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredFailureCode>>")]
        code: Option<FailureCode>,
    },
    Killed,
    Unknown {
        reason: String,
    },
    Lost {
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Hold")]
pub(crate) struct StoredHold {
    request: u64,
    #[serde(with = "As::<BTreeMap<StoredName, Plain>>")]
    permits: BTreeMap<PoolId, u32>,
    since: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Batch", rename_all = "camelCase")]
pub(crate) struct StoredBatch {
    first: Timestamp,
    run: u32,
    last: Timestamp,
    slots: u32,
}

forms! {
    StoredHold of Hold,
    StoredBatch of Batch,
    StoredOutcome of Outcome,
}
