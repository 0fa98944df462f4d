//! How deeply the values of users may be nested: JSON that they hand in, and triggers.
//!
//! Kelos wraps values to store and to send them, and readers of JSON stop at a depth of their own. So values have a limit that is far
//! below it, and everything that is accepted can be read back. Depth is counted without recursion: a value of any depth costs memory in
//! proportion to its size, and no stack.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Map, Value};

/// The most levels of lists and objects that a value of a user may have. A number or a text has none.
pub const DEEPEST: usize = 64;

/// The most levels of a text that [`read`] takes. What versions without a limit stored has up to 127 levels of a user, and a few around
/// them; a trigger has two levels of JSON for each of its own.
const DEEPEST_READ: usize = 192;

/// The depth up to which `serde_json` reads by itself.
const DEEPEST_OF_SERDE: usize = 127;

/// A value that is nested too deeply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nested {levels} levels deep, expected at most {DEEPEST}")]
pub struct TooDeep {
    /// Its levels.
    pub levels: usize,
}

/// Checks the depth of a value of a user.
///
/// # Errors
/// If it has more than [`DEEPEST`] levels.
pub fn check(value: &Value) -> Result<(), TooDeep> {
    check_levels(depth([value]))
}

/// Checks the levels of something that is not JSON, such as a trigger.
///
/// # Errors
/// If it has more than [`DEEPEST`] levels.
pub fn check_levels(levels: usize) -> Result<(), TooDeep> {
    if levels > DEEPEST { Err(TooDeep { levels }) } else { Ok(()) }
}

/// Checks the depth of an object of a user, which is a level itself.
///
/// # Errors
/// If it has more than [`DEEPEST`] levels.
pub fn check_object<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<(), TooDeep> {
    check_levels(depth(values) + 1)
}

/// The levels of the deepest of some values.
fn depth<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    let mut unseen: Vec<(&Value, usize)> = values.into_iter().map(|value| (value, 0)).collect();
    let mut deepest = 0;
    while let Some((value, above)) = unseen.pop() {
        let levels = above + 1;
        match value {
            Value::Array(items) => unseen.extend(items.iter().map(|item| (item, levels))),
            Value::Object(fields) => unseen.extend(fields.values().map(|field| (field, levels))),
            _ => continue,
        }
        deepest = deepest.max(levels);
    }
    deepest
}

/// The levels of a text of JSON. Of a text that is not JSON it is some number.
fn depth_of_text(json: &[u8]) -> usize {
    let (mut levels, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                levels += 1;
                deepest = deepest.max(levels);
            }
            b']' | b'}' => levels = levels.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The reason for which a text is not a value of a user.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// It is nested too deeply.
    #[error("it is {0}")]
    TooDeep(#[from] TooDeep),
    /// It is not JSON.
    #[error(transparent)]
    Json(#[from] Error),
}

/// Reads a value of a user from JSON.
///
/// # Errors
/// If it is not JSON, or has more than [`DEEPEST`] levels.
pub fn value(json: &[u8]) -> Result<Value, ValueError> {
    let value = read(json).map_err(|error| match depth_of_text(json) {
        levels if levels > DEEPEST_READ => TooDeep { levels }.into(),
        _ => ValueError::Json(error),
    })?;
    check(&value)?;
    Ok(value)
}

/// Reads JSON that has values of users somewhere inside. It takes more levels than these may have, since an old value may have them,
/// and since they are in something that has levels, too; what is new is checked where its depth is known.
///
/// # Errors
/// If it is not such JSON, or has far too many levels.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    match serde_json::from_slice(json) {
        Err(error) if error.is_syntax() => match depth_of_text(json) {
            ..=DEEPEST_OF_SERDE => Err(error),
            levels @ ..=DEEPEST_READ => T::deserialize(DeepReader { json, at: 0, levels }.whole()?),
            levels => Err(Error::custom(format!("it is {}", TooDeep { levels }))),
        },
        read => read,
    }
}

/// Reads JSON that is deeper than `serde_json` takes it: the levels here, and all that has none there.
struct DeepReader<'a> {
    json: &'a [u8],
    at: usize,
    levels: usize,
}

/// A list or an object that has not ended.
enum Open {
    List(Vec<Value>),
    Object(Map<String, Value>, String),
}

