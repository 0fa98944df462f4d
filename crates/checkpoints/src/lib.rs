//! Signed checkpoints of the log, by which a log is compared with what it was.
//!
//! The digests of turns make the log a chain (see `kelos_store::record`), which shows each change that is not carried through to
//! its end. Somebody who can write the whole database can recompute the chain, or put an older copy in its place. A [`Checkpoint`]
//! is the number and the digest of a turn, signed, and kept where the database is not: what is in the log up to that turn can't be
//! replaced without contradicting it.
//!
//! [`Recorder`] makes them beside an engine that leads, and sends them to the targets in [`Settings`]; [`Collection`] reads them back
//! from where they were sent, and [`compare`] holds a verified log against them.
//!
//! Absent: writing to the log, and verifying its chain.

mod book;
mod checkpoint;
mod collection;
mod compare;
mod key;
mod recorder;
mod settings;
mod target;

pub use checkpoint::{Checkpoint, CheckpointProblem};
pub use collection::Collection;
pub use compare::{CheckedLog, Comparison, Contradiction, compare};
pub use key::{PrivateKey, PublicKey};
pub use recorder::{KEY, Recorder, RecorderParts, TargetStatus};
pub use settings::Settings;
