//! The definitions in force after a provenance has given its own. Event schedules are created, changed and removed by
//! the deployment of their project; until then the changes of people stay.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use kelos_model::workflow::{Provenance, WorkflowRow};
use kelos_model::{Workflow, WorkflowId};

use super::Workflows;
use super::definitions::DefinitionSet;
use crate::deployment::Deployments;

impl Workflows {
    /// The definitions in force after projects of one provenance were deployed. Notes the names that belong to others.
    pub(crate) fn in_force(&mut self, provenance: Provenance, deployed: &Deployments) -> DefinitionSet {
        let mut all = self.definitions.without_schedules(|id| self.holder(id));
        let gone = self.gone_programs(provenance, &all, deployed);
        for (id, schedule) in self.schedules_after(provenance, deployed) {
            if schedule.keys.events().is_none_or(|events| gone.contains(&events.program)) {
                continue;
            }
            // Some have nothing left to wait for.
            let Some(schedule) = without(schedule, &gone) else { continue };
            let bound = bound(schedule, &all);
            if self.may_have_name(&bound, &all) {
                all.insert(id, bound);
            }
        }
        self.definitions.note_taken(&all);
        all
    }

    /// The projects whose deployments are kept: those that have, or had, event schedules or programs.
    pub(crate) fn projects_with_moments(&self, all: &DefinitionSet) -> BTreeSet<String> {
        let before = self.all.values().map(|one| &one.row.definition);
        let either = all.values().chain(before).filter(|one| one.keys.are_moments());
        either.map(|one| one.project.clone()).collect()
    }

    /// The present event schedules, after the deployment of projects of one provenance.
    fn schedules_after(&self, provenance: Provenance, deployed: &Deployments) -> DefinitionSet {
        let mut schedules = self.schedules();
        let is_deployed = |one: &Workflow| deployed.get(&one.project).is_some_and(|how| how.update_schedules);
        // Those made by requests are removed by a deployment of their project, which asks for exactly its own.
        let is_own = |one: &Workflow| [provenance, Provenance::Api].contains(&one.provenance());
        schedules.retain(|_, one| !(is_deployed(one) && is_own(one)));
        for named in self.definitions.schedules(provenance).into_iter().filter(|one| is_deployed(one)) {
            match schedules.entry(named.id.clone()) {
                Entry::Occupied(other) if other.get().provenance() != provenance => {}
                entry => drop(entry.insert_entry(named)),
            }
        }
        schedules
    }

    /// The present event schedules.
    fn schedules(&self) -> DefinitionSet {
        let present = self.all.values().filter(|one| one.is_present() && one.is_event_schedule());
        present.map(|one| (one.row.id.clone(), one.row.definition.clone())).collect()
    }

    /// The stored owner of a name.
    fn holder(&self, id: &WorkflowId) -> Option<Provenance> {
        self.get(id).filter(|one| one.is_present()).map(|one| one.row.definition.provenance())
    }

    /// Whether an event schedule may have its name, rather than a given workflow. Within one provenance the workflow is
    /// newer.
    fn may_have_name(&self, schedule: &Workflow, all: &DefinitionSet) -> bool {
        let is_other = |given: &Arc<Workflow>| given.provenance() != schedule.provenance();
        let was_its = || self.holder(&schedule.id) == Some(schedule.provenance());
        all.get(&schedule.id).is_none_or(|given| is_other(given) && was_its())
    }

    /// The programs that a deployment removes. An unreadable file removes nothing.
    fn gone_programs(
        &self,
        provenance: Provenance,
        given: &DefinitionSet,
        deployed: &Deployments,
    ) -> BTreeSet<WorkflowId> {
        let known = self.all.values().map(|one| &one.row.definition);
        let was_there = known.filter(|one| one.keys.events().is_none() && one.provenance() == provenance);
        let gone = was_there.filter(|one| deployed.contains_key(&one.project) && !given.contains_key(&one.id));
        gone.map(|one| one.id.clone()).collect()
    }
}

/// A schedule with the job of its program; unchanged if there is no such program.
pub(super) fn bound(schedule: Arc<Workflow>, programs: &DefinitionSet) -> Arc<Workflow> {
    let program = schedule.keys.events().and_then(|events| programs.get(&events.program));
    let Some(program) = program else { return schedule };
    let same = schedule.job == program.job
        && schedule.flow == program.flow
        && schedule.retry == program.retry
        && schedule.pools == program.pools
        && schedule.parameters == program.parameters;
    if same && schedule.concurrency.is_none() {
        return schedule;
    }
    let mut bound = Workflow::clone(&schedule);
    bound.job = program.job.clone();
    bound.flow.clone_from(&program.flow);
    bound.retry = program.retry;
    bound.pools.clone_from(&program.pools);
    bound.parameters.clone_from(&program.parameters);
    // The number of live runs is limited by its constraints.
    bound.concurrency = None;
    Arc::new(bound)
}

/// A schedule without the parts of its trigger that wait for removed programs; none if nothing is left of it.
fn without(schedule: Arc<Workflow>, gone: &BTreeSet<WorkflowId>) -> Option<Arc<Workflow>> {
    let concerned: Vec<_> = gone.iter().filter(|program| schedule.trigger.waits_for(program)).collect();
    if concerned.is_empty() {
        return Some(schedule);
    }
    let whole = Some(schedule.trigger.clone());
    let left = concerned.into_iter().fold(whole, |trigger, program| trigger?.without(program));
    left.map(|trigger| Arc::new(Workflow { trigger, ..Workflow::clone(&schedule) }))
}

/// A definition whose cron expressions mean what they meant before, as far as they were stored with another meaning of five
/// fields. Who changes them by a request means them as they are read now.
pub(super) fn read_as_before(definition: &Arc<Workflow>, before: &Workflow) -> Arc<Workflow> {
    let mut definition = definition.clone();
    let has_readings = || before.trigger.firings().iter().any(|firing| firing.is_of_quartz_alone());
    if definition.provenance() != Provenance::Api && has_readings() {
        Arc::make_mut(&mut definition).trigger.keep_readings(&before.trigger);
    }
    definition
}

/// Keeps a workflow off that becomes one of another kind: an event schedule is then disabled, any other workflow
/// paused.
pub(super) fn keep_off(row: &mut WorkflowRow) {
    let is_schedule = row.definition.keys.events().is_some();
    let is_off = row.paused || !row.enabled;
    row.enabled = !(is_off && is_schedule);
    row.paused = is_off && !is_schedule;
}

/// Whether two definitions of an event schedule differ in anything but the job.
pub(super) fn differ(one: &Workflow, other: &Workflow) -> bool {
    let about_schedule =
        |one: &Workflow| (one.keys.clone(), one.trigger.clone(), one.constraints.clone(), one.start_time);
    about_schedule(one) != about_schedule(other)
}
