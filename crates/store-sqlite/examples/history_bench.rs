//! Measures history that goes: `cargo run --release -p kelos-store-sqlite --example history_bench [workflows] [days] [of]`.
//!
//! Hourly workflows run for a year, one slot in a hundred fails, and what is older than 90 days goes in portions of 500 events, as a leader
//! removes it. The slots are of `times`, of `backfills` of ten days each, or of `starts` by facts, or they are `jobs` or runs by `names`. Figures are of the machine they are measured on; nothing asserts them.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::event::Origin;
use kelos_model::history::Trim;
use kelos_model::retry::scramble;
use kelos_model::slot::apply;
use kelos_model::{
    Answer, BackfillId, Event, EventRecord, Finding, Occurrence, Outcome, Reason, ReasonKind, Run, RunId, RunName,
    RunState, Slot, SlotEvent, SlotKey, SlotRef, SlotState, WorkflowId,
};
use kelos_store::{Commit, Journal, Lease, SlotRow};
use kelos_store_sqlite::SqliteStore;

const HOUR: i64 = 3_600_000;
const FIRST_HOUR: i64 = 490_000;
const KEPT_HOURS: usize = 90 * 24;
/// Slots that are started and end in one turn.
const TOGETHER: usize = 10;
/// Events that go in one turn.
const PORTION: u64 = 500;

fn main() {
    let argument = |place, usual| std::env::args().nth(place).map_or(usual, |text| text.parse().expect("a number"));
    let (workflows, days) = (argument(1, 114), argument(2, 365));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kelos.db");
    let of = std::env::args().nth(3).unwrap_or_else(|| "times".to_owned());
    let mut bench = Bench::open(&path, workflows, of);
    println!("{workflows} hourly workflows, {days} days, slots of {}, history of 90 days", bench.of);
    for hour in 0..days * 24 {
        bench.run_hour(hour);
        if (hour + 1) % (30 * 24) == 0 || hour + 1 == days * 24 {
            bench.report((hour + 1) / 24, &path);
        }
    }
    let reading = Instant::now();
    let filter = kelos_store::SlotFilter { workflow: Some(bench.names[0].clone()), ..Default::default() };
    let all = kelos_store::StoredState::reader(&bench.store)
        .slot_states(&filter, kelos_store::PageRequest::oldest(200_000))
        .expect("a page");
    println!("the states of all {} slots of a workflow: {:?}", all.rows.len(), reading.elapsed());
}

struct Bench {
    store: SqliteStore,
    lease: Lease,
    names: Vec<WorkflowId>,
    /// The kind of the slots.
    of: String,
    seq: u64,
    turn: u64,
    now: i64,
    /// The last event and the last turn of each hour.
    ends: Vec<(u64, u64)>,
    /// The durations of turns since the last report: of those that run slots, and of those that remove history.
    ordinary: Vec<Duration>,
    removing: Vec<Duration>,
}

/// A slot on its way through a run.
struct Going {
    id: SlotRef,
    slot: Slot,
    run: Option<Run>,
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).expect("a moment in time")
}

impl Bench {
    fn open(path: &Path, workflows: usize, of: String) -> Bench {
        let mut store = SqliteStore::open(path).expect("the store opens");
        let lease = store.lease("bench", moment(0), 60_000).expect("the lease").expect("the lead is free");
        let names = (0..workflows).map(|n| WorkflowId::new(&format!("workflow-{n:04}")).expect("a name")).collect();
        let (ordinary, removing) = (Vec::new(), Vec::new());
        Bench { store, lease, names, of, seq: 0, turn: 0, now: 0, ends: Vec::new(), ordinary, removing }
    }

    fn happen(&mut self, going: &mut Going, what: SlotEvent, events: &mut Vec<EventRecord>) {
        self.seq += 1;
        self.now += 7;
        let (seq, at, previous) = (self.seq, moment(self.now), going.slot.last_event);
        going.slot = apply(Some(going.slot.clone()), &what, at, seq).expect("it can happen");
        events.push(EventRecord { seq, at, previous, event: Event::Slot { slot: going.id.clone(), what } });
    }

