//! Namespaces, applications and programs, as far as clients ask for them beside schedules: what there is, what runs, and a
//! run now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use kelos::core::{Ask, FireRequest};
use kelos::model::project::{DEFAULT_NAMESPACE, ProjectName};
use kelos::model::workflow::{Keys, WorkflowRow};
use kelos::model::{Run, RunState, WorkflowId};
use kelos::store::{Reader, RunFilter, StoreError};
use serde_json::{Value, json};

use super::asked::Asked;
use super::catalogue::{Catalogue, events};
use super::fault::Fault;
use super::fields::{self, Field};
use super::schedules::look;
use crate::app::App;

/// Runs that a list has where nothing else is asked for, and the most it has.
const USUAL_RUNS: usize = 100;
const MOST_RUNS: usize = 1000;
/// Runs of a workflow that are read at a time.
const AT_A_TIME: usize = 20;

pub(super) async fn namespaces(_: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    look(&app, |catalogue| {
        let mut names = BTreeSet::from([DEFAULT_NAMESPACE.to_owned()]);
        names.extend(catalogue.all()?.iter().map(|row| ProjectName::read(&row.definition.project).namespace));
        let one = |name: String| json!({ "name": name, "description": "", "config": {} });
        Ok(Json(names.into_iter().map(one).collect()))
    })
    .await
}

pub(super) async fn apps(asked: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    let namespace = asked.name("namespace").to_owned();
    look(&app, move |catalogue| {
        let projects: BTreeSet<ProjectName> =
            catalogue.all()?.iter().map(|row| ProjectName::read(&row.definition.project)).collect();
        let own = projects.iter().filter(|project| project.namespace == namespace);
        Ok(Json(own.map(app_json).collect()))
    })
    .await
}

fn app_json(project: &ProjectName) -> Value {
    json!({ "type": "App", "name": project.application, "version": project.version, "description": "" })
}

pub(super) async fn app(asked: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    let project = asked.project()?;
    look(&app, move |catalogue| {
        let rows = catalogue.of_project(&project)?;
        let programs = rows.iter().filter(|row| events(row).is_none());
        let programs = programs.map(|row| program_json(catalogue, row, &project)).collect::<Result<Vec<_>, _>>()?;
        Ok(Json(json!({
            "name": project.application, "appVersion": project.version, "description": "", "programs": programs,
        })))
    })
    .await
}

fn program_json(catalogue: &Catalogue<'_>, row: &WorkflowRow, project: &ProjectName) -> Result<Value, StoreError> {
    let program = catalogue.program_name(&row.id)?;
    let description = row.definition.about.description.as_deref().unwrap_or_default();
    Ok(json!({
        "app": project.application, "type": program.kind.pretty, "name": program.name, "description": description,
    }))
}

/// Applications come from files here.
pub(super) async fn deploy(asked: Asked) -> Fault {
    let name = Some(asked.name("app")).filter(|name| !name.is_empty()).unwrap_or("NAME");
    Fault::new(
        StatusCode::NOT_IMPLEMENTED,
        format!(
            "applications are deployed as files here: put {name}.js into the folder of definitions, or deploy it through \
             /api/v1/projects; app.deploy.update.schedules is said there"
        ),
    )
}

pub(super) async fn start(asked: Asked, State(app): State<App>, body: Bytes) -> Result<(), Fault> {
    let arguments = arguments(&body)?;
    let program = asked.program()?;
    let workflow = look(&app, move |catalogue| catalogue.need_program(&program)).await?;
    if !matches!(workflow.definition.keys, Keys::Requests(_)) {
        let told = format!("{} runs at the times of its own schedule: rerun one of its slots instead", workflow.id);
        return Err(Fault::conflict(told));
    }
    let request = FireRequest { workflow: workflow.id, arguments, unconstrained: false, reason: None };
    app.ask(&asked.by, Ask::Fire(request)).await?;
    Ok(())
}

/// The arguments of a run: an object of texts, or nothing.
fn arguments(body: &[u8]) -> Result<BTreeMap<String, String>, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(BTreeMap::new());
    }
    let body = fields::json(body)?;
    if body.is_null() {
        return Ok(BTreeMap::new());
    }
    let one = |(name, field): (&str, Field<'_>)| Ok((name.to_owned(), field.text()?.to_owned()));
    Field::whole(&body).entries()?.into_iter().map(one).collect()
}

/// Those whose runs are a program's: its own, and its schedules', also of those that are gone.
fn runners(catalogue: &Catalogue<'_>, program: &WorkflowId) -> Result<Vec<WorkflowId>, StoreError> {
    let mut rows = catalogue.reader().workflows()?;
    rows.retain(|row| row.definition.keys.events().is_some_and(|keys| keys.program == *program));
    Ok(std::iter::once(program.clone()).chain(rows.into_iter().map(|row| row.id)).collect())
}

