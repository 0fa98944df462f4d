//! A desk and its workers in one process: executors are fakes, and no time passes but by word.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kelos_core::{Config, Input, SubmitRequest};
use kelos_engine as engine;
use kelos_engine::executor::{Executor, Executors, Reports, RunInput, Start, WORKER};
use kelos_engine::job::NoFunctions;
use kelos_engine::{EngineParts, Handle, Pace, Status};
use kelos_model::jobs::JobKeys;
use kelos_model::run::Report;
use kelos_model::workflow::{Job, Keys};
use kelos_model::{Actor, Event, EventRecord, Outcome, RunId, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_storage::{Storage, StorageConfig};
use kelos_store::{Journal, MemoryDisk, MemoryStore};
use kelos_wire::{AssignmentDto, ClaimedRunDto, OfferRequest, RunReportDto};
use serde_json::Map;
use tokio::sync::mpsc;

use super::{Disk, Door, Hub, HubError, NoAnswer, Roll, Terms, Worker, WorkerHome, WorkerOffer};
use crate::local::{Launcher, Limits};

mod leaders;
mod one_way;

/// Nothing takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// No silence in a test is as long.
const LEASE: Duration = Duration::from_secs(3600);

const TERMS: Terms = Terms { lease: LEASE, remote_lease: LEASE, is_of_several: false, takes: true };

struct Bench {
    desk: Hub,
    heard: mpsc::UnboundedReceiver<(RunId, Report)>,
    reports: Reports,
    roll: Roll,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench::on(TERMS)
    }

    fn on(terms: Terms) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        std::fs::create_dir(&runs).unwrap();
        let roll = Roll::beside(&runs);
        let launcher = Launcher::new(&runs, vec!["false".into()], Limits::default()).unwrap();
        let desk = Hub::new(launcher, roll.clone(), tokio::runtime::Handle::current(), terms).unwrap();
        let (hears, heard) = mpsc::unbounded_channel();
        let reports = Reports::new(move |input| {
            if let Input::RunReported { run, report } = input {
                let _ = hears.send((run, report));
            }
        });
        Bench { desk, heard, reports, roll, _folder: folder }
    }

    fn start(&self, app: &str, job: &str, worker: &str) {
        self.desk.start(start(app, job, worker), self.reports.clone());
    }

    fn signature(&self) -> WorkerHome {
        WorkerHome::Shared(self.roll.sign("w1").unwrap())
    }

    /// Connects it to an engine whose log knows no run.
    async fn with_log(&self) -> Handle {
        let engine = engine_on(&MemoryDisk::new(), &self.desk);
        until("the lead", || matches!(engine.status(), Status::Leading { .. })).await;
        engine
    }

    /// Waits until something is said of a run.
    async fn notes(&self, run: &RunId, what: &str) {
        until(what, || self.desk.note(run).is_some_and(|note| note.contains(what))).await;
    }

    /// Waits until so many workers are there.
    async fn has_workers(&self, count: usize) {
        until("the workers", || self.desk.workers().len() == count).await;
    }

    async fn say(&self, worker: &str, word: OfferRequest) -> AssignmentDto {
        tokio::time::timeout(PATIENCE, self.desk.hear(worker, word)).await.unwrap().unwrap()
    }

    async fn next(&mut self) -> (RunId, Report) {
        tokio::time::timeout(PATIENCE, self.heard.recv()).await.unwrap().unwrap()
    }

    fn silence(&mut self) {
        assert!(self.heard.try_recv().is_err(), "something was said");
    }
}

fn run(app: &str, job: &str) -> RunId {
    RunId { slot: SlotRef::job(WorkflowId::new(app).unwrap(), job.into()), number: 1 }
}

fn start(app: &str, job: &str, worker: &str) -> Start {
    let run = run(app, job);
    let template = kelos_model::jobs::JobTemplate::new("{date}_{client}").unwrap();
    let keys = JobKeys::new(template);
    let workflow = Workflow::keyed(run.slot.workflow.clone(), Keys::Jobs(Box::new(keys)), Job::new("held", Map::new()));
    let worker = Some(worker.into());
    Start {
        run,
        workflow: Arc::new(workflow),
        settings: Map::new(),
        properties: Map::new(),
        given: RunInput::default(),
        worker,
        lease: None,
        earlier: Vec::new(),
    }
}

