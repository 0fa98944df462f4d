//! The apps of a set of definitions, with all relations of their jobs: the basis of the full scan and the judges.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::jobs::{Direction, Job, JobGraph, JobKeys, NamedJobs, Parents, Relation};
use kelos_model::probe::Verdict;
use kelos_model::template::KeyValues;
use kelos_model::{Probe, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};

use crate::workload::GroupMeanings;
use crate::world::World;

/// The valid apps of a set of definitions.
#[derive(Default)]
pub struct Apps {
    /// The dependencies between jobs.
    pub graph: JobGraph,
    /// Their definitions.
    pub sound: BTreeMap<WorkflowId, Arc<Workflow>>,
}

impl Apps {
    /// Leaves out apps that are invalid, until the rest is valid. Relations in functions count like written ones.
    #[must_use]
    pub fn of(all: &[Arc<Workflow>], meant: &GroupMeanings) -> Apps {
        let mut sound: BTreeMap<WorkflowId, Arc<Workflow>> = BTreeMap::new();
        sound.extend(all.iter().filter(|one| one.keys.jobs().is_some()).map(|one| (one.id.clone(), one.clone())));
        loop {
            let keys = sound.iter().filter_map(|(id, one)| Some((id.clone(), one.keys.jobs()?.clone())));
            match JobGraph::new(keys.collect()) {
                Ok(_) => return Apps { graph: plain(&sound, meant), sound },
                Err(faults) => {
                    for fault in faults {
                        sound.remove(&fault.workflow);
                    }
                }
            }
        }
    }

    /// The dependency groups of a job; none if it is dormant, because it is no job of any app.
    #[must_use]
    pub fn parents(&self, slot: &SlotRef) -> Option<Vec<Parents>> {
        let id = slot.key.job()?;
        let normal = self.keys(slot)?.normal(id).ok()?;
        let mut groups = self.graph.parents(&slot.workflow, id).ok().filter(|_| normal == *id)?;
        // Functions name only valid jobs; if a function names none, its group does not concern the job.
        for group in groups.iter_mut().filter(|group| self.is_asked(slot, group)) {
            group.unwritable.clear();
        }
        groups.retain(|group| group.total() > 0);
        Some(groups)
    }

    /// Whether a job can't ever run, because all its groups contain jobs that can't be named.
    pub(crate) fn is_hopeless(&self, slot: &SlotRef) -> bool {
        let groups = self.parents(slot).unwrap_or_default();
        !self.asks(&slot.workflow) && !groups.is_empty() && groups.iter().all(|group| !group.unwritable.is_empty())
    }

    /// Whether functions define the dependencies of a workflow's jobs.
    pub(crate) fn asks(&self, workflow: &WorkflowId) -> bool {
        let jobs = self.sound.get(workflow).and_then(|one| one.keys.jobs());
        jobs.is_some_and(|jobs| jobs.depends_on.iter().any(|group| group.functions.is_some()))
    }

    /// Whether functions define a group of a job.
    #[must_use]
    pub fn is_asked(&self, slot: &SlotRef, group: &Parents) -> bool {
        let groups = self.keys(slot).map(|jobs| &jobs.depends_on[..]).unwrap_or_default();
        groups.iter().any(|one| *one.name == *group.group && one.functions.is_some())
    }

    /// The answer of a function.
    #[must_use]
    pub fn related(&self, relation: &Relation) -> NamedJobs {
        let SlotKey::Job(id) = &relation.of.key else { return Vec::new() };
        let of = &relation.of.workflow;
        let jobs: Vec<Job> = match relation.direction {
            Direction::Parents => {
                let groups = self.graph.parents(of, id).unwrap_or_default().into_iter();
                groups.filter(|group| group.group == relation.group).flat_map(|group| group.jobs).collect()
            }
            Direction::Children => {
                let children = self.graph.children(of, id).unwrap_or_default().jobs.into_iter();
                let mine = |(job, group): &(Job, Arc<str>)| job.workflow == relation.child && *group == relation.group;
                children.filter(mine).map(|(job, _)| job).collect()
            }
        };
        let named = |job: &Job| {
            let keys = self.sound.get(&job.workflow)?.keys.jobs()?;
            let values = keys.template.read(&keys.identifiers, &job.id).ok()?;
            Some((job.workflow.clone(), keys.template.identifiers().cloned().zip(values).collect()))
        };
        jobs.iter().filter_map(named).collect()
    }

