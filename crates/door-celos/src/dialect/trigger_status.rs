//! The servlet that evaluates a slot's trigger again, to show why it waits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use kelos_explain::schedule;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_front::known::KnownFacts;
use kelos_model::probe::{Conditions, Verdict, plain};
use kelos_model::reason::words;
use kelos_model::template::KeyValues;
use kelos_model::time::format_full;
use kelos_model::trigger::{Waker, evaluate};
use kelos_model::{Answer, Finding, Probe, Reason, ReasonKind, SlotRef, Trigger, Workflow, WorkflowId};
use serde::Serialize;

use super::as_json;
use super::params::Params;

/// The beginning of the URI of a local file.
const LOCAL: &str = "file:///";

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
    /// The status of a trigger with this result.
    fn of(reason: &Reason, trigger: Option<&Trigger>) -> Status {
        let nested = reason.nested.iter().enumerate();
        Status {
            kind: class_of(&reason.kind),
            ready: reason.answer == Answer::Met,
            description: description(reason, trigger),
            nested: nested
                .map(|(n, one)| Status::of(one, trigger.and_then(|trigger| trigger.nested().get(n))))
                .collect(),
        }
    }
}

/// Celos's sentence, or ours if it has none.
fn description(reason: &Reason, trigger: Option<&Trigger>) -> String {
    let is_met = reason.answer == Answer::Met;
    let ready = if is_met { "ready" } else { "not ready" };
    match (&reason.kind, &reason.finding) {
        (_, Finding::Always) => "Always ready".to_owned(),
        (_, Finding::AllOf) if is_met => "All nested triggers are ready".to_owned(),
        (_, Finding::AllOf) => "Not all nested triggers are ready".to_owned(),
        (_, Finding::AnyOf) if is_met => "One or more nested triggers are ready".to_owned(),
        (_, Finding::AnyOf) => "None of the nested triggers are ready".to_owned(),
        (_, Finding::NoneOf) if is_met => "Ready, nested trigger isn't ready".to_owned(),
        (_, Finding::NoneOf) if reason.nested.iter().any(|nested| nested.answer == Answer::Met) => {
            "Not ready, nested trigger is ready".to_owned()
        }
        (_, Finding::Offset { seconds }) => format!("Nested trigger offset by {seconds} seconds {ready}"),
        (_, Finding::DelayUntil { until, .. }) if is_met => format!("Ready since {}", format_full(*until)),
        (_, Finding::DelayUntil { until, .. }) => format!("Delayed until {}", format_full(*until)),
        // Ours is shorter; Celos shows the full names of slots.
        (
            ReasonKind::Success,
            Finding::UpstreamAsked { slot } | Finding::UpstreamMissing { slot } | Finding::UpstreamIs { slot, .. },
        ) => format!("Workflow slot {slot} is {ready}"),
        (
            ReasonKind::HdfsPath,
            Finding::ProbeAnswered { probe: Probe::Path { uri, conditions }, verdict, detail, .. },
        ) if !has_own_system(trigger) || uri.starts_with(LOCAL) => {
            hdfs_path(&shown_path(uri, has_own_system(trigger)), conditions, *verdict, detail)
        }
        _ => words::text(reason),
    }
}

/// The result for a path.
fn hdfs_path(path: &str, conditions: &Conditions, verdict: Verdict, detail: &str) -> String {
    let conditions = if conditions.is_empty() { String::new() } else { format!(" ({conditions})") };
    let path = format!("HDFS path {path}{conditions}");
    match verdict {
        Verdict::Yes => format!("{path} is ready"),
        Verdict::No if detail.is_empty() => format!("{path} is not ready"),
        Verdict::No => format!("{path} is not ready: {detail}"),
        Verdict::Never => format!("{path} will never be ready"),
        Verdict::Failed => format!("{path} can't be checked: {detail}"),
    }
}

fn has_own_system(trigger: Option<&Trigger>) -> bool {
    matches!(trigger, Some(Trigger::Path(check)) if check.has_own_system())
}

/// The path of a URI as in the script, without the scheme and the server. Where the script itself names a local file by a URI, Hadoop
/// writes that without an empty server.
fn shown_path(uri: &str, has_own_system: bool) -> Cow<'_, str> {
    if has_own_system { format!("file:{}", plain(uri)).into() } else { path_alone(uri) }
}

