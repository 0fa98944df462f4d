//! The steps of a run that never run: what they need failed or was skipped, or what they handle did not fail.

use kelos_model::flow::{FlowGraph, StepProgress};

/// The reason for which a step never runs, unless the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    /// A step that it needs failed, was skipped, or never runs itself; and the first step because of which that is so.
    Needs {
        /// The step that it needs.
        step: usize,
        /// The step that failed or was skipped, or handles a failure that never came.
        root: usize,
    },
    /// None of the steps failed whose failure it handles.
    NothingFailed,
    /// The run has ended.
    Over,
    /// The run does another step again, and nothing else.
    NotInRun,
}

/// For each step whether and why it never runs, as the others stand.
pub(super) fn of(graph: &FlowGraph, states: &[StepProgress]) -> Vec<Option<Never>> {
    let mut found: Vec<Option<Never>> = vec![None; graph.len()];
    let state = |at: usize| states.get(at).copied().unwrap_or_default();
    let is_open = |at: usize| state(at) == StepProgress::Unopened;
    let mut next: Vec<usize> = (0..graph.len()).filter(|at| is_ended(state(*at))).collect();
    while let Some(at) = next.pop() {
        let never = found.get(at).copied().flatten();
        if never.is_some() || matches!(state(at), StepProgress::Failed | StepProgress::Skipped) {
            let root = if let Some(Never::Needs { root, .. }) = never { root } else { at };
            for feed in graph.feeds(at).iter().filter(|feed| is_open(**feed)) {
                note(&mut found, *feed, Never::Needs { step: at, root }, &mut next);
            }
        }
        for handler in graph.handlers(at).iter().filter(|handler| is_open(**handler)) {
            let can_fail = |other: &usize| match state(*other) {
                StepProgress::Unopened => found.get(*other).is_some_and(Option::is_none),
                other => matches!(other, StepProgress::Live | StepProgress::Failed),
            };
            if !graph.handles(*handler).iter().any(can_fail) {
                note(&mut found, *handler, Never::NothingFailed, &mut next);
            }
        }
    }
    found
}

fn is_ended(state: StepProgress) -> bool {
    matches!(state, StepProgress::Succeeded | StepProgress::Failed | StepProgress::Skipped)
}

fn note(found: &mut [Option<Never>], at: usize, never: Never, next: &mut Vec<usize>) {
    if let Some(known @ None) = found.get_mut(at) {
        *known = Some(never);
        next.push(at);
    }
}
