//! Triggers: the conditions that a slot waits for.

use std::sync::Arc;

use kelos_model::probe::Conditions;
use kelos_model::time::Firing;
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{FunctionRef, SlotState, Trigger, WorkflowId};
use serde::{Deserialize, Serialize};

use super::names::{StoredName, StoredSlotState};
use super::schedule::StoredFiring;
use crate::stored::form::{As, forms};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Trigger", tag = "type", rename_all = "kebab-case")]
pub(super) enum StoredTrigger {
    Always,
    And {
        #[serde(with = "As::<Vec<StoredTrigger>>")]
        triggers: Vec<Trigger>,
    },
    Or {
        #[serde(with = "As::<Vec<StoredTrigger>>")]
        triggers: Vec<Trigger>,
    },
    Not {
        #[serde(with = "As::<Box<StoredTrigger>>")]
        trigger: Box<Trigger>,
    },
    Offset {
        seconds: i64,
        #[serde(with = "As::<Box<StoredTrigger>>")]
        trigger: Box<Trigger>,
    },
    Delay {
        seconds: i64,
    },
    Success {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
    },
    Covers {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        from: i64,
        to: i64,
    },
    Job {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        job: String,
    },
    Path(#[serde(with = "As::<StoredPathCheck>")] PathCheck),
    Partitions {
        dataset: Arc<str>,
        count: u32,
    },
    Ended {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
        #[serde(with = "As::<Vec<StoredSlotState>>")]
        states: Vec<SlotState>,
    },
    Fired {
        #[serde(flatten, with = "As::<StoredFiring>")]
        firing: Firing,
    },
    Signal {
        name: Arc<str>,
    },
    Function {
        #[serde(with = "As::<StoredFunctionRef>")]
        function: FunctionRef,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PathCheck")]
struct StoredPathCheck {
    #[serde(with = "As::<StoredFileSystem>")]
    system: FileSystem,
    path: String,
    base: String,
    #[serde(default, skip_serializing_if = "Conditions::is_empty", with = "As::<StoredConditions>")]
    conditions: Conditions,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FileSystem", rename_all = "kebab-case")]
enum StoredFileSystem {
    Hdfs,
    Local,
    Any,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Conditions", rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredConditions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_count: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_age_seconds: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FunctionRef")]
pub(super) struct StoredFunctionRef {
    file: String,
    index: u32,
    digest: String,
}

forms! {
    StoredTrigger of Trigger,
    StoredPathCheck of PathCheck,
    StoredFileSystem of FileSystem,
    StoredConditions of Conditions,
    StoredFunctionRef of FunctionRef,
}
