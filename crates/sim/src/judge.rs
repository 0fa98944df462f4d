//! What must hold, whatever happened.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_core::Core;
use kelos_model::event::Event;
use kelos_model::trigger::evaluate;
use kelos_model::{Answer, EventRecord, Slot, SlotRef, SlotState, WorkflowId, slot};
use kelos_store::{MemoryDisk, MemoryStore, Reader, SlotFilter, Store};

use crate::workload::Workload;
use crate::world::{Known, World};

/// What a poll, a report or a retry may be late by.
const SLACK: SignedDuration = SignedDuration::from_mins(12);

/// After each start: no slot has two live runs, no limit is passed.
///
/// # Errors
/// What is wrong.
pub fn after_start(workload: &Workload, world: &World, now: Timestamp) -> Result<(), String> {
    let mut by_workflow: BTreeMap<&WorkflowId, u32> = BTreeMap::new();
    let mut before: Option<&SlotRef> = None;
    for run in world.alive(now) {
        if before == Some(&run.slot) {
            return Err(format!("two live runs of {}", run.slot));
        }
        before = Some(&run.slot);
        *by_workflow.entry(&run.slot.workflow).or_default() += 1;
    }
    for (workflow, alive) in &by_workflow {
        let definitions = workload.definitions.iter().flat_map(|(_, all)| all).filter(|one| one.id == **workflow);
        let limit = definitions.map(|one| one.concurrency).max().unwrap_or(0);
        if *alive > limit {
            return Err(format!("{alive} live runs of {workflow}, its concurrency is {limit}"));
        }
    }
    let all: u32 = by_workflow.values().sum();
    if all > workload.config.max_running {
        return Err(format!("{all} live runs, the limit is {}", workload.config.max_running));
    }
    Ok(())
}

/// Once faults have stopped for long: the log folds to the table, nothing is lost, all that can end has ended.
///
/// # Errors
/// What is wrong.
pub fn at_rest(
    workload: &Workload,
    world: &World,
    disk: &MemoryDisk,
    core: &Core,
    now: Timestamp,
) -> Result<(), String> {
    let store = MemoryStore::on(disk);
    let reader = store.reader();
    let slots = all_slots(&*reader)?;
    log_folds_to_the_table(&*reader, &slots)?;
    nothing_is_missing(workload, &*reader, &slots)?;
    let live = slots.values().filter(|slot| slot.is_live()).count();
    if core.live_slots() != live {
        return Err(format!("{} slots in memory, {live} live ones in the table", core.live_slots()));
    }
    for (id, slot) in &slots {
        is_accounted_for(workload, world, &*reader, &slots, (id, slot), now)?;
    }
    Ok(())
}

fn all_slots(reader: &dyn Reader) -> Result<BTreeMap<SlotRef, Slot>, String> {
    let mut slots = BTreeMap::new();
    let mut from = None;
    loop {
        let page = reader.slots(&SlotFilter::default(), from.as_deref(), 500).map_err(|error| error.to_string())?;
        slots.extend(page.rows.into_iter().map(|row| (row.id, row.slot)));
        from = page.next;
        if from.is_none() {
            return Ok(slots);
        }
    }
}

fn log_folds_to_the_table(reader: &dyn Reader, slots: &BTreeMap<SlotRef, Slot>) -> Result<(), String> {
    let log = reader.events(0, None, crate::ALL).map_err(|error| error.to_string())?.rows;
    let mut folded: BTreeMap<SlotRef, Slot> = BTreeMap::new();
    for (position, record) in log.iter().enumerate() {
        if record.seq != position as u64 + 1 {
            return Err(format!("the log has {} in place {}", record.seq, position + 1));
        }
        fold(&mut folded, record)?;
    }
    if let Some((id, slot)) = folded.iter().find(|(id, slot)| slots.get(id) != Some(slot)) {
        return Err(format!("the log says {slot:?} of {id}, the table {:?}", slots.get(id)));
    }
    if folded.len() != slots.len() {
        return Err(format!("the log knows {} slots, the table {}", folded.len(), slots.len()));
    }
    Ok(())
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

/// Every time of the schedule that the planned ranges cover has its slot.
fn nothing_is_missing(workload: &Workload, reader: &dyn Reader, slots: &BTreeMap<SlotRef, Slot>) -> Result<(), String> {
    let schedules = crate::spec::schedules(last_definitions(workload));
    for row in reader.workflows().map_err(|error| error.to_string())? {
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

fn last_definitions(workload: &Workload) -> &[std::sync::Arc<kelos_model::Workflow>] {
    workload.definitions.last().map_or(&[], |(_, all)| all)
}

/// A live slot must have a reason to be live.
fn is_accounted_for(
    workload: &Workload,
    world: &World,
    reader: &dyn Reader,
    slots: &BTreeMap<SlotRef, Slot>,
    (id, slot): (&SlotRef, &Slot),
    now: Timestamp,
) -> Result<(), String> {
    let row = reader.workflow(&id.workflow).map_err(|error| error.to_string())?;
    let Some(row) = row.filter(|row| row.present && !row.paused) else { return Ok(()) };
    let schedules = crate::spec::schedules(last_definitions(workload));
    if !schedules.get(&id.workflow).is_some_and(|schedule| schedule.contains(id.key.scheduled_at())) {
        return Ok(());
    }
    let early = now - SLACK;
    let stuck = |why: &str| Err(format!("{id} is {slot:?} at {now}: {why}"));
    let active = || slots.iter().filter(|(other, slot)| other.workflow == id.workflow && slot.run_alive).count();
    let all_active = || slots.values().filter(|slot| slot.run_alive).count();
    match slot.state {
        SlotState::Waiting if slot.since < early => {
            let met = |at| {
                let state = |slot: &SlotRef| slots.get(slot).map(|slot| slot.state);
                let facts = Known { now: at, world, state: &state };
                evaluate(&row.definition.trigger, &id.workflow, &id.key, &facts).explanation.answer != Answer::NotYet
            };
            if met(now) && met(early) { stuck("its trigger has an answer") } else { Ok(()) }
        }
        SlotState::Backoff if slot.due.is_none_or(|due| due < early) => stuck("its retry was due"),
        SlotState::Queued
            if slot.since < early
                && !slot.run_alive
                && active() < row.definition.concurrency as usize
                && all_active() < workload.config.max_running as usize =>
        {
            stuck("there is a place for it")
        }
        _ if slot.run_alive => {
            let run = kelos_model::RunId { slot: id.clone(), number: slot.last_run };
            let over = world.runs.get(&run).is_none_or(|run| run.ends_at < early);
            if over && slot.since < early { stuck("its run is over, or never started") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}
