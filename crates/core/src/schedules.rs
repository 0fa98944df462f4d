//! Event schedules come, change and go: by deployment of the project that has them, or on a person's word. What a person said
//! holds until the project is deployed anew.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::event::{Abort, WorkflowEvent};
use kelos_model::ranges::Range;
use kelos_model::run::beyond_largest;
use kelos_model::workflow::{Keys, Provenance, WorkflowRow};
use kelos_model::{Actor, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId};

use crate::asks::{Mandate, split};
use crate::port::{Deployment, deployments_of};
use crate::provenance::Definitions;
use crate::{Core, FireRequest, Refusal};

impl Core {
    /// All definitions: what was given, and the event schedules as they are after the deployment of projects of one provenance.
    pub(crate) fn with_schedules(
        &mut self,
        provenance: Provenance,
        deployed: &BTreeMap<String, Deployment>,
    ) -> Definitions {
        let mut all = self.given_workflows();
        let mut schedules = self.schedules();
        let is_deployed = |one: &Workflow| deployed.get(&one.project).is_some_and(|how| how.update_schedules);
        // Those that people made go with the project that they are of, for that is what its deployment is asked for.
        let is_own = |one: &Workflow| [provenance, Provenance::Api].contains(&one.provenance());
        schedules.retain(|_, one| !(is_deployed(one) && is_own(one)));
        for named in self.given.schedules(provenance).into_iter().filter(|one| is_deployed(one)) {
            match schedules.entry(named.id.clone()) {
                Entry::Occupied(other) if other.get().provenance() != provenance => {}
                entry => drop(entry.insert_entry(named)),
            }
        }
        let gone = self.gone_programs(provenance, &all, deployed);
        schedules.retain(|_, one| one.keys.events().is_some_and(|events| !gone.contains(&events.program)));
        for (id, schedule) in schedules {
            let Some(schedule) = without(schedule, &gone) else { continue };
            let bound = self.bound(schedule, &all);
            if self.may_have_name(&bound, &all) {
                all.insert(id, bound);
            }
        }
        // Of a project that never had event schedules or programs nobody asks what was deployed.
        let with_moments = self.projects_with_moments(&all);
        for (project, how) in deployed.iter().filter(|(project, _)| with_moments.contains(*project)) {
            let value = how.digest.clone().map(serde_json::Value::String);
            let by = how.by.clone().unwrap_or_else(|| Actor::system("deployment"));
            let mandate = Mandate { by, reason: None };
            self.record_register(deployments_of(provenance).to_owned(), project.clone(), value, mandate);
        }
        all
    }

    /// Whether an event schedule has its name, and not a workflow that is given. Of one provenance the workflow came later.
    fn may_have_name(&self, schedule: &Workflow, all: &Definitions) -> bool {
        let is_other = |given: &Arc<Workflow>| given.provenance() != schedule.provenance();
        let was_its = || self.holder(&schedule.id) == Some(schedule.provenance());
        all.get(&schedule.id).is_none_or(|given| is_other(given) && was_its())
    }

    /// The projects that have, or had, event schedules or programs.
    fn projects_with_moments(&self, all: &Definitions) -> BTreeSet<String> {
        let before = self.tasks.values().map(|task| &task.row.definition);
        let either = all.values().chain(before).filter(|one| one.keys.are_moments());
        either.map(|one| one.project.clone()).collect()
    }

    /// The event schedules that there are.
    fn schedules(&self) -> Definitions {
        let present = self.tasks.values().filter(|task| task.row.present);
        let schedules = present.map(|task| &task.row.definition).filter(|one| one.keys.events().is_some());
        schedules.map(|one| (one.id.clone(), one.clone())).collect()
    }

    /// The programs that a deployment leaves out. A file that can't be read takes nothing away for good.
    fn gone_programs(
        &self,
        provenance: Provenance,
        given: &Definitions,
        deployed: &BTreeMap<String, Deployment>,
    ) -> BTreeSet<WorkflowId> {
        let known = self.tasks.values().map(|task| &task.row.definition);
        let was_there = known.filter(|one| one.keys.events().is_none() && one.provenance() == provenance);
        let gone = was_there.filter(|one| deployed.contains_key(&one.project) && !given.contains_key(&one.id));
        gone.map(|one| one.id.clone()).collect()
    }

    /// A schedule with the job of the program that it runs; as it was where there is none.
    fn bound(&self, schedule: Arc<Workflow>, all: &Definitions) -> Arc<Workflow> {
        let program = schedule.keys.events().and_then(|events| all.get(&events.program));
        let Some(program) = program else { return schedule };
        let same = schedule.job == program.job && schedule.retry == program.retry && schedule.pools == program.pools;
        if same && schedule.concurrency.is_none() {
            return schedule;
        }
        let mut bound = Workflow::clone(&schedule);
        bound.job = program.job.clone();
        bound.retry = program.retry;
        bound.pools.clone_from(&program.pools);
        // How many runs go on at a time is for its constraints to say.
        bound.concurrency = None;
        Arc::new(bound)
    }

