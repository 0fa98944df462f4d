//! The state of a workflow besides its slots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::workflow::{LastRun, Moments, PlanState};
use kelos_model::{Actor, BackfillId, Backlog, Breach, Freeze, Kill, PoolId, RunId, Stretch};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::StoredBreach;
use super::names::{StoredActor, StoredName, StoredRange, StoredRunId};
use crate::stored::form::{As, Form, Plain, ReadForm, WriteForm, forms, is_zero};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Moments", rename_all = "camelCase")]
pub(crate) struct StoredMoments {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fired_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fired: BTreeMap<Arc<str>, Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredLastRun>>")]
    last_run: Option<LastRun>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredFreeze>>")]
    frozen: Option<Freeze>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resumed: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gave: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<BTreeMap<StoredName, Plain>>")]
    spent: BTreeMap<PoolId, Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LastRun")]
struct StoredLastRun {
    seq: u64,
    started: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PlanState")]
pub(crate) struct StoredPlanState {
    #[serde(with = "As::<StoredRangeSet>")]
    ranges: RangeSet,
    schedule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Backlog::is_empty", with = "As::<StoredBacklog>")]
    backlog: Backlog,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backlog_schedule: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stretch", rename_all = "camelCase")]
struct StoredStretch {
    #[serde(flatten, with = "As::<StoredRange>")]
    range: Range,
    since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredName>>")]
    backfill: Option<BackfillId>,
    #[serde(default, skip_serializing_if = "is_zero")]
    priority: i32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredKill>>")]
    killed: Option<Kill>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Kill")]
struct StoredKill {
    at: Timestamp,
    #[serde(with = "As::<StoredActor>")]
    by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Freeze", rename_all = "camelCase")]
struct StoredFreeze {
    at: Timestamp,
    #[serde(with = "As::<StoredBreach>")]
    breach: Breach,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty", with = "As::<BTreeSet<StoredRunId>>")]
    set_aside: BTreeSet<RunId>,
}

/// A set of ranges, ascending.
struct StoredRangeSet;

impl Form<RangeSet> for StoredRangeSet {
    fn write<S: Serializer>(value: &RangeSet, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(value.ranges().iter().map(WriteForm::<Range, StoredRange>::new))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RangeSet, D::Error> {
        let mut set = RangeSet::default();
        let ranges = Vec::<ReadForm<Range, StoredRange>>::deserialize(deserializer)?;
        ranges.into_iter().for_each(|range| set.insert(range.into_value()));
        Ok(set)
    }
}

/// The stretches of a backlog, ascending.
struct StoredBacklog;

impl Form<Backlog> for StoredBacklog {
    fn write<S: Serializer>(value: &Backlog, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(value.stretches().iter().map(WriteForm::<Stretch, StoredStretch>::new))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Backlog, D::Error> {
        let mut backlog = Backlog::default();
        let stretches = Vec::<ReadForm<Stretch, StoredStretch>>::deserialize(deserializer)?;
        stretches.into_iter().for_each(|stretch| backlog.put(stretch.into_value()));
        Ok(backlog)
    }
}

forms! {
    StoredMoments of Moments,
    StoredLastRun of LastRun,
    StoredPlanState of PlanState,
    StoredStretch of Stretch,
    StoredKill of Kill,
    StoredFreeze of Freeze,
}