/// A word of a worker with room for so many more.
fn word(count: u64, free: u32, session: Option<&AssignmentDto>) -> OfferRequest {
    OfferRequest {
        session: session.map(|answer| answer.session.clone()),
        count,
        free,
        wait_millis: 1,
        ..OfferRequest::default()
    }
}

fn has(runs: &[RunId]) -> Vec<ClaimedRunDto> {
    runs.iter()
        .map(|run| ClaimedRunDto { run: run.clone(), external_id: Some("7".to_owned()), lease_millis: None })
        .collect()
}

fn ended(run: &RunId) -> RunReportDto {
    RunReportDto { run: run.clone(), what: Report::Ended { outcome: Outcome::Succeeded } }
}

/// An executor that holds every run until the test ends it.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Vec<(RunId, Reports)>>>);

impl Held {
    fn end(&self, outcome: Outcome) -> RunId {
        let (run, reports) = self.0.lock().unwrap().remove(0);
        reports.run(&run, Report::Ended { outcome });
        run
    }
}

impl Executor for Held {
    fn start(&self, start: Start, reports: Reports) {
        reports.run(&start.run, Report::Started { external_id: "7".to_owned() });
        self.0.lock().unwrap().push((start.run, reports));
    }

    fn check(&self, _: &RunId, _: Option<&str>, _: Reports) {}

    fn cancel(&self, run: &RunId, _: Option<&str>, reports: Reports) {
        self.0.lock().unwrap().retain(|(held, _)| held != run);
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}

/// A door to the hub that leads at the time.
#[derive(Clone)]
struct Direct(Arc<Mutex<Hub>>);

impl Door for Direct {
    async fn say(&self, worker: &str, word: &OfferRequest, _: Duration) -> Result<AssignmentDto, NoAnswer> {
        let desk = self.0.lock().unwrap().clone();
        desk.hear(worker, word.clone()).await.map_err(|error| match error {
            HubError::GivenUp => NoAnswer::GivenUp(error.to_string()),
            HubError::Closing | HubError::NotStored | HubError::NotLeading(_) | HubError::NameHeld(_) => {
                NoAnswer::Away(error.to_string())
            }
            HubError::ByItself | HubError::NameTaken(_) => NoAnswer::Never(error.to_string()),
        })
    }
}

fn one_at_a_time() -> WorkerOffer {
    WorkerOffer {
        workflows: [].into(),
        project: None,
        labels: [].into(),
        job: None,
        at_a_time: 1,
        in_all: None,
        attempts: None,
        held: false,
    }
}

#[tokio::test]
async fn what_a_run_gives_comes_before_its_end_and_does_not_end_it() {
    let mut bench = Bench::new();
    let held = Held::default();
    let door = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let executors = Executors::default().with("held", held.clone());
    let (_worker, _news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), bench.signature());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    let (run, reports) = held.0.lock().unwrap()[0].clone();
    let outputs = Map::from_iter([("rows".to_owned(), 12.into())]);
    reports.run(&run, Report::Gave { outputs: outputs.clone() });
    assert_eq!(bench.next().await, (run.clone(), Report::Gave { outputs }));
    held.end(Outcome::Succeeded);
    assert_eq!(bench.next().await, (run, Report::Ended { outcome: Outcome::Succeeded }));
}

#[tokio::test]
async fn a_run_goes_to_the_worker_that_offered_and_its_reports_come_back() {
    let mut bench = Bench::new();
    let held = Held::default();
    let door = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let executors = Executors::default().with("held", held.clone());
    let (worker, mut news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), bench.signature());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    let (run, report) = bench.next().await;
    assert!(matches!(&report, Report::Started { external_id } if external_id.starts_with("7 {\"worker\":\"w1\"")));
    assert!(bench.desk.note(&run).unwrap().contains("worker w1 does it"));
    assert!(matches!(news.recv().await, Some(super::News::Came)));
    assert!(matches!(news.recv().await, Some(super::News::Began(_))));
    held.end(Outcome::Succeeded);
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Succeeded });
    worker.leave().await;
    assert!(bench.desk.workers().is_empty());
}

