//! Workflows that wait for all periods of another which intersect their own.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Trigger, Workflow, WorkflowId};

use crate::rng::Rng;

/// The seeds from here on have such triggers. Those before it were there before these were, and mean what they did.
const FIRST: u64 = 300_000;

/// Has some workflows wait for periods, alone or beside what they wait for anyway.
pub(super) fn choose(seed: u64, names: &[WorkflowId], definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0xC0BE);
    let mut chosen: Vec<Option<(u64, Trigger)>> = names.iter().map(|_| some(&mut rng, names)).collect();
    for (_, set) in definitions {
        for workflow in set {
            let Some(n) = names.iter().position(|id| *id == workflow.id) else { continue };
            if rng.percent(15) {
                chosen[n] = some(&mut rng, names);
            }
            if let Some((way, covers)) = chosen[n].clone() {
                let workflow = Arc::make_mut(workflow);
                let before = std::mem::replace(&mut workflow.trigger, Trigger::Always);
                workflow.trigger = joined(way, before, covers);
            }
        }
    }
}

/// A trigger, and the way in which it is joined with another one.
fn some(rng: &mut Rng, names: &[WorkflowId]) -> Option<(u64, Trigger)> {
    let workflow = rng.pick(names).clone();
    let (from, to) = match rng.below(6) {
        0..=2 => (0, 0),
        3 => (rng.between(-5, 0) * 3600, 0),
        4 => (rng.between(-5, 2) * 3600, rng.between(-5, 2) * 3600),
        _ => (rng.between(-9000, 0), rng.between(-9000, 3600)),
    };
    let way = rng.below(10);
    rng.percent(70).then_some((way, Trigger::Covers { workflow, from, to }))
}

fn joined(way: u64, before: Trigger, covers: Trigger) -> Trigger {
    match way {
        0..=4 => covers,
        5 | 6 => Trigger::And { triggers: vec![before, covers] },
        7 => Trigger::Or { triggers: vec![covers, before] },
        8 => Trigger::Not { trigger: Box::new(covers) },
        _ => Trigger::Offset { seconds: -3600, trigger: Box::new(covers) },
    }
}
