//! The main simulation: a seed's workload and faults, through the real loop.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    Ask, Command, Core, DEPLOYMENTS, Input, Resume, SetRegister, Surroundings, TrimHistory, WORKER, drive, live_through,
};
use kelos_engine::turn::{Remedy, TurnError, Turns};
use kelos_model::jobs::Relation;
use kelos_model::run::Report;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, PermitAnswer, PoolId, Probe, RunId, SlotRef, WorkflowId};
use kelos_store::{Journal, MemoryDisk, MemoryStore, PageRequest, SlotFilter, StoreError, StoredState};

use crate::faulty::FaultyStore;
use crate::fleet::{Consequences, Deed, Fleet, FleetView};
use crate::judge::events::Watch as EventWatch;
use crate::judge::jobs::Watch;
use crate::past::Past;
use crate::rng::Rng;
use crate::trims::{self, FIRST_WITH_TRIMS, Whole};
use crate::workload::{Workload, resolved};
use crate::world::{RunRequests, World};
use crate::{Figures, judge, planted};

/// How long after the last fault everything must have settled.
const SETTLING: SignedDuration = SignedDuration::from_hours(8);

enum Action {
    Input(Input),
    Look(Probe),
    Relate(Relation),
    Work(Deed),
    /// A live run begins to want permits, or wants them no more.
    Wish(RunId, u64, Option<BTreeMap<PoolId, u32>>),
    Crash,
    Jump,
    /// The leader ends gracefully, or is killed, and another process leads.
    Shift,
    /// Another process takes the lease while this one stalls.
    Overtake,
    /// Old history is removed from the log.
    Trim,
}

/// A scheduler in its simulated environment.
pub struct Drive {
    workload: Workload,
    world: World,
    fleet: Fleet,
    watch: Watch,
    events: EventWatch,
    rng: Rng,
    /// How long no process schedules after a crash.
    naps: Rng,
    /// When history is removed, and which.
    trimming: Rng,
    disk: MemoryDisk,
    /// The disk that keeps removed history, if any is removed: judges read it.
    whole: Option<Whole>,
    store: FaultyStore,
    turns: Turns,
    agenda: BTreeMap<(Timestamp, u64), Action>,
    count: u64,
    /// The true time.
    now: Timestamp,
    /// The moment until which turns are taken.
    until: Timestamp,
    /// The error of the scheduler's clock.
    skew: SignedDuration,
    next_definitions: usize,
    /// How many of a thousand operations of the store fail.
    faults: u64,
    /// How many turns were taken at the same moment.
    turns_at_once: u64,
    /// The workflow of which an invariant is broken on purpose.
    planted: Option<WorkflowId>,
    /// The requests of runs.
    asking: BTreeMap<RunId, RunRequests>,
    figures: Figures,
}

/// Runs a seed with faults, and judges it.
///
/// # Errors
/// The findings of the judges.
pub fn run(seed: u64) -> Result<Figures, String> {
    through(Workload::new(seed), seed)
}

/// The same, with an invariant of one of its workflows broken on purpose until the faults stop. If the seed has no workflow for
/// that, nothing is broken.
///
/// # Errors
/// The findings of the judges.
pub fn planted(seed: u64) -> Result<Figures, String> {
    let mut workload = Workload::new(seed);
    workload.config.planted = planted::of(seed, &workload);
    if workload.config.planted.is_none() {
        return Ok(Figures::default());
    }
    through(workload, seed)
}

fn through(workload: Workload, seed: u64) -> Result<Figures, String> {
    let mut drive = Drive::new(workload, seed)?;
    drive.until(drive.workload.end)?;
    drive.calm()?;
    drive.until(drive.workload.end + SETTLING)?;
    drive.watch.at_rest()?;
    drive.events.at_rest(&drive.workload, drive.now)?;
    drive.figures.late = judge::at_rest(&drive.workload, &drive.world, drive.kept(), drive.turns.core(), drive.now)?;
    planted::judge(drive.planted.as_ref(), drive.kept())?;
    if let Some(whole) = &drive.whole {
        let (left, whole) = (MemoryStore::on(&drive.disk), MemoryStore::on(whole.disk()));
        drive.figures.removed = trims::judge(&*left.reader(), &*whole.reader())?;
    }
    Ok(drive.figures)
}

