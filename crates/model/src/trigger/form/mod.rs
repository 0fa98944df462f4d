//! How triggers are written: one form in text, `and(time(0 4 * * *), partitions(purchases, 4))`, and one in JSON,
//! `{"type": "and", "nested": [...]}`. Both follow the same [`Signature`]s: what a kind of trigger is called, and what it takes.
//!
//! What is stored has a form of its own, and so have the dialects of other systems.

mod call;
mod error;
mod json;
mod notation;
mod parser;
mod printer;
mod signatures;

use serde_json::Value;

pub use call::{Nests, Parameter, ParameterType, Position, Signature, parse_end};
pub use error::{Place, TriggerError};
pub use signatures::SIGNATURES;

use super::Trigger;
use crate::time::Zone;

/// Triggers are nested so deep at the most, where they are read.
pub const DEEPEST: usize = 64;

impl Trigger {
    /// Reads the text form: `and(time(0 4 * * *), partitions(purchases, 4))`. Times that name no zone are in the one given.
    ///
    /// # Errors
    /// When it is no trigger: at which character, and what was expected there.
    pub fn parse(text: &str, zone: &Zone) -> Result<Trigger, TriggerError> {
        parser::parse(text, zone)
    }

    /// The JSON form: `{"type": "partitions", "dataset": "purchases", "count": 4}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json::write(self)
    }

    /// Reads the JSON form. A text in the place of an object is read as the text form. Times that name no zone are in the one
    /// given; `field` is what the trigger is called where it stands, for the paths of errors.
    ///
    /// # Errors
    /// When it is no trigger: in which field, and what was expected there.
    pub fn from_json(value: &Value, zone: &Zone, field: &str) -> Result<Trigger, TriggerError> {
        json::read(value, zone, field)
    }

    /// What it is called and what it takes.
    #[must_use]
    pub fn signature(&self) -> &'static Signature {
        notation::notation(self).signature
    }
}

impl std::str::FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Trigger, TriggerError> {
        Trigger::parse(text, &Zone::utc())
    }
}

/// The text form; times in UTC name no zone.
impl std::fmt::Display for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        printer::print(self, f)
    }
}
