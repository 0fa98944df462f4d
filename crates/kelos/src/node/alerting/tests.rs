//! A real node with a past, whose alerts are received.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_alerts::Settings;
use kelos_core::{Command, Config, Input};
use kelos_engine::Definitions;
use kelos_engine::clock::Clock;
use kelos_engine::executor::{Executor, Reports, Start};
use kelos_engine::turn::Turns;
use kelos_explain::failures::held_by;
use kelos_model::probe::Conditions;
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::workflow::{CatchUp, Job, Provenance};
use kelos_model::{Deadline, Outcome, RunId, Trigger, Workflow};
use kelos_store::{Journal, MemoryStore};
use kelos_tls::Trust;
use serde_json::{Value, json};

use crate::{Node, NodeConfig};

fn at(hour: i64, minute: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + hour * 3_600 + minute * 60).unwrap()
}

/// `load` begins five minutes after each hour and takes 40; `report` takes 5 after it, and has to be done at half past.
fn workflows() -> Vec<Arc<Workflow>> {
    let of = |id: &str, trigger, deadline| {
        let (schedule, job) = (Schedule::Cron(CronSchedule::hourly()), Job::new("held", serde_json::Map::new()));
        let plain = Workflow::new(id.parse().unwrap(), schedule, job);
        Arc::new(Workflow { trigger, deadline, start_time: Some(at(0, 0)), ..plain })
    };
    let after = Trigger::Success { workflow: "load".parse().unwrap() };
    vec![of("load", Trigger::Delay { seconds: 300 }, None), of("report", after, Some(Deadline::After(1_800)))]
}

/// A store with runs of so many minutes: after 242 there are four hours of them, and in the fifth both wait.
fn past(minutes: i64) -> MemoryStore {
    let mut store = MemoryStore::new();
    let lease = store.lease("past", at(0, 0), 1_000).unwrap().unwrap();
    let (mut turns, _) = Turns::restore(Config::default(), &mut store, lease, at(0, 0)).unwrap();
    let mut inputs =
        vec![Input::Definitions { provenance: Provenance::File, all: workflows(), deployed: BTreeMap::new() }];
    let mut live: Vec<(Timestamp, RunId)> = Vec::new();
    for minute in 0..=minutes {
        let now = at(0, minute);
        let (ended, others) = live.into_iter().partition(|(end, _)| *end <= now);
        live = others;
        let succeeded = Report::Ended { outcome: Outcome::Succeeded };
        inputs.extend(ended.into_iter().map(|(_, run)| Input::RunReported { run, report: succeeded.clone() }));
        while !inputs.is_empty() || minute % 5 == 0 || minute == minutes {
            inputs.push(Input::Woke { only: None, look_again: false });
            let done = turns.turn(&mut store, now, std::mem::take(&mut inputs)).unwrap();
            for command in done.commands {
                if let Command::StartRun { run, .. } = command {
                    let takes = if run.slot.workflow.as_str() == "load" { 40 } else { 5 };
                    live.push((now + SignedDuration::from_mins(takes), run.clone()));
                    inputs.push(Input::RunReported { run, report: Report::Started { external_id: "1".to_owned() } });
                }
            }
            if inputs.is_empty() {
                break;
            }
        }
    }
    store
}

/// A server that takes everything, and passes it on.
fn receiver() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let (send, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut reader, mut length, mut line) = (BufReader::new(stream), 0, String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) && !line.trim().is_empty() {
                let header = line.to_ascii_lowercase();
                length = header.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            reader.get_mut().write_all(answer).unwrap();
            if send.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (address, received)
}

/// An executor that never says anything of a run.
struct Silent;

impl Executor for Silent {
    fn start(&self, _: Start, _: Reports) {}

    fn check(&self, _: &RunId, _: Option<&str>, _: Reports) {}

    fn cancel(&self, _: &RunId, _: Option<&str>, _: Reports) {}
}

/// Settings with a rule for some conditions, which are told at once, and what is told.
fn settings(when: &str) -> ((Settings, Option<String>), Receiver<Value>) {
    let (address, received) = receiver();
    let text = format!(
        r#"{{"alerts": {{"channels": {{"hook": {{"webhook": "{address}"}}}},
            "rules": [{{"to": ["hook"], "when": [{when}], "after": "0s"}}]}}}}"#
    );
    ((Settings::parse(&text).unwrap(), Some("https://kelos.example".to_owned())), received)
}

/// A node with a clock and without alerts, and its folder.
fn config(clock: Clock) -> (NodeConfig, tempfile::TempDir) {
    let runs = tempfile::tempdir().unwrap();
    let mut config = NodeConfig::new(runs.path().join("runs"), Vec::new());
    config.clock = clock;
    config.executors = config.executors.with("held", Silent);
    (config, runs)
}

/// A node whose notices are received.
struct AlertingNode {
    node: Node,
    received: Receiver<Value>,
    _runs: tempfile::TempDir,
}

