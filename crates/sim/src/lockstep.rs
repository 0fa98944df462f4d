//! The lockstep: the incremental core and the full scan, side by side, without faults. After every step all slots agree.

mod backlogs;
mod fleet;
mod within;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Ask, Command, Config, Core, Input, Surroundings, drive, live_through};
use kelos_engine::turn::Turns;
use kelos_model::facts::Tally;
use kelos_model::run::Report;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Arguments, Collection, Occurrence, Outcome, Run, RunId, SlotRef, SlotState, Workflow};
use kelos_store::{Journal, MemoryDisk, MemoryStore, PageRequest, SlotFilter, StoredState};

use crate::past::Past;
use crate::rng::Rng;
use crate::spec::Spec;
use crate::workload::{Workload, resolved};
use crate::world::World;
use backlogs::Backlogs;
use fleet::{Fleet, Turnout};
use within::{Requests, WishChange};
use workload::{asks_functions, redefines_jobs};

struct Pair {
    turns: Turns,
    disk: MemoryDisk,
    store: MemoryStore,
    rng: Rng,
    spec: Spec,
    world: World,
    now: Timestamp,
    /// The live runs of both, and their outcomes.
    going: BTreeMap<RunId, (Timestamp, Outcome)>,
    /// The digest of the last deployment of each project.
    digests: BTreeMap<String, String>,
    /// The definitions in the files.
    files: Vec<Arc<Workflow>>,
    /// Inputs that the core gets later, all in one turn.
    untold: Vec<Input>,
    /// Whether the core acts on its inputs.
    is_ticking: bool,
    /// Whether its next tick evaluates everything again.
    looks_again: bool,
    /// The runs that it started, with their workers.
    started: Vec<Start>,
    /// The inputs of these.
    given: BTreeMap<RunId, Arc<Arguments>>,
    fleet: Fleet,
    config: Config,
    requests: Requests,
}

/// A run, and the worker that runs it.
type Start = (RunId, Option<Arc<str>>);

/// Runs a seed in lockstep: once with probes, and once without, but with all limits, pools and workers. Returns the number of
/// slot states that were compared.
///
/// # Errors
/// The disagreement.
pub fn run(seed: u64) -> Result<u64, String> {
    let compared = through(seed, &workload::with_questions(seed))?;
    let more = through(seed, &workload::with_limits(seed)).map_err(|wrong| format!("with limits, {wrong}"))?;
    Ok(compared + more)
}

fn through(seed: u64, workload: &Workload) -> Result<u64, String> {
    let mut pair = Pair::new(seed, workload)?;
    let mut rng = Rng::new(seed ^ 0x57E9);
    let mut compared = 0;
    let mut now = workload.start;
    while now <= workload.end + SignedDuration::from_hours(3) {
        let next = now + SignedDuration::from_secs(rng.between(20, 5400));
        pair.between(workload, now, next)?;
        pair.step(next)?;
        compared += pair.compare()?;
        now = next;
    }
    Ok(compared)
}

impl Pair {
    fn new(seed: u64, workload: &Workload) -> Result<Pair, String> {
        let disk = MemoryDisk::new();
        let mut store = MemoryStore::on(&disk);
        let past = Past::new(seed, workload);
        past.import(&mut store, workload)?;
        let lease = store.lease("lockstep", workload.start, 10_000).map_err(|error| error.to_string())?;
        let lease = lease.ok_or("an empty store has a leader")?;
        let restored = Turns::restore(workload.config.clone(), &mut store, lease, workload.start);
        let (turns, _) = restored.map_err(|error| error.to_string())?;
        let mut spec = Spec::new(&workload.config, workload.meant.clone());
        spec.import(&past, workload);
        let (mut world, mut going) = (World::new(seed), BTreeMap::new());
        if let Some(run) = past.running(workload) {
            world.start(&run, workload.start);
            let execution = &world.runs[&run];
            going.insert(run.clone(), (execution.ends_at, execution.outcome.clone()));
        }
        let (rng, now) = (Rng::new(seed ^ 0xD0E5), workload.start);
        let (digests, files, untold) = Default::default();
        let (is_ticking, looks_again, started, given) = (false, false, Vec::new(), BTreeMap::new());
        let fleet = Fleet::new(workload);
        Ok(Pair {
            turns,
            disk,
            store,
            rng,
            spec,
            world,
            now,
            going,
            digests,
            files,
            untold,
            is_ticking,
            looks_again,
            started,
            given,
            fleet,
            config: workload.config.clone(),
            requests: Requests::new(workload),
        })
    }

