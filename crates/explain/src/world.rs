//! A store with the events that a test lets happen.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use kelos_model::event::Origin;
use kelos_model::history::Trim;
use kelos_model::probe::Verdict;
use kelos_model::ranges::Range;
use kelos_model::sharing::Shares;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{About, Job, Keys, Moments, PlanState, Source, WaitStart, WorkflowRow};
use kelos_model::{
    Answer, BackfillId, Event, EventRecord, Finding, Outcome, Probe, Reason, ReasonKind, RetryPolicy, Run, RunId,
    RunState, Slot, SlotEvent, SlotRef, SlotState, Stretch, Trigger, Workflow, WorkflowId, slot,
};
use kelos_store::{Commit, Journal, Lease, MemoryStore, SlotRow};

/// A store with the events of a test.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    lease: Lease,
    seq: u64,
    slots: BTreeMap<SlotRef, Slot>,
    /// The latest of each slot.
    runs: BTreeMap<SlotRef, Run>,
}

/// `hour:minute` of one day.
pub(crate) fn at(hour: i64, minute: i64) -> Timestamp {
    "2016-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + (hour * 60 + minute).minutes()
}

pub(crate) fn row(id: &str, change: impl Fn(&mut Workflow)) -> WorkflowRow {
    let mut definition = Workflow {
        id: WorkflowId::new(id).unwrap(),
        project: "test".to_owned(),
        source: Source::default(),
        keys: Keys::Schedule(Schedule::Cron(CronSchedule::hourly())),
        trigger: Trigger::Always,
        constraints: Vec::new(),
        concurrency: Some(1),
        batch: None,
        flow: None,
        pools: Vec::new(),
        within: Vec::new(),
        parameters: Vec::new(),
        retry: RetryPolicy::immediate(3),
        start_time: None,
        end_time: None,
        catch_up: None,
        wait_timeout_seconds: None,
        wait_from: WaitStart::Time,
        deadline: None,
        job: Job::new("held", serde_json::Map::new()),
        writes: Vec::new(),
        version: None,
        about: About::default(),
        shares: Shares::default(),
    };
    change(&mut definition);
    let planned = PlanState { until: Some(at(8, 0)), ..PlanState::default() };
    let (id, definition) = (definition.id.clone(), Arc::new(definition));
    let moments = Moments::default();
    WorkflowRow { id, definition, version: 1, present: true, enabled: true, paused: false, planned, moments }
}

/// So many hours before `at(0, 0)` in a backlog, for a backfill or for none.
pub(crate) fn backlog(hours: i64, backfill: Option<&str>) -> PlanState {
    let range = Range::new(at(-hours, 0), at(0, 0));
    let backfill = backfill.map(|name| BackfillId::new(name).unwrap());
    let mut planned = PlanState { until: Some(at(8, 0)), ..PlanState::default() };
    planned.schedule = serde_json::to_string(&CronSchedule::hourly()).unwrap();
    planned.ranges.insert(range);
    planned.backlog.put(Stretch { range, since: at(0, 0), backfill, priority: 0, killed: None });
    planned
}

impl World {
    pub(crate) fn new(rows: Vec<WorkflowRow>) -> World {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", at(0, 0), 1_000).unwrap().unwrap();
        store.commit(lease, &Commit { workflows: rows, ..Commit::default() }).unwrap();
        World { store, lease, seq: 0, slots: BTreeMap::new(), runs: BTreeMap::new() }
    }

    pub(crate) fn happens(&mut self, id: &SlotRef, moment: Timestamp, what: SlotEvent) {
        self.seq += 1;
        let before = self.slots.get(id).cloned();
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let after = slot::apply(before, &what, moment, self.seq).expect("it can happen");
        self.slots.insert(id.clone(), after.clone());
        let run = run_after(self.runs.get(id).cloned(), id, &after, moment, &what);
        self.runs.extend(run.clone().map(|run| (id.clone(), run)));
        let event = Event::Slot { slot: id.clone(), what: what.clone() };
        let commit = Commit {
            events: vec![EventRecord { seq: self.seq, previous, at: moment, event }],
            runs: run.clone().into_iter().collect(),
            slots: vec![SlotRow { id: id.clone(), slot: after }],
            ..Commit::default()
        };
        self.store.commit(self.lease, &commit).unwrap();
    }

    /// A row that no event leads to.
    pub(crate) fn puts(&mut self, row: SlotRow) {
        self.put_all(vec![row]);
    }

    fn put_all(&mut self, slots: Vec<SlotRow>) {
        self.store.commit(self.lease, &Commit { slots, ..Commit::default() }).unwrap();
    }

    /// So many hourly slots before `at(0, 0)` that wait, planned then.
    pub(crate) fn puts_waiting(&mut self, id: &str, slots: i64) {
        let workflow: WorkflowId = id.parse().unwrap();
        let waiting = |hour: i64| SlotRow {
            id: SlotRef::at(workflow.clone(), at(-hour, 0)),
            slot: Slot::new(SlotState::Waiting, at(0, 0)),
        };
        self.put_all((1..=slots).map(waiting).collect());
    }

