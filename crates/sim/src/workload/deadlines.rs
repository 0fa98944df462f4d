//! Deadlines: drawn separately, so that the other random numbers of a seed are as they were before.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::deadline::LocalDeadline;
use kelos_model::time::{Dates, Zone};
use kelos_model::{Deadline, WorkflowId};

use super::Workload;
use crate::rng::Rng;

/// Gives most workflows deadlines, soon after their slots are due or at a time of the day. A few change or lose theirs with another
/// definition.
pub(super) fn add(seed: u64, workload: &mut Workload) {
    if seed < crate::FIRST_WITH_DEADLINES {
        return;
    }
    let mut rng = Rng::new(seed ^ 0xDEAD);
    let mut drawn: BTreeMap<WorkflowId, Option<Deadline>> = BTreeMap::new();
    for workflow in workload.definitions.iter_mut().flat_map(|(_, set)| set) {
        let known = drawn.get(&workflow.id).filter(|_| !rng.percent(10)).cloned();
        let deadline = known.unwrap_or_else(|| draw(&mut rng));
        drawn.insert(workflow.id.clone(), deadline.clone());
        Arc::make_mut(workflow).deadline = deadline;
    }
}

fn draw(rng: &mut Rng) -> Option<Deadline> {
    if rng.percent(20) {
        return None;
    }
    if rng.percent(70) {
        let seconds = *rng.pick(&[1, 60, 600, 1800, 7200]);
        return Some(Deadline::After(seconds));
    }
    let zone = Zone::parse(rng.pick::<&str>(&["UTC", "Europe/Berlin", "America/New_York"])).ok()?;
    let local = LocalDeadline::new(rng.pick::<&str>(&["00:00", "03:15", "07:30", "12:00", "18:45"]), zone).ok()?;
    let later = if rng.percent(20) { local.business_days_later(0, &Dates::default()) } else { local.days_later(0) };
    later.ok().map(Deadline::At)
}
