//! The timeline: runs as bars over wall-clock time, and the critical path of a slot among them.
//!
//! The window is in `view.rs`, the places of bars in `lanes.rs`. What is *absent*: rules about slots; what
//! determined an end is read by the library.

mod chart;
mod lanes;
mod path;
mod view;

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_explain::critical_path::{self, CriticalPath};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{PoolId, Run, WorkflowId};
use kelos_store::{PageRequest, Queries, RunFilter, StoreError};

use super::asked;
use super::page::{Page, Tab};

pub(super) use view::path_href;
use view::{By, TimelineQuery, TimelineView};

/// Runs that are read for a page at the most, the newest.
const MOST_RUNS: usize = 20_000;
/// Pages that they are read in at the most: a page may pass over some thousand runs and hold none.
const MOST_PAGES: usize = 100;
/// Rows that are shown at the most.
const MOST_ROWS: usize = 200;

/// The subject of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Workflow(WorkflowId),
    Pool(PoolId),
    /// Of workflows without a pool.
    NoPool,
}

/// The content of the page.
struct TimelineData {
    view: TimelineView,
    rows: Vec<(Name, Vec<Run>)>,
    /// Rows that are not shown, because there are too many.
    more_rows: usize,
    /// The moment from which on all runs are shown, where earlier ones were left out because they are too many.
    complete_since: Option<Timestamp>,
    path: Option<CriticalPath>,
    projects: Vec<String>,
    tags: Vec<String>,
    has_pools: bool,
    /// Whether there has ever been a run.
    has_runs: bool,
}

pub(super) async fn show(asked: Result<Query<TimelineQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let mut asked = asked::query(asked)?;
    let slot = match asked::filled(asked.slot.take()) {
        Some(text) => Some(asked::slot_of(&app, "slot", &text).await?),
        None => None,
    };
    let view = TimelineView::read(asked, slot.clone(), app.handle().now())?;
    let shown = app.read(move |reader| read(reader, view)).await?;
    if let Some(slot) = slot.filter(|_| shown.path.is_none()) {
        return Err(plain::not_found(format!("There is no slot {}, so it has no critical path.", slot.short())));
    }
    let page = Page::new(&app, "Timeline").at(Tab::Timeline).style("pages.css").style("timeline.css");
    Ok(page.script("live.js").script("timeline.js").show(&chart::page(&shown)))
}

fn read(reader: &dyn Queries, view: TimelineView) -> Result<TimelineData, StoreError> {
    let path = match &view.slot {
        Some(slot) => critical_path::read(reader, slot, view.now)?,
        None => None,
    };
    let view = path.as_ref().map_or(view.clone(), |path| view.around(path));
    let workflows = reader.workflows(None)?;
    let wanted: BTreeMap<&WorkflowId, &WorkflowRow> =
        workflows.iter().filter(|row| is_wanted(&view, row)).map(|row| (&row.id, row)).collect();
    let (runs, complete_since) = runs(reader, &view, &wanted)?;
    let mut rows = rows(&view, &wanted, runs, path.as_ref());
    let more_rows = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let (mut projects, mut tags) = (Vec::new(), Vec::new());
    for row in &workflows {
        projects.push(row.definition.project.clone());
        tags.extend(row.definition.about.tags.iter().cloned());
    }
    let has_pools = workflows.iter().any(|row| !row.definition.pools.is_empty());
    let has_runs = !rows.is_empty() || !reader.runs(&RunFilter::default(), PageRequest::newest(1))?.rows.is_empty();
    Ok(TimelineData {
        rows,
        more_rows,
        complete_since,
        path,
        projects: distinct(projects),
        tags: distinct(tags),
        has_pools,
        has_runs,
        view,
    })
}

fn distinct(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

fn is_wanted(view: &TimelineView, row: &WorkflowRow) -> bool {
    let id = row.id.as_str().to_lowercase();
    view.find.to_lowercase().split_whitespace().all(|word| id.contains(word))
        && view.project.as_ref().is_none_or(|project| row.definition.project == *project)
        && view.tag.as_ref().is_none_or(|tag| row.definition.about.tags.contains(tag))
}

/// The runs of the window, newest first, and since when they are all.
fn runs(
    reader: &dyn Queries,
    view: &TimelineView,
    wanted: &BTreeMap<&WorkflowId, &WorkflowRow>,
) -> Result<(Vec<Run>, Option<Timestamp>), StoreError> {
    let only = if wanted.len() == 1 { wanted.keys().next().map(|id| (*id).clone()) } else { None };
    let filter = RunFilter {
        workflow: only,
        states: view.state.into_iter().collect(),
        range: Some(view.range),
        ..RunFilter::default()
    };
    let (mut runs, mut cursor, mut seen) = (Vec::new(), None, 0);
    for _ in 0..MOST_PAGES {
        let page = reader.runs(&filter, PageRequest::newest(1_000).after(cursor.as_deref()))?;
        seen += page.rows.len();
        runs.extend(page.rows.into_iter().filter(|run| wanted.contains_key(&run.id.slot.workflow)));
        cursor = page.next;
        if cursor.is_none() || seen >= MOST_RUNS {
            break;
        }
    }
    let oldest = runs.last().map(|run: &Run| run.dispatched_at);
    Ok((runs, cursor.and(oldest)))
}

/// The runs by row: those of the critical path in its order, then the others by name.
fn rows(
    view: &TimelineView,
    wanted: &BTreeMap<&WorkflowId, &WorkflowRow>,
    runs: Vec<Run>,
    path: Option<&CriticalPath>,
) -> Vec<(Name, Vec<Run>)> {
    let mut rows: BTreeMap<Name, Vec<Run>> = BTreeMap::new();
    for run in runs {
        let id = &run.id.slot.workflow;
        let pools = match (view.by, wanted.get(id)) {
            (By::Pool, Some(row)) => &row.definition.pools[..],
            _ => &[],
        };
        for pool in pools {
            rows.entry(Name::Pool(pool.pool.clone())).or_default().push(run.clone());
        }
        match view.by {
            By::Workflow => rows.entry(Name::Workflow(id.clone())).or_default().push(run),
            By::Pool if pools.is_empty() => rows.entry(Name::NoPool).or_default().push(run),
            By::Pool => {}
        }
    }
    let links = path.map(|path| &path.links[..]).unwrap_or_default();
    let place = |name: &Name| match name {
        Name::Workflow(id) => links.iter().position(|link| link.slot.workflow == *id).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(name, _)| place(name));
    rows
}
