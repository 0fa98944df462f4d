//! The stored state: the contract, and the adapter that keeps it in memory. Other adapters are crates of their own, which fence their
//! dependencies.
//!
//! The leader writes through [`Journal`], any process reads through [`Queries`]. One turn of the engine is
//! one [`Commit`] is one transaction: the events and the rows that they fold to, or neither.

pub mod adapter;
mod backlog;
mod commit;
pub mod contract;
mod cursor;
pub mod durations;
mod entry;
mod error;
mod known_run;
pub mod lines;
pub mod log;
pub mod memory;
mod paging;
mod queries;
mod record;
mod step_keys;
mod stored;
#[cfg(feature = "suite")]
pub mod suite;
mod tally;
mod unreadable;

pub use contract::{Commit, Journal, Lease, SlotRow, Snapshot, StoreError, StoredState, Watch};
pub use known_run::{KnownRun, RemovedRun};
pub use memory::{MemoryCopies, MemoryDisk, MemoryStore};
pub use queries::{
    About, BackfillFilter, CLOCK_SLACK_MILLIS, Cursor, EventFilter, Order, PENDING, Page, PageRequest, PastDefinition,
    Queries, RUN_LOOK_BACK_MILLIS, Register, RegisterKeys, RunFilter, SlotFilter, Space,
};
pub use record::{Deletions, Digest, Recount, TurnColumns, TurnContent, TurnRecord};
pub use stored::{ReadBack, Unreadable, read_back};
pub use tally::{Columns, Tally};
pub use unreadable::UnreadableRow;
