//! The effect on slots: which are created, which are no longer scheduled, which may start at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::template::KeyValues;
use kelos_model::time::{CronSchedule, resolve};
use kelos_model::trigger::{Facts, Waker, evaluate};
use kelos_model::workflow::{PastSlots, WorkflowRow};
use kelos_model::{Answer, Probe, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};

/// The default planning window: how far back from now slots are planned.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How many waiting slots have their new trigger evaluated.
const MOST_CANDIDATES: usize = 500;

/// How many slots a page of the store has.
const PAGE: usize = 1000;

/// Times of slots, by workflow.
pub type Times = BTreeMap<WorkflowId, BTreeSet<Timestamp>>;

/// The effect of a deployment on slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotEffect {
    /// Whether a server provided the existing slots; otherwise only schedules were compared.
    pub from_server: bool,
    /// Slots that would be planned at once.
    pub created: Times,
    /// Slots that have not ended, and become dormant: their time left the schedule, or their workflow is removed.
    pub dropped: Times,
    /// Slots that wait, and would be ready at once.
    pub unblocked: Times,
    /// The past that changed workflows hold back.
    pub held_back: PastSlots,
}

/// The times of a workflow's slots.
#[derive(Debug, Clone, PartialEq)]
struct SlotTimes {
    schedule: CronSchedule,
    /// Its start and its end.
    bounds: Range,
    /// Whether times of before it was first seen are left out.
    is_from_now_on: bool,
}

impl SlotTimes {
    /// The times of the slots that are due in a range of moments: a period that has not ended has no slot yet.
    fn times(&self, moments: Range) -> BTreeSet<Timestamp> {
        let due = self.schedule.due_in(moments);
        self.schedule.times(due.start.max(self.bounds.start), due.end.min(self.bounds.end)).collect()
    }

    /// Those that become slots by themselves.
    fn opened(&self, moments: Range) -> BTreeSet<Timestamp> {
        if self.is_from_now_on { BTreeSet::new() } else { self.times(moments) }
    }
}

fn whens(workflows: &[Arc<Workflow>]) -> BTreeMap<WorkflowId, SlotTimes> {
    let schedules = workflows.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect();
    let all: BTreeMap<_, _> = workflows.iter().map(|one| (&one.id, one)).collect();
    let when = |(id, schedule): (WorkflowId, Result<CronSchedule, _>)| {
        let workflow = all.get(&id)?;
        let schedule = schedule.ok()?;
        let (bounds, is_from_now_on) = (workflow.bounds(&schedule), workflow.passes_over_misfires());
        Some((id, SlotTimes { schedule, bounds, is_from_now_on }))
    };
    resolve(&schedules).into_iter().filter_map(when).collect()
}

/// The workflows whose times change, with the times before and after.
type ScheduleChanges = BTreeMap<WorkflowId, (Option<SlotTimes>, Option<SlotTimes>)>;

fn moved(before: &[Arc<Workflow>], after: &[Arc<Workflow>]) -> ScheduleChanges {
    let (mut old, mut new) = (whens(before), whens(after));
    let ids: BTreeSet<WorkflowId> = old.keys().chain(new.keys()).cloned().collect();
    let pairs = ids.into_iter().map(|id| {
        let pair = (old.remove(&id), new.remove(&id));
        (id, pair)
    });
    pairs.filter(|(_, (old, new))| old != new).collect()
}

/// The past that changed workflows hold back. What they open is counted slot by slot.
fn held_back(before: &[Arc<Workflow>], after: &[Arc<Workflow>], rows: &[WorkflowRow], now: Timestamp) -> PastSlots {
    let changed = moved(before, after);
    let changed: Vec<Arc<Workflow>> = after.iter().filter(|one| changed.contains_key(&one.id)).cloned().collect();
    PastSlots::of(&changed, rows, WINDOW, now).held_back()
}

fn window(now: Timestamp) -> Range {
    Range::new(now.checked_sub(WINDOW).unwrap_or(Timestamp::MIN), now)
}

/// The effect within the planning window, from schedules alone.
#[must_use]
pub fn by_schedule(before: &[Arc<Workflow>], after: &[Arc<Workflow>], now: Timestamp) -> SlotEffect {
    let mut effect = SlotEffect { held_back: held_back(before, after, &[], now), ..SlotEffect::default() };
    for (id, (old, new)) in moved(before, after) {
        let times = |when: &Option<SlotTimes>| when.as_ref().map(|when| when.times(window(now))).unwrap_or_default();
        let opened = |when: &Option<SlotTimes>| when.as_ref().map(|when| when.opened(window(now))).unwrap_or_default();
        put(&mut effect.created, &id, opened(&new).difference(&opened(&old)).copied());
        put(&mut effect.dropped, &id, times(&old).difference(&times(&new)).copied());
    }
    effect
}

