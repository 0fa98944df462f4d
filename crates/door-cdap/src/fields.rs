//! Reading of bodies. A mistake is named by its path, with what was expected there.

use kelos_front::fault::{Fault, plain};
use kelos_model::json;
use serde_json::{Map, Value};

/// How much of a value an error shows.
const LONGEST_SHOWN: usize = 80;

/// A value of a body, and its path.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    pub(super) value: &'a Value,
    at: String,
}

/// Reads a body that must be an object.
pub(super) fn object(body: &[u8]) -> Result<Value, Fault> {
    let value = json(body)?;
    if !value.is_object() {
        return Err(plain::bad_request(format!("the body is {}, expected a JSON object", shown(&value))));
    }
    Ok(value)
}

/// Reads a body.
pub(super) fn json(body: &[u8]) -> Result<Value, Fault> {
    json::read(body).map_err(|error| plain::bad_request(format!("the body is not JSON: {error}")))
}

/// A value in an error message, shortened if it is long.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > LONGEST_SHOWN {
        let end = (0..=LONGEST_SHOWN).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A whole number that is written with a fraction or an exponent, as some clients write each number: `8.64E7`.
fn whole(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..EXACT).contains(number))?;
    format!("{number:.0}").parse().ok()
}

impl<'a> Field<'a> {
    /// The body itself.
    pub(super) fn whole(value: &'a Value) -> Field<'a> {
        Field { value, at: String::new() }
    }

    /// Its path in the body, for errors.
    pub(super) fn at(&self) -> &str {
        if self.at.is_empty() { "the body" } else { &self.at }
    }

    /// The fault of this field, from what was expected.
    pub(super) fn wrong(&self, expected: &str) -> Fault {
        plain::bad_request(format!("{} is {}, expected {expected}", self.at(), shown(self.value)))
    }

    /// The fault of this field, from a text that says what is wrong and what was expected.
    pub(super) fn refused(&self, why: &impl std::fmt::Display) -> Fault {
        plain::bad_request(format!("{}: {why}", self.at()))
    }

    fn path_to(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    fn map(&self) -> Result<&'a Map<String, Value>, Fault> {
        self.value.as_object().ok_or_else(|| self.wrong("an object"))
    }

    /// A field of it; null is the same as nothing.
    pub(super) fn get(&self, name: &str) -> Result<Option<Field<'a>>, Fault> {
        let found = self.map()?.get(name).filter(|value| !value.is_null());
        Ok(found.map(|value| Field { value, at: self.path_to(name) }))
    }

    /// A field that must be there.
    pub(super) fn need(&self, name: &str, expected: &str) -> Result<Field<'a>, Fault> {
        let missing = || plain::bad_request(format!("{} is missing, expected {expected}", self.path_to(name)));
        self.get(name)?.ok_or_else(missing)
    }

    /// Its fields, in order.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Field<'a>)>, Fault> {
        let field = |(name, value): (&'a String, &'a Value)| (&**name, Field { value, at: self.path_to(name) });
        Ok(self.map()?.iter().map(field).collect())
    }

    /// Its elements, in order.
    pub(super) fn elements(&self) -> Result<Vec<Field<'a>>, Fault> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let element = |(n, value): (usize, &'a Value)| Field { value, at: format!("{}[{n}]", self.at) };
        Ok(list.iter().enumerate().map(element).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, Fault> {
        self.value.as_str().ok_or_else(|| self.wrong("a text"))
    }

    /// A text that is not empty.
    pub(super) fn name(&self) -> Result<&'a str, Fault> {
        let text = self.text()?;
        if text.trim().is_empty() { Err(self.wrong("a name")) } else { Ok(text) }
    }

    /// A text; numbers and truth values count as theirs.
    pub(super) fn argument(&self) -> Result<String, Fault> {
        match self.value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(self.value.to_string()),
            _ => Err(self.wrong("a text, a number, true or false")),
        }
    }

    /// Checks that an object has no fields but these: an unknown field would be ignored against the client's intention.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Fault> {
        let stray = self.map()?.iter().find(|(name, value)| !value.is_null() && !known.contains(&name.as_str()));
        match stray {
            Some((name, _)) => {
                let expected = known.join(", ");
                Err(plain::bad_request(format!("{} is unknown, expected {expected}", self.path_to(name))))
            }
            None => Ok(()),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A whole number within bounds, both inclusive.
    pub(super) fn number(&self, least: u64, most: u64) -> Result<u64, Fault> {
        let number = self.value.as_u64().or_else(|| whole(self.value)).filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            let not_a_text = if self.value.is_string() { ", not a text" } else { "" };
            self.wrong(&format!("a whole number from {least} to {most}{not_a_text}"))
        })
    }

    /// A count from 1.
    pub(super) fn count(&self) -> Result<u32, Fault> {
        let number = self.number(1, i32::MAX.unsigned_abs().into())?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// A span of milliseconds from 1.
    pub(super) fn millis(&self) -> Result<u64, Fault> {
        self.number(1, i64::MAX.unsigned_abs())
    }
}
