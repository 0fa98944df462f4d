//! The definitions in force once a provenance has given its own. Event schedules come, change and go by deployment of the project
//! that has them; what a person said of one holds until then.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use kelos_model::workflow::{Provenance, WorkflowRow};
use kelos_model::{Workflow, WorkflowId};

use super::Workflows;
use super::definitions::DefinitionSet;
use crate::deployment::Deployments;

impl Workflows {
    /// Puts together what is in force after projects of one provenance were deployed, and notes which names are others'.
    pub(crate) fn in_force(&mut self, provenance: Provenance, deployed: &Deployments) -> DefinitionSet {
        let mut all = self.definitions.without_schedules(|id| self.holder(id));
        let gone = self.gone_programs(provenance, &all, deployed);
        for (id, schedule) in self.schedules_after(provenance, deployed) {
            if schedule.keys.events().is_none_or(|events| gone.contains(&events.program)) {
                continue;
            }
            // Of some nothing is left to wait for.
            let Some(schedule) = without(schedule, &gone) else { continue };
            let bound = bound(schedule, &all);
            if self.may_have_name(&bound, &all) {
                all.insert(id, bound);
            }
        }
        self.definitions.note_taken(&all);
        all
    }

    /// The projects of which what was deployed is kept: those that have, or had, event schedules or programs.
    pub(crate) fn projects_with_moments(&self, all: &DefinitionSet) -> BTreeSet<String> {
        let before = self.all.values().map(|one| &one.row.definition);
        let either = all.values().chain(before).filter(|one| one.keys.are_moments());
        either.map(|one| one.project.clone()).collect()
    }

    /// The event schedules that there are, as projects of one provenance name them that are deployed.
    fn schedules_after(&self, provenance: Provenance, deployed: &Deployments) -> DefinitionSet {
        let mut schedules = self.schedules();
        let is_deployed = |one: &Workflow| deployed.get(&one.project).is_some_and(|how| how.update_schedules);
        // Those that people made go with the project that they are of, for that is what its deployment is asked for.
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

    /// The event schedules that there are.
    fn schedules(&self) -> DefinitionSet {
        let present = self.all.values().filter(|one| one.is_present() && one.is_event_schedule());
        present.map(|one| (one.row.id.clone(), one.row.definition.clone())).collect()
    }

    /// The owner of a name, as stored.
    fn holder(&self, id: &WorkflowId) -> Option<Provenance> {
        self.get(id).filter(|one| one.is_present()).map(|one| one.row.definition.provenance())
    }

    /// Whether an event schedule has its name, and not a workflow that is given. Of one provenance the workflow came later.
    fn may_have_name(&self, schedule: &Workflow, all: &DefinitionSet) -> bool {
        let is_other = |given: &Arc<Workflow>| given.provenance() != schedule.provenance();
        let was_its = || self.holder(&schedule.id) == Some(schedule.provenance());
        all.get(&schedule.id).is_none_or(|given| is_other(given) && was_its())
    }

    /// The programs that a deployment leaves out. A file that can't be read takes nothing away for good.
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

/// A schedule with the job of the program that it runs; as it was where there is none.
pub(super) fn bound(schedule: Arc<Workflow>, programs: &DefinitionSet) -> Arc<Workflow> {
    let program = schedule.keys.events().and_then(|events| programs.get(&events.program));
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
pub(super) fn keep_off(row: &mut WorkflowRow) {
    let is_schedule = row.definition.keys.events().is_some();
    let is_off = row.paused || !row.enabled;
    row.enabled = !(is_off && is_schedule);
    row.paused = is_off && !is_schedule;
}

/// Whether two definitions of an event schedule differ in more than the job that they run.
pub(super) fn differ(one: &Workflow, other: &Workflow) -> bool {
    let about_schedule =
        |one: &Workflow| (one.keys.clone(), one.trigger.clone(), one.constraints.clone(), one.start_time);
    about_schedule(one) != about_schedule(other)
}
