//! Measures the SQLite store: `cargo run --release -p kelos-store-sqlite --example store_bench [finished runs]`.
//!
//! Figures are of the machine they are measured on; nothing asserts them.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::event::Origin;
use kelos_model::retry::scramble;
use kelos_model::slot::apply;
use kelos_model::{
    Answer, Event, EventRecord, Finding, Outcome, Reason, ReasonKind, Run, RunId, RunState, Slot, SlotEvent, SlotRef,
    SlotState, WorkflowId,
};
use kelos_store::{Commit, EventFilter, Journal, Lease, PageRequest, RunFilter, SlotFilter, SlotRow, StoredState};
use kelos_store_sqlite::SqliteStore;

const WORKFLOWS: usize = 1_000;
const HOUR: i64 = 3_600_000;
const FIRST_HOUR: i64 = 400_000;

fn main() {
    let finished = std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number of runs"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kelos.db");
    let mut bench = Bench::open(&path);
    println!("memory after opening: {}", memory());
    bench.fill(finished);
    bench.transitions();
    bench.pages();
    bench.waiting(&path, finished);
    year();
}

struct Bench {
    store: SqliteStore,
    lease: Lease,
    names: Vec<WorkflowId>,
    seq: u64,
    hour: i64,
}

/// A slot on its way through a run.
struct Going {
    id: SlotRef,
    slot: Slot,
    run: Option<Run>,
}

fn ready() -> Reason {
    let until = moment(1_442_151_600_000);
    Reason::leaf(ReasonKind::Delay, Answer::Met, Finding::DelayUntil { now: until, until })
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).expect("a moment in time")
}

impl Bench {
    fn open(path: &Path) -> Self {
        let mut store = SqliteStore::open(path).expect("the store opens");
        let lease = store.lease("bench", moment(0), 60_000).expect("the lease").expect("the lead is free");
        let names = (0..WORKFLOWS).map(|n| WorkflowId::new(&format!("workflow-{n:04}")).expect("a name")).collect();
        Self { store, lease, names, seq: 0, hour: FIRST_HOUR }
    }

    fn now(&self) -> Timestamp {
        moment(1_500_000_000_000 + self.seq as i64 / 10)
    }

    fn happen(&mut self, going: &mut Going, what: SlotEvent, events: &mut Vec<EventRecord>) {
        self.seq += 1;
        let (seq, at) = (self.seq, self.now());
        let previous = going.slot.last_event;
        going.slot = apply(Some(going.slot.clone()), &what, at, seq).expect("it can happen");
        events.push(EventRecord { seq, at, previous, event: Event::Slot { slot: going.id.clone(), what } });
    }

    fn plan(&mut self, id: SlotRef, events: &mut Vec<EventRecord>) -> Going {
        self.seq += 1;
        let what = SlotEvent::planned(Origin::Schedule, 0);
        let slot = apply(None, &what, self.now(), self.seq).expect("it can be planned");
        let record =
            EventRecord { seq: self.seq, at: self.now(), previous: 0, event: Event::Slot { slot: id.clone(), what } };
        events.push(record);
        Going { id, slot, run: None }
    }

    fn commit(&mut self, going: &[Going], events: Vec<EventRecord>, with_runs: bool) -> Duration {
        let slots = going.iter().map(|going| SlotRow { id: going.id.clone(), slot: going.slot.clone() }).collect();
        let runs = if with_runs { going.iter().filter_map(|going| going.run.clone()).collect() } else { Vec::new() };
        let commit = Commit { events, slots, runs, ..Commit::default() };
        let started = Instant::now();
        self.store.commit(self.lease, &commit).expect("the commit");
        started.elapsed()
    }

