//! Names of steps.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Letters that the name of a step may have.
const LONGEST: usize = 200;

/// The name of a step: letters, digits, `_` and `-`, so that it can stand in the key of a slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepName(Arc<str>);

/// A text that can't name a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" can't name a step: expected at most {LONGEST} letters, digits, _ or -, such as load-orders")]
pub struct StepNameError {
    /// The text as given.
    pub text: String,
}

impl StepName {
    /// Takes a text as a name.
    ///
    /// # Errors
    /// If it is empty, too long or has other letters.
    pub fn new(text: &str) -> Result<StepName, StepNameError> {
        let may_be = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
        match !text.is_empty() && text.len() <= LONGEST && text.bytes().all(may_be) {
            true => Ok(StepName(text.into())),
            false => Err(StepNameError { text: text.to_owned() }),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for StepName {
    type Err = StepNameError;

    fn from_str(text: &str) -> Result<StepName, StepNameError> {
        StepName::new(text)
    }
}

impl Serialize for StepName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for StepName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StepName::new(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
