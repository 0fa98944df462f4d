//! The output of a live run, line by line as it is written.

use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use kelos_executors::local::LogLines;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::stream::{ShutdownSignal, closed, last_event_id, stream};
use kelos_model::RunId;
use maud::{Markup, html};
use serde::Deserialize;

use super::ansi::Style;
use super::{SHOWN, row};
use crate::{asked, runs};

/// How often the output is read: nothing signals that a file has grown.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The query of a stream of lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinesQuery {
    /// The offset of the first line.
    from: u64,
}

/// Follows a run's output until the run ends. Each event `lines` has rows; one whose line is there already replaces it. The
/// event `end` is the last one.
pub(crate) async fn follow(
    Path((id, time, number)): Path<(String, String, String)>,
    wanted: Result<Query<LinesQuery>, QueryRejection>,
    headers: HeaderMap,
    closing: ShutdownSignal,
    app: App,
) -> Result<Response, Fault> {
    let (slot, wanted) = (asked::slot(&app, &id, &time).await?, asked::query(wanted)?);
    let seen = last_event_id(&headers).ok().flatten();
    let run = runs::find(&app, slot, &number).await?;
    if seen.is_some() && run.is_over() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let follower = LinesFollower {
        app: app.on_stream(),
        source: run.leader(),
        run: run.id().clone(),
        offset: seen.unwrap_or(wanted.from),
        style: Style::default(),
        unfinished: 0,
        over: false,
        closing,
    };
    Ok(stream(follower, LinesFollower::next).into_response())
}

struct LinesFollower {
    app: App,
    run: RunId,
    /// The run whose output it is: the same, or of a batch the first slot's.
    source: RunId,
    /// Everything before was sent.
    offset: u64,
    /// In which style the line at `offset` begins.
    style: Style,
    /// How many bytes of that line were sent, as it has not ended yet.
    unfinished: usize,
    /// The last event has been sent.
    over: bool,
    closing: ShutdownSignal,
}

impl LinesFollower {
    async fn next(mut self) -> Option<(Event, LinesFollower)> {
        while !self.over {
            // In this order: output from before the end is in the files by the time the end is read.
            let is_over = self.is_over().await;
            match self.app.node().output(&self.source).await.lines(self.offset, SHOWN).await {
                Ok(read) => {
                    if let Some(rows) = self.rows(&read) {
                        let event = Event::default().event("lines").id(self.offset.to_string());
                        let data = serde_json::json!({ "rows": rows.into_string() });
                        return Some((event.data(data.to_string()), self));
                    }
                    if is_over {
                        return Some(self.end());
                    }
                }
                Err(error) if is_over && error.is_gone() => return Some(self.end()),
                Err(error) => tracing::warn!("failed to {error}; a stream of output tries again"),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = closed(&mut self.closing) => return None,
            }
        }
        None
    }

    /// The last event of the stream.
    fn end(mut self) -> (Event, LinesFollower) {
        self.over = true;
        (Event::default().event("end").id(self.offset.to_string()).data("{}"), self)
    }

    /// Whether the run has ended. Nothing more is written for one whose record was removed.
    async fn is_over(&self) -> bool {
        let id = self.run.clone();
        let known = self.app.read(move |reader| reader.known_run(&id)).await;
        known.is_ok_and(|known| known.is_none_or(|run| run.is_over()))
    }

    /// The rows to send, if there is something new.
    fn rows(&mut self, read: &LogLines) -> Option<Markup> {
        let open = read.lines.last().filter(|last| last.offset == read.next_offset);
        let length = open.map_or(0, |open| open.bytes.len());
        if read.next_offset == self.offset && length == self.unfinished {
            return None;
        }
        let mut style = self.style;
        let mut rows = Vec::new();
        for line in &read.lines {
            rows.push(row(line, &mut style, None));
            // One that has not ended will be read again.
            if line.offset != read.next_offset {
                self.style = style;
            }
        }
        let rows = html! {
            @if read.dropped > 0 { span.row.soft { "The output between was too long to be kept.\n" } }
            @for row in rows { (row) }
        };
        (self.offset, self.unfinished) = (read.next_offset, length);
        Some(rows)
    }
}