    /// An hour's slots of all workflows: planned; met and dispatched; started; ended.
    fn run_hour(&mut self) -> [Duration; 4] {
        self.hour += 1;
        let at = moment(self.hour * HOUR);
        let mut events = Vec::new();
        let ids = self.names.iter().map(|name| SlotRef::at(name.clone(), at)).collect::<Vec<_>>();
        let mut going = ids.into_iter().map(|id| self.plan(id, &mut events)).collect::<Vec<_>>();
        let planned = self.commit(&going, events, false);

        let mut events = Vec::new();
        for going in &mut going {
            self.happen(going, SlotEvent::TriggerMet { explanation: ready() }, &mut events);
            self.happen(going, SlotEvent::Dispatched { run: 1, worker: None, batch: None }, &mut events);
            going.run = Some(Run {
                id: RunId { slot: going.id.clone(), number: 1 },
                seq: self.seq,
                previous: 0,
                state: RunState::Dispatched,
                executor: "command".to_owned(),
                external_id: None,
                dispatched_at: self.now(),
                started_at: None,
                ended_at: None,
                outcome: None,
                arguments: Default::default(),
                outputs: None,
                batch: None,
            });
        }
        let dispatched = self.commit(&going, events, true);
        let started = self.step(&mut going, |going| {
            let run = going.run.as_mut().expect("it was dispatched");
            run.state = RunState::Running;
            run.external_id = Some("4711".to_owned());
            SlotEvent::Started { run: 1, external_id: "4711".to_owned() }
        });
        let ended = self.step(&mut going, |going| {
            let failed = scramble(going.run.as_ref().expect("it was dispatched").seq).is_multiple_of(100);
            let outcome = if failed {
                Outcome::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None }
            } else {
                Outcome::Succeeded
            };
            let run = going.run.as_mut().expect("it was dispatched");
            run.state = outcome.state();
            run.outcome = Some(outcome.clone());
            if failed { SlotEvent::Failed { run: 1, outcome } } else { SlotEvent::Succeeded { run: 1 } }
        });
        [planned, dispatched, started, ended]
    }

    fn step(&mut self, going: &mut [Going], mut step: impl FnMut(&mut Going) -> SlotEvent) -> Duration {
        let mut events = Vec::new();
        for going in going.iter_mut() {
            let what = step(going);
            let at = self.now();
            let run = going.run.as_mut().expect("it was dispatched");
            match what {
                SlotEvent::Started { .. } => run.started_at = Some(at),
                _ => run.ended_at = Some(at),
            }
            self.happen(going, what, &mut events);
        }
        self.commit(going, events, true)
    }

    /// A run is 5 events, 4 slot rows and 3 run rows here, in 4 commits of a thousand each.
    fn fill(&mut self, finished: usize) {
        let mut window = [Duration::ZERO; 4];
        let hours = finished / WORKFLOWS;
        for hour in 1..=hours {
            for (sum, spent) in window.iter_mut().zip(self.run_hour()) {
                *sum += spent;
            }
            if hour % (hours / 5).max(1) == 0 {
                let runs = (hours / 5).max(1) as f64 * WORKFLOWS as f64;
                let total = window.iter().sum::<Duration>().as_secs_f64();
                let each = window.map(|sum| format!("{:.1}", sum.as_secs_f64() * 1e6 / runs)).join(" + ");
                println!(
                    "runs {:>9}: {:>6.0} runs/s; µs a run: {each} (planned, dispatched, started, ended)",
                    hour * WORKFLOWS,
                    runs / total
                );
                window = Default::default();
            }
        }
        println!("memory after filling: {}", memory());
    }

    /// Turns of 1,000 transitions over random workflows, and single ones.
    fn transitions(&mut self) {
        let mut spent = Vec::new();
        for _ in 0..20 {
            let [_, _, started, ended] = self.run_hour();
            spent.extend([started, ended]);
        }
        println!("a turn of 1,000 transitions: {}", figures(&mut spent));
        let mut spent = Vec::new();
        self.hour += 1;
        let at = moment(self.hour * HOUR);
        for index in 0..500 {
            let mut events = Vec::new();
            let id = SlotRef::at(self.names[index * 7 % WORKFLOWS].clone(), at);
            let going = self.plan(id, &mut events);
            spent.push(self.commit(&[going], events, false));
        }
        println!("a turn of one transition: {}", figures(&mut spent));
    }

    fn pages(&self) {
        println!("pages of 100:");
        self.pages_of_runs();
        self.pages_of_slots();
    }

    fn pages_of_runs(&self) {
        let reader = self.store.reader();
        let (all, one) = (None, Some(&self.names[500]));
        let middle = (self.seq / 2).to_string();
        let page = |workflow: Option<&WorkflowId>, states: &[RunState], from: Option<&str>| {
            let filter = RunFilter { workflow: workflow.cloned(), states: states.to_vec(), ..RunFilter::default() };
            reader.runs(&filter, PageRequest::newest(100).after(from)).expect("a page")
        };
        let far = (0..3).fold(None, |from: Option<String>, _| page(one, &[], from.as_deref()).next);
        let failed = [RunState::Failed];
        time("  runs, first", || page(all, &[], None).rows.len());
        time("  runs, deep", || page(all, &[], Some(&middle)).rows.len());
        time("  runs that failed, deep", || page(all, &failed, Some(&middle)).rows.len());
        time("  runs that go on", || page(all, &[RunState::Running], None).rows.len());
        time("  runs of a workflow, fourth", || page(one, &[], far.as_deref()).rows.len());
        time("  failed runs of a workflow", || page(one, &failed, None).rows.len());
    }

    fn pages_of_slots(&self) {
        let reader = self.store.reader();
        let (all, one) = (None, Some(&self.names[500]));
        let filter = |workflow: Option<&WorkflowId>, states: &[SlotState]| SlotFilter {
            workflow: workflow.cloned(),
            states: states.to_vec(),
            ..SlotFilter::default()
        };
        let page = |workflow: Option<&WorkflowId>, states: &[SlotState], from: Option<&str>| {
            reader.slots(&filter(workflow, states), PageRequest::newest(100).after(from)).expect("a page").rows.len()
        };
        let name = self.names[500].as_str();
        let middle = format!("{}.{}.{name}", (self.hour + FIRST_HOUR) / 2 * HOUR, name.len());
        let middle = Some(middle.as_str());
        let oldest = |from: Option<&str>| {
            reader.slots(&SlotFilter::default(), PageRequest::oldest(100).after(from)).expect("a page").rows.len()
        };
        time("  slots, first", || page(all, &[], None));
        time("  slots, deep", || page(all, &[], middle));
        time("  slots, the oldest first, deep", || oldest(middle));
        time("  failed slots, deep", || page(all, &[SlotState::Failed], middle));
        time("  succeeded slots, deep", || page(all, &[SlotState::Succeeded], middle));
        time("  slots that succeeded or failed, deep", || {
            page(all, &[SlotState::Succeeded, SlotState::Failed], middle)
        });
        time("  waiting slots", || page(all, &[SlotState::Waiting], None));
        time("  slots of a workflow, deep", || page(one, &[], middle));
        time("  failed slots of a workflow, deep", || page(one, &[SlotState::Failed], middle));
        time("  succeeded slots of a workflow, deep", || page(one, &[SlotState::Succeeded], middle));
        time("  waiting slots of a workflow (none)", || page(one, &[SlotState::Waiting], None));
        println!("others:");
        time("  counts of all slots", || reader.slot_counts(&filter(all, &[])).expect("counts").len());
        time("  counts of a workflow", || reader.slot_counts(&filter(one, &[])).expect("counts").len());
        let id = SlotRef::at(self.names[500].clone(), moment((self.hour - 50) * HOUR));
        time("  a slot's history", || reader.history(&id).expect("a history").len());
        time("  1,000 lines of the log", || {
            reader.events(&EventFilter::after(self.seq / 3), PageRequest::oldest(1_000)).expect("a page").rows.len()
        });
    }

    fn waiting(mut self, path: &Path, finished: usize) {
        self.restored(path, "restore with nothing but finished slots");
        let mut spent = Vec::new();
        for _ in 0..finished / WORKFLOWS {
            self.hour += 1;
            let at = moment(self.hour * HOUR);
            let mut events = Vec::new();
            let ids = self.names.iter().map(|name| SlotRef::at(name.clone(), at)).collect::<Vec<_>>();
            let going = ids.into_iter().map(|id| self.plan(id, &mut events)).collect::<Vec<_>>();
            spent.push(self.commit(&going, events, false));
        }
        println!("a turn that plans 1,000 slots: {}", figures(&mut spent));
        self.restored(path, "restore with as many waiting slots besides");
        let mut spent = Vec::new();
        for _ in 0..20 {
            spent.extend(self.run_hour());
        }
        println!("a turn of 1,000 transitions beside them: {}", figures(&mut spent));
        let lease = self.lease;
        self.store.release(lease).expect("the lead is given back");
        drop(self);
        let size = std::fs::metadata(path).expect("the file").len();
        println!("size: {:.0} MB, {} bytes a slot", size as f64 / 1e6, size / (2 * finished.max(1)) as u64);
    }

    fn restored(&mut self, path: &Path, what: &str) {
        let started = Instant::now();
        let mut other = SqliteStore::open(path).expect("the store opens");
        let opened = started.elapsed();
        let snapshot = other.restore().expect("the state");
        println!("{what}: {:?} (opening {opened:?}), {} live", started.elapsed(), snapshot.slots.len());
    }
}

