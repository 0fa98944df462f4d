//! Measures the steps of flows in the SQLite store: `cargo run --release -p kelos-store-sqlite --example steps_bench [steps]`.
//!
//! Figures are of the machine they are measured on; nothing asserts them.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::event::Origin;
use kelos_model::slot::apply;
use kelos_model::{
    Answer, Event, EventRecord, Finding, Outcome, Reason, ReasonKind, Recall, Run, RunId, RunName, RunState, Slot,
    SlotEvent, SlotKey, SlotRef, StepKey, StepName, WorkflowId,
};
use kelos_store::{Commit, Journal, Lease, PageRequest, RunFilter, SlotFilter, SlotRow, StoredState};
use kelos_store_sqlite::SqliteStore;

/// Steps of a run, and steps that change in a turn.
const STEPS: usize = 10_000;
const IN_A_TURN: usize = 1_000;

fn main() {
    let steps = std::env::args().nth(1).map_or(100_000, |count| count.parse().expect("a number of steps"));
    for (what, turns) in [("in turns of one event a step", ALONE), ("in turns as they usually come", TOGETHER)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kelos.db");
        let mut bench = Bench::open(&path);
        let spent = bench.run_flows(steps / STEPS, turns);
        println!("{steps} steps with 5 events each, {what}: {spent:.2?}");
        bench.read(&path);
        let size = std::fs::metadata(&path).expect("the file").len();
        println!("  size: {} bytes a step", size / steps.max(1) as u64);
    }
}

/// The events of a step in each of its turns: opened, given its inputs, dispatched, started, ended.
const ALONE: &[&[usize]] = &[&[0], &[1], &[2], &[3], &[4]];
const TOGETHER: &[&[usize]] = &[&[0, 1, 2], &[3], &[4]];

struct Bench {
    store: SqliteStore,
    lease: Lease,
    workflow: WorkflowId,
    seq: u64,
}

/// A slot on its way.
struct Going {
    id: SlotRef,
    slot: Option<Slot>,
    run: Option<Run>,
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).expect("a moment in time")
}

fn happening(number: usize, item: usize) -> SlotEvent {
    match number {
        0 => SlotEvent::StepOpened { run: 1, awaits: Vec::new(), priority: 0 },
        1 => {
            let inputs = [("item".to_owned(), item.into()), ("of".to_owned(), "s3://bucket/of/things".into())];
            SlotEvent::StepReady { inputs: inputs.into_iter().collect() }
        }
        2 => SlotEvent::Dispatched { run: 1, worker: None, batch: None },
        3 => SlotEvent::Started { run: 1, external_id: "4711".to_owned() },
        _ => SlotEvent::Succeeded { run: 1 },
    }
}

impl Bench {
    fn open(path: &Path) -> Self {
        let mut store = SqliteStore::open(path).expect("the store opens");
        let lease = store.lease("bench", moment(0), 60_000).expect("the lease").expect("the lead is free");
        Self { store, lease, workflow: WorkflowId::new("orders").expect("a name"), seq: 0 }
    }

    fn happen(&mut self, going: &mut Going, what: SlotEvent, events: &mut Vec<EventRecord>) {
        self.seq += 1;
        let (seq, at) = (self.seq, moment(1_500_000_000_000 + self.seq as i64 / 10));
        let previous = going.slot.as_ref().map_or(0, |slot| slot.last_event);
        going.slot = Some(apply(going.slot.take(), &what, at, seq).expect("it can happen"));
        match &what {
            SlotEvent::Dispatched { .. } => going.run = Some(dispatched(&going.id, seq, at)),
            SlotEvent::Started { external_id, .. } => {
                let run = going.run.as_mut().expect("it was dispatched");
                (run.state, run.started_at, run.external_id) = (RunState::Running, Some(at), Some(external_id.clone()));
            }
            SlotEvent::Succeeded { .. } => {
                let run = going.run.as_mut().expect("it was dispatched");
                (run.state, run.ended_at, run.outcome) = (RunState::Succeeded, Some(at), Some(Outcome::Succeeded));
            }
            _ => {}
        }
        events.push(EventRecord { seq, at, previous, event: Event::Slot { slot: going.id.clone(), what } });
    }

