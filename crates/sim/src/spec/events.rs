//! The rules of facts and event schedules, as scans: each fact is given to all slots that wait for it, each slot that may have waited too
//! long is evaluated, and every cron time since the last step is counted anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Deployment, FireRequest};
use kelos_model::arguments::kept_arguments;
use kelos_model::ranges::Range;
use kelos_model::retry::scramble;
use kelos_model::workflow::{CatchUp, Keys, WaitStart};
use kelos_model::{
    Actor, Answer, Collection, Fact, FactKey, Occurrence, Otherwise, RunId, SlotRef, SlotState, Workflow, WorkflowId,
};
use serde_json::{Map, Value};

use super::{Spec, SpecSlot, millis};
use crate::world::{Scan, World};

type Definitions = BTreeMap<WorkflowId, Arc<Workflow>>;

/// Cron expressions, by name.
type Crons = BTreeSet<Arc<str>>;

/// How late a cron time may be to count under any policy.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// The state besides slots.
#[derive(Default)]
pub(super) struct Memory {
    /// The idempotency keys of published facts.
    told: BTreeSet<FactKey>,
    /// The outputs of runs.
    gave: BTreeMap<RunId, Map<String, Value>>,
    /// When each event schedule last changed.
    updated: BTreeMap<WorkflowId, Timestamp>,
    /// The moment until which the cron times of each workflow are handled.
    fired_until: BTreeMap<WorkflowId, Timestamp>,
    /// The first moment that no slot of a workflow has as its key yet.
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

