//! The status of an event schedule: when it fires next, its pending slots with their progress, and its last run.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::Event;
use kelos_model::time::{Firing, Zone, text};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{
    Collection, EventRecord, Reason, ReasonKind, Run, Slot, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId,
};
use kelos_store::{About, EventFilter, PENDING, PageRequest, Queries, RunFilter, SlotFilter, StoreError};

use super::progress::{expires, progress};
use super::words;

/// The status of an event schedule.
#[derive(Debug, Clone)]
pub struct Overview {
    /// When its cron expressions fire next; none where it has none, or is disabled.
    pub next: Option<FiringTime>,
    /// The slots that have not started yet, newest first; the first few.
    pub pending: Vec<PendingSlot>,
    /// Its run that was dispatched last.
    pub last_run: Option<Run>,
}

/// A time of a cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiringTime {
    /// The time.
    pub at: Timestamp,
    /// The expression.
    pub cron: String,
    /// Its zone.
    pub zone: Zone,
}

/// A slot that has not started yet.
#[derive(Debug, Clone)]
pub struct PendingSlot {
    /// The slot.
    pub slot: SlotRef,
    /// Its state: waiting, held, queued or in back-off.
    pub state: SlotState,
    /// The beginning of that state.
    pub since: Timestamp,
    /// The conditions that it waits for: `3 of 4 partitions of purchases`.
    pub text: String,
    /// The reason tree of its trigger if it waits; that of its constraints if it is held.
    pub explanation: Option<Reason>,
    /// When it is over if nothing changes.
    pub expires: Option<Timestamp>,
    /// The facts that it has collected.
    pub collected: Option<Box<Collection>>,
}

/// The most pending slots that are listed.
const MOST_PENDING: usize = 10;

/// Reads the status of an event schedule.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, row: &WorkflowRow, now: Timestamp) -> Result<Overview, StoreError> {
    let runs = RunFilter { workflow: Some(row.id.clone()), ..RunFilter::default() };
    Ok(Overview {
        next: Some(row).filter(|row| row.present && row.enabled).and_then(|row| next_time(&row.definition, now)),
        pending: pending(reader, row, now)?,
        last_run: reader.runs(&runs, PageRequest::newest(1))?.rows.into_iter().next(),
    })
}

/// The number of slots of an event schedule in each state. Reads all that did not succeed.
///
/// # Errors
/// When the store can't be read.
pub fn counts(reader: &dyn Queries, id: &WorkflowId) -> Result<BTreeMap<SlotState, u64>, StoreError> {
    reader.slot_counts(&SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() })
}

/// The pending slots of an event schedule, newest first.
///
/// # Errors
/// When the store can't be read.
pub fn pending(reader: &dyn Queries, row: &WorkflowRow, now: Timestamp) -> Result<Vec<PendingSlot>, StoreError> {
    let (workflow, states) = (Some(row.id.clone()), PENDING.to_vec());
    let filter = SlotFilter { workflow, states, collecting: true, ..SlotFilter::default() };
    let found = reader.slots(&filter, PageRequest::newest(MOST_PENDING))?.rows;
    found.into_iter().map(|found| one_pending(reader, &row.definition, found.id, found.slot, now)).collect()
}

fn one_pending(
    reader: &dyn Queries,
    definition: &Workflow,
    id: SlotRef,
    slot: Slot,
    now: Timestamp,
) -> Result<PendingSlot, StoreError> {
    let explanation = match slot.state {
        SlotState::Waiting if definition.trigger.is_of_facts() => {
            Some(progress(definition, &id, slot.collected.as_deref(), now))
        }
        SlotState::Waiting | SlotState::Held => {
            last_said(reader, &id, slot.state)?.map(|said| said.as_of(now, slot.collected.as_deref()))
        }
        _ => None,
    };
    let text = match (slot.state, &explanation) {
        (SlotState::Waiting, Some(said)) => words::waits_for(said),
        (SlotState::Held, Some(said)) => words::unmet(said),
        (SlotState::Queued, _) => "ready, and waits for a permit".to_owned(),
        (SlotState::Backoff, _) => slot.due.map_or_else(
            || "its run failed and will be retried".to_owned(),
            |due| format!("its run failed and will be retried at {}", text::format_short(due)),
        ),
        (SlotState::Held, None) => "its constraints are not met".to_owned(),
        _ => "it has not been evaluated yet".to_owned(),
    };
    let expires = expires(definition, &id, &slot).filter(|_| slot.last_run == 0);
    Ok(PendingSlot {
        slot: id,
        state: slot.state,
        since: slot.since,
        text,
        explanation,
        expires,
        collected: slot.collected,
    })
}

