//! The time for which history is kept: the settings, the policy that decides by them which folders of runs go, and what a turn removes
//! from the database.
//!
//! Pure functions of what is known of the folders and of a moment. Absent: files, and the choice of what a turn removes.

mod policy;
mod settings;
mod size;
mod trim;

pub use policy::{Keepsake, Policy, Ranks, Removal, Room, Situation};
pub use settings::{HistorySettings, Retention, Term};
pub use size::{read_size, size_text};
pub use trim::{RemovedHistory, Trim};
