//! Judges of batches: what one run serves is adjacent, not too much, and agrees from the dispatch to the end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::event::Event;
use kelos_model::{Batch, EventRecord, Run, RunId, Slot, SlotEvent, SlotRef, SlotState};
use kelos_store::Queries;

use super::fold;
use crate::workload::{Workload, schedules};

/// A batch as the log has it.
struct LoggedBatch {
    batch: Batch,
    /// Its slots, with the backfill, the priority, the retries and how often it was done again of each when it was dispatched, and what became of it since.
    slots: BTreeMap<SlotRef, (Likeness, Vec<(Timestamp, String)>)>,
}

type Likeness = (Option<String>, i32, u32, u32);

/// The slots whose live runs leave the work to the run of another.
pub(super) fn followers(
    reader: &dyn Queries,
    slots: &BTreeMap<SlotRef, Slot>,
) -> Result<BTreeMap<SlotRef, RunId>, String> {
    let mut found = BTreeMap::new();
    for id in slots.iter().filter(|(_, slot)| slot.run_alive).map(|(id, _)| id) {
        let runs = reader.slot_runs(id).map_err(|error| error.to_string())?;
        found.extend(runs.last().filter(|run| run.is_follower()).map(|run| (id.clone(), Run::leader(run))));
    }
    Ok(found)
}

/// Checks all batches in the log.
pub(super) fn hold(workload: &Workload, log: &[EventRecord]) -> Result<(), String> {
    let mut folded: BTreeMap<SlotRef, Slot> = BTreeMap::new();
    let mut batches: BTreeMap<RunId, LoggedBatch> = BTreeMap::new();
    let mut of: BTreeMap<SlotRef, RunId> = BTreeMap::new();
    for record in log {
        let Event::Slot { slot: id, what } = &record.event else { continue };
        if let SlotEvent::Dispatched { batch, .. } = what {
            of.remove(id);
            if let Some((batch, slot)) = batch.as_ref().zip(folded.get(id)) {
                let leader = batch.leader(&id.workflow);
                of.insert(id.clone(), leader.clone());
                let likeness =
                    (slot.backfill.as_ref().map(ToString::to_string), slot.priority, slot.retries, slot.again);
                let logged = batches.entry(leader).or_insert(LoggedBatch { batch: *batch, slots: BTreeMap::new() });
                logged.slots.insert(id.clone(), (likeness, vec![(record.at, "dispatched".to_owned())]));
            }
        } else if let Some(leader) = of.get(id)
            && let Some(what) = of_its_run(folded.get(id), what)
        {
            let since = batches.get_mut(leader).and_then(|batch| batch.slots.get_mut(id));
            since.expect("it was dispatched").1.push((record.at, what));
        }
        fold(&mut folded, record)?;
    }
    batches.iter().try_for_each(|(leader, batch)| is_sound(workload, leader, batch))
}

/// An event about the run of a slot, in words that are the same for all slots of a batch.
fn of_its_run(slot: Option<&Slot>, what: &SlotEvent) -> Option<String> {
    let is_wanted = slot.is_some_and(|slot| matches!(slot.state, SlotState::Dispatched | SlotState::Running));
    match what {
        SlotEvent::Started { external_id, .. } => Some(format!("started as {external_id}")),
        SlotEvent::Given { inputs, .. } => Some(format!("given {inputs:?}")),
        SlotEvent::Gave { outputs, .. } => Some(format!("gave {outputs:?}")),
        SlotEvent::Deferred { reason, .. } => Some(format!("deferred: {reason}")),
        SlotEvent::Succeeded { .. } => Some("succeeded".to_owned()),
        SlotEvent::BackedOff { outcome, due, .. } => Some(format!("{outcome}, again at {due}")),
        SlotEvent::Failed { outcome, .. } => Some(format!("{outcome}, failed")),
        SlotEvent::RunEnded { outcome, .. } => Some(format!("{outcome}, gone")),
        SlotEvent::Killed { .. } if is_wanted => Some("killed".to_owned()),
        SlotEvent::SkippedBy { .. } if is_wanted => Some("skipped".to_owned()),
        _ => None,
    }
}

fn is_sound(workload: &Workload, leader: &RunId, LoggedBatch { batch, slots }: &LoggedBatch) -> Result<(), String> {
    let wrong = |what: String| Err(format!("the batch {batch} of {leader}: {what}"));
    let times: Vec<Timestamp> = slots.keys().filter_map(|slot| slot.key.time()).collect();
    let ends = (times.first().copied(), times.last().copied());
    if times.len() != batch.slots as usize || ends != (Some(batch.first), Some(batch.last)) || batch.slots < 2 {
        return wrong(format!("its slots are {times:?}"));
    }
    let id = &leader.slot.workflow;
    let fits = workload.definitions.iter().any(|(_, all)| {
        let size = all.iter().find(|one| one.id == *id).and_then(|one| one.batch).map_or(0, |one| one.size);
        let schedule = schedules(all).remove(id);
        let upto = batch.last + jiff::SignedDuration::from_millis(1);
        let adjacent = schedule.is_some_and(|schedule| schedule.times(batch.first, upto).eq(times.iter().copied()));
        size >= batch.slots && adjacent
    });
    if !fits {
        return wrong(format!("{times:?} are too many, or not adjacent"));
    }
    let alike: BTreeSet<_> = slots.values().map(|(likeness, _)| likeness).collect();
    let fates: BTreeSet<_> = slots.values().map(|(_, since)| since).collect();
    if alike.len() > 1 || fates.len() > 1 {
        return wrong(format!("its slots are not alike, or disagree: {alike:?} {fates:?}"));
    }
    Ok(())
}
