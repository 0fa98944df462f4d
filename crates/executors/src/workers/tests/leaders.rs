//! Workers on other machines and two leaders of one log, of which the first ends without a word to its workers.

use kelos_model::register::WORKERS_BUCKET;
use kelos_model::workers::{LossPolicy, WorkerRecord};
use kelos_store::RegisterKeys;
use kelos_wire::RemoteWorkerDto;

use super::*;
use crate::local::surely_over;
use crate::workers::WorkerView;

/// A leader of a log, with its hub.
struct Leader {
    bench: Bench,
    engine: Handle,
}

impl Leader {
    async fn of(disk: &MemoryDisk) -> Leader {
        Leader::with(disk, Bench::new(), LossPolicy::Retry).await
    }

    async fn with(disk: &MemoryDisk, bench: Bench, on_lost: LossPolicy) -> Leader {
        let engine = engine_on(disk, &bench.desk);
        let mut workflow = start("app1", "20140101_1", "w1").workflow;
        Arc::make_mut(&mut workflow).job.on_lost = on_lost;
        engine.define(vec![workflow], BTreeMap::new()).unwrap();
        until("the lead", || matches!(engine.status(), Status::Leading { .. })).await;
        Leader { bench, engine }
    }

    /// It ends as a process does that is killed: its hub tells nobody anything.
    async fn dies(self) {
        self.engine.stop().await;
    }

    async fn submit(&self) {
        let jobs = vec![run("app1", "20140101_1").slot];
        let arguments = kelos_model::Arguments::new();
        let ask = SubmitRequest { jobs, priority: 0, readd: false, arguments, reason: None };
        self.engine.ask(&Actor::person("ann"), ask).await.unwrap();
    }

    async fn is(&self, state: SlotState, last_run: u32) {
        let slot = || self.engine.reader().slot(&run("app1", "20140101_1").slot).unwrap();
        let is_so = || slot().is_some_and(|slot| (slot.state, slot.last_run) == (state, last_run));
        until(&format!("{state:?} of run {last_run}"), is_so).await;
    }

    fn records(&self) -> BTreeMap<String, WorkerRecord> {
        let registers = self.engine.reader().registers(Some(WORKERS_BUCKET), RegisterKeys::Prefix("")).unwrap();
        registers.into_iter().map(|one| (one.key, serde_json::from_value(one.value).unwrap())).collect()
    }

    fn outcome(&self) -> Outcome {
        let runs = self.engine.reader().slot_runs(&run("app1", "20140101_1").slot).unwrap();
        runs.last().unwrap().outcome.clone().unwrap()
    }
}

fn far(count: u64, free: u32, session: Option<&AssignmentDto>) -> OfferRequest {
    let remote = RemoteWorkerDto {
        host: "m1".to_owned(),
        version: "0.1.0".to_owned(),
        node: Some("a".to_owned()),
        outputs: Some("s3://o".to_owned()),
    };
    let workflows = [WorkflowId::new("app1").unwrap()].into();
    OfferRequest {
        remote: Some(remote),
        labels: ["gpu".parse().unwrap()].into(),
        workflows,
        ..word(count, free, session)
    }
}

