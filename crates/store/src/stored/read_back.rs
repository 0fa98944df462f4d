//! Reading a turn back before it is committed: whatever is stored must be readable, or the server would never start again.

use std::collections::BTreeSet;

use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, Run, SlotEvent, WorkflowEvent, WorkflowId};
use serde_json::Error;

use super::{
    EventSubject, StoredEntry, StoredForm, StoredTurn, read, read_body, read_entry, text, write_body, write_entry,
};
use crate::contract::{Commit, SlotRow};
use crate::record::TurnRecord;

/// How much of a turn is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// The values of users: definitions, arguments, outputs, payloads, registers. All else is of the scheduler's own making, and is
    /// read back in every test.
    Values,
    /// All of it, and written again it is the same.
    Whole,
}

/// A part of a turn that could not be read once it is stored. It completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {what} back before it is stored: {why}")]
pub struct Unreadable {
    /// The workflow that it belongs to.
    pub workflow: Option<WorkflowId>,
    /// The part, in words.
    pub what: String,
    /// The reason, in words.
    pub why: String,
}

/// Reads a turn back as it would be stored.
///
/// # Errors
/// The first part that can't be read.
pub fn read_back(commit: &Commit, how_much: ReadBack) -> Result<(), Unreadable> {
    let mut buffer = Vec::new();
    for record in &commit.events {
        if how_much == ReadBack::Whole || has_values(&record.event) {
            event(&record.event, &mut buffer).map_err(|error| of_event(&record.event, &error))?;
        }
    }
    commit.slots.iter().try_for_each(slot)?;
    commit.runs.iter().try_for_each(run)?;
    let defined: BTreeSet<&WorkflowId> = commit.events.iter().filter_map(|record| defined(&record.event)).collect();
    for row in &commit.workflows {
        if how_much == ReadBack::Whole || defined.contains(&row.id) {
            definition(row)?;
        }
    }
    for (bucket, key, value) in &commit.registers {
        let what = || (None, format!("the value of register {bucket}/{key}"));
        value.as_ref().map_or(Ok(()), |value| again(value, what))?;
    }
    if how_much == ReadBack::Whole { whole(commit) } else { Ok(()) }
}

/// The workflow that an event gives a new definition.
fn defined(event: &Event) -> Option<&WorkflowId> {
    match event {
        Event::Workflow { workflow, what: WorkflowEvent::Defined { .. } } => Some(workflow),
        _ => None,
    }
}

/// Whether an event has values of users. A new kind of event says so here.
fn has_values(event: &Event) -> bool {
    match event {
        Event::Fact { .. } | Event::Register { .. } => true,
        Event::Slot { what, .. } => has_slot_values(what),
        Event::Workflow { .. } | Event::Backfill { .. } | Event::Access { .. } => false,
    }
}

fn has_slot_values(what: &SlotEvent) -> bool {
    match what {
        SlotEvent::Collected { .. }
        | SlotEvent::FiredBy { .. }
        | SlotEvent::ArgumentsSet { .. }
        | SlotEvent::Given { .. }
        | SlotEvent::Gave { .. }
        | SlotEvent::Signalled { .. }
        | SlotEvent::StepReady { .. } => true,
        SlotEvent::Planned { .. }
        | SlotEvent::Looked { .. }
        | SlotEvent::TriggerMet { .. }
        | SlotEvent::Held { .. }
        | SlotEvent::ConstraintsMet { .. }
        | SlotEvent::Aborted { .. }
        | SlotEvent::Expired { .. }
        | SlotEvent::Skipped { .. }
        | SlotEvent::Dispatched { .. }
        | SlotEvent::Deferred { .. }
        | SlotEvent::Withdrawn { .. }
        | SlotEvent::Started { .. }
        | SlotEvent::Acquired { .. }
        | SlotEvent::Released { .. }
        | SlotEvent::Succeeded { .. }
        | SlotEvent::BackedOff { .. }
        | SlotEvent::BackoffEnded
        | SlotEvent::Failed { .. }
        | SlotEvent::Late { .. }
        | SlotEvent::Killed { .. }
        | SlotEvent::MarkedSucceeded { .. }
        | SlotEvent::SkippedBy { .. }
        | SlotEvent::RunEnded { .. }
        | SlotEvent::Reopened { .. }
        | SlotEvent::Resumed { .. }
        | SlotEvent::Pinned { .. }
        | SlotEvent::StepOpened { .. }
        | SlotEvent::Recovered { .. }
        | SlotEvent::Prioritised { .. }
        | SlotEvent::Requested { .. }
        | SlotEvent::Imported { .. } => false,
    }
}

