//! Starts of workflows that have slots by time, for a quarter of the seeds, and requests about their slots. All of it is generated
//! separately, and the seeds are drawn so that those that once found something have none: they go on to mean what they meant.

use std::collections::BTreeSet;

use kelos_core::{Ask, DownstreamRequest, FireRequest, Kill, MarkSuccess, Rerun, Skip};
use kelos_model::WorkflowId;

use super::events::nth_started;
use super::{Workload, moment, nth};
use crate::rng::Rng;

/// Gives a quarter of the seeds starts.
pub(super) fn add(seed: u64, workload: &mut Workload) {
    let mut rng = Rng::new(seed ^ 0xD_6852);
    if !rng.percent(25) {
        return;
    }
    let every = workload.definitions.iter().flat_map(|(_, all)| all);
    let timed: BTreeSet<WorkflowId> =
        every.filter(|one| one.keys.schedule().is_some()).map(|one| one.id.clone()).collect();
    let timed: Vec<WorkflowId> = timed.into_iter().collect();
    if timed.is_empty() {
        return;
    }
    for _ in 0..rng.between(1, 12) {
        let at = moment(&mut rng, workload.start, workload.end);
        let workflow = rng.pick(&timed).clone();
        // Two starts of one moment are two slots.
        for _ in 0..rng.between(1, 2) {
            workload.asks.push((at, start(&mut rng, workflow.clone())));
        }
        if rng.percent(50) {
            let later = moment(&mut rng, at, workload.end);
            workload.asks.push((later, about_a_slot(&mut rng, workflow)));
        }
    }
    workload.asks.sort_by_key(|(at, _)| *at);
}

fn start(rng: &mut Rng, workflow: WorkflowId) -> Ask {
    let arguments = [("by".to_owned(), "hand".into())].into_iter().filter(|_| rng.percent(50)).collect();
    Ask::Fire(FireRequest { workflow, arguments, key: None, priority: 0, unconstrained: rng.percent(40), reason: None })
}

fn about_a_slot(rng: &mut Rng, workflow: WorkflowId) -> Ask {
    let reason = None;
    let slot =
        if rng.percent(80) { nth_started(workflow, rng.between(0, 20)) } else { nth(workflow, rng.between(0, 200)) };
    match rng.below(6) {
        0 | 1 => Ask::Rerun(Rerun { slot, arguments: kelos_model::Arguments::new(), reason }),
        2 => Ask::Kill(Kill { slot, reason }),
        3 => Ask::Skip(Skip { slot, reason }),
        4 => Ask::MarkSuccess(MarkSuccess { slot, reason }),
        _ => Ask::RerunDownstream(DownstreamRequest {
            slot,
            arguments: kelos_model::Arguments::new(),
            reason,
            kill_live: rng.percent(50),
            dry_run: false,
        }),
    }
}
