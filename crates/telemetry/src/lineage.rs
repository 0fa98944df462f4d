//! Events of runs for OpenLineage.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_engine::TraceIds;
use kelos_model::probe::Verdict;
use kelos_model::template::KeyValues;
use kelos_model::{Finding, Outcome, Probe, RunId, RunState, SlotKey, SlotRef};
use serde_json::{Map, Value, json};

use crate::account::{Account, RunAccount, each_met};
use crate::ids::run_uuid;

/// The name of Kelos as the source: a URI, as each event and facet must have one.
const PRODUCER: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/tree/v", env!("CARGO_PKG_VERSION"));
/// The schemas that events and their facets keep to.
const EVENT: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
const FACETS: &str = "https://openlineage.io/spec/facets";

/// A dataset, by the names of OpenLineage.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Dataset {
    namespace: String,
    name: String,
}

/// The events of a run that began or ended; none for slots, and for a run that left its work to another. One that ended before it started, such
/// as a run that its executor refused, began with its dispatch: nobody is told of an end without a beginning.
pub(crate) fn events(account: &Account, ids: &TraceIds, namespace: &str) -> Vec<Value> {
    let (account, has_ended) = match account {
        Account::Began(account) => (account, false),
        Account::Ended(account) => (account, true),
        Account::Final(_) => return Vec::new(),
    };
    let run = &account.run;
    if run.is_follower() {
        return Vec::new();
    }
    let begins = !has_ended || run.started_at.is_none();
    let event = |has_ended| event(account, has_ended, ids, namespace);
    begins.then(|| event(false)).into_iter().chain(has_ended.then(|| event(true))).collect()
}

/// The event of the beginning or the end of a run.
fn event(account: &RunAccount, has_ended: bool, ids: &TraceIds, namespace: &str) -> Value {
    let run = &account.run;
    let began = run.started_at.unwrap_or(run.dispatched_at);
    let (kind, at) = if has_ended { (end_of(run.state), run.ended_at.unwrap_or(began)) } else { ("START", began) };
    json!({
        "eventType": kind,
        "eventTime": at.to_string(),
        "producer": PRODUCER,
        "schemaURL": EVENT,
        "run": {"runId": run_uuid(ids, &run.id), "facets": run_facets(account, ids, namespace, has_ended)},
        "job": {"namespace": namespace, "name": job_name(&run.id.slot), "facets": job_facets(account)},
        "inputs": datasets(inputs(account, namespace)),
        "outputs": datasets(outputs(account)),
    })
}

fn end_of(state: RunState) -> &'static str {
    match state {
        RunState::Succeeded => "COMPLETE",
        RunState::Killed => "ABORT",
        _ => "FAIL",
    }
}

/// The name of a job: its workflow, with the step of a flow.
fn job_name(slot: &SlotRef) -> String {
    match &slot.key {
        SlotKey::Step(step) => format!("{}.{}", slot.workflow, step.step()),
        _ => slot.workflow.to_string(),
    }
}

fn facet(schema: &str, name: &str, content: Value) -> Value {
    let mut facet =
        json!({"_producer": PRODUCER, "_schemaURL": format!("{FACETS}/{schema}/{name}.json#/$defs/{name}")});
    if let (Value::Object(facet), Value::Object(content)) = (&mut facet, content) {
        facet.extend(content);
    }
    facet
}

