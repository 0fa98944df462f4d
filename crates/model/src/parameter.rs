//! Parameters: the arguments that a workflow expects, each with a kind, and a value where nobody gives one.
//!
//! A text is read by the kind of its parameter, so that `n=3` of a command line and `3` of a JSON body are the same number. What was read
//! reads as itself: a stored argument may be read as often as one likes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::id::is_invisible;
use crate::json::{self, JsonError};
use crate::similar::mistyped;
use crate::template::{KeyValues, is_part_of_time, plain_placeholders};
use crate::time::text::{format_full, parse_instant};
use crate::time::{TypedTime, Zone, parse_typed};

/// Named values that a run is given in addition to its key.
pub type Arguments = BTreeMap<String, Value>;

/// The longest name of a parameter, in bytes.
pub const LONGEST_NAME: usize = 100;

/// The most characters of a value that a message shows.
const SHOWN: usize = 60;

/// An argument that a workflow expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Its name, which is that of the argument.
    pub name: String,
    /// The kind of its values.
    #[serde(flatten)]
    pub kind: ParameterKind,
    /// The value where nobody gives one; without it, somebody must. A text may have placeholders of the slot's key, such as
    /// `${year}-${month}-${day}`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub default: Option<Value>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// The kind of a parameter's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ParameterKind {
    /// A text.
    Text,
    /// A whole number of at most 64 bits.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A day: `2026-11-21`.
    Date,
    /// A moment: `2026-11-21T06:00:00.000Z`.
    Time,
    /// One text of a list.
    Choice {
        /// The list.
        choices: Vec<String>,
    },
    /// Any JSON.
    Json,
}

/// A field that is there is a value, be it null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ParameterKind {
    /// The names of the kinds, as definitions write them.
    pub const NAMES: [&'static str; 8] = ["text", "integer", "number", "boolean", "date", "time", "choice", "json"];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ParameterKind::Text => "text",
            ParameterKind::Integer => "integer",
            ParameterKind::Number => "number",
            ParameterKind::Boolean => "boolean",
            ParameterKind::Date => "date",
            ParameterKind::Time => "time",
            ParameterKind::Choice { .. } => "choice",
            ParameterKind::Json => "json",
        }
    }

    /// The kind that a plain value is of.
    #[must_use]
    pub fn of(value: &Value) -> ParameterKind {
        match value {
            Value::String(_) => ParameterKind::Text,
            Value::Number(number) if is_whole(number) => ParameterKind::Integer,
            Value::Number(_) => ParameterKind::Number,
            Value::Bool(_) => ParameterKind::Boolean,
            Value::Null | Value::Array(_) | Value::Object(_) => ParameterKind::Json,
        }
    }

    /// The value as one of this kind in its normal form; none where it is not of this kind. A text is read.
    #[must_use]
    pub fn accept(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (ParameterKind::Text, Value::String(_)) => Some(value.clone()),
            (ParameterKind::Integer, Value::Number(number)) => whole(number),
            (ParameterKind::Integer, Value::String(text)) => integer(text),
            (ParameterKind::Number, Value::Number(_)) | (ParameterKind::Boolean, Value::Bool(_)) => Some(value.clone()),
            (ParameterKind::Number, Value::String(text)) => json::read(text.as_bytes()).ok().map(Value::Number),
            (ParameterKind::Boolean, Value::String(text)) => text.parse().ok().map(Value::Bool),
            (ParameterKind::Date, Value::String(text)) => date(text).map(|date| date.to_string().into()),
            (ParameterKind::Time, Value::String(text)) => moment(text).map(|at| format_full(at).into()),
            (ParameterKind::Choice { choices }, Value::String(text)) => choices.contains(text).then(|| value.clone()),
            (ParameterKind::Json, Value::String(text)) => json_of(text),
            (ParameterKind::Json, value) => Some(value.clone()),
            _ => None,
        }
    }
}

/// Writes what is expected of a value: `a date such as 2026-11-21`.
impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterKind::Text => f.write_str("a text"),
            ParameterKind::Integer => f.write_str("a whole number such as 3"),
            ParameterKind::Number => f.write_str("a number such as 2.5"),
            ParameterKind::Boolean => f.write_str("true or false"),
            ParameterKind::Date => f.write_str("a date such as 2026-11-21"),
            ParameterKind::Time => f.write_str("a time such as 2026-11-21T06:00Z"),
            ParameterKind::Choice { choices } => f.write_str(&listed(choices.iter().map(String::as_str))),
            ParameterKind::Json => f.write_str("JSON"),
        }
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64()
}

/// The largest whole number up to which each has a float of its own: beyond it, one that is read may stand for others.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as a whole one, however it is written: `3`, `3.0`, `1e3`. None where it has a fraction, or may have been rounded.
fn whole(number: &Number) -> Option<Value> {
    if is_whole(number) {
        return Some(Value::Number(number.clone()));
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < MOST_EXACT)?;
    Some(Value::from(float as i64))
}

