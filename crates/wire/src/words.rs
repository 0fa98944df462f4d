//! The log in words, for the command line, the pages and explanations.

mod act;

pub use act::{Act, aborted, because};

use kelos_model::arguments::text;
use kelos_model::register::ACCESS_BUCKET;
use kelos_model::retry::MOST_AGAIN;

use crate::{
    AccessEventDto, BackfillEventDto, Code, EventBodyDto, EventDto, ExplanationDto, FactEventDto, RangeDto,
    RequesterDto, SlotEventDto, SlotNameDto, WorkflowEventDto,
};

/// The subject of an event: `wordcount@2016-01-01T00:00Z`, `backfill b`, `register bucket/key`, `user anna`.
#[must_use]
pub fn subject(event: &EventDto) -> String {
    match &event.body {
        EventBodyDto::Slot { slot, .. } => slot.to_string(),
        EventBodyDto::Workflow { workflow, .. } => workflow.clone(),
        EventBodyDto::Backfill { backfill, .. } => format!("backfill {backfill}"),
        EventBodyDto::Register { bucket, key, .. } => match account(bucket, key) {
            Some((kind, name)) => format!("{kind} {name}"),
            None => format!("register {bucket}/{key}"),
        },
        EventBodyDto::Fact(_) => "fact".to_owned(),
        EventBodyDto::Access(_) => "access".to_owned(),
        EventBodyDto::Other(other) => other.subject.to_string(),
    }
}

/// The user or the token that a register is the record of: `("user", "anna")`.
fn account<'r>(bucket: &str, key: &'r str) -> Option<(&'r str, &'r str)> {
    key.split_once('/').filter(|(kind, _)| bucket == ACCESS_BUCKET && matches!(*kind, "user" | "token"))
}

/// The kind of its subject: `slot`, `workflow`, `backfill`, `register`, `fact` or `access`.
#[must_use]
pub fn tag(event: &EventDto) -> &str {
    match &event.body {
        EventBodyDto::Slot { .. } => "slot",
        EventBodyDto::Workflow { .. } => "workflow",
        EventBodyDto::Backfill { .. } => "backfill",
        EventBodyDto::Register { .. } => "register",
        EventBodyDto::Fact(_) => "fact",
        EventBodyDto::Access(_) => "access",
        EventBodyDto::Other(other) => other.subject.as_str(),
    }
}

/// The names of all events, ascending.
pub const NAMES: &[&str] = &[
    "aborted",
    "acquired",
    "arguments-set",
    "backed-off",
    "backoff-ended",
    "cancelled",
    "collected",
    "constraints-met",
    "created",
    "deferred",
    "defined",
    "deleted",
    "disabled",
    "dispatched",
    "enabled",
    "expired",
    "failed",
    "fired",
    "frozen",
    "gave",
    "given",
    "held",
    "imported",
    "killed",
    "late",
    "looked",
    "marked-succeeded",
    "missed",
    "paused",
    "pinned",
    "planned",
    "prioritised",
    "recovered",
    "refused",
    "released",
    "removed",
    "reopened",
    "replanned",
    "requested",
    "resumed",
    "run-ended",
    "set",
    "set-aside",
    "sign-in-failed",
    "signalled",
    "signed-in",
    "signed-out",
    "skipped",
    "started",
    "step-opened",
    "step-ready",
    "succeeded",
    "thawed",
    "told",
    "trigger-met",
    "withdrawn",
];

/// The name of an event: `trigger-met`, `backed-off`.
#[must_use]
pub fn name(event: &EventDto) -> &str {
    match &event.body {
        EventBodyDto::Slot { what, .. } => slot_event(what),
        EventBodyDto::Workflow { what, .. } => workflow_event(what),
        EventBodyDto::Backfill { what, .. } => backfill_event(what),
        EventBodyDto::Register { what, .. } => what.event.as_str(),
        EventBodyDto::Fact(fact) => fact.event.as_str(),
        EventBodyDto::Access(access) => access.event.as_str(),
        EventBodyDto::Other(other) => other.event.as_str(),
    }
}

