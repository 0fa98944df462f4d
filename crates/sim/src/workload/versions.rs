//! Versions of projects, and backfills of what they made.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::Ask;
use kelos_model::Workflow;
use kelos_model::workflow::{ProjectVersion, VersionChoice};

use crate::rng::Rng;

/// The seeds from here on have versions. Those before it were there before versions were, and mean what they did.
const FIRST: u64 = 700_000;

/// Gives most definitions a version, which most changes count up, and has some backfills look for what a version made. A change that
/// changes nothing else becomes one of the version alone.
pub(super) fn choose(seed: u64, definitions: &mut Vec<(Timestamp, Vec<Arc<Workflow>>)>, asks: &mut [(Timestamp, Ask)]) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0x7E25);
    let (Some((start, first)), Some((last, _))) = (definitions.first().cloned(), asks.last().cloned()) else { return };
    if rng.percent(70) {
        definitions.push((start.max(super::moment(&mut rng, start, last.max(start))), first));
        definitions.sort_by_key(|(at, _)| *at);
    }
    let mut number = 0;
    for (_, set) in definitions {
        number += u32::from(rng.percent(80));
        for workflow in set.iter_mut().filter(|_| rng.percent(90)) {
            Arc::make_mut(workflow).version = version(number);
        }
    }
    for (_, ask) in asks {
        if let Ask::Backfill(request) = ask
            && rng.percent(60)
        {
            // Some never were.
            let made = u32::try_from(rng.between(0, i64::from(number) + 1)).unwrap_or(0);
            request.made_by = version(made).map(VersionChoice::Project);
        }
    }
}

fn version(number: u32) -> Option<ProjectVersion> {
    ProjectVersion::new(&format!("1.{number}")).ok()
}
