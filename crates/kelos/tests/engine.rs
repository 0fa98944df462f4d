//! The engine with its thread, clock and store, around executors of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Config, Kill, Pause, Refusal, Rerun, Resume};
use kelos_engine as engine;
use kelos_engine::executor::{Executor, Executors, Reports, Start};
use kelos_engine::job::NoFunctions;
use kelos_engine::{AskError, EngineParts, Handle, Pace, Status};
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, Schedule, parse_instant};
use kelos_model::workflow::{Job, Keys};
use kelos_model::{Actor, Outcome, RetryPolicy, RunId, SlotRef, SlotState, Trigger, Workflow, WorkflowId};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{Journal, MemoryDisk, MemoryStore, SlotFilter};
use kelos_store_sqlite::SqliteStore;

/// Starts every run at once and leaves its end to the test.
#[derive(Clone, Default)]
struct Held {
    going: Arc<Mutex<BTreeMap<RunId, Reports>>>,
}

impl Held {
    fn end(&self, run: &RunId, outcome: Outcome) {
        let reports = self.going.lock().unwrap().remove(run).expect("the run goes on");
        reports.run(run, Report::Ended { outcome });
    }

    fn going(&self) -> Vec<RunId> {
        self.going.lock().unwrap().keys().cloned().collect()
    }
}

impl Executor for Held {
    fn start(&self, start: Start, reports: Reports) {
        reports.run(&start.run, Report::Started { external_id: start.run.to_string() });
        self.going.lock().unwrap().insert(start.run, reports);
    }

