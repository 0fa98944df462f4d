//! Reasons in words: the one place where sentences are made of findings, for the core's tests and for every door but Celos's
//! own. Nothing may be decided, stored or compared over time by what comes of it. It is on the ground floor because the
//! documents of the scheduler's tests are as much its readers as `kelos why`, the pages and the API are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::finding::Topic;
use super::{Answer, Blockage, Finding, Reason, ReasonKind};
use crate::id::WorkflowId;
use crate::jobs::nameless;
use crate::probe::{Probe, Verdict, plain};
use crate::time::text::{format_full, format_short};

/// The sentence of a reason itself, without those that are nested.
#[must_use]
pub fn text(reason: &Reason) -> String {
    match reason.finding.topic() {
        Topic::Trigger => of_trigger(reason),
        Topic::Facts => of_facts(&reason.finding),
        Topic::Jobs => of_job(reason),
        Topic::Constraints => of_constraint(reason),
        Topic::Log => of_log(&reason.finding),
    }
}

fn of_trigger(reason: &Reason) -> String {
    let is_met = reason.answer == Answer::Met;
    match &reason.finding {
        Finding::Always => "Always ready".to_owned(),
        Finding::AllOf if is_met => "All nested triggers are ready".to_owned(),
        Finding::AllOf => "Not all nested triggers are ready".to_owned(),
        Finding::AnyOf if is_met => "One or more nested triggers are ready".to_owned(),
        Finding::AnyOf => "None of the nested triggers are ready".to_owned(),
        Finding::NoneOf => negation(reason).to_owned(),
        Finding::Offset { seconds } => {
            format!("Nested trigger offset by {seconds} seconds {}", if is_met { "ready" } else { "not ready" })
        }
        Finding::OffsetBeyondTime { seconds } => format!("Time ends before an offset of {seconds} seconds"),
        Finding::DelayUntil { until, .. } if is_met => format!("Ready since {}", format_full(*until)),
        Finding::DelayUntil { until, .. } => format!("Delayed until {}", format_full(*until)),
        Finding::DelayBeyondTime { seconds } => format!("Time ends before a delay of {seconds} seconds"),
        Finding::NoDay => "A job id without a day has no time".to_owned(),
        Finding::UpstreamAsked { slot } | Finding::UpstreamMissing { slot } | Finding::UpstreamIs { slot, .. } => {
            format!("Workflow slot {} {}", slot.short(), if is_met { "is ready" } else { "is not ready" })
        }
        Finding::PeriodsCounted { workflow, succeeded, total, .. } => {
            periods(workflow, *succeeded, *total, &reason.nested)
        }
        Finding::NoPeriods { workflow } => format!("{workflow} has no schedule, so that its slots have no periods"),
        Finding::EmptyJobId { workflow } => format!("No job of {workflow} has an empty id"),
        Finding::ProbeAsked { probe } => asked(&reason.kind, probe),
        Finding::ProbeAnswered { probe, verdict, detail, .. } => answered(&reason.kind, probe, *verdict, detail),
        Finding::FiredByHand => "Fired by hand".to_owned(),
        Finding::MetBefore => "Its trigger was met before".to_owned(),
        other => of_log(other),
    }
}

fn of_facts(finding: &Finding) -> String {
    match finding {
        Finding::PartitionsCounted { dataset, have, want } => format!("{have} of {want} partitions of {dataset}"),
        Finding::RunAwaited { program, states } => {
            let states: Vec<_> = states.iter().map(|state| state.as_str()).collect();
            format!("No run of {program} has {} yet", states.join(" or "))
        }
        Finding::RunEnded { program, state, run: Some(run) } => format!("{program} {state} ({run})"),
        Finding::RunEnded { program, state, run: None } => format!("{program} {state}"),
        Finding::TimeAwaited { cron } => format!("{cron} has not come yet"),
        Finding::TimeFired { cron, time } => format!("{cron} fired for {}", format_short(*time)),
        Finding::SignalAwaited { name } => format!("signal {name} has not come yet"),
        Finding::SignalGiven { name } => format!("signal {name}"),
        other => of_log(other),
    }
}

