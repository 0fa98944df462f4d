//! The counts of one workflow.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, Outcome, SlotEvent, SlotKey, SlotState};

use crate::reasons::{self, ReasonId, Reasons};
use crate::text;

/// The upper bounds of the ranges in which durations of runs are counted, in seconds.
pub(crate) const RUN_BOUNDS: [&str; 9] = ["1", "5", "15", "60", "300", "900", "3600", "14400", "86400"];
const RUN_SECONDS: [f64; 9] = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];

/// The number of states.
const STATES: usize = SlotState::ALL.len();

/// The outcomes of runs, by name.
pub(crate) const OUTCOMES: [&str; 6] = ["succeeded", "failed", "refused", "killed", "unknown", "lost"];

/// The outcomes and durations of runs that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct EndedRuns {
    /// In the order of [`OUTCOMES`].
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    /// In the order of [`RUN_BOUNDS`]; the last are longer.
    pub(crate) lengths: [u64; RUN_BOUNDS.len() + 1],
    pub(crate) seconds: f64,
}

impl EndedRuns {
    fn add(&mut self, outcome: usize, length: SignedDuration) {
        let seconds = length.as_secs_f64().max(0.0);
        self.outcomes[outcome] += 1;
        self.lengths[RUN_SECONDS.partition_point(|bound| *bound < seconds)] += 1;
        self.seconds += seconds;
    }

    fn add_all(&mut self, other: &EndedRuns) {
        self.outcomes.iter_mut().zip(other.outcomes).for_each(|(own, other)| *own += other);
        self.lengths.iter_mut().zip(other.lengths).for_each(|(own, other)| *own += other);
        self.seconds += other.seconds;
    }
}

/// The place of an outcome in [`OUTCOMES`].
pub(crate) fn place_of(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Succeeded => 0,
        Outcome::Failed { .. } => 1,
        Outcome::Refused { .. } => 2,
        Outcome::Killed => 3,
        Outcome::Unknown { .. } => 4,
        Outcome::Lost { .. } => 5,
    }
}

/// The place in [`OUTCOMES`] of the outcome of the run that an event ends.
fn ended(event: &SlotEvent) -> Option<usize> {
    match event {
        SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } => Some(0),
        SlotEvent::BackedOff { outcome, .. }
        | SlotEvent::Failed { outcome, .. }
        | SlotEvent::RunEnded { outcome, .. } => Some(place_of(outcome)),
        _ => None,
    }
}

/// A slot that is live.
#[derive(Debug, Clone)]
pub(crate) struct LiveSlot {
    pub(crate) state: SlotState,
    pub(crate) run_alive: bool,
    /// When its live run began.
    pub(crate) began: Option<Timestamp>,
    pub(crate) reason: ReasonId,
    pub(crate) backfill: Option<BackfillId>,
}

impl LiveSlot {
    /// A slot that came to be, or that was opened again.
    pub(crate) fn new(state: SlotState, reasons: &mut Reasons) -> LiveSlot {
        let reason = reasons.id(reasons::of_state(state));
        LiveSlot { state, run_alive: false, began: None, reason, backfill: None }
    }

    /// Whether it waits for something, so that it has a reason.
    fn waits(&self) -> bool {
        self.state.is_idle() || self.state == SlotState::Dispatched && self.began.is_none()
    }
}

/// Numbers that only grow while this process counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counters {
    /// The number of times that slots came into each state.
    pub(crate) transitions: [u64; STATES],
    pub(crate) runs: EndedRuns,
    /// Runs of steps that ended, in the order of [`OUTCOMES`].
    pub(crate) steps: [u64; OUTCOMES.len()],
    /// The number of slots that missed their deadlines.
    pub(crate) missed: u64,
}

impl Counters {
    /// Adds the numbers of another workflow.
    pub(crate) fn add(&mut self, other: &Counters) {
        self.transitions.iter_mut().zip(other.transitions).for_each(|(own, other)| *own += other);
        self.runs.add_all(&other.runs);
        self.steps.iter_mut().zip(other.steps).for_each(|(own, other)| *own += other);
        self.missed += other.missed;
    }

    /// Whether anything was counted.
    pub(crate) fn has_any(&self) -> bool {
        *self != Counters::default()
    }
}