/// A year of one workflow's slots every five minutes, alone in a store: listed at once.
fn year() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Bench::open(&folder.path().join("kelos.db"));
    let mut events = Vec::new();
    let ids = (0..105_120).map(|n| SlotRef::at(bench.names[0].clone(), moment(n * 300_000))).collect::<Vec<_>>();
    let going = ids.into_iter().map(|id| bench.plan(id, &mut events)).collect::<Vec<_>>();
    bench.commit(&going, events, false);
    let reader = bench.store.reader();
    let filter = SlotFilter { workflow: Some(bench.names[0].clone()), ..SlotFilter::default() };
    time("a year of 5-minute slots", || {
        reader.slots(&filter, PageRequest::newest(200_000)).expect("a page").rows.len()
    });
    time("  their states", || reader.slot_states(&filter, PageRequest::newest(200_000)).expect("a page").rows.len());
    time("  their counts", || reader.slot_counts(&filter).expect("counts").len());
}

fn time(what: &str, mut read: impl FnMut() -> usize) {
    let started = Instant::now();
    let rows = read();
    let first = started.elapsed();
    let mut spent = (0..20).map(|_| (Instant::now(), read()).0.elapsed()).collect::<Vec<_>>();
    println!("{what}: first time {first:.1?}, then {} ({rows} rows)", figures(&mut spent));
}

fn figures(spent: &mut [Duration]) -> String {
    spent.sort_unstable();
    let at = |percent: usize| spent[(spent.len() - 1) * percent / 100];
    format!("median {:.1?}, p99 {:.1?}", at(50), at(99))
}

/// Resident memory, if the system reports it.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("unknown");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}
