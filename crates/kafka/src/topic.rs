//! A topic that is read, and what its messages become.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::id::is_invisible;
use kelos_model::json::is_same;
use kelos_model::nesting;
use kelos_model::project::dataset_named;
use kelos_model::run::beyond_largest;
use kelos_model::{Occurrence, RunName, SlotKey, SlotRef, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::IncomingMessage;
use crate::template::{MessageView, Template};

/// Longest name of a dataset, a partition or a signal, in bytes.
const LONGEST_NAME: usize = 500;

/// The most levels of a template of a payload.
const DEEPEST: usize = 32;

/// A topic that is read, and what its messages become: new partitions of a dataset, or signals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Topic {
    /// The topic.
    pub topic: String,
    /// The dataset of which each message is a new partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The name of the partition; without one partitions are counted and have no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The name of the signal that each message gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The flow to whose run the signal is given. Without one it is for all workflows that wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The run of the flow; by default the key of the message names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The payload of the signal: JSON whose texts are templates; by default the value of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Only messages whose value has one of these values at each of these JSON pointers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Value>,
    /// The beginning of a topic that was never read.
    #[serde(default)]
    pub from: Start,
    /// The topic to which messages are sent that make no sense. Without one they are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_to: Option<String>,
}

/// The beginning of a topic that was never read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// With the oldest message that is kept.
    #[default]
    Earliest,
    /// With the first message that comes later.
    Latest,
}

/// A topic whose templates are parsed.
#[derive(Debug, Clone)]
pub struct Mapping {
    when: Vec<(String, Vec<Value>)>,
    what: Meaning,
}

#[derive(Debug, Clone)]
enum Meaning {
    Partitions { dataset: Arc<str>, name: Option<Template> },
    Signal { name: Template, payload: Payload, to: Option<(Template, Template)> },
}

#[derive(Debug, Clone)]
enum Payload {
    Template(Template),
    List(Vec<Payload>),
    Object(Vec<(String, Payload)>),
    Fixed(Value),
}

impl Topic {
    /// A topic whose messages are new partitions of a dataset.
    #[must_use]
    pub fn partitions_of(topic: &str, dataset: &str) -> Topic {
        Topic { topic: topic.to_owned(), dataset: Some(dataset.to_owned()), ..Topic::default() }
    }

    /// A topic whose messages are signals for the runs of a flow that their keys name.
    #[must_use]
    pub fn signals(topic: &str, signal: &str, workflow: &str) -> Topic {
        let (signal, workflow) = (Some(signal.to_owned()), Some(workflow.to_owned()));
        Topic { topic: topic.to_owned(), signal, workflow, ..Topic::default() }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        self.mapping().map(|_| ())
    }

    /// The dataset as facts name it.
    #[must_use]
    pub fn dataset_name(&self) -> Option<String> {
        self.dataset.as_deref().map(dataset_named)
    }

    /// The mapping from its messages to facts.
    ///
    /// # Errors
    /// The mistake, and what was expected.
    pub fn mapping(&self) -> Result<Mapping, String> {
        let fail = |why: String| format!("the topic \"{}\": {why}", self.topic);
        if !is_topic(&self.topic) {
            return Err(fail("expected a name of 1 to 249 letters, digits, \"-\", \"_\" and \".\"".to_owned()));
        }
        if let Some(rejected) = self.rejected_to.as_ref().filter(|name| !is_topic(name) || **name == self.topic) {
            return Err(fail(format!("`rejectedTo` is \"{rejected}\", expected the name of another topic")));
        }
        let when = self.when.iter().map(|(pointer, wanted)| condition(pointer, wanted)).collect::<Result<_, _>>();
        Ok(Mapping { when: when.map_err(fail)?, what: self.what().map_err(fail)? })
    }