/// Numbers that are added up for workflows, one or many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Slots by state, in the order of [`SlotState::ALL`].
    pub(crate) slots: [u64; STATES],
    /// Waiting slots by reason.
    pub(crate) waiting: BTreeMap<ReasonId, u64>,
    /// The moment at which the oldest slot that has not started was due.
    pub(crate) unstarted: Option<Timestamp>,
    /// The moment at which the oldest slot that has not ended was due.
    pub(crate) unfinished: Option<Timestamp>,
    /// Whether it is paused or frozen; of many, how many are.
    pub(crate) paused: u64,
    pub(crate) counters: Counters,
}

impl Counts {
    /// Adds the numbers of another workflow.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.slots.iter_mut().zip(other.slots).for_each(|(own, other)| *own += other);
        other.waiting.iter().for_each(|(reason, count)| *self.waiting.entry(*reason).or_default() += count);
        let oldest = |one: Option<Timestamp>, other: Option<Timestamp>| one.into_iter().chain(other).min();
        self.unstarted = oldest(self.unstarted, other.unstarted);
        self.unfinished = oldest(self.unfinished, other.unfinished);
        self.paused += other.paused;
        self.counters.add(&other.counters);
    }
}

/// Moments at which slots were due, with the number of slots.
type DueSlots = BTreeMap<Timestamp, u32>;

/// A workflow and its counts.
#[derive(Debug)]
pub(crate) struct WorkflowCounts {
    row: WorkflowRow,
    /// Its labels, as they are written.
    pub(crate) labels: String,
    /// Whether it has numbers of its own.
    pub(crate) is_named: bool,
    live: BTreeMap<SlotKey, LiveSlot>,
    counts: Counts,
    /// The numbers that were shown among those of others, before it had some of its own.
    of_others: Counters,
    unstarted: DueSlots,
    unfinished: DueSlots,
    /// The slots of each backfill that have not ended, without those of the backlog.
    backfills: BTreeMap<BackfillId, u64>,
    /// The times of its backlog that wait, and those that were killed.
    backlog: (u64, u64),
    /// The times of its backlog that wait and belong to each backfill.
    backlog_backfills: BTreeMap<BackfillId, u64>,
    /// The moment at which the first time of its backlog is due.
    backlog_due: Option<Timestamp>,
}

impl WorkflowCounts {
    pub(crate) fn new(row: WorkflowRow) -> WorkflowCounts {
        let mut counts = WorkflowCounts {
            row: row.clone(),
            labels: String::new(),
            is_named: false,
            live: BTreeMap::new(),
            counts: Counts::default(),
            of_others: Counters::default(),
            unstarted: DueSlots::new(),
            unfinished: DueSlots::new(),
            backfills: BTreeMap::new(),
            backlog: (0, 0),
            backlog_backfills: BTreeMap::new(),
            backlog_due: None,
        };
        counts.set_row(row);
        counts
    }

    /// The workflow with what only grows, and otherwise without slots.
    pub(crate) fn emptied(&self) -> WorkflowCounts {
        let counts = Counts { counters: self.counts.counters.clone(), ..Counts::default() };
        let (is_named, of_others) = (self.is_named, self.of_others.clone());
        WorkflowCounts { is_named, counts, of_others, ..WorkflowCounts::new(self.row.clone()) }
    }

    /// Gives it numbers of its own. What was counted before stays among those of others, which would go down otherwise.
    pub(crate) fn name(&mut self) {
        self.is_named = true;
        self.of_others = std::mem::take(&mut self.counts.counters);
    }

    /// The part of its numbers that only grow, and belong to those of others.
    pub(crate) fn among_others(&self) -> &Counters {
        if self.is_named { &self.of_others } else { &self.counts.counters }
    }

    /// Takes the workflow as it is now.
    pub(crate) fn set_row(&mut self, row: WorkflowRow) {
        let (project, workflow) = (&row.definition.project, row.id.as_str());
        self.labels = text::labels(&[("project", project), ("workflow", workflow)]);
        let keys_changed = self.row.definition.keys != row.definition.keys;
        self.count_backlog(&row);
        self.row = row;
        if keys_changed {
            self.unstarted.clear();
            self.unfinished.clear();
            for (key, slot) in std::mem::take(&mut self.live) {
                self.count_due(&key, &slot, true);
                self.live.insert(key, slot);
            }
        }
    }

