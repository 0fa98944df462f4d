//! A slot: where it stands and why, its life, its runs and what it depends on.

use axum::Form;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use kelos::core::{Ask, DownstreamRequest};
use kelos::model::time::{format_full, format_short};
use kelos::model::workflow::WorkflowRow;
use kelos::model::{EventRecord, Slot, SlotRef, SlotState};
use kelos::schedule;
use kelos::store::{Reader, StoreError};
use kelos::why::Why;
use maud::{Markup, html};
use serde::Deserialize;

use super::neighbours::{self, Neighbour, Neighbours};
use super::page::{Page, segment, slot_href, workflow_href};
use super::runs::Tail;
use super::state::badge;
use super::trouble::Trouble;
use super::{asked, events, graph, runs, timeline, tree, words};
use crate::app::App;

/// Lines of a slot's life that are shown, the newest.
const LIFE_SHOWN: usize = 200;

/// What is asked about a slot.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// About this moment; about now where not given.
    at: Option<String>,
    /// With the output of this run; of the latest where not given.
    run: Option<u32>,
}

/// What a page tells of a slot.
struct Found {
    id: SlotRef,
    /// The moment that was asked about.
    at: Option<Timestamp>,
    why: Why,
    slot: Option<Slot>,
    workflow: WorkflowRow,
    life: Vec<EventRecord>,
    neighbours: Neighbours,
    earlier: Option<SlotRef>,
    later: Option<SlotRef>,
    tail: Option<Tail>,
    shown_run: Option<u32>,
}

pub(super) async fn show(
    Path((id, time)): Path<(String, String)>,
    wanted: Result<Query<Wanted>, QueryRejection>,
    State(app): State<App>,
) -> Result<Response, Trouble> {
    let (id, wanted) = (asked::slot(&id, &time)?, asked::query(wanted)?);
    let at = asked::filled(wanted.at).map(|at| asked::moment(&at)).transpose()?;
    let found = find(&app, id, at, wanted.run).await?;
    let title = format!("{}@{}", found.id.workflow, format_short(found.id.key.scheduled_at()));
    Ok(Page::new(&app, &title).style("pages.css").script("live.js").script("log.js").show(&found.page()))
}

async fn find(app: &App, id: SlotRef, at: Option<Timestamp>, run: Option<u32>) -> Result<Found, Trouble> {
    let why = kelos::why::why(app.handle(), &id, at).await?;
    let of = id.clone();
    let Some((workflow, slot, life, neighbours, earlier, later)) = app.read(move |reader| read(reader, &of)).await?
    else {
        return Err(Trouble::not_found(format!("No workflow has ever been named \"{}\".", id.workflow)));
    };
    let shown = why.runs.iter().find(|of| Some(of.id.number) == run).or(why.runs.last());
    let shown_run = shown.map(|run| run.id.number);
    let tail = match shown {
        Some(run) => Some(Tail::read(app, run).await),
        None => None,
    };
    Ok(Found { id, at, why, slot, workflow, life, neighbours, earlier, later, tail, shown_run })
}

type Rows = (WorkflowRow, Option<Slot>, Vec<EventRecord>, Neighbours, Option<SlotRef>, Option<SlotRef>);

fn read(reader: &dyn Reader, id: &SlotRef) -> Result<Option<Rows>, StoreError> {
    let Some(workflow) = reader.workflow(&id.workflow)? else { return Ok(None) };
    let (slot, life) = (reader.slot(id)?, reader.history(id)?);
    let neighbours = neighbours::of_slot(reader, &workflow, &id.key)?;
    let (mut earlier, mut later) = (None, None);
    if let Ok(schedule) = schedule::resolved(reader, &workflow)? {
        let there = |at: Option<Timestamp>| -> Result<Option<SlotRef>, StoreError> {
            let slot = at.map(|at| SlotRef::at(id.workflow.clone(), at));
            Ok(match slot {
                Some(slot) if reader.slot(&slot)?.is_some() => Some(slot),
                _ => None,
            })
        };
        let time = id.key.scheduled_at();
        (earlier, later) = (there(schedule.previous_before(time))?, there(schedule.next_after(time))?);
    }
    Ok(Some((workflow, slot, life, neighbours, earlier, later)))
}

