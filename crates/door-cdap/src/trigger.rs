//! Triggers in this dialect.

use std::sync::Arc;

use kelos_front::fault::Fault;
use kelos_model::facts::ENDS;
use kelos_model::mistakes::weekday_names;
use kelos_model::nesting::DEEPEST;
use kelos_model::project::{DEFAULT_VERSION, ProjectName, dataset, dataset_parts};
use kelos_model::time::{Firing, Zone};
use kelos_model::{SlotState, Trigger, WorkflowId};
use kelos_store::StoreError;
use serde_json::{Value, json};

use super::catalogue::{Catalogue, ProgramName};
use super::fields::Field;
use super::kind::{self, Kind};

const TYPES: &str = "TIME, PARTITION, PROGRAM_STATUS, AND, OR or SIGNAL";

/// Reads a trigger.
pub(super) fn read(field: &Field<'_>, catalogue: &Catalogue<'_>) -> Result<Trigger, Fault> {
    nested(field, catalogue, 0)
}

fn nested(field: &Field<'_>, catalogue: &Catalogue<'_>, depth: usize) -> Result<Trigger, Fault> {
    if depth >= DEEPEST {
        return Err(field.refused(&format!("expected triggers to be nested at most {DEEPEST} deep")));
    }
    let kind = field.need("type", TYPES)?;
    match kind.text()?.to_ascii_uppercase().as_str() {
        "TIME" => firing(field),
        "PARTITION" => partitions(field),
        "PROGRAM_STATUS" => ended(field, catalogue),
        "AND" => Ok(Trigger::And { triggers: several(field, catalogue, depth)? }),
        "OR" => Ok(Trigger::Or { triggers: several(field, catalogue, depth)? }),
        "SIGNAL" => {
            field.only(&["type", "signal"])?;
            Ok(Trigger::Signal { name: field.need("signal", "the name of a signal")?.name()?.into() })
        }
        "STREAM_SIZE" => Err(kind.wrong(&format!("{TYPES}; there are no streams"))),
        _ => Err(kind.wrong(TYPES)),
    }
}

fn several(field: &Field<'_>, catalogue: &Catalogue<'_>, depth: usize) -> Result<Vec<Trigger>, Fault> {
    field.only(&["type", "triggers"])?;
    let list = field.need("triggers", "a list of triggers")?;
    let elements = list.elements()?;
    if elements.is_empty() {
        return Err(list.wrong("at least one trigger"));
    }
    elements.iter().map(|one| nested(one, catalogue, depth + 1)).collect()
}

fn firing(field: &Field<'_>) -> Result<Trigger, Fault> {
    field.only(&["type", "cronExpression", "timeZone"])?;
    let cron = field.need("cronExpression", "a cron expression such as \"0 4 * * *\"")?;
    let zone = match field.get("timeZone")? {
        Some(zone) => Zone::parse(zone.text()?).map_err(|error| zone.refused(&error))?,
        None => Zone::utc(),
    };
    // As the split of CDAP has it, blanks at the end make no fields.
    let text = cron.text()?.trim_end_matches(' ');
    if text.split(' ').count() > 6 {
        return Err(cron.wrong("5 fields (minute hour day-of-month month day-of-week) or 6 (second first)"));
    }
    let firing = Firing::read_by_quartz(text, zone).map_err(|error| cron.refused(&error))?;
    Ok(Trigger::Fired { firing })
}

/// The expression as this dialect reads it, where 1 is Sunday also in five fields: the weekdays of a crontab by their names. What it has no
/// words for, either of two days, is shown as it was given.
pub(super) fn expression(firing: &Firing) -> String {
    let weekdays = firing.schedule().cron().weekdays().filter(|_| firing.is_of_unix_alone());
    let rest = firing.text().rsplit_once(' ').filter(|(rest, _)| rest.split(' ').nth(2) == Some("*"));
    match (rest, weekdays) {
        (Some((rest, _)), Some(weekdays)) => format!("{rest} {}", weekday_names(weekdays)),
        _ => firing.text().to_owned(),
    }
}

fn partitions(field: &Field<'_>) -> Result<Trigger, Fault> {
    field.only(&["type", "dataset", "numPartitions"])?;
    let named = field.need("dataset", "an object with namespace and dataset")?;
    named.only(&["namespace", "dataset", "entity"])?;
    check_entity(&named, "DATASET")?;
    let part = |name: &str| {
        let part = named.need(name, "a name")?;
        if part.name()?.contains(':') { Err(part.wrong("a name without \":\"")) } else { part.name() }
    };
    let (namespace, name) = (part("namespace")?, part("dataset")?);
    let count = field.need("numPartitions", "a number from 1")?.count()?;
    Ok(Trigger::Partitions { dataset: dataset(namespace, name).into(), count })
}

/// Checks that an entity is of the expected kind, if it names its kind.
fn check_entity(field: &Field<'_>, expected: &str) -> Result<(), Fault> {
    match field.get("entity")? {
        Some(entity) if !entity.text()?.eq_ignore_ascii_case(expected) => Err(entity.wrong(expected)),
        _ => Ok(()),
    }
}

fn ended(field: &Field<'_>, catalogue: &Catalogue<'_>) -> Result<Trigger, Fault> {
    field.only(&["type", "programId", "programStatuses"])?;
    let program = field.need("programId", "an object with namespace, application, version, type and program")?;
    let statuses = field.need("programStatuses", STATUSES)?;
    let mut states = Vec::new();
    for status in statuses.elements()? {
        states.push(state_named(status.text()?).ok_or_else(|| status.wrong(STATUSES))?);
    }
    if states.is_empty() {
        return Err(statuses.wrong(STATUSES));
    }
    states.sort_by_key(|state| ENDS.iter().position(|end| end == state));
    states.dedup();
    Ok(Trigger::Ended { program: program_id(&program, catalogue)?, states })
}

