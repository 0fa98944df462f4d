//! Steps at rest: whatever can go on has gone on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kelos_model::flow::{StepProgress, is_carried_out_by_the_scheduler};
use kelos_model::{Flow, PoolId, PoolUse, RunId, Slot, SlotRef, SlotState, Step, StepKey, Workflow};
use kelos_store::Queries;

use super::super::Surroundings;
use super::repeats::alone;
use super::run_of;

/// A live step, with the definition that its run follows.
struct LiveStep {
    slot: Slot,
    key: StepKey,
    step: Step,
    /// As executors see it.
    definition: Workflow,
}

/// The flows that live runs follow. All steps of a name stand in one queue, where what any of these says holds.
struct LiveFlows(Vec<(Workflow, Flow)>);

impl LiveFlows {
    fn read(reader: &dyn Queries, slots: &BTreeMap<SlotRef, Slot>) -> Result<LiveFlows, String> {
        let mut all = Vec::new();
        for (id, slot) in slots.iter().filter(|(_, slot)| slot.is_live()) {
            let Some(part) = slot.run_of_flow().filter(|part| part.definition > 0) else { continue };
            let past = reader.definitions(&id.workflow, Some(part.definition)).map_err(|error| error.to_string())?;
            let Some(whole) = past.into_iter().next_back().map(|past| past.definition) else { continue };
            let Some(flow) = whole.flow.as_deref().cloned() else { continue };
            if let Some(repeats) = part.repeats.as_deref() {
                all.push((whole.clone(), Flow { steps: vec![alone(&flow, repeats)?] }));
            }
            all.push((whole, flow));
        }
        Ok(LiveFlows(all))
    }

    /// A step with the terms of its queue.
    fn terms(&self, mut own: Workflow, key: &StepKey) -> Workflow {
        let is_item = key.item_number().is_some();
        let of_workflow = self.0.iter().filter(|(whole, _)| whole.id == own.id);
        for (whole, flow) in of_workflow {
            let Some(step) = flow.step(key.step()).filter(|step| step.for_each.is_some() || !is_item) else { continue };
            let other = Flow::as_workflow(whole, step, is_item);
            own.concurrency = own.concurrency.into_iter().chain(other.concurrency).min();
            join(&mut own.pools, other.pools);
            join(&mut own.within, other.within);
        }
        own
    }
}

/// Adds pools that are not there, and the most permits of those that are.
fn join(all: &mut Vec<PoolUse>, more: Vec<PoolUse>) {
    for one in more {
        match all.iter_mut().find(|known| known.pool == one.pool) {
            Some(known) => known.permits = known.permits.max(one.permits),
            None => all.push(one),
        }
    }
}

/// The steps of all runs of flows, once nothing happens any more.
pub(in super::super) struct StepsAtRest {
    all: BTreeMap<SlotRef, Slot>,
    live: BTreeMap<SlotRef, LiveStep>,
}

impl StepsAtRest {
    /// The steps, with the definitions of the runs of their slots.
    pub(in super::super) fn new(
        reader: &dyn Queries,
        all: BTreeMap<SlotRef, Slot>,
        slots: &BTreeMap<SlotRef, Slot>,
    ) -> Result<StepsAtRest, String> {
        let (mut live, followed) = (BTreeMap::new(), LiveFlows::read(reader, slots)?);
        for (id, slot) in all.iter().filter(|(_, slot)| slot.is_live()) {
            let key = id.key.step().cloned().ok_or("it is no step")?;
            let run = run_of(id, &key);
            let part = slots.get(&run).and_then(Slot::run_of_flow).ok_or_else(|| format!("{id} is of no run"))?;
            let mut past =
                reader.definitions(&id.workflow, Some(part.definition)).map_err(|error| error.to_string())?;
            let whole = past.pop().map(|past| past.definition).ok_or_else(|| format!("{run} follows nothing"))?;
            let step = match (&whole.flow, part.repeats.as_deref()) {
                (Some(flow), Some(repeats)) => {
                    Some(alone(flow, repeats)?).filter(|step| step.name.as_str() == key.step())
                }
                (flow, _) => flow.as_ref().and_then(|flow| flow.step(key.step()).cloned()),
            };
            let step = step.ok_or_else(|| format!("{id} is live, and no step of what its run follows"))?;
            let own = Flow::as_workflow(&whole, &step, key.item_number().is_some());
            let definition = followed.terms(own, &key);
            live.insert(id.clone(), LiveStep { slot: slot.clone(), key, step, definition });
        }
        Ok(StepsAtRest { all, live })
    }

