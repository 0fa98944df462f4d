//! What the benchmarks share: definitions, executors that measure, an engine on a disk, and statistics.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos::nodes::{self, LogConfig};
use kelos_core::{BackfillRequest, Config, Input};
use kelos_engine as engine;
use kelos_engine::clock::{Clock, system_clock};
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::job::NoFunctions;
use kelos_engine::{EngineParts, Handle, Pace, Status};
use kelos_model::ranges::Range;
use kelos_model::run::Report;
use kelos_model::time::schedule::Schedule;
use kelos_model::time::{Cron, CronSchedule};
use kelos_model::workflow::Job;
use kelos_model::{Actor, BackfillId, RunId, SlotState, Workflow, WorkflowId};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::log::LogState;
use kelos_store::{Journal, SlotFilter};
use kelos_store_sqlite::SqliteStore;
use serde_json::{Map, Value};

/// What a benchmark ends with.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The name of an executor that only the benchmarks have.
pub(crate) const INSTANT: &str = "instant";

/// A workflow name that is right.
pub(crate) fn name(text: &str) -> WorkflowId {
    WorkflowId::new(text).expect("a name")
}

/// A moment that is right.
pub(crate) fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

/// A definition with an expression for its times; ready at once, one run at a time, by the instant executor.
pub(crate) fn workflow(id: &str, cron: &str) -> Workflow {
    let cron = Cron::parse(cron).expect("a cron expression");
    Workflow::new(name(id), Schedule::Cron(CronSchedule::utc(cron)), Job::new(INSTANT, Map::new()))
}

/// The job of running a command.
pub(crate) fn command(argv: &[&str]) -> Job {
    let argv = argv.iter().map(|arg| Value::from(*arg)).collect();
    Job::new("command", Map::from_iter([("command".to_owned(), Value::Array(argv))]))
}

/// Something that happened to a run, and when.
pub(crate) struct Seen {
    pub(crate) run: RunId,
    pub(crate) what: Moment,
    pub(crate) at: Instant,
}

/// What happened to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The executor was called.
    Called,
    /// The start was reported.
    Started,
    /// The end was reported.
    Ended,
}

/// Notes when runs are started and end. Without an executor behind it every run succeeds at once.
pub(crate) struct Watching<E> {
    inner: E,
    seen: Mutex<Sender<Seen>>,
}

impl<E> Watching<E> {
    pub(crate) fn new(inner: E) -> (Self, Receiver<Seen>) {
        let (send, seen) = channel();
        let seen_by = Self { inner, seen: Mutex::new(send) };
        (seen_by, seen)
    }

    fn send(&self) -> Sender<Seen> {
        self.seen.lock().expect("a lock").clone()
    }
}

impl<E: Executor> Executor for Watching<E> {
    fn start(&self, start: Start, reports: Reports) {
        let send = self.send();
        let note = move |run: &RunId, what| {
            let (run, at) = (run.clone(), Instant::now());
            // Whoever measures may have seen enough.
            let _ = send.send(Seen { run, what, at });
        };
        note(&start.run, Moment::Called);
        let watched = Reports::new(move |input| {
            if let Input::RunReported { run, report } = &input {
                match report {
                    Report::Started { .. } => note(run, Moment::Started),
                    Report::Ended { .. } => note(run, Moment::Ended),
                    _ => {}
                }
            }
            reports.deliver(input);
        });
        self.inner.start(start, watched);
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.inner.check(run, external_id, reports);
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.inner.cancel(run, external_id, reports);
    }
}

/// Succeeds at once, within the call.
#[derive(Clone, Default)]
pub(crate) struct Instantly {
    /// Whether the start is reported besides the end.
    pub(crate) says_started: bool,
    /// When it was called first.
    pub(crate) first: Arc<OnceLock<Instant>>,
}

impl Executor for Instantly {
    fn start(&self, start: Start, reports: Reports) {
        self.first.get_or_init(Instant::now);
        if self.says_started {
            let external_id = "0".to_owned();
            reports.run(&start.run, Report::Started { external_id });
        }
        let outcome = kelos_model::Outcome::Succeeded;
        reports.run(&start.run, Report::Ended { outcome });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        let outcome = kelos_model::Outcome::Killed;
        reports.run(run, Report::Ended { outcome });
    }
}

/// An engine on a database file.
pub(crate) struct Engine {
    pub(crate) handle: Handle,
    pub(crate) runtime: tokio::runtime::Runtime,
    /// The log of which it is a node.
    pub(crate) log: Option<LogState>,
}

/// Everything of an engine that a benchmark may want to choose.
pub(crate) struct BenchArguments {
    pub(crate) path: PathBuf,
    /// The log of which it is a node, instead of the one with its own database.
    pub(crate) log: Option<LogConfig>,
    pub(crate) config: Config,
    pub(crate) executors: Executors,
    pub(crate) clock: Clock,
}

