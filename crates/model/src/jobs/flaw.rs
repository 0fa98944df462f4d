//! Why no job id can be written of some values. Stored logs have the codes and the names of fields, so they stay as they are.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::unknown::UnknownCode;

/// The reason that no job id can be written of some values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Flaw {
    /// A value has a letter that no job id can have.
    OddLetter {
        /// Of which identifier.
        identifier: Arc<str>,
        /// The value, cut where it is long.
        value: Arc<str>,
    },
    /// The whole id would be empty.
    EmptyId {
        /// The only identifier.
        identifier: Arc<str>,
        /// The template.
        template: Arc<str>,
    },
    /// A value can't be told from what follows it.
    Ambiguous {
        /// Of which identifier.
        identifier: Arc<str>,
        /// The value, cut where it is long.
        value: Arc<str>,
        /// The template.
        template: Arc<str>,
    },
    /// The id would be longer than ids may be.
    TooLong {
        /// The template.
        template: Arc<str>,
        /// Bytes that an id may have.
        most: usize,
    },
    /// A sentence of a log of before, when sentences were stored.
    #[serde(untagged)]
    Text(Arc<str>),
    /// One of a newer version.
    #[serde(untagged)]
    Unknown(UnknownCode),
}

impl Flaw {
    /// The codes of all flaws that this version finds.
    pub const CODES: &[&str] = &["odd-letter", "empty-id", "ambiguous", "too-long"];

    /// Its code, which stays the same for ever; `text` of a sentence of before.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Flaw::OddLetter { .. } => "odd-letter",
            Flaw::EmptyId { .. } => "empty-id",
            Flaw::Ambiguous { .. } => "ambiguous",
            Flaw::TooLong { .. } => "too-long",
            Flaw::Text(_) => "text",
            Flaw::Unknown(unknown) => &unknown.code,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::OddLetter { identifier, value } => {
                write!(f, "{identifier} \"{value}\" has a slash or a control character")
            }
            Flaw::EmptyId { identifier, template } => {
                write!(f, "{identifier} is empty, and with it the whole of {template}")
            }
            Flaw::Ambiguous { identifier, value, template } => {
                write!(f, "{identifier} \"{value}\" can't be told from what follows it in {template}")
            }
            Flaw::TooLong { template, most } => write!(f, "its id by {template} would be longer than {most} bytes"),
            Flaw::Text(text) => f.write_str(text),
            Flaw::Unknown(unknown) => unknown.fmt(f),
        }
    }
}