impl Drive {
    fn new(workload: Workload, seed: u64) -> Result<Drive, String> {
        let planted = workload.config.planted.as_ref().map(|planted| planted.workflow.clone());
        let mut rng = Rng::new(seed ^ 0xFA17);
        let disk = MemoryDisk::new();
        let per_mille = *rng.pick(&[0, 5, 30]);
        let past = Past::new(seed, &workload);
        past.import(&mut MemoryStore::on(&disk), &workload)?;
        let whole = (seed >= FIRST_WITH_TRIMS).then(|| Whole::of(&past, &workload)).transpose()?;
        let kept = whole.as_ref().map_or(&disk, Whole::disk);
        let mut world = World::new(seed);
        // It is live while the scheduler starts, and is found again.
        past.running(&workload).iter().for_each(|run| {
            world.start(run, workload.start);
        });
        let (store, turns, commands) = open(&disk, whole.as_ref(), &workload, rng.bits(), per_mille, workload.start)?;
        let now = workload.start;
        let mut drive = Drive {
            fleet: Fleet::new(&workload),
            watch: Watch::new(&workload, kept),
            events: EventWatch::new(&workload, kept),
            workload,
            world,
            rng,
            naps: Rng::new(seed ^ 0x51EE),
            trimming: Rng::new(seed ^ 0x7219),
            disk,
            whole,
            store,
            turns,
            agenda: BTreeMap::new(),
            count: 0,
            now,
            until: now,
            skew: SignedDuration::ZERO,
            next_definitions: 0,
            faults: per_mille,
            turns_at_once: 0,
            planted,
            asking: BTreeMap::new(),
            figures: Figures::default(),
        };
        drive.send(commands);
        drive.plan_faults();
        Ok(drive)
    }

    fn plan_faults(&mut self) {
        let span = self.workload.end.as_second() - self.workload.start.as_second();
        for (token, (at, ask)) in self.workload.asks.clone().into_iter().enumerate() {
            self.at(
                at,
                Action::Input(Input::Asked { token: token as u64, by: Actor::person("somebody"), ask, warrant: None }),
            );
        }
        for (at, deed) in self.fleet.agenda().collect::<Vec<_>>() {
            self.at(at, Action::Work(deed));
        }
        for at in self.workload.shifts.clone() {
            self.at(at, Action::Shift);
        }
        for _ in 0..self.rng.below(4) {
            let at = self.workload.start + SignedDuration::from_secs(self.rng.between(0, span));
            self.at(at, Action::Crash);
        }
        for _ in 0..self.rng.below(3) {
            let at = self.workload.start + SignedDuration::from_secs(self.rng.between(0, span));
            self.at(at, Action::Jump);
        }
        let trims = if self.whole.is_some() { self.trimming.between(1, 12) } else { 0 };
        for _ in 0..trims {
            let at = self.workload.start + SignedDuration::from_secs(self.trimming.between(0, span));
            self.at(at, Action::Trim);
        }
        for _ in 0..self.rng.below(2) {
            let at = self.workload.start + SignedDuration::from_secs(self.rng.between(0, span));
            self.at(at, Action::Overtake);
        }
    }

    /// The disk with all of the history.
    fn kept(&self) -> &MemoryDisk {
        self.whole.as_ref().map_or(&self.disk, Whole::disk)
    }

    /// Looks for history that goes, and has it removed now or a little later, when some of it may be needed again.
    fn trim(&mut self) -> Result<(), String> {
        let (now, reader) = (self.clock(), MemoryStore::on(&self.disk).reader());
        let trims = trims::look(&*reader, now, &mut self.trimming).map_err(|error| error.to_string())?;
        for trim in trims {
            let wait = *self.trimming.pick(&[0, 1, 60_000, 3_600_000]);
            let ask = Ask::TrimHistory(TrimHistory { trim });
            self.after(
                wait,
                Action::Input(Input::Asked { token: 0, by: Actor::system("history"), ask, warrant: None }),
            );
        }
        Ok(())
    }

    fn at(&mut self, at: Timestamp, action: Action) {
        self.count += 1;
        self.agenda.insert((at, self.count), action);
    }

