//! JSON as users and their programs write it: a byte order mark before it, and numbers of any length.
//!
//! Numbers are kept in 64 bits, as a whole number or as a double. A whole number that is longer would be rounded without a word, so it is
//! refused wherever JSON comes in. An identifier of that length is written as a text.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::nesting::{self, TooDeep, ValueError};

/// The mark with which some editors and programs begin a text in UTF-8.
pub const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The marks of texts in UTF-16, of both byte orders.
pub const MARKS_OF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// The most digits that a double keeps of any number.
const DIGITS_OF_DOUBLE: usize = 17;

/// The first number that is too large for 64 bits.
const BEYOND_64_BITS: f64 = 18_446_744_073_709_551_616.0;

/// The first one that is too large for 63 bits and a sign.
const BEYOND_63_BITS: f64 = 9_223_372_036_854_775_808.0;

/// A number that would be rounded, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the number at line {line} column {column} does not fit into 64 bits: write it as a text, in quotes")]
pub struct LongNumber {
    /// Its line, from 1.
    pub line: usize,
    /// Its first byte in that line, from 1.
    pub column: usize,
}

/// The reason for which a text is not taken as JSON.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// A number would be rounded.
    #[error(transparent)]
    Number(#[from] LongNumber),
    /// It is in another encoding.
    #[error("it begins with the byte order mark of UTF-16, expected UTF-8")]
    Utf16,
    /// It is nested too deeply.
    #[error("it is {0}")]
    TooDeep(#[from] TooDeep),
    /// It is no JSON, or not of the expected form.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl From<ValueError> for JsonError {
    fn from(error: ValueError) -> JsonError {
        match error {
            ValueError::TooDeep(error) => JsonError::TooDeep(error),
            ValueError::Json(error) => JsonError::Json(error),
        }
    }
}

/// Reads a value that a user or a program of theirs has written.
///
/// # Errors
/// If it is not JSON, has a number that would be rounded, or more than [`DEEPEST`](nesting::DEEPEST) levels.
pub fn value(json: &[u8]) -> Result<Value, JsonError> {
    Ok(nesting::value(checked(json)?)?)
}

/// Reads JSON that has such values somewhere inside, whose depth is checked where it is known.
///
/// # Errors
/// If it is not such JSON, has a number that would be rounded, or far too many levels.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, JsonError> {
    Ok(nesting::read(checked(json)?)?)
}

/// The same JSON without a byte order mark, for a reader that reads it any further.
///
/// # Errors
/// If it has a number that would be rounded, or is in another encoding.
pub fn checked(json: &[u8]) -> Result<&[u8], JsonError> {
    let json = without_marks(json)?;
    check_numbers(json)?;
    Ok(json)
}

fn without_marks(json: &[u8]) -> Result<&[u8], JsonError> {
    if MARKS_OF_16.iter().any(|mark| json.starts_with(mark)) {
        return Err(JsonError::Utf16);
    }
    Ok(json.strip_prefix(MARK).unwrap_or(json))
}

/// JSON of others, such as the answer of a service, of which parts are taken: only they have to be exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    value: Value,
    /// The first number that was rounded.
    rounded: Option<LongNumber>,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn read(json: &[u8]) -> Result<Document, JsonError> {
        let json = without_marks(json)?;
        Ok(Document { value: nesting::read(json)?, rounded: check_numbers(json).err() })
    }

    /// All of it, to be compared. Numbers in it may be rounded.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The part at a JSON pointer, to be kept.
    ///
    /// # Errors
    /// If it has a number that was rounded.
    pub fn part(&self, pointer: &str) -> Result<Option<&Value>, LongNumber> {
        let part = self.value.pointer(pointer);
        match (self.rounded, part) {
            (Some(number), Some(part)) if may_be_rounded(part) => Err(number),
            (_, part) => Ok(part),
        }
    }
}

/// Whether a value has a number of the size of those that are rounded.
fn may_be_rounded(value: &Value) -> bool {
    let mut unseen = vec![value];
    while let Some(value) = unseen.pop() {
        match value {
            Value::Number(number)
                if number.is_f64() && number.as_f64().is_some_and(|value| value.abs() >= BEYOND_63_BITS) =>
            {
                return true;
            }
            Value::Array(items) => unseen.extend(items),
            Value::Object(fields) => unseen.extend(fields.values()),
            _ => {}
        }
    }
    false
}

/// A text without the byte order mark that it may begin with.
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Checks that no number of a text of JSON would be rounded. Of a text that is not JSON it says something or nothing.
///
/// # Errors
/// The first number that would be.
pub fn check_numbers(json: &[u8]) -> Result<(), LongNumber> {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at = match byte {
            b'"' => beyond_text(json, at),
            b'-' | b'0'..=b'9' => {
                let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let end =
                    json[at..].iter().position(|byte| !is_of_number(byte)).map_or(json.len(), |length| at + length);
                if !fits(&json[at..end]) {
                    return Err(place_of(json, at));
                }
                end
            }
            _ => at + 1,
        };
    }
    Ok(())
}

