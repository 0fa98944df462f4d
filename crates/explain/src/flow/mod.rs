//! Runs of flows: how far each step is, what it was given and gave, and what the others wait for.
//!
//! Read from the store, as all explanations are. The steps come by pages in the order of the flow, and the items of a list have pages of
//! their own, so that no answer grows with them. What a step that was never opened waits for, and whether it can still run, follows from
//! the states of the others: see [`FlowRun`].

#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::flow::{FlowEnd, formatted_key};
use kelos_model::{Run, Slot, SlotKey, SlotRef, SlotState, Step, StepName};
use kelos_store::{Page, PageRequest, Queries, RunFilter, StoreError};
use serde_json::Value;

use crate::critical_path::{self, CriticalPath};
use crate::flow_run::FlowRun;
pub use crate::flow_run::{Never, StepState, Wait};

/// Items of lists that are counted by their states, for all steps of a page. Of what is beyond only the number is told.
pub const MOST_COUNTED: u64 = 10_000;
/// Items among which one that failed is looked for.
const MOST_SEARCHED: usize = 1_000;

/// A run of a flow: the slot of a workflow whose job is a flow.
#[derive(Debug, Clone)]
pub struct FlowView {
    /// The slot.
    pub run: SlotRef,
    /// Its slot.
    pub slot: Slot,
    /// Its latest run; none before the first.
    pub last_run: Option<Run>,
    /// The definition that it follows, or would follow if it began now.
    pub definition: u32,
    /// The step of another run that it does again, and nothing else; none where it is an ordinary run.
    pub repeats: Option<SlotRef>,
    /// The steps that failed and were handled, if it succeeded nevertheless.
    pub recovered: Vec<StepName>,
    /// The steps that failed, if nothing handled it.
    pub failed: Vec<StepName>,
    /// The signals that came, by name, with what each said last.
    pub signals: BTreeMap<String, Value>,
    /// The number of steps in each state, without the items of lists.
    pub counts: BTreeMap<&'static str, u64>,
    /// A page of its steps, in the order of the flow.
    pub steps: Page<StepView>,
    /// The steps that determined when it ended, or the one that keeps it from ending.
    pub path: Option<CriticalPath>,
}

/// A step of a run.
#[derive(Debug, Clone)]
pub struct StepView {
    /// The step as it is defined.
    pub step: Step,
    /// Its slot.
    pub id: SlotRef,
    /// The slot as it stands; none where the run has not opened it.
    pub slot: Option<Slot>,
    /// Its state.
    pub state: StepState,
    /// The same in a sentence, with what it waits for.
    pub words: String,
    /// The latest of its runs; none where it has none.
    pub last_run: Option<Run>,
    /// Its items, if it is done for each item of a list and the list is known.
    pub items: Option<ItemCounts>,
}

/// A step of a run with those beside it.
#[derive(Debug, Clone)]
pub struct StepInRun {
    /// The slot of the run.
    pub run: SlotRef,
    /// The state of the run; none where it does not exist.
    pub run_state: Option<SlotState>,
    /// The definition that the run follows, or would follow if it began now.
    pub definition: u32,
    /// The step.
    pub view: StepView,
    /// The steps that must have succeeded before it starts.
    pub needs: Vec<Beside>,
    /// The steps that need it.
    pub feeds: Vec<Beside>,
    /// The steps of which it handles the failure.
    pub handles: Vec<Beside>,
    /// The steps that handle its failure.
    pub handlers: Vec<Beside>,
}

/// A step beside another.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Its name.
    pub name: StepName,
    /// Its slot.
    pub id: SlotRef,
    /// Its state.
    pub state: StepState,
}

/// The items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCounts {
    /// The number of items.
    pub total: u64,
    /// The number of items in each state.
    pub counts: BTreeMap<SlotState, u64>,
    /// Whether there are more than were counted.
    pub is_partial: bool,
}

/// An item of a list.
#[derive(Debug, Clone)]
pub struct ItemView {
    /// Its number, from 0.
    pub number: u32,
    /// Its slot.
    pub id: SlotRef,
    /// The slot as it stands.
    pub slot: Slot,
    /// The latest of its runs; none where it has none.
    pub last_run: Option<Run>,
}

