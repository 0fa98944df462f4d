//! A trigger that is being written: its signature, and what it gives for each parameter.

use super::call::Signature;
use super::signatures::{self, LOCAL};
use crate::state::SlotState;
use crate::time::Zone;
use crate::trigger::{FileSystem, PathCheck, Trigger};

/// A trigger, ready to be written in either form.
pub(super) struct Notation<'a> {
    pub(super) signature: &'static Signature,
    pub(super) values: Vec<(&'static str, PartValue<'a>)>,
    pub(super) nested: &'a [Trigger],
}

/// The value of a parameter.
pub(super) enum PartValue<'a> {
    Text(&'a str),
    /// A text that may be left out where people read it, as it is what is meant without.
    Implied(&'a str),
    Number(u64),
    Seconds(i64),
    Ends(&'a [SlotState]),
}

use PartValue::{Ends, Implied, Number, Seconds, Text};

/// What is to be written of a trigger. This is where a new kind gets its written form.
pub(super) fn notation(trigger: &Trigger) -> Notation<'_> {
    let (signature, values) = match trigger {
        Trigger::Always => (&signatures::ALWAYS, Vec::new()),
        Trigger::And { .. } => (&signatures::AND, Vec::new()),
        Trigger::Or { .. } => (&signatures::OR, Vec::new()),
        Trigger::Not { .. } => (&signatures::NOT, Vec::new()),
        Trigger::Offset { seconds, .. } => (&signatures::OFFSET, vec![("seconds", Seconds(*seconds))]),
        Trigger::Delay { seconds } => (&signatures::DELAY, vec![("seconds", Seconds(*seconds))]),
        Trigger::Success { workflow } => (&signatures::SUCCESS, vec![("workflow", Text(workflow.as_str()))]),
        Trigger::Job { workflow, job } => {
            (&signatures::JOB, vec![("workflow", Text(workflow.as_str())), ("job", Text(job))])
        }
        Trigger::Path(check) => path(check),
        Trigger::Partitions { dataset, count } => {
            (&signatures::PARTITIONS, vec![("dataset", Text(dataset)), ("count", Number(u64::from(*count)))])
        }
        Trigger::Ended { program, states } => {
            (&signatures::ENDED, vec![("workflow", Text(program.as_str())), ("states", Ends(states))])
        }
        Trigger::Fired { firing } => {
            let zone = firing.zone();
            let named = if *zone == Zone::utc() { Implied(zone.name()) } else { Text(zone.name()) };
            (&signatures::FIRED, vec![("cron", Text(firing.text())), ("zone", named)])
        }
        Trigger::Signal { name } => (&signatures::SIGNAL, vec![("signal", Text(name))]),
        Trigger::Function { function } => {
            let index = Number(u64::from(function.index));
            (
                &signatures::FUNCTION,
                vec![("file", Text(&function.file)), ("index", index), ("digest", Text(&function.digest))],
            )
        }
    };
    Notation { signature, values, nested: trigger.nested() }
}

fn path(check: &PathCheck) -> (&'static Signature, Vec<(&'static str, PartValue<'_>)>) {
    let signature = match check.system {
        FileSystem::Any => &signatures::PATH_ANYWHERE,
        FileSystem::Hdfs => &signatures::HDFS_PATH,
        FileSystem::Local => &signatures::LOCAL_PATH,
    };
    let base = if check.base == LOCAL { Implied(LOCAL) } else { Text(&check.base) };
    let conditions = &check.conditions;
    let number = |name, number: Option<u64>| number.map(|number| (name, Number(number)));
    let glob = conditions.glob.as_deref().map(|glob| ("glob", Text(glob)));
    let values = [("path", Text(&check.path)), ("base", base)].into_iter();
    let conditions = [
        glob,
        number("minCount", conditions.min_count.map(u64::from)),
        number("minBytes", conditions.min_bytes),
        number("minAgeSeconds", conditions.min_age_seconds.map(u64::from)),
    ];
    (signature, values.chain(conditions.into_iter().flatten()).collect())
}
