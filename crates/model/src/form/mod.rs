//! How triggers and constraints are written: one form in text, `and(time(0 4 * * *), partitions(purchases, 4))`, and one in JSON,
//! `{"type": "and", "nested": [...]}`. Both follow the same [`Signature`]s: what a kind is called, and what it takes.
//!
//! The log has forms of its own, and so have the dialects of other systems.

mod call;
mod constraints;
mod error;
mod json;
mod notation;
mod parser;
mod printer;
mod triggers;

use serde_json::Value;

pub use call::{Nests, Parameter, ParameterType, Position, Signature, parse_end};
pub use constraints::CONSTRAINTS;
pub use error::{FormError, Place};
pub use triggers::SIGNATURES;

use crate::constraint::Constraint;
use crate::nesting::DEEPEST;
use crate::time::Zone;
use crate::trigger::Trigger;
use notation::Grammar;

impl Trigger {
    /// Reads the text form: `and(time(0 4 * * *), partitions(purchases, 4))`. Times that name no zone are in the one given.
    ///
    /// # Errors
    /// When it is no trigger: at which character, and what was expected there.
    pub fn parse(text: &str, zone: &Zone) -> Result<Trigger, FormError> {
        parser::parse(text, zone)
    }

    /// The JSON form: `{"type": "partitions", "dataset": "purchases", "count": 4}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json::write(self)
    }

    /// Reads the JSON form. A text in the place of an object is read as the text form. Times that name no zone are in the one
    /// given; `field` is the path of the trigger, for errors.
    ///
    /// # Errors
    /// When it is no trigger: in which field, and what was expected there.
    pub fn from_json(value: &Value, zone: &Zone, field: &str) -> Result<Trigger, FormError> {
        json::read(value, zone, field)
    }

    /// The signature of its kind.
    #[must_use]
    pub fn signature(&self) -> &'static Signature {
        self.notation().signature
    }
}

impl std::str::FromStr for Trigger {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Trigger, FormError> {
        Trigger::parse(text, &Zone::utc())
    }
}

/// The text form; times in UTC name no zone.
impl std::fmt::Display for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        printer::print(self, f)
    }
}

impl Constraint {
    /// Reads the text form: `window(22:00-06:00 @ Europe/Berlin, abort)`. A window that names no zone is in the one given.
    ///
    /// # Errors
    /// When it is no constraint: at which character, and what was expected there.
    pub fn parse(text: &str, zone: &Zone) -> Result<Constraint, FormError> {
        parser::parse(text, zone)
    }

    /// The JSON form: `{"type": "concurrency", "limit": 1, "otherwise": "wait"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json::write(self)
    }

    /// Reads the JSON form. A text in the place of an object is read as the text form. A window that names no zone is in the one
    /// given; `field` is the path of the constraint, for errors.
    ///
    /// # Errors
    /// When it is no constraint: in which field, and what was expected there.
    pub fn from_json(value: &Value, zone: &Zone, field: &str) -> Result<Constraint, FormError> {
        json::read(value, zone, field)
    }

    /// The signature of its kind.
    #[must_use]
    pub fn signature(&self) -> &'static Signature<Constraint> {
        self.notation().signature
    }
}

impl std::str::FromStr for Constraint {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Constraint, FormError> {
        Constraint::parse(text, &Zone::utc())
    }
}

/// The text form; windows in UTC name no zone, and what happens by default where it is not met is left out.
impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        printer::print(self, f)
    }
}
