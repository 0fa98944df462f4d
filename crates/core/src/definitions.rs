//! Definitions come, change and go, without a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::dormant::NoTimes;
use kelos_model::event::{Abort, WorkflowEvent};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::{CronSchedule, resolve};
use kelos_model::workflow::{Moments, Planned, Provenance, WorkflowRow};
use kelos_model::{Workflow, WorkflowId};

use crate::Core;
use crate::asks::{Mandate, split};
use crate::port::Deployment;
use crate::provenance::Definitions;
use crate::schedules::{differ, keep_off};
use crate::workflows::{ScheduleState, WorkflowState};

impl Core {
    /// Takes the whole set of definitions of one provenance; what was of it and is not in it has been removed.
    pub(crate) fn define(
        &mut self,
        provenance: Provenance,
        definitions: Vec<Arc<Workflow>>,
        deployed: &BTreeMap<String, Deployment>,
    ) {
        let is_first = self.given.is_empty();
        self.given.take(provenance, definitions);
        self.enact(provenance, deployed);
        if is_first {
            self.finish();
        }
    }

    /// Puts in force what is given, after one provenance said what it defines, or a request freed a name.
    pub(crate) fn enact(&mut self, provenance: Provenance, deployed: &BTreeMap<String, Deployment>) {
        let all = self.with_schedules(provenance, deployed);
        self.note_taken(&all);
        self.define_all(&all, deployed);
    }

    /// Whether what is stored of a workflow holds as long as nobody has said otherwise: who gives it was not heard yet.
    fn stands(&self, workflow: &Workflow) -> bool {
        workflow.keys.events().is_none() && !self.given.has_said(workflow.provenance())
    }

