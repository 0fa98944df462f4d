//! Changes of a seed's workload for the lockstep: two schedulers have to agree on it, so that everything that depends on timing, and
//! not on rules, is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_core::{
    Ask, ChangeSchedule, CreateSchedules, DownstreamRequest, FireRequest, Kill, MarkSuccess, Pause, RepeatStep, Rerun,
    Resume, ResumeFlow, SignalFlow, Skip,
};
use kelos_model::workflow::Keys;
use kelos_model::{Gate, Trigger, Workflow, WorkflowId};

use crate::workload::Workload;

/// A number of slots that is never exceeded.
const MANY: usize = 100_000;

/// The workload of a seed with probes, and without limits where answers race.
pub(super) fn with_questions(seed: u64) -> Workload {
    let mut workload = Workload::new(seed);
    without_flows(&mut workload);
    workload.config.by_workers.clear();
    workload.workers.clear();
    workload.config.max_running = u32::MAX;
    every_definition(&mut workload).for_each(unlimited_where_probes_race);
    spare_parents(&mut workload);
    unlimited_where_programs_race(&mut workload);
    every_definition(&mut workload).filter(|one| one.keys.events().is_some()).for_each(|one| {
        // While an answer is on its way more facts may arrive.
        look_at_nothing(&mut Arc::make_mut(one).trigger);
    });
    if workload.config.at_once < MANY {
        every_definition(&mut workload).for_each(unlimited);
    }
    level_requests(&mut workload, |_| false);
    let places = every_definition(&mut workload).filter_map(|one| one.concurrency).max();
    widen_frontier(&mut workload, places.unwrap_or(0));
    workload
}

/// The workload of a seed without probes, and with all of its limits, pools and workers.
pub(super) fn with_limits(seed: u64) -> Workload {
    let mut workload = Workload::new(seed);
    without_flows(&mut workload);
    workload.config.at_once = usize::MAX;
    let meant = workload.meant.clone();
    for one in every_definition(&mut workload) {
        let one = Arc::make_mut(one);
        look_at_nothing(&mut one.trigger);
        let Keys::Jobs(jobs) = &mut one.keys else { continue };
        if let Some(valid) = &mut jobs.valid {
            valid.function = None;
        }
        for group in &mut jobs.depends_on {
            let known = group.functions.as_ref().and_then(|functions| meant.get(&functions.parents.digest));
            *group = known.unwrap_or(group).clone();
        }
    }
    spare_parents(&mut workload);
    let all = workload.definitions.iter().flat_map(|(_, all)| all);
    let waiting = all.filter(|one| one.keys.jobs().is_some_and(|jobs| !jobs.depends_on.is_empty()));
    let waiting: BTreeSet<WorkflowId> = waiting.map(|one| one.id.clone()).collect();
    level_requests(&mut workload, |id| !waiting.contains(id));
    let places = workload.config.max_running;
    widen_frontier(&mut workload, places);
    workload
}

/// Leaves out flows, of which the full scan knows nothing, and all requests about them.
fn without_flows(workload: &mut Workload) {
    let flows: BTreeSet<WorkflowId> =
        every_definition(workload).filter(|one| one.flow.is_some()).map(|one| one.id.clone()).collect();
    for (_, all) in &mut workload.definitions {
        all.retain(|one| one.flow.is_none());
    }
    workload.asks.retain(|(_, ask)| !subject(ask).is_some_and(|id| flows.contains(id)));
}

/// The workflow that a request is about which may be one about flows.
fn subject(ask: &Ask) -> Option<&WorkflowId> {
    match ask {
        Ask::Fire(FireRequest { workflow, .. })
        | Ask::Pause(Pause { workflow, .. })
        | Ask::Resume(Resume { workflow, .. }) => Some(workflow),
        Ask::RepeatStep(RepeatStep { step: slot, .. })
        | Ask::SignalFlow(SignalFlow { run: slot, .. })
        | Ask::ResumeFlow(ResumeFlow { run: slot, .. })
        | Ask::Kill(Kill { slot, .. })
        | Ask::MarkSuccess(MarkSuccess { slot, .. })
        | Ask::Skip(Skip { slot, .. })
        | Ask::Rerun(Rerun { slot, .. })
        | Ask::RerunDownstream(DownstreamRequest { slot, .. }) => Some(&slot.workflow),
        _ => None,
    }
}

/// Keeps enough slots of a backlog queued for all permits that may become free at once: otherwise slots that exist are first, which
/// is no rule. If definitions change there are no backlogs: a slot of one is judged by the definition of its turn, and the full scan
/// evaluated it before. There are none beside pools either, in whose queues workflows are ordered by their queued slots.
fn widen_frontier(workload: &mut Workload, places: u32) {
    let changes = workload.definitions.len() > 1;
    let has_pools = every_definition(workload).any(|one| !one.pools.is_empty());
    // A slot of a backlog is queued later than in the full scan, and waits for others from then on.
    let waits = every_definition(workload).any(|one| one.batch.is_some_and(|batch| batch.delay_millis > 0));
    let size =
        every_definition(workload).filter_map(|one| one.batch).map(|batch| batch.size as usize).max().unwrap_or(1);
    let enough = if changes || has_pools || waits { usize::MAX } else { 2 * places as usize * size };
    workload.config.frontier = workload.config.frontier.max(enough);
}

