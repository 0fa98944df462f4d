//! Requests to a server with all doors: paths, queries, headers, cookies and bodies.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use kelos::{Node, NodeConfig};
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::{Pace, Status};
use kelos_front::App;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use kelos_sandbox::Folders;
use kelos_store::MemoryStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::text;
use crate::Target;
use crate::corpus::texts;

/// The longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest answer that is read.
const LARGEST: usize = 64 << 20;

/// The definitions of the server.
const SCRIPT: &str = r#"
celos.defineWorkflow({"id": "w", "schedule": celos.hourlySchedule(), "schedulingStrategy": celos.serialSchedulingStrategy(),
    "trigger": celos.alwaysTrigger(), "externalService": celos.commandExternalService({"command": ["true"]})});
celos.defineWorkflow({"id": "v", "schedule": celos.hourlySchedule(), "schedulingStrategy": celos.serialSchedulingStrategy(),
    "trigger": celos.successTrigger("w"), "externalService": celos.commandExternalService({"command": ["true"]})});
"#;

/// An executor whose runs end at once.
struct InstantExecutor;

impl Executor for InstantExecutor {
    fn start(&self, start: Start, reports: Reports) {
        reports.run(&start.run, Report::Ended { outcome: Outcome::Succeeded });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

pub(super) fn targets() -> Vec<Target> {
    let server = std::sync::OnceLock::new();
    let check = move |input: &str| server.get_or_init(Server::start).answers(input);
    let words = &[
        "/api/v1/",
        "/ui/",
        "/v3/namespaces/default/",
        "?",
        "&",
        "time=",
        "id=w",
        "limit=",
        "after=",
        "workflow=w",
        "2015-09-13T15:00Z",
        "w@2015-09-13T15:00Z",
        "Cookie: ",
        "Origin: ",
        "Host: ",
        "Content-Type: application/json",
        "\n\n",
        "{\"",
        "slots/",
        "runs/1",
        "DELETE",
        "PUT",
        "%2f",
        "%00",
        "..",
        "[0]",
    ];
    vec![text("requests", corpus(), words, check)]
}

fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = texts(&[
        "POST /api/v1/slots/rerun\nContent-Type: application/json\n\n{\"workflow\": \"w\", \"times\": [\"2015-09-13T14:00Z\"], \"downstream\": true}",
        "POST /api/v1/workflows/w/slots/2015-09-13T14:00Z/rerun\n\n{\"reason\": \"x\"}",
        "POST /api/v1/workflows/w/slots/2015-09-13T14:00Z/kill\n\n{}",
        "POST /api/v1/backfills\nContent-Type: application/json\n\n{\"workflow\": \"w\", \"start\": \"2015-09-01T00:00Z\", \"end\": \"2015-09-02T00:00Z\", \"priority\": 3}",
        "POST /api/v1/facts\nContent-Type: application/json\n\n{\"dataset\": \"purchases\", \"count\": 3, \"key\": \"k\", \"source\": \"s\"}",
        "POST /api/v1/schedules\nContent-Type: application/json\n\n{\"id\": \"nightly\", \"program\": \"p\", \"trigger\": {\"cron\": \"0 4 * * 1\"}}",
        "POST /api/v1/jobs\nContent-Type: application/json\n\n{\"app\": \"a\", \"jobs\": [\"20140601_client1\"]}",
        "PUT /api/v1/board/groups\nContent-Type: application/json\n\n{\"groups\": [{\"name\": \"g\", \"workflows\": [\"w\"]}]}",
        "PUT /api/v1/registers/b/k\nContent-Type: application/json\n\n{\"a\": 1}",
        "POST /api/v1/workers/a/offer\nAuthorization: Bearer t\nContent-Type: application/json\n\n{\"session\": \"x\", \"workflows\": [\"w\"], \"free\": 3, \"live\": [], \"ended\": []}",
        "POST /scheduler?time=2015-09-13T15:00Z",
        "POST /rerun?id=w&time=2015-09-13T14:00:00.000Z",
        "POST /kill?id=w&time=2015-09-13T14:00:00.000Z",
        "POST /pause?id=w&paused=true",
        "PUT /register?bucket=b&key=k\n\n{\"a\": 1}",
        "PUT /v3/namespaces/default/apps/p/schedules/s\nContent-Type: application/json\n\n{\"name\": \"s\", \"program\": {\"programName\": \"w\", \"programType\": \"WORKFLOW\"}, \"trigger\": {\"type\": \"TIME\", \"cronExpression\": \"0 4 * * *\"}, \"constraints\": [{\"type\": \"CONCURRENCY\", \"maxConcurrency\": 1}], \"timeoutMillis\": 1000}",
        "POST /v3/namespaces/default/apps/p/workflows/w/start\n\n{\"a\": \"b\"}",
        "POST /v3/namespaces/default/runcount\n\n[{\"appId\": \"p\", \"programType\": \"Workflow\", \"programId\": \"w\"}]",
        "POST /ui/display\nContent-Type: application/x-www-form-urlencoded\nCookie: kelos-display=zone%3DUTC\n\nzone=Europe%2FBerlin&theme=dark",
        "POST /ui/backfills\nContent-Type: application/x-www-form-urlencoded\n\nworkflow=w&start=2015-09-01&end=2015-09-02&priority=0",
        "POST /ui/workflows/w/slots/2015-09-13T14:00Z/rerun\nContent-Type: application/x-www-form-urlencoded\n\ndownstream=on",
    ]);
    let gets = [
        "/api/v1/slots?workflow=w&state=failed&limit=10&after=1442151600000",
        "/api/v1/events?after=0&limit=50&workflow=w",
        "/api/v1/runs?workflow=w&from=2015-09-13&to=2015-09-14",
        "/api/v1/graph?workflow=w&depth=2",
        "/api/v1/workflows/w/times?from=2015-09-13T00:00Z&to=2015-09-14T00:00Z",
        "/api/v1/calendar?from=2015-09-01&to=2015-09-30&zone=UTC",
        "/api/v1/workflows/w/slots/2015-09-13T14:00Z/why?upstream=true",
        "/api/v1/workflows/w/slots/2015-09-13T14:00Z/runs/1",
        "/api/v1/focus?workflow=w&at=2015-09-13T14:00Z",
        "/api/v1/facts?dataset=purchases&limit=3",
        "/api/v1/stuck",
        "/api/v1/failures?limit=3",
        "/api/v1/backfills?workflow=w",
        "/api/v1/capacity",
        "/api/v1/problems",
        "/workflow-slots?id=w&start=2015-09-12&end=2015-09-14",
        "/trigger-status?id=w&time=2015-09-13T14:00Z",
        "/slot-state?id=w&time=2015-09-13T14:00:00.000Z",
        "/workflow-list",
        "/workflow?id=w",
        "/ui",
        "/ui/workflows/w",
        "/ui/workflows/w/slots/2015-09-13T14:00Z",
        "/ui/calendar?month=2015-09",
        "/ui/timeline?from=2015-09-13T00:00Z&to=2015-09-14T00:00Z&zoom=3",
        "/ui/graph?workflow=w",
        "/ui/activity?after=3",
        "/ui/focus?workflow=w",
        "/ui/stuck",
        "/ui/capacity",
        "/ui/schedules",
        "/ui/facts",
        "/ui/board/cell?workflow=w&time=2015-09-13T14:00Z",
        "/v3/namespaces/default/apps",
        "/v3/namespaces/default/apps/p/workflows/w/runs?limit=2&start=0&end=9999999999&status=COMPLETED",
        "/v3/namespaces/default/apps/p/schedules",
        "/v3/namespaces/default/schedules/trigger-type/program-status?trigger-namespace-id=default&trigger-app-name=p&trigger-program-type=workflows&trigger-program-name=w",
        "/v3/dashboard?start=1442100000&duration=3600&namespace=default",
    ];
    corpus.extend(
        gets.iter()
            .map(|uri| format!("GET {uri}\nCookie: kelos-display=zone%3DUTC; a=b\nAccept: text/html").into_bytes()),
    );
    corpus
}

/// A server in memory.
struct Server {
    runtime: Runtime,
    router: Router,
    _folder: TempDir,
}

impl Server {
    fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["workflows", "defaults", "runs"] {
            std::fs::create_dir(path(name)).expect("a folder");
        }
        std::fs::write(path("workflows/test.js"), SCRIPT).expect("a script");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let mut config = NodeConfig::new(path("runs"), Vec::new());
        config.folders = Some(Folders { workflows: path("workflows"), defaults: path("defaults") });
        config.reload_every = Duration::from_secs(86_400);
        config.pace = Pace::Stepped;
        let now = kelos_model::time::parse_instant("2015-09-13T15:01:00.000Z").expect("a time");
        config.clock = std::sync::Arc::new(move || now);
        config.executors = Executors::default().with("command", InstantExecutor).with("oozie", InstantExecutor);
        let router = runtime.block_on(async {
            let node =
                Node::start(config, Box::new(MemoryStore::new()), tokio::runtime::Handle::current()).expect("a node");
            let leading = |status: &Status| matches!(status, Status::Leading { .. });
            node.handle().watch_status().wait_for(leading).await.expect("a leader");
            kelos_server::router(App::new(node, "1.2.3"))
        });
        let server = Server { runtime, router, _folder: folder };
        for request in ["POST /clear-cache", "POST /scheduler?time=2015-09-13T15:00Z"] {
            server.answers(request).expect("an answer");
        }
        server
    }

    /// Sends a request that is written as `METHOD PATH`, lines of headers, an empty line and a body.
    fn answers(&self, input: &str) -> Result<(), String> {
        let (head, body) = input.split_once("\n\n").unwrap_or((input, ""));
        let mut lines = head.lines();
        let (method, uri) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or(("GET", head));
        let mut request = Request::builder().method(method).uri(uri);
        let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // Input that is no HTTP reaches no handler.
        let Ok(request) = request.body(Body::from(body.to_owned())) else { return Ok(()) };
        let is_endless = uri.contains("stream") || uri.contains("offer");
        self.runtime.block_on(async {
            let answered = async {
                let response = match self.router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                };
                let status = response.status();
                if !is_endless {
                    to_bytes(response.into_body(), LARGEST)
                        .await
                        .map_err(|error| format!("the answer breaks off: {error}"))?;
                }
                match status.as_u16() {
                    500 | 502 | 504 => Err(format!("the answer is {status}")),
                    _ => Ok(()),
                }
            };
            match tokio::time::timeout(PATIENCE, answered).await {
                Ok(answered) => answered,
                Err(_) if is_endless => Ok(()),
                Err(_) => Err(format!("there is no answer within {PATIENCE:?}")),
            }
        })
    }
}
