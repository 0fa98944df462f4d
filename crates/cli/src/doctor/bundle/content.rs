//! The content of a bundle: of each answer the fields that are listed here, and no others.

use kelos_wire::{EndpointDto, HealthDto, NodesDto, ProblemDto, StuckDto, WorkerDto, WorkflowDto};
use serde_json::{Value, json};

use super::redaction::{Redaction, place};
use crate::doctor::diagnosis::Diagnosis;
use crate::doctor::readings::{Readings, THROWN};

/// Results of checks, with their texts redacted.
pub(super) fn checks(found: &[Diagnosis], redaction: &Redaction) -> Value {
    let one = |one: &Diagnosis| {
        let advice = one.advice.as_ref().map(|advice| redaction.message(advice));
        json!({ "check": one.check, "level": one.level, "found": redaction.message(&one.found), "advice": advice })
    };
    found.iter().map(one).collect()
}

/// Versions, and the machine.
pub(super) fn versions(readings: &Readings) -> Value {
    let versions = readings.versions();
    let system = rustix::system::uname();
    let others = versions.others.iter().map(|(name, version)| json!({ "name": name, "version": version }));
    json!({
        "program": versions.program,
        "server": versions.server,
        "others": others.collect::<Vec<_>>(),
        "system": system.sysname().to_string_lossy(),
        "kernel": system.release().to_string_lossy(),
        "machine": system.machine().to_string_lossy(),
        "processors": crate::machine::processors(),
    })
}

/// The health of the server.
pub(super) fn health(health: &HealthDto, redaction: &Redaction) -> Value {
    let frozen = health.frozen.iter().map(|one| json!({ "workflow": one.workflow, "code": one.freeze.code }));
    json!({
        "status": health.status,
        "reason": health.reason.as_ref().map(|reason| redaction.message(reason)),
        "frozen": frozen.collect::<Vec<_>>(),
        "failures": health.failures,
        "lastSeq": health.last_seq,
        "now": health.now,
    })
}

/// A workflow: neither its description nor its job.
pub(super) fn workflow(workflow: &WorkflowDto) -> Value {
    let WorkflowDto { id, project, present, enabled, paused, version, schedule, executor, .. } = workflow;
    json!({
        "id": id, "project": project, "present": present, "enabled": enabled, "paused": paused, "version": version,
        "executor": executor, "cron": schedule.cron, "period": schedule.period, "zone": schedule.zone,
        "isFrozen": workflow.frozen.is_some(),
    })
}

/// A problem: its place and its code, and its message unless a script wrote that.
pub(super) fn problem(problem: &ProblemDto, redaction: &Redaction) -> Value {
    let message = (problem.code.as_str() != THROWN).then(|| redaction.message(&problem.message));
    json!({
        "severity": problem.severity, "code": problem.code, "file": problem.file, "line": problem.line,
        "column": problem.column, "workflow": problem.workflow, "keptLastGood": problem.kept_last_good,
        "message": message,
    })
}

/// An endpoint.
pub(super) fn endpoint(endpoint: &EndpointDto, redaction: &Redaction) -> Value {
    let broken = endpoint.broken.as_ref().map(|broken| {
        let error = redaction.message(&broken.last_error);
        json!({ "since": broken.since, "lastError": error, "nextTrySeconds": broken.next_try_seconds })
    });
    json!({ "name": place(&endpoint.name), "underWay": endpoint.under_way, "broken": broken })
}

/// The nodes that share a log.
pub(super) fn nodes(found: &NodesDto, redaction: &Redaction) -> Value {
    let nodes = found.nodes.iter().map(|node| {
        json!({
            "name": node.name, "version": node.version, "leads": node.leads, "reads": node.reads,
            "followed": node.followed, "behind": node.behind, "heardMillis": node.heard_millis, "load": node.load,
            "trouble": node.trouble.as_ref().map(|trouble| redaction.message(trouble)),
        })
    });
    let leaders = found.leaders.iter().map(|one| json!({ "epoch": one.epoch, "node": one.node, "since": one.since }));
    json!({
        "store": found.store.as_deref().map(place), "lastEntry": found.last_entry, "writes": found.writes,
        "nodes": nodes.collect::<Vec<_>>(), "leaders": leaders.collect::<Vec<_>>(),
    })
}

/// A worker, with the number of its runs.
pub(super) fn worker(worker: &WorkerDto) -> Value {
    json!({
        "name": worker.name, "workflows": worker.workflows, "labels": worker.labels, "free": worker.free,
        "runs": worker.runs.len(), "remote": worker.remote, "version": worker.version, "since": worker.since,
        "leaves": worker.leaves, "awaySince": worker.away_since, "outputs": worker.outputs.as_deref().map(place),
    })
}

/// A stuck slot, without the reason, which may have a line of output in it.
pub(super) fn stuck(row: &StuckDto) -> Value {
    json!({
        "slot": row.slot.to_string(), "kind": row.kind, "state": row.state, "since": row.since,
        "usualSeconds": row.usual_seconds, "beyondSeconds": row.beyond_seconds, "next": row.next,
        "others": row.others, "followers": row.followers,
    })
}