    fn commit(&mut self, commit: Commit) -> Duration {
        self.turn += 1;
        let started = Instant::now();
        self.store.commit(self.lease, &Commit { at: moment(self.now), ..commit }).expect("the commit");
        started.elapsed()
    }

    fn write(&mut self, going: &[Going], events: Vec<EventRecord>) {
        let slots = going.iter().map(|going| SlotRow { id: going.id.clone(), slot: going.slot.clone() }).collect();
        let runs = going.iter().filter_map(|going| going.run.clone()).collect();
        let spent = self.commit(Commit { events, slots, runs, ..Commit::default() });
        self.ordinary.push(spent);
    }

    /// The key of the slot of an hour.
    fn key(&self, at: i64) -> SlotKey {
        let drawn = scramble(self.seq);
        match &*self.of {
            "starts" => SlotKey::Moment(moment(at + (drawn % 3_000_000) as i64)),
            "names" => SlotKey::Named(RunName::new(&format!("{drawn:016x}-{:016x}", scramble(drawn))).expect("a name")),
            "jobs" => SlotKey::Job(format!("{}_client-{}", moment(at).strftime("%Y%m%d%H"), drawn % 50).into()),
            _ => SlotKey::Time(moment(at)),
        }
    }

    /// A fact for a start: a run of another program has ended.
    fn collected(&self, going: &Going) -> SlotEvent {
        let what = Occurrence::Ended {
            program: WorkflowId::new("upstream").expect("a name"),
            state: SlotState::Succeeded,
            run: Some(format!("{:016x}", scramble(going.slot.last_event))),
            arguments: [("day".to_owned(), moment(self.now).strftime("%F").to_string().into())].into(),
            outputs: Default::default(),
        };
        SlotEvent::Collected { what, fact: None }
    }

    /// An hour's slots are planned together, and run some at a time; then what is too old goes.
    fn run_hour(&mut self, hour: usize) {
        let at = (FIRST_HOUR + hour as i64) * HOUR;
        self.now = at + HOUR;
        let mut events = Vec::new();
        let mut going = Vec::new();
        for name in self.names.clone() {
            self.seq += 1;
            let backfill = (self.of == "backfills").then(|| format!("{name}-{}", hour / 240));
            let backfill = backfill.map(|backfill| BackfillId::new(&backfill).expect("a name"));
            let (origin, key) = (if backfill.is_some() { Origin::Backfill } else { Origin::Schedule }, self.key(at));
            let id = SlotRef::new(name, key);
            let what = SlotEvent::Planned { origin, priority: 0, backfill, by: None, reason: None };
            let slot = apply(None, &what, moment(self.now), self.seq).expect("it can be planned");
            let event = Event::Slot { slot: id.clone(), what };
            events.push(EventRecord { seq: self.seq, at: moment(self.now), previous: 0, event });
            going.push(Going { id, slot, run: None });
        }
        self.write(&going, events);
        for going in going.chunks_mut(TOGETHER) {
            self.dispatch(going);
            self.start(going);
            self.end(going);
        }
        self.ends.push((self.seq, self.turn));
        self.remove(hour);
    }

    fn dispatch(&mut self, going: &mut [Going]) {
        let mut events = Vec::new();
        for going in going.iter_mut() {
            if self.of == "starts" {
                let what = self.collected(going);
                self.happen(going, what, &mut events);
            }
            let until = going.id.key.time().unwrap_or(moment(self.now));
            let explanation = Reason::leaf(ReasonKind::Delay, Answer::Met, Finding::DelayUntil { now: until, until });
            self.happen(going, SlotEvent::TriggerMet { explanation }, &mut events);
            self.happen(going, SlotEvent::Dispatched { run: 1, worker: None, batch: None }, &mut events);
            going.run = Some(Run {
                id: RunId { slot: going.id.clone(), number: 1 },
                seq: self.seq,
                previous: 0,
                state: RunState::Dispatched,
                executor: "command".to_owned(),
                external_id: None,
                dispatched_at: moment(self.now),
                started_at: None,
                ended_at: None,
                outcome: None,
                arguments: Default::default(),
                outputs: None,
                batch: None,
            });
        }
        self.write(going, events);
    }

