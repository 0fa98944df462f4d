//! Databases that earlier versions wrote: they agree with themselves, and what was under way goes on.
//! `fixtures/databases/README.md` says what is in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kelos::core::{Config, FactTally, FireRequest, Tell};
use kelos::engine::{self, EngineParts, Handle, Pace};
use kelos::executor::{Executor, Executors, Reports, Start};
use kelos::job::NoFunctions;
use kelos::model::run::Report;
use kelos::model::time::parse_instant;
use kelos::model::{Actor, Fact, Occurrence, Outcome, RunId, SlotState, WorkflowId};
use kelos::storage::{Storage, StorageConfig};
use kelos::store::{Journal, Paging, Queries, SlotFilter, SlotRow, SqliteStore};
use kelos::verify::verify;

const TENTH: &str = include_str!("../../../fixtures/databases/schema-10.sql");

/// Has every run succeed at once.
#[derive(Clone, Default)]
struct Quick(Arc<Mutex<Vec<RunId>>>);

impl Executor for Quick {
    fn start(&self, start: Start, reports: Reports) {
        self.0.lock().unwrap().push(start.run.clone());
        reports.run(&start.run, Report::Started { external_id: start.run.to_string() });
        reports.run(&start.run, Report::Ended { outcome: Outcome::Succeeded });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

fn at(text: &str) -> Timestamp {
    parse_instant(text).unwrap()
}

fn written(folder: &Path) -> PathBuf {
    let path = folder.join("kelos.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(TENTH).unwrap();
    conn.pragma_update(None, "journal_mode", "wal").unwrap();
    path
}

fn agrees(reader: &dyn Queries) {
    let verified = verify(reader, 10).unwrap();
    assert_eq!(verified.disagreements, [], "{verified:?}");
    assert_eq!(reader.damage(10).unwrap(), [] as [&str; 0]);
}

fn slots(handle: &Handle, workflow: &str) -> Vec<SlotRow> {
    let filter = SlotFilter { workflow: Some(WorkflowId::new(workflow).unwrap()), ..SlotFilter::default() };
    handle.reader().slots(&filter, Paging::newest(100)).unwrap().rows
}

/// Steps until nothing is left of what the turns before had begun.
async fn step(handle: &Handle, time: &str) {
    for _ in 0..5 {
        handle.step(at(time), None).await.unwrap();
        handle.settled().await.unwrap();
    }
}

#[test]
fn a_database_of_the_tenth_schema_agrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(written(folder.path())).unwrap();
    agrees(&*store.reader());
    let verified = verify(&*store.reader(), 10).unwrap();
    assert_eq!((verified.turns, verified.events, verified.slots), (62, 247, 38));
}

#[tokio::test]
async fn what_was_collected_before_counts_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path());
    let executor = Quick::default();
    let parts = EngineParts {
        store: Box::new(SqliteStore::open(&path).unwrap()),
        node: "test".to_owned(),
        clock: Arc::new(|| at("2026-11-22T21:20Z")),
        pace: Pace::Stepped,
        config: Config::default(),
        executors: Executors::default().with("command", executor.clone()).with("bash", executor.clone()),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime: tokio::runtime::Handle::current(),
        lease: Duration::from_secs(10),
    };
    let handle = engine::start(parts).unwrap();
    let rows = handle.reader().workflows(None).unwrap();
    handle.define(rows.into_iter().map(|row| row.definition).collect(), BTreeMap::new()).unwrap();
    step(&handle, "2026-11-22T21:20Z").await;

    let half = "FourPartitions.onPartitionWithDelay";
    let [slot] = &slots(&handle, half)[..] else { panic!("one slot") };
    assert_eq!(
        (slot.id.short().as_str(), slot.slot.state),
        (&*format!("{half}@2026-11-22T21:11:44.193Z"), SlotState::Waiting)
    );
    let what = Occurrence::Partitions { dataset: "myDataset".into(), count: 2, keys: Vec::new() };
    let me = Actor::person("me");
    handle.ask(&me, Tell { facts: vec![Fact { source: "cli".into(), key: None, what }] }).await.unwrap();
    let second = WorkflowId::new("Triggered.Workflow2").unwrap();
    let fire = FireRequest { workflow: second, arguments: BTreeMap::new(), unconstrained: false, reason: None };
    handle.ask(&me, fire).await.unwrap();
    step(&handle, "2026-11-22T21:40Z").await;
    for schedule in [half, "Triggered.Workflow1AndWorkflow2CompletedSchedule"] {
        let rows = slots(&handle, schedule);
        let states: Vec<SlotState> = rows.iter().map(|row| row.slot.state).collect();
        assert_eq!(states, [SlotState::Succeeded], "{schedule}");
    }
    // What a fact was named is known still.
    let what = Occurrence::Partitions { dataset: "myDataset".into(), count: 1, keys: Vec::new() };
    let again = Fact { source: "cli".into(), key: Some("p1".into()), what };
    let told = handle.ask(&me, Tell { facts: vec![again] }).await.unwrap();
    assert_eq!(told, FactTally { new: 0, known: 1 });
    agrees(&**handle.reader());
    handle.stop().await;
}
