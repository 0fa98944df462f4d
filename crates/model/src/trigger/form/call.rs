//! A trigger that is being read: its signature, which says what it takes, and what it was given. Where that comes from, text or
//! JSON, shows only in the forms of values.

use std::borrow::Cow;

use serde_json::Value;

use super::error::{Place, TriggerError};
use crate::facts::ENDS;
use crate::id::WorkflowId;
use crate::state::SlotState;
use crate::time::{Firing, Zone, parse_duration};
use crate::trigger::Trigger;

/// What a kind of trigger is called, and what it takes.
#[derive(Debug)]
pub struct Signature {
    /// Its name in text.
    pub name: &'static str,
    /// Other names that are read as this one.
    pub aliases: &'static [&'static str],
    /// Its `type` in JSON.
    pub json: &'static str,
    /// How it is written, for people: `partitions(DATASET, N)`.
    pub usage: &'static str,
    /// One of its kind, as it is printed.
    pub example: &'static str,
    /// When it is met, in words.
    pub meaning: &'static str,
    /// What it takes, in the order of the text form.
    pub parameters: &'static [Parameter],
    /// The triggers that it takes, after its parameters.
    pub nests: Nests,
    pub(super) read: fn(&mut Call<'_>) -> Result<Trigger, TriggerError>,
}

/// How many triggers one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nests {
    /// It is a leaf.
    Nothing,
    /// Exactly one.
    One,
    /// Any number.
    Any,
}

/// Something that a trigger takes.
#[derive(Debug)]
pub struct Parameter {
    /// Its name: of its field in JSON, and before its value in text where that is [`Position::Named`].
    pub name: &'static str,
    /// What it is.
    pub of: ParameterType,
    /// Where it stands in text.
    pub position: Position,
    /// Whether it can't be left out.
    pub required: bool,
    /// What it says, in words.
    pub meaning: &'static str,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// Any text.
    Text,
    /// The id of a workflow.
    Workflow,
    /// A cron expression of five fields, or six with the second first.
    Cron,
    /// The name of a time zone.
    Zone,
    /// A whole number from 0 to this.
    Number(u64),
    /// Seconds: a number in JSON, a length of time such as `15m` in text.
    Seconds,
    /// Some of [`ENDS`]: a list in JSON, the words that are left in text.
    Ends,
}

/// Where a parameter stands in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// By itself, in order.
    InOrder,
    /// After an `@`.
    AfterAt,
    /// After its name: `base=hdfs://nn`.
    Named,
    /// After its name, too; in JSON it is a field of `conditions`.
    Condition,
}

impl Signature {
    /// The name of something that it takes by name.
    pub(super) fn by_name(&self, name: &str) -> Option<&'static Parameter> {
        let is_named = |one: &&Parameter| matches!(one.position, Position::Named | Position::Condition);
        self.parameters.iter().find(|one| is_named(one) && one.name == name)
    }

    /// Whether it is written by its name alone.
    pub(super) fn takes_nothing(&self) -> bool {
        self.parameters.is_empty() && self.nests == Nests::Nothing
    }

    /// Whether it takes a cron expression.
    pub(super) fn takes_cron(&self) -> bool {
        self.parameters.iter().any(|one| one.of == ParameterType::Cron)
    }

    /// What it takes in order.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().filter(|one| one.position == Position::InOrder)
    }
}

/// What was given for a parameter.
pub(super) struct Argument<'a> {
    /// Of its parameter.
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) value: ArgumentValue<'a>,
}

/// The value of an argument.
pub(super) enum ArgumentValue<'a> {
    /// A word of a text.
    Word(Cow<'a, str>),
    /// A value of JSON.
    Json(&'a Value),
}

/// A signature, and what it was given.
pub(super) struct Call<'a> {
    pub(super) signature: &'static Signature,
    pub(super) place: Place,
    pub(super) arguments: Vec<Argument<'a>>,
    pub(super) nested: Vec<Trigger>,
    /// The zone of times that name none.
    pub(super) zone: &'a Zone,
}

impl<'a> Call<'a> {
    /// The trigger that is meant.
    pub(super) fn read(mut self) -> Result<Trigger, TriggerError> {
        (self.signature.read)(&mut self)
    }

    /// The nested triggers; they are taken out.
    pub(super) fn nested(&mut self) -> Vec<Trigger> {
        std::mem::take(&mut self.nested)
    }

    /// The one nested trigger; it is taken out.
    pub(super) fn only(&mut self) -> Result<Trigger, TriggerError> {
        let mut nested = self.nested();
        match (nested.len(), nested.pop()) {
            (1, Some(trigger)) => Ok(trigger),
            (number, _) => {
                let Signature { name, usage, .. } = self.signature;
                let problem = format!("`{name}` has {number} nested triggers, expected exactly one: {usage}");
                Err(TriggerError::new(self.place.clone(), problem))
            }
        }
    }

