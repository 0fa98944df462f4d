//! The executable specification: one step as a plain full scan over all workflows and slots, as in
//! Celos, except for two promises of Kelos: no unfinished slot is forgotten because it is old,
//! and a step continues until nothing more can happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{
    Ask, CancelBackfill, ChangeSchedule, Config, CreateSchedules, DeleteSchedules, Deployment, Disable, Enable,
    EnableByTime, Kill, MarkSuccess, Offer, Pause, PauseBackfill, PrioritiseBackfill, Rerun, RerunBackfill, Resume,
    ResumeBackfill, Skip, Tell,
};
use kelos_model::arguments::kept_arguments;
use kelos_model::retry::OnUnknown;
use kelos_model::template::KeyValues;
use kelos_model::time::{CronSchedule, resolve};
use kelos_model::trigger::{Evaluation, evaluate};
use kelos_model::workflow::ProjectVersion;
use kelos_model::{
    Answer, Arguments, BackfillId, Collection, Outcome, PoolId, RunId, SlotRef, SlotState, Workflow, WorkflowId,
};

use crate::apps::Apps;
use crate::inputs::{Dispatch, RunRecord, RunRecords};
use crate::workload::{GroupMeanings, schedules};
use crate::world::{Scan, World, WorldView};

mod backfills;
mod batches;
mod catch_up;
mod constraints;
mod downstream;
mod events;
mod jobs;
mod pools;
mod within;

use backfills::SpecBackfill;
use catch_up::Plans;
pub use within::{RunAnswer, SpecRequest};

/// How often a slot is done again between two openings: said once more, lest both change together unseen.
const MOST_AGAIN: u32 = 3;

/// A slot in the specification.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecSlot {
    /// Its state; queued slots and those with a live run.
    pub state: SlotState,
    /// How many attempts another followed since it was last opened.
    pub retries: u32,
    /// How many of these were done again because their outcome was unknown.
    pub again: u32,
    /// The number of its latest run.
    pub last_run: u32,
    /// Whether it has a live run, including one that was killed.
    pub alive: bool,
    /// The run of the first slot of its batch, if that serves it.
    leader: Option<RunId>,
    /// The priority; larger ones are first.
    pub priority: i32,
    /// The backfill that last requested it.
    backfill: Option<BackfillId>,
    /// Whether it was ever requested.
    requested: bool,
    due: Option<Timestamp>,
    /// When it was last queued or held, or succeeded.
    since: Timestamp,
    /// The step and the moment in which its latest run was started.
    started: (u64, Timestamp),
    /// When it was last requested; none if only its schedule opened it.
    asked: Option<Timestamp>,
    /// When its schedule planned it; the beginning of time if something else did.
    planned: Timestamp,
    /// The facts that it has collected.
    pub collected: Option<Collection>,
    /// The requests of its live run.
    pub requests: BTreeMap<u64, SpecRequest>,
    /// The version of the project with which its latest run was started.
    maker: Option<ProjectVersion>,
}

/// A place among the held slots: by priority, then the one that is held longest, then by workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    priority: std::cmp::Reverse<i32>,
    at: Timestamp,
    slot: SlotRef,
}

/// The state at an earlier moment.
struct Past {
    slots: BTreeMap<SlotRef, SpecSlot>,
    /// The successful run of each workflow that started last.
    last_runs: BTreeMap<WorkflowId, (u64, Timestamp)>,
    /// The program of each workflow.
    programs: BTreeMap<WorkflowId, WorkflowId>,
}

