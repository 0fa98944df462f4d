//! The surroundings of the scheduler in a rehearsal: paths that appear and disappear, fake and real runs, people.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    Ask, BackfillRequest, Command, Core, FireRequest, Input, Inspect, Inspection, Kill, Pause, RepeatStep, Reply,
    Request, Rerun, Resume, SetRegister, SignalFlow, Surroundings, drive, live_through,
};
use kelos_engine::executor::{RunInput, Start};
use kelos_engine::job::{self, Functions, JobInput};
use kelos_engine::turn::Turns;
use kelos_model::probe::Verdict;
use kelos_model::ranges::Range;
use kelos_model::run::Report;
use kelos_model::template::KeyValues;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, BackfillId, Outcome, Probe, ProbeAnswer, RunId, RunName, SlotRef, Workflow};
use kelos_sandbox::{Fake, FakeRun, FakeWrite, TestAction, TestFile, TestPlan, TestVerb};
use serde_json::{Map, Value, json};

use super::files::{Files, Place, TimedAnswer};
use super::past::PastStore;
use super::real::RealRuns;
use super::stage::{ended, first_deployment};
use super::steps::{self, AwaitedSignal};
use super::{Mismatch, Trouble, disk};

/// The duration of a run if the test doesn't give it.
const RUN_TIME: SignedDuration = SignedDuration::from_mins(1);

/// Waits between two calls of a trigger's function: the first, and the longest; each is half as long again.
const FIRST_CALL_AGAIN: SignedDuration = SignedDuration::from_secs(30);
const LONGEST_CALL_AGAIN: SignedDuration = SignedDuration::from_mins(15);

/// Turns at one moment, and in all: more is a circle, such as endless retries without a wait.
const MOST_TURNS_AT_ONCE: u32 = 10_000;
pub(super) const MOST_TURNS: u64 = 20_000_000;

/// The clock of a rehearsal, also for scripts.
#[derive(Clone, Default)]
pub(super) struct VirtualClock(Arc<AtomicI64>);

impl VirtualClock {
    pub(super) fn set(&self, now: Timestamp) {
        self.0.store(now.as_millisecond(), Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.load(Ordering::Relaxed)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// The paths, which scripts may check, too.
pub(super) type SharedFiles = Arc<Mutex<Files>>;

pub(super) fn lock(files: &SharedFiles) -> MutexGuard<'_, Files> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that happens by itself.
#[derive(Debug, Clone)]
pub(super) enum OutsideEvent {
    /// Something comes to a path.
    Comes(Arrival),
    /// A path disappears.
    Goes(Place),
    /// A run ends.
    Ends(RunId),
    /// A person acts.
    Acts(usize),
    /// A question is asked again, after a wait.
    AsksAgain(Probe, SignedDuration),
    /// A signal comes.
    Signals(Box<Input>),
}

/// A path that appears.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) place: Place,
    pub(super) is_folder: bool,
    pub(super) bytes: u64,
    pub(super) content: Content,
}

/// Its content, if there is a real folder.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Text(String),
    CopyOf(PathBuf),
}

/// The future events by time; those of one moment in the order in which they were added.
#[derive(Default)]
pub(super) struct Agenda {
    queue: BinaryHeap<Reverse<(Timestamp, u64)>>,
    items: BTreeMap<u64, OutsideEvent>,
    next: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Timestamp, happening: OutsideEvent) {
        self.queue.push(Reverse((at, self.next)));
        self.items.insert(self.next, happening);
        self.next += 1;
    }

    fn next_moment(&self) -> Option<Timestamp> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<OutsideEvent> {
        self.next_moment().filter(|at| *at <= now)?;
        let Reverse((_, number)) = self.queue.pop()?;
        self.items.remove(&number)
    }
}

/// The end of a live run.
enum Ending {
    Fake {
        outcome: Outcome,
        writes: Vec<FakeWrite>,
        gives: Option<Map<String, Value>>,
        /// The times of the slots that it serves, each of which is written for.
        times: Vec<Timestamp>,
    },
    Real(Start),
}