fn slot_event(what: &SlotEventDto) -> &str {
    use SlotEventDto as X;
    match what {
        X::Planned { .. } => "planned",
        X::Looked { .. } => "looked",
        X::TriggerMet { .. } => "trigger-met",
        X::Collected { .. } => "collected",
        X::Fired { .. } => "fired",
        X::ArgumentsSet { .. } => "arguments-set",
        X::Held { .. } => "held",
        X::ConstraintsMet { .. } => "constraints-met",
        X::Aborted { .. } => "aborted",
        X::Given { .. } => "given",
        X::Gave { .. } => "gave",
        X::Acquired { .. } => "acquired",
        X::Released { .. } => "released",
        X::Expired { .. } => "expired",
        X::Skipped { .. } => "skipped",
        X::BackoffEnded { .. } => "backoff-ended",
        X::Late { .. } => "late",
        X::Killed { .. } => "killed",
        X::MarkedSucceeded { .. } => "marked-succeeded",
        X::Reopened { .. } => "reopened",
        X::Requested { .. } => "requested",
        X::Prioritised { .. } => "prioritised",
        X::Imported { .. } => "imported",
        X::Dispatched { .. } => "dispatched",
        X::Deferred { .. } => "deferred",
        X::Withdrawn { .. } => "withdrawn",
        X::Started { .. } => "started",
        X::Succeeded { .. } => "succeeded",
        X::BackedOff { .. } => "backed-off",
        X::Failed { .. } => "failed",
        X::RunEnded { .. } => "run-ended",
        X::Resumed { .. } => "resumed",
        X::Pinned { .. } => "pinned",
        X::Signalled { .. } => "signalled",
        X::StepOpened { .. } => "step-opened",
        X::StepReady { .. } => "step-ready",
        X::Recovered { .. } => "recovered",
        X::Other { event } => event.as_str(),
    }
}

fn workflow_event(what: &WorkflowEventDto) -> &str {
    use WorkflowEventDto as X;
    match what {
        X::Defined { .. } => "defined",
        X::Removed { .. } => "removed",
        X::Missed { .. } => "missed",
        X::Planned { .. } => "planned",
        X::Replanned { .. } => "replanned",
        X::Paused { .. } => "paused",
        X::Resumed { .. } => "resumed",
        X::Enabled { .. } => "enabled",
        X::Disabled { .. } => "disabled",
        X::Frozen { .. } => "frozen",
        X::SetAside { .. } => "set-aside",
        X::Thawed { .. } => "thawed",
        X::Imported { .. } => "imported",
        X::Other { event } => event.as_str(),
    }
}

fn backfill_event(what: &BackfillEventDto) -> &str {
    use BackfillEventDto as X;
    match what {
        X::Created { .. } => "created",
        X::Cancelled { .. } => "cancelled",
        X::Paused { .. } => "paused",
        X::Resumed { .. } => "resumed",
        X::Prioritised { .. } => "prioritised",
        X::Reopened { .. } => "reopened",
        X::Other { event } => event.as_str(),
    }
}

/// The details of an event beside its name: `run 1, exited with status 3, retry at …`. May be empty.
#[must_use]
pub fn details(event: &EventDto) -> String {
    let parts = match &event.body {
        EventBodyDto::Slot { what, .. } => of_slot(what),
        EventBodyDto::Workflow { what, .. } => of_workflow(what),
        EventBodyDto::Backfill { what, .. } => of_backfill(what),
        EventBodyDto::Register { what, .. } => requester(&what.requester),
        EventBodyDto::Fact(fact) => of_fact(fact),
        EventBodyDto::Access(access) => of_access(access),
        EventBodyDto::Other(_) => Vec::new(),
    };
    parts.join(", ")
}

/// The explanation of a trigger or of constraints, for events that have one.
#[must_use]
pub fn explanation(event: &EventDto) -> Option<&ExplanationDto> {
    use SlotEventDto as S;
    let EventBodyDto::Slot { what, .. } = &event.body else { return None };
    match what {
        S::Looked { explanation }
        | S::TriggerMet { explanation }
        | S::Held { explanation }
        | S::ConstraintsMet { explanation }
        | S::Expired { explanation, .. }
        | S::Skipped { explanation: Some(explanation), .. } => Some(explanation),
        _ => None,
    }
}

/// The actor who requested it, if one did.
#[must_use]
pub fn by(event: &EventDto) -> Option<&str> {
    use {BackfillEventDto as B, SlotEventDto as S, WorkflowEventDto as W};
    let requester = match &event.body {
        EventBodyDto::Slot { what, .. } => match what {
            S::Planned { requester, .. }
            | S::Fired { requester, .. }
            | S::ArgumentsSet { requester, .. }
            | S::Aborted { requester, .. }
            | S::Skipped { requester, .. }
            | S::Killed { requester }
            | S::MarkedSucceeded { requester }
            | S::Reopened { requester, .. }
            | S::Requested { requester }
            | S::Resumed { requester, .. }
            | S::Signalled { requester, .. }
            | S::Prioritised { requester, .. } => requester,
            _ => return None,
        },
        EventBodyDto::Workflow { what, .. } => match what {
            W::Defined { requester, .. }
            | W::Removed { requester }
            | W::Paused { requester }
            | W::Resumed { requester }
            | W::Enabled { requester }
            | W::Disabled { requester }
            | W::Thawed { requester } => requester,
            _ => return None,
        },
        EventBodyDto::Backfill { what, .. } => match what {
            B::Created { requester, .. }
            | B::Cancelled { requester }
            | B::Paused { requester }
            | B::Resumed { requester }
            | B::Prioritised { requester, .. }
            | B::Reopened { requester, .. } => requester,
            B::Other { .. } => return None,
        },
        EventBodyDto::Register { what, .. } => &what.requester,
        EventBodyDto::Access(access) => &access.requester,
        EventBodyDto::Fact(_) | EventBodyDto::Other(_) => return None,
    };
    requester.by.as_deref()
}