/// The state of the specification.
pub struct Spec {
    window: SignedDuration,
    max_running: usize,
    /// Whether workers run jobs.
    by_workers: BTreeSet<String>,
    /// The offers of workers, less the runs that they were assigned.
    offers: BTreeMap<Arc<str>, Offer>,
    /// The worker of the latest run of a job, and how many attempts it makes in all.
    taken: BTreeMap<SlotRef, (Arc<str>, Option<u32>)>,
    /// Workflows that only the limit on all runs held back, the longest wait first.
    held_back: Vec<WorkflowId>,
    /// Whether the next of them is the one with the latest time.
    is_latest_next: bool,
    /// The milliseconds at which the tokens of each rate are all there again.
    full_at: BTreeMap<PoolId, i64>,
    /// The answers to requests of live runs.
    answers: Vec<RunAnswer>,
    workflows: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The schedules of these.
    scan: Scan,
    plans: Plans,
    paused: BTreeMap<WorkflowId, bool>,
    /// When workflows that were paused were resumed.
    resumed: BTreeMap<WorkflowId, Timestamp>,
    backfills: BTreeMap<BackfillId, SpecBackfill>,
    /// Every slot.
    pub slots: BTreeMap<SlotRef, SpecSlot>,
    /// The last definitions, including those of removed workflows, whose runs still end.
    known: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// All versions that workflows ever had.
    versions: BTreeSet<(WorkflowId, ProjectVersion)>,
    meant: GroupMeanings,
    /// The dependencies between jobs.
    pub apps: Apps,
    /// Jobs that are not open, and of which a parent succeeded.
    prospects: BTreeSet<SlotRef>,
    memory: events::Memory,
    /// All runs of each slot, in order.
    records: RunRecords,
    /// The successful run of each workflow that started last.
    last_runs: BTreeMap<WorkflowId, (u64, Timestamp)>,
    /// A counter of runs.
    runs: u64,
    /// The states since the last step, after each moment at which something happened.
    past: Vec<(Timestamp, Past)>,
    now: Timestamp,
}

/// The resolved schedules that open jobs.
fn schedules_of_feeds(all: &[Arc<Workflow>]) -> BTreeMap<WorkflowId, CronSchedule> {
    let ticks = all.iter().filter_map(|one| Some((one.id.clone(), one.keys.ticks()?)));
    let resolved = resolve(&ticks.collect());
    let is_fed = |id: &WorkflowId| all.iter().any(|one| one.id == *id && one.keys.jobs().is_some());
    resolved.into_iter().filter_map(|(id, found)| Some((id, found.ok()?))).filter(|(id, _)| is_fed(id)).collect()
}

impl Spec {
    /// A state without definitions and slots.
    #[must_use]
    pub fn new(config: &Config, meant: GroupMeanings) -> Spec {
        Spec {
            meant,
            window: config.planning_window,
            max_running: config.max_running as usize,
            by_workers: config.by_workers.clone(),
            offers: BTreeMap::new(),
            taken: BTreeMap::new(),
            held_back: Vec::new(),
            is_latest_next: false,
            full_at: BTreeMap::new(),
            answers: Vec::new(),
            apps: Apps::default(),
            prospects: BTreeSet::new(),
            workflows: BTreeMap::new(),
            scan: Scan::default(),
            plans: Plans::default(),
            paused: BTreeMap::new(),
            resumed: BTreeMap::new(),
            backfills: BTreeMap::new(),
            slots: BTreeMap::new(),
            known: BTreeMap::new(),
            versions: BTreeSet::new(),
            memory: events::Memory::default(),
            records: RunRecords::default(),
            last_runs: BTreeMap::new(),
            runs: 0,
            past: Vec::new(),
            now: Timestamp::MIN,
        }
    }

    /// Imports the slots of another scheduler, and the workflows that it left paused.
    pub fn import(&mut self, past: &crate::past::Past, workload: &crate::workload::Workload) {
        for (slot, arrival) in past.arrivals(workload) {
            let (started, since, asked) = ((0, workload.start), workload.start, Some(workload.start));
            // A slot that was imported with a run counts for the definition of that moment.
            let definition = workload.definitions[0].1.iter().find(|one| one.id == slot.workflow);
            let maker = arrival.external_id.as_ref().and(definition).and_then(|one| one.version.clone());
            if arrival.external_id.is_some() {
                let run = RunRecord { succeeded: arrival.state == SlotState::Succeeded, ..RunRecord::default() };
                self.records.insert(slot.clone(), vec![run]);
            }
            self.slots.insert(slot, SpecSlot { started, since, asked, maker, ..SpecSlot::imported(&arrival) });
        }
        self.paused.extend(past.paused().map(|id| (id.clone(), true)));
    }