/// The scheduler in its made-up surroundings.
pub(super) struct Outside<'a> {
    pub(super) plan: &'a TestPlan,
    pub(super) file: &'a TestFile,
    pub(super) functions: Arc<dyn Functions>,
    pub(super) clock: VirtualClock,
    /// The moment at which the clock stops.
    pub(super) end: Timestamp,
    pub(super) files: SharedFiles,
    pub(super) store: PastStore,
    pub(super) turns: Turns,
    pub(super) agenda: Agenda,
    /// Real executors and their folder.
    pub(super) real: Option<RealRuns>,
    /// The workflows that take part.
    pub(super) workflows: Vec<Arc<Workflow>>,
    pub(super) live: BTreeMap<RunId, LiveRun>,
    pub(super) given: BTreeMap<RunId, JobInput>,
    pub(super) mismatches: Vec<Mismatch>,
    /// Turns that may still be taken.
    pub(super) turns_left: u64,
    /// The moment of the latest turn, and how many were taken at it.
    pub(super) taken: (Timestamp, u32),
    pub(super) inspected: Option<Inspection>,
}

/// A live run.
pub(super) struct LiveRun {
    ending: Option<Ending>,
    /// When it ends; none for one that hangs.
    pub(super) ends_at: Option<Timestamp>,
}

impl Surroundings for Outside<'_> {
    type Trouble = Trouble;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Advances the clock to the next event.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, Trouble> {
        let next = due.into_iter().chain(self.agenda.next_moment()).min();
        let Some(next) = next.filter(|next| *next <= self.end) else { return Ok(None) };
        let now = next.max(self.now());
        self.due(now).map(Some)
    }

    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, Trouble> {
        self.clock.set(now);
        self.count_turn(now)?;
        let acted = self.turns.turn(&mut self.store, now, inputs)?;
        self.expect_signals(now)?;
        match acted.broken.into_iter().next() {
            Some(broken) => Err(Trouble::Broken(broken.breach)),
            None => Ok(acted.commands),
        }
    }

    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, Trouble> {
        let mut inputs = Vec::new();
        for command in commands {
            inputs.extend(self.carry_out(now, command)?);
        }
        Ok(inputs)
    }
}

