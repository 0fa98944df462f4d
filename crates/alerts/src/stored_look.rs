//! The look at what is stored: slots that will be late, and slots that are stuck without another condition that says why.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_explain::failures;
use kelos_explain::forecast::{self, LateAhead};
use kelos_explain::graph::ObstacleKind;
use kelos_explain::roots::Root;
use kelos_explain::stuck::{self, Kind, Stuck};
use kelos_explain::why;
use kelos_model::{SlotRef, WorkflowId};
use kelos_store::{Queries, StoreError};

use crate::book::{Observation, Trouble};
use crate::condition::Condition;
use crate::rule::About;
use crate::signal::{Directory, place_of};
use crate::stored_directory::StoredDirectory;

/// A look at what is stored, for some conditions.
pub(crate) struct StoredLook<'a> {
    pub(crate) reader: &'a dyn Queries,
    pub(crate) wanted: &'a BTreeSet<Condition>,
    pub(crate) now: Timestamp,
}

impl StoredLook<'_> {
    /// Adds what it finds to what is known of the process, whose endpoints that are away it does not tell again. Blocks.
    pub(crate) fn add_to(&self, found: &mut Observation) -> Result<(), StoreError> {
        let directory = StoredDirectory::new(self.reader);
        for trouble in found.troubles.iter_mut().filter(|one| one.condition == Condition::Endpoint) {
            let held = failures::held_by(self.reader, &trouble.cause, self.now)?.slots;
            let held: BTreeSet<&WorkflowId> = held.iter().map(|slot| &slot.workflow).collect();
            trouble.concerns = held.into_iter().map(|workflow| directory.about(workflow)).collect();
        }
        if self.wanted.contains(&Condition::WillBeLate) {
            let ahead = forecast::late_ahead(self.reader, self.now)?;
            found.troubles.extend(will_be_late(ahead.rows, &directory));
            if !ahead.is_partial {
                found.knows.insert(Condition::WillBeLate);
            }
        }
        if self.wanted.contains(&Condition::Stuck) {
            let report = stuck::read(self.reader, self.now)?;
            let away = found.troubles.iter().filter(|one| one.condition == Condition::Endpoint);
            let away: BTreeSet<String> = away.map(|one| one.cause.clone()).collect();
            let mut causes: BTreeMap<String, Vec<Stuck>> = BTreeMap::new();
            for row in report.rows.into_iter().filter(is_untold) {
                if let Some(cause) = self.cause(&row, &away)? {
                    causes.entry(cause).or_default().push(row);
                }
            }
            found.troubles.extend(causes.into_iter().map(|(cause, rows)| of_stuck(cause, &rows, &directory)));
            if report.more == 0 && !report.is_partial {
                found.knows.insert(Condition::Stuck);
            }
        }
        Ok(())
    }

    /// The name of what holds a slot; none if another condition tells it.
    fn cause(&self, row: &Stuck, away: &BTreeSet<String>) -> Result<Option<String>, StoreError> {
        let Some(root) = &row.root else { return Ok(Some(own_cause(row))) };
        let of_slot = |root: &Root| Some(root.slot.short());
        let of_workflow = |what: &str, id: &WorkflowId| Some(format!("{what} of {id}"));
        Ok(match root.kind {
            ObstacleKind::Failed | ObstacleKind::Expired | ObstacleKind::Paused | ObstacleKind::Frozen => None,
            ObstacleKind::Backoff => of_workflow("retries", &root.slot.workflow),
            ObstacleKind::Queued => of_workflow("the queue", &root.slot.workflow),
            ObstacleKind::Held => of_workflow("the constraints", &root.slot.workflow),
            ObstacleKind::Outside | ObstacleKind::Trigger => {
                let trigger = why::read(self.reader, &root.slot, self.now, true, None)?.trigger;
                match trigger.as_ref().and_then(place_of) {
                    Some(place) if place.is_away && away.contains(&place.endpoint) => None,
                    Some(place) => Some(place.cause()),
                    None => of_slot(root),
                }
            }
            _ => of_slot(root),
        })
    }
}

/// The cause of a row that waits for nothing.
fn own_cause(row: &Stuck) -> String {
    match row.kind {
        Kind::Backoff => format!("retries of {}", row.slot.workflow),
        _ => row.slot.short(),
    }
}

/// Whether no other condition tells such a row. A retry that is in time is no trouble.
fn is_untold(row: &Stuck) -> bool {
    match row.kind {
        Kind::Expiring | Kind::Late | Kind::Long => true,
        Kind::Backoff => row.beyond.is_positive(),
        Kind::Overdue | Kind::Failed | Kind::Paused | Kind::Frozen => false,
    }
}

/// A trouble for each slot that decides when others end.
fn will_be_late(rows: Vec<LateAhead>, directory: &dyn Directory) -> Vec<Trouble> {
    let mut troubles: BTreeMap<SlotRef, Trouble> = BTreeMap::new();
    for LateAhead { slot, deadline, expected } in rows {
        let trouble = troubles.entry(expected.decided_by.clone()).or_insert_with_key(|decides| Trouble {
            condition: Condition::WillBeLate,
            cause: decides.short(),
            members: Vec::new(),
            concerns: Vec::new(),
            more: 0,
            words: format!("{} {}", slot.short(), expected.words(deadline, false)),
        });
        trouble.members.push(member(&slot, directory));
    }
    troubles.into_values().collect()
}

/// The trouble of rows with one cause, in the words of the first.
fn of_stuck(cause: String, rows: &[Stuck], directory: &dyn Directory) -> Trouble {
    let words = |row: &Stuck| {
        let state = match row.kind {
            Kind::Expiring => "expires soon",
            Kind::Long => "runs for longer than usual",
            _ => "waits for longer than usual",
        };
        let reason = Some(&row.reason).filter(|reason| !reason.is_empty());
        format!("{} {state}{}", row.slot.short(), reason.map(|reason| format!(": {reason}")).unwrap_or_default())
    };
    Trouble {
        condition: Condition::Stuck,
        cause,
        members: rows.iter().map(|row| member(&row.slot, directory)).collect(),
        concerns: Vec::new(),
        more: rows.iter().map(|row| row.others as u64).sum(),
        words: rows.first().map(words).unwrap_or_default(),
    }
}

fn member(slot: &SlotRef, directory: &dyn Directory) -> (String, About) {
    (slot.to_string(), directory.about(&slot.workflow))
}

#[cfg(test)]
mod tests;
