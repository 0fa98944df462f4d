//! A project on a virtual clock, for tests: the real scheduler and the real functions, and no time that passes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    AnyAnswer, Ask, Command, Core, FireRequest, Input, Inspect, Refusal, Reply, Request, Surroundings, drive,
    live_through,
};
use kelos_engine::executor::{RunInput, Start};
use kelos_engine::turn::{TurnError, Turns};
use kelos_explain::why::read as read_why;
use kelos_model::probe::Verdict;
use kelos_model::run::Report;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Outcome, Probe, ProbeAnswer, RunId, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_store::{Journal, MemoryStore, PageRequest, Queries, SlotFilter, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use super::context::Context;
use super::function::{self, FunctionJob};
use super::input::{INPUT, SlotInput};
use super::locks::Locks;
use super::mistakes::Mistakes;
use super::output::{self, OutputError};
use super::project::Project;
use super::run_output::RunOutput;
use super::scheduler::OwnPlanner;

/// The time that a function may take in earnest, before it is taken for one that never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// A rehearsal that can't go on. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The definitions have mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A text is no moment, no id or no input.
    #[error("read {what}: {reason}")]
    Unsound {
        /// The kind of text, and the text.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The scheduler refused a request.
    #[error("{0}")]
    Refused(Refusal),
    /// A defect of the scheduler.
    #[error("{0}")]
    Turn(#[from] TurnError),
    /// A defect of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no runtime for the functions.
    #[error("make a runtime for functions: {0}")]
    Runtime(std::io::Error),
}

/// A project that is played through, for `#[test]`. It is synchronous; nothing is shared between two of them.
///
/// Time passes only by [`Rehearsal::run_until`]. A function is called at the moment of its start, for real, and its run takes no time
/// where [`Rehearsal::takes`] says nothing else. Times within a function, such as those of `tokio::time::sleep`, are real ones.
///
/// ```
/// use kelos::SlotState;
/// use kelos::embed::{Context, Project, Rehearsal, Retry, ScheduledTime, job};
/// use std::time::Duration;
///
/// async fn import(_: Context, day: ScheduledTime, _: ()) -> Result<String, String> {
///     Ok(day.time.to_string())
/// }
///
/// let import = job("import", import).with(()).cron("0 6 * * *").retry(Retry::fixed(Duration::from_secs(600)));
/// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(import))?;
/// rehearsal.fail("import", "2026-03-28T06:00Z", 2)?;
/// rehearsal.run_until("2026-03-30T00:00Z")?;
/// assert_eq!(rehearsal.state("import", "2026-03-28T06:00Z")?, Some(SlotState::Succeeded));
/// assert_eq!(rehearsal.attempts("import", "2026-03-28T06:00Z")?, 3);
/// assert_eq!(rehearsal.output::<String>("import", "2026-03-29T06:00Z")?, "2026-03-29T06:00:00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rehearsal {
    turns: Turns,
    store: MemoryStore,
    reader: Arc<dyn Queries>,
    now: Timestamp,
    until: Timestamp,
    stage: RehearsalStage,
}

/// The surroundings of the scheduler: functions, their ends, and what is there.
struct RehearsalStage {
    jobs: BTreeMap<WorkflowId, FunctionJob>,
    planners: BTreeMap<WorkflowId, OwnPlanner>,
    runtime: Runtime,
    locks: Locks,
    reader: Arc<OnceLock<Arc<dyn Queries>>>,
    /// The reports that are due, by moment and then in the order in which the runs were begun.
    due: BinaryHeap<Reverse<(Timestamp, u64)>>,
    reports: BTreeMap<u64, (RunId, Vec<Report>)>,
    begun: u64,
    failing: BTreeMap<SlotRef, u32>,
    lengths: BTreeMap<WorkflowId, SignedDuration>,
    paths: BTreeSet<String>,
    started: Vec<(Timestamp, RunId)>,
    lines: BTreeMap<SlotRef, Vec<String>>,
    reply: Option<Reply>,
}

impl Rehearsal {
    /// A project at a moment such as `2026-03-28T00:00Z`. Times before it do not count.
    ///
    /// # Errors
    /// When the project has mistakes, or the text is no moment.
    pub fn at(moment: &str, project: Project) -> Result<Rehearsal, RehearsalError> {
        let now = read_moment(moment)?;
        let workflows = project.check()?;
        let jobs = project.functions(&workflows);
        let config = project.scheduler().clone();
        let mut store = MemoryStore::new();
        let reader: Arc<dyn Queries> = store.reader();
        let lease = store.lease("rehearsal", now, u64::MAX / 4)?.ok_or_else(|| RehearsalError::Unsound {
            what: "an empty store".to_owned(),
            reason: "it has a leader".to_owned(),
        })?;
        let (turns, _) = Turns::restore(config, &mut store, lease, now)?;
        let known = OnceLock::new();
        let _ = known.set(reader.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let stage = RehearsalStage {
            jobs,
            planners: project.planners(),
            runtime: runtime.map_err(RehearsalError::Runtime)?,
            locks: Locks::default(),
            reader: Arc::new(known),
            due: BinaryHeap::new(),
            reports: BTreeMap::new(),
            begun: 0,
            failing: BTreeMap::new(),
            lengths: BTreeMap::new(),
            paths: BTreeSet::new(),
            started: Vec::new(),
            lines: BTreeMap::new(),
            reply: None,
        };
        let mut rehearsal = Rehearsal { turns, store, reader, now, until: now, stage };
        let all: Vec<Arc<Workflow>> = workflows.into_iter().map(Arc::new).collect();
        let deployed = BTreeMap::new();
        live_through(&mut rehearsal, vec![Input::Definitions { provenance: Provenance::Code, all, deployed }])?;
        for workflow in project.once() {
            rehearsal.start(workflow.as_str(), &())?;
        }
        Ok(rehearsal)
    }

    /// All that is stored.
    #[must_use]
    pub fn reader(&self) -> &Arc<dyn Queries> {
        &self.reader
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Lets time pass until a moment, and everything happen that happens before it. A slot is opened once its time has passed, a
    /// millisecond after it.
    ///
    /// # Errors
    /// When the text is no moment. Others are defects of Kelos.
    pub fn run_until(&mut self, moment: &str) -> Result<(), RehearsalError> {
        self.until = read_moment(moment)?;
        drive(self)?;
        self.now = self.until.max(self.now);
        Ok(())
    }

    /// Lets the next attempts of a slot fail, without a call of the function.
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn fail(&mut self, job: &str, key: &str, times: u32) -> Result<(), RehearsalError> {
        self.stage.failing.insert(slot(job, key)?, times);
        Ok(())
    }

    /// Says how long each run of a job takes.
    ///
    /// # Errors
    /// When the text is no id.
    pub fn takes(&mut self, job: &str, length: Duration) -> Result<(), RehearsalError> {
        let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
        self.stage.lengths.insert(id(job)?, length);
        Ok(())
    }

    /// Lets a path be there from now on, for triggers that wait for it, such as `file:///data/x`. No other path is there.
    pub fn appears(&mut self, path: &str) {
        self.stage.paths.insert(path.to_owned());
    }

    /// Starts a job on demand.
    ///
    /// # Errors
    /// When there is no such job.
    pub fn start(&mut self, job: &str, input: &impl Serialize) -> Result<SlotRef, RehearsalError> {
        let json = serde_json::to_string(input).map_err(|error| unsound("the input", &error))?;
        let arguments = [(INPUT.to_owned(), json)].into();
        self.ask(FireRequest { workflow: id(job)?, arguments, priority: 0, unconstrained: false, reason: None })
    }

    /// Makes any request to the scheduler, and lets its consequences happen.
    ///
    /// # Errors
    /// When it is refused.
    pub fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, RehearsalError> {
        let ask: Ask = request.into();
        live_through(self, vec![Input::Asked { token: 0, by: Actor::person("test"), ask }])?;
        let answer: AnyAnswer = match self.stage.reply.take() {
            Some(reply) => reply.map_err(RehearsalError::Refused)?,
            None => return Err(unsound("the answer", &"there is none")),
        };
        R::answer(answer).ok_or_else(|| unsound("the answer", &"it is that of another request"))
    }

    /// The state of a slot; none if there is no such slot.
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn state(&self, job: &str, key: &str) -> Result<Option<SlotState>, RehearsalError> {
        Ok(self.reader.slot(&slot(job, key)?)?.map(|slot| slot.state))
    }

    /// All slots of a job with their states, the oldest first.
    ///
    /// # Errors
    /// When the text is no id.
    pub fn slots(&self, job: &str) -> Result<Vec<(SlotKey, SlotState)>, RehearsalError> {
        let filter = SlotFilter { workflow: Some(id(job)?), ..SlotFilter::default() };
        let rows = self.reader.slots(&filter, PageRequest::oldest(usize::MAX))?.rows;
        Ok(rows.into_iter().map(|row| (row.id.key, row.slot.state)).collect())
    }

    /// The number of runs that a slot has had.
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn attempts(&self, job: &str, key: &str) -> Result<u32, RehearsalError> {
        Ok(self.reader.slot(&slot(job, key)?)?.map_or(0, |slot| slot.last_run))
    }

    /// All runs in the order in which they were started, and when.
    #[must_use]
    pub fn started(&self) -> &[(Timestamp, RunId)] {
        &self.stage.started
    }

    /// The lines that the runs of a slot have written; of a batch those of the run that served it last.
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn lines(&self, job: &str, key: &str) -> Result<&[String], RehearsalError> {
        let slot = slot(job, key)?;
        let last = self.reader.slot_runs(&slot)?.pop().map_or(slot, |run| run.leader().slot);
        Ok(self.stage.lines.get(&last).map_or(&[], Vec::as_slice))
    }

    /// The output of the last run of a slot.
    ///
    /// # Errors
    /// When it gave none, or one of another type.
    pub fn output<T: DeserializeOwned>(&self, job: &str, key: &str) -> Result<T, Box<dyn std::error::Error>> {
        let slot = slot(job, key)?;
        let run = self.reader.slot_runs(&slot)?.pop();
        let outputs = run.as_ref().and_then(|run| run.outputs.as_deref());
        Ok(output::read(&slot.to_string(), outputs).map_err(Box::<OutputError>::new)?)
    }

    /// Starts that schedulers of one's own want now, and the moment at which they want to be asked again.
    fn plan(&self) -> Result<(Vec<Input>, Option<Timestamp>), StoreError> {
        let (mut inputs, mut again) = (Vec::new(), None);
        for (job, planner) in &self.stage.planners {
            planner.refresh(job, &*self.reader)?;
            let planned = planner.plan(job, self.now);
            let ask = |start: FireRequest| Input::Asked { token: 0, by: Actor::person("scheduler"), ask: start.into() };
            inputs.extend(planned.starts.into_iter().map(ask));
            // What is not after this moment has been asked just now.
            again = again.into_iter().chain(planned.again.filter(|at| *at > self.now)).min();
        }
        Ok((inputs, again))
    }

    /// The account of `kelos why` of a slot now, in one line.
    ///
    /// # Errors
    /// When the texts are no id and no key, or there is no such slot.
    pub fn why(&mut self, job: &str, key: &str) -> Result<String, RehearsalError> {
        let slot = slot(job, key)?;
        let inspection = self.ask(Inspect { slot: slot.clone() }).ok();
        let account = read_why(&*self.reader, &slot, self.now, true, inspection.as_ref())?;
        Ok(std::iter::once(account.headline).chain(account.blockers).collect::<Vec<_>>().join("; "))
    }
}

fn unsound(what: &str, reason: &impl ToString) -> RehearsalError {
    RehearsalError::Unsound { what: what.to_owned(), reason: reason.to_string() }
}

fn read_moment(text: &str) -> Result<Timestamp, RehearsalError> {
    text.parse().map_err(|error: jiff::Error| unsound(&format!("the moment \"{text}\""), &error))
}

fn id(job: &str) -> Result<WorkflowId, RehearsalError> {
    WorkflowId::new(job).map_err(|error| unsound(&format!("the id \"{job}\""), &error))
}

fn slot(job: &str, key: &str) -> Result<SlotRef, RehearsalError> {
    let time = key.parse::<Timestamp>().map(SlotKey::Time);
    let key = time.or_else(|_| SlotKey::parse(key)).map_err(|error| unsound(&format!("the key \"{key}\""), &error))?;
    Ok(SlotRef::new(id(job)?, key))
}

fn failed(reason: String) -> Outcome {
    Outcome::Failed { reason, exit_status: None, code: None }
}

impl RehearsalStage {
    /// Calls the function of a run, and returns the reports of its start.
    fn begin(&mut self, now: Timestamp, start: &Start) -> Vec<Report> {
        self.started.push((now, start.run.clone()));
        self.begun += 1;
        let begun = Report::Started { external_id: "rehearsal".to_owned() };
        let end = self.call(start);
        let mut reports: Vec<Report> = Vec::new();
        reports.extend(end.0.map(|outputs| Report::Gave { outputs }));
        reports.push(Report::Ended { outcome: end.1 });
        let length = self.lengths.get(&start.workflow.id).copied().unwrap_or_default();
        match now.checked_add(length) {
            Ok(at) if at > now => {
                self.due.push(Reverse((at, self.begun)));
                self.reports.insert(self.begun, (start.run.clone(), reports));
                vec![begun]
            }
            _ => std::iter::once(begun).chain(reports).collect(),
        }
    }

    fn call(&mut self, start: &Start) -> (Option<serde_json::Map<String, serde_json::Value>>, Outcome) {
        let slot = &start.run.slot;
        let batch = start.given.batch.as_ref();
        let json = start.given.arguments.get(INPUT).map(String::as_str);
        let input = SlotInput { workflow: &start.workflow, key: &slot.key, json, batch };
        if self.lets_fail(slot, &input) {
            return (None, failed("the test lets it fail".to_owned()));
        }
        let Some(job) = self.jobs.get(&start.workflow.id).cloned() else {
            return (None, Outcome::refused("it is no job of this project".to_owned()));
        };
        let output = RunOutput::lines();
        let context = Context::new(start, output.clone(), self.reader.clone(), self.locks.clone());
        let timeout = job.timeout.unwrap_or(PATIENCE).min(PATIENCE);
        let end = self.runtime.block_on(async {
            match function::begin(&job, &context, &input, self.runtime.handle()) {
                Ok(task) => tokio::time::timeout(timeout, task).await.map(function::ended),
                Err(failure) => Ok(Err(failure)),
            }
        });
        self.lines.entry(slot.clone()).or_default().extend(output.taken());
        match end {
            Ok(Ok(outputs)) => (outputs, Outcome::Succeeded),
            Ok(Err(failure)) => (None, failure.outcome()),
            Err(_) => (None, failed(format!("its function did not end within {} s", timeout.as_secs_f64()))),
        }
    }

    /// Whether the test has a run fail: that of a slot, or of a batch in which such a slot is.
    fn lets_fail(&mut self, slot: &SlotRef, input: &SlotInput<'_>) -> bool {
        let others = input.times().into_iter().filter(|_| input.batch.is_some());
        let served = others.map(|time| SlotRef::at(slot.workflow.clone(), time)).chain([slot.clone()]);
        let mut any = false;
        for slot in served.collect::<BTreeSet<SlotRef>>() {
            if let Some(left) = self.failing.get_mut(&slot).filter(|left| **left > 0) {
                *left -= 1;
                any = true;
            }
        }
        any
    }

    /// The reports that are due.
    fn take_due(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(Reverse((_, number))) = self.due.peek().filter(|Reverse((at, _))| *at <= now).copied() {
            self.due.pop();
            let Some((run, reports)) = self.reports.remove(&number) else { continue };
            inputs.extend(reports.into_iter().map(|report| Input::RunReported { run: run.clone(), report }));
        }
        inputs
    }

    fn end(&mut self, run: &RunId) -> Input {
        self.reports.retain(|_, (live, _)| live != run);
        Input::RunReported { run: run.clone(), report: Report::Ended { outcome: Outcome::Killed } }
    }

    fn answer(&self, now: Timestamp, probe: Probe) -> Input {
        let is_there = match &probe {
            Probe::Path { uri, .. } => self.paths.contains(uri),
            _ => false,
        };
        let verdict = if is_there { Verdict::Yes } else { Verdict::No };
        Input::ProbeAnswered { probe, answer: ProbeAnswer { verdict, detail: String::new(), at: now } }
    }
}

impl Surroundings for Rehearsal {
    type Trouble = TurnError;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// Advances the clock to the next event, but not beyond the end.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, TurnError> {
        let (starts, again) = self.plan()?;
        if !starts.is_empty() {
            return Ok(Some(starts));
        }
        let next = due.into_iter().chain(again).chain(self.stage.due.peek().map(|Reverse((at, _))| *at)).min();
        let Some(next) = next.filter(|next| *next <= self.until) else { return Ok(None) };
        self.now = next.max(self.now);
        Ok(Some(self.stage.take_due(self.now)))
    }

    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, TurnError> {
        let acted = self.turns.turn(&mut self.store, now, inputs)?;
        match acted.broken.into_iter().next() {
            Some(broken) => Err(TurnError::Broken(broken.breach)),
            None => Ok(acted.commands),
        }
    }

    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, TurnError> {
        let mut inputs = Vec::new();
        for command in commands {
            match command {
                Command::StartRun { run, workflow, collected, batch, .. } => {
                    let given = RunInput::of(&workflow, &run.slot.key, collected.as_deref()).serving(batch);
                    let (settings, properties) = Default::default();
                    let start = Start { run: run.clone(), workflow, settings, properties, given, worker: None };
                    let reports = self.stage.begin(now, &start).into_iter();
                    inputs.extend(reports.map(|report| Input::RunReported { run: run.clone(), report }));
                }
                Command::CancelRun { run, .. } => inputs.push(self.stage.end(&run)),
                Command::Probe(probe) => inputs.push(self.stage.answer(now, probe)),
                Command::Reply { reply, .. } => self.stage.reply = Some(reply),
                // A run is never lost here, and jobs with ids are not defined by functions.
                Command::CheckRun { .. } | Command::Relate(_) => {}
            }
        }
        Ok(inputs)
    }
}
