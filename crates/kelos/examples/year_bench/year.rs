//! The year: the real turns over a real file, on a clock that jumps from one moment to the next at which something happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Ask, Command, Config, Core, Input, Surroundings, TrimHistory, drive, live_through};
use kelos_engine::trimming::TrimLook;
use kelos_engine::turn::{TurnError, Turns};
use kelos_model::Actor;
use kelos_model::history::{Retention, Term};
use kelos_model::workflow::Provenance;
use kelos_store::{Journal, StoredState};
use kelos_store_sqlite::SqliteStore;

use crate::quickstart::copies;
use crate::teller::Teller;
use crate::world::World;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// The newest runs of each workflow that are kept, whatever their age.
const NEWEST: u32 = 100;
/// The time between two looks of alerts at the log.
const LOOK: SignedDuration = SignedDuration::from_mins(10);

/// The size of a year.
pub(crate) struct Plan {
    /// How often the quickstart is there.
    pub(crate) copies: usize,
    pub(crate) days: usize,
    /// The age in days at which history goes.
    pub(crate) kept: u32,
    pub(crate) seed: u64,
    /// One run in so many has trouble.
    pub(crate) trouble: u64,
    /// The days after which figures are taken, each time.
    pub(crate) month: usize,
    /// The file of the database.
    pub(crate) path: PathBuf,
}

/// Figures of a month.
#[derive(Debug)]
pub(crate) struct Month {
    /// The last day.
    pub(crate) day: usize,
    /// The bytes of the file, and of the tables in it.
    pub(crate) file: u64,
    pub(crate) tables: BTreeMap<String, (u64, u64)>,
    /// The durations of turns: of those in which something happens, and of those that remove history; in order.
    pub(crate) ordinary: Vec<Duration>,
    pub(crate) removing: Vec<Duration>,
}

/// The scheduler with all around it.
pub(crate) struct Year {
    store: SqliteStore,
    turns: Turns,
    now: Timestamp,
    end: Timestamp,
    term: Term,
    path: PathBuf,
    pub(crate) world: World,
    pub(crate) teller: Teller,
    next_look: Timestamp,
    next_day: Timestamp,
    day: usize,
    /// The days of a month.
    length: usize,
    month: Month,
    /// Whether the present turns remove history.
    removes: bool,
    report: Box<dyn FnMut(&Month)>,
}

impl Year {
    /// Lives through a year, and reports after each month.
    pub(crate) fn live(plan: &Plan, report: Box<dyn FnMut(&Month)>) -> Year {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
        let mut year = Year::new(plan, start, report);
        let all = copies(plan.copies, start);
        let first = Input::Definitions { provenance: Provenance::File, all, deployed: BTreeMap::new() };
        live_through(&mut year, vec![first]).expect("the definitions");
        drive(&mut year).expect("the year");
        year.teller.recover();
        year.tell();
        year
    }

    fn new(plan: &Plan, start: Timestamp, report: Box<dyn FnMut(&Month)>) -> Year {
        let mut store = SqliteStore::open(&plan.path).expect("the store opens");
        let lease = store.lease("bench", start, 60_000).expect("the lease").expect("the lead is free");
        let (turns, _) = Turns::restore(config(), &mut store, lease, start).expect("an empty store");
        let usual = Retention { days: plan.kept, runs: NEWEST };
        let days = i64::try_from(plan.days).expect("some days");
        Year {
            store,
            turns,
            now: start,
            end: start + SignedDuration::from_hours(24 * days),
            term: Term { usual, projects: BTreeMap::new(), output: 0, archive: None },
            path: plan.path.clone(),
            world: World::new(plan.seed, plan.trouble),
            teller: Teller::new(plan.seed, start),
            next_look: start + LOOK,
            next_day: start + DAY,
            day: 0,
            length: plan.month,
            month: Month::new(),
            removes: false,
            report,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    fn ask(&mut self, by: &str, ask: impl Into<Ask>) {
        let asked = Input::Asked { token: 0, by: Actor::system(by), ask: ask.into(), warrant: None };
        live_through(self, vec![asked]).expect("a request");
    }

    /// Alerts read the log, and send what is due.
    fn tell(&mut self) {
        let reader = self.store.reader();
        self.teller.read(&*reader, self.now);
        self.keep();
        self.teller.send(self.now);
        self.keep();
    }

    fn keep(&mut self) {
        if let Some(ask) = self.teller.keeps() {
            self.ask("alerts", ask);
        }
    }

    /// Removes what has become too old, in portions of which each is a turn.
    fn trim(&mut self) {
        let (reader, term) = (self.store.reader(), self.term.clone());
        let mut look = TrimLook::new(&*reader, &term, self.now, u64::MAX);
        loop {
            let portion = look.portion().expect("a portion");
            if let Some(trim) = portion.trim {
                self.removes = true;
                self.ask("history", TrimHistory { trim });
                self.removes = false;
            }
            if portion.is_last {
                return;
            }
        }
    }

    /// A day is over.
    fn end_day(&mut self) {
        self.day += 1;
        self.trim();
        if self.day.is_multiple_of(self.length) || self.now >= self.end {
            let month = std::mem::replace(&mut self.month, Month::new());
            let month = month.closed(self.day, &self.path, &self.store);
            (self.report)(&month);
        }
    }
}

impl Surroundings for Year {
    type Trouble = TurnError;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, TurnError> {
        let happens = due.into_iter().chain(self.world.next()).min().unwrap_or(Timestamp::MAX);
        while self.next_look.min(self.next_day) <= happens {
            self.now = self.next_look.min(self.next_day);
            if self.now == self.next_look {
                self.next_look += LOOK;
                self.tell();
            }
            if self.now == self.next_day {
                self.next_day += DAY;
                self.end_day();
            }
            if self.now >= self.end {
                return Ok(None);
            }
        }
        self.now = happens.max(self.now);
        Ok(Some(self.world.happened(self.now)))
    }

    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, TurnError> {
        let began = Instant::now();
        let done = self.turns.turn(&mut self.store, now, inputs)?;
        assert!(done.broken.is_empty(), "{:?}", done.broken);
        if done.events > 0 || self.removes {
            let spent = if self.removes { &mut self.month.removing } else { &mut self.month.ordinary };
            spent.push(began.elapsed());
        }
        Ok(done.commands)
    }

    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, TurnError> {
        Ok(commands.into_iter().filter_map(|command| self.world.perform(command, now)).collect())
    }
}

/// Files tell of themselves, and no run falls silent, so nothing is asked again.
fn config() -> Config {
    let never = SignedDuration::from_hours(24 * 366 * 1000);
    Config { probe_first: never, probe_longest: never, patience: never, ..Config::default() }
}

impl Month {
    fn new() -> Month {
        let (ordinary, removing) = (Vec::new(), Vec::new());
        Month { day: 0, file: 0, tables: BTreeMap::new(), ordinary, removing }
    }

    fn closed(mut self, day: usize, path: &Path, store: &SqliteStore) -> Month {
        self.ordinary.sort();
        self.removing.sort();
        let tables = store.tables().expect("the sizes").into_iter();
        let tables = tables.map(|one| (one.name.clone(), (one.rows, one.bytes))).collect();
        let file = std::fs::metadata(path).expect("the file").len();
        Month { day, file, tables, ..self }
    }
}
