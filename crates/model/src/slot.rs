//! A slot, the fold of its events, and the one function that changes it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{Origin, SlotEvent};
use crate::facts::{Collection, ManualStart};
use crate::id::BackfillId;
use crate::parameter::Arguments;
use crate::permit::Hold;
use crate::repeated::RepeatedStep;
use crate::state::SlotState;
use crate::step_name::StepName;

impl SlotState {
    /// The state after an event, or none where the event can't happen in this state.
    #[must_use]
    pub fn after(self, event: &SlotEvent) -> Option<SlotState> {
        use SlotState::{
            Backoff, Dispatched, Expired, Failed, Held, Killed, Queued, Running, Skipped, Succeeded, Waiting,
        };
        let next = match (self, event) {
            (Waiting, SlotEvent::Looked { .. }) => Waiting,
            (Waiting | Held, SlotEvent::Collected { .. }) => self,
            (Waiting, SlotEvent::FiredBy { .. }) => Waiting,
            (Waiting | Held | Queued | Backoff, SlotEvent::ArgumentsSet { .. }) => self,
            (Waiting, SlotEvent::TriggerMet { .. }) => Queued,
            (Waiting, SlotEvent::Held { .. }) => Held,
            (Held, SlotEvent::Looked { .. }) => Held,
            (Held, SlotEvent::ConstraintsMet { .. }) => Queued,
            (Waiting | Held, SlotEvent::Expired { .. }) => Expired,
            (Waiting | Held, SlotEvent::Skipped { .. }) => Skipped,
            (Waiting | Held | Queued | Backoff, SlotEvent::Aborted { .. }) => Skipped,
            (Queued, SlotEvent::Dispatched { .. }) => Dispatched,
            (Dispatched, SlotEvent::Given { .. } | SlotEvent::Deferred { .. }) => Dispatched,
            (Dispatched | Running, SlotEvent::Withdrawn { .. }) => Queued,
            (Dispatched, SlotEvent::Started { .. }) => Running,
            (Dispatched | Running, SlotEvent::Gave { .. } | SlotEvent::Acquired { .. }) => self,
            // A run that was killed returns what it holds on its way to its end.
            (state, SlotEvent::Released { .. }) => state,
            (Dispatched | Running, SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. }) => Succeeded,
            (Queued, SlotEvent::Pinned { .. }) => Queued,
            (live, SlotEvent::Signalled { .. } | SlotEvent::Late { .. }) if !live.is_final() => live,
            (done, SlotEvent::StepOpened { .. } | SlotEvent::Resumed { .. }) if done.is_final() => Waiting,
            (Waiting, SlotEvent::StepReady { .. }) => Queued,
            (Dispatched | Running, SlotEvent::BackedOff { .. }) => Backoff,
            (Dispatched | Running, SlotEvent::Failed { .. }) => Failed,
            (Backoff, SlotEvent::BackoffEnded) => Waiting,
            (live, SlotEvent::Killed { .. }) if !live.is_final() => Killed,
            (live, SlotEvent::SkippedBy { .. }) if !live.is_final() => Skipped,
            (idle, SlotEvent::MarkedSucceeded { .. }) if !matches!(idle, Dispatched | Running | Succeeded) => Succeeded,
            (done, SlotEvent::Reopened { .. }) if done.is_final() => Waiting,
            (live, SlotEvent::Prioritised { .. } | SlotEvent::Requested { .. }) if !live.is_final() => live,
            (Waiting | Queued, SlotEvent::Imported { state, .. }) if state.is_importable() => *state,
            // The run of a killed or skipped slot, which may have been reopened since, but can't have been dispatched again.
            (state, SlotEvent::RunEnded { .. }) if !matches!(state, Dispatched | Running) => state,
            _ => return None,
        };
        Some(next)
    }

    /// The state after an event, where the state before may not be known: then the slot begins with the event, or it had ended in some way and
    /// its history was removed. None where the event can't happen, or leaves the slot in a state that is not known.
    #[must_use]
    pub fn following(before: Option<SlotState>, event: &SlotEvent) -> Option<SlotState> {
        if let Some(before) = before {
            return before.after(event);
        }
        match event {
            SlotEvent::Planned { .. } => Some(SlotState::Waiting),
            SlotEvent::Imported { state, .. } => Some(*state),
            // All that happens to slots that have ended happens to failed ones, too.
            other => SlotState::Failed.after(other).filter(|state| *state != SlotState::Failed),
        }
    }
}

/// The part of a slot in a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum PartInFlow {
    /// It is a run of a flow.
    Run(RunOfFlow),
    /// It is a step of such a run.
    Step(StepOfRun),
}