fn integer(text: &str) -> Option<Value> {
    let plain = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok();
    plain.or_else(|| whole(&json::read(text.as_bytes()).ok()?))
}

/// Reads a moment, in UTC or with an offset from it. Without a date it would be another moment each day.
fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(at) = parse_instant(text) {
        return Some(at);
    }
    let has_date = text.split_once(['T', 't', ' ']).is_some_and(|(date, _)| date.parse::<Date>().is_ok());
    match parse_typed(text, Timestamp::UNIX_EPOCH, &Zone::utc()) {
        Ok(TypedTime::Absolute(at)) if has_date => Some(at),
        _ => None,
    }
}

/// Reads a day. A longer text that begins with one is a time.
fn date(text: &str) -> Option<Date> {
    text.parse::<Date>().ok().filter(|date| date.to_string() == text)
}

/// Reads JSON of a text. What is written as anything but a text is that; any other text stays as it is, so that it reads as itself.
/// Returns none if a number would be rounded, or if it is nested too deeply.
fn json_of(text: &str) -> Option<Value> {
    match json::read(text.as_bytes()) {
        Ok(Value::String(_)) | Err(JsonError::Json(_) | JsonError::Utf16) => Some(text.into()),
        Ok(value) => Some(value),
        Err(JsonError::Number(_) | JsonError::TooDeep(_)) => None,
    }
}

/// `a, b or c`.
fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    match (names.pop(), names.is_empty()) {
        (None, _) => "nothing".to_owned(),
        (Some(only), true) => only.to_owned(),
        (Some(last), false) => format!("{} or {last}", names.join(", ")),
    }
}

/// A value in a message, cut where it is long.
pub(crate) fn shown(value: &Value) -> String {
    let json = value.to_string();
    match json.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", json.get(..end).unwrap_or_default()),
        None => json,
    }
}

impl Parameter {
    /// A parameter that somebody must give.
    #[must_use]
    pub fn new(name: &str, kind: ParameterKind) -> Parameter {
        Parameter { name: name.to_owned(), kind, default: None, about: None }
    }

    /// A parameter with a default, from which its kind follows.
    #[must_use]
    pub fn plain(name: &str, default: Value) -> Parameter {
        Parameter { default: Some(default.clone()), ..Parameter::new(name, ParameterKind::of(&default)) }
    }

    /// The same of another kind.
    #[must_use]
    pub fn kind(self, kind: ParameterKind) -> Parameter {
        Parameter { kind, ..self }
    }

    /// The same with a description for people.
    #[must_use]
    pub fn about(self, words: &str) -> Parameter {
        Parameter { about: Some(words.to_owned()), ..self }
    }

    /// The argument in the normal form of its kind. A text is read by the kind.
    ///
    /// # Errors
    /// In words, when it is not of the kind.
    pub fn accept(&self, value: &Value) -> Result<Value, String> {
        self.kind.accept(value).ok_or_else(|| format!("{} is {}, expected {}", self.name, shown(value), self.kind))
    }

    /// The default for a slot, with the placeholders of its key filled in. None where it is made of a time that the slot does not have.
    pub(crate) fn default_at(&self, values: &KeyValues) -> Option<Value> {
        match self.default.as_ref()? {
            Value::String(template) => {
                let is_missing = |name: &str| is_part_of_time(name) && !values.has(name);
                let has_all = !plain_placeholders(template).any(is_missing);
                has_all.then(|| values.fill(template).into_owned().into())
            }
            other => Some(other.clone()),
        }
    }

    /// Whether its default depends on the slot.
    pub(crate) fn has_template(&self) -> bool {
        self.default.as_ref().and_then(Value::as_str).is_some_and(|text| text.contains("${"))
    }

    /// Its mistakes by itself, in words.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let is_sound = |c: char| !is_invisible(c) && !c.is_whitespace() && !matches!(c, '=' | '$' | '{' | '}');
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.chars().all(is_sound) {
            let name = self.name.escape_debug();
            found.push(format!(
                "\"{name}\" is no name of a parameter, expected at most {LONGEST_NAME} letters without spaces, =, $ and braces"
            ));
        }
        if let ParameterKind::Choice { choices } = &self.kind {
            let different: BTreeSet<&String> = choices.iter().collect();
            if different.is_empty() || different.len() < choices.len() {
                found.push(format!("the choices of {} are expected to be different texts, at least one", self.name));
            }
        }
        if let Some(default) = self.default.as_ref().filter(|_| !self.has_template())
            && self.kind.accept(default).is_none()
        {
            found.push(format!("the default of {} is {}, expected {}", self.name, shown(default), self.kind));
        }
        found
    }
}