    fn after(&mut self, millis: i64, action: Action) {
        self.at(self.now + SignedDuration::from_millis(millis), action);
    }

    /// Takes turns until a moment.
    fn until(&mut self, end: Timestamp) -> Result<(), String> {
        self.until = end;
        drive(self)?;
        self.now = end;
        Ok(())
    }

    /// The inputs that are due by now.
    fn happens(&mut self) -> Result<Vec<Input>, String> {
        let mut inputs = Vec::new();
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Action::Input(Input::Asked { token, by, ask, warrant }) => {
                    let ask = resolved(ask, |id| self.slots_of(id));
                    inputs.push(Input::Asked { token, by, ask, warrant });
                }
                Action::Input(input) => inputs.push(input),
                Action::Look(probe) => {
                    let answer = self.world.answer(&probe, self.now);
                    inputs.push(Input::ProbeAnswered { probe, answer });
                }
                Action::Relate(relation) => inputs.push(self.related(relation)),
                Action::Work(deed) => inputs.extend(self.work(deed)?),
                Action::Wish(run, number, wanted) => self.wish(&run, number, wanted),
                Action::Crash => {
                    self.stay_down();
                    self.recover()?;
                }
                Action::Shift => self.shift()?,
                Action::Overtake => self.overtaken()?,
                Action::Trim => self.trim()?,
                Action::Jump => self.skew = SignedDuration::from_secs(self.rng.between(-3000, 3000)),
            }
        }
        // A new leader has the definitions before any input but the first reports of executors.
        let is_report = |input: &Input| matches!(input, Input::RunReported { .. });
        let (mut first, rest): (Vec<Input>, Vec<Input>) = inputs.into_iter().partition(is_report);
        first.extend(self.definitions_due());
        first.extend(rest);
        Ok(first)
    }

    /// The stored slots of a workflow.
    fn slots_of(&self, id: &WorkflowId) -> Vec<SlotRef> {
        let filter = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
        let page = MemoryStore::on(&self.disk).reader().slots(&filter, PageRequest::newest(crate::ALL));
        page.map(|page| page.rows.into_iter().map(|row| row.id).collect()).unwrap_or_default()
    }

    /// Applies an event among workers, and returns the inputs that follow from it.
    fn work(&mut self, deed: Deed) -> Result<Vec<Input>, String> {
        let faulty = self.faults > 0;
        let before = self.world.runs.len();
        let starts = matches!(deed, Deed::Order(..));
        let mut around = FleetView { world: &mut self.world, now: self.now, rng: &mut self.rng, faulty };
        let followed = self.fleet.happens(deed, &mut around)?;
        if starts {
            self.figures.runs += (self.world.runs.len() - before) as u64;
            judge::after_start(&self.workload, &self.world, self.now)?;
        }
        let Consequences { inputs, later, stale } = followed;
        self.later(later);
        for (wait, input) in stale {
            self.after(wait, Action::Input(input));
        }
        Ok(inputs)
    }

    /// The answer of a function, unless it fails.
    fn related(&mut self, relation: Relation) -> Input {
        let fails = self.faults > 0 && self.rng.percent(10);
        let answer = if fails { Err("it threw".to_owned()) } else { Ok(self.watch.apps.related(&relation)) };
        Input::Related { relation, answer }
    }

    fn later(&mut self, deeds: Vec<(i64, Deed)>) {
        for (wait, deed) in deeds {
            self.after(wait, Action::Work(deed));
        }
    }

    /// The true time of the next event, if the scheduler is due at a moment of its clock.
    fn next_moment(&self, due: Option<Timestamp>) -> Option<Timestamp> {
        let agenda = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let due = due.map(|at| if at <= self.clock() { self.now } else { at - self.skew });
        let definitions = self.workload.definitions.get(self.next_definitions).map(|(at, _)| *at);
        [agenda, due, definitions].into_iter().flatten().min()
    }

    /// The time of the scheduler's clock.
    fn clock(&self) -> Timestamp {
        kelos_engine::clock::whole_millis(self.now + self.skew)
    }

    /// The definitions in the files by now, if they changed: like the engine, only the latest.
    fn definitions_due(&mut self) -> Option<Input> {
        let due = self.workload.definitions[self.next_definitions..].iter().take_while(|(at, _)| *at <= self.now);
        let reader = MemoryStore::on(&self.disk).reader();
        let digest = |project: &str| reader.register(DEPLOYMENTS, project).ok()??.as_str().map(str::to_owned);
        self.next_definitions += due.clone().count();
        let (at, all) = due.last()?;
        Some(Input::Definitions {
            provenance: Provenance::File,
            all: all.clone(),
            deployed: self.workload.deployed(*at, digest),
        })
    }

    /// Half of the crashes are noticed late: no process schedules for hours.
    fn stay_down(&mut self) {
        if self.naps.percent(50) {
            let long = SignedDuration::from_secs(self.naps.between(1, 6 * 3600));
            self.now = (self.now + long).min(self.workload.end.max(self.now));
        }
    }

    /// Starts again from the stored state. The state inside the process is lost.
    fn recover(&mut self) -> Result<(), String> {
        self.figures.recoveries += 1;
        self.agenda.retain(|_, action| match action {
            Action::Input(Input::Asked { .. })
            | Action::Crash
            | Action::Shift
            | Action::Jump
            | Action::Overtake
            | Action::Trim => true,
            Action::Work(deed) => deed.outlives_the_leader(),
            Action::Wish(..) => true,
            Action::Input(_) | Action::Look(_) | Action::Relate(_) => false,
        });
        self.fleet.lose_the_desk();
        let per_mille = self.store.per_mille;
        let seed = self.rng.bits();
        // The old process must be gone before the next may lead.
        self.store = FaultyStore::on(&MemoryDisk::new(), 0, 0);
        let (store, turns, commands) =
            open(&self.disk, self.whole.as_ref(), &self.workload, seed, per_mille, self.clock())?;
        self.store = store;
        self.turns = turns;
        self.next_definitions = self.next_definitions.saturating_sub(1);
        self.fleet.judge(&self.workload, &commands)?;
        self.send(commands);
        Ok(())
    }

    /// Ends a process that led for a moment, most often gracefully, and starts the next leader.
    fn shift(&mut self) -> Result<(), String> {
        if self.rng.percent(80) {
            let inputs = self.fleet.dismiss();
            live_through(self, inputs)?;
        }
        self.recover()
    }

    /// Lets another process take the lease while this one stalled: all later writes of this one must be refused.
    fn overtaken(&mut self) -> Result<(), String> {
        let mut other = FaultyStore::on(&self.disk, 0, 0);
        let later = self.clock() + SignedDuration::from_hours(24);
        let lease = other.lease("another", later, 10_000).map_err(|error| format!("failed to {error}"))?;
        lease.ok_or("a stalled leader could not be overtaken")?;
        let ask =
            Ask::SetRegister(SetRegister { bucket: "b".to_owned(), key: "k".to_owned(), value: None, reason: None });
        let input = Input::Asked { token: 0, by: Actor::person("somebody"), ask, warrant: None };
        self.store.per_mille = 0;
        let clock = self.clock();
        match self.turns.turn(&mut self.store, clock, [input]) {
            Err(TurnError::Store(StoreError::Deposed { .. })) => {}
            other => return Err(format!("a deposed leader could write: {other:?}")),
        }
        drop(other);
        self.store.per_mille = self.faults;
        self.recover()
    }

    /// Ends the faults.
    fn calm(&mut self) -> Result<(), String> {
        self.faults = 0;
        self.store.per_mille = 0;
        self.skew = SignedDuration::ZERO;
        self.workload.config.planted = None;
        if let Some(workflow) = self.planted.clone() {
            // The person who mended it resumes it. A pause belongs to another person.
            let is_frozen = self.turns.core().is_frozen(&workflow) == Some(true);
            let ask = Ask::Resume(Resume { workflow, reason: None });
            if is_frozen {
                self.after(
                    1,
                    Action::Input(Input::Asked { token: 0, by: Actor::person("somebody"), ask, warrant: None }),
                );
            }
        }
        self.recover()
    }

    /// Only a start can cause two live runs of a slot, or one too many.
    fn perform_judged(&mut self, commands: Vec<Command>) -> Result<(), String> {
        let starts = commands.iter().any(|command| matches!(command, Command::StartRun { .. }));
        self.send(commands);
        if starts { judge::after_start(&self.workload, &self.world, self.now) } else { Ok(()) }
    }

    fn send(&mut self, commands: Vec<Command>) {
        for command in commands {
            self.events.replied(&command);
            match command {
                Command::Probe(probe) => {
                    let slow = if self.faults > 0 && self.rng.percent(3) { 200_000 } else { 3000 };
                    let wait = self.rng.between(1, slow);
                    let lost = self.faults > 0 && self.rng.percent(2);
                    if !lost {
                        self.after(wait, Action::Look(probe));
                    }
                }
                Command::StartRun { run, worker: Some(hint), .. } => {
                    let mut later = Vec::new();
                    if !self.fleet.start(&run, &hint, &self.world, &mut self.rng, &mut later) {
                        self.report_on(&run);
                    }
                    self.later(later);
                }
                Command::CheckRun { run, executor, .. } if executor == WORKER => {
                    let mut later = Vec::new();
                    self.fleet.check(&run, self.now, &mut later);
                    self.later(later);
                }
                Command::CancelRun { run, executor, .. } if executor == WORKER => {
                    let mut later = Vec::new();
                    if !self.fleet.cancel(&run, &mut self.world, self.now, &mut later) {
                        self.report_on(&run);
                    }
                    self.later(later);
                }
                Command::StartRun { run, about, .. } => {
                    let is_new = self.world.start(&run, self.now);
                    self.figures.runs += u64::from(is_new);
                    self.figures.repeated += u64::from(is_new && about.is_some());
                    self.report_on(&run);
                    if is_new && self.workload.has_runs_that_ask() {
                        self.plan_wishes(&run);
                    }
                }
                Command::CheckRun { run, .. } if !self.world.runs.contains_key(&run) => {
                    self.report(0, &run, Report::NeverStarted);
                }
                Command::CheckRun { run, .. } => self.report_on(&run),
                Command::CancelRun { run, .. } => {
                    self.world.cancel(&run, self.now);
                    self.report_on(&run);
                }
                Command::Relate(relation) => {
                    let slow = if self.faults > 0 && self.rng.percent(3) { 200_000 } else { 3000 };
                    let wait = self.rng.between(1, slow);
                    self.after(wait, Action::Relate(relation));
                }
                Command::AnswerRun { run, request, answer, .. } => self.answered(&run, request, &answer),
                Command::Reply { .. } => {}
            }
        }
    }

    /// Plans what a run asks for while it is live.
    fn plan_wishes(&mut self, run: &RunId) {
        for wish in self.world.wishes(run) {
            let at = self.now + wish.after;
            self.at(at, Action::Wish(run.clone(), wish.number, Some(wish.wanted)));
            self.at(at + wish.lasts, Action::Wish(run.clone(), wish.number, None));
        }
    }

    fn wish(&mut self, run: &RunId, number: u64, wanted: Option<BTreeMap<PoolId, u32>>) {
        if self.world.runs.get(run).is_none_or(|execution| execution.ends_at <= self.now) {
            return;
        }
        self.asking.entry(run.clone()).or_default().change(number, wanted);
        self.report_requests(run);
    }

    fn answered(&mut self, run: &RunId, number: u64, answer: &PermitAnswer) {
        self.figures.granted += u64::from(!matches!(answer, PermitAnswer::Refused(_)));
        let Some(RunRequests { open, .. }) = self.asking.get_mut(run) else { return };
        if *answer != PermitAnswer::Held {
            open.remove(&number);
        } else if !open.contains_key(&number) {
            // Nobody wants it any more.
            self.report_requests(run);
        }
    }

    fn report_requests(&mut self, run: &RunId) {
        if let Some(RunRequests { version, open: requests }) = self.asking.get(run).cloned() {
            self.report(0, run, Report::Asks { version, requests });
        }
    }

    fn report_on(&mut self, run: &RunId) {
        let Some(execution) = self.world.runs.get(run).cloned() else { return };
        self.report(0, run, Report::Started { external_id: format!("x-{run}") });
        let is_heard = !self.workload.schedules.is_empty() || run.slot.key.step().is_some() || self.workload.gives;
        let outputs = self.world.outputs(run).filter(|_| is_heard);
        if let Some(outputs) = outputs {
            self.report(1, run, Report::Gave { outputs });
        }
        self.report_requests(run);
        let left = (execution.ends_at.as_millisecond() - self.now.as_millisecond()).max(0);
        self.report(left, run, Report::Ended { outcome: execution.outcome });
    }

    /// Sends a report: late, sometimes twice, sometimes not at all.
    fn report(&mut self, after: i64, run: &RunId, report: Report) {
        let input = Input::RunReported { run: run.clone(), report };
        let faulty = self.store.per_mille > 0;
        let times = match self.rng.below(100) {
            0..=2 if faulty => 0,
            3..=7 if faulty => 2,
            _ => 1,
        };
        for _ in 0..times {
            let late = if faulty { self.rng.between(0, 2000) } else { 1 };
            self.after(after + late, Action::Input(input.clone()));
        }
    }
}