    /// Sets all definitions.
    pub fn define(&mut self, all: &[Arc<Workflow>], deployed: &BTreeMap<String, Deployment>, now: Timestamp) {
        self.now = now;
        let definitions = self.deploy(all, deployed);
        self.enact(definitions, now);
        self.see_schedules(now);
        self.apps = Apps::of(all, &self.meant);
        self.push();
        self.await_times();
        self.keep_past();
    }

    fn schedules(&self) -> BTreeMap<WorkflowId, CronSchedule> {
        schedules(&self.workflows.values().cloned().collect::<Vec<_>>())
    }

    /// Takes one step and returns the runs that it starts.
    pub fn step(&mut self, now: Timestamp, world: &World) -> Vec<RunId> {
        let schedules = self.schedules();
        let timed: Vec<_> =
            self.workflows.keys().filter(|id| !self.is_paused(id) && schedules.contains_key(*id)).cloned().collect();
        self.now = now;
        self.count_times(now);
        for id in &timed {
            self.plan(id, &schedules[id], now);
        }
        self.feed(now);
        // A slot that is held already is closer to its start than one that waits for its trigger, and comes first.
        self.judge_held(None, now, Some(now));
        loop {
            let known = self.slots.len();
            for id in &timed {
                self.gate(id, &schedules[id], now, world);
            }
            if !self.gate_jobs(now, world) && self.slots.len() == known {
                break;
            }
        }
        self.gate_moments(now, world);
        self.judge_held(None, now, None);
        let started = self.dispatch();
        self.past.clear();
        self.keep_past();
        started
    }

    fn is_paused(&self, id: &WorkflowId) -> bool {
        self.paused.get(id).copied().unwrap_or(false)
    }

    /// Whether a workflow is inactive. When an event schedule is disabled its pending slots end, and live runs continue.
    fn is_off(&self, id: &WorkflowId) -> bool {
        self.is_paused(id) && !self.is_event_schedule(id)
    }

    /// Whether a slot is keyed by the moment of its opening, and its workflow exists.
    fn is_moment(&self, slot: &SlotRef) -> bool {
        slot.key.is_moment() && self.workflows.contains_key(&slot.workflow)
    }

    /// Whether a slot belongs to the current definition of its workflow.
    fn is_here(&self, slot: &SlotRef, schedules: &BTreeMap<WorkflowId, CronSchedule>) -> bool {
        let has_time = |schedule: &CronSchedule| schedule.has(&slot.key);
        self.is_moment(slot)
            || self.is_job(slot)
            || schedules.get(&slot.workflow).is_some_and(has_time) && self.is_in_bounds(slot)
    }

    /// Whether a slot by time lies between the start and the end of its workflow, or was requested. Moments always do.
    fn is_in_bounds(&self, slot: &SlotRef) -> bool {
        if slot.key.is_moment() {
            return true;
        }
        let workflow = self.workflows.get(&slot.workflow);
        let start = workflow.and_then(|one| one.start_time).unwrap_or(Timestamp::MIN);
        let is_over = workflow.zip(slot.key.time()).is_some_and(|(one, at)| match one.keys.calendar() {
            Some(days) => days.schedule().contains(at) && !catch_up::is_before_end(one, days.schedule(), at),
            None => one.end_time.is_some_and(|end| at >= end),
        });
        let in_bounds = slot.key.time().is_some_and(|at| at >= start) && !is_over;
        in_bounds || self.slots.get(slot).is_some_and(|slot| slot.requested)
    }

    /// When a slot by time is due.
    fn due(&self, slot: &SlotRef) -> Option<Timestamp> {
        let at = slot.key.time()?;
        let calendar =
            self.workflows.get(&slot.workflow).filter(|_| !slot.key.is_moment()).and_then(|one| one.keys.calendar());
        Some(calendar.filter(|one| one.schedule().contains(at)).map_or(at, |one| catch_up::due(one.schedule(), at)))
    }

