//! The rules of facts and event schedules, as scans: each fact goes to all that wait for it, each slot that may have waited too long
//! is looked at, and every cron time since the last step is counted anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Deployment, FireRequest};
use kelos_model::arguments::arguments;
use kelos_model::ranges::Range;
use kelos_model::retry::scramble;
use kelos_model::template::KeyValues;
use kelos_model::trigger::evaluate;
use kelos_model::workflow::{CatchUp, Keys};
use kelos_model::{Answer, Collected, Fact, FactKey, Occurrence, RunId, SlotRef, SlotState, Workflow, WorkflowId};
use serde_json::{Map, Value};

use super::{Spec, SpecSlot, millis};
use crate::world::{Known, World};

type Definitions = BTreeMap<WorkflowId, Arc<Workflow>>;

/// What is late by less counts whatever the policy.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// What is remembered beside slots.
#[derive(Default)]
pub(super) struct Memory {
    /// The names of facts that were told.
    told: BTreeSet<FactKey>,
    /// What runs said that they give.
    gave: BTreeMap<RunId, Map<String, Value>>,
    /// When each event schedule was last touched.
    updated: BTreeMap<WorkflowId, Timestamp>,
    /// Up to when the cron times of each workflow are done with.
    fired_until: BTreeMap<WorkflowId, Timestamp>,
    /// The first moment that no slot of a workflow was named by yet.
    free: BTreeMap<WorkflowId, Timestamp>,
}

impl Spec {
    /// All definitions after a deployment.
    pub(super) fn deploy(&self, files: &[Arc<Workflow>], deployed: &BTreeMap<String, Deployment>) -> Definitions {
        let (named, programs): (Vec<_>, Vec<_>) = files.iter().cloned().partition(|one| one.keys.events().is_some());
        let replaced = |one: &Workflow| deployed.get(&one.project).is_some_and(|how| how.update_schedules);
        let kept = self.workflows.values().filter(|one| one.keys.events().is_some() && !replaced(one)).cloned();
        let schedules: Vec<Arc<Workflow>> = kept.chain(named.into_iter().filter(|one| replaced(one))).collect();
        let mut all: Definitions = programs.into_iter().map(|one| (one.id.clone(), one)).collect();
        let ever = self.known.values().filter(|one| one.keys.events().is_none() && deployed.contains_key(&one.project));
        let gone: Vec<&WorkflowId> = ever.map(|one| &one.id).filter(|id| !all.contains_key(*id)).collect();
        let mut left = Vec::new();
        for schedule in schedules {
            let Some(events) = schedule.keys.events() else { continue };
            let whole = Some(schedule.trigger.clone()).filter(|_| !gone.contains(&&events.program));
            let trigger = gone.iter().fold(whole, |trigger, program| trigger?.without(program));
            left.extend(trigger.map(|trigger| bound(&Workflow { trigger, ..Workflow::clone(&schedule) }, &all)));
        }
        all.extend(left.into_iter().map(|one| (one.id.clone(), one)));
        all
    }

    /// Puts definitions in force, with what that means to what event schedules have pending.
    pub(super) fn enact(&mut self, all: Definitions, now: Timestamp) {
        let before = std::mem::take(&mut self.workflows);
        for id in before.values().filter(|one| one.keys.events().is_some()).map(|one| &one.id) {
            if !all.contains_key(id) {
                self.abort(id, true);
            }
        }
        for one in all.values().filter(|one| one.keys.events().is_some()) {
            let old = before.get(&one.id);
            if old.is_none() {
                self.paused.insert(one.id.clone(), one.keys.events().is_some_and(|events| !events.enabled));
            }
            if old.is_none_or(|old| differ(old, one)) {
                self.begin_anew(&one.id, now);
                self.abort(&one.id, false);
            }
        }
        for (id, one) in &all {
            let program = self.known.get(id).map(|known| known.program().clone());
            if let Some(program) = program.filter(|program| program != one.program()) {
                self.hand_over_last_run(id, &program);
            }
        }
        self.known.extend(all.clone());
        self.workflows = all;
    }

    fn begin_anew(&mut self, id: &WorkflowId, now: Timestamp) {
        self.memory.updated.insert(id.clone(), now);
        self.memory.fired_until.insert(id.clone(), now);
    }

