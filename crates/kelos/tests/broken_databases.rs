//! Databases with what versions without limits took and could not read back: each starts again, everything in it is read, and what
//! can't be read stops one workflow only.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kelos_core::{ChangeSchedule, Config, CreateSchedules, Enable, FireRequest, Rerun, Resume, SetRegister, Tell};
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::job::NoFunctions;
use kelos_engine::{self as engine, EngineParts, Handle, Pace, Status};
use kelos_explain::verify::verify;
use kelos_model::run::Report;
use kelos_model::time::{Zone, parse_instant};
use kelos_model::workflow::{CatchUp, EventKeys, Keys, Program, Provenance};
use kelos_model::{
    Actor, Fact, Invariant, Job, Occurrence, Outcome, RunId, RunName, SlotKey, SlotRef, SlotState, Trigger, Workflow,
    WorkflowId,
};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{EventFilter, PageRequest, Queries, RegisterKeys, RunFilter, SlotFilter};
use kelos_store_sqlite::SqliteStore;
use serde_json::{Map, Value, json};

use crate::old_databases::step;

const NOW: &str = "2026-11-28T12:00Z";

/// Each run gives outputs and succeeds.
#[derive(Clone)]
struct Giving;

impl Executor for Giving {
    fn start(&self, start: Start, reports: Reports) {
        let outputs = Map::from_iter([("o".to_owned(), json!("@outputs"))]);
        reports.run(&start.run, Report::Started { external_id: start.run.to_string() });
        reports.run(&start.run, Report::Gave { outputs });
        reports.run(&start.run, Report::Ended { outcome: Outcome::Succeeded });
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::NeverStarted);
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

fn open(path: &Path) -> Handle {
    let parts = EngineParts {
        store: Box::new(SqliteStore::open(path).unwrap()),
        node: "test".to_owned(),
        clock: Arc::new(|| parse_instant(NOW).unwrap()),
        pace: Pace::Stepped,
        config: Config::default(),
        executors: Executors::default().with("command", Giving),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime: tokio::runtime::Handle::current(),
        lease: Duration::from_secs(10),
        traces: false,
    };
    engine::start(parts).unwrap()
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap()
}

fn me() -> Actor {
    Actor::person("me")
}

fn programs() -> Vec<Arc<Workflow>> {
    let program = |name: &str| {
        let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
        Arc::new(Workflow::keyed(id(name), keys, Job::new("command", Map::new())))
    };
    vec![program("given"), program("other")]
}

fn schedule(name: &str, trigger: Trigger) -> Workflow {
    let keys = EventKeys {
        name: name.to_owned(),
        program: id("other"),
        properties: BTreeMap::new(),
        timeout_millis: kelos_model::workflow::EVENT_TIMEOUT_MILLIS,
        end_time: None,
        jitter_millis: 0,
        catch_up: CatchUp::default(),
        enabled: false,
    };
    let mut schedule = Workflow::keyed(id(name), Keys::Events(Box::new(keys)), Job::new("command", Map::new()));
    schedule.trigger = trigger;
    schedule.source.provenance = Provenance::Api;
    schedule
}

fn trigger(text: &str) -> Trigger {
    Trigger::parse(text, &Zone::utc()).unwrap()
}

fn start(workflow: &str, key: &str, arguments: &[(&str, &str)]) -> FireRequest {
    FireRequest {
        workflow: id(workflow),
        arguments: arguments.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect(),
        key: Some(RunName::new(key).unwrap()),
        priority: 0,
        unconstrained: false,
        reason: None,
    }
}

fn named(workflow: &str, key: &str) -> SlotRef {
    SlotRef::new(id(workflow), SlotKey::Named(RunName::new(key).unwrap()))
}

/// A database in which each text that begins with `@` stands for a value that was too deep.
async fn base(path: &Path) {
    let handle = open(path);
    handle.define(programs(), BTreeMap::new()).unwrap();
    handle.ask(&me(), start("given", "r1", &[("a", "@arguments")])).await.unwrap();
    step(&handle, NOW).await;
    let rerun = Rerun { arguments: [("b".to_owned(), json!("@rerun"))].into(), ..Rerun::of(named("given", "r1")) };
    handle.ask(&me(), rerun).await.unwrap();
    let (bucket, key, value) = ("b".to_owned(), "k".to_owned(), Some(json!("@register")));
    handle.ask(&me(), SetRegister { bucket, key, value, reason: None }).await.unwrap();
    let deepest = format!("{}signal(never){}", "and(".repeat(63), ")".repeat(63));
    let new = [
        schedule("timed", trigger("and(time(0 4 * * *), signal(never))")),
        schedule("heard", trigger("and(signal(go), signal(never))")),
        schedule("ended", trigger("and(ended(elsewhere), signal(never))")),
        schedule("deepest", trigger(&deepest)),
    ];
    let names = new.clone().map(|one| one.id);
    handle.ask(&me(), CreateSchedules { new: new.map(Arc::new).to_vec(), reason: None }).await.unwrap();
    for schedule in names {
        handle.ask(&me(), Enable { schedule, reason: None }).await.unwrap();
    }
    let ended = Occurrence::Ended {
        program: id("elsewhere"),
        state: SlotState::Succeeded,
        run: None,
        arguments: [("a".to_owned(), json!("@ended-arguments"))].into(),
        outputs: Map::from_iter([("o".to_owned(), json!("@ended-outputs"))]),
    };
    let signal = Occurrence::Signal { name: "go".into(), payload: json!("@payload"), run: None };
    let facts = [signal, ended].map(|what| Fact { source: "test".into(), key: None, what });
    handle.ask(&me(), Tell::of(facts.to_vec())).await.unwrap();
    step(&handle, NOW).await;
    handle.stop().await;
}

/// Replaces a text wherever JSON is stored, as if it had been written so.
fn replace(path: &Path, before: &str, after: &str) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut replaced = 0;
    for (table, column, checks) in [
        ("events", "body", "check_value = NULL"),
        ("slots", "collected", "check_value = NULL"),
        ("runs", "arguments", "check_value = NULL, origin_check = NULL"),
        ("runs", "outputs", "check_value = NULL, origin_check = NULL"),
        ("registers", "value", "check_value = NULL"),
        ("definitions", "definition", "check_value = NULL"),
    ] {
        let sql =
            format!("UPDATE {table} SET {column} = replace({column}, ?1, ?2), {checks} WHERE instr({column}, ?1) > 0");
        replaced += conn.execute(&sql, [before, after]).unwrap();
    }
    assert!(replaced > 0, "{before}");
    drop(conn);
    // The digests of turns are made anew, as `kelos verify --accept` does.
    assert_eq!(SqliteStore::open(path).unwrap().accept().unwrap(), Some(()));
}

