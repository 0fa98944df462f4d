//! Facts, and those that slots collect.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::facts::{ManualStart, Tally};
use kelos_model::{Actor, Collection, Fact, Occurrence, SlotRef, SlotState, Subject, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::{StoredActor, StoredName, StoredSlotRef, StoredSlotState};
use crate::stored::form::{As, Text, forms, is_false};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Occurrence", tag = "occurrence", rename_all = "kebab-case")]
pub(super) enum StoredOccurrence {
    Partitions {
        dataset: Arc<str>,
        count: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    Ended {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
        #[serde(with = "As::<StoredSlotState>")]
        state: SlotState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arguments: BTreeMap<String, Value>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        outputs: Map<String, Value>,
    },
    Fired {
        cron: Arc<str>,
        time: Timestamp,
    },
    Signal {
        name: Arc<str>,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredSlotRef>>")]
        run: Option<SlotRef>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Fact")]
pub(super) struct StoredFact {
    source: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Arc<str>>,
    #[serde(with = "As::<StoredOccurrence>")]
    what: Occurrence,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Collection")]
pub(crate) struct StoredCollection {
    since: Timestamp,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<BTreeMap<Text, StoredTally>>")]
    tallies: BTreeMap<Subject, Tally>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredManualStart>>")]
    asked: Option<ManualStart>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "is_false")]
    met: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    again: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tally")]
struct StoredTally {
    facts: u32,
    count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Arc<StoredOccurrence>>>")]
    first: Option<Arc<Occurrence>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ManualStart")]
struct StoredManualStart {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "is_false")]
    unconstrained: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
    by: Option<Actor>,
}

forms! {
    StoredOccurrence of Occurrence,
    StoredFact of Fact,
    StoredCollection of Collection,
    StoredTally of Tally,
    StoredManualStart of ManualStart,
}
