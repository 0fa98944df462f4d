//! History in the database goes by age and number, and what is needed stays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use kelos::history::{AGREED, Archive, Consent, HistoryConfig};
use kelos::nodes::{self, LogPlace};
use kelos::{Node, NodeConfig};
use kelos_core::{Config, Input, Rerun, SetRegister, TrimHistory};
use kelos_engine::trimming::TrimLook;
use kelos_engine::turn::Turns;
use kelos_executors::local::{RunDirs, mark_new};
use kelos_executors::run_ref;
use kelos_model::history::{HistorySettings, Retention, Term, Trim};
use kelos_model::register::HISTORY_BUCKET;
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{Job, Provenance};
use kelos_model::{Actor, Outcome, RunId, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{EventFilter, Journal, Lease, PageRequest, RunFilter, StoredState};
use kelos_store_sqlite::SqliteStore;
use kelos_tls::Trust;

/// A scheduler whose runs end at once.
struct Bench {
    store: SqliteStore,
    turns: Turns,
    start: Timestamp,
    now: Timestamp,
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

fn workflow(name: &str, schedule: CronSchedule, start: Timestamp) -> Arc<Workflow> {
    let job = Job::new("command", serde_json::Map::new());
    Arc::new(Workflow { start_time: Some(start), ..Workflow::new(id(name), Schedule::Cron(schedule), job) })
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl Bench {
    /// One workflow of each hour, and one of each day.
    fn new(folder: &Path) -> Bench {
        Bench::since(folder, start())
    }

    fn since(folder: &Path, start: Timestamp) -> Bench {
        let mut store = SqliteStore::open(folder.join("kelos.db")).unwrap();
        let lease: Lease = store.lease("test", start, 1000).unwrap().unwrap();
        let (turns, _) = Turns::restore(Config::default(), &mut store, lease, start).unwrap();
        let mut bench = Bench { store, turns, start, now: start };
        bench.defines();
        bench
    }

    fn defines(&mut self) {
        let (daily, start) = (CronSchedule::utc("0 0 0 * * ?".parse().unwrap()), self.start);
        let all = vec![workflow("hourly", CronSchedule::hourly(), start), workflow("daily", daily, start)];
        self.goes(vec![Input::Definitions { provenance: Provenance::File, all, deployed: BTreeMap::new() }]);
    }

    /// Takes turns until nothing follows any more; each run succeeds at once.
    fn goes(&mut self, mut inputs: Vec<Input>) {
        loop {
            inputs.push(Input::Woke { only: None, look_again: false });
            let done = self.turns.turn(&mut self.store, self.now, inputs).unwrap();
            inputs = Vec::new();
            for command in done.commands {
                if let kelos_core::Command::StartRun { run, .. } = command {
                    let report = |report| Input::RunReported { run: run.clone(), report };
                    inputs.push(report(Report::Started { external_id: "1".to_owned() }));
                    inputs.push(report(Report::Ended { outcome: Outcome::Succeeded }));
                }
            }
            if inputs.is_empty() {
                return;
            }
        }
    }

    fn until(&mut self, end: Timestamp) {
        while self.now < end {
            self.now += SignedDuration::from_hours(1);
            self.goes(Vec::new());
        }
    }

    fn trims(&mut self, term: &Term) -> u64 {
        let reader = self.store.reader();
        let mut look = TrimLook::new(&*reader, term, self.now, u64::MAX);
        let mut events = 0;
        loop {
            let portion = look.portion().unwrap();
            if let Some(trim) = portion.trim {
                events += gone(&trim);
                let (by, ask) = (Actor::system("history"), TrimHistory { trim }.into());
                self.goes(vec![Input::Asked { token: 0, by, ask, warrant: None }]);
            }
            if portion.is_last {
                return events;
            }
        }
    }

    fn runs(&self, name: &str) -> usize {
        let filter = RunFilter { workflow: Some(id(name)), ..RunFilter::default() };
        self.store.reader().runs(&filter, PageRequest::newest(1 << 30)).unwrap().rows.len()
    }

    fn verified(&self) {
        let reader = self.store.reader();
        let verified = kelos_explain::verify::verify(&*reader, 9).unwrap();
        assert_eq!(verified.disagreements, Vec::new());
        assert_eq!(reader.damage(9).unwrap(), Vec::<String>::new());
    }
}

fn gone(trim: &Trim) -> u64 {
    trim.stretches.iter().map(|(first, last)| last - first + 1).sum()
}

fn term(days: u32, runs: u32) -> Term {
    Term { usual: Retention { days, runs }, projects: BTreeMap::new(), output: 0, archive: None }
}

#[test]
fn history_goes_by_age_and_number_and_slots_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path());
    bench.until(start() + SignedDuration::from_hours(30 * 24));
    assert_eq!((bench.runs("hourly"), bench.runs("daily")), (720, 30));
    assert_eq!(bench.trims(&term(60, 10)), 0, "nothing is so old");
    let events = bench.trims(&term(10, 15));
    // Ten days of the hourly one are more than fifteen runs; of the daily one the fifteen newest are more than ten days.
    assert_eq!((bench.runs("hourly"), bench.runs("daily")), (241, 15));
    let reader = bench.store.reader();
    let trimmed = reader.removed_history().unwrap();
    assert_eq!((trimmed.events, trimmed.runs), (events, 479 + 15));
    let old = SlotRef::at(id("hourly"), start() + SignedDuration::from_hours(5));
    assert_eq!(reader.slot(&old).unwrap().map(|slot| slot.state), Some(SlotState::Succeeded));
    assert_eq!(reader.history(&old).unwrap(), []);
    bench.verified();
    assert_eq!(bench.trims(&term(10, 15)), 0, "a second look finds nothing");

    // It runs again, and is not taken for one that never ran.
    let (by, ask) = (Actor::person("me"), Rerun::of(old.clone()).into());
    bench.goes(vec![Input::Asked { token: 1, by, ask, warrant: None }]);
    let slot = bench.store.reader().slot(&old).unwrap().unwrap();
    assert_eq!((slot.state, slot.last_run), (SlotState::Succeeded, 2));
    assert_eq!(bench.store.reader().slot_runs(&old).unwrap().len(), 1);
    bench.verified();

    // After a restart all goes on.
    drop(bench.store);
    bench.store = SqliteStore::open(folder.path().join("kelos.db")).unwrap();
    let lease = bench.store.lease("test", bench.now, 1000).unwrap().unwrap();
    (bench.turns, _) = Turns::restore(Config::default(), &mut bench.store, lease, bench.now).unwrap();
    bench.defines();
    let end = bench.now + SignedDuration::from_hours(48);
    bench.until(end);
    assert_eq!((bench.runs("hourly"), bench.runs("daily")), (241 + 1 + 48, 15 + 2));
    bench.trims(&term(10, 15));
    assert_eq!((bench.runs("hourly"), bench.runs("daily")), (241 + 1, 15));
    bench.verified();
}

#[test]
fn a_year_at_a_steady_rate_ends_with_a_flat_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path());
    let count = |bench: &Bench| {
        let page = bench.store.reader().events(&EventFilter::default(), PageRequest::oldest(1 << 30)).unwrap();
        (page.rows.len(), bench.store.reader().turns(PageRequest::oldest(1 << 30)).unwrap().rows.len())
    };
    let mut sizes = Vec::new();
    for week in 1..=20 {
        bench.until(start() + SignedDuration::from_hours(week * 7 * 24));
        bench.trims(&term(14, 5));
        sizes.push(count(&bench));
    }
    let (steady, end) = (sizes[5], sizes[19]);
    assert!(end.0 <= steady.0 + 20 && end.1 <= steady.1 + 20, "events and turns {steady:?}, at the end {end:?}");
    bench.verified();
}

