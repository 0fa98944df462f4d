//! The tables, as maps.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::history::{RemovedHistory, Trim};
use kelos_model::ranges::Range;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, Event, EventRecord, FactKey, Run, Slot, SlotKey, SlotRef, Workflow, WorkflowId};
use serde_json::Value;

use super::blocks::Blocks;
use super::bound::EndedSlots;
use crate::contract::{Commit, DefinedAt, Lease, SlotRow, Snapshot, StoreError, follows, named_before};
use crate::cursor::{SlotPlace, is_listed_in};
use crate::entry::Reign;
use crate::queries::{Order, Page, PageRequest, PastDefinition};
use crate::record::{Deletions, Digest, DigestBuilder, TurnColumns, TurnRecord, add_event};
use crate::step_keys::StepKeys;
use crate::stored;
use crate::unreadable::UnreadableRow;
use kelos_model::Recall;

/// A workflow's slots, in the order of the listing. They are boxed because new ones come first, and move all others of a node.
pub(super) type Slots = BTreeMap<SlotPlace, Box<(SlotKey, Slot)>>;

/// A workflow's steps, by the texts of their keys.
pub(super) type Steps = BTreeMap<String, Box<(SlotKey, Slot)>>;

/// A workflow's definitions by version, with the texts they came from.
pub(super) type Past = BTreeMap<u32, (PastDefinition, Option<Arc<str>>)>;

/// How far a memory has followed a log.
#[derive(Debug, Clone, Default)]
pub(super) struct LogPlace {
    pub(super) entry: u64,
    pub(super) epoch: u64,
    pub(super) reigns: Vec<Reign>,
}

/// All data of a store.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) epoch: u64,
    /// How far it has followed a log, if it is the local state of a node.
    pub(super) followed: LogPlace,
    /// The moment at which the lease expires; none if nobody holds it.
    held_until: Option<Timestamp>,
    /// The names of the workflows in the order of their first use; a workflow's number is its index here.
    pub(super) names: Vec<WorkflowId>,
    numbers: HashMap<WorkflowId, usize>,
    pub(super) slots: Vec<Slots>,
    /// The slots that are steps: no list and no count of slots has them.
    steps: Vec<Steps>,
    /// The positions of the events about the workflows themselves.
    pub(super) own_events: Vec<Vec<u64>>,
    pub(super) workflows: BTreeMap<WorkflowId, WorkflowRow>,
    pub(super) definitions: BTreeMap<WorkflowId, Past>,
    /// The rows of workflows whose present definitions can't be read as a whole.
    pub(super) unread: BTreeMap<WorkflowId, UnreadableRow>,
    pub(super) runs: BTreeMap<u64, Box<Run>>,
    pub(super) events: Blocks<EventRecord>,
    /// The turns. The last ones have no digest yet: it is computed when it is read, of the events that are kept here.
    pub(super) turns: Vec<TurnRecord>,
    /// The number of turns that have their digest.
    digested: usize,
    /// The deletions of turns, for those turns that delete rows.
    pub(super) deletions: BTreeMap<u64, Deletions>,
    backfills: BTreeMap<BackfillId, (usize, Backfill)>,
    pub(super) registers: BTreeMap<(String, String), Value>,
    pub(super) facts: BTreeMap<FactKey, u64>,
    pub(super) trimmed: RemovedHistory,
    /// The bound of what is kept; none where all of it is.
    pub(super) bound: Option<EndedSlots>,
}

impl State {
    pub(super) fn lease(&mut self, mine: Option<u64>, _node: &str, now: Timestamp, until: Timestamp) -> Option<u64> {
        let renewed = mine == Some(self.epoch) && self.held_until.is_some();
        if !renewed {
            if self.held_until.is_some_and(|until| now < until) {
                return None;
            }
            self.epoch += 1;
        }
        self.held_until = Some(until);
        Some(self.epoch)
    }

