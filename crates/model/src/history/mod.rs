//! The time for which runs that ended are kept: the settings, and the policy that decides by them which folders of runs go.
//!
//! Pure functions of what is known of the folders and of a moment. Absent: files, and the database, whose events and rows all stay.

mod policy;
mod settings;
mod size;

pub use policy::{Keepsake, Policy, Ranks, Removal, Room, Situation};
pub use settings::{HistorySettings, Retention, Term};
pub use size::{read_size, size_text};