/// A run of a flow, beside its steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RunOfFlow {
    /// The number of the definition that it follows; 0 before it begins.
    pub definition: u32,
    /// The first run of the slot that followed the definition: steps that earlier runs did don't count.
    pub since_run: u32,
    /// The steps that are done again, with all that start after them, and the first run in which they are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub again: BTreeMap<StepName, u32>,
    /// The signals that came, by name, and what each said last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub signals: BTreeMap<String, Value>,
    /// The step of another run that it does again, and nothing else of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Box<RepeatedStep>>,
}

/// A step of a run, beside its own life.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StepOfRun {
    /// The number of the flow's run that opened it last.
    pub run: u32,
    /// The steps that it waits for before it handles a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<StepName>,
    /// Its inputs, once it may start.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

/// A slot: the fold of its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// The state.
    pub state: SlotState,
    /// Since when.
    pub since: Timestamp,
    /// Attempts that another followed since it was planned or last reopened: Celos's `retryCount` counts the same.
    pub retries: u32,
    /// How many of these had an unknown outcome and were done again for that, which uses up no retry of its policy.
    #[serde(default, skip_serializing_if = "crate::event::is_zero")]
    pub again: u32,
    /// Number of its latest run; 0 before the first. Never reset.
    pub last_run: u32,
    /// Log position of the latest run's dispatch, which is also the key of its record; 0 before the first.
    pub last_run_seq: u64,
    /// Whether the latest run may still be alive: also true for a killed or skipped slot whose run is being ended.
    pub run_alive: bool,
    /// The executor's id of the latest run.
    pub external_id: Option<String>,
    /// The priority: a larger one starts first, 0 is normal.
    pub priority: i32,
    /// The backfill that last asked for it.
    pub backfill: Option<BackfillId>,
    /// Whether it was ever requested by itself or by a backfill: then it starts although its workflow starts later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requested: bool,
    /// When the retry is due, in [`SlotState::Backoff`].
    pub due: Option<Timestamp>,
    /// Digest of the explanation that was last logged: the next one is logged when it says something else.
    pub said: u32,
    /// Log position of its latest event: the head of its history.
    pub last_event: u64,
    /// Its collection, where its trigger or its constraints need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected: Option<Box<Collection>>,
    /// When it was last requested; none where only its schedule planned it. A timeout that had passed by then is counted from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// The permits that its live run holds beside those of its start, ascending by request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Hold>,
    /// The deadline that it has missed since it was last opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Timestamp>,
    /// Its part in a flow: of a run of one, or of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<PartInFlow>>,
}

impl Slot {
    /// Whether it is a time of a backlog: nothing has happened to it, so there are no events of its own.
    #[must_use]
    pub fn is_only_planned(&self) -> bool {
        self.last_event == 0
    }

    /// A slot in a state of which nothing else is known.
    #[must_use]
    pub fn new(state: SlotState, since: Timestamp) -> Slot {
        Slot {
            state,
            since,
            retries: 0,
            again: 0,
            last_run: 0,
            last_run_seq: 0,
            run_alive: false,
            external_id: None,
            priority: 0,
            backfill: None,
            requested: false,
            due: None,
            said: 0,
            last_event: 0,
            collected: None,
            asked_at: None,
            held: Vec::new(),
            late: None,
            flow: None,
        }
    }

    /// Whether facts that come are its own to collect: it has not started yet, and starts by its trigger.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        let pending = matches!(self.state, SlotState::Waiting | SlotState::Held) && self.last_run == 0;
        pending && self.collected.as_ref().is_none_or(|collected| collected.asked.is_none() && !collected.again)
    }

    /// Its part as a run of a flow; none where it is none, or has not begun.
    #[must_use]
    pub fn run_of_flow(&self) -> Option<&RunOfFlow> {
        match self.flow.as_deref()? {
            PartInFlow::Run(run) => Some(run),
            PartInFlow::Step(_) => None,
        }
    }

    /// Its part as a step of a flow.
    #[must_use]
    pub fn step_of_run(&self) -> Option<&StepOfRun> {
        match self.flow.as_deref()? {
            PartInFlow::Step(step) => Some(step),
            PartInFlow::Run(_) => None,
        }
    }

    /// Changes its part as a run of a flow, which it has from then on.
    fn change_run_of_flow(&mut self, change: impl FnOnce(&mut RunOfFlow)) {
        let mut run = match self.flow.take().map(|part| *part) {
            Some(PartInFlow::Run(run)) => run,
            Some(PartInFlow::Step(_)) | None => RunOfFlow::default(),
        };
        change(&mut run);
        self.flow = Some(Box::new(PartInFlow::Run(run)));
    }

    /// The arguments that later requests than its start gave it, if there are any.
    #[must_use]
    pub fn arguments(&self) -> Option<&Arguments> {
        self.collected.as_ref().map(|collected| &collected.arguments).filter(|arguments| !arguments.is_empty())
    }

    /// The inputs that requests gave to a run that does a step again, in the place of those that the step had; none for all other slots.
    #[must_use]
    pub fn given_to_repeat(&self) -> Option<Arguments> {
        self.run_of_flow()?.repeats.as_ref()?;
        let collected = self.collected.as_ref()?;
        let mut given = collected.asked.as_ref().map(|asked| asked.arguments.clone()).unwrap_or_default();
        given.extend(collected.arguments.clone());
        Some(given)
    }

    /// Whether the scheduler still has something to do for it.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.state.is_final() || self.run_alive
    }
}