fn program_id(field: &Field<'_>, catalogue: &Catalogue<'_>) -> Result<WorkflowId, Fault> {
    field.only(&["namespace", "application", "version", "type", "program", "entity"])?;
    check_entity(field, "PROGRAM")?;
    let kind = field.need("type", kind::NAMES)?;
    let version = field.get("version")?;
    let project = ProjectName {
        namespace: field.need("namespace", "a name")?.name()?.to_owned(),
        application: field.need("application", "a name")?.name()?.to_owned(),
        version: version.map(|version| version.name()).transpose()?.unwrap_or(DEFAULT_VERSION).to_owned(),
    };
    if !project.is_sound() {
        return Err(field.wrong("names without \":\", and an application without \"~\""));
    }
    let program = field.need("program", "a name")?;
    let name = program.name()?.to_owned();
    let kind = Kind::named(kind.text()?).ok_or_else(|| kind.wrong(kind::NAMES))?;
    catalogue.program_id(&ProgramName { project, kind, name })
}

const STATUSES: &str = "COMPLETED, FAILED or KILLED, at least one of them";

/// The name of an end in this dialect.
pub(super) fn status_of(state: SlotState) -> &'static str {
    match state {
        SlotState::Succeeded => "COMPLETED",
        SlotState::Failed => "FAILED",
        _ => "KILLED",
    }
}

/// Reads the name of an end, in any case.
pub(super) fn state_named(text: &str) -> Option<SlotState> {
    ENDS.into_iter().find(|state| status_of(*state).eq_ignore_ascii_case(text))
}

/// Writes a trigger.
pub(super) fn write(trigger: &Trigger, catalogue: &Catalogue<'_>) -> Result<Value, StoreError> {
    let all = |triggers: &[Trigger]| triggers.iter().map(|one| write(one, catalogue)).collect::<Result<Vec<_>, _>>();
    Ok(match trigger {
        Trigger::Fired { firing } if *firing.zone() == Zone::utc() => {
            json!({ "type": "TIME", "cronExpression": expression(firing) })
        }
        Trigger::Fired { firing } => {
            json!({ "type": "TIME", "cronExpression": expression(firing), "timeZone": firing.zone().name() })
        }
        Trigger::Partitions { dataset, count } => partitions_json(dataset, *count),
        Trigger::Ended { program, states } => {
            let statuses: Vec<_> = states.iter().map(|state| status_of(*state)).collect();
            let program = program_json(&catalogue.program_name(program)?);
            json!({ "type": "PROGRAM_STATUS", "programId": program, "programStatuses": statuses })
        }
        Trigger::And { triggers } => json!({ "type": "AND", "triggers": all(triggers)? }),
        Trigger::Or { triggers } => json!({ "type": "OR", "triggers": all(triggers)? }),
        Trigger::Signal { name } => json!({ "type": "SIGNAL", "signal": name }),
        // Triggers that only scripts can express are shown as scripts have them.
        other => json!({ "type": "SCRIPT", "trigger": serde_json::to_value(other).unwrap_or_default() }),
    })
}

fn partitions_json(dataset: &Arc<str>, count: u32) -> Value {
    let (namespace, name) = dataset_parts(dataset);
    let dataset = json!({ "namespace": namespace, "dataset": name, "entity": "DATASET" });
    json!({ "type": "PARTITION", "dataset": dataset, "numPartitions": count })
}

fn program_json(name: &ProgramName) -> Value {
    let ProjectName { namespace, application, version } = &name.project;
    json!({
        "namespace": namespace, "application": application, "version": version, "type": name.kind.pretty,
        "program": name.name, "entity": "PROGRAM",
    })
}

/// The kinds of triggers that lists can be filtered by.
pub(super) const CATEGORIES: &str = "time, partition, program-status, and, or or signal";

/// A test whether the root of a trigger is of a kind that lists can be filtered by; none for an unknown kind.
pub(super) fn is_of_category(category: &str) -> Option<fn(&Trigger) -> bool> {
    Some(match category {
        "time" => |trigger| matches!(trigger, Trigger::Fired { .. }),
        "partition" => |trigger| matches!(trigger, Trigger::Partitions { .. }),
        "program-status" => |trigger| matches!(trigger, Trigger::Ended { .. }),
        "and" => |trigger| matches!(trigger, Trigger::And { .. }),
        "or" => |trigger| matches!(trigger, Trigger::Or { .. }),
        "signal" => |trigger| matches!(trigger, Trigger::Signal { .. }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_shown_as_this_dialect_reads_them() {
        let native = |text: &str| expression(&Firing::parse(text, Zone::utc()).expect("an expression"));
        assert_eq!(native("0 4 * * 1"), "0 4 * * MON");
        assert_eq!(native("*/5 4 * JAN 1-5"), "*/5 4 * JAN MON-FRI");
        assert_eq!(native("0 4 * * *"), "0 4 * * *");
        assert_eq!(native("0 0 4 ? * 2"), "0 0 4 ? * 2");
        assert_eq!(native("0 4 1 * 1"), "0 4 1 * 1", "it has no words for either day");
        for text in ["0 4 * * 1", "0 4 * * 1-5"] {
            let shown = Firing::read_by_quartz(&native(text), Zone::utc()).expect("an expression");
            let meant = Firing::parse(text, Zone::utc()).expect("an expression");
            assert_eq!(shown.schedule().cron().weekdays(), meant.schedule().cron().weekdays(), "{text}");
            let own = Firing::read_by_quartz(text, Zone::utc()).expect("an expression");
            assert_eq!(expression(&own), text);
        }
    }
}
