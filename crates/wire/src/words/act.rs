//! The phrase for an event that somebody asked for: `killed by ann (too late)`.

use std::fmt;

use kelos_model::event::Abort;
use kelos_model::{Actor, SlotEvent, WorkflowEvent};

/// A change that was made on request: what was done, by whom, and for which reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Act<'a> {
    verb: &'static str,
    by: Option<&'a Actor>,
    reason: Option<&'a str>,
}

impl<'a> Act<'a> {
    /// The act behind an event of a slot; none where nobody asked for the event.
    #[must_use]
    pub fn of_slot(event: &'a SlotEvent) -> Option<Act<'a>> {
        let (verb, by, reason) = match event {
            SlotEvent::Killed { by, reason } => ("killed", Some(by), reason),
            SlotEvent::SkippedBy { by, reason } => ("skipped", Some(by), reason),
            SlotEvent::MarkedSucceeded { by, reason } => ("marked as succeeded", Some(by), reason),
            SlotEvent::Reopened { by, reason, .. } => ("reopened", Some(by), reason),
            SlotEvent::FiredBy { by, reason, .. } => ("fired", Some(by), reason),
            SlotEvent::Aborted { cause, by, reason } => (aborted(*cause), by.as_ref(), reason),
            _ => return None,
        };
        Some(Act { verb, by, reason: reason.as_deref() })
    }

    /// The act behind an event of an event schedule; none where nobody asked for the event.
    #[must_use]
    pub fn of_schedule(event: &'a WorkflowEvent) -> Option<Act<'a>> {
        let (verb, by, reason) = match event {
            WorkflowEvent::Defined { version: 1, by, reason } => ("created", by.as_ref(), reason),
            WorkflowEvent::Defined { by, reason, .. } => ("changed", by.as_ref(), reason),
            WorkflowEvent::Removed { by, reason } => ("deleted", by.as_ref(), reason),
            // Older logs say of a schedule that it was paused or resumed.
            WorkflowEvent::Disabled { by, reason } | WorkflowEvent::Paused { by, reason } => {
                ("disabled", Some(by), reason)
            }
            WorkflowEvent::Enabled { by, reason } | WorkflowEvent::Resumed { by, reason } => {
                ("enabled", Some(by), reason)
            }
            WorkflowEvent::Thawed { by, reason } => ("resumed", Some(by), reason),
            _ => return None,
        };
        Some(Act { verb, by, reason: reason.as_deref() })
    }

    /// The act with more words before its reason: `killed by ann at 12:00Z (too late)`.
    #[must_use]
    pub fn with(&self, more: &str) -> String {
        let by = self.by.map(|by| format!(" by {by}")).unwrap_or_default();
        format!("{}{by}{more}{}", self.verb, because(self.reason))
    }

    /// The act without its reason: `killed by ann`.
    #[must_use]
    pub fn brief(&self) -> String {
        Act { reason: None, ..*self }.to_string()
    }
}

impl fmt::Display for Act<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with(""))
    }
}

/// A reason after what it is the reason of: ` (too late)`; empty where none was given.
#[must_use]
pub fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}

/// The change of an event schedule that aborted its pending slots.
#[must_use]
pub fn aborted(cause: Abort) -> &'static str {
    match cause {
        Abort::Disabled => "disabled",
        Abort::Changed => "changed",
        Abort::Deleted => "deleted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_says_what_was_done_by_whom_and_why() {
        let killed = SlotEvent::Killed { by: Actor::system("ann"), reason: Some("too late".to_owned()) };
        let act = Act::of_slot(&killed).expect("an act");
        assert_eq!(act.to_string(), "killed by ann (too late)");
        assert_eq!(act.with(" at 12:00Z"), "killed by ann at 12:00Z (too late)");
        assert_eq!(act.brief(), "killed by ann");
        let removed = WorkflowEvent::Removed { by: None, reason: None };
        assert_eq!(Act::of_schedule(&removed).map(|act| act.to_string()), Some("deleted".to_owned()));
        assert_eq!(Act::of_slot(&SlotEvent::BackoffEnded), None);
    }
}
