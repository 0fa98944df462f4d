//! The forecast of a range of slots: the real scheduler over a virtual clock. Nothing is run, nothing is written.
//!
//! Every question to the outside is answered "there", except for paths that are named as missing, and every run takes
//! the same time and succeeds. Slots before the range count as succeeded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::convert::Infallible;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Command, Config, Core, Input, StepError, Surroundings, drive, live_through};
use kelos_model::flow::FLOW;
use kelos_model::probe::Verdict;
use kelos_model::ranges::Range;
use kelos_model::run::Report;
use kelos_model::workflow::{DefinedVersion, Provenance};
use kelos_model::{
    Breach, Event, EventRecord, FactKey, Job, Outcome, Probe, ProbeAnswer, Run, RunId, Slot, SlotEvent, SlotRef,
    SlotState, Workflow, WorkflowId, reason,
};

use serde_json::Map;

use crate::assumed::{Assumptions, Ledger};
use crate::stage::{Past, enabled, ended, first_deployment, from_then_on, resolved};

/// The assumptions of a dry run.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// The clock starts here; slots are from here on.
    pub from: Timestamp,
    /// Slots are before this moment.
    pub to: Timestamp,
    /// How much longer the clock runs while a slot of the range has not ended.
    pub settle: SignedDuration,
    /// The duration of each run.
    pub run_time: SignedDuration,
    /// Paths that start so are not there: whole URIs, or without the scheme.
    pub without: Vec<String>,
    /// Live runs of all workflows together.
    pub max_running: u32,
}

impl DryRun {
    /// A range in which everything is there and every run ends at once.
    #[must_use]
    pub fn over(from: Timestamp, to: Timestamp) -> Self {
        Self {
            from,
            to,
            settle: SignedDuration::from_hours(7 * 24),
            run_time: SignedDuration::ZERO,
            without: Vec::new(),
            max_running: Config::default().max_running,
        }
    }
}

/// The forecast for the slots of a workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecast {
    /// Its slots in the range, by time.
    pub slots: BTreeMap<Timestamp, SlotForecast>,
    /// The most runs that would have been live at once.
    pub most_at_once: u32,
    /// The reason for which it has no slots, if its schedule can't be resolved.
    pub problem: Option<String>,
}

impl Forecast {
    /// The number of slots that would end in each state.
    #[must_use]
    pub fn states(&self) -> BTreeMap<SlotState, usize> {
        let mut states = BTreeMap::new();
        for slot in self.slots.values() {
            *states.entry(slot.state).or_default() += 1;
        }
        states
    }
}

/// The forecast for a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotForecast {
    /// Its state in the end.
    pub state: SlotState,
    /// The states that it would enter, and when.
    pub moves: Vec<(Timestamp, SlotState)>,
    /// The conditions that it would still wait for in the end.
    pub waits_for: Vec<String>,
}

/// The forecasts of a dry run, and what they rest on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecasts {
    /// The forecast of each workflow.
    pub workflows: BTreeMap<WorkflowId, Forecast>,
    /// The assumptions about the outside.
    pub assumed: Assumptions,
}

/// Plays a range through.
#[must_use]
pub fn dry_run(suppose: &DryRun, workflows: &[Arc<Workflow>]) -> Forecasts {
    let mut world = World::new(suppose, workflows);
    let all = workflows.iter().map(|workflow| Arc::new(whole(enabled(from_then_on(workflow, suppose.from))))).collect();
    let deployed = first_deployment(workflows);
    if let Err(breach) = world.play(vec![Input::Definitions { provenance: Provenance::File, all, deployed }]) {
        // The forecast so far is returned, and every part of it is marked as incomplete.
        for forecast in world.forecasts.values_mut() {
            forecast.problem.get_or_insert_with(|| format!("the dry run broke off: {breach}"));
        }
    }
    Forecasts { workflows: world.forecasts, assumed: world.ledger.close() }
}

/// The workflow with a job in place of a flow: what its steps give, and so which of them there are, is not known before they run.
fn whole(workflow: Workflow) -> Workflow {
    match workflow.flow {
        Some(_) => Workflow { flow: None, job: Job::new("command", Map::new()), ..workflow },
        None => workflow,
    }
}

struct World<'a> {
    suppose: &'a DryRun,
    now: Timestamp,
    core: Core,
    past: Past,
    flows: BTreeSet<WorkflowId>,
    /// Live runs, by the time of their end.
    runs: BinaryHeap<Reverse<(Timestamp, RunId)>>,
    running: BTreeMap<WorkflowId, u32>,
    unfinished: usize,
    forecasts: BTreeMap<WorkflowId, Forecast>,
    ledger: Ledger,
}