impl Outside<'_> {
    /// Lives from the start to the end.
    pub(super) fn play(&mut self, workflows: Vec<Arc<Workflow>>) -> Result<(), Trouble> {
        self.workflows.clone_from(&workflows);
        let mut inputs = self.due(self.plan.from)?;
        let deployed = first_deployment(&workflows);
        inputs.push(Input::Definitions { provenance: Provenance::File, deployed, all: workflows });
        live_through(self, inputs)?;
        drive(self)?;
        self.clock.set(self.end);
        Ok(())
    }

    fn carry_out(&mut self, now: Timestamp, command: Command) -> Result<Vec<Input>, Trouble> {
        match command {
            Command::Probe(probe) => Ok(self.ask(probe, now, FIRST_CALL_AGAIN)),
            Command::StartRun { run, workflow, collected, batch, inputs, about, .. } => {
                let (shown, inputs) = (json!(*inputs), Arc::unwrap_or_clone(inputs));
                let given = RunInput::of(&workflow, &run.slot.key, collected.as_deref(), inputs);
                self.start(now, run, &workflow, given.serving(batch).about(about), &shown)
            }
            Command::CancelRun { run, .. } => {
                self.live.remove(&run);
                Ok(vec![ended(run, Outcome::Killed)])
            }
            Command::Reply { token, reply } => {
                self.replied(token, reply);
                Ok(Vec::new())
            }
            Command::Relate(relation) => {
                let answer = self.functions.related(&relation);
                Ok(vec![Input::Related { relation, answer }])
            }
            // Jobs of scripts never ask for permits.
            Command::CheckRun { .. } | Command::AnswerRun { .. } => Ok(Vec::new()),
        }
    }

    fn count_turn(&mut self, now: Timestamp) -> Result<(), Trouble> {
        self.taken = if self.taken.0 == now { (now, self.taken.1 + 1) } else { (now, 1) };
        self.turns_left = self.turns_left.saturating_sub(1);
        if self.taken.1 > MOST_TURNS_AT_ONCE || self.turns_left == 0 {
            let turns = if self.turns_left == 0 { MOST_TURNS } else { MOST_TURNS_AT_ONCE.into() };
            return Err(Trouble::Endless { at: now, turns });
        }
        Ok(())
    }

    /// The events of the outside that are due.
    pub(super) fn due(&mut self, now: Timestamp) -> Result<Vec<Input>, Trouble> {
        let mut inputs = Vec::new();
        self.clock.set(now);
        while let Some(happening) = self.agenda.pop_due(now) {
            match happening {
                OutsideEvent::Comes(arriving) => inputs.extend(self.put(&arriving, now)?),
                OutsideEvent::Goes(place) => inputs.extend(self.remove(&place, now)?),
                OutsideEvent::Ends(run) => inputs.extend(self.end(run, now)?),
                OutsideEvent::Acts(number) => inputs.extend(self.act(number)),
                OutsideEvent::Signals(signal) => inputs.push(*signal),
                OutsideEvent::AsksAgain(probe, wait) if self.turns.core().is_asked(&probe) => {
                    let longer = wait.checked_add(wait / 2).unwrap_or(wait).min(LONGEST_CALL_AGAIN);
                    inputs.extend(self.ask(probe, now, longer));
                }
                OutsideEvent::AsksAgain(..) => {}
            }
        }
        Ok(inputs)
    }

    /// Answers a question; one that may have another answer later is asked again.
    fn ask(&mut self, probe: Probe, now: Timestamp, wait: SignedDuration) -> Vec<Input> {
        let Probe::Function { function, workflow, key } = &probe else {
            let answered = lock(&self.files).ask(&probe, now);
            return self.told(answered);
        };
        let (verdict, detail) = match self.functions.ask(function, workflow, key) {
            Ok(verdict) => (verdict, String::new()),
            Err(reason) => (Verdict::Failed, reason),
        };
        if verdict != Verdict::Never
            && let Ok(at) = now.checked_add(wait)
        {
            self.agenda.add(at, OutsideEvent::AsksAgain(probe.clone(), wait));
        }
        vec![Input::ProbeAnswered { probe, answer: ProbeAnswer { verdict, detail, at: now } }]
    }

    fn told(&mut self, answered: impl IntoIterator<Item = TimedAnswer>) -> Vec<Input> {
        let mut inputs = Vec::new();
        for TimedAnswer { probe, answer, again_at } in answered {
            if let Some(at) = again_at {
                self.agenda.add(at, OutsideEvent::AsksAgain(probe.clone(), FIRST_CALL_AGAIN));
            }
            inputs.push(Input::ProbeAnswered { probe, answer });
        }
        inputs
    }

    fn put(&mut self, arriving: &Arrival, now: Timestamp) -> Result<Vec<Input>, Trouble> {
        let Arrival { place, is_folder, bytes, content } = arriving;
        let Some(real) = &self.real else {
            let answered = lock(&self.files).put(place, *bytes, *is_folder, now);
            return Ok(self.told(answered));
        };
        let path = lock(&self.files).place(place.clone()).path;
        let done = match content {
            Content::Text(text) => disk::write(real.root(), &path, text.as_bytes(), *is_folder),
            Content::CopyOf(from) => disk::copy(from, &real.root().join(&path)),
        };
        done.map_err(Trouble::Files)?;
        self.see_disk(now)
    }

    fn remove(&mut self, place: &Place, now: Timestamp) -> Result<Vec<Input>, Trouble> {
        if let Some(real) = &self.real {
            let path = lock(&self.files).place(place.clone()).path;
            disk::remove(real.root(), &path).map_err(Trouble::Files)?;
            return self.see_disk(now);
        }
        let answered = lock(&self.files).remove(place, now);
        Ok(self.told(answered))
    }

    /// Takes in what changed in the folder.
    fn see_disk(&mut self, now: Timestamp) -> Result<Vec<Input>, Trouble> {
        let Some(real) = &self.real else { return Ok(Vec::new()) };
        let there = disk::list(real.root()).map_err(Trouble::Files)?;
        let mut answered = Vec::new();
        let mut files = lock(&self.files);
        for path in files.paths().into_iter().filter(|path| !real.root().join(path).exists()) {
            answered.extend(files.remove(&Place::named(&path), now));
        }
        for (path, bytes) in there {
            let place = Place::named(&path);
            if files.find(&place).is_none_or(|known| known.bytes != bytes) {
                answered.extend(files.put(&place, bytes, path.ends_with('/'), now));
            }
        }
        drop(files);
        Ok(self.told(answered))
    }

    fn start(
        &mut self,
        now: Timestamp,
        run: RunId,
        workflow: &Arc<Workflow>,
        given: RunInput,
        inputs: &Value,
    ) -> Result<Vec<Input>, Trouble> {
        let start = match job::fill(&run, workflow, given, &*self.functions) {
            Ok(start) => start,
            Err(reason) => return Ok(vec![ended(run, Outcome::refused(reason))]),
        };
        let given = JobInput { settings: start.settings.clone(), properties: start.properties.clone() };
        self.given.insert(run.clone(), given);
        let (ending, takes) = self.ending(start, inputs)?;
        let external_id = format!("test {}", run.number);
        let mut reports = vec![Input::RunReported { run: run.clone(), report: Report::Started { external_id } }];
        let ends_at = takes.and_then(|takes| now.checked_add(takes).ok());
        self.live.insert(run.clone(), LiveRun { ending: Some(ending), ends_at });
        match ends_at {
            Some(at) if at > now => self.agenda.add(at, OutsideEvent::Ends(run)),
            Some(_) => reports.extend(self.end(run, now)?),
            None => {}
        }
        Ok(reports)
    }

    /// The end of a run, and its duration; none for a run that never ends.
    fn ending(&self, start: Start, inputs: &Value) -> Result<(Ending, Option<SignedDuration>), Trouble> {
        let fake = match steps::fake_of(self.plan, &start.run.slot) {
            None if self.real.is_some() => return Ok((Ending::Real(start), Some(RUN_TIME))),
            None => FakeRun::default(),
            Some(Fake::Runs(runs)) => nth(runs, start.run.number),
            Some(Fake::Function(function)) => self.say(*function, &steps::argument_of(&start, inputs))?,
        };
        let takes = fake.takes_ms.map_or(RUN_TIME, millis);
        let outcome = outcome_of(&fake, start.run.number);
        let writes = if outcome == Outcome::Succeeded { fake.writes } else { Vec::new() };
        let times = start.workflow.keys.times_of_run(&start.run.slot.key, start.given.batch.as_ref());
        Ok((Ending::Fake { outcome, writes, gives: fake.gives, times }, (!fake.hangs).then_some(takes)))
    }

    /// Has the signals come that the test gives to steps which have begun to wait.
    fn expect_signals(&mut self, now: Timestamp) -> Result<(), Trouble> {
        for slot in std::mem::take(&mut self.store.news.opened) {
            let Some(awaited) = AwaitedSignal::of(slot, self.plan, &self.workflows) else { continue };
            let fake = match awaited.fake {
                Fake::Runs(runs) => nth(runs, 1),
                Fake::Function(function) => self.say(*function, &awaited.argument())?,
            };
            let takes = fake.takes_ms.map_or(RUN_TIME, millis);
            if let Ok(at) = now.checked_add(takes)
                && !fake.hangs
                && fake.fails == 0
            {
                let signal = steps::signalled(&awaited.slot, &awaited.signal, fake);
                self.agenda.add(at, OutsideEvent::Signals(Box::new(signal)));
            }
        }
        Ok(())
    }

    fn say(&self, function: u32, argument: &Value) -> Result<FakeRun, Trouble> {
        let said = self.file.call(function, argument)?;
        serde_json::from_value(said).map_err(|error| Trouble::Files(format!("read what a function said: {error}")))
    }

    fn end(&mut self, run: RunId, now: Timestamp) -> Result<Vec<Input>, Trouble> {
        let Some(ending) = self.live.remove(&run).and_then(|live| live.ending) else { return Ok(Vec::new()) };
        match ending {
            Ending::Fake { outcome, writes, gives, times } => {
                let mut inputs = Vec::new();
                let values: Vec<KeyValues> = times.into_iter().map(KeyValues::at).collect();
                for write in values.iter().flat_map(|values| writes.iter().map(|write| written(write, values))) {
                    inputs.extend(self.put(&write, now)?);
                }
                inputs.extend(gave(&run, gives));
                inputs.push(ended(run, outcome));
                Ok(inputs)
            }
            Ending::Real(start) => {
                let Some(real) = &self.real else { return Ok(Vec::new()) };
                let (outputs, outcome) = real.run(start).map_err(Trouble::Files)?;
                let mut inputs = self.see_disk(now)?;
                inputs.extend(gave(&run, outputs));
                inputs.push(ended(run, outcome));
                Ok(inputs)
            }
        }
    }

    fn act(&self, number: usize) -> Option<Input> {
        let action = self.plan.actions.get(number)?;
        let token = u64::try_from(number).ok()?.checked_add(1)?;
        Some(Input::Asked {
            token,
            by: Actor::system("test"),
            ask: ask_of(action, number, &self.workflows)?,
            warrant: None,
        })
    }

    /// The answer to an action; 0 is the token of a question of our own.
    fn replied(&mut self, token: u64, reply: Reply) {
        let action = token.checked_sub(1).and_then(|number| self.plan.actions.get(usize::try_from(number).ok()?));
        match (action, reply) {
            (Some(action), Err(refusal)) => {
                let about = format!("{} at {}", verb(&action.what), kelos_model::time::format_short(action.at));
                self.mismatches.push(Mismatch::new(about, "it to be done", format!("it was refused: {refusal}")));
            }
            (None, Ok(answer)) => self.inspected = Inspect::answer(answer).or(self.inspected.take()),
            _ => {}
        }
    }

    /// The state of a slot in memory.
    pub(super) fn inspect(&mut self, slot: &SlotRef) -> Option<Inspection> {
        let ask = Input::Asked {
            token: 0,
            by: Actor::system("test"),
            ask: Inspect { slot: slot.clone() }.into(),
            warrant: None,
        };
        let now = self.clock.now();
        let acted = self.turns.turn(&mut self.store, now, [ask]).ok()?;
        self.perform(now, acted.commands).ok()?;
        self.inspected.take()
    }
}

