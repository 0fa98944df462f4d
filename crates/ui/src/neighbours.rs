//! The neighbours of a slot or workflow: upstream and downstream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_engine::job::Functions;
use kelos_explain::jobs::Jobs;
use kelos_explain::{paths, schedule};
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Leaf, Node};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotKey, SlotRef, SlotState, Subject, Trigger, WorkflowId};
use kelos_store::{Queries, StoreError};

/// Neighbours that are shown on each side.
const SHOWN: usize = 50;

/// A slot beside another.
pub(super) struct Neighbour {
    pub(super) id: SlotRef,
    /// The state; none if the slot does not exist.
    pub(super) state: Option<SlotState>,
}

/// The slots on both sides of one.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Those it waits for.
    pub(super) upstream: Vec<Neighbour>,
    /// Those that wait for it.
    pub(super) downstream: Vec<Neighbour>,
    /// How many more there are than are shown.
    pub(super) more_upstream: usize,
    pub(super) more_downstream: usize,
}

/// The slots on both sides of a slot.
pub(super) fn of_slot(
    reader: &dyn Queries,
    functions: &Arc<dyn Functions>,
    row: &WorkflowRow,
    key: &SlotKey,
) -> Result<Neighbours, StoreError> {
    let all = reader.workflows(None)?;
    let values = KeyValues::of(&row.definition.keys, key);
    let looked_at =
        |(workflow, offset): (&WorkflowId, i64)| Some(SlotRef::at(workflow.clone(), values.offset(offset)?.time()?));
    let mut upstream: Vec<SlotRef> = Vec::new();
    // A slot that a person started beside the schedule needs no trigger.
    let asks = !key.is_moment() || row.definition.keys.are_moments();
    if asks {
        upstream.extend(looks(&row.definition.trigger).into_iter().filter_map(looked_at));
        jobs_looked_at(&all, &row.definition.trigger, &values, &mut upstream);
    }
    let mut downstream = Vec::new();
    if key.job().is_some() {
        let (jobs, job) = (Jobs::of(&all).asking(functions.clone()), SlotRef::new(row.id.clone(), key.clone()));
        upstream.extend(jobs.parents_of(&job));
        downstream.extend(jobs.children_of(&job));
    }
    for other in all.iter().filter(|other| other.present) {
        for (_, offset) in looks(&other.definition.trigger).iter().filter(|(on, _)| **on == row.id) {
            let Some(key) = offset.checked_neg().and_then(|offset| key.offset(offset)) else { continue };
            downstream.extend(in_schedule(reader, other, key)?);
        }
    }
    let (joined, slot) = (paths::graph(&all), SlotRef::new(row.id.clone(), key.clone()));
    if asks {
        join(&mut upstream, joined.writers_for(&slot));
    }
    join(&mut downstream, joined.readers(&slot));
    Ok(Neighbours {
        more_upstream: upstream.len().saturating_sub(SHOWN),
        more_downstream: downstream.len().saturating_sub(SHOWN),
        upstream: with_states(reader, upstream)?,
        downstream: with_states(reader, downstream)?,
    })
}

/// Adds slots that are not among the others yet.
fn join(slots: &mut Vec<SlotRef>, others: BTreeSet<SlotRef>) {
    let known: BTreeSet<SlotRef> = slots.iter().cloned().collect();
    slots.extend(others.difference(&known).cloned());
}

/// The jobs on which a trigger depends.
fn jobs_looked_at(all: &[WorkflowRow], trigger: &Trigger, values: &KeyValues, found: &mut Vec<SlotRef>) {
    match trigger.node() {
        Node::Leaf(Leaf::Job(workflow, job)) => {
            let keys = all.iter().find(|row| row.id == *workflow).map(|row| &row.definition.keys);
            let key = keys.and_then(|keys| keys.read(&values.fill(job)).ok());
            found.extend(key.map(|key| SlotRef::new(workflow.clone(), key)).filter(|slot| !found.contains(slot)));
        }
        Node::Later(seconds, trigger) => {
            if let Some(values) = values.offset(seconds) {
                jobs_looked_at(all, trigger, &values, found);
            }
        }
        _ => trigger.nested().iter().for_each(|nested| jobs_looked_at(all, nested, values, found)),
    }
}

fn in_schedule(reader: &dyn Queries, row: &WorkflowRow, key: SlotKey) -> Result<Option<SlotRef>, StoreError> {
    let has = schedule::resolved(reader, row)?.is_ok_and(|schedule| schedule.has(&key));
    Ok(has.then(|| SlotRef::new(row.id.clone(), key)))
}

fn with_states(reader: &dyn Queries, slots: Vec<SlotRef>) -> Result<Vec<Neighbour>, StoreError> {
    let with_state = |id: SlotRef| Ok(Neighbour { state: reader.slot(&id)?.map(|slot| slot.state), id });
    slots.into_iter().take(SHOWN).map(with_state).collect()
}

/// The workflows on whose slots a trigger depends, each with how many seconds later, ascending and without repetition.
fn looks(trigger: &Trigger) -> Vec<(&WorkflowId, i64)> {
    let mut found = trigger.looks_at();
    found.sort();
    found.dedup();
    found
}

/// For each workflow those that it waits for, or whose paths it reads.
pub(super) fn upstream(all: &[WorkflowRow]) -> BTreeMap<&WorkflowId, BTreeSet<WorkflowId>> {
    let mut upstream: BTreeMap<_, _> = all.iter().map(|row| (&row.id, named(row))).collect();
    for (writer, reader) in paths::graph(all).edges() {
        if let Some(ids) = upstream.get_mut(reader) {
            ids.insert(writer.clone());
        }
    }
    upstream
}

/// The workflows that the definition of another one names as those for which it waits.
fn named(row: &WorkflowRow) -> BTreeSet<WorkflowId> {
    let parents = row.definition.keys.jobs().into_iter().flat_map(|jobs| jobs.parents());
    let programs = row.definition.trigger.subjects().into_iter().filter_map(|subject| match subject {
        Subject::Ended(program, _) => Some(program),
        _ => None,
    });
    row.definition.trigger.upstream().into_iter().chain(parents).cloned().chain(programs).collect()
}

/// The workflows that a workflow waits for, and those that wait for it, ascending.
pub(super) fn of_workflow(row: &WorkflowRow, all: &[WorkflowRow]) -> (Vec<WorkflowId>, Vec<WorkflowId>) {
    let upstream = upstream(all);
    let waits =
        |other: &&WorkflowRow| other.present && upstream.get(&other.id).is_some_and(|ids| ids.contains(&row.id));
    let downstream = all.iter().filter(waits).map(|other| other.id.clone()).collect();
    (upstream.get(&row.id).into_iter().flatten().cloned().collect(), downstream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_add_up() {
        let of = |id: &str| Trigger::Success { workflow: WorkflowId::new(id).unwrap() };
        let at = |seconds, trigger| Trigger::Offset { seconds, trigger: Box::new(trigger) };
        let both = Trigger::And { triggers: vec![of("a"), at(-60, of("b")), of("a")] };
        let trigger = at(3600, Trigger::Not { trigger: Box::new(both) });
        let found = looks(&trigger);
        let found: Vec<_> = found.iter().map(|(id, offset)| (id.as_str(), *offset)).collect();
        assert_eq!(found, [("a", 3600), ("b", 3540)]);
    }
}