    /// Ends what an event schedule has pending: what has not run yet, or all where it is gone.
    fn abort(&mut self, id: &WorkflowId, gone: bool) {
        for (_, slot) in self.slots.iter_mut().filter(|(slot, _)| slot.workflow == *id) {
            let pending = match slot.state {
                SlotState::Waiting | SlotState::Held | SlotState::Queued => gone || slot.last_run == 0,
                SlotState::Backoff => gone,
                _ => false,
            };
            if pending {
                slot.state = SlotState::Skipped;
            }
        }
    }

    pub(super) fn is_event_schedule(&self, id: &WorkflowId) -> bool {
        self.workflows.get(id).is_some_and(|one| one.keys.events().is_some())
    }

    pub(super) fn create(&mut self, new: &[Arc<Workflow>], now: Timestamp) {
        let fits = |one: &Arc<Workflow>| {
            let program = one.keys.events().and_then(|events| self.workflows.get(&events.program));
            !self.workflows.contains_key(&one.id) && program.is_some_and(|program| program.keys.events().is_none())
        };
        if new.iter().all(fits) {
            let mut all = self.workflows.clone();
            all.extend(new.iter().map(|one| (one.id.clone(), bound(one, &self.workflows))));
            self.enact(all, now);
        }
    }

    pub(super) fn change(&mut self, changed: &Arc<Workflow>, now: Timestamp) {
        let program = changed.keys.events().and_then(|events| self.workflows.get(&events.program));
        if self.is_event_schedule(&changed.id) && program.is_some_and(|program| program.keys.events().is_none()) {
            let mut all = self.workflows.clone();
            all.insert(changed.id.clone(), bound(changed, &self.workflows));
            self.enact(all, now);
            self.abort(&changed.id, false);
            self.begin_anew(&changed.id, now);
        }
    }

    pub(super) fn delete(&mut self, gone: &[WorkflowId], now: Timestamp) {
        if gone.iter().all(|id| self.is_event_schedule(id)) {
            let mut all = self.workflows.clone();
            all.retain(|id, _| !gone.contains(id));
            self.enact(all, now);
        }
    }

    /// Pauses or resumes a workflow; to an event schedule that is to be disabled or enabled.
    pub(super) fn switch(&mut self, id: &WorkflowId, off: bool, now: Timestamp) {
        let before = self.paused.insert(id.clone(), off).unwrap_or(false);
        if before != off && self.is_event_schedule(id) {
            self.begin_anew(id, now);
            if off {
                self.abort(id, false);
            }
        }
    }

    pub(super) fn enable_changed(&mut self, schedules: &[WorkflowId], range: Range, now: Timestamp) {
        let meant = schedules.iter().filter(|id| {
            let within = self.memory.updated.get(*id).is_some_and(|at| range.start <= *at && *at < range.end);
            within && self.is_event_schedule(id) && self.is_paused(id)
        });
        for id in meant.cloned().collect::<Vec<_>>() {
            self.switch(&id, false, now);
        }
    }

    pub(super) fn fire_now(&mut self, request: &FireRequest, now: Timestamp) {
        let Some(workflow) = self.workflows.get(&request.workflow) else { return };
        let there =
            |program: &WorkflowId| self.workflows.get(program).is_some_and(|program| program.keys.events().is_none());
        let startable = match &workflow.keys {
            Keys::Events(events) => there(&events.program),
            Keys::Requests(_) => true,
            _ => false,
        };
        if startable {
            let slot = self.open_moment(&request.workflow, now);
            let mut collected = Collected::new(now);
            let (arguments, unconstrained) = (request.arguments.clone(), request.unconstrained);
            // All that people ask for in a simulation, one asks for.
            let by = Some("somebody".to_owned());
            collected.asked = Some(kelos_model::facts::Asked { arguments, unconstrained, by });
            if let Some(slot) = self.slots.get_mut(&slot) {
                slot.collected = Some(collected);
            }
        }
    }

    /// Opens a slot that is named by this moment, or the first one after it that is free.
    fn open_moment(&mut self, id: &WorkflowId, now: Timestamp) -> SlotRef {
        let free = self.memory.free.entry(id.clone()).or_insert(now);
        let at = (*free).max(now);
        *free = at + SignedDuration::from_millis(1);
        let slot = SlotRef::at(id.clone(), at);
        self.slots.insert(slot.clone(), SpecSlot::waiting(0, None));
        slot
    }

    /// Facts that somebody tells: each name counts once.
    pub(super) fn tell(&mut self, facts: &[Fact], now: Timestamp) {
        for fact in facts {
            if fact.name().is_none_or(|name| self.memory.told.insert(name)) {
                self.deliver(&fact.what, now);
            }
        }
    }