#[tokio::test]
async fn a_run_whose_worker_is_gone_goes_back_to_the_queue_and_to_no_other_worker() {
    let mut bench = Bench::new();
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.start("app1", "20140101_1", "gone");
    assert_eq!(bench.next().await, (run("app1", "20140101_1"), Report::NeverStarted));
    assert!(bench.say("w1", word(2, 1, Some(&first))).await.starts.is_empty());
    bench.silence();
}

#[tokio::test]
async fn a_run_that_its_worker_has_no_room_for_waits_there_unless_another_one_has_room() {
    let mut bench = Bench::new();
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.start("app1", "20140101_1", "w1");
    bench.start("app1", "20140101_2", "w1");
    assert_eq!(bench.say("w1", word(2, 1, Some(&first))).await.starts.len(), 1);
    bench.silence();
    let other = OfferRequest { workflows: [WorkflowId::new("app2").unwrap()].into(), ..word(1, 1, None) };
    bench.say("w2", other).await;
    bench.silence();
    bench.say("w3", word(1, 1, None)).await;
    assert_eq!(bench.next().await, (run("app1", "20140101_2"), Report::NeverStarted));
    bench.silence();
}

#[tokio::test]
async fn a_run_that_waits_for_room_at_a_worker_that_leaves_goes_back_to_the_queue() {
    let mut bench = Bench::new();
    let first = bench.say("w1", word(1, 0, None)).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(bench.say("w1", word(2, 0, Some(&first))).await.starts.is_empty());
    let leaves = OfferRequest { leaves: true, wait_millis: 0, ..word(3, 0, Some(&first)) };
    bench.say("w1", leaves).await;
    assert_eq!(bench.next().await, (run("app1", "20140101_1"), Report::NeverStarted));
    assert!(bench.desk.workers().is_empty());
}

#[tokio::test]
async fn an_answer_that_got_lost_is_given_again_and_takes_one_place_only() {
    let bench = Bench::new();
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.start("app1", "20140101_1", "w1");
    bench.start("app1", "20140101_2", "w1");
    for count in 2..4 {
        let answer = bench.say("w1", word(count, 1, Some(&first))).await;
        assert_eq!(
            answer.starts.iter().map(|order| order.run.clone()).collect::<Vec<_>>(),
            [run("app1", "20140101_1")]
        );
    }
    let with_it = OfferRequest { runs: has(&[run("app1", "20140101_1")]), ..word(4, 0, Some(&first)) };
    assert!(bench.say("w1", with_it).await.starts.is_empty());
}

#[tokio::test]
async fn an_offer_that_was_overtaken_does_not_count() {
    let bench = Bench::new();
    let first = bench.say("w1", word(5, 0, None)).await;
    bench.say("w1", word(4, 1, Some(&first))).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(bench.say("w1", word(6, 0, Some(&first))).await.starts.is_empty());
}

#[tokio::test]
async fn the_late_report_of_a_worker_that_was_given_up_is_not_believed() {
    let mut bench = Bench::new();
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.start("app1", "20140101_1", "w1");
    bench.say("w1", word(2, 1, Some(&first))).await;
    bench.desk.look(Instant::now() + LEASE + LEASE);
    let (run, report) = bench.next().await;
    let Report::Ended { outcome: Outcome::Unknown { reason } } = report else { panic!("{report:?}") };
    assert!(reason.contains("its worker w1 was not heard of for 3600s"), "{reason}");
    let late = OfferRequest { reports: vec![ended(&run)], ..word(3, 1, Some(&first)) };
    assert_eq!(bench.desk.hear("w1", late).await.unwrap_err(), HubError::GivenUp);
    // The same in a session that it begins anew.
    let late = OfferRequest { reports: vec![ended(&run)], runs: has(std::slice::from_ref(&run)), ..word(4, 1, None) };
    assert_eq!(bench.say("w1", late).await.refused, [run.clone(), run]);
    bench.silence();
}

