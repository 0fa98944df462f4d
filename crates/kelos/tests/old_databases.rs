//! Databases that earlier versions wrote: they agree with themselves, and what was under way goes on.
//! `fixtures/databases/README.md` says what is in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Config, FactTally, FireRequest, Rerun, Resume, Tell};
use kelos_engine as engine;
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::job::NoFunctions;
use kelos_engine::{EngineParts, Handle, Pace};
use kelos_explain::verify::verify;
use kelos_model::run::Report;
use kelos_model::time::parse_instant;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{
    Actor, BackfillId, Fact, Occurrence, Outcome, RunId, Slot, SlotKey, SlotRef, SlotState, Trigger, Workflow,
    WorkflowId,
};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoredState};
use kelos_store_sqlite::SqliteStore;

const TENTH: &str = include_str!("../../../fixtures/databases/schema-10.sql");
const ELEVENTH: &str = include_str!("../../../fixtures/databases/schema-11.sql");

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

fn written(folder: &Path, dump: &str) -> PathBuf {
    let path = folder.join("kelos.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(dump).unwrap();
    conn.pragma_update(None, "journal_mode", "wal").unwrap();
    path
}

/// An engine that goes on with a database, and takes its steps when it is told to.
fn open(path: &Path, now: &'static str, executor: &Quick) -> Handle {
    let parts = EngineParts {
        store: Box::new(SqliteStore::open(path).unwrap()),
        node: "test".to_owned(),
        clock: Arc::new(move || at(now)),
        pace: Pace::Stepped,
        config: Config::default(),
        executors: Executors::default().with("command", executor.clone()).with("bash", executor.clone()),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime: tokio::runtime::Handle::current(),
        lease: Duration::from_secs(10),
        traces: false,
    };
    engine::start(parts).unwrap()
}

pub(crate) fn agrees(reader: &dyn Queries) {
    let verified = verify(reader, 10).unwrap();
    assert_eq!(verified.disagreements, [], "{verified:?}");
    assert_eq!(reader.damage(10).unwrap(), [] as [&str; 0]);
}

fn slots(handle: &Handle, workflow: &str) -> Vec<SlotRow> {
    let filter = SlotFilter { workflow: Some(WorkflowId::new(workflow).unwrap()), ..SlotFilter::default() };
    handle.reader().slots(&filter, PageRequest::newest(100)).unwrap().rows
}

/// Steps until nothing is left of what the turns before had begun.
pub(crate) async fn step(handle: &Handle, time: &str) {
    for _ in 0..5 {
        handle.step(at(time), None).await.unwrap();
        handle.settled().await.unwrap();
    }
}

#[test]
fn a_database_of_the_tenth_schema_agrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(written(folder.path(), TENTH)).unwrap();
    agrees(&*store.reader());
    let verified = verify(&*store.reader(), 10).unwrap();
    assert_eq!((verified.turns, verified.events, verified.slots), (62, 247, 38));
}

/// Five fields were read by Quartz when this database was written.
#[test]
fn five_fields_of_an_old_database_still_mean_what_they_meant() {
    let folder = tempfile::tempdir().unwrap();
    let dump = TENTH.replace(r#""cron":"0 4 * * *""#, r#""cron":"0 4 * * 1""#);
    assert_ne!(dump, TENTH);
    // Its check values are those of another expression.
    let dump = format!("{dump}\nUPDATE definitions SET check_value = NULL;");
    let store = SqliteStore::open(written(folder.path(), &dump)).unwrap();
    let rows = store.reader().workflows(None).unwrap();
    let firings = rows.iter().flat_map(|row| row.definition.trigger.firings());
    let firing = firings.into_iter().find(|firing| firing.text() == "0 4 * * 1").unwrap();
    let next = firing.schedule().next_after(at("2026-11-23T00:00Z"));
    assert_eq!(next, Some(at("2026-11-29T04:00Z")), "a Sunday");
}

#[test]
fn timeouts_of_before_count_from_the_time_of_a_slot() {
    for dump in [TENTH, ELEVENTH] {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(written(folder.path(), dump)).unwrap();
        let rows = store.reader().workflows(None).unwrap();
        let row = rows.iter().find(|row| row.definition.wait_timeout_seconds.is_some()).expect("one with a timeout");
        let time = at("2026-11-21T00:00Z");
        // Opened two days late.
        let slot = Slot::new(SlotState::Waiting, at("2026-11-23T00:00Z"));
        let until = row.definition.waits_until(&SlotKey::Time(time), &slot, row.moments.resumed);
        let seconds = row.definition.wait_timeout_seconds.unwrap_or_default();
        assert_eq!(until, Some(time + SignedDuration::from_secs(i64::try_from(seconds).unwrap())));
    }
}

#[tokio::test]
async fn what_was_collected_before_counts_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), TENTH);
    let handle = open(&path, "2026-11-22T21:20Z", &Quick::default());
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
    handle.ask(&me, Tell::of(vec![Fact { source: "cli".into(), key: None, what }])).await.unwrap();
    let second = WorkflowId::new("Triggered.Workflow2").unwrap();
    let fire = FireRequest {
        workflow: second,
        arguments: BTreeMap::new(),
        key: None,
        priority: 0,
        unconstrained: false,
        reason: None,
    };
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
    let told = handle.ask(&me, Tell::of(vec![again])).await.unwrap();
    assert_eq!(told, FactTally { known: 1, ..FactTally::default() });
    agrees(&**handle.reader());
    handle.stop().await;
}