/// Applies one event to a slot. This is the only place where a slot changes, live and in recovery alike.
///
/// Returns none where the event can't happen: to a slot that is not there (but for `Planned` and `Imported`),
/// to one that is there already (`Planned`) or has run (`Imported`), in its present state, or about another run
/// than its latest.
#[must_use]
pub fn apply(slot: Option<Slot>, event: &SlotEvent, at: Timestamp, seq: u64) -> Option<Slot> {
    let Some(mut slot) = slot else {
        return begin(event, at, seq);
    };
    let state = slot.state.after(event).filter(|_| fits_run(&slot, event))?;
    match event {
        SlotEvent::Dispatched { .. }
        | SlotEvent::Withdrawn { .. }
        | SlotEvent::Started { .. }
        | SlotEvent::Succeeded { .. }
        | SlotEvent::Recovered { .. }
        | SlotEvent::BackedOff { .. }
        | SlotEvent::BackoffEnded
        | SlotEvent::Failed { .. }
        | SlotEvent::RunEnded { .. } => run(&mut slot, event, seq),
        SlotEvent::Acquired { request, permits, .. } => {
            slot.held.push(Hold { request: *request, permits: permits.clone(), since: at });
            slot.held.sort_by_key(|held| held.request);
        }
        SlotEvent::Released { request, .. } => slot.held.retain(|held| held.request != *request),
        SlotEvent::Collected { .. }
        | SlotEvent::FiredBy { .. }
        | SlotEvent::ArgumentsSet { .. }
        | SlotEvent::Held { .. }
        | SlotEvent::TriggerMet { .. } => collect(&mut slot, event, at),
        SlotEvent::Reopened { .. }
        | SlotEvent::Resumed { .. }
        | SlotEvent::Prioritised { .. }
        | SlotEvent::Requested { .. } => request(&mut slot, event, at),
        SlotEvent::Pinned { .. }
        | SlotEvent::Signalled { .. }
        | SlotEvent::StepOpened { .. }
        | SlotEvent::StepReady { .. } => flow(&mut slot, event, at),
        SlotEvent::Killed { .. } => {
            (slot.retries, slot.again) = (0, 0);
            slot.due = None;
        }
        SlotEvent::SkippedBy { .. } | SlotEvent::MarkedSucceeded { .. } | SlotEvent::Aborted { .. } => slot.due = None,
        SlotEvent::Imported { .. } => {
            import(&mut slot, event, seq);
            slot.asked_at = Some(at);
        }
        SlotEvent::Planned { .. } => return None,
        SlotEvent::Looked { explanation } => slot.said = explanation.digest(),
        SlotEvent::Late { deadline } => slot.late = Some(*deadline),
        SlotEvent::Given { .. }
        | SlotEvent::Gave { .. }
        | SlotEvent::Deferred { .. }
        | SlotEvent::ConstraintsMet { .. }
        | SlotEvent::Expired { .. }
        | SlotEvent::Skipped { .. } => {}
    }
    if !slot.run_alive {
        slot.held.clear();
    }
    if slot.state != state {
        slot.state = state;
        slot.since = at;
    }
    slot.last_event = seq;
    Some(slot)
}

/// Applies an event of a run, or of the time until the next one.
fn run(slot: &mut Slot, event: &SlotEvent, seq: u64) {
    match event {
        SlotEvent::Dispatched { run, .. } => {
            slot.last_run = *run;
            slot.last_run_seq = seq;
            slot.run_alive = true;
            slot.external_id = None;
        }
        SlotEvent::Started { external_id, .. } => slot.external_id = Some(external_id.clone()),
        SlotEvent::BackedOff { due, again, .. } => {
            slot.run_alive = false;
            slot.retries += 1;
            slot.again = slot.again.max(*again);
            slot.due = Some(*due);
        }
        SlotEvent::BackoffEnded => {
            slot.due = None;
            slot.external_id = None;
        }
        SlotEvent::RunEnded { .. } => {
            slot.run_alive = false;
            if let Some(PartInFlow::Run(run)) = slot.flow.as_deref_mut().filter(|_| !slot.state.is_final())
                && run.repeats.is_none()
            {
                // It was opened again meanwhile.
                (run.definition, run.since_run) = (0, 0);
            }
        }
        // It ended, or never began.
        _ => slot.run_alive = false,
    }
}

