//! The first line of an output that looks like an error. The rule is in `docs/pages.md`.

use kelos_executors::local::{LogLine, Stream};

use super::ansi;

/// Bytes at the beginning of a line that are looked at.
const LOOKED_AT: usize = 1000;

/// Words in capitals that are levels of a log.
const LEVELS: [&str; 6] = ["ERROR", "FATAL", "CRITICAL", "SEVERE", "PANIC", "EMERGENCY"];
/// Beginnings of lines with which programs end.
const BEGINNINGS: [&str; 10] = [
    "Traceback (most recent call last)",
    "Exception in thread ",
    "panic: ",
    "fatal error: ",
    "fatal: ",
    "error: ",
    "error[",
    "Error: ",
    "Segmentation fault",
    "Uncaught ",
];
/// Words that say so on standard error, where programs write more freely.
const WORDS: [&str; 14] = [
    "error",
    "fatal",
    "failed",
    "failure",
    "exception",
    "cannot",
    "can't",
    "not found",
    "no such",
    "denied",
    "refused",
    "timed out",
    "killed",
    "aborted",
];

/// Whether a line looks like an error.
pub(super) fn looks_like_one(line: &LogLine) -> bool {
    let text = ansi::plain(&line.bytes[..line.bytes.len().min(LOOKED_AT)]);
    let text = text.trim_start();
    let begins_so = BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    let is_panic = text.starts_with("thread '") && text.contains(" panicked at ");
    if begins_so || is_panic || names_one(text) || LEVELS.iter().any(|level| has_word(text, level)) {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    line.stream == Some(Stream::Stderr) && WORDS.iter().any(|word| has_word(&lower, word))
}

/// Whether a line begins with the name of an error or an exception, as in `ValueError: …` and `java.io.IOException`.
fn names_one(text: &str) -> bool {
    let name = text.split([':', ' ']).next().unwrap_or_default();
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "._$".contains(c));
    let ends_so = ["Error", "Exception"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    is_name && ends_so && (name.len() == text.len() || text[name.len()..].starts_with(':'))
}

/// Whether a word stands in a text, and is not denied or counted as none: `no error`, `0 failed`, `failed=0`.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let before_it = before.trim_end();
        let is_denied =
            ["no", "0", "without"].iter().any(|none| before_it == *none || before_it.ends_with(&format!(" {none}")));
        let counts_none = after.trim_start_matches([' ', ':', '=']).starts_with('0') && !after.starts_with(' ');
        !is_part(before.chars().next_back()) && !is_part(after.chars().next()) && !is_denied && !counts_none
    })
}

/// The offset of the first of these lines that looks like an error.
pub(super) fn first(lines: &[LogLine]) -> Option<u64> {
    lines.iter().find(|line| looks_like_one(line)).map(|line| line.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(stream: Stream, text: &str) -> bool {
        looks_like_one(&LogLine { offset: 0, at: None, stream: Some(stream), bytes: text.into(), whole: true })
    }

    #[test]
    fn errors_are_found_on_both_streams() {
        for text in [
            "Traceback (most recent call last):",
            "ValueError: bad",
            "java.lang.NullPointerException",
            "Exception in thread \"main\" java.io.IOException: x",
            "thread 'main' panicked at src/main.rs:2:5:",
            "panic: runtime error: index out of range",
            "2026-11-23 10:00:00 ERROR [main] it broke",
            "[FATAL] it broke",
            "level=ERROR it broke",
            "error: could not compile",
            "error[E0308]: mismatched types",
            "fatal: not a git repository",
            "\x1b[1m\x1b[31merror\x1b[0m: coloured",
            "  Error: indented",
        ] {
            assert!(looks(Stream::Stdout, text) && looks(Stream::Stderr, text), "{text}");
        }
    }

    #[test]
    fn words_count_on_standard_error_alone() {
        for text in [
            "ls: cannot access 'x': No such file or directory",
            "sh: foo: not found",
            "connection refused",
            "Killed",
            "it has failed",
        ] {
            assert!(looks(Stream::Stderr, text) && !looks(Stream::Stdout, text), "{text}");
        }
    }

    #[test]
    fn what_only_speaks_of_errors_is_none() {
        for text in [
            "",
            "ok",
            "0 failed, 12 passed",
            "no error",
            "failed=0",
            "failed: 0",
            "errors.log rotated",
            "INFO all is well",
            "TERROR",
            "+ set -x",
            "downloading 0 of 10",
            "without failure",
        ] {
            assert!(!looks(Stream::Stderr, text) && !looks(Stream::Stdout, text), "{text}");
        }
        assert!(!looks(Stream::Stderr, &format!("{} error", "x".repeat(5000))), "only the beginning is read");
        assert!(looks_like_one(&LogLine {
            offset: 0,
            at: None,
            stream: None,
            bytes: b"ERROR \xff".into(),
            whole: true
        }));
    }
}