fn of_job(reason: &Reason) -> String {
    let is_met = reason.answer == Answer::Met;
    match &reason.finding {
        Finding::ParentsAndTrigger => "Its parents and its trigger".to_owned(),
        Finding::NoParents => "it has no parents".to_owned(),
        Finding::ParentsSucceeded => "its parents have succeeded".to_owned(),
        Finding::ParentsAwaited { group: None } => "it waits for its parents".to_owned(),
        Finding::ParentsAwaited { group: Some(group) } => format!("it waits for its parents of group {group}"),
        Finding::ParentsBlocked { by } => format!("it is blocked: {}", blockage(*by)),
        Finding::ParentsAsked => "its workflow's functions are asked what it waits for".to_owned(),
        Finding::ParentsUnknown { message } => format!("what it waits for can't be asked: {message}"),
        Finding::ParentGroup { group, parents, blocked } => parent_group(group.as_deref(), *parents, *blocked, is_met),
        Finding::GroupProgress { group, succeeded, total } => {
            let name = group.as_ref().map(|group| format!("group {group}: ")).unwrap_or_default();
            format!("{name}{succeeded} of {total} have succeeded")
        }
        Finding::ParentMissing { slot } => format!("{} was never opened", slot.short()),
        Finding::ParentIs { slot, state, .. } if state.is_final() => format!("{} {state}", slot.short()),
        Finding::ParentIs { slot, paused: true, .. } => {
            format!("{} has not succeeded yet (its workflow is paused)", slot.short())
        }
        Finding::ParentIs { slot, .. } | Finding::ParentAsked { slot } => {
            format!("{} has not succeeded yet", slot.short())
        }
        Finding::ParentsUnnamed { workflow, count, why, .. } => {
            format!("it waits for {}", nameless(workflow, *count, why))
        }
        Finding::DefinitionsAwaited => {
            "its run succeeded; what waits for it is known once the definitions have been read".to_owned()
        }
        Finding::ChildrenAsked => "its run succeeded; its workflow's functions are asked what waits for it".to_owned(),
        Finding::ChildrenUnknown { message } => {
            format!("its run succeeded; what waits for it can't be asked: {message}")
        }
        Finding::NotListed { values } => format!("the job is not valid: {}", listed(values)),
        other => of_log(other),
    }
}

fn of_constraint(reason: &Reason) -> String {
    match &reason.finding {
        Finding::Constraints => constraints(reason.answer).to_owned(),
        Finding::RunsCounted { program, active, limit } => runs(program, *active, *limit),
        Finding::NotBefore { until, .. } => format!("It must wait until {}", format_short(*until)),
        Finding::WindowOpen { window } => format!("The window {window} is open"),
        Finding::WindowClosed { window, opens_at, .. } => {
            let when = opens_at.map_or_else(|| "never".to_owned(), |at| format!("at {}", format_short(at)));
            format!("The window {window} is closed, and opens {when}")
        }
        Finding::NoLastRun { program } => format!("No run of {program} has succeeded yet"),
        Finding::LastRun { program, started_at, over, until, .. } => {
            let (started, next) = (format_short(*started_at), format_short(*until));
            let run = last_run(program, *over);
            format!("{run} was started at {started}, the next may start at {next}")
        }
        other => of_log(other),
    }
}

/// The sentence that a log holds, or one made of the code.
fn of_log(finding: &Finding) -> String {
    match finding {
        Finding::Text { text, .. } => text.clone(),
        Finding::Asked => "It is being asked".to_owned(),
        Finding::Unknown(unknown) => unknown.to_string(),
        other => other.code().replace('-', " "),
    }
}

/// The leaves that are not met, each as a sentence.
#[must_use]
pub fn blockers(reason: &Reason) -> Vec<String> {
    let own = || text(reason);
    match (reason.answer, &reason.kind) {
        (Answer::Met, _) => Vec::new(),
        (_, ReasonKind::Not) if reason.is_uncertain() => reason.nested.iter().flat_map(blockers).collect(),
        (_, ReasonKind::Not) => vec![reason.nested.first().map_or_else(own, unwanted)],
        (_, ReasonKind::Covers) => vec![own()],
        _ if reason.nested.is_empty() => vec![own()],
        _ => reason.nested.iter().flat_map(blockers).collect(),
    }
}

/// The sentence of a reason that holds and must not.
#[must_use]
pub fn unwanted(reason: &Reason) -> String {
    format!("{} (must not be so)", text(reason))
}

fn negation(reason: &Reason) -> &'static str {
    let is_nested_met = reason.nested.iter().any(|nested| nested.answer == Answer::Met);
    match (reason.answer == Answer::Met, is_nested_met) {
        (true, _) => "Ready, nested trigger isn't ready",
        (false, true) => "Not ready, nested trigger is ready",
        (false, false) => "Not ready, nested trigger is not known",
    }
}