impl DeepReader<'_> {
    fn whole(mut self) -> Result<Value, Error> {
        let mut open: Vec<Open> = Vec::with_capacity(self.levels);
        loop {
            let mut value = match self.begin(&mut open)? {
                Some(value) => value,
                None => continue,
            };
            // It may be the last of what is around it, and that of what is around that.
            loop {
                match open.last_mut() {
                    None => return self.nothing_more().map(|()| value),
                    Some(Open::List(items)) => items.push(value),
                    Some(Open::Object(fields, name)) => drop(fields.insert(std::mem::take(name), value)),
                }
                let of_list = matches!(open.last(), Some(Open::List(_)));
                match (self.next(), of_list) {
                    (Some(b','), true) => break,
                    (Some(b','), false) => {
                        self.name(&mut open)?;
                        break;
                    }
                    (Some(b']'), true) | (Some(b'}'), false) => match open.pop() {
                        Some(Open::List(items)) => value = Value::Array(items),
                        Some(Open::Object(fields, _)) => value = Value::Object(fields),
                        None => return Err(self.wrong()),
                    },
                    _ => return Err(self.wrong()),
                }
            }
        }
    }

    /// Reads up to the end of a value without levels, or the beginning of one that has some.
    fn begin(&mut self, open: &mut Vec<Open>) -> Result<Option<Value>, Error> {
        match self.peek() {
            Some(b'[') => {
                self.at += 1;
                if self.peek() == Some(b']') {
                    self.at += 1;
                    return Ok(Some(Value::Array(Vec::new())));
                }
                open.push(Open::List(Vec::new()));
            }
            Some(b'{') => {
                self.at += 1;
                if self.peek() == Some(b'}') {
                    self.at += 1;
                    return Ok(Some(Value::Object(Map::new())));
                }
                open.push(Open::Object(Map::new(), String::new()));
                self.name(open)?;
            }
            _ => return self.scalar().map(Some),
        }
        Ok(None)
    }

    /// Reads the name of the next field of the innermost object.
    fn name(&mut self, open: &mut [Open]) -> Result<(), Error> {
        let Value::String(text) = self.scalar()? else { return Err(self.wrong()) };
        match open.last_mut() {
            Some(Open::Object(_, name)) if self.next() == Some(b':') => *name = text,
            _ => return Err(self.wrong()),
        }
        Ok(())
    }

    /// A text, a number, or a word.
    fn scalar(&mut self) -> Result<Value, Error> {
        self.peek();
        let rest = self.json.get(self.at..).unwrap_or_default();
        let mut is_escaped = true;
        let end = match rest.first() {
            Some(b'"') => rest.iter().position(|byte| {
                let ends = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                ends
            }),
            _ => rest.iter().position(|byte| matches!(byte, b',' | b']' | b'}' | b':') || byte.is_ascii_whitespace()),
        };
        let is_text = rest.first() == Some(&b'"');
        let end = end.map_or(rest.len(), |end| end + usize::from(is_text));
        self.at += end;
        serde_json::from_slice(rest.get(..end).unwrap_or_default())
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.json.get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.json.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn nothing_more(&mut self) -> Result<(), Error> {
        if self.peek().is_none() { Ok(()) } else { Err(self.wrong()) }
    }

    fn wrong(&self) -> Error {
        Error::custom(format!("it is not JSON at byte {}", self.at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn lists(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn objects(levels: usize) -> String {
        format!("{}1{}", "{\"a\": ".repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn lists_and_objects_are_levels_and_nothing_else_is() {
        let cases = [
            (json!(null), 0),
            (json!("[[["), 0),
            (json!([]), 1),
            (json!({}), 1),
            (json!([1, [2, {"a": []}], 3]), 4),
            (json!({"a": 1, "b": [1]}), 2),
        ];
        for (value, levels) in cases {
            assert_eq!(depth([&value]), levels, "{value}");
            assert_eq!(depth_of_text(value.to_string().as_bytes()), levels, "{value}");
        }
        assert_eq!(depth_of_text(br#"{"a\"[[[": "\\", "b": "]"}"#), 1);
    }

    #[test]
    fn a_value_of_64_levels_is_taken_and_one_of_65_is_not() {
        for text in [lists, objects] {
            value(text(DEEPEST).as_bytes()).unwrap();
            for levels in [DEEPEST + 1, 126, 127, 128, 192, 193, 1_000_000] {
                let error = value(text(levels).as_bytes()).unwrap_err().to_string();
                let words = format!("it is nested {levels} levels deep, expected at most 64");
                assert_eq!(error, words);
            }
        }
        let arguments = Map::from_iter([("a".to_owned(), value(lists(DEEPEST - 1).as_bytes()).unwrap())]);
        check_object(arguments.values()).unwrap();
        let deeper = value(lists(DEEPEST).as_bytes()).unwrap();
        assert_eq!(check_object([&deeper]), Err(TooDeep { levels: 65 }));
    }

    #[test]
    fn what_was_stored_before_there_was_a_limit_is_read() {
        for levels in [65, 127, 128, 140, DEEPEST_READ] {
            for text in [lists(levels), objects(levels)] {
                let read: Value = read(text.as_bytes()).unwrap();
                assert_eq!(read.to_string(), text.replace(' ', ""));
            }
        }
        let mixed =
            format!(r#" {{"x": {} , "y\"[" : [ ], "z":{{ }}, "n": [-1.5e3 ,true, null,"\u00e9"]}} "#, lists(150));
        let read: Value = read(mixed.as_bytes()).unwrap();
        assert_eq!(read["n"], json!([-1500.0, true, null, "é"]));
        assert_eq!((&read["y\"["], &read["z"]), (&json!([]), &json!({})));
    }

    #[test]
    fn deep_text_that_is_not_json_is_refused() {
        let open = "[".repeat(150);
        let close = "]".repeat(150);
        for inside in ["1 2", "1,", "{\"a\"}", "{\"a\":1,}", "{1:2}", "\"", "tru", "1}", "[1", "\"\u{1}\""] {
            assert!(read::<Value>(format!("{open}{inside}{close}").as_bytes()).is_err(), "{inside}");
        }
        assert!(read::<Value>(format!("{open}{close}1").as_bytes()).is_err());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn deep_and_shallow_values_are_read_alike(value in values(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let deep = DeepReader { json: text.as_bytes(), at: 0, levels: 0 }.whole().unwrap();
            prop_assert_eq!(deep, serde_json::from_str::<Value>(&text).unwrap());
        }

        #[test]
        fn text_and_value_have_the_same_depth(value in values()) {
            prop_assert_eq!(depth_of_text(value.to_string().as_bytes()), depth([&value]));
        }
    }
}