    /// Puts definitions in force, with the consequences for pending slots of event schedules.
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
        let version = |one: &Arc<Workflow>| Some((one.id.clone(), one.version.clone()?));
        self.versions.extend(all.values().filter_map(version));
        self.scan = Scan::of(all.values());
        self.workflows = all;
    }

    fn begin_anew(&mut self, id: &WorkflowId, now: Timestamp) {
        self.memory.updated.insert(id.clone(), now);
        self.memory.fired_until.insert(id.clone(), now);
    }

    /// Ends the pending slots of an event schedule: those that have not run yet, or all if it is gone.
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

    /// Pauses or resumes a workflow, disables or enables an event schedule.
    pub(super) fn switch(&mut self, id: &WorkflowId, off: bool, now: Timestamp) {
        let before = self.paused.insert(id.clone(), off).unwrap_or(false);
        if before && !off && !self.is_event_schedule(id) {
            self.resumed.insert(id.clone(), now);
        }
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
            Keys::Requests(_) | Keys::Schedule(_) => true,
            Keys::Jobs(_) => false,
        };
        if startable {
            let slot = self.open_moment(&request.workflow, now);
            let mut collected = Collection::new(now);
            let (arguments, unconstrained) = (request.arguments.clone(), request.unconstrained);
            // All requests of people in a simulation come from one person.
            let by = Some(Actor::person("somebody"));
            collected.asked = Some(kelos_model::facts::ManualStart { arguments, unconstrained, by });
            if let Some(slot) = self.slots.get_mut(&slot) {
                slot.collected = Some(collected);
            }
        }
    }

    /// Opens a slot whose key is this moment, or the first free one after it. Whole seconds belong to schedules.
    fn open_moment(&mut self, id: &WorkflowId, now: Timestamp) -> SlotRef {
        let is_timed = self.workflows.get(id).is_some_and(|one| one.keys.schedule().is_some());
        let free = self.memory.free.entry(id.clone()).or_insert(now);
        let mut at = (*free).max(now);
        if is_timed && at.subsec_millisecond() == 0 {
            at += SignedDuration::from_millis(1);
        }
        *free = at + SignedDuration::from_millis(1);
        let slot = SlotRef::moment(id.clone(), at);
        self.slots.insert(slot.clone(), SpecSlot::waiting(0, None));
        slot
    }

    /// Publishes facts: each idempotency key counts once.
    pub(super) fn tell(&mut self, facts: &[Fact], now: Timestamp) {
        for fact in facts {
            if fact.name().is_none_or(|name| self.memory.told.insert(name)) {
                self.deliver(&fact.what, now);
            }
        }
    }

    /// Records the output of a run.
    pub fn gave(&mut self, run: &RunId, outputs: &Map<String, Value>) {
        for slot in self.served_by(run) {
            let number = self.slots.get(&slot).map_or(run.number, |state| state.last_run);
            let record = self.records.get_mut(&slot).and_then(|all| all.last_mut());
            record.into_iter().for_each(|record| record.outputs.clone_from(outputs));
            self.memory.gave.insert(RunId { slot, number }, outputs.clone());
        }
    }

    /// Records the end of a live run.
    pub(super) fn has_ended(&mut self, run: &RunId, state: SlotState, now: Timestamp) {
        let Some(workflow) = self.known.get(&run.slot.workflow) else { return };
        let name = Some(format!("{}#{}", run.slot.short(), run.number));
        let program = workflow.program().clone();
        let collected = self.slots.get(&run.slot).and_then(|slot| slot.collected.as_ref());
        let arguments = kept_arguments(workflow, collected, &run.slot.key).unwrap_or_default();
        // A killed run has no output.
        let outputs = self.memory.gave.remove(run).filter(|_| state != SlotState::Killed).unwrap_or_default();
        self.deliver(&Occurrence::Ended { program, state, run: name, arguments, outputs }, now);
    }

    fn deliver(&mut self, what: &Occurrence, now: Timestamp) {
        let waits = |one: &&Arc<Workflow>| one.trigger.subjects().contains(&what.subject());
        let waiting: Vec<WorkflowId> = self.workflows.values().filter(waits).map(|one| one.id.clone()).collect();
        if !waiting.is_empty() {
            // Earlier cron times come first.
            self.count_times(now);
        }
        for id in waiting {
            self.collect(&id, what, now, now);
        }
    }

    /// Lets a workflow collect an occurrence that came at a moment.
    fn collect(&mut self, id: &WorkflowId, what: &Occurrence, now: Timestamp, came: Timestamp) {
        let workflow = self.workflows[id].clone();
        let Some(events) = workflow.keys.events() else {
            let waiting = |(slot, state): &(&SlotRef, &SpecSlot)| {
                let was_started = state.collected.as_ref().is_some_and(|one| one.asked.is_some());
                let waits = state.state == SlotState::Waiting && !was_started;
                slot.workflow == *id && waits && !self.is_late(slot, came)
            };
            let mine: Vec<SlotRef> = self.slots.iter().filter(waiting).map(|(slot, _)| slot.clone()).collect();
            for slot in mine {
                if let Some(state) = self.slots.get_mut(&slot) {
                    state.collected(now).add(what);
                }
            }
            return;
        };
        let is_time = matches!(what, Occurrence::Fired { .. });
        let over = events.end_time.is_some_and(|end| now >= end) && !is_time;
        if self.is_paused(id) || over || workflow.start_time.is_some_and(|start| now < start) {
            return;
        }
        let slot = self.collector(id, now, came);
        let Some(state) = self.slots.get_mut(&slot) else { return };
        state.collected(now).add(what);
        if self.may_go_on(&slot, came) {
            self.go_on(&slot, now);
        }
    }

    /// Whether everything that a slot waits for had come by a moment. Schedules for which this is asked have no probes.
    fn may_go_on(&self, slot: &SlotRef, at: Timestamp) -> bool {
        let workflow = &self.workflows[&slot.workflow];
        match self.slots[slot].state {
            SlotState::Waiting => {
                let looked = self.looked(slot, workflow, Some(at), &World::new(0));
                looked.explanation.answer == Answer::Met
            }
            SlotState::Held => !self.unmet(slot, at).contains(&Otherwise::Wait),
            _ => false,
        }
    }

    /// Each fact is judged as if it had come alone, and constraints once after it: slots that were held before come first.
    fn go_on(&mut self, slot: &SlotRef, now: Timestamp) {
        if self.slots[slot].state == SlotState::Waiting {
            self.gate_moment(slot, now, None);
        }
        if self.slots[slot].state == SlotState::Held {
            let program = self.workflows[&slot.workflow].program().clone();
            self.judge_held(Some(&program), now, Some(now));
            self.judge_held(Some(&program), now, None);
        }
    }

    /// The collecting slot of an event schedule.
    fn collector(&mut self, id: &WorkflowId, now: Timestamp, came: Timestamp) -> SlotRef {
        if let Some(slot) = self.collecting(id)
            && self.may_go_on(&slot, came)
        {
            self.go_on(&slot, now);
        }
        if let Some(slot) = self.collecting(id) {
            if !self.is_late(&slot, came) {
                return slot;
            }
            self.enter(&slot, SlotState::Expired, now);
        }
        self.open_moment(id, now)
    }

    fn collecting(&self, id: &WorkflowId) -> Option<SlotRef> {
        let collects = |(slot, state): &(&SlotRef, &SpecSlot)| slot.workflow == *id && state.is_collecting();
        self.slots.iter().find(collects).map(|(slot, _)| slot.clone())
    }

    /// The last moment of a slot's time, if that is over and it has not run yet.
    pub(super) fn last_in_time(&self, slot: &SlotRef, now: Timestamp) -> Option<Timestamp> {
        let state = &self.slots[slot];
        let last = self.end_of_time(slot).filter(|last| *last < now && state.last_run == 0)?;
        Some(state.asked.map_or(last, |asked| last.max(asked)))
    }

    /// Whether a slot has waited longer than its workflow allows.
    pub(super) fn is_late(&self, slot: &SlotRef, now: Timestamp) -> bool {
        self.end_of_time(slot).is_some_and(|last| now > last)
    }

    /// The moment until which a slot may wait.
    fn end_of_time(&self, slot: &SlotRef) -> Option<Timestamp> {
        let workflow = &self.workflows[&slot.workflow];
        match workflow.keys.events() {
            // A slot that has run before was in time.
            Some(_) if self.slots[slot].last_run > 0 => None,
            Some(events) => {
                let since = self.slots[slot].collected.as_ref().map(|one| one.since).or_else(|| slot.key.time());
                Some(since? + millis(events.timeout_millis))
            }
            None => Some(self.wait_start(slot)? + millis(workflow.wait_timeout_seconds?.saturating_mul(1000))),
        }
    }

    /// The moment from which the wait of a slot by time counts; none while nothing ends it.
    fn wait_start(&self, slot: &SlotRef) -> Option<Timestamp> {
        let (time, state) = (self.due(slot)?, &self.slots[slot]);
        if self.workflows[&slot.workflow].wait_from == WaitStart::Time {
            return Some(time);
        }
        if state.retries > 0 || self.is_off(&slot.workflow) || self.is_left_alone(state) {
            return None;
        }
        // A slot that was held before its workflow counted from the opening has only that moment.
        let held = state.collected.as_ref().filter(|_| state.state == SlotState::Held).map(|one| one.since);
        let opened = held.unwrap_or(state.planned);
        let resumed = [self.resumed.get(&slot.workflow).copied(), self.resumed_with(state), state.asked];
        Some(resumed.into_iter().flatten().fold(time.max(opened), Timestamp::max))
    }

    /// Evaluates every waiting slot that is keyed by a moment.
    pub(super) fn gate_moments(&mut self, now: Timestamp, world: &World) {
        let waits = |(slot, state): &(&SlotRef, &SpecSlot)| {
            let due = state.state == SlotState::Backoff && state.due.is_some_and(|due| due <= now);
            self.is_moment(slot) && !self.is_off(&slot.workflow) && (due || state.state == SlotState::Waiting)
        };
        for slot in self.slots.iter().filter(waits).map(|(slot, _)| slot.clone()).collect::<Vec<_>>() {
            self.gate_moment(&slot, now, Some(world));
        }
    }

    /// Evaluates one; without a world only its collected facts.
    fn gate_moment(&mut self, slot: &SlotRef, now: Timestamp, world: Option<&World>) {
        let workflow = self.workflows[&slot.workflow].clone();
        let collected = self.slots[slot].collected.clone();
        let goes = collected.as_ref().is_some_and(|one| one.asked.is_some() || one.met);
        let nowhere = World::new(0);
        let world = world.unwrap_or(&nowhere);
        let looked = self.looked(slot, &workflow, None, world);
        let answer = match looked.explanation.answer {
            _ if goes => Answer::Met,
            Answer::Met if !self.was_met_in_time(slot, world) => Answer::NotYet,
            answer => answer,
        };
        let late = workflow.keys.events().is_some() && self.is_late(slot, now);
        match answer {
            Answer::Met => self.met(slot, now),
            Answer::Never => self.enter(slot, SlotState::Skipped, now),
            Answer::NotYet if late => self.enter(slot, SlotState::Expired, now),
            Answer::NotYet => self.enter(slot, SlotState::Waiting, now),
        }
    }

    /// Starts counting cron times for the workflows that did not wait for any before.
    pub(super) fn await_times(&mut self) {
        let waits = |one: &&Arc<Workflow>| !one.trigger.firings().is_empty() && !self.is_paused(&one.id);
        for id in self.workflows.values().filter(waits).map(|one| one.id.clone()).collect::<Vec<_>>() {
            self.memory.fired_until.entry(id).or_insert(self.now);
        }
    }

    /// Counts the cron times that have passed: of all workflows in the order in which they count, those of one at one time together.
    pub(super) fn count_times(&mut self, now: Timestamp) {
        self.await_times();
        let waits = self.workflows.values().filter(|one| !one.trigger.firings().is_empty() && !self.is_paused(&one.id));
        let waits: Vec<Arc<Workflow>> = waits.cloned().collect();
        loop {
            let next = waits.iter().filter_map(|one| self.next_time(one, now)).min();
            let Some((due, id, at, crons)) = next else { return };
            self.memory.fired_until.insert(id.clone(), at);
            for cron in crons {
                self.collect(&id, &Occurrence::Fired { cron, time: at }, now, due);
            }
        }
    }

    /// The next time of a workflow that counts by now, after misfires were left out.
    fn next_time(&mut self, workflow: &Workflow, now: Timestamp) -> Option<(Timestamp, WorkflowId, Timestamp, Crons)> {
        let id = &workflow.id;
        let times = passed(workflow, *self.memory.fired_until.get(id)?, now);
        let (policy, jitter) =
            workflow.keys.events().map_or((CatchUp::default(), 0), |events| (events.catch_up, events.jitter_millis));
        let late = now - LATE - millis(jitter);
        let missed = times.keys().filter(|at| **at < late).count();
        let dropped = match policy {
            CatchUp::All => 0,
            CatchUp::Latest if missed == times.len() => missed.saturating_sub(1),
            CatchUp::Latest | CatchUp::Skip => missed,
        };
        if let Some(last) = dropped.checked_sub(1).and_then(|last| times.keys().nth(last)) {
            self.memory.fired_until.insert(id.clone(), *last);
        }
        let (at, crons) = times.into_iter().nth(dropped)?;
        let due = late_by(at, jitter, id);
        (due <= now).then(|| (due, id.clone(), at, crons))
    }
}