/// Reads a run of a flow with a page of its steps: at most so many, after the step that a cursor names. None where the workflow has no
/// flow, or the slot does not exist.
///
/// # Errors
/// When the store can't be read, or the cursor is no step.
pub fn read(
    reader: &dyn Queries,
    run: &SlotRef,
    now: Timestamp,
    (from, limit): (Option<&str>, usize),
) -> Result<Option<FlowView>, StoreError> {
    let Some(flow) = FlowRun::read(reader, run, None)? else { return Ok(None) };
    let Some(slot) = flow.slot().cloned() else { return Ok(None) };
    let mut counts = BTreeMap::new();
    for at in 0..flow.graph().len() {
        *counts.entry(flow.state(at).as_str()).or_default() += 1;
    }
    let end = slot.state.is_final().then(|| flow.end());
    let (recovered, failed) = match end {
        Some(FlowEnd::Recovered { failed }) if slot.state == SlotState::Succeeded => (failed, Vec::new()),
        Some(FlowEnd::Recovered { failed } | FlowEnd::Failed { failed }) => (Vec::new(), failed),
        _ => (Vec::new(), Vec::new()),
    };
    Ok(Some(FlowView {
        run: run.clone(),
        last_run: last_run(reader, run)?,
        definition: flow.definition(),
        repeats: flow.repeated(),
        recovered,
        failed,
        signals: slot.run_of_flow().map(|part| part.signals.clone()).unwrap_or_default(),
        counts,
        steps: steps(reader, &flow, from, limit)?,
        path: critical_path::read(reader, run, now)?,
        slot,
    }))
}

/// A page of steps.
fn steps(reader: &dyn Queries, flow: &FlowRun, from: Option<&str>, limit: usize) -> Result<Page<StepView>, StoreError> {
    let unknown = |cursor: &str| StoreError::Cursor { cursor: cursor.to_owned() };
    let first = match from {
        None => 0,
        Some(cursor) => flow.graph().position(cursor).ok_or_else(|| unknown(cursor))? + 1,
    };
    let end = first.saturating_add(limit.max(1)).min(flow.graph().len());
    let (mut rows, mut left) = (Vec::new(), MOST_COUNTED);
    for at in first..end {
        rows.extend(view(reader, flow, at, &mut left)?);
    }
    let more = end < flow.graph().len();
    let next = rows.last().filter(|_| more).map(|row| row.step.name.to_string());
    Ok(Page { rows, next })
}

/// A step of a run, of whose items some are left to be counted.
fn view(reader: &dyn Queries, flow: &FlowRun, at: usize, left: &mut u64) -> Result<Option<StepView>, StoreError> {
    let Some((step, id)) = flow.graph().step(at).zip(flow.step(at)) else { return Ok(None) };
    let slot = flow.slot_of(at).cloned();
    let items = match &slot {
        Some(slot) => counted(reader, step, &id, slot, left)?,
        None => None,
    };
    let last_run = if slot.is_some() { last_run(reader, &id)? } else { None };
    let (state, words) = (flow.state(at), words::step(flow, at, items.as_ref(), last_run.as_ref()));
    Ok(Some(StepView { step: step.clone(), id, slot, state, words, last_run, items }))
}

/// The step by which a run of a flow failed, or the failed item of its list: the first of them in the order of the flow. None where the slot is
/// no run of a flow, or is a live one, or none of its steps failed.
///
/// # Errors
/// When the store can't be read.
pub fn failed_step(reader: &dyn Queries, run: &SlotRef) -> Result<Option<SlotRef>, StoreError> {
    let Some(flow) = FlowRun::read(reader, run, None)?.filter(FlowRun::is_over) else { return Ok(None) };
    let (FlowEnd::Failed { failed } | FlowEnd::Recovered { failed }) = flow.end() else { return Ok(None) };
    let at = failed.first().and_then(|name| flow.graph().position(name.as_str()));
    let Some((at, id)) = at.and_then(|at| Some((at, flow.step(at)?))) else { return Ok(None) };
    let list = flow.graph().step(at).zip(flow.slot_of(at));
    let items = list.and_then(|(step, slot)| list_of(step, slot)).unwrap_or_default();
    for item in (0..items).take(MOST_SEARCHED).filter_map(|number| item_of(&id, number)) {
        if reader.slot(&item)?.is_some_and(|slot| slot.state == SlotState::Failed) {
            return Ok(Some(item));
        }
    }
    Ok(Some(id))
}

/// Reads how far the steps of a run are, at most so many, in the order of the flow; none where the workflow has no flow.
///
/// # Errors
/// When the store can't be read.
pub fn states(reader: &dyn Queries, run: &SlotRef, limit: usize) -> Result<Option<Vec<Beside>>, StoreError> {
    let flow = FlowRun::read(reader, run, None)?;
    Ok(flow.map(|flow| (0..flow.graph().len()).take(limit).filter_map(|at| beside(&flow, at)).collect()))
}

fn beside(flow: &FlowRun, at: usize) -> Option<Beside> {
    Some(Beside { name: flow.graph().step(at)?.name.clone(), id: flow.step(at)?, state: flow.state(at) })
}