    /// A run says what it gives.
    pub fn gave(&mut self, run: &RunId, outputs: &Map<String, Value>) {
        self.memory.gave.insert(run.clone(), outputs.clone());
    }

    /// A run that went on came to an end.
    pub(super) fn has_ended(&mut self, run: &RunId, state: SlotState, now: Timestamp) {
        let Some(workflow) = self.known.get(&run.slot.workflow) else { return };
        let name = Some(format!("{}#{}", run.slot.short(), run.number));
        let program = workflow.program().clone();
        let collected = self.slots.get(&run.slot).and_then(|slot| slot.collected.as_ref());
        let arguments = arguments(workflow, collected, run.slot.key.scheduled_at());
        // What was killed gives nothing.
        let outputs = self.memory.gave.remove(run).filter(|_| state != SlotState::Killed).unwrap_or_default();
        self.deliver(&Occurrence::Ended { program, state, run: name, arguments, outputs }, now);
    }

    fn deliver(&mut self, what: &Occurrence, now: Timestamp) {
        for id in self.workflows.keys().cloned().collect::<Vec<_>>() {
            if self.workflows[&id].trigger.subjects().contains(&what.subject()) {
                self.collect(&id, what, now);
            }
        }
    }

    fn collect(&mut self, id: &WorkflowId, what: &Occurrence, now: Timestamp) {
        let workflow = self.workflows[id].clone();
        let Some(events) = workflow.keys.events() else {
            let waiting =
                |(slot, state): &(&SlotRef, &mut SpecSlot)| slot.workflow == *id && state.state == SlotState::Waiting;
            let mine = self.slots.iter_mut().filter(waiting);
            return mine.for_each(|(_, state)| state.collected(now).add(what));
        };
        let is_time = matches!(what, Occurrence::Fired { .. });
        let over = events.end_time.is_some_and(|end| now >= end) && !is_time;
        if self.is_paused(id) || over || workflow.start_time.is_some_and(|start| now < start) {
            return;
        }
        let slot = self.collector(id, now);
        let Some(state) = self.slots.get_mut(&slot) else { return };
        state.collected(now).add(what);
        if state.state == SlotState::Waiting && workflow.trigger.is_of_facts() {
            self.gate_moment(&slot, now, None);
        }
    }

    /// The slot of an event schedule that collects.
    fn collector(&mut self, id: &WorkflowId, now: Timestamp) -> SlotRef {
        let collects = |(slot, state): &(&SlotRef, &SpecSlot)| slot.workflow == *id && state.is_collecting();
        let found = self.slots.iter().find(collects).map(|(slot, _)| slot.clone());
        if let Some(slot) = found {
            if !self.is_late(&slot, now) {
                return slot;
            }
            self.enter(&slot, SlotState::Expired, now);
        }
        self.open_moment(id, now)
    }

    /// Whether a slot has waited longer than its workflow allows.
    pub(super) fn is_late(&self, slot: &SlotRef, now: Timestamp) -> bool {
        let workflow = &self.workflows[&slot.workflow];
        match workflow.keys.events() {
            // What has run before was in time.
            Some(_) if self.slots[slot].last_run > 0 => false,
            Some(events) => {
                let since = self.slots[slot].collected.as_ref().map_or(slot.key.scheduled_at(), |one| one.since);
                now > since + millis(events.timeout_millis)
            }
            None => workflow.wait_timeout_seconds.is_some_and(|seconds| {
                slot.key.time().is_some_and(|at| now > at + millis(seconds.saturating_mul(1000)))
            }),
        }
    }

    /// Looks at every slot that is named by a moment and waits.
    pub(super) fn gate_moments(&mut self, now: Timestamp, world: &World) {
        let waits = |(slot, state): &(&SlotRef, &SpecSlot)| {
            let due = state.state == SlotState::Backoff && state.due.is_some_and(|due| due <= now);
            self.is_moment(slot) && !self.is_off(&slot.workflow) && (due || state.state == SlotState::Waiting)
        };
        for slot in self.slots.iter().filter(waits).map(|(slot, _)| slot.clone()).collect::<Vec<_>>() {
            self.gate_moment(&slot, now, Some(world));
        }
    }

