//! Flows in scripts.

use std::sync::Arc;

use kelos_core::{FireRequest, RepeatStep, ResumeFlow, SignalFlow};
use kelos_model::flow::{FLOW, ItemList, SignalWait};
use kelos_model::retry::OnUnknown;
use kelos_model::{Job, PoolId, PoolUse, RunName, SlotKey, Step, StepName, Workflow};
use serde_json::{Map, Value};

/// Adds a step, written `name`, then any of `:needed,needed`, `!handled,handled` (`!!` for at once), `*list`, `?signal/seconds`,
/// `~retries`, `~again` (what is unknown is done again), `%pool/size`, `+label,label` and `{name=value,...}`.
pub(crate) fn add_step(workflow: &mut Workflow, word: &str) -> Result<(), String> {
    let (word, inputs) = word.split_once('{').map_or((word, None), |(word, inputs)| (word, Some(inputs)));
    let signs = [':', '!', '*', '?', '~', '%', '+'];
    let end = word.find(signs).unwrap_or(word.len());
    let (name, mut rest) = word.split_at(end);
    let mut step = Step::new(step_name(name)?, Job::new("held", Map::new()));
    while let Some(sign) = rest.chars().next() {
        rest = &rest[1..];
        if sign == '!' && rest.starts_with('!') {
            rest = &rest[1..];
            step.at_once = true;
        }
        let end = rest.find(signs).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        match sign {
            ':' => step.needs = part.split(',').map(step_name).collect::<Result<_, _>>()?,
            '!' => step.handles = part.split(',').map(step_name).collect::<Result<_, _>>()?,
            '*' => step.for_each = Some(ItemList { input: part.to_owned(), most: 3, concurrency: None }),
            '?' => {
                let (name, seconds) = part.split_once('/').map_or((part, None), |(name, end)| (name, end.parse().ok()));
                let signal = SignalWait { name: name.to_owned(), within_seconds: seconds };
                step = Step { needs: step.needs, handles: step.handles, ..Step::waiting_for(step.name, signal) };
            }
            '+' => step.job.runs_on = super::jobs::labels(part)?,
            '%' => {
                let (pool, size) = part.split_once('/').ok_or("expected a pool and its size")?;
                let pool = PoolId::new(pool).map_err(|error| error.to_string())?;
                let size = size.parse().map_err(|_| "expected the size of a pool")?;
                step.pools.push(PoolUse { pool, size, permits: 1, rate: None });
            }
            '~' if part == "again" => step.retry.on_unknown = OnUnknown::Again,
            _ => step.retry.count = part.parse().map_err(|_| "expected a number of retries")?,
        }
    }
    if let Some(inputs) = inputs {
        let inputs = inputs.trim_end_matches('}').split(',').filter_map(|input| input.split_once('='));
        step.inputs = inputs.map(|(name, value)| (name.to_owned(), json(value))).collect();
    }
    workflow.job = Job::new(FLOW, Map::new());
    Arc::make_mut(workflow.flow.get_or_insert_default()).steps.push(step);
    Ok(())
}

/// A value: JSON without quotes, or a text.
pub(crate) fn json(word: &str) -> Value {
    serde_json::from_str(word).unwrap_or_else(|_| word.into())
}

fn step_name(word: &str) -> Result<StepName, String> {
    StepName::new(word).map_err(|error| error.to_string())
}

/// The key of a run or a step, written as `.order-42` or `.order-42.pay`.
pub(crate) fn key(word: &str) -> Option<SlotKey> {
    word.starts_with('.').then(|| SlotKey::parse(word).ok()).flatten()
}

/// A start: `WORKFLOW NAME name=value ...`.
pub(crate) fn start(workflow: kelos_model::WorkflowId, words: &[String]) -> Result<FireRequest, String> {
    let (name, arguments) = words.split_first().ok_or("expected a name")?;
    let argument = |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), json(value)));
    Ok(FireRequest {
        workflow,
        key: Some(RunName::new(name).map_err(|error| error.to_string())?),
        arguments: arguments.iter().filter_map(argument).collect(),
        priority: 0,
        unconstrained: false,
        reason: None,
    })
}

/// A step that is done again: `SLOT NAME name=value ...`, or `-` in the place of the name.
pub(crate) fn repeat(step: kelos_model::SlotRef, words: &[String]) -> Result<RepeatStep, String> {
    let (name, arguments) = words.split_first().ok_or("expected a name, or -")?;
    let key = Some(name).filter(|name| *name != "-").map(|name| RunName::new(name));
    let argument = |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), json(value)));
    Ok(RepeatStep {
        step,
        key: key.transpose().map_err(|error| error.to_string())?,
        arguments: arguments.iter().filter_map(argument).collect(),
        priority: 0,
        unconstrained: false,
        reason: None,
    })
}

/// A signal: `SLOT NAME json`.
pub(crate) fn signal(run: kelos_model::SlotRef, words: &[String]) -> Result<SignalFlow, String> {
    let (signal, payload) = words.split_first().ok_or("expected the name of a signal")?;
    let payload = payload.join(" ");
    let payload = if payload.is_empty() { Value::Null } else { json(&payload) };
    Ok(SignalFlow { run, signal: signal.clone(), payload, reason: None })
}

/// A resumption: `SLOT [step]`.
pub(crate) fn go_on(run: kelos_model::SlotRef, words: &[String]) -> Result<ResumeFlow, String> {
    let from = words.first().map(|step| step_name(step)).transpose()?;
    Ok(ResumeFlow { run, from, reason: None })
}
