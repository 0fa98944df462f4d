//! Everything that is read.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kelos_model::workflow::{Backfill, WorkflowRow};
use kelos_model::{BackfillId, Event, EventRecord, Run, Slot, SlotRef, SlotState, WorkflowId};
use serde_json::Value;

use super::MemoryDisk;
use super::state::{State, corrupt, digested, subject};
use crate::contract::{
    PENDING, Page, PastDefinition, Queries, RunFilter, SlotFilter, SlotRow, StoreError, facts_of, newest_first,
};
use crate::cursor::{SlotPlace, parse_seq};
use crate::record::{Digest, Digesting, Recount, TurnRecord};
use crate::tally::{Columns, Tallies, Tally};

/// Whether a slot is one of a filter's, its workflow left aside.
fn passes(filter: &SlotFilter, place: &SlotPlace, slot: &Slot) -> bool {
    let in_range = |range: &kelos_model::ranges::Range| {
        (range.start.as_millisecond()..range.end.as_millisecond()).contains(&place.at.0)
    };
    (filter.states.is_empty() || filter.states.contains(&slot.state))
        && filter.range.as_ref().is_none_or(in_range)
        && filter.backfill.as_ref().is_none_or(|backfill| slot.backfill.as_ref() == Some(backfill))
}

impl State {
    /// The numbers of the workflows that a filter lets through.
    fn filtered(&self, workflow: Option<&WorkflowId>) -> Vec<usize> {
        match workflow {
            Some(name) => self.number(name).into_iter().collect(),
            None => (0..self.names.len()).collect(),
        }
    }

    fn page(&self, filter: &SlotFilter, after: Option<&SlotPlace>, limit: usize) -> Page<SlotRow> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = Vec::new();
        for number in self.filtered(filter.workflow.as_ref()) {
            let slots = self.slots[number].range((from.cloned(), Bound::Unbounded));
            let passing = slots.filter(|(place, (_, slot))| passes(filter, place, slot));
            found.extend(passing.take(limit + 1).map(|(place, (key, slot))| (place, number, key, slot)));
        }
        found.sort_by_key(|(place, ..)| *place);
        let full = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| full).map(|(place, ..)| place.cursor());
        let rows = found.into_iter().map(|(_, number, key, slot)| self.row(number, key, slot)).collect();
        Page { rows, next }
    }

    fn counts(&self, filter: &SlotFilter) -> BTreeMap<SlotState, u64> {
        let mut counts = BTreeMap::new();
        for number in self.filtered(filter.workflow.as_ref()) {
            for (place, (_, slot)) in &self.slots[number] {
                if passes(filter, place, slot) {
                    *counts.entry(slot.state).or_default() += 1;
                }
            }
        }
        counts
    }

    fn tallies(&self, columns: &Columns, workflow: Option<&WorkflowId>) -> BTreeMap<WorkflowId, Vec<Tally>> {
        let mut found = BTreeMap::new();
        for number in self.filtered(workflow) {
            let mut tallies = Tallies::new(*columns);
            for (place, (_, slot)) in &self.slots[number] {
                tallies.add(0, place.at.0, slot.state);
            }
            found.extend(tallies.by_workflow().into_values().map(|tallies| (self.names[number].clone(), tallies)));
        }
        found
    }

    fn history(&self, id: &SlotRef) -> Result<Vec<EventRecord>, StoreError> {
        let mut records = Vec::new();
        let mut seq = self.slot(id).map_or(0, |slot| slot.last_event);
        while seq > 0 {
            let record = self.event(seq)?;
            seq = record.previous;
            records.push(record.clone());
        }
        records.reverse();
        Ok(records)
    }

    fn slot_runs(&self, id: &SlotRef) -> Result<Vec<Run>, StoreError> {
        let mut runs = Vec::new();
        let mut seq = self.slot(id).map_or(0, |slot| slot.last_run_seq);
        while seq > 0 {
            let run = self.run(seq)?;
            seq = run.previous;
            runs.push(run.clone());
        }
        runs.reverse();
        Ok(runs)
    }
}

