//! Signatures of triggers and constraints, and a call of one that is being read: the signature with its arguments. Whether these come
//! from text or from JSON shows only in the forms of values.

use std::borrow::Cow;

use serde_json::Value;

use super::error::{FormError, Place};
use crate::facts::ENDS;
use crate::id::WorkflowId;
use crate::state::SlotState;
use crate::time::{Firing, Zone, parse_duration, parse_millis};
use crate::trigger::Trigger;

/// The name and the parameters of a kind of trigger, or of another noun that is written in this grammar.
#[derive(Debug)]
pub struct Signature<T: 'static = Trigger> {
    /// Its name in text.
    pub name: &'static str,
    /// Other names that are read as this one.
    pub aliases: &'static [&'static str],
    /// Its `type` in JSON.
    pub json: &'static str,
    /// The usage, for people: `partitions(DATASET, N)`.
    pub usage: &'static str,
    /// One of its kind, as it is printed.
    pub example: &'static str,
    /// The condition under which it is met, in words.
    pub meaning: &'static str,
    /// Its parameters, in the order of the text form.
    pub parameters: &'static [Parameter],
    /// The number of nested triggers that it takes, after its parameters.
    pub nests: Nests,
    pub(super) read: fn(&mut Call<'_, T>) -> Result<T, FormError>,
}

/// The number of nested triggers that a trigger takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nests {
    /// It is a leaf.
    Nothing,
    /// Exactly one.
    One,
    /// Any number.
    Any,
}

/// A parameter of a signature.
#[derive(Debug)]
pub struct Parameter {
    /// Its name: of its field in JSON, and before its value in text where that is [`Position::Named`].
    pub name: &'static str,
    /// Its type.
    pub of: ParameterType,
    /// Its position in text.
    pub position: Position,
    /// Whether it must be given.
    pub required: bool,
    /// Its meaning, in words.
    pub meaning: &'static str,
}

pub(super) const fn parameter(name: &'static str, of: ParameterType, meaning: &'static str) -> Parameter {
    Parameter { name, of, position: Position::InOrder, required: true, meaning }
}

pub(super) const fn optional(
    name: &'static str,
    of: ParameterType,
    position: Position,
    meaning: &'static str,
) -> Parameter {
    Parameter { name, of, position, required: false, meaning }
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// Any text.
    Text,
    /// The id of a workflow.
    Workflow,
    /// A cron expression of five fields as in a crontab, or six as in Quartz.
    Cron,
    /// The name of a time zone.
    Zone,
    /// A whole number from 0 to this.
    Number(u64),
    /// Seconds: a number in JSON, a length of time such as `15m` in text.
    Seconds,
    /// Milliseconds: a number in JSON, a length of time such as `15m` or `500ms` in text.
    Millis,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of [`ENDS`]: a list in JSON, the words that are left in text.
    Ends,
}

/// The position of a parameter in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// By itself, in order.
    InOrder,
    /// After this character, which ends the parameter before it: `@` before a zone.
    After(char),
    /// After its name: `base=hdfs://nn`.
    Named,
    /// After its name, too; in JSON it is a field of `conditions`.
    Condition,
}

impl<T> Signature<T> {
    /// The name of something that it takes by name.
    pub(super) fn by_name(&self, name: &str) -> Option<&'static Parameter> {
        let is_named = |one: &&Parameter| matches!(one.position, Position::Named | Position::Condition);
        self.parameters.iter().find(|one| is_named(one) && one.name == name)
    }

    /// Whether it is written by its name alone.
    pub(super) fn takes_nothing(&self) -> bool {
        self.parameters.is_empty() && self.nests == Nests::Nothing
    }

    /// The parameters that may follow one, each after a character of its own.
    pub(super) fn followers(&self, parameter: &Parameter) -> &'static [Parameter] {
        let next = self.parameters.iter().position(|one| one.name == parameter.name).map_or(0, |at| at + 1);
        let rest = self.parameters.get(next..).unwrap_or_default();
        let number = rest.iter().take_while(|one| matches!(one.position, Position::After(_))).count();
        rest.get(..number).unwrap_or_default()
    }

    /// The parameters that are given in order.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().filter(|one| one.position == Position::InOrder)
    }
}

/// An argument: a value that was given for a parameter.
pub(super) struct Argument<'a> {
    /// The name of its parameter.
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

/// A signature with its arguments.
pub(super) struct Call<'a, T: 'static> {
    pub(super) signature: &'static Signature<T>,
    pub(super) place: Place,
    pub(super) arguments: Vec<Argument<'a>>,
    pub(super) nested: Vec<T>,
    /// The zone of times that name none.
    pub(super) zone: &'a Zone,
}

impl<'a, T> Call<'a, T> {
    /// The trigger that is meant, or whatever else the signature is of.
    pub(super) fn read(mut self) -> Result<T, FormError> {
        (self.signature.read)(&mut self)
    }

    /// The nested triggers; they are taken out.
    pub(super) fn nested(&mut self) -> Vec<T> {
        std::mem::take(&mut self.nested)
    }

