//! Tests of the slot table without a scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use jiff::Timestamp;
use kelos_model::FactKey;
use kelos_model::workflow::DefinedVersion;

use super::recalled::RecalledSlots;
use super::*;
use crate::past::Past;

/// A workflow whose jobs the executor `command` runs.
fn commands() -> Workflow {
    let schedule = kelos_model::time::Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    Workflow::new(WorkflowId::new("w").unwrap(), schedule, kelos_model::Job::new("command", serde_json::Map::new()))
}

/// A past that records what is read.
#[derive(Default)]
struct Noted {
    slots: BTreeMap<SlotRef, Slot>,
    reads: Vec<String>,
}

impl Past for Noted {
    type Error = Infallible;

    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        self.reads.push(ids.iter().map(SlotRef::to_string).collect::<Vec<_>>().join(" "));
        Ok(ids.iter().filter_map(|id| Some((id.clone(), self.slots.get(id)?.clone()))).collect())
    }

    fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        self.reads.push(format!("{workflow} {}..{}", range.start.as_second(), range.end.as_second()));
        let is_inside = |id: &SlotRef| id.workflow == *workflow && range.holds(&id.key);
        Ok(self.slots.iter().filter(|(id, _)| is_inside(id)).map(|(id, slot)| (id.clone(), slot.clone())).collect())
    }

    fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, Infallible> {
        self.reads.push(format!("{} facts", names.len()));
        Ok(Vec::new())
    }

    fn definitions(&mut self, _: &WorkflowId) -> Result<Vec<DefinedVersion>, Infallible> {
        Ok(Vec::new())
    }

    fn definition(&mut self, _: &WorkflowId, _: u32) -> Result<Option<Arc<Workflow>>, Infallible> {
        Ok(None)
    }

    fn steps(&mut self, _: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
        Ok(Vec::new())
    }

    fn runs(&mut self, _: &[u64]) -> Result<Vec<Run>, Infallible> {
        Ok(Vec::new())
    }
}

/// A past that can't be read.
struct Broken;

impl Past for Broken {
    type Error = &'static str;

    fn slots(&mut self, _: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, &'static str> {
        Err("the disk is gone")
    }

    fn range(&mut self, _: &WorkflowId, _: Range) -> Result<Vec<(SlotRef, Slot)>, &'static str> {
        Err("the disk is gone")
    }

    fn facts(&mut self, _: &[FactKey]) -> Result<Vec<FactKey>, &'static str> {
        Err("the disk is gone")
    }

    fn definitions(&mut self, _: &WorkflowId) -> Result<Vec<DefinedVersion>, &'static str> {
        Err("the disk is gone")
    }

    fn definition(&mut self, _: &WorkflowId, _: u32) -> Result<Option<Arc<Workflow>>, &'static str> {
        Ok(None)
    }

    fn steps(&mut self, _: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, &'static str> {
        Ok(Vec::new())
    }

    fn runs(&mut self, _: &[u64]) -> Result<Vec<Run>, &'static str> {
        Ok(Vec::new())
    }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn workflow() -> WorkflowId {
    WorkflowId::new("wf").unwrap()
}

fn slot(at: i64) -> SlotRef {
    SlotRef::at(workflow(), second(at))
}

fn job(id: &str) -> SlotRef {
    SlotRef::job(workflow(), id.into())
}

fn past(slots: &[SlotRef]) -> Noted {
    let ended = |id: &SlotRef| (id.clone(), Slot::new(SlotState::Succeeded, second(0)));
    Noted { slots: slots.iter().map(ended).collect(), ..Noted::default() }
}

fn names(rows: &[(SlotRef, Slot)]) -> Vec<SlotRef> {
    rows.iter().map(|(id, _)| id.clone()).collect()
}

