//! Workflows about periods.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::{Calendar, Schedule, Zone};
use kelos_model::workflow::Keys;
use kelos_model::{Workflow, WorkflowId};

use crate::rng::Rng;

/// The seeds from here on have periods. Those before it were there before periods were, and mean what they did.
const FIRST: u64 = 200_000;

/// Gives some workflows calendars in place of cron expressions, and some an end.
pub(super) fn choose(seed: u64, names: &[WorkflowId], definitions: &mut [(Timestamp, Vec<Arc<Workflow>>)]) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0xCA1E);
    let mut chosen: Vec<Option<Calendar>> = names.iter().map(|_| some(&mut rng)).collect();
    let mut ends: Vec<Option<i64>> = names.iter().map(|_| end(&mut rng)).collect();
    for (at, set) in definitions {
        for workflow in set {
            let Some(n) = names.iter().position(|id| *id == workflow.id) else { continue };
            if rng.percent(20) {
                (chosen[n], ends[n]) = (some(&mut rng), end(&mut rng));
            }
            let end_time = ends[n].map(|minutes| *at + SignedDuration::from_mins(minutes));
            let calendar = chosen[n].clone().filter(|_| matches!(workflow.keys.schedule(), Some(Schedule::Cron(_))));
            if calendar.is_some() || end_time.is_some() {
                let workflow = Arc::make_mut(workflow);
                workflow.end_time = end_time;
                workflow.keys = calendar.map_or(workflow.keys.clone(), |one| Keys::Schedule(Schedule::Calendar(one)));
            }
        }
    }
}

fn some(rng: &mut Rng) -> Option<Calendar> {
    let calendar = match rng.below(6) {
        0 | 1 => Calendar::hourly(),
        2 => Calendar::hours(2).ok()?,
        3 => Calendar::hours(*rng.pick(&[3, 4, 6])).ok()?,
        4 => Calendar::daily(Zone::utc()),
        _ => Calendar::daily(Zone::parse("Europe/Berlin").ok()?),
    };
    rng.percent(60).then_some(calendar)
}

fn end(rng: &mut Rng) -> Option<i64> {
    rng.percent(15).then(|| rng.between(-300, 600))
}
