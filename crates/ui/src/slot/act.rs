//! Actions on a slot, and the preview of a rerun with everything downstream.

use std::collections::BTreeMap;

use axum::Form;
use axum::extract::Path;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::Response;
use kelos_core::{DownstreamOutcome, DownstreamRequest, Kill, MarkSuccess, Rerun, Skip};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::Caller;
use kelos_model::{Actor, Arguments, SlotRef, SlotState};
use maud::{Markup, html};
use serde::Deserialize;

use super::{SlotPage, list};
use crate::flow::Fields;
use crate::neighbours::Neighbour;
use crate::page::{Page, slot_href, workflow_href};
use crate::viewer;
use crate::{arguments, asked, time, words};

/// Slots of each kind that a preview names.
const NAMED: usize = 200;

/// The forms by which a slot is acted on.
pub(super) fn forms(found: &SlotPage) -> Markup {
    let is_live = found.slot.as_ref().is_some_and(|slot| !slot.state.is_final());
    let has_run = found.slot.as_ref().is_some_and(|slot| slot.run_alive);
    let succeeded = found.slot.as_ref().is_none_or(|slot| slot.state == SlotState::Succeeded);
    let opens = if found.flow.is_some() {
        "Does all of it again, with the present definition."
    } else if found.slot.is_some() {
        "Reopens it: its trigger is evaluated again, then its job runs."
    } else {
        "Opens it, although it was not planned."
    };
    let served = found.why.runs.last().and_then(|run| run.batch).filter(|_| has_run).map_or(1, |batch| batch.slots);
    let (kill, skip) = match served {
        1 => (
            "Kills it and its run. It can be rerun.".to_owned(),
            "Skips it and kills its run. It can be rerun.".to_owned(),
        ),
        all => (
            format!("Kills its run, which serves {all} slots, and all of these. They can be rerun."),
            format!("Skips all {all} slots that its run serves, and kills the run. They can be rerun."),
        ),
    };
    html! {
        @if let Some(flow) = &found.flow { (flow.actions()) }
        @if !is_live && !found.is_step() && found.workflow.present { (form(found, "rerun", "Rerun", opens, "")) }
        @if is_live { (form(found, "kill", "Kill", &kill, "danger")) }
        @if is_live && found.is_of_flow() && !found.is_step() && !found.workflow.paused { (pause(found)) }
        @if is_live { (form(found, "skip", "Skip", &skip, "")) }
        // Nothing comes of a step whose run has ended: it is resumed instead.
        @if !succeeded && !has_run && (is_live || !found.is_step()) {
            (form(found, "mark", "Mark as succeeded", "Nothing is run; downstream slots can start.", ""))
        }
    }
}

/// The button that pauses the workflow of a run.
fn pause(found: &SlotPage) -> Markup {
    html! {
        details.action {
            summary.button { "Pause…" }
            form method="post" action=(format!("{}/pause", workflow_href(&found.id.workflow))) { (viewer::proof())
                p { "Pauses the workflow, with all of its runs: nothing of it is planned, evaluated or started until it is resumed." }
                label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                " " button.primary { "Pause " (found.id.workflow) }
            }
        }
    }
}

fn form(found: &SlotPage, path: &str, name: &str, what: &str, class: &str) -> Markup {
    html! {
        details.action {
            summary.button { (name) "…" }
            form method="post" action=(format!("{}/{path}", slot_href(&found.id))) { (viewer::proof())
                p { (what) }
                label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                @if path == "rerun" { (self::fields(found)) }
                @if path == "rerun" && !found.neighbours.downstream.is_empty() {
                    p { label { input type="checkbox" name="downstream" value="1"; " with all downstream slots: you see them first" } }
                }
                " " button.primary[class.is_empty()].danger[!class.is_empty()] { (name) }
            }
        }
    }
}

/// The fields of the arguments of a rerun: what stays empty stays as it is.
fn fields(found: &SlotPage) -> Markup {
    let definition = &found.workflow.definition;
    let collected = found.slot.as_ref().and_then(|slot| slot.collected.as_deref());
    let present = kelos_model::arguments::arguments(definition, collected, &found.id.key);
    html! {
        details {
            summary { "Other arguments" }
            (arguments::fields(&definition.parameters, &present, false))
        }
    }
}

