//! A complete Kelos in one process: store, scripts, executors and engine, wired together.

#[cfg(feature = "alerts")]
mod alerting;
mod error;
mod former;
#[cfg(feature = "scripts")]
mod problems;
#[cfg(any(feature = "http", feature = "kafka"))]
mod services;
#[cfg(feature = "nodes")]
mod shared;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "scripts")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[cfg(feature = "alerts")]
use kelos_alerts::Alerts;
#[cfg(feature = "checkpoints")]
use kelos_checkpoints::{Recorder, RecorderParts, Settings};
use kelos_core::Config;
#[cfg(feature = "scripts")]
use kelos_door_stolos::TasksJson;
use kelos_engine as engine;
use kelos_engine::clock::{Clock, system_clock};
use kelos_engine::executor::{Executors, WORKER};
use kelos_engine::inbox::InboxReader;
use kelos_engine::job::{Functions, NoFunctions};
#[cfg(feature = "scripts")]
use kelos_engine::prober::is_there;
use kelos_engine::secrets::Secrets;
use kelos_engine::sources::{FactSource, Sources, Watch, WatchedPrefix};
use kelos_engine::{AskError, EngineParts, Handle, Pace};
#[cfg(feature = "http")]
use kelos_executors::http::Http;
use kelos_executors::local::{self, Launcher, OutputCopies};
use kelos_executors::workers::{self, Hub, OutputReader, Roll, SHORTEST_LEASE, Terms};
#[cfg(feature = "kafka")]
use kelos_kafka::Kafka;
use kelos_model::RunId;
use kelos_model::workers::FUNCTION;
#[cfg(feature = "scripts")]
use kelos_model::workflow::PastSlots;
#[cfg(feature = "scripts")]
use kelos_sandbox::apps::AppsSource;
#[cfg(feature = "scripts")]
use kelos_sandbox::{Folders, Limits, Problem};
#[cfg(feature = "scripts")]
use kelos_scripts::ScriptFolder;
use kelos_storage::{Storage, StorageConfig};
use kelos_store::log::LogState;
use kelos_store::{Journal, KnownRun, Queries};
#[cfg(feature = "http")]
use kelos_tls::Trust;
use tokio::runtime::Handle as Runtime;

#[cfg(feature = "checkpoints")]
use crate::history::Vouch;
use crate::history::{History, HistoryConfig, HistoryParts};
#[cfg(feature = "nodes")]
use crate::nodes::{FilesError, Roster, SharedFiles};
pub use error::NodeError;
use former::find_former_runs;
#[cfg(all(feature = "checkpoints", feature = "scripts"))]
use problems::checkpoint_problems;
#[cfg(feature = "scripts")]
pub use problems::not_shared;
use problems::{history_problem, inbox_problems, name_taken, source_problems};
#[cfg(feature = "http")]
use services::services;
#[cfg(feature = "kafka")]
use services::with_kafka;
#[cfg(feature = "nodes")]
use shared::{follow_files, restoring, shared_files};

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
    /// The log that it shares with other nodes, if it is one of several: that of its journal.
    pub log: Option<LogState>,
    /// Executors that are added to the built-in ones, or replace them.
    pub executors: Executors,
    /// The file systems of paths; by default with no credentials but those that it is given.
    pub storage: Storage,
    /// The secrets that jobs may be given, and the users of the system as whom they may run.
    pub secrets: Secrets,
    /// How long a worker may be silent before its runs are assigned to others: 15 seconds or more.
    pub worker_lease: Duration,
    /// The folders in which new files are new partitions.
    pub watches: Vec<Watch>,
    /// The place to which the output of ended runs is copied, and from which it is read where the machine of a run is away.
    pub outputs: Option<OutputCopies>,
    /// How long folders of runs are kept; none for a node that keeps them for ever.
    pub history: Option<HistoryConfig>,
    /// Whether the runs of local executors are left to workers.
    pub by_workers: bool,
    /// The time after which a silent worker on another machine loses its runs: 15 seconds or more.
    pub remote_lease: Duration,
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
    /// Whether runs are given the context of their trace: commands as `TRACEPARENT`, HTTP services as a header.
    pub traces: bool,
    /// The settings of alerts, and the address of the server in their links; none for a node that sends none.
    #[cfg(feature = "alerts")]
    pub alerts: Option<(kelos_alerts::Settings, Option<String>)>,
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
            log: None,
            executors: Executors::default(),
            storage: Storage::new(StorageConfig::default()),
            secrets: Secrets::default(),
            worker_lease: workers::LEASE,
            outputs: None,
            history: None,
            by_workers: false,
            remote_lease: workers::REMOTE_LEASE,
            watches: Vec::new(),
            sources: Vec::new(),
            #[cfg(feature = "http")]
            trust: Trust::default(),
            #[cfg(feature = "kafka")]
            kafka: Vec::new(),
            #[cfg(feature = "checkpoints")]
            checkpoints: None,
            traces: false,
            #[cfg(feature = "alerts")]
            alerts: None,
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

