//! A server on a store of its own, with scripts of its own, a clock that stands still, and an executor
//! whose runs go on until a test ends them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use kelos::{Node, NodeConfig};
use kelos_core::PlantedBreach;
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::{Pace, Status};
use kelos_executors::local::OutputCopies;
use kelos_front::{App, MetricSettings};
use kelos_model::run::Report;
use kelos_model::time::parse_instant;
use kelos_model::{Outcome, RunId, SlotRef, SlotState, WorkflowId};
use kelos_sandbox::Folders;
use kelos_server::router;
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{Journal, MemoryStore};
use kelos_store_sqlite::SqliteStore;
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// Nothing in these tests takes longer, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The moment at which the clock of every server stands until a test moves it.
pub(crate) const NOW: &str = "2015-09-13T15:01:00.000Z";

pub(crate) fn at(text: &str) -> Timestamp {
    parse_instant(text).unwrap()
}

pub(crate) fn slot(workflow: &str, time: &str) -> SlotRef {
    SlotRef::at(WorkflowId::new(workflow).unwrap(), at(time))
}

/// The slot that came to be at a moment.
pub(crate) fn moment(workflow: &str, time: &str) -> SlotRef {
    SlotRef::moment(WorkflowId::new(workflow).unwrap(), at(time))
}

/// A definition with everything that must be there, and `fields` over it.
pub(crate) fn workflow(id: &str, fields: &str) -> String {
    format!(
        "celos.defineWorkflow(Object.assign({{
            id: {id:?},
            schedule: celos.hourlySchedule(),
            schedulingStrategy: celos.serialSchedulingStrategy(),
            trigger: celos.alwaysTrigger(),
            externalService: celos.oozieExternalService({{}}, 'http://oozie')
        }}, {{ {fields} }}));"
    )
}

/// Runs that were started and go on.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<BTreeMap<RunId, Reports>>>);

fn name_of(run: &RunId) -> String {
    format!("{:07}-oozie-W", run.number)
}

impl Executor for Runs {
    fn start(&self, start: Start, reports: Reports) {
        self.0.lock().unwrap().insert(start.run.clone(), reports.clone());
        reports.run(&start.run, Report::Started { external_id: name_of(&start.run) });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        let report = match self.0.lock().unwrap().contains_key(run) {
            true => Report::Started { external_id: name_of(run) },
            false => Report::NeverStarted,
        };
        reports.run(run, report);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        self.0.lock().unwrap().remove(run);
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

/// What a server is to be.
pub(crate) struct Setup {
    pub(crate) pace: Pace,
    pub(crate) on_disk: bool,
    /// Whether runs end up with the executors that a real server has.
    pub(crate) real_executors: bool,
    /// Runs at once at most.
    pub(crate) max_running: u32,
    /// What breaks on purpose.
    pub(crate) planted: Option<PlantedBreach>,
    /// Whether output is looked for in the folder `copies`, too.
    pub(crate) has_copies: bool,
    /// Whether projects are kept apart.
    pub(crate) isolated: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            pace: Pace::Stepped,
            on_disk: false,
            real_executors: false,
            max_running: 256,
            planted: None,
            has_copies: false,
            isolated: false,
        }
    }
}

/// A server, and what a test moves behind its back.
pub(crate) struct Server {
    pub(crate) router: Router,
    pub(crate) node: Node,
    pub(crate) folder: TempDir,
    clock: Arc<Mutex<Timestamp>>,
    runs: Runs,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status and text, to compare them in one go.
    pub(crate) fn told(&self) -> (u16, &str) {
        (self.status.as_u16(), &self.text)
    }

    pub(crate) fn ok(self) -> Reply {
        assert!(self.status.is_success(), "{self:?}");
        self
    }
}

impl Server {
    /// A server in memory that is stepped by hand.
    pub(crate) async fn start(script: &str) -> Server {
        Server::with(Setup::default(), script).await
    }

