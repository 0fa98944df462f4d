//! Why a slot waits: its trigger, asked anew.

use axum::extract::State;
use axum::response::Response;
use kelos::model::template::KeyValues;
use kelos::model::trigger::{Evidence, TriggerKind, Waker, evaluate};
use kelos::model::{Answer, Explanation, SlotRef, Workflow};
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

impl From<Explanation> for Status {
    fn from(explanation: Explanation) -> Status {
        let description = match (explanation.kind, &explanation.evidence) {
            // Ours is shorter; Celos names slots in full.
            (TriggerKind::Success, Some(Evidence::Slot { slot, .. })) => {
                let word = if explanation.answer == Answer::Met { "is ready" } else { "is not ready" };
                format!("Workflow slot {slot} {word}")
            }
            _ => explanation.text,
        };
        Status {
            kind: class_of(explanation.kind),
            ready: explanation.answer == Answer::Met,
            description,
            nested: explanation.nested.into_iter().map(Status::from).collect(),
        }
    }
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
    Ok(as_json(&Status::from(evaluation.explanation)))
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