/// The folder of a run that ended long ago.
fn folder_of(root: &Path, slot: &SlotRef, number: u32) -> PathBuf {
    let dir = RunDirs::new(root).path(&run_ref(&RunId { slot: slot.clone(), number }));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("exit.json"), "{}").unwrap();
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(start().as_second().unsigned_abs());
    std::fs::File::options().write(true).open(dir.join("exit.json")).unwrap().set_modified(end).unwrap();
    dir
}

/// A node with settings, which has looked at its folders and at the database.
async fn node_that_looked(folder: &Path, config: HistoryConfig) -> Node {
    let mut node = NodeConfig::new(folder.join("runs"), Vec::new());
    node.history = Some(config);
    let store = Box::new(SqliteStore::open(folder.join("kelos.db")).unwrap());
    let node = Node::start(node, store, tokio::runtime::Handle::current()).unwrap();
    let history = node.history().expect("it is bounded");
    for _ in 0..600 {
        if history.database().is_some() {
            break;
        }
        history.look();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(history.database().is_some(), "it has looked");
    node
}

/// Has somebody agree now, and waits until a look has found that.
async fn agree(node: &Node) {
    let history = node.history().expect("it is bounded");
    let (bucket, key) = (HISTORY_BUCKET.to_owned(), AGREED.to_owned());
    let value = Some(serde_json::json!({"at": node.handle().now().to_string()}));
    node.handle().ask(&Actor::person("ann"), SetRegister { bucket, key, value, reason: None }).await.unwrap();
    let is_agreed = || {
        let (folders, database) = (history.figures(), history.database());
        folders.is_some_and(|found| found.consent == Consent::Agreed)
            && database.is_some_and(|found| found.consent == Consent::Agreed)
    };
    looks_until(node, "it sees the consent", is_agreed).await;
}

/// Has a node look at its history until something holds.
async fn looks_until(node: &Node, what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        node.history().unwrap().look();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("still not: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_of_runs_that_left_the_database_go_and_those_of_runs_that_it_never_had_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path());
    bench.until(start() + SignedDuration::from_hours(20 * 24));
    let at = |hours: i64| SlotRef::at(id("hourly"), start() + SignedDuration::from_hours(hours));
    let (old, again) = (at(5), at(6));
    bench.trims(&term(10, 15));
    assert_eq!(bench.store.reader().slot_runs(&old).unwrap(), [], "its run has left the database");
    // The first run of a slot whose second one the database has.
    let (by, ask) = (Actor::person("me"), Rerun::of(again.clone()).into());
    bench.goes(vec![Input::Asked { token: 1, by, ask, warrant: None }]);
    let numbers: Vec<u32> = bench.store.reader().slot_runs(&again).unwrap().iter().map(|run| run.id.number).collect();
    assert_eq!(numbers, [2]);
    let bench_end = bench.now;
    drop(bench.store);
    let root = folder.path().join("runs");
    mark_new(&root).unwrap();
    let gone = [folder_of(&root, &old, 1), folder_of(&root, &again, 1)];
    // The database is of a backup from before they began.
    let unknown = [folder_of(&root, &old, 2), folder_of(&root, &at(100_000), 1)];
    // It has no outcome: its processes may be there.
    let open = folder_of(&root, &at(7), 1);
    std::fs::remove_file(open.join("exit.json")).unwrap();
    std::fs::File::open(&open).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let settings = HistorySettings::parse(r#"{"history": {"days": 10, "runs": 0}}"#).unwrap();
    let config = HistoryConfig { settings, roots: vec![root], archive: None };
    let node = node_that_looked(folder.path(), config).await;
    let history = node.history().unwrap();
    assert!(gone.iter().all(|dir| dir.exists()), "the clock is far ahead of the newest turn");
    let before = history.figures().unwrap();
    let from = before.consent.leap().unwrap().from;
    assert_eq!((from, before.going.folders), (bench_end, 2));
    agree(&node).await;
    // What goes is removed after it has been counted.
    looks_until(&node, "three folders are left", || history.figures().unwrap().all.folders == 3).await;
    let figures = history.figures().unwrap();
    node.stop().await;
    assert_eq!(gone.map(|dir| dir.exists()), [false, false]);
    assert_eq!(unknown.map(|dir| dir.exists()), [true, true]);
    assert!(open.exists());
    assert_eq!((figures.all.folders, figures.held.folders), (3, 3));
}

/// A node on a database whose history is old removes it, and archives it before.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_archives_what_it_removes() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path());
    bench.until(start() + SignedDuration::from_hours(20 * 24));
    let before = bench.store.reader().last_seq().unwrap();
    drop(bench.store);
    let place = folder.path().join("archive");
    std::fs::create_dir(&place).unwrap();
    let settings = HistorySettings::parse(r#"{"history": {"days": 10, "runs": 5}}"#).unwrap();
    let archive = Archive::new(&format!("file:{}", place.display()), &Storage::new(StorageConfig::default())).unwrap();
    let config = HistoryConfig { settings, roots: Vec::new(), archive: Some(archive) };
    let node = node_that_looked(folder.path(), config).await;
    let history = node.history().unwrap().clone();
    assert_eq!(node.reader().removed_history().unwrap().events, 0, "the log has a gap up to now");
    agree(&node).await;
    let trimmed = node.reader().removed_history().unwrap();
    node.stop().await;
    assert_eq!(history.problem(), None);
    assert!(trimmed.events > 0 && trimmed.runs > 0, "{trimmed:?}");
    let mut archived: Vec<_> = std::fs::read_dir(&place).unwrap().map(|one| one.unwrap().path()).collect();
    archived.sort();
    let lines: Vec<String> = archived
        .iter()
        .flat_map(|file| std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let events = lines.iter().filter(|line| line.starts_with("{\"event\":")).count() as u64;
    assert_eq!(events, trimmed.event, "all events up to the last turn that is incomplete are in the archive");
    assert!(trimmed.event < before + 1000);
    let store = SqliteStore::open(folder.path().join("kelos.db")).unwrap();
    let verified = kelos_explain::verify::verify(&*store.reader(), 9).unwrap();
    assert_eq!(verified.disagreements, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_comes_from_the_log_of_several_nodes_waits_for_consent() {
    let folder = tempfile::tempdir().unwrap();
    let hour = SignedDuration::from_hours(1);
    let now = Timestamp::now().round(TimestampRound::new().smallest(Unit::Hour).mode(RoundMode::Floor)).unwrap();
    let mut bench = Bench::since(folder.path(), now - 20 * 24 * hour);
    bench.until(now);
    drop(bench.store);
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let log = LogPlace::new(&format!("file:{}", folder.path().join("log").display()), &Trust::default());
    nodes::to_log(folder.path(), &log, None).unwrap();
    nodes::to_file(&log, &home).unwrap();
    let settings = HistorySettings::parse(r#"{"history": {"days": 10, "runs": 5}}"#).unwrap();
    let node = node_that_looked(&home, HistoryConfig { settings, roots: Vec::new(), archive: None }).await;
    let figures = node.history().unwrap().database().unwrap();
    let removed = node.reader().removed_history().unwrap();
    node.stop().await;
    assert_eq!((figures.consent, removed.events), (Consent::Missing, 0));
    assert!(figures.going > 0);
}
