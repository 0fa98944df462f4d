//! Programs, event schedules and facts, for half of the seeds: schedules in files that are deployed anew, and schedules that people
//! create, change, enable and delete, while several sources publish facts. All of it is generated separately, so that the other random
//! numbers of a seed are what they were before there were event schedules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    Ask, ChangeSchedule, CreateSchedules, DeleteSchedules, Deployment, Disable, Enable, EnableByTime, FireRequest,
    Kill, MarkSuccess, Pause, Rerun, Resume, ResumeFlow, SignalFlow, Skip, Tell,
};
use kelos_model::constraint::{Constraint, Gate, Otherwise};
use kelos_model::facts::ENDS;
use kelos_model::ranges::Range;
use kelos_model::time::Window;
use kelos_model::time::{Firing, Zone};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::workflow::{CatchUp, EventKeys, Job, Keys, Program};
use kelos_model::{Fact, Occurrence, SlotKey, SlotRef, SlotState, StepKey, StepName, Trigger, Workflow, WorkflowId};

use super::jobs::{Sets, merged};
use super::{Workload, moment, retry};
use crate::rng::Rng;

const FIRINGS: [&str; 6] =
    ["*/10 * * * *", "0 * * * *", "30 */2 * * *", "0 0/25 * * * ?", "15,45 * * * *", "5 4 * * *"];

const PROJECTS: [&str; 3] = ["Alpha", "Beta", "sim"];

