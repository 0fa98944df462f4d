//! Pools with rates.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{PoolUse, TokenRate, Workflow};

use crate::rng::Rng;

/// The seeds from here on have rates. Those before it were there before rates were, and mean what they did.
const FIRST: u64 = 600_000;

/// Gives some pools rates. All definitions agree on the rate of a pool; that of some is all that limits it.
pub(super) fn choose(seed: u64, definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0x7A7E);
    let rates = ["p0", "p1", "p2"].map(|name| (name, some(&mut rng), rng.percent(40)));
    for workflow in definitions.iter_mut().flat_map(|(_, set)| set) {
        let limited = |one: &PoolUse| rates.iter().any(|(name, rate, _)| one.pool.as_str() == *name && rate.is_some());
        if !workflow.pools.iter().any(limited) {
            continue;
        }
        for one in &mut Arc::make_mut(workflow).pools {
            let Some((_, Some(rate), alone)) = rates.iter().find(|(name, ..)| one.pool.as_str() == *name) else {
                continue;
            };
            one.rate = Some(*rate);
            one.permits = one.permits.min(rate.burst);
            if *alone {
                one.size = PoolUse::BOUNDLESS;
            }
        }
    }
}

/// A rate whose tokens come in whole milliseconds, from seconds to hours.
fn some(rng: &mut Rng) -> Option<TokenRate> {
    let tokens = u32::try_from(rng.between(1, 6)).unwrap_or(1);
    let millis = u64::from(tokens) * 1000 * u64::try_from(rng.between(7, 1800)).unwrap_or(7);
    let burst = u32::try_from(rng.between(1, 4)).unwrap_or(1);
    rng.percent(70).then_some(TokenRate { tokens, millis, burst })
}
