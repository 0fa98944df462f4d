//! JSON whose every value knows where it stands.

use std::fmt;
use std::sync::Arc;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// Where something stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What, and what was expected.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place.line, self.place.column, self.what)
    }
}

/// Reads the text of one file, and gathers what is wrong with it.
pub(super) struct Reading<'a> {
    text: &'a str,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(text: &'a str) -> Reading<'a> {
        Reading { text, mistakes: Vec::new() }
    }

    pub(super) fn source(&self) -> &'a str {
        self.text
    }

    /// The value that the whole text is. Commas may be missing and comments are passed over, for the examples that people copy
    /// are written so.
    pub(super) fn root(&mut self) -> Option<Value<'a>> {
        let options = ParseOptions {
            allow_loose_object_property_names: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
            ..ParseOptions::default()
        };
        match parse_to_ast(self.text, &CollectOptions::default(), &options) {
            Ok(result) => result.value,
            Err(error) => {
                let place = Place { line: error.line_display(), column: error.column_display() };
                let what = format!("not JSON: {}", error.kind().to_string().to_lowercase());
                self.mistakes.push(Mistake { place, what });
                None
            }
        }
    }

    pub(super) fn mistake(&mut self, range: Range, what: impl Into<String>) {
        let before = &self.text[..range.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        self.mistakes.push(Mistake { place: Place { line, column }, what: what.into() });
    }

    /// The value as an object, each of whose names stands once.
    pub(super) fn object<'v>(&mut self, value: &'v Value<'a>, what: &str) -> Option<&'v Object<'a>> {
        let Some(object) = value.as_object() else {
            self.mistake(value.range(), format!("{what} is {}, expected an object", kind(value)));
            return None;
        };
        for (at, property) in object.properties.iter().enumerate() {
            let name = property.name.as_str();
            if object.properties[..at].iter().any(|before| before.name.as_str() == name) {
                self.mistake(property.range, format!("{what} has \"{name}\" twice"));
            }
        }
        Some(object)
    }

    /// A text, or a number as it is written.
    pub(super) fn scalar(&mut self, value: &Value<'a>, what: &str) -> Option<Arc<str>> {
        match value {
            Value::StringLit(text) => Some((&*text.value).into()),
            Value::NumberLit(number) => Some(number.value.into()),
            other => {
                self.mistake(other.range(), format!("{what} is {}, expected a text or a number", kind(other)));
                None
            }
        }
    }

    pub(super) fn text(&mut self, value: &Value<'a>, what: &str) -> Option<Arc<str>> {
        if let Value::StringLit(text) = value {
            return Some((&*text.value).into());
        }
        self.mistake(value.range(), format!("{what} is {}, expected a text", kind(value)));
        None
    }

    /// A list of texts and numbers.
    pub(super) fn list(&mut self, value: &Value<'a>, what: &str) -> Option<Vec<Arc<str>>> {
        let Some(array) = value.as_array() else {
            self.mistake(value.range(), format!("{what} is {}, expected a list", kind(value)));
            return None;
        };
        array.elements.iter().map(|element| self.scalar(element, &format!("a value of {what}"))).collect()
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a text",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}
