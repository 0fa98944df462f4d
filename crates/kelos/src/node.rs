//! A complete Kelos in one process: store, scripts, executors and engine, wired together.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "scripts")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[cfg(feature = "checkpoints")]
use kelos_checkpoints::{Recorder, RecorderParts, Settings};
use kelos_core::Config;
#[cfg(feature = "scripts")]
use kelos_core::TakenName;
#[cfg(feature = "scripts")]
use kelos_door_stolos::TasksJson;
use kelos_engine as engine;
use kelos_engine::clock::{Clock, system_clock};
use kelos_engine::executor::{Executors, WORKER};
use kelos_engine::job::{Functions, NoFunctions};
#[cfg(feature = "scripts")]
use kelos_engine::prober::is_there;
use kelos_engine::secrets::Secrets;
#[cfg(feature = "scripts")]
use kelos_engine::sources::SourceStatus;
use kelos_engine::sources::{FactSource, Sources, Watch, WatchedPrefix};
use kelos_engine::{AskError, EngineParts, Handle, Pace};
#[cfg(feature = "http")]
use kelos_executors::http::Http;
use kelos_executors::local::{self, Launcher, LocalError, RunDirs};
use kelos_executors::run_ref;
use kelos_executors::workers::{self, Hub, Roll};
#[cfg(feature = "http")]
use kelos_executors::{HttpExecutor, NodeRecords, OozieExecutor};
#[cfg(feature = "kafka")]
use kelos_kafka::{EXECUTOR as KAFKA, Kafka, KafkaExecutor};
use kelos_model::RunId;
#[cfg(feature = "scripts")]
use kelos_model::time::text::format_short;
#[cfg(feature = "scripts")]
use kelos_model::workflow::PastSlots;
#[cfg(feature = "scripts")]
use kelos_sandbox::apps::AppsSource;
#[cfg(feature = "scripts")]
use kelos_sandbox::{Folders, Limits, Problem, ProblemCode, Severity};
#[cfg(feature = "scripts")]
use kelos_scripts::ScriptFolder;
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{Journal, Queries, StoreError};
#[cfg(feature = "http")]
use kelos_tls::Trust;
use tokio::runtime::Handle as Runtime;