    /// Applies the events between two steps: they are recorded, and have no consequences yet.
    fn between(&mut self, workload: &Workload, after: Timestamp, until: Timestamp) -> Result<(), String> {
        let Some(from) = self.falls_silent(after, until) else {
            return self.happen(workload, after, until, NewsTiming::AtOnce);
        };
        let hearing = if asks_functions(workload) { NewsTiming::Late } else { NewsTiming::Together };
        if hearing == NewsTiming::Together && !redefines_jobs(workload) && self.rng.percent(60) {
            // A process ticks with all its inputs, so that it never leaves them half done.
            self.happen(workload, after, from, NewsTiming::AtOnce)?;
            self.step(from)?;
            self.now = until;
            self.restart(workload)?;
            return self.happen(workload, from, until, hearing);
        }
        self.happen(workload, after, from, NewsTiming::AtOnce)?;
        self.happen(workload, from, until, hearing)
    }

    /// Gives both all inputs after a moment until another.
    fn happen(
        &mut self,
        workload: &Workload,
        after: Timestamp,
        until: Timestamp,
        hearing: NewsTiming,
    ) -> Result<(), String> {
        let first = after == workload.start;
        let within = |at: Timestamp| (after < at || (first && at == after)) && at <= until;
        let mut happenings: Vec<(Timestamp, u8, SpanEvent)> = Vec::new();
        happenings.extend(
            workload
                .definitions
                .iter()
                .filter(|(at, _)| within(*at))
                .map(|(at, all)| (*at, 0, SpanEvent::Defined(all.clone()))),
        );
        happenings.extend(
            workload.asks.iter().filter(|(at, _)| within(*at)).map(|(at, ask)| (*at, 1, SpanEvent::Asked(ask.clone()))),
        );
        happenings.extend(
            self.going
                .iter()
                .filter(|(_, (at, _))| within(*at))
                .map(|(run, (at, _))| (*at, 2, SpanEvent::Ended(run.clone()))),
        );
        let wishes = self.requests.happenings(&self.going, &self.world);
        happenings.extend(wishes.filter(|(at, _)| within(*at)).map(|(at, wish)| (at, 4, SpanEvent::Wished(wish))));
        let turnouts = self.fleet.turnouts().filter(|(at, _)| within(*at));
        happenings.extend(turnouts.map(|(at, turnout)| (at, 3, SpanEvent::TurnedOut(turnout))));
        happenings.sort_by_key(|(at, order, _)| (*at, *order));
        let together = hearing == NewsTiming::Together;
        for (at, _, happening) in happenings {
            self.now = if hearing == NewsTiming::AtOnce { at } else { until };
            match happening {
                SpanEvent::Defined(all) => {
                    let deployed = workload.deployed(at, |project| self.digests.get(project).cloned());
                    let digests =
                        deployed.iter().filter_map(|(project, how)| Some((project.clone(), how.digest.clone()?)));
                    self.digests.extend(digests);
                    self.files.clone_from(&all);
                    self.spec.define(&all, &deployed, self.now);
                    self.tell(Input::Definitions { provenance: Provenance::File, all, deployed }, false)?;
                }
                SpanEvent::Asked(ask) => self.ask(ask, together)?,
                SpanEvent::Ended(run) => self.end(&run, together)?,
                SpanEvent::Wished(wish) => self.wish(&wish, together)?,
                SpanEvent::TurnedOut(turnout) => {
                    let worker = self.fleet.turn_out(&turnout);
                    self.offer(&worker, together)?;
                }
            }
        }
        self.now = until;
        Ok(())
    }

    /// Sometimes the clock jumps, or no process schedules for a while: the inputs from then on arrive later, all in one turn.
    fn falls_silent(&mut self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let span = until.as_millisecond() - after.as_millisecond();
        let from = SignedDuration::from_millis(self.rng.between(0, span));
        self.rng.percent(35).then(|| after + from)
    }

    /// Lets another process continue.
    fn restart(&mut self, workload: &Workload) -> Result<(), String> {
        self.flush()?;
        // The old process must be gone before the next may lead.
        self.store = MemoryStore::on(&MemoryDisk::new());
        self.store = MemoryStore::on(&self.disk);
        let lease = self.store.lease("lockstep", self.now, 10_000).map_err(|error| error.to_string())?;
        let lease = lease.ok_or("there is no other leader")?;
        let restored = Turns::restore(workload.config.clone(), &mut self.store, lease, self.now);
        (self.turns, _) = restored.map_err(|error| error.to_string())?;
        self.spec.led_by_another();
        let all = self.files.clone();
        self.tell(Input::Definitions { provenance: Provenance::File, all, deployed: BTreeMap::new() }, false)?;
        for worker in self.fleet.present() {
            self.offer(&worker, false)?;
        }
        self.repeat_requests()
    }

