//! The side that reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use kelos_model::backfill::Backfill;
use kelos_model::history::RemovedHistory;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, Run, Slot, SlotRef, SlotState, WorkflowId};

use super::MemoryDisk;
use super::state::{State, add_body, corrupt, subject};
use crate::backlog::Backlogs;
use crate::contract::{SlotRow, StoreError};
use crate::cursor::{SlotPlace, Span};
use crate::queries::{
    About, BackfillFilter, EventFilter, Order, Page, PageRequest, PastDefinition, Queries, Register, RegisterKeys,
    RunFilter, SlotFilter, Space,
};
use crate::record::{TurnColumns, TurnContent, TurnRecord};
use crate::tally::{Columns, Tallies, Tally};

/// Whether a filter selects a slot; its workflow is checked elsewhere.
fn passes(filter: &SlotFilter, place: &SlotPlace, slot: &Slot) -> bool {
    let in_range = |range: &kelos_model::ranges::Range| {
        (range.start.as_millisecond()..range.end.as_millisecond()).contains(&place.at.0)
    };
    (filter.states.is_empty() || filter.states.contains(&slot.state))
        && filter.range.as_ref().is_none_or(in_range)
        && filter.backfill.as_ref().is_none_or(|backfill| slot.backfill.as_ref() == Some(backfill))
        && (!filter.collecting || slot.collected.is_some() && !slot.state.is_final())
}

impl State {
    /// The numbers of the workflows that a filter selects.
    fn filtered(&self, workflow: Option<&WorkflowId>) -> Vec<usize> {
        match workflow {
            Some(name) => self.number(name).into_iter().collect(),
            None => (0..self.names.len()).collect(),
        }
    }

    fn page(&self, filter: &SlotFilter, paging: &PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        let after = paging.from.map(SlotPlace::parse).transpose()?;
        let compare = |a: &SlotPlace, b: &SlotPlace| paging.order.of(a.cmp(b));
        let mut found = Vec::new();
        for number in self.filtered(filter.workflow.as_ref()) {
            let beyond = |place: &SlotPlace| after.as_ref().is_none_or(|after| compare(place, after).is_gt());
            let slots = self.slots[number].iter().filter(|(place, _)| beyond(place));
            let passing = slots.filter(|(place, kept)| passes(filter, place, &kept.1));
            found.extend(passing.map(|(place, kept)| (place, number, &kept.0, &kept.1)));
        }
        found.sort_by(|a, b| compare(a.0, b.0));
        let full = found.len() > paging.size();
        found.truncate(paging.size());
        let next = found.last().filter(|_| full).map(|(place, ..)| place.cursor());
        let rows = found.into_iter().map(|(_, number, key, slot)| self.row(number, key, slot)).collect();
        Ok(Page { rows, next })
    }

    /// The planned times that have no rows.
    fn backlogs(&self) -> Backlogs {
        let mut backlogs = Backlogs::default();
        self.workflows.values().for_each(|row| backlogs.add(row.id.clone(), &row.planned));
        backlogs
    }

    fn counts(&self, filter: &SlotFilter) -> BTreeMap<SlotState, u64> {
        let mut counts = BTreeMap::new();
        for number in self.filtered(filter.workflow.as_ref()) {
            for (place, kept) in &self.slots[number] {
                if passes(filter, place, &kept.1) {
                    *counts.entry(kept.1.state).or_default() += 1;
                }
            }
        }
        counts
    }

    fn tallies(&self, columns: &Columns, workflow: Option<&WorkflowId>) -> BTreeMap<WorkflowId, Vec<Tally>> {
        let mut found = BTreeMap::new();
        for number in self.filtered(workflow) {
            let mut tallies = Tallies::new(*columns);
            for (place, kept) in &self.slots[number] {
                tallies.add(0, place.at.0, kept.1.state);
            }
            found.extend(tallies.by_workflow().into_values().map(|tallies| (self.names[number].clone(), tallies)));
        }
        found
    }

