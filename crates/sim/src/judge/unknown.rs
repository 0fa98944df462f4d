//! The judge of attempts with an unknown outcome: what may still be running is not done again, and what has ended is, a few times.

use std::collections::BTreeMap;

use kelos_model::event::{Event, WorkflowEvent};
use kelos_model::retry::OnUnknown;
use kelos_model::{EventRecord, Outcome, Slot, SlotEvent, SlotRef, WorkflowId, slot};
use kelos_store::Queries;

/// How often a slot is done again between two openings.
const MOST: u32 = 3;

/// Checks each end of an attempt against the policy in force. That of a step is pinned with its run, and is not looked up: of steps only
/// what holds for all policies is checked.
///
/// # Errors
/// The violation.
pub(super) fn hold(reader: &dyn Queries, log: &[EventRecord]) -> Result<(), String> {
    let mut policies: BTreeMap<&WorkflowId, OnUnknown> = BTreeMap::new();
    let mut slots: BTreeMap<&SlotRef, Slot> = BTreeMap::new();
    for record in log {
        match &record.event {
            Event::Workflow { workflow, what: WorkflowEvent::Defined { version, .. } } => {
                let past = reader.definitions(workflow, Some(*version)).map_err(|error| error.to_string())?;
                policies.extend(past.into_iter().map(|past| (workflow, past.definition.retry.on_unknown)));
            }
            Event::Workflow { workflow, what: WorkflowEvent::Removed { .. } } => {
                policies.remove(workflow);
            }
            Event::Slot { slot: id, what } => {
                let before = slots.remove(id);
                let policy = policies.get(&id.workflow).filter(|_| id.key.step().is_none());
                if let Some(wrong) = before.as_ref().and_then(|slot| wrong(what, slot.again, policy.copied())) {
                    return Err(format!("event {}: {id} {wrong}: {before:?}, then {what:?}", record.seq));
                }
                slots.extend(slot::apply(before, what, record.at, record.seq).map(|after| (id, after)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The fault of an event of a slot that was done again so often before.
fn wrong(what: &SlotEvent, before: u32, policy: Option<OnUnknown>) -> Option<&'static str> {
    match what {
        SlotEvent::BackedOff { outcome: Outcome::Lost { .. }, .. } => Some("is done again, and may still be running"),
        SlotEvent::BackedOff { again: 1.., outcome, .. } if !matches!(outcome, Outcome::Unknown { .. }) => {
            Some("failed, and uses up no retry")
        }
        SlotEvent::BackedOff { again: 1.., .. } if policy.is_some_and(|policy| policy != OnUnknown::Again) => {
            Some("uses up no retry, and its policy says that it does")
        }
        SlotEvent::BackedOff { again, .. } if *again > MOST => Some("is done again too often"),
        SlotEvent::BackedOff { again: again @ 1.., .. } if *again != before + 1 => Some("is miscounted"),
        SlotEvent::BackedOff { outcome: Outcome::Unknown { .. }, .. } if policy == Some(OnUnknown::Fail) => {
            Some("is done again, and its policy is that it is not")
        }
        SlotEvent::BackedOff { again: 0, outcome: Outcome::Unknown { .. }, .. }
        | SlotEvent::Failed { outcome: Outcome::Unknown { .. }, .. }
            if policy == Some(OnUnknown::Again) && before < MOST =>
        {
            Some("has an unknown outcome, and counts as a failure")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn unknown() -> Outcome {
        Outcome::Unknown { reason: "?".to_owned() }
    }

    fn backed_off(outcome: Outcome, again: u32) -> SlotEvent {
        SlotEvent::BackedOff { run: 1, outcome, due: Timestamp::UNIX_EPOCH, again }
    }

    #[test]
    fn planted_faults_are_found() {
        let (lost, failed) = (Outcome::Lost { reason: "?".to_owned() }, Outcome::refused("no"));
        let (again, fail, retry) = (Some(OnUnknown::Again), Some(OnUnknown::Fail), Some(OnUnknown::Retry));
        let found = [
            (backed_off(lost, 0), 0, again),
            (backed_off(failed, 1), 0, again),
            (backed_off(unknown(), 1), 0, retry),
            (backed_off(unknown(), 4), 3, again),
            (backed_off(unknown(), 2), 0, None),
            (backed_off(unknown(), 0), 0, fail),
            (backed_off(unknown(), 0), 2, again),
            (SlotEvent::Failed { run: 1, outcome: unknown() }, 2, again),
        ];
        for (what, before, policy) in found {
            assert!(wrong(&what, before, policy).is_some(), "{what:?} after {before} under {policy:?}");
        }
    }

    #[test]
    fn what_the_rule_allows_is_none() {
        let (again, fail, retry) = (Some(OnUnknown::Again), Some(OnUnknown::Fail), Some(OnUnknown::Retry));
        let failed = |outcome| SlotEvent::Failed { run: 1, outcome };
        let sound = [
            (backed_off(unknown(), 1), 0, again),
            (backed_off(unknown(), 3), 2, again),
            (backed_off(unknown(), 0), 3, again),
            (failed(unknown()), 3, again),
            (backed_off(unknown(), 0), 0, retry),
            (failed(unknown()), 0, fail),
            (failed(Outcome::Lost { reason: "?".to_owned() }), 0, again),
        ];
        for (what, before, policy) in sound {
            assert_eq!(wrong(&what, before, policy), None, "{what:?} after {before} under {policy:?}");
        }
    }
}
