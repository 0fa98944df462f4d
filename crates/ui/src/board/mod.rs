//! The board: all workflows over time, at one glance.
//!
//! A row is a string of letters and the few numbers that letters can't express; the script paints it. What is *absent*:
//! single slots, of which only those of one cell are ever read.

mod arrange;
mod cell;
mod edit;
mod html;
mod order;
mod reason;
mod row;
mod steps;
mod stream;
mod verdict;
pub(super) mod view;

use axum::Router;
use axum::extract::RawQuery;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use kelos_explain::failures::{self, Failures};
use kelos_front::fault::{Fault, plain};
use kelos_front::groups::{BoardGroups, Groups};
use kelos_front::{App, Front};
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};

use super::flow::{self, Latest};
use super::jobs::{self, Section};
use super::page::{Page, Tab};
use row::Rows;
use steps::StepRows;
use view::BoardView;

pub(super) fn router() -> Router<Front> {
    Router::new()
        .route("/ui", get(show))
        .route("/ui/", get(|| async { Redirect::permanent("/ui") }))
        .route("/ui/board/stream", get(stream::follow))
        .route("/ui/board/cell", get(cell::open))
        .route("/ui/board/late", get(verdict::late))
        .route("/ui/board/why", get(reason::show))
        .route("/ui/board/failing", get(verdict::failing))
        .route("/ui/board/jobs", get(jobs::page))
        .route("/ui/board/groups", get(edit::show).post(edit::save))
}

/// The content of the board at one moment.
struct BoardData {
    workflows: Vec<WorkflowRow>,
    groups: BoardGroups,
    rows: Rows,
    /// The workflows that have no place in time.
    jobs: Section,
    /// Flows that have no place in time, with their latest runs.
    flows: Latest,
    /// The steps of flows that are unfolded.
    unfolded: StepRows,
    /// The unrepaired failures, of whatever time.
    failures: Failures,
    /// Everything that happened up to here is in it.
    seq: u64,
}

fn read(reader: &dyn Queries, view: &BoardView, file: &Groups) -> Result<BoardData, StoreError> {
    // First, so that a change made meanwhile is sent twice rather than never.
    let seq = reader.last_seq()?;
    let workflows = reader.workflows(None)?;
    let rows = Rows::new(view, view.columns().tallies(reader, None)?);
    let jobs = jobs::section(reader, &workflows)?;
    let flows = flow::latest(reader, &workflows)?;
    let unfolded = steps::unfolded(reader, view, &workflows)?;
    let failures = failures::find(reader, view.now())?;
    Ok(BoardData { flows, unfolded, workflows, groups: BoardGroups::read(reader, file)?, rows, jobs, failures, seq })
}

async fn show(RawQuery(query): RawQuery, app: App) -> Result<Response, Fault> {
    let view = BoardView::read(query.as_deref().unwrap_or_default(), app.handle().now()).map_err(plain::bad_request)?;
    let file = app.groups_of_file();
    let (shown, view) = app.read(move |reader| Ok((read(reader, &view, &file)?, view))).await?;
    let groups = arrange::arrange(view.by, &shown.groups, &shown.workflows);
    let body = html::board(&view, &groups, &shown);
    let page = Page::new(&app, "Board").at(Tab::Board).style("board.css");
    // Without any slots by time there is no board to update.
    let only_jobs = groups.is_empty() && !shown.jobs.is_empty();
    let page = if only_jobs { page } else { page.script("board.js").script("act.js").filling() };
    let page = if shown.jobs.is_empty() && shown.flows.is_empty() { page } else { page.script("live.js") };
    Ok(page.show(&body).into_response())
}
