//! Unrepaired failures: the one answer to what has failed, for every page, the API and the command line.
//!
//! A slot of a defined workflow is an unrepaired failure while it is failed or expired, however old it is and whatever
//! ran since. A rerun, a mark and a skip change its state, so nothing has to be stored for this. A slot that waits for a
//! failure, at any distance, or that expired while it did, is a *follower*: it is listed with the failure, and is none
//! itself. Slots that a person killed or skipped are no failures.
//!
//! The cost follows the failures and their followers; without failures it is that of a read that finds nothing.

mod dependents;
mod outage;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoreError};

use crate::{account, flow};
use dependents::Dependents;
pub use outage::{Outage, held_by};

/// The most slots of each of the two states that count: those with the newest times.
pub const MOST_READ: usize = 1_000;
/// The most waiting slots that are examined for what they wait for.
pub const MOST_EXAMINED: usize = 500;
/// Rows of failed slots that are read for each that counts: the others are of workflows that are no longer defined.
const READ_FOR_EACH: usize = 10;

/// All unrepaired failures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures {
    /// The latest failure first.
    pub rows: Vec<Failure>,
    /// Whether there are more failures or followers than were read.
    pub is_partial: bool,
}

/// A slot that failed or expired, and was not repaired since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The slot.
    pub slot: SlotRef,
    /// Failed or expired.
    pub state: SlotState,
    /// Since when.
    pub since: Timestamp,
    /// The number of its last run; 0 if it never ran.
    pub last_run: u32,
    /// The slots that wait for it, the nearest first. One that waits for several failures follows the nearest.
    pub followers: Vec<Follower>,
}

/// A slot that waits for a failure, or expired while it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// The slot.
    pub slot: SlotRef,
    /// Its state.
    pub state: SlotState,
    /// The slot that it waits for: the failure, or another follower.
    pub waits_for: SlotRef,
}

/// The reasons for a failure, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureAccount {
    /// The outcome of its last run; none if it never ran.
    pub outcome: Option<String>,
    /// The reason for its state, in one sentence.
    pub reason: String,
    /// The step, or the item of one, by which a run of a flow failed: its output has the cause.
    pub step: Option<SlotRef>,
}

impl Failures {
    /// The number of failures of each workflow.
    #[must_use]
    pub fn by_workflow(&self) -> BTreeMap<&WorkflowId, usize> {
        let mut counts = BTreeMap::new();
        self.rows.iter().for_each(|row| *counts.entry(&row.slot.workflow).or_default() += 1);
        counts
    }

    /// All followers, of whatever failure.
    pub fn followers(&self) -> impl Iterator<Item = &Follower> {
        self.rows.iter().flat_map(|row| &row.followers)
    }
}

impl Failure {
    /// Reads the reasons for it.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn account(&self, reader: &dyn Queries, now: Timestamp) -> Result<FailureAccount, StoreError> {
        let why = account::read(reader, &self.slot, now, true, None)?;
        let outcome = why.runs.last().and_then(|run| run.outcome.as_ref()).map(ToString::to_string);
        Ok(FailureAccount { outcome, reason: why.headline, step: flow::failed_step(reader, &self.slot)? })
    }
}

/// Finds all unrepaired failures, with their followers. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn find(reader: &dyn Queries, now: Timestamp) -> Result<Failures, StoreError> {
    let any = SlotFilter { states: vec![SlotState::Failed, SlotState::Expired], ..SlotFilter::default() };
    let first = reader.slot_states(&any, PageRequest::newest(1))?;
    if first.rows.is_empty() && first.next.is_none() {
        return Ok(Failures::default());
    }
    let workflows = reader.workflows(None)?;
    let (rows, mut is_partial) = unrepaired(reader, &workflows)?;
    let mut dependents = Dependents::new(reader, &workflows, now);
    let edges = edges(rows.iter().map(|row| &row.id), &mut dependents)?;
    is_partial |= dependents.is_partial;
    let mut rows = fold(rows, &edges);
    rows.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.slot.cmp(&b.slot)));
    Ok(Failures { rows, is_partial })
}

