//! Constraints on the wire.

use kelos_model::{Constraint, Gate, Otherwise};
use serde::Serialize;
use utoipa::ToSchema;

/// A gate after the trigger, and what happens to a slot that it doesn't let through.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConstraintDto {
    /// `concurrency`, `delay`, `window` or `since-last-run`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Of `concurrency`: fewer runs of the program than this must go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    /// Of `delay` and `since-last-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    millis: Option<u64>,
    /// Of `window`: when it opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// Of `window`: when it closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Of `window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// `wait` or `abort`.
    otherwise: &'static str,
}

impl From<&Constraint> for ConstraintDto {
    fn from(constraint: &Constraint) -> ConstraintDto {
        let of = |kind| ConstraintDto { kind, ..ConstraintDto::default() };
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
        ConstraintDto { otherwise, ..gate }
    }
}
