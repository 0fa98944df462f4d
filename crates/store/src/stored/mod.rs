//! Stored forms: how values of the model are written as JSON, and read back.
//!
//! Stores call serde here and nowhere else, and never for a type of the model: types may be renamed and reshaped, but stored data
//! stays as it is, byte for byte, since the digests of turns depend on it. Each type has a twin in the module of the version in which it
//! was first stored; a change of its form gets a twin in the module of a later version, and the old one is still read.
//!
//! Absent: columns, and what the model's own JSON looks like, which is for the wire and for scripts.

mod form;
mod read_back;
mod salvage;
mod v1;

#[cfg(test)]
mod tests;

use kelos_model::slot::PartInFlow;
use kelos_model::workflow::{Moments, PlanState};
use kelos_model::{
    Actor, Batch, Collection, Event, Hold, Outcome, SlotEvent, SlotRef, Workflow, WorkflowEvent, WorkflowId,
};
use serde_json::{Error, Value};

use crate::entry::EntryBody;
use crate::record::Deletions;
use form::{Plain, ReadForm, WriteForm};
use kelos_model::nesting;
pub use read_back::{ReadBack, Unreadable, read_back};
pub use salvage::salvage;
pub(crate) use v1::{StoredEntry, StoredTurn};

/// A type that is stored as JSON, in a form that is private to this module.
pub trait StoredForm: Sized {
    /// Appends a value to a text.
    ///
    /// # Errors
    /// When its form can't be written.
    fn write_to(&self, text: &mut Vec<u8>) -> Result<(), Error>;

    /// Reads a stored value.
    ///
    /// # Errors
    /// If the text has another form.
    fn read_from(text: &str) -> Result<Self, Error>;
}

macro_rules! stored {
    ($($type:ty as $form:ty,)*) => {
        $(impl StoredForm for $type {
            fn write_to(&self, text: &mut Vec<u8>) -> Result<(), Error> {
                serde_json::to_writer(text, &WriteForm::<$type, $form>::new(self))
            }

            fn read_from(text: &str) -> Result<Self, Error> {
                // What was stored before values had a limit may be deeper than a reader of JSON goes.
                nesting::read::<ReadForm<$type, $form>>(text.as_bytes()).map(ReadForm::into_value)
            }
        })*
    };
}

stored! {
    Actor as v1::StoredActor,
    Batch as v1::StoredBatch,
    Collection as v1::StoredCollection,
    Deletions as v1::StoredDeletions,
    Event as v1::StoredEvent,
    Vec<Hold> as Vec<v1::StoredHold>,
    Moments as v1::StoredMoments,
    Outcome as v1::StoredOutcome,
    PartInFlow as v1::StoredPartInFlow,
    PlanState as v1::StoredPlanState,
    SlotEvent as v1::StoredSlotEvent,
    Workflow as v1::StoredWorkflow,
    WorkflowEvent as v1::StoredWorkflowEvent,
    // The input and output of runs, and the values of registers, are plain JSON.
    kelos_model::Arguments as Plain,
    serde_json::Map<String, Value> as Plain,
    Value as Plain,
}

/// Writes a value, replacing the content of `text`.
///
/// # Errors
/// When its form can't be written.
pub fn write<T: StoredForm>(text: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    text.clear();
    value.write_to(text)
}

/// The stored text of a value.
///
/// # Errors
/// When its form can't be written.
pub fn text<T: StoredForm>(value: &T) -> Result<String, Error> {
    let mut text = Vec::new();
    value.write_to(&mut text)?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Reads a stored value.
///
/// # Errors
/// If the text has another form.
pub fn read<T: StoredForm>(text: &str) -> Result<T, Error> {
    T::read_from(text)
}

/// Writes the body of an event: what happened, and its subject if no workflow is named.
///
/// # Errors
/// When its form can't be written.
pub fn write_body(text: &mut Vec<u8>, event: &Event) -> Result<(), Error> {
    match event {
        Event::Slot { what, .. } => write(text, what),
        Event::Workflow { what, .. } => write(text, what),
        Event::Backfill { .. } | Event::Fact { .. } | Event::Register { .. } | Event::Access { .. } => {
            write(text, event)
        }
    }
}

/// Appends an entry of a log to a text.
///
/// # Errors
/// When its form can't be written.
pub(crate) fn write_entry(text: &mut Vec<u8>, entry: &StoredEntry<'_>) -> Result<(), Error> {
    serde_json::to_writer(text, entry)
}

/// Reads an entry of a log. Of definitions that can't be read as a whole all is read that can be.
///
/// # Errors
/// If the text has another form.
pub(crate) fn read_entry(text: &[u8]) -> Result<EntryBody, Error> {
    let whole = nesting::read::<StoredEntry<'static>>(text).map(EntryBody::from);
    whole.or_else(|error| salvage::salvage_entry(text).ok_or(error))
}

/// The subject of an event, from the columns beside its body.
pub enum EventSubject {
    /// A slot's.
    Slot(SlotRef),
    /// A workflow's.
    Workflow(WorkflowId),
    /// The subject in the body.
    InBody,
}

/// Reads the body of an event.
///
/// # Errors
/// If the text is no body of an event about that subject.
pub fn read_body(subject: EventSubject, body: &str) -> Result<Event, Error> {
    Ok(match subject {
        EventSubject::Slot(slot) => Event::Slot { slot, what: read(body)? },
        EventSubject::Workflow(workflow) => Event::Workflow { workflow, what: read(body)? },
        EventSubject::InBody => read(body)?,
    })
}
