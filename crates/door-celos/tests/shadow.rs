//! A shadow beside a Celos that the test plays.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_door_celos::celos_db::{Record, Status};
use kelos_door_celos::shadow::{
    CelosWorkflow, ComparisonReport, Discrepancy, Shadow, ShadowParts, Theirs, read_list, read_slots,
};
use kelos_model::time::parse_instant;
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_sandbox::Folders;
use kelos_storage::{Storage, StorageConfig};

const SCRIPT: &str = r#"
celos.defineWorkflow({
    "id": "w",
    "schedule": celos.hourlySchedule(),
    "schedulingStrategy": celos.serialSchedulingStrategy(2),
    "trigger": celos.andTrigger(celos.delayTrigger(60), celos.fileCheckTrigger("DIR/${hour}.txt")),
    "maxRetryCount": 1,
    "startTime": "2016-02-10T08:00Z",
    "externalService": celos.oozieExternalService({"user.name": "ann"}, "http://127.0.0.1:1/never-called")
});
"#;

fn at(text: &str) -> Timestamp {
    parse_instant(text).unwrap()
}

fn named(id: &str) -> WorkflowId {
    WorkflowId::new(id).unwrap()
}

/// The world that both see, and the Celos that the test plays.
struct Stage {
    dir: tempfile::TempDir,
    theirs: BTreeMap<u32, Record>,
    paused: bool,
    now: Timestamp,
}

impl Stage {
    /// At 10:30, with slots at 08:00, 09:00 and 10:00, none of which has its file.
    fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["workflows", "defaults"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let script = SCRIPT.replace("DIR", dir.path().to_str().unwrap());
        std::fs::write(dir.path().join("workflows/w.js"), script).unwrap();
        let mut stage = Stage { dir, theirs: BTreeMap::new(), paused: false, now: at("2016-02-10T10:30Z") };
        for hour in [8, 9, 10] {
            stage.celos(hour, Status::Waiting, 0);
        }
        stage
    }

    fn celos(&mut self, hour: u32, status: Status, retry_count: u32) {
        let external_id = (!matches!(status, Status::Waiting | Status::Ready)).then(|| format!("{hour}-oozie-W"));
        self.theirs.insert(hour, Record { status, external_id, retry_count });
    }

    fn file(&self, hour: u32) {
        std::fs::write(self.dir.path().join(format!("{hour:02}.txt")), "x").unwrap();
    }

    fn theirs(&self) -> Theirs {
        let slot = |(hour, record): (&u32, &Record)| (at(&format!("2016-02-10T{hour:02}:00Z")), record.clone());
        let seen = CelosWorkflow { paused: self.paused, slots: self.theirs.iter().map(slot).collect() };
        Theirs::from([(named("w"), Ok(seen))])
    }

    fn start(&self) -> Shadow {
        let folders =
            Folders { workflows: self.dir.path().join("workflows"), defaults: self.dir.path().join("defaults") };
        let now = self.now;
        let parts = ShadowParts {
            format: std::sync::Arc::new(kelos_door_stolos::TasksJson),
            folders,
            registers: BTreeMap::new(),
            storage: Storage::new(StorageConfig::from_env()),
            runtime: tokio::runtime::Handle::current(),
            clock: Arc::new(move || now),
            grace: SignedDuration::from_mins(3),
        };
        Shadow::start(parts, &self.theirs(), self.now).unwrap()
    }

    /// A minute later.
    async fn look(&mut self, shadow: &mut Shadow) -> ComparisonReport {
        self.now += SignedDuration::from_mins(1);
        shadow.look(&self.theirs(), self.now).await.unwrap()
    }

    /// As many minutes later as make a difference count.
    async fn look_long(&mut self, shadow: &mut Shadow) -> ComparisonReport {
        for _ in 0..3 {
            self.look(shadow).await;
        }
        self.look(shadow).await
    }
}

fn state(shadow: &Shadow, hour: u32) -> SlotState {
    let slot = SlotRef::at(named("w"), at(&format!("2016-02-10T{hour:02}:00Z")));
    shadow.handle().reader().slot(&slot).unwrap().unwrap().state
}

#[track_caller]
fn agree(looked: &ComparisonReport, slots: usize) {
    assert!(looked.differences.is_empty() && looked.pending == 0, "{looked:#?}");
    assert_eq!(looked.agreed, slots);
}

