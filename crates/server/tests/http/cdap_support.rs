//! A server for the dialect of CDAP: with programs, without scripts, with a clock that tests move, and an executor whose
//! runs go on until a test ends them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Method, Request};
use jiff::{SignedDuration, Timestamp};
use kelos::{Node, NodeConfig};
use kelos_core::{Deployment, Input, Tell};
use kelos_engine::Status;
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_front::App;
use kelos_model::run::Report;
use kelos_model::workflow::{Keys, Program};
use kelos_model::{Actor, Fact, Job, Occurrence, Outcome, RunId, Slot, SlotState, Workflow, WorkflowId};
use kelos_server::router;
use kelos_store::{Journal, MemoryStore, PageRequest, RunFilter, SlotFilter};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::support::{PATIENCE, Reply};

/// When every server starts: a Saturday.
pub(crate) const START: &str = "2026-11-21T10:00:30Z";

/// The base of most paths.
pub(crate) const BASE: &str = "/v3/namespaces/default";

#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<RunId, Reports>>>);

impl Executor for Runs {
    fn start(&self, start: Start, reports: Reports) {
        self.0.lock().unwrap().insert(start.run.clone(), reports.clone());
        reports.run(&start.run, Report::Started { external_id: "x".to_owned() });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        self.0.lock().unwrap().remove(run);
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

pub(crate) struct Cdap {
    router: Router,
    pub(crate) node: Node,
    clock: Arc<Mutex<Timestamp>>,
    runs: Runs,
    _folder: TempDir,
}

/// A program of a project; `spark:Loader` is no workflow.
pub(crate) fn program(project: &str, name: &str) -> Arc<Workflow> {
    let (kind, short) = name.split_once(':').map_or((None, name), |(kind, name)| (Some(kind.to_owned()), name));
    let keys = Keys::Requests(Box::new(Program { name: short.to_owned(), kind }));
    let id = WorkflowId::new(&format!("{project}.{name}")).unwrap();
    let mut workflow = Workflow::keyed(id, keys, Job::new("test", serde_json::Map::new()));
    workflow.project = project.to_owned();
    workflow.concurrency = Some(100);
    Arc::new(workflow)
}

/// The programs that every server has.
pub(crate) fn programs() -> Vec<Arc<Workflow>> {
    let own = ["Wf", "P1", "P2", "mapreduce:Mr", "spark:Loader"].map(|name| program("App", name));
    let others = [("App~v2", "Wf"), ("prod:App", "Wf"), ("Other", "Wf")];
    own.into_iter().chain(others.map(|(project, name)| program(project, name))).collect()
}

impl Cdap {
    pub(crate) async fn start() -> Cdap {
        let folder = TempDir::new().unwrap();
        let clock = Arc::new(Mutex::new(START.parse().unwrap()));
        let runs = Runs::default();
        let mut config = NodeConfig::new(folder.path().to_owned(), Vec::new());
        let shown = clock.clone();
        config.clock = Arc::new(move || *shown.lock().unwrap());
        config.executors = Executors::default().with("test", runs.clone());
        let store: Box<dyn Journal> = Box::new(MemoryStore::new());
        let node = Node::start(config, store, tokio::runtime::Handle::current()).unwrap();
        let leading = |status: &Status| matches!(status, Status::Leading { .. });
        tokio::time::timeout(PATIENCE, node.handle().watch_status().wait_for(leading)).await.unwrap().unwrap();
        node.handle().define(programs(), BTreeMap::new()).unwrap();
        let router = router(App::new(node.clone(), "1.2.3"));
        let server = Cdap { router, node, clock, runs, _folder: folder };
        server.settle().await;
        server
    }

    pub(crate) fn now(&self) -> Timestamp {
        *self.clock.lock().unwrap()
    }

    /// Waits until the engine has taken in all that came before, and all that follows from it at this moment.
    pub(crate) async fn settle(&self) {
        for _ in 0..3 {
            let _ = self.node.handle().settled().await;
        }
    }

    pub(crate) async fn pass(&self, seconds: i64) {
        *self.clock.lock().unwrap() += SignedDuration::from_secs(seconds);
        self.settle().await;
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Reply {
        request.headers_mut().entry("host").or_insert(HeaderValue::from_static("localhost"));
        let response = tokio::time::timeout(PATIENCE, self.router.clone().oneshot(request)).await.unwrap().unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        Reply { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: &str) -> Reply {
        let uri = if path.starts_with("/v3") { path.to_owned() } else { format!("{BASE}/{path}") };
        let request = Request::builder().method(method).uri(uri).body(Body::from(body.to_owned())).unwrap();
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path, "").await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::PUT, path, &body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask(Method::POST, path, &body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.ask(Method::DELETE, path, "").await
    }

    /// Adds a schedule of `Wf` in `App`, and enables it.
    pub(crate) async fn schedule(&self, name: &str, trigger: Value) {
        self.put(&format!("apps/App/schedules/{name}"), &body(trigger)).await.ok();
        self.post(&format!("apps/App/schedules/{name}/enable"), &Value::Null).await.ok();
    }

    pub(crate) async fn trigger(&self, name: &str) -> Value {
        self.get(&format!("apps/App/schedules/{name}")).await.ok().json()["trigger"].clone()
    }

    /// The names of the schedules in a list.
    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        let list = self.get(path).await.ok().json();
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn tell(&self, what: Occurrence) {
        let fact = Fact { source: "test".into(), key: None, what };
        self.node.handle().ask(&Actor::person("test"), Tell::of(vec![fact])).await.unwrap();
        self.settle().await;
    }

    pub(crate) async fn partitions(&self, dataset: &str, count: u32) {
        self.tell(Occurrence::Partitions { dataset: dataset.into(), count, keys: Vec::new() }).await;
    }

    /// Deploys `App` with these programs and schedules, beside everything else.
    pub(crate) async fn deploy(&self, app: Vec<Arc<Workflow>>, update_schedules: bool) {
        let mut all = programs();
        all.retain(|one| one.project != "App");
        all.extend(app);
        let how = Deployment { digest: Some("another".to_owned()), update_schedules, by: None };
        let deployed = BTreeMap::from([("App".to_owned(), how)]);
        self.node
            .handle()
            .deliver(Input::Definitions { provenance: kelos_model::workflow::Provenance::Code, all, deployed })
            .unwrap();
        self.settle().await;
    }

    /// How often a workflow has run.
    pub(crate) fn runs(&self, workflow: &str) -> usize {
        let filter = RunFilter { workflow: Some(WorkflowId::new(workflow).unwrap()), ..RunFilter::default() };
        self.node.reader().runs(&filter, PageRequest::newest(1000)).unwrap().rows.len()
    }

    /// The slots of a workflow in a state, newest first.
    pub(crate) fn slots(&self, workflow: &str, state: SlotState) -> Vec<Slot> {
        let workflow = Some(WorkflowId::new(workflow).unwrap());
        let filter = SlotFilter { workflow, states: vec![state], ..SlotFilter::default() };
        self.node
            .reader()
            .slots(&filter, PageRequest::newest(1000))
            .unwrap()
            .rows
            .into_iter()
            .map(|row| row.slot)
            .collect()
    }

    /// Ends all runs that go on.
    pub(crate) async fn end_all(&self, succeeded: bool) {
        let all = std::mem::take(&mut *self.runs.0.lock().unwrap());
        for (run, reports) in all {
            let outcome = match succeeded {
                true => Outcome::Succeeded,
                false => {
                    Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None }
                }
            };
            reports.run(&run, Report::Ended { outcome });
        }
        self.settle().await;
    }
}

/// A schedule of `Wf`.
pub(crate) fn body(trigger: Value) -> Value {
    json!({ "program": { "programName": "Wf", "programType": "WORKFLOW" }, "trigger": trigger })
}

pub(crate) fn time(cron: &str) -> Value {
    json!({ "type": "TIME", "cronExpression": cron })
}

pub(crate) fn partition(dataset: &str, count: u32) -> Value {
    let dataset = json!({ "namespace": "default", "dataset": dataset, "entity": "DATASET" });
    json!({ "type": "PARTITION", "dataset": dataset, "numPartitions": count })
}

/// Waits for the ends of a workflow of `App`.
pub(crate) fn ended(program: &str, statuses: &[&str]) -> Value {
    let program = json!({
        "namespace": "default", "application": "App", "version": "-SNAPSHOT", "type": "Workflow", "program": program,
        "entity": "PROGRAM",
    });
    json!({ "type": "PROGRAM_STATUS", "programId": program, "programStatuses": statuses })
}

pub(crate) fn all(triggers: &[Value]) -> Value {
    json!({ "type": "AND", "triggers": triggers })
}

pub(crate) fn any(triggers: &[Value]) -> Value {
    json!({ "type": "OR", "triggers": triggers })
}
