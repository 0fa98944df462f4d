//! Requesting a backfill: a form, a preview slot by slot, and the request.

use axum::Form;
use axum::extract::Query;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kelos_core::{LARGEST_BACKFILL, SlotList};
use kelos_front::App;
use kelos_front::backfill::{NewBackfill, make};
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::Caller;
use kelos_front::zone;
use kelos_model::arguments::text;
use kelos_model::backfill::BackfillMode;
use kelos_model::ranges::Range;
use kelos_model::time::{Zone, format_full};
use kelos_model::workflow::{VersionChoice, VersionError};
use kelos_model::{Arguments, BackfillId, WorkflowId};
use kelos_wire::BackfillRequest;
use maud::{Markup, html};
use serde::Deserialize;

use super::{href, mode_name, mode_words};
use crate::page::{Page, Tab, segment, slot_href, workflow_href};
use crate::viewer;
use crate::{arguments, asked, time, words};

/// The default start of a backfill before now.
const USUAL: SignedDuration = SignedDuration::from_hours(24);
/// Slots of a kind that a page of a preview shows.
const SHOWN: usize = 1000;
/// The usual priority: after current work.
const USUAL_PRIORITY: i32 = -1;

/// A backfill in a form; missing fields are still to be filled in.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackfillForm {
    workflow: Option<String>,
    from: Option<String>,
    to: Option<String>,
    mode: Option<BackfillMode>,
    made_by: Option<String>,
    priority: Option<i32>,
    name: Option<String>,
    reason: Option<String>,
    /// Arguments, one `name=value` in each line.
    arguments: Option<String>,
    /// The page of each kind of slots that a preview shows, from 0.
    page: Option<usize>,
}

/// The same, filled in.
struct BackfillSpec {
    workflow: WorkflowId,
    range: Range,
    /// The zone in which its times were read.
    zone: Zone,
    mode: BackfillMode,
    made_by: Option<VersionChoice>,
    priority: i32,
    name: Option<BackfillId>,
    reason: Option<String>,
    arguments: Arguments,
}

impl BackfillForm {
    /// The zone of the chosen workflow, in which times of the form are read; none while none is chosen.
    async fn zone(&self, app: &App) -> Result<Option<Zone>, Fault> {
        match asked::filled(self.workflow.clone()) {
            Some(workflow) => Ok(Some(zone::of_workflow(app, &asked::workflow(&workflow)?).await?)),
            None => Ok(None),
        }
    }

    /// None while workflow or times are not filled in.
    fn wanted(&self, zone: Option<&Zone>) -> Result<Option<BackfillSpec>, Fault> {
        let parts = [&self.workflow, &self.from, &self.to].map(|text| asked::filled(text.clone()));
        let [Some(workflow), Some(from), Some(to)] = parts else { return Ok(None) };
        let zone = zone.cloned().unwrap_or_default();
        let name = asked::filled(self.name.clone()).map(|name| BackfillId::new(&name)).transpose();
        let made_by = asked::filled(self.made_by.clone()).map(|version| version.parse()).transpose();
        Ok(Some(BackfillSpec {
            workflow: asked::workflow(&workflow)?,
            range: Range::new(asked::moment(&from, &zone)?, asked::moment(&to, &zone)?),
            zone,
            mode: self.mode.unwrap_or_default(),
            made_by: made_by.map_err(|error: VersionError| plain::bad_request(format!("{error}.")))?,
            priority: self.priority.unwrap_or(USUAL_PRIORITY),
            name: name.map_err(|error| plain::bad_request(format!("{error}.")))?,
            reason: asked::filled(self.reason.clone()),
            arguments: arguments::read_lines(self.arguments.as_deref().unwrap_or_default())?,
        }))
    }
}

impl BackfillSpec {
    fn request(&self) -> BackfillRequest {
        let request = BackfillRequest::new(self.workflow.clone(), self.range, self.mode.into(), self.priority);
        let (made_by, name, reason) = (self.made_by.clone(), self.name.clone(), self.reason.clone());
        BackfillRequest { made_by, name, reason, arguments: self.arguments.clone(), ..request }
    }

