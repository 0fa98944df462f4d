//! Times, counts and output as people read them.

use std::io::{IsTerminal, Write};

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::{DurationError, format_short, parse_duration, parse_instant};
use serde::Serialize;

use crate::terminal::{controls, shown, with_colours};

/// A count with its thousands apart: `1,234`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut written = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// Reads `90s`, `15m`, `36h`, `7d` or `2w`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, String> {
    let seconds = parse_duration(text).map_err(|error| error.to_string())?;
    let is_past = text.starts_with('-');
    let wrong = DurationError { text: text.to_owned() };
    if is_past { Err(wrong.to_string()) } else { Ok(SignedDuration::from_secs(seconds)) }
}

/// The form in which times go over the wire and into JSON.
pub(crate) fn wire(at: Timestamp) -> String {
    kelos_model::time::format_full(at)
}

/// A time of an answer in short form; as it is where it can't be read.
pub(crate) fn short(time: &str) -> String {
    parse_instant(time).map_or_else(|_| time.to_owned(), to_the_second)
}

/// `2016-01-01T12:00Z`, seconds only where there are some, no milliseconds.
pub(crate) fn to_the_second(at: Timestamp) -> String {
    format_short(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

/// `1 slot`, `2 slots`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A word of a command that is to be pasted into a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.@:/".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Prints text, in which only [`paint`](crate::render::paint) gives colours.
pub(crate) fn print(text: &str) {
    raw(&with_colours(&shown(text)));
}

/// Prints a note beside the answer, on standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    eprintln!("{}", with_colours(&shown(text.as_ref())));
}

/// Prints a text as it is; a reader that went away ends the program quietly, as it does other filters.
pub(crate) fn raw(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Prints a line.
pub(crate) fn line(text: impl AsRef<str>) {
    print(&format!("{}\n", text.as_ref()));
}

/// Prints JSON: indented for people, one line for programs.
pub(crate) fn json(value: &impl Serialize) {
    let text = if std::io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    let text = text.unwrap_or_default();
    // Of these only line breaks stand outside of texts, where JSON has escapes of its own.
    let is_odd = |c: char| c != '\n' && controls(c);
    let escaped = |c: char| if is_odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    let text = if text.contains(is_odd) { text.chars().map(escaped).collect() } else { text };
    raw(&(text + "\n"));
}

/// Prints a list as JSON, with whether there is more.
pub(crate) fn json_rows(rows: &[impl Serialize], more: bool) {
    json(&Rows { items: rows, more });
}

/// Prints a list as JSON.
pub(crate) fn json_items(items: &[impl Serialize]) {
    json(&Items { items });
}

#[derive(Serialize)]
struct Rows<'a, T> {
    items: &'a [T],
    more: bool,
}

#[derive(Serialize)]
struct Items<'a, T> {
    items: &'a [T],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let counts = [0, 999, 1_000, 12_345, 1_234_567];
        assert_eq!(counts.map(grouped), ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn a_shell_takes_quoted_words_as_they_are() {
        assert_eq!(quoted("a/totals-é.2"), "a/totals-é.2");
        assert_eq!(quoted("it's $(here)"), r"'it'\''s $(here)'");
        assert_eq!(quoted("two words"), "'two words'");
    }
}
