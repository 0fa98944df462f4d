//! Runs of flows on the wire.

use kelos_explain::flow::{FlowView, ItemCounts, ItemView, StepView};
use kelos_model::{Slot, StepName};
use kelos_wire::{
    CriticalPathDto, FlowRunDto, FlowStepDto, Instant, ItemCountsDto, ItemDto, RunDto, SlotDto, SlotNameDto, counts,
};
use serde_json::{Map, Value};

use super::FromLibrary;

impl FromLibrary<FlowView> for FlowRunDto {
    fn from_library(view: FlowView) -> FlowRunDto {
        FlowRunDto {
            slot: SlotDto::new(&view.run, view.slot),
            definition_version: view.definition,
            repeats: view.repeats.as_ref().map(SlotNameDto::from),
            run: view.last_run.map(RunDto::from),
            recovered: names(&view.recovered),
            failed: names(&view.failed),
            signals: view.signals.into_iter().collect(),
            counts: view.counts.into_iter().map(|(state, steps)| (state.into(), steps)).collect(),
            steps: view.steps.rows.into_iter().map(FlowStepDto::from_library).collect(),
            next: view.steps.next,
            path: view.path.map(CriticalPathDto::from_library),
        }
    }
}

impl FromLibrary<StepView> for FlowStepDto {
    fn from_library(view: StepView) -> FlowStepDto {
        let slot = view.slot.as_ref();
        FlowStepDto {
            slot: (&view.id).into(),
            step: view.step.name.to_string(),
            state: view.state.as_str().into(),
            text: view.words,
            opened: slot.and_then(|slot| slot.asked_at).map(Instant),
            ended: slot.filter(|slot| slot.state.is_final()).map(|slot| Instant(slot.since)),
            attempts: slot.map_or(0, |slot| slot.last_run),
            needs: names(&view.step.needs),
            handles: names(&view.step.handles),
            signal: view.step.signal.map(|signal| signal.name),
            inputs: slot.map(inputs).unwrap_or_default(),
            run: view.last_run.map(RunDto::from),
            items: view.items.map(ItemCountsDto::from_library),
        }
    }
}

impl FromLibrary<ItemCounts> for ItemCountsDto {
    fn from_library(items: ItemCounts) -> ItemCountsDto {
        ItemCountsDto { total: items.total, counts: counts(items.counts), partial: items.is_partial }
    }
}

impl FromLibrary<ItemView> for ItemDto {
    fn from_library(view: ItemView) -> ItemDto {
        ItemDto {
            item: view.number,
            inputs: inputs(&view.slot),
            run: view.last_run.map(RunDto::from),
            slot: SlotDto::new(&view.id, view.slot),
        }
    }
}

/// The inputs of a step.
fn inputs(slot: &Slot) -> Map<String, Value> {
    slot.step_of_run().map(|step| step.inputs.clone()).unwrap_or_default()
}

fn names(steps: &[StepName]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}
