//! Steps of flows that are done again as runs of their own, and requests about these runs. All of it is generated separately, and for
//! later seeds than those that have flows: those before them mean what they did.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Ask, Kill, MarkSuccess, RepeatStep, Rerun, ResumeFlow, Skip};
use kelos_model::{Arguments, RunName, SlotKey, SlotRef, StepKey, StepName, Workflow, WorkflowId};
use serde_json::json;

use super::flows::{STEPS, name};
use super::{Workload, moment, nth};
use crate::rng::Rng;

/// The seeds from here on have them.
const FIRST: u64 = 1_000_000;

/// Gives a seed with flows requests to do steps again.
pub(super) fn add(seed: u64, workload: &mut Workload) {
    if seed < FIRST {
        return;
    }
    let mut rng = Rng::new(seed ^ 0xA6A1);
    let all = workload.definitions.iter().flat_map(|(_, all)| all);
    let flows: Vec<Arc<Workflow>> = all.filter(|one| one.flow.is_some()).cloned().collect();
    if flows.is_empty() {
        return;
    }
    for _ in 0..rng.between(20, 120) {
        let at = moment(&mut rng, workload.start, workload.end);
        let flow = rng.pick(&flows).clone();
        let Some(request) = repeat(&mut rng, &flow) else { continue };
        let flow = flow.id.clone();
        if rng.percent(20) {
            // The same name is the same run.
            workload.asks.push((at, request.clone()));
        }
        workload.asks.push((at, request));
        if rng.percent(30) {
            let later = soon(&mut rng, at, workload.end);
            workload.asks.push((later, about_a_repeat(&mut rng, flow)));
        }
    }
    workload.asks.sort_by_key(|(at, _)| *at);
}

fn soon(rng: &mut Rng, at: Timestamp, end: Timestamp) -> Timestamp {
    moment(rng, at, end.min(at + jiff::SignedDuration::from_hours(4)).max(at + jiff::SignedDuration::from_secs(1)))
}

/// The name of a run that does a step again.
fn new_name(rng: &mut Rng) -> RunName {
    let text = format!("again-{}", rng.below(12));
    RunName::new(&text).unwrap_or_else(|_| unreachable!("a plain name"))
}

/// A step or an item of a run: of one that has a name, of one that did a step again itself, or of any other.
fn repeat(rng: &mut Rng, flow: &Workflow) -> Option<Ask> {
    let run = match rng.below(10) {
        0..=4 => SlotRef::new(flow.id.clone(), SlotKey::Named(name(rng))),
        5 | 6 => SlotRef::new(flow.id.clone(), SlotKey::Named(new_name(rng))),
        _ => nth(flow.id.clone(), rng.between(0, 200)),
    };
    let one = rng.pick(&flow.flow.as_ref()?.steps);
    let step = StepKey::new(&run.key, &one.name)?;
    let is_item = one.for_each.is_some() && rng.percent(50);
    let step = if is_item { step.item(u32::try_from(rng.below(3)).unwrap_or(0)) } else { step };
    let values = [("rows", json!("7")), ("items", json!([3])), ("item", json!("x")), ("x.y", json!(null))];
    let arguments =
        values.into_iter().filter(|_| rng.percent(15)).map(|(name, value)| (name.to_owned(), value)).collect();
    Some(Ask::RepeatStep(RepeatStep {
        step: SlotRef::new(run.workflow, SlotKey::Step(step)),
        arguments,
        key: rng.percent(75).then(|| new_name(rng)),
        priority: i32::try_from(rng.between(-1, 1)).unwrap_or(0),
        unconstrained: rng.percent(20),
        reason: None,
    }))
}

fn about_a_repeat(rng: &mut Rng, flow: WorkflowId) -> Ask {
    let (slot, reason) = (SlotRef::new(flow, SlotKey::Named(new_name(rng))), None);
    let arguments = if rng.percent(30) { [("rows".to_owned(), json!(2))].into() } else { Arguments::new() };
    match rng.below(10) {
        0..=3 => Ask::Rerun(Rerun { slot, arguments, reason }),
        4 | 5 => {
            let from = rng.percent(40).then(|| StepName::new(rng.pick::<&str>(&STEPS)).ok()).flatten();
            Ask::ResumeFlow(ResumeFlow { run: slot, from, reason })
        }
        6 => Ask::Kill(Kill { slot, reason }),
        7 => Ask::Skip(Skip { slot, reason }),
        8 => Ask::MarkSuccess(MarkSuccess { slot, reason }),
        _ => {
            let step = StepName::new(rng.pick::<&str>(&STEPS)).ok().and_then(|step| StepKey::new(&slot.key, &step));
            let key = step.map_or_else(|| slot.key.clone(), SlotKey::Step);
            Ask::Kill(Kill { slot: SlotRef::new(slot.workflow, key), reason })
        }
    }
}
