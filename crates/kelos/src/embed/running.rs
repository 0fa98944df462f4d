//! A project that runs: starts of jobs, their ends, pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kelos_core::{Pause, Request, Resume};
use kelos_engine::{Handle, Status};
#[cfg(feature = "kafka")]
use kelos_kafka::Kafka;
use kelos_model::workflow::{About, DefinitionVersion};
use kelos_model::{Actor, Run, SlotKey, SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::changes::Changes;
use super::function::FunctionExecutor;
use super::outcome;
use super::output::{self, OutputError};
use super::request_error::RequestError;
use super::scheduler::OwnPlanner;
use super::steps::SignalTypes;
use crate::node::Node;

/// The end of a slot.
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
/// # let greet = job("greet", greet).with(()).on_demand();
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let running = Project::new("hello", "1.0").add(greet).start().await?;
/// let ended = running.run("greet", &"Ann").await?;
/// assert_eq!(ended.run.as_ref().map(|run| run.id.number), Some(1));
/// # running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct EndedSlot {
    /// The slot.
    pub slot: SlotRef,
    /// The state that it ended in.
    pub state: SlotState,
    /// The latest run; none where none was begun.
    pub run: Option<Run>,
    /// The version of the definition with which that run began.
    pub version: Option<DefinitionVersion>,
}

impl EndedSlot {
    /// Whether it succeeded.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// assert!(running.run("greet", &"Ann").await?.is_success());
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.state == SlotState::Succeeded
    }

    /// The reason of a failure, with its causes; none where there is none.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// assert_eq!(running.run("greet", &"Ann").await?.reason(), None);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        outcome::reason(self.run.as_ref()?.outcome.as_ref()?)
    }

    /// The output of the function.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// assert_eq!(running.run("greet", &"Ann").await?.output::<String>()?, "hello Ann");
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it gave none, or one of another type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        output::read(&self.slot.to_string(), self.run.as_ref().and_then(|run| run.outputs.as_deref()))
    }
}

/// A project that runs in this program.
///
/// It ends with [`RunningProject::stop`], which gives live functions time to end. One that is dropped ends, too: its functions are dropped,
/// and run again at the next start of a project in the same folder, without using up a retry. A program that is killed leaves them for the
/// next start to find: they are run again then, too, up to three times, unless [`on_lost`](super::Step::on_lost) says otherwise.
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
/// # let greet = job("greet", greet).with(()).on_demand();
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let running = Project::new("hello", "1.0").add(greet).start().await?;
/// let slots = [running.start("greet", &"Ann").await?, running.start("greet", &"Ben").await?];
/// for slot in &slots {
///     assert!(running.end(slot).await?.is_success());
/// }
/// # running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RunningProject {
    project: String,
    node: Node,
    functions: FunctionExecutor,
    by: Actor,
    planning: Mutex<JoinSet<()>>,
    changes: Changes,
    signals: SignalTypes,
    flows: BTreeSet<WorkflowId>,
    #[cfg(feature = "kafka")]
    kafka: Vec<Kafka>,
    /// The folder for the files of its runs, if it goes with the project.
    folder: Option<tempfile::TempDir>,
}

/// The remains of a project that was dropped: its engine, which ends with this at the latest, and its folder.
struct Remains {
    handle: Handle,
    _folder: Option<tempfile::TempDir>,
}

impl Drop for Remains {
    fn drop(&mut self) {
        self.handle.end();
    }
}

impl Drop for RunningProject {
    fn drop(&mut self) {
        if self.handle().status() == Status::Stopped {
            return;
        }
        // Without a runtime it is dropped at once, and ends the engine.
        let remains = Remains { handle: self.handle().clone(), _folder: self.folder.take() };
        let node = self.node.clone();
        self.functions.abandon(async move {
            node.stop().await;
            drop(remains);
        });
    }
}

impl RunningProject {
    pub(super) fn new(
        project: String,
        node: Node,
        functions: FunctionExecutor,
        changes: Changes,
        folder: Option<tempfile::TempDir>,
    ) -> RunningProject {
        let (by, planning) = (Actor::person("program"), Mutex::default());
        let signals = SignalTypes::default();
        RunningProject {
            project,
            node,
            functions,
            by,
            planning,
            changes,
            signals,
            flows: BTreeSet::new(),
            #[cfg(feature = "kafka")]
            kafka: Vec::new(),
            folder,
        }
    }

    /// Says which of its jobs are flows.
    pub(super) fn expect_flows(&mut self, flows: BTreeSet<WorkflowId>) {
        self.flows = flows;
    }

    pub(super) fn is_flow(&self, id: &WorkflowId) -> bool {
        self.flows.contains(id)
    }

    /// Says what the signals of its flows are to be.
    pub(super) fn expect_signals(&mut self, signals: SignalTypes) {
        self.signals = signals;
    }

