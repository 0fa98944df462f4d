//! The conditions that the live slots of a workflow wait for, all together.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_explain::why;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Answer, Reason, SlotState, Trigger, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoreError};
use maud::{Markup, html};

use super::page::workflow_href;
use super::state::badge;
use super::{time, words};

/// How many of the newest slots are checked for their reasons.
const ASKED: usize = 100;

/// A condition that slots wait for, whatever their time, and the workflow that has to succeed, if it is one.
type Wait = (String, Option<WorkflowId>);

/// How many slots in a state wait for the same.
type WaitCounts = BTreeMap<(SlotState, String, Option<WorkflowId>), usize>;

/// The conditions that the slots of a workflow wait for.
#[derive(Default)]
pub(super) struct Waits {
    reasons: WaitCounts,
    /// Whether there are more live slots than were checked.
    is_partial: bool,
}

/// Reads the reasons of the live slots of a workflow that do not run.
pub(super) fn read(reader: &dyn Queries, row: &WorkflowRow, now: Timestamp) -> Result<Waits, StoreError> {
    let states = SlotState::ALL.into_iter().filter(|state| !state.is_final() && *state != SlotState::Running).collect();
    let filter = SlotFilter { workflow: Some(row.id.clone()), states, ..SlotFilter::default() };
    let page = reader.slots(&filter, PageRequest::newest(ASKED))?;
    let mut reasons = WaitCounts::new();
    for slot in &page.rows {
        let state = slot.slot.state;
        let found = match state {
            SlotState::Backoff => vec![("its next try".to_owned(), None)],
            SlotState::Queued => vec![("its turn".to_owned(), None)],
            _ => asked(reader, row, slot, now)?,
        };
        for (told, workflow) in found {
            *reasons.entry((state, told, workflow)).or_default() += 1;
        }
    }
    Ok(Waits { reasons, is_partial: page.next.is_some() })
}

/// The conditions that a slot waits for by its trigger, or else the slot's own sentence.
fn asked(reader: &dyn Queries, row: &WorkflowRow, slot: &SlotRow, now: Timestamp) -> Result<Vec<Wait>, StoreError> {
    let why = why::read(reader, &slot.id, now, true, None)?;
    let open = why.trigger.as_ref().filter(|_| slot.slot.state == SlotState::Waiting);
    let mut found = Vec::new();
    open.into_iter().for_each(|open| in_the_way(&row.definition.trigger, open, &mut found));
    Ok(if found.is_empty() { vec![(why.blockers.join("; "), None)] } else { found })
}

/// The leaves that are not met, as the definition has them: so that slots of different times agree.
fn in_the_way(trigger: &Trigger, open: &Reason, found: &mut Vec<Wait>) {
    if open.answer != Answer::NotYet {
        return;
    }
    let nested = trigger.nested();
    // A definition that changed since the slot's evaluation may have another form.
    if nested.is_empty() || nested.len() != open.nested.len() || matches!(trigger, Trigger::Not { .. }) {
        let (said, workflow) = words::trigger(trigger);
        found.push((said, workflow.cloned()));
        return;
    }
    nested.iter().zip(&open.nested).for_each(|(trigger, open)| in_the_way(trigger, open, found));
}

impl Waits {
    /// The reasons, most slots first; nothing if no slot waits.
    pub(super) fn show(&self) -> Markup {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, slots)| std::cmp::Reverse(**slots));
        html! {
            @if !reasons.is_empty() {
                h2 { "What its slots wait for" }
                ul.plain {
                    @for ((state, told, workflow), slots) in reasons {
                        li {
                            b { (slots) } " " (badge(*state))
                            @if !told.is_empty() { " for " (time::in_text(told)) }
                            @if let Some(id) = workflow { " " a href=(workflow_href(id)) { (id) } }
                        }
                    }
                }
                @if self.is_partial { p.soft { "Of the newest " (ASKED) " that do not run yet." } }
            }
        }
    }
}
