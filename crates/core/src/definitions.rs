//! Definitions come, change and go, without a restart. What that makes of the workflows themselves is for [`Workflows`] to say.
//!
//! [`Workflows`]: crate::workflows::Workflows

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::dormant::NoTimes;
use kelos_model::event::{Abort, WorkflowEvent};
use kelos_model::time::{CronSchedule, resolve};
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Workflow, WorkflowId};

use crate::Core;
use crate::deployment::{Deployments, deployments_of};
use crate::mandate::{Mandate, split};
use crate::workflows::{DefinitionSet, Redefined, Rescheduled, WorkflowState, no_times};

impl Core {
    /// Takes the whole set of definitions of one provenance; what was of it and is not in it has been removed.
    pub(crate) fn define(&mut self, provenance: Provenance, definitions: Vec<Arc<Workflow>>, deployed: &Deployments) {
        let is_first = self.workflows.hear(provenance, definitions);
        self.enact(provenance, deployed);
        if is_first {
            self.finish();
        }
    }

    /// Puts in force what is given, after one provenance said what it defines, or a request freed a name.
    pub(crate) fn enact(&mut self, provenance: Provenance, deployed: &Deployments) {
        let all = self.workflows.in_force(provenance, deployed);
        // Of a project that never had event schedules or programs nobody asks what was deployed.
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
        // Asked before anything is removed: what is gone counts, too.
        let keyed = self.workflows.are_keyed_otherwise(all);
        for (id, project) in self.workflows.gone_with(all) {
            self.remove(&id, mandate_of(&project).as_ref());
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
            }
        }
    }

    /// Takes one more definition, or another of one that is there: that of an event schedule, on a person's word.
    pub(crate) fn define_alone(&mut self, id: &WorkflowId, workflow: &Arc<Workflow>, mandate: &Mandate) {
        let changed = self.define_one(id, workflow, Some(mandate));
        self.agree_on_terms(id);
        self.reschedule(id, Err(no_times(workflow)));
        if changed {
            self.follow_definition(id);
            self.wake_all(id);
        }
    }

    /// Says whether anything changed, be it only that the workflow was not loaded before.
    fn define_one(&mut self, id: &WorkflowId, workflow: &Arc<Workflow>, mandate: Option<&Mandate>) -> bool {
        let Some(Redefined { version, begins_anew }) = self.workflows.define(id, workflow, self.now) else {
            return false;
        };
        self.slots.add_workflow(id);
        // What was worth running may not be any more.
        self.slots.doubt(id);
        if begins_anew {
            self.abort_pending(id, Abort::Changed, None);
        }
        let (by, reason) = split(mandate);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Defined { version, by, reason });
        true
    }

    /// Updates all that depends on a definition beside its row.
    fn follow_definition(&mut self, id: &WorkflowId) {
        self.listen_to_facts(id);
        self.join_program(id);
        if let Some(workflow) = self.workflows.known(id) {
            self.planner.agree(id, workflow);
        }
    }

    /// Says whether the resolved schedule is another one than before, or was not known before.
    fn reschedule(&mut self, id: &WorkflowId, schedule: Result<CronSchedule, NoTimes>) -> bool {
        let Some(Rescheduled { replanned }) = self.workflows.reschedule(id, schedule) else { return false };
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

    /// Has all live slots of a workflow looked at, its schedule planned, its queue dispatched.
    pub(crate) fn wake_all(&mut self, id: &WorkflowId) {
        self.slots.names_of(id).into_iter().for_each(|slot| self.wake(slot));
        self.planner.plan_soon(id);
        self.permits.wake(id);
        self.arm_firing(id);
    }
}
