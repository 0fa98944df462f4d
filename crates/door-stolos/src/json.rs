//! JSON whose values know their positions.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonc_parser::ast::{NumberLit, Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use kelos_model::json::{check_numbers, without_mark};
use kelos_model::nesting::{self, ValueError};
use kelos_sandbox::ProblemCode;
use kelos_sandbox::apps::{Mistake, Position};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// Reads the text of one file, and gathers what is wrong with it.
pub(super) struct JsonReader<'a> {
    text: &'a str,
    /// The offset of the first character of each line.
    lines: Vec<usize>,
    /// Whether a script wrote it, which can say more.
    pub(super) of_a_script: bool,
    pub(super) mistakes: Vec<Mistake>,
    /// Oddities that do no harm.
    pub(super) warnings: Vec<Mistake>,
    /// Oddities of how jobs are run, which don't matter for questions about them.
    pub(super) remarks: Vec<Mistake>,
    /// Mistakes that keep the jobs of the file from being run, but not from being asked about.
    pub(super) hindrances: Vec<Mistake>,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str) -> JsonReader<'a> {
        let text = without_mark(text);
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (mistakes, warnings, remarks, hindrances) = Default::default();
        JsonReader { text, lines, of_a_script: false, mistakes, warnings, remarks, hindrances }
    }

    /// The position where a part of the text begins.
    pub(super) fn place(&self, range: Range) -> Position {
        let start = range.start.min(self.text.len());
        let line = self.lines.partition_point(|begin| *begin <= start).max(1);
        let before = &self.text[self.lines.get(line - 1).copied().unwrap_or(0)..start];
        Position { line, column: before.chars().count() + 1 }
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
        if let Some(at) = self.text.find('\0') {
            let nul = self.found(
                Range { start: at, end: at + 1 },
                ProblemCode::SyntaxError,
                "not JSON: there is a NUL character",
            );
            self.mistakes.push(nul);
            return None;
        }
        // The parser has no limit of its own; of what is less deep, each app is checked.
        if let Err(ValueError::TooDeep(error)) = nesting::value(self.text.as_bytes())
            && error.levels > 2 * nesting::DEEPEST
        {
            let deep = self.found(Range { start: 0, end: 0 }, ProblemCode::SyntaxError, format!("the file is {error}"));
            self.mistakes.push(deep);
            return None;
        }
        match parse_to_ast(self.text, &CollectOptions::default(), &options) {
            Ok(result) => result.value,
            Err(error) => {
                let place = Position { line: error.line_display(), column: error.column_display() };
                let what = format!("not JSON: {}", error.kind().to_string().to_lowercase());
                self.mistakes.push(Mistake { place, code: ProblemCode::SyntaxError, what });
                None
            }
        }
    }

    fn found(&self, range: Range, code: ProblemCode, what: impl Into<String>) -> Mistake {
        Mistake { place: self.place(range), code, what: what.into() }
    }

    pub(super) fn mistake(&mut self, range: Range, what: impl Into<String>) {
        self.mistakes.push(self.found(range, ProblemCode::BadApp, what));
    }

    /// A mistake in the name of a key.
    pub(super) fn mistyped(&mut self, range: Range, what: impl Into<String>) {
        self.mistakes.push(self.found(range, ProblemCode::UnknownOption, what));
    }

    /// The mistakes and hindrances since there were so many of them.
    pub(super) fn since(&self, (mistakes, hindrances): (usize, usize)) -> Vec<Mistake> {
        let mistakes = self.mistakes.iter().skip(mistakes);
        mistakes.chain(self.hindrances.iter().skip(hindrances)).cloned().collect()
    }

    /// The numbers of mistakes and hindrances.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.mistakes.len(), self.hindrances.len())
    }

    pub(super) fn warn(&mut self, range: Range, what: impl Into<String>) {
        self.warnings.push(self.found(range, ProblemCode::UnknownOption, what));
    }

    pub(super) fn remark(&mut self, range: Range, what: impl Into<String>) {
        self.remarks.push(self.found(range, ProblemCode::NothingToRun, what));
    }

    pub(super) fn hinder(&mut self, range: Range, what: impl Into<String>) {
        self.hindrances.push(self.found(range, ProblemCode::BadApp, what));
    }

    /// The value as an object without duplicate names.
    pub(super) fn object<'v>(&mut self, value: &'v Value<'a>, what: &str) -> Option<&'v Object<'a>> {
        let Some(object) = value.as_object() else {
            self.mistake(value.range(), format!("{what} is {}, expected an object", kind(value)));
            return None;
        };
        let mut names = BTreeSet::new();
        for property in &object.properties {
            let name = property.name.as_str();
            if !names.insert(name) {
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
            if text.value.contains('\0') {
                self.mistake(
                    text.range,
                    format!("{what} has a NUL character, which no text can have that a program is given"),
                );
                return None;
            }
            return Some((&*text.value).into());
        }
        self.mistake(value.range(), format!("{what} is {}, expected a text", kind(value)));
        None
    }

    /// A whole number, at least `least`.
    pub(super) fn count(&mut self, value: &Value<'a>, what: &str, least: u32) -> Option<u32> {
        let number = value.as_number_lit().and_then(|number| number.value.parse::<u32>().ok());
        let number = number.filter(|number| *number >= least);
        if number.is_none() {
            self.mistake(value.range(), format!("{what} is {}, expected a whole number >= {least}", shown(value)));
        }
        number
    }

    /// A value that serde reads; an error has the position of its beginning.
    pub(super) fn data<T: DeserializeOwned>(&mut self, value: &Value<'a>, what: &str, such: &str) -> Option<T> {
        let read = serde_json::from_value(self.plain(value, what));
        read.map_err(|error| self.mistake(value.range(), format!("{what}: {error}; expected {such}"))).ok()
    }

    /// A value as plain data, in which no number may be rounded.
    pub(super) fn plain(&mut self, value: &Value<'a>, what: &str) -> Json {
        if let Some(number) = long_number(value) {
            let said =
                format!("{what} has the number {}, which does not fit into 64 bits: write it as a text", number.value);
            self.mistake(number.range, said);
        }
        plain(value)
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

/// The kind of a value, in words.
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

/// A value in words: numbers and texts as they are written.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::StringLit(text) => format!("\"{}\"", text.value),
        Value::NumberLit(number) => number.value.to_owned(),
        other => kind(other).to_owned(),
    }
}

/// A number within a value that would be rounded in plain data.
fn long_number<'v, 'a>(value: &'v Value<'a>) -> Option<&'v NumberLit<'a>> {
    match value {
        Value::NumberLit(number) => check_numbers(number.value.as_bytes()).is_err().then_some(number),
        Value::Object(object) => object.properties.iter().find_map(|one| long_number(&one.value)),
        Value::Array(array) => array.elements.iter().find_map(long_number),
        _ => None,
    }
}

/// A value as plain data.
pub(super) fn plain(value: &Value<'_>) -> Json {
    match value {
        Value::StringLit(text) => Json::String(text.value.to_string()),
        Value::NumberLit(number) => number.value.parse().map(Json::Number).unwrap_or_default(),
        Value::BooleanLit(one) => Json::Bool(one.value),
        Value::Object(object) => Json::Object(
            object.properties.iter().map(|one| (one.name.as_str().to_owned(), plain(&one.value))).collect(),
        ),
        Value::Array(array) => Json::Array(array.elements.iter().map(plain).collect()),
        Value::NullKeyword(_) => Json::Null,
    }
}
