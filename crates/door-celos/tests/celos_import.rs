//! Celos's state database: read, taken over, written back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Ask, Command, Config, Input, Pause, Rerun, Resume, SetRegister, SubmitRequest};
use kelos_door_celos::celos_db::{Database, Record, SlotRecord, Status, Tree, TreeFile};
use kelos_door_celos::export::{ExportError, ExportOptions, ExportReport, export};
use kelos_door_celos::import::{
    Definitions, ImportError, ImportOptions, ImportReport, ImportedWorkflow, PauseFate, import,
};
use kelos_engine::turn::Turns;
use kelos_model::jobs::{JobKeys, JobTemplate};
use kelos_model::run::Report;
use kelos_model::slot::apply;
use kelos_model::time::{CronSchedule, Schedule, parse_instant};
use kelos_model::workflow::{Job, Keys, Source};
use kelos_model::{
    Actor, Event, EventRecord, Outcome, RetryPolicy, RunState, Slot, SlotRef, SlotState, Trigger, Workflow, WorkflowId,
};
use kelos_store::{EventFilter, Journal, MemoryDisk, MemoryStore, PageRequest, Queries, SlotFilter, StoredState};
use kelos_store_sqlite::SqliteStore;
use proptest::prelude::*;
use serde_json::json;

const NOW: &str = "2016-02-10T12:30Z";

fn at(text: &str) -> Timestamp {
    parse_instant(text).unwrap()
}

fn named(id: &str) -> WorkflowId {
    WorkflowId::new(id).unwrap()
}

fn slot(id: &str, time: &str) -> SlotRef {
    SlotRef::at(named(id), at(time))
}

/// A folder of files, by path and text.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text);
    }
    dir
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn options() -> ImportOptions {
    ImportOptions { now: at(NOW), as_of: at(NOW), revive: false, dry_run: false }
}

fn hourly(id: &str, executor: &str) -> Arc<Workflow> {
    Arc::new(Workflow {
        source: Source::file("test.js", 1),
        concurrency: Some(1000),
        retry: RetryPolicy::immediate(1),
        ..Workflow::new(named(id), Schedule::Cron(CronSchedule::hourly()), Job::new(executor, serde_json::Map::new()))
    })
}

fn definitions(all: &[Arc<Workflow>]) -> Definitions {
    let workflows = all.iter().map(|one| (one.id.clone(), one.clone())).collect();
    Definitions { workflows, sources: BTreeMap::from([("test.js".to_owned(), Arc::from("// the script"))]) }
}

fn take(store: &mut dyn Journal, root: &Path, definitions: &Definitions, options: &ImportOptions) -> ImportReport {
    import(store, Database::open(root).unwrap(), definitions, options).unwrap()
}

fn only(imported: &ImportReport) -> &ImportedWorkflow {
    assert_eq!(imported.workflows.len(), 1, "{imported:?}");
    &imported.workflows[0]
}

fn all_slots(reader: &dyn Queries) -> BTreeMap<SlotRef, Slot> {
    let page = reader.slots(&SlotFilter::default(), PageRequest::newest(100_000)).unwrap();
    page.rows.into_iter().map(|row| (row.id, row.slot)).collect()
}

/// The log must fold to the table, whatever was imported.
fn folds(reader: &dyn Queries) {
    let mut folded: BTreeMap<SlotRef, Slot> = BTreeMap::new();
    for EventRecord { seq, at, previous, event } in
        reader.events(&EventFilter::default(), PageRequest::oldest(1_000_000)).unwrap().rows
    {
        let Event::Slot { slot, what } = event else { continue };
        let before = folded.remove(&slot);
        assert_eq!(before.as_ref().map_or(0, |slot| slot.last_event), previous, "{slot}");
        folded.insert(slot, apply(before, &what, at, seq).unwrap());
    }
    assert_eq!(folded, all_slots(reader));
}

