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
use kelos_engine::turn::Turns;
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{Job, Provenance};
use kelos_model::{Deadline, Outcome, RunId, Trigger, Workflow};
use kelos_store::{Journal, MemoryStore};
use serde_json::Value;

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

/// A store with four hours of runs; in the fifth both wait.
fn past() -> MemoryStore {
    let mut store = MemoryStore::new();
    let lease = store.lease("past", at(0, 0), 1_000).unwrap().unwrap();
    let (mut turns, _) = Turns::restore(Config::default(), &mut store, lease, at(0, 0)).unwrap();
    let mut inputs =
        vec![Input::Definitions { provenance: Provenance::File, all: workflows(), deployed: BTreeMap::new() }];
    let mut live: Vec<(Timestamp, RunId)> = Vec::new();
    for minute in 0..=242 {
        let now = at(0, minute);
        let (ended, others) = live.into_iter().partition(|(end, _)| *end <= now);
        live = others;
        let succeeded = Report::Ended { outcome: Outcome::Succeeded };
        inputs.extend(ended.into_iter().map(|(_, run)| Input::RunReported { run, report: succeeded.clone() }));
        while !inputs.is_empty() || minute % 5 == 0 || minute == 242 {
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

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_will_be_late_is_told_with_what_decides() {
    let (address, received) = receiver();
    let text = format!(
        r#"{{"alerts": {{"channels": {{"hook": {{"webhook": "{address}"}}}},
            "rules": [{{"to": ["hook"], "when": ["will-be-late", "stuck"], "after": "0s"}}]}}}}"#
    );
    let folder = tempfile::tempdir().unwrap();
    let mut config = NodeConfig::new(folder.path().join("runs"), Vec::new());
    config.clock = Arc::new(|| at(4, 2));
    config.alerts = Some((Settings::parse(&text).unwrap(), Some("https://kelos.example".to_owned())));
    let node = Node::start(config, Box::new(past()), tokio::runtime::Handle::current()).unwrap();
    let told = tokio::task::spawn_blocking(move || received.recv_timeout(Duration::from_secs(60)).unwrap());
    let told = told.await.unwrap();
    node.stop().await;
    assert_eq!(
        told["title"],
        "report@2026-01-01T04:00Z will be late: expected 2026-01-01T04:47Z, deadline 2026-01-01T04:30Z; \
         decided by load@2026-01-01T04:00Z, which takes 40 min as a rule (4 runs)"
    );
    assert_eq!((&told["condition"], &told["count"]), (&"will-be-late".into(), &1.into()));
    assert_eq!(told["link"], "https://kelos.example/ui/workflows/report/slots/2026%2D01%2D01T04%3A00Z");
}
