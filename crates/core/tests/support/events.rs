//! Event schedules, programs and facts as scenarios write them.

use kelos_model::constraint::{Constraint, Gate, Otherwise, Window};
use kelos_model::time::{Firing, Zone};
use kelos_model::workflow::CatchUp;
use kelos_model::{Fact, Occurrence, SlotState, Trigger, WorkflowId};

/// Reads a leaf that waits for facts: `partitions(ds;2)`, `ended(p;succeeded+failed)`, `cron(0 4 * * *)`, `signal(x)`.
pub(crate) fn leaf(name: &str, inside: &str) -> Option<Result<Trigger, String>> {
    match name {
        "partitions" => Some(partitions(inside)),
        "ended" => Some(ended(inside)),
        "cron" => Some(
            Firing::parse(inside, Zone::utc())
                .map(|firing| Trigger::Fired { firing })
                .map_err(|error| error.to_string()),
        ),
        "signal" => Some(Ok(Trigger::Signal { name: inside.into() })),
        _ => None,
    }
}

fn partitions(inside: &str) -> Result<Trigger, String> {
    let (dataset, count) = inside.split_once(';').ok_or("expected dataset;count")?;
    let count = count.parse().map_err(|_| format!("{count:?} is not a number"))?;
    Ok(Trigger::Partitions { dataset: dataset.into(), count })
}

fn ended(inside: &str) -> Result<Trigger, String> {
    let (program, states) = inside.split_once(';').ok_or("expected program;states")?;
    let states: Option<Vec<_>> = states.split('+').map(SlotState::parse).collect();
    let program = WorkflowId::new(program).map_err(|error| error.to_string())?;
    Ok(Trigger::Ended { program, states: states.ok_or("no such state")? })
}

/// Reads a constraint: `concurrency(1)`, `delay(60000)`, `window(22:00-06:00)`, `gap(3600000)`, with `!` behind where it
/// aborts and `~` where it waits.
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

/// Reads a fact: `partitions(ds;2)`, `ended(p;succeeded)` or `signal(x)`, with `as:name` behind where it has a name.
pub(crate) fn fact(word: &str) -> Result<Fact, String> {
    let (what, key) = word.split_once("as:").map_or((word, None), |(what, key)| (what, Some(key.into())));
    let (name, inside) = what.strip_suffix(')').and_then(|what| what.split_once('(')).ok_or("expected kind(value)")?;
    let what = match leaf(name, inside).ok_or("no such fact")?? {
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