fn of_access(access: &AccessEventDto) -> Vec<String> {
    let mut parts = Vec::new();
    if let (Some(right), Some(action)) = (&access.right, &access.action) {
        let project = access.project.as_ref().map(|project| format!(" the project {project}")).unwrap_or_default();
        parts.push(format!("may not {right}{project}: {action}"));
    }
    parts.extend(access.times.filter(|times| *times > 1).map(|times| count(times, "time")));
    parts.extend(access.requester.by.as_ref().map(|by| format!("by {by}")));
    parts.extend(access.address.as_ref().map(|address| format!("from {address}")));
    parts
}

fn of_slot(what: &SlotEventDto) -> Vec<String> {
    use SlotEventDto as S;
    match what {
        S::Planned { origin, opened_by, requester: who, .. } => {
            opened(origin, opened_by.as_ref()).into_iter().chain(requester(who)).collect()
        }
        S::Looked { explanation } | S::Expired { explanation, .. } => said(explanation),
        S::TriggerMet { explanation } | S::Held { explanation } | S::ConstraintsMet { explanation } => {
            unmet(explanation)
        }
        S::Collected { occurrence, .. } => vec![occurrence.what.clone()],
        S::Fired { unconstrained, repeats, requester: who } => {
            let past = unconstrained.then(|| "past its constraints".to_owned());
            let again = repeats.iter().map(|step| format!("does {step} again"));
            requester(who).into_iter().chain(again).chain(past).collect()
        }
        S::ArgumentsSet { arguments, requester: who } => requester(who)
            .into_iter()
            .chain(arguments.iter().map(|(name, value)| format!("{name}={}", text(value))))
            .collect(),
        S::Aborted { cause, requester: who } => [requester(who), vec![format!("the schedule was {cause}")]].concat(),
        S::Skipped { explanation, requester: who } => {
            requester(who).into_iter().chain(explanation.iter().flat_map(unmet)).collect()
        }
        S::Late { deadline } => vec![format!("deadline {}", deadline.short())],
        S::Killed { requester: who }
        | S::MarkedSucceeded { requester: who }
        | S::Reopened { requester: who, .. }
        | S::Requested { requester: who } => requester(who),
        S::Prioritised { priority, requester: who, .. } => {
            [vec![format!("priority {priority}")], requester(who)].concat()
        }
        S::Imported { imported_from, external_id, there, .. } => {
            let process = external_id.iter().map(|name| format!("process {name}"));
            process.chain([format!("from {imported_from}"), format!("{there} there")]).collect()
        }
        S::Resumed { from, requester: who } => {
            let from = from.iter().map(|step| format!("from step {step}"));
            from.chain(requester(who)).collect()
        }
        S::Pinned { definition } => vec![format!("definition {definition}")],
        S::Signalled { name, requester: who, .. } => std::iter::once(name.clone()).chain(requester(who)).collect(),
        S::StepOpened { run, awaits, .. } => {
            let awaits = (!awaits.is_empty()).then(|| format!("when {} have ended", awaits.join(", ")));
            std::iter::once(format!("by run {run}")).chain(awaits).collect()
        }
        S::Recovered { run, failed } => vec![format!("run {run}"), format!("failed: {}", failed.join(", "))],
        S::BackoffEnded {} | S::StepReady { .. } | S::Other { .. } => Vec::new(),
        of_run => of_a_run(of_run),
    }
}

fn of_a_run(what: &SlotEventDto) -> Vec<String> {
    use SlotEventDto as S;
    let number = |run: &u32| format!("run {run}");
    match what {
        S::Given { run, inputs } => {
            let names = inputs.as_object().into_iter().flat_map(|inputs| inputs.keys().cloned());
            vec![number(run), names.collect::<Vec<_>>().join(", ")]
        }
        S::Gave { run, .. } | S::Withdrawn { run } | S::Released { run } | S::Succeeded { run } => vec![number(run)],
        S::Acquired { run, permits } => {
            let taken = permits.iter().map(|(pool, permits)| format!("{} of {pool}", count(*permits, "permit")));
            std::iter::once(number(run)).chain(taken).collect()
        }
        S::Dispatched { run, worker, batch } => {
            let worker = worker.iter().filter(|worker| !worker.is_empty());
            let worker = worker.map(|worker| format!("to worker {worker}"));
            let batch = batch.iter().map(|batch| {
                let (slots, first, last) = (batch.slots, batch.first.short(), batch.last.short());
                format!("{slots} slots together, {first} to {last}, by run {} of the first", batch.run)
            });
            [number(run)].into_iter().chain(worker).chain(batch).collect()
        }
        S::Deferred { run, reason } => vec![number(run), reason.clone()],
        S::Started { run, external_id } => vec![number(run), format!("process {external_id}")],
        S::BackedOff { run, outcome, due, again } => {
            let next = match again {
                Some(again) => format!("done again at {}, {again} of {MOST_AGAIN} times", due.short()),
                None => format!("retry at {}", due.short()),
            };
            vec![number(run), outcome.text.clone(), next]
        }
        S::Failed { run, outcome } | S::RunEnded { run, outcome } => vec![number(run), outcome.text.clone()],
        _ => Vec::new(),
    }
}