/// The error of a node that could not be started. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of runs can't be used.
    #[error(transparent)]
    Runs(#[from] LocalError),
    /// A folder of new files can't be watched.
    #[error("watch for new files: {0}")]
    Watch(String),
    /// A thread can't be started.
    #[error("start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// How long a lease lasts that is not renewed. A leader that dies is recognised by its lock at once; a standby waits this long for one
/// that hangs.
pub const LEASE: Duration = Duration::from_secs(20);

/// The configuration of a node.
pub struct NodeConfig {
    /// The folder for the files of runs.
    pub runs: PathBuf,
    /// The program, and its first arguments, that supervises a run: this program's own hidden subcommand.
    pub shim: Vec<OsString>,
    /// The folders of the scripts; none for a node whose definitions come from elsewhere.
    #[cfg(feature = "scripts")]
    pub folders: Option<Folders>,
    /// The source of apps beside the scripts; none for a node without scripts, too.
    #[cfg(feature = "scripts")]
    pub apps: Option<AppsSource>,
    /// Whether changed files of a project update its event schedules, if the project itself does not
    /// decide it. If not, schedules stay as people made them, and none is created from files.
    #[cfg(feature = "scripts")]
    pub update_schedules: bool,
    /// How often the scripts are checked for changes.
    #[cfg(feature = "scripts")]
    pub reload_every: Duration,
    /// The driver of the clock.
    pub pace: Pace,
    /// The scheduler's tunables.
    pub core: Config,
    /// The source of the time.
    pub clock: Clock,
    /// Executors that are added to the built-in ones, or replace them.
    pub executors: Executors,
    /// The file systems of paths; by default with no credentials but those that it is given.
    pub storage: Storage,
    /// The secrets that jobs may be given, and the users of the system as whom they may run.
    pub secrets: Secrets,
    /// How long a worker may be silent before its runs are assigned to others.
    pub worker_lease: Duration,
    /// The folders in which new files are new partitions.
    pub watches: Vec<Watch>,
    /// Other sources of facts.
    pub sources: Vec<Box<dyn FactSource>>,
    /// The trust in services that jobs reach over TLS: by default in the authorities of the system.
    #[cfg(feature = "http")]
    pub trust: Trust,
    /// The clusters of Kafka whose topics are read, and to which jobs send messages.
    #[cfg(feature = "kafka")]
    pub kafka: Vec<Kafka>,
    /// The settings of signed checkpoints of the log, and the folder in which they are kept; none for a node that makes none.
    #[cfg(feature = "checkpoints")]
    pub checkpoints: Option<(Settings, PathBuf)>,
}

impl NodeConfig {
    /// A node with default tunables that schedules by itself.
    #[must_use]
    pub fn new(runs: PathBuf, shim: Vec<OsString>) -> Self {
        Self {
            runs,
            shim,
            #[cfg(feature = "scripts")]
            folders: None,
            #[cfg(feature = "scripts")]
            apps: None,
            #[cfg(feature = "scripts")]
            update_schedules: true,
            #[cfg(feature = "scripts")]
            reload_every: Duration::from_secs(1),
            pace: Pace::ByItself,
            core: Config::default(),
            clock: system_clock(),
            executors: Executors::default(),
            storage: Storage::new(StorageConfig::default()),
            secrets: Secrets::default(),
            worker_lease: workers::LEASE,
            watches: Vec::new(),
            sources: Vec::new(),
            #[cfg(feature = "http")]
            trust: Trust::default(),
            #[cfg(feature = "kafka")]
            kafka: Vec::new(),
            #[cfg(feature = "checkpoints")]
            checkpoints: None,
        }
    }
}

/// The executors that need only this machine: those of a worker, and of every node.
#[must_use]
pub fn local_executors(launcher: &Launcher, secrets: &Secrets, runtime: &Runtime) -> Executors {
    let executors = kelos_executors::local_executors(launcher, secrets, runtime);
    #[cfg(feature = "scripts")]
    let executors = executors.and(kelos_door_stolos::executors(launcher, secrets, runtime));
    executors
}

/// Adds the sources of facts that watch prefixes for new files.
fn watch(
    watches: Vec<Watch>,
    sources: &mut Vec<Box<dyn FactSource>>,
    storage: &Storage,
    clock: &Clock,
) -> Result<(), NodeError> {
    for watch in watches {
        let watched = WatchedPrefix::new(watch, storage.clone(), clock.clone()).map_err(NodeError::Watch)?;
        sources.push(Box::new(watched));
    }
    Ok(())
}

/// The executors of services with an HTTP API.
#[cfg(feature = "http")]
fn services(http: Http, secrets: &Secrets, records: &Arc<NodeRecords>, clock: &Clock, runtime: &Runtime) -> Executors {
    let services = HttpExecutor::new(http.clone(), records.clone(), clock.clone(), runtime.clone());
    Executors::default()
        .with("oozie", OozieExecutor::new(http, secrets.clone(), records.clone(), runtime.clone()))
        .with("http", services.with_secrets(secrets.clone()))
}

/// The executors with that of Kafka, if there is a cluster; its topics become sources.
#[cfg(feature = "kafka")]
fn with_kafka(
    executors: Executors,
    clusters: Vec<Kafka>,
    sources: &mut Vec<Box<dyn FactSource>>,
    secrets: &Secrets,
    runtime: &Runtime,
) -> Executors {
    if clusters.is_empty() {
        return executors;
    }
    sources.extend(clusters.iter().flat_map(Kafka::sources));
    executors.with(KAFKA, KafkaExecutor::new(clusters, runtime.clone()).with_secrets(secrets.clone()))
}

/// A running Kelos. Cheap to clone.
#[derive(Clone)]
pub struct Node {
    handle: Handle,
    #[cfg(feature = "scripts")]
    scripts: Option<ScriptFolder>,
    functions: Arc<dyn Functions>,
    launcher: Launcher,
    storage: Storage,
    desk: Hub,
    sources: Sources,
    #[cfg(feature = "scripts")]
    others: Arc<Mutex<Vec<ProblemSource>>>,
    #[cfg(feature = "checkpoints")]
    checkpoints: Option<Recorder>,
}

/// A function that finds problems of something outside of the node, whenever they are asked for.
#[cfg(feature = "scripts")]
pub type ProblemSource = Box<dyn Fn() -> Vec<Problem> + Send>;

impl Node {
    /// The launcher of a node with this configuration.
    pub(crate) fn launcher_of(config: &NodeConfig) -> Result<Launcher, NodeError> {
        Ok(Launcher::new(&config.runs, config.shim.clone(), local::Limits::default())?)
    }

    /// Starts a node on a store.
    ///
    /// # Errors
    /// When the store can't be read, the folder of runs can't be used, or a thread can't be started.
    pub fn start(config: NodeConfig, store: Box<dyn Journal>, runtime: Runtime) -> Result<Node, NodeError> {
        let launcher = Node::launcher_of(&config)?;
        let reader: Arc<dyn Queries> = store.reader();
        #[cfg(feature = "scripts")]
        let mut config = config;
        #[cfg(feature = "scripts")]
        let scripts = scripts_of(&mut config, &reader, &runtime)?;
        #[cfg(feature = "scripts")]
        let functions: Arc<dyn Functions> = match &scripts {
            Some(scripts) => Arc::new(scripts.functions()),
            None => Arc::new(NoFunctions),
        };
        #[cfg(not(feature = "scripts"))]
        let functions: Arc<dyn Functions> = Arc::new(NoFunctions);
        let storage = config.storage;
        #[cfg(feature = "http")]
        let records = Arc::new(NodeRecords::new(reader.clone(), functions.clone()));
        let roll = Roll::beside(&config.runs);
        let desk = Hub::new(launcher.clone(), roll, runtime.clone(), config.worker_lease, config.core.by_workers)?;
        let executors = local_executors(&launcher, &config.secrets, &runtime).with(WORKER, desk.clone());
        #[cfg(feature = "http")]
        let http = Http::new(&config.trust);
        #[cfg(feature = "http")]
        let executors = executors.and(services(http, &config.secrets, &records, &config.clock, &runtime));
        let mut sources = config.sources;
        #[cfg(feature = "kafka")]
        let executors = with_kafka(executors, config.kafka, &mut sources, &config.secrets, &runtime);
        let executors = executors.and(config.executors);
        watch(config.watches, &mut sources, &storage, &config.clock)?;
        find_former_runs(&*reader, launcher.dirs());
        let runs_on = runtime.clone();
        let handle = engine::start(EngineParts {
            store,
            node: format!("{}@{}", std::process::id(), hostname()),
            clock: config.clock,
            pace: config.pace,
            config: config.core,
            executors,
            functions: functions.clone(),
            storage: storage.clone(),
            runtime,
            lease: LEASE,
        })?;
        #[cfg(feature = "http")]
        records.connect(handle.clone());
        desk.connect(handle.clone());
        #[cfg(feature = "scripts")]
        if let Some(scripts) = &scripts {
            scripts.reload(&handle);
            scripts.watch(handle.clone(), config.reload_every)?;
        }
        let sources = Sources::start(sources, &handle, &runs_on);
        #[cfg(feature = "checkpoints")]
        let checkpoints = config.checkpoints.map(|kept| recorder(kept, &config.trust, &storage, &handle, &runs_on));
        Ok(Node {
            handle,
            #[cfg(feature = "scripts")]
            scripts,
            functions,
            launcher,
            storage,
            desk,
            sources,
            #[cfg(feature = "scripts")]
            others: Arc::default(),
            #[cfg(feature = "checkpoints")]
            checkpoints,
        })
    }

    /// The engine.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// A reader of the store, independent of the engine.
    #[must_use]
    pub fn reader(&self) -> &Arc<dyn Queries> {
        self.handle.reader()
    }

    /// The launcher, which has the output of local commands.
    #[must_use]
    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// The last line that a run has written; none if there is no output here, or it can't be read.
    pub async fn last_line(&self, run: &RunId) -> Option<String> {
        self.launcher.last_line(&run_ref(run)).await.ok().flatten()
    }

    /// The hub of workers; that of a node that runs jobs itself accepts none.
    #[must_use]
    pub fn desk(&self) -> &Hub {
        &self.desk
    }

    /// The sources of facts, besides requests.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The file systems of paths.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    #[cfg(feature = "scripts")]
    /// The folders of its scripts; none for a node whose definitions come from elsewhere.
    #[must_use]
    pub fn folders(&self) -> Option<Folders> {
        self.scripts.as_ref().map(ScriptFolder::folders)
    }

    /// The functions of the scripts that are called while slots are evaluated.
    #[must_use]
    pub fn functions(&self) -> Arc<dyn Functions> {
        self.functions.clone()
    }

    #[cfg(feature = "scripts")]
    /// Sets the actor who deploys a project from now on; none ends it. Changes of its scripts are attributed to this actor.
    pub fn deployed_by(&self, project: &str, by: Option<kelos_model::Actor>) {
        if let Some(scripts) = &self.scripts {
            scripts.deployed_by(project, by);
        }
    }

    /// Loads changed scripts now.
    pub async fn reload(&self) {
        #[cfg(feature = "scripts")]
        if let Some(scripts) = self.scripts.clone() {
            let handle = self.handle.clone();
            let _ = tokio::task::spawn_blocking(move || scripts.reload(&handle)).await;
        }
    }

    #[cfg(feature = "scripts")]
    /// The problems of the definitions, of scripts, of names that belong to other owners, of the sources of facts,
    /// and the checkpoints.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.scripts.as_ref().map(ScriptFolder::problems).unwrap_or_default();
        problems.extend(self.handle.taken_names().into_iter().map(name_taken));
        problems.extend(self.sources.standings().iter().flat_map(source_problems));
        problems.extend(self.others.lock().unwrap_or_else(PoisonError::into_inner).iter().flat_map(|find| find()));
        #[cfg(feature = "checkpoints")]
        problems.extend(self.checkpoints.iter().flat_map(checkpoint_problems));
        problems
    }

    #[cfg(feature = "scripts")]
    /// Adds a source of problems to those that the node has itself.
    pub fn add_problems(&self, source: ProblemSource) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    #[cfg(feature = "scripts")]
    /// The past slots that the scripts opened when the node started.
    #[must_use]
    pub fn past_slots(&self) -> PastSlots {
        self.scripts.as_ref().map(ScriptFolder::past_slots).unwrap_or_default()
    }

    /// Steps at a moment, after loading changed scripts.
    ///
    /// # Errors
    /// When this node does not lead, or its engine does not answer.
    pub async fn step(&self, at: jiff::Timestamp, only: kelos_core::WorkflowFilter) -> Result<(), AskError> {
        self.reload().await;
        self.handle.step(at, only).await
    }

    /// Ends the node gracefully. Live runs continue.
    pub async fn stop(&self) {
        self.desk.take_back().await;
        #[cfg(feature = "checkpoints")]
        let leads = matches!(self.handle.status(), engine::Status::Leading { .. });
        self.handle.stop().await;
        #[cfg(feature = "checkpoints")]
        if let Some(checkpoints) = self.checkpoints.as_ref().filter(|_| leads) {
            checkpoints.end().await;
        }
    }
}

