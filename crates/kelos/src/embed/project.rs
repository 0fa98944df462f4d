//! A project: jobs under one name and version, and the start of an engine for them.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_core::Config;
use kelos_engine::AskError;
use kelos_engine::clock::system_clock;
use kelos_executors::local::own_shim;
#[cfg(feature = "kafka")]
use kelos_kafka::Kafka;
use kelos_model::mistakes::deadlocks;
use kelos_model::sharing::Shares;
use kelos_model::time::{Schedule, resolve};
use kelos_model::workflow::{ProjectVersion, Provenance, WorkflowRow};
use kelos_model::{Trigger, Workflow, WorkflowId};
use kelos_store::{Journal, MemoryStore, Queries};
use serde_json::Value;
use tokio::runtime::Handle;

use super::changes::Changes;
use super::circles::{self, Grip};
use super::definition::IntoDefinition;
use super::draft::{JobDraft, Work};
use super::function::{FUNCTION, FunctionExecutor, Functions};
use super::mistakes::{Mistake, Mistakes};
use super::platform::Processes;
use super::running::RunningProject;
use super::scheduler::OwnPlanner;
use super::start_error::StartError;
use super::steps::SignalTypes;
use super::waits::JobsTogether;
use crate::node::{Node, NodeConfig};

/// The file of the database in a project's folder.
#[cfg(feature = "sqlite")]
const DATABASE: &str = "kelos.db";

/// Longest name of a project, in bytes.
const LONGEST_NAME: usize = 150;

/// The slots that have ended which a project without a folder keeps.
const KEPT: usize = 10_000;

/// The time that a start waits for the one who had the folder before: a project that was dropped, a program that was just told to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval at which it looks whether the folder is free.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A set of jobs, which are deployed together.
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// let project = Project::new("shop", "1.0").add(job("work", work).with(()).once());
/// assert_eq!(project.check()?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Project {
    name: String,
    version: String,
    place: &'static Location<'static>,
    jobs: Vec<JobDraft>,
    folder: Option<PathBuf>,
    store: Option<Box<dyn Journal>>,
    config: Config,
    /// The limit on the programs that run at the same time.
    processes: Option<Processes>,
    /// The declaration of its shares, as it was given.
    shares: Value,
    confirm_above: Option<u64>,
    /// The projects whose jobs may be removed.
    replaces: Vec<String>,
    #[cfg(feature = "kafka")]
    kafka: Vec<Kafka>,
}