/// The placeholder for a moment's slot while it is not known which slots there will be: the n-th of its workflow.
#[must_use]
pub fn nth(workflow: WorkflowId, n: i64) -> SlotRef {
    SlotRef::moment(workflow, Timestamp::from_millisecond(n).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// From this number on, placeholders are for slots that are named by moments.
const STARTED: i64 = 500_000;

/// The same, of the slots of the workflow that are named by moments.
pub(super) fn nth_started(workflow: WorkflowId, n: i64) -> SlotRef {
    nth(workflow, STARTED + n)
}

/// The slot of a request, if it is a placeholder of [`nth`].
fn named(ask: &mut Ask) -> Option<&mut SlotRef> {
    match ask {
        Ask::Kill(Kill { slot, .. })
        | Ask::Rerun(Rerun { slot, .. })
        | Ask::Skip(Skip { slot, .. })
        | Ask::MarkSuccess(MarkSuccess { slot, .. }) => Some(slot),
        Ask::RerunDownstream(request) => Some(&mut request.slot),
        Ask::RepeatStep(request) => Some(&mut request.step),
        Ask::SignalFlow(SignalFlow { run, .. }) | Ask::ResumeFlow(ResumeFlow { run, .. }) => Some(run),
        _ => None,
    }
}

/// Replaces a placeholder by an existing slot, also where a step of it is meant.
#[must_use]
pub fn resolved(mut ask: Ask, slots: impl FnOnce(&WorkflowId) -> Vec<SlotRef>) -> Ask {
    let early = |key: &SlotKey| key.time().filter(|at| key.is_moment() && at.as_second() < 1000);
    if let Some(slot) = named(&mut ask)
        && let Some(number) = early(&slot.key.of_run())
    {
        let mut there = slots(&slot.workflow);
        let number = number.as_millisecond();
        if number >= STARTED {
            there.retain(|slot| slot.key.is_moment());
        }
        let number = usize::try_from(number % STARTED).unwrap_or(0);
        if !there.is_empty() {
            let found = there.swap_remove(number % there.len());
            let step = slot.key.step().and_then(|step| of_another_run(step, &found.key));
            *slot = step.map_or_else(|| found.clone(), |step| SlotRef::new(found.workflow.clone(), step));
        }
    }
    ask
}

/// The step or the item of another run.
fn of_another_run(step: &StepKey, run: &SlotKey) -> Option<SlotKey> {
    let key = StepKey::new(run, &StepName::new(step.step()).ok()?)?;
    Some(SlotKey::Step(step.item_number().map_or_else(|| key.clone(), |number| key.item(number))))
}

/// The names that a seed's schedules use.
struct Stage {
    programs: Vec<WorkflowId>,
    schedules: Vec<WorkflowId>,
    start: Timestamp,
    end: Timestamp,
}

/// Gives half of the seeds programs, event schedules and facts.
pub(super) fn add(seed: u64, workload: &mut Workload) {
    let mut rng = Rng::new(seed ^ 0xFAC7);
    if !rng.percent(50) {
        return;
    }
    let stage = Stage::new(&mut rng, workload);
    season(&mut rng, &stage, workload);
    let sets = stage.sets(&mut rng);
    workload.definitions = merged(&workload.definitions, &sets);
    workload.deployments = deployments(&mut rng, &workload.definitions);
    let mut told = Vec::new();
    for n in 0..rng.between(5, 60) {
        let at = moment(&mut rng, stage.start, stage.end);
        workload.asks.push((at, Ask::Tell(Tell::of(stage.batch(&mut rng, n, &mut told)))));
    }
    for _ in 0..rng.between(2, 25) {
        let at = moment(&mut rng, stage.start, stage.end);
        let ask = stage.ask(&mut rng, at);
        workload.asks.push((at, ask));
    }
    workload.asks.sort_by_key(|(at, _)| *at);
    workload.schedules = stage.schedules.into_iter().collect();
}

/// Makes slots by time wait for facts, too, and adds constraints to them.
fn season(rng: &mut Rng, stage: &Stage, workload: &mut Workload) {
    let every = workload.definitions.iter().flat_map(|(_, all)| all);
    let timed: BTreeSet<WorkflowId> =
        every.filter(|one| one.keys.schedule().is_some()).map(|one| one.id.clone()).collect();
    for id in timed {
        let leaf = rng.percent(25).then(|| stage.leaf(rng));
        let constraints = if rng.percent(25) { constraints(rng) } else { Vec::new() };
        let both = rng.percent(50);
        for one in workload.definitions.iter_mut().flat_map(|(_, all)| all).filter(|one| one.id == id) {
            let one = Arc::make_mut(one);
            one.constraints.clone_from(&constraints);
            if let Some(leaf) = &leaf {
                let triggers = vec![one.trigger.clone(), leaf.clone()];
                one.trigger = if both { Trigger::And { triggers } } else { Trigger::Or { triggers } };
            }
        }
    }
}

/// The deployment of each project, at each moment at which files change.
fn deployments(rng: &mut Rng, sets: &Sets) -> Vec<(Timestamp, BTreeMap<String, Deployment>)> {
    let mut all: BTreeMap<String, Deployment> = BTreeMap::new();
    let mut moments = Vec::new();
    for (n, (at, _)) in sets.iter().enumerate() {
        for project in PROJECTS {
            if n == 0 || rng.percent(60) {
                let update_schedules = n == 0 || rng.percent(70);
                all.insert(
                    project.to_owned(),
                    Deployment { digest: Some(format!("d{n}")), update_schedules, by: None },
                );
            }
        }
        moments.push((*at, all.clone()));
    }
    moments
}

fn id(name: &str) -> WorkflowId {
    WorkflowId::new(name).unwrap_or_else(|error| panic!("a constant name: {error}"))
}

fn job(rng: &mut Rng) -> Job {
    let settings = [("v".to_owned(), rng.below(3).into())].into_iter().collect();
    Job { settings, ..Job::new("fake", serde_json::Map::new()) }
}

fn constraints(rng: &mut Rng) -> Vec<Constraint> {
    (0..rng.between(1, 2)).map(|_| constraint(rng)).collect()
}

fn constraint(rng: &mut Rng) -> Constraint {
    let gate = match rng.below(5) {
        0 | 1 => Gate::Concurrency(u32::try_from(rng.between(1, 2)).unwrap_or(1)),
        2 => Gate::Delay(rng.between(1, 3_600_000).unsigned_abs()),
        3 => Gate::SinceLastRun(rng.between(60_000, 7_200_000).unsigned_abs()),
        _ => {
            let (hour, length, minute) = (rng.below(24), rng.between(1, 20).unsigned_abs(), rng.below(60));
            let zone = if rng.percent(60) { Zone::utc() } else { Zone::parse("Europe/Berlin").unwrap_or_default() };
            let (from, to) = (format!("{hour:02}:{minute:02}"), format!("{:02}:{minute:02}", (hour + length) % 24));
            Gate::Window(Window::new(&from, &to, zone).unwrap_or_else(|error| panic!("two times: {error}")))
        }
    };
    let constraint = Constraint::new(gate);
    let may_abort = !matches!(constraint.gate, Gate::Delay(_));
    match rng.below(3) {
        0 => Constraint { otherwise: Otherwise::Wait, ..constraint },
        1 if may_abort => Constraint { otherwise: Otherwise::Abort, ..constraint },
        _ => constraint,
    }
}

fn some_ends(rng: &mut Rng) -> Vec<SlotState> {
    let ends: Vec<SlotState> = ENDS.into_iter().filter(|_| rng.percent(50)).collect();
    if ends.is_empty() { vec![SlotState::Succeeded] } else { ends }
}

impl Stage {
    fn new(rng: &mut Rng, workload: &Workload) -> Stage {
        let count = usize::try_from(rng.between(1, 3)).unwrap_or(1);
        let own = ["Alpha.p0", "Alpha.p1", "Beta.p2"].into_iter().take(count).map(id);
        let timed = workload.definitions[0].1.iter().filter(|one| one.keys.schedule().is_some());
        let timed = timed.map(|one| one.id.clone()).take(2);
        let schedules = ["Alpha.a", "Alpha.b", "Alpha.c", "Beta.d", "Beta.e"].into_iter().map(id).collect();
        Stage { programs: own.chain(timed).collect(), schedules, start: workload.start, end: workload.end }
    }

    /// The definitions of programs and schedules in files, and their moments.
    fn sets(&self, rng: &mut Rng) -> Sets {
        let mut programs: BTreeMap<WorkflowId, Arc<Workflow>> = BTreeMap::new();
        for one in self.own() {
            programs.insert(one.clone(), Arc::new(program(rng, one)));
        }
        let mut schedules: BTreeMap<WorkflowId, Arc<Workflow>> = BTreeMap::new();
        for one in &self.schedules {
            if rng.percent(60) {
                schedules.insert(one.clone(), self.schedule(rng, one));
            }
        }
        let all = |programs: &BTreeMap<_, _>, schedules: &BTreeMap<_, _>| {
            programs.values().chain(schedules.values()).cloned().collect::<Vec<Arc<Workflow>>>()
        };
        let mut sets = vec![(self.start, all(&programs, &schedules))];
        let changes = rng.below(5);
        let mut moments: Vec<_> = (0..changes).map(|_| moment(rng, self.start, self.end)).collect();
        moments.sort();
        for at in moments {
            self.edit(rng, &mut programs, &mut schedules);
            sets.push((at, all(&programs, &schedules)));
        }
        sets
    }

    fn own(&self) -> impl Iterator<Item = &WorkflowId> {
        self.programs.iter().filter(|id| id.as_str().contains('.'))
    }

    fn edit(
        &self,
        rng: &mut Rng,
        programs: &mut BTreeMap<WorkflowId, Arc<Workflow>>,
        schedules: &mut BTreeMap<WorkflowId, Arc<Workflow>>,
    ) {
        for one in self.own().cloned().collect::<Vec<_>>() {
            match rng.below(10) {
                0 => drop(programs.remove(&one)),
                1 | 2 => drop(programs.insert(one.clone(), Arc::new(program(rng, &one)))),
                _ => {}
            }
        }
        for one in &self.schedules {
            match rng.below(10) {
                0 => drop(schedules.remove(one)),
                1..=3 => drop(schedules.insert(one.clone(), self.schedule(rng, one))),
                _ => {}
            }
        }
    }

    fn schedule(&self, rng: &mut Rng, id: &WorkflowId) -> Arc<Workflow> {
        let (project, name) = id.as_str().split_once('.').unwrap_or(("Alpha", "a"));
        let mut keys = EventKeys::new(name, rng.pick(&self.programs).clone());
        if rng.percent(60) {
            keys.timeout_millis = rng.between(600_000, 6 * 3_600_000).unsigned_abs();
        }
        keys.enabled = rng.percent(70);
        keys.catch_up = *rng.pick(&[CatchUp::Skip, CatchUp::Latest, CatchUp::All]);
        keys.jitter_millis = if rng.percent(25) { rng.below(600_000) } else { 0 };
        keys.end_time = rng.percent(15).then(|| moment(rng, self.start, self.end));
        let start_time = rng.percent(15).then(|| moment(rng, self.start, self.end));
        let trigger = self.trigger(rng, 0);
        let constraints = if rng.percent(50) { constraints(rng) } else { Vec::new() };
        let one = Workflow::keyed(id.clone(), Keys::Events(Box::new(keys)), job(rng));
        Arc::new(Workflow { project: project.to_owned(), trigger, constraints, start_time, ..one })
    }

    fn trigger(&self, rng: &mut Rng, depth: u32) -> Trigger {
        if depth >= 2 || rng.percent(60) {
            return if depth == 0 || rng.percent(80) { self.leaf(rng) } else { other_leaf(rng) };
        }
        let triggers = (0..rng.between(1, 3)).map(|_| self.trigger(rng, depth + 1)).collect();
        if rng.percent(50) { Trigger::And { triggers } } else { Trigger::Or { triggers } }
    }

    /// A leaf that waits for facts.
    fn leaf(&self, rng: &mut Rng) -> Trigger {
        match rng.below(10) {
            0..=3 => Trigger::Partitions {
                dataset: format!("ds{}", rng.below(3)).into(),
                count: u32::try_from(rng.between(1, 4)).unwrap_or(1),
            },
            4 | 5 => Trigger::Ended { program: rng.pick(&self.programs).clone(), states: some_ends(rng) },
            6 | 7 => {
                let zone = if rng.percent(80) { Zone::utc() } else { Zone::parse("Europe/Berlin").unwrap_or_default() };
                let firing = Firing::parse(rng.pick::<&str>(&FIRINGS), zone);
                Trigger::Fired { firing: firing.unwrap_or_else(|error| panic!("a constant expression: {error}")) }
            }
            _ => Trigger::Signal { name: format!("g{}", rng.below(3)).into() },
        }
    }

    /// Facts that one source publishes together. Some were published before, and some keys are used again for another fact.
    fn batch(&self, rng: &mut Rng, number: i64, told: &mut Vec<Fact>) -> Vec<Fact> {
        let source: Arc<str> = (*rng.pick(&["a", "b", "c"])).into();
        let mut facts = Vec::new();
        for n in 0..rng.between(1, 5) {
            if !told.is_empty() && rng.percent(20) {
                facts.push(rng.pick(told).clone());
                continue;
            }
            let what = self.occurrence(rng, &format!("n{number}.{n}"));
            let known = told.last().and_then(|fact: &Fact| fact.key.clone()).filter(|_| rng.percent(5));
            let key = known.or_else(|| rng.percent(50).then(|| format!("k{number}.{n}").into()));
            let fact = Fact { source: source.clone(), key, what };
            if fact.key.is_some() {
                told.push(fact.clone());
            }
            facts.push(fact);
        }
        facts
    }

    /// An occurrence that is different from all others.
    fn occurrence(&self, rng: &mut Rng, name: &str) -> Occurrence {
        match rng.below(10) {
            0..=5 => Occurrence::Partitions {
                dataset: format!("ds{}", rng.below(3)).into(),
                count: u32::try_from(rng.below(4)).unwrap_or(1),
                keys: vec![name.to_owned()],
            },
            6 | 7 => Occurrence::Ended {
                program: rng.pick(&self.programs).clone(),
                state: *rng.pick(&ENDS),
                run: Some(name.to_owned()),
                arguments: BTreeMap::new(),
                outputs: serde_json::Map::new(),
            },
            _ => Occurrence::Signal { name: format!("g{}", rng.below(3)).into(), payload: name.into(), run: None },
        }
    }

    fn ask(&self, rng: &mut Rng, at: Timestamp) -> Ask {
        let schedule = rng.pick(&self.schedules).clone();
        match rng.below(20) {
            0..=2 => Ask::CreateSchedules(CreateSchedules { new: self.created(rng), reason: None }),
            3 | 4 => Ask::ChangeSchedule(ChangeSchedule { changed: self.schedule(rng, &schedule), reason: None }),
            5 => Ask::DeleteSchedules(DeleteSchedules { schedules: self.some(rng), reason: None }),
            6..=8 => Ask::Enable(Enable { schedule, reason: None }),
            9 => Ask::Disable(Disable { schedule, reason: None }),
            10 => Ask::Pause(Pause { workflow: schedule, reason: None }),
            11 => Ask::Resume(Resume { workflow: schedule, reason: None }),
            12 => {
                let start = at - SignedDuration::from_secs(rng.between(0, 20_000));
                Ask::EnableByTime(EnableByTime {
                    schedules: self.some(rng),
                    range: Range::new(start, start + SignedDuration::from_hours(2)),
                    reason: None,
                })
            }
            13..=15 => self.fired(rng),
            _ => self.about_a_slot(rng),
        }
    }

    fn some(&self, rng: &mut Rng) -> Vec<WorkflowId> {
        self.schedules.iter().filter(|_| rng.percent(40)).cloned().collect()
    }

    fn created(&self, rng: &mut Rng) -> Vec<Arc<Workflow>> {
        let some: Vec<WorkflowId> = self.schedules.iter().filter(|_| rng.percent(25)).cloned().collect();
        some.iter().map(|id| self.schedule(rng, id)).collect()
    }

    fn startable(&self, rng: &mut Rng) -> WorkflowId {
        let own: Vec<&WorkflowId> = self.own().chain(&self.schedules).collect();
        (*rng.pick(&own)).clone()
    }

    fn fired(&self, rng: &mut Rng) -> Ask {
        let arguments = [("by".to_owned(), "hand".into())].into_iter().filter(|_| rng.percent(50)).collect();
        let workflow = self.startable(rng);
        Ask::Fire(FireRequest {
            workflow,
            arguments,
            key: None,
            priority: 0,
            unconstrained: rng.percent(40),
            reason: None,
        })
    }

    fn about_a_slot(&self, rng: &mut Rng) -> Ask {
        let slot = nth(self.startable(rng), rng.between(0, 200));
        let reason = None;
        match rng.below(6) {
            0 | 1 => Ask::Kill(Kill { slot, reason }),
            2 | 3 => Ask::Rerun(Rerun { slot, arguments: kelos_model::Arguments::new(), reason }),
            4 => Ask::Skip(Skip { slot, reason }),
            _ => Ask::MarkSuccess(MarkSuccess { slot, reason }),
        }
    }
}

fn program(rng: &mut Rng, id: &WorkflowId) -> Workflow {
    let (project, name) = id.as_str().split_once('.').unwrap_or(("Alpha", "p"));
    let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
    Workflow {
        project: project.to_owned(),
        concurrency: Some(u32::try_from(rng.between(1, 4)).unwrap_or(1)),
        constraints: if rng.percent(20) { constraints(rng) } else { Vec::new() },
        retry: retry(rng),
        ..Workflow::keyed(id.clone(), keys, job(rng))
    }
}

/// A leaf that depends on something else than facts.
fn other_leaf(rng: &mut Rng) -> Trigger {
    match rng.below(4) {
        0 => Trigger::Always,
        1 => Trigger::Delay { seconds: rng.between(0, 3600) },
        2 => {
            let inner = Trigger::Signal { name: format!("g{}", rng.below(3)).into() };
            Trigger::Not { trigger: Box::new(inner) }
        }
        _ => {
            let path = format!("/d{}/${{year}}-${{month}}-${{day}}T${{hour}}:00:00Z", rng.below(3));
            Trigger::Path(PathCheck::new(FileSystem::Local, &path, "file:"))
        }
    }
}