impl Surroundings for Drive {
    type Trouble = String;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    /// The time of the scheduler's clock.
    fn now(&self) -> Timestamp {
        self.clock()
    }

    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, String> {
        let Some(next) = self.next_moment(due).filter(|next| *next <= self.until) else { return Ok(None) };
        self.turns_at_once = if next > self.now { 0 } else { self.turns_at_once + 1 };
        if self.turns_at_once > 10_000 {
            return Err(format!("it takes turns without end at {}", self.now));
        }
        self.now = self.now.max(next);
        self.happens().map(Some)
    }

    fn turn(&mut self, clock: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, String> {
        self.figures.turns += 1;
        self.fleet.hear(&inputs);
        self.watch.hear(&inputs);
        let turn = self.turns.turn(&mut self.store, clock, inputs);
        // A tick with a low limit leaves slots for the next one, which is due at once. If a turn failed, they are left to
        // the next leader.
        let is_left = turn.is_err() || self.turns.core().is_due(clock);
        let has_more = self.workload.config.at_once < 1000 && is_left;
        self.watch.after_turn(has_more)?;
        self.events.after_turn()?;
        match turn {
            Ok(acted) => {
                self.figures.events += acted.events as u64;
                for broken in &acted.broken {
                    if self.planted.as_ref() != Some(&broken.breach.workflow) {
                        return Err(format!("{} breaks an invariant: {}", broken.input, broken.breach));
                    }
                    self.figures.frozen += u64::from(broken.remedy == Remedy::Frozen);
                    self.figures.set_aside += u64::from(broken.remedy == Remedy::SetAside);
                }
                if let Some(refused) = acted.refused.into_iter().next() {
                    return Err(refused);
                }
                self.fleet.committed();
                self.fleet.judge(&self.workload, &acted.commands)?;
                // A crash between the commit and the commands loses the last ones or all.
                if self.store.per_mille > 0 && self.rng.below(1000) < 10 {
                    let kept = usize::try_from(self.rng.below(acted.commands.len() as u64 + 1)).unwrap_or(0);
                    self.perform_judged(acted.commands.into_iter().take(kept).collect())?;
                    return self.recover().map(|()| Vec::new());
                }
                Ok(acted.commands)
            }
            Err(TurnError::Store(StoreError::Medium { .. })) => self.recover().map(|()| Vec::new()),
            Err(other) => Err(format!("failed to {other}")),
        }
    }

    /// All consequences follow later.
    fn perform(&mut self, _: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, String> {
        self.perform_judged(commands).map(|()| Vec::new())
    }
}

fn open(
    disk: &MemoryDisk,
    whole: Option<&Whole>,
    workload: &Workload,
    seed: u64,
    per_mille: u64,
    now: Timestamp,
) -> Result<(FaultyStore, Turns, Vec<Command>), String> {
    let mut store = FaultyStore::on(disk, seed, per_mille).beside(whole);
    let lease = store.lease("simulated", now, 10_000).map_err(|error| format!("failed to {error}"))?;
    let lease = lease.ok_or("a standby could not lead after a crash")?;
    let restored = Turns::restore(workload.config.clone(), &mut store, lease, now);
    let (turns, commands) = restored.map_err(|error| format!("failed to {error}"))?;
    Ok((store, turns, commands))
}
