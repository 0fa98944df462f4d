//! Runs of Oozie jobs, and what is reported about them.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use kelos_core::Input;
use kelos_engine::executor::{Executor, Reports, RunInput, Start};
use kelos_engine::secrets::Secrets;
use kelos_executors::http::Http;
use kelos_executors::{OozieExecutor, OozieWaits, Records};
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::Job;
use kelos_model::{Outcome, RunId, SlotKey, SlotRef, Workflow, WorkflowId};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

/// Short, because every wait is waited out.
pub(crate) const WAITS: OozieWaits = OozieWaits {
    request: Duration::from_millis(400),
    shortest: Duration::from_millis(5),
    longest: Duration::from_millis(40),
    restart: Duration::from_millis(20),
    doubt: Duration::from_millis(240),
};

pub(crate) fn run(number: u32) -> RunId {
    let key = SlotKey::parse("2013-11-26T17:23Z").unwrap();
    RunId { slot: SlotRef::new(WorkflowId::new("wf").unwrap(), key), number }
}

pub(crate) fn start(url: &str, run: RunId) -> Start {
    let properties = json!({"user.name": "celos", "oozie.wf.application.path": "/wf/workflow.xml", "key": "hush"});
    start_with(url, run, properties)
}

pub(crate) fn start_with(url: &str, run: RunId, properties: Value) -> Start {
    Start {
        workflow: Arc::new(workflow(run.slot.workflow.clone())),
        settings: object(json!({ "url": url })),
        properties: object(properties),
        given: RunInput::default(),
        worker: None,
        lease: None,
        earlier: Vec::new(),
        run,
    }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("expected an object, got {value}") };
    map
}

pub(crate) fn workflow(id: WorkflowId) -> Workflow {
    Workflow::new(id, Schedule::Cron(CronSchedule::hourly()), Job::new("oozie", Map::new()))
}

/// Records of runs that all have the same job.
struct Known {
    url: String,
    installation: String,
}

impl Records for Known {
    fn start_of(&self, run: &RunId) -> Result<Start, String> {
        Ok(start(&self.url, run.clone()))
    }

    fn installation(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { Ok(self.installation.clone()) })
    }
}

/// An executor as one process has it. A crash is another one.
pub(crate) fn executor(url: &str) -> OozieExecutor {
    executor_of(url, "here", WAITS)
}

pub(crate) fn executor_of(url: &str, installation: &str, waits: OozieWaits) -> OozieExecutor {
    let records = Known { url: url.to_owned(), installation: installation.to_owned() };
    OozieExecutor::with_waits(Http::default(), Secrets::default(), Arc::new(records), Handle::current(), waits)
}

/// What was reported, in order.
#[derive(Clone, Default)]
pub(crate) struct Heard {
    all: Arc<Mutex<Vec<(RunId, Report)>>>,
}

impl Heard {
    pub(crate) fn reports(&self) -> Reports {
        let all = self.all.clone();
        Reports::new(move |input| {
            if let Input::RunReported { run, report } = input {
                all.lock().unwrap().push((run, report));
            }
        })
    }

    pub(crate) fn all(&self) -> Vec<(RunId, Report)> {
        self.all.lock().unwrap().clone()
    }

    /// Starts a run and gives the first that is heard of that.
    pub(crate) async fn start(&self, executor: &OozieExecutor, start: Start) -> Report {
        self.first_of(|reports| executor.start(start, reports)).await
    }

    pub(crate) async fn check(&self, executor: &OozieExecutor, run: &RunId, external_id: Option<&str>) -> Report {
        self.first_of(|reports| executor.check(run, external_id, reports)).await
    }

    async fn first_of(&self, ask: impl FnOnce(Reports)) -> Report {
        let before = self.all().len();
        ask(self.reports());
        eventually("a report", || self.all().get(before).map(|(_, report)| report.clone())).await
    }

    /// How a run ends.
    pub(crate) async fn end(&self, run: &RunId) -> Outcome {
        eventually("an end", || self.ends().into_iter().find(|(of, _)| of == run).map(|(_, outcome)| outcome)).await
    }

    pub(crate) fn ends(&self) -> Vec<(RunId, Outcome)> {
        let ends = self.all().into_iter().filter_map(|(run, report)| match report {
            Report::Ended { outcome } => Some((run, outcome)),
            _ => None,
        });
        ends.collect()
    }
}

/// The reason of a start that was put off.
pub(crate) fn deferred(report: Report) -> String {
    let Report::Deferred { reason } = report else { panic!("expected it to be put off: {report:?}") };
    reason
}

pub(crate) fn started(report: Report) -> String {
    let Report::Started { external_id } = report else { panic!("expected it to be started: {report:?}") };
    external_id
}

/// Looks again and again until something is there.
pub(crate) async fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(Duration::from_secs(120), what, look).await
}

pub(crate) async fn within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs a test that talks, with a limit on all of it.
pub(crate) fn talking<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(300), test).await.expect("in time") });
}