#[tokio::test]
async fn the_next_leader_hears_of_runs_that_go_on() {
    let mut bench = Bench::new();
    let (_alive, _engine) = (bench.signature(), bench.with_log().await);
    let run = run("app1", "20140101_1");
    bench.desk.check(&run, None, bench.reports.clone());
    let of_another = OfferRequest {
        session: Some("another.1".to_owned()),
        runs: has(std::slice::from_ref(&run)),
        ..word(9, 0, None)
    };
    let answer = bench.say("w1", of_another).await;
    assert!(answer.refused.is_empty() && answer.starts.is_empty(), "{answer:?}");
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    let end = OfferRequest { reports: vec![ended(&run)], ..word(10, 1, Some(&answer)) };
    assert!(bench.say("w1", end).await.refused.is_empty());
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Succeeded });
}

#[tokio::test]
async fn a_run_of_another_leader_for_which_nobody_comes_was_never_started() {
    let mut bench = Bench::new();
    let (_alive_and_silent, _engine) = (bench.signature(), bench.with_log().await);
    bench.desk.check(&run("app1", "20140101_1"), None, bench.reports.clone());
    bench.notes(&run("app1", "20140101_1"), "come back").await;
    bench.desk.look(Instant::now() + LEASE + LEASE);
    assert_eq!(bench.next().await.1, Report::NeverStarted);
}

#[tokio::test]
async fn a_run_of_another_leader_is_not_waited_for_where_no_worker_is_alive_that_could_have_it() {
    let mut bench = Bench::new();
    let _engine = bench.with_log().await;
    bench.desk.check(&run("app1", "20140101_1"), None, bench.reports.clone());
    assert_eq!(bench.next().await, (run("app1", "20140101_1"), Report::NeverStarted));
    // A worker that is alive is waited for, until it asks for runs and does not list it.
    let _alive = bench.signature();
    bench.desk.check(&run("app1", "20140101_2"), None, bench.reports.clone());
    let of_another = OfferRequest { session: Some("another.1".to_owned()), wait_millis: 0, ..word(1, 1, None) };
    let answer = bench.say("w1", of_another).await;
    bench.notes(&run("app1", "20140101_2"), "come back").await;
    bench.say("w1", word(2, 1, Some(&answer))).await;
    assert_eq!(bench.next().await, (run("app1", "20140101_2"), Report::NeverStarted));
}

#[tokio::test]
async fn a_command_of_a_worker_that_ended_is_ended_though_others_are_alive() {
    let mut bench = Bench::new();
    let _alive = bench.signature();
    bench.desk.check(&run("app1", "20140101_1"), Some(r#"7 {"worker":"w9"}"#), bench.reports.clone());
    let (_, report) = bench.next().await;
    assert!(matches!(report, Report::Ended { outcome: Outcome::Unknown { reason } } if reason == "its worker ended"));
}

#[tokio::test]
async fn a_leader_that_ends_takes_back_what_no_worker_fetched() {
    let mut bench = Bench::new();
    let first = bench.say("w1", word(1, 2, None)).await;
    bench.start("app1", "20140101_1", "w1");
    assert_eq!(bench.say("w1", word(2, 2, Some(&first))).await.starts.len(), 1);
    bench.start("app1", "20140101_2", "w1");
    bench.start("app1", "20140101_3", "nobody");
    assert_eq!(bench.next().await, (run("app1", "20140101_3"), Report::NeverStarted));
    bench.desk.take_back().await;
    assert_eq!(bench.next().await, (run("app1", "20140101_2"), Report::NeverStarted));
    // A run that is added only now is not assigned to its workers.
    bench.start("app1", "20140101_4", "w1");
    assert_eq!(bench.next().await, (run("app1", "20140101_4"), Report::NeverStarted));
    bench.silence();
}

#[tokio::test]
async fn a_kill_reaches_the_worker_once_and_what_it_was_not_told_of_is_killed_with_its_return() {
    let mut bench = Bench::new();
    let first = bench.say("w0", word(1, 0, None)).await;
    bench.start("app1", "20140101_1", "w0");
    bench.desk.cancel(&run("app1", "20140101_1"), None, bench.reports.clone());
    bench.say("w0", OfferRequest { leaves: true, wait_millis: 0, ..word(2, 0, Some(&first)) }).await;
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Killed });
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.start("app1", "20140101_2", "w1");
    bench.say("w1", word(2, 1, Some(&first))).await;
    let run = run("app1", "20140101_2");
    bench.desk.cancel(&run, None, bench.reports.clone());
    let with_it = |count| OfferRequest { runs: has(std::slice::from_ref(&run)), ..word(count, 0, Some(&first)) };
    assert_eq!(bench.say("w1", with_it(3)).await.cancels, std::slice::from_ref(&run));
}