impl Found {
    fn page(&self) -> Markup {
        html! {
            div data-events=(format!("?workflow={}", segment(self.id.workflow.as_str()))) hidden {}
            (self.heading())
            div #why data-live { (self.account()) }
            @if self.at.is_none() { div #actions data-live { (self.actions()) } }
            div #runs data-live { (self.runs()) }
            @if let Some(tail) = &self.tail { (tail.show()) }
            div #neighbours data-live { (self.around()) }
            div #life data-live { (self.life()) }
        }
    }

    fn heading(&self) -> Markup {
        let time = format_short(self.id.key.scheduled_at());
        html! {
            nav.crumbs aria-label="Place" {
                a href="/ui" { "Board" } " › " a href=(workflow_href(&self.id.workflow)) { (self.id.workflow) }
            }
            h1 { (self.id.workflow) "@" (time) }
            nav.bar aria-label="Slots of this workflow" {
                @if let Some(slot) = &self.earlier { a.button rel="prev" href=(slot_href(slot)) { "← " (short(slot)) } }
                @if let Some(slot) = &self.later { a.button rel="next" href=(slot_href(slot)) { (short(slot)) " →" } }
            }
        }
    }

    fn account(&self) -> Markup {
        let why = &self.why;
        html! {
            p.headline aria-live="polite" {
                @if let Some(state) = why.state { (badge(state)) " " }
                (why.headline)
            }
            @if let Some(at) = self.at {
                p.note { "This is how it was at " (words::moment(at)) ". " a href=(slot_href(&self.id)) { "See it now" } }
            }
            @if let Some(trigger) = &why.trigger {
                h2 { "Why" }
                (tree::answered(trigger))
                @if let Some(at) = why.found_at { p.soft { "as found at " (words::moment(at)) } }
            }
            @if self.says_more() {
                h2 { "In the way" }
                ul { @for blocker in &why.blockers { li { (blocker) } } }
            }
            @if self.at.is_none() && self.waits_for_slots() {
                p { a href=(graph::obstacles_href(&self.id)) { "What is in its way, however far upstream" } }
            }
            @if let Some(next) = why.next_look { p.soft { "It is looked at next at " (words::moment(next)) "." } }
        }
    }

    /// Whether something is in the way that the tree does not tell: a trigger of one leaf has said it.
    fn says_more(&self) -> bool {
        let blockers = &self.why.blockers;
        let said = self.why.trigger.as_ref().is_some_and(|trigger| *blockers == [trigger.text.clone()]);
        !blockers.is_empty() && !said
    }

    fn waits_for_slots(&self) -> bool {
        let waits = matches!(self.why.state, Some(SlotState::Waiting | SlotState::Held | SlotState::Expired));
        waits && !self.neighbours.upstream.is_empty()
    }

    fn actions(&self) -> Markup {
        let is_live = self.slot.as_ref().is_some_and(|slot| !slot.state.is_final());
        let has_run = self.slot.as_ref().is_some_and(|slot| slot.run_alive);
        let succeeded = self.slot.as_ref().is_none_or(|slot| slot.state == SlotState::Succeeded);
        let defined = self.workflow.present;
        html! {
            div.bar {
                @if !is_live && defined {
                    (self.action("rerun", "Rerun", if self.slot.is_some() { "Opens it again: its trigger is asked anew, then its job runs." }
                        else { "Opens it, although it was not planned." }, ""))
                }
                @if is_live { (self.action("kill", "Kill", "Ends it and its run. It can be rerun.", "danger")) }
                @if is_live { (self.action("skip", "Skip", "Passes over it and ends its run. It can be rerun.", "")) }
                @if !succeeded && !has_run {
                    (self.action("mark", "Mark as succeeded", "Nothing is run; what waits for its success may go.", ""))
                }
                (self.moment_form())
            }
        }
    }

    fn action(&self, path: &str, name: &str, what: &str, class: &str) -> Markup {
        html! {
            details.action {
                summary.button { (name) "…" }
                form method="post" action=(format!("{}/{path}", slot_href(&self.id))) {
                    p { (what) }
                    label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                    @if path == "rerun" && !self.neighbours.downstream.is_empty() {
                        p { label { input type="checkbox" name="downstream" value="1"; " with all slots that depend on it" } }
                    }
                    " " button.primary[class.is_empty()].danger[!class.is_empty()] { (name) }
                }
            }
        }
    }

    fn moment_form(&self) -> Markup {
        let first = self.life.first().map(|first| first.at);
        let Some(first) = first else { return html! {} };
        let local = |at: Timestamp| format_full(at)[..19].to_owned();
        html! {
            details.action {
                summary.button { "At an earlier moment…" }
                form method="get" action=(slot_href(&self.id)) {
                    p { "How it was, and why, read from the log." }
                    label { "Moment, in UTC " input type="datetime-local" step="1" name="at" required value=(local(first)); }
                    " " button { "Show" }
                }
            }
        }
    }

    fn runs(&self) -> Markup {
        html! {
            h2 { "Runs" }
            @if self.why.runs.is_empty() { p.soft { "None yet." } }
            @else { (runs::table(&self.id, &self.why.runs, self.shown_run)) }
            @if self.slot.is_some() {
                p { a href=(timeline::path_href(&self.id)) { "Critical path" } span.soft { ": what determined when it ended, or keeps it from ending" } }
            }
        }
    }

    fn around(&self) -> Markup {
        html! {
            div.columns {
                section { h2 { "Waits for" } (list(&self.neighbours.upstream, self.neighbours.more_upstream, "It waits for no other slot.")) }
                section { h2 { "Is waited for by" } (list(&self.neighbours.downstream, self.neighbours.more_downstream, "No other slot waits for it.")) }
            }
        }
    }

    fn life(&self) -> Markup {
        let at = self.at.unwrap_or(Timestamp::MAX);
        let life: Vec<_> = self.life.iter().filter(|record| record.at <= at).collect();
        let hidden = life.len().saturating_sub(LIFE_SHOWN);
        html! {
            h2 { "Its life" }
            @if life.is_empty() { p.soft { "Nothing has happened to it." } }
            @if hidden > 0 { p.soft { (hidden) " earlier events are left out." } }
            ol.life {
                @for (n, record) in life.iter().enumerate().skip(hidden) {
                    li {
                        a.when href=(format!("{}?at={}", slot_href(&self.id), segment(&format_full(record.at))))
                            title="see it at that moment" { (words::moment(record.at)) }
                        span.soft.after { (n.checked_sub(1).map(|before| after(life[before].at, record.at)).unwrap_or_default()) }
                        (events::what(record))
                    }
                }
            }
        }
    }
}

fn short(slot: &SlotRef) -> String {
    format_short(slot.key.scheduled_at())
}

fn after(before: Timestamp, now: Timestamp) -> String {
    let is_seen = now.as_millisecond().abs_diff(before.as_millisecond()) >= 100;
    if is_seen { format!("+{}", words::took(before, now)) } else { String::new() }
}

fn list(slots: &[Neighbour], more: usize, none: &str) -> Markup {
    html! {
        @if slots.is_empty() { p.soft { (none) } }
        ul.plain {
            @for slot in slots {
                li {
                    a href=(slot_href(&slot.id)) { (slot.id.workflow) "@" (short(&slot.id)) } " "
                    @match slot.state { Some(state) => (badge(state)), None => span.soft { "not there" } }
                }
            }
        }
        @if more > 0 { p.soft { "and " (more) " more" } }
    }
}

/// Why somebody acts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    reason: Option<String>,
    /// With all that depends on it; for a rerun.
    downstream: Option<String>,
}

