//! The slots that an endpoint holds that does not answer: they wait, and fail only once their time is over.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::probe::Verdict;
use kelos_model::reason::Evidence;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Answer, Event, EventRecord, Probe, Reason, SlotEvent, SlotRef, SlotState, WorkflowId};
use kelos_store::{Queries, StoreError};

use super::dependents::Dependents;
use super::edges;
use crate::rows;

/// The most slots that wait for paths and are asked for which; those with the oldest times.
const MOST_ASKED: usize = 5_000;

/// The slots that an endpoint holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outage {
    /// Those that could not look for something there, the oldest first.
    pub slots: Vec<SlotRef>,
    /// The number of those that wait for them, at any distance.
    pub followers: usize,
    /// Whether there are more than were read.
    pub is_partial: bool,
}

/// Finds the slots that wait since an endpoint does not answer. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn held_by(reader: &dyn Queries, endpoint: &str, now: Timestamp) -> Result<Outage, StoreError> {
    let workflows = reader.workflows(None)?;
    // Most slots wait for the clock or for other slots: what they were told is not read.
    let looks = |row: &&WorkflowRow| !row.definition.trigger.paths().is_empty();
    let lookers: BTreeSet<&WorkflowId> = workflows.iter().filter(looks).map(|row| &row.id).collect();
    let (mut slots, mut room) = (Vec::new(), MOST_ASKED);
    let take = |(slot, _): (SlotRef, SlotState)| {
        if !lookers.contains(&slot.workflow) {
            return Ok(true);
        }
        let has_room = room > 0;
        room = room.saturating_sub(1);
        if has_room && last_look(reader, &slot)?.is_some_and(|last| asks_in_vain(&last, endpoint)) {
            slots.push(slot);
        }
        Ok(has_room)
    };
    let is_whole = lookers.is_empty()
        || rows::each(SlotState::Waiting, |filter, paging| reader.slot_states(filter, paging), take)?;
    if slots.is_empty() {
        return Ok(Outage { is_partial: !is_whole, ..Outage::default() });
    }
    let mut dependents = Dependents::new(reader, &workflows, now);
    let edges = edges(slots.iter(), &mut dependents)?;
    let held: BTreeSet<&SlotRef> = slots.iter().collect();
    let followers: BTreeSet<&SlotRef> = edges.values().flatten().map(|(slot, _)| slot).collect();
    let followers = followers.into_iter().filter(|slot| !held.contains(slot)).count();
    Ok(Outage { slots, followers, is_partial: !is_whole || dependents.is_partial })
}

/// The last explanation of the wait of a slot.
fn last_look(reader: &dyn Queries, slot: &SlotRef) -> Result<Option<Reason>, StoreError> {
    let history = reader.history(slot)?;
    Ok(history.iter().rev().find_map(explanation).cloned())
}

fn explanation(record: &EventRecord) -> Option<&Reason> {
    match &record.event {
        Event::Slot { what: SlotEvent::Looked { explanation }, .. } => Some(explanation),
        _ => None,
    }
}

/// Whether a part of a reason that is not met could not be looked for at an endpoint.
fn asks_in_vain(reason: &Reason, endpoint: &str) -> bool {
    if reason.answer != Answer::NotYet {
        return false;
    }
    let is_there = |uri: &str| uri.strip_prefix(endpoint).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let of_leaf = match reason.evidence() {
        Some(Evidence::Probe { probe: Probe::Path { uri, .. }, verdict: Verdict::Failed, .. }) => is_there(uri),
        _ => false,
    };
    of_leaf || reason.nested.iter().any(|nested| asks_in_vain(nested, endpoint))
}

#[cfg(test)]
mod tests {
    use kelos_model::probe::Conditions;
    use kelos_model::trigger::{FileSystem, PathCheck};
    use kelos_model::{Finding, ReasonKind, Trigger};
    use kelos_store::StoredState;

    use super::*;
    use crate::world::{World, at, backlog, row};

    #[test]
    fn slots_that_ask_an_endpoint_in_vain_are_held_and_those_behind_them_follow() {
        let after =
            |id: &str, on: &str| row(id, |one| one.trigger = Trigger::Success { workflow: on.parse().unwrap() });
        let asking = |id: &str| {
            let (path, base, conditions) = ("hdfs://nn/in".to_owned(), "hdfs://nn".to_owned(), Conditions::default());
            let check = PathCheck { system: FileSystem::Hdfs, path, base, conditions };
            row(id, |one| one.trigger = Trigger::Path(check.clone()))
        };
        let mut world = World::new(vec![asking("a"), asking("b"), after("c", "a"), after("d", "c")]);
        let asks = |uri: &str, verdict| {
            let (probe, detail, looked_at) = (Probe::path(uri), "refused".to_owned(), at(1, 1));
            let finding = Finding::ProbeAnswered { probe, verdict, detail, looked_at };
            SlotEvent::Looked { explanation: Reason::leaf(ReasonKind::HdfsPath, Answer::NotYet, finding) }
        };
        let held = world.planned("a", 1, at(1, 0));
        world.happens(&held, at(1, 1), asks("hdfs://nn/in", Verdict::Failed));
        for (hour, uri, verdict) in [(2, "hdfs://nn/in", Verdict::No), (3, "hdfs://nn2/in", Verdict::Failed)] {
            let other = world.planned("b", hour, at(hour, 0));
            world.happens(&other, at(hour, 1), asks(uri, verdict));
        }
        let behind = world.waits("c", 1, &held);
        world.waits("d", 1, &behind);
        let found = held_by(&*world.store.reader(), "hdfs://nn", at(4, 0)).unwrap();
        assert_eq!(found, Outage { slots: vec![held], followers: 2, is_partial: false });
    }

    #[test]
    fn older_slots_that_look_for_nothing_hide_none_that_an_endpoint_holds() {
        let asking = row("a", |one| {
            let (path, base, conditions) = ("hdfs://nn/in".to_owned(), "hdfs://nn".to_owned(), Conditions::default());
            one.trigger = Trigger::Path(PathCheck { system: FileSystem::Hdfs, path, base, conditions });
        });
        let behind = WorkflowRow { planned: backlog(8_760, Some("year")), ..row("b", |_| {}) };
        let mut world = World::new(vec![asking, behind, row("c", |_| {})]);
        world.puts_waiting("c", 1_500);
        let held = world.planned("a", 1, at(1, 0));
        let (probe, verdict) = (Probe::path("hdfs://nn/in"), Verdict::Failed);
        let finding = Finding::ProbeAnswered { probe, verdict, detail: "refused".to_owned(), looked_at: at(1, 1) };
        let explanation = Reason::leaf(ReasonKind::HdfsPath, Answer::NotYet, finding);
        world.happens(&held, at(1, 1), SlotEvent::Looked { explanation });
        let found = held_by(&*world.store.reader(), "hdfs://nn", at(4, 0)).unwrap();
        assert_eq!(found, Outage { slots: vec![held], followers: 0, is_partial: false });
    }
}
