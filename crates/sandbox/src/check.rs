//! Validating a folder without running anything, and what only all files together can show.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::facts::Subject;
use kelos_model::time::{Schedule, ScheduleProblem, resolve};
use kelos_model::workflow::SLOWED;
use kelos_model::{PoolId, PoolUse, Workflow, WorkflowId};

use crate::apps::{AppFormat, AppsSource};
use crate::code::ProblemCode;
use crate::host::Host;
use crate::limits::{Folders, Limits};
use crate::load::{ById, LoadResult};
use crate::mistakes::{deadlocked, in_utc, never_meeting, too_long, unaligned, unfilled, weekdays, written_twice};
use crate::position::warning;
use crate::problem::Problem;
use crate::sample::disagreements;
use crate::scripts::Scripts;
use crate::secrets::literals;

/// Loads a folder, and the apps that are described beside it, once, asking nothing of the outside, and adds the [`warnings`], where pairs
/// of functions disagree about a sample of jobs, values that look like secrets, numbers of weekdays that another dialect of cron reads otherwise, parts of times that are those of
/// UTC in a schedule of another zone, and arguments of commands that are too long.
///
/// # Errors
/// When the system refuses a thread.
pub fn check(
    folders: Folders,
    limits: Limits,
    format: Arc<dyn AppFormat>,
    apps: Option<AppsSource>,
) -> std::io::Result<LoadResult> {
    let scripts = Scripts::start(folders, limits, Host::dry().with_format(format).with_apps(apps))?;
    let mut loaded = scripts.load();
    loaded.problems.extend(disagreements(&scripts, &loaded));
    let found = [warnings(&loaded), weekdays(&loaded), in_utc(&loaded), too_long(&loaded), literals(&loaded)].concat();
    loaded.problems.extend(found);
    Ok(loaded)
}

/// The most workflows that a warning names before it counts the others.
const NAMED: usize = 3;

/// The problems that only the definitions of all files together show: workflows that can never run, triggers that wait for a workflow
/// or a program that isn't defined, schedules that can't be resolved or form a cycle, pools whose size is disputed, and what is
/// probably mistyped. What can never run is an error, and everything is loaded all the same. Definitions of files that were refused count,
/// too: who waits for one of them is not wrong.
#[must_use]
pub fn warnings(loaded: &LoadResult) -> Vec<Problem> {
    let by_id = loaded.read();
    let ids = || by_id.keys().map(|id| id.as_str());
    let mut found = Vec::new();
    for workflow in by_id.values() {
        let mut missing: Vec<&WorkflowId> = workflow.trigger.upstream();
        missing.retain(|id| !by_id.contains_key(id));
        missing.sort();
        missing.dedup();
        for id in missing {
            let close = crate::closest(id.as_str(), ids());
            let hint = close.map(|close| format!("did you mean \"{close}\"?"));
            let words = format!("the trigger of \"{}\" waits for workflow \"{id}\", which nobody defines", workflow.id);
            found.push(warning(loaded, workflow, ProblemCode::UnknownWorkflow, words, hint));
        }
    }
    found.extend(without_jobs(loaded, &by_id));
    found.extend(without_periods(loaded, &by_id));
    found.extend(without_programs(loaded, &by_id));
    found.extend(going_round(loaded));
    found.extend(scheduled(loaded, &by_id));
    found.extend(disputed(loaded));
    found.extend(deadlocked(loaded, &by_id));
    found.extend(written_twice(loaded, &by_id));
    found.extend(by_id.values().flat_map(|workflow| unfilled(loaded, workflow)));
    found
}

/// Triggers that wait for a job of a workflow that has none.
fn without_jobs(loaded: &LoadResult, by_id: &ById<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for workflow in by_id.values() {
        let upstream = workflow.trigger.upstream_jobs();
        for id in upstream.into_iter().filter(|id| by_id.get(id).is_some_and(|one| one.keys.jobs().is_none())) {
            let words = format!(
                "the trigger of \"{}\" waits for a job of \"{id}\", which has a schedule and no jobs",
                workflow.id
            );
            let hint = Some("use celos.successTrigger".to_owned());
            found.push(warning(loaded, workflow, ProblemCode::NoJobs, words, hint));
        }
    }
    found
}

