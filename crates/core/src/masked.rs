//! Masks in requests: a text that is shown in the place of a secret is never stored as a value.

use kelos_model::secret::masks::first_mask;
use kelos_model::workflow::{Keys, Properties};
use kelos_model::{Arguments, Occurrence, Workflow};
use serde_json::{Map, Value};

use crate::requests::{
    BackfillRequest, DownstreamRequest, FireRequest, RepeatStep, Rerun, SetRegister, SignalFlow, SubmitRequest, Tell,
};
use crate::rights::definitions_of;
use crate::{Ask, Refusal};

/// Refuses a request that has a mask for a value. Sources of facts hand on what they read.
pub(crate) fn refuse_masks(ask: &Ask) -> Result<(), Refusal> {
    let found = match ask {
        Ask::Rerun(Rerun { arguments, .. })
        | Ask::Fire(FireRequest { arguments, .. })
        | Ask::RepeatStep(RepeatStep { arguments, .. })
        | Ask::Submit(SubmitRequest { arguments, .. })
        | Ask::Backfill(BackfillRequest { arguments, .. })
        | Ask::RerunDownstream(DownstreamRequest { arguments, .. }) => of_arguments(arguments),
        Ask::SignalFlow(SignalFlow { payload, .. }) => of_value("payload", payload),
        Ask::SetRegister(SetRegister { value, .. }) => value.as_ref().and_then(|value| of_value("value", value)),
        Ask::Tell(Tell { facts, position: None }) => facts.iter().find_map(|fact| of_fact(&fact.what)),
        ask => definitions_of(ask).iter().find_map(|one| of_definition(one)),
    };
    found.map_or(Ok(()), |name| Err(Refusal::Masked { name }))
}

fn of_arguments(arguments: &Arguments) -> Option<String> {
    first_mask(arguments).map(|name| format!("arguments.{name}"))
}

fn of_value(name: &str, value: &Value) -> Option<String> {
    first_mask([(&name.to_owned(), value)])
}

fn of_fact(what: &Occurrence) -> Option<String> {
    match what {
        Occurrence::Ended { arguments, outputs, .. } => {
            of_arguments(arguments).or_else(|| first_mask(outputs).map(|name| format!("outputs.{name}")))
        }
        Occurrence::Signal { payload, .. } => of_value("payload", payload),
        Occurrence::Partitions { .. } | Occurrence::Fired { .. } => None,
    }
}

fn of_definition(definition: &Workflow) -> Option<String> {
    let of_schedule = match &definition.keys {
        Keys::Events(events) => {
            let properties: Map<String, Value> =
                events.properties.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
            return first_mask(&properties).map(|name| format!("properties.{name}"));
        }
        Keys::Schedule(_) | Keys::Jobs(_) | Keys::Requests(_) => first_mask(&definition.job.settings),
    };
    let of_properties = || match &definition.job.properties {
        Properties::Fixed(properties) => first_mask(properties),
        Properties::Function(_) => None,
    };
    of_schedule.or_else(of_properties)
}