    pub(crate) fn create_schedules(&mut self, new: Vec<Arc<Workflow>>, mandate: &Mandate) -> Result<(), Refusal> {
        for one in &new {
            self.check_new(one)?;
        }
        for one in new {
            self.put_schedule(one, mandate);
        }
        Ok(())
    }

    fn check_new(&self, new: &Workflow) -> Result<(), Refusal> {
        let Keys::Events(events) = &new.keys else { return Err(Refusal::NoEventSchedule(new.id.clone())) };
        if self.tasks.get(&new.id).is_some_and(|task| task.row.present) {
            return Err(Refusal::ScheduleTaken(new.id.clone()));
        }
        self.check_program(&new.id, &events.program)
    }

    fn check_program(&self, schedule: &WorkflowId, program: &WorkflowId) -> Result<(), Refusal> {
        let there =
            self.tasks.get(program).is_some_and(|task| task.row.present && task.row.definition.keys.events().is_none());
        let none = || Refusal::NoProgram { schedule: schedule.clone(), program: program.clone() };
        there.then_some(()).ok_or_else(none)
    }

    fn put_schedule(&mut self, schedule: Arc<Workflow>, mandate: &Mandate) {
        let (id, schedule) = (schedule.id.clone(), schedule.given_by(Provenance::Api));
        let program = schedule.keys.events().and_then(|events| self.tasks.get(&events.program));
        let programs = program.map(|task| (task.row.id.clone(), task.row.definition.clone())).into_iter().collect();
        let bound = self.bound(schedule, &programs);
        self.define_alone(&id, &bound, mandate);
    }

    pub(crate) fn change_schedule(&mut self, changed: Arc<Workflow>, mandate: &Mandate) -> Result<(), Refusal> {
        self.event_schedule(&changed.id)?;
        let Keys::Events(events) = &changed.keys else { return Err(Refusal::NoEventSchedule(changed.id.clone())) };
        self.check_program(&changed.id, &events.program)?;
        let id = changed.id.clone();
        // What it had pending goes, also where the definition is the same: it is as if it were created anew.
        self.abort_pending(&id, Abort::Changed, Some(mandate));
        self.put_schedule(changed, mandate);
        self.touch(&id);
        Ok(())
    }

    pub(crate) fn delete_schedules(&mut self, gone: &[WorkflowId], mandate: &Mandate) -> Result<(), Refusal> {
        for id in gone {
            self.event_schedule(id)?;
        }
        for id in gone {
            self.remove(id, Some(mandate));
        }
        if gone.iter().any(|id| self.given.names(id)) {
            self.enact(Provenance::Api, &BTreeMap::new());
        }
        Ok(())
    }

    /// Whether a present event schedule is enabled.
    fn event_schedule(&self, id: &WorkflowId) -> Result<bool, Refusal> {
        let task = self.tasks.get(id).filter(|task| task.row.present && task.row.definition.keys.events().is_some());
        task.map(|task| task.row.enabled).ok_or_else(|| Refusal::NoEventSchedule(id.clone()))
    }

    pub(crate) fn enable(&mut self, id: &WorkflowId, mandate: &Mandate) -> Result<(), Refusal> {
        if self.event_schedule(id)? {
            return Err(Refusal::AlreadyEnabled(id.clone()));
        }
        let Mandate { by, reason } = mandate.clone();
        self.switch(id, true, WorkflowEvent::Enabled { by, reason });
        Ok(())
    }

    pub(crate) fn disable(&mut self, id: &WorkflowId, mandate: &Mandate) -> Result<(), Refusal> {
        if !self.event_schedule(id)? {
            return Err(Refusal::AlreadyDisabled(id.clone()));
        }
        let Mandate { by, reason } = mandate.clone();
        self.switch(id, false, WorkflowEvent::Disabled { by, reason });
        self.abort_pending(id, Abort::Disabled, Some(mandate));
        Ok(())
    }

    pub(crate) fn enable_changed(
        &mut self,
        schedules: &[WorkflowId],
        range: Range,
        mandate: &Mandate,
    ) -> Result<Vec<WorkflowId>, Refusal> {
        let is_meant = |id: &&WorkflowId| {
            let task = self.tasks.get(*id).filter(|task| task.row.present && !task.row.enabled);
            let task = task.filter(|task| task.row.definition.keys.events().is_some());
            task.and_then(|task| task.row.moments.updated).is_some_and(|at| range.start <= at && at < range.end)
        };
        let meant: Vec<_> = schedules.iter().filter(is_meant).cloned().collect();
        for id in &meant {
            self.enable(id, mandate)?;
        }
        Ok(meant)
    }