/// Triggers that wait for periods of a workflow that has no schedule.
fn without_periods(loaded: &LoadResult, by_id: &ById<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for workflow in by_id.values() {
        let covered = workflow.trigger.covered().into_iter().map(|covered| covered.workflow);
        for id in covered.filter(|id| by_id.get(id).is_some_and(|one| one.keys.schedule().is_none())) {
            let words =
                format!("the trigger of \"{}\" waits for periods of \"{id}\", which has no schedule", workflow.id);
            let hint = Some("use celos.jobTrigger for jobs".to_owned());
            found.push(warning(loaded, workflow, ProblemCode::NoPeriods, words, hint));
        }
    }
    found
}

/// Event schedules that the end of their own program has go again, for ever.
fn going_round(loaded: &LoadResult) -> Vec<Problem> {
    let round = |workflow: &Arc<Workflow>| {
        let words = format!("schedule \"{}\": {}", workflow.id, workflow.goes_round()?);
        Some(warning(loaded, workflow, ProblemCode::GoesRound, words, Some(SLOWED.to_owned())))
    };
    loaded.workflows.iter().filter_map(round).collect()
}

/// Warnings about triggers that wait for runs of an undefined program whose name belongs to an application of this
/// folder, or is close to one that is defined. Other programs may report their runs from outside.
fn without_programs(loaded: &LoadResult, by_id: &ById<'_>) -> Vec<Problem> {
    let projects: BTreeSet<&str> = by_id.values().map(|one| &*one.project).collect();
    let runnable = by_id.values().filter(|one| one.keys.events().is_none());
    let runnable: BTreeSet<&str> = runnable.map(|one| one.id.as_str()).collect();
    // Many may wait for the same.
    let mut hints: BTreeMap<WorkflowId, Option<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for workflow in by_id.values() {
        let subjects = workflow.trigger.subjects();
        let programs: BTreeSet<&WorkflowId> = subjects.iter().filter_map(ended).collect();
        for id in programs.into_iter().filter(|id| !runnable.contains(id.as_str())) {
            let is_of_ours = id.as_str().match_indices('.').any(|(at, _)| projects.contains(&id.as_str()[..at]));
            if !is_of_ours && id.as_str().contains('.') {
                continue;
            }
            let close = || crate::closest(id.as_str(), runnable.iter().copied()).map(str::to_owned);
            let close = hints.entry(id.clone()).or_insert_with(close).clone();
            if close.is_none() && !is_of_ours {
                continue;
            }
            let words = format!("the trigger of \"{}\" waits for runs of \"{id}\", which nobody defines", workflow.id);
            found.push(warning(
                loaded,
                workflow,
                ProblemCode::UnknownProgram,
                words,
                close.map(|close| format!("did you mean \"{close}\"?")),
            ));
        }
    }
    found
}

fn ended(subject: &Subject) -> Option<&WorkflowId> {
    match subject {
        Subject::Ended(program, _) => Some(program),
        _ => None,
    }
}

/// The workflows that use a pool, by the size that they give it.
type Sizes<'a> = BTreeMap<u32, Vec<(&'a Arc<Workflow>, &'a PoolUse)>>;

/// Pools that have different sizes in different definitions, and runs that need more than the smallest.
fn disputed(loaded: &LoadResult) -> Vec<Problem> {
    let mut pools: BTreeMap<&PoolId, Sizes<'_>> = BTreeMap::new();
    for workflow in &loaded.workflows {
        let of_steps = workflow.flow.iter().flat_map(|flow| &flow.steps).flat_map(|step| &step.pools);
        for one in workflow.pools.iter().chain(of_steps) {
            pools.entry(&one.pool).or_default().entry(one.size).or_default().push((workflow, one));
        }
    }
    let sizes = pools.iter().flat_map(|(pool, sizes)| disputed_sizes(loaded, pool, sizes));
    sizes.chain(pools.iter().flat_map(|(pool, sizes)| disputed_rate(loaded, pool, sizes))).collect()
}

