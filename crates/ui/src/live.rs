//! The latest events, for pages that update themselves: one stream for each open page.
//!
//! A beat every few seconds tells a page that the server is there, also if nothing happens. What is *absent*: what became of
//! anything, which pages request again.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::HeaderMap;
use axum::response::sse::Event as Sent;
use axum::response::{IntoResponse, Response};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::stream::{ShutdownSignal, beating, closed, last_event_id};
use kelos_model::{Event, EventRecord};
use kelos_store::{About, EventFilter, PageRequest, StoreError};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::{asked, events};

/// How long changes are gathered before they are sent together.
const GATHER: Duration = Duration::from_millis(100);
/// How long a stream waits for the notice of a commit: a standby gets none.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Events that are told one by one; after more of them the page is told that everything may have changed.
const TOLD: usize = 500;

/// The changes to follow.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    /// Only of this workflow, its slots and backfills.
    workflow: Option<String>,
    /// Only after this position of the log; by default from now on.
    after: Option<u64>,
    /// Nothing but beats.
    beats: Option<String>,
}

struct LiveFollower {
    app: App,
    about: Option<About>,
    after: u64,
    commits: watch::Receiver<u64>,
    closing: ShutdownSignal,
}

impl LiveFollower {
    async fn next(mut self) -> Option<(Sent, LiveFollower)> {
        loop {
            self.commits.mark_unchanged();
            match self.look().await {
                Ok(Some(event)) => return Some((event, self)),
                Ok(None) => {}
                Err(error) => tracing::warn!("failed to {error}; a page tries again"),
            }
            tokio::select! {
                _ = self.commits.changed(), if self.about.is_some() => tokio::time::sleep(GATHER).await,
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = closed(&mut self.closing) => return None,
            }
        }
    }

    /// The next message, if anything has happened: `[[subject, event, workflow], …]`, or null if it is too much to tell.
    async fn look(&mut self) -> Result<Option<Sent>, StoreError> {
        let Some(about) = self.about.clone() else { return Ok(None) };
        let after = self.after;
        let read = self.app.read(move |reader| {
            let end = reader.last_seq()?;
            let filter = EventFilter { about, after, until: end };
            Ok((end, reader.events(&filter, PageRequest::oldest(TOLD))?))
        });
        let (end, page) = read.await?;
        self.after = end;
        if page.rows.is_empty() && page.next.is_none() {
            return Ok(None);
        }
        let told: BTreeSet<_> = page.rows.iter().map(brief).collect();
        let data = if page.next.is_none() { json!(told) } else { json!(null) };
        Ok(Some(Sent::default().id(end.to_string()).event("changed").data(data.to_string())))
    }
}

/// The subject, the event and the workflow.
fn brief(record: &EventRecord) -> (&'static str, String, String) {
    let (subject, workflow) = match &record.event {
        Event::Slot { slot, .. } => ("slot", slot.workflow.as_str()),
        Event::Workflow { workflow, .. } => ("workflow", workflow.as_str()),
        Event::Backfill { .. } => ("backfill", ""),
        Event::Fact { .. } => ("fact", ""),
        Event::Register { .. } => ("register", ""),
        Event::Access { .. } => ("access", ""),
    };
    (subject, events::name(record), workflow.to_owned())
}

pub(super) async fn follow(
    wanted: Result<Query<LiveQuery>, QueryRejection>,
    headers: HeaderMap,
    closing: ShutdownSignal,
    app: App,
) -> Result<Response, Fault> {
    let wanted = asked::query(wanted)?;
    let workflow = asked::filled(wanted.workflow).map(|id| asked::workflow(&id)).transpose()?;
    let about = wanted.beats.is_none().then(|| workflow.map_or(About::Anything, About::Workflow));
    // Before the end of the log is read, so that no commit in between is missed.
    let commits = app.handle().watch_commits();
    let end = app.read(|reader| reader.last_seq()).await?;
    let after = last_event_id(&headers).ok().flatten().or(wanted.after).unwrap_or(end).min(end);
    Ok(beating(LiveFollower { app, about, after, commits, closing }, LiveFollower::next).into_response())
}
