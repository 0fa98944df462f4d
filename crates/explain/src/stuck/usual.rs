//! The usual times of a workflow, from the due time of its slots to their success.

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::Origin;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, SlotEvent, SlotRef, SlotState};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoreError};

use super::FLOOR;
use crate::run_times::{SAMPLES, share};

/// The latest planning after a slot's time for a sample: slots that were planned later had to catch up.
const ON_TIME: SignedDuration = SignedDuration::from_mins(10);

/// The moment from which a slot counts as late, as far as its row tells it.
pub(super) enum DueMoment {
    /// That moment.
    At(Timestamp),
    /// The latest moment that it can be: the history has it.
    By(Timestamp),
}

impl DueMoment {
    pub(super) fn of(workflow: &WorkflowRow, row: &SlotRow) -> DueMoment {
        let (slot, since) = (&row.slot, row.slot.since);
        let Some(time) = workflow.definition.keys.due(&row.id.key) else { return DueMoment::By(since) };
        // It waits since it was planned: it was neither tried nor asked for.
        let only_waits = slot.state == SlotState::Waiting && slot.retries == 0 && slot.asked_at.is_none();
        if since.duration_since(time) <= ON_TIME {
            DueMoment::At(time)
        } else if slot.is_only_planned() || only_waits {
            DueMoment::At(since)
        } else {
            DueMoment::By(since)
        }
    }

    pub(super) fn latest(&self) -> Timestamp {
        let (DueMoment::At(moment) | DueMoment::By(moment)) = self;
        *moment
    }
}

/// The moment from which a slot counts as late: its time, or when it was planned in order to catch up, or a person or a backfill asked for
/// it, after that.
pub(super) fn due(reader: &dyn Queries, workflow: &WorkflowRow, row: &SlotRow) -> Result<Timestamp, StoreError> {
    let latest = match DueMoment::of(workflow, row) {
        DueMoment::At(moment) => return Ok(moment),
        DueMoment::By(latest) => latest,
    };
    let history = reader.history(&row.id)?;
    let Some(time) = workflow.definition.keys.due(&row.id.key) else { return Ok(opened(&history).unwrap_or(latest)) };
    let caught_up = planned(&history).filter(|planned| planned.duration_since(time) > ON_TIME);
    Ok([caught_up, asked(&history)].into_iter().flatten().fold(time, Timestamp::max))
}

/// When a slot was planned.
fn planned(history: &[EventRecord]) -> Option<Timestamp> {
    let plans = |record: &&EventRecord| matches!(record.event, Event::Slot { what: SlotEvent::Planned { .. }, .. });
    history.iter().find(plans).map(|record| record.at)
}

/// When a job was opened last.
fn opened(history: &[EventRecord]) -> Option<Timestamp> {
    let opens = |record: &&EventRecord| {
        matches!(record.event, Event::Slot { what: SlotEvent::Reopened { .. } | SlotEvent::Planned { .. }, .. })
    };
    history.iter().rev().find(opens).map(|record| record.at)
}

/// When a slot was last asked for by anybody but its schedule.
fn asked(history: &[EventRecord]) -> Option<Timestamp> {
    history.iter().rev().find_map(|record| {
        let Event::Slot { what, .. } = &record.event else { return None };
        match what {
            SlotEvent::Reopened { .. } => Some(record.at),
            SlotEvent::Planned { origin: Origin::Request | Origin::Backfill, .. } => Some(record.at),
            _ => None,
        }
    })
}

/// The p90 of the times from due to success of the latest slots; none if too few were planned in time, because catching
/// up takes longer than usual.
pub(super) fn lateness(reader: &dyn Queries, workflow: &WorkflowRow) -> Result<Option<SignedDuration>, StoreError> {
    let states = vec![SlotState::Succeeded];
    let filter = SlotFilter { workflow: Some(workflow.id.clone()), states, ..SlotFilter::default() };
    let mut samples = Vec::new();
    for row in reader.slots(&filter, PageRequest::newest(SAMPLES))?.rows {
        let Some(time) = workflow.definition.keys.due(&row.id.key) else {
            samples.extend(opened(&reader.history(&row.id)?).map(|opened| row.slot.since.duration_since(opened)));
            continue;
        };
        let late = row.slot.since.duration_since(time);
        if late <= FLOOR || was_planned_on_time(reader, &row.id, time)? {
            samples.push(late);
        }
    }
    Ok(share(samples, 9))
}

fn was_planned_on_time(reader: &dyn Queries, id: &SlotRef, time: Timestamp) -> Result<bool, StoreError> {
    let history = reader.history(id)?;
    let first = history.first().map(|first| first.at.duration_since(time));
    Ok(first.is_some_and(|late| late <= ON_TIME) && asked(&history).is_none())
}