    /// Removes history.
    pub(crate) fn trims(&mut self, trim: Trim) {
        self.store.commit(self.lease, &Commit { trim: Some(trim), ..Commit::default() }).unwrap();
    }

    /// An event that is about no slot.
    pub(crate) fn logs(&mut self, moment: Timestamp, event: Event) {
        self.seq += 1;
        let events = vec![EventRecord { seq: self.seq, previous: 0, at: moment, event }];
        self.store.commit(self.lease, &Commit { events, ..Commit::default() }).unwrap();
    }

    pub(crate) fn planned(&mut self, id: &str, hour: i64, moment: Timestamp) -> SlotRef {
        let slot = SlotRef::at(WorkflowId::new(id).unwrap(), at(hour, 0));
        self.happens(&slot, moment, SlotEvent::planned(Origin::Schedule, 0));
        slot
    }

    /// A slot that is planned in time, and whose run begins after `wait` minutes and stays live.
    pub(crate) fn running(&mut self, id: &str, hour: i64, wait: i64) -> SlotRef {
        let slot = self.planned(id, hour, at(hour, 0));
        self.happens(&slot, at(hour, wait), SlotEvent::TriggerMet { explanation: missing(at(hour, wait)) });
        self.runs(&slot, at(hour, wait));
        slot
    }

    pub(crate) fn runs(&mut self, slot: &SlotRef, moment: Timestamp) {
        let run = self.slots[slot].last_run + 1;
        self.happens(slot, moment, SlotEvent::Dispatched { run, worker: None, batch: None });
        self.happens(slot, moment, SlotEvent::Started { run, external_id: "x".to_owned() });
    }

    /// A slot whose only run fails after four minutes.
    pub(crate) fn fails(&mut self, id: &str, hour: i64) -> SlotRef {
        let slot = self.running(id, hour, 0);
        self.happens(&slot, at(hour, 4), SlotEvent::Failed { run: 1, outcome: failure() });
        slot
    }

    /// A slot that waits for another one.
    pub(crate) fn waits(&mut self, id: &str, hour: i64, on: &SlotRef) -> SlotRef {
        let slot = self.planned(id, hour, at(hour, 0));
        self.happens(&slot, at(hour, 1), SlotEvent::Looked { explanation: not_yet(on) });
        slot
    }

    /// A slot that waited for another one until its time was over.
    pub(crate) fn expires(&mut self, id: &str, hour: i64, on: &SlotRef) -> SlotRef {
        let slot = self.waits(id, hour, on);
        let explanation = not_yet(on);
        self.happens(&slot, at(hour + 1, 0), SlotEvent::Expired { timeout_seconds: 3600, explanation });
        slot
    }

    pub(crate) fn succeeds(&mut self, slot: &SlotRef, moment: Timestamp) {
        self.happens(slot, moment, SlotEvent::Succeeded { run: self.slots[slot].last_run });
    }
}

/// The record of a run after an event, where it changes.
fn run_after(run: Option<Run>, id: &SlotRef, slot: &Slot, moment: Timestamp, what: &SlotEvent) -> Option<Run> {
    let ended = |outcome: Outcome| {
        let run = run.clone()?;
        Some(Run { state: outcome.state(), ended_at: Some(moment), outcome: Some(outcome), ..run })
    };
    match what {
        SlotEvent::Dispatched { batch, .. } => Some(Run {
            id: RunId { slot: id.clone(), number: slot.last_run },
            seq: slot.last_run_seq,
            previous: run.map_or(0, |run| run.seq),
            state: RunState::Dispatched,
            executor: "held".to_owned(),
            external_id: None,
            dispatched_at: moment,
            started_at: None,
            ended_at: None,
            outcome: None,
            arguments: BTreeMap::new(),
            outputs: None,
            batch: *batch,
        }),
        SlotEvent::Started { .. } => Some(Run { state: RunState::Running, started_at: Some(moment), ..run? }),
        SlotEvent::Succeeded { .. } => ended(Outcome::Succeeded),
        SlotEvent::BackedOff { outcome, .. } | SlotEvent::Failed { outcome, .. } => ended(outcome.clone()),
        _ => None,
    }
}

pub(crate) fn missing(looked_at: Timestamp) -> Reason {
    let (probe, verdict, detail) = (Probe::path("hdfs://n/in"), Verdict::No, String::new());
    let finding = Finding::ProbeAnswered { probe, verdict, detail, looked_at };
    Reason::leaf(ReasonKind::HdfsPath, Answer::NotYet, finding)
}

/// The answer of a trigger that waits for the success of a slot.
fn not_yet(on: &SlotRef) -> Reason {
    let finding = Finding::UpstreamIs { slot: on.clone(), state: SlotState::Waiting };
    Reason::leaf(ReasonKind::Success, Answer::NotYet, finding)
}

pub(crate) fn failure() -> Outcome {
    Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None }
}