/// The path of a URI, without the scheme and the server: `/in` of `hdfs://nn/in`.
fn path_alone(uri: &str) -> Cow<'_, str> {
    if uri.starts_with(LOCAL) {
        return plain(uri);
    }
    let Some((_, rest)) = uri.split_once(':') else { return uri.into() };
    let path = rest.strip_prefix("//").map_or(rest, |rest| &rest[rest.find('/').unwrap_or(0)..]);
    path.strip_prefix("/./").unwrap_or(path).into()
}

/// The name of Celos's class; the last two are ours, in its style.
fn class_of(kind: &ReasonKind) -> &'static str {
    match kind {
        ReasonKind::Always => "AlwaysTrigger",
        ReasonKind::And => "AndTrigger",
        ReasonKind::Or => "OrTrigger",
        ReasonKind::Not => "NotTrigger",
        ReasonKind::Offset => "OffsetTrigger",
        ReasonKind::Delay => "DelayTrigger",
        ReasonKind::Success => "SuccessTrigger",
        ReasonKind::Covers => "CoversTrigger",
        ReasonKind::HdfsPath => "HDFSCheckTrigger",
        ReasonKind::LocalPath => "FileCheckTrigger",
        ReasonKind::Path => "PathTrigger",
        ReasonKind::Function => "FunctionTrigger",
        ReasonKind::Job => "JobTrigger",
        ReasonKind::Parents => "ParentsTrigger",
        ReasonKind::Group => "GroupTrigger",
        ReasonKind::Children => "ChildrenTrigger",
        ReasonKind::Valid => "ValidTrigger",
        ReasonKind::Partitions => "PartitionsTrigger",
        ReasonKind::Ended => "EndedTrigger",
        ReasonKind::Fired => "FiredTrigger",
        ReasonKind::Signal => "SignalTrigger",
        ReasonKind::Asked => "AskedTrigger",
        ReasonKind::Constraints => "Constraints",
        ReasonKind::Concurrency => "ConcurrencyConstraint",
        ReasonKind::Window => "WindowConstraint",
        ReasonKind::SinceLastRun => "SinceLastRunConstraint",
        ReasonKind::Other(_) => "Trigger",
    }
}

/// Answers for any time, even if it is not in the schedule.
pub(super) async fn status(app: App, params: Params) -> Result<Response, Fault> {
    let slot = params.slot(&app).await?;
    let id = slot.workflow.clone();
    let row = app.read(move |reader| schedule::defined(reader, &id)).await?;
    let row = row.ok_or_else(|| plain::not_found(format!("Workflow not found: {}", slot.workflow)))?;
    let known = look(&app, &slot, &row.definition).await?;
    let evaluation =
        evaluate(&row.definition.trigger, &slot.workflow, &KeyValues::of(&row.definition.keys, &slot.key), &known);
    Ok(as_json(&Status::of(&evaluation.explanation, Some(&row.definition.trigger))))
}

async fn look(app: &App, slot: &SlotRef, workflow: &Workflow) -> Result<KnownFacts, Fault> {
    let mut named: BTreeSet<WorkflowId> =
        workflow.trigger.covered().into_iter().map(|covered| covered.workflow.clone()).collect();
    if !named.is_empty() {
        named.insert(slot.workflow.clone());
    }
    let read = app.read(move |reader| {
        let mut times = BTreeMap::new();
        for id in named {
            if let Some(of) = schedule::times(reader, &id)? {
                times.insert(id, of);
            }
        }
        Ok(times)
    });
    let nothing = KnownFacts::nothing(app.handle().now(), read.await?);
    let (mut upstream, mut probes) = (Vec::new(), Vec::new());
    for waker in evaluate(&workflow.trigger, &slot.workflow, &KeyValues::of(&workflow.keys, &slot.key), &nothing).wakers
    {
        match waker {
            Waker::Slot(slot) => upstream.push(slot),
            Waker::Probe(probe) => probes.push(probe),
            Waker::At(_) => {}
        }
    }
    Ok(nothing.with(app, upstream, probes).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_hadoop_writes_them() {
        assert_eq!(shown_path("hdfs://nn/in", false), "/in");
        assert_eq!(shown_path("file:///d/x", false), "/d/x");
        assert_eq!(shown_path("file:///d/x", true), "file:/d/x");
    }
}