    /// Has an event schedule be enabled or disabled from now on.
    fn switch(&mut self, id: &WorkflowId, enabled: bool, event: WorkflowEvent) {
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        task.row.enabled = enabled;
        self.record_workflow(id, event);
        self.touch(id);
    }

    /// It begins anew: what happened before does not count.
    fn touch(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        task.row.moments.updated = Some(self.now);
        task.row.moments.fired_until = Some(self.now);
        self.turn.workflows.insert(id.clone());
        self.arm_firing(id);
    }

    /// Ends what an event schedule has not started yet. What runs goes on, and so does what is tried again, unless the
    /// schedule is gone.
    pub(crate) fn abort_pending(&mut self, id: &WorkflowId, cause: Abort, mandate: Option<&Mandate>) {
        let gone = cause == Abort::Deleted;
        let pending = self.slots.of(id).filter(|(_, live)| match live.slot.state {
            SlotState::Waiting | SlotState::Held | SlotState::Queued => gone || live.slot.last_run == 0,
            SlotState::Backoff => gone,
            _ => false,
        });
        for slot in pending.map(|(slot, _)| slot).collect::<Vec<_>>() {
            let (by, reason) = split(mandate);
            self.record(&slot, SlotEvent::Aborted { cause, by, reason });
        }
    }

    pub(crate) fn fire_now(&mut self, request: FireRequest, by: Actor) -> Result<SlotRef, Refusal> {
        let FireRequest { workflow, arguments, unconstrained, reason } = request;
        let task = self.tasks.get(&workflow).filter(|task| task.row.present);
        let task = task.ok_or_else(|| Refusal::NoWorkflow(workflow.clone()))?;
        if !task.row.definition.keys.are_moments() {
            return Err(Refusal::NotStartable(workflow));
        }
        if let Some(events) = task.row.definition.keys.events() {
            self.check_program(&workflow, &events.program)?;
        }
        if let Some(bytes) = beyond_largest(&arguments) {
            return Err(Refusal::ArgumentsTooLarge { bytes });
        }
        let slot = self.open_moment(&workflow, SlotEvent::planned(kelos_model::event::Origin::Request, 0));
        self.record(&slot, SlotEvent::FiredBy { by, reason, arguments, unconstrained });
        Ok(slot)
    }

    /// Notes when an event schedule came to be, or was changed by deployment, and ends what it had pending then.
    pub(crate) fn redefined(&mut self, id: &WorkflowId, is_new: bool) {
        let Some(task) = self.tasks.get_mut(id).filter(|task| task.row.definition.keys.events().is_some()) else {
            return;
        };
        let fired = std::mem::take(&mut task.row.moments.fired);
        if !is_new {
            let names: BTreeSet<_> = task.row.definition.trigger.firings().iter().map(|firing| firing.name()).collect();
            task.row.moments.fired = fired.into_iter().filter(|(name, _)| names.contains(name)).collect();
        }
        if is_new {
            task.row.enabled = task.row.definition.keys.events().is_some_and(|events| events.enabled);
        }
        task.row.moments.updated = Some(self.now);
        task.row.moments.fired_until = Some(self.now);
        self.abort_pending(id, Abort::Changed, None);
    }
}

/// A schedule without waiting for programs that are gone; none where nothing is left of its trigger.
fn without(schedule: Arc<Workflow>, gone: &BTreeSet<WorkflowId>) -> Option<Arc<Workflow>> {
    let concerned: Vec<_> = gone.iter().filter(|program| schedule.trigger.waits_for(program)).collect();
    if concerned.is_empty() {
        return Some(schedule);
    }
    let whole = Some(schedule.trigger.clone());
    let left = concerned.into_iter().fold(whole, |trigger, program| trigger?.without(program));
    left.map(|trigger| Arc::new(Workflow { trigger, ..Workflow::clone(&schedule) }))
}

/// Whoever switched a workflow off finds it off when it becomes one of another kind: an event schedule is disabled, all else is paused.
pub(crate) fn keep_off(row: &mut WorkflowRow) {
    let is_schedule = row.definition.keys.events().is_some();
    let is_off = row.paused || !row.enabled;
    row.enabled = !(is_off && is_schedule);
    row.paused = is_off && !is_schedule;
}

/// Whether two definitions of an event schedule differ in more than the job that they run.
pub(crate) fn differ(one: &Workflow, other: &Workflow) -> bool {
    let about_schedule =
        |one: &Workflow| (one.keys.clone(), one.trigger.clone(), one.constraints.clone(), one.start_time);
    about_schedule(one) != about_schedule(other)
}
