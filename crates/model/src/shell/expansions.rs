//! What begins with a dollar sign, and arithmetic.

use super::reader::{End, Reader, Symbol};
use super::word::{Word, begins_name, continues_name};
use super::{Manner, Trust};

const ARITHMETIC: &str = "in arithmetic";

impl Reader {
    /// A dollar sign, and what it begins.
    pub(super) fn dollar(&mut self, word: &mut Word, in_double: bool) {
        self.advance(1);
        let splits = !in_double;
        match self.peek() {
            Some(Symbol::Char('(')) if self.follows(1, '(') => {
                self.advance(2);
                self.nested(|reader| reader.arithmetic(')', ARITHMETIC));
            }
            Some(Symbol::Char('(')) => {
                self.advance(1);
                self.nested(|reader| reader.list(End::Parenthesis).unwrap_or(()));
                word.splits |= splits;
            }
            Some(Symbol::Char('[')) => {
                self.advance(1);
                self.nested(|reader| reader.arithmetic(']', ARITHMETIC));
            }
            Some(Symbol::Char('{')) => {
                self.advance(1);
                self.nested(|reader| reader.braces(in_double));
                word.splits |= splits;
            }
            Some(Symbol::Char('\'')) if !in_double => {
                self.advance(1);
                return self.escaped_quotes(word);
            }
            Some(Symbol::Char(letter)) if begins_name(letter) => {
                let name = self.name();
                self.mention(&name);
                self.extends_a_name();
                word.splits |= splits;
            }
            Some(Symbol::Char(letter)) if letter.is_ascii_digit() || "@*".contains(letter) => {
                self.advance(1);
                self.mention("@");
                word.splits |= splits;
            }
            Some(Symbol::Char('#' | '?' | '$' | '!' | '-')) => self.advance(1),
            Some(Symbol::Placeholder(_)) => self.extends_a_name(),
            // It means itself.
            _ => {}
        }
        word.is_made();
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(Symbol::Char(letter)) = self.peek()
            && continues_name(letter)
        {
            name.push(letter);
            self.advance(1);
        }
        name
    }

    /// A placeholder where a name of a variable continues, or begins.
    fn extends_a_name(&mut self) {
        let Some(Symbol::Placeholder(piece)) = self.peek() else { return };
        let from = self.mark();
        self.placeholder(piece, Manner::Double);
        self.demand(from..from + 1, Trust::Number, "in the name of a variable");
    }

    /// `((…))` as a command.
    pub(super) fn arithmetic_command(&mut self) {
        self.arithmetic(')', ARITHMETIC);
    }

    /// Arithmetic up to what closes it: two parentheses, a bracket or a brace.
    pub(super) fn arithmetic(&mut self, close: char, position: &'static str) {
        let from = self.mark();
        let mut open = 0_usize;
        loop {
            let Some(symbol) = self.peek() else {
                self.is_in_doubt();
                break;
            };
            match symbol {
                Symbol::Placeholder(piece) => {
                    let before = self.behind().is_some_and(continues);
                    let after = self.ahead(1).is_some_and(continues);
                    self.placeholder(piece, Manner::Arithmetic { joined: before || after });
                }
                Symbol::Char(letter) if letter == close && open == 0 => {
                    self.advance(1);
                    if close == ')' && !self.takes(')') {
                        // It was a subshell after all.
                        self.list(End::Parenthesis);
                    }
                    break;
                }
                Symbol::Char(letter) => {
                    match letter {
                        '(' if close == ')' => open += 1,
                        '[' if close == ']' => open += 1,
                        '{' if close == '}' => open += 1,
                        letter if letter == close => open -= 1,
                        _ => {}
                    }
                    self.operand(letter, close);
                }
            }
        }
        let range = from..self.mark();
        self.demand(range, Trust::Number, position);
    }

    fn operand(&mut self, letter: char, close: char) {
        match letter {
            '\\' => self.escape(&mut Word::default()),
            '$' => self.dollar(&mut Word::default(), true),
            '`' => {
                self.advance(1);
                self.backquotes();
            }
            '\'' if close == ']' => {
                self.advance(1);
                self.single(&mut Word::default());
            }
            '"' if close == ']' => {
                self.advance(1);
                self.double(&mut Word::default());
            }
            letter if begins_name(letter) => {
                let name = self.name();
                self.mention(&name);
            }
            letter if letter.is_ascii_digit() => drop(self.name()),
            _ => self.advance(1),
        }
    }

