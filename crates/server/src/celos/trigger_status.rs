//! Why a slot waits: its trigger, asked anew.

use axum::extract::State;
use axum::response::Response;
use kelos::model::template::KeyValues;
use kelos::model::trigger::{Evidence, TriggerKind, Waker, evaluate};
use kelos::model::{Answer, Explanation, Probe, SlotRef, Trigger, Workflow};
use serde::Serialize;

use super::params::Params;
use super::{Fault, as_json};
use crate::app::App;
use crate::known::Known;
use kelos::schedule;

#[derive(Serialize)]
struct Status {
    #[serde(rename = "type")]
    kind: &'static str,
    ready: bool,
    description: String,
    #[serde(rename = "subStatuses")]
    nested: Vec<Status>,
}

impl Status {
    /// The status of a trigger by what its explanation says.
    fn of(explanation: Explanation, trigger: Option<&Trigger>) -> Status {
        let description = match (explanation.kind, &explanation.evidence) {
            // Ours is shorter; Celos names slots in full.
            (TriggerKind::Success, Some(Evidence::Slot { slot, .. })) => {
                let word = if explanation.answer == Answer::Met { "is ready" } else { "is not ready" };
                format!("Workflow slot {slot} {word}")
            }
            // Celos shows the path as the script has it.
            (TriggerKind::HdfsPath, Some(Evidence::Probe { probe: Probe::Path { .. }, .. }))
                if !has_own_system(trigger) =>
            {
                path_alone(&explanation.text)
            }
            _ => explanation.text,
        };
        let nested = explanation.nested.into_iter().enumerate();
        Status {
            kind: class_of(explanation.kind),
            ready: explanation.answer == Answer::Met,
            description,
            nested: nested.map(|(n, one)| Status::of(one, trigger.and_then(|trigger| part(trigger, n)))).collect(),
        }
    }
}

/// The part of a trigger that stands at a place.
fn part(trigger: &Trigger, n: usize) -> Option<&Trigger> {
    match trigger {
        Trigger::And { triggers } | Trigger::Or { triggers } => triggers.get(n),
        Trigger::Not { trigger } | Trigger::Offset { trigger, .. } => Some(trigger),
        _ => None,
    }
}

fn has_own_system(trigger: Option<&Trigger>) -> bool {
    matches!(trigger, Some(Trigger::Path(check)) if check.has_own_system())
}

/// A sentence about a path, without the scheme and the server of that: `HDFS path hdfs://nn/in is ready`.
fn path_alone(text: &str) -> String {
    const SUBJECT: &str = "HDFS path ";
    let Some((_, rest)) = text.strip_prefix(SUBJECT).and_then(|uri| uri.split_once(':')) else {
        return text.to_owned();
    };
    let path = rest.strip_prefix("//").map_or(rest, |rest| &rest[rest.find('/').unwrap_or(0)..]);
    format!("{SUBJECT}{}", path.strip_prefix("/./").unwrap_or(path))
}

/// The name of Celos's class; the last two are ours, in its style.
fn class_of(kind: TriggerKind) -> &'static str {
    match kind {
        TriggerKind::Always => "AlwaysTrigger",
        TriggerKind::And => "AndTrigger",
        TriggerKind::Or => "OrTrigger",
        TriggerKind::Not => "NotTrigger",
        TriggerKind::Offset => "OffsetTrigger",
        TriggerKind::Delay => "DelayTrigger",
        TriggerKind::Success => "SuccessTrigger",
        TriggerKind::HdfsPath => "HDFSCheckTrigger",
        TriggerKind::LocalPath => "FileCheckTrigger",
        TriggerKind::Path => "PathTrigger",
        TriggerKind::Function => "FunctionTrigger",
        TriggerKind::Job => "JobTrigger",
        TriggerKind::Parents => "ParentsTrigger",
        TriggerKind::Group => "GroupTrigger",
        TriggerKind::Valid => "ValidTrigger",
        TriggerKind::Partitions => "PartitionsTrigger",
        TriggerKind::Ended => "EndedTrigger",
        TriggerKind::Fired => "FiredTrigger",
        TriggerKind::Signal => "SignalTrigger",
        TriggerKind::Asked => "AskedTrigger",
        TriggerKind::Constraints => "Constraints",
        TriggerKind::Concurrency => "ConcurrencyConstraint",
        TriggerKind::Window => "WindowConstraint",
        TriggerKind::SinceLastRun => "SinceLastRunConstraint",
    }
}

/// Answers for any time, whether the schedule has it or not.
pub(super) async fn status(State(app): State<App>, params: Params) -> Result<Response, Fault> {
    let slot = params.slot(app.handle().now())?;
    let id = slot.workflow.clone();
    let row = app.read(move |reader| schedule::defined(reader, &id)).await?;
    let row = row.ok_or_else(|| Fault::not_found(format!("Workflow not found: {}", slot.workflow)))?;
    let known = look(&app, &slot, &row.definition).await?;
    let evaluation =
        evaluate(&row.definition.trigger, &slot.workflow, &KeyValues::of(&row.definition.keys, &slot.key), &known);
    Ok(as_json(&Status::of(evaluation.explanation, Some(&row.definition.trigger))))
}

async fn look(app: &App, slot: &SlotRef, workflow: &Workflow) -> Result<Known, Fault> {
    let nothing = Known::nothing(app.handle().now());
    let (mut upstream, mut probes) = (Vec::new(), Vec::new());
    for waker in evaluate(&workflow.trigger, &slot.workflow, &KeyValues::of(&workflow.keys, &slot.key), &nothing).wakers
    {
        match waker {
            Waker::Slot(slot) => upstream.push(slot),
            Waker::Probe(probe) => probes.push(probe),
            Waker::At(_) => {}
        }
    }
    Ok(Known::find(app, upstream, probes).await?)
}