    /// Takes the clusters of Kafka that the project was given.
    #[cfg(feature = "kafka")]
    pub(super) fn use_kafka(&mut self, clusters: Vec<Kafka>) {
        self.kafka = clusters;
    }

    /// A cluster of Kafka that the project was given, by its name: to send messages.
    ///
    /// ```
    /// # use kelos::embed::RunningProject;
    /// async fn announce(running: &RunningProject) -> Result<(), Box<dyn std::error::Error>> {
    ///     running.kafka("main")?.send("orders", "order-42", &serde_json::json!({ "items": 3 })).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the project was given no cluster of this name.
    #[cfg(feature = "kafka")]
    pub fn kafka(&self, name: &str) -> Result<&Kafka, RequestError> {
        self.kafka.iter().find(|one| one.name() == name).ok_or_else(|| RequestError::Kafka(name.to_owned()))
    }

    pub(super) fn signals(&self) -> &SignalTypes {
        &self.signals
    }

    /// The node, for servers and requests of all kinds.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// assert!(matches!(running.node().handle().status(), kelos::Status::Leading { .. }));
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The changes that its start brought, beside what was stored before.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("shop", "1.0").add(job("work", work).with(()).on_demand()).start().await?;
    /// assert_eq!(running.changes().to_string(), "new: work");
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The engine.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// running.handle().settled().await?;
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn handle(&self) -> &Handle {
        self.node.handle()
    }

