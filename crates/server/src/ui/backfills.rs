//! Backfills of a workflow: asking for one with a preview, and how the latest ones are.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kelos::model::ranges::Range;
use kelos::model::time::format_full;
use kelos::model::workflow::{Backfill, BackfillMode};
use kelos::model::{BackfillId, WorkflowId};
use kelos::store::{Reader, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::page::{Page, segment, workflow_href};
use super::trouble::Trouble;
use super::{asked, words};
use crate::api::backfills::{Made, Request, Touched, end, make, progress};
use crate::app::App;

/// Backfills of a workflow that are shown, the newest.
const SHOWN: usize = 5;
/// How far back a backfill goes where nobody says otherwise.
const USUAL: SignedDuration = SignedDuration::from_hours(24);

/// A backfill as a form asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    from: String,
    to: String,
    mode: BackfillMode,
    priority: i32,
    /// `preview` or `create`.
    what: String,
}

/// The form, filled in with what is most often wanted.
pub(super) fn form(id: &WorkflowId, now: Timestamp) -> Markup {
    let from = now.checked_sub(USUAL).unwrap_or(now);
    html! {
        form.bar method="post" action=(format!("{}/backfill", workflow_href(id))) {
            label { "From " input type="datetime-local" name="from" required value=(local(from)); }
            label { "before " input type="datetime-local" name="to" required value=(local(now)); " UTC" }
            label { "open " select name="mode" {
                option value="missing" { "only slots that are missing" }
                option value="unsuccessful" { "also those that ended without success" }
                option value="all" { "all of them again" }
            } }
            label { "priority " input.short type="number" name="priority" value="-1" required min="-1000000" max="1000000"; }
            button name="what" value="preview" { "Preview" }
        }
        p.soft { "Nothing is opened before you have seen what would be. A priority below 0 goes after current work." }
    }
}

/// A moment as an input has it, to the minute.
fn local(at: Timestamp) -> String {
    format_full(at)[..16].to_owned()
}

/// Shows what a backfill would do, or makes it.
pub(super) async fn ask(
    Path(id): Path<String>,
    State(app): State<App>,
    headers: HeaderMap,
    asked: Result<Form<Asked>, FormRejection>,
) -> Result<Response, Trouble> {
    let (id, asked, who) = (asked::workflow(&id)?, asked::form(asked)?, asked::who(&headers)?);
    let range = Range::new(asked::moment(&asked.from)?, asked::moment(&asked.to)?);
    let is_preview = asked.what != "create";
    let request = Request::new(id.clone(), range, asked.mode, asked.priority, is_preview);
    let made = make(&app, &who, request).await?;
    if !is_preview {
        return Ok(asked::back_to(&format!("{}#backfills", workflow_href(&id))));
    }
    Ok(Page::new(&app, "Backfill").style("pages.css").show(&preview(&id, &asked, &made)))
}

fn preview(id: &WorkflowId, asked: &Asked, made: &Made) -> Markup {
    let touched = made.created.count + made.reopened.count + made.adopted.count;
    html! {
        nav.crumbs aria-label="Place" { a href="/ui" { "Board" } " › " a href=(workflow_href(id)) { (id) } }
        h1 { "Backfill of " (id) }
        p.headline { "It would touch " (words::count(touched as u64, "slot")) ", and leave " (made.untouched) " as they are." }
        (times("would be planned: they do not exist yet", &made.created))
        (times("would be opened again: they have ended", &made.reopened))
        (times("would be taken over: they are live", &made.adopted))
        div.bar {
            @if touched > 0 {
                form method="post" action=(format!("{}/backfill", workflow_href(id))) {
                    @for (name, value) in fields(asked) { input type="hidden" name=(name) value=(value); }
                    button.primary name="what" value="create" { "Backfill " (words::count(touched as u64, "slot")) }
                }
            }
            a.button href=(format!("{}#backfill", workflow_href(id))) { "Back" }
        }
    }
}

fn fields(asked: &Asked) -> [(&'static str, String); 4] {
    let mode = match asked.mode {
        BackfillMode::Missing => "missing",
        BackfillMode::Unsuccessful => "unsuccessful",
        BackfillMode::All => "all",
    };
    [
        ("from", asked.from.clone()),
        ("to", asked.to.clone()),
        ("mode", mode.to_owned()),
        ("priority", asked.priority.to_string()),
    ]
}

fn times(what: &str, touched: &Touched) -> Markup {
    html! {
        @if touched.count > 0 {
            details open[touched.count <= 48] {
                summary { b { (touched.count) } " " (what) }
                ul.plain.inline { @for time in &touched.times { li { (words::moment(time.0)) } } }
                @if touched.count > touched.times.len() { p.soft { "and " (touched.count - touched.times.len()) " more" } }
            }
        }
    }
}

/// The latest backfills of a workflow and how far they are.
pub(super) fn latest(reader: &dyn Reader, id: &WorkflowId) -> Result<Markup, StoreError> {
    let mut all: Vec<Backfill> = reader.backfills()?.into_iter().filter(|one| one.workflow == *id).collect();
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let rows: Vec<Markup> = all.into_iter().map(|one| row(reader, one)).collect::<Result<_, _>>()?;
    Ok(html! {
        @if !rows.is_empty() {
            div.wide { table {
                thead { tr { th { "Backfill" } th { "Times" } th { "Who" } th { "Ended" } th {} } }
                tbody { @for row in &rows { (row) } }
            } }
            @if more > 0 { p.soft { "and " (more) " earlier ones" } }
        }
    })
}

fn row(reader: &dyn Reader, one: Backfill) -> Result<Markup, StoreError> {
    let far = progress(reader, one.clone())?;
    let is_over = far.ended >= far.total;
    Ok(html! {
        tr {
            td { (one.id) }
            td { (words::moment(one.range.start)) " to " (words::moment(one.range.end)) }
            td { (one.by) ", " (words::moment(one.created_at)) }
            td { progress max=(far.total.max(1)) value=(far.ended) {} " " (far.ended) " of " (far.total) }
            td {
                @if one.cancelled_at.is_some() { "cancelled" } @else if !is_over {
                    form method="post" action=(format!("/ui/backfills/{}/cancel", segment(one.id.as_str()))) {
                        button aria-label=(format!("Cancel backfill {}", one.id)) { "Cancel" }
                    }
                }
            }
        }
    })
}

/// Cancels a backfill, and leads back to its workflow.
pub(super) async fn cancel(
    Path(id): Path<String>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Trouble> {
    let id = BackfillId::new(&id).map_err(|error| Trouble::bad_request(format!("{error}.")))?;
    let was = end(&app, &asked::who(&headers)?, &id).await?;
    Ok(asked::back_to(&format!("{}#backfills", workflow_href(&was.workflow))))
}
