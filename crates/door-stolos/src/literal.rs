//! Values as Python writes them, read without running anything. JSON is read, too.

use serde_json::{Map, Number, Value};

/// Lists within lists: deeper ones are refused.
const DEEPEST: usize = 64;

/// Reads one value: texts, numbers, `True`, `None`, lists, tuples and dictionaries.
///
/// # Errors
/// In words, with the place.
pub fn literal(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at == text.len() { Ok(value) } else { Err(reader.expected("nothing more")) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> String {
        let found = self.rest().chars().next().map_or("the end".to_owned(), |found| format!("{found:?}"));
        format!("expected {what} at character {}, not {found}", self.text[..self.at].chars().count() + 1)
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Passes over a text, where it is there.
    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(self.expected("a value that is nested less deeply"));
        }
        self.space();
        match self.rest().chars().next() {
            Some('{') => self.dictionary(depth),
            Some('[') => self.list(depth, "[", "]"),
            Some('(') => self.list(depth, "(", ")"),
            Some('\'' | '"') => self.string().map(Value::String),
            Some('u' | 'b' | 'U' | 'B') if self.rest()[1..].starts_with(['\'', '"']) => {
                self.at += 1;
                self.string().map(Value::String)
            }
            Some(first) if first.is_ascii_digit() || first == '-' => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Value, String> {
        let words = [("None", Value::Null), ("null", Value::Null), ("True", true.into()), ("true", true.into())];
        let words = words.into_iter().chain([("False", false.into()), ("false", false.into())]);
        let found = words.into_iter().find(|(word, _)| self.rest().starts_with(word));
        let (word, value) = found.ok_or_else(|| self.expected("a value"))?;
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
        let number = rest[..end].parse::<Number>().map_err(|_| self.expected("a number"))?;
        self.at += end;
        self.takes("L");
        Ok(Value::Number(number))
    }

    fn list(&mut self, depth: usize, open: &str, close: &str) -> Result<Value, String> {
        self.takes(open);
        let mut items = Vec::new();
        while !self.ends(close) {
            items.push(self.value(depth + 1)?);
            self.goes_on(close)?;
        }
        Ok(Value::Array(items))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, String> {
        self.takes("{");
        let mut items = Map::new();
        while !self.ends("}") {
            let name = match self.value(depth + 1)? {
                Value::String(name) => name,
                Value::Number(name) => name.to_string(),
                _ => return Err(self.expected("a text as a key before this place")),
            };
            self.space();
            if !self.takes(":") {
                return Err(self.expected("a colon"));
            }
            let value = self.value(depth + 1)?;
            items.insert(name, value);
            self.goes_on("}")?;
        }
        Ok(Value::Object(items))
    }

    fn ends(&mut self, close: &str) -> bool {
        self.space();
        self.takes(close)
    }

    /// A comma, or the end that follows.
    fn goes_on(&mut self, close: &str) -> Result<(), String> {
        self.space();
        if self.takes(",") || self.rest().starts_with(close) { Ok(()) } else { Err(self.expected("a comma")) }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = self.rest().chars().next().unwrap_or('"');
        self.at += 1;
        let mut read = String::new();
        loop {
            let Some(letter) = self.rest().chars().next() else { return Err(self.expected("the end of a text")) };
            self.at += letter.len_utf8();
            match letter {
                _ if letter == quote => return Ok(read),
                '\\' => self.escape(&mut read)?,
                other => read.push(other),
            }
        }
    }

    fn escape(&mut self, read: &mut String) -> Result<(), String> {
        let Some(letter) = self.rest().chars().next() else { return Err(self.expected("the rest of an escape")) };
        self.at += letter.len_utf8();
        match letter {
            'n' => read.push('\n'),
            'r' => read.push('\r'),
            't' => read.push('\t'),
            'b' => read.push('\u{8}'),
            'f' => read.push('\u{c}'),
            '\\' | '\'' | '"' | '/' => read.push(letter),
            '\n' => {}
            'x' => read.push(self.code(2)?),
            'u' => {
                let character = self.unicode()?;
                read.push(character);
            }
            'U' => read.push(self.code(8)?),
            other => read.extend(['\\', other]),
        }
        Ok(())
    }

    /// Four digits, or eight of JSON's in two halves.
    fn unicode(&mut self) -> Result<char, String> {
        let first = self.digits(4)?;
        let second = if (0xD800..0xDC00).contains(&first) && self.takes("\\u") { self.digits(4)? } else { 0 };
        let units = [first, second].map(|unit| u16::try_from(unit).unwrap_or(0));
        let units = if second == 0 { &units[..1] } else { &units[..] };
        let read = char::decode_utf16(units.iter().copied()).next().and_then(Result::ok);
        read.ok_or_else(|| self.expected("a character before this place"))
    }

    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code = self.digits(digits)?;
        char::from_u32(code).ok_or_else(|| self.expected("a character before this place"))
    }

    fn digits(&mut self, count: usize) -> Result<u32, String> {
        let digits = self.rest().get(..count).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let digits = digits.ok_or_else(|| self.expected(&format!("{count} hexadecimal digits")))?;
        self.at += count;
        Ok(digits)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_python_writes_is_read() {
        let cases = [
            ("'bash'", json!("bash")),
            (r#"u"it's \u00e9 \x41 \\n\n""#, json!("it's é A \\n\n")),
            (
                "{'app_name': ['a', u'b'], 'x': (1, 2.5, -3L), 7: None,}",
                json!({"app_name": ["a", "b"], "x": [1, 2.5, -3], "7": null}),
            ),
            ("[[], {}, (), True, False]", json!([[], {}, [], true, false])),
            (r#"{"a": true, "b": [null, "x\/\ud83d\ude00"]}"#, json!({"a": true, "b": [null, "x/😀"]})),
            (r"'a\d'", json!(r"a\d")),
        ];
        for (text, expected) in cases {
            assert_eq!(literal(text), Ok(expected), "{text}");
        }
    }

    /// Stolos gave what Redis holds to Python's eval.
    #[test]
    fn fault_13_nothing_is_run() {
        let told = |text: &str| literal(text).unwrap_err();
        assert_eq!(told("__import__('os').system('id')"), "expected a value at character 1, not '_'");
        assert_eq!(told("1 + 1"), "expected nothing more at character 3, not '+'");
        assert_eq!(told("[x for x in y]"), "expected a value at character 2, not 'x'");
        assert_eq!(told("['a'"), "expected a comma at character 5, not the end");
        assert_eq!(told("{'a' 1}"), "expected a colon at character 6, not '1'");
        assert_eq!(told("'a"), "expected the end of a text at character 3, not the end");
        assert!(told(&"[".repeat(10_000)).starts_with("expected a value that is nested less deeply"));
        assert!(told(r"'\xzz'").starts_with("expected 2 hexadecimal digits"));
        assert!(told(r"'\ud800'").contains("a character"));
    }
}
