//! Outputs that are given to the slots that depend on them.
//!
//! Runs of all workloads give outputs where any of them has event schedules; of later seeds all do, and some of the workflows that depend on
//! others have a parameter of the name of an output.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Parameter, ParameterKind, Workflow};

use crate::rng::Rng;

/// The first seed in which all runs give.
const FIRST: u64 = 2_000_000;

/// Whether runs give outputs although no event schedule hears of it.
pub(super) fn are_given(seed: u64) -> bool {
    seed >= FIRST
}

/// Has half of the workflows take what others give as a parameter.
pub(super) fn choose(seed: u64, definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    if !are_given(seed) {
        return;
    }
    let mut rng = Rng::new(seed ^ 0x0075);
    for workflow in definitions.iter_mut().flat_map(|(_, set)| set) {
        if rng.percent(50) {
            // A number, or an object where several give it.
            let rows = Parameter::plain("rows", 7.into()).kind(ParameterKind::Json);
            Arc::make_mut(workflow).parameters = vec![rows];
        }
    }
}