    /// The one nested trigger; it is taken out.
    pub(super) fn only(&mut self) -> Result<T, FormError> {
        let mut nested = self.nested();
        match (nested.len(), nested.pop()) {
            (1, Some(trigger)) => Ok(trigger),
            (number, _) => {
                let Signature { name, usage, .. } = self.signature;
                let problem = format!("`{name}` has {number} nested triggers, expected exactly one: {usage}");
                Err(FormError::new(self.place.clone(), problem))
            }
        }
    }

    /// A text that can't be left out.
    pub(super) fn text(&self, name: &'static str) -> Result<String, FormError> {
        let text = self.optional_text(name)?;
        self.required(name, text)
    }

    pub(super) fn optional_text(&self, name: &'static str) -> Result<Option<String>, FormError> {
        self.get(name).map(|given| given.text().map(str::to_owned)).transpose()
    }

    pub(super) fn workflow(&self, name: &'static str) -> Result<WorkflowId, FormError> {
        let given = self.required(name, self.get(name))?;
        WorkflowId::new(given.text()?).map_err(|error| given.wrong(error.to_string()))
    }

    /// A number, in the range of its type.
    pub(super) fn number<N: TryFrom<u64> + Integer>(&self, name: &'static str) -> Result<Option<N>, FormError> {
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
    pub(super) fn seconds(&self, name: &'static str) -> Result<i64, FormError> {
        let given = self.optional_seconds(name)?;
        self.required(name, given)
    }

    /// A length of time, in seconds.
    pub(super) fn optional_seconds(&self, name: &'static str) -> Result<Option<i64>, FormError> {
        let read = |given: &Argument<'_>| match &given.value {
            ArgumentValue::Word(word) => parse_duration(word).map_err(|error| given.wrong(error.to_string())),
            ArgumentValue::Json(value) => value.as_i64().ok_or_else(|| {
                given.wrong(format!("{given} is no length of time: expected a whole number of seconds"))
            }),
        };
        self.get(name).map(read).transpose()
    }

    /// A length of time that can't be left out, in milliseconds.
    pub(super) fn millis(&self, name: &'static str) -> Result<u64, FormError> {
        let given = self.required(name, self.get(name))?;
        match &given.value {
            ArgumentValue::Word(word) => parse_millis(word).map_err(|error| given.wrong(error.to_string())),
            ArgumentValue::Json(value) => value.as_u64().ok_or_else(|| {
                given.wrong(format!("{given} is no length of time: expected a whole number of milliseconds"))
            }),
        }
    }

    /// One of some words.
    pub(super) fn one_of(&self, name: &'static str, words: &[&'static str]) -> Result<Option<&'static str>, FormError> {
        let read = |given: &Argument<'_>| {
            let text = given.text()?;
            let word = words.iter().find(|word| **word == text).copied();
            word.ok_or_else(|| given.wrong(format!("{given} is unknown here: expected {}", words.join(" or "))))
        };
        self.get(name).map(read).transpose()
    }

    /// A zone; that of the whole where none is named.
    pub(super) fn zone(&self, name: &'static str) -> Result<Zone, FormError> {
        match self.get(name) {
            Some(given) => Zone::parse(given.text()?).map_err(|error| given.wrong(error.to_string())),
            None => Ok(self.zone.clone()),
        }
    }

    /// The ends of runs that are named, in order; none where none is.
    pub(super) fn ends(&self, name: &str) -> Result<Vec<SlotState>, FormError> {
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
    pub(super) fn firing(&self) -> Result<Firing, FormError> {
        let zone = self.zone("zone")?;
        let cron = self.required("cron", self.get("cron"))?;
        Firing::parse(cron.text()?, zone).map_err(|error| cron.wrong(error.to_string()))
    }

    /// Refuses that something was left out.
    pub(super) fn required<V>(&self, name: &str, given: Option<V>) -> Result<V, FormError> {
        let Signature { name: own, json, usage, .. } = self.signature;
        given.ok_or_else(|| match &self.place {
            Place::Field(_) => FormError::new(self.place.clone(), format!("`{json}` lacks `{name}`")),
            place => FormError::new(place.clone(), format!("`{own}` lacks its {name}: expected {usage}")),
        })
    }

    /// Refuses the whole, for what its arguments say together.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> FormError {
        FormError::new(self.place.clone(), problem)
    }

    fn get(&self, name: &str) -> Option<&Argument<'a>> {
        self.arguments.iter().find(|one| one.name == name)
    }
}

/// An integer type with a known largest number.
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
    fn text(&self) -> Result<&str, FormError> {
        let text: &str = match &self.value {
            ArgumentValue::Word(word) => word,
            ArgumentValue::Json(Value::String(text)) => text,
            ArgumentValue::Json(_) => return Err(self.wrong(format!("{self} is not a text: expected one in quotes"))),
        };
        match text.chars().find(|letter| letter.is_control()) {
            Some(control) => {
                Err(self.wrong(format!("{self} has the control character {control:?}: expected a text without any")))
            }
            None => Ok(text),
        }
    }

    fn wrong(&self, problem: impl Into<String>) -> FormError {
        FormError::new(self.place.clone(), problem)
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
