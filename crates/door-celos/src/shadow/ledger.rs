//! The duration of differences. A scheduler that moves in steps lags behind one that doesn't: only lasting differences count.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::{SlotKey, SlotRef, WorkflowId};
use serde::Serialize;

use super::Discrepancy;

/// The subject of a difference: a slot, or a workflow as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<SlotKey>,
}

impl Subject {
    pub(super) fn workflow(id: &WorkflowId) -> Subject {
        Subject { workflow: id.clone(), time: None }
    }

    pub(super) fn slot(slot: &SlotRef) -> Subject {
        Subject { workflow: slot.workflow.clone(), time: Some(slot.key.clone()) }
    }

    /// The slot, if it is one.
    #[must_use]
    pub fn slot_ref(&self) -> Option<SlotRef> {
        Some(SlotRef::new(self.workflow.clone(), self.time.clone()?))
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.slot_ref() {
            Some(slot) => f.write_str(&slot.short()),
            None => write!(f, "{}", self.workflow),
        }
    }
}

/// A lasting difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// The difference.
    #[serde(flatten)]
    pub difference: Discrepancy,
    /// The moment at which it began.
    pub since: Timestamp,
    /// Whether it counts for the first time.
    pub new: bool,
    /// The reasons for the state here, in words.
    pub because: Vec<String>,
}

struct Entry {
    what: Discrepancy,
    since: Timestamp,
    counted: bool,
}

/// The differences, from one comparison to the next.
pub(super) struct Ledger {
    grace: SignedDuration,
    entries: BTreeMap<Subject, Entry>,
}

/// The changes of the differences in a comparison.
#[derive(Default)]
pub(super) struct LedgerUpdate {
    pub(super) counted: Vec<Difference>,
    pub(super) pending: usize,
    pub(super) over: Vec<Difference>,
}

impl Ledger {
    pub(super) fn new(grace: SignedDuration) -> Ledger {
        Ledger { grace, entries: BTreeMap::new() }
    }

    /// Notes the differences at a moment.
    pub(super) fn note(&mut self, found: Vec<(Subject, Discrepancy)>, now: Timestamp) -> LedgerUpdate {
        let mut before = std::mem::take(&mut self.entries);
        let mut noted = LedgerUpdate::default();
        for (subject, what) in found {
            // A changed difference is a new one; so is one that had ended in between.
            let known = before.remove(&subject).filter(|entry| entry.what == what);
            let mut entry = known.unwrap_or(Entry { what, since: now, counted: false });
            if now.duration_since(entry.since) >= self.grace {
                noted.counted.push(told(&subject, &entry, !entry.counted));
                entry.counted = true;
            } else {
                noted.pending += 1;
            }
            self.entries.insert(subject, entry);
        }
        let over = before.into_iter().filter(|(_, entry)| entry.counted);
        noted.over = over.map(|(subject, entry)| told(&subject, &entry, false)).collect();
        noted
    }
}

fn told(subject: &Subject, entry: &Entry, new: bool) -> Difference {
    Difference {
        subject: subject.clone(),
        difference: entry.what.clone(),
        since: entry.since,
        new,
        because: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lasts_counts() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let subject = || Subject::workflow(&WorkflowId::new("w").unwrap());
        let mut ledger = Ledger::new(SignedDuration::from_secs(60));
        let retries = |celos| vec![(subject(), Discrepancy::Retries { celos, kelos: 0 })];
        let counts = |noted: &LedgerUpdate| (noted.counted.len(), noted.pending, noted.over.len());
        assert_eq!(counts(&ledger.note(retries(1), at(0))), (0, 1, 0));
        assert_eq!(counts(&ledger.note(retries(2), at(60))), (0, 1, 0), "another one");
        assert_eq!(counts(&ledger.note(retries(2), at(119))), (0, 1, 0));
        let noted = ledger.note(retries(2), at(120));
        assert_eq!((counts(&noted), noted.counted[0].since, noted.counted[0].new), ((1, 0, 0), at(60), true));
        assert!(!ledger.note(retries(2), at(180)).counted[0].new);
        assert_eq!(counts(&ledger.note(Vec::new(), at(240))), (0, 0, 1));
    }
}