fn of_workflow(what: &WorkflowEventDto) -> Vec<String> {
    use WorkflowEventDto as W;
    match what {
        W::Defined { version, requester: who } => [requester(who), vec![format!("version {version}")]].concat(),
        W::Removed { requester: who }
        | W::Paused { requester: who }
        | W::Resumed { requester: who }
        | W::Enabled { requester: who }
        | W::Disabled { requester: who }
        | W::Thawed { requester: who } => requester(who),
        W::Missed { range, slots } => vec![span(range), count(*slots, "time")],
        W::Planned { range, slots, .. } => vec![span(range), count(*slots, "slot")],
        W::Replanned { range } => vec![span(range)],
        W::Frozen { reason, .. } => vec![reason.clone()],
        W::SetAside { what, reason, .. } => vec![what.clone(), reason.clone()],
        W::Imported { imported_from, range, slots } => {
            vec![format!("from {imported_from}"), span(range), count(*slots, "slot")]
        }
        W::Other { .. } => Vec::new(),
    }
}

fn of_backfill(what: &BackfillEventDto) -> Vec<String> {
    use BackfillEventDto as B;
    match what {
        B::Created { range, slots, made_by, requester: who, .. } => {
            let maker = made_by.iter().map(|version| format!("made by {version}")).collect();
            [requester(who), vec![span(range)], maker, vec![count(*slots, "slot")]].concat()
        }
        B::Cancelled { requester: who } | B::Paused { requester: who } | B::Resumed { requester: who } => {
            requester(who)
        }
        B::Prioritised { priority, requester: who } => [vec![format!("priority {priority}")], requester(who)].concat(),
        B::Reopened { slots, requester: who } => [requester(who), vec![count(*slots, "slot")]].concat(),
        B::Other { .. } => Vec::new(),
    }
}

fn of_fact(fact: &FactEventDto) -> Vec<String> {
    let source = match &fact.key {
        Some(key) => format!("published by {} with key {key}", fact.source),
        None => format!("published by {}", fact.source),
    };
    vec![fact.occurrence.what.clone(), source]
}

fn opened(origin: &Code, by: Option<&SlotNameDto>) -> Option<String> {
    match (origin.as_str(), by) {
        ("parent", Some(parent)) => Some(format!("after its parent {parent}")),
        ("child", Some(child)) => Some(format!("for {child}")),
        _ => None,
    }
}

fn requester(who: &RequesterDto) -> Vec<String> {
    who.by.iter().map(|by| format!("by {by}")).chain(who.reason.clone()).collect()
}

/// An explanation in words: of constraints those that were not met, of a trigger all of it.
fn said(explanation: &ExplanationDto) -> Vec<String> {
    if explanation.kind == "constraints" { unmet(explanation) } else { vec![explanation.text.clone()] }
}

/// The constraints that were not met, each with its finding; nothing for a trigger.
fn unmet(explanation: &ExplanationDto) -> Vec<String> {
    if explanation.kind != "constraints" {
        return Vec::new();
    }
    let unmet = explanation.nested.iter().filter(|one| one.answer != "met");
    unmet.map(|one| one.text.clone()).collect()
}

fn span(range: &RangeDto) -> String {
    format!("{} to {}", range.from.short(), range.to.short())
}

fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::NAMES;

    #[test]
    fn every_event_has_its_name_in_the_list() {
        let source = include_str!("words.rs");
        let names = source.split("fn slot_event").nth(1).and_then(|rest| rest.split("pub fn details").next());
        let named = |line: &'static str| line.split_once("=> \"").and_then(|(_, rest)| rest.split('"').next());
        let mut found: BTreeSet<&str> = names.expect("the functions").lines().filter_map(named).collect();
        // Codes of registers, facts and access.
        found.extend(["set", "deleted", "told", "refused", "sign-in-failed", "signed-in", "signed-out"]);
        assert_eq!(NAMES, found.into_iter().collect::<Vec<_>>());
    }
}
