//! The states of steps in words.

use kelos_model::flow::StepProgress;
use kelos_model::time::text;
use kelos_model::{Run, SlotState};

use super::ItemCounts;
use crate::flow_run::{FlowRun, Never, StepState, Wait};

/// Steps that a sentence names; of the others it has the number.
const NAMED: usize = 3;

/// `pay`, `pay and load`, `pay, load, check and 5 more`
pub(crate) fn listed<S: ToString>(names: &[S]) -> String {
    let mut named: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    match (names.len().saturating_sub(NAMED), named.pop()) {
        (0, None) => String::new(),
        (0, Some(last)) if named.is_empty() => last,
        (0, Some(last)) => format!("{} and {last}", named.join(", ")),
        (more, last) => {
            named.extend(last);
            format!("{} and {more} more", named.join(", "))
        }
    }
}

/// The state of a step in a sentence.
pub(super) fn step(flow: &FlowRun, at: usize, items: Option<&ItemCounts>, run: Option<&Run>) -> String {
    let Some(slot) = flow.slot_of(at) else { return unopened(flow, at) };
    let since = text::format_short(slot.since);
    if let Some(wait) = waiting(flow, at) {
        return wait;
    }
    let outcome = || run.and_then(|run| run.outcome.as_ref()).map(|outcome| format!(": {outcome}")).unwrap_or_default();
    let items = items.map(|items| format!(": {}", items_words(items))).unwrap_or_default();
    match slot.state {
        SlotState::Running => format!("runs since {since}{items}"),
        SlotState::Backoff => {
            let due = slot.due.map(|due| format!("; its retry is due at {}", text::format_short(due)));
            format!("failed at {since}{}{}", outcome(), due.unwrap_or_default())
        }
        SlotState::Failed => format!("failed at {since}{}", outcome()),
        SlotState::Expired => match flow.signal(at) {
            Some((signal, _)) => format!("expired at {since}: the signal {signal} did not come"),
            None => format!("expired at {since}"),
        },
        SlotState::Skipped | SlotState::Killed => format!("was {} at {since}", slot.state),
        state if state.is_final() => format!("{state} at {since}{items}"),
        state => format!("{state} since {since}"),
    }
}

/// The wait of an open step; none where it waits for no step and no signal.
pub(crate) fn waiting(flow: &FlowRun, at: usize) -> Option<String> {
    let since = flow.slot_of(at).map(|slot| text::format_short(slot.since)).unwrap_or_default();
    match flow.state(at) {
        StepState::Waits(Wait::Signal) => {
            let (signal, until) = flow.signal(at)?;
            let until = until.map(|until| format!(", until {}", text::format_short(until))).unwrap_or_default();
            Some(format!("waits for the signal {signal} since {since}{until}"))
        }
        StepState::Waits(Wait::Others) => {
            let others = listed(&names(flow.awaited(at).iter().map(|name| name.as_str())));
            Some(format!("waits since {since} for {others} to end, then handles the failure of {}", handled(flow, at)))
        }
        _ => None,
    }
}

/// The reason for which a step was not opened.
pub(crate) fn unopened(flow: &FlowRun, at: usize) -> String {
    if let Some(never) = flow.never(at) {
        return never_runs(flow, at, never);
    }
    let graph = flow.graph();
    if !graph.handles(at).is_empty() {
        let handled = listed(&names(graph.handles(at).iter().map(|other| flow.name(*other))));
        let fails = if graph.handles(at).len() == 1 { "fails" } else { "fail" };
        return format!("starts if {} {fails}", handled.replace(" and ", " or "));
    }
    let is_open = |other: &&usize| flow.progress(**other) != StepProgress::Succeeded;
    let needs = graph.needs(at).iter().filter(is_open).map(|other| flow.name(*other));
    match listed(&names(needs)) {
        needs if needs.is_empty() => "starts with its run".to_owned(),
        needs => format!("waits for {needs} to succeed"),
    }
}

fn never_runs(flow: &FlowRun, at: usize, never: Never) -> String {
    match never {
        Never::Needs { step, root } if step == root => {
            format!("never runs: it needs {}, which {}", flow.name(step), ended(flow, step))
        }
        Never::Needs { step, root } => {
            let (root_name, how) = (flow.name(root), ended(flow, root));
            format!("never runs: {root_name} {how}, and it needs {}, which comes after that", flow.name(step))
        }
        Never::NothingFailed => {
            let handled = flow.graph().handles(at).iter().map(|other| flow.name(*other));
            match names(handled).as_slice() {
                [one] => format!("never runs: it handles a failure of {one}, which did not fail"),
                handled => format!("never runs: none of {} failed", listed(handled)),
            }
        }
        Never::Over => "was not opened before its run ended".to_owned(),
        Never::NotInRun => {
            let only = flow.repeated().map(|step| step.short()).unwrap_or_default();
            format!("is no part of this run, which only does {only} again")
        }
    }
}

/// The end of a step without success.
fn ended(flow: &FlowRun, at: usize) -> &'static str {
    match flow.slot_of(at).map(|slot| slot.state) {
        Some(SlotState::Skipped) => "was skipped",
        Some(SlotState::Killed) => "was killed",
        Some(SlotState::Expired) => "expired",
        Some(_) => "failed",
        None => "never runs",
    }
}

/// The failed steps that a step handles.
fn handled(flow: &FlowRun, at: usize) -> String {
    let is_failed = |other: &&usize| flow.progress(**other) == StepProgress::Failed;
    listed(&names(flow.graph().handles(at).iter().filter(is_failed).map(|other| flow.name(*other))))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.collect()
}

/// `3 of 10 items have ended, 1 of them without success`
fn items_words(items: &ItemCounts) -> String {
    let sum = |is_counted: fn(SlotState) -> bool| -> u64 {
        items.counts.iter().filter(|(state, _)| is_counted(**state)).map(|(_, count)| count).sum()
    };
    let (ended, succeeded) = (sum(SlotState::is_final), sum(|state| state == SlotState::Succeeded));
    let bad = match ended - succeeded {
        0 => String::new(),
        bad => format!(", {bad} of them without success"),
    };
    let at_least = if items.is_partial { "at least " } else { "" };
    format!("{at_least}{ended} of {} items have ended{bad}", items.total)
}

/// The live steps of a run in words, at most a few: `pay waits for the signal approval; load runs since 12:00`.
pub(crate) fn live(flow: &FlowRun) -> Option<String> {
    let live: Vec<usize> = flow.live().collect();
    let mut said: Vec<String> =
        live.iter().take(NAMED).map(|at| format!("{} {}", flow.name(*at), is(flow, *at))).collect();
    let more = live.len().saturating_sub(NAMED);
    if more > 0 {
        said.push(format!("{more} more steps are live"));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn is(flow: &FlowRun, at: usize) -> String {
    let words = step(flow, at, None, None);
    match flow.slot_of(at).map(|slot| slot.state) {
        Some(SlotState::Queued | SlotState::Dispatched) => format!("is {words}"),
        Some(SlotState::Waiting) if waiting(flow, at).is_none() => format!("is {words}"),
        _ => words,
    }
}