    /// All that is stored.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// let slot = running.run("greet", &"Ann").await?.slot;
    /// assert_eq!(running.reader().slot_runs(&slot)?.len(), 1);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reader(&self) -> &Arc<dyn Queries> {
        self.node.reader()
    }

    /// Starts a job on demand: a slot of its own, which runs as soon as it may.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// let slot = running.start("greet", &"Ann").await?;
    /// assert_eq!(slot.workflow.as_str(), "greet");
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such job, it is a flow or a job at times, or the engine refuses.
    pub async fn start(&self, job: &str, input: &(impl Serialize + ?Sized)) -> Result<SlotRef, RequestError> {
        self.job(job).start(input).await
    }

    /// Waits for the end of a slot: also for one that somebody else started, or that began before a restart.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// let slot = running.start("greet", &"Ann").await?;
    /// assert_eq!(running.end(&slot).await?.output::<String>()?, "hello Ann");
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the slot is not there, the store can't be read, or the engine ends.
    pub async fn end(&self, slot: &SlotRef) -> Result<EndedSlot, RequestError> {
        let (mut commits, mut status) = (self.handle().watch_commits(), self.handle().watch_status());
        loop {
            let state = self.reader().slot(slot)?.map(|slot| slot.state);
            if state.is_none() && matches!(slot.key, SlotKey::Moment(_)) {
                return Err(RequestError::Gone(slot.clone()));
            }
            if let Some(state) = state.filter(|state| state.is_final()) {
                let run = self.reader().slot_runs(slot)?.pop();
                let version = self.reader().run_versions(run.as_slice())?.pop().flatten();
                return Ok(EndedSlot { slot: slot.clone(), state, run, version });
            }
            let stopped = async { status.wait_for(|status| *status == Status::Stopped).await.map(drop) };
            let is_new = tokio::select! {
                // What was committed last is seen before the end.
                biased;
                changed = commits.changed() => changed.is_ok(),
                _ = stopped => false,
            };
            if !is_new {
                return Err(RequestError::Stopped(slot.clone()));
            }
        }
    }

    /// Starts a job on demand, and waits for its end.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// assert_eq!(running.run("greet", &"Ann").await?.output::<String>()?, "hello Ann");
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such job, the engine refuses, or ends.
    pub async fn run(&self, job: &str, input: &(impl Serialize + ?Sized)) -> Result<EndedSlot, RequestError> {
        let slot = self.start(job, input).await?;
        self.end(&slot).await
    }

    /// Makes any request to the scheduler, in the name of this program: a rerun, a kill, a backfill.
    ///
    /// ```
    /// use kelos::embed::{Context, Project, job};
    /// use kelos::requests::Rerun;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let greet = job("greet", async |_: Context, name: String, ()| Ok::<_, String>(format!("hello {name}")));
    /// let running = Project::new("hello", "1.0").add(greet.with(()).on_demand()).start().await?;
    /// let slot = running.run("greet", &"Ann").await?.slot;
    /// running.ask(Rerun { reason: Some("she did not listen".to_owned()), ..Rerun::of(slot.clone()) }).await?;
    /// assert_eq!(running.end(&slot).await?.run.map(|run| run.id.number), Some(2));
    /// running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// When the engine refuses it, or does not answer.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, RequestError> {
        Ok(self.handle().ask(&self.by, request).await?)
    }

    /// Starts no slot of a job until it is resumed. Live runs go on.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// running.pause("greet").await?;
    /// let waiting = running.start("greet", &"Ann").await?;
    /// running.resume("greet").await?;
    /// assert!(running.end(&waiting).await?.is_success());
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such job, or the engine refuses.
    pub async fn pause(&self, job: &str) -> Result<(), RequestError> {
        let workflow = known(job)?;
        self.ask(Pause { workflow, reason: None }).await
    }

    /// Ends a pause.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// running.pause("greet").await?;
    /// running.resume("greet").await?;
    /// assert!(running.run("greet", &"Ann").await?.is_success());
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such job, or the engine refuses.
    pub async fn resume(&self, job: &str) -> Result<(), RequestError> {
        let workflow = known(job)?;
        self.ask(Resume { workflow, reason: None }).await
    }

    /// Pauses all jobs that have a tag, and returns their ids.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet.tags(["mail"])).start().await?;
    /// assert_eq!(running.pause_tag("mail").await?.len(), 1);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store can't be read, or the engine refuses.
    pub async fn pause_tag(&self, tag: &str) -> Result<Vec<WorkflowId>, RequestError> {
        self.pause_those(self.jobs(|about| about.tags.iter().any(|one| one == tag))?).await
    }

    /// Pauses all jobs of this project, and returns their ids. Scripts and other projects in the same store go on.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// assert_eq!(running.pause_all().await?.len(), 1);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store can't be read, or the engine refuses.
    pub async fn pause_all(&self) -> Result<Vec<WorkflowId>, RequestError> {
        self.pause_those(self.jobs(|_| true)?).await
    }

    /// Resumes all jobs that have a tag, and returns their ids.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet.tags(["mail"])).start().await?;
    /// running.pause_tag("mail").await?;
    /// assert_eq!(running.resume_tag("mail").await?.len(), 1);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store can't be read, or the engine refuses.
    pub async fn resume_tag(&self, tag: &str) -> Result<Vec<WorkflowId>, RequestError> {
        self.resume_those(self.jobs(|about| about.tags.iter().any(|one| one == tag))?).await
    }

    /// Resumes all jobs of this project, and returns their ids.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// running.pause_all().await?;
    /// assert_eq!(running.resume_all().await?.len(), 1);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store can't be read, or the engine refuses.
    pub async fn resume_all(&self) -> Result<Vec<WorkflowId>, RequestError> {
        self.resume_those(self.jobs(|_| true)?).await
    }

    async fn pause_those(&self, jobs: Vec<WorkflowId>) -> Result<Vec<WorkflowId>, RequestError> {
        for workflow in &jobs {
            self.pause(workflow.as_str()).await?;
        }
        Ok(jobs)
    }

    async fn resume_those(&self, jobs: Vec<WorkflowId>) -> Result<Vec<WorkflowId>, RequestError> {
        for workflow in &jobs {
            self.resume(workflow.as_str()).await?;
        }
        Ok(jobs)
    }

    /// The jobs of this project that are such.
    fn jobs(&self, such: impl Fn(&About) -> bool) -> Result<Vec<WorkflowId>, RequestError> {
        let rows = self.reader().workflows(None)?;
        let own = rows.into_iter().filter(|row| row.present && row.definition.project == self.project);
        Ok(own.filter(|row| such(&row.definition.about)).map(|row| row.id).collect())
    }

    /// Starts jobs that have no slot yet.
    pub(super) async fn start_once(&self, jobs: BTreeSet<WorkflowId>) -> Result<(), RequestError> {
        for workflow in jobs {
            let filter = SlotFilter { workflow: Some(workflow.clone()), ..SlotFilter::default() };
            if self.reader().slots(&filter, PageRequest::newest(1))?.rows.is_empty() {
                self.start(workflow.as_str(), &()).await?;
            }
        }
        Ok(())
    }

    /// Lets schedulers of one's own plan, as long as the project runs.
    pub(super) fn follow(&mut self, planners: BTreeMap<WorkflowId, OwnPlanner>) {
        for (job, planner) in planners {
            let (handle, reader) = (self.handle().clone(), self.reader().clone());
            let planning = self.planning.get_mut().unwrap_or_else(PoisonError::into_inner);
            planning.spawn(planner.follow(job, handle, reader, Actor::person("scheduler")));
        }
    }

    /// Asks live functions to end, waits for them, and ends the engine. What waits for an [end](RunningProject::end) gets an error.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn stop(&self) {
        let mut planning = std::mem::take(&mut *self.planning.lock().unwrap_or_else(PoisonError::into_inner));
        planning.shutdown().await;
        self.functions.stop().await;
        self.node.stop().await;
    }
}

pub(super) fn known(job: &str) -> Result<WorkflowId, RequestError> {
    WorkflowId::new(job).map_err(|_| RequestError::Job(job.to_owned()))
}
