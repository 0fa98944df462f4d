//! Placeholders of a job that have no value in a run. What they stand for would be sent as `${year}` to a service, or given to a program.
//!
//! Some texts have placeholders of others: Oozie's own, variables in the text of a shell, and the conf of Spark. Of those only the parts of
//! a time are refused, which are nobody else's.

use kelos_model::template::{KeyValues, is_part_of_time, plain_placeholders};
use serde_json::{Map, Value};

/// The executors whose texts have placeholders of their own.
const WITH_OWN: [&str; 1] = ["oozie"];

/// The settings that have placeholders of their own.
const OWN_SETTINGS: [&str; 1] = ["conf"];

/// The check of the texts of one job.
struct Check<'v> {
    values: &'v KeyValues,
    known: Vec<String>,
}

/// Refuses a job with a placeholder that has no value.
pub(super) fn check(executor: &str, settings: &Map<String, Value>, values: &KeyValues) -> Result<(), String> {
    let known = values.named().into_iter().map(|(name, _)| name.into_owned()).collect();
    let check = Check { values, known };
    for (name, value) in settings {
        // A shell reads its variables by itself.
        if name == "shell" {
            continue;
        }
        let has_own = WITH_OWN.contains(&executor) || OWN_SETTINGS.contains(&&**name);
        match value {
            Value::Array(words) if name == "command" => check.command(words)?,
            value => check.value(name, value, has_own)?,
        }
    }
    Ok(())
}

/// The position of the word of a command that is the text of a shell: the third one of `["sh", "-c", "…"]`.
pub(super) fn text_of_shell(command: &[Value]) -> Option<usize> {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];
    let words: Vec<&str> = command.iter().map(|word| word.as_str().unwrap_or_default()).collect();
    let is_shell = |word: &str| SHELLS.contains(&word.rsplit('/').next().unwrap_or(word));
    let shell = words.iter().position(|word| is_shell(word))?;
    let runs_a_text = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let option = words.iter().skip(shell).position(runs_a_text)?;
    Some(shell + option + 1).filter(|text| *text < words.len())
}

impl Check<'_> {
    /// The words of a command, in which the text of a shell has variables of its own.
    fn command(&self, words: &[Value]) -> Result<(), String> {
        let text = text_of_shell(words);
        let mut words = words.iter().enumerate();
        words.try_for_each(|(at, word)| self.value(&format!("command[{at}]"), word, text == Some(at)))
    }

    fn value(&self, path: &str, value: &Value, has_own: bool) -> Result<(), String> {
        match value {
            Value::String(text) => self.text(path, text, has_own),
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(at, item)| self.value(&format!("{path}[{at}]"), item, has_own))
            }
            Value::Object(fields) => {
                let mut fields = fields.iter();
                fields.try_for_each(|(name, value)| self.value(&format!("{path}.{name}"), value, has_own))
            }
            _ => Ok(()),
        }
    }

    fn text(&self, path: &str, text: &str, has_own: bool) -> Result<(), String> {
        let is_missing = |name: &&str| {
            let is_known = self.known.iter().any(|known| known == name);
            !is_known && (is_part_of_time(name) || !has_own)
        };
        match plain_placeholders(text).find(is_missing) {
            Some(name) => Err(format!("`{path}` has ${{{name}}}, which has no value in this run{}", self.why(name))),
            None => Ok(()),
        }
    }

    /// The reason for which a part of a time has no value.
    fn why(&self, name: &str) -> &'static str {
        match name {
            _ if !is_part_of_time(name) => "",
            _ if self.values.time().is_none() => ": it has a name, and no time",
            _ if name.starts_with("end_") => ": it is about no period",
            _ => ": it serves one slot",
        }
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::key::RunName;
    use kelos_model::time::{CronSchedule, Schedule};
    use kelos_model::workflow::Job;
    use kelos_model::{SlotKey, Workflow, WorkflowId};
    use serde_json::json;

    use super::super::{NoFunctions, filled_with};
    use crate::executor::RunInput;

    /// The settings of a job of a run with a name, or why there are none.
    fn filled(executor: &str, settings: serde_json::Value) -> Result<serde_json::Value, String> {
        let job = Job::new(executor, settings.as_object().unwrap().clone());
        let workflow = Workflow::new(WorkflowId::new("w").unwrap(), Schedule::Cron(CronSchedule::hourly()), job);
        let key = SlotKey::Named(RunName::new("order-42").unwrap());
        let given = RunInput { arguments: [("rows".to_owned(), json!(5))].into(), ..RunInput::default() };
        filled_with(&workflow, &key, &given, &NoFunctions).map(|input| input.settings.into())
    }

    #[test]
    fn a_placeholder_without_a_value_is_an_error_for_every_executor() {
        for executor in ["command", "http", "oozie", "spark", "kafka", "function", "another"] {
            let told = filled(executor, json!({"url": "http://a/", "body": {"days": ["${year}-01"]}})).unwrap_err();
            let why = "`body.days[0]` has ${year}, which has no value in this run: it has a name, and no time";
            assert_eq!(told, why, "{executor}");
        }
        assert!(
            filled("http", json!({"url": "http://a/${month}"})).unwrap_err().starts_with("`url` has ${month}, which")
        );
        let told = filled("command", json!({"command": ["bin/load", "${files}"]})).unwrap_err();
        assert_eq!(told, "`command[1]` has ${files}, which has no value in this run");
        let told = filled("command", json!({"command": ["sh", "-c", "load ${end_day}"]})).unwrap_err();
        assert!(told.starts_with("`command[2]` has ${end_day}"), "{told}");
        assert!(filled("command", json!({"command": ["true"], "env": {"DAY": "${day}"}})).is_err());
        assert!(filled("command", json!({"command": ["bin/load", "${rows}"]})).is_ok());
    }

    #[test]
    fn placeholders_of_others_stay() {
        for (executor, settings) in [
            ("oozie", json!({"oozie.wf.application.path": "${nameNode}/a", "id": "${wf:id()}"})),
            ("spark", json!({"application": "a.jar", "conf": {"spark.dir": "${SPARK_HOME}/x"}})),
            ("http", json!({"url": "http://a/", "poll": {"url": "/${answer/id}?x=${header/Location}"}})),
            ("command", json!({"command": ["sh", "-c", "for f in *; do echo ${f} ${f%.csv}; done"]})),
            ("command", json!({"shell": "echo ${year:-none}"})),
            ("command", json!({"command": ["awk", "{print $1}", "${", "$${}", "${a b}"]})),
        ] {
            assert_eq!(filled(executor, settings.clone()), Ok(settings), "{executor}");
        }
    }
}