impl AlertingNode {
    /// A node with this past and a clock, and a rule for some conditions, which are told at once.
    fn start(past: MemoryStore, clock: Clock, when: &str) -> AlertingNode {
        let (settings, received) = settings(when);
        let (config, _runs) = config(clock);
        let config = NodeConfig { alerts: Some(settings), ..config };
        let node = Node::start(config, Box::new(past), tokio::runtime::Handle::current()).unwrap();
        AlertingNode { node, received, _runs }
    }

    /// Its first notice.
    async fn first(self) -> Value {
        let AlertingNode { node, received, _runs } = self;
        let told = first(received).await;
        node.stop().await;
        told
    }
}

async fn first(received: Receiver<Value>) -> Value {
    let told = tokio::task::spawn_blocking(move || received.recv_timeout(Duration::from_secs(60)).unwrap());
    told.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_will_be_late_is_told_with_what_decides() {
    let told = AlertingNode::start(past(242), Arc::new(|| at(4, 2)), r#""will-be-late", "stuck""#).first().await;
    assert_eq!(
        told["title"],
        "report@2026-01-01T04:00Z will be late: expected 2026-01-01T04:47Z, deadline 2026-01-01T04:30Z; \
         decided by load@2026-01-01T04:00Z, which takes 40 min as a rule (4 runs)"
    );
    assert_eq!((&told["condition"], &told["count"]), (&"will-be-late".into(), &1.into()));
    assert_eq!(told["link"], "https://kelos.example/ui/workflows/report/slots/2026%2D01%2D01T04%3A00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_late_in_the_first_turn_is_told() {
    let node = AlertingNode::start(past(242), Arc::new(|| at(4, 40)), r#""late""#);
    let all = Definitions { provenance: Provenance::File, all: workflows(), is_whole: true, ..Definitions::default() };
    node.node.handle().deploy(all).unwrap();
    let told = node.first().await;
    assert_eq!((&told["condition"], &told["phase"]), (&"late".into(), &"opened".into()));
    assert_eq!(told["title"], "report@2026-01-01T04:00:00.000Z is late: its deadline was 2026-01-01T04:30Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_long_is_told_with_all_that_waits_for_it() {
    let told = AlertingNode::start(past(250), Arc::new(|| at(9, 0)), r#""stuck""#).first().await;
    assert_eq!((&told["condition"], &told["phase"]), (&"stuck".into(), &"opened".into()));
    assert_eq!(
        told["title"],
        "load@2026-01-01T04:00Z runs for longer than usual: run 1 (1) goes on since 2026-01-01T04:10Z"
    );
    assert_eq!(told["members"], json!(["load@2026-01-01T04:00:00.000Z"]), "{told}");
}

/// An address at which whoever connects is sent away. The port stays taken, so that nobody else answers there.
fn silence() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    address
}

/// Workflows of which one looks for a file of each hour at an endpoint, and the other waits for it.
fn lookers(endpoint: &str) -> Vec<Arc<Workflow>> {
    let (path, conditions) = (format!("{endpoint}/${{hour}}"), Conditions::default());
    let check = PathCheck { system: FileSystem::Any, path, base: endpoint.to_owned(), conditions };
    let all = workflows().into_iter().map(|one| Workflow { catch_up: Some(CatchUp::All), ..(*one).clone() });
    let mut all: Vec<Workflow> = all.collect();
    all[0].trigger = Trigger::Path(check);
    all.into_iter().map(Arc::new).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_away_is_told_with_the_number_of_slots_that_it_holds() {
    let endpoint = silence();
    let (config, _runs) = config(Arc::new(|| at(5, 2)));
    let runtime = tokio::runtime::Handle::current();
    let node = Node::start(config, Box::new(MemoryStore::new()), runtime.clone()).unwrap();
    let (handle, reader) = (node.handle(), node.reader().clone());
    let mut commits = handle.watch_commits();
    handle.define(lookers(&endpoint), BTreeMap::new()).unwrap();
    // All have looked before alerts begin, whose first look finds all of it then.
    let is_away = || node.storage.health().iter().any(|one| one.endpoint == endpoint && one.broken.is_some());
    while !is_away() || held_by(&*reader, &endpoint, at(5, 2)).unwrap().slots.len() < 6 {
        tokio::time::timeout(Duration::from_secs(60), commits.changed()).await.unwrap().unwrap();
    }
    let (settings, received) = settings(r#""endpoint""#);
    let since = reader.last_seq().unwrap();
    let alerts = super::start(Some(settings), since, Trust::default(), &node, &runtime).unwrap();
    let told = first(received).await;
    alerts.end().await;
    node.stop().await;
    assert_eq!((&told["condition"], &told["members"][0]), (&"endpoint".into(), &endpoint.into()));
    assert_eq!(told["followers"], 12, "{told}");
}
