//! A backfill: how far it is, when it will be done, what failed, its slots, and what can be done to it.

use axum::Form;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use kelos_core::{CancelBackfill, PauseBackfill, PrioritiseBackfill, RerunBackfill, ResumeBackfill};
use kelos_explain::backfill::{Cause, Estimate, FailedSlot, Progress, progress, slots_of};
use kelos_front::App;
use kelos_front::backfill::causes_of;
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::Caller;
use kelos_model::{BackfillId, SlotState};
use kelos_store::{Page as Rows, PageRequest, Queries, SlotFilter, SlotRow, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::{bar, done_when, href, legend, mode_words, standing};
use crate::page::{Page, Tab, segment, slot_href, workflow_href};
use crate::state::badge;
use crate::viewer;
use crate::{asked, strip, time, words};

/// Failed slots that are named of each cause; the others unfold.
const NAMED: usize = 6;
/// Slots of a page.
const SHOWN: usize = 300;
/// Pages of the store that are read for one of ours: those of a state may lie far apart.
const READ: usize = 25;

/// The slots to show.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotsQuery {
    /// Only those in this state.
    state: Option<SlotState>,
    /// From here on, as an earlier page had it.
    from: Option<String>,
}

struct BackfillPage {
    far: Progress,
    /// The causes of its failures.
    causes: Vec<Cause>,
    slots: Rows<SlotRow>,
    wanted: SlotsQuery,
    is_defined: bool,
    now: Timestamp,
}

fn name(id: &str) -> Result<BackfillId, Fault> {
    BackfillId::new(id).map_err(|error| plain::bad_request(format!("{error}.")))
}

pub(super) async fn show(
    Path(id): Path<String>,
    query: Result<Query<SlotsQuery>, QueryRejection>,
    app: App,
) -> Result<Response, Fault> {
    let (id, wanted, now) = (name(&id)?, asked::query(query)?, app.handle().now());
    let of = id.clone();
    let found = app.read(move |reader| read(reader, &of, wanted, now)).await?;
    let mut found = found.ok_or_else(|| plain::not_found(format!("No backfill is named \"{id}\".")))?;
    found.causes = causes_of(&app, &found.far.backfill).await?;
    let title = format!("Backfill {id}");
    let page = Page::new(&app, &title).at(Tab::Backfills).style("pages.css").script("live.js");
    Ok(page.show(&found.page()))
}

fn read(
    reader: &dyn Queries,
    id: &BackfillId,
    wanted: SlotsQuery,
    now: Timestamp,
) -> Result<Option<BackfillPage>, StoreError> {
    let Some(row) = reader.backfill(id)? else { return Ok(None) };
    let filter = SlotFilter { states: wanted.state.into_iter().collect(), ..slots_of(&row) };
    let slots = read_slots(reader, &filter, wanted.from.clone())?;
    let is_defined = reader.workflow(&row.workflow)?.is_some_and(|workflow| workflow.present);
    let far = progress(reader, row, now)?;
    Ok(Some(BackfillPage { far, causes: Vec::new(), slots, wanted, is_defined, now }))
}

/// A page of slots that is not empty, unless it is the last or the next match is too far away.
fn read_slots(reader: &dyn Queries, filter: &SlotFilter, from: Option<String>) -> Result<Rows<SlotRow>, StoreError> {
    let mut page = Rows { rows: Vec::new(), next: from };
    for _ in 0..READ {
        page = reader.slots(filter, PageRequest::newest(SHOWN).after(page.next.as_deref()))?;
        if !page.rows.is_empty() || page.next.is_none() {
            break;
        }
    }
    Ok(page)
}

impl BackfillPage {
    fn page(&self) -> Markup {
        let one = &self.far.backfill;
        html! {
            div data-events="" data-every="30" hidden {}
            nav.crumbs aria-label="Breadcrumb" { a href="/ui/backfills" { "Backfills" } " › " a href=(workflow_href(&one.workflow)) { (one.workflow) } }
            h1 { "Backfill " (one.id) }
            div #progress data-live { (self.progress()) }
            div #actions data-live { (self.actions()) }
            div #failures data-live { (self.failures()) }
            div #slots data-live { (self.slots()) }
            div #facts data-live { h2 { "What was asked for" } (self.facts()) }
        }
    }