/// Reads a step of a run with those beside it; of an item of a list its step. None where the slot is no step, or its flow has no such step.
///
/// # Errors
/// When the store can't be read.
pub fn step(reader: &dyn Queries, slot: &SlotRef) -> Result<Option<StepInRun>, StoreError> {
    let Some(key) = slot.key.step() else { return Ok(None) };
    let run = SlotRef::new(slot.workflow.clone(), key.run());
    let Some(flow) = FlowRun::read(reader, &run, None)? else { return Ok(None) };
    let Some(at) = flow.position(key) else { return Ok(None) };
    let Some(view) = view(reader, &flow, at, &mut MOST_COUNTED.clone())? else { return Ok(None) };
    let graph = flow.graph();
    let all = |steps: &[usize]| -> Vec<Beside> { steps.iter().filter_map(|at| beside(&flow, *at)).collect() };
    Ok(Some(StepInRun {
        definition: flow.definition(),
        run_state: flow.slot().map(|slot| slot.state),
        needs: all(graph.needs(at)),
        feeds: all(graph.feeds(at)),
        handles: all(graph.handles(at)),
        handlers: all(graph.handlers(at)),
        view,
        run,
    }))
}

/// The items of a list that a step is given; none where it is given none.
fn list_of(step: &Step, slot: &Slot) -> Option<u32> {
    let list = step.for_each.as_ref()?;
    let items = slot.step_of_run()?.inputs.get(&formatted_key(&list.input))?.as_array()?;
    u32::try_from(items.len()).ok()
}

/// Counts the items of a step, as long as some are left to be counted.
fn counted(
    reader: &dyn Queries,
    step: &Step,
    id: &SlotRef,
    slot: &Slot,
    left: &mut u64,
) -> Result<Option<ItemCounts>, StoreError> {
    let Some(total) = list_of(step, slot) else { return Ok(None) };
    let most = u64::from(total).min(*left);
    *left -= most;
    let mut counts = BTreeMap::new();
    for number in (0..total).take(usize::try_from(most).unwrap_or(usize::MAX)) {
        let item = item_of(id, number).map(|item| reader.slot(&item)).transpose()?.flatten();
        if let Some(item) = item {
            *counts.entry(item.state).or_default() += 1;
        }
    }
    Ok(Some(ItemCounts { total: u64::from(total), counts, is_partial: most < u64::from(total) }))
}

fn item_of(step: &SlotRef, number: u32) -> Option<SlotRef> {
    let key = step.key.step()?.item(number);
    Some(SlotRef::new(step.workflow.clone(), SlotKey::Step(key)))
}

/// The latest run of a slot.
fn last_run(reader: &dyn Queries, slot: &SlotRef) -> Result<Option<Run>, StoreError> {
    let filter = RunFilter { slot: Some(slot.clone()), ..RunFilter::default() };
    Ok(reader.runs(&filter, PageRequest::newest(1))?.rows.pop())
}

/// Reads the items of a step's list by their numbers: at most so many, after the one that a cursor names. None where the slot is no step
/// that is done for each item of a list.
///
/// # Errors
/// When the store can't be read, or the cursor is no number.
pub fn items(
    reader: &dyn Queries,
    step: &SlotRef,
    (from, limit): (Option<&str>, usize),
) -> Result<Option<Page<ItemView>>, StoreError> {
    let Some(key) = step.key.step().filter(|key| key.item_number().is_none()) else { return Ok(None) };
    let run = SlotRef::new(step.workflow.clone(), key.run());
    let Some(flow) = FlowRun::read(reader, &run, None)? else { return Ok(None) };
    let definition = flow.graph().flow().step(key.step()).filter(|step| step.for_each.is_some());
    let Some(definition) = definition else { return Ok(None) };
    let unknown = |cursor: &str| StoreError::Cursor { cursor: cursor.to_owned() };
    let first = match from {
        None => 0,
        Some(cursor) => cursor.parse::<u32>().map_err(|_| unknown(cursor))?.saturating_add(1),
    };
    let total = reader.slot(step)?.and_then(|slot| list_of(definition, &slot)).unwrap_or_default();
    let end = first.saturating_add(u32::try_from(limit.max(1)).unwrap_or(u32::MAX)).min(total);
    let mut rows = Vec::new();
    for number in first..end {
        let Some(id) = item_of(step, number) else { continue };
        if let Some(slot) = reader.slot(&id)? {
            rows.push(ItemView { number, last_run: last_run(reader, &id)?, id, slot });
        }
    }
    let next = (end < total).then(|| (end - 1).to_string());
    Ok(Some(Page { rows, next }))
}