fn nth(runs: &[FakeRun], number: u32) -> FakeRun {
    let place = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    runs.get(place).or(runs.last()).cloned().unwrap_or_default()
}

fn outcome_of(fake: &FakeRun, number: u32) -> Outcome {
    let reason = || fake.reason.clone().unwrap_or_else(|| "the test lets it".to_owned());
    if fake.unknown {
        return Outcome::Unknown { reason: reason() };
    }
    match number <= fake.fails {
        true => Outcome::Failed { reason: reason(), exit_status: None, code: None },
        false => Outcome::Succeeded,
    }
}

fn written(write: &FakeWrite, values: &KeyValues) -> Arrival {
    let path = values.fill(&write.path);
    let content = write.content.clone().unwrap_or_default();
    Arrival {
        place: Place::named(&path),
        is_folder: path.ends_with('/'),
        bytes: write.size.unwrap_or(content.len() as u64),
        content: Content::Text(content),
    }
}

/// Milliseconds of a test as a span.
pub(super) fn millis(span: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(span).unwrap_or(i64::MAX / 2))
}

fn gave(run: &RunId, outputs: Option<Map<String, Value>>) -> Option<Input> {
    Some(Input::RunReported { run: run.clone(), report: Report::Gave { outputs: outputs? } })
}

fn ask_of(action: &TestAction, number: usize, workflows: &[Arc<Workflow>]) -> Option<Ask> {
    let reason = action.reason.clone();
    let slot = |given| steps::slot(&given, workflows);
    Some(match action.what.clone() {
        TestVerb::Rerun { slot: given } => {
            Rerun { slot: slot(given), arguments: kelos_model::Arguments::new(), reason }.into()
        }
        TestVerb::Kill { slot: given } => Kill { slot: slot(given), reason }.into(),
        TestVerb::Signal { slot: given, signal, payload } => {
            SignalFlow { run: slot(given), signal, payload, reason }.into()
        }
        TestVerb::Start { step: Some(step), name, arguments, .. } => {
            let key = name.and_then(|name| RunName::new(&name).ok());
            RepeatStep { step: slot(step), arguments, key, priority: 0, unconstrained: false, reason }.into()
        }
        TestVerb::Start { workflow, step: None, name, arguments } => {
            let key = name.and_then(|name| RunName::new(&name).ok());
            FireRequest { workflow, arguments, key, priority: 0, unconstrained: false, reason }.into()
        }
        TestVerb::Pause { workflow } => Pause { workflow, reason: None }.into(),
        TestVerb::Resume { workflow } => Resume { workflow, reason: None }.into(),
        TestVerb::SetRegister { bucket, key, value } => SetRegister { bucket, key, value, reason: None }.into(),
        TestVerb::Backfill { workflow, from, until, mode } => BackfillRequest {
            id: BackfillId::new(&format!("test-{number}")).ok()?,
            workflow,
            range: Range { start: from, end: until },
            mode,
            priority: -1,
            made_by: None,
            arguments: kelos_model::Arguments::new(),
            reason: None,
            dry_run: false,
        }
        .into(),
    })
}

fn verb(what: &TestVerb) -> String {
    match what {
        TestVerb::Rerun { slot } => format!("rerun {}", slot.short()),
        TestVerb::Kill { slot } => format!("kill {}", slot.short()),
        TestVerb::Signal { slot, signal, .. } => format!("signal {signal} to {}", slot.short()),
        TestVerb::Start { step: Some(step), .. } => format!("do {} again", step.short()),
        TestVerb::Start { workflow, name: Some(name), .. } => format!("start {workflow}@{name}"),
        TestVerb::Start { workflow, .. } => format!("start {workflow}"),
        TestVerb::Pause { workflow } => format!("pause {workflow}"),
        TestVerb::Resume { workflow } => format!("resume {workflow}"),
        TestVerb::Backfill { workflow, .. } => format!("backfill {workflow}"),
        TestVerb::SetRegister { bucket, key, .. } => format!("set register {bucket}/{key}"),
    }
}
