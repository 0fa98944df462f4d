//! Runs of programs: listed, shown one by one, counted and stopped.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kelos_core::{Kill, Refusal};
use kelos_engine::AskError;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::ranges::Range;
use kelos_model::{Actor, Run, RunId, RunState, SlotRef, WorkflowId};
use kelos_store::{PageRequest, Queries, RUN_LOOK_BACK_MILLIS, RunFilter, StoreError};
use serde_json::{Value, json};

use super::asked::{self, CdapRequest};
use super::batch;
use super::catalogue::{Catalogue, ProgramName, look};

/// The default and largest number of runs in a list.
const USUAL_RUNS: usize = 100;
const MOST_RUNS: usize = 50_000;
/// Runs that are read at a time.
const AT_A_TIME: usize = 200;

/// The separator between the name of a slot and the number of a run; no address has to escape it.
const NUMBER: char = '~';

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

/// The name of a run, as clients put it into addresses.
pub(super) fn name_of(run: &RunId) -> String {
    let name = run.to_string();
    name.rsplit_once('#').map_or(name.clone(), |(slot, number)| format!("{slot}{NUMBER}{number}"))
}

/// Reads what [`name_of`] writes, and the form that runs have elsewhere.
fn run_named(text: &str) -> Option<RunId> {
    let (slot, number) = text.rsplit_once('#').or_else(|| text.rsplit_once(NUMBER))?;
    Some(RunId { slot: slot.parse().ok()?, number: number.parse().ok()? })
}

/// Those whose runs are a program's, by program: the program itself, and its schedules, also those that are gone.
pub(super) struct Runners(BTreeMap<WorkflowId, BTreeSet<WorkflowId>>);

impl Runners {
    pub(super) fn read(reader: &dyn Queries) -> Result<Runners, StoreError> {
        let mut all: BTreeMap<WorkflowId, BTreeSet<WorkflowId>> = BTreeMap::new();
        for row in reader.workflows(None)? {
            if let Some(keys) = row.definition.keys.events() {
                all.entry(keys.program.clone()).or_default().insert(row.id);
            }
        }
        Ok(Runners(all))
    }

    fn of(&self, program: &WorkflowId) -> BTreeSet<WorkflowId> {
        let schedules = self.0.get(program).cloned().unwrap_or_default();
        schedules.into_iter().chain([program.clone()]).collect()
    }
}

/// A query for runs, from a list or a batch.
struct RunQuery {
    states: Vec<RunState>,
    start: Option<i64>,
    end: Option<i64>,
    limit: usize,
}