    /// The template and identifiers of the job ids of a slot's workflow.
    #[must_use]
    pub fn keys(&self, slot: &SlotRef) -> Option<&JobKeys> {
        self.sound.get(&slot.workflow)?.keys.jobs()
    }
}

/// The graph with groups in place of the functions that define them, which come last.
fn plain(sound: &BTreeMap<WorkflowId, Arc<Workflow>>, meant: &GroupMeanings) -> JobGraph {
    let plain = |jobs: &JobKeys| {
        let (hidden, mut listed): (Vec<_>, Vec<_>) =
            jobs.depends_on.iter().cloned().partition(|group| group.functions.is_some());
        let digests = hidden.iter().filter_map(|group| Some(&group.functions.as_ref()?.parents.digest));
        listed.extend(digests.filter_map(|digest| meant.get(digest).cloned()));
        JobKeys { depends_on: listed, ..jobs.clone() }
    };
    let keys = sound.iter().filter_map(|(id, one)| Some((id.clone(), plain(one.keys.jobs()?))));
    JobGraph::new(keys.collect()).unwrap_or_else(|faults| panic!("what functions mean makes sense: {faults:?}"))
}

/// The slots of a group of parents.
pub fn slots_of(group: &Parents) -> impl Iterator<Item = SlotRef> + '_ {
    group.jobs.iter().map(|job| SlotRef::job(job.workflow.clone(), job.id.clone()))
}

/// Whether some group has succeeded, or there is none.
pub fn is_met(groups: &[Parents], state: impl Fn(&SlotRef) -> Option<SlotState>) -> bool {
    let done = |group: &Parents| {
        group.unwritable.is_empty() && slots_of(group).all(|slot| state(&slot) == Some(SlotState::Succeeded))
    };
    groups.is_empty() || groups.iter().any(done)
}

/// Whether the success of a parent opens a job: some group has succeeded, or only jobs that can't be named are left.
pub fn is_due(groups: &[Parents], state: impl Fn(&SlotRef) -> Option<SlotState>) -> bool {
    let named = |group: &Parents| {
        !group.jobs.is_empty() && slots_of(group).all(|slot| state(&slot) == Some(SlotState::Succeeded))
    };
    let is_stuck = || groups.iter().all(|group| !group.unwritable.is_empty()) && groups.iter().any(named);
    !groups.is_empty() && (is_met(groups, &state) || is_stuck())
}

/// Whether a job should run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It should, or no function decides it.
    Yes,
    /// It should not.
    No,
    /// The function that decides it can't be called.
    NotKnown,
}

/// Whether a job should run at a moment.
#[must_use]
pub fn validity(apps: &Apps, id: &SlotRef, world: &World, now: Timestamp) -> Validity {
    let Some(keys) = apps.sound.get(&id.workflow).map(|one| &one.keys) else { return Validity::Yes };
    let Some(valid) = keys.jobs().and_then(|jobs| jobs.valid.as_ref()) else { return Validity::Yes };
    let listed = |(name, value): &(Arc<str>, Arc<str>)| valid.values.get(name).is_some_and(|all| all.contains(value));
    if KeyValues::of(keys, &id.key).identifiers().iter().any(listed) {
        return Validity::Yes;
    }
    let Some(function) = &valid.function else { return Validity::No };
    let probe = Probe::Function { function: function.clone(), workflow: id.workflow.clone(), key: id.key.clone() };
    match world.answer(&probe, now).verdict {
        Verdict::Yes => Validity::Yes,
        Verdict::No | Verdict::Never => Validity::No,
        Verdict::Failed => Validity::NotKnown,
    }
}
