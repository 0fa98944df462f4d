//! The changes of a deployment.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_door_celos::deploy::{Difference, FileChange, Plan, SlotEffect, Times, WorkflowChange};
use kelos_model::WorkflowId;
use kelos_wire::{DeploymentDto, FileChangeDto, Instant, ProblemDto, SlotEffectDto, SlotTimesDto, WorkflowChangeDto};

use super::FromLibrary;

/// The changes that a deployment makes, or would make.
#[must_use]
pub fn deployment(plan: &Plan, done: bool) -> DeploymentDto {
    DeploymentDto {
        project: plan.project.to_string(),
        undeploy: plan.undeploy,
        done,
        files: plan.files.iter().map(FileChangeDto::from_library).collect(),
        workflows: plan.workflows.iter().map(WorkflowChangeDto::from_library).collect(),
        slots: SlotEffectDto::from_library(&plan.slots),
        warnings: plan.warnings.iter().cloned().map(ProblemDto::from_library).collect(),
        notes: plan.notes.clone(),
        versions: BTreeMap::new(),
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

impl FromLibrary<&FileChange> for FileChangeDto {
    fn from_library(file: &FileChange) -> FileChangeDto {
        FileChangeDto {
            place: file.place.clone(),
            change: name_of(file.difference).into(),
            lines_added: file.lines.map(|(added, _)| added),
            lines_removed: file.lines.map(|(_, removed)| removed),
            diff: file.diff.clone(),
            diff_more: file.more,
            bytes: file.bytes,
        }
    }
}

impl FromLibrary<&WorkflowChange> for WorkflowChangeDto {
    fn from_library(workflow: &WorkflowChange) -> WorkflowChangeDto {
        WorkflowChangeDto {
            id: workflow.id.to_string(),
            project: workflow.project.clone(),
            change: name_of(workflow.difference).into(),
            parts: workflow.parts.iter().map(|part| part.as_str().into()).collect(),
        }
    }
}

impl FromLibrary<&SlotEffect> for SlotEffectDto {
    fn from_library(effect: &SlotEffect) -> SlotEffectDto {
        let all = |times: &Times| times.iter().filter_map(slot_times).collect();
        SlotEffectDto {
            from_server: effect.from_server,
            created: all(&effect.created),
            dropped: all(&effect.dropped),
            unblocked: all(&effect.unblocked),
            held_back: effect.held_back.lines(),
        }
    }
}

fn slot_times((id, times): (&WorkflowId, &BTreeSet<Timestamp>)) -> Option<SlotTimesDto> {
    let (first, last) = (Instant(*times.first()?), Instant(*times.last()?));
    Some(SlotTimesDto { workflow: id.to_string(), count: times.len(), first, last })
}
