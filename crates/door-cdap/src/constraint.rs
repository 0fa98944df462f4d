//! Constraints in this dialect.

use kelos_front::fault::Fault;
use kelos_model::time::Window;
use kelos_model::time::Zone;
use kelos_model::{Constraint, Gate, Otherwise};
use serde_json::{Value, json};

use super::fields::Field;

/// Reads a constraint. If it does not say whether to wait, the default of its kind applies.
pub(super) fn read(field: &Field<'_>) -> Result<Constraint, Fault> {
    let expected = "CONCURRENCY, DELAY, LAST_RUN or TIME_RANGE";
    let kind = field.need("type", expected)?;
    let of = match kind.text()?.to_ascii_uppercase().as_str() {
        "CONCURRENCY" => &["maxConcurrency"][..],
        "DELAY" => &["millisAfterTrigger"],
        "LAST_RUN" => &["millisSinceLastRun"],
        _ => &["startTime", "endTime", "timeZone"],
    };
    let gate = match kind.text()?.to_ascii_uppercase().as_str() {
        "CONCURRENCY" => Gate::Concurrency(field.need("maxConcurrency", "a number from 1")?.count()?),
        "DELAY" => Gate::Delay(field.need("millisAfterTrigger", "a number from 1")?.millis()?),
        "LAST_RUN" => Gate::SinceLastRun(field.need("millisSinceLastRun", "a number from 1")?.millis()?),
        "TIME_RANGE" => Gate::Window(window(field)?),
        _ => return Err(kind.wrong(expected)),
    };
    field.only(&[&["type", "waitUntilMet"], of].concat())?;
    let mut constraint = Constraint::new(gate);
    if let Some(waits) = field.get("waitUntilMet")? {
        constraint.otherwise = if waits.flag()? { Otherwise::Wait } else { Otherwise::Abort };
    }
    constraint.check().map_err(|why| field.refused(&why))?;
    Ok(constraint)
}

fn window(field: &Field<'_>) -> Result<Window, Fault> {
    let time = "a time of the day such as 22:00";
    let start = field.need("startTime", time)?;
    let end = field.need("endTime", time)?;
    let zone = field.need("timeZone", "a time zone such as UTC or America/Los_Angeles")?;
    let name = Zone::parse(zone.text()?).map_err(|error| zone.refused(&error))?;
    Window::new(start.text()?, end.text()?, name).map_err(|error| field.refused(&error))
}

/// Writes a constraint.
pub(super) fn write(constraint: &Constraint) -> Value {
    let waits = constraint.otherwise == Otherwise::Wait;
    match &constraint.gate {
        Gate::Concurrency(most) => json!({ "type": "CONCURRENCY", "maxConcurrency": most, "waitUntilMet": waits }),
        Gate::Delay(millis) => json!({ "type": "DELAY", "millisAfterTrigger": millis, "waitUntilMet": waits }),
        Gate::SinceLastRun(millis) => {
            json!({ "type": "LAST_RUN", "millisSinceLastRun": millis, "waitUntilMet": waits })
        }
        Gate::Window(window) => json!({
            "type": "TIME_RANGE", "startTime": window.start(), "endTime": window.end(),
            "timeZone": window.zone().name(), "waitUntilMet": waits,
        }),
    }
}