#[tokio::test]
async fn fault_9_a_run_that_takes_longer_than_the_lease_is_left_alone_while_its_worker_asks() {
    let lease = Duration::from_millis(300);
    let mut bench = Bench::on(Terms { lease, ..TERMS });
    let held = Held::default();
    let door = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let executors = Executors::default().with("held", held.clone());
    let (_worker, _news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), bench.signature());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    let began = Instant::now();
    until("thrice the lease", || began.elapsed() > lease * 3).await;
    held.end(Outcome::Succeeded);
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Succeeded });
}

#[tokio::test]
async fn fault_8_a_worker_that_was_given_up_ends_what_it_has_and_begins_anew() {
    let mut bench = Bench::new();
    let held = Held::default();
    let door = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let executors = Executors::default().with("held", held.clone());
    let (worker, mut news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), bench.signature());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    bench.desk.look(Instant::now() + LEASE + LEASE);
    assert!(matches!(bench.next().await.1, Report::Ended { outcome: Outcome::Unknown { .. } }));
    loop {
        match tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap() {
            super::News::Over(over) => break assert_eq!(over.outcome, Outcome::Killed),
            _ => continue,
        }
    }
    assert!(held.0.lock().unwrap().is_empty());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_2", "w1");
    assert!(matches!(bench.next().await, (run, Report::Started { .. }) if run.slot.key.short() == "20140101_2"));
    held.end(Outcome::Succeeded);
    worker.leave().await;
}

#[tokio::test]
async fn two_apps_with_the_same_job_id_are_two_runs() {
    // Fault 11 of the original: entries of its queues were named by priority, moment and id alone.
    let bench = Bench::new();
    let first = bench.say("w1", word(1, 2, None)).await;
    bench.start("app1", "20140101_1", "w1");
    bench.start("app2", "20140101_1", "w1");
    let answer = bench.say("w1", word(2, 2, Some(&first))).await;
    let apps: Vec<_> = answer.starts.iter().map(|order| order.run.slot.workflow.as_str()).collect();
    assert_eq!(apps, ["app1", "app2"]);
}

#[tokio::test]
async fn what_a_worker_declines_goes_back_to_the_queue() {
    let mut bench = Bench::new();
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.say("w2", word(1, 1, None)).await;
    bench.start("app1", "20140101_1", "w1");
    let leaves = OfferRequest { leaves: true, declines: true, ..word(2, 1, Some(&first)) };
    assert!(bench.say("w1", leaves).await.starts.is_empty());
    assert_eq!(bench.next().await, (run("app1", "20140101_1"), Report::NeverStarted));
    assert_eq!(bench.desk.workers().len(), 1);
}

#[tokio::test]
async fn a_run_that_a_worker_has_done_is_told_of_again_and_not_done_again() {
    let mut bench = Bench::new();
    let held = Held::default();
    let door = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let executors = Executors::default().with("held", held.clone());
    let (worker, _news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), bench.signature());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    held.end(Outcome::Succeeded);
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Succeeded });
    while !worker.is_idle() {
        tokio::task::yield_now().await;
    }
    // A store that failed has the same run started once more.
    bench.start("app1", "20140101_1", "w1");
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Succeeded });
    assert!(held.0.lock().unwrap().is_empty());
    worker.leave().await;
}

