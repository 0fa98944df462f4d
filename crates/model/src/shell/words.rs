//! Words: quotes, and the text between them.

use super::reader::{End, Reader, Symbol};
use super::word::{Position, Word, is_name};
use super::{Manner, Trust};

impl Reader {
    pub(super) fn word(&mut self, position: Position) -> Word {
        let mut word = Word { range: self.mark()..self.mark(), ..Word::default() };
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Placeholder(piece) => {
                    let is_conditional = matches!(position, Position::Conditional | Position::Expression);
                    self.placeholder(piece, if is_conditional { Manner::Conditional } else { Manner::Unquoted });
                    word.is_made();
                }
                Symbol::Char(' ' | '\t' | '\n' | ';' | '&') => break,
                Symbol::Char('|' | '(' | ')')
                    if position == Position::Expression && self.is_of_expression(&mut word) => {}
                Symbol::Char('(')
                    if position != Position::Argument && word.assignment() == Some((word_name(&word), "")) =>
                {
                    self.advance(1);
                    self.nested(Reader::array);
                    word.is_made();
                }
                Symbol::Char('|' | '(' | ')') => break,
                Symbol::Char('<' | '>') if self.follows(1, '(') => {
                    self.advance(2);
                    self.nested(|reader| reader.list(End::Parenthesis).unwrap_or(()));
                    word.is_made();
                }
                Symbol::Char('<' | '>') => break,
                Symbol::Char('[') if self.begins_index(&word, position) => self.index(&mut word),
                Symbol::Char(letter) => self.letter(letter, &mut word),
            }
        }
        word.range.end = self.mark();
        if word.assigned.is_none() && position == Position::Command {
            word.assigned = word.assignment().map(|(name, _)| name.to_owned());
        }
        word
    }

    /// Passes over a character that belongs to a regular expression. Gives whether it did.
    fn is_of_expression(&mut self, word: &mut Word) -> bool {
        let Some(Symbol::Char(letter)) = self.peek() else { return false };
        if letter == ')' && word.lead.matches('(').count() <= word.lead.matches(')').count() && !word.is_dynamic {
            return false;
        }
        word.put(letter);
        self.advance(1);
        true
    }

    fn letter(&mut self, letter: char, word: &mut Word) {
        match letter {
            '\\' => self.escape(word),
            '\'' => {
                self.advance(1);
                self.single(word);
            }
            '"' => {
                self.advance(1);
                self.double(word);
            }
            '`' => {
                self.advance(1);
                self.backquotes();
                word.is_made();
                word.splits = true;
            }
            '$' => self.dollar(word, false),
            letter => {
                word.put(letter);
                self.advance(1);
            }
        }
    }

    /// A backslash, and what it takes its meaning from.
    pub(super) fn escape(&mut self, word: &mut Word) {
        word.is_quoted = true;
        self.advance(1);
        match self.peek() {
            Some(Symbol::Char('\n')) => self.advance(1),
            Some(Symbol::Char(letter)) => {
                word.put(letter);
                self.advance(1);
            }
            Some(Symbol::Placeholder(piece)) => {
                let from = self.mark();
                self.placeholder(piece, Manner::Double);
                self.demand(from..from + 1, Trust::Number, "behind a backslash");
                word.is_made();
            }
            None => {}
        }
    }

    pub(super) fn single(&mut self, word: &mut Word) {
        word.is_quoted = true;
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Placeholder(piece) => {
                    self.placeholder(piece, Manner::Single);
                    word.is_made();
                }
                Symbol::Char('\'') => return self.advance(1),
                Symbol::Char(letter) => {
                    word.put(letter);
                    self.advance(1);
                }
            }
        }
        self.is_in_doubt();
    }

    /// Quotes in which bash, and no other shell, knows escapes.
    pub(super) fn escaped_quotes(&mut self, word: &mut Word) {
        word.is_quoted = true;
        let from = self.mark();
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Placeholder(piece) => {
                    self.placeholder(piece, Manner::Single);
                    word.is_made();
                }
                Symbol::Char('\\') if self.follows(1, '\'') || self.follows(1, '\\') => {
                    self.is_in_doubt();
                    self.advance(2);
                }
                Symbol::Char('\'') => {
                    self.advance(1);
                    // The meaning of an escape is not examined.
                    word.is_made();
                    let range = from..self.mark();
                    return self.demand(range, Trust::Plain, "in quotes that begin with $'");
                }
                Symbol::Char(_) => self.advance(1),
            }
        }
        self.is_in_doubt();
    }

    pub(super) fn double(&mut self, word: &mut Word) {
        word.is_quoted = true;
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Placeholder(piece) => {
                    self.placeholder(piece, Manner::Double);
                    word.is_made();
                }
                Symbol::Char('"') => return self.advance(1),
                Symbol::Char('\\') => self.escape(word),
                Symbol::Char('`') => {
                    self.advance(1);
                    self.backquotes();
                    word.is_made();
                }
                Symbol::Char('$') => self.dollar(word, true),
                Symbol::Char(letter) => {
                    word.put(letter);
                    self.advance(1);
                }
            }
        }
        self.is_in_doubt();
    }

    /// The elements of an array, up to the parenthesis that closes.
    fn array(&mut self) {
        loop {
            match self.peek() {
                None => return self.is_in_doubt(),
                Some(Symbol::Char(')')) => return self.advance(1),
                Some(Symbol::Char('\n')) => self.line_ends(),
                Some(Symbol::Char(' ' | '\t')) => self.advance(1),
                Some(Symbol::Char(';' | '&' | '|' | '(' | '<' | '>')) if !self.follows(1, '(') => {
                    self.is_in_doubt();
                    self.advance(1);
                }
                Some(_) => {
                    let at = self.mark();
                    let before = self.ahead(0);
                    let word = self.word(Position::Element);
                    if word.range == (at..at) && word.lead.is_empty() && self.ahead(0) == before {
                        self.advance(1);
                    }
                }
            }
        }
    }

    fn begins_index(&self, word: &Word, position: Position) -> bool {
        let is_bare = !word.is_dynamic && !word.is_quoted && word.assigned.is_none();
        let begins = match position {
            Position::Command => is_name(&word.lead),
            Position::Element => word.lead.is_empty(),
            _ => false,
        };
        is_bare && begins
    }

    /// The index of an array: evaluated, where it is one.
    fn index(&mut self, word: &mut Word) {
        let name = word.lead.clone();
        self.advance(1);
        self.nested(|reader| reader.arithmetic(']', "in the index of an array"));
        let assigns = self.is('=') || (self.is('+') && self.follows(1, '='));
        if assigns {
            word.assigned = Some(name);
        }
        word.put('[');
        word.put(']');
        // `[` alone is a command, which the same text can be read as.
        if !assigns {
            word.is_made();
        }
    }
}

fn word_name(word: &Word) -> &str {
    word.assignment().map_or("", |(name, _)| name)
}
