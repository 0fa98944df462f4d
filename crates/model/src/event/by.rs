//! The actors behind events.

use super::{BackfillEvent, Event, SlotEvent, WorkflowEvent};
use crate::actor::Actor;

impl Event {
    /// The actor who asked for it or published it; none if Kelos did it by its own rules, or the record is from before actors were kept.
    #[must_use]
    pub fn by(&self) -> Option<&Actor> {
        match self {
            Event::Slot { what, .. } => what.by(),
            Event::Workflow { what, .. } => what.by(),
            Event::Backfill { what, .. } => what.by(),
            Event::Fact { by, .. } | Event::Register { by, .. } => by.as_ref(),
            Event::Access { by, .. } => Some(by),
        }
    }
}

impl SlotEvent {
    fn by(&self) -> Option<&Actor> {
        match self {
            SlotEvent::Planned { by, .. } | SlotEvent::Aborted { by, .. } | SlotEvent::Prioritised { by, .. } => {
                by.as_ref()
            }
            SlotEvent::FiredBy { by, .. }
            | SlotEvent::ArgumentsSet { by, .. }
            | SlotEvent::Killed { by, .. }
            | SlotEvent::MarkedSucceeded { by, .. }
            | SlotEvent::SkippedBy { by, .. }
            | SlotEvent::Reopened { by, .. }
            | SlotEvent::Resumed { by, .. }
            | SlotEvent::Signalled { by, .. }
            | SlotEvent::Requested { by, .. } => Some(by),
            _ => None,
        }
    }
}

impl WorkflowEvent {
    fn by(&self) -> Option<&Actor> {
        match self {
            WorkflowEvent::Defined { by, .. } | WorkflowEvent::Removed { by, .. } => by.as_ref(),
            WorkflowEvent::Paused { by, .. }
            | WorkflowEvent::Resumed { by, .. }
            | WorkflowEvent::Enabled { by, .. }
            | WorkflowEvent::Disabled { by, .. }
            | WorkflowEvent::Thawed { by, .. } => Some(by),
            _ => None,
        }
    }
}

impl BackfillEvent {
    fn by(&self) -> Option<&Actor> {
        match self {
            BackfillEvent::Created { by, .. }
            | BackfillEvent::Cancelled { by, .. }
            | BackfillEvent::Paused { by, .. }
            | BackfillEvent::Resumed { by, .. }
            | BackfillEvent::Prioritised { by, .. }
            | BackfillEvent::Reopened { by, .. } => Some(by),
        }
    }
}