impl<'a> World<'a> {
    fn new(suppose: &'a DryRun, workflows: &[Arc<Workflow>]) -> Self {
        let never = SignedDuration::from_hours(24 * 366 * 1000);
        let config = Config {
            planning_window: suppose.to.duration_since(suppose.from).max(SignedDuration::ZERO)
                + suppose.settle
                + SignedDuration::from_secs(1),
            // Answers never change, so nothing is asked twice, and no run falls silent.
            probe_first: never,
            probe_longest: never,
            patience: never,
            max_running: suppose.max_running,
            by_workers: BTreeSet::new(),
            isolated: false,
            // A dry run is finite, and nothing else waits for it.
            at_once: usize::MAX,
            frontier: usize::MAX,
            planted: None,
        };
        let mut world = World {
            suppose,
            // A slot at the very start belongs to the range.
            now: suppose.from - SignedDuration::from_millis(1),
            core: Core::new(config),
            past: Past::of(workflows, suppose.from),
            flows: workflows.iter().filter(|one| one.flow.is_some()).map(|one| one.id.clone()).collect(),
            runs: BinaryHeap::new(),
            running: BTreeMap::new(),
            unfinished: 0,
            forecasts: BTreeMap::new(),
            ledger: Ledger::default(),
        };
        for (id, schedule) in resolved(workflows) {
            let problem = schedule.err().map(|problem| problem.to_string());
            world.forecasts.insert(id, Forecast { problem, ..Forecast::default() });
        }
        for workflow in workflows.iter().filter(|workflow| workflow.keys.are_moments()) {
            world.forecasts.insert(workflow.id.clone(), Forecast::default());
        }
        world
    }

    /// Lives through what happens first, and on until nothing more does, or until it is late.
    fn play(&mut self, first: Vec<Input>) -> Result<(), Breach> {
        live_through(self, first)?;
        self.now = self.suppose.from;
        live_through(self, Vec::new())?;
        drive(self)
    }

    fn ended_by(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = Vec::new();
        while self.runs.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, run))) = self.runs.pop() {
                inputs.push(ended(run, Outcome::Succeeded));
            }
        }
        inputs
    }

    fn carry_out(&mut self, now: Timestamp, command: Command) -> Vec<Input> {
        match command {
            Command::Probe(probe) => {
                let is_there = self.is_there(&probe);
                // Questions of slots after the range do not matter; they are there since the clock runs on.
                if now < self.suppose.to {
                    self.ledger.answered(&probe, is_there);
                }
                let verdict = if is_there { Verdict::Yes } else { Verdict::No };
                let answer = ProbeAnswer { verdict, detail: String::new(), at: now };
                vec![Input::ProbeAnswered { probe, answer }]
            }
            Command::StartRun { run, workflow, .. } => {
                if run.slot.key.time().is_some_and(|at| at < self.suppose.to) {
                    let is_flow = self.flows.contains(&workflow.id);
                    self.ledger.ran(&workflow, if is_flow { FLOW } else { &workflow.job.executor });
                }
                let started = Report::Started { external_id: String::new() };
                let start = Input::RunReported { run: run.clone(), report: started };
                match now.checked_add(self.suppose.run_time) {
                    Ok(end) if end > now => {
                        self.runs.push(Reverse((end, run)));
                        vec![start]
                    }
                    _ => vec![start, ended(run, Outcome::Succeeded)],
                }
            }
            _ => Vec::new(),
        }
    }

    fn is_there(&self, probe: &Probe) -> bool {
        let Probe::Path { uri, .. } = probe else {
            return true;
        };
        let path = uri.split_once(':').map_or(uri.as_str(), |(_, rest)| rest);
        let path = path.strip_prefix("//").map_or(path, |rest| rest.find('/').map_or(rest, |n| &rest[n..]));
        !self.suppose.without.iter().any(|prefix| uri.starts_with(prefix) || path.starts_with(prefix))
    }

    fn note(&mut self, record: EventRecord) {
        let Event::Slot { slot, what } = record.event else {
            return;
        };
        let Some(at) = slot.key.time() else { return };
        let Some(forecast) = self.forecasts.get_mut(&slot.workflow) else {
            return;
        };
        let Some(before) = forecast.slots.get_mut(&at) else {
            if matches!(what, SlotEvent::Planned { .. }) && at < self.suppose.to {
                self.unfinished += 1;
                forecast.slots.insert(at, planned(record.at));
            }
            return;
        };
        if let SlotEvent::Looked { explanation } | SlotEvent::Expired { explanation, .. } = &what {
            before.waits_for = reason::words::blockers(explanation);
        }
        let Some(state) = before.state.after(&what).filter(|state| *state != before.state) else {
            return;
        };
        before.state = state;
        before.moves.push((record.at, state));
        if state != SlotState::Waiting && state != SlotState::Expired {
            before.waits_for.clear();
        }
        self.unfinished -= usize::from(state.is_final());
        let running = self.running.entry(slot.workflow).or_default();
        match what {
            SlotEvent::Dispatched { .. } => *running += 1,
            SlotEvent::Succeeded { .. } => *running = running.saturating_sub(1),
            _ => {}
        }
        forecast.most_at_once = forecast.most_at_once.max(*running);
    }
}