fn put(all: &mut Times, id: &WorkflowId, times: impl Iterator<Item = Timestamp>) {
    let times: BTreeSet<_> = times.collect();
    if !times.is_empty() {
        all.insert(id.clone(), times);
    }
}

/// The effect from the slots of a store. Slots that would be ready at once are not included yet.
///
/// # Errors
/// If the store can't be read.
pub fn live(
    reader: &dyn Queries,
    before: &[Arc<Workflow>],
    after: &[Arc<Workflow>],
    now: Timestamp,
) -> Result<SlotEffect, StoreError> {
    let held_back = held_back(before, after, &reader.workflows(None)?, now);
    let mut effect = SlotEffect { from_server: true, held_back, ..SlotEffect::default() };
    for (id, (_, new)) in moved(before, after) {
        // The first period of the window may have begun before it.
        let due = new.as_ref().map_or(window(now), |when| when.schedule.due_in(window(now)));
        let range = Some(Range::new(due.start.min(window(now).start), now));
        let there = times_of(reader, SlotFilter { workflow: Some(id.clone()), range, ..SlotFilter::default() })?;
        let states = SlotState::ALL.into_iter().filter(|state| !state.is_final()).collect();
        let unfinished = times_of(reader, SlotFilter { workflow: Some(id.clone()), states, ..SlotFilter::default() })?;
        let planned = new.as_ref().map(|when| when.opened(window(now))).unwrap_or_default();
        put(&mut effect.created, &id, planned.difference(&there).copied());
        let left = |at: &Timestamp| new.as_ref().is_none_or(|when| !when.schedule.contains(*at));
        put(&mut effect.dropped, &id, unfinished.into_iter().filter(left));
    }
    Ok(effect)
}

fn times_of(reader: &dyn Queries, filter: SlotFilter) -> Result<BTreeSet<Timestamp>, StoreError> {
    let mut times = BTreeSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = reader.slot_states(&filter, PageRequest::newest(PAGE).after(cursor.as_deref()))?;
        times.extend(page.rows.into_iter().filter_map(|(slot, _)| slot.key.scheduled()));
        cursor = page.next;
        if cursor.is_none() {
            return Ok(times);
        }
    }
}

/// A waiting slot whose trigger changes.
#[derive(Debug, Clone)]
pub struct Candidate {
    slot: SlotRef,
    workflow: Arc<Workflow>,
}

/// The waiting slots whose trigger changes, newest first.
///
/// # Errors
/// If the store can't be read.
pub fn candidates(
    reader: &dyn Queries,
    before: &[Arc<Workflow>],
    after: &[Arc<Workflow>],
) -> Result<Vec<Candidate>, StoreError> {
    let old: BTreeMap<_, _> = before.iter().map(|one| (&one.id, &one.trigger)).collect();
    let mut found = Vec::new();
    for workflow in after.iter().filter(|one| old.get(&one.id).is_some_and(|old| **old != one.trigger)) {
        let filter = SlotFilter {
            workflow: Some(workflow.id.clone()),
            states: vec![SlotState::Waiting],
            ..SlotFilter::default()
        };
        let room = MOST_CANDIDATES - found.len();
        let rows = if room > 0 { reader.slot_states(&filter, PageRequest::newest(room))?.rows } else { Vec::new() };
        found.extend(rows.into_iter().map(|(slot, _)| Candidate { slot, workflow: workflow.clone() }));
    }
    Ok(found)
}

/// The slots and probes on which the new triggers depend.
#[must_use]
pub fn questions(candidates: &[Candidate], nothing: &dyn Facts) -> (BTreeSet<SlotRef>, BTreeSet<Probe>) {
    let (mut slots, mut probes) = (BTreeSet::new(), BTreeSet::new());
    for Candidate { slot, workflow } in candidates {
        for waker in
            evaluate(&workflow.trigger, &slot.workflow, &KeyValues::of(&workflow.keys, &slot.key), nothing).wakers
        {
            match waker {
                Waker::Slot(slot) => drop(slots.insert(slot)),
                Waker::Probe(probe) => drop(probes.insert(probe)),
                Waker::At(_) => {}
            }
        }
    }
    (slots, probes)
}

/// The slots whose new trigger is met.
#[must_use]
pub fn unblocked(candidates: &[Candidate], facts: &dyn Facts) -> Times {
    let mut times = Times::new();
    for Candidate { slot, workflow } in candidates {
        let Some(at) = slot.key.scheduled() else { continue };
        let answer = evaluate(&workflow.trigger, &slot.workflow, &KeyValues::at(at), facts).explanation.answer;
        if answer == Answer::Met {
            times.entry(slot.workflow.clone()).or_default().insert(at);
        }
    }
    times
}