    /// Events about something, oldest first.
    fn events_about(&self, about: &About) -> Result<Vec<&EventRecord>, StoreError> {
        match about {
            About::Slot(id) => return self.life(self.slot(id).map_or(0, |slot| slot.last_event)),
            About::WorkflowItself(id) => return Ok(self.events_of(id).collect()),
            _ => {}
        }
        let is_about = |record: &&EventRecord| match about {
            About::Anything | About::Slot(_) | About::WorkflowItself(_) => true,
            About::Workflow(id) => subject(&record.event) == Some(id),
            About::Facts => matches!(record.event, Event::Fact { .. }),
            About::Access => record.event.is_about_access(),
        };
        Ok(self.events.iter().filter(is_about).collect())
    }

    /// The events about a workflow itself that are kept, oldest first.
    fn events_of(&self, id: &WorkflowId) -> impl Iterator<Item = &EventRecord> {
        let positions = self.number(id).and_then(|number| self.own_events.get(number));
        positions.into_iter().flatten().filter_map(|seq| self.event(*seq).ok())
    }

    /// The positions of the runs of a slot, from its last one back to where its history was removed.
    pub(super) fn runs_of(&self, id: &SlotRef) -> BTreeSet<u64> {
        let last = self.slot(id).map_or(0, |slot| slot.last_run_seq);
        let before = |seq: &u64| self.runs.get(seq).map(|run| run.previous);
        std::iter::successors(Some(last), before).filter(|seq| self.runs.contains_key(seq)).collect()
    }

    /// The events of a slot up to its last one, oldest first.
    pub(super) fn life(&self, last: u64) -> Result<Vec<&EventRecord>, StoreError> {
        let (mut records, mut seq) = (Vec::new(), last);
        while seq > 0 {
            let record = match self.event(seq) {
                Err(_) if self.trimmed.covers(seq) => break,
                found => found?,
            };
            seq = record.previous;
            records.push(record);
        }
        records.reverse();
        Ok(records)
    }
}

/// The page of a list that is given oldest first, by numbers.
fn page_of<'a, T: Clone + 'a>(
    rows: impl DoubleEndedIterator<Item = &'a T>,
    span: Span,
    paging: &PageRequest<'_>,
    number: impl Fn(&T) -> u64,
) -> Result<Page<T>, StoreError> {
    let span = span.of(paging)?;
    let inside = rows.filter(|row| span.contains(number(row)));
    let enough = paging.size().saturating_add(1);
    let mut rows: Vec<T> = match paging.order {
        Order::Newest => inside.rev().take(enough).cloned().collect(),
        Order::Oldest => inside.take(enough).cloned().collect(),
    };
    let full = rows.len() > paging.size();
    rows.truncate(paging.size());
    let next = rows.last().filter(|_| full).map(|row| number(row).to_string());
    Ok(Page { rows, next })
}

impl Queries for MemoryDisk {
    fn workflows(&self, only: Option<&WorkflowId>) -> Result<Vec<WorkflowRow>, StoreError> {
        let state = self.state();
        Ok(match only {
            None => state.workflows.values().cloned().collect(),
            Some(id) => state.workflows.get(id).into_iter().cloned().collect(),
        })
    }

    fn definitions(&self, id: &WorkflowId, version: Option<u32>) -> Result<Vec<PastDefinition>, StoreError> {
        let state = self.state();
        let past = state.definitions.get(id).into_iter().flat_map(|past| past.values().rev());
        let past = past.filter(|(past, _)| version.is_none_or(|version| past.version == version));
        let with_source = |(past, source): &(PastDefinition, Option<std::sync::Arc<str>>)| PastDefinition {
            source: source.as_ref().map(|text| text.as_ref().to_owned()),
            ..past.clone()
        };
        Ok(past.map(with_source).collect())
    }

    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError> {
        let state = self.state();
        Ok(state.slot(id).cloned().or_else(|| state.backlogs().slot(id)))
    }

