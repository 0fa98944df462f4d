//! Workflows whose runs serve several adjacent slots.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{BatchRule, Trigger, Workflow, WorkflowId};

use crate::rng::Rng;

/// The seeds from here on have batches. Those before it were there before batches were, and mean what they did.
const FIRST: u64 = 700_000;

/// Has some workflows put slots together, most of them as long as they are defined. Some wait for others, for minutes or for hours.
pub(super) fn choose(seed: u64, names: &[WorkflowId], definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0xBA7C);
    let mut chosen: Vec<Option<BatchRule>> = names.iter().map(|_| some(&mut rng)).collect();
    let ready: Vec<bool> = names.iter().map(|_| rng.percent(50)).collect();
    for workflow in definitions.iter_mut().flat_map(|(_, set)| set) {
        let Some(n) = names.iter().position(|id| *id == workflow.id) else { continue };
        if rng.percent(15) {
            chosen[n] = some(&mut rng);
        }
        if chosen[n].is_some() && workflow.keys.schedule().is_some() {
            let workflow = Arc::make_mut(workflow);
            workflow.batch = chosen[n];
            // Of slots that wait for paths, few are ready together.
            if ready[n] {
                workflow.trigger = Trigger::Always;
            }
        }
    }
}

fn some(rng: &mut Rng) -> Option<BatchRule> {
    let size = u32::try_from(rng.between(2, 6)).unwrap_or(2);
    let minutes = *rng.pick(&[0, 0, 5, 45, 180]);
    rng.percent(75).then_some(BatchRule { size, delay_millis: minutes * 60_000 })
}
