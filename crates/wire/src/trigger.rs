//! Triggers and constraints, as definitions have them.

use kelos_model::time::Zone;
use kelos_model::{Constraint, Gate, Otherwise, Trigger};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Code;

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

    /// The text form; the JSON where it is none that is known here.
    #[must_use]
    pub fn line(&self) -> String {
        let read = Trigger::from_json(&self.0, &Zone::utc(), "trigger");
        read.map_or_else(|_| self.0.to_string(), |trigger| trigger.to_string())
    }

    /// The trigger that is meant; times without a zone are in this one. `field` is what it is called where it stands.
    ///
    /// # Errors
    /// When there is no such trigger, or it asks a script's function.
    pub fn read(&self, zone: &Zone, field: &str) -> Result<Trigger, String> {
        let trigger = Trigger::from_json(&self.0, zone, field).map_err(|error| error.to_string())?;
        if trigger.asks_function() {
            return Err(format!("`{field}`: a function can't be given here: only its own script can ask it"));
        }
        Ok(trigger)
    }
}

/// A gate after the trigger, and what happens to a slot that it doesn't let through.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConstraintDto {
    /// `concurrency`, `delay`, `window` or `since-last-run`.
    #[serde(rename = "type")]
    pub kind: Code,
    /// Of `concurrency`: fewer runs of the program than this must go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Of `delay` and `since-last-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// Of `window`: when it opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Of `window`: when it closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Of `window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// `wait` or `abort`.
    pub otherwise: Code,
}

impl From<&Constraint> for ConstraintDto {
    fn from(constraint: &Constraint) -> ConstraintDto {
        let of = |kind: &'static str| ConstraintDto { kind: kind.into(), ..ConstraintDto::default() };
        let gate = match &constraint.gate {
            Gate::Concurrency(limit) => ConstraintDto { limit: Some(*limit), ..of("concurrency") },
            Gate::Delay(millis) => ConstraintDto { millis: Some(*millis), ..of("delay") },
            Gate::SinceLastRun(millis) => ConstraintDto { millis: Some(*millis), ..of("since-last-run") },
            Gate::Window(window) => ConstraintDto {
                from: Some(window.start().to_owned()),
                to: Some(window.end().to_owned()),
                zone: Some(window.zone().name().to_owned()),
                ..of("window")
            },
        };
        let otherwise = match constraint.otherwise {
            Otherwise::Wait => "wait",
            Otherwise::Abort => "abort",
        };
        ConstraintDto { otherwise: otherwise.into(), ..gate }
    }
}