    /// A text that can't be left out.
    pub(super) fn text(&self, name: &'static str) -> Result<String, TriggerError> {
        let text = self.optional_text(name)?;
        self.required(name, text)
    }

    pub(super) fn optional_text(&self, name: &'static str) -> Result<Option<String>, TriggerError> {
        self.get(name).map(|given| given.text().map(str::to_owned)).transpose()
    }

    pub(super) fn workflow(&self, name: &'static str) -> Result<WorkflowId, TriggerError> {
        let given = self.required(name, self.get(name))?;
        WorkflowId::new(given.text()?).map_err(|error| given.wrong(error.to_string()))
    }

    /// A number, in the range of its type.
    pub(super) fn number<N: TryFrom<u64> + Integer>(&self, name: &'static str) -> Result<Option<N>, TriggerError> {
        let read = |given: &Argument<'_>| {
            let number = match &given.value {
                ArgumentValue::Word(word) => word.parse().ok(),
                ArgumentValue::Json(value) => value.as_u64(),
            };
            let number = number.and_then(|number| N::try_from(number).ok());
            number.ok_or_else(|| {
                given.wrong(format!("{given} is no such number: expected a whole number from 0 to {}", N::LARGEST))
            })
        };
        self.get(name).map(read).transpose()
    }

    /// A length of time that can't be left out, in seconds.
    pub(super) fn seconds(&self, name: &'static str) -> Result<i64, TriggerError> {
        let given = self.required(name, self.get(name))?;
        match &given.value {
            ArgumentValue::Word(word) => parse_duration(word).map_err(|error| given.wrong(error.to_string())),
            ArgumentValue::Json(value) => value.as_i64().ok_or_else(|| {
                given.wrong(format!("{given} is no length of time: expected a whole number of seconds"))
            }),
        }
    }

    /// The ends of runs that are named, in order; none where none is.
    pub(super) fn ends(&self, name: &str) -> Result<Vec<SlotState>, TriggerError> {
        let mut ends = Vec::new();
        for given in self.arguments.iter().filter(|one| one.name == name) {
            // Several in one word: `succeeded+failed`.
            for word in given.text()?.split('+') {
                let end = parse_end(word.trim()).map_err(|error| given.wrong(error))?;
                ends.push(end);
            }
        }
        Ok(ends)
    }

    /// A cron expression in its zone.
    pub(super) fn firing(&self) -> Result<Firing, TriggerError> {
        let zone = match self.get("zone") {
            Some(given) => Zone::parse(given.text()?).map_err(|error| given.wrong(error.to_string()))?,
            None => self.zone.clone(),
        };
        let cron = self.required("cron", self.get("cron"))?;
        Firing::parse(cron.text()?, zone).map_err(|error| cron.wrong(error.to_string()))
    }

    /// Refuses that something was left out.
    pub(super) fn required<T>(&self, name: &str, given: Option<T>) -> Result<T, TriggerError> {
        let Signature { name: own, json, usage, .. } = self.signature;
        given.ok_or_else(|| match &self.place {
            Place::Field(_) => TriggerError::new(self.place.clone(), format!("`{json}` lacks `{name}`")),
            place => TriggerError::new(place.clone(), format!("`{own}` lacks its {name}: expected {usage}")),
        })
    }

    fn get(&self, name: &str) -> Option<&Argument<'a>> {
        self.arguments.iter().find(|one| one.name == name)
    }
}

/// The largest number of a type.
pub(super) trait Integer {
    const LARGEST: u64;
}

impl Integer for u32 {
    const LARGEST: u64 = u32::MAX as u64;
}

impl Integer for u64 {
    const LARGEST: u64 = u64::MAX;
}

impl Argument<'_> {
    fn text(&self) -> Result<&str, TriggerError> {
        match &self.value {
            ArgumentValue::Word(word) => Ok(word),
            ArgumentValue::Json(Value::String(text)) => Ok(text),
            ArgumentValue::Json(_) => Err(self.wrong(format!("{self} is not a text: expected one in quotes"))),
        }
    }

    fn wrong(&self, problem: impl Into<String>) -> TriggerError {
        TriggerError::new(self.place.clone(), problem)
    }
}

/// As it was given, cut short where it is long.
impl std::fmt::Display for Argument<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const LONGEST: usize = 60;
        let text = match &self.value {
            ArgumentValue::Word(word) => format!("{word:?}"),
            ArgumentValue::Json(value) => value.to_string(),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => write!(f, "{}...", text.get(..end).unwrap_or_default()),
            None => f.write_str(&text),
        }
    }
}

/// Reads how a run ends, also in the words of CDAP.
pub fn parse_end(word: &str) -> Result<SlotState, String> {
    let lower = word.to_ascii_lowercase();
    let name = if lower == "completed" { "succeeded" } else { lower.as_str() };
    let end = ENDS.into_iter().find(|end| end.as_str() == name);
    end.ok_or_else(|| format!("{word:?} is not how a run ends: expected succeeded, failed or killed"))
}