    pub(crate) async fn with(setup: Setup, script: &str) -> Server {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["workflows", "defaults", "runs"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        std::fs::write(path("workflows/test.js"), script).unwrap();
        let runs = Runs::default();
        let mut config = NodeConfig::new(path("runs"), Vec::new());
        config.folders = Some(Folders { workflows: path("workflows"), defaults: path("defaults") });
        // Only what a test asks for is loaded.
        config.reload_every = Duration::from_secs(86_400);
        config.pace = setup.pace;
        config.core.max_running = setup.max_running;
        config.core.planted = setup.planted;
        config.core.isolated = setup.isolated;
        if setup.has_copies {
            let uri = format!("file:{}", path("copies").display());
            config.outputs = Some(OutputCopies::new(&uri, &Storage::new(StorageConfig::default())).unwrap());
        }
        let clock = Arc::new(Mutex::new(at(NOW)));
        let hand = clock.clone();
        config.clock = Arc::new(move || *hand.lock().unwrap());
        if !setup.real_executors {
            config.executors = Executors::default().with("oozie", runs.clone()).with("command", runs.clone());
        }
        let store: Box<dyn Journal> = match setup.on_disk {
            true => Box::new(SqliteStore::open(path("kelos.db")).unwrap()),
            false => Box::new(MemoryStore::new()),
        };
        let node = Node::start(config, store, tokio::runtime::Handle::current()).unwrap();
        let leading = |status: &Status| matches!(status, Status::Leading { .. });
        tokio::time::timeout(PATIENCE, node.handle().watch_status().wait_for(leading)).await.unwrap().unwrap();
        let router = router(App::new(node.clone(), "1.2.3"));
        let server = Server { router, node, folder, clock, runs };
        server.post("/clear-cache").await.ok();
        server
    }

    /// The same with a router that begins to count now.
    pub(crate) fn beside(self) -> Server {
        let router = router(App::new(self.node.clone(), "1.2.3"));
        Server { router, ..self }
    }

    /// The same with other settings of metrics.
    pub(crate) fn with_metrics(self, workflows: usize, public: bool) -> Server {
        let settings = MetricSettings { workflows, public };
        let router = router(App::new(self.node.clone(), "1.2.3").with_metrics(settings));
        Server { router, ..self }
    }

    /// Moves the clock, which stands still otherwise.
    pub(crate) fn set_clock(&self, to: Timestamp) {
        *self.clock.lock().unwrap() = to;
    }

    /// Writes a file of definitions; the next step, or `/clear-cache`, loads it.
    pub(crate) fn write(&self, name: &str, script: &str) {
        std::fs::write(self.folder.path().join("workflows").join(name), script).unwrap();
    }

    /// Sends a request; as every client would, it names a host where the test doesn't.
    pub(crate) async fn open(&self, mut request: Request<Body>) -> Response {
        request.headers_mut().entry("host").or_insert(HeaderValue::from_static("localhost"));
        self.open_as_is(request).await
    }

    /// Sends a request with the headers that it has.
    pub(crate) async fn open_as_is(&self, request: Request<Body>) -> Response {
        tokio::time::timeout(PATIENCE, self.router.clone().oneshot(request)).await.unwrap().unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let (method, uri) = (request.method().clone(), request.uri().to_string());
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        let bytes = tokio::time::timeout(PATIENCE, to_bytes(body, usize::MAX)).await.unwrap().unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let reply = Reply { status: parts.status, headers: parts.headers, text };
        crate::wire::check(&method, &uri, &reply);
        reply
    }

    pub(crate) async fn ask(&self, method: Method, uri: &str, body: &str) -> Reply {
        let body = Body::from(body.to_owned());
        self.send(Request::builder().method(method).uri(uri).body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, uri: &str) -> Reply {
        self.ask(Method::GET, uri, "").await
    }

    pub(crate) async fn post(&self, uri: &str) -> Reply {
        self.ask(Method::POST, uri, "").await
    }

    pub(crate) async fn post_json(&self, uri: &str, body: &str) -> Reply {
        self.ask(Method::POST, uri, body).await
    }

    /// Steps as Celos is stepped.
    pub(crate) async fn step(&self, time: &str) {
        self.post(&format!("/scheduler?time={time}")).await.ok();
    }

    /// The statuses of a workflow's slots before `end`, newest first, each with its time.
    pub(crate) async fn slots(&self, workflow: &str, end: &str) -> Vec<(String, String)> {
        let reply = self.get(&format!("/workflow-slots?id={workflow}&end={end}")).await.ok().json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let slots = reply["slots"].as_array().unwrap();
        slots.iter().map(|slot| (text(&slot["time"]), text(&slot["status"]))).collect()
    }

    /// The statuses of a workflow's slots before `end`, oldest first.
    pub(crate) async fn statuses(&self, workflow: &str, end: &str) -> Vec<String> {
        self.slots(workflow, end).await.into_iter().rev().map(|(_, status)| status).collect()
    }

    /// One slot, as Celos shows it.
    pub(crate) async fn slot_state(&self, workflow: &str, time: &str) -> Value {
        self.get(&format!("/slot-state?id={workflow}&time={time}")).await.ok().json()
    }

    /// Whether a run goes on.
    pub(crate) fn is_running(&self, slot: &SlotRef, number: u32) -> bool {
        self.runs.0.lock().unwrap().contains_key(&RunId { slot: slot.clone(), number })
    }

    /// Has a run say what it gives, and waits until that is recorded.
    pub(crate) async fn give(&self, slot: &SlotRef, number: u32, outputs: &Value) {
        let run = RunId { slot: slot.clone(), number };
        let reports = self.runs.0.lock().unwrap().get(&run).cloned().expect("a run that goes on");
        reports.run(&run, Report::Gave { outputs: outputs.as_object().unwrap().clone() });
        self.until(|server| {
            let runs = server.node.reader().slot_runs(slot).unwrap();
            runs.iter().any(|run| run.id.number == number && run.outputs.is_some())
        })
        .await;
    }

    /// Ends a run, and waits until that is recorded.
    pub(crate) async fn end(&self, slot: &SlotRef, number: u32, succeeded: bool) {
        let run = RunId { slot: slot.clone(), number };
        let reports = self.runs.0.lock().unwrap().remove(&run).expect("a run that goes on");
        let outcome = match succeeded {
            true => Outcome::Succeeded,
            false => Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None },
        };
        reports.run(&run, Report::Ended { outcome });
        self.until(|server| {
            let runs = server.node.reader().slot_runs(slot).unwrap();
            runs.iter().any(|run| run.id.number == number && run.state.is_final())
        })
        .await;
    }

    /// Waits until a slot is in a state.
    pub(crate) async fn until_state(&self, slot: &SlotRef, state: SlotState) {
        self.until(|server| server.node.reader().slot(slot).unwrap().is_some_and(|slot| slot.state == state)).await;
    }

    /// Waits until something holds that can only change with a commit.
    pub(crate) async fn until(&self, holds: impl Fn(&Server) -> bool) {
        let mut commits = self.node.handle().watch_commits();
        let wait = async {
            loop {
                commits.mark_unchanged();
                if holds(self) {
                    return;
                }
                commits.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("it never came to hold");
    }
}
