//! A project on a virtual clock, for tests: the real scheduler and the real functions, and no time that passes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    AnyAnswer, Ask, Command, Core, FireRequest, Input, Inspect, Refusal, Request, Surroundings, drive, live_through,
};
use kelos_engine::executor::{RunInput, Start};
use kelos_engine::turn::{TurnError, Turns};
use kelos_explain::why::read as read_why;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, RunId, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_store::{Journal, MemoryStore, PageRequest, Queries, SlotFilter, StoreError, StoredState};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::input::INPUT;
use super::mistakes::Mistakes;
use super::output::{self, OutputError};
use super::project::Project;
use super::stage::RehearsalStage;

/// The token of a request that the test waits for.
const OWN: u64 = 1;

/// A rehearsal that can't go on. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
/// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
/// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
/// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
/// assert_eq!(rehearsal.run_until("tomorrow").map_err(|error| error.to_string().is_empty()), Err(false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
/// Time passes only by [`Rehearsal::run_until`], and nothing happens before the first call of it, or the first request. A function is called at the moment of its start, for real, and its run takes no time
/// where [`Rehearsal::takes`] says nothing else. Times within a function, such as those of `tokio::time::sleep`, are real ones. A function
/// that is [parked](super::Context::park) stays so while time passes, until what it waits for comes.
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
    /// Whether the scheduler may act: not before the test can say how runs end and how long they take.
    is_begun: bool,
    stage: RehearsalStage,
}

impl Rehearsal {
    /// A project at a moment such as `2026-03-28T00:00Z`. Times before it count only where a job [catches up](super::Job::catch_up) with all of
    /// them, which are those of a week.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// assert_eq!(rehearsal.now().to_string(), "2026-03-28T00:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the project has mistakes, or the text is no moment.
    pub fn at(moment: &str, project: Project) -> Result<Rehearsal, RehearsalError> {
        let now = read_moment(moment)?;
        let workflows = project.check_at(now, true)?;
        let functions = project.functions();
        let config = project.scheduler().clone();
        let mut store = MemoryStore::new();
        let reader: Arc<dyn Queries> = store.reader();
        let lease = store.lease("rehearsal", now, u64::MAX / 4)?.ok_or_else(|| RehearsalError::Unsound {
            what: "an empty store".to_owned(),
            reason: "it has a leader".to_owned(),
        })?;
        let (turns, _) = Turns::restore(config, &mut store, lease, now)?;
        let mut stage =
            RehearsalStage::new(functions, project.planners(), reader.clone()).map_err(RehearsalError::Runtime)?;
        stage.signals = project.signals();
        let mut rehearsal = Rehearsal { turns, store, reader, now, until: now, is_begun: false, stage };
        let all: Vec<Arc<Workflow>> = workflows.into_iter().map(Arc::new).collect();
        let deployed = BTreeMap::new();
        live_through(&mut rehearsal, vec![Input::Definitions { provenance: Provenance::Code, all, deployed }])?;
        rehearsal.is_begun = true;
        for workflow in project.once() {
            rehearsal.start(workflow.as_str(), &())?;
        }
        Ok(rehearsal)
    }