#[tokio::test]
async fn a_run_that_a_worker_has_no_more_is_given_to_it_again() {
    let bench = Bench::new();
    let first = bench.say("w1", word(1, 1, None)).await;
    bench.start("app1", "20140101_1", "w1");
    let with_it = OfferRequest { runs: has(&[run("app1", "20140101_1")]), ..word(2, 0, Some(&first)) };
    assert!(bench.say("w1", with_it).await.starts.is_empty());
    assert_eq!(bench.say("w1", word(3, 1, Some(&first))).await.starts.len(), 1);
}

/// An engine whose runs are done by workers, over a disk that others may lead on.
fn engine_on(disk: &MemoryDisk, desk: &Hub) -> Handle {
    let parts = EngineParts {
        store: Box::new(MemoryStore::on(disk)),
        node: "test".to_owned(),
        clock: Arc::new(|| jiff::Timestamp::UNIX_EPOCH),
        pace: Pace::ByItself,
        config: Config { by_workers: ["held".to_owned()].into(), ..Config::default() },
        executors: Executors::default().with(WORKER, desk.clone()),
        functions: Arc::new(NoFunctions),
        storage: Storage::new(StorageConfig::default()),
        runtime: tokio::runtime::Handle::current(),
        lease: Duration::from_secs(10),
        traces: false,
    };
    let engine = engine::start(parts).unwrap();
    desk.connect(engine.clone());
    engine
}

/// Waits until something holds, looking again and again.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waits = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap_or_else(|_| panic!("never came: {what}"));
}