fn run_facets(account: &RunAccount, ids: &TraceIds, namespace: &str, has_ended: bool) -> Map<String, Value> {
    let mut facets = Map::new();
    let run = &account.run;
    if let Some((start, end)) = nominal(account) {
        let mut times = json!({"nominalStartTime": start.to_string()});
        if let Some(end) = end {
            times["nominalEndTime"] = end.to_string().into();
        }
        facets.insert("nominalTime".to_owned(), facet("1-0-1", "NominalTimeRunFacet", times));
    }
    if let Some(number) = account.flow_run {
        let flow = RunId { slot: SlotRef::new(run.id.slot.workflow.clone(), run.id.slot.key.of_run()), number };
        let job = json!({"namespace": namespace, "name": flow.slot.workflow.to_string()});
        let parent = json!({"run": {"runId": run_uuid(ids, &flow)}, "job": job});
        // No flow is a step of another one: the parent is the root as well.
        let parent = json!({"run": parent["run"], "job": parent["job"], "root": parent});
        facets.insert("parent".to_owned(), facet("1-2-0", "ParentRunFacet", parent));
    }
    if let Some(outcome) = run.outcome.as_ref().filter(|outcome| has_ended && **outcome != Outcome::Succeeded) {
        let message = json!({"message": outcome.to_string(), "programmingLanguage": "unknown"});
        facets.insert("errorMessage".to_owned(), facet("1-0-1", "ErrorMessageRunFacet", message));
    }
    facets
}

/// The period or the time that a run is about.
fn nominal(account: &RunAccount) -> Option<(Timestamp, Option<Timestamp>)> {
    let (run, key) = (&account.run, account.run.id.slot.key.of_run());
    let period = account.workflow.as_ref().and_then(|workflow| workflow.keys.period_of_run(&key, run.batch.as_ref()));
    match period {
        Some(period) => Some((period.start, Some(period.end))),
        None => key.scheduled().map(|time| (time, None)),
    }
}

fn job_facets(account: &RunAccount) -> Map<String, Value> {
    let is_flow = account.workflow.as_ref().is_some_and(|workflow| workflow.flow.is_some());
    let kind = match (is_flow, account.run.id.slot.key.step()) {
        (_, Some(_)) => "STEP",
        (true, None) => "FLOW",
        (false, None) => "JOB",
    };
    let content = json!({"processingType": "BATCH", "integration": "KELOS", "jobType": kind});
    Map::from_iter([("jobType".to_owned(), facet("2-0-4", "JobTypeJobFacet", content))])
}

fn datasets(all: BTreeSet<Dataset>) -> Vec<Value> {
    all.into_iter().map(|dataset| json!({"namespace": dataset.namespace, "name": dataset.name})).collect()
}

/// The paths and the datasets for which a run was started: what its trigger found there.
fn inputs(account: &RunAccount, namespace: &str) -> BTreeSet<Dataset> {
    let mut found = BTreeSet::new();
    if let Some(met) = &account.met {
        each_met(met, &mut |finding| match finding {
            Finding::ProbeAnswered { probe: Probe::Path { uri, .. }, verdict: Verdict::Yes, .. } => {
                found.insert(of_uri(uri));
            }
            Finding::PartitionsCounted { dataset, .. } => {
                found.insert(Dataset { namespace: namespace.to_owned(), name: dataset.to_string() });
            }
            _ => {}
        });
    }
    found
}

/// The paths that a run writes, by its definition.
fn outputs(account: &RunAccount) -> BTreeSet<Dataset> {
    let Some(workflow) = account.workflow.as_ref().filter(|_| account.flow_run.is_none()) else {
        return BTreeSet::new();
    };
    let values = KeyValues::of(&workflow.keys, &account.run.id.slot.key);
    workflow.written().map(|path| of_uri(&path.uri(&values))).collect()
}

/// The names of what a URI points at, by the rules of OpenLineage: files of a machine are in the namespace `file`, those of HDFS have whole
/// paths, and objects have their keys.
fn of_uri(uri: &str) -> Dataset {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return Dataset { namespace: "file".to_owned(), name: uri.strip_prefix("file:").unwrap_or(uri).to_owned() };
    };
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let scheme = scheme.to_ascii_lowercase();
    match &*scheme {
        "file" => Dataset { namespace: "file".to_owned(), name: format!("/{path}") },
        "hdfs" | "webhdfs" | "sftp" => Dataset { namespace: format!("{scheme}://{server}"), name: format!("/{path}") },
        _ => Dataset {
            namespace: format!("{scheme}://{server}"),
            name: if path.is_empty() { "/" } else { path }.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests;
