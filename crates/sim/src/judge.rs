//! Judges: conditions that must hold whatever happened.

mod batches;
mod deadlines;
pub mod events;
mod flows;
pub mod jobs;
mod outputs;
mod unknown;
mod waits;
mod within;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::Core;
use kelos_model::event::{BackfillEvent, Event};
use kelos_model::template::KeyValues;
use kelos_model::trigger::evaluate;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{
    Answer, BackfillId, EventRecord, Flow, PoolId, PoolUse, RunId, Slot, SlotEvent, SlotKey, SlotRef, SlotState,
    Workflow, WorkflowId, slot,
};
use kelos_store::{
    BackfillFilter, EventFilter, MemoryDisk, MemoryStore, PageRequest, Queries, RunFilter, SlotFilter, StoredState,
};

use crate::apps::Apps;
use crate::workload::{WorkerPlan, Workload};
use crate::world::{Scan, World, WorldView};

/// How late a poll, a report or a retry may be.
const SLACK: SignedDuration = SignedDuration::from_mins(12);

/// Checks after each start that no slot has two live runs, and no limit is exceeded.
///
/// # Errors
/// The violation.
pub fn after_start(workload: &Workload, world: &World, now: Timestamp) -> Result<(), String> {
    let mut by_queue: BTreeMap<Queue<'_>, u32> = BTreeMap::new();
    let mut before: Option<&SlotRef> = None;
    for run in world.alive(now) {
        if before == Some(&run.slot) {
            return Err(format!("two live runs of {}", run.slot));
        }
        before = Some(&run.slot);
        *by_queue.entry(Queue::of(&run.slot)).or_default() += 1;
    }
    // The limit on concurrent runs of an event schedule is a matter of its constraints.
    for (queue, alive) in by_queue.iter().filter(|(queue, _)| !workload.schedules.contains(queue.workflow)) {
        let limits: Vec<Option<u32>> = queue.definitions(workload).iter().map(|one| one.concurrency).collect();
        // A workflow that none of its definitions limits has no limit.
        let limit = if limits.contains(&None) { u32::MAX } else { limits.into_iter().flatten().max().unwrap_or(0) };
        if *alive > limit {
            return Err(format!("{alive} live runs of {queue:?}, its concurrency is {limit}"));
        }
    }
    let all: u32 = by_queue.values().sum();
    if all > workload.config.max_running {
        return Err(format!("{all} live runs, the limit is {}", workload.config.max_running));
    }
    within_pools(workload, &by_queue)
}

/// The slots in one queue: those of a workflow, or a step of its flow, or the items of a step, in all runs.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Queue<'a> {
    workflow: &'a WorkflowId,
    step: Option<(&'a str, bool)>,
}

