//! The slots that wait for a slot now. The definitions name those that may, and the account of each says whether it does.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::paths::PathGraph;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Slot, SlotRef, SlotState, Trigger, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};

use super::{MOST_EXAMINED, MOST_READ};
use crate::graph;
use crate::jobs::{self, Jobs};
use crate::paths;

/// The most slots of a workflow that are tried because no definition tells which slots they wait for.
const MOST_TRIED: usize = 500;

/// The dependents of workflows, as far as they were read.
pub(super) struct Dependents<'a> {
    reader: &'a dyn Queries,
    now: Timestamp,
    rows: BTreeMap<&'a WorkflowId, &'a WorkflowRow>,
    jobs: Jobs,
    paths: PathGraph,
    /// For each workflow those whose triggers look at its slots, and how many seconds later.
    by_time: BTreeMap<&'a WorkflowId, BTreeSet<(&'a WorkflowId, i64)>>,
    /// For each workflow those that look at its slots by names that can't be told from here.
    by_name: BTreeMap<&'a WorkflowId, BTreeSet<&'a WorkflowId>>,
    /// The slots of a workflow that are tried for all others.
    tried: BTreeMap<WorkflowId, Vec<SlotRef>>,
    waiters: BTreeMap<SlotRef, Option<Waiter>>,
    /// How many slots in each state were examined.
    examined: BTreeMap<SlotState, usize>,
    /// Whether something was left out.
    pub(super) is_partial: bool,
}

/// A slot that waits, or expired, and the slots that it waits for.
struct Waiter {
    state: SlotState,
    waits_for: BTreeSet<SlotRef>,
}

impl<'a> Dependents<'a> {
    pub(super) fn new(reader: &'a dyn Queries, workflows: &'a [WorkflowRow], now: Timestamp) -> Dependents<'a> {
        let mut dependents = Dependents {
            reader,
            now,
            rows: workflows.iter().filter(|row| row.present).map(|row| (&row.id, row)).collect(),
            jobs: Jobs::of(workflows),
            paths: paths::graph(workflows),
            by_time: BTreeMap::new(),
            by_name: BTreeMap::new(),
            tried: BTreeMap::new(),
            waiters: BTreeMap::new(),
            examined: BTreeMap::new(),
            is_partial: false,
        };
        for row in workflows.iter().filter(|row| row.present) {
            dependents.add(row);
        }
        dependents
    }

    fn add(&mut self, row: &'a WorkflowRow) {
        let definition = &row.definition;
        // The slots of other workflows are named by something else than the times at which they look.
        let is_timed = definition.keys.schedule().is_some();
        for (on, later) in definition.trigger.looks_at() {
            match is_timed {
                true => drop(self.by_time.entry(on).or_default().insert((&row.id, later))),
                false => drop(self.by_name.entry(on).or_default().insert(&row.id)),
            }
        }
        // Which slots they are depends on both schedules: those that wait are asked what they wait for.
        for covered in definition.trigger.covered() {
            self.by_name.entry(covered.workflow).or_default().insert(&row.id);
        }
        for on in definition.trigger.upstream_jobs() {
            self.by_name.entry(on).or_default().insert(&row.id);
        }
    }

    /// The slots that wait for a slot, each with its state.
    pub(super) fn waiting_for(&mut self, slot: &SlotRef) -> Result<Vec<(SlotRef, SlotState)>, StoreError> {
        let mut found = Vec::new();
        for candidate in self.candidates(slot)? {
            if let Some(waiter) = self.waiter(&candidate)?
                && waiter.waits_for.contains(slot)
            {
                found.push((candidate, waiter.state));
            }
        }
        Ok(found)
    }

    /// The slots that may wait for a slot by their definitions, whether they exist or not.
    fn candidates(&mut self, slot: &SlotRef) -> Result<BTreeSet<SlotRef>, StoreError> {
        let key = |later: &i64| slot.key.offset(later.checked_neg()?);
        let by_time = self.by_time.get(&slot.workflow).into_iter().flatten();
        let by_time = by_time.filter_map(|(id, later)| Some(SlotRef::new((*id).clone(), key(later)?)));
        let mut candidates: BTreeSet<SlotRef> = by_time.chain(self.jobs.children_of(slot)).collect();
        candidates.extend(self.paths.readers(slot));
        let by_name = self.by_name.get(&slot.workflow).into_iter().flatten().map(|id| (*id).clone());
        let mut by_name: BTreeSet<WorkflowId> = by_name.collect();
        if let Some(job) = slot.key.job() {
            // Functions know them, which are not asked for this.
            by_name.extend(self.jobs.graph.asks_children(&slot.workflow, job).into_iter().map(|asked| asked.child));
        }
        for id in by_name {
            candidates.extend(self.tried(id)?.iter().cloned());
        }
        Ok(candidates)
    }

    /// The slots of a workflow that wait, or expired.
    fn tried(&mut self, id: WorkflowId) -> Result<&[SlotRef], StoreError> {
        match self.tried.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut().as_slice()),
            Entry::Vacant(unknown) => {
                let states = vec![SlotState::Waiting, SlotState::Expired];
                let filter = SlotFilter { workflow: Some(unknown.key().clone()), states, ..SlotFilter::default() };
                let page = self.reader.slot_states(&filter, PageRequest::newest(MOST_TRIED))?;
                self.is_partial |= page.next.is_some();
                Ok(unknown.insert(page.rows.into_iter().map(|(slot, _)| slot).collect()).as_slice())
            }
        }
    }

    /// A slot as one that waits; none if it doesn't.
    fn waiter(&mut self, slot: &SlotRef) -> Result<Option<&Waiter>, StoreError> {
        if !self.waiters.contains_key(slot) {
            let waiter = self.examine(slot)?;
            self.waiters.insert(slot.clone(), waiter);
        }
        Ok(self.waiters.get(slot).and_then(Option::as_ref))
    }

    fn examine(&mut self, slot: &SlotRef) -> Result<Option<Waiter>, StoreError> {
        let (Some(row), Some(Slot { state, .. })) = (self.rows.get(&slot.workflow), self.reader.slot(slot)?) else {
            return Ok(None);
        };
        let most = match state {
            SlotState::Waiting => MOST_EXAMINED,
            SlotState::Expired => MOST_READ,
            _ => return Ok(None),
        };
        let examined = self.examined.entry(state).or_default();
        if *examined >= most {
            self.is_partial = true;
            return Ok(None);
        }
        *examined += 1;
        let only_parents = row.definition.trigger == Trigger::Always && self.jobs.knows_parents(slot);
        let waits_for = match slot.key.job() {
            Some(_) if only_parents => self.missing_parents(slot)?,
            _ => graph::waits_for(self.reader, slot, self.now)?.into_iter().collect(),
        };
        Ok(Some(Waiter { state, waits_for }))
    }

    /// The parents of a job that have not succeeded; none if all of one group have.
    fn missing_parents(&self, job: &SlotRef) -> Result<BTreeSet<SlotRef>, StoreError> {
        let groups = jobs::parents(&self.jobs, self.reader, job)?;
        if groups.iter().any(|group| group.succeeded() == group.total()) {
            return Ok(BTreeSet::new());
        }
        let parents = groups.into_iter().flat_map(|group| group.jobs);
        Ok(parents.filter(|one| one.state != Some(SlotState::Succeeded)).map(|one| one.job).collect())
    }
}
