//! Workers on other machines and two leaders of one log, of which the first ends without a word to its workers.

use kelos_model::register::WORKERS_BUCKET;
use kelos_model::workers::{LossPolicy, WorkerRecord};
use kelos_store::RegisterKeys;
use kelos_wire::{ProcessDto, ProcessIdDto, RemoteWorkerDto};

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
    assert_eq!(next.bench.desk.fenced(), 1);
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

/// The terms of a node of several.
const OF_SEVERAL: Terms = Terms { is_of_several: true, ..TERMS };

/// A node of several with a worker that has begun a run, and the answer to its last message.
async fn with_a_begun_run(disk: &MemoryDisk) -> (Leader, AssignmentDto) {
    let leader = Leader::with(disk, Bench::on(OF_SEVERAL), LossPolicy::Retry).await;
    let first = leader.bench.say("w1", knowing(far(1, 1, None), 0)).await;
    leader.submit().await;
    leader.is(SlotState::Dispatched, 1).await;
    assert_eq!(leader.bench.say("w1", knowing(far(2, 1, Some(&first)), 1)).await.starts.len(), 1);
    let with_it = OfferRequest { runs: has(&[run("app1", "20140101_1")]), ..far(3, 0, Some(&first)) };
    let answer = leader.bench.say("w1", knowing(with_it, 1)).await;
    leader.is(SlotState::Running, 1).await;
    (leader, answer)
}

/// The message of a worker that has heard of a leader of this epoch.
fn knowing(word: OfferRequest, epoch: u64) -> OfferRequest {
    OfferRequest { epoch: Some(epoch), ..word }
}