impl BenchArguments {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            log: None,
            config: Config::default(),
            executors: Executors::default().with(INSTANT, Instantly::default()),
            clock: system_clock(),
        }
    }

    /// Opens the store and starts the engine; it may not lead yet.
    pub(crate) fn start(self) -> Outcome<Engine> {
        let (store, log): (Box<dyn Journal>, _) = match &self.log {
            Some(log) => {
                let (journal, log) = nodes::open(log)?;
                (journal, Some(log))
            }
            None => (Box::new(SqliteStore::open(&self.path)?), None),
        };
        let runtime = runtime()?;
        let handle = engine::start(EngineParts {
            store,
            node: "bench".to_owned(),
            clock: self.clock,
            pace: Pace::ByItself,
            config: self.config,
            executors: self.executors,
            functions: Arc::new(NoFunctions),
            storage: Storage::new(StorageConfig::default()),
            runtime: runtime.handle().clone(),
            lease: Duration::from_secs(30),
            traces: false,
        })?;
        Ok(Engine { handle, runtime, log })
    }
}

/// A runtime with the threads that a server has.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

impl Engine {
    pub(crate) fn leads(&self) {
        let mut status = self.handle.watch_status();
        let leads = status.wait_for(|status| matches!(status, Status::Leading { .. }));
        self.runtime.block_on(leads).expect("it leads");
    }

    pub(crate) fn define(&self, all: Vec<Workflow>) {
        let all = all.into_iter().map(Arc::new).collect();
        self.handle.define(all, BTreeMap::new()).expect("a live engine");
    }

    /// Asks for all missing slots of a range; gives how many there were.
    pub(crate) fn backfill(&self, id: &str, workflow: &str, start: Timestamp, end: Timestamp) -> Outcome<usize> {
        let id = BackfillId::new(id)?;
        let request = BackfillRequest::missing(id, name(workflow), Range::new(start, end));
        let by = Actor::person("bench");
        let asked = self.handle.ask(&by, request);
        Ok(usize::try_from(self.runtime.block_on(asked)?.created.count)?)
    }

    /// Waits until this many slots of a workflow, or of all, are in a state, as the store shows it.
    pub(crate) fn until(&self, workflow: Option<&str>, state: SlotState, count: u64) -> Outcome {
        let filter = SlotFilter { workflow: workflow.map(name), ..SlotFilter::default() };
        let mut commits = self.handle.watch_commits();
        self.runtime.block_on(async {
            loop {
                commits.borrow_and_update();
                let counts = self.handle.reader().slot_counts(&filter)?;
                if counts.get(&state).copied().unwrap_or(0) >= count {
                    return Ok(());
                }
                commits.changed().await?;
            }
        })
    }

    pub(crate) fn stop(self) {
        self.runtime.block_on(self.handle.stop());
        self.runtime.shutdown_timeout(Duration::from_secs(2));
    }
}

/// Median, 99th percentile and largest of some durations.
pub(crate) fn figures(spent: &mut [Duration]) -> String {
    spent.sort_unstable();
    let Some(last) = spent.len().checked_sub(1) else {
        return "nothing was measured".to_owned();
    };
    let at = |percent: usize| spent[last * percent / 100];
    format!("p50 {:.2?}, p99 {:.2?}, max {:.2?} ({} times)", at(50), at(99), spent[last], spent.len())
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Milliseconds with what is behind the point.
pub(crate) fn millis(spent: Duration) -> f64 {
    spent.as_secs_f64() * 1_000.0
}

/// Resident memory in megabytes; 0 where the system does not tell.
pub(crate) fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1_024.0 / 1e6
}

/// Processor time of the threads that live, by name, but for the one that asks.
pub(crate) fn cpu() -> BTreeMap<String, Duration> {
    let mut spent = BTreeMap::<String, Duration>::new();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let own = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let others = tasks.filter_map(Result::ok).filter(|task| Some(task.file_name().as_os_str()) != own.file_name());
    for task in others {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let nanos = read("schedstat").split(' ').next().and_then(|n| n.parse().ok());
        let whose = read("comm").trim().to_owned();
        *spent.entry(whose).or_default() += Duration::from_nanos(nanos.unwrap_or(0));
    }
    spent
}

/// What else goes on on the machine: the load of the last minute.
pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("unknown").to_owned()
}

/// A folder of its own for a benchmark, on the disk of the system's temporary files.
pub(crate) fn folder() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("kelos-bench-").tempdir()
}

/// Opens a store to write to without an engine.
pub(crate) fn open(path: &Path) -> Outcome<(SqliteStore, kelos_store::Lease)> {
    let mut store = SqliteStore::open(path)?;
    let lease = store.lease("bench", Timestamp::UNIX_EPOCH, 60_000)?;
    Ok((store, lease.ok_or("somebody else leads")?))
}
