//! The inputs of a test: paths and other inputs from outside.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::template::KeyValues;
use kelos_model::time::{Cron, CronSchedule, format_short};
use kelos_model::{Workflow, WorkflowId};
use kelos_sandbox::{TestInput, TestPaths, TestVerb, closest};
use serde_json::{Value, json};

use super::files::Place;
use super::outside::{Arrival, Content, Outside, OutsideEvent, millis};
use super::report::Trouble;
use super::stage::resolved;
use super::{Play, disk};

/// A path of a slot; without a time where it belongs to none.
pub(super) struct Spot {
    pub(super) at: Option<Timestamp>,
    pub(super) path: String,
}

/// Schedules the appearance and the disappearance of an input.
pub(super) fn add(
    play: &Play<'_>,
    input: &TestInput,
    workflows: &[Arc<Workflow>],
    outside: &mut Outside<'_>,
) -> Result<(), Trouble> {
    let from = play.plan().from;
    let spots = spots(play, &input.paths, workflows)?;
    let waits = waits(play, input, &spots)?;
    for (spot, wait) in spots.into_iter().zip(waits) {
        let comes = spot.at.or(input.at).unwrap_or(from);
        let comes = comes.checked_add(millis(wait)).unwrap_or(Timestamp::MAX).max(from);
        outside.agenda.add(comes, OutsideEvent::Comes(arriving(play, input, &spot.path)?));
        let gone = input.gone_after_ms.and_then(|span| comes.checked_add(millis(span)).ok());
        if let Some(at) = input.gone_at.or(gone) {
            outside.agenda.add(at, OutsideEvent::Goes(Place::named(&spot.path)));
        }
    }
    Ok(())
}

/// The delays after its time with which the path of each spot appears, in milliseconds.
fn waits(play: &Play<'_>, input: &TestInput, spots: &[Spot]) -> Result<Vec<u64>, Trouble> {
    let Some(function) = input.after_function else { return Ok(vec![input.after_ms; spots.len()]) };
    let said = ask(play, function, &input.paths, spots.iter().filter_map(|spot| spot.at).collect())?;
    Ok(said.iter().map(|wait| wait.as_u64().unwrap_or(0)).collect())
}

fn arriving(play: &Play<'_>, input: &TestInput, path: &str) -> Result<Arrival, Trouble> {
    let (content, bytes) = match (&input.from, &input.content) {
        (Some(from), _) => {
            let from = play.beside.join(from);
            let bytes = disk::list(&from).map_err(Trouble::Files)?.values().sum();
            (Content::CopyOf(from), bytes)
        }
        (None, text) => {
            let text = text.clone().unwrap_or_default();
            let bytes = text.len() as u64;
            (Content::Text(text), bytes)
        }
    };
    let bytes = input.size.unwrap_or(bytes);
    Ok(Arrival { place: Place::named(path), is_folder: path.ends_with('/'), bytes, content })
}

/// The paths that are meant, those that a function leaves out aside.
pub(super) fn spots(play: &Play<'_>, paths: &TestPaths, workflows: &[Arc<Workflow>]) -> Result<Vec<Spot>, Trouble> {
    let Some(each) = &paths.each else {
        return Ok(paths.path.iter().map(|path| Spot { at: None, path: path.clone() }).collect());
    };
    let times = times(play, paths, each, workflows)?;
    if let Some(function) = paths.path_function {
        let said = ask(play, function, paths, times.clone())?;
        let spot = |(at, path): (Timestamp, Value)| Some(Spot { at: Some(at), path: path.as_str()?.to_owned() });
        return Ok(times.into_iter().zip(said).filter_map(spot).collect());
    }
    let template = paths.path.as_deref().unwrap_or_default();
    let path = |at: Timestamp| KeyValues::at(at).fill(template).into_owned();
    Ok(times.into_iter().map(|at| Spot { at: Some(at), path: path(at) }).collect())
}

/// Asks a function about times of `each`.
fn ask(play: &Play<'_>, function: u32, paths: &TestPaths, times: Vec<Timestamp>) -> Result<Vec<Value>, Trouble> {
    let times: Vec<i64> = times.into_iter().map(Timestamp::as_millisecond).collect();
    let said = play.file.call(function, &json!({ "workflow": paths.each, "times": times }))?;
    Ok(said.as_array().cloned().unwrap_or_default())
}

/// The times of the test that `each` means.
fn times(
    play: &Play<'_>,
    paths: &TestPaths,
    each: &str,
    workflows: &[Arc<Workflow>],
) -> Result<Vec<Timestamp>, Trouble> {
    let (schedule, start) = schedule(play, each, workflows)?;
    let all: BTreeSet<Timestamp> = schedule.times(play.plan().from.max(start), play.plan().until).collect();
    for (field, named) in [("except", Some(&paths.except)), ("only", paths.only.as_ref())] {
        if let Some(stray) = named.into_iter().flatten().find(|at| !all.contains(*at)) {
            let words = format!("{field}: {} is no time of \"{each}\" within the test", format_short(*stray));
            return Err(play.wrong(words, None));
        }
    }
    let wanted =
        |at: &Timestamp| !paths.except.contains(at) && paths.only.as_ref().is_none_or(|only| only.contains(at));
    Ok(all.into_iter().filter(wanted).collect())
}

/// The schedule of a workflow, and when it starts; or a cron expression.
fn schedule(play: &Play<'_>, each: &str, workflows: &[Arc<Workflow>]) -> Result<(CronSchedule, Timestamp), Trouble> {
    if let Some(workflow) = workflows.iter().find(|workflow| workflow.id.as_str() == each) {
        let schedule = resolved(workflows).remove(&workflow.id);
        let schedule = schedule
            .and_then(Result::ok)
            .ok_or_else(|| play.wrong(format!("each: workflow \"{each}\" has no slots"), None))?;
        return Ok((schedule, workflow.start_time.unwrap_or(Timestamp::MIN)));
    }
    let cron = Cron::parse(each).map_err(|error| {
        let ids = workflows.iter().map(|workflow| workflow.id.as_str());
        let hint = match closest(each, ids) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None => format!("as a cron expression it is wrong: {error}"),
        };
        play.wrong(format!("each: no workflow of this test is named \"{each}\""), Some(hint))
    })?;
    Ok((CronSchedule::utc(cron), Timestamp::MIN))
}

/// The workflow of an action, or its step.
pub(super) fn workflow_of(verb: &TestVerb) -> Option<&WorkflowId> {
    match verb {
        TestVerb::Rerun { slot } | TestVerb::Kill { slot } | TestVerb::Signal { slot, .. } => Some(&slot.workflow),
        TestVerb::Start { step: Some(step), .. } => Some(&step.workflow),
        TestVerb::Pause { workflow }
        | TestVerb::Resume { workflow }
        | TestVerb::Start { workflow, .. }
        | TestVerb::Backfill { workflow, .. } => Some(workflow),
        TestVerb::SetRegister { .. } => None,
    }
}

/// The first slot that an action may be about.
pub(super) fn earliest_of(verb: &TestVerb) -> Option<Timestamp> {
    match verb {
        TestVerb::Rerun { slot } | TestVerb::Kill { slot } | TestVerb::Signal { slot, .. } => slot.key.time(),
        TestVerb::Start { step: Some(step), .. } => step.key.time(),
        TestVerb::Backfill { from, .. } => Some(*from),
        TestVerb::Pause { .. } | TestVerb::Resume { .. } | TestVerb::Start { .. } | TestVerb::SetRegister { .. } => {
            None
        }
    }
}