impl<'a> Queue<'a> {
    fn of(slot: &'a SlotRef) -> Queue<'a> {
        let step = slot.key.step().map(|key| (key.step(), key.item_number().is_some()));
        Queue { workflow: &slot.workflow, step }
    }

    /// All definitions of what stands in it.
    fn definitions(&self, workload: &Workload) -> Vec<Workflow> {
        let all = workload.definitions.iter().flat_map(|(_, all)| all).filter(|one| one.id == *self.workflow);
        let Some((step, items)) = self.step else { return all.map(|one| Workflow::clone(one)).collect() };
        let of_step = |one: &Arc<Workflow>| Some(Flow::as_workflow(one, one.flow.as_ref()?.step(step)?, items));
        all.filter_map(of_step).collect()
    }
}

/// The pools that a workflow and the steps of its flow name.
fn uses(workflow: &Workflow) -> Vec<PoolUse> {
    let steps = workflow.flow.iter().flat_map(|flow| &flow.steps);
    let of_steps = steps.flat_map(|step| step.pools.iter().chain(&step.within));
    workflow.pools.iter().chain(&workflow.within).chain(of_steps).cloned().collect()
}

/// Checks that no pool has more permits in use than its size, using the smallest demand of each queue while definitions changed.
fn within_pools(workload: &Workload, alive: &BTreeMap<Queue<'_>, u32>) -> Result<(), String> {
    let mut sizes: BTreeMap<PoolId, u32> = BTreeMap::new();
    for one in workload.definitions.iter().flat_map(|(_, all)| all).flat_map(|one| uses(one)) {
        sizes.entry(one.pool).and_modify(|size| *size = one.size.max(*size)).or_insert(one.size);
    }
    let queues: Vec<(Vec<Workflow>, u32)> =
        alive.iter().map(|(queue, runs)| (queue.definitions(workload), *runs)).collect();
    for (pool, size) in &sizes {
        let takes = |all: &[Workflow]| all.iter().map(|one| permits_of(one, pool)).min().unwrap_or(0);
        let held: u32 = queues.iter().map(|(all, runs)| runs * takes(all)).sum();
        if held > *size {
            return Err(format!("{held} permits of pool {pool} are held, it has {size}"));
        }
    }
    Ok(())
}

fn permits_of(workflow: &Workflow, pool: &PoolId) -> u32 {
    workflow.pools.iter().find(|one| one.pool == *pool).map_or(0, |one| one.permits)
}

/// Whether only the slot itself can keep it from the permits of its pools. Other slots may wait for more than is free,
/// and permits are reserved for them.
fn has_permits(all: &[Arc<Workflow>], around: &Surroundings<'_>, row: &WorkflowRow) -> bool {
    let slots = around.slots;
    if slots.iter().any(|(of, slot)| slot.run_alive && !all.iter().any(|one| one.id == of.workflow)) {
        return false;
    }
    row.definition.pools.iter().all(|one| {
        let is_same = |other: &PoolUse| other.pool == one.pool;
        // A slot in line may wait for it, and a live run may hold or want permits of it that it did not take at its start.
        let concerns = |(of, slot): (&SlotRef, &Slot)| {
            let Some(other) = all.iter().find(|other| other.id == of.workflow) else { return false };
            let is_other = other.id != row.id && other.pools.iter().any(is_same);
            is_other && !slot.state.is_final() || slot.run_alive && other.within.iter().any(is_same)
        };
        let named = || {
            let all = all.iter().chain([&row.definition]);
            all.flat_map(|workflow| uses(workflow)).filter(|other| is_same(other))
        };
        // A rate gives tokens at its pace, so that at rest they may not be there yet; and where other definitions give the pool
        // a rate, a run may take more tokens than ever add up.
        let has_rate = named().any(|one| one.rate.is_some());
        !has_rate && !around.steps.concern(&one.pool) && !slots.iter().any(concerns) && {
            let holds = |id: &SlotRef, slot: &Slot| slot.run_alive && !around.followers.contains_key(id);
            let runs = slots.iter().filter(|(of, slot)| of.workflow == row.id && holds(of, slot)).count() as u64;
            let size = named().map(|one| u64::from(one.size)).min().unwrap_or(0);
            (runs + 1) * u64::from(one.permits) <= size
        }
    })
}

/// Checks, once faults have stopped for long, that the log folds to the table, nothing is lost, and everything that can end has ended.
///
/// # Errors
/// The violation.
pub fn at_rest(
    workload: &Workload,
    world: &World,
    disk: &MemoryDisk,
    core: &Core,
    now: Timestamp,
) -> Result<u64, String> {
    let store = MemoryStore::on(disk);
    let reader = store.reader();
    let slots = all_slots(&*reader)?;
    store_agrees_with_itself(&*reader)?;
    let (steps, late) = log_holds(workload, &*reader)?;
    let steps = flows::StepsAtRest::new(&*reader, steps, &slots)?;
    within::within_limits(workload, &*reader)?;
    nothing_is_missing(workload, &*reader, &slots)?;
    let live = slots.values().filter(|slot| slot.is_live() && !slot.is_only_planned()).count() + steps.live();
    if core.live_slots() != live {
        return Err(format!("{} slots in memory, {live} live ones in the table", core.live_slots()));
    }
    let apps = Apps::of(last_definitions(workload), &workload.meant);
    jobs::is_fed(&apps, &*reader, &slots)?;
    let times = Scan::of(present(&*reader)?.iter());
    let followers = batches::followers(&*reader, &slots)?;
    let (reader, slots, followers, steps) = (&*reader, &slots, &followers, &steps);
    let around = Surroundings { workload, apps: &apps, world, reader, slots, followers, steps, times: &times, now };
    flows::is_accounted_for(&around)?;
    slots.iter().try_for_each(|(id, slot)| is_accounted_for(&around, id, slot))?;
    Ok(late)
}

fn all_slots(reader: &dyn Queries) -> Result<BTreeMap<SlotRef, Slot>, String> {
    let mut slots = BTreeMap::new();
    let mut from = None;
    loop {
        let page = reader
            .slots(&SlotFilter::default(), PageRequest::newest(500).after(from.as_deref()))
            .map_err(|error| error.to_string())?;
        for row in page.rows {
            if slots.insert(row.id.clone(), row.slot).is_some() {
                return Err(format!("{} has a slot of its own, and is in the backlog", row.id));
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(slots);
        }
    }
}

/// Checks that the turns are a chain, and that the log folds to the table.
fn store_agrees_with_itself(reader: &dyn Queries) -> Result<(), String> {
    let verified = kelos_explain::verify::verify(reader, 1).map_err(|error| error.to_string())?;
    verified.disagreements.first().map_or(Ok(()), |disagreement| Err(disagreement.to_string()))
}

fn fold(folded: &mut BTreeMap<SlotRef, Slot>, record: &EventRecord) -> Result<(), String> {
    let Event::Slot { slot: id, what } = &record.event else { return Ok(()) };
    let before = folded.remove(id);
    if before.as_ref().map_or(0, |slot| slot.last_event) != record.previous {
        return Err(format!("event {} of {id} does not follow on the one before it", record.seq));
    }
    let after = slot::apply(before.clone(), what, record.at, record.seq);
    let after = after.ok_or_else(|| format!("event {} can't happen to {id}, which is {before:?}", record.seq))?;
    folded.insert(id.clone(), after);
    Ok(())
}

/// Checks all batches and flows in the log, and that no slot of a paused backfill is evaluated or dispatched, and that its row agrees
/// with the log. Returns the steps of flows, and how many slots were late.
fn log_holds(workload: &Workload, reader: &dyn Queries) -> Result<(BTreeMap<SlotRef, Slot>, u64), String> {
    let log = reader
        .events(&EventFilter::default(), PageRequest::oldest(crate::ALL))
        .map_err(|error| error.to_string())?
        .rows;
    batches::hold(workload, &log)?;
    outputs::hold(workload, reader, &log)?;
    let steps = flows::hold(reader, &log)?;
    let late = deadlines::hold(reader, &log)?;
    unknown::hold(reader, &log)?;
    let mut paused: BTreeMap<&BackfillId, Timestamp> = BTreeMap::new();
    let mut slots: BTreeMap<SlotRef, Slot> = BTreeMap::new();
    for record in &log {
        match &record.event {
            Event::Backfill { backfill, what: BackfillEvent::Paused { .. } } => {
                paused.insert(backfill, record.at);
            }
            Event::Backfill { backfill, what: BackfillEvent::Resumed { .. } | BackfillEvent::Cancelled { .. } } => {
                paused.remove(backfill);
            }
            Event::Slot { slot, what } => {
                let backfill = slots.get(slot).and_then(|slot| slot.backfill.as_ref());
                if is_progress(what) && backfill.is_some_and(|backfill| paused.contains_key(backfill)) {
                    return Err(format!("{slot} went on at {} while its backfill was paused: {what:?}", record.at));
                }
                fold(&mut slots, record)?;
            }
            _ => {}
        }
    }
    let rows = reader.backfills(&BackfillFilter::default()).map_err(|error| error.to_string())?;
    let wrong = rows.iter().find(|row| row.paused.as_ref().map(|pause| pause.at) != paused.get(&row.id).copied());
    wrong.map_or(Ok((steps, late)), |row| Err(format!("the log has {paused:?} paused, the table {row:?}")))
}

/// Whether an event only happens to slots that the scheduler evaluates or dispatches.
fn is_progress(what: &SlotEvent) -> bool {
    matches!(
        what,
        SlotEvent::Looked { .. }
            | SlotEvent::TriggerMet { .. }
            | SlotEvent::Expired { .. }
            | SlotEvent::Skipped { .. }
            | SlotEvent::BackoffEnded
            | SlotEvent::Dispatched { .. }
    )
}

fn is_paused(reader: &dyn Queries, slot: &Slot) -> Result<bool, String> {
    let Some(id) = slot.backfill.as_ref().filter(|_| slot.state.is_idle()) else { return Ok(false) };
    let row = reader.backfill(id).map_err(|error| error.to_string())?;
    Ok(row.is_some_and(|row| row.paused.is_some()))
}

/// Checks that every time of the schedule within the planned ranges has its slot.
fn nothing_is_missing(
    workload: &Workload,
    reader: &dyn Queries,
    slots: &BTreeMap<SlotRef, Slot>,
) -> Result<(), String> {
    let schedules = crate::workload::schedules(last_definitions(workload));
    for row in reader.workflows(None).map_err(|error| error.to_string())? {
        let Some(schedule) = schedules.get(&row.id).filter(|_| row.present) else { continue };
        for range in row.planned.ranges.ranges() {
            let lost = schedule
                .times(range.start, range.end)
                .find(|at| !slots.contains_key(&SlotRef::at(row.id.clone(), *at)));
            if let Some(at) = lost {
                return Err(format!("{}@{at} is covered and does not exist", row.id));
            }
        }
    }
    Ok(())
}

/// The definitions in force, including event schedules.
fn present(reader: &dyn Queries) -> Result<Vec<Arc<Workflow>>, String> {
    let rows = reader.workflows(None).map_err(|error| error.to_string())?;
    Ok(rows.into_iter().filter(|row| row.present).map(|row| row.definition).collect())
}

fn last_definitions(workload: &Workload) -> &[Arc<Workflow>] {
    workload.definitions.last().map_or(&[], |(_, all)| all)
}

/// Whether the scheduler ignores a slot because of its key.
fn is_dormant(workload: &Workload, apps: &Apps, row: &WorkflowRow, (id, slot): (&SlotRef, &Slot)) -> bool {
    if id.key.job().is_some() {
        return apps.parents(id).is_none();
    }
    if id.key.is_moment() {
        return false;
    }
    if matches!(id.key, SlotKey::Named(_)) {
        // Signals may come before anybody starts it.
        return slot.collected.is_none();
    }
    if row.definition.out_of_bounds(&id.key, Some(slot)).is_some() {
        return true;
    }
    let schedules = crate::workload::schedules(last_definitions(workload));
    !schedules.get(&id.workflow).is_some_and(|schedule| schedule.has(&id.key))
}

/// Whether a live slot has a reason to be live.
fn is_accounted_for(around: &Surroundings<'_>, id: &SlotRef, slot: &Slot) -> Result<(), String> {
    let row = around.reader.workflow(&id.workflow).map_err(|error| error.to_string())?;
    // Live runs of an event schedule continue when it is disabled.
    let goes_on = |row: &WorkflowRow| row.present && !row.paused;
    let Some(row) = row.filter(goes_on) else { return Ok(()) };
    if is_dormant(around.workload, around.apps, &row, (id, slot)) || is_paused(around.reader, slot)? && !slot.run_alive
    {
        return Ok(());
    }
    let by = around.now.checked_sub(SLACK).unwrap_or(around.now);
    if row.moments.frozen.is_none() && deadlines::is_unsaid(&row.definition, id, slot, by) {
        return Err(format!("{id} is late at {}, and nothing says so: {slot:?}", around.now));
    }
    let stuck = Suspect { around, row: &row, id, slot }.stuck()?;
    stuck.map_or(Ok(()), |why| Err(format!("{id} is {slot:?} at {}: {why}", around.now)))
}

/// The state of the simulation that slots are judged against.
struct Surroundings<'a> {
    workload: &'a Workload,
    apps: &'a Apps,
    world: &'a World,
    reader: &'a dyn Queries,
    slots: &'a BTreeMap<SlotRef, Slot>,
    /// The slots that the live run of another serves.
    followers: &'a BTreeMap<SlotRef, RunId>,
    /// The steps of runs of flows.
    steps: &'a flows::StepsAtRest,
    /// The schedules in force.
    times: &'a Scan,
    now: Timestamp,
}

impl Surroundings<'_> {
    /// The number of runs that take a place of the limit on all runs. Those of flows take none.
    fn active(&self) -> usize {
        let is_flow = |slot: &Slot| slot.run_of_flow().is_some_and(|part| part.definition > 0);
        let holds = |id: &SlotRef, slot: &Slot| slot.run_alive && !self.followers.contains_key(id) && !is_flow(slot);
        self.slots.iter().filter(|(id, slot)| holds(id, slot)).count() + self.steps.running()
    }
}

