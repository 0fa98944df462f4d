//! Names that people give: workflows, backfills and pools.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name accepted, in bytes: it must fit a file name on every platform once escaped.
pub const LONGEST_NAME: usize = 512;

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing but white space.
    #[error("{what} can't be only whitespace")]
    Blank {
        /// Which kind of name.
        what: &'static str,
    },
    /// A slash or a control character.
    #[error("{what} can't contain {character}: \"{name}\"")]
    Character {
        /// Which kind of name.
        what: &'static str,
        /// The offending character, in words.
        character: &'static str,
        /// The name as given.
        name: String,
    },
    /// Over [`LONGEST_NAME`] bytes.
    #[error("{what} is {length} bytes long, expected at most {LONGEST_NAME}")]
    TooLong {
        /// Which kind of name.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
}

fn check(what: &'static str, name: &str) -> Result<(), IdError> {
    let refuse = |character| IdError::Character { what, character, name: name.to_owned() };
    if name.trim().is_empty() {
        return Err(IdError::Blank { what });
    }
    if name.contains('/') {
        return Err(refuse("slash"));
    }
    if name.chars().any(char::is_control) {
        return Err(refuse("a control character"));
    }
    if name.len() > LONGEST_NAME {
        return Err(IdError::TooLong { what, length: name.len() });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks and wraps a name.
            ///
            /// # Errors
            /// When it is blank, too long, or contains a slash or a control character.
            pub fn new(name: &str) -> Result<Self, IdError> {
                check($what, name)?;
                Ok(Self(name.into()))
            }

            /// The name as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdError;
            fn try_from(name: String) -> Result<Self, IdError> {
                Self::new(&name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl std::str::FromStr for $type {
            type Err = IdError;
            fn from_str(name: &str) -> Result<Self, IdError> {
                Self::new(name)
            }
        }
    };
}

name!(
    /// The id of a workflow. Spaces, `..`, `@` and any script are fine (Celos accepts them); a slash is not.
    WorkflowId,
    "workflow id"
);
name!(
    /// The name of a backfill, given by a person or derived from its range.
    BackfillId,
    "backfill name"
);
name!(
    /// The name of a pool, whose permits runs of several workflows share.
    PoolId,
    "pool name"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_celos_accepts_are_accepted() {
        for name in ["wordcount-nyc", "..", "a b", "x@y", "workflow-Iñtërnâtiônàlizætiøn"] {
            assert_eq!(WorkflowId::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let words = |name: &str| WorkflowId::new(name).unwrap_err().to_string();
        assert_eq!(words("  "), "workflow id can't be only whitespace");
        assert_eq!(words("a/b"), "workflow id can't contain slash: \"a/b\"");
        assert!(words("a\nb").contains("control character"));
        assert!(words(&"x".repeat(600)).contains("600 bytes"));
    }
}
