//! Errors in the written form of a trigger or a constraint.

use std::fmt;

/// A position in a written form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A character of a text, counted from 1.
    Character(usize),
    /// A field of JSON: `trigger.nested[1].count`.
    Field(String),
    /// A character of a text in a field of JSON.
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

/// An error in the written form of a trigger or a constraint: its position, the problem, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct FormError {
    /// The position of the error.
    pub place: Place,
    /// The problem, and what was expected instead.
    pub problem: String,
    /// A guess at what was meant.
    pub hint: Option<String>,
}

impl FormError {
    pub(super) fn new(place: Place, problem: impl Into<String>) -> FormError {
        FormError { place, problem: problem.into(), hint: None }
    }

    pub(super) fn with_hint(self, hint: Option<String>) -> FormError {
        FormError { hint, ..self }
    }
}
