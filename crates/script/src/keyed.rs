//! Workflows with job ids, of all files together: they have to fit, or what fitted before stays in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::jobs::{Fault, JobGraph};
use kelos_model::workflow::Source;
use kelos_model::{Workflow, WorkflowId};

use crate::stolos::keyed;

/// What was found the last time that they changed.
#[derive(Default)]
pub(crate) struct KeyedSet {
    looked_at: Vec<Arc<Workflow>>,
    /// What is wrong with them, and where they are defined.
    faults: Vec<(Fault, Source)>,
    /// Those that fitted last; of these the engine is told.
    good: Vec<Arc<Workflow>>,
    /// What is in force where the latest don't fit.
    instead: Vec<Arc<Workflow>>,
}

impl KeyedSet {
    /// Takes in what fitted before a restart.
    pub(crate) fn remember(&mut self, workflows: &[Arc<Workflow>]) {
        self.good.extend(workflows.iter().filter(|one| one.keys.jobs().is_some()).cloned());
    }

    /// Puts what is in force in the place of what does not fit. Gives what is wrong, and whether something earlier is in force.
    pub(crate) fn settle(&mut self, by_id: &mut BTreeMap<WorkflowId, Arc<Workflow>>) -> (&[(Fault, Source)], bool) {
        let now: Vec<Arc<Workflow>> = by_id.values().filter(|one| one.keys.jobs().is_some()).cloned().collect();
        if !same(&now, &self.looked_at) {
            self.look(&now);
            self.looked_at = now;
        }
        if self.faults.is_empty() {
            return (&[], false);
        }
        by_id.retain(|_, one| one.keys.jobs().is_none());
        for one in &self.instead {
            by_id.entry(one.id.clone()).or_insert_with(|| one.clone());
        }
        (&self.faults, !self.good.is_empty())
    }

    fn look(&mut self, now: &[Arc<Workflow>]) {
        match JobGraph::new(keyed(now.iter().map(|one| &**one))) {
            Ok(_) => {
                (self.faults, self.instead) = (Vec::new(), Vec::new());
                self.good = now.to_vec();
            }
            Err(faults) => {
                let sources: BTreeMap<&WorkflowId, &Source> = now.iter().map(|one| (&one.id, &one.source)).collect();
                let source = |fault: &Fault| sources.get(&fault.workflow).copied().cloned().unwrap_or_default();
                self.faults = faults.into_iter().map(|fault| (fault.clone(), source(&fault))).collect();
                let best = if self.good.is_empty() { now } else { &self.good };
                self.instead = fitting(best.to_vec());
            }
        }
    }
}

fn same(a: &[Arc<Workflow>], b: &[Arc<Workflow>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// What is left when those at fault are left out, and those that then are.
fn fitting(mut workflows: Vec<Arc<Workflow>>) -> Vec<Arc<Workflow>> {
    while let Err(faults) = JobGraph::new(keyed(workflows.iter().map(|one| &**one))) {
        let at_fault: BTreeSet<WorkflowId> = faults.into_iter().map(|fault| fault.workflow).collect();
        workflows.retain(|one| !at_fault.contains(&one.id));
    }
    workflows
}