/// Applies an event of a slot that collects facts, or of its trigger.
fn collect(slot: &mut Slot, event: &SlotEvent, at: Timestamp) {
    match event {
        SlotEvent::Collected { what, .. } => collection(slot, at).add(what),
        SlotEvent::FiredBy { by, arguments, unconstrained, repeats, .. } => {
            let (by, arguments) = (Some(by.clone()), arguments.clone());
            let asked = ManualStart { arguments, unconstrained: *unconstrained, by };
            collection(slot, at).asked = Some(asked);
            if let Some(repeats) = repeats {
                let next = slot.last_run + 1;
                slot.change_run_of_flow(|run| {
                    (run.definition, run.since_run) = (repeats.definition, next);
                    run.repeats = Some(repeats.clone());
                });
            }
        }
        SlotEvent::ArgumentsSet { arguments, .. } => collection(slot, at).arguments.extend(arguments.clone()),
        SlotEvent::Held { opened, .. } => {
            let collected = collection(slot, at);
            collected.met = true;
            collected.since = opened.unwrap_or(collected.since);
        }
        SlotEvent::TriggerMet { .. } => {
            if let Some(collected) = &mut slot.collected {
                collected.met = true;
            }
        }
        _ => {}
    }
}

/// Applies an event of a run of a flow, or of one of its steps.
fn flow(slot: &mut Slot, event: &SlotEvent, at: Timestamp) {
    match event {
        SlotEvent::Pinned { definition } => {
            let next = slot.last_run + 1;
            slot.change_run_of_flow(|run| {
                // A run that is resumed goes on with the definition that it has.
                if run.definition == 0 {
                    (run.definition, run.since_run) = (*definition, next);
                }
            });
        }
        SlotEvent::Signalled { name, payload, .. } => {
            slot.change_run_of_flow(|run| drop(run.signals.insert(name.clone(), payload.clone())));
        }
        SlotEvent::StepOpened { run, awaits, priority } => {
            (slot.retries, slot.again) = (0, 0);
            slot.external_id = None;
            slot.priority = *priority;
            slot.asked_at = Some(at);
            let step = StepOfRun { run: *run, awaits: awaits.clone(), inputs: Map::new() };
            slot.flow = Some(Box::new(PartInFlow::Step(step)));
        }
        SlotEvent::StepReady { inputs } => {
            if let Some(PartInFlow::Step(step)) = slot.flow.as_deref_mut() {
                step.inputs.clone_from(inputs);
            }
        }
        _ => {}
    }
}

/// Applies a request for the slot, its own or a backfill's.
fn request(slot: &mut Slot, event: &SlotEvent, at: Timestamp) {
    if let (Some(PartInFlow::Step(_)), SlotEvent::Prioritised { priority, .. }) = (slot.flow.as_deref(), event) {
        // The request is for the run to which it belongs.
        slot.priority = *priority;
        return;
    }
    slot.requested = true;
    match event {
        SlotEvent::Reopened { priority, backfill, .. } => {
            (slot.retries, slot.again) = (0, 0);
            slot.late = None;
            slot.external_id = None;
            slot.priority = *priority;
            slot.backfill.clone_from(backfill);
            slot.asked_at = Some(at);
            collect_again(slot, at);
            // It begins anew, with the definition that is in force then. Until its run is gone, the steps that are being ended follow
            // the one that it had.
            let (is_ending, next) = (slot.run_alive, slot.last_run + 1);
            if let Some(PartInFlow::Run(run)) = slot.flow.as_deref_mut() {
                let repeats = run.repeats.take();
                let (definition, since_run) = match &repeats {
                    // A step that is done again has no other definition than that with which it was done.
                    Some(repeats) => (repeats.definition, next),
                    None if is_ending => (run.definition, run.since_run),
                    None => (0, 0),
                };
                *run = RunOfFlow { definition, since_run, repeats, ..RunOfFlow::default() };
            }
        }
        SlotEvent::Resumed { from, .. } => {
            (slot.retries, slot.again) = (0, 0);
            slot.late = None;
            slot.external_id = None;
            slot.asked_at = Some(at);
            collect_again(slot, at);
            let next = slot.last_run + 1;
            slot.change_run_of_flow(|run| run.again.extend(from.clone().map(|from| (from, next))));
        }
        SlotEvent::Prioritised { priority, backfill, by, .. } => {
            slot.priority = *priority;
            slot.backfill = Some(backfill.clone());
            if by.is_none() {
                slot.asked_at = Some(at);
            }
        }
        _ => slot.asked_at = Some(at),
    }
}