    /// The fields of a form with the same request.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("workflow", self.workflow.to_string()),
            ("from", format_full(self.range.start)),
            ("to", format_full(self.range.end)),
            ("mode", mode_name(self.mode).to_owned()),
            ("priority", self.priority.to_string()),
        ];
        fields.extend(self.made_by.as_ref().map(|version| ("made_by", version.to_string())));
        fields.extend(self.name.as_ref().map(|name| ("name", name.to_string())));
        fields.extend(self.reason.as_ref().map(|reason| ("reason", reason.clone())));
        let lines: Vec<String> = self.arguments.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
        fields.extend((!lines.is_empty()).then(|| ("arguments", lines.join("\n"))));
        fields
    }

    fn href(&self, page: usize) -> String {
        let query: Vec<String> =
            self.fields().iter().map(|(name, value)| format!("{name}={}", segment(value))).collect();
        format!("/ui/new-backfill?{}&page={page}", query.join("&"))
    }
}

/// Shows the form, or the preview.
pub(super) async fn show(
    query: Result<Query<BackfillForm>, QueryRejection>,
    app: App,
    Caller(who): Caller,
) -> Result<Response, Fault> {
    let asked = asked::query(query)?;
    let page = Page::new(&app, "New backfill").at(Tab::Backfills).style("pages.css");
    let zone = asked.zone(&app).await?;
    let Some(wanted) = asked.wanted(zone.as_ref())? else {
        let names = app.read(|reader| reader.workflows(None)).await?;
        let names: Vec<WorkflowId> = names.into_iter().filter(|row| row.present).map(|row| row.id).collect();
        return Ok(page.show(&empty(&asked, &names, zone.as_ref(), app.handle().now())));
    };
    let opened = make(&app, &who, BackfillRequest { dry_run: true, ..wanted.request() }).await?;
    Ok(page.show(&preview(&wanted, &opened, asked.page.unwrap_or(0))))
}

/// Makes the backfill of the preview, and redirects to it.
pub(super) async fn create(
    app: App,
    Caller(who): Caller,
    asked: Result<Form<BackfillForm>, FormRejection>,
) -> Result<Response, Fault> {
    let asked = asked::form(asked)?;
    let zone = asked.zone(&app).await?;
    let wanted =
        asked.wanted(zone.as_ref())?.ok_or_else(|| plain::bad_request("A backfill needs a workflow, from and to."))?;
    let made = make(&app, &who, wanted.request()).await?;
    Ok(asked::back_to(&href(&made.id)))
}

/// The form for a workflow, with the usual values.
pub(crate) fn form(id: &WorkflowId, zone: &Zone, now: Timestamp) -> Markup {
    let workflow = html! { input type="hidden" name="workflow" value=(id); };
    fields(&BackfillForm::default(), &workflow, Some(zone), now)
}

/// The form with the choice of a workflow.
fn empty(asked: &BackfillForm, names: &[WorkflowId], zone: Option<&Zone>, now: Timestamp) -> Markup {
    let workflow = html! {
        label { "Workflow " input name="workflow" list="workflows" required autocomplete="off" value=[asked.workflow.as_ref()]; }
        datalist #workflows { @for name in names { option value=(name) {} } }
    };
    html! {
        nav.crumbs aria-label="Breadcrumb" { a href="/ui/backfills" { "Backfills" } }
        h1 { "New backfill" }
        @if names.is_empty() { p.note { "There is no workflow yet." } }
        (fields(asked, &workflow, zone, now))
    }
}