    /// Gives both the current offer of a worker.
    fn offer(&mut self, worker: &Arc<str>, is_late: bool) -> Result<(), String> {
        let offer = self.fleet.offer(worker);
        self.spec.offered(worker, offer.clone());
        self.tell(Input::Offered { worker: worker.clone(), offer }, is_late)
    }

    /// Gives the core an input: at once, or together with the next one.
    fn tell(&mut self, input: Input, is_late: bool) -> Result<(), String> {
        self.untold.push(input);
        if is_late { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), String> {
        let inputs = std::mem::take(&mut self.untold);
        self.feed(inputs, false).map(drop)
    }

    fn ask(&mut self, ask: Ask, is_late: bool) -> Result<(), String> {
        let (now, slots) = (self.now, &self.spec.slots);
        let ask = resolved(ask, |id| slots.keys().filter(|slot| slot.workflow == *id).cloned().collect());
        let mut killed = Vec::new();
        for run in self.spec.asked(&ask, now) {
            self.world.cancel(&run, now);
            if self.going.remove(&run).is_some() {
                self.spec.ended(&run, &Outcome::Killed, now);
                killed.push(run);
            }
        }
        // A request that ends runs is answered at once.
        let is_late = is_late && matches!(ask, Ask::Tell(_));
        self.tell(Input::Asked { token: 0, by: Actor::person("somebody"), ask, warrant: None }, is_late)?;
        killed.iter().try_for_each(|run| self.free(run, is_late))
    }

    fn end(&mut self, run: &RunId, is_late: bool) -> Result<(), String> {
        let Some((_, outcome)) = self.going.remove(run) else { return Ok(()) };
        if let Some(outputs) = self.world.outputs(run) {
            self.spec.gave(run, &outputs);
            self.tell(Input::RunReported { run: run.clone(), report: Report::Gave { outputs } }, is_late)?;
        }
        self.spec.ended(run, &outcome, self.now);
        self.tell(Input::RunReported { run: run.clone(), report: Report::Ended { outcome } }, is_late)?;
        self.free(run, is_late)
    }

    /// Lets the worker of a run offer to run one more.
    fn free(&mut self, run: &RunId, is_late: bool) -> Result<(), String> {
        let Some(worker) = self.fleet.ended(run) else { return Ok(()) };
        self.offer(&worker, is_late)
    }

    /// Steps both at a moment until nothing more can happen at it.
    fn step(&mut self, now: Timestamp) -> Result<(), String> {
        self.now = now;
        self.looks_again = true;
        loop {
            let from_spec = self.spec.step(now, &self.world);
            let at_worker = |run: RunId| {
                let worker = self.spec.worker_of(&run.slot).cloned();
                (run, worker)
            };
            let mut from_spec: Vec<Start> = from_spec.into_iter().map(at_worker).collect();
            let inputs = std::mem::take(&mut self.untold);
            let mut from_core = self.feed(inputs, true)?;
            self.compare_answers()?;
            from_spec.sort();
            from_core.sort();
            if from_spec != from_core {
                return Err(format!("at {now} the full scan starts {from_spec:?}, the core {from_core:?}"));
            }
            self.compare_inputs()?;
            if from_core.is_empty() {
                return Ok(());
            }
            for (run, worker) in &from_core {
                self.fleet.started(run, worker.as_ref());
                self.world.start(run, now);
                let execution = &self.world.runs[run];
                self.going.insert(run.clone(), (execution.ends_at, execution.outcome.clone()));
            }
            let world = &self.world;
            let over: Vec<_> = from_core.iter().filter(|(run, _)| world.runs[run].ends_at <= now).collect();
            for (run, _) in over {
                self.end(run, false)?;
            }
        }
    }

    /// Feeds inputs to the core and answers its probes and starts at once. Returns the runs that it started.
    fn feed(&mut self, inputs: Vec<Input>, is_ticking: bool) -> Result<Vec<Start>, String> {
        self.is_ticking = is_ticking;
        live_through(self, inputs)?;
        drive(self)?;
        Ok(std::mem::take(&mut self.started))
    }

    /// Checks what the runs are given that both have just started.
    fn compare_inputs(&mut self) -> Result<(), String> {
        for (run, found) in std::mem::take(&mut self.given) {
            let wanted = self.spec.inputs(&run);
            if *found != wanted {
                return Err(format!(
                    "at {} {run} is given {wanted:?} in the full scan, {found:?} in the core",
                    self.now
                ));
            }
        }
        Ok(())
    }

    fn compare(&self) -> Result<u64, String> {
        let reader = self.store.reader();
        let backlogs = Backlogs::of(&*reader, &self.config)?;
        let page =
            reader.slots(&SlotFilter::default(), PageRequest::newest(crate::ALL)).map_err(|error| error.to_string())?;
        let core: BTreeMap<SlotRef, _> = page.rows.into_iter().map(|row| (row.id, row.slot)).collect();
        for (id, wanted) in &self.spec.slots {
            let Some(found) = core.get(id) else {
                return Err(format!("at {} the core has no {id}: {wanted:?}", self.now));
            };
            // The full scan evaluates all of them, the core those of a backlog when it is their turn.
            let waits_its_turn = wanted.state == SlotState::Queued && backlogs.has(id);
            let same = (found.state == wanted.state || waits_its_turn && found.state == SlotState::Waiting)
                && found.last_run == wanted.last_run
                && found.run_alive == wanted.alive
                && found.priority == wanted.priority
                && within::are_same(&found.held, &wanted.requests)
                && has_collected(found.collected.as_deref(), wanted.collected.as_ref())
                && ((found.retries, found.again) == (wanted.retries, wanted.again)
                    || wanted.state == SlotState::Killed);
            if !same {
                let runs: Vec<Run> = reader.slot_runs(id).unwrap_or_default();
                return Err(format!(
                    "at {} the full scan has {id} as {wanted:?}, the core as {found:?}; runs {runs:?}",
                    self.now
                ));
            }
        }
        if let Some(extra) = core.keys().find(|id| !self.spec.slots.contains_key(id)) {
            return Err(format!("at {} the core has {extra}, the full scan has not", self.now));
        }
        let early = self.spec.queued().into_iter().find_map(|queue| backlogs.early(queue));
        if let Some((slot, ahead)) = early {
            return Err(format!(
                "at {} {slot} is left in the backlog, and only {ahead} are queued before it",
                self.now
            ));
        }
        Ok(core.len() as u64)
    }
}

impl Surroundings for Pair {
    type Trouble = String;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// Stops the time until both are compared.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, String> {
        let is_left = self.is_ticking && due.is_some_and(|due| due <= self.now);
        Ok(is_left.then(Vec::new))
    }

