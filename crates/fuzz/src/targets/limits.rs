//! Values at and around every limit, through every door. Then the server starts again, and everything is read back.
//!
//! An input has a line for each value: the door, what is nested or repeated, and how often, such as `register lists 127`. A line that
//! names no door is passed over. A door may refuse any value. It may not answer that the server is broken, and what it takes must be
//! there after the server has started again.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use kelos::{Node, NodeConfig};
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::{Pace, Status};
use kelos_front::App;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use kelos_sandbox::Folders;
use kelos_store_sqlite::SqliteStore;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::text;
use crate::Target;
use crate::corpus::texts;

/// The longest time for an answer, or for a start.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest answer that is read.
const LARGEST: usize = 64 << 20;
/// No value is larger.
const MOST: usize = 70_000;
/// Of one input no more lines are taken.
const LINES: usize = 60;

const SCRIPT: &str = r#"
celos.application({"name": "a"});
celos.program("p", celos.commandExternalService({"command": ["true"]}));
"#;

const FLOW: &str = r#"
kelos.flow("given", {"steps": {"one": {"command": ["true"]}}});
kelos.workflow("hourly", {"schedule": "hourly", "command": ["true"]});
kelos.flow("flow", {"steps": {"wait": {"signal": "go"}, "last": {"needs": "wait", "command": ["true"]}}});
"#;