/// The recorder of a node's checkpoints, by its settings and the folder in which they are kept.
#[cfg(feature = "checkpoints")]
fn recorder(
    (settings, folder): (Settings, PathBuf),
    trust: &Trust,
    storage: &Storage,
    handle: &Handle,
    runtime: &Runtime,
) -> Recorder {
    let (storage, http, handle) = (storage.clone(), Http::new(trust), handle.clone());
    let parts = RecorderParts { settings, folder, storage, http, handle };
    Recorder::start(parts, runtime)
}

/// The scripts of a node, where it has folders of them.
#[cfg(feature = "scripts")]
fn scripts_of(
    config: &mut NodeConfig,
    reader: &Arc<dyn Queries>,
    runtime: &Runtime,
) -> Result<Option<ScriptFolder>, NodeError> {
    let Some(folders) = config.folders.take() else { return Ok(None) };
    let (storage, runs_on) = (config.storage.clone(), runtime.clone());
    let checked = storage.clone();
    let look = move |uri: &str| is_there(&storage, &runs_on, uri);
    let serves = move |uri: &str| checked.check(uri).map_err(|error| error.to_string());
    let apps = config.apps.take();
    let scripts = ScriptFolder::open(folders, Arc::new(TasksJson), apps, Limits::default(), reader.clone(), look)?;
    let scripts =
        scripts.updating_schedules(config.update_schedules).serving(serves).allowing(config.secrets.allowed().clone());
    Ok(Some(scripts.planning(config.core.planning_window)))
}