/// The numbers of a slot's newest events that are read to find its last evaluation; usually the first few have it.
const LOOKED_AT: [usize; 2] = [10, 1000];

/// The last evaluation of the trigger of a slot that waits, or of the constraints of one that is held.
fn last_said(reader: &dyn Queries, id: &SlotRef, state: SlotState) -> Result<Option<Reason>, StoreError> {
    let said = |record: EventRecord| match record.event {
        Event::Slot { what: SlotEvent::Looked { explanation }, .. } => {
            let of_constraints = explanation.kind == ReasonKind::Constraints;
            (of_constraints == (state == SlotState::Held)).then_some(explanation)
        }
        _ => None,
    };
    let life = EventFilter::about(About::Slot(id.clone()));
    for many in LOOKED_AT {
        if let Some(found) = reader.events(&life, PageRequest::newest(many))?.rows.into_iter().find_map(said) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The first time of an event schedule's cron expressions after a moment.
#[must_use]
pub fn next_time(definition: &Workflow, after: Timestamp) -> Option<FiringTime> {
    let times = next_times(definition, after).into_iter();
    times.min_by_key(|(_, at)| *at).map(|(firing, at)| FiringTime {
        at,
        cron: firing.plain_text().to_owned(),
        zone: firing.zone().clone(),
    })
}

/// When each cron expression of a schedule fires next after a moment, in order of appearance: within its start and its
/// end, enabled or not.
#[must_use]
pub fn next_times(definition: &Workflow, after: Timestamp) -> Vec<(Firing, Timestamp)> {
    // A time at the very start counts.
    let after = definition
        .start_time
        .and_then(|start| start.checked_sub(SignedDuration::from_millis(1)).ok())
        .map_or(after, |before_start| before_start.max(after));
    let end = definition.keys.events().and_then(|events| events.end_time);
    let next = |firing: &Firing| Some((firing.clone(), firing.schedule().next_after(after)?));
    let times = definition.trigger.firings().into_iter().filter_map(next);
    times.filter(|(_, at)| end.is_none_or(|end| *at < end)).collect()
}

#[cfg(test)]
mod tests {
    use kelos_model::workflow::{EventKeys, Keys};
    use kelos_model::{Job, Trigger};
    use serde_json::Map;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn fired(cron: &str, zone: &str) -> Trigger {
        Trigger::Fired { firing: Firing::parse(cron, Zone::parse(zone).expect("a zone")).expect("an expression") }
    }

    fn schedule(trigger: Trigger) -> Workflow {
        let id = |name| WorkflowId::new(name).expect("an id");
        let keys = Keys::Events(Box::new(EventKeys::new("s", id("p"))));
        Workflow { trigger, ..Workflow::keyed(id("a.s"), keys, Job::new("command", Map::new())) }
    }

    #[test]
    fn the_next_time_is_the_earliest_between_start_and_end() {
        let triggers = vec![fired("0 4 * * *", "UTC"), fired("0 4 * * *", "Europe/Berlin")];
        let mut schedule = schedule(Trigger::Or { triggers });
        let next = |schedule: &Workflow| next_time(schedule, at("2026-07-01T00:00:00Z"));
        let found = next(&schedule).expect("a time");
        assert_eq!((found.at, found.zone.name()), (at("2026-07-01T02:00:00Z"), "Europe/Berlin"));
        schedule.start_time = Some(at("2026-07-01T04:00:00Z"));
        assert_eq!(next(&schedule).map(|time| time.at), Some(at("2026-07-01T04:00:00Z")));
        let mut keys = EventKeys::new("s", WorkflowId::new("p").expect("an id"));
        keys.end_time = Some(at("2026-07-01T04:00:00Z"));
        schedule.keys = Keys::Events(Box::new(keys));
        assert_eq!(next(&schedule), None);
    }
}