    /// Looks at one; without a world only at what it has collected.
    fn gate_moment(&mut self, slot: &SlotRef, now: Timestamp, world: Option<&World>) {
        let workflow = self.workflows[&slot.workflow].clone();
        let collected = self.slots[slot].collected.clone();
        let goes = collected.as_ref().is_some_and(|one| one.asked.is_some() || one.met);
        let nowhere = World::new(0);
        let state = |slot: &SlotRef| self.slots.get(slot).map(|slot| slot.state);
        let seen = Known { now, world: world.unwrap_or(&nowhere), state: &state, collected: collected.as_ref() };
        let looked = evaluate(&workflow.trigger, &slot.workflow, &KeyValues::of(&workflow.keys, &slot.key), &seen);
        let answer = if goes { Answer::Met } else { looked.explanation.answer };
        let late = world.is_some() && workflow.keys.events().is_some() && self.is_late(slot, now);
        match answer {
            Answer::Met => self.met(slot, now),
            Answer::Never => self.enter(slot, SlotState::Skipped, now),
            Answer::NotYet if late => self.enter(slot, SlotState::Expired, now),
            Answer::NotYet => self.enter(slot, SlotState::Waiting, now),
        }
    }

    /// Counts the cron times that have passed.
    pub(super) fn count_times(&mut self, now: Timestamp) {
        let waits = self.workflows.values().filter(|one| !one.trigger.firings().is_empty() && !self.is_paused(&one.id));
        for workflow in waits.cloned().collect::<Vec<_>>() {
            self.count_times_of(&workflow, now);
        }
    }

    fn count_times_of(&mut self, workflow: &Workflow, now: Timestamp) {
        let id = &workflow.id;
        let until = *self.memory.fired_until.entry(id.clone()).or_insert(now);
        let times = passed(workflow, until, now);
        let (policy, jitter) =
            workflow.keys.events().map_or((CatchUp::default(), 0), |events| (events.catch_up, events.jitter_millis));
        let late = now - LATE - millis(jitter);
        let missed = times.keys().filter(|at| **at < late).count();
        let dropped = match policy {
            CatchUp::All => 0,
            CatchUp::Latest if missed == times.len() => missed.saturating_sub(1),
            CatchUp::Latest | CatchUp::Skip => missed,
        };
        for (n, (at, names)) in times.into_iter().enumerate() {
            if n >= dropped {
                if late_by(at, jitter, id) > now {
                    return;
                }
                for cron in names {
                    self.collect(id, &Occurrence::Fired { cron, time: at }, now);
                }
            }
            self.memory.fired_until.insert(id.clone(), at);
        }
    }
}

/// The cron times of a workflow that count, after a moment and until another, and the names of what fired then.
fn passed(workflow: &Workflow, after: Timestamp, until: Timestamp) -> BTreeMap<Timestamp, BTreeSet<Arc<str>>> {
    let start = workflow.start_time.unwrap_or(Timestamp::MIN);
    let end = workflow.keys.events().and_then(|events| events.end_time).unwrap_or(Timestamp::MAX);
    let tick = SignedDuration::from_millis(1);
    let mut times: BTreeMap<Timestamp, BTreeSet<Arc<str>>> = BTreeMap::new();
    for firing in workflow.trigger.firings() {
        let all = firing.schedule().times(after, until + tick);
        for at in all.filter(|at| after < *at && start <= *at && *at < end) {
            times.entry(at).or_default().insert(firing.name());
        }
    }
    times
}

/// When a cron time counts that is drawn to be late: the draw belongs to the schedule's name and the time.
fn late_by(at: Timestamp, jitter: u64, id: &WorkflowId) -> Timestamp {
    if jitter == 0 {
        return at;
    }
    let name = id.as_str().bytes().fold(0, |hash: u64, byte| scramble(hash ^ u64::from(byte)));
    at + millis(scramble(name ^ at.as_millisecond().cast_unsigned()) % (jitter + 1))
}

/// A schedule with the job of its program, where that is there.
fn bound(schedule: &Workflow, programs: &Definitions) -> Arc<Workflow> {
    let mut bound = schedule.clone();
    if let Some(program) = schedule.keys.events().and_then(|events| programs.get(&events.program)) {
        bound.job = program.job.clone();
        bound.retry = program.retry;
        bound.pools.clone_from(&program.pools);
        bound.concurrency = u32::MAX;
    }
    Arc::new(bound)
}

/// Whether two definitions differ in more than what they have from their program.
fn differ(one: &Workflow, other: &Workflow) -> bool {
    one.keys != other.keys
        || one.trigger != other.trigger
        || one.constraints != other.constraints
        || one.start_time != other.start_time
}