    /// Raises the epoch, so that nothing more can be written under the old one.
    pub(super) fn release(&mut self, epoch: u64) {
        if self.epoch == epoch {
            self.epoch += 1;
            self.held_until = None;
        }
    }

    /// Ends the lease of a leader that is gone.
    pub(super) fn abandon(&mut self, epoch: u64) {
        if self.epoch == epoch {
            self.held_until = None;
        }
    }

    fn meet(&mut self, name: &WorkflowId) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        self.slots.push(Slots::new());
        self.steps.push(Steps::new());
        self.own_events.push(Vec::new());
        number
    }

    /// Checks everything that could refuse a commit.
    pub(super) fn check(&self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        if lease.epoch != self.epoch {
            return Err(StoreError::Deposed { held: lease.epoch, current: self.epoch });
        }
        follows(self.last_seq(), &commit.events).map_err(corrupt)?;
        self.are_new(&commit.facts).map_err(corrupt)
    }

    /// Checks everything first, so that the writes that follow can't fail halfway.
    pub(super) fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        self.check(lease, commit)?;
        if !commit.is_empty() {
            self.record(lease, commit);
        }
        let defined_at = DefinedAt::of(&commit.events);
        for row in &commit.workflows {
            self.write_workflow(row, defined_at.at(&row.id), commit);
        }
        for row in &commit.slots {
            self.write_slot(row);
        }
        for run in &commit.runs {
            self.meet(&run.id.slot.workflow);
            let run = run_in_millis(run);
            match self.runs.get_mut(&run.seq) {
                Some(known) => **known = run,
                None => drop(self.runs.insert(run.seq, Box::new(run))),
            }
        }
        for record in &commit.events {
            if let Some(workflow) = subject(&record.event) {
                let number = self.meet(workflow);
                if matches!(record.event, Event::Workflow { .. }) {
                    self.own_events[number].push(record.seq);
                }
            }
            self.events.push(EventRecord { at: in_millis(record.at), ..record.clone() });
        }
        for backfill in &commit.backfills {
            self.meet(&backfill.workflow);
            let next = self.backfills.len();
            let place = self.backfills.get(&backfill.id).map_or(next, |(place, _)| *place);
            self.backfills.insert(backfill.id.clone(), (place, backfill_in_millis(backfill)));
        }
        for (bucket, key, value) in &commit.registers {
            let name = (bucket.clone(), key.clone());
            match value {
                Some(value) => self.registers.insert(name, value.clone()),
                None => self.registers.remove(&name),
            };
        }
        self.facts.extend(commit.facts.iter().cloned());
        commit.trim.as_ref().map_or(Ok(()), |trim| self.trim(trim))?;
        self.forget()
    }

    /// Forgets the slots beyond the bound. The last turn stays, by which the log continues.
    pub(super) fn forget(&mut self) -> Result<(), StoreError> {
        let going = self.bound.as_mut().map(EndedSlots::beyond).unwrap_or_default();
        let until = self.turns.len().checked_sub(2).and_then(|place| self.turns.get(place)).map(|turn| turn.turn);
        let Some(until) = until.filter(|_| !going.is_empty()) else { return Ok(()) };
        let mut positions = Vec::new();
        for (id, last_event) in going {
            // One that went on since ends again, or has.
            if self.slot(&id).is_none_or(|slot| slot.last_event != last_event) {
                continue;
            }
            let steps = self.steps_of(&id, &PageRequest::newest(usize::MAX))?.rows;
            let is_whole = matches!(id.key, SlotKey::Moment(_) | SlotKey::Named(_));
            for slot in steps.iter().map(|row| &row.id).chain([&id]) {
                let last = self.slot(slot).map_or(0, |slot| slot.last_event);
                positions.extend(self.life(last)?.iter().map(|record| record.seq));
                if is_whole {
                    self.runs_of(slot).iter().for_each(|seq| drop(self.runs.remove(seq)));
                    self.remove_slot(slot);
                }
            }
        }
        self.trim(&Trim::of(until, positions))
    }

    /// Removes history.
    pub(super) fn trim(&mut self, trim: &Trim) -> Result<(), StoreError> {
        // The digests are made of events that are still there.
        self.digest()?;
        let Some(place) = self.turns.iter().position(|turn| turn.turn == trim.until) else { return Ok(()) };
        let until = self.turns[place];
        let last = until.last_event().min(self.last_seq().saturating_sub(1));
        for (first, end) in trim.within(last) {
            for seq in first..=end {
                let index = usize::try_from(seq.saturating_sub(1)).unwrap_or(usize::MAX);
                self.trimmed.events += u64::from(self.events.remove(index).is_some());
            }
            // What depends on a slot may still be given its outputs.
            let goes = |run: &Run| run.state.is_final() && run.outputs.is_none();
            let gone: Vec<u64> =
                self.runs.range(first..=end).filter(|(_, run)| goes(run)).map(|(seq, _)| *seq).collect();
            self.trimmed.runs += gone.len() as u64;
            gone.iter().for_each(|seq| drop(self.runs.remove(seq)));
            self.facts.retain(|_, seq| !(first..=end).contains(seq));
        }
        if until.turn > self.trimmed.turn {
            self.turns.drain(1..place.max(1));
            self.digested = self.turns.len();
            self.deletions.retain(|turn, _| *turn >= until.turn);
            self.trimmed =
                RemovedHistory { turn: until.turn, event: until.last_event(), at: Some(until.at), ..self.trimmed };
        }
        Ok(())
    }

    /// Records a turn, without its digest.
    fn record(&mut self, lease: Lease, commit: &Commit) {
        let turn = TurnRecord::of_commit(self.turns.last(), self.last_seq(), lease.epoch, commit);
        self.turns.push(turn);
        if turn.deletes() {
            self.deletions.insert(turn.turn, Deletions::of(commit));
        }
    }

    /// Computes the digests that are still missing.
    pub(super) fn digest(&mut self) -> Result<(), StoreError> {
        while let Some(turn) = self.turns.get(self.digested).copied() {
            let before = self.digested.checked_sub(1).and_then(|before| self.turns.get(before));
            let mut digesting =
                DigestBuilder::begin(&before.map_or_else(Digest::default, |before| before.digest), turn);
            let first = usize::try_from(turn.first_event.saturating_sub(1)).unwrap_or(usize::MAX);
            let events = self.events.from(first).take(usize::try_from(turn.events).unwrap_or(usize::MAX));
            let none = Deletions::default();
            let deletions = self.deletions.get(&turn.turn).unwrap_or(&none);
            add_body(&mut digesting, events, deletions).map_err(|error| corrupt(error.to_string()))?;
            self.turns[self.digested] = digesting.end();
            self.digested += 1;
        }
        Ok(())
    }

    /// Checks that these facts have new idempotency keys; the error names the first that has not.
    fn are_new(&self, facts: &[(FactKey, u64)]) -> Result<(), String> {
        let mut named = BTreeSet::new();
        let known = facts.iter().find(|(name, _)| self.facts.contains_key(name) || !named.insert(name));
        known.map_or(Ok(()), |(name, _)| Err(named_before(name)))
    }

    fn write_workflow(&mut self, row: &WorkflowRow, at: Timestamp, commit: &Commit) {
        self.meet(&row.id);
        let versions = self.definitions.entry(row.id.clone()).or_default();
        let is_new = !versions.contains_key(&row.version);
        versions.entry(row.version).or_insert_with(|| {
            let (version, definition) = (row.version, (*row.definition).clone());
            let source = commit.sources.get(&row.definition.source.file).cloned();
            (PastDefinition { version, at: in_millis(at), definition, source: None }, source)
        });
        if is_new {
            self.unread.remove(&row.id);
        }
        if let Some(text) = commit.unread.get(&(row.id.clone(), row.version)) {
            let why = stored::read::<Workflow>(text).err().map(|error| error.to_string()).unwrap_or_default();
            let what = format!("version {} of its definition", row.version);
            let unread = UnreadableRow { workflow: Some(row.id.clone()), slot: None, what, why };
            self.unread.insert(row.id.clone(), unread);
        }
        self.workflows.insert(row.id.clone(), row.clone());
    }

    fn write_slot(&mut self, row: &SlotRow) {
        self.bound.iter_mut().for_each(|bound| bound.note(row));
        let number = self.meet(&row.id.workflow);
        let mut slot = row.slot.clone();
        slot.since = in_millis(slot.since);
        slot.due = slot.due.map(in_millis);
        if row.id.key.step().is_some() {
            let key = row.id.key.clone();
            self.steps[number].insert(key.to_string(), Box::new((key, slot)));
            return;
        }
        match self.slots[number].entry(place(&row.id)) {
            Entry::Occupied(mut known) => known.get_mut().1 = slot,
            Entry::Vacant(free) => drop(free.insert(Box::new((row.id.key.clone(), slot)))),
        }
    }

    /// Removes a slot.
    pub(super) fn remove_slot(&mut self, id: &SlotRef) {
        let Some(number) = self.number(&id.workflow) else { return };
        match id.key.step() {
            Some(_) => drop(self.steps[number].remove(&id.key.to_string())),
            None => drop(self.slots[number].remove(&place(id))),
        }
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.events.len() as u64
    }

    pub(super) fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.digest()?;
        Ok(Snapshot {
            last_seq: self.last_seq(),
            last_at: self.events.last().map(|record| record.at),
            last_turn: self.turns.last().copied(),
            backfills: self.backfills(),
            workflows: self.workflows.values().cloned().collect(),
            slots: self.live_slots(),
            runs: self.runs.values().filter(|run| !run.state.is_final()).map(|run| Run::clone(run)).collect(),
        })
    }

    /// The live slots, steps among them.
    pub(super) fn live_slots(&self) -> Vec<SlotRow> {
        let rows = (0..self.slots.len()).flat_map(|number| self.rows(number).chain(self.step_rows(number)));
        rows.filter(|row| row.slot.is_live()).collect()
    }

    /// A workflow's slots, newest first.
    pub(super) fn rows(&self, number: usize) -> impl Iterator<Item = SlotRow> + '_ {
        self.slots[number].values().map(move |kept| self.row(number, &kept.0, &kept.1))
    }

    fn step_rows(&self, number: usize) -> impl Iterator<Item = SlotRow> + '_ {
        self.steps[number].values().map(move |kept| self.row(number, &kept.0, &kept.1))
    }

    /// A page of the steps of a run.
    pub(super) fn steps_of(&self, run: &SlotRef, paging: &PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        let keys = StepKeys::of(&run.key);
        let (after, before) = keys.between(paging)?;
        let Some(number) = self.number(&run.workflow) else { return Ok(StepKeys::page(Vec::new(), paging)) };
        let within = self.steps[number].range::<str, _>((Bound::Excluded(&*after), Bound::Excluded(&*before)));
        let own = within.filter(|(text, _)| keys.others(text).is_none());
        let rows = own.map(|(_, kept)| self.row(number, &kept.0, &kept.1));
        let enough = paging.size().saturating_add(1);
        let rows = match paging.order {
            Order::Newest => rows.take(enough).collect(),
            Order::Oldest => rows.rev().take(enough).collect(),
        };
        Ok(StepKeys::page(rows, paging))
    }

    pub(super) fn row(&self, number: usize, key: &SlotKey, slot: &Slot) -> SlotRow {
        SlotRow { id: SlotRef::new(self.names[number].clone(), key.clone()), slot: slot.clone() }
    }

    pub(super) fn number(&self, name: &WorkflowId) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub(super) fn slot(&self, id: &SlotRef) -> Option<&Slot> {
        let number = self.number(&id.workflow)?;
        if id.key.step().is_some() {
            return self.steps[number].get(&id.key.to_string()).map(|kept| &kept.1);
        }
        self.slots[number].get(&place(id)).map(|kept| &kept.1)
    }

    pub(super) fn recall(&self, recall: &Recall) -> Vec<SlotRow> {
        let mut rows: Vec<SlotRow> = match recall {
            Recall::Slots(refs) => {
                let known = |id: &SlotRef| self.slot(id).map(|slot| SlotRow { id: id.clone(), slot: slot.clone() });
                refs.iter().filter_map(known).collect()
            }
            Recall::Range { workflow, start, end } => {
                let range = Range::new(*start, *end);
                let inside = |row: &SlotRow| is_listed_in(&range, &row.id.key);
                self.number(workflow).into_iter().flat_map(|number| self.rows(number)).filter(inside).collect()
            }
            Recall::Steps(run) => {
                self.steps_of(run, &PageRequest::newest(usize::MAX)).map(|page| page.rows).unwrap_or_default()
            }
        };
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        rows.dedup_by(|a, b| a.id == b.id);
        rows
    }

    pub(super) fn event(&self, seq: u64) -> Result<&EventRecord, StoreError> {
        let index = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1));
        let record = index.and_then(|index| self.events.get(index));
        record.ok_or_else(|| corrupt(format!("event {seq} is missing")))
    }

    /// All backfills, newest first.
    pub(super) fn backfills(&self) -> Vec<Backfill> {
        let mut backfills = self.backfills.values().collect::<Vec<_>>();
        backfills.sort_by_key(|(place, backfill)| std::cmp::Reverse((backfill.created_at, *place)));
        backfills.into_iter().map(|(_, backfill)| backfill.clone()).collect()
    }
}