/// A slot that was opened again does not collect anew.
fn collect_again(slot: &mut Slot, at: Timestamp) {
    if let Some(collected) = &mut slot.collected {
        collected.since = at;
        collected.met = true;
        collected.again = true;
    }
}

/// The collection of a slot, a new one where it has none.
fn collection(slot: &mut Slot, at: Timestamp) -> &mut Collection {
    slot.collected.get_or_insert_with(|| Box::new(Collection::new(at)))
}

/// Whether an event about a run is about the right one, and a deadline is missed once: never two live runs of a slot, numbers that rise
/// one by one, and all else about the latest run and while that is alive.
fn fits_run(slot: &Slot, event: &SlotEvent) -> bool {
    match event {
        SlotEvent::Dispatched { run, .. } => !slot.run_alive && *run == slot.last_run + 1,
        SlotEvent::Given { run, .. }
        | SlotEvent::Deferred { run, .. }
        | SlotEvent::Withdrawn { run }
        | SlotEvent::Started { run, .. }
        | SlotEvent::Gave { run, .. }
        | SlotEvent::Succeeded { run }
        | SlotEvent::Recovered { run, .. }
        | SlotEvent::BackedOff { run, .. }
        | SlotEvent::Failed { run, .. }
        | SlotEvent::RunEnded { run, .. } => slot.run_alive && *run == slot.last_run,
        SlotEvent::Acquired { run, request, .. } => {
            slot.run_alive && *run == slot.last_run && slot.held.iter().all(|held| held.request != *request)
        }
        SlotEvent::Released { run, request } => {
            *run == slot.last_run && slot.held.iter().any(|held| held.request == *request)
        }
        SlotEvent::Late { .. } => slot.late.is_none(),
        SlotEvent::Imported { .. } => slot.last_run == 0 && is_whole(event),
        // Slots that wait for the success would start while the run may still write what they are to read.
        SlotEvent::MarkedSucceeded { .. } => !slot.run_alive,
        _ => true,
    }
}

/// Whether an imported slot can be: one with a live run needs the id by which its executor knows the run.
fn is_whole(event: &SlotEvent) -> bool {
    match event {
        SlotEvent::Imported { state: SlotState::Running, external_id, .. } => external_id.is_some(),
        SlotEvent::Imported { state: SlotState::Waiting, external_id, .. } => external_id.is_none(),
        SlotEvent::Imported { state, .. } => state.is_final(),
        _ => false,
    }
}

/// Takes over what was counted elsewhere. The latest run there is a run here, so that the next one is another.
fn import(slot: &mut Slot, event: &SlotEvent, seq: u64) {
    let SlotEvent::Imported { state, retries, external_id, requested, .. } = event else { return };
    slot.retries = *retries;
    slot.requested |= *requested;
    slot.external_id.clone_from(external_id);
    if external_id.is_some() {
        slot.last_run = 1;
        slot.last_run_seq = seq;
    }
    slot.run_alive = *state == SlotState::Running;
}

/// The events with which a slot comes to be.
fn begin(event: &SlotEvent, at: Timestamp, seq: u64) -> Option<Slot> {
    match event {
        SlotEvent::Planned { origin, priority, backfill, .. } => {
            let asked_at = (*origin != Origin::Schedule).then_some(at);
            let requested = matches!(origin, Origin::Request | Origin::Backfill);
            Some(Slot { requested, asked_at, ..waiting(at, seq, *priority, backfill.clone()) })
        }
        SlotEvent::StepOpened { priority, .. } => {
            let mut slot = waiting(at, seq, *priority, None);
            flow(&mut slot, event, at);
            Some(slot)
        }
        SlotEvent::Imported { state, .. } if is_whole(event) => {
            let mut slot = Slot { state: *state, asked_at: Some(at), ..waiting(at, seq, 0, None) };
            import(&mut slot, event, seq);
            Some(slot)
        }
        _ => None,
    }
}

fn waiting(at: Timestamp, seq: u64, priority: i32, backfill: Option<BackfillId>) -> Slot {
    Slot { priority, backfill, last_event: seq, ..Slot::new(SlotState::Waiting, at) }
}
