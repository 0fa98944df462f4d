//! The nouns of Kelos: ids, keys, time, triggers, definitions, slot states, runs and events.
//!
//! Everything here is plain data and pure functions of it. What is *absent* is the point: no clock,
//! no randomness, no IO, no async, no iteration in hash order. `clippy.toml` beside the manifest
//! refuses them.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout, clippy::print_stderr)]

pub mod actor;
pub mod arguments;
pub mod backfill;
pub mod backlog;
pub mod batch;
pub mod breach;
pub mod constraint;
pub mod deadline;
pub mod dormant;
pub mod event;
pub mod facts;
pub mod form;
pub mod function;
pub mod history;
pub mod id;
pub mod inputs;
pub mod jobs;
pub mod json;
pub mod key;
pub mod mistakes;
pub mod nesting;
pub mod parameter;
pub mod paths;
pub mod permit;
pub mod probe;
pub mod project;
pub mod ranges;
pub mod reason;
pub mod recall;
pub mod references;
pub mod register;
pub mod repeated;
pub mod retry;
pub mod run;
pub mod secret;
pub mod sharing;
pub mod shell;
pub mod similar;
pub mod slot;
pub mod state;
pub mod step_name;
pub mod template;
pub mod time;
pub mod trigger;
pub mod unknown;
pub mod variables;
pub mod version;
pub mod workers;
pub mod workflow;

pub use actor::{Actor, ActorKind};
pub use backlog::{Backlog, Kill, Stretch};
pub use batch::BatchRule;
pub use breach::{Breach, Freeze, Invariant};
pub use constraint::{Constraint, Gate, Otherwise};
pub use deadline::Deadline;
pub use event::{AccessEvent, Event, EventRecord, SlotEvent, WorkflowEvent};
pub use facts::{Collection, Fact, FactKey, Occurrence, Subject};
pub use function::FunctionRef;
pub use id::{BackfillId, IdError, PoolId, WorkflowId};
pub use inputs::GivenOutputs;
pub use key::{RunName, SlotKey, SlotRef, StepKey};
pub use parameter::{Arguments, Parameter, ParameterKind};
pub use permit::{Hold, PermitAnswer, PermitRefusal};
pub use probe::{Probe, ProbeAnswer};
pub use reason::{Answer, Finding, Reason, ReasonKind};
pub use recall::Recall;
pub use retry::RetryPolicy;
pub use run::{Batch, FailureCode, Outcome, Run, RunId, RunState};
pub use slot::Slot;
pub use state::SlotState;
pub use step_name::StepName;
pub use trigger::Trigger;
pub use workflow::flow::{self, Flow, Step};
pub use workflow::{Job, PoolUse, TokenRate, Workflow};
