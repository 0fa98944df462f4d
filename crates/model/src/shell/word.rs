//! A word of a command, as far as its text is known before it is run.

use std::ops::Range;

/// The position of a word in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// The beginning of a command, where it may be an assignment.
    Command,
    /// Among its arguments.
    Argument,
    /// In the list that is assigned to an array.
    Element,
    /// In `[[ … ]]`.
    Conditional,
    /// A regular expression in `[[ … ]]`, which may hold parentheses.
    Expression,
}

/// A word of a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    /// The literal text before the first dynamic part.
    pub(super) lead: String,
    /// The literal text after the last dynamic part.
    pub(super) tail: String,
    /// Whether it has a part that is only known when it is run.
    pub(super) is_dynamic: bool,
    /// Whether a part of it that is only known when it is run is outside quotes.
    pub(super) splits: bool,
    /// Whether a part of it is quoted.
    pub(super) is_quoted: bool,
    /// The variable that it assigns where it precedes a command.
    pub(super) assigned: Option<String>,
    /// The range of its mentions.
    pub(super) range: Range<usize>,
}

impl Word {
    /// The whole word, where all of it is written.
    pub(super) fn text(&self) -> Option<&str> {
        (!self.is_dynamic).then_some(&*self.lead)
    }

    /// The whole word, where all of it is written without quotes.
    pub(super) fn bare(&self) -> Option<&str> {
        self.text().filter(|_| !self.is_quoted)
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// Whether it is an option, or may turn out to be one.
    pub(super) fn begins_with_minus(&self) -> bool {
        self.lead.starts_with('-')
    }

    /// Whether nothing is written before what is only known when it is run.
    pub(super) fn begins_dynamic(&self) -> bool {
        self.is_dynamic && self.lead.is_empty()
    }

    pub(super) fn put(&mut self, letter: char) {
        if self.is_dynamic {
            self.tail.push(letter);
        } else {
            self.lead.push(letter);
        }
    }

    pub(super) fn is_made(&mut self) {
        self.is_dynamic = true;
        self.tail.clear();
    }

    /// The variable whose assignment the word begins with, and what is written after that.
    pub(super) fn assignment(&self) -> Option<(&str, &str)> {
        let (name, value) = self.lead.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_name(name).then_some((name, value))
    }
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(begins_name) && text.chars().all(continues_name)
}

pub(super) fn begins_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

pub(super) fn continues_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}
