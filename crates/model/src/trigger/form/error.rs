//! What is wrong with the written form of a trigger.

use std::fmt;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A character of a text, counted from 1.
    Character(usize),
    /// A field of JSON: `trigger.nested[1].count`.
    Field(String),
    /// A character of a text that stands in a field of JSON.
    Within(String, usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Character(number) => write!(f, "at character {number}"),
            Place::Field(path) => write!(f, "`{path}`"),
            Place::Within(path, number) => write!(f, "`{path}`, at character {number}"),
        }
    }
}

/// What is wrong with the written form of a trigger, where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct TriggerError {
    /// Where.
    pub place: Place,
    /// What is wrong, and what was expected.
    pub problem: String,
    /// What was probably meant.
    pub hint: Option<String>,
}

impl TriggerError {
    pub(super) fn new(place: Place, problem: impl Into<String>) -> TriggerError {
        TriggerError { place, problem: problem.into(), hint: None }
    }

    pub(super) fn with_hint(self, hint: Option<String>) -> TriggerError {
        TriggerError { hint, ..self }
    }
}
