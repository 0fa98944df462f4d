//! Jobs: submitted, and their parents and children.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;
use kelos_model::jobs::Unwritable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::{is_zero, present};
use crate::{Code, Instant, SlotNameDto};

/// The queue of a workflow, for programs that start and stop workers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueDto {
    /// The workflow.
    pub workflow: String,
    /// The number of slots that could start now, and wait for a permit or a worker.
    pub queued: u64,
    /// The number of slots with a run that was dispatched or has started.
    pub running: u64,
    /// The number of slots that wait for what they depend on, or are held by a constraint.
    pub waiting: u64,
    /// The number of slots that wait until a failed run is retried.
    pub backoff: u64,
    /// The number of failed slots.
    pub failed: u64,
    /// Since when the slot has been queued that has waited longest; none if no slot is queued. Among the first 20,000, if more are queued.
    pub oldest_since: Option<Instant>,
    /// The seconds since then.
    pub oldest_seconds: Option<u64>,
    /// Whether it is paused: then its queued slots do not start, and more workers are of no use.
    pub paused: bool,
}

/// A request to submit jobs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitRequest {
    /// The jobs, from 1 to 10,000.
    pub jobs: Vec<JobName>,
    /// Their priority, from 1, which runs first, to 100, the default. Ancestors that are opened for them inherit it.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Whether to reopen jobs that have ended, with everything downstream that has ended.
    #[serde(default)]
    pub readd: bool,
    /// Arguments of those that are opened or reopened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether to preview only, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// The name of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobName {
    /// The app of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workflow: WorkflowId,
    /// Its job id.
    pub job: String,
}

/// The result of submitting jobs, or its preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum SubmitResultDto {
    /// The preview.
    Outlook(OutlookDto),
    /// The result.
    Submitted(SubmittedListDto),
}

/// The result of submitting jobs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmittedListDto {
    /// The result for each job, in the order of the request.
    pub items: Vec<SubmittedDto>,
}

/// The result of submitting a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubmittedDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `opened`; `reopened`, where it had ended; or `existed`, where it was left as it is.
    pub result: Code,
    /// Its state, if it existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Code>,
    /// The number of reopened jobs downstream, if it was reopened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descendants: Option<u32>,
    /// The reason that it has no parents although its app has dependencies: an identifier that no group covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
    /// Its children that are never opened, because their ids can't be formed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless_children: Option<String>,
}

/// A preview of submitting jobs, which assumes that all runs succeed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutlookDto {
    /// Always true.
    pub dry_run: bool,
    /// The number of jobs for each `fate`.
    pub counts: BTreeMap<Code, usize>,
    /// The jobs, each after its parents; the first 10,000.
    pub items: Vec<ExpectedDto>,
    /// Whether there are more jobs than are listed.
    pub cut: bool,
}

/// The preview of one job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExpectedDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its current state; none if it was never opened.
    pub state: Option<Code>,
    /// `ancestor`, `asked` (it is one of those that were named) or `descendant`.
    pub role: Code,
    /// `runs`, `under-way` (it goes on anyway), `ended` (it is left as it is), `blocked`, `skipped` or `paused`
    /// (its workflow is).
    pub fate: Code,
    /// Whether a function of its app decides, once it is opened, if it is valid.
    pub asked_when_opened: bool,
    /// The jobs that block it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<SlotNameDto>,
    /// The number of further jobs that block it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_blockers: usize,
    /// The reason that it would have no parents although its app has dependencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
    /// The reason that it could never run: the ids of some of its parents can't be formed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_way: Option<String>,
}

/// The parents of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ParentsDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The groups of its parents, of which one must succeed as a whole; it has no parents if there are no groups.
    pub any_of: Vec<GroupDto>,
    /// The reason that there are no groups although its app has dependencies: an identifier that no group covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
}

/// A group of parents, all of which must succeed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GroupDto {
    /// Its name.
    pub group: String,
    /// The number of its jobs, including those whose ids can't be formed.
    pub total: usize,
    /// Its jobs whose ids can't be formed; the group can then never succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritable: Vec<UnwritableDto>,
    /// The number of its jobs that succeeded; absent if the answer comes from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<usize>,
    /// The number of its jobs that ended without success; absent if the answer comes from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_without_success: Option<usize>,
    /// The jobs, up to the requested limit.
    pub jobs: Vec<RelativeDto>,
}

/// Parents or children whose ids can't be formed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnwritableDto {
    /// The app of the jobs.
    pub workflow: String,
    /// The group of the dependency.
    pub group: String,
    /// The number of jobs.
    pub count: usize,
    /// The stable code of the cause.
    pub code: String,
    /// The cause in words.
    pub why: String,
}

/// A parent or child of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RelativeDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state: null if it was never opened, absent if the answer comes from a file.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<Option<Code>>,
    /// The group of the dependency, for a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The children of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildrenDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The number of children.
    pub total: usize,
    /// The jobs, up to the requested limit.
    pub children: Vec<RelativeDto>,
    /// Children that are never opened, because their ids can't be formed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritable: Vec<UnwritableDto>,
}

impl From<&Unwritable> for UnwritableDto {
    fn from(one: &Unwritable) -> UnwritableDto {
        UnwritableDto {
            workflow: one.workflow.to_string(),
            group: one.group.to_string(),
            count: one.count,
            code: one.why.code().to_owned(),
            why: one.why.to_string(),
        }
    }
}