    /// The number of live steps.
    pub(in super::super) fn live(&self) -> usize {
        self.live.len()
    }

    /// The number of runs of steps that take a place of the limit on all runs.
    pub(in super::super) fn running(&self) -> usize {
        self.live.values().filter(|live| live.slot.run_alive && live.is_elsewhere()).count()
    }

    /// Whether a live step may wait for a pool or hold of it.
    pub(in super::super) fn concern(&self, pool: &PoolId) -> bool {
        self.live.values().any(|live| live.concerns(pool))
    }
}

impl LiveStep {
    /// Whether an executor does its work.
    fn is_elsewhere(&self) -> bool {
        !is_carried_out_by_the_scheduler(&self.definition.job.executor)
    }

    fn concerns(&self, pool: &PoolId) -> bool {
        let names = |all: &[PoolUse]| all.iter().any(|one| one.pool == *pool);
        names(&self.definition.pools) || self.slot.run_alive && names(&self.definition.within)
    }

    /// Whether it stands in the queue of another.
    fn shares_queue_with(&self, other: &LiveStep) -> bool {
        let queue =
            |one: &LiveStep| (one.definition.id.clone(), one.key.step().to_owned(), one.key.item_number().is_some());
        queue(self) == queue(other)
    }
}

/// Whether all steps of all runs of flows have a reason to be as they are, and whether each run has.
///
/// # Errors
/// The first that has none.
pub(in super::super) fn is_accounted_for(around: &Surroundings<'_>) -> Result<(), String> {
    for (id, live) in &around.steps.live {
        let why = StepSuspect { around, id, live }.stuck()?;
        if let Some(why) = why {
            let pools = &live.definition.pools;
            return Err(format!("{id}, of pools {pools:?}, is {:?} at {}: {why}", live.slot, around.now));
        }
    }
    let runs = around.slots.iter().filter(|(_, slot)| slot.state == SlotState::Running);
    for (id, slot) in runs.filter(|(_, slot)| slot.run_of_flow().is_some_and(|part| part.definition > 0)) {
        let is_of = |step: &&SlotRef| step.key.step().is_some_and(|key| run_of(step, key) == *id);
        if !around.steps.live.keys().any(|step| is_of(&step)) {
            return Err(format!("{id} is {slot:?}, and none of its steps is live"));
        }
    }
    Ok(())
}

struct StepSuspect<'a> {
    around: &'a Surroundings<'a>,
    id: &'a SlotRef,
    live: &'a LiveStep,
}

