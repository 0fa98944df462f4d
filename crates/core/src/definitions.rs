//! Changes of definitions without a restart. Their effect on the workflows themselves is decided by [`Workflows`].
//!
//! [`Workflows`]: crate::workflows::Workflows

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::dormant::NoTimes;
use kelos_model::event::{Abort, WorkflowEvent};
use kelos_model::time::{CronSchedule, resolve};
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, SlotRef, Workflow, WorkflowId};

use crate::Core;
use crate::deployment::{Deployments, deployments_of};
use crate::mandate::{Mandate, split};
use crate::workflows::{DefinitionSet, NewSchedule, Redefinition, WorkflowState, no_times};

impl Core {
    /// Takes the complete definitions of one provenance. A definition that is missing from them is removed.
    pub(crate) fn define(&mut self, provenance: Provenance, definitions: Vec<Arc<Workflow>>, deployed: &Deployments) {
        let is_first = self.workflows.hear(provenance, definitions);
        self.enact(provenance, deployed);
        if is_first {
            self.finish();
        }
    }

    /// Puts the given definitions into force, after those of one provenance have changed or a request has freed a name.
    pub(crate) fn enact(&mut self, provenance: Provenance, deployed: &Deployments) {
        let all = self.workflows.in_force(provenance, deployed);
        // The deployments of a project that never had event schedules or programs are not needed.
        let with_moments = self.workflows.projects_with_moments(&all);
        for (project, how) in deployed.iter().filter(|(project, _)| with_moments.contains(*project)) {
            let value = how.digest.clone().map(serde_json::Value::String);
            let by = how.by.clone().unwrap_or_else(|| Actor::system("deployment"));
            let register = (deployments_of(provenance).to_owned(), project.clone());
            self.turn.set_register(self.now, register, value, Mandate { by, reason: None });
        }
        self.define_all(&all, deployed);
    }

    fn define_all(&mut self, all: &DefinitionSet, deployed: &Deployments) {
        let mandate_of = |project: &str| {
            let by = deployed.get(project)?.by.clone()?;
            Some(Mandate { by, reason: None })
        };
        // Computed before anything is removed: removed workflows count, too.
        let keyed = self.workflows.are_keyed_otherwise(all);
        let mut moved = BTreeSet::new();
        for (id, project) in self.workflows.gone_with(all) {
            self.remove(&id, mandate_of(&project).as_ref());
            moved.insert(id);
        }
        let schedules = all.iter().filter_map(|(id, one)| Some((id.clone(), one.keys.ticks()?))).collect();
        let schedules = resolve(&schedules);
        let mut faulty = if keyed { self.define_jobs(all) } else { BTreeMap::new() };
        for (id, workflow) in all {
            let changed = self.define_one(id, workflow, mandate_of(&workflow.project).as_ref());
            if changed {
                self.follow_definition(id);
            }
            let schedule = schedules
                .get(id)
                .cloned()
                .map_or_else(|| Err(no_times(workflow)), |resolved| resolved.map_err(NoTimes::Unresolved));
            let rekeyed = keyed && self.workflows.rekey(id, faulty.remove(id));
            self.agree_on_terms(id);
            let rescheduled = self.reschedule(id, schedule);
            if changed || rekeyed || rescheduled {
                self.wake_all(id);
                moved.insert(id.clone());
            }
        }
        // Who waits for their periods may wait for others now.
        for id in self.workflows.covering(&moved) {
            self.wake_all(&id);
            self.planner.forget_periods(&id);
        }
    }

    /// Takes the new or changed definition of an event schedule, by request.
    pub(crate) fn define_alone(&mut self, id: &WorkflowId, workflow: &Arc<Workflow>, mandate: &Mandate) {
        let changed = self.define_one(id, workflow, Some(mandate));
        self.agree_on_terms(id);
        self.reschedule(id, Err(no_times(workflow)));
        if changed {
            self.follow_definition(id);
            self.wake_all(id);
        }
    }

    /// Returns whether anything changed, including whether the workflow was not loaded before.
    fn define_one(&mut self, id: &WorkflowId, workflow: &Arc<Workflow>, mandate: Option<&Mandate>) -> bool {
        let Some(Redefinition { version, begins_anew }) = self.workflows.define(id, workflow, self.now) else {
            return false;
        };
        self.slots.add_workflow(id);
        // Jobs that were valid may no longer be.
        self.slots.doubt(id);
        if begins_anew {
            self.abort_pending(id, Abort::Changed, None);
        }
        let (by, reason) = split(mandate);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Defined { version, by, reason });
        true
    }

    /// Updates everything that depends on a definition apart from its row.
    fn follow_definition(&mut self, id: &WorkflowId) {
        self.listen_to_facts(id);
        self.join_program(id);
        if let Some(workflow) = self.workflows.known(id) {
            self.planner.agree(id, workflow);
        }
    }

    /// Returns whether the resolved schedule has changed, or was not known before.
    fn reschedule(&mut self, id: &WorkflowId, schedule: Result<CronSchedule, NoTimes>) -> bool {
        let Some(NewSchedule { replanned }) = self.workflows.reschedule(id, schedule, self.now) else { return false };
        if let Some(Ok(schedule)) = self.workflows.get(id).map(WorkflowState::schedule) {
            self.slots.reschedule(id, schedule);
        }
        if let Some(range) = replanned {
            self.turn.log_workflow(self.now, id, WorkflowEvent::Replanned { range });
        }
        true
    }

    pub(crate) fn remove(&mut self, id: &WorkflowId, mandate: Option<&Mandate>) {
        if self.workflows.get(id).is_some_and(WorkflowState::is_event_schedule) {
            self.abort_pending(id, Abort::Deleted, mandate);
        }
        self.workflows.remove(id);
        self.agree_on_terms(id);
        self.listen_to_facts(id);
        let (by, reason) = split(mandate);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Removed { by, reason });
        self.wake_all(id);
    }

    /// Evaluates all live slots of a workflow, plans its schedule and serves its queue with the next tick.
    pub(crate) fn wake_all(&mut self, id: &WorkflowId) {
        let steps: Vec<SlotRef> = self.slots.steps_of_workflow(id).map(|(slot, _)| slot.clone()).collect();
        steps.into_iter().for_each(|step| self.wakes.dirty.insert(step));
        self.slots.names_of(id).into_iter().for_each(|slot| self.wake(slot));
        self.planner.plan_soon(id);
        self.permits.wake(id);
        self.arm_firing(id);
    }
}