/// The past as it was played, and before the play as it is supposed.
struct PlayedPast<'a> {
    from: Timestamp,
    now: Timestamp,
    forecasts: &'a BTreeMap<WorkflowId, Forecast>,
    before: &'a Past,
    ledger: &'a mut Ledger,
}

impl PlayedPast<'_> {
    fn state_of(&mut self, id: &SlotRef) -> Option<SlotState> {
        let at = id.key.time()?;
        if at >= self.from {
            return self.forecasts.get(&id.workflow)?.slots.get(&at).map(|slot| slot.state);
        }
        let state = self.before.state_of(id);
        if state.is_some() {
            self.ledger.looked_back();
        }
        state
    }
}

impl kelos_core::Past for PlayedPast<'_> {
    type Error = Infallible;

    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        let now = self.now;
        let row = |id: &SlotRef| Some((id.clone(), Slot::new(self.state_of(id)?, now)));
        Ok(ids.iter().filter_map(row).collect())
    }

    fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        let forecast = self.forecasts.get(workflow);
        let slots = forecast.into_iter().flat_map(|forecast| forecast.slots.range(range.start..range.end));
        Ok(slots.map(|(at, slot)| (SlotRef::at(workflow.clone(), *at), Slot::new(slot.state, self.now))).collect())
    }

    fn facts(&mut self, _: &[FactKey]) -> Result<Vec<FactKey>, Infallible> {
        Ok(Vec::new())
    }

    fn definitions(&mut self, _: &WorkflowId) -> Result<Vec<DefinedVersion>, Infallible> {
        Ok(Vec::new())
    }

    fn definition(&mut self, _: &WorkflowId, _: u32) -> Result<Option<Arc<Workflow>>, Infallible> {
        Ok(None)
    }

    fn steps(&mut self, _: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        Ok(Vec::new())
    }

    fn runs(&mut self, _: &[u64]) -> Result<Vec<Run>, Infallible> {
        Ok(Vec::new())
    }
}

impl Surroundings for World<'_> {
    type Trouble = Breach;

    fn core(&self) -> &Core {
        &self.core
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// Advances the clock to the next event.
    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, Breach> {
        let late = self.suppose.to.checked_add(self.suppose.settle).unwrap_or(Timestamp::MAX);
        let run = self.runs.peek().map(|Reverse((at, _))| *at);
        let Some(next) = due.into_iter().chain(run).min() else { return Ok(None) };
        if next > late || (next > self.suppose.to && self.unfinished == 0) {
            return Ok(None);
        }
        self.now = next;
        Ok(Some(self.ended_by(next)))
    }

    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, Breach> {
        let mut commands = Vec::new();
        for input in inputs {
            let (forecasts, before, ledger) = (&self.forecasts, &self.past, &mut self.ledger);
            let mut played = PlayedPast { from: self.suppose.from, now, forecasts, before, ledger };
            let step = self.core.step(now, input, &mut played).map_err(|error| match error {
                StepError::Past(never) => match never {},
                StepError::Broken(breach) => breach,
            })?;
            step.events.into_iter().for_each(|event| self.note(event));
            commands.extend(step.commands);
        }
        self.core.settle();
        Ok(commands)
    }

    fn perform(&mut self, now: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, Breach> {
        Ok(commands.into_iter().flat_map(|command| self.carry_out(now, command)).collect())
    }
}

fn planned(at: Timestamp) -> SlotForecast {
    let mut moves = Vec::with_capacity(5);
    moves.push((at, SlotState::Waiting));
    SlotForecast { state: SlotState::Waiting, moves, waits_for: Vec::new() }
}
