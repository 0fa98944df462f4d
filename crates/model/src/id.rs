//! Names that people give: workflows, backfills and pools.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name accepted, in bytes: it must fit a file name on every platform once escaped.
pub const LONGEST_NAME: usize = 512;

/// The reason that a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing but white space.
    #[error("{what} can't be only whitespace")]
    Blank {
        /// The kind of name.
        what: &'static str,
    },
    /// A slash, a control character or another that is invisible.
    #[error("{what} can't contain {character}: \"{name}\"")]
    Character {
        /// The kind of name.
        what: &'static str,
        /// The offending character, in words.
        character: &'static str,
        /// The name as given.
        name: String,
    },
    /// Over [`LONGEST_NAME`] bytes.
    #[error("{what} is {length} bytes long, expected at most {LONGEST_NAME}")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
}

/// Whether a character is invisible: it controls something, or it formats the text around it. Such characters make names look
/// like others (U+202E turns the rest of a line around), so no name has one.
///
/// The ranges are those of the general categories Cc, Cf, Zl and Zp of Unicode 17.
#[must_use]
pub fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}')
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
    if name.chars().any(is_invisible) {
        let name = name.escape_debug().to_string();
        return Err(IdError::Character { what, character: "an invisible character", name });
    }
    if name.len() > LONGEST_NAME {
        return Err(IdError::TooLong { what, length: name.len() });
    }
    Ok(())
}

/// The first bytes of a name, filled up with zeros, so that most names are compared without a look at their text.
///
/// They are in the order of the texts, since no name contains a zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NameStart([u64; 2]);

impl NameStart {
    /// The number of bytes that it holds.
    const LENGTH: usize = 16;

    fn of(name: &str) -> NameStart {
        let number = |from: usize| {
            (from..from + 8)
                .fold(0, |number, at| number << 8 | u64::from(name.as_bytes().get(at).copied().unwrap_or(0)))
        };
        NameStart([number(0), number(8)])
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type {
            start: NameStart,
            name: Arc<str>,
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> Ordering {
                let by_start = self.start.cmp(&other.start);
                match by_start {
                    Ordering::Equal if self.name.len().max(other.name.len()) > NameStart::LENGTH => {
                        self.name.cmp(&other.name)
                    }
                    _ => by_start,
                }
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Hash for $type {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.name.hash(state);
            }
        }

        impl $type {
            /// Checks and wraps a name.
            ///
            /// # Errors
            /// When it is blank, too long, or contains a slash or an invisible character.
            pub fn new(name: &str) -> Result<Self, IdError> {
                check($what, name)?;
                Ok(Self { start: NameStart::of(name), name: name.into() })
            }

            /// The name as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.name
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.name)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.name)
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
                name.name.as_ref().to_owned()
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
    fn names_are_in_the_order_of_their_texts() {
        let texts = [
            "a",
            "a b",
            "ab",
            "abcdefgh",
            "abcdefgh1",
            "abcdefghijklmnop",
            "abcdefghijklmnopq",
            "abcdefghijklmnopr",
            "b",
            "wörd",
            "żółw",
        ];
        let names = texts.map(|text| WorkflowId::new(text).unwrap());
        for (a, first) in texts.iter().zip(&names) {
            for (b, second) in texts.iter().zip(&names) {
                assert_eq!((first.cmp(second), first == second), (a.cmp(b), a == b), "{a} and {b}");
            }
        }
    }

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
        assert_eq!(
            words("pay\u{202e}gpj.js"),
            "workflow id can't contain an invisible character: \"pay\\u{202e}gpj.js\""
        );
        assert!(words(&"x".repeat(600)).contains("600 bytes"));
    }
}
