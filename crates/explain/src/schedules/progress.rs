//! The progress of a slot that collects facts. Its evaluations are not in the log, so that facts cost little: its
//! collection is enough to compute it.

use jiff::{SignedDuration, Timestamp};
use kelos_model::facts::{Collection, Tally};
use kelos_model::ranges::Range;
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Facts, evaluate};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Probe, ProbeAnswer, Reason, Slot, SlotRef, SlotState, Subject, Trigger, Workflow, WorkflowId};

/// The facts of a slot that collects: nothing about other slots and the outside.
struct SlotFacts<'a> {
    now: Timestamp,
    collected: Option<&'a Collection>,
}

impl Facts for SlotFacts<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, _: &SlotRef) -> Option<Option<SlotState>> {
        None
    }

    fn period(&self, _: &WorkflowId, _: Timestamp) -> Option<Range> {
        None
    }

    fn slots_in(&self, _: &WorkflowId, _: Range) -> Option<Vec<Timestamp>> {
        None
    }

    fn probe(&self, _: &Probe) -> Option<ProbeAnswer> {
        None
    }

    fn collected(&self, subject: &Subject) -> Option<&Tally> {
        self.collected.and_then(|collected| collected.of(subject))
    }
}

/// The reason tree of a slot's trigger for its collection: `3 of 4 partitions of ds`. Leaves that need more than facts
/// are not evaluated here.
#[must_use]
pub fn progress(workflow: &Workflow, slot: &SlotRef, collected: Option<&Collection>, now: Timestamp) -> Reason {
    let key = KeyValues::of(&workflow.keys, &slot.key);
    evaluate(&workflow.trigger, &workflow.id, &key, &SlotFacts { now, collected }).explanation
}

/// The collected share of what a trigger waits for, from 0 to 1.
#[must_use]
pub fn share(trigger: &Trigger, collected: Option<&Collection>) -> f64 {
    collected.map_or(0.0, |collected| trigger.share(collected))
}

/// When a slot of an event schedule expires, if it still collects or is held then.
#[must_use]
pub fn expires(workflow: &Workflow, id: &SlotRef, slot: &Slot) -> Option<Timestamp> {
    let events = workflow.keys.events()?;
    let waits = matches!(slot.state, SlotState::Waiting | SlotState::Held | SlotState::Expired);
    let since = slot.collected.as_ref().map(|collected| collected.since).or_else(|| id.key.time())?;
    let wait = SignedDuration::from_millis(i64::try_from(events.timeout_millis).ok()?);
    since.checked_add(wait).ok().filter(|_| waits)
}

/// The reason for which an event schedule has no pending slots.
#[must_use]
pub fn nothing_pending(row: &WorkflowRow) -> String {
    let since = |at: Option<Timestamp>| {
        at.map(|at| format!(" since {}", kelos_model::time::text::format_short(at))).unwrap_or_default()
    };
    if !row.present {
        return "nothing is pending: it was deleted".to_owned();
    }
    if !row.enabled {
        return format!("nothing is pending: disabled{}", since(row.moments.updated));
    }
    "nothing is pending: no fact for it has arrived since its last slot was queued".to_owned()
}
