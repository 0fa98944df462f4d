//! Projects, and what a deployment changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Code, Instant, ProblemDto};

/// A unit of deployment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectDto {
    /// Its name.
    pub name: String,
    /// The ids of its workflows.
    pub workflows: Vec<String>,
    /// Whether it has a script in the folder of workflows.
    pub has_script: bool,
    /// Whether it has a script in the folder of defaults.
    pub has_defaults: bool,
    /// What is wrong with its scripts.
    pub problems: Vec<ProblemDto>,
}

/// What a deployment changes, or would change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeploymentDto {
    /// Whose.
    pub project: String,
    /// Whether the project goes.
    pub undeploy: bool,
    /// Whether it was done; a plan only says what would be.
    pub done: bool,
    /// What becomes of each file.
    pub files: Vec<FileChangeDto>,
    /// What becomes of workflows; those that stay as they are left out.
    pub workflows: Vec<WorkflowChangeDto>,
    /// What becomes of slots.
    pub slots: SlotEffectDto,
    /// What is probably not as it was meant.
    pub warnings: Vec<ProblemDto>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileChangeDto {
    /// Where it is.
    pub place: String,
    /// `new`, `changed`, `same` or `removed`.
    pub change: Code,
    /// Lines that come; none for other files than scripts.
    pub lines_added: Option<usize>,
    /// Lines that go; none for other files than scripts.
    pub lines_removed: Option<usize>,
    /// How long it then is; none for one that goes.
    pub bytes: Option<u64>,
}

/// What becomes of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowChangeDto {
    /// Its id.
    pub id: String,
    /// The project that owns it.
    pub project: String,
    /// `new`, `changed` or `removed`.
    pub change: Code,
    /// What of it is different: `schedule`, `trigger`, `job` and the like.
    pub parts: Vec<Code>,
}

/// What becomes of slots.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlotEffectDto {
    /// Whether a server said which slots there are; otherwise only schedules of the last week were compared.
    pub from_server: bool,
    /// Slots that would be planned at once.
    pub created: Vec<SlotTimesDto>,
    /// Slots that have not ended and would be left alone from then on.
    pub dropped: Vec<SlotTimesDto>,
    /// Slots that wait, and would not have to any more.
    pub unblocked: Vec<SlotTimesDto>,
}

/// Slots of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlotTimesDto {
    /// Whose.
    pub workflow: String,
    /// How many.
    pub count: usize,
    /// The time of the first one.
    pub first: Instant,
    /// The time of the last one.
    pub last: Instant,
}

/// A project as it is to be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BundleDto {
    /// The text of `workflow.js`.
    pub workflow: String,
    /// The text of `defaults.js`; without it, one that is there goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<String>,
    /// The files of an Oozie workflow in base64, by their paths in its folder; without it HDFS stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdfs: Option<BTreeMap<String, String>>,
    /// The root in HDFS below which its folder goes; `/user/celos/app` where not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdfs_root: Option<String>,
}