    /// All that is stored.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert!(rehearsal.reader().last_seq()? > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reader(&self) -> &Arc<dyn Queries> {
        &self.reader
    }

    /// The present moment.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert_eq!(rehearsal.now().to_string(), "2026-03-29T00:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Lets time pass until a moment, and everything happen that happens before it. A slot is opened once its time has passed, a
    /// millisecond after it.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-04-28T00:00Z")?;
    /// assert_eq!(rehearsal.slots("import")?.len(), 31);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no moment. Others are defects of Kelos.
    pub fn run_until(&mut self, moment: &str) -> Result<(), RehearsalError> {
        self.until = read_moment(moment)?;
        drive(self)?;
        self.now = self.until.max(self.now);
        Ok(())
    }

    /// Sets the clock to another moment, without anything of what lies between: a machine that slept, or whose clock was wrong. Live runs
    /// take as long as they would have. Times that were passed over are due at once, as the catch-up of their job has it; what was done
    /// before the clock was set back stays done.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-28T06:01Z")?;
    /// rehearsal.set_clock("2026-03-28T05:30Z")?;
    /// rehearsal.run_until("2026-03-28T07:00Z")?;
    /// assert_eq!(rehearsal.started().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no moment. Others are defects of Kelos.
    pub fn set_clock(&mut self, moment: &str) -> Result<(), RehearsalError> {
        let moment = read_moment(moment)?;
        self.stage.shift(moment.duration_since(self.now));
        (self.now, self.until) = (moment, moment);
        Ok(drive(self)?)
    }

    /// Lets the next attempts of a slot fail, without a call of the function.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.fail("import", "2026-03-28T06:00Z", 2)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert_eq!(rehearsal.attempts("import", "2026-03-28T06:00Z")?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn fail(&mut self, job: &str, key: &str, times: u32) -> Result<(), RehearsalError> {
        self.stage.failing.insert(slot(job, key)?, times);
        Ok(())
    }

    /// Says how long each run of a job takes.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// use kelos::SlotState;
    /// use std::time::Duration;
    ///
    /// rehearsal.takes("import", Duration::from_secs(3600))?;
    /// rehearsal.run_until("2026-03-28T06:30Z")?;
    /// assert_eq!(rehearsal.state("import", "2026-03-28T06:00Z")?, Some(SlotState::Running));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no id.
    pub fn takes(&mut self, job: &str, length: Duration) -> Result<(), RehearsalError> {
        let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
        self.stage.lengths.insert((id(job)?, None), length);
        Ok(())
    }

    /// Lets a path be there from now on, for triggers that wait for it, such as `file:///data/x`. No other path is there.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *").when("path(file:///data/orders.csv)".parse()?));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// use kelos::SlotState;
    ///
    /// rehearsal.run_until("2026-03-28T07:00Z")?;
    /// assert_eq!(rehearsal.state("import", "2026-03-28T06:00Z")?, Some(SlotState::Waiting));
    /// rehearsal.appears("file:///data/orders.csv");
    /// rehearsal.run_until("2026-03-28T08:00Z")?;
    /// assert_eq!(rehearsal.state("import", "2026-03-28T06:00Z")?, Some(SlotState::Succeeded));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn appears(&mut self, path: &str) {
        self.stage.paths.insert(path.to_owned());
    }

    /// Starts a job on demand.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let project = Project::new("hello", "1.0").add(job("greet", greet).with(()).on_demand());
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// let slot = rehearsal.start("greet", &"Ann")?;
    /// assert_eq!(rehearsal.output::<String>("greet", &slot.key.to_string())?, "hello Ann");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such job.
    pub fn start(&mut self, job: &str, input: &(impl Serialize + ?Sized)) -> Result<SlotRef, RehearsalError> {
        let json = serde_json::to_string(input).map_err(|error| unsound("the input", &error))?;
        let arguments = [(INPUT.to_owned(), json.into())].into();
        let (workflow, key, reason) = (id(job)?, None, None);
        let request = FireRequest { workflow, arguments, key, priority: 0, unconstrained: false, reason };
        Ok(self.ask(request)?.slot)
    }

    pub(super) fn stage(&mut self) -> &mut RehearsalStage {
        &mut self.stage
    }

    /// Makes any request to the scheduler, and lets its consequences happen.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let project = Project::new("hello", "1.0").add(job("greet", greet).with(()).on_demand());
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// use kelos::requests::Rerun;
    ///
    /// let slot = rehearsal.start("greet", &"Ann")?;
    /// rehearsal.ask(Rerun::of(slot.clone()))?;
    /// assert_eq!(rehearsal.attempts("greet", &slot.key.to_string())?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is refused.
    pub fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, RehearsalError> {
        let ask: Ask = request.into();
        live_through(self, vec![Input::Asked { token: OWN, by: Actor::person("test"), ask, warrant: None }])?;
        let answer: AnyAnswer = match self.stage.reply.take() {
            Some(reply) => reply.map_err(RehearsalError::Refused)?,
            None => return Err(unsound("the answer", &"there is none")),
        };
        R::answer(answer).ok_or_else(|| unsound("the answer", &"it is that of another request"))
    }

    /// The state of a slot; none if there is no such slot.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// use kelos::SlotState;
    ///
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert_eq!(rehearsal.state("import", "2026-03-28T06:00Z")?, Some(SlotState::Succeeded));
    /// assert_eq!(rehearsal.state("import", "2026-03-29T06:00Z")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn state(&self, job: &str, key: &str) -> Result<Option<SlotState>, RehearsalError> {
        Ok(self.reader.slot(&slot(job, key)?)?.map(|slot| slot.state))
    }

    /// All slots of a job with their states, the oldest first.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-31T00:00Z")?;
    /// let times: Vec<String> = rehearsal.slots("import")?.into_iter().map(|(key, _)| key.to_string()).collect();
    /// assert_eq!(times.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert_eq!(rehearsal.attempts("import", "2026-03-28T06:00Z")?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the texts are no id and no key.
    pub fn attempts(&self, job: &str, key: &str) -> Result<u32, RehearsalError> {
        Ok(self.reader.slot(&slot(job, key)?)?.map_or(0, |slot| slot.last_run))
    }

    /// All runs in the order in which they were started, and when.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-30T00:00Z")?;
    /// let runs: Vec<u32> = rehearsal.started().iter().map(|(_, run)| run.number).collect();
    /// assert_eq!(runs, [1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn started(&self) -> &[(Timestamp, RunId)] {
        &self.stage.started
    }

    /// The lines that the runs of a slot have written; of a batch those of the run that served it last.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert_eq!(rehearsal.lines("import", "2026-03-28T06:00Z")?, ["importing"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert_eq!(rehearsal.output::<String>("import", "2026-03-28T06:00Z")?, "2026-03-28T06:00:00Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
            let ask = |start: FireRequest| Input::Asked {
                token: 0,
                by: Actor::person("scheduler"),
                ask: start.into(),
                warrant: None,
            };
            inputs.extend(planned.starts.into_iter().map(ask));
            // What is not after this moment has been asked just now.
            again = again.into_iter().chain(planned.again.filter(|at| *at > self.now)).min();
        }
        Ok((inputs, again))
    }

    /// The account of `kelos why` of a slot now, in one line.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, ScheduledTime, job};
    /// # async fn import(context: Context, at: ScheduledTime, _: ()) -> Result<String, String> { context.log("importing"); Ok(at.time.to_string()) }
    /// # let project = Project::new("shop", "1.0").add(job("import", import).with(()).cron("0 6 * * *"));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.run_until("2026-03-29T00:00Z")?;
    /// assert!(rehearsal.why("import", "2026-03-28T06:00Z")?.contains("succeeded"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the texts are no id and no key, or there is no such slot.
    pub fn why(&mut self, job: &str, key: &str) -> Result<String, RehearsalError> {
        self.why_slot(&slot(job, key)?)
    }

    pub(super) fn why_slot(&mut self, slot: &SlotRef) -> Result<String, RehearsalError> {
        let inspection = self.ask(Inspect { slot: slot.clone() }).ok();
        let account = read_why(&*self.reader, slot, self.now, true, inspection.as_ref())?;
        let run = account.runs.last().filter(|_| account.state == Some(SlotState::Running));
        let note = run.and_then(|run| self.stage.note(&run.leader()));
        let words = std::iter::once(account.headline).chain(account.blockers).chain(note);
        Ok(words.collect::<Vec<_>>().join("; "))
    }
}