impl RunQuery {
    fn read(asked: &CdapRequest) -> Result<RunQuery, Fault> {
        let limit = asked.number("limit")?;
        if limit.is_some_and(|limit| limit < 0) {
            let limit = limit.unwrap_or_default();
            return Err(plain::bad_request(format!("limit is {limit}, expected a whole number from 0")));
        }
        Ok(RunQuery {
            states: states(asked.get("status"))?,
            start: asked.number("start")?,
            end: asked.number("end")?,
            limit: limit.map_or(USUAL_RUNS, |limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        })
    }

    fn newest(limit: usize) -> RunQuery {
        RunQuery { states: Vec::new(), start: None, end: None, limit }
    }

    fn is_met(&self, run: &Run) -> bool {
        let started = run.started_at.unwrap_or(run.dispatched_at).as_second();
        self.start.is_none_or(|start| start <= started) && self.end.is_none_or(|end| started < end)
    }

    /// The range of time, if both ends are given.
    fn range(&self) -> Option<Range> {
        let moment = |seconds: i64| asked::moment(seconds.saturating_mul(1000));
        Some(Range::new(moment(self.start?), moment(self.end?)))
    }

    /// The earliest dispatch of a run that can have started in the stretch of time.
    fn earliest(&self) -> Timestamp {
        let start = self.start.map_or(Timestamp::MIN, |start| asked::moment(start.saturating_mul(1000)));
        start.checked_sub(SignedDuration::from_millis(RUN_LOOK_BACK_MILLIS)).unwrap_or(Timestamp::MIN)
    }

    /// How many runs are read: one more than the list may have, or all.
    fn most(&self) -> usize {
        self.limit.min(MOST_RUNS + 1)
    }
}

fn states(status: Option<&str>) -> Result<Vec<RunState>, Fault> {
    let Some(text) = status.filter(|text| !text.eq_ignore_ascii_case("ALL")) else { return Ok(Vec::new()) };
    let named = |state: &RunState| status_of(*state).eq_ignore_ascii_case(text);
    let found: Vec<_> = RunState::ALL.into_iter().filter(named).collect();
    if found.is_empty() {
        let told = format!("status is \"{text}\", expected ALL, STARTING, RUNNING, COMPLETED, FAILED or KILLED");
        return Err(plain::bad_request(told));
    }
    Ok(found)
}

/// Runs by the positions of their dispatch, newest first.
type Newest = BTreeMap<Reverse<u64>, Run>;

fn newest(reader: &dyn Queries, runners: &BTreeSet<WorkflowId>, query: &RunQuery) -> Result<Newest, Fault> {
    let mut newest = Newest::new();
    let filter = |workflow: Option<WorkflowId>, range| RunFilter {
        workflow,
        states: query.states.clone(),
        range,
        ..RunFilter::default()
    };
    match query.range() {
        // Of a stretch of time all runs are read, however many came after it.
        Some(range) => add(reader, &filter(None, Some(range)), runners, query, &mut newest)?,
        None => {
            for runner in runners {
                add(reader, &filter(Some(runner.clone()), None), runners, query, &mut newest)?;
            }
        }
    }
    if newest.len() > MOST_RUNS {
        return Err(plain::bad_request(format!(
            "limit: there are more than {MOST_RUNS} such runs, expected a limit up to that, or a start and an end that are \
             closer together"
        )));
    }
    Ok(newest)
}

/// Adds the runs of a filter, as far as they are among the newest of all.
fn add(
    reader: &dyn Queries,
    filter: &RunFilter,
    runners: &BTreeSet<WorkflowId>,
    query: &RunQuery,
    newest: &mut Newest,
) -> Result<(), StoreError> {
    let mut from: Option<String> = None;
    loop {
        let page = reader.runs(filter, PageRequest::newest(AT_A_TIME).after(from.as_deref()))?;
        for run in page.rows {
            let is_late = newest.last_key_value().is_none_or(|(oldest, _)| *oldest < Reverse(run.seq));
            if is_late && newest.len() >= query.most() || run.dispatched_at < query.earliest() && run.state.is_final() {
                return Ok(());
            }
            if runners.contains(&run.id.slot.workflow) && query.is_met(&run) {
                newest.insert(Reverse(run.seq), run);
            }
            if newest.len() > query.most() {
                newest.pop_last();
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(());
        }
    }
}

fn run_json(run: &Run) -> Value {
    let mut fields = json!({
        "runid": name_of(&run.id), "starting": run.dispatched_at.as_second(), "status": status_of(run.state),
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

pub(super) async fn list(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (program, query) = (asked.program()?, RunQuery::read(&asked)?);
    look(&app, move |catalogue| {
        let program = catalogue.need_program(&program)?;
        let runners = Runners::read(catalogue.reader())?.of(&program.id);
        let runs = newest(catalogue.reader(), &runners, &query)?;
        Ok(Json(runs.values().map(run_json).collect()))
    })
    .await
}

/// The run in the path, which must be one of the program's.
fn run(catalogue: &Catalogue<'_>, program: &ProgramName, text: &str) -> Result<Run, Fault> {
    let row = catalogue.need_program(program)?;
    let Some(mut id) = run_named(text) else {
        let told = format!("the run in the path is \"{text}\", expected a runid of {}", program.told());
        return Err(plain::bad_request(told));
    };
    let missing = || plain::not_found(format!("no run \"{text}\" of {}", program.told()));
    if !Runners::read(catalogue.reader())?.of(&row.id).contains(&id.slot.workflow) {
        return Err(missing());
    }
    if let Some(row) = catalogue.reader().workflow(&id.slot.workflow)? {
        id.slot.key = row.definition.keys.resolve(id.slot.key);
    }
    let runs = catalogue.reader().slot_runs(&id.slot)?;
    runs.into_iter().find(|run| run.id == id).ok_or_else(missing)
}

pub(super) async fn one(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (program, text) = (asked.program()?, asked.name("run").to_owned());
    look(&app, move |catalogue| run(catalogue, &program, &text).map(|run| Json(run_json(&run)))).await
}

/// How many runs a program has had.
fn counted(reader: &dyn Queries, runners: &BTreeSet<WorkflowId>) -> Result<usize, StoreError> {
    let mut count = 0;
    for runner in runners {
        let filter = RunFilter { workflow: Some(runner.clone()), ..RunFilter::default() };
        let mut from: Option<String> = None;
        loop {
            let page = reader.runs(&filter, PageRequest::newest(AT_A_TIME).after(from.as_deref()))?;
            count += page.rows.len();
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    Ok(count)
}

pub(super) async fn count(asked: CdapRequest, app: App) -> Result<Json<usize>, Fault> {
    let program = asked.program()?;
    look(&app, move |catalogue| {
        let program = catalogue.need_program(&program)?;
        let runners = Runners::read(catalogue.reader())?.of(&program.id);
        Ok(Json(counted(catalogue.reader(), &runners)?))
    })
    .await
}

/// All runs that go on, or are about to.
fn live(reader: &dyn Queries) -> Result<Vec<Run>, StoreError> {
    let states = RunState::ALL.into_iter().filter(|state| !state.is_final()).collect();
    let filter = RunFilter { states, ..RunFilter::default() };
    let (mut live, mut from) = (Vec::new(), None::<String>);
    loop {
        let page = reader.runs(&filter, PageRequest::newest(AT_A_TIME).after(from.as_deref()))?;
        live.extend(page.rows);
        from = page.next;
        if from.is_none() {
            return Ok(live);
        }
    }
}

/// The status of a program, of which some runs may go on.
fn status_among(live: &[Run], runners: &BTreeSet<WorkflowId>) -> &'static str {
    let is_running = live.iter().any(|run| runners.contains(&run.id.slot.workflow));
    if is_running { "RUNNING" } else { "STOPPED" }
}

pub(super) async fn status(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let program = asked.program()?;
    look(&app, move |catalogue| {
        let program = catalogue.need_program(&program)?;
        let runners = Runners::read(catalogue.reader())?.of(&program.id);
        Ok(Json(json!({ "status": status_among(&live(catalogue.reader())?, &runners) })))
    })
    .await
}

/// Refuses a time limit for stopping: that is up to the executor.
fn check_stop(asked: &CdapRequest) -> Result<(), Fault> {
    if asked.get("graceful").is_none() {
        return Ok(());
    }
    let told = "the query parameter graceful is not supported: a run is asked to end, and ended by force once its executor's \
                own grace is over; stop it without";
    Err(plain::of(StatusCode::NOT_IMPLEMENTED, told))
}

async fn kill(app: &App, by: &Actor, slot: SlotRef) -> Result<(), Fault> {
    match app.ask(by, Kill { slot, reason: None }).await {
        // It has ended meanwhile.
        Ok(_) | Err(AskError::Refused(Refusal::AlreadyFinal(..))) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn stop(asked: CdapRequest, app: App) -> Result<(), Fault> {
    check_stop(&asked)?;
    let program = asked.program()?;
    let found = look(&app, move |catalogue| {
        let row = catalogue.need_program(&program)?;
        let runners = Runners::read(catalogue.reader())?.of(&row.id);
        let mut live = live(catalogue.reader())?;
        live.retain(|run| runners.contains(&run.id.slot.workflow));
        if live.is_empty() {
            return Err(plain::bad_request(format!("{} is not running", program.told())));
        }
        Ok(live)
    });
    for run in found.await? {
        kill(&app, &asked.by, run.id.slot).await?;
    }
    Ok(())
}

pub(super) async fn stop_one(asked: CdapRequest, app: App) -> Result<(), Fault> {
    check_stop(&asked)?;
    let (program, text) = (asked.program()?, asked.name("run").to_owned());
    let found = look(&app, move |catalogue| {
        let run = run(catalogue, &program, &text)?;
        if run.state.is_final() {
            let status = status_of(run.state);
            return Err(plain::bad_request(format!(
                "the run \"{text}\" of {} is {status}, and not running",
                program.told()
            )));
        }
        Ok(run)
    });
    kill(&app, &asked.by, found.await?.id.slot).await
}

pub(super) async fn statuses(asked: CdapRequest, app: App, body: Bytes) -> Result<Json<Value>, Fault> {
    batch::answer(&asked, &app, &body, |catalogue| {
        let (runners, live) = (Runners::read(catalogue.reader())?, live(catalogue.reader())?);
        Ok(move |catalogue: &Catalogue<'_>, program: &ProgramName| {
            let program = catalogue.need_program(program)?;
            Ok(("status", json!(status_among(&live, &runners.of(&program.id)))))
        })
    })
    .await
}

/// The newest run of each of many programs.
pub(super) async fn newest_of_each(asked: CdapRequest, app: App, body: Bytes) -> Result<Json<Value>, Fault> {
    batch::answer(&asked, &app, &body, |catalogue| {
        let runners = Runners::read(catalogue.reader())?;
        Ok(move |catalogue: &Catalogue<'_>, program: &ProgramName| {
            let program = catalogue.need_program(program)?;
            let runs = newest(catalogue.reader(), &runners.of(&program.id), &RunQuery::newest(1))?;
            Ok(("runs", runs.values().map(run_json).collect()))
        })
    })
    .await
}

pub(super) async fn counts(asked: CdapRequest, app: App, body: Bytes) -> Result<Json<Value>, Fault> {
    batch::answer(&asked, &app, &body, |catalogue| {
        let runners = Runners::read(catalogue.reader())?;
        Ok(move |catalogue: &Catalogue<'_>, program: &ProgramName| {
            let program = catalogue.need_program(program)?;
            Ok(("runCount", json!(counted(catalogue.reader(), &runners.of(&program.id))?)))
        })
    })
    .await
}