/// The failed and expired slots of defined workflows, failed ones first; and whether there are more.
fn unrepaired(reader: &dyn Queries, workflows: &[WorkflowRow]) -> Result<(Vec<SlotRow>, bool), StoreError> {
    let defined: BTreeSet<&WorkflowId> = workflows.iter().filter(|row| row.present).map(|row| &row.id).collect();
    let (mut found, mut is_partial) = (Vec::new(), false);
    for state in [SlotState::Failed, SlotState::Expired] {
        let filter = SlotFilter { states: vec![state], ..SlotFilter::default() };
        let (mut rows, mut from) = (Vec::new(), None);
        for _ in 0..READ_FOR_EACH {
            let page = reader.slots(&filter, PageRequest::newest(MOST_READ).after(from.as_deref()))?;
            rows.extend(page.rows.into_iter().filter(|row| defined.contains(&row.id.workflow)));
            from = page.next;
            if from.is_none() || rows.len() >= MOST_READ {
                break;
            }
        }
        is_partial |= from.is_some() || rows.len() > MOST_READ;
        rows.truncate(MOST_READ);
        found.append(&mut rows);
    }
    Ok((found, is_partial))
}

/// For each slot those that wait for it.
type Edges = BTreeMap<SlotRef, Vec<(SlotRef, SlotState)>>;

/// The slots that wait for these, at any distance.
fn edges<'a>(slots: impl Iterator<Item = &'a SlotRef>, dependents: &mut Dependents<'_>) -> Result<Edges, StoreError> {
    let mut edges = Edges::new();
    let mut queue: VecDeque<SlotRef> = slots.cloned().collect();
    let mut seen: BTreeSet<SlotRef> = queue.iter().cloned().collect();
    while let Some(slot) = queue.pop_front() {
        let waiting = dependents.waiting_for(&slot)?;
        queue.extend(waiting.iter().map(|(waiter, _)| waiter).filter(|waiter| seen.insert((*waiter).clone())).cloned());
        edges.insert(slot, waiting);
    }
    Ok(edges)
}

/// Folds slots that wait for others under these: what is left are the failures.
fn fold(rows: Vec<SlotRow>, edges: &Edges) -> Vec<Failure> {
    let waiting: BTreeSet<&SlotRef> = edges.values().flatten().map(|(waiter, _)| waiter).collect();
    let (followers, roots): (Vec<SlotRow>, Vec<SlotRow>) = rows.into_iter().partition(|row| waiting.contains(&row.id));
    let mut builder = FailureBuilder { edges, folded: BTreeSet::new(), failures: Vec::new() };
    builder.add(roots);
    // Expired slots that wait for each other in a circle have no root: one of them stands for it.
    for row in builder.circles_first(followers) {
        if !builder.folded.contains(&row.id) {
            builder.add(vec![row]);
        }
    }
    builder.failures
}

/// The failures, as far as they are known.
struct FailureBuilder<'a> {
    edges: &'a Edges,
    /// Slots that are a failure or a follower of one.
    folded: BTreeSet<SlotRef>,
    failures: Vec<Failure>,
}

impl FailureBuilder<'_> {
    /// The rows that are not folded, such that a circle comes before what waits for it: the reverse of the order in which a
    /// search downstream leaves them.
    fn circles_first(&self, rows: Vec<SlotRow>) -> Vec<SlotRow> {
        let (mut seen, mut left) = (self.folded.clone(), Vec::new());
        for row in &rows {
            let mut stack = vec![(row.id.clone(), false)];
            while let Some((slot, is_done)) = stack.pop() {
                if is_done {
                    left.push(slot);
                } else if seen.insert(slot.clone()) {
                    let waiting = self.edges.get(&slot).into_iter().flatten();
                    stack.push((slot.clone(), true));
                    stack.extend(waiting.map(|(waiter, _)| (waiter.clone(), false)));
                }
            }
        }
        let mut rows: BTreeMap<SlotRef, SlotRow> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        left.into_iter().rev().filter_map(|slot| rows.remove(&slot)).collect()
    }

    /// Adds failures, with all that follows them, level by level.
    fn add(&mut self, rows: Vec<SlotRow>) {
        let mut queue = VecDeque::new();
        for SlotRow { id, slot } in rows {
            queue.push_back((self.failures.len(), id.clone()));
            self.folded.insert(id.clone());
            let (state, since, last_run) = (slot.state, slot.since, slot.last_run);
            self.failures.push(Failure { slot: id, state, since, last_run, followers: Vec::new() });
        }
        while let Some((number, waits_for)) = queue.pop_front() {
            for (slot, state) in self.edges.get(&waits_for).into_iter().flatten() {
                if self.folded.insert(slot.clone()) {
                    queue.push_back((number, slot.clone()));
                    if let Some(failure) = self.failures.get_mut(number) {
                        let (slot, waits_for) = (slot.clone(), waits_for.clone());
                        failure.followers.push(Follower { slot, state: *state, waits_for });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