    /// Whether the time of a slot has come, or a person asked for it.
    fn has_come(&self, slot: &SlotRef, state: &SpecSlot) -> bool {
        state.requested || slot.key.is_moment() || self.due(slot).is_none_or(|due| due <= self.now)
    }

    /// Moves a slot to a state.
    fn enter(&mut self, slot: &SlotRef, state: SlotState, now: Timestamp) {
        if let Some(slot) = self.slots.get_mut(slot)
            && slot.state != state
        {
            slot.state = state;
            slot.since = now;
        }
    }

    /// Evaluates every slot of a workflow.
    fn gate(&mut self, id: &WorkflowId, schedule: &CronSchedule, now: Timestamp, world: &World) {
        let workflow = self.workflows[id].clone();
        let mine = self.slots.keys().filter(|slot| slot.workflow == *id && schedule.has(&slot.key));
        let mine = mine.filter(|slot| self.is_in_bounds(slot));
        for slot in mine.cloned().collect::<Vec<_>>() {
            let state = &self.slots[&slot];
            let backed_off = state.state == SlotState::Backoff && state.due.is_some_and(|due| due <= now);
            if state.state != SlotState::Waiting && !backed_off || self.is_left_alone(state) {
                continue;
            }
            if !self.has_come(&slot, state) {
                // Another definition may have given it a later time.
                self.enter(&slot, SlotState::Waiting, now);
                continue;
            }
            let looked = self.looked(&slot, &workflow, None, world);
            self.pull_awaited(&looked);
            let late = self.is_late(&slot, now);
            match looked.explanation.answer {
                Answer::Met if !self.was_met_in_time(&slot, world) => self.enter(&slot, SlotState::Expired, now),
                Answer::Met => self.met(&slot, now),
                Answer::Never => self.enter(&slot, SlotState::Skipped, now),
                Answer::NotYet if late => self.enter(&slot, SlotState::Expired, now),
                Answer::NotYet => self.enter(&slot, SlotState::Waiting, now),
            }
        }
    }

    /// The answer of a slot's trigger now, or at a moment of the past: slots that succeeded later had not yet. The moment at which a
    /// path came to exist is not known.
    fn looked(&self, slot: &SlotRef, workflow: &Workflow, past: Option<Timestamp>, world: &World) -> Evaluation {
        let later = |slot: &SpecSlot| slot.state == SlotState::Succeeded && past.is_some_and(|past| slot.since > past);
        let state = |slot: &SlotRef| {
            let slot = self.slots.get(slot)?;
            Some(if later(slot) { SlotState::Waiting } else { slot.state })
        };
        let collected = self.slots[slot].collected.as_ref();
        let times = &self.scan;
        let seen = WorldView { now: self.now, past, world, state: &state, times, collected };
        evaluate(&workflow.trigger, &slot.workflow, &KeyValues::of(&workflow.keys, &slot.key), &seen)
    }

    /// Whether a trigger that is met was met before the slot's time was over.
    fn was_met_in_time(&self, slot: &SlotRef, world: &World) -> bool {
        let workflow = &self.workflows[&slot.workflow];
        let last = self.last_in_time(slot, self.now);
        last.is_none_or(|last| self.looked(slot, workflow, Some(last), world).explanation.answer == Answer::Met)
    }

    /// Keeps the current state, for questions about the past.
    fn keep_past(&mut self) {
        if self.known.values().any(|one| !one.constraints.is_empty()) {
            let program = |(id, one): (&WorkflowId, &Arc<Workflow>)| (id.clone(), one.program().clone());
            let programs = self.known.iter().map(program).collect();
            let past = Past { slots: self.slots.clone(), last_runs: self.last_runs.clone(), programs };
            self.past.push((self.now, past));
        }
    }