/// Another process leads for a moment, while a worker reports to the one that led.
async fn reported_while_nobody_stores(
    report: impl Fn(&Held),
) -> (Handle, SlotRef, mpsc::UnboundedReceiver<super::News>) {
    let bench = Bench::new();
    let (disk, held) = (MemoryDisk::new(), Held::default());
    let engine = engine_on(&disk, &bench.desk);
    let run = run("app1", "20140101_1");
    engine.define(vec![start("app1", "20140101_1", "w1").workflow], BTreeMap::new()).unwrap();
    until("the lead", || matches!(engine.status(), Status::Leading { .. })).await;
    let door = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let executors = Executors::default().with("held", held.clone());
    let wanted = WorkerOffer { workflows: [run.slot.workflow.clone()].into(), ..one_at_a_time() };
    let (worker, news) = Worker::start("w1".to_owned(), door, executors, wanted, bench.signature());
    let ask = SubmitRequest {
        jobs: vec![run.slot.clone()],
        priority: 0,
        readd: false,
        arguments: kelos_model::Arguments::new(),
        reason: None,
    };
    engine.ask(&Actor::person("ann"), ask).await.unwrap();
    let state = || engine.reader().slot(&run.slot).unwrap().map(|slot| slot.state);
    until("the run", || state() == Some(SlotState::Running)).await;

    let mut other = MemoryStore::on(&disk);
    let later = jiff::Timestamp::from_second(3600).unwrap();
    let lease = other.lease("other", later, 1000).unwrap().unwrap();
    report(&held);
    until("the loss of the lead", || matches!(engine.status(), Status::Standby)).await;
    other.release(lease).unwrap();
    until("the lead again", || matches!(engine.status(), Status::Leading { .. })).await;
    if !held.0.lock().unwrap().is_empty() {
        held.end(Outcome::Succeeded);
    }
    until("the end", || state().is_some_and(SlotState::is_final)).await;
    worker.leave().await;
    (engine, run.slot, news)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_gave_and_its_leader_could_not_store_is_said_again() {
    let outputs = Map::from_iter([("rows".to_owned(), 12.into())]);
    let (engine, slot, _news) = reported_while_nobody_stores(|held| {
        let (run, reports) = held.0.lock().unwrap()[0].clone();
        reports.run(&run, Report::Gave { outputs: outputs.clone() });
    })
    .await;
    let history = engine.reader().history(&slot).unwrap();
    let gave = SlotEvent::Gave { run: 1, outputs: outputs.clone() };
    let said = |record: &EventRecord| matches!(&record.event, Event::Slot { what, .. } if *what == gave);
    assert_eq!(history.iter().filter(|record| said(record)).count(), 1, "{history:?}");
    assert_eq!(engine.reader().slot(&slot).unwrap().unwrap().last_run, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_end_its_leader_could_not_store_is_not_done_again() {
    let (engine, slot, _news) = reported_while_nobody_stores(|held| drop(held.end(Outcome::Succeeded))).await;
    let row = engine.reader().slot(&slot).unwrap().unwrap();
    assert_eq!((row.state, row.last_run), (SlotState::Succeeded, 1));
}

/// A door that counts the messages that ask for something to do, and notes how they were answered.
#[derive(Clone)]
struct Counting {
    hub: Direct,
    /// The moment of each answer with a run in it.
    told: Arc<Mutex<Vec<Instant>>>,
}

impl Door for Counting {
    async fn say(&self, worker: &str, word: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let answer = self.hub.say(worker, word, patience).await?;
        if !answer.starts.is_empty() {
            self.told.lock().unwrap().push(Instant::now());
        }
        Ok(answer)
    }
}

#[tokio::test]
async fn a_worker_whose_disk_is_full_asks_once_a_second_and_begins_when_it_has_room() {
    let mut bench = Bench::new();
    let home = tempfile::tempdir().unwrap();
    let disk = Disk::take(home.path(), &["http://a"]).unwrap();
    let notes = home.path().join("held");
    std::fs::remove_dir(&notes).unwrap();
    let (held, told) = (Held::default(), Arc::<Mutex<Vec<Instant>>>::default());
    let door = Counting { hub: Direct(Arc::new(Mutex::new(bench.desk.clone()))), told: told.clone() };
    let executors = Executors::default().with("held", held.clone());
    let (_worker, _news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), WorkerHome::Own(disk));
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    until("it is told again", || told.lock().unwrap().len() >= 2).await;
    let told = told.lock().unwrap().clone();
    let (first, second) = (told[0], told[1]);
    assert!(second.duration_since(first) >= Duration::from_secs(1), "it was told again at once");
    bench.silence();
    std::fs::create_dir(&notes).unwrap();
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    held.end(Outcome::Succeeded);
    assert_eq!(bench.next().await.1, Report::Ended { outcome: Outcome::Succeeded });
}

/// A door that leaves the first messages unanswered.
#[derive(Clone)]
struct SilentDoor {
    hub: Direct,
    /// The number of messages that are not answered yet.
    closed: Arc<Mutex<u32>>,
}

impl Door for SilentDoor {
    async fn say(&self, worker: &str, word: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let is_closed = {
            let mut closed = self.closed.lock().unwrap();
            let is_closed = *closed > 0;
            *closed = closed.saturating_sub(1);
            is_closed
        };
        if is_closed {
            return Err(NoAnswer::Away("reach the leader".to_owned()));
        }
        self.hub.say(worker, word, patience).await
    }
}

#[tokio::test]
async fn a_worker_without_a_leader_says_so_once() {
    let bench = Bench::new();
    let home = tempfile::tempdir().unwrap();
    let disk = Disk::take(home.path(), &["http://a"]).unwrap();
    let hub = Direct(Arc::new(Mutex::new(bench.desk.clone())));
    let door = SilentDoor { hub, closed: Arc::new(Mutex::new(3)) };
    let (_worker, mut news) =
        Worker::start("w1".to_owned(), door, Executors::default(), one_at_a_time(), WorkerHome::Own(disk));
    let mut told = Vec::new();
    while !matches!(told.last(), Some(super::News::Came)) {
        told.push(news.recv().await.unwrap());
    }
    let told: Vec<String> = told.iter().map(|news| format!("{news:?}")).collect();
    assert_eq!(told, [r#"Away("reach the leader")"#, "Back", "Came"]);
}
