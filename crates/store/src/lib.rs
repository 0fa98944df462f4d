//! Where the state lives: the contract, and the adapters that keep it.
//!
//! The leader writes through [`Store`], anybody reads through [`Reader`]. One turn of the engine is
//! one [`Commit`] is one transaction: the events and the rows that they fold to, or neither.

pub mod contract;
mod cursor;
pub mod memory;
mod record;
pub mod sqlite;
mod tally;

pub use contract::{
    CLOCK_SLACK_MILLIS, Commit, Cursor, Lease, Page, PastDefinition, RUN_LOOK_BACK_MILLIS, Reader, RunFilter,
    SlotFilter, SlotRow, Snapshot, Store, StoreError,
};
pub use memory::{MemoryDisk, MemoryStore};
pub use record::{Digest, Recount, TurnRecord};
pub use sqlite::SqliteStore;
pub use tally::{Columns, Tally};