/// The end of a text in quotes that begins here.
fn beyond_text(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Whether a number keeps its value in 64 bits. Decimals are rounded as doubles are, while they are smaller than a whole number may be.
fn fits(number: &[u8]) -> bool {
    let Ok(number) = std::str::from_utf8(number) else { return true };
    if !number.contains(['.', 'e', 'E']) {
        // Anything else is not a number, and the reader of JSON reports it.
        let is_whole = number.strip_prefix('-').unwrap_or(number).bytes().all(|byte| byte.is_ascii_digit());
        return number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() || !is_whole || number == "-";
    }
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    significant <= DIGITS_OF_DOUBLE || number.parse::<f64>().is_ok_and(|value| value.abs() < BEYOND_64_BITS)
}

fn place_of(json: &[u8], at: usize) -> LongNumber {
    let before = &json[..at];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    LongNumber { line, column }
}

/// Whether two values are the same, however their numbers are written: `1`, `1.0` and `1e0` are one number, also within lists and objects.
#[must_use]
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || number(one).is_some_and(|one| number(other) == Some(one))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// The value of a number. Whole numbers are compared exactly: two of them that are one double may still differ.
#[derive(PartialEq)]
enum NumberValue {
    Whole(i128),
    Decimal(f64),
}

fn number(number: &serde_json::Number) -> Option<NumberValue> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    if let Some(whole) = whole {
        return Some(NumberValue::Whole(whole));
    }
    let value = number.as_f64()?;
    let is_whole = value.fract() == 0.0 && value.abs() <= BEYOND_64_BITS;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and 128 bits have room for it")]
    Some(if is_whole { NumberValue::Whole(value as i128) } else { NumberValue::Decimal(value) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_read(text: &str) -> bool {
        read::<Value>(text.as_bytes()).is_ok()
    }

    #[test]
    fn a_number_that_would_be_rounded_is_refused_by_its_place() {
        let error = read::<Value>(b"{\"n\": 1,\n \"id\": 12345678901234567890123}").unwrap_err();
        let said = "the number at line 2 column 8 does not fit into 64 bits: write it as a text, in quotes";
        assert_eq!(error.to_string(), said);
        for fits in [
            "18446744073709551615",
            "-9223372036854775808",
            "9007199254740993",
            "0.12345678901234567890",
            "1e300",
            "-0",
            "-0.0",
            "1.7976931348623157e308",
            "100000000000000000000.0",
            "\"12345678901234567890123\"",
            "{\"12345678901234567890123\": \"\\\"12345678901234567890123\"}",
        ] {
            assert!(is_read(fits), "{fits}");
        }
        for long in [
            "18446744073709551616",
            "-9223372036854775809",
            "100000000000000000000",
            "[[{\"a\": 12345678901234567890123}]]",
            "12345678901234567890123.0",
            "1.2345678901234567890123e22",
            "1e400",
        ] {
            assert!(!is_read(long), "{long}");
        }
    }

    #[test]
    fn what_is_no_json_is_left_to_its_reader() {
        for text in ["-", "1-2", "--1", "1.2.3", "\"unfinished \\", "<html>1-800-123-4567-8901-2345</html>", ""] {
            assert!(matches!(read::<Value>(text.as_bytes()), Err(JsonError::Json(_))), "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_or_named() {
        assert_eq!(read::<Value>(b"\xEF\xBB\xBF{\"a\": 1}").unwrap(), json!({"a": 1}));
        assert_eq!(without_mark("\u{feff}{}"), "{}");
        let named = "it begins with the byte order mark of UTF-16, expected UTF-8";
        assert_eq!(read::<Value>(b"\xFF\xFE{\0}\0").unwrap_err().to_string(), named);
    }

    #[test]
    fn a_part_of_a_document_has_to_be_exact_and_the_rest_does_not() {
        let document = Document::read(b"{\"id\": 12345678901234567890123, \"job\": {\"n\": 7, \"x\": 0.5}}").unwrap();
        assert_eq!(document.part("/job"), Ok(Some(&json!({"n": 7, "x": 0.5}))));
        assert_eq!(document.part("/none"), Ok(None));
        assert_eq!(document.part("/id").unwrap_err(), LongNumber { line: 1, column: 8 });
        assert!(document.part("").is_err());
    }

    #[test]
    fn values_are_compared_by_value() {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (one, other) in [
            ("1", "1.0"),
            ("1", "1E+0"),
            ("100", "1e2"),
            ("0", "-0.0"),
            ("0.0", "-0"),
            ("[1, {\"a\": [2.0]}]", "[1.0, {\"a\": [2]}]"),
            ("18446744073709551615", "18446744073709551615"),
            ("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}"),
        ] {
            assert!(is_same(&value(one), &value(other)) && is_same(&value(other), &value(one)), "{one} and {other}");
        }
        for (one, other) in [
            ("1", "1.5"),
            ("1", "\"1\""),
            ("1", "true"),
            ("[1]", "[1, 1]"),
            ("{\"a\": 1}", "{\"a\": 1, \"b\": null}"),
            ("{\"a\": 1}", "{\"b\": 1}"),
            // One double, and two numbers.
            ("9007199254740993", "9007199254740992.0"),
            ("18446744073709551615", "18446744073709551616.0"),
            ("1e300", "1e301"),
        ] {
            assert!(!is_same(&value(one), &value(other)) && !is_same(&value(other), &value(one)), "{one} and {other}");
        }
    }
}