/// Reads everything.
fn read(reader: &dyn Queries) -> String {
    let page = || PageRequest::newest(1000);
    let slots = reader.slots(&SlotFilter::default(), page()).unwrap().rows;
    let runs = reader.runs(&RunFilter::default(), page()).unwrap().rows;
    let events = reader.events(&EventFilter::default(), page()).unwrap().rows;
    let workflows = reader.workflows(None).unwrap();
    let registers = reader.registers(None, RegisterKeys::Prefix("")).unwrap();
    for workflow in &workflows {
        reader.definitions(&workflow.id, None).unwrap();
    }
    format!("{slots:?} {runs:?} {events:?} {workflows:?} {registers:?}")
}

/// A database starts again, and another workflow goes on.
async fn starts(path: &Path) -> Handle {
    let handle = open(path);
    let leads = |status: &Status| matches!(status, Status::Leading { .. });
    handle.watch_status().wait_for(leads).await.unwrap();
    handle.define(programs(), BTreeMap::new()).unwrap();
    handle.ask(&me(), start("other", "after", &[])).await.unwrap();
    step(&handle, NOW).await;
    let other = handle.reader().slot(&named("other", "after")).unwrap().unwrap();
    assert_eq!(other.state, SlotState::Succeeded);
    handle
}

fn frozen(reader: &dyn Queries) -> Vec<(String, Invariant)> {
    let rows = reader.workflows(None).unwrap();
    rows.iter().filter_map(|row| Some((row.id.to_string(), row.frozen()?.breach.invariant))).collect()
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn databases_with_values_that_are_too_deep_start_and_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    base(&whole).await;
    let cases = [
        ("arguments", 124),
        ("rerun", 124),
        ("outputs", 125),
        ("register", 127),
        ("payload", 126),
        ("ended-arguments", 125),
        ("ended-outputs", 125),
    ];
    for (place, levels) in cases {
        let path = folder.path().join(format!("{place}.db"));
        std::fs::copy(&whole, &path).unwrap();
        replace(&path, &format!("\"@{place}\""), &nested(levels));
        let handle = starts(&path).await;
        let reader = handle.reader();
        assert!(read(&**reader).matches("Array").count() > levels, "{place}");
        assert_eq!((frozen(&**reader), reader.unreadable(10).unwrap()), (Vec::new(), Vec::new()), "{place}");
        assert_eq!(verify(&**reader, 10).unwrap().disagreements, [], "{place}");
        assert_eq!(reader.damage(10).unwrap(), [] as [&str; 0], "{place}");
        // What is there goes on with it, and new values have the limit.
        handle.ask(&me(), Rerun::of(named("other", "after"))).await.unwrap();
        let deep: Value = serde_json::from_str(&nested(65)).unwrap();
        let register = SetRegister { bucket: "b".to_owned(), key: "new".to_owned(), value: Some(deep), reason: None };
        let refused = handle.ask(&me(), register).await.unwrap_err().to_string();
        assert!(refused.contains("the value is nested 65 levels deep, expected at most 64"), "{refused}");
        handle.stop().await;
    }
}