/// Reruns, kills, skips or marks a slot, and leads back to it.
pub(super) async fn act(
    Path((id, time, action)): Path<(String, String, String)>,
    State(app): State<App>,
    headers: HeaderMap,
    because: Result<Form<Because>, FormRejection>,
) -> Result<Response, Trouble> {
    let (slot, because) = (asked::slot(&id, &time)?, asked::form(because)?);
    let reason = asked::filled(because.reason);
    let ask = match action.as_str() {
        "rerun" if because.downstream.is_some() => {
            let request = DownstreamRequest { slot: slot.clone(), reason, kill_live: false, dry_run: false };
            Ask::RerunDownstream(request)
        }
        "rerun" => Ask::Rerun { slot: slot.clone(), reason },
        "kill" => Ask::Kill { slot: slot.clone(), reason },
        "skip" => Ask::Skip { slot: slot.clone(), reason },
        "mark" => Ask::MarkSucceeded { slot: slot.clone(), reason },
        _ => return Err(Trouble::new(StatusCode::NOT_FOUND, format!("There is no action \"{action}\" on slots."))),
    };
    app.ask(&asked::who(&headers)?, ask).await?;
    Ok(asked::back_to(&slot_href(&slot)))
}

/// A slot's letter in a strip of many.
pub(super) fn square(slot: &SlotRef, state: SlotState) -> Markup {
    let look = super::state::look(state);
    let told = format!("{}: {}", short(slot), state.as_str());
    html! { a.square .(look.class) href=(slot_href(slot)) title=(told) aria-label=(told) { (look.letter) } }
}
