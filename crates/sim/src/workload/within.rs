//! Pools of which runs take permits while they are live.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{PoolId, PoolUse, Workflow};

use crate::rng::Rng;

/// The seeds from here on have runs that take permits. Those before it were there before such runs were, and mean what they did.
const FIRST: u64 = 700_000;

/// Lets runs of most workflows take permits of pools, on the terms on which others name them.
pub(super) fn choose(seed: u64, definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0x3175);
    let all = definitions.iter().flat_map(|(_, set)| set).flat_map(|one| &one.pools);
    let mut terms: Vec<PoolUse> = Vec::new();
    for one in all {
        if !terms.iter().any(|other| other.pool == one.pool) {
            terms.push(PoolUse { permits: 1, ..one.clone() });
        }
    }
    for name in ["p0", "p3"] {
        let Ok(pool) = PoolId::new(name) else { continue };
        let size = u32::try_from(rng.between(1, 4)).unwrap_or(1);
        if !terms.iter().any(|other| other.pool == pool) {
            terms.push(PoolUse { pool, size, permits: 1, rate: None });
        }
    }
    terms.sort_by(|a, b| a.pool.cmp(&b.pool));
    for workflow in definitions.iter_mut().flat_map(|(_, set)| set) {
        let within: Vec<PoolUse> = terms.iter().filter(|_| rng.percent(60)).cloned().collect();
        if !within.is_empty() && rng.percent(80) {
            Arc::make_mut(workflow).within = within;
        }
    }
}