/// The definitions of the database, as if the folder that the server worked in were this one.
fn definitions_in(folder: &Path, handle: &Handle) -> Vec<Arc<Workflow>> {
    let moved = |row: WorkflowRow| {
        let mut definition = row.definition;
        if let Trigger::Path(check) = &mut Arc::make_mut(&mut definition).trigger {
            check.path = check.path.replace("file:data/", &format!("file://{}/data/", folder.display()));
        }
        definition
    };
    handle.reader().workflows(None).unwrap().into_iter().map(moved).collect()
}

fn ready(folder: &Path, hour: &str) {
    let folder = folder.join("data/input/nyc").join(hour);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("_READY"), "").unwrap();
}

fn slot(handle: &Handle, name: &str) -> Slot {
    handle.reader().slot(&name.parse().unwrap()).unwrap().expect("the slot is there")
}

const COLLECTING: &str = "FourPartitions.onPartitionWithDelay@_2026-11-23T01:34:51.332Z";
const JOB: &str = "report@~20140601";
const OF_BACKFILL: &str = "wordcount-nyc@2016-01-01T00:00Z";
const SKIPPED: &str = "wordcount-nyc@2016-01-01T01:00Z";
const DONE: &str = "wordcount-nyc@2026-11-23T00:00Z";

#[test]
fn a_database_of_the_eleventh_schema_agrees_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(written(folder.path(), ELEVENTH)).unwrap();
    agrees(&*store.reader());
    let verified = verify(&*store.reader(), 10).unwrap();
    assert_eq!((verified.turns, verified.events, verified.slots), (61, 248, 38));
}

/// A schedule fires on a new fact, a job that was submitted earlier is done, a backfill goes on, a slot runs again; and what the
/// older program wrote agrees with what this one wrote after it.
#[tokio::test]
async fn what_the_eleventh_schema_had_under_way_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), ELEVENTH);
    let executor = Quick::default();
    let handle = open(&path, "2026-11-23T01:40Z", &executor);
    handle.define(definitions_in(folder.path(), &handle), BTreeMap::new()).unwrap();
    step(&handle, "2026-11-23T01:40Z").await;
    for waiting in [COLLECTING, JOB, OF_BACKFILL] {
        assert_eq!(slot(&handle, waiting).state, SlotState::Waiting, "{waiting}");
    }
    assert_eq!(slot(&handle, DONE).last_run, 1);

    let me = Actor::person("me");
    let what = Occurrence::Partitions { dataset: "myDataset".into(), count: 2, keys: Vec::new() };
    handle.ask(&me, Tell::of(vec![Fact { source: "cli".into(), key: None, what }])).await.unwrap();
    handle.ask(&me, Resume { workflow: WorkflowId::new("report").unwrap(), reason: None }).await.unwrap();
    ready(folder.path(), "2016-01-01/0000");
    ready(folder.path(), "2026-11-23/0000");
    handle.ask(&me, Rerun { reason: Some("again".to_owned()), ..Rerun::of(DONE.parse().unwrap()) }).await.unwrap();
    step(&handle, "2026-11-23T02:00Z").await;

    for done in [COLLECTING, JOB, OF_BACKFILL, DONE] {
        assert_eq!(slot(&handle, done).state, SlotState::Succeeded, "{done}");
    }
    assert_eq!(slot(&handle, DONE).last_run, 2);
    assert_eq!(slot(&handle, SKIPPED).state, SlotState::Skipped);
    let of_backfill = slot(&handle, OF_BACKFILL);
    assert_eq!((of_backfill.backfill.as_ref().map(BackfillId::as_str), of_backfill.priority), (Some("old-hours"), -1));
    let started: Vec<String> = executor.0.lock().unwrap().iter().map(|run| run.slot.to_string()).collect();
    for name in [COLLECTING, JOB, OF_BACKFILL, DONE] {
        let name = name.parse::<SlotRef>().unwrap().to_string();
        assert_eq!(started.iter().filter(|slot| **slot == name).count(), 1, "{name}: {started:?}");
    }
    agrees(&**handle.reader());
    handle.stop().await;
    let reader = SqliteStore::open(&path).unwrap().reader();
    agrees(&*reader);
    assert!(verify(&*reader, 10).unwrap().turns > 61);
}
