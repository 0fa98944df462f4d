//! What triggered a run, in the words that runs of CDAP are told it.

use kelos_model::{Collected, Occurrence, SlotState, Subject, Trigger, Workflow};
use serde_json::{Value, json};

/// By this name templates know it.
pub(super) const TRIGGERING_SCHEDULE_INFO: &str = "triggeringScheduleInfo";

/// The event schedule, and for each leaf of its trigger that is about facts what came; none for other workflows.
pub(super) fn triggered_by(workflow: &Workflow, collected: &Collected) -> Option<Value> {
    let events = workflow.keys.events()?;
    let mut infos = Vec::new();
    leaves(&workflow.trigger, collected, &mut infos);
    Some(json!({
        "name": events.name,
        "description": workflow.about.description,
        "properties": events.properties,
        "triggerInfos": infos,
    }))
}

fn leaves(trigger: &Trigger, collected: &Collected, infos: &mut Vec<Value>) {
    let info = match trigger {
        Trigger::Partitions { dataset, count } => {
            let actual = collected.of(&Subject::Partitions(dataset.clone())).map_or(0, |tally| tally.count);
            Some(json!({
                "type": "PARTITION", "dataset": dataset, "expectedNumPartitions": count, "actualNumPartitions": actual,
            }))
        }
        Trigger::Fired { firing } => first(collected, &Subject::Fired(firing.name())).and_then(|what| match what {
            Occurrence::Fired { time, .. } => Some(json!({
                "type": "TIME", "cronExpression": firing.text(), "logicalStartTime": time.as_millisecond(),
            })),
            _ => None,
        }),
        Trigger::Signal { name } => first(collected, &Subject::Signal(name.clone())).and_then(|what| match what {
            Occurrence::Signal { payload, .. } => Some(json!({ "type": "SIGNAL", "signal": name, "payload": payload })),
            _ => None,
        }),
        Trigger::Ended { program, states } => {
            let seen = states.iter().find_map(|state| first(collected, &Subject::Ended(program.clone(), *state)));
            seen.and_then(|what| match what {
                Occurrence::Ended { program, state, run, arguments, outputs } => Some(json!({
                    "type": "PROGRAM_STATUS", "program": program, "programStatus": status(*state), "runId": run,
                    "runtimeArguments": arguments, "outputs": outputs,
                })),
                _ => None,
            })
        }
        other => return other.nested().iter().for_each(|one| leaves(one, collected, infos)),
    };
    infos.extend(info.filter(|info| !infos.contains(info)));
}

fn first<'a>(collected: &'a Collected, subject: &Subject) -> Option<&'a Occurrence> {
    collected.of(subject).and_then(|tally| tally.first.as_deref())
}

fn status(state: SlotState) -> &'static str {
    match state {
        SlotState::Succeeded => "COMPLETED",
        SlotState::Failed => "FAILED",
        _ => "KILLED",
    }
}
