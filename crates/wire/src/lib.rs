//! The wire: what goes over HTTP between a server and its clients, as types that both ends share.
//!
//! The server writes them, and the command line, the pages and whoever else asks reads them: each can be serialised and read
//! back, and reads as what was said. Names here stay when the model changes. Whoever reads passes over fields that it does not
//! know, and takes an event, a state or a kind that it does not know for another one; only requests refuse what they don't know,
//! so that nothing that is asked for is left out in silence.
//!
//! Types of answers end in `Dto`, those of what is asked in `Request`. Most are made from the nouns of the model here, so that
//! there is one place where secrets are masked ([`kelos_model::secret::masks`]).
//!
//! Absent: HTTP itself, what the library knows beyond the model, and decisions.

mod access;
mod alerts;
mod backfill;
mod calendar;
mod capacity;
mod event;
mod facts;
mod failures;
mod fault;
mod flow;
mod focus;
#[cfg(feature = "openapi")]
mod form_schema;
mod graph;
mod jobs;
mod node;
mod of_model;
mod path;
mod project;
mod reason;
mod rerun;
mod root;
mod run;
mod schedule;
mod schedule_request;
mod server;
mod slot;
mod storage;
mod stuck;
mod trigger;
mod value;
pub mod words;
mod worker;
mod workflow;

pub use access::*;
pub use alerts::*;
pub use backfill::*;
pub use calendar::*;
pub use capacity::*;
pub use event::*;
pub use facts::*;
pub use failures::*;
pub use fault::*;
pub use flow::*;
pub use focus::*;
pub use graph::*;
pub use jobs::*;
pub use node::*;
pub use path::*;
pub use project::*;
pub use reason::*;
pub use rerun::*;
pub use root::*;
pub use run::*;
pub use schedule::*;
pub use schedule_request::*;
pub use server::*;
pub use slot::*;
pub use storage::*;
pub use stuck::*;
pub use trigger::*;
pub use value::{Code, Counts, Instant, ListDto, PageDto, TimeText, counts};
pub use worker::*;
pub use workflow::*;
