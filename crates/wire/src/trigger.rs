//! Triggers and constraints, as definitions have them.

use kelos_model::time::Zone;
use kelos_model::{Constraint, Trigger};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A trigger in the JSON form of the model, or in its text form where somebody gives one. What asks a script's function can't be
/// given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerDto(Value);

impl From<&Trigger> for TriggerDto {
    fn from(trigger: &Trigger) -> TriggerDto {
        TriggerDto(trigger.to_json())
    }
}

impl TriggerDto {
    /// A trigger in its text form.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> TriggerDto {
        TriggerDto(Value::String(text.into()))
    }

    /// The text form; JSON for a trigger of a newer version.
    #[must_use]
    pub fn line(&self) -> String {
        let read = Trigger::from_json(&self.0, &Zone::utc(), "trigger");
        read.map_or_else(|_| self.0.to_string(), |trigger| trigger.to_string())
    }

    /// The trigger of the model. Cron expressions that name no zone are in `zone`; errors call the trigger `field`.
    ///
    /// # Errors
    /// When the trigger is invalid, or asks a function of a script.
    pub fn read(&self, zone: &Zone, field: &str) -> Result<Trigger, String> {
        let trigger = Trigger::from_json(&self.0, zone, field).map_err(|error| error.to_string())?;
        if trigger.asks_function() {
            return Err(format!("`{field}`: a function can't be given here: only its own script can ask it"));
        }
        Ok(trigger)
    }
}

/// A constraint in the JSON form of the model, or in its text form where somebody gives one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConstraintDto(Value);

impl From<&Constraint> for ConstraintDto {
    fn from(constraint: &Constraint) -> ConstraintDto {
        ConstraintDto(constraint.to_json())
    }
}

impl ConstraintDto {
    /// A constraint in its text form.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> ConstraintDto {
        ConstraintDto(Value::String(text.into()))
    }

    /// Its `type`, also of one that only a newer server knows.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match &self.0 {
            Value::String(text) => text.parse().ok().map(|constraint: Constraint| constraint.signature().json),
            json => json.get("type")?.as_str(),
        }
    }

    /// The text form; the JSON where it is none that is known here.
    #[must_use]
    pub fn line(&self) -> String {
        let read = Constraint::from_json(&self.0, &Zone::utc(), "constraint");
        read.map_or_else(|_| self.0.to_string(), |constraint| constraint.to_string())
    }

    /// The constraint that is meant; a window without a zone is in this one. `field` is its path, for errors.
    ///
    /// # Errors
    /// When there is no such constraint.
    pub fn read(&self, zone: &Zone, field: &str) -> Result<Constraint, String> {
        Constraint::from_json(&self.0, zone, field).map_err(|error| error.to_string())
    }
}