impl Project {
    /// A project without jobs, in memory. Its runs are marked with the version, which may be empty: what one version made is found by it, and can be
    /// [made again](crate::requests::BackfillRequest::made_by). Whenever jobs change the project is deployed; a changed version alone runs nothing
    /// again.
    ///
    /// ```
    /// let project = kelos::embed::Project::new("shop", env!("CARGO_PKG_VERSION"));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(name: &str, version: &str) -> Project {
        Project {
            name: name.to_owned(),
            version: version.to_owned(),
            place: Location::caller(),
            jobs: Vec::new(),
            folder: None,
            store: None,
            config: Config::default(),
            processes: None,
            shares: Value::Null,
            confirm_above: None,
            replaces: Vec::new(),
            #[cfg(feature = "kafka")]
            kafka: Vec::new(),
        }
    }

    /// The name.
    ///
    /// ```
    /// assert_eq!(kelos::embed::Project::new("shop", "1.0").name(), "shop");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    ///
    /// ```
    /// assert_eq!(kelos::embed::Project::new("shop", "1.0").version(), "1.0");
    /// ```
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The same, sharing things with other projects of the server that it works for: what they may see and send, by their names, or `"*"`
    /// for all. The states of slots that others wait for need no sharing. It counts on servers with `--auth`.
    ///
    /// ```
    /// let shares = serde_json::json!({"reports": {"sees": {"runs": ["load"]}, "sends": {"signals": ["refresh"]}}});
    /// let project = kelos::embed::Project::new("shop", "1.0").shares(shares);
    /// ```
    #[must_use]
    pub fn shares(mut self, shares: Value) -> Project {
        self.shares = shares;
        self
    }

    /// The same with one more job or flow.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let project = Project::new("shop", "1.0").add(job("one", work).with(()).once()).add(job("two", work).with(()).on_demand());
    /// ```
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "a project is no number")]
    pub fn add(mut self, definition: impl IntoDefinition) -> Project {
        let mut job = definition.into_definition().into_draft();
        self.processes.iter().for_each(|processes| job.may_use(processes));
        self.jobs.push(job);
        self
    }

    /// Limits the programs that [`Context::command`](super::Context::command) runs at the same time, in all runs of the project's jobs.
    ///
    /// ```
    /// let project = kelos::embed::Project::new("shop", "1.0").processes(4);
    /// ```
    #[must_use]
    pub fn processes(mut self, programs: u32) -> Project {
        let processes = Processes::new(programs);
        self.jobs.iter_mut().for_each(|job| job.may_use(&processes));
        self.processes = Some(processes);
        self
    }

    /// Keeps state and output in a folder, which is made where it is not there: a SQLite database `kelos.db`, and `runs`. Without
    /// a folder all is forgotten when the program ends; and what ended first is forgotten once 10,000 slots have ended after it: its events
    /// and runs, and of a slot that was started by a request all, so that its name is free again.
    ///
    /// ```
    /// let project = kelos::embed::Project::new("shop", "1.0").folder("state");
    /// ```
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Project {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Keeps the state in a store of your own choice.
    ///
    /// ```
    /// use kelos::MemoryStore;
    ///
    /// let project = kelos::embed::Project::new("shop", "1.0").store(MemoryStore::new());
    /// ```
    #[must_use]
    pub fn store(mut self, store: impl Journal + 'static) -> Project {
        self.store = Some(Box::new(store));
        self
    }

    /// Reads the topics of a cluster of Kafka: their messages are new partitions, and signals for runs of flows. Jobs that have the cluster as
    /// their state send messages to it.
    ///
    /// ```
    /// use kelos::embed::Project;
    /// use kelos::kafka::{Cluster, Kafka, Topic};
    ///
    /// let cluster = Cluster::new("main", "127.0.0.1:9092").topic(Topic::signals("approvals", "approval", "purchase"));
    /// let kafka = Kafka::new(cluster)?;
    /// let project = Project::new("shop", "1.0").kafka(&kafka);
    /// # Ok::<(), kelos::kafka::KafkaError>(())
    /// ```
    #[cfg(feature = "kafka")]
    #[must_use]
    pub fn kafka(mut self, cluster: &Kafka) -> Project {
        self.kafka.push(cluster.clone());
        self
    }

    /// The settings of the scheduler, such as the most runs at a time.
    ///
    /// ```
    /// use kelos::Config;
    ///
    /// let project = kelos::embed::Project::new("shop", "1.0").config(Config { max_running: 4, ..Config::default() });
    /// ```
    #[must_use]
    pub fn config(mut self, config: Config) -> Project {
        self.config = config;
        self
    }

    /// Refuses to start where more slots of the past would run at once: of a new job, of a start that was moved, of a long outage. What
    /// runs is said by [`Job::catch_up`](super::Job::catch_up); this is a second look, for programs that are deployed often.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, Project, StartError, job};
    /// use kelos::CatchUp;
    ///
    /// # async fn count(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let clicks = job("clicks", count).with(()).every(&Calendar::hourly()).catch_up(CatchUp::All);
    /// let refused = Project::new("shop", "1.0").add(clicks).confirm_above(100).start().await;
    /// assert!(matches!(refused, Err(StartError::Unconfirmed { changes, .. }) if changes.past.opened() == 168));
    /// # });
    /// ```
    #[must_use]
    pub fn confirm_above(mut self, slots: u64) -> Project {
        self.confirm_above = Some(slots);
        self
    }

    /// Lets it take the place of a project of another name in the same folder, whose jobs are removed. Without it, such a start is refused.
    ///
    /// ```
    /// let project = kelos::embed::Project::new("webshop", "2.0").replaces("shop");
    /// ```
    #[must_use]
    pub fn replaces(mut self, project: &str) -> Project {
        self.replaces.push(project.to_owned());
        self
    }

    /// The changes that a start would bring now, beside what is stored: which slots of the past would run, and which are held back. Nothing
    /// is changed by it.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, Project, job};
    /// # async fn count(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// let project = Project::new("shop", "1.0").add(job("clicks", count).with(()).every(&Calendar::hourly()));
    /// assert_eq!(project.changes()?.to_string(), "new: clicks");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there are [mistakes](Project::check), or what is stored can't be read.
    pub fn changes(&self) -> Result<Changes, StartError> {
        let workflows = self.check()?;
        let rows = self.stored()?.map(|reader| reader.workflows(None)).transpose()?.unwrap_or_default();
        Ok(self.changes_beside(&workflows, &rows))
    }

    fn changes_beside(&self, workflows: &[Workflow], rows: &[WorkflowRow]) -> Changes {
        Changes::of(workflows, rows, self.config.planning_window, system_clock()())
    }

    /// The stored state; none where nothing is stored.
    fn stored(&self) -> Result<Option<Arc<dyn Queries>>, StartError> {
        if let Some(store) = &self.store {
            return Ok(Some(store.reader()));
        }
        #[cfg(feature = "sqlite")]
        if let Some(file) = self.folder.as_ref().map(|folder| folder.join(DATABASE)).filter(|file| file.exists()) {
            let store = kelos_store_sqlite::SqliteStore::look(file)?;
            return Ok(Some(kelos_store::StoredState::reader(&store)));
        }
        Ok(None)
    }

    /// The definitions of the jobs.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let project = Project::new("shop", "1.0").add(job("work", work).with(()).once());
    /// if let Err(mistakes) = project.check() {
    ///     eprintln!("failed to {mistakes}");
    /// }
    /// ```
    ///
    /// # Errors
    /// All mistakes at once, each with the line that defines the job.
    pub fn check(&self) -> Result<Vec<Workflow>, Mistakes> {
        self.check_at(Timestamp::now(), true)
    }

    /// The same at a moment. Where there are other workflows, jobs that are not in the project may be theirs.
    pub(super) fn check_at(&self, now: Timestamp, is_alone: bool) -> Result<Vec<Workflow>, Mistakes> {
        let mut mistakes = self.misnamed();
        let mut workflows = Vec::new();
        let mut first: BTreeMap<&str, &JobDraft> = BTreeMap::new();
        let version = self.own_version(&mut mistakes);
        let shares = self.own_shares(&mut mistakes);
        for job in &self.jobs {
            if let Some(other) = first.get(job.id.as_str()) {
                let place = format!("{}:{}", other.place.file(), other.place.line());
                mistakes.push(
                    job.mistake(format!("its id is taken by the job of {place}")).hint("ids are unique in a project"),
                );
                continue;
            }
            first.insert(&job.id, job);
            match job.workflow(&self.name, version.as_ref()) {
                Ok(workflow) => {
                    mistakes.extend(workflow.check_nesting().err().map(|problem| job.mistake(problem)));
                    workflows.push(Workflow { shares: shares.clone(), ..workflow });
                }
                Err(more) => mistakes.extend(more),
            }
        }
        mistakes.extend(self.circles(&workflows));
        mistakes.extend(self.grips(&workflows));
        mistakes.extend(self.unresolved(&workflows));
        mistakes.extend(self.early(&workflows));
        let together = JobsTogether { jobs: &self.jobs, workflows: &workflows, is_alone };
        mistakes.extend(together.without_slots());
        mistakes.extend(together.endless(self.config.planning_window, now));
        mistakes.extend(together.disputed());
        mistakes.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        if mistakes.is_empty() { Ok(workflows) } else { Err(Mistakes(mistakes)) }
    }

    /// A name that is none: it stands in addresses, and in those of its jobs.
    fn misnamed(&self) -> Vec<Mistake> {
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        let is_sound = (1..=LONGEST_NAME).contains(&self.name.len())
            && self.name.starts_with(char::is_alphanumeric)
            && self.name.chars().all(is_plain);
        let words = format!("project \"{}\": its name is refused", self.name);
        let hint = format!("expected at most {LONGEST_NAME} letters, digits, -, _ and ., such as shop");
        let mistake = || Mistake::new(&self.name, self.place, words).hint(hint);
        if is_sound { Vec::new() } else { vec![mistake()] }
    }

    /// The version that its definitions carry.
    fn own_version(&self, mistakes: &mut Vec<Mistake>) -> Option<ProjectVersion> {
        let version = (!self.version.is_empty()).then(|| ProjectVersion::new(&self.version)).transpose();
        version.unwrap_or_else(|error| {
            let words = format!("project \"{}\": its version is refused: {error}", self.name);
            mistakes.push(Mistake::new(&self.name, self.place, words));
            None
        })
    }

    /// The declaration that its definitions carry.
    fn own_shares(&self, mistakes: &mut Vec<Mistake>) -> Shares {
        let shares = (!self.shares.is_null()).then(|| Shares::read(self.shares.clone())).transpose();
        shares
            .unwrap_or_else(|error| {
                let words = format!("project \"{}\": failed to {error}", self.name);
                mistakes.push(Mistake::new(&self.name, self.place, words));
                None
            })
            .unwrap_or_default()
    }

    /// Circles of jobs that wait for each other.
    fn circles(&self, workflows: &[Workflow]) -> Vec<Mistake> {
        let circle = |ids: Vec<String>| {
            let job = self.jobs.iter().find(|job| Some(&job.id) == ids.first())?;
            let words = format!("it waits for itself: {} -> {}", ids.join(" -> "), job.id);
            Some(job.mistake(words).hint("take one of these dependencies away, or let it look to an earlier time"))
        };
        let found = deadlocks(workflows).into_iter();
        found.filter_map(|one| circle(one.circle.into_iter().map(|(id, _)| id.to_string()).collect())).collect()
    }

    /// Circles of platforms, of which runs of some jobs hold one while they may wait for the next.
    fn grips(&self, workflows: &[Workflow]) -> Vec<Mistake> {
        let mistake = |circle: Vec<Grip>| {
            let job = self.jobs.iter().find(|job| circle.first().is_some_and(|grip| grip.job.as_str() == job.id))?;
            let words = format!("its runs may wait for each other for ever: {}", circles::words(&circle));
            Some(
                job.mistake(words).hint("take one of them before the start, together with the others: `.on((&a, &b))`"),
            )
        };
        circles::of(workflows).into_iter().filter_map(mistake).collect()
    }

    fn unresolved(&self, workflows: &[Workflow]) -> Vec<Mistake> {
        let schedules: BTreeMap<WorkflowId, &Schedule> =
            workflows.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect();
        let problem = |(id, resolved): (WorkflowId, Result<_, _>)| {
            let problem = resolved.err()?;
            let job = self.jobs.iter().find(|job| job.id == id.as_str())?;
            Some(job.mistake(format!("it has no slots: {problem}")))
        };
        resolve(&schedules).into_iter().filter_map(problem).collect()
    }

    /// Jobs with times before the start of another one that they wait for, which has no slots then.
    fn early(&self, workflows: &[Workflow]) -> Vec<Mistake> {
        let by_id: BTreeMap<&WorkflowId, &Workflow> = workflows.iter().map(|one| (&one.id, one)).collect();
        let mistake = |child: &Workflow, parent: &WorkflowId| {
            let (own, first) = (child.start_time?, by_id.get(parent)?.start_time?);
            let job = self.jobs.iter().find(|job| job.id == child.id.as_str() && own < first)?;
            let words = format!("it starts at {own}, and waits for \"{parent}\", which starts at {first}");
            Some(job.mistake(words).hint(format!("let it start with \"{parent}\", or later")))
        };
        let pairs = workflows.iter().flat_map(|child| required(&child.trigger).into_iter().map(move |id| (child, id)));
        pairs.filter_map(|(child, parent)| mistake(child, parent)).collect()
    }

    /// Starts an engine for the project inside of this program, on the current Tokio runtime.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("shop", "1.0").add(job("work", work).with(()).on_demand()).start().await?;
    /// assert!(running.run("work", &()).await?.is_success());
    /// running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there are [mistakes](Project::check), or the store or the folder can't be used, because another program works in it, say.
    pub async fn start(mut self) -> Result<RunningProject, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::Runtime)?;
        let workflows = self.check()?;
        self.check_own()?;
        let (folder, temporary) = self.place()?;
        let kept = self.folder.clone();
        let store = self.open(&folder)?;
        let rows = store.reader().workflows(None)?;
        self.check_others(&rows)?;
        let changes = self.changes_beside(&workflows, &rows);
        if let Some(limit) = self.confirm_above.filter(|limit| changes.past.opened() > *limit) {
            return Err(StartError::Unconfirmed { limit, changes: Box::new(changes) });
        }
        changes.past.lines().iter().for_each(|line| tracing::info!("{line}"));
        let mut config = NodeConfig::new(folder.join("runs"), own_shim());
        config.core = self.config.clone();
        #[cfg(feature = "kafka")]
        config.kafka.clone_from(&self.kafka);
        let jobs = self.functions();
        let launcher = Node::launcher_of(&config)?;
        let functions = FunctionExecutor::new(jobs, runtime.clone(), launcher);
        config.executors = std::mem::take(&mut config.executors).with(FUNCTION, functions.clone());
        // Before the node starts: it may begin runs at once, whose functions ask what failed before.
        functions.connect(store.reader());
        let node = Node::start(config, store, runtime)?;
        functions.follow(node.handle().watch_commits());
        let once = self.once();
        let flows = workflows.iter().filter(|one| one.flow.is_some()).map(|one| one.id.clone()).collect();
        // From here on a failure ends the engine.
        let mut running = RunningProject::new(self.name.clone(), node, functions, changes, temporary);
        // The texts of the program's files are not known; changed definitions are a deployment.
        running.handle().define(workflows.into_iter().map(Arc::new).collect(), BTreeMap::new())?;
        settle(running.handle(), kept.as_deref()).await?;
        #[cfg(feature = "kafka")]
        running.use_kafka(std::mem::take(&mut self.kafka));
        running.expect_signals(self.signals());
        running.expect_flows(flows);
        running.start_once(once).await?;
        running.follow(self.planners());
        Ok(running)
    }

    /// The functions of the jobs, and of the steps of flows.
    pub(super) fn functions(&self) -> Functions {
        let mut all = Functions::default();
        for job in &self.jobs {
            WorkflowId::new(&job.id).iter().for_each(|id| job.add_functions(id, &mut all));
        }
        all
    }

    /// The types of the signals of its flows.
    pub(super) fn signals(&self) -> SignalTypes {
        let mut all = SignalTypes::default();
        for job in &self.jobs {
            if let (Work::Flow(part), Ok(id)) = (&job.work, WorkflowId::new(&job.id)) {
                all.add(&id, part.signals());
            }
        }
        all
    }

    /// The jobs that are to be started once.
    pub(super) fn once(&self) -> BTreeSet<WorkflowId> {
        self.jobs.iter().filter(|job| job.is_once()).filter_map(|job| WorkflowId::new(&job.id).ok()).collect()
    }

    /// The schedulers of one's own, by the jobs whose slots they plan.
    pub(super) fn planners(&self) -> BTreeMap<WorkflowId, OwnPlanner> {
        let planner = |job: &JobDraft| Some((WorkflowId::new(&job.id).ok()?, job.planner()?.clone()));
        self.jobs.iter().filter_map(planner).collect()
    }

    /// Refuses to remove the jobs of another project.
    fn check_others(&self, rows: &[WorkflowRow]) -> Result<(), StartError> {
        let of_program = |row: &&WorkflowRow| row.present && row.definition.provenance() == Provenance::Code;
        let replaced = |project: &String| *project == self.name || self.replaces.contains(project);
        let mut others = rows.iter().filter(of_program).map(|row| &row.definition.project);
        match others.find(|project| !replaced(project)) {
            Some(other) => Err(StartError::Other { project: self.name.clone(), other: other.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses what acts only where a server hands runs to workers.
    fn check_own(&self) -> Result<(), Mistakes> {
        let mistakes: Vec<Mistake> = self.jobs.iter().flat_map(JobDraft::of_workers).collect();
        if mistakes.is_empty() { Ok(()) } else { Err(Mistakes(mistakes)) }
    }

    /// The most slots of the past that may run without confirmation.
    #[cfg(feature = "worker")]
    pub(super) fn confirmed(&self) -> Option<u64> {
        self.confirm_above
    }

    /// Refuses what needs the scheduler inside of this program, for a project whose scheduler is a server's.
    #[cfg(feature = "worker")]
    pub(super) fn check_remote(&self) -> Result<(), Mistakes> {
        let mut mistakes: Vec<Mistake> = self.jobs.iter().flat_map(JobDraft::of_own_scheduler).collect();
        let mut own = |is_so: bool, what: &str, hint: &str| {
            if is_so {
                let words = format!("project \"{}\": {what}, and it works for a server", self.name);
                mistakes.push(Mistake::new(&self.name, self.place, words).hint(hint));
            }
        };
        let store = self.store.is_some() || self.folder.is_some();
        own(store, "it has a store of its own", "the server keeps the state: leave out `folder` and `store`");
        #[cfg(feature = "kafka")]
        own(!self.kafka.is_empty(), "it reads topics of Kafka", "name the cluster in the configuration of the server");
        if mistakes.is_empty() { Ok(()) } else { Err(Mistakes(mistakes)) }
    }

    /// The settings of the scheduler.
    pub(super) fn scheduler(&self) -> &Config {
        &self.config
    }

    /// The folder for the files of runs, and what removes it in the end if it is temporary.
    fn place(&self) -> Result<(PathBuf, Option<tempfile::TempDir>), StartError> {
        match &self.folder {
            Some(folder) => {
                let failed = |source| StartError::Folder { folder: folder.clone(), source };
                std::fs::create_dir_all(folder).map_err(failed)?;
                Ok((folder.clone(), None))
            }
            None => {
                let failed = |source| StartError::Folder { folder: std::env::temp_dir(), source };
                let temporary = tempfile::Builder::new().prefix("kelos-").tempdir().map_err(failed)?;
                Ok((temporary.path().to_owned(), Some(temporary)))
            }
        }
    }

    fn open(&mut self, folder: &Path) -> Result<Box<dyn Journal>, StartError> {
        if let Some(store) = self.store.take() {
            return Ok(store);
        }
        #[cfg(feature = "sqlite")]
        if self.folder.is_some() {
            return Ok(Box::new(kelos_store_sqlite::SqliteStore::open(folder.join(DATABASE))?));
        }
        let _ = folder;
        Ok(Box::new(MemoryStore::keeping(KEPT)))
    }
}

/// Waits until an engine leads, in the folder of its project if it has one, and has the definitions.
async fn settle(engine: &kelos_engine::Handle, folder: Option<&Path>) -> Result<(), StartError> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match (engine.settled().await, folder) {
            (Err(AskError::Standby), _) if Instant::now() < give_up => tokio::time::sleep(LOOK_AGAIN).await,
            (Err(AskError::Standby), Some(folder)) => {
                return Err(StartError::Taken { folder: folder.to_owned(), holder: holder_of(folder) });
            }
            (settled, _) => return Ok(settled.map(drop)?),
        }
    }
}

/// The process that leads in a folder; empty where it is not known.
#[cfg(feature = "sqlite")]
fn holder_of(folder: &Path) -> String {
    kelos_store_sqlite::SqliteStore::leader(&folder.join(DATABASE), Timestamp::now()).unwrap_or_default()
}

/// The process that leads in a folder, which only a database in it knows.
#[cfg(not(feature = "sqlite"))]
fn holder_of(_: &Path) -> String {
    String::new()
}

/// The workflows whose slots of the same time a trigger can't do without.
fn required(trigger: &Trigger) -> Vec<&WorkflowId> {
    match trigger {
        Trigger::Success { workflow } => vec![workflow],
        Trigger::And { triggers } => triggers.iter().flat_map(required).collect(),
        _ => Vec::new(),
    }
}