/// The cron times of a workflow that count, after a moment and until another, and the expressions that fired then.
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

/// The moment at which a cron time counts that is late by a random time: it depends on the schedule's name and the time.
fn late_by(at: Timestamp, jitter: u64, id: &WorkflowId) -> Timestamp {
    if jitter == 0 {
        return at;
    }
    let name = id.as_str().bytes().fold(0, |hash: u64, byte| scramble(hash ^ u64::from(byte)));
    at + millis(scramble(name ^ at.as_millisecond().cast_unsigned()) % (jitter + 1))
}

/// A schedule with the job of its program, if that exists.
fn bound(schedule: &Workflow, programs: &Definitions) -> Arc<Workflow> {
    let mut bound = schedule.clone();
    if let Some(program) = schedule.keys.events().and_then(|events| programs.get(&events.program)) {
        bound.job = program.job.clone();
        bound.flow.clone_from(&program.flow);
        bound.retry = program.retry;
        bound.pools.clone_from(&program.pools);
        bound.concurrency = None;
    }
    Arc::new(bound)
}

/// Whether two definitions differ in more than the parts from their program.
fn differ(one: &Workflow, other: &Workflow) -> bool {
    one.keys != other.keys
        || one.trigger != other.trigger
        || one.constraints != other.constraints
        || one.start_time != other.start_time
}