    fn progress(&self) -> Markup {
        let far = &self.far;
        html! {
            p.headline aria-live="polite" {
                (standing(far)) " " (far.ended()) " of " (words::count(u64::from(far.backfill.slots), "slot")) " ended, "
                (done_when(&far.estimate, self.now)) "."
            }
            @if !far.counts.is_empty() { (bar(far)) p.bar { (legend(far)) } }
            @if let Estimate::At(_, basis) = &far.estimate { p.soft { "Estimated " (basis) "." } }
            @if let Some(pause) = &far.backfill.paused {
                p.note { "Paused by " (pause.by) " at " (time::at(pause.at)) ": live runs continue, nothing else is evaluated or started." }
            }
            @if let Some(at) = far.backfill.cancelled_at { p.note { "Cancelled at " (time::at(at)) ": what had no run was killed." } }
            (self.others())
        }
    }

    /// Slots that it requested and that something else requested since.
    fn others(&self) -> Markup {
        let own: u64 = self.far.counts.values().sum();
        let others = u64::from(self.far.backfill.slots).saturating_sub(own);
        html! {
            @if others > 0 {
                p.soft { (words::count(others, "slot")) " of it " @if others == 1 { "was" } @else { "were" } " rerun by hand, or adopted by a later backfill." }
            }
        }
    }

    fn actions(&self) -> Markup {
        let (far, one) = (&self.far, &self.far.backfill);
        let is_live = far.left > 0;
        html! {
            @if one.cancelled_at.is_none() && self.is_defined {
                div.bar {
                    @if one.paused.is_some() {
                        (self.action("resume", "Resume", "It continues where it stopped.", "", html! {}))
                    } @else if is_live {
                        (self.action("pause", "Pause", "Live runs continue; nothing else is evaluated or started until it is resumed.", "", html! {}))
                    }
                    @if is_live { (self.action("prioritise", "Priority", "Larger runs first, below 0 after current work. Live runs continue.", "", self.priority())) }
                    @if far.failures() > 0 {
                        @let name = format!("Rerun {}", words::count(far.failures(), "failure"));
                        (self.action("rerun", &name, "Reruns failed and expired slots; they stay in this backfill.", "", html! {}))
                    }
                    @if is_live { (self.action("cancel", "Cancel", "Kills every slot without a run. Live runs continue. A cancelled backfill can't be resumed.", "danger", html! {})) }
                }
            }
        }
    }

    fn priority(&self) -> Markup {
        html! {
            p { label { "Priority " input.short type="number" name="priority" value=(self.far.backfill.priority) required min="-1000000" max="1000000"; } }
        }
    }

    fn action(&self, path: &str, name: &str, what: &str, class: &str, more: Markup) -> Markup {
        html! {
            details.action {
                summary.button { (name) "…" }
                form method="post" action=(format!("{}/{path}", href(&self.far.backfill.id))) { (viewer::proof())
                    p { (what) }
                    (more)
                    label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                    " " button.primary[class.is_empty()].danger[!class.is_empty()] { (name) }
                }
            }
        }
    }

    fn failures(&self) -> Markup {
        let (total, read) = (self.far.failures(), self.causes.iter().map(|cause| cause.slots.len() as u64).sum());
        html! {
            @if !self.causes.is_empty() {
                h2 { "What failed" }
                div.wide { table {
                    thead { tr { th { "Slots" } th { "Why" } th { "Which" } } }
                    tbody { @for cause in &self.causes { (of_cause(cause)) } }
                } }
                @if total > read {
                    p.soft {
                        "These are the latest " (read) " of " (total) "; all that "
                        a href=(self.slots_href(Some(SlotState::Failed), None)) { "failed" } " or "
                        a href=(self.slots_href(Some(SlotState::Expired), None)) { "expired" } "."
                    }
                }
            }
        }
    }