/// The problems of a source of facts, which has no file.
#[cfg(feature = "scripts")]
fn source_problems(source: &SourceStatus) -> Vec<Problem> {
    let of = |code, message| Problem::error(&source.name, code, message);
    let hint =
        source.answered_at.map_or("it has not answered yet", |_| "it is tried again, and nothing is lost meanwhile");
    let fails = source.problem.iter().map(|problem| Problem {
        hint: Some(hint.to_owned()),
        ..of(ProblemCode::SourceFails, format!("failed to {problem}"))
    });
    let notices = source.notices.iter().map(|notice| Problem {
        severity: Severity::Warning,
        ..of(ProblemCode::SourceNotice, format!("{}: {}", format_short(notice.at), notice.text))
    });
    fails.chain(notices).collect()
}

/// The problems of checkpoints, which have no file.
#[cfg(all(feature = "checkpoints", feature = "scripts"))]
fn checkpoint_problems(recorder: &Recorder) -> Vec<Problem> {
    let own = recorder.problems().into_iter().map(|problem| {
        let hint = Some("compare the log with the checkpoints: kelos verify --against PLACE".to_owned());
        Problem { hint, ..Problem::error("checkpoints", ProblemCode::CheckpointFails, problem) }
    });
    let away = recorder.targets().into_iter().filter_map(|target| {
        let lacks = target.lacks;
        let hint = format!(
            "it lacks {lacks} checkpoint{}; it is tried again, and gets them then",
            if lacks == 1 { "" } else { "s" }
        );
        let problem =
            Problem::error(&target.name, ProblemCode::CheckpointFails, format!("failed to {}", target.problem?));
        Some(Problem { hint: Some(hint), ..problem })
    });
    own.chain(away).collect()
}

