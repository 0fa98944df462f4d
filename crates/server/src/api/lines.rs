//! The output of runs as lines, with times and streams.

use axum::Json;
use kelos_executors::local::{LogLine, LogLines};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_wire::{Instant, OutputLineDto, OutputLinesDto, ProblemDetailsDto};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::FromLibrary;
use super::extract::{Path, Query, RunPath};
use super::logs::{LONGEST_PIECE, USUAL_PIECE, checked, unreadable};

/// The most lines that are read from the end.
const MOST_LINES: usize = 10_000;

/// The lines to read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LinesQuery {
    /// The first byte, counted over all output of the run; by default 0. Expected: the beginning of a line, such as `nextOffset`.
    offset: Option<u64>,
    /// How many bytes at most: 1 to 1048576, by default 65536. A longer line comes in parts.
    #[param(minimum = 1, maximum = 1048576)]
    limit: Option<usize>,
    /// The last lines instead of those from `offset` on, as many as this, 1 to 10000, within `limit`.
    #[param(minimum = 1, maximum = 10000)]
    tail: Option<usize>,
}

/// Reads lines of a run's output, in the order in which they came, with their times and streams. A line that the other
/// stream interrupts comes in parts.
#[utoipa::path(
    get,
    path = "/workflows/{id}/slots/{time}/runs/{number}/log/lines",
    tag = "runs",
    params(RunPath, LinesQuery),
    responses(
        (status = 200, description = "The lines; none when there are no more for now", body = OutputLinesDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn lines(
    Path(path): Path<RunPath>,
    Query(wanted): Query<LinesQuery>,
    app: App,
) -> Result<Json<OutputLinesDto>, Fault> {
    let limit = wanted.limit.unwrap_or(USUAL_PIECE);
    checked("limit", limit, LONGEST_PIECE, "bytes")?;
    if let Some(lines) = wanted.tail {
        checked("tail", lines, MOST_LINES, "lines")?;
    }
    let run = super::runs::known(&app, path.run(&app).await?).await?;
    let output = app.node().output(&run.leader()).await;
    let read = match (wanted.tail, wanted.offset) {
        (Some(_), Some(_)) => {
            let detail = "`tail` and `offset` are both given: expected one of them";
            return Err(Fault::bad_request("bad-query", detail));
        }
        (Some(lines), None) => output.last_lines(lines, limit).await,
        (None, offset) => output.lines(offset.unwrap_or(0), limit).await,
    };
    let read = read.map_err(|error| unreadable(&error))?;
    // A run without files, such as a refused one, is over once its record is final.
    let read = if run.is_over() { read.of_ended_run() } else { read };
    Ok(Json(OutputLinesDto::from_library(read)))
}

impl FromLibrary<LogLines> for OutputLinesDto {
    fn from_library(read: LogLines) -> OutputLinesDto {
        let lines = read.lines.into_iter().map(OutputLineDto::from_library).collect();
        OutputLinesDto { lines, next_offset: read.next_offset, dropped: read.dropped, ended: read.ended }
    }
}

impl FromLibrary<LogLine> for OutputLineDto {
    fn from_library(line: LogLine) -> OutputLineDto {
        OutputLineDto {
            offset: line.offset,
            at: line.at.map(Instant),
            stream: line.stream.map(|stream| stream.as_str().into()),
            text: String::from_utf8_lossy(&line.bytes).into_owned(),
            whole: line.whole,
        }
    }
}