/// The hub of a node, the settings of its core, and the executors with that of workers: runs of the local ones are left to them if there
/// are any.
fn desk_of(config: &NodeConfig, launcher: &Launcher, runtime: &Runtime) -> Result<(Hub, Config, Executors), NodeError> {
    let executors = local_executors(launcher, &config.secrets, runtime);
    let terms = Terms {
        lease: config.worker_lease,
        remote_lease: config.remote_lease,
        is_of_several: config.log.is_some(),
        takes: config.by_workers,
    };
    let desk = Hub::new(launcher.clone(), Roll::beside(&config.runs), runtime.clone(), terms)?;
    let mut core = config.core.clone();
    if config.by_workers {
        core.by_workers = executors.names().into_iter().collect();
    }
    desk.hands_out(&core.by_workers);
    if let Some(log) = config.log.clone() {
        desk.shares(log);
    }
    if !config.executors.names().iter().any(|name| name == FUNCTION) {
        // This program has no functions: those of others work for it.
        core.by_workers.insert(FUNCTION.to_owned());
    }
    let executors = executors.with(WORKER, desk.clone());
    Ok((desk, core, executors))
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
    log: Option<LogState>,
    inbox: Option<InboxReader>,
    history: Option<History>,
    #[cfg(feature = "nodes")]
    files: Option<Arc<SharedFiles>>,
    #[cfg(feature = "nodes")]
    roster: Roster,
    #[cfg(feature = "http")]
    http: Http,
    #[cfg(feature = "scripts")]
    others: Arc<Mutex<Vec<ProblemSource>>>,
    #[cfg(feature = "checkpoints")]
    checkpoints: Option<Recorder>,
    #[cfg(feature = "alerts")]
    alerts: Option<Alerts>,
}

/// A function that finds problems of something outside of the node, whenever they are asked for.
#[cfg(feature = "scripts")]
pub type ProblemSource = Box<dyn Fn() -> Vec<Problem> + Send>;

impl Node {
    /// The launcher of a node with this configuration.
    pub(crate) fn launcher_of(config: &NodeConfig) -> Result<Launcher, NodeError> {
        let launcher = Launcher::new(&config.runs, config.shim.clone(), local::Limits::default())?;
        Ok(launcher.with_copies(config.outputs.clone()))
    }

    /// Starts a node on a store.
    ///
    /// # Errors
    /// When the store can't be read, the folder of runs can't be used, or a thread can't be started.
    pub fn start(mut config: NodeConfig, store: Box<dyn Journal>, runtime: Runtime) -> Result<Node, NodeError> {
        let shortest = config.worker_lease.min(config.remote_lease);
        if shortest < SHORTEST_LEASE {
            return Err(NodeError::ShortLease(shortest));
        }
        let (history, is_shared) = (config.history.take(), config.log.is_some());
        #[cfg(feature = "alerts")]
        let (alerts, trust) = (config.alerts.take(), config.trust.clone());
        // The first turns, which plan all that is due, come before alerts begin to read.
        #[cfg(feature = "alerts")]
        let since = if alerts.is_some() { store.reader().last_seq()? } else { 0 };
        let mut node = Node::assemble(config, store, runtime.clone())?;
        #[cfg(feature = "alerts")]
        {
            node.alerts = alerting::start(alerts, since, trust, &node, &runtime);
        }
        #[cfg(feature = "checkpoints")]
        let vouch = node.checkpoints.as_ref().map(|recorder| vouch(recorder, &runtime));
        #[cfg(not(feature = "checkpoints"))]
        let vouch = None;
        let parts = HistoryParts { handle: node.handle.clone(), runtime, is_shared, vouch };
        node.history = history.map(|config| History::start(config, parts)).transpose()?;
        Ok(node)
    }