    /// The state at a moment, as far as it is known; none if it is the current one.
    fn at(&self, moment: Timestamp) -> Option<&Past> {
        let before = self.past.iter().rfind(|(at, _)| *at <= moment).or(self.past.first());
        before.filter(|_| moment < self.now).map(|(_, past)| past)
    }

    fn start(&mut self, slot: SlotRef, leader: Option<&RunId>) -> Option<RunId> {
        let state = self.slots.get_mut(&slot)?;
        state.leader = leader.cloned();
        state.state = SlotState::Running;
        state.last_run += 1;
        state.alive = true;
        self.runs += 1;
        self.records.entry(slot.clone()).or_default().push(RunRecord::default());
        state.started = (self.runs, self.now);
        state.maker = self.known.get(&slot.workflow).and_then(|one| one.version.clone());
        Some(RunId { slot, number: state.last_run })
    }

    /// All that a run is given that was just started.
    #[must_use]
    pub fn inputs(&self, run: &RunId) -> Arguments {
        let Some(workflow) = self.known.get(&run.slot.workflow) else { return Arguments::new() };
        let state = |slot: &SlotRef| self.slots.get(slot).map(|slot| slot.state);
        let collected = self.slots.get(&run.slot).and_then(|slot| slot.collected.as_ref());
        let world = World::new(0);
        let facts = WorldView { now: self.now, past: None, world: &world, state: &state, times: &self.scan, collected };
        let dispatch = Dispatch { state: &state, runs: &self.records, apps: &self.apps, facts: &facts };
        let own = || kept_arguments(workflow, collected, &run.slot.key).unwrap_or_default();
        dispatch.inputs(workflow, &self.served_by(run), collected).unwrap_or_else(own)
    }

    /// Records the end of a run.
    pub fn ended(&mut self, run: &RunId, outcome: &Outcome, now: Timestamp) {
        self.now = now;
        self.ends(run, outcome, now);
        self.keep_past();
    }

    fn ends(&mut self, run: &RunId, outcome: &Outcome, now: Timestamp) {
        // A wait for the end of one sees that of all.
        let mut over = Vec::new();
        for slot in self.served_by(run) {
            let own = self.slots.get(&slot).map_or(0, |state| state.last_run);
            over.extend(self.ends_for(&RunId { slot, number: own }, run, outcome, now));
        }
        over.into_iter().for_each(|(run, state)| self.has_ended(&run, state, now));
    }

    /// Records the end of a run for one of the slots that it serves, whose own run has another name.
    fn ends_for(
        &mut self,
        run: &RunId,
        leader: &RunId,
        outcome: &Outcome,
        now: Timestamp,
    ) -> Option<(RunId, SlotState)> {
        let workflow = self.known.get(&run.slot.workflow).cloned()?;
        let state = self.slots.get_mut(&run.slot)?;
        state.alive = false;
        state.requests.clear();
        if state.state != SlotState::Running {
            return None;
        }
        let is_removed = !self.workflows.contains_key(&workflow.id);
        let gone = workflow.keys.events().is_some() && is_removed;
        let (given_up, is_again) = match (outcome, workflow.retry.on_unknown) {
            (Outcome::Lost { .. }, _) | (Outcome::Unknown { .. }, OnUnknown::Fail) => (true, false),
            (Outcome::Unknown { .. }, OnUnknown::Again) => (false, state.again < MOST_AGAIN && !is_removed),
            _ => (false, false),
        };
        // The worker took the run that serves all slots of a batch.
        let attempts = self.taken.get(&leader.slot).and_then(|(_, attempts)| *attempts);
        let retries = attempts.map_or(workflow.retry.count, |attempts| attempts.saturating_sub(1));
        if *outcome == Outcome::Succeeded {
            state.state = SlotState::Succeeded;
            state.since = now;
            let record = self.records.get_mut(&run.slot).and_then(|all| all.last_mut());
            record.into_iter().for_each(|record| record.succeeded = true);
            self.note_success(&run.slot);
            self.succeeded(&run.slot);
            Some((run.clone(), SlotState::Succeeded))
        } else if (is_again || state.retries - state.again < retries) && !given_up && !gone {
            state.retries += 1;
            state.again += u32::from(is_again);
            state.state = SlotState::Backoff;
            state.due = Some(workflow.retry.due(state.retries, now, kelos_core::jitter_seed(leader)));
            None
        } else {
            state.state = SlotState::Failed;
            Some((run.clone(), SlotState::Failed))
        }
    }

