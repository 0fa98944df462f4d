//! The log of everything that happened, page by page or live.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Json;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::Event;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::stream::{ShutdownSignal, closed, last_event_id, stream as sse};
use kelos_model::WorkflowId;
use kelos_store::{About, EventFilter, PageRequest, Queries, StoreError};
use kelos_wire::{EventDto, EventPageDto, ProblemDetailsDto, words};
use serde::Deserialize;
use tokio::sync::watch;
use utoipa::IntoParams;

use super::extract::{Limit, Query};

/// Events that a stream reads in one go.
const READ_AT_ONCE: usize = 500;

/// How long a stream waits for the notice of a commit before it reads the log: a standby gets no notices, and
/// a store that failed is tried again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The events to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventListQuery {
    /// Only after this position of the log; by default from its beginning.
    #[serde(default)]
    #[param(value_type = Option<u64>)]
    after: u64,
    /// Only of this workflow, its slots and backfills.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// How many positions of the log are read at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
}

/// A piece of the log.
fn read(reader: &dyn Queries, after: u64, of: Option<&WorkflowId>, limit: usize) -> Result<EventPageDto, StoreError> {
    // In this order: an event that is written meanwhile must not count as read.
    let seen = reader.last_seq()?;
    let about = of.cloned().map_or(About::Anything, About::Workflow);
    let page = reader.events(&EventFilter { about, after, until: u64::MAX }, PageRequest::oldest(limit))?;
    let items: Vec<EventDto> = page.rows.into_iter().map(EventDto::from).collect();
    let newest = items.last().map_or(after, |event| event.seq);
    let next = page.next.as_deref().and_then(|next| next.parse().ok());
    Ok(EventPageDto { items, last: next.unwrap_or_else(|| newest.max(seen)), end: page.next.is_none() })
}

/// Lists events, oldest first.
#[utoipa::path(get, path = "/events", tag = "events", params(EventListQuery), responses(
    (status = 200, description = "A page of the log", body = EventPageDto<EventDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(Query(wanted): Query<EventListQuery>, app: App) -> Result<Json<EventPageDto>, Fault> {
    let page = app.read(move |reader| read(reader, wanted.after, wanted.workflow.as_ref(), wanted.limit.0)).await?;
    Ok(Json(page))
}

/// The events to follow.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FollowQuery {
    /// Begin after this position of the log, by default now. The header `Last-Event-ID` overrides it.
    after: Option<u64>,
    /// Only of this workflow, its slots and backfills.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
}

/// Follows the log: server-sent events whose `id` is the position in the log, whose `event` is the subject,
/// and whose `data` is an event as in lists. No event is left out, however slow the client is; one that
/// reconnects with `Last-Event-ID` misses none.
#[utoipa::path(get, path = "/events/stream", tag = "events", params(FollowQuery), responses(
    (status = 200, description = "The events as they happen", body = String, content_type = "text/event-stream"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn stream(
    Query(followed): Query<FollowQuery>,
    headers: HeaderMap,
    closing: ShutdownSignal,
    app: App,
) -> Result<impl IntoResponse, Fault> {
    // Before the end of the log is read, so that no commit in between is missed.
    let commits = app.handle().watch_commits();
    let end = app.read(|reader| reader.last_seq()).await?;
    let after = last_event_id(&headers)?.or(followed.after).unwrap_or(end);
    if after > end {
        let detail = format!("the log ends at {end}, so nothing can be followed from {after} on");
        return Err(Fault::bad_request("bad-query", detail).with_hint("this may be another database than before"));
    }
    let app = app.on_stream();
    let follower = EventFollower { app, workflow: followed.workflow, after, ready: VecDeque::new(), commits, closing };
    Ok(sse(follower, EventFollower::next))
}

struct EventFollower {
    app: App,
    workflow: Option<WorkflowId>,
    /// Everything up to here was read.
    after: u64,
    ready: VecDeque<EventDto>,
    commits: watch::Receiver<u64>,
    closing: ShutdownSignal,
}

impl EventFollower {
    async fn next(mut self) -> Option<(Event, EventFollower)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((told(&event), self));
            }
            self.commits.mark_unchanged();
            let at_the_end = self.read_on().await;
            if !at_the_end || !self.ready.is_empty() {
                continue;
            }
            tokio::select! {
                _ = self.commits.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = closed(&mut self.closing) => return None,
            }
        }
    }

    /// Reads the next piece of the log. Says whether its end was reached.
    async fn read_on(&mut self) -> bool {
        let (after, workflow) = (self.after, self.workflow.clone());
        match self.app.read(move |reader| read(reader, after, workflow.as_ref(), READ_AT_ONCE)).await {
            Ok(page) => {
                self.after = page.last;
                self.ready.extend(page.items);
                page.end
            }
            Err(error) => {
                tracing::warn!("failed to {error}; a stream of events tries again");
                true
            }
        }
    }
}

fn told(event: &EventDto) -> Event {
    let told = Event::default().id(event.seq.to_string()).event(words::tag(event));
    told.json_data(event).unwrap_or_else(|error| Event::default().comment(format!("{error:?}")))
}