    fn slots(&self, filter: &SlotFilter, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        let state = self.state();
        let page = state.page(filter, &paging)?;
        state.backlogs().merge(page, filter, &paging, |row| &row.id, |id, stretch| SlotRow { id, slot: stretch.slot() })
    }

    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError> {
        let state = self.state();
        let mut counts = state.counts(filter);
        state.backlogs().add_counts(filter, &mut counts);
        Ok(counts)
    }

    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        let state = self.state();
        let mut tallies = state.tallies(columns, workflow);
        state.backlogs().add_tallies(columns, workflow, &mut tallies);
        Ok(tallies)
    }

    fn steps(&self, run: &SlotRef, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        self.state().steps_of(run, &paging)
    }

    fn runs(&self, filter: &RunFilter, paging: PageRequest<'_>) -> Result<Page<Run>, StoreError> {
        let state = self.state();
        let passes = |run: &&Run| filter.passes(run);
        let Some(slot) = &filter.slot else {
            return page_of(state.runs.values().map(Box::as_ref).filter(passes), Span::WHOLE, &paging, |run| run.seq);
        };
        // They are read back from the last one to where they were removed, as other stores read them.
        let own = state.runs_of(slot);
        let rows = own.iter().filter_map(|seq| state.runs.get(seq)).map(Box::as_ref);
        page_of(rows.filter(passes), Span::WHOLE, &paging, |run| run.seq)
    }

    fn events(&self, filter: &EventFilter, paging: PageRequest<'_>) -> Result<Page<EventRecord>, StoreError> {
        let state = self.state();
        let rows = state.events_about(&filter.about)?;
        page_of(rows.into_iter(), Span::between(filter.after, filter.until), &paging, |record| record.seq)
    }

    fn turns(&self, paging: PageRequest<'_>) -> Result<Page<TurnRecord>, StoreError> {
        let mut state = self.state();
        state.digest()?;
        page_of(state.turns.iter(), Span::WHOLE, &paging, |turn| turn.turn)
    }

    fn turn_body(&self, turn: &TurnRecord, columns: &mut dyn TurnColumns) -> Result<TurnContent, StoreError> {
        let state = self.state();
        let inside = |record: &&EventRecord| (turn.first_event..=turn.last_event()).contains(&record.seq);
        let index = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX);
        let events = state.events.from(index(turn.first_event.saturating_sub(1))).take_while(inside);
        let missing = (turn.first_event..=turn.last_event()).find(|seq| state.event(*seq).is_err());
        let deletions = state.deletions.get(&turn.turn).filter(|_| turn.deletes()).cloned().unwrap_or_default();
        add_body(columns, events, &deletions).map_err(|error| corrupt(error.to_string()))?;
        Ok(TurnContent { missing, deletions })
    }

    fn removed_history(&self) -> Result<RemovedHistory, StoreError> {
        Ok(RemovedHistory { is_new: true, ..self.state().trimmed })
    }

    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError> {
        Ok(Arc::new(MemoryDisk {
            state: Arc::new(Mutex::new(self.state().clone())),
            copies: self.copies.clone(),
            ..MemoryDisk::default()
        }))
    }

    fn backfills(&self, filter: &BackfillFilter) -> Result<Vec<Backfill>, StoreError> {
        let mut backfills = self.state().backfills();
        backfills.retain(|one| filter.id.as_ref().is_none_or(|id| one.id == *id));
        backfills.retain(|one| filter.workflow.as_ref().is_none_or(|workflow| one.workflow == *workflow));
        Ok(backfills)
    }

    fn registers(&self, bucket: Option<&str>, keys: RegisterKeys<'_>) -> Result<Vec<Register>, StoreError> {
        let passes = |(its, key): &(String, String)| {
            bucket.is_none_or(|bucket| its == bucket)
                && match keys {
                    RegisterKeys::One(one) => key == one,
                    RegisterKeys::Prefix(prefix) => key.starts_with(prefix),
                }
        };
        let state = self.state();
        let registers = state.registers.iter().filter(|(name, _)| passes(name));
        let register = |((bucket, key), value): (&(String, String), &serde_json::Value)| Register {
            bucket: bucket.clone(),
            key: key.clone(),
            value: value.clone(),
        };
        Ok(registers.map(register).collect())
    }

    fn live_slots(&self) -> Result<Vec<SlotRow>, StoreError> {
        Ok(self.state().live_slots())
    }

    fn space(&self) -> Result<Option<Space>, StoreError> {
        Ok(None)
    }

    fn damage(&self, _: usize) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}