/// The reason in a form.
#[derive(Deserialize)]
pub(crate) struct Because {
    reason: Option<String>,
    /// With all that depends on it; for a rerun.
    downstream: Option<String>,
    /// Whether what that touches has been seen.
    seen: Option<String>,
    /// Whether runs that go on are killed for it.
    kill: Option<String>,
    /// Arguments of a rerun, one `name=value` in each line.
    arguments: Option<String>,
    /// The signal for a run of a flow.
    signal: Option<String>,
    payload: Option<String>,
    /// The step from which a run of a flow is resumed.
    from: Option<String>,
    /// The name of a run that does a step again.
    name: Option<String>,
    /// Fields of parameters, for a rerun.
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

/// Reruns, kills, skips or marks a slot, and leads back to it.
pub(crate) async fn act(
    Path((id, time, action)): Path<(String, String, String)>,
    app: App,
    Caller(who): Caller,
    because: Result<Form<Because>, FormRejection>,
) -> Result<Response, Fault> {
    let (slot, because) = (asked::slot(&app, &id, &time).await?, asked::form(because)?);
    let reason = asked::filled(because.reason);
    let arguments = arguments::read(because.others, because.arguments.as_deref())?;
    let of_flow = Fields { signal: because.signal, payload: because.payload, from: because.from, name: because.name };
    match action.as_str() {
        "signal" => app.ask(&who, of_flow.signal(slot.clone(), reason)?).await?,
        "repeat" => {
            let fired = app.ask(&who, of_flow.repeat(slot, arguments, reason)?).await?;
            return Ok(asked::back_to(&slot_href(&fired.slot)));
        }
        "resume" => app.ask(&who, of_flow.resume(&slot, reason)?).await?,
        "rerun" if because.downstream.is_some() && because.seen.is_none() => {
            return preview(&app, &who, slot, reason.as_deref(), &arguments).await;
        }
        "rerun" if because.downstream.is_some() => {
            let kill_live = because.kill.is_some();
            let request = DownstreamRequest { slot: slot.clone(), arguments, reason, kill_live, dry_run: false };
            drop(app.ask(&who, request).await?);
        }
        "rerun" => app.ask(&who, Rerun { slot: slot.clone(), arguments, reason }).await?,
        "kill" => app.ask(&who, Kill { slot: slot.clone(), reason }).await?,
        "skip" => app.ask(&who, Skip { slot: slot.clone(), reason }).await?,
        "mark" => app.ask(&who, MarkSuccess { slot: slot.clone(), reason }).await?,
        _ => return Err(plain::of(StatusCode::NOT_FOUND, format!("There is no action \"{action}\" on slots."))),
    }
    Ok(asked::back_to(&slot_href(&slot)))
}

/// The slots that a rerun with everything downstream would touch.
struct RerunPreview {
    slot: SlotRef,
    opened: Vec<Neighbour>,
    killed: Vec<Neighbour>,
    more_opened: usize,
    more_killed: usize,
    untouched: u32,
}

/// Shows a preview of a rerun with all downstream slots.
async fn preview(
    app: &App,
    who: &Actor,
    slot: SlotRef,
    reason: Option<&str>,
    arguments: &Arguments,
) -> Result<Response, Fault> {
    // With `kill_live` nothing is in the way, so that all is named.
    let (slot_of, arguments_of) = (slot.clone(), arguments.clone());
    let request =
        DownstreamRequest { slot: slot_of, arguments: arguments_of, reason: None, kill_live: true, dry_run: true };
    let DownstreamOutcome { created, reopened, killed, untouched } = app.ask(who, request).await?;
    let opened: Vec<SlotRef> = created.into_iter().chain(reopened).collect();
    let touched = app.read(move |reader| {
        let with_states = |slots: &[SlotRef]| -> Result<Vec<Neighbour>, kelos_store::StoreError> {
            let shown = slots.iter().take(NAMED);
            shown.map(|id| Ok(Neighbour { state: reader.slot(id)?.map(|slot| slot.state), id: id.clone() })).collect()
        };
        Ok(RerunPreview {
            slot,
            more_opened: opened.len().saturating_sub(NAMED),
            more_killed: killed.len().saturating_sub(NAMED),
            opened: with_states(&opened)?,
            killed: with_states(&killed)?,
            untouched,
        })
    });
    Ok(Page::new(app, "Rerun").style("pages.css").show(&touched.await?.page(reason, arguments)))
}

impl RerunPreview {
    fn page(&self, reason: Option<&str>, arguments: &Arguments) -> Markup {
        let (opened, killed) = (self.opened.len() + self.more_opened, self.killed.len() + self.more_killed);
        html! {
            nav.crumbs aria-label="Breadcrumb" {
                a href="/ui" { "Board" } " › " a href=(workflow_href(&self.slot.workflow)) { (self.slot.workflow) }
                " › " a href=(slot_href(&self.slot)) { (time::key(&self.slot.key)) }
            }
            h1 { "Rerun of " (self.slot.short()) " with everything downstream" }
            p.headline {
                "It would reopen " (words::count(opened as u64, "slot"))
                @if killed > 0 { ", and " (words::count(killed as u64, "run")) " would block it" }
                @if self.untouched > 0 { "; " (self.untouched) " wait already" }
                "."
            }
            h2 { "Would be reopened" }
            (list(&self.opened, self.more_opened, "None."))
            @if killed > 0 {
                h2 { "Have live runs" }
                (list(&self.killed, self.more_killed, "None."))
            }
            form.bar method="post" action=(format!("{}/rerun", slot_href(&self.slot))) { (viewer::proof())
                input type="hidden" name="downstream" value="1";
                input type="hidden" name="seen" value="1";
                @if let Some(reason) = reason { input type="hidden" name="reason" value=(reason); }
                (arguments::hidden(arguments))
                @if killed > 0 { label { input type="checkbox" name="kill" value="1" required; " kill these runs first" } }
                button.primary { "Rerun " (words::count((opened + killed) as u64, "slot")) }
                a.button href=(slot_href(&self.slot)) { "Back" }
            }
        }
    }
}