    fn tick(&mut self) -> Vec<Input> {
        let again = Input::Woke { only: None, look_again: std::mem::take(&mut self.looks_again) };
        self.is_ticking.then_some(again).into_iter().collect()
    }

    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, String> {
        let acted = self.turns.turn(&mut self.store, now, inputs).map_err(|error| error.to_string())?;
        match acted.broken.first() {
            Some(broken) => Err(broken.breach.to_string()),
            None => Ok(acted.commands),
        }
    }

    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, String> {
        let mut inputs = Vec::new();
        for command in commands {
            match command {
                Command::Probe(probe) => {
                    let answer = self.world.answer(&probe, now);
                    inputs.push(Input::ProbeAnswered { probe, answer });
                }
                Command::Relate(relation) => {
                    let answer = Ok(self.spec.apps.related(&relation));
                    inputs.push(Input::Related { relation, answer });
                }
                Command::StartRun { run, worker, inputs: given, .. } => {
                    self.given.insert(run.clone(), given);
                    let external_id = format!("x-{run}");
                    inputs.push(Input::RunReported { run: run.clone(), report: Report::Started { external_id } });
                    self.started.push((run, worker));
                }
                Command::CancelRun { run, .. } => {
                    inputs.push(Input::RunReported { run, report: Report::Ended { outcome: Outcome::Killed } });
                }
                Command::AnswerRun { run, request, answer, .. } => self.requests.answered((run, request, answer)),
                Command::CheckRun { .. } | Command::Reply { .. } => {}
            }
        }
        Ok(inputs)
    }
}

/// Whether a slot has collected the same facts in both. The order in which one request ends several runs is the scheduler's own, so that
/// any of these may be the first killed one.
fn has_collected(found: Option<&Collection>, wanted: Option<&Collection>) -> bool {
    let (Some(found), Some(wanted)) = (found, wanted) else { return found.is_none() && wanted.is_none() };
    let tallies = |one: &Collection| {
        let all = one.tallies.iter();
        let first = |tally: &Tally| {
            tally.first.clone().filter(|first| !matches!(**first, Occurrence::Ended { state: SlotState::Killed, .. }))
        };
        all.map(|(about, tally)| (about.clone(), tally.facts, tally.count, first(tally))).collect::<Vec<_>>()
    };
    let rest = |one: &Collection| (one.since, one.asked.clone(), one.met, one.again);
    tallies(found) == tallies(wanted) && rest(found) == rest(wanted)
}

/// The moment at which the two get an input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewsTiming {
    /// As it happens.
    AtOnce,
    /// At the end of the span, one after the other.
    Late,
    /// At the end of the span, in one turn.
    Together,
}

enum SpanEvent {
    Defined(Vec<Arc<Workflow>>),
    Asked(Ask),
    Ended(RunId),
    TurnedOut(Turnout),
    Wished(WishChange),
}