/// The fields beside the workflow. While none is chosen the zone of its times is not known.
fn fields(asked: &BackfillForm, workflow: &Markup, zone: Option<&Zone>, now: Timestamp) -> Markup {
    let utc = Zone::utc();
    let told = zone.map_or("in the time zone of the workflow", Zone::name);
    let local = |at| local(at, zone.unwrap_or(&utc));
    let from = asked.from.clone().unwrap_or_else(|| local(now.checked_sub(USUAL).unwrap_or(now)));
    let modes = [BackfillMode::Missing, BackfillMode::Unsuccessful, BackfillMode::All];
    html! {
        form.bar method="get" action="/ui/new-backfill" {
            (workflow)
            label { "From " input type="datetime-local" name="from" required value=(from); }
            label { "before " input type="datetime-local" name="to" required value=(local(now)); " " (told) }
            label { "open " select name="mode" {
                @for mode in modes { option value=(mode_name(mode)) { (mode_words(mode)) } }
            } }
            label { "why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
            details {
                summary { "More…" }
                p { label { "Only what a version made " input.short name="made_by" maxlength="100" placeholder="1.4, or #3" autocomplete="off"; } }
                p { label { "Priority " input.short type="number" name="priority" value=(USUAL_PRIORITY) required min="-1000000" max="1000000"; } }
                p { label { "Name " input name="name" maxlength="200" placeholder="made of workflow and times" autocomplete="off"; } }
                (arguments::lines(asked.arguments.as_deref().unwrap_or_default()))
            }
            button { "Preview" }
        }
        p.soft {
            "You see a preview before anything is opened. A priority below 0 runs after current work. One backfill opens at most "
            (LARGEST_BACKFILL) " slots one by one, and none of the future; what waits for nothing but time and other slots has no such limit."
        }
    }
}

/// A moment as an input has it, to the minute.
fn local(at: Timestamp, zone: &Zone) -> String {
    at.to_zoned(zone.rules().clone()).strftime("%Y-%m-%dT%H:%M").to_string()
}

fn preview(wanted: &BackfillSpec, opened: &NewBackfill, page: usize) -> Markup {
    let kinds = [
        ("would be planned: they do not exist yet", &opened.created),
        ("would be reopened: they have ended", &opened.reopened),
        ("would be adopted: they are live, and would run sooner", &opened.adopted),
    ];
    let touched: u64 = kinds.iter().map(|(_, slots)| slots.count).sum();
    let longest = kinds.iter().map(|(_, slots)| slots.first.len()).max().unwrap_or(0);
    let pages = longest.div_ceil(SHOWN);
    html! {
        nav.crumbs aria-label="Breadcrumb" { a href="/ui/backfills" { "Backfills" } " › " a href=(workflow_href(&wanted.workflow)) { (wanted.workflow) } }
        h1 { "Backfill of " (wanted.workflow) }
        p.headline { "It would affect " (words::count(touched, "slot")) ", and leave " (opened.untouched) " unchanged." }
        p.soft {
            (ends(wanted)) ", "
            @if let Some(version) = &wanted.made_by { "done slots that version " (version) " made" } @else { (mode_words(wanted.mode)) }
            ", priority " (wanted.priority) @if let Some(reason) = &wanted.reason { ", because: " (reason) }
        }
        div.bar {
            @if touched > 0 {
                form method="post" action="/ui/new-backfill" { (viewer::proof())
                    @for (name, value) in wanted.fields() { input type="hidden" name=(name) value=(value); }
                    button.primary { "Backfill " (words::count(touched, "slot")) }
                }
            }
            a.button href=(format!("/ui/new-backfill?workflow={}", segment(wanted.workflow.as_str()))) { "Ask for something else" }
        }
        @for (what, slots) in kinds { (kind(what, slots, page)) }
        @if pages > 1 {
            nav.bar aria-label="Pages of the preview" {
                @if page > 0 { a.button rel="prev" href=(wanted.href(page - 1)) { "Earlier times" } }
                span.soft { "page " (page + 1) " of " (pages) ", with up to " (SHOWN) " slots of each kind" }
                @if page + 1 < pages { a.button rel="next" href=(wanted.href(page + 1)) { "Later times" } }
            }
        }
    }
}

/// From when to when it is: as people see times, and in the zone of the workflow where that is another one.
fn ends(wanted: &BackfillSpec) -> Markup {
    let (zone, Range { start, end }) = (&wanted.zone, wanted.range);
    let local = |at| local(at, zone).replace('T', " ");
    html! {
        (time::at(start)) " to before " (time::at(end))
        @if *zone != viewer::current().zone { " (" (local(start)) " to before " (local(end)) " in " (zone) ")" }
    }
}

/// The slots of a kind, each with a link if it exists.
fn kind(what: &str, slots: &SlotList, page: usize) -> Markup {
    let shown = slots.first.iter().skip(page.saturating_mul(SHOWN)).take(SHOWN);
    html! {
        @if slots.count > 0 {
            h2 { (slots.count) " " (what) @if slots.count > slots.first.len() as u64 { "; the first " (slots.first.len()) " are listed" } }
            ul.plain.inline.scrolls tabindex="0" aria-label=(what) {
                @for slot in shown { li { a href=(slot_href(slot)) { (time::key(&slot.key)) } } }
            }
        }
    }
}
