//! Consecutive similar events of one slot or workflow after the other: one line that can be expanded.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::{Event, EventRecord, WorkflowId};
use maud::{Markup, html};

use crate::page::workflow_href;
use crate::{events, time, words};

/// From this many on they are one line; fewer are listed.
const FOLDED: usize = 3;

/// Divides the log at each change of the text.
pub(super) fn groups(rows: &[EventRecord]) -> impl Iterator<Item = &[EventRecord]> {
    rows.chunk_by(are_alike)
}

/// Whether two lines differ in nothing but the time and the slot or workflow.
fn are_alike(one: &EventRecord, other: &EventRecord) -> bool {
    let of_one_kind = matches!(
        (&one.event, &other.event),
        (Event::Slot { .. }, Event::Slot { .. }) | (Event::Workflow { .. }, Event::Workflow { .. })
    );
    of_one_kind && events::told(one) == events::told(other)
}

/// The lines of a group, newest first: each for itself, or all in one.
pub(super) fn lines(group: &[EventRecord], now: Timestamp) -> Markup {
    match group {
        [newest, .., oldest] if group.len() >= FOLDED => folded(group, newest, oldest, now),
        few => html! { @for record in few { (line(record, now)) } },
    }
}

fn folded(group: &[EventRecord], newest: &EventRecord, oldest: &EventRecord, now: Timestamp) -> Markup {
    html! {
        li.alike {
            (when(newest, now))
            span.subject { (workflows(group)) }
            // Later ones are added in front: the oldest event identifies the group when the page is updated.
            details.what id={ "alike-" (oldest.seq) } {
                summary { (group.len()) " × " (events::said(newest)) }
                ol reversed { @for record in group { li { (when_and_whose(record, now)) } } }
            }
            (who(newest))
        }
    }
}

fn workflows(group: &[EventRecord]) -> Markup {
    let ids: BTreeSet<&WorkflowId> = group.iter().filter_map(workflow).collect();
    match ids.first() {
        Some(only) if ids.len() == 1 => html! { a href=(workflow_href(only)) { (only) } },
        _ => html! { (words::count(ids.len() as u64, "workflow")) },
    }
}

fn workflow(record: &EventRecord) -> Option<&WorkflowId> {
    match &record.event {
        Event::Slot { slot, .. } => Some(&slot.workflow),
        Event::Workflow { workflow, .. } => Some(workflow),
        _ => None,
    }
}

fn line(record: &EventRecord, now: Timestamp) -> Markup {
    html! { li { (when_and_whose(record, now)) (events::what(record)) (who(record)) } }
}

/// When it was.
fn when(record: &EventRecord, now: Timestamp) -> Markup {
    html! { span.when { (time::at(record.at)) } span.after.soft { (time::ago(record.at, now)) } }
}

fn when_and_whose(record: &EventRecord, now: Timestamp) -> Markup {
    html! {
        (when(record, now))
        span.subject { (events::subject(record)) }
    }
}

fn who(record: &EventRecord) -> Markup {
    html! { @if let Some(who) = events::by(record) { a.who href=(events::by_href(&who)) { (who) } } }
}

#[cfg(test)]
mod tests {
    use kelos_model::{SlotEvent, SlotRef};

    use super::*;

    /// A log, newest first: of which workflow, and which run succeeded; 0 is the end of the workflow.
    fn log(of: &[(&str, u32)]) -> Vec<EventRecord> {
        let event = |(workflow, run): &(&str, u32)| {
            let workflow = WorkflowId::new(workflow).unwrap();
            match *run {
                0 => Event::Workflow {
                    workflow,
                    what: kelos_model::event::WorkflowEvent::Removed { by: None, reason: None },
                },
                run => Event::Slot {
                    slot: SlotRef::at(workflow, jiff::Timestamp::UNIX_EPOCH),
                    what: SlotEvent::Succeeded { run },
                },
            }
        };
        let record =
            |(n, one)| EventRecord { seq: 9 - n, at: jiff::Timestamp::UNIX_EPOCH, previous: 0, event: event(one) };
        (0_u64..).zip(of).map(record).collect()
    }

    #[test]
    fn lines_that_say_the_same_go_together_whosever_they_are() {
        let rows = log(&[("a", 1), ("b", 1), ("b", 1), ("b", 2), ("a", 0), ("b", 0)]);
        let sizes: Vec<_> = groups(&rows).map(<[_]>::len).collect();
        assert_eq!(sizes, [3, 1, 2]);
    }

    #[test]
    fn three_of_them_are_folded_and_two_are_not() {
        let rows = log(&[("a", 1), ("b", 1), ("b", 1)]);
        let told = lines(&rows, jiff::Timestamp::UNIX_EPOCH).into_string();
        assert!(told.contains("3 × ") && told.contains("2 workflows") && told.contains("id=\"alike-7\""), "{told}");
        let told = lines(&rows[1..], jiff::Timestamp::UNIX_EPOCH).into_string();
        assert!(!told.contains("×") && told.matches("<li>").count() == 2, "{told}");
    }
}
