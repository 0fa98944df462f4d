//! Event schedules, programs and facts in the syntax of scenarios.

use kelos_model::constraint::{Constraint, Gate, Otherwise};
use kelos_model::time::Window;
use kelos_model::time::Zone;
use kelos_model::trigger::form::TriggerError;
use kelos_model::workflow::CatchUp;
use kelos_model::{Fact, Occurrence, Trigger};

/// Parses a trigger in the users' syntax.
pub(crate) fn trigger(word: &str) -> Result<Trigger, String> {
    word.parse().map_err(|error: TriggerError| error.to_string())
}

/// Parses a constraint: `concurrency(1)`, `delay(60000)`, `window(22:00-06:00)`, `gap(3600000)`, followed by `!` if it
/// aborts and by `~` if it waits.
pub(crate) fn constraint(word: &str) -> Result<Constraint, String> {
    let (gate, otherwise) = match (word.strip_suffix('!'), word.strip_suffix('~')) {
        (Some(gate), _) => (gate, Some(Otherwise::Abort)),
        (_, Some(gate)) => (gate, Some(Otherwise::Wait)),
        _ => (word, None),
    };
    let (name, inside) = gate.strip_suffix(')').and_then(|gate| gate.split_once('(')).ok_or("expected gate(value)")?;
    let number = || inside.parse::<u64>().map_err(|_| format!("{inside:?} is not a number"));
    let gate = match name {
        "concurrency" => Gate::Concurrency(u32::try_from(number()?).map_err(|error| error.to_string())?),
        "delay" => Gate::Delay(number()?),
        "gap" => Gate::SinceLastRun(number()?),
        "window" => {
            let (start, end) = inside.split_once('-').ok_or("expected start-end")?;
            Gate::Window(Window::new(start, end, Zone::utc()).map_err(|error| error.to_string())?)
        }
        other => return Err(format!("no constraint is named {other:?}")),
    };
    let constraint = Constraint::new(gate);
    Ok(Constraint { otherwise: otherwise.unwrap_or(constraint.otherwise), ..constraint })
}

pub(crate) fn catch_up(word: &str) -> Result<CatchUp, String> {
    match word {
        "skip" => Ok(CatchUp::Skip),
        "latest" => Ok(CatchUp::Latest),
        "all" => Ok(CatchUp::All),
        other => Err(format!("{other:?} is no way of catching up")),
    }
}

/// Parses a fact in the syntax of the leaf that waits for it: `partitions(ds,2)`, `ended(p,succeeded)` or `signal(x)`,
/// followed by `as:key` if it has an idempotency key.
pub(crate) fn fact(word: &str) -> Result<Fact, String> {
    let (what, key) = word.split_once("as:").map_or((word, None), |(what, key)| (what, Some(key.into())));
    let what = match trigger(what)? {
        Trigger::Partitions { dataset, count } => Occurrence::Partitions { dataset, count, keys: Vec::new() },
        Trigger::Ended { program, states } => Occurrence::Ended {
            program,
            state: states[0],
            run: None,
            arguments: std::collections::BTreeMap::new(),
            outputs: serde_json::Map::new(),
        },
        Trigger::Signal { name } => Occurrence::Signal { name, payload: serde_json::Value::Null },
        _ => return Err("times come by themselves".to_owned()),
    };
    Ok(Fact { source: "test".into(), key, what })
}