    fn what(&self) -> Result<Meaning, String> {
        let stray = |name: &str, of: &str| Err(format!("expected `{name}` only beside `{of}`"));
        match (&self.dataset, &self.signal) {
            (Some(dataset), None) => {
                for (name, is_there) in [
                    ("workflow", self.workflow.is_some()),
                    ("run", self.run.is_some()),
                    ("payload", self.payload.is_some()),
                ] {
                    if is_there {
                        return stray(name, "signal");
                    }
                }
                let dataset = named("`dataset`", dataset_named(dataset))?.into();
                Ok(Meaning::Partitions { dataset, name: self.template(self.partition.as_deref())? })
            }
            (None, Some(signal)) => {
                if self.partition.is_some() {
                    return stray("partition", "dataset");
                }
                if self.workflow.is_none() && self.run.is_some() {
                    return stray("run", "workflow");
                }
                let name = Template::parse(&named("`signal`", signal.clone())?)?;
                let payload = match &self.payload {
                    Some(payload) => Payload::parse(payload, 0)?,
                    None => Payload::Template(Template::parse("${value}")?),
                };
                let to = match &self.workflow {
                    Some(workflow) => {
                        Some((Template::parse(workflow)?, Template::parse(self.run.as_deref().unwrap_or("${key}"))?))
                    }
                    None => None,
                };
                if let Some(fixed) = to.as_ref().and_then(|(workflow, _)| workflow.fixed()) {
                    WorkflowId::new(fixed).map_err(|error| format!("`workflow`: {error}"))?;
                }
                Ok(Meaning::Signal { name, payload, to })
            }
            (Some(_), Some(_)) => {
                Err("a message becomes one thing: expected `dataset` or `signal`, not both".to_owned())
            }
            (None, None) => Err("expected `dataset` or `signal`: what a message becomes".to_owned()),
        }
    }

    fn template(&self, text: Option<&str>) -> Result<Option<Template>, String> {
        text.map(Template::parse).transpose()
    }
}

impl Mapping {
    /// The occurrence that a message tells of; none if it is not for Kelos.
    ///
    /// # Errors
    /// In words, when the message makes no sense.
    pub fn read(&self, message: &IncomingMessage) -> Result<Option<Occurrence>, String> {
        let reading = MessageView::new(message);
        for (pointer, wanted) in &self.when {
            if !reading.value()?.pointer(pointer).is_some_and(|found| wanted.iter().any(|one| is_same(one, found))) {
                return Ok(None);
            }
        }
        self.what.occurrence(&reading).map(Some)
    }
}

impl Meaning {
    fn occurrence(&self, reading: &MessageView<'_>) -> Result<Occurrence, String> {
        match self {
            Meaning::Partitions { dataset, name } => {
                let key = name.as_ref().map(|name| name.text(reading)).transpose()?;
                let key = key.map(|key| named("the name of the partition", key)).transpose()?;
                Ok(Occurrence::Partitions { dataset: dataset.clone(), count: 1, keys: key.into_iter().collect() })
            }
            Meaning::Signal { name, payload, to } => {
                let name = named("the name of the signal", name.text(reading)?)?.into();
                let payload = payload.value(reading)?;
                if let Some(bytes) = beyond_largest(&payload) {
                    return Err(format!("its payload has {bytes} bytes, expected at most 65536"));
                }
                nesting::check(&payload).map_err(|error| format!("its payload is {error}"))?;
                let run = to.as_ref().map(|(workflow, run)| slot(&workflow.text(reading)?, &run.text(reading)?));
                Ok(Occurrence::Signal { name, payload, run: run.transpose()? })
            }
        }
    }
}

