//! Times, counts and output as people read them.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::{DurationError, format_short, parse_duration, parse_instant};
use rustix::fs::{FallocateFlags, FileType};
use rustix::io::Errno;
use serde::Serialize;

use crate::failure::Failure;
pub(crate) use crate::terminal::note;
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

/// The first of the operands of a command, which stand at its end: none of them is taken for an option.
pub(crate) fn operand(word: &str) -> String {
    let dashes = if word.starts_with('-') { "-- " } else { "" };
    format!("{dashes}{}", quoted(word))
}

/// Prints text, in which only [`paint`](crate::render::paint) gives colours.
pub(crate) fn print(text: &str) {
    print_bytes(with_colours(&shown(text)).as_bytes());
}

/// Prints a text as it is.
pub(crate) fn raw(text: &str) {
    print_bytes(text.as_bytes());
}

/// Prints bytes as they are. A reader that went away ends the program quietly, as it does other filters; any other error ends it as failed.
pub(crate) fn print_bytes(bytes: &[u8]) {
    match write(bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            let failure = unwritten(&error);
            failure.print();
            std::process::exit(failure.code.into());
        }
    }
}

/// Writes to standard output.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// The failure to write to standard output.
pub(crate) fn unwritten(error: &io::Error) -> Failure {
    Failure::bad(format!("write to standard output: {error}"))
}

/// The first thing that was to be written and could not be, of a command that goes on without it.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints the bytes of a command that does not end with its output, such as a server: a failure counts at its end.
pub(crate) fn tell_bytes(bytes: &[u8]) {
    if let Err(error) = write(bytes)
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// The same with a line.
pub(crate) fn tell(text: impl AsRef<str>) {
    tell_bytes(format!("{}\n", with_colours(&shown(text.as_ref()))).as_bytes());
}

/// The failure of a command some of whose output was lost.
pub(crate) fn lost() -> Option<Failure> {
    LOST.get().map(unwritten)
}

/// The bytes for which there has to be room on the disk of standard output before a command does anything.
const ROOM: u64 = 4096;

/// Checks that standard output takes something, before anything is changed whose result would be lost. A reader that went away is no
/// failure here.
pub(crate) fn check_output() -> Result<(), Failure> {
    let out = io::stdout();
    let is_file =
        rustix::fs::fstat(&out).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let checked = if is_file {
        let at = rustix::fs::fstat(&out).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        rustix::fs::fallocate(&out, FallocateFlags::KEEP_SIZE, at, ROOM)
    } else {
        rustix::io::write(&out, &[]).map(drop)
    };
    match checked {
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::ROFS | Errno::IO)) => {
            Err(unwritten(&error.into()))
        }
        _ => Ok(()),
    }
}

/// Prints a line.
pub(crate) fn line(text: impl AsRef<str>) {
    print(&format!("{}\n", text.as_ref()));
}

/// Prints JSON: indented for people, one line for programs.
pub(crate) fn json(value: &impl Serialize) {
    raw(&json_text(value));
}

/// The lines that [`json`] prints.
pub(crate) fn json_text(value: &impl Serialize) -> String {
    let text = if std::io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    let text = text.unwrap_or_default() + "\n";
    // Of these only line breaks stand outside of texts, where JSON has escapes of its own.
    let is_odd = |c: char| c != '\n' && controls(c);
    let escaped = |c: char| if is_odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    if text.contains(is_odd) { text.chars().map(escaped).collect() } else { text }
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
        assert_eq!((operand("totals"), operand("-x y")), ("totals".to_owned(), "-- '-x y'".to_owned()));
    }
}