/// A pool to which definitions give different rates, and runs that need more tokens than add up at the slowest.
fn disputed_rate(loaded: &LoadResult, pool: &PoolId, sizes: &Sizes<'_>) -> Vec<Problem> {
    let users = || sizes.values().flatten().copied();
    let rated = users().filter_map(|(workflow, one)| Some((one.rate?, workflow)));
    let Some((slowest, first)) = rated.min_by_key(|(rate, _)| *rate) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some((other, one)) = users().find(|(_, one)| one.rate != Some(slowest)) {
        let said = one.rate.map_or_else(|| "no rate".to_owned(), |rate| format!("a rate of {rate}"));
        let (id, of) = (&other.id, &first.id);
        let words =
            format!("pool \"{pool}\" has {said} by \"{id}\", and {slowest} by \"{of}\": the slowest rate holds");
        let hint = "define it once, in a file of the defaults folder".to_owned();
        found.push(warning(loaded, other, ProblemCode::PoolDisputed, words, Some(hint)));
    }
    for (workflow, one) in users().filter(|(_, one)| one.permits > slowest.burst) {
        let (id, takes, most, of) = (&workflow.id, one.permits, slowest.burst, &first.id);
        let words = format!(
            "\"{id}\" never runs: a run of it takes {takes} tokens of pool \"{pool}\", of which at most {most} add up by \"{of}\""
        );
        found.push(warning(loaded, workflow, ProblemCode::PoolTooSmall, words, None));
    }
    found
}

fn disputed_sizes(loaded: &LoadResult, pool: &PoolId, sizes: &Sizes<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let Some((smallest, first)) = sizes.first_key_value() else { return found };
    for (size, users) in sizes.iter().skip(1) {
        let Some((workflow, _)) = users.first() else { continue };
        let words = format!(
            "pool \"{pool}\" has {} by {}, and {smallest} by {}: the smallest size holds",
            permits(*size),
            names(users),
            names(first)
        );
        let hint = "define it once, in a file of the defaults folder".to_owned();
        found.push(warning(loaded, workflow, ProblemCode::PoolDisputed, words, Some(hint)));
        for (workflow, one) in users.iter().filter(|(_, one)| one.permits > *smallest) {
            let words = format!(
                "\"{}\" never runs: a run of it takes {} permits of pool \"{pool}\", which has {smallest} by {}",
                workflow.id,
                one.permits,
                names(first)
            );
            found.push(warning(loaded, workflow, ProblemCode::PoolTooSmall, words, None));
        }
    }
    found
}

fn permits(size: u32) -> String {
    if size == PoolUse::BOUNDLESS { "no size".to_owned() } else { format!("{size} permits") }
}

fn names(users: &[(&Arc<Workflow>, &PoolUse)]) -> String {
    let named: Vec<_> = users.iter().take(NAMED).map(|(workflow, _)| format!("\"{}\"", workflow.id)).collect();
    match users.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Schedules that can't be resolved, that have no times, or whose times meet no time window.
fn scheduled(loaded: &LoadResult, by_id: &ById<'_>) -> Vec<Problem> {
    let schedules: BTreeMap<WorkflowId, &Schedule> =
        by_id.values().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect();
    let resolved = resolve(&schedules);
    let mut found = Vec::new();
    for workflow in by_id.values() {
        let ticks = resolved.get(&workflow.id);
        if let Some(Err(problem)) = ticks {
            let close = match problem {
                ScheduleProblem::Unknown { on } => {
                    crate::closest(on.as_str(), schedules.keys().map(WorkflowId::as_str))
                }
                ScheduleProblem::Cycle { .. } | ScheduleProblem::Periods { .. } => None,
            };
            let words = format!("workflow \"{}\" has no slots: {problem}", workflow.id);
            let hint = close.map(|close| format!("did you mean \"{close}\"?"));
            found.push(warning(loaded, workflow, ProblemCode::NoSchedule, words, hint));
        }
        found.extend(unaligned(loaded, workflow));
        found.extend(never_meeting(loaded, workflow, ticks.and_then(|ticks| ticks.as_ref().ok())));
    }
    found
}
