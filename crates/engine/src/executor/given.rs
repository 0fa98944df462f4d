//! The input of a run: what it is given, and the triggering facts.
//!
//! A shell gets a value as a variable; values are never pasted into its text.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::arguments::{behind_key, text};
use kelos_model::template::KeyValues;
use kelos_model::{Arguments, Batch, Collection, SlotKey, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::triggered_by::{TRIGGERING_SCHEDULE_INFO, triggered_by};

/// The variable that has all arguments, as a JSON object.
pub const ARGUMENTS: &str = "KELOS_ARGUMENTS";

/// The prefix of the variables of arguments.
pub const ARGUMENT: &str = "KELOS_ARG_";

/// The variable with the triggering facts, as a JSON object.
pub const TRIGGERED_BY: &str = "KELOS_TRIGGERED_BY";

/// The variable with the context of the run's trace, as the [W3C's draft](https://opentelemetry.io/docs/specs/otel/context/env-carriers/) names it.
pub const TRACEPARENT: &str = "TRACEPARENT";

/// No variable is longer: the system starts no program that has one of 128 KiB.
const LARGEST_VARIABLE: usize = 120_000;

/// The input of a run besides the values of its key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunInput {
    /// All that it is given, by name: its arguments with the outputs of what its slot depends on, or the inputs of a step.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: Arguments,
    /// The names among these that templates don't get, because they are those of values of the key.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub behind_key: BTreeSet<String>,
    /// The event schedule, and what its trigger saw; none for runs of other workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<Value>,
    /// The slots that the run serves together, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// The key whose time and identifiers the job is given, where that is not the key of its slot: a step is done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<SlotKey>,
    /// The context of its trace, where traces are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RunInput {
    /// The input of a run that is given this.
    #[must_use]
    pub fn of(workflow: &Workflow, key: &SlotKey, collected: Option<&Collection>, arguments: Arguments) -> RunInput {
        let behind_key = behind_key(workflow, collected, key, &arguments);
        let triggered_by = collected.and_then(|collected| triggered_by(workflow, collected));
        RunInput { arguments, behind_key, triggered_by, batch: None, about: None, traceparent: None }
    }

    /// The same for a run that serves several slots.
    #[must_use]
    pub fn serving(self, batch: Option<Batch>) -> RunInput {
        RunInput { batch, ..self }
    }

    /// The same about the time and the identifiers of another key.
    #[must_use]
    pub fn about(self, about: Option<SlotKey>) -> RunInput {
        RunInput { about, ..self }
    }

    /// The same with the context of a trace.
    #[must_use]
    pub fn traced(self, traceparent: Option<String>) -> RunInput {
        RunInput { traceparent, ..self }
    }

    /// The key whose time and identifiers the job is given, for a run of the slot of a key.
    #[must_use]
    pub fn key<'k>(&'k self, own: &'k SlotKey) -> &'k SlotKey {
        self.about.as_ref().unwrap_or(own)
    }

    /// The time of the last slot that the run serves, and how many it serves; none for workflows whose runs serve one slot each.
    #[must_use]
    pub fn extent(&self, workflow: &Workflow, key: &SlotKey) -> Option<(Timestamp, u32)> {
        let own = || key.scheduled().filter(|_| workflow.batch.is_some()).map(|time| (time, 1));
        self.batch.map(|batch| (batch.last, batch.slots)).or_else(own)
    }

    /// A key's values, with the arguments before them.
    #[must_use]
    pub fn values(&self, workflow: &Workflow, key: &SlotKey) -> KeyValues {
        let mut named = self.arguments.clone();
        named.retain(|name, _| !self.behind_key.contains(name));
        if let Some(triggered_by) = &self.triggered_by {
            named.entry(TRIGGERING_SCHEDULE_INFO.to_owned()).or_insert_with(|| triggered_by.to_string().into());
        }
        let key = self.key(key);
        let values = KeyValues::of(&workflow.keys, key).with(&named);
        let values = match workflow.keys.period_of_run(key, self.batch.as_ref()) {
            Some(period) => values.about(period),
            None => values,
        };
        match self.extent(workflow, key) {
            Some((last, _)) => values.up_to(last),
            None => values,
        }
    }

    /// The variables that a command gets of it, but for facts that are too many for one: see [`RunInput::left_out`].
    ///
    /// # Errors
    /// An argument that can't be a variable, in words.
    pub fn variables(&self) -> Result<BTreeMap<String, String>, String> {
        let mut variables = BTreeMap::new();
        if !self.arguments.is_empty() {
            variables.insert(ARGUMENTS.to_owned(), json!(self.arguments).to_string());
        }
        if let Some(traceparent) = &self.traceparent {
            variables.insert(TRACEPARENT.to_owned(), traceparent.clone());
        }
        let single = self.arguments.iter().filter(|(name, _)| is_sound(name));
        variables.extend(single.map(|(name, value)| (format!("{ARGUMENT}{name}"), text(value).into_owned())));
        variables.iter().try_for_each(|(name, value)| check_variable(name, value))?;
        if let Some(triggered_by) = self.triggered_by.as_ref().filter(|_| self.left_out().is_none()) {
            variables.insert(TRIGGERED_BY.to_owned(), triggered_by.to_string());
        }
        Ok(variables)
    }

    /// The sentence about facts that are too many for a variable. They are no reason not to run: few commands read them.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let why = check_variable(TRIGGERED_BY, &self.triggered_by.as_ref()?.to_string()).err()?;
        Some(format!("{why}; it is left out"))
    }

    /// Whether a value has these facts, too.
    #[must_use]
    pub fn is_of_facts(&self, name: &str) -> bool {
        name == TRIGGERING_SCHEDULE_INFO && !self.arguments.contains_key(name)
    }
}