/// A live slot of a workflow that is neither paused nor removed.
struct Suspect<'a> {
    around: &'a Surroundings<'a>,
    row: &'a WorkflowRow,
    id: &'a SlotRef,
    slot: &'a Slot,
}

impl Suspect<'_> {
    /// The fault of a slot that should have made progress by now; none where it has a reason to be in its state.
    fn stuck(&self) -> Result<Option<&'static str>, String> {
        let (slot, early) = (self.slot, self.early());
        if let Some(why) = events::is_overdue(&self.row.definition, (self.id, slot), early) {
            return Ok(Some(why));
        }
        Ok(match slot.state {
            SlotState::Held if slot.since < early => self.held()?,
            SlotState::Waiting if slot.since < early => self.waiting()?,
            SlotState::Backoff if slot.due.is_none_or(|due| due < early) => Some("its retry was due"),
            SlotState::Queued if slot.since < early - self.batch_delay() && self.has_place()? => {
                Some("there is a place for it")
            }
            _ if slot.run_alive => self.running(),
            _ => None,
        })
    }

    /// The moment before which everything has had time to happen.
    fn early(&self) -> Timestamp {
        self.around.now - SLACK
    }

    /// How long it may wait for others of its batch.
    fn batch_delay(&self) -> SignedDuration {
        self.row.definition.batch.map_or(SignedDuration::ZERO, |batch| batch.delay())
    }

    /// Whether the slot could start at once.
    fn has_place(&self) -> Result<bool, String> {
        let Surroundings { workload, slots, reader, .. } = self.around;
        let holds = |(id, slot): &(&SlotRef, &Slot)| slot.run_alive && !self.around.followers.contains_key(*id);
        let active = || slots.iter().filter(holds).filter(|(other, _)| other.workflow == self.id.workflow).count();
        Ok(!self.slot.run_alive
            && self.row.definition.concurrency.is_none_or(|limit| active() < limit as usize)
            && self.around.active() < workload.config.max_running as usize
            && has_permits(&present(*reader)?, self.around, self.row)
            && self.had_a_worker()?)
    }

    /// Whether a worker could have taken the slot since a run last started or ended: before that, another run may have had its
    /// place whenever a worker was there. Many workers are there for a second only.
    fn had_a_worker(&self) -> Result<bool, String> {
        let Surroundings { workload, slots, reader, now, .. } = self.around;
        if !workload.config.leaves_to_workers(&self.row.definition) {
            return Ok(true);
        }
        let page = reader.runs(&RunFilter::default(), PageRequest::newest(crate::ALL));
        let runs = page.map_err(|error| error.to_string())?.rows;
        let changes = runs.iter().flat_map(|run| [Some(run.dispatched_at), run.ended_at]);
        let from = changes.flatten().chain([self.slot.since]).max().unwrap_or(*now);
        let live = slots.iter().filter(|(_, slot)| slot.run_alive).count();
        let labels = &self.row.definition.job.runs_on;
        let could = |plan: &WorkerPlan| {
            let serves =
                plan.workflows.contains(&self.id.workflow) && plan.job.as_ref().is_none_or(|job| job == self.id);
            let end = plan.dies.into_iter().chain(plan.leaves).chain([*now]).min().unwrap_or(*now);
            // A new worker has no runs, and makes its offer at once. One that stays has to tell each new leader of it.
            let is_new = from < plan.born && plan.born < *now;
            serves
                && labels.is_subset(&plan.labels)
                && (is_new || from.max(plan.born) + SLACK < end && live < plan.slots as usize)
        };
        Ok(workload.workers.iter().any(could))
    }

    fn held(&self) -> Result<Option<&'static str>, String> {
        let Surroundings { reader, slots, now, .. } = self.around;
        let judged = |at| events::judgement(*reader, &self.row.definition, slots, (self.id, self.slot), at);
        let (early, now) = (judged(self.early())?, judged(*now)?);
        Ok((early == now && now != Answer::NotYet).then_some("its constraints have an answer"))
    }

    fn waiting(&self) -> Result<Option<&'static str>, String> {
        let Surroundings { apps, world, slots, now, times, .. } = self.around;
        let (id, slot, early) = (self.id, self.slot, self.early());
        let state = |slot: &SlotRef| slots.get(slot).map(|slot| slot.state);
        if id.key.job().is_some() {
            match jobs::has_answer(apps, id, world, [*now, early], &state) {
                Some(true) => return Ok(Some("it is not valid")),
                Some(false) => return Ok(None),
                None => {}
            }
        }
        let met = |at| {
            let collected = slot.collected.as_deref();
            let facts = WorldView { now: at, past: None, world, state: &state, times, collected };
            let values = KeyValues::of(&self.row.definition.keys, &id.key);
            evaluate(&self.row.definition.trigger, &id.workflow, &values, &facts)
        };
        jobs::has_opened(apps, id, &met(*now), &state)?;
        let answers = |at| met(at).explanation.answer != Answer::NotYet;
        Ok(if !answers(*now) || !answers(early) {
            None
        } else if !slot.is_only_planned() {
            Some("its trigger has an answer")
        } else {
            self.has_place()?.then_some("there is a place for it")
        })
    }

    fn running(&self) -> Option<&'static str> {
        if self.slot.run_of_flow().is_some_and(|part| part.definition > 0) {
            // Its steps are looked at.
            return None;
        }
        let own = || RunId { slot: self.id.clone(), number: self.slot.last_run };
        let run = self.around.followers.get(self.id).cloned().unwrap_or_else(own);
        let over = self.around.world.runs.get(&run).is_none_or(|run| run.ends_at < self.early());
        (over && self.slot.since < self.early()).then_some("its run is over, or never started")
    }
}