#[test]
fn many_slots_are_one_read_and_what_is_not_there_is_known() {
    let (mut past, mut cache) = (past(&[slot(1)]), RecalledSlots::default());
    let Ok(rows) = cache.read(BTreeSet::from([slot(2), slot(1), job("a")]), &mut past);
    assert_eq!(names(&rows), [slot(1)]);
    assert_eq!(past.reads, [format!("{} {} {}", slot(1), slot(2), job("a"))]);
    assert!(!cache.is_absent(&slot(1)));
    assert!(cache.is_absent(&slot(2)));
    assert!(cache.is_absent(&job("a")));
    assert!(!cache.is_absent(&slot(3)), "nobody has read it");
    cache.exists(&slot(2));
    assert!(!cache.is_absent(&slot(2)), "it came to be in the turn");
    assert_eq!(cache.into_slots(), BTreeSet::from([slot(1)]));
}

#[test]
fn nothing_to_read_is_no_read() {
    let (mut past, mut cache) = (past(&[]), RecalledSlots::default());
    let Ok(_) = cache.read(BTreeSet::new(), &mut past);
    let Ok(_) = cache.read_range(&workflow(), Range::new(second(5), second(5)), &mut past);
    assert!(past.reads.is_empty(), "{:?}", past.reads);
}

#[test]
fn of_a_range_only_what_was_not_read_is_read() {
    let (mut past, mut cache) = (past(&[slot(1), slot(4), slot(9)]), RecalledSlots::default());
    let Ok(rows) = cache.read_range(&workflow(), Range::new(second(2), second(5)), &mut past);
    assert_eq!(names(&rows), [slot(4)]);
    let Ok(rows) = cache.read_range(&workflow(), Range::new(second(0), second(10)), &mut past);
    assert_eq!(names(&rows), [slot(1), slot(9)]);
    let Ok(rows) = cache.read_range(&workflow(), Range::new(second(1), second(9)), &mut past);
    assert_eq!(names(&rows), []);
    assert_eq!(past.reads, ["wf 2..5", "wf 0..2", "wf 5..10"]);
    assert!(cache.is_absent(&slot(3)), "all of the range that is there was read");
    assert!(!cache.is_absent(&job("a")), "a job lies in no range");
}

#[test]
fn a_past_that_cannot_be_read_is_no_absence() {
    let mut cache = RecalledSlots::default();
    assert_eq!(cache.read(BTreeSet::from([slot(1)]), &mut Broken), Err("the disk is gone"));
    let range = Range::new(second(0), second(5));
    assert_eq!(cache.read_range(&workflow(), range, &mut Broken), Err("the disk is gone"));
    assert!(!cache.is_absent(&slot(1)));
}

fn planned(table: &mut SlotTable, slot: &SlotRef) {
    let what = SlotEvent::planned(kelos_model::event::Origin::Schedule, 0);
    table.add_workflow(&slot.workflow);
    happen(table, slot, what, 1);
}

/// Applies an event to a slot, as the core does.
fn happen(table: &mut SlotTable, slot: &SlotRef, what: SlotEvent, seq: u64) -> Option<LastRun> {
    let Change { after, .. } = table.change(slot, &what, second(9), seq).expect("it can happen");
    table.enter(slot, &after, &what, &commands(), (second(9), seq))
}

fn waits() -> kelos_model::Reason {
    kelos_model::Reason::leaf(
        kelos_model::ReasonKind::Always,
        kelos_model::Answer::NotYet,
        kelos_model::Finding::Always,
    )
}

fn met() -> SlotEvent {
    let explanation = kelos_model::Reason::leaf(
        kelos_model::ReasonKind::Always,
        kelos_model::Answer::Met,
        kelos_model::Finding::Always,
    );
    SlotEvent::TriggerMet { explanation }
}

#[test]
fn what_a_turn_changed_is_newer_than_the_past_and_stays_while_it_is_live() {
    let (mut table, mut past) = (SlotTable::default(), past(&[slot(1), slot(2)]));
    planned(&mut table, &slot(1));
    let Ok(()) = table.recall([slot(1), slot(2), slot(3)], &mut past);
    assert_eq!(table.state(&slot(1)), Some(SlotState::Waiting));
    assert_eq!(table.state(&slot(2)), Some(SlotState::Succeeded));
    assert!(table.get(&slot(3)).is_none() && table.is_known(&slot(3)));
    assert_eq!(names(&table.changed()), [slot(1)], "what was read is no change");
    table.settle();
    assert!(table.get(&slot(1)).is_some(), "it is live");
    assert!(table.get(&slot(2)).is_none() && !table.is_known(&slot(2)), "the next turn reads it again");
    assert!(table.changed().is_empty());
}

