//! Jobs: submitting them, and their parents and children.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;
use kelos_model::jobs::Unwritable;
use serde::{Deserialize, Serialize};

use crate::value::{is_zero, present};
use crate::{Code, SlotNameDto};

/// Jobs to be submitted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitRequest {
    /// Which: 1 to 10,000.
    pub jobs: Vec<JobName>,
    /// 1 goes first, 100 last; 100 where not given. What is opened for them has theirs.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Open those again that have ended, with all that depends on them and has ended.
    #[serde(default)]
    pub readd: bool,
    /// Why, in their words, for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only say what would run.
    #[serde(default)]
    pub dry_run: bool,
}

/// The name of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobName {
    /// Whose job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workflow: WorkflowId,
    /// Its job id.
    pub job: String,
}

/// What became of jobs that were submitted, or what would.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum SubmitResultDto {
    /// What would happen.
    Outlook(OutlookDto),
    /// What became of them.
    Submitted(SubmittedListDto),
}

/// What became of jobs that were submitted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmittedListDto {
    /// One for each, in the order in which they were given.
    pub items: Vec<SubmittedDto>,
}

/// What became of a job that was submitted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubmittedDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `opened`; `reopened`, where it had ended; or `existed`, where it was left as it is.
    pub result: Code,
    /// Where it stood, of one that existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Code>,
    /// How many that depend on it were opened again, of one that was opened again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descendants: Option<u32>,
    /// Why it waits for no job though its workflow depends on others: an identifier that none of its groups is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
    /// The jobs that wait for it and are never opened, since their ids can't be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless_children: Option<String>,
}

/// What would happen if jobs were submitted, and all that runs succeeded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutlookDto {
    /// Always true.
    pub dry_run: bool,
    /// How many jobs would come to what: by `fate`.
    pub counts: BTreeMap<Code, usize>,
    /// Each job once, after those that it waits for; the first 10,000.
    pub items: Vec<ExpectedDto>,
    /// Whether there is more than is listed.
    pub cut: bool,
}

/// What would become of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExpectedDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Where it stands now; none where it was never opened.
    pub state: Option<Code>,
    /// `ancestor`, `asked` (it is one of those that were named) or `descendant`.
    pub role: Code,
    /// `runs`, `under-way` (it goes on anyway), `ended` (it is left as it is), `blocked`, `skipped` or `paused`
    /// (its workflow is).
    pub fate: Code,
    /// Whether a function of its workflow has the last word on whether it is worth running.
    pub asked_when_opened: bool,
    /// Who blocks it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<SlotNameDto>,
    /// How many more do.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_blockers: usize,
    /// Why it would wait for no job though its workflow depends on others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
    /// Why it could never run: the jobs that it waits for can't all be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_way: Option<String>,
}

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ParentsDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The groups that are about it: all jobs of any one of them must succeed. None at all means that it waits for nothing.
    pub any_of: Vec<GroupDto>,
    /// Why there are none though its workflow depends on others: an identifier that none of its groups is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
}

/// Jobs of which one waits for all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GroupDto {
    /// Its name.
    pub group: String,
    /// How many jobs it has, with those that can't be named.
    pub total: usize,
    /// Those of them that can't be named: the group is never met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritable: Vec<UnwritableDto>,
    /// How many of them succeeded; not there where only a file was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<usize>,
    /// How many of them ended without success; not there where only a file was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_without_success: Option<usize>,
    /// The part of them that was asked for.
    pub jobs: Vec<RelativeDto>,
}

/// Jobs of a workflow that belong to one by what is written, and can't be named.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnwritableDto {
    /// Whose jobs.
    pub workflow: String,
    /// The group by which they belong to it.
    pub group: String,
    /// How many.
    pub count: usize,
    /// Why: a word that stays the same.
    pub code: String,
    /// Why, in words.
    pub why: String,
}

/// A job beside another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RelativeDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state: null where it was never opened, and not there where only a file was asked.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<Option<Code>>,
    /// The group by which it waits; of a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// What waits for a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildrenDto {
    /// The job.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// How many there are.
    pub total: usize,
    /// The part of them that was asked for.
    pub children: Vec<RelativeDto>,
    /// Those that can't be named, and are never opened.
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
