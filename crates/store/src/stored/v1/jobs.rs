//! The definitions of workflows that are keyed by job ids, and their dependencies.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::jobs::{
    DateForm, Feed, Group, JobKeys, JobTemplate, Kind, Member, Pattern, TwoWay, Validity, ValueFilter,
};
use kelos_model::time::schedule::Schedule;
use kelos_model::{FunctionRef, WorkflowId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::StoredName;
use super::schedule::StoredSchedule;
use super::trigger::StoredFunctionRef;
use crate::stored::form::{As, Form, Plain, forms};

#[derive(Serialize, Deserialize)]
#[serde(remote = "JobKeys", rename_all = "camelCase")]
pub(super) struct StoredJobKeys {
    #[serde(with = "As::<StoredJobTemplate>")]
    template: JobTemplate,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<BTreeMap<Plain, StoredKind>>")]
    identifiers: BTreeMap<Arc<str>, Kind>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<BTreeMap<Plain, StoredFunctionRef>>")]
    checks: BTreeMap<Arc<str>, FunctionRef>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    domains: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredGroup>>")]
    depends_on: Vec<Group>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredValidity>>")]
    valid: Option<Validity>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredFeed>>")]
    feed: Option<Feed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mistake: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Validity", rename_all = "camelCase")]
struct StoredValidity {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredFunctionRef>>")]
    function: Option<FunctionRef>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Feed", rename_all = "camelCase")]
struct StoredFeed {
    identifier: Arc<str>,
    #[serde(with = "As::<StoredSchedule>")]
    schedule: Schedule,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Group", rename_all = "camelCase")]
struct StoredGroup {
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredMember>>")]
    members: Vec<Member>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredTwoWay>>")]
    functions: Option<TwoWay>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TwoWay", rename_all = "camelCase")]
struct StoredTwoWay {
    #[serde(with = "As::<Vec<StoredName>>")]
    workflows: Vec<WorkflowId>,
    #[serde(with = "As::<StoredFunctionRef>")]
    parents: FunctionRef,
    #[serde(with = "As::<StoredFunctionRef>")]
    children: FunctionRef,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Member", rename_all = "camelCase")]
struct StoredMember {
    #[serde(with = "As::<Vec<StoredName>>")]
    workflows: Vec<WorkflowId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<BTreeMap<Plain, StoredValueFilter>>")]
    values: BTreeMap<Arc<str>, ValueFilter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job_ids: Option<Vec<Arc<str>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ValueFilter", rename_all = "camelCase")]
enum StoredValueFilter {
    All,
    Of(Vec<Arc<str>>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Kind", tag = "kind", rename_all = "camelCase")]
enum StoredKind {
    Text,
    Integer {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<i64>,
    },
    Date {
        #[serde(default, with = "As::<StoredDateForm>")]
        form: DateForm,
    },
    Choice {
        of: Vec<Arc<str>>,
    },
    Pattern {
        #[serde(with = "As::<StoredPattern>")]
        pattern: Pattern,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DateForm")]
enum StoredDateForm {
    #[serde(rename = "yyyymmdd")]
    Compact,
    #[serde(rename = "yyyy-mm-dd")]
    Dashed,
}

/// A template of job ids, as it was written.
struct StoredJobTemplate;

impl Form<JobTemplate> for StoredJobTemplate {
    fn write<S: Serializer>(value: &JobTemplate, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.as_str())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JobTemplate, D::Error> {
        JobTemplate::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A regular expression, as it was written.
struct StoredPattern;

impl Form<Pattern> for StoredPattern {
    fn write<S: Serializer>(value: &Pattern, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.as_str())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        Pattern::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

forms! {
    StoredJobKeys of JobKeys,
    StoredValidity of Validity,
    StoredFeed of Feed,
    StoredGroup of Group,
    StoredTwoWay of TwoWay,
    StoredMember of Member,
    StoredValueFilter of ValueFilter,
    StoredKind of Kind,
    StoredDateForm of DateForm,
}
