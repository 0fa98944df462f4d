//! Circles of platforms: runs that hold a place of one while they wait for a place of the next, and so on round.
//!
//! Rates alone make no circle, since tokens come by themselves.

use std::collections::BTreeSet;

use kelos_model::flow::Flow;
use kelos_model::{PoolId, PoolUse, Workflow, WorkflowId};

use super::platform::Processes;

/// A run of a job holds a place of one platform while it may wait for a place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grip {
    pub(super) job: WorkflowId,
    pub(super) holds: PoolId,
    pub(super) wants: PoolId,
}

/// A circle for each platform that is in one, without repetition.
pub(super) fn of(workflows: &[Workflow]) -> Vec<Vec<Grip>> {
    let steps = workflows.iter().filter_map(|one| Some((one, one.flow.as_deref()?)));
    let steps = steps.flat_map(|(of, flow)| flow.steps.iter().map(|step| Flow::as_workflow(of, step, true)));
    let steps: Vec<Workflow> = steps.collect();
    let grips: Vec<Grip> = workflows.iter().chain(&steps).flat_map(grips).collect();
    let mut known: BTreeSet<&PoolId> = BTreeSet::new();
    let mut circles = Vec::new();
    for grip in &grips {
        if known.contains(&grip.holds) {
            continue;
        }
        let Some(way) = way(&grips, &grip.wants, &grip.holds) else { continue };
        let circle: Vec<Grip> = std::iter::once(grip).chain(way).cloned().collect();
        known.extend(grips.iter().map(|one| &one.holds).filter(|pool| circle.iter().any(|one| one.holds == **pool)));
        circles.push(circle);
    }
    circles
}

/// A circle in words.
pub(super) fn words(circle: &[Grip]) -> String {
    let words = |grip: &Grip| format!("\"{}\" holds \"{}\" and waits for \"{}\"", grip.job, grip.holds, grip.wants);
    circle.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// The platforms that a run of a job may hold while it waits for others. It asks for all that it takes within at once, except for the programs
/// that it runs, which ask for nothing.
fn grips(workflow: &Workflow) -> Vec<Grip> {
    let places = |uses: &[PoolUse]| -> Vec<PoolId> {
        uses.iter().filter(|one| one.limit().is_some()).map(|one| one.pool.clone()).collect()
    };
    let (start, within) = (places(&workflow.pools), places(&workflow.within));
    let is_program = |pool: &PoolId| pool.as_str() == Processes::NAME;
    let mut grips = Vec::new();
    for wants in &within {
        let beside = within.iter().filter(|pool| is_program(wants) && !is_program(pool));
        for holds in start.iter().chain(beside) {
            grips.push(Grip { job: workflow.id.clone(), holds: holds.clone(), wants: wants.clone() });
        }
    }
    grips
}

/// The shortest way from what is waited for to a platform; empty where that is the one.
fn way<'g>(grips: &'g [Grip], from: &PoolId, to: &PoolId) -> Option<Vec<&'g Grip>> {
    let mut ways: Vec<(&PoolId, Vec<&Grip>)> = vec![(from, Vec::new())];
    let mut seen = BTreeSet::from([from]);
    let mut next = 0;
    while let Some((pool, way)) = ways.get(next).cloned() {
        if pool == to {
            return Some(way);
        }
        for grip in grips.iter().filter(|grip| grip.holds == *pool) {
            if seen.insert(&grip.wants) {
                ways.push((&grip.wants, [way.clone(), vec![grip]].concat()));
            }
        }
        next += 1;
    }
    None
}
