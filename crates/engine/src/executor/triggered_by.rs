//! The facts that triggered a run, in the format that runs of CDAP get.

use kelos_model::arguments::text;
use kelos_model::time::Firing;
use kelos_model::trigger::{FactLeaf, Leaf};
use kelos_model::{Arguments, Collection, Occurrence, SlotState, Subject, Workflow};
use serde_json::{Map, Value, json};

/// By this name templates know it.
pub(super) const TRIGGERING_SCHEDULE_INFO: &str = "triggeringScheduleInfo";

/// The event schedule, and for each leaf of its trigger that is about facts what came; none for other workflows.
pub(super) fn triggered_by(workflow: &Workflow, collected: &Collection) -> Option<Value> {
    let events = workflow.keys.events()?;
    let mut infos = Vec::new();
    workflow.trigger.visit_leaves(&mut |leaf| {
        if let Leaf::Facts(awaited) = leaf {
            infos.extend(info(&awaited, collected).filter(|info| !infos.contains(info)));
        }
    });
    Some(json!({
        "name": events.name,
        "description": workflow.about.description,
        "properties": events.properties,
        "triggerInfos": infos,
    }))
}

/// The facts of a leaf; none if there are none, except for partitions, which are counted.
fn info(awaited: &FactLeaf<'_>, collected: &Collection) -> Option<Value> {
    if let [Subject::Partitions(dataset)] = awaited.subjects.as_slice() {
        let actual = collected.of(&Subject::Partitions(dataset.clone())).map_or(0, |tally| tally.count);
        return Some(json!({
            "type": "PARTITION", "dataset": dataset, "expectedNumPartitions": awaited.count,
            "actualNumPartitions": actual,
        }));
    }
    let first = |subject| collected.of(subject).and_then(|tally| tally.first.as_deref());
    Some(match awaited.subjects.iter().find_map(first)? {
        Occurrence::Partitions { .. } => return None,
        Occurrence::Fired { time, .. } => json!({
            "type": "TIME", "cronExpression": awaited.firing.map(Firing::text), "logicalStartTime": time.as_millisecond(),
        }),
        Occurrence::Signal { name, payload, .. } => json!({ "type": "SIGNAL", "signal": name, "payload": payload }),
        Occurrence::Ended { program, state, run, arguments, outputs } => json!({
            "type": "PROGRAM_STATUS", "program": program, "programStatus": status(*state), "runId": run,
            "runtimeArguments": texts(arguments), "outputs": outputs,
        }),
    })
}

/// Arguments as CDAP has them, which knows texts alone.
fn texts(arguments: &Arguments) -> Map<String, Value> {
    arguments.iter().map(|(name, value)| (name.clone(), text(value).into())).collect()
}

fn status(state: SlotState) -> &'static str {
    match state {
        SlotState::Succeeded => "COMPLETED",
        SlotState::Failed => "FAILED",
        _ => "KILLED",
    }
}
