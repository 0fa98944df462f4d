//! Triggers, constraints and facts in a few words.

use std::collections::BTreeSet;

use kelos_explain::schedules::share;
use kelos_model::time::text::span;
use kelos_model::{Answer, Constraint, Gate, Occurrence, Otherwise, Reason, SlotRef, Trigger, WorkflowId};
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};

use crate::page::{slot_href, workflow_href};

/// A constraint: what must hold, and what happens otherwise.
pub(super) fn constraint(constraint: &Constraint) -> String {
    let millis = |millis: u64| match millis % 1000 {
        0 => span(i64::try_from(millis / 1000).unwrap_or(i64::MAX)),
        _ => format!("{millis} ms"),
    };
    let gate = match &constraint.gate {
        Gate::Concurrency(1) => "one run of its program at a time".to_owned(),
        Gate::Concurrency(limit) => format!("no more than {limit} runs of its program at a time"),
        Gate::Delay(delay) => format!("not before {} have passed", millis(*delay)),
        Gate::Window(window) => format!("only within {window}"),
        Gate::SinceLastRun(gap) => format!("not within {} of the last successful run", millis(*gap)),
    };
    match constraint.otherwise {
        Otherwise::Wait => format!("{gate}; otherwise it waits"),
        Otherwise::Abort => format!("{gate}; otherwise it is aborted"),
    }
}

/// The constraints of a workflow, one below the other.
pub(crate) fn constraints(constraints: &[Constraint]) -> Markup {
    html! { ul.plain { @for one in constraints { li { code { (one) } ": " (constraint(one)) } } } }
}

/// How much of a trigger's facts is collected, as a bar.
pub(super) fn bar(trigger: &Trigger, pending: &kelos_explain::schedules::overview::PendingSlot) -> Markup {
    let share = match pending.explanation.as_ref().map(|said| said.answer) {
        Some(Answer::Met) => 1.0,
        _ => share(trigger, pending.collected.as_deref()),
    };
    let told = format!("{:.0} % of what its trigger waits for", (share * 100.0).floor());
    html! { progress.collected value=(format!("{share:.3}")) max="1" aria-label=(told) title=(told) {} }
}

/// Workflows that exist or existed, and have a page: facts may name others.
pub(super) type WorkflowPages = BTreeSet<WorkflowId>;

/// Those of the workflows that there are or were about which something happened.
pub(super) fn known<'a>(
    reader: &dyn Queries,
    happened: impl Iterator<Item = &'a Occurrence>,
) -> Result<WorkflowPages, StoreError> {
    let mut named = BTreeSet::new();
    for what in happened {
        let Occurrence::Ended { program, run, .. } = what else { continue };
        named.insert(program.clone());
        named.extend(run.as_deref().and_then(slot_of).map(|slot| slot.workflow));
    }
    let mut known = WorkflowPages::new();
    for id in named {
        if reader.workflow(&id)?.is_some() {
            known.insert(id);
        }
    }
    Ok(known)
}

/// An occurrence in words, with a link to its subject if that has a page.
pub(super) fn occurrence(what: &Occurrence, known: &WorkflowPages) -> Markup {
    let Occurrence::Ended { program, state, run, .. } = what else { return html! { (what) } };
    let slot_of = |run: &str| slot_of(run).filter(|slot| known.contains(&slot.workflow));
    html! {
        "a run of "
        @if known.contains(program) { a href=(workflow_href(program)) { (program) } } @else { (program) }
        " " (state)
        @match run.as_deref().map(|run| (run, slot_of(run))) {
            Some((run, Some(slot))) => { " (" a href=(slot_href(&slot)) { (run) } ")" }
            Some((run, None)) => { " (" (run) ")" }
            None => {}
        }
    }
}

/// The slot of a run, if it is one of ours: `p@2016-01-01T12:00Z#1`.
fn slot_of(run: &str) -> Option<SlotRef> {
    let (workflow, key) = run.rsplit_once('#')?.0.rsplit_once('@')?;
    let time = kelos_model::time::parse_instant(key).ok()?;
    Some(SlotRef::at(WorkflowId::new(workflow).ok()?, time))
}

/// Every constraint with its finding.
pub(crate) fn gates(seen: &Reason) -> Markup {
    html! {
        @for one in &seen.nested { (crate::tree::answered(one)) }
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::time::Window;
    use kelos_model::time::Zone;

    use super::*;

    #[test]
    fn constraints_say_what_happens_otherwise() {
        let window = Gate::Window(Window::new("22:00", "06:00", Zone::utc()).unwrap());
        let gates = [Gate::Concurrency(1), Gate::Delay(90_000), window, Gate::SinceLastRun(21_600_000)];
        let told = gates.map(|gate| constraint(&Constraint::new(gate)));
        let expected = [
            "one run of its program at a time; otherwise it is aborted",
            "not before 1 min 30 s have passed; otherwise it waits",
            "only within 22:00-06:00 UTC; otherwise it waits",
            "not within 6 h of the last successful run; otherwise it is aborted",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn runs_lead_to_their_slots() {
        let found = slot_of("p@2016-01-01T12:00:00.001Z#2").unwrap();
        assert_eq!(found.short(), "p@2016-01-01T12:00:00.001Z");
        assert_eq!(slot_of("run-8734"), None);
    }
}
