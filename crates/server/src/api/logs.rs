//! The output of runs, piece by piece or live.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use kelos_executors::local::{LocalError, LogChunk, unfinished_char};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::stream::{ShutdownSignal, closed, last_event_id, stream as sse};
use kelos_model::RunId;
use kelos_store::KnownRun;
use kelos_wire::{OutputDto, ProblemDetailsDto, RunDto};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::extract::{Path, Query, RunPath};

/// The default number of bytes that are read.
pub(super) const USUAL_PIECE: usize = 64 << 10;
/// Bytes of the longest piece.
pub(super) const LONGEST_PIECE: usize = 1 << 20;

/// How often the output of a live run is read: nothing signals that a file has grown.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The piece of an output to read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Piece {
    /// The first byte, counted over all output of the run; by default 0.
    #[serde(default)]
    #[param(value_type = Option<u64>)]
    offset: u64,
    /// How many bytes at most: 1 to 1048576, by default 65536.
    #[param(minimum = 1, maximum = 1048576)]
    limit: Option<usize>,
}

pub(super) fn unreadable(error: &LocalError) -> Fault {
    let (status, code) = if error.is_gone() {
        (StatusCode::GONE, "output-removed")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "log-unreadable")
    };
    Fault::new(status, code, format!("failed to {error}"))
}

/// Refuses a number of a query that is none from 1 to `most`.
pub(super) fn checked(name: &str, given: usize, most: usize, unit: &str) -> Result<(), Fault> {
    if (1..=most).contains(&given) {
        return Ok(());
    }
    let detail = format!("`{name}` is {given}, expected 1 to {most} {unit}");
    Err(Fault::bad_request("bad-query", detail))
}

async fn read_piece(app: &App, run: &RunId, offset: u64, limit: usize) -> Result<LogChunk, LocalError> {
    app.node().output(run).await.piece(offset, limit).await
}

/// Reads a piece of a run's output, as it was written. The header `kelos-next-offset` is the offset of the next piece,
/// `kelos-dropped` the number of bytes before this piece that were dropped, `kelos-ended` whether the run has
/// ended and this is the last piece.
#[utoipa::path(
    get,
    path = "/workflows/{id}/slots/{time}/runs/{number}/log",
    tag = "runs",
    params(RunPath, Piece),
    responses(
        (status = 200, description = "The piece; empty when there is no more for now", body = String,
            content_type = "text/plain", headers(
                ("kelos-next-offset" = u64, description = "Where to read on"),
                ("kelos-dropped" = u64, description = "Bytes between `offset` and this piece that are not kept"),
                ("kelos-ended" = bool, description = "Whether the run is over and nothing comes after"),
            )),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn read(Path(path): Path<RunPath>, Query(piece): Query<Piece>, app: App) -> Result<Response, Fault> {
    let limit = piece.limit.unwrap_or(USUAL_PIECE);
    checked("limit", limit, LONGEST_PIECE, "bytes")?;
    let run = super::runs::known(&app, path.run(&app).await?).await?;
    let chunk = read_piece(&app, &run.leader(), piece.offset, limit).await.map_err(|error| unreadable(&error))?;
    // A run without files, such as a refused one, is over once its record is final.
    let ended = chunk.ended || (run.is_over() && chunk.bytes.is_empty());
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        // It is the output of a user's command, whatever it looks like.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (HeaderName::from_static("kelos-next-offset"), chunk.next_offset.to_string()),
        (HeaderName::from_static("kelos-dropped"), chunk.dropped.to_string()),
        (HeaderName::from_static("kelos-ended"), ended.to_string()),
    ];
    Ok((headers, chunk.bytes).into_response())
}

/// The position to begin at.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LogStart {
    /// The first byte, by default 0. The header `Last-Event-ID` overrides it.
    #[serde(default)]
    #[param(value_type = Option<u64>)]
    offset: u64,
}