impl Queries for MemoryDisk {
    fn workflows(&self) -> Result<Vec<WorkflowRow>, StoreError> {
        Ok(self.state().workflows.values().cloned().collect())
    }

    fn workflow(&self, id: &WorkflowId) -> Result<Option<WorkflowRow>, StoreError> {
        Ok(self.state().workflows.get(id).cloned())
    }

    fn definitions(&self, id: &WorkflowId) -> Result<Vec<PastDefinition>, StoreError> {
        let state = self.state();
        let past = state.definitions.get(id).into_iter().flat_map(|past| past.values().rev());
        let with_source = |(past, source): &(PastDefinition, Option<std::sync::Arc<str>>)| PastDefinition {
            source: source.as_ref().map(|text| text.as_ref().to_owned()),
            ..past.clone()
        };
        Ok(past.map(with_source).collect())
    }

    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError> {
        Ok(self.state().slot(id).cloned())
    }

    fn slots(&self, filter: &SlotFilter, from: Option<&str>, limit: usize) -> Result<Page<SlotRow>, StoreError> {
        let after = from.map(SlotPlace::parse).transpose()?;
        Ok(self.state().page(filter, after.as_ref(), limit.max(1)))
    }

    fn pending(&self, workflow: &WorkflowId, limit: usize) -> Result<Vec<SlotRow>, StoreError> {
        let filter = SlotFilter { workflow: Some(workflow.clone()), states: PENDING.to_vec(), ..SlotFilter::default() };
        let rows = self.state().page(&filter, None, usize::MAX - 1).rows;
        Ok(rows.into_iter().filter(|row| row.slot.collected.is_some()).take(limit).collect())
    }