    fn check(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        match self.going.lock().unwrap().get_mut(run) {
            Some(known) => {
                reports.run(run, Report::Started { external_id: run.to_string() });
                *known = reports;
            }
            None => reports.run(run, Report::NeverStarted),
        }
    }

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        self.going.lock().unwrap().remove(run);
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

fn at(text: &str) -> Timestamp {
    parse_instant(text).unwrap()
}

fn named(id: &str) -> WorkflowId {
    WorkflowId::new(id).unwrap()
}

fn hourly(id: &str, trigger: Trigger) -> Arc<Workflow> {
    Arc::new(Workflow {
        trigger,
        retry: RetryPolicy::immediate(1),
        start_time: Some(at("2016-01-01T00:00Z")),
        ..Workflow::new(named(id), Schedule::Cron(CronSchedule::hourly()), Job::new("held", serde_json::Map::new()))
    })
}

fn parts(store: Box<dyn Journal>, executor: &Held, pace: Pace) -> EngineParts {
    EngineParts {
        store,
        node: "test".to_owned(),
        clock: Arc::new(|| Timestamp::from_second(1_451_620_800).unwrap()),
        pace,
        config: Config { planning_window: SignedDuration::from_hours(3), ..Config::default() },
        executors: Executors::default().with("held", executor.clone()),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime: tokio::runtime::Handle::current(),
        lease: Duration::from_secs(10),
        traces: false,
    }
}

fn start(store: Box<dyn Journal>, executor: &Held, pace: Pace, definitions: Vec<Arc<Workflow>>) -> Handle {
    let handle = engine::start(parts(store, executor, pace)).unwrap();
    handle.define(definitions, BTreeMap::new()).unwrap();
    handle
}

/// Waits for a condition that some commit makes true.
async fn until(handle: &Handle, what: &str, holds: impl Fn(&Handle) -> bool) {
    let mut commits = handle.watch_commits();
    let waiting = async {
        while !holds(handle) {
            commits.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("never came: {what}"));
}

fn state(handle: &Handle, workflow: &str, time: &str) -> Option<SlotState> {
    handle.reader().slot(&SlotRef::at(named(workflow), at(time))).unwrap().map(|slot| slot.state)
}

#[tokio::test]
async fn a_stepped_engine_moves_only_when_stepped() {
    let executor = Held::default();
    let store = Box::new(MemoryStore::new());
    let downstream = hourly("b", Trigger::Success { workflow: named("a") });
    let handle = start(store, &executor, Pace::Stepped, vec![hourly("a", Trigger::Always), downstream]);

    handle.step(at("2016-01-01T01:30Z"), None).await.unwrap();
    assert_eq!(state(&handle, "a", "2016-01-01T00:00Z"), Some(SlotState::Running));
    assert_eq!(state(&handle, "a", "2016-01-01T01:00Z"), Some(SlotState::Queued));
    assert_eq!(state(&handle, "b", "2016-01-01T00:00Z"), Some(SlotState::Waiting));

    executor.end(&executor.going()[0], Outcome::Succeeded);
    until(&handle, "the end is recorded", |handle| {
        state(handle, "a", "2016-01-01T00:00Z") == Some(SlotState::Succeeded)
    })
    .await;
    assert_eq!(
        state(&handle, "b", "2016-01-01T00:00Z"),
        Some(SlotState::Waiting),
        "nothing follows before the next step"
    );

    handle.step(at("2016-01-01T01:30Z"), None).await.unwrap();
    assert_eq!(state(&handle, "b", "2016-01-01T00:00Z"), Some(SlotState::Running));
    assert_eq!(state(&handle, "a", "2016-01-01T01:00Z"), Some(SlotState::Running));
    handle.stop().await;
}

/// Starts runs, and never says a word about one that is to end: the server that has them is down.
#[derive(Clone, Default)]
struct Gone(Held);

impl Executor for Gone {
    fn start(&self, start: Start, reports: Reports) {
        self.0.start(start, reports);
    }

    fn check(&self, _: &RunId, _: Option<&str>, _: Reports) {}

    fn cancel(&self, _: &RunId, _: Option<&str>, _: Reports) {}
}

/// A step waited for as long as the server was down that had a killed run, and for ever where a run was not known any more.
#[tokio::test]
async fn a_step_ends_whatever_becomes_of_the_runs_before_it() {
    let (held, gone) = (Held::default(), Gone::default());
    let of = |id: &str, executor: &str| {
        let mut workflow = Arc::unwrap_or_clone(hourly(id, Trigger::Always));
        workflow.job.executor = executor.into();
        Arc::new(workflow)
    };
    let executors = Executors::default().with("held", held.clone()).with("gone", gone);
    let parts = EngineParts { executors, ..parts(Box::new(MemoryStore::new()), &held, Pace::Stepped) };
    let handle = engine::start(parts).unwrap();
    handle.define(vec![of("a", "held"), of("b", "gone")], BTreeMap::new()).unwrap();
    handle.step(at("2016-01-01T00:30Z"), None).await.unwrap();
    let killed = SlotRef::at(named("b"), at("2016-01-01T00:00Z"));
    handle.ask(&Actor::person("me"), Kill { slot: killed, reason: None }).await.unwrap();
    held.going.lock().unwrap().clear();

    let step = handle.step(at("2016-01-01T12:30Z"), None);
    tokio::time::timeout(Duration::from_secs(30), step).await.expect("the step ends").unwrap();
    assert_eq!(state(&handle, "b", "2016-01-01T00:00Z"), Some(SlotState::Killed));
    handle.stop().await;
}

#[tokio::test]
async fn an_engine_by_itself_goes_on_after_each_report() {
    let executor = Held::default();
    let handle = start(Box::new(MemoryStore::new()), &executor, Pace::ByItself, vec![hourly("a", Trigger::Always)]);
    for time in ["2016-01-01T01:00Z", "2016-01-01T02:00Z", "2016-01-01T03:00Z"] {
        until(&handle, time, |handle| state(handle, "a", time) == Some(SlotState::Running)).await;
        executor.end(&executor.going()[0], Outcome::Succeeded);
    }
    handle.stop().await;
}

#[tokio::test]
async fn what_was_sent_before_is_committed_once_the_engine_has_settled() {
    let executor = Held::default();
    let disk = MemoryDisk::new();
    for pace in [Pace::ByItself, Pace::Stepped] {
        let store = Box::new(MemoryStore::on(&disk));
        let name = format!("{pace:?}").to_lowercase();
        let handle = start(store, &executor, pace, vec![hourly(&name, Trigger::Always)]);
        handle.settled().await.unwrap();
        assert!(handle.reader().workflow(&named(&name)).unwrap().is_some(), "{pace:?}");
        handle.settled().await.expect("with nothing to commit, too");
        handle.stop().await;
        assert!(matches!(handle.settled().await, Err(AskError::NoAnswer(_))));
    }
}

#[tokio::test]
async fn people_are_answered_after_the_commit_and_refused_with_a_reason() {
    let executor = Held::default();
    let handle = start(Box::new(MemoryStore::new()), &executor, Pace::Stepped, vec![hourly("a", Trigger::Always)]);
    handle.step(at("2016-01-01T01:30Z"), None).await.unwrap();
    let slot = SlotRef::at(named("a"), at("2016-01-01T00:00Z"));
    let rerun = handle.ask(&Actor::person("me"), Rerun::of(slot.clone())).await;
    assert!(matches!(rerun, Err(AskError::Refused(Refusal::StillLive(_, SlotState::Running)))), "{rerun:?}");
    handle
        .ask(&Actor::person("me"), Kill { slot: slot.clone(), reason: Some("wrong input".to_owned()) })
        .await
        .unwrap();
    assert_eq!(state(&handle, "a", "2016-01-01T00:00Z"), Some(SlotState::Killed));
    let why = kelos_explain::why::why(&handle, &slot, None).await.unwrap();
    assert!(why.headline.contains("killed by me") && why.headline.contains("wrong input"), "{}", why.headline);
    let off = SlotRef::at(named("a"), at("2016-01-01T00:30Z"));
    let refused = handle.ask(&Actor::person("me"), Rerun::of(off)).await.unwrap_err().to_string();
    assert!(refused.contains("not a time of its workflow's schedule"), "{refused}");
    handle.stop().await;
}

#[tokio::test]
async fn a_slot_that_does_not_exist_has_one_definite_reason() {
    let executor = Held::default();
    let mut lost = Arc::unwrap_or_clone(hourly("lost", Trigger::Always));
    lost.keys = Keys::Schedule(Schedule::Dependent(named("nobody")));
    let definitions = vec![hourly("a", Trigger::Always), hourly("resting", Trigger::Always), Arc::new(lost)];
    let handle = start(Box::new(MemoryStore::new()), &executor, Pace::Stepped, definitions);
    handle.step(at("2016-02-01T00:30Z"), None).await.unwrap();
    handle.ask(&Actor::person("me"), Pause { workflow: named("resting"), reason: None }).await.unwrap();
    handle.step(at("2016-02-01T01:30Z"), None).await.unwrap();
    let told = async |id: &str, time: &str, then: Option<&str>| {
        let slot = SlotRef::at(named(id), at(time));
        kelos_explain::why::why(&handle, &slot, then.map(at)).await.unwrap().headline
    };
    let cases = [
        ("b", "2016-02-01T00:00Z", None, "no workflow has ever been named \"b\""),
        ("a", "2016-02-01T00:30Z", None, "no such time; the nearest are 2016-02-01T00:00Z and 2016-02-01T01:00Z"),
        ("a", "2015-02-01T00:00Z", None, "starts later, at 2016-01-01T00:00Z"),
        ("a", "2016-01-02T00:00Z", Some("2016-02-02T00:00Z"), "before the planning window"),
        ("a", "2016-02-01T05:00Z", None, "its time has not come"),
        ("a", "2016-02-01T00:00Z", Some("2016-01-31T00:00Z"), "its time had not come"),
        (
            "a",
            "2016-02-01T00:00Z",
            Some("2016-02-01T00:10Z"),
            "had not been planned yet; that happened at 2016-02-01T00:30",
        ),
        ("resting", "2016-02-01T01:00Z", Some("2016-02-02T00:00Z"), "its workflow is paused"),
        ("lost", "2016-02-01T01:00Z", None, "its workflow has no slots: schedule depends on workflow \"nobody\""),
    ];
    for (id, time, then, expected) in cases {
        let headline = told(id, time, then).await;
        assert!(headline.contains(expected), "{id}@{time}: {headline}");
    }
    handle.stop().await;
}

#[tokio::test]
async fn the_next_engine_adopts_the_runs_of_the_one_before() {
    let (disk, executor) = (MemoryDisk::new(), Held::default());
    let definitions = vec![hourly("a", Trigger::Always)];
    let first = start(Box::new(MemoryStore::on(&disk)), &executor, Pace::ByItself, definitions.clone());
    until(&first, "running", |handle| state(handle, "a", "2016-01-01T01:00Z") == Some(SlotState::Running)).await;
    first.stop().await;
    assert_eq!(executor.going().len(), 1, "stopping leaves runs alone");
    let second = start(Box::new(MemoryStore::on(&disk)), &executor, Pace::ByItself, definitions);
    let mut status = second.watch_status();
    status.wait_for(|status| matches!(status, Status::Leading { .. })).await.unwrap();
    executor.end(&executor.going()[0], Outcome::Succeeded);
    until(&second, "succeeded", |handle| state(handle, "a", "2016-01-01T01:00Z") == Some(SlotState::Succeeded)).await;
    let runs = second.reader().slot_runs(&SlotRef::at(named("a"), at("2016-01-01T01:00Z"))).unwrap();
    assert_eq!(runs.len(), 1, "{runs:?}");
    second.stop().await;
}

#[tokio::test]
async fn slots_that_a_clock_ahead_has_planned_wait_for_their_time() {
    let (disk, executor) = (MemoryDisk::new(), Held::default());
    let one_at_a_time = Arc::new(Workflow {
        concurrency: Some(1),
        start_time: Some(at("2016-02-01T03:00Z")),
        ..Arc::unwrap_or_clone(hourly("a", Trigger::Always))
    });
    let open = || Box::new(MemoryStore::on(&disk));
    let ahead = start(open(), &executor, Pace::Stepped, vec![one_at_a_time.clone()]);
    ahead.step(at("2016-02-01T05:30Z"), None).await.unwrap();
    let of = |handle: &Handle, hour: &str| state(handle, "a", &format!("2016-02-01T{hour}:00Z"));
    assert_eq!(of(&ahead, "04"), Some(SlotState::Queued));
    ahead.stop().await;
    let right = start(open(), &executor, Pace::Stepped, vec![one_at_a_time]);
    right.step(at("2016-02-01T03:30Z"), None).await.unwrap();
    executor.end(&executor.going()[0], Outcome::Succeeded);
    until(&right, "succeeded", |handle| of(handle, "03") == Some(SlotState::Succeeded)).await;
    right.step(at("2016-02-01T03:31Z"), None).await.unwrap();
    assert_eq!((executor.going(), of(&right, "04")), (Vec::new(), Some(SlotState::Queued)));
    right.step(at("2016-02-01T04:00Z"), None).await.unwrap();
    until(&right, "running", |handle| of(handle, "04") == Some(SlotState::Running)).await;
    assert_eq!(of(&right, "05"), Some(SlotState::Queued));
    right.stop().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_database_stands_by_and_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Box::new(SqliteStore::open(folder.path().join("kelos.db")).unwrap());
    let executor = Held::default();
    let first = start(open(), &executor, Pace::ByItself, vec![hourly("a", Trigger::Always)]);
    first.watch_status().wait_for(|status| matches!(status, Status::Leading { .. })).await.unwrap();
    let second = start(open(), &executor, Pace::ByItself, vec![hourly("a", Trigger::Always)]);
    second.watch_status().wait_for(|status| *status == Status::Standby).await.unwrap();
    let refused =
        second.ask(&Actor::person("me"), Pause { workflow: named("a"), reason: None }).await.unwrap_err().to_string();
    assert!(refused.contains("standby"), "{refused}");
    until(&first, "running", |handle| state(handle, "a", "2016-01-01T01:00Z") == Some(SlotState::Running)).await;
    assert_eq!(state(&second, "a", "2016-01-01T01:00Z"), Some(SlotState::Running), "a standby reads");
    // Who follows a standby hears of what the leader does.
    first.ask(&Actor::person("me"), Pause { workflow: named("a"), reason: None }).await.unwrap();
    let is_paused = |handle: &Handle| handle.reader().workflow(&named("a")).unwrap().is_some_and(|row| row.paused);
    until(&second, "paused", is_paused).await;
    first.ask(&Actor::person("me"), Resume { workflow: named("a"), reason: None }).await.unwrap();
    until(&second, "resumed", |handle| !is_paused(handle)).await;
    first.stop().await;
    second.watch_status().wait_for(|status| matches!(status, Status::Leading { .. })).await.unwrap();
    second.ask(&Actor::person("me"), Pause { workflow: named("a"), reason: None }).await.unwrap();
    second.stop().await;
}

#[tokio::test]
async fn an_unknown_executor_puts_runs_off_and_says_so() {
    let mut workflow = Arc::unwrap_or_clone(hourly("a", Trigger::Always));
    workflow.job.executor = "spark".to_owned();
    let executor = Held::default();
    let handle = start(Box::new(MemoryStore::new()), &executor, Pace::Stepped, vec![Arc::new(workflow)]);
    handle.step(at("2016-01-01T00:30Z"), None).await.unwrap();
    assert_eq!(state(&handle, "a", "2016-01-01T00:00Z"), Some(SlotState::Dispatched), "nothing is lost");
    let slot = SlotRef::at(named("a"), at("2016-01-01T00:00Z"));
    let history = handle.reader().history(&slot).unwrap();
    let told = serde_json::to_string(&history).unwrap();
    assert!(told.contains("no executor named") && told.contains("held"), "{told}");
    let counts = handle.reader().slot_counts(&SlotFilter::default()).unwrap();
    assert_eq!(counts.get(&SlotState::Dispatched), Some(&1));
    handle.stop().await;
}