pub(super) fn unsound(what: &str, reason: &impl ToString) -> RehearsalError {
    RehearsalError::Unsound { what: what.to_owned(), reason: reason.to_string() }
}

fn read_moment(text: &str) -> Result<Timestamp, RehearsalError> {
    text.parse().map_err(|error: jiff::Error| unsound(&format!("the moment \"{text}\""), &error))
}

pub(super) fn id(job: &str) -> Result<WorkflowId, RehearsalError> {
    WorkflowId::new(job).map_err(|error| unsound(&format!("the id \"{job}\""), &error))
}

fn slot(job: &str, key: &str) -> Result<SlotRef, RehearsalError> {
    let time = key.parse::<Timestamp>().map(SlotKey::Time);
    let key = time.or_else(|_| SlotKey::parse(key)).map_err(|error| unsound(&format!("the key \"{key}\""), &error))?;
    Ok(SlotRef::new(id(job)?, key))
}

impl Surroundings for Rehearsal {
    type Trouble = TurnError;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn tick(&mut self) -> Vec<Input> {
        if self.is_begun { vec![Input::Woke { only: None, look_again: false }] } else { Vec::new() }
    }

    /// Advances the clock to the next event, but not beyond the end.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, TurnError> {
        let ended = self.stage.go_on(self.now);
        if !ended.is_empty() {
            return Ok(Some(ended));
        }
        let (starts, again) = self.plan()?;
        if !starts.is_empty() {
            return Ok(Some(starts));
        }
        let next = due.into_iter().chain(again).chain(self.stage.next_due()).min();
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
                Command::StartRun { run, workflow, collected, batch, inputs: given, about, .. } => {
                    let given = Arc::unwrap_or_clone(given);
                    let given = RunInput::of(&workflow, &run.slot.key, collected.as_deref(), given);
                    let given = given.serving(batch).about(about);
                    let (settings, properties) = Default::default();
                    let start = Start {
                        run: run.clone(),
                        workflow,
                        settings,
                        properties,
                        given,
                        worker: None,
                        lease: None,
                        earlier: Vec::new(),
                    };
                    let reports = self.stage.begin(now, &start).into_iter();
                    inputs.extend(reports.map(|report| Input::RunReported { run: run.clone(), report }));
                }
                Command::CancelRun { run, .. } => inputs.push(self.stage.end(&run)),
                Command::AnswerRun { run, request, answer, .. } => self.stage.answer_run(&run, request, answer),
                Command::Probe(probe) => inputs.push(self.stage.answer(now, probe)),
                Command::Reply { token: OWN, reply } => self.stage.reply = Some(reply),
                // No caller waits for the answers to schedulers, and to requests that were made for later.
                Command::Reply { .. } => {}
                // A run is never lost here, and jobs with ids are not defined by functions.
                Command::CheckRun { .. } | Command::Relate(_) => {}
            }
        }
        inputs.extend(self.stage.go_on(now));
        Ok(inputs)
    }
}