/// If several slots open a parent in one step, the first decides its priority: jobs that may have parents are never requested
/// with one.
fn level_requests(workload: &mut Workload, is_alone: impl Fn(&WorkflowId) -> bool) {
    for (_, ask) in &mut workload.asks {
        if let Ask::Submit(request) = ask
            && !request.jobs.iter().all(|job| is_alone(&job.workflow))
        {
            request.priority = 0;
        }
    }
}

fn spare_parents(workload: &mut Workload) {
    for (_, all) in &mut workload.definitions {
        let parents: BTreeSet<_> =
            all.iter().filter_map(|one| one.keys.jobs()).flat_map(|jobs| jobs.parents().cloned()).collect();
        all.iter_mut().filter(|one| parents.contains(&one.id)).for_each(never_in_vain);
    }
}

/// Replaces probes by conditions on the clock.
fn look_at_nothing(trigger: &mut Trigger) {
    match trigger {
        Trigger::Path(_) => *trigger = Trigger::Delay { seconds: 600 },
        Trigger::And { triggers } | Trigger::Or { triggers } => triggers.iter_mut().for_each(look_at_nothing),
        Trigger::Not { trigger } | Trigger::Offset { trigger, .. } => look_at_nothing(trigger),
        _ => {}
    }
}

fn probes(trigger: &Trigger) -> bool {
    matches!(trigger, Trigger::Path(_)) || trigger.nested().iter().any(probes)
}

/// Does the same for constraints on the runs of a program that is also run by slots with probes, and for its pools.
fn unlimited_where_programs_race(workload: &mut Workload) {
    let racing: BTreeSet<WorkflowId> =
        every_definition(workload).filter(|one| probes(&one.trigger)).map(|one| one.program().clone()).collect();
    for one in every_definition(workload).filter(|one| racing.contains(one.program())) {
        let one = Arc::make_mut(one);
        one.constraints.retain(|one| !matches!(one.gate, Gate::Concurrency(_) | Gate::SinceLastRun(_)));
        one.pools.clear();
        one.within.clear();
    }
}

/// Whether jobs may succeed only after functions have named their dependents: other inputs of a turn come before that.
pub(super) fn asks_functions(workload: &Workload) -> bool {
    let all = workload.definitions.iter().flat_map(|(_, all)| all);
    let mut groups = all.filter_map(|one| one.keys.jobs()).flat_map(|jobs| &jobs.depends_on);
    groups.any(|group| group.functions.is_some())
}

/// Whether jobs come to wait for others: a process does not know which of them the one before had evaluated.
pub(super) fn redefines_jobs(workload: &Workload) -> bool {
    let mut first: BTreeMap<&WorkflowId, &Keys> = BTreeMap::new();
    let all = workload.definitions.iter().flat_map(|(_, all)| all);
    let mut jobs = all.filter(|one| one.keys.jobs().is_some());
    jobs.any(|one| *first.entry(&one.id).or_insert(&one.keys) != &one.keys)
}

/// The definitions of files, and those that people create.
fn every_definition(workload: &mut Workload) -> impl Iterator<Item = &mut Arc<Workflow>> {
    let asked = workload.asks.iter_mut().flat_map(|(_, ask)| match ask {
        Ask::CreateSchedules(CreateSchedules { new, .. }) => &mut new[..],
        Ask::ChangeSchedule(ChangeSchedule { changed, .. }) => std::slice::from_mut(changed),
        _ => &mut [],
    });
    workload.definitions.iter_mut().flat_map(|(_, all)| all).chain(asked)
}

/// Removes the limits of a workflow if a tick does not evaluate all slots: the slot that is evaluated first is dispatched first, which is
/// no rule.
fn unlimited(workflow: &mut Arc<Workflow>) {
    let workflow = Arc::make_mut(workflow);
    workflow.constraints.retain(|one| !matches!(one.gate, Gate::Concurrency(_) | Gate::SinceLastRun(_)));
    workflow.concurrency = None;
    workflow.pools.clear();
    workflow.within.clear();
    // A tick waits for those of the same workflow, not for what these wait for.
    workflow.batch = workflow.batch.filter(|_| matches!(workflow.trigger, Trigger::Always | Trigger::Delay { .. }));
}

/// Removes the limits of a workflow with probes: while a probe is on its way another slot may be dispatched, a matter of timing.
fn unlimited_where_probes_race(workflow: &mut Arc<Workflow>) {
    // Jobs are ordered by their evaluation, which is no rule either.
    if probes(&workflow.trigger) || workflow.keys.jobs().is_some() {
        let workflow = Arc::make_mut(workflow);
        workflow.batch = None;
        workflow.concurrency = None;
        workflow.pools.clear();
        workflow.within.clear();
    }
}

/// Avoids parents that never run: they block slots that have not opened all others by then, and the order of evaluation is no rule.
fn never_in_vain(workflow: &mut Arc<Workflow>) {
    let workflow = Arc::make_mut(workflow);
    let Keys::Jobs(jobs) = &mut workflow.keys else { return };
    jobs.valid = None;
    if jobs.template.position("date").is_none() && !matches!(workflow.trigger, Trigger::Path(_) | Trigger::Job { .. }) {
        workflow.trigger = Trigger::Always;
    }
}