    fn count_backlog(&mut self, row: &WorkflowRow) {
        (self.backlog, self.backlog_due) = ((0, 0), None);
        self.backlog_backfills.clear();
        let Some(schedule) = row.planned.schedule_of_backlog() else { return };
        for stretch in row.planned.backlog.stretches() {
            let times = schedule.count(stretch.range);
            if stretch.killed.is_some() {
                self.backlog.1 += times;
                continue;
            }
            self.backlog.0 += times;
            match &stretch.backfill {
                Some(backfill) => *self.backlog_backfills.entry(backfill.clone()).or_default() += times,
                None if self.backlog_due.is_none() => {
                    let first = schedule.times(stretch.range.start, stretch.range.end).next();
                    self.backlog_due = first.and_then(|at| row.definition.keys.due(&SlotKey::Time(at)));
                }
                None => {}
            }
        }
    }

    /// Notes when the live run of a slot began.
    pub(crate) fn began(&mut self, key: &SlotKey, at: Timestamp) {
        if let Some(slot) = self.live.get_mut(key) {
            slot.began = Some(at);
        }
    }

    /// The number of times of its backlog that were killed.
    pub(crate) fn killed_of_backlog(&self) -> u64 {
        self.backlog.1
    }

    /// Whether it has a backlog.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlog != (0, 0)
    }

    /// Whether it is shown: it is defined, or has live slots.
    pub(crate) fn is_shown(&self) -> bool {
        self.row.present || !self.live.is_empty()
    }

    /// A live slot.
    pub(crate) fn live(&self, key: &SlotKey) -> Option<&LiveSlot> {
        self.live.get(key)
    }

    /// The number of backfills with slots that have not ended, and of these slots.
    pub(crate) fn backfills(&self) -> (u64, u64) {
        let more = self.backlog_backfills.keys().filter(|id| !self.backfills.contains_key(*id)).count();
        let slots = self.backfills.values().chain(self.backlog_backfills.values()).sum();
        ((self.backfills.len() + more) as u64, slots)
    }

    /// Forgets the slots that have ended, which are added anew.
    pub(crate) fn forget_ended(&mut self) {
        for state in SlotState::ALL.iter().filter(|state| state.is_final()) {
            self.counts.slots[*state as usize] = 0;
        }
    }

    /// Adds slots that are in a state already.
    pub(crate) fn add_ended(&mut self, state: SlotState, count: u64) {
        self.counts.slots[state as usize] += count;
    }

    /// Adds a slot that is live already.
    pub(crate) fn add_live(&mut self, key: SlotKey, slot: LiveSlot) {
        if !slot.state.is_final() {
            self.counts.slots[slot.state as usize] += 1;
        }
        self.keep(key, slot);
    }

    /// Takes a slot from one state to the next by an event. The state before is none for one that begins, and for one that had ended in a
    /// state that is not known.
    pub(crate) fn change(
        &mut self,
        key: &SlotKey,
        before: Option<SlotState>,
        (event, at): (&SlotEvent, Timestamp),
        reasons: &mut Reasons,
    ) {
        let known = self.live.remove(key);
        if let Some(slot) = &known {
            self.count(key, slot, false);
        }
        let before = known.as_ref().map(|slot| slot.state).or(before);
        let Some(after) = SlotState::following(before, event) else { return };
        let mut slot = known.unwrap_or_else(|| LiveSlot::new(before.unwrap_or(after), reasons));
        if before != Some(after) {
            if let Some(before) = before {
                let slots = &mut self.counts.slots[before as usize];
                *slots = slots.saturating_sub(1);
            }
            self.counts.slots[after as usize] += 1;
            self.counts.counters.transitions[after as usize] += 1;
            slot.reason = reasons.id(reasons::of_state(after));
        }
        slot.state = after;
        self.follow_run(&mut slot, event, at);
        match event {
            SlotEvent::Late { .. } => self.counts.counters.missed += 1,
            SlotEvent::Looked { explanation } => slot.reason = reasons.id(reasons::of_explanation(explanation)),
            SlotEvent::Planned { backfill, .. } | SlotEvent::Reopened { backfill, .. } => {
                slot.backfill.clone_from(backfill);
            }
            SlotEvent::Prioritised { backfill, .. } => slot.backfill = Some(backfill.clone()),
            SlotEvent::Deferred { .. } => slot.began = None,
            _ => {}
        }
        if !after.is_final() || slot.run_alive {
            self.keep(key.clone(), slot);
        }
    }

    /// Counts the end of a step's run.
    pub(crate) fn count_step(&mut self, event: &SlotEvent) {
        if let Some(outcome) = ended(event) {
            self.counts.counters.steps[outcome] += 1;
        }
    }

    fn follow_run(&mut self, slot: &mut LiveSlot, event: &SlotEvent, at: Timestamp) {
        match event {
            SlotEvent::Dispatched { .. } => (slot.run_alive, slot.began) = (true, Some(at)),
            SlotEvent::Started { .. } => slot.began = Some(at),
            SlotEvent::Withdrawn { .. } => (slot.run_alive, slot.began) = (false, None),
            SlotEvent::Imported { state, .. } => slot.run_alive = *state == SlotState::Running,
            _ => {}
        }
        let Some(outcome) = ended(event) else { return };
        slot.run_alive = false;
        let began = slot.began.take().unwrap_or(at);
        self.counts.counters.runs.add(outcome, at.duration_since(began));
    }

    fn keep(&mut self, key: SlotKey, slot: LiveSlot) {
        self.count(&key, &slot, true);
        self.live.insert(key, slot);
    }

    /// Counts what a live slot adds to the numbers of its workflow, or takes it away again.
    fn count(&mut self, key: &SlotKey, slot: &LiveSlot, adds: bool) {
        self.count_due(key, slot, adds);
        if let Some(backfill) = slot.backfill.as_ref().filter(|_| !slot.state.is_final()) {
            let count = self.backfills.entry(backfill.clone()).or_default();
            *count = if adds { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                self.backfills.remove(backfill);
            }
        }
        if slot.waits() {
            let waiting = self.counts.waiting.entry(slot.reason).or_default();
            *waiting = if adds { *waiting + 1 } else { waiting.saturating_sub(1) };
        }
    }

    fn count_due(&mut self, key: &SlotKey, slot: &LiveSlot, adds: bool) {
        // A slot that collects facts or belongs to a backfill is not late.
        let keys = &self.row.definition.keys;
        let is_counted = !slot.state.is_final() && slot.backfill.is_none() && !keys.are_moments();
        let Some(due) = is_counted.then(|| keys.due(key)).flatten() else { return };
        change_due(&mut self.unfinished, due, adds);
        if matches!(slot.state, SlotState::Waiting | SlotState::Held | SlotState::Queued) {
            change_due(&mut self.unstarted, due, adds);
        }
    }

    /// The numbers by now.
    pub(crate) fn now(&self, reasons: &mut Reasons) -> Counts {
        let mut counts = self.counts.clone();
        let (waiting, killed) = self.backlog;
        counts.slots[SlotState::Waiting as usize] += waiting;
        counts.slots[SlotState::Killed as usize] += killed;
        if waiting > 0 {
            *counts.waiting.entry(reasons.id(reasons::BACKLOG)).or_default() += waiting;
        }
        if let Some(reason) = self.rests() {
            let all = counts.waiting.values().sum();
            counts.waiting = BTreeMap::from([(reasons.id(reason), all)]);
        }
        counts.paused = u64::from(self.is_paused());
        if self.row.present {
            let oldest = |slots: &DueSlots| slots.keys().next().copied().into_iter().chain(self.backlog_due).min();
            counts.unstarted = oldest(&self.unstarted);
            counts.unfinished = oldest(&self.unfinished);
        }
        counts
    }

    /// The reason for which none of its slots is evaluated.
    fn rests(&self) -> Option<&'static str> {
        match &self.row {
            row if row.frozen().is_some() => Some(reasons::FROZEN),
            row if !row.present => Some(reasons::REMOVED),
            _ => self.is_paused().then_some(reasons::PAUSED),
        }
    }

    fn is_paused(&self) -> bool {
        self.row.paused || !self.row.enabled || self.row.frozen().is_some()
    }
}

fn change_due(due: &mut DueSlots, at: Timestamp, adds: bool) {
    let count = due.entry(at).or_default();
    *count = if adds { *count + 1 } else { count.saturating_sub(1) };
    if *count == 0 {
        due.remove(&at);
    }
}