#[test]
fn slots_of_a_workflow_that_never_was_are_not_asked_for() {
    let (mut table, mut past) = (SlotTable::default(), past(&[slot(1)]));
    let Ok(()) = table.recall([slot(1)], &mut past);
    let Ok(()) = table.recall_range(&workflow(), Range::new(second(0), second(5)), &mut past);
    assert!(past.reads.is_empty(), "{:?}", past.reads);
    assert!(table.is_known(&slot(1)));
}

#[test]
fn a_run_is_kept_while_it_is_alive_and_is_a_change_of_each_turn_that_touches_it() {
    let mut table = SlotTable::default();
    planned(&mut table, &slot(1));
    happen(&mut table, &slot(1), met(), 2);
    happen(&mut table, &slot(1), SlotEvent::Dispatched { run: 1, worker: None, batch: None }, 3);
    let run = table.run_mut(&slot(1)).expect("a run");
    run.deferred = Some(("the server is down".to_owned(), 1));
    assert!(table.get(&slot(1)).is_some_and(|live| live.is_deferred()));
    table.settle();
    assert!(table.changed_runs().is_empty());
    happen(&mut table, &slot(1), SlotEvent::Started { run: 1, external_id: "7".to_owned() }, 4);
    assert!(!table.get(&slot(1)).is_some_and(|live| live.is_deferred()), "it has started");
    assert_eq!(table.changed_runs()[0].external_id.as_deref(), Some("7"));
    let succeeded = happen(&mut table, &slot(1), SlotEvent::Succeeded { run: 1 }, 5);
    assert_eq!(succeeded.map(|run| run.seq), Some(3), "a run is known by the position of its dispatch");
    assert!(table.get(&slot(1)).is_some_and(|live| live.run.is_none()));
    table.settle();
    assert_eq!(table.len(), 0);
}

#[test]
fn an_event_that_cannot_happen_changes_nothing() {
    let mut table = SlotTable::default();
    assert!(table.change(&slot(1), &met(), second(9), 1).is_none(), "there is no such workflow");
    planned(&mut table, &slot(1));
    assert!(table.change(&slot(1), &SlotEvent::Succeeded { run: 1 }, second(9), 2).is_none());
    assert!(table.change(&slot(2), &met(), second(9), 2).is_none(), "it was never planned");
}

#[test]
fn a_slot_at_rest_is_the_same_slot_in_less_room() {
    let mut table = SlotTable::default();
    planned(&mut table, &slot(1));
    let backfill = kelos_model::BackfillId::new("bf").expect("a name");
    let asked = SlotEvent::Prioritised { priority: -1, backfill, by: None, reason: None };
    for (seq, what) in [asked, SlotEvent::Looked { explanation: waits() }].into_iter().enumerate() {
        let seq = seq as u64 + 2;
        let Change { after, .. } = table.change(&slot(1), &what, second(9), seq).expect("it can happen");
        table.enter(&slot(1), &after, &what, &commands(), (second(9), seq));
        assert!(matches!(table.stored(&slot(1)), Some(TableEntry::Resting(_))), "it waits and has never run");
        assert_eq!(table.get(&slot(1)).map(|live| live.into_owned().slot), Some(after));
    }
    table.set_valid(&slot(1));
    assert!(table.get(&slot(1)).is_some_and(|live| live.valid));
    table.doubt(&workflow());
    assert!(table.get(&slot(1)).is_some_and(|live| !live.valid));
    assert!(std::mem::size_of::<TableEntry>() <= 48, "{}", std::mem::size_of::<TableEntry>());
}