/// The doors with what each is sent: the method, the path and the body, where `@` is the value, and `%` a number that is new each time.
const DOORS: [(&str, &str, &str, &str); 18] = [
    ("register", "PUT", "/api/v1/registers/b/k%", "@"),
    ("celos-register", "PUT", "/register?bucket=b&key=c%", "@"),
    ("start", "POST", "/api/v1/workflows/given/start", r#"{"key": "r%", "arguments": {"a": @}}"#),
    ("flow", "POST", "/api/v1/workflows/flow/start", r#"{"key": "f%", "arguments": {"a": @}}"#),
    ("outputs", "POST", "/api/v1/workflows/given/start", r#"{"key": "o%"}"#),
    ("signal", "POST", "/api/v1/workflows/flow/slots/.s%/signal", r#"{"signal": "go", "payload": @}"#),
    ("payload", "POST", "/api/v1/facts", r#"{"signal": "go", "payload": @}"#),
    ("name", "POST", "/api/v1/facts", r#"{"signal": @}"#),
    ("dataset", "POST", "/api/v1/facts", r#"{"dataset": @, "key": "d%"}"#),
    ("ended", "POST", "/api/v1/facts", r#"{"program": "elsewhere", "state": "succeeded", "outputs": {"o": @}}"#),
    ("caused", "POST", "/api/v1/facts", r#"{"program": "elsewhere", "state": "succeeded", "arguments": {"a": @}}"#),
    ("rerun", "POST", "/api/v1/workflows/hourly/slots/2015-09-13T14:00Z/rerun", r#"{"arguments": {"a": @}}"#),
    ("reason", "POST", "/api/v1/workflows/hourly/slots/2015-09-13T13:00Z/rerun", r#"{"reason": @}"#),
    (
        "backfill",
        "POST",
        "/api/v1/backfills",
        r#"{"workflow": "hourly", "name": "b%", "from": "2015-09-01T00:00Z", "to": "2015-09-01T02:00Z", "arguments": {"a": @}}"#,
    ),
    ("trigger", "POST", "/api/v1/schedules", r#"{"name": "t%", "program": "a.p", "trigger": @}"#),
    (
        "cron",
        "POST",
        "/api/v1/schedules",
        r#"{"name": "n%", "program": "a.p", "trigger": {"type": "time", "cron": @}}"#,
    ),
    (
        "cdap-cron",
        "PUT",
        "/v3/namespaces/default/apps/a/schedules/c%",
        r#"{"program": {"programName": "p", "programType": "WORKFLOW"}, "trigger": {"type": "TIME", "cronExpression": @}}"#,
    ),
    ("cdap-start", "POST", "/v3/namespaces/default/apps/a/workflows/p/start", r#"{"a": @}"#),
];

/// The paths that are read once the server has started again.
const EVERYTHING: [&str; 12] = [
    "/api/v1/workflows",
    "/api/v1/slots?limit=1000",
    "/api/v1/runs?limit=1000",
    "/api/v1/events?limit=1000",
    "/api/v1/facts?limit=1000",
    "/api/v1/registers/b",
    "/api/v1/schedules?limit=1000",
    "/api/v1/backfills",
    "/api/v1/problems",
    "/api/v1/workflows/flow/definitions",
    "/v3/namespaces/default/apps/a/schedules",
    "/ui/facts",
];

pub(super) fn target() -> Target {
    let server = Mutex::new(None);
    let check = move |input: &str| {
        let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = server.get_or_insert_with(Server::new).survives(input);
        if outcome.is_err() {
            // Its data may be of no use any more.
            *server = None;
        }
        outcome
    };
    let words = &[
        "register ",
        "celos-register ",
        "start ",
        "flow ",
        "outputs ",
        "signal ",
        "payload ",
        "name ",
        "dataset ",
        "ended ",
        "caused ",
        "rerun ",
        "reason ",
        "backfill ",
        "trigger ",
        "cron ",
        "cdap-cron ",
        "cdap-start ",
        "lists ",
        "objects ",
        "long ",
        "digits ",
        "letter ",
        "escape d800",
        "and ",
        "first ",
        "last ",
        "63",
        "64",
        "65",
        "66",
        "122",
        "123",
        "124",
        "125",
        "126",
        "127",
        "128",
        "192",
        "193",
        "5000",
        "65535",
        "65536",
        "0",
        "9",
        "a",
        "1f",
        "7f",
        "2028",
        "fffe",
        "\n",
    ];
    text("limits", corpus(), words, check)
}

/// The first input has the values by which servers once were lost, at each door.
fn corpus() -> Vec<Vec<u8>> {
    let doors = || DOORS.iter().map(|(name, ..)| *name);
    let mut first =
        String::from("cdap-cron first 9\ncron first 9\ncdap-cron first 0\ntrigger and 63\ntrigger and 65\n");
    for (door, levels) in doors().flat_map(|door| [(door, 123), (door, 126)]) {
        let _ = writeln!(first, "{door} lists {levels}");
    }
    let mut corpus = vec![first.into_bytes()];
    for (what, times) in [
        ("lists", 64),
        ("lists", 65),
        ("objects", 124),
        ("lists", 127),
        ("digits", 400),
        ("letter", 0),
        ("letter", 0x2028),
    ] {
        let all = doors().map(|door| {
            format!("{door} {what} {}\n", if what == "letter" { format!("{times:x}") } else { times.to_string() })
        });
        corpus.push(all.collect::<String>().into_bytes());
    }
    corpus.extend(texts(&[
        "register escape d800\nstart escape d800\nreason escape d800\nname escape d800",
        "register long 65536\nstart long 65600\npayload long 65535\nreason long 65536\nname long 5000",
        "cdap-cron first 1f\ncdap-cron last a\ncron last 7f\ncdap-cron first 2028",
    ]));
    corpus
}

/// The value of a line, as JSON.
fn value(what: &str, number: &str) -> Option<String> {
    let times = || number.parse::<usize>().ok().map(|times| times.min(MOST));
    let letter = || u32::from_str_radix(number, 16).ok().and_then(char::from_u32);
    Some(match what {
        "lists" => format!("{}1{}", "[".repeat(times()?), "]".repeat(times()?)),
        "objects" => format!("{}1{}", "{\"a\":".repeat(times()?.min(MOST / 6)), "}".repeat(times()?.min(MOST / 6))),
        "long" => format!("\"{}\"", "x".repeat(times()?)),
        "digits" => format!("1{}", "0".repeat(times()?.min(5000))),
        "letter" => Value::from(format!("a{}b", letter()?)).to_string(),
        "first" => Value::from(format!("{} 4 * * *", letter()?)).to_string(),
        "last" => Value::from(format!("0 4 * * {}", letter()?)).to_string(),
        "escape" => format!("\"\\u{}\"", number.get(..4)?),
        "and" => {
            let levels = times()?.min(1000);
            Value::from(format!("{}signal(go){}", "and(".repeat(levels), ")".repeat(levels))).to_string()
        }
        _ => return None,
    })
}

/// Each run gives what it is told to, and ends.
#[derive(Clone, Default)]
struct GivingExecutor(Arc<Mutex<Map<String, Value>>>);

impl Executor for GivingExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let outputs = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        reports.run(&start.run, Report::Started { external_id: "1".to_owned() });
        if !outputs.is_empty() {
            reports.run(&start.run, Report::Gave { outputs });
        }
        reports.run(&start.run, Report::Ended { outcome: Outcome::Succeeded });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

/// A server with its data in a file.
struct Server {
    runtime: Runtime,
    folder: TempDir,
    giving: GivingExecutor,
    running: Option<(App, Router)>,
    sent: usize,
}

impl Server {
    fn new() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["workflows", "defaults", "runs"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        std::fs::write(folder.path().join("workflows/a.js"), SCRIPT).expect("a script");
        std::fs::write(folder.path().join("workflows/plain.js"), FLOW).expect("a script");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        Server { runtime, folder, giving: GivingExecutor::default(), running: None, sent: 0 }
    }

    fn config(&self, folder: &Path) -> NodeConfig {
        let path = |name: &str| folder.join(name);
        let mut config = NodeConfig::new(path("runs"), Vec::new());
        config.folders = Some(Folders { workflows: path("workflows"), defaults: path("defaults") });
        config.reload_every = Duration::from_secs(86_400);
        config.pace = Pace::Stepped;
        let now = kelos_model::time::parse_instant("2015-09-13T15:01:00.000Z").expect("a time");
        config.clock = Arc::new(move || now);
        config.executors = Executors::default().with("command", self.giving.clone());
        config
    }

    /// Starts it, and waits until it leads.
    fn start(&mut self) -> Result<(), String> {
        let config = self.config(self.folder.path());
        let store =
            SqliteStore::open(self.folder.path().join("kelos.db")).map_err(|error| format!("failed to {error}"))?;
        let started = self.runtime.block_on(async {
            let node = Node::start(config, Box::new(store), tokio::runtime::Handle::current())
                .map_err(|error| format!("failed to {error}"))?;
            let mut status = node.handle().watch_status();
            let settled = status.wait_for(|status| !matches!(status, Status::Standby | Status::Starting));
            let found = tokio::time::timeout(PATIENCE, settled).await.map_err(|_| "it does not lead".to_owned())?;
            match &*found.map_err(|error| error.to_string())? {
                Status::Leading { .. } => {}
                other => return Err(format!("it is {other:?}")),
            }
            let app = App::new(node, "1.2.3");
            Ok((app.clone(), kelos_server::router(app)))
        })?;
        self.running = Some(started);
        self.send("POST", "/clear-cache", String::new())?;
        self.step()
    }

    fn step(&self) -> Result<(), String> {
        self.send("POST", "/scheduler?time=2015-09-13T15:00Z", String::new()).map(drop)
    }

    fn stop(&mut self) {
        if let Some((app, router)) = self.running.take() {
            drop(router);
            self.runtime.block_on(app.node().stop());
        }
    }

    /// Sends the values of an input, starts again and reads everything.
    fn survives(&mut self, input: &str) -> Result<(), String> {
        if self.running.is_none() {
            self.start()?;
        }
        let mut last = String::new();
        for line in input.lines().take(LINES) {
            let mut words = line.split(' ');
            let (Some(door), Some(what), Some(number)) = (words.next(), words.next(), words.next()) else { continue };
            let Some((_, method, path, body)) = DOORS.iter().find(|(name, ..)| *name == door) else { continue };
            let Some(value) = value(what, number) else { continue };
            self.sent += 1;
            let fill = |text: &str| text.replace('%', &self.sent.to_string()).replace('@', &value);
            if door == "outputs"
                && let Some(value) = deep(&value)
            {
                let mut giving = self.giving.0.lock().unwrap_or_else(PoisonError::into_inner);
                giving.insert("o".to_owned(), value);
            }
            let status = self.send(method, &fill(path), fill(body)).map_err(|error| format!("{line}: {error}"))?;
            let _ = writeln!(last, "{line}: {status}");
        }
        self.step()?;
        self.stop();
        self.start().map_err(|error| format!("it does not start again: {error}; it had taken\n{last}"))?;
        for path in EVERYTHING {
            self.send("GET", path, String::new())
                .map_err(|error| format!("GET {path}: {error}; it had taken\n{last}"))?;
        }
        Ok(())
    }

    fn send(&self, method: &str, path: &str, body: String) -> Result<StatusCode, String> {
        let Some((_, router)) = &self.running else { return Err("it does not run".to_owned()) };
        let request = Request::builder().method(method).uri(path).header("host", "localhost").body(Body::from(body));
        let Ok(request) = request else { return Ok(StatusCode::BAD_REQUEST) };
        self.runtime.block_on(async {
            let answered = async {
                let response = match router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                };
                let status = response.status();
                let answer = to_bytes(response.into_body(), LARGEST).await.map_err(|error| error.to_string())?;
                let shown =
                    || String::from_utf8_lossy(answer.get(..300.min(answer.len())).unwrap_or_default()).into_owned();
                if status.is_server_error() { Err(format!("{status}: {}", shown())) } else { Ok(status) }
            };
            tokio::time::timeout(PATIENCE, answered).await.unwrap_or_else(|_| Err("there is no answer".to_owned()))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A value as a function of a program gives it: of any depth.
fn deep(json: &str) -> Option<Value> {
    let levels = json.bytes().take_while(|byte| *byte == b'[').count().min(300);
    if levels == 0 {
        return serde_json::from_str(json).ok();
    }
    Some((0..levels).fold(Value::from(1), |inner, _| vec![inner].into()))
}