/// Another node leads from now on.
async fn depose(leader: &Leader, disk: &MemoryDisk) -> (MemoryStore, kelos_store::Lease) {
    let mut other = MemoryStore::on(disk);
    let lease = other.lease("other", jiff::Timestamp::from_second(3600).unwrap(), 1000).unwrap().unwrap();
    // It notices with its next request.
    let _ = leader.engine.define(vec![], BTreeMap::new());
    until("the loss of the lead", || leader.engine.status() == Status::Standby).await;
    (other, lease)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_deposed_answers_those_who_wait_at_once_and_hears_nobody_until_it_leads_again() {
    let disk = MemoryDisk::new();
    let (leader, before) = with_a_begun_run(&disk).await;
    let run = run("app1", "20140101_1");
    let with_it = |count| OfferRequest { runs: has(std::slice::from_ref(&run)), ..far(count, 0, Some(&before)) };
    let waits = OfferRequest { wait_millis: 3_600_000, ..knowing(with_it(4), 1) };
    let desk = leader.bench.desk.clone();
    let waiting = tokio::spawn(async move { desk.hear("w1", waits).await });
    let (mut other, lease) = depose(&leader, &disk).await;
    let told = tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("it waits no longer").unwrap();
    assert_eq!(told.unwrap_err(), HubError::NotLeading(None));
    let heard = leader.bench.desk.hear("w1", knowing(with_it(5), 1)).await;
    assert_eq!(heard.unwrap_err(), HubError::NotLeading(None));
    other.release(lease).unwrap();
    until("the lead again", || matches!(leader.engine.status(), Status::Leading { epoch: 3.. })).await;
    // Its session is one of an earlier epoch, whoever led then: that is no reason to take its runs away.
    let again = leader.bench.say("w1", OfferRequest { wait_millis: 3_600_000, ..knowing(with_it(6), 1) }).await;
    assert!(!again.given_up && again.refused.is_empty() && again.session != before.session, "{again:?}");
    assert!(again.epoch >= Some(3));
    leader.is(SlotState::Running, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stood_by_and_goes_on_in_its_epoch_takes_no_runs_away() {
    let bench = Bench::on(OF_SEVERAL);
    bench.desk.lead(1);
    let before = bench.say("w1", knowing(far(1, 0, None), 1)).await;
    bench.desk.stand_by();
    bench.desk.lead(1);
    let again = bench.say("w1", knowing(far(2, 0, Some(&before)), 1)).await;
    assert!(!again.given_up && again.session != before.session, "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_has_been_replaced_does_not_answer_a_worker_that_knows() {
    let disk = MemoryDisk::new();
    let (leader, before) = with_a_begun_run(&disk).await;
    let heard = leader.bench.desk.hear("w1", knowing(far(4, 1, Some(&before)), 2)).await;
    assert_eq!(heard.unwrap_err(), HubError::NotLeading(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_asked_for_a_run_by_name_before_it_counts_as_never_begun_or_lost() {
    let disk = MemoryDisk::new();
    let (leader, _) = with_a_begun_run(&disk).await;
    leader.dies().await;
    let next = Leader::with(&disk, Bench::on(OF_SEVERAL), LossPolicy::Retry).await;
    let run = run("app1", "20140101_1");
    let first = next.bench.say("w1", knowing(far_from_another(4), 1)).await;
    let waits = OfferRequest { wait_millis: 10_000, ..knowing(far(5, 1, Some(&first)), 2) };
    let asked = if first.sought.is_empty() { next.bench.say("w1", waits).await } else { first.clone() };
    assert_eq!(asked.sought, std::slice::from_ref(&run));
    next.is(SlotState::Running, 1).await;
    let end = OfferRequest { reports: vec![ended(&run)], ..far(6, 1, Some(&first)) };
    next.bench.say("w1", knowing(end, 2)).await;
    next.is(SlotState::Succeeded, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_refused_only_if_it_is_over_in_the_log() {
    let disk = MemoryDisk::new();
    let (leader, before) = with_a_begun_run(&disk).await;
    let run = run("app1", "20140101_1");
    let listed = |count, number| {
        let one = RunId { number, ..run.clone() };
        knowing(OfferRequest { runs: has(&[one]), ..far(count, 0, Some(&before)) }, 1)
    };
    leader.bench.desk.lose(&run);
    assert!(leader.bench.say("w1", listed(4, 1)).await.refused.is_empty(), "it is alive in the log");
    assert_eq!(leader.bench.say("w1", listed(5, 7)).await.refused.len(), 1);
}

fn process(pid: i32) -> ProcessDto {
    ProcessDto { host: "m1".to_owned(), id: ProcessIdDto { pid, started: 1 } }
}

/// The first message of a process of a worker.
fn fresh(pid: i32, succeeds: &[i32]) -> OfferRequest {
    let succeeds = succeeds.iter().map(|pid| process(*pid)).collect();
    knowing(OfferRequest { process: Some(process(pid)), succeeds, ..far(1, 1, None) }, 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_live_process_of_a_name_is_refused_and_a_dead_one_is_succeeded() {
    let disk = MemoryDisk::new();
    let leader = Leader::with(&disk, Bench::on(OF_SEVERAL), LossPolicy::Retry).await;
    let first = leader.bench.say("w1", fresh(1, &[])).await;
    let desk = &leader.bench.desk;
    let held = desk.hear("w1", fresh(2, &[])).await.unwrap_err();
    assert!(
        held.to_string().contains("0 s ago; if it does not come back, the name is free in 3609 s at most"),
        "{held}"
    );
    for count in 2..4 {
        let alive = OfferRequest { process: Some(process(1)), ..far(count, 1, Some(&first)) };
        assert_eq!(leader.bench.say("w1", knowing(alive, 1)).await.session, first.session);
    }
    let taken = desk.hear("w1", fresh(2, &[])).await.unwrap_err();
    assert!(matches!(&taken, HubError::NameTaken(_)) && taken.to_string().contains("on the machine m1"), "{taken}");
    assert_ne!(leader.bench.say("w1", fresh(3, &[1])).await.session, first.session);
    leader.dies().await;
    // The log says which process had the name.
    let next = Leader::with(&disk, Bench::on(OF_SEVERAL), LossPolicy::Retry).await;
    assert!(matches!(next.bench.desk.hear("w1", fresh(4, &[])).await.unwrap_err(), HubError::NameHeld(_)));
    assert!(!next.bench.say("w1", fresh(5, &[3])).await.session.is_empty());
}

/// A door at which leaders of several epochs answer.
#[derive(Clone)]
struct Leaders {
    hub: Direct,
    /// The epoch that the answers name, the runs that they refuse, and whether they give the worker up.
    says: Arc<Mutex<(u64, Vec<RunId>, bool)>>,
}

impl Door for Leaders {
    async fn say(&self, worker: &str, word: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let answer = self.hub.say(worker, &OfferRequest { epoch: None, ..word.clone() }, patience).await?;
        let (epoch, refused, given_up) = self.says.lock().unwrap().clone();
        Ok(AssignmentDto { epoch: Some(epoch), refused, given_up, ..answer })
    }
}

#[tokio::test]
async fn a_worker_believes_no_verdict_of_an_older_epoch_than_it_knows() {
    let mut bench = Bench::new();
    let held = Held::default();
    let run = run("app1", "20140101_1");
    let says = Arc::new(Mutex::new((7, Vec::new(), false)));
    let door = Leaders { hub: Direct(Arc::new(Mutex::new(bench.desk.clone()))), says: says.clone() };
    let executors = Executors::default().with("held", held.clone());
    let (_worker, mut news) = Worker::start("w1".to_owned(), door, executors, one_at_a_time(), bench.signature());
    bench.has_workers(1).await;
    bench.start("app1", "20140101_1", "w1");
    assert!(matches!(bench.next().await.1, Report::Started { .. }));
    *says.lock().unwrap() = (6, vec![run.clone()], true);
    held.0.lock().unwrap()[0].1.run(&run, Report::Gave { outputs: Map::new() });
    assert!(matches!(bench.next().await.1, Report::Gave { .. }));
    // It is not acknowledged by the newest leader, so that it is said again, and the run goes on.
    assert!(matches!(bench.next().await.1, Report::Gave { .. }));
    assert_eq!(held.0.lock().unwrap().len(), 1);
    *says.lock().unwrap() = (7, Vec::new(), true);
    loop {
        match tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap() {
            crate::workers::News::Over(over) => break assert_eq!(over.outcome, Outcome::Killed),
            _ => continue,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_worker_was_cut_off_for_longer_than_its_lease_is_counted_as_fenced() {
    let (leader, before) = with_a_begun_run(&MemoryDisk::new()).await;
    assert_eq!(leader.bench.desk.fenced(), 0);
    // It comes back within what the leader adds to the lease, and its shim has ended the command by then.
    let reason = crate::local::fenced(LEASE);
    let what = Report::Ended { outcome: Outcome::Unknown { reason } };
    let end = RunReportDto { run: run("app1", "20140101_1"), what };
    leader.bench.say("w1", knowing(OfferRequest { reports: vec![end], ..far(4, 1, Some(&before)) }, 1)).await;
    assert_eq!(leader.bench.desk.fenced(), 1);
    let (leader, _) = with_a_begun_run(&MemoryDisk::new()).await;
    leader.bench.desk.look(Instant::now() + surely_over(LEASE) + Duration::from_secs(60));
    until("it is counted", || leader.bench.desk.fenced() == 1).await;
}