const EVERYTHING: [(&str, &str); 13] = [
    (
        "state/w/2016-02-10/05:00:00.000Z",
        r#"{"time":"2016-02-10T05:00:00.000Z","status":"WAITING","externalID":null,"retryCount":1}"#,
    ),
    (
        "state/w/2016-02-10/06:00:00.000Z",
        r#"{"time":"2016-02-10T06:00:00.000Z","status":"READY","externalID":null,"retryCount":0}"#,
    ),
    (
        "state/w/2016-02-10/07:00:00.000Z",
        r#"{"time":"2016-02-10T07:00:00.000Z","status":"RUNNING","externalID":"0000007-oozie-W","retryCount":1}"#,
    ),
    (
        "state/w/2016-02-10/08:00:00.000Z",
        r#"{"time":"2016-02-10T08:00:00.000Z","status":"SUCCESS","externalID":"0000008-oozie-W","retryCount":0}"#,
    ),
    (
        "state/w/2016-02-10/09:00:00.000Z",
        "{\"status\":\"FAILURE\",\"externalID\":\"0000009-oozie-W\",\"retryCount\":1}\n",
    ),
    ("state/w/2016-02-10/10:00:00.000Z", r#"{"status":"WAIT_TIMEOUT","externalID":null,"retryCount":0}"#),
    ("state/w/2016-02-10/11:00:00.000Z", r#"{"status":"KILLED","externalID":"0000011-oozie-W","retryCount":0}"#),
    ("state/w/2015-01-01/00:00:00.000Z", r#"{"status":"READY","externalID":null,"retryCount":0}"#),
    ("state/w/2015-01-02/00:00:00.000Z", r#"{"status":"WAITING","externalID":null,"retryCount":0}"#),
    ("rerun/w/2015-01-02/00:00:00.000Z", r#"{"rerunTime":"2016-02-09T00:00:00.000Z"}"#),
    ("rerun/w/2015-01-03/00:00:00.000Z", r#"{"rerunTime":"2016-02-09T00:00:00.000Z"}"#),
    ("paused/w", ""),
    ("register/some bucket/käy", r#"{"b":1,"a":[null,"ü"]}"#),
];

#[test]
fn every_status_a_mark_a_pause_and_a_register_come_over() {
    let celos = folder(&EVERYTHING);
    let mut store = MemoryStore::new();
    let imported = take(&mut store, celos.path(), &definitions(&[hourly("w", "oozie")]), &options());
    assert_eq!(imported.troubles, []);
    let told = only(&imported);
    let states = [("expired", 2), ("failed", 1), ("killed", 1), ("running", 1), ("succeeded", 1), ("waiting", 4)];
    assert_eq!(told.imported, BTreeMap::from(states));
    assert_eq!((told.forgotten, told.pause, told.defined), (1, Some(PauseFate::Paused), true));
    assert_eq!(imported.registers, 1);

    let reader = store.reader();
    folds(&*reader);
    let slots = all_slots(&*reader);
    let running = &slots[&slot("w", "2016-02-10T07:00Z")];
    assert_eq!((running.state, running.retries, running.run_alive), (SlotState::Running, 1, true));
    assert_eq!(running.external_id.as_deref(), Some("0000007-oozie-W"));
    assert_eq!(slots[&slot("w", "2016-02-10T05:00Z")].retries, 1);
    assert_eq!(slots[&slot("w", "2015-01-01T00:00Z")].state, SlotState::Expired, "Celos had forgotten it");
    assert_eq!(slots[&slot("w", "2015-01-02T00:00Z")].state, SlotState::Waiting, "it is marked");
    assert_eq!(slots[&slot("w", "2015-01-03T00:00Z")].state, SlotState::Waiting, "it is marked, and has no file");
    let row = reader.workflow(&named("w")).unwrap().unwrap();
    assert!(row.paused && row.present);
    assert_eq!(reader.register("some bucket", "käy").unwrap(), Some(json!({"b": 1, "a": [null, "ü"]})));
    let runs = reader.slot_runs(&slot("w", "2016-02-10T09:00Z")).unwrap();
    assert_eq!((runs[0].state, runs[0].external_id.as_deref()), (RunState::Failed, Some("0000009-oozie-W")));
    assert_eq!(reader.definitions(&named("w"), None).unwrap()[0].source.as_deref(), Some("// the script"));
}

#[test]
fn a_second_import_changes_nothing() {
    let celos = folder(&EVERYTHING);
    let mut store = MemoryStore::new();
    let definitions = definitions(&[hourly("w", "oozie")]);
    take(&mut store, celos.path(), &definitions, &options());
    let (before, seq) = (all_slots(&*store.reader()), store.reader().last_seq().unwrap());
    let again = take(&mut store, celos.path(), &definitions, &options());
    assert!(again.is_nothing_new());
    assert_eq!((only(&again).same, only(&again).pause, again.same_registers), (10, Some(PauseFate::Same), 1));
    assert_eq!((all_slots(&*store.reader()), store.reader().last_seq().unwrap()), (before, seq));
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let celos = folder(&EVERYTHING);
    let mut store = MemoryStore::new();
    let definitions = definitions(&[]);
    let dry = take(&mut store, celos.path(), &definitions, &ImportOptions { dry_run: true, ..options() });
    assert_eq!(store.reader().last_seq().unwrap(), 0);
    assert_eq!(dry, take(&mut store, celos.path(), &definitions, &options()));
}

#[test]
fn unfinished_slots_that_celos_forgot_are_revived_on_request() {
    let celos = folder(&EVERYTHING);
    let mut store = MemoryStore::new();
    let options = ImportOptions { revive: true, ..options() };
    assert_eq!(only(&take(&mut store, celos.path(), &definitions(&[]), &options)).forgotten, 0);
    assert_eq!(all_slots(&*store.reader())[&slot("w", "2015-01-01T00:00Z")].state, SlotState::Waiting);
}

#[test]
fn bad_files_are_told_of_and_stop_nothing() {
    let good = r#"{"status":"SUCCESS","externalID":"x","retryCount":0}"#;
    let celos = folder(&[
        ("state/w/2016-02-10/01:00:00.000Z", good),
        ("state/w/2016-02-10/02:00:00.000Z", ""),
        ("state/w/2016-02-10/03:00:00.000Z", r#"{"time":"2016-02-10T03"#),
        ("state/w/2016-02-10/04:00:00.000Z", r#"{"status":"DONE","externalID":null,"retryCount":0}"#),
        ("state/w/2016-02-10/05:00:00.000Z", r#"{"status":"SUCCESS"}"#),
        ("state/w/2016-02-10/06:00:00.000Z", r#"{"status":"RUNNING","externalID":7,"retryCount":"1"}"#),
        ("state/w/2016-02-10/.DS_Store", "junk"),
        ("state/w/2016-02-10/7:00Z", good),
        ("state/w/notes.txt", "junk"),
        ("state/w/2016-02-31/01:00:00.000Z", good),
        ("state/stray", "junk"),
        ("rerun/w/stray", "junk"),
        ("rerun/w/2016-02-09/00:00:00.000Z", "{}"),
        ("rerun/w/2015-01-01/00:00:00.000Z", r#"{"rerunTime":"2016-01-01T00:00:00.000Z"}"#),
        ("register/b/k", "{oops"),
        ("lost+found/x", "junk"),
        ("kelos.db", "ours"),
    ]);
    let mut store = MemoryStore::new();
    let imported = take(&mut store, celos.path(), &definitions(&[]), &options());
    let told: Vec<String> = imported.troubles.iter().map(|one| format!("{}: {}", one.path, one.why)).collect();
    assert_eq!(
        told,
        [
            "rerun/w/2015-01-01/00:00:00.000Z: this mark for rerun of 2016-01-01T00:00:00.000Z is older than 14 days: not used",
            "lost+found: Celos keeps nothing under this name: left alone",
            "state/stray: expected a folder named like a workflow: left alone",
            "state/w/2016-02-10/.DS_Store: expected a file named like a time, such as 13:40:00.000Z: left alone",
            "state/w/2016-02-10/7:00Z: expected a file named like a time, such as 13:40:00.000Z: left alone",
            "state/w/2016-02-31/01:00:00.000Z: expected a file named like a time, such as 13:40:00.000Z: left alone",
            "state/w/notes.txt: expected a folder of a day, such as 2015-09-13: left alone",
            "state/w/2016-02-10/02:00:00.000Z: it is empty, expected JSON: nobody can tell where this slot stands",
            "state/w/2016-02-10/03:00:00.000Z: it is no JSON (EOF while parsing a string at line 1 column 22): nobody can tell where this slot stands",
            "state/w/2016-02-10/04:00:00.000Z: its status \"DONE\" is unknown: nobody can tell where this slot stands",
            "state/w/2016-02-10/05:00:00.000Z: it has no externalID and no retryCount: taken as none",
            "rerun/w/stray: expected a folder of a day, such as 2015-09-13: left alone",
            "rerun/w/2016-02-09/00:00:00.000Z: it has no rerunTime: this mark for rerun was left out",
            "register/b/k: it is no JSON (key must be a string at line 1 column 2): this register was left out",
        ]
    );
    let slots = all_slots(&*store.reader());
    let states: Vec<(SlotState, Option<&str>)> =
        slots.values().map(|slot| (slot.state, slot.external_id.as_deref())).collect();
    let (succeeded, failed) = (SlotState::Succeeded, SlotState::Failed);
    let expected =
        [(succeeded, Some("x")), (failed, None), (failed, None), (failed, None), (succeeded, None), (failed, None)];
    assert_eq!(states, expected, "what can't be understood may have run, so it does not run again by itself");
}

#[test]
fn very_old_databases_have_no_folder_for_state() {
    let record = r#"{"status":"SUCCESS","externalID":"x","retryCount":0}"#;
    let celos = folder(&[
        ("w/2014-01-01/01:00:00.000Z", record),
        ("w/2014-01-01/02:00:00.000Z", r#"{"status":"WAITING","externalID":null,"retryCount":0}"#),
        ("state/w/2014-01-01/02:00:00.000Z", record),
    ]);
    let mut store = MemoryStore::new();
    let imported = take(&mut store, celos.path(), &definitions(&[]), &options());
    assert_eq!(only(&imported).imported, BTreeMap::from([("succeeded", 2)]));
    assert!(imported.troubles[0].why.contains("newer file below state"), "{:?}", imported.troubles);
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let error = Database::open(empty.path()).unwrap_err().to_string();
    assert!(error.starts_with("find a state database of Celos in"), "{error}");
    assert!(Database::open(&empty.path().join("missing")).unwrap_err().to_string().starts_with("read "));
}

#[test]
fn a_database_that_a_server_uses_is_left_alone() {
    let (celos, ours) = (folder(&EVERYTHING), tempfile::tempdir().unwrap());
    let path = ours.path().join("kelos.db");
    let mut server = SqliteStore::open(&path).unwrap();
    let lease = server.lease("server", at(NOW), 1000).unwrap().unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    let refused = import(&mut store, Database::open(celos.path()).unwrap(), &definitions(&[]), &options());
    assert!(matches!(refused, Err(ImportError::InUse)));
    server.release(lease).unwrap();
    let imported = take(&mut store, celos.path(), &definitions(&[]), &options());
    assert_eq!(only(&imported).slots(), 10);
    folds(&*store.reader());
    assert!(server.lease("server", at(NOW), 1000).unwrap().is_some(), "the lead was given back");
}

/// A scheduler on a store, without threads: what it starts, and what it asks about.
struct Scheduler {
    store: MemoryStore,
    turns: Turns,
    asked: Vec<Command>,
}

impl Scheduler {
    fn start(disk: &MemoryDisk, all: &[Arc<Workflow>], now: Timestamp) -> Scheduler {
        let mut store = MemoryStore::on(disk);
        let lease = store.lease("server", now, 1000).unwrap().unwrap();
        let (turns, asked) = Turns::restore(Config::default(), &mut store, lease, now).unwrap();
        let mut scheduler = Scheduler { store, turns, asked };
        scheduler.feed(
            now,
            Input::Definitions {
                provenance: kelos_model::workflow::Provenance::File,
                all: all.to_vec(),
                deployed: BTreeMap::new(),
            },
        );
        scheduler
    }

    fn feed(&mut self, now: Timestamp, input: Input) {
        let tick = Input::Woke { only: None, look_again: false };
        let acted = self.turns.turn(&mut self.store, now, [input, tick]).unwrap();
        self.asked.extend(acted.commands);
    }

    fn starts(&self) -> Vec<String> {
        let start = |command: &Command| match command {
            Command::StartRun { run, .. } => Some(run.to_string()),
            _ => None,
        };
        self.asked.iter().filter_map(start).collect()
    }

    fn stop(mut self) {
        self.store.release(self.turns.lease()).unwrap();
    }
}

#[test]
fn a_server_goes_on_where_celos_stopped() {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut record = |hour: u32, status: &str, id: &str, retries: u32| {
        let id = if id.is_empty() { "null".to_owned() } else { format!("{id:?}") };
        let text = format!(r#"{{"status":"{status}","externalID":{id},"retryCount":{retries}}}"#);
        files.push((format!("state/w/2016-02-10/{hour:02}:00:00.000Z"), text));
    };
    for hour in 0..8 {
        record(hour, "SUCCESS", "done-W", 0);
    }
    record(8, "RUNNING", "alive-W", 1);
    record(9, "KILLED", "", 0);
    record(10, "WAITING", "", 1);
    // 11:00 and 12:00 have no record: Celos had not looked at them, or their trigger was not met.
    files.push((
        "state/w/2015-06-01/00:00:00.000Z".to_owned(),
        r#"{"status":"SUCCESS","externalID":"old-W","retryCount":0}"#.to_owned(),
    ));
    files.push((
        "rerun/w/2015-06-02/00:00:00.000Z".to_owned(),
        r#"{"rerunTime":"2016-02-10T00:00:00.000Z"}"#.to_owned(),
    ));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let celos = folder(&files);
    let disk = MemoryDisk::new();
    let mut early = Workflow::clone(&hourly("w", "oozie"));
    early.start_time = Some(at("2016-02-10T00:00Z"));
    let all = [Arc::new(early)];
    let mut store = MemoryStore::on(&disk);
    take(&mut store, celos.path(), &definitions(&all), &options());
    drop(store);

    let now = at(NOW);
    let mut scheduler = Scheduler::start(&disk, &all, now);
    let checks: Vec<_> = scheduler.asked.iter().filter(|one| matches!(one, Command::CheckRun { .. })).collect();
    let Command::CheckRun { run, executor, external_id } = checks[0] else { unreachable!() };
    assert_eq!((executor.as_str(), external_id.as_deref(), checks.len()), ("oozie", Some("alive-W"), 1));
    let run = run.clone();
    let expected = ["2015-06-02T00", "2016-02-10T10", "2016-02-10T11", "2016-02-10T12"];
    assert_eq!(scheduler.starts(), expected.map(|hour| format!("w@{hour}:00:00.000Z#1")), "no gap, no double");
    let outcome = Outcome::Failed { reason: "KILLED".to_owned(), exit_status: None, code: None };
    scheduler.feed(now, Input::RunReported { run, report: Report::Ended { outcome } });
    let reader = scheduler.store.reader();
    let ended = reader.slot(&slot("w", "2016-02-10T08:00Z")).unwrap().unwrap();
    assert_eq!((ended.state, ended.retries), (SlotState::Failed, 1), "its only retry was used up in Celos");
    folds(&*reader);
    let row = reader.workflow(&named("w")).unwrap().unwrap();
    assert_eq!(row.version, 1, "the same script is the same definition");
    scheduler.stop();

    let again = Scheduler::start(&disk, &all, now + SignedDuration::from_hours(1));
    assert_eq!(again.starts(), ["w@2016-02-10T13:00:00.000Z#1"]);
}

#[test]
fn state_without_a_script_is_kept_until_there_is_one() {
    let celos = folder(&[
        ("state/w/2016-02-10/11:00:00.000Z", r#"{"status":"SUCCESS","externalID":"x","retryCount":0}"#),
        ("state/w/2016-02-10/10:00:00.000Z", r#"{"status":"READY","externalID":null,"retryCount":0}"#),
    ]);
    let disk = MemoryDisk::new();
    let mut store = MemoryStore::on(&disk);
    let imported = take(&mut store, celos.path(), &definitions(&[]), &options());
    assert!(!only(&imported).defined);
    drop(store);
    let now = at(NOW);
    let scheduler = Scheduler::start(&disk, &[], now);
    assert_eq!(scheduler.starts(), Vec::<String>::new());
    scheduler.stop();
    let mut workflow = Workflow::clone(&hourly("w", "oozie"));
    workflow.start_time = Some(at("2016-02-10T09:00Z"));
    let scheduler = Scheduler::start(&disk, &[Arc::new(workflow)], now);
    let expected = ["09", "10", "12"].map(|hour| format!("w@2016-02-10T{hour}:00:00.000Z#1"));
    assert_eq!(scheduler.starts(), expected);
    folds(&*scheduler.store.reader());
}

#[test]
fn what_kelos_did_since_is_kept() {
    let celos = folder(&EVERYTHING);
    let disk = MemoryDisk::new();
    let all = [hourly("w", "oozie")];
    let mut store = MemoryStore::on(&disk);
    take(&mut store, celos.path(), &definitions(&all), &options());
    drop(store);
    let mut scheduler = Scheduler::start(&disk, &all, at(NOW));
    let ask = |ask: Ask| Input::Asked { token: 1, by: Actor::person("ann"), ask, warrant: None };
    scheduler.feed(at(NOW), ask(Rerun::of(slot("w", "2016-02-10T08:00Z")).into()));
    scheduler.feed(at(NOW), ask(Resume { workflow: named("w"), reason: None }.into()));
    let gone = SetRegister { bucket: "some bucket".to_owned(), key: "käy".to_owned(), value: None, reason: None };
    scheduler.feed(at(NOW), ask(gone.into()));
    scheduler.stop();
    let mut store = MemoryStore::on(&disk);
    // Meanwhile Celos went on, too.
    write(celos.path(), "state/w/2016-02-10/12:00:00.000Z", EVERYTHING[3].1);
    let again = take(&mut store, celos.path(), &definitions(&all), &options());
    let told = only(&again);
    assert_eq!(told.pause, Some(PauseFate::Resumed));
    assert_eq!(again.kept_registers, ["some bucket/käy"]);
    assert!(again.is_nothing_new());
    let kept: Vec<&str> = told.kept.iter().map(|one| one.time.as_str()).collect();
    assert!(kept.contains(&"2016-02-10T08:00:00.000Z") && kept.contains(&"2016-02-10T12:00:00.000Z"), "{kept:?}");
    folds(&*store.reader());
}

#[test]
fn what_kelos_has_only_planned_gives_way() {
    let celos = folder(&[EVERYTHING[3]]);
    let disk = MemoryDisk::new();
    let mut waiting = Workflow::clone(&hourly("w", "oozie"));
    waiting.trigger = Trigger::Success { workflow: named("other") };
    let all = [Arc::new(waiting)];
    Scheduler::start(&disk, &all, at(NOW)).stop();
    let mut store = MemoryStore::on(&disk);
    let imported = take(&mut store, celos.path(), &definitions(&all), &options());
    assert_eq!(only(&imported).imported, BTreeMap::from([("succeeded", 1)]));
    assert_eq!(all_slots(&*store.reader())[&slot("w", "2016-02-10T08:00Z")].state, SlotState::Succeeded);
    folds(&*store.reader());
}

fn export_to(store: &mut dyn Journal, root: &Path, force: bool) -> Result<ExportReport, ExportError> {
    export(&*store.reader(), root, &ExportOptions { now: at(NOW), force, dry_run: false })
}

#[test]
fn files_are_written_byte_for_byte_as_celos_does() {
    let celos = folder(&EVERYTHING[2..4]);
    let mut store = MemoryStore::new();
    take(&mut store, celos.path(), &definitions(&[]), &options());
    let target = tempfile::tempdir().unwrap();
    let root = target.path().join("db");
    let exported = export_to(&mut store, &root, false).unwrap();
    assert_eq!((exported.written, exported.troubles.len()), (2, 0));
    for (path, text) in &EVERYTHING[2..4] {
        assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), *text);
    }
    let mark = TreeFile::mark(&named("w"), at("2016-01-01T00:00Z"), at(NOW));
    assert_eq!(mark.path, Path::new("rerun/w/2016-01-01/00:00:00.000Z"));
    assert_eq!(String::from_utf8(mark.bytes).unwrap(), r#"{"rerunTime":"2016-02-10T12:30:00.000Z"}"#);
    let names: Vec<_> = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["state"], "nothing is left lying around");
}

/// A slot that lies before its workflow's start rests in Celos unless it is marked: so it does here, and there again.
#[test]
fn what_lies_before_a_start_that_moved_rests_on_both_sides() {
    let waiting = r#"{"status":"WAITING","externalID":null,"retryCount":1}"#;
    let celos = folder(&[
        ("state/w/2016-02-10/05:00:00.000Z", waiting),
        ("state/w/2016-02-10/06:00:00.000Z", waiting),
        ("rerun/w/2016-02-10/06:00:00.000Z", EVERYTHING[9].1),
        ("state/w/2016-02-10/11:00:00.000Z", waiting),
    ]);
    let mut workflow = Workflow::clone(&hourly("w", "oozie"));
    workflow.start_time = Some(at("2016-02-10T10:00Z"));
    let workflow = Arc::new(workflow);
    let disk = MemoryDisk::new();
    let mut store = MemoryStore::on(&disk);
    take(&mut store, celos.path(), &definitions(std::slice::from_ref(&workflow)), &options());

    let target = tempfile::tempdir().unwrap();
    assert_eq!(export_to(&mut store, target.path(), false).unwrap().marked, 1);
    let is_there = |path: &str| target.path().join(path).exists();
    for hour in ["05", "06", "11"] {
        assert!(is_there(&format!("state/w/2016-02-10/{hour}:00:00.000Z")), "{hour}");
        assert_eq!(is_there(&format!("rerun/w/2016-02-10/{hour}:00:00.000Z")), hour == "06", "{hour}");
    }
    drop(store);
    let scheduler = Scheduler::start(&disk, &[workflow], at(NOW));
    let starts: Vec<String> = scheduler.starts().iter().map(|run| run[13..15].to_owned()).collect();
    assert_eq!(starts, ["06", "10", "11", "12"]);
    scheduler.stop();
}

#[test]
fn jobs_with_ids_are_left_out_and_named() {
    let keys = Keys::Jobs(Box::new(JobKeys::new(JobTemplate::new("{n}").unwrap())));
    let jobs = Workflow::keyed(named("jobs"), keys, Job::new("oozie", serde_json::Map::new()));
    let disk = MemoryDisk::new();
    let mut scheduler = Scheduler::start(&disk, &[Arc::new(jobs), hourly("w", "oozie")], at(NOW));
    let job = SlotRef::job(named("jobs"), "7".into());
    let request = SubmitRequest {
        jobs: vec![job],
        priority: 0,
        readd: false,
        arguments: kelos_model::Arguments::new(),
        reason: None,
    };
    scheduler.feed(at(NOW), Input::Asked { token: 1, by: Actor::person("ann"), ask: request.into(), warrant: None });
    let paused = Pause { workflow: named("jobs"), reason: None };
    scheduler.feed(at(NOW), Input::Asked { token: 2, by: Actor::person("ann"), ask: paused.into(), warrant: None });
    scheduler.stop();
    let target = tempfile::tempdir().unwrap();
    let exported = export_to(&mut MemoryStore::on(&disk), target.path(), false).unwrap();
    assert!(exported.workflows.contains_key("w") && !exported.workflows.contains_key("jobs"));
    let troubles: Vec<&str> = exported.troubles.iter().map(|trouble| trouble.path.as_str()).collect();
    assert!(troubles.contains(&"jobs"), "{troubles:?}");
    for folder in ["state", "rerun", "paused"] {
        assert!(!target.path().join(folder).join("jobs").exists(), "{folder}");
    }
}

#[test]
fn other_folders_and_newer_files_are_not_written_over_unasked() {
    let celos = folder(&EVERYTHING[2..4]);
    let mut store = MemoryStore::new();
    take(&mut store, celos.path(), &definitions(&[]), &options());
    let foreign = folder(&[("thesis.txt", "precious")]);
    assert!(matches!(export_to(&mut store, foreign.path(), false), Err(ExportError::Foreign { .. })));
    write(celos.path(), EVERYTHING[2].0, EVERYTHING[3].1);
    write(celos.path(), "paused/w", "");
    let error = export_to(&mut store, celos.path(), false).unwrap_err().to_string();
    assert!(error.contains("1 of its files say something else, such as state/w/2016-02-10/07:00:00.000Z"), "{error}");
    assert_eq!(std::fs::read_to_string(celos.path().join(EVERYTHING[2].0)).unwrap(), EVERYTHING[3].1);
    let forced = export_to(&mut store, celos.path(), true).unwrap();
    assert_eq!((forced.written, forced.same, forced.unpaused), (1, 1, 1));
    assert_eq!(std::fs::read_to_string(celos.path().join(EVERYTHING[2].0)).unwrap(), EVERYTHING[2].1);
}

#[test]
fn a_run_that_celos_could_not_ask_about_is_left_out() {
    let disk = MemoryDisk::new();
    let mut workflow = Workflow::clone(&hourly("w", "command"));
    workflow.start_time = Some(at("2016-02-10T12:00Z"));
    let mut scheduler = Scheduler::start(&disk, &[Arc::new(workflow)], at(NOW));
    let run = kelos_model::RunId { slot: slot("w", "2016-02-10T12:00Z"), number: 1 };
    let report = Report::Started { external_id: "4711".to_owned() };
    scheduler.feed(at(NOW), Input::RunReported { run, report });
    scheduler.stop();
    let target = tempfile::tempdir().unwrap();
    let exported = export_to(&mut MemoryStore::on(&disk), target.path(), false).unwrap();
    assert_eq!(exported.written, 0);
    assert!(exported.troubles[0].why.contains("goes on by the executor command"), "{:?}", exported.troubles);
}

fn record() -> impl Strategy<Value = Record> {
    let id = prop::option::of("[0-9]{1,7}-öozie\"\\\\-W");
    (prop::sample::select(Status::ALL.to_vec()), id, 0_u32..5).prop_map(|(status, external_id, retry_count)| Record {
        status,
        external_id,
        retry_count,
    })
}

/// Within Celos's window, or long before it; on the hour, or anywhere.
fn time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        (0_i64..160).prop_map(|hours| at("2016-02-10T12:00Z") - SignedDuration::from_hours(hours)),
        (0_i64..4_000_000_000).prop_map(|millis| at("2015-06-01T00:00Z") + SignedDuration::from_millis(millis)),
    ]
}

type Files = (BTreeMap<(String, Timestamp), Record>, BTreeMap<(String, Timestamp), Timestamp>, Vec<String>);

fn files() -> impl Strategy<Value = Files> {
    let name = || prop::sample::select(vec!["w", "wörk flow", "a@b", "state"]).prop_map(str::to_owned);
    let marked = (0_i64..13).prop_map(|days| at(NOW) - SignedDuration::from_hours(24 * days));
    (
        prop::collection::btree_map((name(), time()), record(), 0..20),
        prop::collection::btree_map((name(), time()), marked, 0..6),
        prop::collection::vec(name(), 0..3),
    )
}

/// What matters of the slots, and which workflows are paused.
type TakenOver = (BTreeMap<SlotRef, (SlotState, u32, Option<String>)>, Vec<(WorkflowId, bool)>);

fn taken_over(root: &Path) -> TakenOver {
    let mut store = MemoryStore::new();
    let imported = take(&mut store, root, &Definitions::default(), &options());
    assert_eq!(imported.troubles, []);
    folds(&*store.reader());
    let slots = all_slots(&*store.reader());
    let slots = slots.into_iter().map(|(id, slot)| (id, (slot.state, slot.retries, slot.external_id))).collect();
    let rows = store.reader().workflows(None).unwrap();
    (slots, rows.into_iter().map(|row| (row.id, row.paused)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn what_was_exported_is_imported_as_it_was((records, marks, paused) in files()) {
        let first = tempfile::tempdir().unwrap();
        let tree = Tree::at(first.path());
        std::fs::create_dir(first.path().join("state")).unwrap();
        for ((id, time), record) in &records {
            tree.write(&TreeFile::slot(&named(id), *time, record)).unwrap();
        }
        for ((id, time), marked_at) in &marks {
            tree.write(&TreeFile::mark(&named(id), *time, *marked_at)).unwrap();
        }
        for id in &paused {
            tree.write(&TreeFile::paused(&named(id))).unwrap();
        }
        let before = taken_over(first.path());
        let mut store = MemoryStore::new();
        take(&mut store, first.path(), &Definitions::default(), &options());
        let second = tempfile::tempdir().unwrap();
        std::fs::create_dir(second.path().join("state")).unwrap();
        let exported = export_to(&mut store, second.path(), false).unwrap();
        prop_assert_eq!(&exported.troubles, &[]);
        prop_assert_eq!(taken_over(second.path()), before);
        // Records that say the same in both systems are the same bytes.
        let mut celos = Database::open(second.path()).unwrap();
        for ((id, time), record) in &records {
            if record.status == Status::Success {
                let kept = celos.workflow(&named(id));
                prop_assert_eq!(&kept.slots[time], &SlotRecord::Record(record.clone()));
            }
        }
    }
}

/// By adapted code of Celos, and not by a whole one: see `fixtures/celos-db/README.md`.
#[test]
fn a_database_that_code_of_celos_wrote_goes_on_where_it_stopped() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/celos-db");
    let folders = kelos_sandbox::Folders { workflows: fixture.join("workflows"), defaults: fixture.join("defaults") };
    let registers = Database::open(&fixture.join("db")).unwrap().registers();
    let (definitions, problems) =
        Definitions::load(folders, std::sync::Arc::new(kelos_door_stolos::TasksJson), registers).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let now = at("2016-02-10T12:05Z");
    let disk = MemoryDisk::new();
    let mut store = MemoryStore::on(&disk);
    let options = ImportOptions { now, as_of: now, revive: false, dry_run: false };
    let imported = take(&mut store, &fixture.join("db"), &definitions, &options);
    assert_eq!(imported.troubles, []);
    let states: Vec<_> = imported.workflows.iter().map(|one| (one.id.as_str(), one.imported.clone())).collect();
    assert_eq!(
        states,
        [
            ("ingest", [("failed", 1), ("killed", 1), ("running", 1), ("succeeded", 10), ("waiting", 2)].into()),
            ("report", [("expired", 3), ("succeeded", 9)].into()),
            ("wörk flow", [("killed", 1), ("succeeded", 1), ("waiting", 1)].into()),
        ]
    );
    assert_eq!(store.reader().register("böcket", "kéy").unwrap(), Some(json!({"next": 7, "names": ["ü", null]})));
    drop(store);
    let all: Vec<_> = definitions.workflows.values().cloned().collect();
    let scheduler = Scheduler::start(&disk, &all, now);
    // One of its two places is taken by the job that runs.
    assert_eq!(scheduler.starts(), ["ingest@2015-12-25T09:00:00.000Z#1"]);
    let asked = scheduler.asked.iter().find_map(|command| match command {
        Command::CheckRun { run, external_id, .. } => Some((run.slot.short(), external_id.clone())),
        _ => None,
    });
    let job = Some("0000021-160209120000000-oozie-oozi-W".to_owned());
    assert_eq!(asked, Some(("ingest@2016-02-10T09:00Z".to_owned(), job)));
    let reader = scheduler.store.reader();
    let ours = |id: &str, time: &str| reader.slot(&slot(id, time)).unwrap().map(|slot| (slot.state, slot.retries));
    assert_eq!(ours("ingest", "2016-02-10T12:00Z"), Some((SlotState::Queued, 1)));
    assert_eq!(ours("report", "2016-02-10T12:00Z"), Some((SlotState::Waiting, 0)), "Celos had no record of it");
    assert_eq!(ours("wörk flow", "2016-02-10T12:30Z"), None, "paused");
    folds(&*reader);
}