/// The same of a worker that had another leader.
fn far_from_another(count: u64) -> OfferRequest {
    OfferRequest { session: Some("another.1".to_owned()), ..far(count, 1, None) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_in_the_log_before_it_is_told_anything_and_until_it_left() {
    let leader = Leader::of(&MemoryDisk::new()).await;
    let first = leader.bench.say("w1", far(1, 1, None)).await;
    let record = WorkerRecord {
        lease_millis: 3_600_000,
        host: "m1".to_owned(),
        version: "0.1.0".to_owned(),
        node: Some("a".to_owned()),
        process: None,
        labels: ["gpu".parse().unwrap()].into(),
        outputs: Some("s3://o".to_owned()),
    };
    assert_eq!(leader.records(), [("w1".to_owned(), record)].into());
    leader.bench.say("w1", OfferRequest { leaves: true, ..far(2, 0, Some(&first)) }).await;
    until("the end of the record", || leader.records().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_run_that_waits_long_for_its_worker_is_in_the_log_before_it_is_given_away() {
    let leader = Leader::with(&MemoryDisk::new(), Bench::new(), LossPolicy::Wait(7200)).await;
    let first = leader.bench.say("w1", far(1, 1, None)).await;
    leader.submit().await;
    leader.is(SlotState::Dispatched, 1).await;
    let told = leader.bench.say("w1", far(2, 1, Some(&first))).await;
    let lease = told.starts[0].lease_millis;
    assert_eq!((lease, leader.records()["w1"].lease_millis), (Some(7_200_000), 7_200_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_dead_leader_told_nobody_of_is_started_again_without_a_retry() {
    let disk = MemoryDisk::new();
    let leader = Leader::of(&disk).await;
    leader.bench.say("w1", far(1, 1, None)).await;
    leader.submit().await;
    leader.is(SlotState::Dispatched, 1).await;
    leader.dies().await;
    let next = Leader::of(&disk).await;
    next.is(SlotState::Dispatched, 1).await;
    let is_away = |worker: &WorkerView| &*worker.name == "w1" && worker.away_since.is_some() && worker.runs.len() == 1;
    until("the worker that is away", || next.bench.desk.workers().iter().any(is_away)).await;
    // The worker of another run can't have it.
    next.bench.say("w2", far_from_another(1)).await;
    next.is(SlotState::Dispatched, 1).await;
    let answer = next.bench.say("w1", far_from_another(1)).await;
    next.is(SlotState::Dispatched, 2).await;
    let slot = next.engine.reader().slot(&run("app1", "20140101_1").slot).unwrap().unwrap();
    assert_eq!(slot.retries, 0);
    assert!(answer.refused.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_its_worker_began_is_claimed_from_the_next_leader() {
    let disk = MemoryDisk::new();
    let leader = Leader::of(&disk).await;
    let first = leader.bench.say("w1", far(1, 1, None)).await;
    leader.submit().await;
    leader.is(SlotState::Dispatched, 1).await;
    assert_eq!(leader.bench.say("w1", far(2, 1, Some(&first))).await.starts.len(), 1);
    leader.dies().await;
    let next = Leader::of(&disk).await;
    let with_it = OfferRequest { runs: has(&[run("app1", "20140101_1")]), free: 0, ..far_from_another(3) };
    let answer = next.bench.say("w1", with_it).await;
    next.is(SlotState::Running, 1).await;
    let end = OfferRequest { reports: vec![ended(&run("app1", "20140101_1"))], ..far(4, 1, Some(&answer)) };
    next.bench.say("w1", end).await;
    next.is(SlotState::Succeeded, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_the_next_process_of_its_worker_found_not_begun_is_started_again_without_a_retry() {
    let disk = MemoryDisk::new();
    let leader = Leader::of(&disk).await;
    let first = leader.bench.say("w1", far(1, 1, None)).await;
    leader.submit().await;
    leader.is(SlotState::Dispatched, 1).await;
    assert_eq!(leader.bench.say("w1", far(2, 1, Some(&first))).await.starts.len(), 1);
    leader.dies().await;
    let next = Leader::of(&disk).await;
    let run = run("app1", "20140101_1");
    let listed = vec![ClaimedRunDto { run: run.clone(), external_id: None, lease_millis: None }];
    let never = vec![RunReportDto { run, what: Report::NeverStarted }];
    next.bench.say("w1", OfferRequest { runs: listed, reports: never, wait_millis: 0, ..far_from_another(3) }).await;
    next.is(SlotState::Dispatched, 2).await;
}

/// The outcome of a run whose worker does not come back to the next leader.
async fn lost(on_lost: LossPolicy) -> Outcome {
    let disk = MemoryDisk::new();
    let leader = Leader::with(&disk, Bench::new(), on_lost).await;
    leader.bench.say("w1", far(1, 1, None)).await;
    leader.submit().await;
    leader.is(SlotState::Dispatched, 1).await;
    leader.dies().await;
    let next = Leader::with(&disk, Bench::new(), on_lost).await;
    let waits = || next.bench.desk.note(&run("app1", "20140101_1")).unwrap_or_default();
    until("the name from the log", || waits() == "it waits for worker w1 to come back").await;
    let waited = Instant::now() + surely_over(LEASE);
    next.bench.desk.look(waited - Duration::from_secs(60));
    next.is(SlotState::Dispatched, 1).await;
    next.bench.desk.look(waited);
    next.is(SlotState::Failed, 1).await;
    next.bench.desk.look(waited + surely_over(LEASE));
    until("the end of the record", || next.records().is_empty()).await;
    next.outcome()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_worker_does_not_come_back_is_judged_by_its_policy() {
    let reason = "its worker did not come back".to_owned();
    assert_eq!(lost(LossPolicy::Retry).await, Outcome::Unknown { reason: reason.clone() });
    assert_eq!(lost(LossPolicy::End).await, Outcome::Lost { reason });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_that_a_program_of_before_left_on_its_disk_is_read_once() {
    let disk = MemoryDisk::new();
    let bench = Bench::new();
    let list = bench._folder.path().join("workers").join(".elsewhere");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    std::fs::write(&list, r#"{"w9":{"secs":7200,"nanos":0}}"#).unwrap();
    let leader = Leader::with(&disk, bench, LossPolicy::Retry).await;
    until("the records", || leader.records().contains_key("w9")).await;
    assert_eq!(leader.records()["w9"].lease_millis, 7_200_000);
    until("the end of the list", || !list.exists()).await;
}
