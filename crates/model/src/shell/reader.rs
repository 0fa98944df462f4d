//! The position of a reader in a text, and what it has noted so far.

use std::ops::Range;

use super::{Demand, Manner, Mention, ShellText, Trust};

/// Texts within texts that are followed; deeper ones count as evaluated.
pub(super) const DEEPEST: usize = 48;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    /// A literal character.
    Char(char),
    /// A value, by the number of its piece.
    Placeholder(usize),
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing but the end of the text.
    Text,
    /// A closing parenthesis.
    Parenthesis,
    /// The end of a branch of `case`.
    Branch,
}

/// A here-document whose body is yet to come.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) delimiter: String,
    pub(super) strips_tabs: bool,
    pub(super) is_expanded: bool,
    pub(super) is_code: bool,
}

pub(super) struct Reader {
    pub(super) symbols: Vec<Symbol>,
    pub(super) at: usize,
    pub(super) limit: usize,
    pub(super) depth: usize,
    pub(super) found: ShellText,
    pub(super) documents: Vec<Document>,
    /// The first mention from which on nothing is certain.
    pub(super) doubt: Option<usize>,
    /// The ranges that feed the standard input of some command.
    pub(super) feeds: Vec<Range<usize>>,
    /// Up to where anything may be given to one, as what a compound command prints.
    pub(super) fed_up_to: usize,
    /// Variables that `read` and the like assign.
    pub(super) read_names: Vec<String>,
    /// Whether a shell takes its commands from its standard input.
    pub(super) feeds_a_shell: bool,
    /// Whether functions are defined, and all arguments, any of which may be theirs.
    pub(super) has_functions: bool,
    pub(super) arguments: Vec<Range<usize>>,
    /// Variables whose values are evaluated as soon as they are assigned.
    pub(super) evaluated_names: Vec<String>,
    /// Texts within this one that are shell texts of their own.
    pub(super) texts: usize,
}

impl Reader {
    pub(super) fn new(symbols: Vec<Symbol>, depth: usize) -> Reader {
        Reader {
            limit: symbols.len(),
            symbols,
            at: 0,
            depth,
            found: ShellText::default(),
            documents: Vec::new(),
            doubt: None,
            feeds: Vec::new(),
            fed_up_to: 0,
            read_names: Vec::new(),
            feeds_a_shell: false,
            has_functions: false,
            arguments: Vec::new(),
            evaluated_names: Vec::new(),
            texts: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<Symbol> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, by: usize) -> Option<Symbol> {
        let at = self.at + by;
        if at < self.limit { self.symbols.get(at).copied() } else { None }
    }

    pub(super) fn behind(&self) -> Option<Symbol> {
        self.at.checked_sub(1).and_then(|at| self.symbols.get(at)).copied()
    }

    pub(super) fn is(&self, letter: char) -> bool {
        self.peek() == Some(Symbol::Char(letter))
    }

    pub(super) fn follows(&self, by: usize, letter: char) -> bool {
        self.ahead(by) == Some(Symbol::Char(letter))
    }

    pub(super) fn advance(&mut self, by: usize) {
        self.at = (self.at + by).min(self.limit);
    }

    /// Passes over a character where it is the next one.
    pub(super) fn takes(&mut self, letter: char) -> bool {
        let is_there = self.is(letter);
        self.advance(usize::from(is_there));
        is_there
    }

    pub(super) fn mark(&self) -> usize {
        self.found.mentions.len()
    }

    pub(super) fn mention(&mut self, name: &str) {
        self.found.mentions.push(Mention::Variable(name.to_owned()));
    }

    /// Notes the placeholder that is next, and passes over it.
    pub(super) fn placeholder(&mut self, piece: usize, manner: Manner) {
        self.advance(1);
        self.found.manners.insert(piece, manner);
        self.found.mentions.push(Mention::Placeholder(piece));
    }

    pub(super) fn demand(&mut self, range: Range<usize>, trust: Trust, position: &'static str) {
        if !range.is_empty() {
            self.found.demands.push(Demand { range, trust, position });
        }
    }

    /// Notes that nothing is certain from here on, or in the whole text where it ends too early.
    pub(super) fn is_in_doubt(&mut self) {
        let mark = if self.peek().is_some() { self.mark() } else { 0 };
        self.doubt = Some(self.doubt.map_or(mark, |doubt| doubt.min(mark)));
    }

    /// Reads what is nested; what is nested too deeply is passed over, in doubt.
    pub(super) fn nested(&mut self, read: impl FnOnce(&mut Reader)) {
        if self.depth >= DEEPEST {
            self.is_in_doubt();
            while let Some(symbol) = self.peek() {
                match symbol {
                    Symbol::Placeholder(piece) => self.placeholder(piece, Manner::Double),
                    Symbol::Char(_) => self.advance(1),
                }
            }
            return;
        }
        self.depth += 1;
        read(self);
        self.depth -= 1;
    }
}