/// The problem of a definition whose name is taken.
#[cfg(feature = "scripts")]
fn name_taken(TakenName { workflow, source, holder }: TakenName) -> Problem {
    let message = format!("{workflow} is left out: a workflow of that name is {}", holder.whose());
    let file = if source.file.is_empty() { "(program)" } else { &source.file };
    Problem {
        line: source.line,
        hint: Some("give it another name, or take the other one away".to_owned()),
        workflow: Some(workflow),
        ..Problem::error(file, ProblemCode::NameTaken, message)
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// Finds runs under the current ids of schedules and programs: commands that were started under the former ids may be live.
fn find_former_runs(reader: &dyn Queries, dirs: &RunDirs) {
    let rows = match reader.workflows(None) {
        Ok(rows) => rows,
        Err(error) => return tracing::warn!("failed to {error}: runs of renamed workflows are not looked for"),
    };
    for row in rows {
        let Some(former) = row.definition.former_id() else { continue };
        // If another workflow has this id by now, the folder belongs to it.
        if reader.workflow(&former).is_ok_and(|found| found.is_none())
            && let Err(error) = dirs.link(former.as_str(), row.id.as_str())
        {
            tracing::warn!("failed to find the runs of {former}, which is {} by now: {error}", row.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use kelos_model::workflow::{Job, Keys, Moments, PlanState, Program, WorkflowRow};
    use kelos_model::{Workflow, WorkflowId};
    use kelos_store::{Commit, MemoryStore};

    use super::*;
    use kelos_executors::local::RunRef;

    fn program(project: &str, name: &str, id: &str) -> WorkflowRow {
        let id = WorkflowId::new(id).unwrap();
        let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
        let workflow = Workflow::keyed(id.clone(), keys, Job::new("command", serde_json::Map::new()));
        WorkflowRow {
            id,
            definition: Arc::new(Workflow { project: project.to_owned(), ..workflow }),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned: PlanState::default(),
            moments: Moments::default(),
        }
    }

    #[test]
    fn runs_of_before_a_new_id_are_found_by_it_unless_they_are_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let dirs = RunDirs::new(folder.path());
        let run = |workflow: &str| dirs.path(&RunRef::new(workflow, "k", 1));
        for workflow in ["A.b.c", "B.c.d", "plain.name"] {
            fs::create_dir_all(run(workflow)).unwrap();
            fs::write(run(workflow).join("log"), workflow).unwrap();
        }
        let mut store = MemoryStore::new();
        let lease = store.lease("node", jiff::Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        let workflows =
            vec![program("A", "b.c", "A.b~.c"), program("B", "c.d", "B.c~.d"), program("B.c", "d", "B.c.d")];
        store.commit(lease, &Commit { workflows, sources: BTreeMap::new(), ..Commit::default() }).unwrap();
        for _ in 0..2 {
            find_former_runs(&*store.reader(), &dirs);
            assert_eq!(fs::read_to_string(run("A.b~.c").join("log")).unwrap(), "A.b.c");
            assert!(!run("B.c~.d").exists(), "B.c.d is another one by now");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        }
    }
}