/// Which runs are listed.
struct Wanted {
    states: Vec<RunState>,
    start: i64,
    end: i64,
    limit: usize,
}

impl Wanted {
    fn read(asked: &Asked) -> Result<Wanted, Fault> {
        let limit = asked.number("limit")?.map_or(USUAL_RUNS, |limit| usize::try_from(limit).unwrap_or(0));
        Ok(Wanted {
            states: states(asked.get("status"))?,
            start: asked.number("start")?.unwrap_or(i64::MIN),
            end: asked.number("end")?.unwrap_or(i64::MAX),
            limit: limit.min(MOST_RUNS),
        })
    }

    fn is_met(&self, run: &Run) -> bool {
        let started = run.started_at.unwrap_or(run.dispatched_at).as_second();
        self.start <= started && started < self.end
    }
}

fn states(status: Option<&str>) -> Result<Vec<RunState>, Fault> {
    let Some(text) = status.filter(|text| !text.eq_ignore_ascii_case("ALL")) else { return Ok(Vec::new()) };
    let named = |state: &RunState| status_of(*state).eq_ignore_ascii_case(text);
    let found: Vec<_> = RunState::ALL.into_iter().filter(named).collect();
    if found.is_empty() {
        let told = format!("status is \"{text}\", expected ALL, STARTING, RUNNING, COMPLETED, FAILED or KILLED");
        return Err(Fault::bad_request(told));
    }
    Ok(found)
}

/// The name of a run's state.
pub(super) fn status_of(state: RunState) -> &'static str {
    match state {
        RunState::Dispatched => "STARTING",
        RunState::Running => "RUNNING",
        RunState::Succeeded => "COMPLETED",
        RunState::Failed | RunState::Unknown => "FAILED",
        RunState::Killed => "KILLED",
    }
}

pub(super) async fn runs(asked: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    let (program, wanted) = (asked.program()?, Wanted::read(&asked)?);
    look(&app, move |catalogue| {
        let program = catalogue.need_program(&program)?;
        let mut runs = BTreeMap::new();
        for runner in runners(catalogue, &program.id)? {
            add_runs_of(catalogue.reader(), runner, &wanted, &mut runs)?;
        }
        Ok(Json(runs.values().map(run_json).collect()))
    })
    .await
}

/// Runs by the positions of their dispatch, newest first.
type Newest = BTreeMap<Reverse<u64>, Run>;

/// Adds the runs of one of a program's runners, as far as they are among the newest of all of them.
fn add_runs_of(
    reader: &dyn Reader,
    runner: WorkflowId,
    wanted: &Wanted,
    newest: &mut Newest,
) -> Result<(), StoreError> {
    let filter = RunFilter { workflow: Some(runner), states: wanted.states.clone(), range: None };
    let (mut from, mut looked_at) = (None, 0);
    while looked_at < MOST_RUNS {
        let page = reader.runs(&filter, from.as_deref(), AT_A_TIME)?;
        looked_at += AT_A_TIME;
        for run in page.rows {
            let is_late = newest.last_key_value().is_some_and(|(oldest, _)| *oldest < Reverse(run.seq));
            if is_late && newest.len() >= wanted.limit {
                return Ok(());
            }
            if wanted.is_met(&run) {
                newest.insert(Reverse(run.seq), run);
            }
            if newest.len() > wanted.limit {
                newest.pop_last();
            }
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok(())
}

fn run_json(run: &Run) -> Value {
    let mut fields = json!({
        "runid": run.id.to_string(), "starting": run.dispatched_at.as_second(), "status": status_of(run.state),
        "properties": { "schedule": run.id.slot.workflow.as_str() },
    });
    if let Some(started) = run.started_at {
        fields["start"] = json!(started.as_second());
    }
    if let Some(ended) = run.ended_at {
        fields["end"] = json!(ended.as_second());
    }
    fields
}

pub(super) async fn status(asked: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    let program = asked.program()?;
    look(&app, move |catalogue| {
        let program = catalogue.need_program(&program)?;
        let live: Vec<_> = RunState::ALL.into_iter().filter(|state| !state.is_final()).collect();
        for runner in runners(catalogue, &program.id)? {
            let filter = RunFilter { workflow: Some(runner), states: live.clone(), range: None };
            if !catalogue.reader().runs(&filter, None, 1)?.rows.is_empty() {
                return Ok(Json(json!({ "status": "RUNNING" })));
            }
        }
        Ok(Json(json!({ "status": "STOPPED" })))
    })
    .await
}
