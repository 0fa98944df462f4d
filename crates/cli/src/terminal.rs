//! What a terminal is sent: our own colours, and escapes in place of control characters in the text of others.

use std::borrow::Cow;

/// The marks of our own colours within a text. They have no width and no meaning here, so that all control characters can be taken for
/// those of others.
pub(crate) const GREEN: char = '\u{1d173}';
pub(crate) const RED: char = '\u{1d174}';
pub(crate) const YELLOW: char = '\u{1d175}';
pub(crate) const BLUE: char = '\u{1d176}';
/// The mark of their end.
pub(crate) const RESET: char = '\u{1d177}';

/// The marks, and what a terminal is sent for them.
const COLOURS: [(char, &str); 5] =
    [(GREEN, "\x1b[32m"), (RED, "\x1b[31m"), (YELLOW, "\x1b[33m"), (BLUE, "\x1b[34m"), (RESET, "\x1b[0m")];

/// The same text with its colours, as a terminal takes them.
pub(crate) fn with_colours(text: &str) -> String {
    COLOURS.iter().fold(text.to_owned(), |text, (mark, colour)| text.replace(*mark, colour))
}

/// The same text with escapes in place of what controls a terminal or turns text around: colours, titles, a moved cursor. Line breaks and
/// tabs stay.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && c != '\t' && controls(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_odd(c) { c.escape_default().to_string() } else { c.to_string() }).collect())
}

/// The same text on one line: line breaks are escapes, too.
pub(crate) fn shown_line(text: &str) -> String {
    shown(text).replace('\n', "\\n")
}

/// Prints a note on standard error, apart from the answer.
pub(crate) fn note(text: impl AsRef<str>) {
    eprintln!("{}", with_colours(&shown(text.as_ref())));
}

/// Whether a character controls a terminal, or the direction of the text after it.
pub(crate) fn controls(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_shown_as_escapes() {
        let title = "a\u{1b}]0;title\u{7}b\tc\nd\r\u{9b}31m\u{202e}";
        assert_eq!(shown(title), "a\\u{1b}]0;title\\u{7}b\tc\nd\\r\\u{9b}31m\\u{202e}");
        assert_eq!(shown_line("a\nb"), "a\\nb");
        assert!(matches!(shown("Größe 🏳️‍🌈 x"), Cow::Borrowed(_)));
    }
}