    fn start(&mut self, going: &mut [Going]) {
        let mut events = Vec::new();
        for going in going.iter_mut() {
            // A process and when it began, as the executor of commands names them.
            let external_id = format!("{} {}", 300 + scramble(self.seq) % 32_000, self.now / 10);
            self.happen(going, SlotEvent::Started { run: 1, external_id: external_id.clone() }, &mut events);
            let run = going.run.as_mut().expect("it was dispatched");
            (run.state, run.external_id, run.started_at) =
                (RunState::Running, Some(external_id), Some(moment(self.now)));
        }
        self.write(going, events);
    }

    fn end(&mut self, going: &mut [Going]) {
        let mut events = Vec::new();
        for going in going.iter_mut() {
            self.now += (scramble(self.seq) % 3_000) as i64;
            let failed = scramble(self.seq).is_multiple_of(100);
            let outcome = if failed {
                Outcome::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None }
            } else {
                Outcome::Succeeded
            };
            let run = going.run.as_mut().expect("it was dispatched");
            (run.state, run.outcome, run.ended_at) = (outcome.state(), Some(outcome.clone()), Some(moment(self.now)));
            let what = if failed { SlotEvent::Failed { run: 1, outcome } } else { SlotEvent::Succeeded { run: 1 } };
            self.happen(going, what, &mut events);
        }
        self.write(going, events);
    }

    /// Removes the hour that has become too old, in portions.
    fn remove(&mut self, hour: usize) {
        let Some(old) = hour.checked_sub(KEPT_HOURS) else { return };
        let mut first = old.checked_sub(1).map_or(1, |before| self.ends[before].0 + 1);
        let (last, until) = self.ends[old];
        while first <= last {
            let end = last.min(first + PORTION - 1);
            let trim = Some(Trim { until, stretches: vec![(first, end)] });
            let spent = self.commit(Commit { trim, ..Commit::default() });
            self.removing.push(spent);
            first = end + 1;
        }
    }

    fn report(&mut self, day: usize, path: &Path) {
        let size = std::fs::metadata(path).expect("the file").len();
        let tables = self.store.tables().expect("the sizes");
        let of =
            |name: &str| tables.iter().find(|table| table.name == name).map_or((0, 0), |one| (one.rows, one.bytes));
        let (rows, bytes) = of("slots");
        let (blocks, packed) = of("slot_blocks");
        let packed = packed + of("backfill_blocks").1;
        let in_blocks = (day * 24 * self.names.len()).saturating_sub(rows as usize);
        println!(
            "day {day}: {:.1} MB; events {:.1} MB, runs {:.1} MB, {rows} rows of slots {:.1} MB, {blocks} blocks {:.2} MB; turns {}; removing {}",
            size as f64 / 1e6,
            of("events").1 as f64 / 1e6,
            of("runs").1 as f64 / 1e6,
            bytes as f64 / 1e6,
            packed as f64 / 1e6,
            figures(&mut self.ordinary),
            figures(&mut self.removing),
        );
        println!(
            "  a slot in a row {:.1} bytes, in a block {:.1} bytes ({in_blocks} slots)",
            bytes as f64 / rows.max(1) as f64,
            packed as f64 / in_blocks.max(1) as f64
        );
        self.ordinary.clear();
        self.removing.clear();
    }
}

fn figures(spent: &mut [Duration]) -> String {
    spent.sort();
    let at = |share: f64| spent.get(((spent.len() as f64 * share) as usize).min(spent.len().saturating_sub(1)));
    match (at(0.5), at(0.99)) {
        (Some(half), Some(most)) => format!("p50 {half:.2?}, p99 {most:.2?} ({})", spent.len()),
        _ => "none".to_owned(),
    }
}
