//! Parts that adapters are made of: stored forms, digests of turns, cursors, and the slots of backlogs. For stores alone.

pub use crate::backlog::Backlogs;
pub use crate::contract::{DefinedAt, follows, named_before};
pub use crate::cursor::{SlotPlace, Span};
pub use crate::record::{BODY, DigestBuilder, add_event};
pub use crate::step_keys::StepKeys;
pub use crate::stored::{EventSubject, StoredForm};
pub use crate::tally::Tallies;

/// Kinds and times of keys, as columns and cursors hold them.
pub mod cursor {
    pub use crate::cursor::{
        JOB, MOMENT, NAMED, OF_MOMENT, STEP, TIME, beyond_time, is_listed_in, kind, order_time, time, whole_key,
    };
}

/// Writes and reads values of the model in their stored forms.
pub mod stored {
    pub use crate::stored::{read, read_body, salvage, text, write, write_body};
}