    fn slots(&self) -> Markup {
        html! {
            h2 { "Slots" }
            nav.bar aria-label="States of slots" {
                (self.state_link(None, html! { "all" }))
                @for (state, slots) in self.far.counts.iter().filter(|(_, slots)| **slots > 0) {
                    (self.state_link(Some(*state), html! { (badge(*state)) " " (slots) }))
                }
            }
            @match (self.slots.rows.first(), self.slots.rows.last()) {
                (Some(newest), Some(oldest)) => {
                    p.soft { (time::key(&oldest.id.key)) " to " (time::key(&newest.id.key)) ", newest first" }
                    (strip::strip(&self.slots.rows))
                }
                _ => p.soft { "None here." },
            }
            nav.bar aria-label="Pages of slots" {
                @if self.wanted.from.is_some() { a.button href=(self.slots_href(self.wanted.state, None)) { "Newest times" } }
                @if let Some(next) = &self.slots.next { a.button rel="next" href=(self.slots_href(self.wanted.state, Some(next))) { "Earlier times" } }
            }
        }
    }

    fn state_link(&self, state: Option<SlotState>, words: Markup) -> Markup {
        html! { a href=(self.slots_href(state, None)) aria-current=[(self.wanted.state == state).then_some("true")] { (words) } }
    }

    fn slots_href(&self, state: Option<SlotState>, from: Option<&str>) -> String {
        let state = state.map(|state| format!("state={state}"));
        let from = from.map(|from| format!("from={}", segment(from)));
        let query: Vec<String> = [state, from].into_iter().flatten().collect();
        format!("{}?{}#slots", href(&self.far.backfill.id), query.join("&"))
    }

    fn facts(&self) -> Markup {
        let one = &self.far.backfill;
        html! {
            dl.facts {
                dt { "Workflow" } dd { a href=(workflow_href(&one.workflow)) { (one.workflow) } }
                dt { "Times" } dd { (time::at(one.range.start)) " to before " (time::at(one.range.end)) }
                dt { "Opens" } dd { (mode_words(one.mode)) }
                dt { "Priority" } dd { (one.priority) }
                dt { "Asked for by" } dd { (one.by) ", " (time::at(one.created_at)) }
                @if let Some(reason) = &one.reason { dt { "Why" } dd { (reason) } }
                @if let Some(at) = one.resumed_at { dt { "Resumed" } dd { (time::at(at)) } }
            }
        }
    }
}

/// The row of a cause: how many slots it has, their outcome and last line, and the slots.
fn of_cause(cause: &Cause) -> Markup {
    let Some(first) = cause.slots.first() else { return Markup::default() };
    let (named, others) = cause.slots.split_at(NAMED.min(cause.slots.len()));
    html! { tr {
        td { (cause.slots.len()) " " (badge(first.state)) }
        td { (time::in_text(&first.reason)) @if let Some(line) = &first.last_line { br; code { (line) } } }
        td {
            (links(named))
            @if !others.is_empty() { details { summary { "and " (others.len()) " more" } (links(others)) } }
        }
    } }
}

/// Links to failed slots.
fn links(failed: &[FailedSlot]) -> Markup {
    html! {
        @for (index, slot) in failed.iter().enumerate() {
            @if index > 0 { ", " }
            a href=(slot_href(&slot.slot)) title={ "since " (words::moment(slot.since)) } { (words::key(&slot.slot.key)) }
        }
    }
}

/// A form of actions on a backfill.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionForm {
    reason: Option<String>,
    /// For a change of priority.
    priority: Option<i32>,
}

/// Pauses, resumes, prioritises, reruns or cancels a backfill, and leads back to it.
pub(super) async fn act(
    Path((id, action)): Path<(String, String)>,
    app: App,
    Caller(who): Caller,
    sent: Result<Form<ActionForm>, FormRejection>,
) -> Result<Response, Fault> {
    let (backfill, sent) = (name(&id)?, asked::form(sent)?);
    let (back, reason) = (href(&backfill), asked::filled(sent.reason));
    match action.as_str() {
        "pause" => app.ask(&who, PauseBackfill { backfill, reason }).await?,
        "resume" => app.ask(&who, ResumeBackfill { backfill, reason }).await?,
        "rerun" => drop(app.ask(&who, RerunBackfill { backfill, reason }).await?),
        "cancel" => app.ask(&who, CancelBackfill { backfill, reason }).await?,
        "prioritise" => {
            let priority = sent.priority.ok_or_else(|| plain::bad_request("A priority is a number."))?;
            app.ask(&who, PrioritiseBackfill { backfill, priority, reason }).await?;
        }
        _ => return Err(plain::of(StatusCode::NOT_FOUND, format!("There is no action \"{action}\" on backfills."))),
    }
    Ok(asked::back_to(&back))
}
