//! The first version of the stored forms: what all databases up to the newest schema hold.
//!
//! A twin names the fields and variants of a type of the model once more, and serde makes the conversions from that: a field or a
//! variant that only one of the two has does not compile. What was renamed in the model keeps its stored name by `rename`; what was
//! reshaped there gets a form written by hand, as [`names::StoredActor`] has it.

mod deletions;
mod event;
mod facts;
mod jobs;
mod names;
mod reason;
mod row;
mod run;
mod schedule;
mod trigger;
mod workflow;

pub(crate) use deletions::StoredDeletions;
pub(crate) use event::{StoredEvent, StoredSlotEvent, StoredWorkflowEvent};
pub(crate) use facts::StoredCollection;
pub(crate) use names::StoredActor;
pub(crate) use row::{StoredMoments, StoredPlanState};
pub(crate) use run::StoredOutcome;
pub(crate) use workflow::StoredWorkflow;
