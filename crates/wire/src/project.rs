//! Projects, and the changes of a deployment.

use std::collections::BTreeMap;

use kelos_model::Workflow;
use serde::{Deserialize, Serialize};

use crate::value::is_zero;
use crate::{Code, Instant, ProblemDto};

/// A project, the unit of deployment.
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
    /// The problems of its scripts.
    pub problems: Vec<ProblemDto>,
}

/// The changes of a deployment, or a preview of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeploymentDto {
    /// The project.
    pub project: String,
    /// Whether the project is removed.
    pub undeploy: bool,
    /// Whether the changes were made; false for a preview.
    pub done: bool,
    /// The change of each file.
    pub files: Vec<FileChangeDto>,
    /// The changed workflows.
    pub workflows: Vec<WorkflowChangeDto>,
    /// The effect on slots.
    pub slots: SlotEffectDto,
    /// Warnings about probable mistakes.
    pub warnings: Vec<ProblemDto>,
    /// Notes on the deployment.
    pub notes: Vec<String>,
    /// The versions of the project's definitions, counted from 1, by workflow; only where a program deploys it, after it was done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, u32>,
}

/// The definitions of a project whose functions a program has. Both ends are Kelos, and what is defined must arrive whole: so they are in
/// the form of the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectDefinitionsDto {
    /// The workflows of the project.
    pub workflows: Vec<Workflow>,
}

/// The change of a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileChangeDto {
    /// Its path or address.
    pub place: String,
    /// `new`, `changed`, `same` or `removed`.
    pub change: Code,
    /// The number of added lines; only for scripts.
    pub lines_added: Option<usize>,
    /// The number of removed lines; only for scripts.
    pub lines_removed: Option<usize>,
    /// The added and the removed lines of a changed script in their order, after `+ ` and `- `, without secrets. At most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<String>,
    /// The number of further lines that differ.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub diff_more: usize,
    /// Its new size in bytes; none for a removed file.
    pub bytes: Option<u64>,
}

/// The change of a workflow.
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
    /// Its changed parts: `schedule`, `trigger`, `job` and the like.
    pub parts: Vec<Code>,
}

/// The effect on slots.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlotEffectDto {
    /// Whether the slots are those of a server; otherwise only schedules of the last week were compared.
    pub from_server: bool,
    /// Slots that are planned at once.
    pub created: Vec<SlotTimesDto>,
    /// Live slots that are no longer scheduled.
    pub dropped: Vec<SlotTimesDto>,
    /// Waiting slots whose trigger is then met.
    pub unblocked: Vec<SlotTimesDto>,
    /// Times since the start of a changed workflow that are not planned, in words: why, and how they are opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<String>,
}

/// A group of slots of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlotTimesDto {
    /// The project.
    pub workflow: String,
    /// The number of slots.
    pub count: usize,
    /// The time of the first one.
    pub first: Instant,
    /// The time of the last one.
    pub last: Instant,
}

/// The files of a project, for a deployment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BundleDto {
    /// The text of `workflow.js`, for a project of one script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The text of `defaults.js`; if absent, an existing one is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<String>,
    /// The texts of the files of a project with several, in place of `workflow` and `defaults`, by their paths:
    /// `workflows/NAME.js`, `defaults/NAME.js`, `defaults/NAME.txt`. Files that are absent are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, String>>,
    /// The files of an Oozie workflow in base64, by their paths in its folder; if absent, HDFS is left unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdfs: Option<BTreeMap<String, String>>,
    /// The directory in HDFS for its folder; `/user/celos/app` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdfs_root: Option<String>,
}