fn told(looked: &ComparisonReport) -> Vec<String> {
    looked.differences.iter().map(|one| format!("{}: {}", one.subject, one.difference)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_as_it_goes_in_celos_with_its_retries() {
    let mut stage = Stage::new();
    let mut shadow = stage.start();
    agree(&stage.look(&mut shadow).await, 3);
    stage.file(8);
    stage.celos(8, Status::Ready, 0);
    agree(&stage.look(&mut shadow).await, 3);
    assert_eq!(state(&shadow, 8), SlotState::Dispatched, "it starts nothing before Celos does");
    stage.celos(8, Status::Running, 0);
    agree(&stage.look(&mut shadow).await, 3);
    assert_eq!(state(&shadow, 8), SlotState::Running);
    stage.celos(8, Status::Ready, 1);
    agree(&stage.look(&mut shadow).await, 3);
    stage.celos(8, Status::Running, 1);
    agree(&stage.look(&mut shadow).await, 3);
    stage.celos(8, Status::Success, 1);
    agree(&stage.look(&mut shadow).await, 3);
    assert_eq!(state(&shadow, 8), SlotState::Succeeded);
    shadow.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_from_where_celos_stands() {
    let mut stage = Stage::new();
    stage.celos(8, Status::Failure, 1);
    stage.celos(9, Status::Running, 1);
    let mut shadow = stage.start();
    agree(&stage.look(&mut shadow).await, 3);
    stage.celos(9, Status::Failure, 1);
    agree(&stage.look(&mut shadow).await, 3);
    shadow.stop().await;
}

/// Of what lies before a start that moved later Celos says nothing: neither does the shadow, until it moves back.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_moves_is_followed() {
    let mut stage = Stage::new();
    let mut shadow = stage.start();
    agree(&stage.look(&mut shadow).await, 3);
    let script = stage.dir.path().join("workflows/w.js");
    let before = std::fs::read_to_string(&script).unwrap();
    let later = before.replace("2016-02-10T08:00Z", "2016-02-10T10:00Z");
    assert_ne!(before, later);
    std::fs::write(&script, later).unwrap();
    let rest: Vec<Record> = [8, 9].iter().map(|hour| stage.theirs.remove(hour).unwrap()).collect();
    stage.file(8);
    agree(&stage.look_long(&mut shadow).await, 1);
    assert_eq!(state(&shadow, 8), SlotState::Waiting, "it rests although its file is there");
    std::fs::write(&script, before).unwrap();
    stage.theirs.extend([8, 9].into_iter().zip(rest));
    stage.celos(8, Status::Ready, 0);
    agree(&stage.look_long(&mut shadow).await, 3);
    shadow.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_do_there_is_done_here() {
    let mut stage = Stage::new();
    stage.celos(8, Status::Success, 0);
    let mut shadow = stage.start();
    agree(&stage.look(&mut shadow).await, 3);
    stage.celos(8, Status::Waiting, 0);
    stage.celos(9, Status::Killed, 0);
    agree(&stage.look(&mut shadow).await, 3);
    assert_eq!((state(&shadow, 8), state(&shadow, 9)), (SlotState::Waiting, SlotState::Killed));
    stage.paused = true;
    stage.file(10);
    agree(&stage.look(&mut shadow).await, 3);
    stage.paused = false;
    stage.celos(10, Status::Ready, 0);
    agree(&stage.look(&mut shadow).await, 3);
    shadow.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_celos_lags_behind_does_not_count() {
    let mut stage = Stage::new();
    let mut shadow = stage.start();
    stage.file(8);
    let looked = stage.look(&mut shadow).await;
    assert_eq!((looked.differences.len(), looked.pending), (0, 1));
    stage.celos(8, Status::Ready, 0);
    agree(&stage.look(&mut shadow).await, 3);
    shadow.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_counts_and_is_explained() {
    let mut stage = Stage::new();
    let mut shadow = stage.start();
    stage.celos(8, Status::Success, 0);
    let looked = stage.look_long(&mut shadow).await;
    assert_eq!(told(&looked), ["w@2016-02-10T08:00Z: SUCCESS in Celos, waiting in Kelos"]);
    let difference = &looked.differences[0];
    assert_eq!((difference.since, difference.new), (at("2016-02-10T10:31Z"), true));
    assert!(difference.because[0].contains("08.txt is not ready"), "{:?}", difference.because);
    stage.file(8);
    let looked = stage.look(&mut shadow).await;
    agree(&looked, 3);
    assert_eq!(looked.over.len(), 1);
    shadow.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_and_workflows_that_only_one_has_are_told_of() {
    let mut stage = Stage::new();
    let mut shadow = stage.start();
    stage.theirs.remove(&9);
    stage.celos(7, Status::Success, 0);
    let mut looked = None;
    for _ in 0..4 {
        stage.now += SignedDuration::from_mins(1);
        let mut theirs = stage.theirs();
        theirs.insert(named("elsewhere"), Ok(CelosWorkflow::default()));
        theirs.insert(named("ill"), Err("400 Bad Request".to_owned()));
        looked = Some(shadow.look(&theirs, stage.now).await.unwrap());
    }
    assert_eq!(
        told(&looked.unwrap()),
        [
            "elsewhere: Celos has it, no script defines it for Kelos",
            "ill: Celos does not answer: 400 Bad Request",
            "w@2016-02-10T07:00Z: SUCCESS in Celos, no such slot in Kelos",
            "w@2016-02-10T09:00Z: no such slot in Celos, waiting in Kelos",
        ]
    );
    shadow.stop().await;
}

#[test]
fn answers_are_read_as_celos_writes_them() {
    let list = read_list("{\n  \"ids\" : [ \"a b\", \"w\" ]\n}").unwrap();
    assert_eq!(list, [named("a b"), named("w")]);
    let slots = r#"{ "info" : { "url" : null, "contacts" : [ ] }, "paused" : "true", "slots" : [ {
        "time" : "2016-02-10T09:00:00.000Z", "status" : "FAILURE", "externalID" : "x", "retryCount" : 2 } ] }"#;
    let seen = read_slots(slots).unwrap();
    assert!(seen.paused);
    let record = Record { status: Status::Failure, external_id: Some("x".to_owned()), retry_count: 2 };
    assert_eq!(seen.slots, BTreeMap::from([(at("2016-02-10T09:00Z"), record)]));
    let unknown = slots.replace("FAILURE", "MAYBE");
    let why = read_slots(&unknown).unwrap_err();
    assert_eq!(why, "the status \"MAYBE\" of 2016-02-10T09:00:00.000Z is unknown");
    assert!(read_list("<html>").unwrap_err().starts_with("the answer is not one of Celos"));
    assert_eq!(Discrepancy::NotInCelos.to_string(), "a script defines it, Celos does not have it");
}
