//! Projects, and what a deployment changes, on the wire.

use kelos_door_celos::deploy::{Difference, FileChange, Plan, SlotEffect, Times, WorkflowChange};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Instant, ProblemDto};

/// A unit of deployment.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectDto {
    /// Its name.
    pub(crate) name: String,
    /// The ids of its workflows.
    pub(crate) workflows: Vec<String>,
    /// Whether it has a script in the folder of workflows.
    pub(crate) has_script: bool,
    /// Whether it has a script in the folder of defaults.
    pub(crate) has_defaults: bool,
    /// What is wrong with its scripts.
    pub(crate) problems: Vec<ProblemDto>,
}

/// What a deployment changes, or would change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeploymentDto {
    /// Whose.
    project: String,
    /// Whether the project goes.
    undeploy: bool,
    /// Whether it was done; a plan only says what would be.
    done: bool,
    /// What becomes of each file.
    files: Vec<FileChangeDto>,
    /// What becomes of workflows; those that stay as they are left out.
    workflows: Vec<WorkflowChangeDto>,
    /// What becomes of slots.
    slots: SlotEffectDto,
    /// What is probably not as it was meant.
    warnings: Vec<ProblemDto>,
    /// What else there is to know.
    notes: Vec<String>,
}

impl DeploymentDto {
    pub(crate) fn of(plan: &Plan, done: bool) -> DeploymentDto {
        DeploymentDto {
            project: plan.project.to_string(),
            undeploy: plan.undeploy,
            done,
            files: plan.files.iter().map(FileChangeDto::from).collect(),
            workflows: plan.workflows.iter().map(WorkflowChangeDto::from).collect(),
            slots: (&plan.slots).into(),
            warnings: plan.warnings.iter().cloned().map(ProblemDto::from).collect(),
            notes: plan.notes.clone(),
        }
    }
}

fn name_of(difference: Difference) -> &'static str {
    match difference {
        Difference::New => "new",
        Difference::Changed => "changed",
        Difference::Same => "same",
        Difference::Removed => "removed",
    }
}

/// What becomes of a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FileChangeDto {
    /// Where it is.
    place: String,
    /// `new`, `changed`, `same` or `removed`.
    change: &'static str,
    /// Lines that come; none for other files than scripts.
    lines_added: Option<usize>,
    /// Lines that go; none for other files than scripts.
    lines_removed: Option<usize>,
    /// How long it then is; none for one that goes.
    bytes: Option<u64>,
}

impl From<&FileChange> for FileChangeDto {
    fn from(file: &FileChange) -> FileChangeDto {
        FileChangeDto {
            place: file.place.clone(),
            change: name_of(file.difference),
            lines_added: file.lines.map(|(added, _)| added),
            lines_removed: file.lines.map(|(_, removed)| removed),
            bytes: file.bytes,
        }
    }
}

/// What becomes of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WorkflowChangeDto {
    /// Its id.
    id: String,
    /// The project that owns it.
    project: String,
    /// `new`, `changed` or `removed`.
    change: &'static str,
    /// What of it is different: `schedule`, `trigger`, `job` and the like.
    parts: Vec<&'static str>,
}

impl From<&WorkflowChange> for WorkflowChangeDto {
    fn from(workflow: &WorkflowChange) -> WorkflowChangeDto {
        WorkflowChangeDto {
            id: workflow.id.to_string(),
            project: workflow.project.clone(),
            change: name_of(workflow.difference),
            parts: workflow.parts.iter().map(|part| part.as_str()).collect(),
        }
    }
}

/// What becomes of slots.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SlotEffectDto {
    /// Whether a server said which slots there are; otherwise only schedules of the last week were compared.
    from_server: bool,
    /// Slots that would be planned at once.
    created: Vec<SlotTimesDto>,
    /// Slots that have not ended and would be no longer scheduled from then on.
    dropped: Vec<SlotTimesDto>,
    /// Slots that wait, and would not have to any more.
    unblocked: Vec<SlotTimesDto>,
}

impl From<&SlotEffect> for SlotEffectDto {
    fn from(effect: &SlotEffect) -> SlotEffectDto {
        let all = |times: &Times| times.iter().filter_map(SlotTimesDto::of).collect();
        SlotEffectDto {
            from_server: effect.from_server,
            created: all(&effect.created),
            dropped: all(&effect.dropped),
            unblocked: all(&effect.unblocked),
        }
    }
}

/// Slots of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SlotTimesDto {
    /// Whose.
    workflow: String,
    /// How many.
    count: usize,
    /// The time of the first one.
    first: Instant,
    /// The time of the last one.
    last: Instant,
}

impl SlotTimesDto {
    fn of<'a>(
        (id, times): (&'a kelos_model::WorkflowId, &'a std::collections::BTreeSet<jiff::Timestamp>),
    ) -> Option<Self> {
        let (first, last) = (Instant(*times.first()?), Instant(*times.last()?));
        Some(SlotTimesDto { workflow: id.to_string(), count: times.len(), first, last })
    }
}