    /// Carries out a request. Returns the runs that it cancels.
    pub fn asked(&mut self, ask: &Ask, now: Timestamp) -> Vec<RunId> {
        self.now = now;
        let ended = self.comply(ask, now);
        self.await_times();
        self.keep_past();
        ended
    }

    fn comply(&mut self, ask: &Ask, now: Timestamp) -> Vec<RunId> {
        match ask {
            Ask::Pause(Pause { workflow: id, .. }) | Ask::Resume(Resume { workflow: id, .. })
                if self.workflows.contains_key(id) && !self.is_event_schedule(id) =>
            {
                self.switch(id, matches!(ask, Ask::Pause(_)), now);
            }
            Ask::Enable(Enable { schedule: id, .. }) | Ask::Disable(Disable { schedule: id, .. })
                if self.is_event_schedule(id) =>
            {
                self.switch(id, matches!(ask, Ask::Disable(_)), now);
            }
            Ask::EnableByTime(EnableByTime { schedules, range, .. }) => self.enable_changed(schedules, *range, now),
            Ask::CreateSchedules(CreateSchedules { new, .. }) => self.create(new, now),
            Ask::ChangeSchedule(ChangeSchedule { changed, .. }) => self.change(changed, now),
            Ask::DeleteSchedules(DeleteSchedules { schedules: gone, .. }) => self.delete(gone, now),
            Ask::Fire(request) => self.fire_now(request, now),
            Ask::Tell(Tell { facts, .. }) => self.tell(facts, now),
            Ask::Rerun(Rerun { slot, .. }) if self.has(slot) && !self.apps.is_hopeless(slot) => {
                let is_in_bounds = self.is_in_bounds(slot);
                match self.slots.get_mut(slot) {
                    None => {
                        self.slots.insert(slot.clone(), SpecSlot::requested(now));
                    }
                    Some(state) if state.state.is_final() => state.reopen(0, None, now),
                    Some(state) if !is_in_bounds && !state.requested => {
                        state.requested = true;
                        state.asked = Some(now);
                    }
                    Some(_) => {}
                }
            }
            // A job that was never opened does not exist, so there is nothing to kill.
            Ask::Kill(Kill { slot, .. }) if slot.key.job().is_some() && !self.slots.contains_key(slot) => {}
            Ask::Kill(Kill { slot, .. }) if self.can_be(slot) => return self.end(slot, SlotState::Killed, now),
            Ask::Skip(Skip { slot, .. }) if self.can_be(slot) => return self.end(slot, SlotState::Skipped, now),
            Ask::MarkSuccess(MarkSuccess { slot, .. }) if self.can_be(slot) => {
                let state = self.slots.entry(slot.clone()).or_insert_with(|| SpecSlot::requested(now));
                if !state.alive && state.state != SlotState::Succeeded {
                    state.state = SlotState::Succeeded;
                    state.since = now;
                    self.succeeded(slot);
                }
            }
            Ask::Submit(request) => self.submit(request, now),
            Ask::RerunDownstream(request) if self.has(&request.slot) && !self.apps.is_hopeless(&request.slot) => {
                return self.rerun_downstream(request, now);
            }
            Ask::Backfill(request) if !request.dry_run => self.backfill(request, now),
            Ask::PauseBackfill(PauseBackfill { backfill, .. }) => {
                self.change_backfill(backfill, true, |row| row.paused = true)
            }
            Ask::ResumeBackfill(ResumeBackfill { backfill, .. }) => self.change_backfill(backfill, false, |row| {
                if row.paused {
                    row.resumed = Some(now);
                }
                row.paused = false;
            }),
            Ask::PrioritiseBackfill(PrioritiseBackfill { backfill, priority, .. }) => {
                self.change_backfill(backfill, true, |row| row.priority = *priority);
            }
            Ask::RerunBackfill(RerunBackfill { backfill, .. }) => self.rerun_backfill(backfill, now),
            Ask::CancelBackfill(CancelBackfill { backfill, .. }) => self.cancel_backfill(backfill),
            _ => {}
        }
        Vec::new()
    }