    /// A node without alerts and history, which look at all that it has.
    fn assemble(config: NodeConfig, store: Box<dyn Journal>, runtime: Runtime) -> Result<Node, NodeError> {
        let (launcher, reader): (_, Arc<dyn Queries>) = (Node::launcher_of(&config)?, store.reader());
        #[cfg(feature = "nodes")]
        let files = shared_files(&config, &*reader)?;
        #[cfg(feature = "scripts")]
        let scripts = scripts_of(&config, &reader, &runtime)?;
        #[cfg(not(feature = "scripts"))]
        let scripts = ();
        let functions = functions_of(&scripts);
        let (desk, core, executors) = desk_of(&config, &launcher, &runtime)?;
        #[cfg(feature = "http")]
        let (http, records, executors) = services(executors, &config, &reader, &functions, &runtime);
        let (mut sources, storage) = (config.sources, &config.storage);
        #[cfg(feature = "kafka")]
        let executors = with_kafka(executors, config.kafka, &mut sources, &config.secrets, &runtime);
        let executors = executors.and(config.executors);
        watch(config.watches, &mut sources, storage, &config.clock)?;
        find_former_runs(&*reader, launcher.dirs());
        let handle = engine::start(EngineParts {
            store,
            node: config.log.as_ref().map_or_else(own_name, |log| log.node().to_owned()),
            clock: config.clock,
            pace: config.pace,
            config: core,
            executors,
            functions: functions.clone(),
            storage: storage.clone(),
            runtime: runtime.clone(),
            lease: LEASE,
            traces: config.traces,
        })?;
        #[cfg(feature = "http")]
        records.connect(handle.clone());
        desk.connect(handle.clone());
        #[cfg(all(feature = "scripts", not(feature = "nodes")))]
        scripts.iter().try_for_each(|scripts| load_and_watch(scripts, &handle, config.reload_every, || ()))?;
        #[cfg(feature = "nodes")]
        watch_shared(scripts.as_ref(), files.as_ref(), &handle, config.reload_every, &runtime)?;
        let sources = Sources::start(sources, &handle, &runtime);
        let inbox = config.log.as_ref().map(|log| inbox_of(log, &handle, &runtime)).transpose()?;
        #[cfg(feature = "checkpoints")]
        let checkpoints = config.checkpoints.map(|kept| recorder(kept, &config.trust, storage, &handle, &runtime));
        Ok(Node {
            history: None,
            handle,
            #[cfg(feature = "scripts")]
            scripts,
            functions,
            launcher,
            storage: config.storage,
            desk,
            sources,
            log: config.log,
            inbox,
            #[cfg(feature = "nodes")]
            files,
            #[cfg(feature = "nodes")]
            roster: Roster::default(),
            #[cfg(feature = "http")]
            http,
            #[cfg(feature = "scripts")]
            others: Arc::default(),
            #[cfg(feature = "checkpoints")]
            checkpoints,
            #[cfg(feature = "alerts")]
            alerts: None,
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

    /// The last line that a run has written; none if there is no output, or it can't be read.
    pub async fn last_line(&self, run: &RunId) -> Option<String> {
        self.output(run).await.last_line().await.ok().flatten()
    }

    /// The output of a run, wherever it is. A run of which nothing is known is looked for here.
    pub async fn output(&self, run: &RunId) -> OutputReader {
        let (reader, id) = (self.handle.reader().clone(), run.clone());
        let known = tokio::task::spawn_blocking(move || reader.known_run(&id)).await;
        match known.ok().and_then(Result::ok).flatten() {
            Some(KnownRun::Kept(kept)) => self.desk.output(run, kept.external_id.as_deref()).of_end(kept.ended_at),
            Some(KnownRun::Removed(gone)) => self.desk.output(run, gone.external_id.as_deref()).of_removed(gone.until),
            None => self.desk.output(run, None),
        }
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

    /// The log that it shares with other nodes; none if it is the only one.
    #[must_use]
    pub fn log(&self) -> Option<&LogState> {
        self.log.as_ref()
    }

    /// The history of its folders of runs; none if they are kept for ever.
    #[must_use]
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// The reader of the requests in the store of the log; none if it is the only node.
    #[must_use]
    pub fn inbox(&self) -> Option<&InboxReader> {
        self.inbox.as_ref()
    }

    /// The nodes that it has heard of while it leads.
    #[cfg(feature = "nodes")]
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    #[cfg(feature = "http")]
    /// The client for services and other nodes.
    #[must_use]
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// The alerts; none where there are neither channels nor rules.
    #[cfg(feature = "alerts")]
    #[must_use]
    pub fn alerts(&self) -> Option<&Alerts> {
        self.alerts.as_ref()
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

    /// Writes the scripts in the folders of this node to the log that it shares with others, if it does: from there they have them, too.
    ///
    /// # Errors
    /// When a file can't be read, or this node does not lead.
    #[cfg(feature = "nodes")]
    pub async fn publish(&self, by: &kelos_model::Actor) -> Result<(), FilesError> {
        match &self.files {
            Some(files) => files.publish(&self.handle, by).await,
            None => Ok(()),
        }
    }

    /// Lets a deployment write to the folders of this node, until it is published: what somebody else put there is set aside before.
    ///
    /// # Errors
    /// When the folders can't be read or written.
    #[cfg(feature = "nodes")]
    pub async fn begin_deployment(&self) -> Result<(), FilesError> {
        let Some(files) = self.files.clone() else { return Ok(()) };
        let reader = self.handle.reader().clone();
        match tokio::task::spawn_blocking(move || files.begin_deployment(&*reader)).await {
            Ok(begun) => begun,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
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
    /// of requests in the store of the log, of files that are ignored, the checkpoints, and the channels of alerts.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.scripts.as_ref().map(ScriptFolder::problems).unwrap_or_default();
        problems.extend(self.handle.taken_names().into_iter().map(name_taken));
        problems.extend(self.handle.unshared().iter().map(not_shared));
        problems.extend(self.sources.standings().iter().flat_map(source_problems));
        problems.extend(self.inbox.iter().flat_map(|inbox| inbox_problems(&inbox.status())));
        problems.extend(self.history.iter().filter_map(history_problem));
        problems.extend(self.others.lock().unwrap_or_else(PoisonError::into_inner).iter().flat_map(|find| find()));
        #[cfg(feature = "nodes")]
        problems.extend(self.files.iter().flat_map(|files| files.problems()));
        #[cfg(feature = "checkpoints")]
        problems.extend(self.checkpoints.iter().flat_map(checkpoint_problems));
        #[cfg(feature = "alerts")]
        problems.extend(self.alerts.iter().flat_map(alerting::problems));
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
        self.history.iter().for_each(History::end);
        #[cfg(feature = "alerts")]
        if let Some(alerts) = &self.alerts {
            alerts.end().await;
        }
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

/// Has a recorder make a checkpoint, from a thread of no runtime.
#[cfg(feature = "checkpoints")]
fn vouch(recorder: &Recorder, runtime: &Runtime) -> Vouch {
    let (recorder, runtime) = (recorder.clone(), runtime.clone());
    Box::new(move || runtime.block_on(recorder.make()).map(drop))
}

/// Loads scripts, and again when they change; before each look something else is done.
#[cfg(feature = "scripts")]
fn load_and_watch(
    scripts: &ScriptFolder,
    handle: &Handle,
    every: Duration,
    before: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    scripts.reload(handle);
    scripts.watch(handle.clone(), every, before)
}

/// Loads and watches the scripts of a node, and those that other nodes deploy.
#[cfg(feature = "nodes")]
fn watch_shared(
    scripts: Option<&ScriptFolder>,
    files: Option<&Arc<SharedFiles>>,
    handle: &Handle,
    every: Duration,
    runtime: &Runtime,
) -> std::io::Result<()> {
    let Some(scripts) = scripts else { return Ok(()) };
    load_and_watch(scripts, handle, every, restoring(files.cloned(), handle.clone()))?;
    if let Some(files) = files {
        runtime.spawn(follow_files(files.clone(), scripts.clone(), handle.clone()));
    }
    Ok(())
}

/// The scripts of a node, where it has folders of them.
#[cfg(feature = "scripts")]
fn scripts_of(
    config: &NodeConfig,
    reader: &Arc<dyn Queries>,
    runtime: &Runtime,
) -> Result<Option<ScriptFolder>, NodeError> {
    let Some(folders) = config.folders.clone() else { return Ok(None) };
    let (storage, runs_on) = (config.storage.clone(), runtime.clone());
    let checked = storage.clone();
    let look = move |uri: &str| is_there(&storage, &runs_on, uri);
    let serves = move |uri: &str| checked.check(uri).map_err(|error| error.to_string());
    let apps = config.apps.clone();
    let scripts = ScriptFolder::open(folders, Arc::new(TasksJson), apps, Limits::default(), reader.clone(), look)?;
    let scripts =
        scripts.updating_schedules(config.update_schedules).serving(serves).allowing(config.secrets.allowed().clone());
    Ok(Some(scripts.isolating(config.core.isolated).planning(config.core.planning_window)))
}

/// The reader of the requests in the store of a log.
fn inbox_of(log: &LogState, handle: &Handle, runtime: &Runtime) -> std::io::Result<InboxReader> {
    InboxReader::start(log.store().clone(), handle, runtime)
}

/// The functions of a node without scripts.
/// The functions of scripts.
#[cfg(feature = "scripts")]
fn functions_of(scripts: &Option<ScriptFolder>) -> Arc<dyn Functions> {
    scripts
        .as_ref()
        .map_or_else(|| Arc::new(NoFunctions) as Arc<dyn Functions>, |scripts| Arc::new(scripts.functions()))
}

/// The functions of no scripts.
#[cfg(not(feature = "scripts"))]
fn functions_of((): &()) -> Arc<dyn Functions> {
    Arc::new(NoFunctions)
}

/// The name of a node that nobody named.
fn own_name() -> String {
    format!("{}@{}", std::process::id(), hostname())
}

/// The name of this machine.
pub(crate) fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