    fn define_all(&mut self, all: &Definitions, deployed: &BTreeMap<String, Deployment>) {
        let mandate_of = |project: &str| {
            let by = deployed.get(project)?.by.clone()?;
            Some(Mandate { by, reason: None })
        };
        let gone: Vec<_> = self
            .tasks
            .iter()
            .filter(|(id, task)| task.row.present && !all.contains_key(*id) && !self.stands(&task.row.definition))
            .map(|(id, task)| (id.clone(), mandate_of(&task.row.definition.project)))
            .collect();
        // Asked before anything is removed: what is gone counts, too.
        let keyed = self.is_keyed_otherwise(all);
        for (id, mandate) in gone {
            self.remove(&id, mandate.as_ref());
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
            let rekeyed = keyed && self.rekey(id, faulty.remove(id));
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

    /// What else depends on what a definition says.
    fn follow_definition(&mut self, id: &WorkflowId) {
        self.listen_to_facts(id);
        self.join_program(id);
        self.agree_on_backlog(id);
    }

    pub(crate) fn remove(&mut self, id: &WorkflowId, mandate: Option<&Mandate>) {
        if self.tasks.get(id).is_some_and(|task| task.row.definition.keys.events().is_some()) {
            self.abort_pending(id, Abort::Deleted, mandate);
        }
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        task.row.present = false;
        task.jobs = None;
        self.agree_on_terms(id);
        self.listen_to_facts(id);
        let (by, reason) = split(mandate);
        self.record_workflow(id, WorkflowEvent::Removed { by, reason });
        self.wake_all(id);
    }

    /// Says whether anything changed, be it only that the workflow was not loaded before.
    fn define_one(&mut self, id: &WorkflowId, workflow: &Arc<Workflow>, mandate: Option<&Mandate>) -> bool {
        let (by, reason) = split(mandate);
        let Some(task) = self.tasks.get_mut(id) else {
            let row = WorkflowRow {
                id: id.clone(),
                definition: workflow.clone(),
                version: 1,
                present: true,
                enabled: true,
                paused: false,
                planned: Planned::default(),
                moments: Moments::default(),
            };
            self.tasks.insert(id.clone(), WorkflowState::new(row));
            self.slots.add_workflow(id);
            self.redefined(id, true);
            self.record_workflow(id, WorkflowEvent::Defined { version: 1, by, reason });
            return true;
        };
        let row = &mut task.row;
        if row.present && Arc::ptr_eq(&row.definition, workflow) {
            return false;
        }
        let same = row.definition == *workflow;
        let is_new = !row.present;
        let differs = is_new || differ(&row.definition, workflow);
        if !same {
            if self.turn.workflows.contains(id) {
                self.turn.superseded.push(row.clone());
            }
            row.version += 1;
        }
        row.definition = workflow.clone();
        if same && row.present {
            return false;
        }
        row.present = true;
        keep_off(row);
        let version = row.version;
        // What was worth running may not be any more.
        self.slots.doubt(id);
        if differs {
            self.redefined(id, is_new);
        }
        self.record_workflow(id, WorkflowEvent::Defined { version, by, reason });
        true
    }

    /// Whether what definitions say of job ids is something else than before.
    fn is_keyed_otherwise(&self, all: &Definitions) -> bool {
        let differs = |(id, one): (&WorkflowId, &Arc<Workflow>)| {
            let task = self.tasks.get(id).filter(|task| task.row.present);
            let known = task.and_then(|task| task.jobs.as_ref().and(task.row.definition.keys.jobs()));
            one.keys.jobs() != known
        };
        all.iter().any(differs) || self.tasks.iter().any(|(id, task)| task.jobs.is_some() && !all.contains_key(id))
    }

    /// Notes whether the jobs of a workflow make sense. Says whether that is something else than before.
    fn rekey(&mut self, id: &WorkflowId, fault: Option<String>) -> bool {
        let Some(task) = self.tasks.get_mut(id) else {
            self.no_workflow(id);
            return false;
        };
        let jobs = task.row.definition.keys.jobs().map(|_| fault.map_or(Ok(()), Err));
        let changed = task.jobs != jobs;
        task.jobs = jobs;
        changed
    }

    /// Says whether the resolved schedule is another one than before, or was not known before.
    fn reschedule(&mut self, id: &WorkflowId, schedule: Result<CronSchedule, NoTimes>) -> bool {
        let Some(task) = self.tasks.get_mut(id) else {
            self.no_workflow(id);
            return false;
        };
        // What ticks for jobs is no schedule of slots.
        let (schedule, feed) = match task.jobs {
            Some(_) => (Err(NoTimes::Jobs), schedule.ok()),
            None => (schedule, None),
        };
        let schedule = schedule.map_or_else(ScheduleState::Faulty, ScheduleState::Ready);
        if task.schedule == schedule && task.feed == feed {
            return false;
        }
        task.schedule = schedule;
        task.feed = feed;
        let Some(schedule) = task.ticks() else { return true };
        if let Ok(schedule) = task.schedule.ready() {
            self.slots.reschedule(id, schedule);
        }
        let words = serde_json::to_string(schedule).unwrap_or_default();
        if task.row.planned.schedule == words {
            return true;
        }
        // What was covered under the other schedule says nothing about the times of this one.
        let covered = std::mem::take(&mut task.row.planned.ranges);
        task.row.planned.schedule = words;
        self.turn.workflows.insert(id.clone());
        if let Some(range) = hull(&covered) {
            self.record_workflow(id, WorkflowEvent::Replanned { range });
        }
        true
    }

    /// Has all live slots of a workflow looked at, its schedule planned, its queue dispatched.
    pub(crate) fn wake_all(&mut self, id: &WorkflowId) {
        self.slots.names_of(id).into_iter().for_each(|slot| self.wake(slot));
        self.to_plan.insert(id.clone());
        self.permits.wake(id);
        self.arm_firing(id);
    }
}

/// Why a workflow has no times.
fn no_times(workflow: &Workflow) -> NoTimes {
    if workflow.keys.are_moments() { NoTimes::Moments } else { NoTimes::NoSchedule }
}

fn hull(ranges: &RangeSet) -> Option<Range> {
    let first = ranges.ranges().first()?;
    Some(Range::new(first.start, ranges.end()?))
}