/// Checks that a program can be started that has this value as a variable.
///
/// # Errors
/// If it can't, in words.
pub fn check_variable(name: &str, value: &str) -> Result<(), String> {
    if value.contains('\0') {
        return Err(format!("the variable {name} has a NUL character, which no variable can have"));
    }
    if value.len() > LARGEST_VARIABLE {
        let length = value.len();
        return Err(format!(
            "the variable {name} has {length} bytes, expected at most {LARGEST_VARIABLE}: write what is large to a file, and give its path"
        ));
    }
    Ok(())
}

/// Whether a shell can have a variable of this name.
pub(super) fn is_sound(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sound_names_become_variables_of_their_own() {
        let names = ["cleanup_dir", "my.property", "a b", "x=1", "9", "", "größe"];
        let arguments = names.map(|name| (name.to_owned(), json!("$(reboot)"))).into();
        let variables = RunInput { arguments, ..RunInput::default() }.variables().unwrap();
        let names: Vec<&str> = variables.keys().map(String::as_str).collect();
        assert_eq!(names, ["KELOS_ARGUMENTS", "KELOS_ARG_9", "KELOS_ARG_cleanup_dir"]);
        assert_eq!(variables["KELOS_ARG_9"], "$(reboot)");
    }

    #[test]
    fn an_argument_that_can_not_be_a_variable_is_refused() {
        let refused = |value: &str| {
            let arguments = [("a".to_owned(), json!("1")), ("b".to_owned(), json!(value))].into();
            RunInput { arguments, ..RunInput::default() }.variables().unwrap_err()
        };
        assert_eq!(refused("x\0"), "the variable KELOS_ARG_b has a NUL character, which no variable can have");
        let long = refused(&"x".repeat(LARGEST_VARIABLE + 1));
        let told = "the variable KELOS_ARGUMENTS has 120017 bytes, expected at most 120000: write what is large to a file, and give its path";
        assert_eq!(long, told);
    }

    #[test]
    fn facts_that_are_too_many_for_a_variable_are_left_out_with_a_sentence() {
        let long = json!("x".repeat(LARGEST_VARIABLE + 1));
        let given = RunInput { triggered_by: Some(long), ..RunInput::default() };
        assert!(given.variables().unwrap().is_empty());
        let said = given.left_out().unwrap();
        assert!(
            said.starts_with("the variable KELOS_TRIGGERED_BY has 120003 bytes") && said.ends_with("left out"),
            "{said}"
        );
        let few = RunInput { triggered_by: Some(json!(["x"])), ..RunInput::default() };
        assert_eq!(few.left_out(), None);
        assert_eq!(few.variables().unwrap()["KELOS_TRIGGERED_BY"], "[\"x\"]");
    }
}