/// The arguments that somebody gives, in the normal forms of their kinds. Where no parameters are declared, any are taken as they are.
///
/// # Errors
/// All mistakes, in words: names that no parameter has, and values of other kinds.
pub fn accept(parameters: &[Parameter], given: &Arguments) -> Result<Arguments, Vec<String>> {
    if parameters.is_empty() {
        return Ok(given.clone());
    }
    let (mut all, mut mistakes) = (Arguments::new(), strangers(parameters, given));
    for parameter in parameters {
        match given.get(&parameter.name).map(|value| parameter.accept(value)) {
            Some(Ok(value)) => drop(all.insert(parameter.name.clone(), value)),
            Some(Err(mistake)) => mistakes.push(mistake),
            None => {}
        }
    }
    if mistakes.is_empty() { Ok(all) } else { Err(mistakes) }
}

/// The messages about arguments that are none of the parameters, where any are declared.
#[must_use]
pub fn strangers(parameters: &[Parameter], given: &Arguments) -> Vec<String> {
    let is_stranger = |name: &&String| !parameters.is_empty() && parameters.iter().all(|one| one.name != **name);
    given.keys().filter(is_stranger).map(|name| unknown(parameters, name)).collect()
}

/// The message about an argument that no parameter is named as.
fn unknown(parameters: &[Parameter], name: &str) -> String {
    let names = || parameters.iter().map(|one| one.name.as_str());
    let expected = mistyped(name, names()).map_or_else(|| listed(names()), str::to_owned);
    format!("\"{}\" is no parameter, expected {expected}", name.escape_debug())
}

/// Completes the arguments of a slot by defaults, and brings all into the normal forms of their kinds. Those that are no parameters stay.
/// Returns the mistakes, too: what is required and missing, and values of other kinds, which stay as they are. `source` says where a value
/// comes from that no person gave.
#[must_use]
pub fn complete(
    parameters: &[Parameter],
    mut all: Arguments,
    values: &KeyValues,
    source: impl Fn(&str) -> Option<String>,
) -> (Arguments, Vec<String>) {
    let mut mistakes = Vec::new();
    for parameter in parameters {
        let Some(value) = all.get(&parameter.name).cloned().or_else(|| parameter.default_at(values)) else {
            mistakes.push(format!("{} is missing, expected {}", parameter.name, parameter.kind));
            continue;
        };
        let value = parameter.accept(&value).unwrap_or_else(|mistake| {
            let source = source(&parameter.name).map(|source| format!(" ({source})")).unwrap_or_default();
            mistakes.push(mistake + &source);
            value
        });
        all.insert(parameter.name.clone(), value);
    }
    (all, mistakes)
}

/// Parameters as definitions write them: an object from each name to a default, or to an object with a `type`.
///
/// `{"day": {"type": "date", "default": "${year}-${month}-${day}"}, "rows": 1000}`
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Value")]
pub struct Parameters(pub Vec<Parameter>);

/// The fields of a parameter in a definition.
const FIELDS: [&str; 4] = ["type", "default", "choices", "about"];

impl TryFrom<Value> for Parameters {
    type Error = String;

    fn try_from(written: Value) -> Result<Parameters, String> {
        let Value::Object(written) = written else {
            return Err(format!(
                "parameters are {}, expected an object such as {{\"day\": {{\"type\": \"date\"}}, \"rows\": 1000}}",
                shown(&written)
            ));
        };
        written.into_iter().map(|(name, value)| declared(&name, value)).collect::<Result<_, _>>().map(Parameters)
    }
}

/// Reads one parameter of a definition.
fn declared(name: &str, written: Value) -> Result<Parameter, String> {
    let Value::Object(mut fields) = written else { return Ok(Parameter::plain(name, written)) };
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(format!("{name} has {unknown:?}, expected {} in it", listed(FIELDS)));
    }
    let kind = fields.get("type").cloned().unwrap_or_default();
    if !kind.as_str().is_some_and(|kind| ParameterKind::NAMES.contains(&kind)) {
        return Err(format!("the type of {name} is {}, expected {}", shown(&kind), listed(ParameterKind::NAMES)));
    }
    if fields.contains_key("choices") != (kind == "choice") {
        return Err(format!(
            "{name} is a {}, expected a list of choices for a choice alone",
            kind.as_str().unwrap_or("?")
        ));
    }
    fields.insert("name".to_owned(), name.into());
    serde_json::from_value(Value::Object(fields)).map_err(|error| format!("{name}: {error}"))
}

/// The names of those that somebody must give.
pub fn required(parameters: &[Parameter]) -> impl Iterator<Item = &str> {
    parameters.iter().filter(|one| one.default.is_none()).map(|one| one.name.as_str())
}
