//! The end of a slot that waited for facts or constraints, in words; and the actor who fired it.

use kelos_model::event::{Abort, Event};
use kelos_model::reason::words;
use kelos_model::time::{format_duration, text};
use kelos_model::{Actor, Answer, EventRecord, Reason, ReasonKind, Slot, SlotEvent};
use kelos_wire::words::{Act, aborted as aborted_by};

use super::Account;

/// The reason for which a slot expired, and the facts that were lost with it.
pub(super) fn expired(slot: &Slot, why: &Account, timeout_seconds: u64, last: &Reason) -> String {
    // It may have been evaluated as a waiting one although it was held.
    let held = why.constraints.as_ref().filter(|_| last.answer == Answer::Met);
    let last = held.unwrap_or(last);
    let lacked = words::blockers(last).join("; ");
    let Some(collected) = slot.collected.as_ref().filter(|_| why.expires.is_some()) else {
        let start = if why.wait_from.is_time() { "its time" } else { "it could first have gone" };
        let length = format_duration(i64::try_from(timeout_seconds).unwrap_or(i64::MAX));
        let lacked = match last.kind {
            _ if lacked.is_empty() => String::new(),
            ReasonKind::Constraints => format!(", held: {lacked}"),
            _ => format!("; it still waited: {lacked}"),
        };
        return format!(": timed out {length} after {start}{lacked}");
    };
    let lasted = text::took(collected.since, slot.since);
    match last.kind {
        ReasonKind::Constraints => format!(", {lasted} after it began to collect, while it was held: {lacked}"),
        _ => format!(", {lasted} after it began to collect, and its facts are dropped: {lacked}"),
    }
}

/// The reason for which a pending slot of an event schedule was aborted, and the facts that were lost with it.
pub(super) fn aborted(cause: Abort, by: Option<&Actor>, reason: &str, why: &Account) -> String {
    let done = aborted_by(cause);
    let who = by.map_or_else(|| format!("when its schedule was {done}"), |by| format!("when {by} {done} its schedule"));
    let lacked = match (&why.constraints, &why.trigger) {
        (Some(held), _) if held.answer != Answer::Met => words::blockers(held),
        (_, Some(trigger)) => words::blockers(trigger),
        _ => Vec::new(),
    };
    let who = format!("{who}{reason}");
    if lacked.is_empty() { who } else { format!("{who}; it still waited: {}", lacked.join("; ")) }
}

/// The constraints that ended a slot, and their findings.
pub(super) fn skipped(constraints: &Reason) -> String {
    let ended = constraints.nested.iter().filter(|one| one.answer == Answer::Never);
    let seen: Vec<String> = ended.map(words::text).collect();
    let noun = if seen.len() == 1 { "a constraint" } else { "constraints" };
    format!("{noun}: {}", seen.join("; "))
}

/// `; fired by ann (reason)`, if it was fired by hand.
pub(super) fn fired(history: &[EventRecord]) -> Option<String> {
    history.iter().rev().find_map(|record| match &record.event {
        Event::Slot { what: what @ SlotEvent::FiredBy { unconstrained, repeats, .. }, .. } => {
            let past = if *unconstrained { ", past its constraints" } else { "" };
            let again = repeats.as_ref().and_then(|repeats| repeats.key());
            let again = again.map(|step| format!(", to do {} again", step.short())).unwrap_or_default();
            Act::of_slot(what).map(|act| format!("; {}", act.with(&format!("{again}{past}"))))
        }
        _ => None,
    })
}
