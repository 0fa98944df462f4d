//! Unrepaired failures as pages show them: a section that lists them, and a line that leads there.

use jiff::Timestamp;
use kelos_explain::failures::{self, Failure, FailureAccount, Failures};
use kelos_model::SlotState;
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};

use super::page::slot_href;
use super::state::badge;
use super::{time, words};

/// Failures that are listed.
const LISTED: usize = 50;
/// Followers that are named of each.
const NAMED: usize = 5;

/// The address of the section.
pub(super) const HREF: &str = "/ui/problems#failures";

/// All failures, and the reasons for those that are listed.
pub(super) struct FailureSection {
    found: Failures,
    accounts: Vec<FailureAccount>,
    now: Timestamp,
}

/// Reads all failures.
pub(super) fn section(reader: &dyn Queries, now: Timestamp) -> Result<FailureSection, StoreError> {
    let found = failures::find(reader, now)?;
    let listed = found.rows.iter().take(LISTED);
    let accounts = listed.map(|row| row.account(reader, now)).collect::<Result<_, _>>()?;
    Ok(FailureSection { found, accounts, now })
}

impl FailureSection {
    pub(super) fn is_empty(&self) -> bool {
        self.found.rows.is_empty()
    }

    /// The section; nothing if there are none.
    pub(super) fn show(&self) -> Markup {
        let total = self.found.rows.len();
        html! {
            @if !self.is_empty() {
                h2 #failures { "Failures" }
                p { (words::count(total as u64, "slot")) " failed or expired and " (if total == 1 { "was" } else { "were" }) " neither rerun, marked nor skipped since." }
                @for (row, account) in self.found.rows.iter().zip(&self.accounts) { (failure(row, account, self.now)) }
                @if total > LISTED { p.soft { "and " (total - LISTED) " more" } }
                @if self.found.is_partial { p.note { "There are more than were read." } }
            }
        }
    }
}

fn failure(row: &Failure, account: &FailureAccount, now: Timestamp) -> Markup {
    let href = slot_href(&row.slot);
    let outcome = account.outcome.as_ref().filter(|_| row.state == SlotState::Failed);
    html! {
        article.problem data-failure=(row.slot.short()) {
            p {
                (badge(row.state)) " " a href=(href) { (row.slot.short()) } " "
                span.soft { (time::ago(row.since, now)) }
            }
            p { (time::in_text(outcome.unwrap_or(&account.reason))) }
            @if !row.followers.is_empty() {
                p.soft { (waiting(row.followers.len())) ":" }
                ul.plain.inline {
                    @for one in row.followers.iter().take(NAMED) {
                        li { (badge(one.state)) " " a href=(slot_href(&one.slot)) { (one.slot.short()) } }
                    }
                    @if row.followers.len() > NAMED { li.soft { "and " (row.followers.len() - NAMED) " more" } }
                }
            }
            p {
                // A run of a flow has no output of its own, and is resumed where it failed.
                a.button href=(format!("{}#log", slot_href(account.step.as_ref().unwrap_or(&row.slot)))) { "Output" } " "
                a.button.changes href=(format!("{href}#actions")) { @if account.step.is_some() { "Resume…" } @else { "Rerun…" } }
            }
        }
    }
}

/// `1 slot waits for it`, `3 slots wait for it`.
pub(super) fn waiting(followers: usize) -> String {
    let verb = if followers == 1 { "waits" } else { "wait" };
    format!("{} {verb} for it", words::count(followers as u64, "slot"))
}

/// A line with the number of failures, which leads to them; nothing if there are none.
pub(super) fn line(found: &Failures) -> Markup {
    html! {
        @if !found.rows.is_empty() {
            p.note data-failures=(found.rows.len()) {
                a href=(HREF) { (words::count(found.rows.len() as u64, "unrepaired failure")) }
                @if found.is_partial { " at least" }
            }
        }
    }
}