/// Adds the body of a turn with these events and deletions.
pub(super) fn add_body<'a>(
    columns: &mut dyn TurnColumns,
    events: impl IntoIterator<Item = &'a EventRecord>,
    deletions: &Deletions,
) -> Result<(), serde_json::Error> {
    let mut text = Vec::new();
    for record in events {
        stored::write_body(&mut text, &record.event)?;
        add_event(columns, record, &String::from_utf8_lossy(&text));
    }
    if !deletions.is_empty() {
        columns.text(stored::text(deletions)?.as_bytes());
    }
    Ok(())
}

pub(super) fn corrupt(what: String) -> StoreError {
    StoreError::Corrupt { place: "the memory".to_owned(), what }
}

fn place(id: &SlotRef) -> SlotPlace {
    SlotPlace::new(id.workflow.clone(), &id.key)
}

/// The workflow that an event is about, if it is about one.
pub(super) fn subject(event: &Event) -> Option<&WorkflowId> {
    match event {
        Event::Slot { slot, .. } => Some(&slot.workflow),
        Event::Workflow { workflow, .. } => Some(workflow),
        Event::Backfill { .. } | Event::Register { .. } | Event::Fact { .. } | Event::Access { .. } => None,
    }
}

fn in_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

fn run_in_millis(run: &Run) -> Run {
    let mut run = run.clone();
    run.dispatched_at = in_millis(run.dispatched_at);
    run.started_at = run.started_at.map(in_millis);
    run.ended_at = run.ended_at.map(in_millis);
    run
}

fn backfill_in_millis(backfill: &Backfill) -> Backfill {
    let mut backfill = backfill.clone();
    backfill.range.start = in_millis(backfill.range.start);
    backfill.range.end = in_millis(backfill.range.end);
    backfill.created_at = in_millis(backfill.created_at);
    backfill.cancelled_at = backfill.cancelled_at.map(in_millis);
    backfill.resumed_at = backfill.resumed_at.map(in_millis);
    if let Some(pause) = &mut backfill.paused {
        pause.at = in_millis(pause.at);
    }
    backfill
}