    /// Whether a request may name a slot: it exists, or would by its schedule.
    fn can_be(&self, slot: &SlotRef) -> bool {
        self.slots.contains_key(slot) || self.has(slot)
    }

    fn has(&self, slot: &SlotRef) -> bool {
        let came_to_be = self.is_moment(slot) && self.slots.contains_key(slot);
        came_to_be
            || self.is_job(slot)
            || self.schedules().get(&slot.workflow).is_some_and(|schedule| schedule.has(&slot.key))
    }

    fn end(&mut self, slot: &SlotRef, end: SlotState, now: Timestamp) -> Vec<RunId> {
        let state = self.slots.entry(slot.clone()).or_insert_with(|| SpecSlot::requested(now));
        if state.state.is_final() {
            return Vec::new();
        }
        let alive = state.alive;
        let together = self.ending_with(slot);
        let others = together.iter().filter(|other| *other != slot);
        let all: Vec<&SlotRef> = std::iter::once(slot).chain(others).collect();
        let over: Vec<RunId> = all.into_iter().filter_map(|slot| self.end_alone(slot, end)).collect();
        over.iter().for_each(|run| self.has_ended(run, end, now));
        if alive { vec![self.serving(slot)] } else { Vec::new() }
    }
}

fn millis(millis: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

impl SpecSlot {
    fn imported(arrival: &kelos_door_celos::import::Arrival) -> SpecSlot {
        SpecSlot {
            state: arrival.state,
            retries: arrival.retries,
            last_run: u32::from(arrival.external_id.is_some()),
            alive: arrival.state == SlotState::Running,
            requested: arrival.requested,
            ..SpecSlot::waiting(0, None)
        }
    }

    /// A slot that a person requested before it existed.
    fn requested(now: Timestamp) -> SpecSlot {
        SpecSlot { requested: true, asked: Some(now), ..SpecSlot::waiting(0, None) }
    }

    fn waiting(priority: i32, backfill: Option<BackfillId>) -> SpecSlot {
        SpecSlot {
            state: SlotState::Waiting,
            retries: 0,
            again: 0,
            last_run: 0,
            alive: false,
            leader: None,
            priority,
            requested: backfill.is_some(),
            backfill,
            due: None,
            since: Timestamp::MIN,
            started: (0, Timestamp::MIN),
            asked: None,
            planned: Timestamp::MIN,
            collected: None,
            requests: BTreeMap::new(),
            maker: None,
        }
    }

    fn reopen(&mut self, priority: i32, backfill: Option<BackfillId>, now: Timestamp) {
        self.state = SlotState::Waiting;
        (self.retries, self.again) = (0, 0);
        self.priority = priority;
        self.backfill = backfill;
        self.requested = true;
        self.asked = Some(now);
        if let Some(collected) = &mut self.collected {
            collected.since = now;
            collected.met = true;
            collected.again = true;
        }
    }

    /// Its collection, created now if it has none yet.
    fn collected(&mut self, now: Timestamp) -> &mut Collection {
        self.collected.get_or_insert_with(|| Collection::new(now))
    }

    /// Whether it collects new facts: it depends on its trigger, and has not started yet.
    fn is_collecting(&self) -> bool {
        let told = |one: &Collection| one.asked.is_some() || one.again;
        let pending = matches!(self.state, SlotState::Waiting | SlotState::Held) && self.last_run == 0;
        pending && !self.collected.as_ref().is_some_and(told)
    }
}
