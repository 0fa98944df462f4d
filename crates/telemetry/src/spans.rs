//! Spans for OpenTelemetry, in the JSON form of OTLP over HTTP.

use jiff::Timestamp;
use kelos_engine::TraceIds;
use kelos_model::{Outcome, RunId, RunState, SlotKey, SlotRef, SlotState};
use serde_json::{Value, json};

use crate::account::{Account, Opening, RunAccount, SlotAccount};

/// A span of something that works inside, and neither calls nor is called.
const INTERNAL: u32 = 1;
/// The statuses of spans.
const OK: u32 = 1;
const ERROR: u32 = 2;

/// The span of something that has ended; none for what is still under way, and for a run that left its work to another.
pub(crate) fn span(account: &Account, ids: &TraceIds) -> Option<Value> {
    match account {
        Account::Began(_) => None,
        Account::Ended(account) => of_run(account, ids),
        Account::Final(account) => Some(of_slot(account, ids)),
    }
}

/// The body of a request with these spans.
pub(crate) fn request(spans: &[Value], service: &str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", service)]},
        "scopeSpans": [{"scope": {"name": "kelos", "version": version}, "spans": spans}],
    }]})
}

fn of_run(account: &RunAccount, ids: &TraceIds) -> Option<Value> {
    let RunAccount { run, opening, workflow, .. } = account;
    if run.is_follower() {
        return None;
    }
    let slot = &run.id.slot;
    let began = run.started_at.unwrap_or(run.dispatched_at);
    let mut attributes = attributes(slot);
    attributes.push(whole("kelos.run", i64::from(run.id.number)));
    attributes.push(text("kelos.executor", &run.executor));
    attributes.push(text("kelos.state", run.state.as_str()));
    if let Some(id) = &run.external_id {
        attributes.push(text("kelos.external_id", id));
    }
    if let Some(workflow) = workflow {
        attributes.push(text("kelos.project", &workflow.project));
    }
    let (status, words) = match (&run.outcome, run.state) {
        (Some(Outcome::Succeeded), _) | (None, RunState::Succeeded) => (OK, String::new()),
        (Some(outcome), _) => (ERROR, outcome.to_string()),
        (None, state) => (ERROR, state.as_str().to_owned()),
    };
    let dispatched = json!({"timeUnixNano": nanos(run.dispatched_at), "name": "dispatched"});
    Some(json!({
        "traceId": ids.of_slot(slot),
        "spanId": ids.span_of_run(&run.id),
        "parentSpanId": ids.span_of_slot(slot, opening.seq),
        "name": format!("{} run", name(slot)),
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(began),
        "endTimeUnixNano": nanos(run.ended_at.unwrap_or(began).max(began)),
        "attributes": attributes,
        "events": [dispatched],
        "status": {"code": status, "message": words},
    }))
}

fn of_slot(account: &SlotAccount, ids: &TraceIds) -> Value {
    let SlotAccount { slot, state, opening, at, waited_for, flow_run } = account;
    let Opening { seq, at: opened } = *opening;
    let mut attributes = attributes(slot);
    attributes.push(text("kelos.state", state.as_str()));
    let links: Vec<Value> = waited_for
        .iter()
        .map(|waited| {
            json!({"traceId": ids.of_slot(&waited.slot), "spanId": ids.span_of_slot(&waited.slot, waited.opening.seq)})
        })
        .collect();
    let status = match state {
        SlotState::Succeeded => OK,
        SlotState::Failed | SlotState::Expired => ERROR,
        // It was somebody's decision, and no failure.
        _ => 0,
    };
    let mut span = json!({
        "traceId": ids.of_slot(slot),
        "spanId": ids.span_of_slot(slot, seq),
        "name": name(slot),
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(opened),
        "endTimeUnixNano": nanos((*at).max(opened)),
        "attributes": attributes,
        "links": links,
        "status": {"code": status},
    });
    if let Some(run) = flow_run {
        let flow = RunId { slot: SlotRef::new(slot.workflow.clone(), slot.key.of_run()), number: *run };
        span["parentSpanId"] = ids.span_of_run(&flow).into();
    }
    span
}

/// The workflow of a slot, and the step: names that many spans have in common.
fn name(slot: &SlotRef) -> String {
    match &slot.key {
        SlotKey::Step(step) => format!("{} {}", slot.workflow, step.step()),
        _ => slot.workflow.to_string(),
    }
}

fn attributes(slot: &SlotRef) -> Vec<Value> {
    let mut attributes =
        vec![text("kelos.workflow", &slot.workflow.to_string()), text("kelos.slot", &slot.key.typed())];
    if let SlotKey::Step(step) = &slot.key {
        attributes.push(text("kelos.step", step.within_run()));
    }
    attributes
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn whole(key: &str, value: i64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

/// Nanoseconds since 1970, as a text: more than what all readers of JSON take for a whole number.
fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}