    /// `${…}`; the opening brace has been passed.
    fn braces(&mut self, in_double: bool) {
        let from = self.mark();
        let is_indirect = self.is('!') && !self.follows(1, '}');
        let is_length = self.is('#') && !self.follows(1, '}');
        self.advance(usize::from(is_indirect || is_length));
        let mut name = String::new();
        match self.peek() {
            Some(Symbol::Placeholder(_)) => self.extends_a_name(),
            Some(Symbol::Char(letter)) if begins_name(letter) => {
                name = self.name();
                self.mention(&name);
                self.extends_a_name();
            }
            Some(Symbol::Char(letter)) if letter.is_ascii_digit() || "@*".contains(letter) => {
                self.advance(1);
                self.name();
                self.mention("@");
            }
            Some(Symbol::Char('?' | '$' | '!' | '-' | '#')) => self.advance(1),
            Some(Symbol::Char('}' | ':' | '%' | '=' | '+')) => {}
            _ => self.is_in_doubt(),
        }
        let named = from..self.mark();
        if is_indirect {
            self.demand(named.clone(), Trust::Number, "in the name of a variable");
        }
        if self.is('[') {
            self.advance(1);
            self.nested(|reader| reader.arithmetic(']', "in the index of an array"));
        }
        self.operator(&name, in_double, named);
    }

    /// Reads the operator behind the name in `${name…}`.
    fn operator(&mut self, name: &str, in_double: bool, named: std::ops::Range<usize>) {
        let takes_a_word = |reader: &Reader, by| matches!(reader.ahead(by), Some(Symbol::Char('-' | '=' | '+' | '?')));
        let from = self.mark();
        match self.peek() {
            Some(Symbol::Char('}')) => self.advance(1),
            Some(Symbol::Char(':')) if !takes_a_word(self, 1) => {
                self.advance(1);
                self.nested(|reader| reader.arithmetic('}', "in an offset or a length of ${…:…}"));
            }
            Some(Symbol::Char(letter)) => {
                if letter == '@' && self.follows(1, 'P') {
                    self.demand(named, Trust::Number, "in ${…@P}");
                }
                self.takes(':');
                let assigns = self.is('=');
                let is_pattern = !takes_a_word(self, 0);
                self.advance(1);
                self.word_in_braces(in_double, is_pattern);
                if assigns && !name.is_empty() {
                    let value = from..self.mark();
                    self.found.flows.push((name.to_owned(), value));
                }
            }
            Some(Symbol::Placeholder(_)) => {
                self.is_in_doubt();
                self.word_in_braces(in_double, true);
            }
            None => self.is_in_doubt(),
        }
    }

    /// The word in `${name:-word}`, up to the brace that closes. Inside double quotes a single quote means itself there, but in
    /// a pattern.
    fn word_in_braces(&mut self, in_double: bool, is_pattern: bool) {
        let manner = if in_double { Manner::Double } else { Manner::Unquoted };
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Placeholder(piece) => self.placeholder(piece, manner),
                Symbol::Char('}') => return self.advance(1),
                Symbol::Char('\\') => self.escape(&mut Word::default()),
                Symbol::Char('\'') if is_pattern || !in_double => {
                    self.advance(1);
                    self.single(&mut Word::default());
                }
                Symbol::Char('"') => {
                    self.advance(1);
                    self.double(&mut Word::default());
                }
                Symbol::Char('`') => {
                    self.advance(1);
                    self.backquotes();
                }
                Symbol::Char('$') => self.dollar(&mut Word::default(), in_double),
                Symbol::Char(_) => self.advance(1),
            }
        }
        self.is_in_doubt();
    }
}

fn continues(symbol: Symbol) -> bool {
    match symbol {
        Symbol::Placeholder(_) => true,
        Symbol::Char(letter) => continues_name(letter) || letter == '#',
    }
}
