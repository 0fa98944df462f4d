//! Folders of runs that have ended: a walk through them, their removal, and the record of what was removed.
//!
//! No path that is followed here leaves the root of the runs: links are passed over, and folders are removed below handles of their
//! parents. Which folders go is decided elsewhere.

mod mark;
mod removal;
mod removed;
mod walk;

pub use mark::{is_new, mark_new};
pub use removal::{finish_removal, remove_kept};
pub use removed::RemovedRuns;
pub use walk::{FoundRun, WalkEntry, walk};
