//! Names: ids, keys, states, actors.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::ranges::Range;
use kelos_model::workers::Label;
use kelos_model::workflow::{ProjectVersion, VersionChoice};
use kelos_model::{Actor, ActorKind, BackfillId, PoolId, RunId, SlotKey, SlotRef, SlotState, StepName, WorkflowId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stored::form::{As, Form, forms};

/// A name that people gave.
pub(super) struct StoredName;

macro_rules! names {
    ($($name:ident)*) => {
        $(
            impl Form<$name> for StoredName {
                fn write<S: Serializer>(value: &$name, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(value.as_str())
                }

                fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                    $name::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
                }
            }
        )*
    };
}

names! { WorkflowId BackfillId PoolId ProjectVersion StepName Label }

/// A choice of a version, as its text.
pub(super) struct StoredVersionChoice;

impl Form<VersionChoice> for StoredVersionChoice {
    fn write<S: Serializer>(value: &VersionChoice, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VersionChoice, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A key, as the text of its kind.
pub(super) struct StoredKey;

impl Form<SlotKey> for StoredKey {
    fn write<S: Serializer>(value: &SlotKey, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SlotKey, D::Error> {
        SlotKey::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotRef")]
pub(super) struct StoredSlotRef {
    #[serde(with = "As::<StoredName>")]
    workflow: WorkflowId,
    #[serde(with = "As::<StoredKey>")]
    key: SlotKey,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RunId")]
pub(super) struct StoredRunId {
    #[serde(with = "As::<StoredSlotRef>")]
    slot: SlotRef,
    number: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Range")]
pub(super) struct StoredRange {
    start: Timestamp,
    end: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotState", rename_all = "lowercase")]
pub(super) enum StoredSlotState {
    Waiting,
    Held,
    Queued,
    Dispatched,
    Running,
    Backoff,
    Succeeded,
    Failed,
    Expired,
    Skipped,
    Killed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ActorKind", rename_all = "kebab-case")]
pub(super) enum StoredActorKind {
    Person,
    Token,
    Worker,
    System,
    Unknown,
}

/// An actor: the name alone if nothing else is known, which was the first form.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredActor {
    Name(Arc<str>),
    Whole {
        #[serde(with = "As::<StoredActorKind>")]
        kind: ActorKind,
        name: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credential: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
}

impl Form<Actor> for StoredActor {
    fn write<S: Serializer>(value: &Actor, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(name) = value.bare_name() {
            return serializer.serialize_str(name);
        }
        let Actor { kind, name, credential, address } = value.clone();
        StoredActor::Whole { kind, name, credential, address }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Actor, D::Error> {
        Ok(match StoredActor::deserialize(deserializer)? {
            StoredActor::Name(name) => Actor::unknown(name),
            StoredActor::Whole { kind, name, credential, address } => Actor { kind, name, credential, address },
        })
    }
}

forms! {
    StoredSlotRef of SlotRef,
    StoredRunId of RunId,
    StoredRange of Range,
    StoredSlotState of SlotState,
    StoredActorKind of ActorKind,
}
