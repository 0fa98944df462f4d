//! Workflows with job ids, of all files together. One that doesn't fit the others keeps its last version that did, or
//! else is dormant with all that depends on it; the others are not affected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::jobs::{Fault, JobGraph};
use kelos_model::workflow::Source;
use kelos_model::workflow::keyed;
use kelos_model::{Workflow, WorkflowId};

/// The result of fitting the workflows when they changed last.
#[derive(Default)]
pub(crate) struct KeyedSet {
    looked_at: Vec<Arc<Workflow>>,
    misfits: Vec<Misfit>,
    /// The last fitting version of each workflow.
    good: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The replacements of those that don't fit.
    instead: Vec<Arc<Workflow>>,
}

/// A workflow that does not fit the others.
pub(crate) struct Misfit {
    /// The reason.
    pub(crate) fault: Fault,
    /// The position of its definition.
    pub(crate) source: Source,
    /// Whether an earlier version of it is in force.
    pub(crate) kept_last_good: bool,
}

impl KeyedSet {
    /// Takes in what was in force before a restart.
    pub(crate) fn remember(&mut self, workflows: &[Arc<Workflow>]) {
        let keyed = workflows.iter().filter(|one| one.keys.jobs().is_some());
        self.good.extend(keyed.map(|one| (one.id.clone(), one.clone())));
    }

    /// Replaces each workflow that does not fit by its last fitting version, where there is one and it still fits.
    /// Returns the misfits, but for those with a mistake of their own, which was reported before.
    pub(crate) fn settle(&mut self, by_id: &mut BTreeMap<WorkflowId, Arc<Workflow>>) -> &[Misfit] {
        let now: Vec<Arc<Workflow>> = by_id.values().filter(|one| one.keys.jobs().is_some()).cloned().collect();
        if !same(&now, &self.looked_at) {
            self.look(&now);
            self.looked_at = now;
        }
        by_id.extend(self.instead.iter().map(|one| (one.id.clone(), one.clone())));
        &self.misfits
    }

    fn look(&mut self, now: &[Arc<Workflow>]) {
        let faults = faults(now);
        let faulty: BTreeSet<&WorkflowId> = faults.iter().map(|fault| &fault.workflow).collect();
        let before = |one: &Arc<Workflow>| self.good.get(&one.id).filter(|_| faulty.contains(&one.id)).cloned();
        let with_last: Vec<Arc<Workflow>> = now.iter().map(|one| before(one).unwrap_or_else(|| one.clone())).collect();
        let still = self::faults(&with_last);
        let is_better = still.len() < faults.len() && still.iter().all(|fault| faulty.contains(&fault.workflow));
        let in_force = if is_better { &with_last[..] } else { now };
        let out: BTreeSet<&WorkflowId> =
            if is_better { &still } else { &faults }.iter().map(|one| &one.workflow).collect();
        let misfit = |fault: &Fault| {
            let one = now.iter().find(|one| one.id == fault.workflow)?;
            let has_mistake = one.keys.jobs().is_some_and(|keys| keys.mistake.is_some());
            let kept_last_good = !out.contains(&one.id);
            (!has_mistake).then(|| Misfit { fault: fault.clone(), source: one.source.clone(), kept_last_good })
        };
        self.misfits = faults.iter().filter_map(misfit).collect();
        self.instead =
            in_force.iter().zip(now).filter(|(a, b)| !Arc::ptr_eq(a, b)).map(|(one, _)| one.clone()).collect();
        let fits = in_force.iter().filter(|one| !out.contains(&one.id)).map(|one| (one.id.clone(), one.clone()));
        let mut good: BTreeMap<WorkflowId, Arc<Workflow>> = fits.collect();
        for id in &out {
            good.extend(self.good.remove_entry(id));
        }
        self.good = good;
    }
}

fn faults(workflows: &[Arc<Workflow>]) -> Vec<Fault> {
    JobGraph::fitting(keyed(workflows.iter().map(|one| &**one))).1
}

fn same(a: &[Arc<Workflow>], b: &[Arc<Workflow>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}
