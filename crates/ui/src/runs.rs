//! Runs as a table, and the output of one of them.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use kelos_executors::local::LocalError;
use kelos_executors::run_ref;
use kelos_front::fault::{Fault, plain};
use kelos_front::{App, Links};
use kelos_model::run::shown_id;
use kelos_model::{Outcome, Run, RunId, RunState, SlotRef};
use maud::{Markup, html};

use super::page::{segment, slot_href};
use super::{asked, time, versions, words};

/// Bytes of output that a page shows of a run; the rest is for downloading.
const SHOWN: u64 = 64 << 10;
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
    versions: &[Option<u32>],
    shown: Option<u32>,
    links: &Links,
) -> Markup {
    html! {
        div.wide {
            table.runs {
                thead { tr { th { "Run" } th { "State" } th { "Outcome" } th { "Began" } th { "Took" } th { "Executor" } th { "Definition" } th { "Output" } } }
                tbody { @for (run, version) in runs.iter().zip(versions).rev() { (row(slot, run, *version, shown, links)) } }
            }
        }
    }
}

fn row(slot: &SlotRef, run: &Run, version: Option<u32>, shown: Option<u32>, links: &Links) -> Markup {
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
                @if let Some(version) = version { a href=(versions::href(&slot.workflow, version)) { "version " (version) } }
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

fn download_href(run: &RunId) -> String {
    format!("{}/runs/{}/log.txt", slot_href(&run.slot), run.number)
}

/// The end of a run's output.
pub(super) struct Tail {
    run: RunId,
    is_over: bool,
    /// The position of its first byte.
    from: u64,
    /// The position after its last byte.
    next: u64,
    text: Result<String, LocalError>,
}

impl Tail {
    /// Reads the end of a run's output so far.
    pub(super) async fn read(app: &App, run: &Run) -> Tail {
        let (mut from, mut next) = (0, 0);
        let text = read_tail(app, &run.id).await.map(|(start, end, bytes)| {
            let skipped = if start > 0 { first_line_end(&bytes) } else { 0 };
            (from, next) = (start + skipped as u64, end);
            String::from_utf8_lossy(&bytes[skipped..]).into_owned()
        });
        Tail { run: run.id.clone(), is_over: run.state.is_final(), from, next, text }
    }

    /// The last lines of it; none if it can't be read.
    pub(super) fn last_lines(&self, most: usize) -> Option<Vec<&str>> {
        let lines: Vec<&str> = self.text.as_ref().ok()?.lines().collect();
        Some(lines[lines.len().saturating_sub(most)..].to_vec())
    }

    /// The output, and where scripts find more of it.
    pub(super) fn show(&self) -> Markup {
        let api = format!(
            "/api/v1/workflows/{}/slots/{}/runs/{}/log",
            segment(self.run.slot.workflow.as_str()),
            segment(&self.run.slot.key.to_string()),
            self.run.number
        );
        let stream = (!self.is_over).then(|| format!("{api}/stream?offset={}", self.next));
        html! {
            section #log data-run=(self.run.number) data-log=(api) data-stream=[stream] data-from=(self.from) {
                h2 { "Output of run " (self.run.number) }
                div.bar {
                    label.scripted-only { "Find " input #log-find type="search" autocomplete="off"; }
                    output #log-found aria-live="polite" {}
                    label.scripted-only hidden[self.is_over] { input #log-follow type="checkbox" checked; " follow" }
                    button #log-earlier type="button" .scripted-only hidden[self.from == 0] { "Show more of its beginning" }
                    a.button href=(download_href(&self.run)) download { "Download" }
                }
                @match &self.text {
                    Ok(text) => {
                        @if self.from > 0 { p.soft { "The last part of it; the beginning is in the download." } }
                        pre #log-text tabindex="0" role="group" aria-label="output" { (text) }
                        p #log-empty .soft hidden[!text.is_empty()] {
                            @if self.is_over { "It has written nothing here." } @else { "It has written nothing yet." }
                        }
                    }
                    Err(error) => p { "Failed to " (error) "." },
                }
            }
        }
    }
}

fn first_line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// The last bytes of an output, with the positions where they begin and end.
async fn read_tail(app: &App, run: &RunId) -> Result<(u64, u64, Vec<u8>), LocalError> {
    let (launcher, run) = (app.node().launcher(), run_ref(run));
    let end = launcher.log_len(&run).await?;
    let mut start = end.saturating_sub(SHOWN);
    let mut bytes = Vec::new();
    let mut next = start;
    // A piece ends at the end of a file; dropped output before it is not shown.
    while next < end {
        let chunk = launcher.read_log(&run, next, SHOWN as usize).await?;
        if chunk.bytes.is_empty() {
            break;
        }
        if chunk.dropped > 0 {
            bytes.clear();
            start = chunk.offset;
        }
        bytes.extend(chunk.bytes);
        next = chunk.next_offset;
    }
    Ok((start, next, bytes))
}

/// The last lines of a run's output; none if it can't be read.
pub async fn last_lines(app: &App, run: &RunId, most: usize) -> Vec<String> {
    let Ok((_, _, bytes)) = read_tail(app, run).await else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().rev().take(most).map(str::to_owned).collect();
    lines.reverse();
    lines
}

/// All that is kept of a run's output, as a file.
pub(super) async fn download(
    Path((id, time, number)): Path<(String, String, String)>,
    State(app): State<App>,
) -> Result<Response, Fault> {
    let slot = asked::slot(&app, &id, &time).await?;
    let run = find(&app, slot, &number).await?;
    let name = file_name(&run);
    let end = app.node().launcher().log_len(&run_ref(&run)).await;
    let end = end.map_err(|error| plain::not_found(format!("Failed to {error}.")))?;
    let pieces = unfold((app, run, 0), move |(app, run, offset)| async move {
        if offset >= end {
            return None;
        }
        let piece = app.node().launcher().read_log(&run_ref(&run), offset, PIECE).await;
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

async fn find(app: &App, slot: SlotRef, number: &str) -> Result<RunId, Fault> {
    let id = slot.clone();
    let runs = app.read(move |reader| reader.slot_runs(&id)).await?;
    let found = runs.into_iter().find(|run| run.id.number.to_string() == number);
    found.map(|run| run.id).ok_or_else(|| plain::not_found(format!("Slot {} has no run {number}.", slot.short())))
}

/// A name for every file system.
fn file_name(run: &RunId) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let id: String = run.slot.workflow.as_str().chars().map(plain).take(100).collect();
    let key: String = run.slot.key.short().replace(':', "").chars().map(plain).take(100).collect();
    format!("{id}-{key}-{}.txt", run.number)
}