#[tokio::test]
async fn databases_with_a_definition_that_cannot_be_read_freeze_its_workflow_alone() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    base(&whole).await;
    for control in ["\\t", "\\u0000", "\\u001f"] {
        let path = folder.path().join(format!("{}.db", control.trim_start_matches('\\')));
        std::fs::copy(&whole, &path).unwrap();
        replace(&path, r#""cron":"0 4 * * *""#, &format!(r#""cron":"{control} 4 * * *","unix":true"#));
        let handle = starts(&path).await;
        let timed = ("timed".to_owned(), Invariant::RowsAreReadable);
        assert_eq!(frozen(&**handle.reader()), [timed], "{control}");
        let told: Vec<String> = handle.reader().unreadable(10).unwrap().iter().map(ToString::to_string).collect();
        assert!(
            told.len() == 1 && told[0].starts_with("timed: version 1 of its definition can't be read: "),
            "{told:?}"
        );
        read(&**handle.reader());
        assert_eq!(verify(&**handle.reader(), 10).unwrap().disagreements, []);
        assert_eq!(handle.reader().damage(10).unwrap(), [] as [&str; 0]);
        handle.stop().await;

        // It stays so, until the definition is replaced and somebody resumes it.
        let handle = starts(&path).await;
        assert_eq!(frozen(&**handle.reader()).len(), 1);
        let changed = Arc::new(schedule("timed", trigger("and(time(0 4 * * *), signal(never))")));
        handle.ask(&me(), ChangeSchedule { changed, reason: None }).await.unwrap();
        handle.ask(&me(), Resume { workflow: id("timed"), reason: None }).await.unwrap();
        handle.stop().await;
        let handle = starts(&path).await;
        assert_eq!((frozen(&**handle.reader()), handle.reader().unreadable(10).unwrap()), (Vec::new(), Vec::new()));
        let row = handle.reader().workflow(&id("timed")).unwrap().unwrap();
        assert_eq!((row.version, row.present, row.enabled), (2, true, true));
        handle.stop().await;
    }
}

/// A slot, a run and an event whose JSON is something else: what else could have been stored and not be read.
#[tokio::test]
async fn rows_that_cannot_be_read_freeze_their_workflows_alone() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    base(&whole).await;
    for (what, before, after, workflow) in [
        ("what a slot collected", r#""payload":"@payload""#, r#""payload":"#, "heard"),
        ("the outputs of a run", r#"{"o":"@outputs"}"#, "7", "given"),
    ] {
        let path = folder.path().join(format!("{workflow}.db"));
        std::fs::copy(&whole, &path).unwrap();
        replace(&path, before, after);
        let handle = starts(&path).await;
        read(&**handle.reader());
        step(&handle, NOW).await;
        let of = frozen(&**handle.reader());
        assert_eq!(of, [(workflow.to_owned(), Invariant::RowsAreReadable)], "{what}");
        handle.stop().await;
    }
    let path = folder.path().join("register.db");
    std::fs::copy(&whole, &path).unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("UPDATE registers SET value = '[', check_value = NULL WHERE key = 'k'", []).unwrap();
    drop(conn);
    let handle = starts(&path).await;
    let error = handle.reader().register("b", "k").unwrap_err().to_string();
    assert!(error.contains("the value of register b/k can't be read"), "{error}");
    read(&**handle.reader());
    let set = SetRegister { bucket: "b".to_owned(), key: "k".to_owned(), value: Some(json!(1)), reason: None };
    handle.ask(&me(), set).await.unwrap();
    assert_eq!(handle.reader().register("b", "k").unwrap(), Some(json!(1)));
    handle.stop().await;
}
