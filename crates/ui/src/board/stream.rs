//! Rows as they change: one stream for each open board.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::sse::Event as Sent;
use axum::response::{IntoResponse, Response};
use kelos_front::fault::{Fault, plain};
use kelos_front::stream::{ShutdownSignal, beating, closed, last_event_id};
use kelos_front::{App, groups};
use kelos_model::{Event, WorkflowEvent, WorkflowId};
use kelos_store::{EventFilter, PageRequest, Queries, StoreError};
use tokio::sync::watch;

use super::row::Rows;
use super::view::{BoardView, parameters};
use crate::columns::TimeColumns;

/// How long changes are gathered before they are sent together.
const GATHER: Duration = Duration::from_millis(200);
/// How long a stream waits for the notice of a commit: a standby gets none.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How many events are read one by one; after more of them every row is read.
const READ_AT_ONCE: usize = 2_000;
/// Workflows that are tallied one by one; more of them are tallied with all others.
const ONE_BY_ONE: usize = 25;

/// The changes since a position in the log.
struct Changes {
    /// Rows to send again; none means all.
    rows: Option<BTreeSet<WorkflowId>>,
    /// Whether workflows were added, removed, paused, resumed or grouped differently.
    workflows: bool,
    seq: u64,
}

fn changes(reader: &dyn Queries, columns: &TimeColumns, after: u64) -> Result<Changes, StoreError> {
    let seq = reader.last_seq()?;
    let page = reader.events(&EventFilter::after(after), PageRequest::oldest(READ_AT_ONCE))?;
    if page.next.is_some() {
        return Ok(Changes { rows: None, workflows: true, seq });
    }
    let (start, end) = columns.bounds();
    let mut changes = Changes { rows: None, workflows: false, seq };
    let mut rows = BTreeSet::new();
    for record in page.rows {
        changes.seq = changes.seq.max(record.seq);
        match record.event {
            // Those of steps, too, which may be unfolded.
            Event::Slot { slot, .. }
                if slot.key.of_run().time().is_some_and(|at| (start..end).contains(&at.as_millisecond())) =>
            {
                rows.insert(slot.workflow);
            }
            Event::Workflow { what: WorkflowEvent::Planned { .. } | WorkflowEvent::Replanned { .. }, .. } => {}
            Event::Workflow { .. } => changes.workflows = true,
            other if groups::is_change(&other) => changes.workflows = true,
            _ => {}
        }
    }
    changes.rows = Some(rows);
    Ok(changes)
}

/// Rows that changed, as the script takes them: `[[id, letters, counts], …]`.
fn told(reader: &dyn Queries, view: &BoardView, changed: Option<&BTreeSet<WorkflowId>>) -> Result<String, StoreError> {
    let columns = view.columns();
    let few = changed.filter(|changed| changed.len() <= ONE_BY_ONE);
    let tallies = match few {
        None => columns.tallies(reader, None)?,
        Some(few) => {
            let mut found = std::collections::BTreeMap::new();
            for id in few {
                found.append(&mut columns.tallies(reader, Some(id))?);
            }
            found
        }
    };
    let ids: Vec<WorkflowId> = match changed {
        Some(changed) => changed.iter().cloned().collect(),
        None => tallies.keys().cloned().collect(),
    };
    let rows = Rows::new(view, tallies);
    let told: Vec<_> = ids
        .iter()
        .map(|id| {
            let row = rows.of(id);
            [id.to_string(), row.letters, row.counts]
        })
        .collect();
    Ok(serde_json::to_string(&told).unwrap_or_default())
}

struct BoardFollower {
    app: App,
    view: BoardView,
    after: u64,
    commits: watch::Receiver<u64>,
    closing: ShutdownSignal,
}

impl BoardFollower {
    async fn next(mut self) -> Option<(Sent, BoardFollower)> {
        loop {
            self.commits.mark_unchanged();
            match self.look().await {
                Ok(Some(event)) => return Some((event, self)),
                Ok(None) => {}
                Err(error) => tracing::warn!("failed to {error}; a board tries again"),
            }
            tokio::select! {
                _ = self.commits.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = closed(&mut self.closing) => return None,
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// The next message for the client, if anything has changed.
    async fn look(&mut self) -> Result<Option<Sent>, StoreError> {
        let (view, after) = (self.view.clone(), self.after);
        let (changes, rows) = self
            .app
            .read(move |reader| {
                let changes = changes(reader, &view.columns(), after)?;
                let some = changes.rows.as_ref().is_none_or(|rows| !rows.is_empty());
                let rows = if some && !changes.workflows {
                    told(reader, &view, changes.rows.as_ref())?
                } else {
                    String::new()
                };
                Ok((changes, rows))
            })
            .await?;
        self.after = changes.seq;
        let event = Sent::default().id(changes.seq.to_string());
        Ok(match (changes.workflows, rows.is_empty()) {
            (true, _) => Some(event.event("workflows").data("{}")),
            (false, false) => Some(event.event("rows").data(rows)),
            (false, true) => None,
        })
    }
}

pub(super) async fn follow(
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    closing: ShutdownSignal,
    app: App,
) -> Result<Response, Fault> {
    let query = query.unwrap_or_default();
    let view = BoardView::read(&query, app.handle().now()).map_err(plain::bad_request)?;
    let after = parameters(&query).get("after").and_then(|after| after.parse().ok());
    let after = last_event_id(&headers).ok().flatten().or(after);
    let commits = app.handle().watch_commits();
    let end = app.read(|reader| reader.last_seq()).await?;
    let app = app.on_stream();
    let follower = BoardFollower { app, view, after: after.unwrap_or(end).min(end), commits, closing };
    Ok(beating(follower, BoardFollower::next).into_response())
}