/// `Waits for 3 of 24 periods of hourly: 2026-03-29T01:00Z (failed), …`
fn periods(workflow: &WorkflowId, succeeded: u64, total: u64, nested: &[Reason]) -> String {
    let open = total.saturating_sub(succeeded);
    if open == 0 {
        return match total {
            0 => format!("No period of {workflow} is to be waited for"),
            1 => format!("The period of {workflow} has succeeded"),
            _ => format!("All {total} periods of {workflow} have succeeded"),
        };
    }
    let named = nested.iter().filter_map(|one| {
        let (slot, state) = match &one.finding {
            Finding::UpstreamIs { slot, state } => (slot, state.as_str()),
            Finding::UpstreamMissing { slot } => (slot, "not there yet"),
            Finding::UpstreamAsked { slot } => (slot, "being asked for"),
            _ => return None,
        };
        Some(format!("{} ({state})", slot.key.time().map_or_else(|| slot.key.to_string(), format_short)))
    });
    let mut named: Vec<String> = named.collect();
    match open.saturating_sub(named.len() as u64) {
        0 => {}
        more => named.push(format!("{more} more")),
    }
    format!("Waits for {open} of {total} periods of {workflow}: {}", named.join(", "))
}

/// The subject of a probe: `HDFS path hdfs://n/in`, `File /in (at least 3 files)`, `Function of a.js`.
fn subject(kind: &ReasonKind, probe: &Probe) -> String {
    let (uri, conditions) = match probe {
        Probe::Function { function, .. } => return format!("Function of {}", function.file),
        Probe::Path { uri, conditions } => (uri, conditions),
    };
    let path = match kind {
        ReasonKind::HdfsPath if uri.starts_with("file:///") => format!("HDFS path file://{}", plain(uri)),
        ReasonKind::HdfsPath => format!("HDFS path {uri}"),
        ReasonKind::LocalPath => format!("File {}", plain(uri)),
        _ => format!("Path {uri}"),
    };
    if conditions.is_empty() { path } else { format!("{path} ({conditions})") }
}

fn asked(kind: &ReasonKind, probe: &Probe) -> String {
    match kind {
        ReasonKind::Valid => "its workflow is asked whether the job is valid".to_owned(),
        kind => format!("{} is not ready", subject(kind, probe)),
    }
}

fn answered(kind: &ReasonKind, probe: &Probe, verdict: Verdict, detail: &str) -> String {
    if *kind == ReasonKind::Valid {
        return match verdict {
            Verdict::Yes => "the job is valid: the function of its workflow says so".to_owned(),
            Verdict::No | Verdict::Never => "the job is not valid: the function of its workflow says so".to_owned(),
            Verdict::Failed => format!("whether the job is valid can't be asked: {detail}"),
        };
    }
    let subject = subject(kind, probe);
    match verdict {
        Verdict::Yes => format!("{subject} is ready"),
        Verdict::No if detail.is_empty() => format!("{subject} is not ready"),
        Verdict::No => format!("{subject} is not ready: {detail}"),
        Verdict::Never => format!("{subject} will never be ready"),
        Verdict::Failed => format!("{subject} can't be checked: {detail}"),
    }
}

fn parent_group(group: Option<&str>, parents: u64, blocked: bool, is_met: bool) -> String {
    let parents = if parents == 1 { "1 parent".to_owned() } else { format!("{parents} parents") };
    let succeeded = if is_met { "succeeded" } else { "must succeed" };
    match (group, blocked) {
        (None, _) => format!("{parents} {succeeded}"),
        (Some(group), false) => format!("group {group}: {parents} {succeeded}"),
        (Some(group), true) => format!("group {group} is blocked: {parents} {succeeded}"),
    }
}

fn blockage(by: Blockage) -> &'static str {
    match by {
        Blockage::Unnamed => "it waits for jobs that can't be named",
        Blockage::EndedOrUnnamed => "parents ended without success, or can't be named",
        Blockage::Ended => "parents ended without success",
    }
}

/// `expected n to be one of 1, 2`
fn listed(values: &BTreeMap<Arc<str>, Vec<Arc<str>>>) -> String {
    let lists = values.iter().map(|(name, values)| format!("{name} to be one of {}", values.join(", ")));
    let lists: Vec<String> = lists.collect();
    if lists.is_empty() { "nothing is".to_owned() } else { format!("expected {}", lists.join(", or ")) }
}

fn constraints(answer: Answer) -> &'static str {
    match answer {
        Answer::Met => "All constraints are met",
        Answer::NotYet => "Its constraints are not met yet",
        Answer::Never => "A constraint aborts it",
    }
}

fn runs(program: &WorkflowId, active: u32, limit: u32) -> String {
    let going = match active {
        0 => format!("No run of {program} is live"),
        1 => format!("1 run of {program} is live"),
        more => format!("{more} runs of {program} are live"),
    };
    if limit == 1 { format!("{going}, the limit is 1") } else { format!("{going}, the limit is {limit}") }
}

fn last_run(program: &WorkflowId, over: bool) -> String {
    if over { format!("The last successful run of {program}") } else { format!("The live run of {program}") }
}
