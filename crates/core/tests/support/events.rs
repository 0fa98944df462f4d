//! Event schedules, programs and facts in the syntax of scenarios.

use kelos_model::deadline::LocalDeadline;
use kelos_model::form::FormError;
use kelos_model::key::SlotRefError;
use kelos_model::retry::OnUnknown;
use kelos_model::time::Zone;
use kelos_model::workflow::{CatchUp, Keys};
use kelos_model::{Constraint, Deadline, Fact, Occurrence, Parameter, ParameterKind, Trigger, Workflow};
use serde_json::Value;

/// Parses a trigger in the users' syntax.
pub(crate) fn trigger(word: &str) -> Result<Trigger, String> {
    word.parse().map_err(|error: FormError| error.to_string())
}

/// What follows an unknown outcome.
pub(crate) fn on_unknown(word: &str) -> OnUnknown {
    match word {
        "fails" => OnUnknown::Fail,
        "again" => OnUnknown::Again,
        _ => OnUnknown::Retry,
    }
}

/// Parses a constraint in the users' syntax.
pub(crate) fn constraint(word: &str) -> Result<Constraint, String> {
    word.parse().map_err(|error: FormError| error.to_string())
}

/// Sets the treatment of misfires: of cron times, or of the times of slots.
pub(crate) fn catch_up_with(workflow: &mut Workflow, word: &str) -> Result<(), String> {
    let policy = catch_up(word)?;
    match &mut workflow.keys {
        Keys::Events(events) => events.catch_up = policy,
        _ => workflow.catch_up = Some(policy),
    }
    Ok(())
}

fn catch_up(word: &str) -> Result<CatchUp, String> {
    match word {
        "skip" => Ok(CatchUp::Skip),
        "latest" => Ok(CatchUp::Latest),
        "all" => Ok(CatchUp::All),
        other => Err(format!("{other:?} is no way of catching up")),
    }
}

/// Parses an argument: `name=value`, where a value in quotes of JSON or a number is that, and anything else a text.
pub(crate) fn argument(word: &str) -> Result<(String, Value), String> {
    let (name, value) = word.split_once('=').ok_or("expected name=value")?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

/// Parses a parameter: `name:kind`, or `name=default`, where a text after `name:kind=` is a default of that kind.
pub(crate) fn parameter(word: &str) -> Result<Parameter, String> {
    let (head, default) = word.split_once('=').map_or((word, None), |(head, default)| (head, Some(default)));
    let default = default.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
    let Some((name, kind)) = head.split_once(':') else {
        return default
            .map(|default| Parameter::plain(head, default))
            .ok_or_else(|| "expected name=default".to_owned());
    };
    let kind: ParameterKind =
        serde_json::from_value(serde_json::json!({ "type": kind })).map_err(|error| error.to_string())?;
    Ok(Parameter { default, ..Parameter::new(name, kind) })
}

/// Parses a fact in the syntax of the leaf that waits for it: `partitions(ds,2)`, `ended(p,succeeded)` or `signal(x)`,
/// followed by `for:run` if it is for the run of a flow, and by `as:key` if it has an idempotency key.
pub(crate) fn fact(word: &str) -> Result<Fact, String> {
    let (what, key) = word.split_once("as:").map_or((word, None), |(what, key)| (what, Some(key.into())));
    let (what, run) = match what.split_once("for:") {
        Some((what, run)) => (what, Some(run.parse().map_err(|error: SlotRefError| error.to_string())?)),
        None => (what, None),
    };
    let what = match trigger(what)? {
        Trigger::Partitions { dataset, count } => Occurrence::Partitions { dataset, count, keys: Vec::new() },
        Trigger::Ended { program, states } => Occurrence::Ended {
            program,
            state: states[0],
            run: None,
            arguments: std::collections::BTreeMap::new(),
            outputs: serde_json::Map::new(),
        },
        Trigger::Signal { name } => Occurrence::Signal { name, payload: serde_json::Value::Null, run },
        _ => return Err("times come by themselves".to_owned()),
    };
    Ok(Fact { source: "test".into(), key, what })
}

/// A deadline: `2h`, or `07:30`, a time of the day in UTC.
pub(crate) fn deadline(word: &str) -> Result<Deadline, String> {
    let read = match word.contains(':') {
        true => LocalDeadline::new(word, Zone::utc()).map(Deadline::At),
        false => Deadline::of_text(word),
    };
    read.map_err(|error| error.to_string())
}