impl Payload {
    fn parse(template: &Value, depth: usize) -> Result<Payload, String> {
        if depth > DEEPEST {
            return Err(format!("`payload` is nested deeper than {DEEPEST} levels"));
        }
        Ok(match template {
            Value::String(text) => Payload::Template(Template::parse(text)?),
            Value::Array(items) => {
                Payload::List(items.iter().map(|item| Payload::parse(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| Ok((name.clone(), Payload::parse(value, depth + 1)?));
                Payload::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
            other => Payload::Fixed(other.clone()),
        })
    }

    fn value(&self, reading: &MessageView<'_>) -> Result<Value, String> {
        Ok(match self {
            Payload::Template(template) => template.value(reading)?,
            Payload::List(items) => {
                Value::Array(items.iter().map(|item| item.value(reading)).collect::<Result<_, _>>()?)
            }
            Payload::Object(fields) => {
                let field = |(name, value): &(String, Payload)| Ok((name.clone(), value.value(reading)?));
                Value::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
            Payload::Fixed(value) => value.clone(),
        })
    }
}

/// The run of a flow that a message names.
fn slot(workflow: &str, run: &str) -> Result<SlotRef, String> {
    let workflow = WorkflowId::new(workflow).map_err(|error| error.to_string())?;
    let key = RunName::new(run).map(SlotKey::Named).or_else(|_| SlotKey::parse(run));
    let key = key.map_err(|_| {
        format!(
            "it is for the run \"{}\", expected a name of letters, digits, \"-\", \"_\" and \":\", or a time",
            run.escape_debug()
        )
    })?;
    Ok(SlotRef::new(workflow, key))
}

fn condition(pointer: &str, wanted: &Value) -> Result<(String, Vec<Value>), String> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(format!("`when`: \"{pointer}\" is no JSON pointer, expected such as \"/{pointer}\""));
    }
    let wanted = match wanted {
        Value::Array(several) if several.is_empty() => {
            return Err(format!("`when`: \"{pointer}\" has no values, expected such as [\"new\", \"changed\"]"));
        }
        Value::Array(several) => several.clone(),
        one => vec![one.clone()],
    };
    Ok((pointer.to_owned(), wanted))
}

/// A name that is there and no longer than may be.
fn named(what: &str, name: String) -> Result<String, String> {
    match name.len() {
        0 => Err(format!("{what} is empty, expected a name")),
        length if length > LONGEST_NAME => Err(format!("{what} has {length} bytes, expected at most {LONGEST_NAME}")),
        _ if name.contains(is_invisible) => {
            Err(format!("{what} can't contain an invisible character: \"{}\"", name.escape_debug()))
        }
        _ => Ok(name),
    }
}

pub(crate) fn is_topic(name: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.');
    (1..=249).contains(&name.len()) && name.bytes().all(is_plain) && name != "." && name != ".."
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(key: &str, value: &Value) -> IncomingMessage {
        IncomingMessage {
            topic: "t".to_owned(),
            key: Some(key.as_bytes().to_vec()),
            value: Some(value.to_string().into_bytes()),
            ..IncomingMessage::default()
        }
    }

    fn topic(form: Value) -> Topic {
        serde_json::from_value(form).unwrap()
    }

    fn read(form: Value, key: &str, value: &Value) -> Result<Option<Occurrence>, String> {
        topic(form).mapping()?.read(&message(key, value))
    }

    #[test]
    fn a_message_is_a_new_partition() {
        let form = json!({"topic": "t", "dataset": "default:purchases", "partition": "${value/day}"});
        let what = read(form.clone(), "k", &json!({"day": "2026-11-21"})).unwrap();
        let keys = vec!["2026-11-21".to_owned()];
        assert_eq!(what, Some(Occurrence::Partitions { dataset: "purchases".into(), count: 1, keys }));
        assert_eq!(read(form, "k", &json!({"days": 1})).unwrap_err(), "its value has no /day");
        let unnamed = read(json!({"topic": "t", "dataset": "ds"}), "k", &Value::Null).unwrap();
        assert_eq!(unnamed, Some(Occurrence::Partitions { dataset: "ds".into(), count: 1, keys: Vec::new() }));
    }

    #[test]
    fn a_message_is_a_signal_for_a_run_of_a_flow() {
        let form = json!({"topic": "t", "signal": "approval", "workflow": "buy"});
        let run = |key: &str| format!("buy@{key}").parse::<SlotRef>().unwrap();
        let signal = |run: SlotRef, payload: Value| {
            Some(Occurrence::Signal { name: "approval".into(), payload, run: Some(run) })
        };
        let value = json!({"by": "Ann", "sum": 12});
        assert_eq!(read(form.clone(), "order-42", &value).unwrap(), signal(run(".order-42"), value.clone()));
        assert_eq!(
            read(form.clone(), "2026-11-21T03:00Z", &value).unwrap(),
            signal(run("2026-11-21T03:00Z"), value.clone())
        );
        let told = read(form, "a/b", &value).unwrap_err();
        assert_eq!(
            told,
            "it is for the run \"a/b\", expected a name of letters, digits, \"-\", \"_\" and \":\", or a time"
        );
        let form = json!({"topic": "t", "signal": "${value/kind}", "workflow": "${value/flow}", "run": "order-${value/id}",
            "payload": {"who": "${value/by}", "sum": "${value/sum}", "always": true, "list": ["${key}"]}});
        let value = json!({"kind": "approval", "flow": "buy", "id": 42, "by": "Ann", "sum": 12});
        let payload = json!({"who": "Ann", "sum": 12, "always": true, "list": ["k"]});
        assert_eq!(read(form, "k", &value).unwrap(), signal(run(".order-42"), payload));
    }

    #[test]
    fn a_message_is_a_signal_for_all() {
        let form = json!({"topic": "t", "signal": "go", "when": {"/kind": ["new", 7], "/live": true}});
        let go = Some(Occurrence::Signal { name: "go".into(), payload: json!({"kind": 7, "live": true}), run: None });
        assert_eq!(read(form.clone(), "k", &json!({"kind": 7, "live": true})).unwrap(), go);
        assert_eq!(read(form.clone(), "k", &json!({"kind": "old", "live": true})).unwrap(), None);
        assert_eq!(read(form, "k", &json!({"kind": 7})).unwrap(), None);
    }

    #[test]
    fn a_message_that_makes_no_sense_is_told() {
        let mapping = topic(json!({"topic": "t", "signal": "go"})).mapping().unwrap();
        let odd = IncomingMessage { value: Some(b"oops".to_vec()), ..message("k", &Value::Null) };
        assert_eq!(mapping.read(&odd).unwrap_err(), "its value is no JSON: expected value at line 1 column 1");
        let deletion = IncomingMessage { value: None, ..odd };
        let empty = Some(Occurrence::Signal { name: "go".into(), payload: Value::Null, run: None });
        assert_eq!(mapping.read(&deletion).unwrap(), empty);
        let large = message("k", &Value::String("x".repeat(70_000)));
        assert_eq!(mapping.read(&large).unwrap_err(), "its payload has 70002 bytes, expected at most 65536");
        let named = topic(json!({"topic": "t", "signal": "${value}"})).mapping().unwrap();
        assert_eq!(
            named.read(&message("k", &json!(""))).unwrap_err(),
            "the name of the signal is empty, expected a name"
        );
        let told = named.read(&message("k", &json!("x".repeat(501)))).unwrap_err();
        assert_eq!(told, "the name of the signal has 501 bytes, expected at most 500");
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        let wrong = |form: Value| topic(form).check().unwrap_err();
        let of = |rest: &str| format!("the topic \"t\": {rest}");
        assert_eq!(wrong(json!({"topic": "t"})), of("expected `dataset` or `signal`: what a message becomes"));
        assert_eq!(
            wrong(json!({"topic": "t", "dataset": "d", "signal": "s"})),
            of("a message becomes one thing: expected `dataset` or `signal`, not both")
        );
        assert_eq!(wrong(json!({"topic": "t", "dataset": "d", "run": "r"})), of("expected `run` only beside `signal`"));
        assert_eq!(
            wrong(json!({"topic": "t", "signal": "s", "partition": "p"})),
            of("expected `partition` only beside `dataset`")
        );
        assert_eq!(
            wrong(json!({"topic": "t", "signal": "s", "run": "r"})),
            of("expected `run` only beside `workflow`")
        );
        assert_eq!(
            wrong(json!({"topic": "t", "signal": "s", "when": {"kind": 1}})),
            of("`when`: \"kind\" is no JSON pointer, expected such as \"/kind\"")
        );
        assert_eq!(
            wrong(json!({"topic": "t", "signal": "s", "rejectedTo": "t"})),
            of("`rejectedTo` is \"t\", expected the name of another topic")
        );
        assert!(
            wrong(json!({"topic": "a b", "signal": "s"}))
                .ends_with("expected a name of 1 to 249 letters, digits, \"-\", \"_\" and \".\"")
        );
        assert!(wrong(json!({"topic": "t", "signal": "s", "workflow": "a/b"})).contains("`workflow`: "));
        assert!(
            wrong(json!({"topic": "t", "signal": "s", "payload": {"a": "${x}"}})).contains("nothing is known as ${x}")
        );
    }
}
