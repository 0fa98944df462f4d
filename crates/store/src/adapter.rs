//! Parts that adapters are made of: stored forms, digests of turns, cursors, and what follows from backlogs. For stores alone.

pub use crate::backlog::Backlogs;
pub use crate::contract::{DefinedAt, follows, named_before};
pub use crate::cursor::{SlotPlace, Span};
pub use crate::record::{BODY, DigestBuilder};
pub use crate::stored::{EventSubject, Stored};
pub use crate::tally::Tallies;

/// Kinds and times of keys, as they stand in columns and in cursors.
pub mod cursor {
    pub use crate::cursor::*;
}

/// Writing and reading values of the model in their stored forms.
pub mod stored {
    pub use crate::stored::{read, read_body, text, write, write_body};
}
