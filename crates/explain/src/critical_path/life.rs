//! The life of a slot, from when it was last opened on, as the phases that it went through.

use jiff::Timestamp;
use kelos_model::event::{Event, Origin};
use kelos_model::{Collection, EventRecord, Outcome, SlotEvent, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};
use kelos_wire::words::Act;

/// A slot in one state for a while.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    pub(super) state: SlotState,
    pub(super) from: Timestamp,
    /// The end of the phase; none while it lasts.
    pub(super) until: Option<Timestamp>,
    /// The range of its events in [`Life::events`]: from the one that begins it, to before the one that ends it.
    pub(super) events: std::ops::Range<usize>,
    /// The run that it is about, if it is about one.
    pub(super) run: u32,
}

/// A slot's life up to a point in the log.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) slot: SlotRef,
    pub(super) state: SlotState,
    /// When it was last opened.
    pub(super) opened: Timestamp,
    /// The event that opened it, in words.
    pub(super) opened_words: String,
    /// From the opening on.
    pub(super) events: Vec<(Timestamp, SlotEvent)>,
    pub(super) phases: Vec<Phase>,
}

impl Life {
    /// Reads a slot's life up to a position in the log; none where it did not exist by then.
    pub(super) fn read(reader: &dyn Queries, slot: &SlotRef, seq: u64) -> Result<Option<Life>, StoreError> {
        let history = reader.history(slot)?.into_iter().filter(|record| record.seq <= seq);
        Ok(Life::of(slot, history.filter_map(of_slot).collect()))
    }

    /// The same up to a moment.
    pub(super) fn read_until(
        reader: &dyn Queries,
        slot: &SlotRef,
        until: Timestamp,
    ) -> Result<Option<Life>, StoreError> {
        let history = reader.history(slot)?.into_iter().filter(|record| record.at <= until);
        Ok(Life::of(slot, history.filter_map(of_slot).collect()))
    }

    fn of(slot: &SlotRef, mut events: Vec<(Timestamp, SlotEvent)>) -> Option<Life> {
        let opening = events.iter().rposition(|(_, event)| opens(event)).unwrap_or_default();
        events.drain(..opening);
        let (opened, first) = events.first()?;
        let (opened, opened_words, begins) = (*opened, opened_words(first), state_after_opening(first));
        let mut phases = vec![Phase { state: begins, from: opened, until: None, events: 0..events.len(), run: 1 }];
        for (index, (at, event)) in events.iter().enumerate().skip(1) {
            let Some(last) = phases.last_mut() else { break };
            let Some(state) = last.state.after(event).filter(|state| *state != last.state) else { continue };
            let run = if let SlotEvent::Dispatched { run, .. } = event { *run } else { last.run };
            (last.until, last.events.end) = (Some(*at), index);
            phases.push(Phase { state, from: *at, until: None, events: index..events.len(), run });
        }
        let state = phases.last().map_or(begins, |phase| phase.state);
        Some(Life { slot: slot.clone(), state, opened, opened_words, events, phases })
    }

    /// The facts that it has collected.
    pub(super) fn collected(&self) -> Collection {
        let mut collected = Collection::new(self.opened);
        for (_, event) in &self.events {
            if let SlotEvent::Collected { what, .. } = event {
                collected.add(what);
            }
        }
        collected
    }

    /// When it ended, if it has.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        self.phases.last().filter(|phase| phase.state.is_final()).map(|phase| phase.from)
    }

    /// The event that ended a phase.
    fn end_of(&self, phase: &Phase) -> Option<&SlotEvent> {
        phase.until?;
        self.events.get(phase.events.end).map(|(_, event)| event)
    }

    /// The reason for which the executor deferred the last start.
    pub(super) fn put_off(&self, phase: &Phase) -> String {
        let events = self.events.get(phase.events.clone()).unwrap_or_default();
        let reason = events.iter().rev().find_map(|(_, event)| match event {
            SlotEvent::Deferred { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        reason.unwrap_or_default()
    }

    /// The outcome of the run of a phase, if that was not success.
    pub(super) fn ending(&self, phase: &Phase) -> String {
        match self.end_of(phase) {
            None => "it goes on".to_owned(),
            Some(SlotEvent::BackedOff { outcome, .. } | SlotEvent::Failed { outcome, .. }) => failed(outcome),
            Some(event @ (SlotEvent::Killed { .. } | SlotEvent::SkippedBy { .. })) => brief(event),
            Some(_) => String::new(),
        }
    }
}

fn failed(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { reason, .. } => format!("failed: {reason}"),
        other => other.to_string(),
    }
}

/// An event that somebody asked for, without the reason.
fn brief(event: &SlotEvent) -> String {
    Act::of_slot(event).map(|act| act.brief()).unwrap_or_default()
}

fn of_slot(record: EventRecord) -> Option<(Timestamp, SlotEvent)> {
    match record.event {
        Event::Slot { what, .. } => Some((record.at, what)),
        _ => None,
    }
}

fn opens(event: &SlotEvent) -> bool {
    matches!(
        event,
        SlotEvent::Planned { .. }
            | SlotEvent::Reopened { .. }
            | SlotEvent::Resumed { .. }
            | SlotEvent::StepOpened { .. }
            | SlotEvent::Imported { .. }
    )
}

fn state_after_opening(event: &SlotEvent) -> SlotState {
    match event {
        SlotEvent::Imported { state, .. } => *state,
        _ => SlotState::Waiting,
    }
}

fn opened_words(event: &SlotEvent) -> String {
    match event {
        SlotEvent::Planned { backfill: Some(backfill), .. } => format!("planned by backfill {backfill}"),
        SlotEvent::Planned { origin: Origin::Parent(parent), .. } => format!("opened by its parent {}", parent.short()),
        SlotEvent::Planned { origin: Origin::Child(child), .. } => format!("opened for {}", child.short()),
        SlotEvent::Reopened { .. } | SlotEvent::Resumed { .. } => brief(event),
        SlotEvent::StepOpened { .. } => "opened by its run".to_owned(),
        SlotEvent::Imported { from, .. } => format!("imported from {from}"),
        _ => "planned".to_owned(),
    }
}