/// Follows a run's output until the run ends. Each event `log` has an object as `data` (`offset`,
/// `nextOffset`, `dropped`, `text`) and the next offset as `id`; the event `end` has the run as `data` and is the
/// last one; of a run whose record was removed there is no `end`. A client that reconnects after the last one with `Last-Event-ID`
/// gets 204, which tells it to stop.
#[utoipa::path(
    get,
    path = "/workflows/{id}/slots/{time}/runs/{number}/log/stream",
    tag = "runs",
    params(RunPath, LogStart),
    responses(
        (status = 200, description = "The output as it is written", body = String, content_type = "text/event-stream"),
        (status = 204, description = "There is no more after `Last-Event-ID`, ever"),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn stream(
    Path(path): Path<RunPath>,
    Query(beginning): Query<LogStart>,
    headers: HeaderMap,
    closing: ShutdownSignal,
    app: App,
) -> Result<Response, Fault> {
    let seen = last_event_id(&headers)?;
    let run = super::runs::known(&app, path.run(&app).await?).await?;
    let offset = seen.unwrap_or(beginning.offset);
    if seen.is_some() && run.is_over() {
        let rest = read_piece(&app, &run.leader(), offset, 1).await.map_err(|error| unreadable(&error))?;
        if rest.bytes.is_empty() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let (run, source) = (run.id().clone(), run.leader());
    let app = app.on_stream();
    let follower = LogFollower { app, run, source, offset, carried: Vec::new(), over: false, closing };
    Ok(sse(follower, LogFollower::next).into_response())
}

struct LogFollower {
    app: App,
    run: RunId,
    /// The run whose output it is: the same, or of a batch the first slot's.
    source: RunId,
    /// Everything up to here was read.
    offset: u64,
    /// The beginning of a character whose end was not read yet.
    carried: Vec<u8>,
    /// The last event has been sent.
    over: bool,
    closing: ShutdownSignal,
}

impl LogFollower {
    async fn next(mut self) -> Option<(Event, LogFollower)> {
        while !self.over {
            // In this order: output from before the end is in the files by the time the end is read.
            let run = super::runs::known(&self.app, self.run.clone()).await;
            let chunk = read_piece(&self.app, &self.source, self.offset, USUAL_PIECE).await;
            match (run, chunk) {
                (_, Ok(chunk)) if !chunk.bytes.is_empty() => match self.output(chunk) {
                    Some(output) => return Some((output_event(&output), self)),
                    None => continue,
                },
                (Ok(run), read) if run.is_over() && read.as_ref().err().is_none_or(LocalError::is_gone) => {
                    let event = self.ending(run)?;
                    return Some((event, self));
                }
                // Its record was removed, with all that could be told of its end.
                (Err(fault), _) if fault.status == StatusCode::NOT_FOUND => return None,
                (_, Err(error)) => {
                    tracing::warn!("failed to {error}; a stream of output tries again")
                }
                _ => {}
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = closed(&mut self.closing) => return None,
            }
        }
        None
    }

    /// The output to send of a piece: all but the beginning of a character at its end.
    fn output(&mut self, chunk: LogChunk) -> Option<OutputDto> {
        let mut bytes = std::mem::take(&mut self.carried);
        let offset = chunk.offset - bytes.len() as u64;
        bytes.extend(chunk.bytes);
        self.carried = bytes.split_off(bytes.len() - unfinished_char(&bytes));
        self.offset = chunk.next_offset;
        let next_offset = chunk.next_offset - self.carried.len() as u64;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (!text.is_empty()).then_some(OutputDto { offset, next_offset, dropped: chunk.dropped, text })
    }

    /// The next of the last events of a stream, once nothing will be written any more; none if there are no further ones.
    fn ending(&mut self, run: KnownRun) -> Option<Event> {
        let carried = std::mem::take(&mut self.carried);
        if carried.is_empty() {
            self.over = true;
            return match run {
                KnownRun::Kept(run) => Some(event("end", self.offset, &RunDto::from(*run))),
                KnownRun::Removed(_) => None,
            };
        }
        let text = String::from_utf8_lossy(&carried).into_owned();
        let offset = self.offset - carried.len() as u64;
        Some(output_event(&OutputDto { offset, next_offset: self.offset, dropped: 0, text }))
    }
}

fn output_event(output: &OutputDto) -> Event {
    event("log", output.next_offset, output)
}

fn event(name: &str, id: u64, data: &impl Serialize) -> Event {
    let event = Event::default().event(name).id(id.to_string());
    event.json_data(data).unwrap_or_else(|error| Event::default().comment(format!("{error:?}")))
}