fn event(event: &Event, buffer: &mut Vec<u8>) -> Result<(), Error> {
    write_body(buffer, event)?;
    let subject = match event {
        Event::Slot { slot, .. } => EventSubject::Slot(slot.clone()),
        Event::Workflow { workflow, .. } => EventSubject::Workflow(workflow.clone()),
        _ => EventSubject::InBody,
    };
    let body = std::str::from_utf8(buffer).map_err(serde::de::Error::custom)?;
    read_body(subject, body).map(drop)
}

fn of_event(event: &Event, error: &Error) -> Unreadable {
    let (workflow, what) = match event {
        Event::Slot { slot, .. } => (Some(slot.workflow.clone()), format!("an event of {}", slot.short())),
        Event::Workflow { workflow, .. } => (Some(workflow.clone()), format!("an event of {workflow}")),
        Event::Fact { .. } => (None, "a fact".to_owned()),
        Event::Register { bucket, key, .. } => (None, format!("the value of register {bucket}/{key}")),
        _ => (None, "an event".to_owned()),
    };
    Unreadable { workflow, what, why: error.to_string() }
}

fn slot(SlotRow { id, slot }: &SlotRow) -> Result<(), Unreadable> {
    let of = |what: &str| (Some(id.workflow.clone()), format!("{what} of {}", id.short()));
    if let Some(collected) = &slot.collected {
        again(&**collected, || of("what was collected"))?;
    }
    slot.flow.as_ref().map_or(Ok(()), |flow| again(&**flow, || of("the inputs")))
}

fn run(run: &Run) -> Result<(), Unreadable> {
    let of = |what: &str| (Some(run.id.slot.workflow.clone()), format!("{what} of {}", run.id.slot.short()));
    if !run.arguments.is_empty() {
        again(&run.arguments, || of("the arguments"))?;
    }
    run.outputs.as_ref().map_or(Ok(()), |outputs| again(&**outputs, || of("the outputs")))
}

fn definition(row: &WorkflowRow) -> Result<(), Unreadable> {
    again(&*row.definition, || (Some(row.id.clone()), format!("the definition of {}", row.id)))
}

fn again<T: StoredForm>(value: &T, of: impl Fn() -> (Option<WorkflowId>, String)) -> Result<(), Unreadable> {
    text(value).and_then(|text| read::<T>(&text)).map(drop).map_err(|error| {
        let (workflow, what) = of();
        Unreadable { workflow, what, why: error.to_string() }
    })
}

/// Reads all rows back, and writes them again.
fn whole(commit: &Commit) -> Result<(), Unreadable> {
    let wrong = |why: String| Unreadable { workflow: None, what: "a turn".to_owned(), why };
    let written = |commit: &Commit| {
        let mut text = Vec::new();
        let record = TurnRecord::of_commit(None, 0, 1, commit);
        write_entry(&mut text, &StoredEntry::Turn(StoredTurn::of(record, commit))).map(|()| text)
    };
    let first = written(commit).map_err(|error| wrong(error.to_string()))?;
    let crate::entry::EntryBody::Turn { commit: read, .. } =
        read_entry(&first).map_err(|error| wrong(error.to_string()))?
    else {
        return Err(wrong("it is read as something else".to_owned()));
    };
    let second = written(&Commit { at: commit.at, ..*read }).map_err(|error| wrong(error.to_string()))?;
    if first == second {
        return Ok(());
    }
    let at = first.iter().zip(&second).take_while(|(one, other)| one == other).count();
    let shown = |text: &[u8]| {
        String::from_utf8_lossy(text.get(at.saturating_sub(40)..(at + 40).min(text.len())).unwrap_or_default())
            .into_owned()
    };
    Err(wrong(format!("written again it is {:?} and not {:?}", shown(&second), shown(&first))))
}
