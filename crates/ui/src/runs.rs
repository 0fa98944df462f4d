//! Runs as a table, and the output of one of them.

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use kelos_front::fault::{Fault, plain};
use kelos_front::{App, Links};
use kelos_model::run::shown_id;
use kelos_model::workflow::DefinitionVersion;
use kelos_model::{Outcome, Run, RunId, RunState, SlotRef};
use kelos_store::KnownRun;
use maud::{Markup, html};

use super::page::slot_href;
use super::{asked, time, versions, words};

/// Bytes that a download reads at a time.
const PIECE: usize = 256 << 10;

/// The appearance of a run's state: that of the slot state it leads to.
const fn look(state: RunState) -> (char, &'static str) {
    match state {
        RunState::Dispatched => ('D', "goes"),
        RunState::Running => ('R', "goes"),
        RunState::Succeeded => ('S', "good"),
        RunState::Failed => ('F', "bad"),
        RunState::Killed => ('K', "ended"),
        RunState::Unknown => ('U', "again"),
    }
}

/// A state's letter.
pub(super) const fn letter(state: RunState) -> char {
    look(state).0
}

/// The class of a state's colour in drawings.
pub(super) const fn class(state: RunState) -> &'static str {
    match state {
        RunState::Dispatched => "run-dispatched",
        RunState::Running => "run-running",
        RunState::Succeeded => "run-succeeded",
        RunState::Failed => "run-failed",
        RunState::Killed => "run-killed",
        RunState::Unknown => "run-unknown",
    }
}

pub(super) fn badge(state: RunState) -> Markup {
    let (letter, class) = look(state);
    html! { span.badge .(class) { b aria-hidden="true" { (letter) } " " (state.as_str()) } }
}

/// The runs of a slot, newest first; the one whose output is shown is marked.
pub(super) fn table(
    slot: &SlotRef,
    runs: &[Run],
    versions: &[Option<DefinitionVersion>],
    shown: Option<u32>,
    links: &Links,
) -> Markup {
    html! {
        div.wide {
            table.runs {
                thead { tr { th { "Run" } th { "State" } th { "Outcome" } th { "Began" } th { "Took" } th { "Executor" } th { "Definition" } th { "Output" } } }
                tbody { @for (run, version) in runs.iter().zip(versions).rev() { (row(slot, run, version.as_ref(), shown, links)) } }
            }
        }
    }
}

fn row(slot: &SlotRef, run: &Run, version: Option<&DefinitionVersion>, shown: Option<u32>, links: &Links) -> Markup {
    let number = run.id.number;
    let begin = run.started_at.unwrap_or(run.dispatched_at);
    html! {
        tr.chosen[shown == Some(number)] {
            td { "#" (number) }
            td { (badge(run.state)) }
            td { (run.outcome.as_ref().map(outcome).unwrap_or_default()) }
            td { (time::at(begin)) }
            td { @if let Some(end) = run.ended_at { (words::took(begin, end)) } @else { "…" } }
            td { (run.executor) @if let Some(id) = &run.external_id { " " code { (shown_id(id)) } }
                @for (name, href) in links.of(run) { " " a.button href=(href) rel="noreferrer noopener" { (name) " ↗" } } }
            td {
                @if let Some(version) = version { (versions::link(&slot.workflow, version)) }
            }
            td {
                a href=(format!("{}?run={number}#log", slot_href(slot))) aria-label=(format!("show the output of run {number}")) { "show" }
                " "
                a href=(download_href(&run.id)) aria-label=(format!("download the output of run {number}")) { "download" }
            }
        }
    }
}

/// The outcome of a run, if its state does not say it all.
fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded | Outcome::Killed => String::new(),
        other => other.to_string(),
    }
}

/// The address of all that is kept of a run's output.
pub(super) fn download_href(run: &RunId) -> String {
    format!("{}/runs/{}/log.txt", slot_href(&run.slot), run.number)
}

/// All that is kept of a run's output, as a file.
pub(super) async fn download(
    Path((id, time, number)): Path<(String, String, String)>,
    app: App,
) -> Result<Response, Fault> {
    let slot = asked::slot(&app, &id, &time).await?;
    let run = find(&app, slot, &number).await?;
    let (name, run) = (file_name(run.id()), run.leader());
    let end = app.node().output(&run).await.length().await;
    let end = end.map_err(|error| plain::not_found(format!("Failed to {error}.")))?;
    let pieces = unfold((app, run, 0), move |(app, run, offset)| async move {
        if offset >= end {
            return None;
        }
        let piece = app.node().output(&run).await.piece(offset, PIECE).await;
        match piece {
            Ok(piece) if piece.bytes.is_empty() => None,
            Ok(piece) => Some((Ok(Bytes::from(piece.bytes)), (app, run, piece.next_offset))),
            Err(error) => Some((Err(std::io::Error::other(error)), (app, run, u64::MAX))),
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// The run of a slot with this number, or one whose record is gone: its output may still be there.
pub(super) async fn find(app: &App, slot: SlotRef, number: &str) -> Result<KnownRun, Fault> {
    let words = format!("Slot {} has no run {number}.", slot.short());
    let found = match number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number) {
        Some(number) => app.read(move |reader| reader.known_run(&RunId { slot, number })).await?,
        None => None,
    };
    found.ok_or_else(|| plain::not_found(words))
}

/// A name for every file system.
fn file_name(run: &RunId) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let id: String = run.slot.workflow.as_str().chars().map(plain).take(100).collect();
    let key: String = run.slot.key.short().replace(':', "").chars().map(plain).take(100).collect();
    format!("{id}-{key}-{}.txt", run.number)
}
