//! The runs that are left to workers, and their labels: drawn separately, so that the other random numbers of a seed are as they were before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::WorkflowId;
use kelos_model::workers::Label;

use super::Workload;
use crate::rng::Rng;

/// The executor whose runs are left to workers, in seeds that have some.
pub const WORKED: &str = "worked";

/// Seeds from here on have labels, and slots of schedules at workers; those before have the jobs of apps at workers alone, as they always
/// had.
const LABELLED: u64 = 2_500_000;

/// In seeds with workers, leaves jobs to them, and of most also slots of schedules. Some need a label, which not every worker has.
pub(super) fn choose(seed: u64, workload: &mut Workload) {
    if workload.workers.is_empty() {
        return;
    }
    let mut rng = Rng::new(seed ^ 0x1ABE);
    let gpu: BTreeSet<Label> = Label::new("gpu").into_iter().collect();
    // Short processes alone, each with one run, would not get through the slots of schedules.
    let is_labelled = seed >= LABELLED;
    let has_steady = is_labelled && workload.workers.iter().any(|plan| &*plan.name == "steady");
    let defined = workload.definitions.iter().flat_map(|(_, set)| set);
    let timed: BTreeSet<WorkflowId> =
        defined.filter(|one| one.keys.schedule().is_some() && one.flow.is_none()).map(|one| one.id.clone()).collect();
    let timed: BTreeSet<WorkflowId> = timed.into_iter().filter(|_| rng.percent(40) && has_steady).collect();
    let worked = timed.iter().chain(&workload.apps);
    let labels: BTreeMap<WorkflowId, BTreeSet<Label>> = worked
        .map(|id| (id.clone(), if rng.percent(30) && is_labelled { gpu.clone() } else { BTreeSet::new() }))
        .collect();
    for workflow in workload.definitions.iter_mut().flat_map(|(_, set)| set) {
        if let Some(labels) = labels.get(&workflow.id) {
            let job = &mut Arc::make_mut(workflow).job;
            job.executor = WORKED.to_owned();
            job.runs_on.clone_from(labels);
        }
    }
    for plan in &mut workload.workers {
        if plan.workflows == workload.apps {
            plan.workflows.extend(timed.iter().cloned());
            plan.labels.clone_from(&gpu);
            continue;
        }
        if plan.job.is_none() {
            plan.workflows.extend(timed.iter().filter(|_| rng.percent(70)).cloned());
        }
        if rng.percent(60) {
            plan.labels.clone_from(&gpu);
        }
    }
    workload.config.by_workers = [WORKED.to_owned()].into();
}