    fn commit(&mut self, going: &[Going], events: Vec<EventRecord>) -> Duration {
        let row = |going: &Going| SlotRow { id: going.id.clone(), slot: going.slot.clone().expect("it exists") };
        let (slots, runs) =
            (going.iter().map(row).collect(), going.iter().filter_map(|going| going.run.clone()).collect());
        let commit = Commit { events, slots, runs, ..Commit::default() };
        let started = Instant::now();
        self.store.commit(self.lease, &commit).expect("the commit");
        started.elapsed()
    }

    fn run_of(&self, number: usize) -> SlotRef {
        let name = RunName::new(&format!("order-{number:06}")).expect("a name");
        SlotRef::new(self.workflow.clone(), SlotKey::Named(name))
    }

    /// Runs of a flow with as many items as a list may have, one after the other. Gives the time within the store.
    fn run_flows(&mut self, runs: usize, turns: &[&[usize]]) -> Duration {
        let mut spent = Duration::ZERO;
        for number in 0..runs {
            let run = self.run_of(number);
            let mut going = Going { id: run.clone(), slot: None, run: None };
            let mut events = Vec::new();
            self.happen(&mut going, SlotEvent::planned(Origin::Request, 0), &mut events);
            let ready = Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always);
            self.happen(&mut going, SlotEvent::TriggerMet { explanation: ready }, &mut events);
            self.happen(&mut going, SlotEvent::Pinned { definition: 1 }, &mut events);
            self.happen(&mut going, happening(2, 0), &mut events);
            spent += self.commit(&[going], events);
            let step = StepKey::new(&run.key, &StepName::new("each").expect("a name")).expect("the key of a run");
            for first in (0..STEPS).step_by(IN_A_TURN) {
                let id = |item: usize| SlotRef::new(run.workflow.clone(), SlotKey::Step(step.item(item as u32)));
                let items = first..first + IN_A_TURN;
                let mut going: Vec<_> = items.map(|item| Going { id: id(item), slot: None, run: None }).collect();
                for happenings in turns {
                    let mut events = Vec::new();
                    for (item, going) in going.iter_mut().enumerate() {
                        for happened in *happenings {
                            self.happen(going, happening(*happened, first + item), &mut events);
                        }
                    }
                    spent += self.commit(&going, events);
                }
            }
        }
        spent
    }

    fn read(&mut self, path: &Path) {
        let run = self.run_of(1);
        let started = Instant::now();
        let steps = self.store.recall(&Recall::Steps(run.clone())).expect("the steps");
        println!("  all {} steps of a run: {:.1?}", steps.len(), started.elapsed());
        let reader = self.store.reader();
        let timed = |what: &str, read: &dyn Fn() -> usize| {
            let (_, started) = (read(), Instant::now());
            let rows = read();
            println!("  {what}: {:.1?} ({rows} rows)", started.elapsed());
        };
        let paging = PageRequest::newest(100);
        timed("a page of them", &|| reader.steps(&run, paging).expect("a page").rows.len());
        let runs = |with_steps| RunFilter { with_steps, ..RunFilter::default() };
        timed("a page of runs", &|| reader.runs(&runs(false), paging).expect("a page").rows.len());
        timed("the same with those of steps", &|| reader.runs(&runs(true), paging).expect("a page").rows.len());
        timed("a page of slots", &|| reader.slots(&SlotFilter::default(), paging).expect("a page").rows.len());
        timed("the counts of slots", &|| reader.slot_counts(&SlotFilter::default()).expect("counts").len());
        let started = Instant::now();
        let live = SqliteStore::open(path).expect("the store opens").restore().expect("the state").slots.len();
        println!("  restore: {:.1?}, {live} live", started.elapsed());
    }
}

fn dispatched(slot: &SlotRef, seq: u64, at: Timestamp) -> Run {
    Run {
        id: RunId { slot: slot.clone(), number: 1 },
        seq,
        previous: 0,
        state: RunState::Dispatched,
        executor: "command".to_owned(),
        external_id: None,
        dispatched_at: at,
        started_at: None,
        ended_at: None,
        outcome: None,
        arguments: Default::default(),
        outputs: None,
        batch: None,
    }
}