impl StepSuspect<'_> {
    fn stuck(&self) -> Result<Option<&'static str>, String> {
        let Surroundings { reader, now, world, .. } = self.around;
        let (slot, early) = (&self.live.slot, *now - super::super::SLACK);
        let row = reader.workflow(&self.id.workflow).map_err(|error| error.to_string())?;
        let rests = row.is_none_or(|row| row.paused || row.moments.frozen.is_some());
        let is_old = slot.since < early;
        Ok(match slot.state {
            SlotState::Dispatched | SlotState::Running if !self.live.is_elsewhere() => {
                let is_item = |key: &StepKey| key.step() == self.live.key.step() && key.item_number().is_some();
                let mut items =
                    self.around.steps.live.iter().filter(|(_, other)| other.key.run() == self.live.key.run());
                let any = items.any(|(id, other)| id.workflow == self.id.workflow && is_item(&other.key));
                (!any).then_some("none of its items is live")
            }
            _ if slot.run_alive => {
                let run = RunId { slot: self.id.clone(), number: slot.last_run };
                let over = world.runs.get(&run).is_none_or(|run| run.ends_at < early);
                (over && is_old).then_some("its run is over, or never started")
            }
            _ if rests => None,
            SlotState::Backoff if slot.due.is_none_or(|due| due < early) => Some("its retry was due"),
            SlotState::Waiting if is_old => self.waiting()?,
            SlotState::Queued if is_old && self.has_place()? => Some("there is a place for it"),
            _ => None,
        })
    }

    fn waiting(&self) -> Result<Option<&'static str>, String> {
        let Surroundings { slots, steps, now, .. } = self.around;
        let run = run_of(self.id, &self.live.key);
        let part = slots[&run].run_of_flow().cloned().unwrap_or_default();
        let slot = &self.live.slot;
        let awaits = slot.step_of_run().map(|step| step.awaits.clone()).unwrap_or_default();
        let mut awaited = BTreeSet::new();
        for name in &awaits {
            let key = StepKey::new(&run.key, name).ok_or("a step has steps")?;
            let id = SlotRef::new(run.workflow.clone(), kelos_model::SlotKey::Step(key));
            awaited.extend(steps.all.get(&id).map(|slot| StepProgress::from(slot.state)));
        }
        if awaited.contains(&StepProgress::Live) {
            return Ok(None);
        }
        let Some(wait) = self.live.step.signal.as_ref() else { return Ok(Some("it may start")) };
        if part.signals.contains_key(&wait.name) {
            return Ok(Some("its signal has come"));
        }
        let seconds = wait.within_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let over =
            seconds.is_some_and(|seconds| slot.since + SignedDuration::from_secs(seconds) < *now - super::super::SLACK);
        Ok(over.then_some("its time is over"))
    }

    /// Whether it could start at once.
    fn has_place(&self) -> Result<bool, String> {
        let Surroundings { workload, reader, steps, .. } = self.around;
        let queue: Vec<&LiveStep> = steps.live.values().filter(|other| other.shares_queue_with(self.live)).collect();
        let concurrency = queue.iter().filter_map(|other| other.definition.concurrency).min();
        let active = queue.iter().filter(|other| other.slot.run_alive).count();
        // People define schedules, too, of which the files know nothing.
        let rows = reader.workflows(None).map_err(|error| error.to_string())?;
        let in_files = workload.definitions.iter().flat_map(|(_, all)| all);
        let known: Vec<&Workflow> = in_files.map(|one| &**one).chain(rows.iter().map(|row| &*row.definition)).collect();
        let is_free = |one: &PoolUse| !self.is_contended(&one.pool, &known) && self.fits(&one.pool, &known, &queue);
        Ok(concurrency.is_none_or(|limit| active < limit as usize)
            && self.around.active() < workload.config.max_running as usize
            && self.live.definition.pools.iter().all(is_free))
    }

    /// Whether others may hold permits of a pool, or stand in front of it.
    fn is_contended(&self, pool: &PoolId, known: &[&Workflow]) -> bool {
        let Surroundings { slots, steps, .. } = self.around;
        let names = |one: &Workflow| one.pools.iter().chain(&one.within).any(|other| other.pool == *pool);
        let is_named = |of: &SlotRef| known.iter().any(|one| one.id == of.workflow && names(one));
        let mut others = steps.live.values().filter(|other| !other.shares_queue_with(self.live));
        slots.iter().any(|(of, slot)| slot.is_live() && is_named(of)) || others.any(|other| other.concerns(pool))
    }

    /// Whether what its own queue holds of a pool leaves enough for it.
    fn fits(&self, pool: &PoolId, known: &[&Workflow], queue: &[&LiveStep]) -> bool {
        let named = || known.iter().flat_map(|one| super::super::uses(one)).filter(|other| other.pool == *pool);
        let permits = |other: &&LiveStep| Some(other.definition.pools.iter().find(|one| one.pool == *pool)?.permits);
        let most = queue.iter().filter_map(permits).max().unwrap_or(0);
        let active = queue.iter().filter(|other| other.slot.run_alive).count() as u64;
        let size = named().map(|one| u64::from(one.size)).min().unwrap_or(0);
        let takes_within = |other: &&LiveStep| other.slot.run_alive && !other.slot.held.is_empty();
        let has_rate = named().any(|one| one.rate.is_some());
        !has_rate && !queue.iter().any(takes_within) && (active + 1) * u64::from(most) <= size
    }
}
