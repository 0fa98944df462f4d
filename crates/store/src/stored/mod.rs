//! Stored forms: how what the model has is written as JSON, and read back.
//!
//! Stores call serde here and nowhere else, and never for a type of the model: these may be renamed and reshaped, and what is stored
//! stays as it is, byte for byte, since the digests of turns hang on it. Each type has a twin in the module of the version in which it
//! was first stored; what a later version writes otherwise gets a twin in a module of its own, and the old one goes on reading.
//!
//! Absent: columns, and what the model's own JSON looks like, which is for the wire and for scripts.

mod form;
mod v1;

#[cfg(test)]
mod tests;

use kelos_model::workflow::{Moments, PlanState};
use kelos_model::{Actor, Collection, Event, Outcome, SlotEvent, SlotRef, Workflow, WorkflowEvent, WorkflowId};
use serde_json::{Error, Value};

use crate::record::Deletions;
use form::{Plain, ReadForm, WriteForm};

/// A type that is stored as JSON, in its form, which nobody else sees.
pub trait Stored: Sized {
    /// Appends a value to a text.
    ///
    /// # Errors
    /// When its form can't be written.
    fn write_to(&self, text: &mut Vec<u8>) -> Result<(), Error>;

    /// Reads a stored value.
    ///
    /// # Errors
    /// When the text is none of its form.
    fn read_from(text: &str) -> Result<Self, Error>;
}

macro_rules! stored {
    ($($type:ty as $form:ty,)*) => {
        $(impl Stored for $type {
            fn write_to(&self, text: &mut Vec<u8>) -> Result<(), Error> {
                serde_json::to_writer(text, &WriteForm::<$type, $form>::new(self))
            }

            fn read_from(text: &str) -> Result<Self, Error> {
                serde_json::from_str::<ReadForm<$type, $form>>(text).map(ReadForm::into_value)
            }
        })*
    };
}

stored! {
    Actor as v1::StoredActor,
    Collection as v1::StoredCollection,
    Deletions as v1::StoredDeletions,
    Event as v1::StoredEvent,
    Moments as v1::StoredMoments,
    Outcome as v1::StoredOutcome,
    PlanState as v1::StoredPlanState,
    SlotEvent as v1::StoredSlotEvent,
    Workflow as v1::StoredWorkflow,
    WorkflowEvent as v1::StoredWorkflowEvent,
    // What runs are given and give, and the values of registers, is JSON by itself.
    std::collections::BTreeMap<String, String> as Plain,
    serde_json::Map<String, Value> as Plain,
    Value as Plain,
}

/// Writes a value, in the place of what the text had.
///
/// # Errors
/// When its form can't be written.
pub fn write<T: Stored>(text: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    text.clear();
    value.write_to(text)
}

/// A value as it is stored.
///
/// # Errors
/// When its form can't be written.
pub fn text<T: Stored>(value: &T) -> Result<String, Error> {
    let mut text = Vec::new();
    value.write_to(&mut text)?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Reads a stored value.
///
/// # Errors
/// When the text is none of its form.
pub fn read<T: Stored>(text: &str) -> Result<T, Error> {
    T::read_from(text)
}

/// Writes the body of an event: what happened, and where no workflow is named, with its subject.
///
/// # Errors
/// When its form can't be written.
pub fn write_body(text: &mut Vec<u8>, event: &Event) -> Result<(), Error> {
    match event {
        Event::Slot { what, .. } => write(text, what),
        Event::Workflow { what, .. } => write(text, what),
        Event::Backfill { .. } | Event::Fact { .. } | Event::Register { .. } => write(text, event),
    }
}

/// The subject of an event, as columns beside its body say it.
pub enum EventSubject {
    /// A slot's.
    Slot(SlotRef),
    /// A workflow's.
    Workflow(WorkflowId),
    /// As the body says.
    InBody,
}

/// Reads the body of an event.
///
/// # Errors
/// When the text is no body of an event about that subject.
pub fn read_body(subject: EventSubject, body: &str) -> Result<Event, Error> {
    Ok(match subject {
        EventSubject::Slot(slot) => Event::Slot { slot, what: read(body)? },
        EventSubject::Workflow(workflow) => Event::Workflow { workflow, what: read(body)? },
        EventSubject::InBody => read(body)?,
    })
}