    fn oldest_slots(&self, state: SlotState, limit: usize) -> Result<Vec<SlotRow>, StoreError> {
        let all = self.state();
        let in_state = |row: &SlotRow| row.slot.state == state;
        let mut rows: Vec<SlotRow> =
            (0..all.slots.len()).flat_map(|number| all.rows(number)).filter(in_state).collect();
        rows.sort_by_key(|row| row.id.key.scheduled_at());
        rows.truncate(limit);
        Ok(rows)
    }

    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError> {
        Ok(self.state().counts(filter))
    }

    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        Ok(self.state().tallies(columns, workflow))
    }

    fn history(&self, id: &SlotRef) -> Result<Vec<EventRecord>, StoreError> {
        self.state().history(id)
    }

    fn slot_runs(&self, id: &SlotRef) -> Result<Vec<Run>, StoreError> {
        self.state().slot_runs(id)
    }

    fn runs(&self, filter: &RunFilter, from: Option<&str>, limit: usize) -> Result<Page<Run>, StoreError> {
        let before = from.map_or(Ok(u64::MAX), parse_seq)?;
        let (limit, millis) = (limit.max(1), Timestamp::as_millisecond);
        let passes = |run: &&Run| {
            (filter.states.is_empty() || filter.states.contains(&run.state))
                && filter.workflow.as_ref().is_none_or(|workflow| run.id.slot.workflow == *workflow)
                && filter.has_time(run.state, millis(run.dispatched_at), run.ended_at.map(millis))
        };
        let state = self.state();
        let mut rows: Vec<Run> = Vec::new();
        let mut passing = state.runs.range(..before).rev().map(|(_, run)| run).filter(passes);
        rows.extend(passing.by_ref().take(limit).cloned());
        let next = passing.next().and_then(|_| rows.last()).map(|run| run.seq.to_string());
        Ok(Page { rows, next })
    }

    fn events(&self, after: u64, workflow: Option<&WorkflowId>, limit: usize) -> Result<Page<EventRecord>, StoreError> {
        let state = self.state();
        let to = after.saturating_add(limit.max(1) as u64).min(state.last_seq());
        let index = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX);
        let looked_at = state.events.get(index(after)..index(to)).unwrap_or_default();
        let wanted = |record: &&EventRecord| workflow.is_none() || subject(&record.event) == workflow;
        let rows = looked_at.iter().filter(wanted).cloned().collect();
        Ok(Page { rows, next: (to < state.last_seq()).then(|| to.to_string()) })
    }

    fn facts(&self, from: Option<&str>, limit: usize) -> Result<Page<EventRecord>, StoreError> {
        let before = from.map(parse_seq).transpose()?.unwrap_or(u64::MAX);
        let limit = limit.max(1);
        let state = self.state();
        let outside = |record: &&EventRecord| {
            record.seq < before && !matches!(record.event, Event::Slot { .. } | Event::Workflow { .. })
        };
        Ok(facts_of(state.events.iter().rev().filter(outside).take(limit).cloned().collect(), limit))
    }

    fn workflow_events(
        &self,
        id: &WorkflowId,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page<EventRecord>, StoreError> {
        let before = from.map(parse_seq).transpose()?.unwrap_or(u64::MAX);
        let wanted = |record: &&EventRecord| {
            record.seq < before && matches!(&record.event, Event::Workflow { workflow, .. } if workflow == id)
        };
        let limit = limit.max(1);
        Ok(newest_first(self.state().events.iter().rev().filter(wanted).take(limit).cloned().collect(), limit))
    }

    fn last_seq(&self) -> Result<u64, StoreError> {
        Ok(self.state().last_seq())
    }

    fn turns(&self, after: u64, limit: usize) -> Result<Page<TurnRecord>, StoreError> {
        let limit = limit.max(1);
        let state = self.state();
        let later = state.turns.iter().skip_while(|turn| turn.turn <= after);
        Ok(Page::of_turns(later.take(limit.saturating_add(1)).copied().collect(), limit))
    }

    fn recount(&self, turn: &TurnRecord, before: &Digest) -> Result<Recount, StoreError> {
        let state = self.state();
        let inside = |record: &&EventRecord| (turn.first_event..=turn.last_event()).contains(&record.seq);
        let index = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX);
        let events =
            state.events.get(index(turn.first_event.saturating_sub(1))..).unwrap_or_default().iter().take_while(inside);
        let missing = (state.last_seq() < turn.last_event()).then(|| state.last_seq() + 1);
        let counted = digested(Digesting::begin(before, *turn), events).map_err(|error| corrupt(error.to_string()))?;
        Ok(Recount { digest: counted.digest, missing })
    }

    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError> {
        Ok(Arc::new(MemoryDisk(Arc::new(Mutex::new(self.state().clone())))))
    }

    fn backfills(&self) -> Result<Vec<Backfill>, StoreError> {
        Ok(self.state().backfills())
    }

    fn backfill(&self, id: &BackfillId) -> Result<Option<Backfill>, StoreError> {
        Ok(self.state().backfill(id).cloned())
    }

    fn register(&self, bucket: &str, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.state().registers.get(&(bucket.to_owned(), key.to_owned())).cloned())
    }

    fn registers(&self, bucket: &str, prefix: &str) -> Result<Vec<(String, Value)>, StoreError> {
        let state = self.state();
        let from = (bucket.to_owned(), prefix.to_owned());
        let inside = |name: &(String, String)| name.0 == bucket && name.1.starts_with(prefix);
        let registers = state.registers.range(from..).take_while(|(name, _)| inside(name));
        Ok(registers.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn damage(&self, _: usize) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn buckets(&self) -> Result<Vec<String>, StoreError> {
        let mut buckets: Vec<String> = self.state().registers.keys().map(|(bucket, _)| bucket.clone()).collect();
        buckets.dedup();
        Ok(buckets)
    }
}
