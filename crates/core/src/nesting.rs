//! How deeply the values in a request may be nested. Every door asks here, so that none can forget it.

use std::sync::Arc;

use kelos_model::nesting::{TooDeep, check, check_object};
use kelos_model::{Arguments, Fact, Occurrence, Workflow};
use serde_json::Value;

use crate::{Ask, Refusal};

/// Refuses values that are nested too deeply. A new kind of request says here which values it has.
pub(crate) fn check_request(ask: &Ask) -> Result<(), Refusal> {
    match ask {
        Ask::Submit(request) => arguments(&request.arguments),
        Ask::Rerun(request) => arguments(&request.arguments),
        Ask::RerunDownstream(request) => arguments(&request.arguments),
        Ask::Backfill(request) => arguments(&request.arguments),
        Ask::Fire(request) => arguments(&request.arguments),
        Ask::RepeatStep(request) => arguments(&request.arguments),
        Ask::Tell(request) => {
            let position = request.position.as_ref().map(|position| &position.position);
            value("the position of the source", position)?;
            request.facts.iter().try_for_each(fact)
        }
        Ask::SignalFlow(request) => value("the payload", Some(&request.payload)),
        Ask::SetRegister(request) => value("the value", request.value.as_ref()),
        Ask::DeployProject(request) => definitions(&request.definitions),
        Ask::CreateSchedules(request) => definitions(&request.new),
        Ask::ChangeSchedule(request) => definition(&request.changed),
        Ask::Kill(_)
        | Ask::MarkSuccess(_)
        | Ask::Skip(_)
        | Ask::Pause(_)
        | Ask::Resume(_)
        | Ask::CancelBackfill(_)
        | Ask::PauseBackfill(_)
        | Ask::ResumeBackfill(_)
        | Ask::PrioritiseBackfill(_)
        | Ask::RerunBackfill(_)
        | Ask::DeleteSchedules(_)
        | Ask::Enable(_)
        | Ask::Disable(_)
        | Ask::EnableByTime(_)
        | Ask::ResumeFlow(_)
        | Ask::RecordAccess(_)
        | Ask::TrimHistory(_)
        | Ask::Inspect(_)
        | Ask::InspectCapacity(_) => Ok(()),
    }
}

fn fact(fact: &Fact) -> Result<(), Refusal> {
    match &fact.what {
        Occurrence::Ended { arguments, outputs, .. } => {
            refused("the arguments", "are", check_object(arguments.values()))?;
            refused("the outputs", "are", check_object(outputs.values()))
        }
        Occurrence::Signal { payload, .. } => value("the payload", Some(payload)),
        Occurrence::Partitions { .. } | Occurrence::Fired { .. } => Ok(()),
    }
}

fn arguments(arguments: &Arguments) -> Result<(), Refusal> {
    refused("the arguments", "are", check_object(arguments.values()))
}

fn value(what: &str, value: Option<&Value>) -> Result<(), Refusal> {
    refused(what, "is", value.map_or(Ok(()), check))
}

fn refused(what: &str, verb: &str, found: Result<(), TooDeep>) -> Result<(), Refusal> {
    found.map_err(|error| Refusal::TooDeep(format!("{what} {verb} {error}")))
}

fn definitions(all: &[Arc<Workflow>]) -> Result<(), Refusal> {
    all.iter().try_for_each(|one| definition(one))
}

fn definition(one: &Workflow) -> Result<(), Refusal> {
    one.check_nesting().map_err(|problem| Refusal::TooDeep(format!("{}: {problem}", one.id)))
}
