//! The first version of the stored forms, which all databases up to the newest schema contain.
//!
//! A twin repeats the fields and variants of a type of the model, and serde generates the conversions: a field or a
//! variant that only one of the two has does not compile. A field that was renamed in the model keeps its stored name by `rename`; a type
//! that was reshaped gets a form written by hand, such as [`names::StoredActor`].

mod deletions;
mod entry;
mod event;
mod facts;
mod flow;
mod jobs;
mod names;
mod reason;
mod row;
mod run;
mod schedule;
mod trigger;
mod workflow;

pub(crate) use deletions::StoredDeletions;
pub(crate) use entry::{StoredEntry, StoredTurn};
pub(crate) use event::{StoredEvent, StoredSlotEvent, StoredWorkflowEvent};
pub(crate) use facts::StoredCollection;
pub(crate) use flow::StoredPartInFlow;
pub(crate) use names::StoredActor;
pub(crate) use row::{StoredMoments, StoredPlanState};
pub(crate) use run::{StoredBatch, StoredHold, StoredOutcome};
pub(crate) use workflow::StoredWorkflow;
