//! Slots that wait forever for slots that will never be, as the model finds them, as problems with words and places.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::mistakes::deadlocks;
use kelos_model::time::{Schedule, Zone, format_short};
use kelos_model::workflow::{EndlessWait, EndlessWaits, WaitCause, WaitExtent};
use kelos_model::{Workflow, WorkflowId};

use crate::code::ProblemCode;
use crate::load::LoadResult;
use crate::position::warning;
use crate::problem::Problem;

/// Warnings about workflows of which some slots can never run, as far as times tell, on a server that sees them first at this moment. What
/// only this moment cuts off is no problem of a definition, and a deadlock is told otherwise.
#[must_use]
pub fn endless_waits(loaded: &LoadResult, window: SignedDuration, now: Timestamp) -> Vec<Problem> {
    let by_id = loaded.read();
    let circles = deadlocks(by_id.values().map(|one| &***one));
    let circling: BTreeSet<&WorkflowId> = circles.iter().flat_map(|one| &one.circle).map(|(id, _)| id).collect();
    let found = EndlessWaits::of(&loaded.workflows, &[], window, now).waits.into_iter();
    let problem = |wait: EndlessWait| {
        let (own, upstream) = (*by_id.get(&wait.workflow)?, *by_id.get(&wait.upstream)?);
        let words = format!("{}: {}", who(&wait), why(&wait, upstream));
        Some(warning(loaded, own, ProblemCode::WaitsForever, words, hint(&wait, own, upstream)))
    };
    found.filter(|wait| wait.is_mistake && !circling.contains(&wait.workflow)).filter_map(problem).collect()
}

/// The slots that never run.
fn who(wait: &EndlessWait) -> String {
    let (id, slot) = (&wait.workflow, format_short(wait.slot));
    match wait.extent {
        WaitExtent::All => format!("\"{id}\" can never run"),
        WaitExtent::First { slots: 1, .. } => format!("the first slot of \"{id}\", {slot}, can never run"),
        WaitExtent::First { slots, last, .. } => {
            format!("the first {slots} slots of \"{id}\", {slot} to {}, can never run", format_short(last))
        }
        WaitExtent::Rest => format!("\"{id}\" can't run from {slot} on"),
        WaitExtent::Some { slots } => {
            format!("{slots} of the next {} slots of \"{id}\" can never run", wait.looked_at)
        }
    }
}

/// The slot that the first of them waits for, and why that will never be.
fn why(wait: &EndlessWait, upstream: &Workflow) -> String {
    let (slot, awaited, other) = (format_short(wait.slot), format_short(wait.awaited), &wait.upstream);
    if wait.workflow == wait.upstream {
        let rest = match wait.extent {
            WaitExtent::All => ", and each later one waits for one before it",
            _ => "",
        };
        return match wait.cause {
            WaitCause::NoSuchTime => {
                format!("its slot {slot} waits for its own slot {awaited}, a time that its schedule does not have")
            }
            WaitCause::Ended => format!("its slot {slot} waits for its own slot {awaited}, which lies beyond its end"),
            WaitCause::NotBegun | WaitCause::Passed(_) => {
                format!("its first slot, {slot}, waits for its own slot {awaited}, of before the first{rest}")
            }
        };
    }
    let bound = |bound: Option<Timestamp>| bound.map(format_short).unwrap_or_default();
    let never = match wait.cause {
        WaitCause::NoSuchTime => format!("a time that \"{other}\" does not have{}", nearest(wait, upstream)),
        WaitCause::Ended => format!("but \"{other}\" ends at {}", bound(upstream.end_time)),
        WaitCause::NotBegun => format!("but \"{other}\" starts at {}", bound(upstream.start_time)),
        WaitCause::Passed(_) => format!("but \"{other}\" opens no slots of before it is first seen"),
    };
    format!("its slot {slot} waits for {other}@{awaited}, {never}")
}

/// The times around the one that is missing, and how many were compared: `; the nearest are … and …`.
fn nearest(wait: &EndlessWait, upstream: &Workflow) -> String {
    let schedule = match upstream.keys.schedule() {
        Some(Schedule::Cron(schedule)) => Some(schedule),
        Some(Schedule::Calendar(calendar)) => Some(calendar.schedule()),
        _ => None,
    };
    let near = schedule.into_iter().flat_map(|one| [one.previous_before(wait.awaited), one.next_after(wait.awaited)]);
    let near: Vec<String> = near.flatten().map(format_short).collect();
    let near = if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(" and ")) };
    match wait.extent {
        WaitExtent::All => {
            format!("{near} (the same holds for all {} times up to {})", wait.looked_at, format_short(wait.until))
        }
        _ => near,
    }
}

fn hint(wait: &EndlessWait, own: &Arc<Workflow>, upstream: &Arc<Workflow>) -> Option<String> {
    let (id, other) = (&wait.workflow, &wait.upstream);
    let apart = wait.awaited.duration_since(wait.slot).as_secs();
    if id == other {
        let back = apart.saturating_neg();
        let from = if back % 3600 == 0 { format!("\"-{}h\"", back / 3600) } else { format!("{apart}") };
        let start = match wait.cause {
            WaitCause::NotBegun => String::new(),
            _ => format!(", and write startTime: \"{}\"", format_short(wait.slot)),
        };
        let covers = format!("celos.covers(\"{id}\", {{from: {from}}})");
        return (back > 0)
            .then(|| format!("wait for it by {covers}, which asks for nothing of before the start{start}"));
    }
    let start = match wait.extent {
        WaitExtent::First { next, .. } => Some(format!("write startTime: \"{}\" in \"{id}\"", format_short(next))),
        _ => None,
    };
    match wait.cause {
        WaitCause::NoSuchTime if zone(own).zip(zone(upstream)).is_some_and(|(own, other)| own != other) => {
            Some("give both the same timeZone".to_owned())
        }
        WaitCause::NoSuchTime => Some(match wait.lag {
            Some(lag) => format!(
                "let it wait for the slot before: celos.offsetTrigger({}, celos.successTrigger(\"{other}\"))",
                apart - lag
            ),
            None => format!("let it wait for all periods that its own intersects: celos.covers(\"{other}\")"),
        }),
        WaitCause::Ended => Some(format!("end \"{id}\" with it, or take the trigger out")),
        WaitCause::NotBegun => start,
        WaitCause::Passed(_) => Some(format!("write catchUp: \"all\" in \"{other}\", too")),
    }
}

fn zone(workflow: &Workflow) -> Option<&Zone> {
    match workflow.keys.schedule()? {
        Schedule::Cron(schedule) => Some(schedule.zone()),
        Schedule::Calendar(calendar) => Some(calendar.schedule().zone()),
        Schedule::Dependent(_) => None,
    }
}
