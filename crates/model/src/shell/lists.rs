//! Lists of commands: what separates them, what they are compounded of, and here-documents.

use std::ops::Range;

use super::reader::{Document, End, Reader, Symbol};
use super::word::{Position, Word};
use super::{Ending, Manner, ShellText, Trust};

/// The name of the standard input of any command.
const INPUT: &str = "<";

/// A simple command while it is read.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Here-documents and here-strings that it reads.
    documents: usize,
    has_redirection: bool,
    has_assignment: bool,
    from: usize,
}

impl Command {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.has_assignment && !self.has_redirection
    }
}

pub(super) fn read(symbols: Vec<Symbol>, depth: usize) -> ShellText {
    let mut reader = Reader::new(symbols, depth);
    reader.list(End::Text);
    reader.conclude()
}

impl Reader {
    fn conclude(mut self) -> ShellText {
        let all = self.mark();
        if let Some(from) = self.doubt {
            self.demand(from..all, Trust::Number, "where its quoting can't be told");
        }
        self.feeds.push(0..self.fed_up_to);
        for feed in std::mem::take(&mut self.feeds) {
            if self.feeds_a_shell {
                self.demand(feed.clone(), Trust::Plain, "in what a shell may read as its commands");
            }
            self.found.flows.push((INPUT.to_owned(), feed));
        }
        self.mention(INPUT);
        let read_names = std::mem::take(&mut self.read_names);
        self.found.flows.extend(read_names.into_iter().map(|name| (name, all..all + 1)));
        if self.has_functions {
            let arguments = std::mem::take(&mut self.arguments);
            self.found.flows.extend(arguments.into_iter().map(|range| ("@".to_owned(), range)));
        }
        let evaluated = |name: &String| self.evaluated_names.contains(name);
        let flows: Vec<Range<usize>> =
            self.found.flows.iter().filter(|(name, _)| evaluated(name)).map(|(_, range)| range.clone()).collect();
        for range in flows {
            self.demand(range, Trust::Number, "in the value of a variable that is evaluated");
        }
        self.found
    }

    /// Reads up to the closing backquote; the opening one has been passed.
    pub(super) fn backquotes(&mut self) {
        let (from, mut end, mut is_escaped) = (self.mark(), self.at, false);
        while end < self.limit && self.symbols.get(end) != Some(&Symbol::Char('`')) {
            let escapes = self.symbols.get(end) == Some(&Symbol::Char('\\'));
            is_escaped |= escapes;
            end += if escapes { 2 } else { 1 };
        }
        if end >= self.limit {
            self.is_in_doubt();
        }
        let limit = self.limit;
        self.limit = end.min(limit);
        self.nested(|reader| reader.list(End::Text).unwrap_or(()));
        self.limit = limit;
        self.takes('`');
        if is_escaped {
            let range = from..self.mark();
            self.demand(range, Trust::Number, "in backquotes with a backslash");
        }
    }

    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(Symbol::Char(' ' | '\t')) => self.advance(1),
                Some(Symbol::Char('\\')) if self.follows(1, '\n') => self.advance(2),
                _ => return,
            }
        }
    }

    /// Blanks, ends of lines and comments.
    fn lines(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some(Symbol::Char('\n')) => self.line_ends(),
                Some(Symbol::Char('#')) => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Char('\n') => return,
                Symbol::Placeholder(piece) => {
                    self.advance(1);
                    self.found.manners.insert(piece, Manner::Unquoted);
                }
                Symbol::Char(_) => self.advance(1),
            }
        }
    }

    /// Reads commands up to an end, which it passes over. Gives something where that was the end that was expected.
    pub(super) fn list(&mut self, end: End) -> Option<()> {
        let mut command = Command { from: self.mark(), ..Command::default() };
        loop {
            self.blanks();
            let Some(symbol) = self.peek() else {
                self.finish(&mut command);
                if end != End::Text {
                    self.is_in_doubt();
                }
                return None;
            };
            match symbol {
                Symbol::Char('\n') => {
                    self.finish(&mut command);
                    self.line_ends();
                }
                Symbol::Char('#') => self.comment(),
                Symbol::Char(';') => {
                    self.finish(&mut command);
                    self.advance(1);
                    if self.takes(';') || (end == End::Branch && self.is('&')) {
                        self.takes('&');
                        if end == End::Branch {
                            return Some(());
                        }
                        self.is_in_doubt();
                    }
                }
                Symbol::Char('&') if !self.follows(1, '>') => {
                    self.finish(&mut command);
                    self.advance(1);
                    self.takes('&');
                }
                Symbol::Char('|') => self.pipe(&mut command),
                Symbol::Char('(') => self.parenthesis(&mut command),
                Symbol::Char(')') => {
                    self.finish(&mut command);
                    self.advance(1);
                    if end == End::Parenthesis {
                        return Some(());
                    }
                    self.is_in_doubt();
                }
                Symbol::Char('&' | '<' | '>') if !self.is_substitution() => self.redirection(&mut command),
                _ => {
                    if self.word_of(&mut command, end) {
                        self.finish(&mut command);
                        return None;
                    }
                }
            }
        }
    }

    fn is_substitution(&self) -> bool {
        !self.is('&') && self.follows(1, '(')
    }

    fn pipe(&mut self, command: &mut Command) {
        self.advance(1);
        if self.takes('|') {
            return self.finish(command);
        }
        self.takes('&');
        if command.words.is_empty() {
            self.fed_up_to = self.mark();
        }
        let feed = command.from..self.mark();
        self.feeds.push(feed);
        self.finish(command);
    }

    /// A subshell, a function's parentheses or arithmetic.
    fn parenthesis(&mut self, command: &mut Command) {
        let is_loop = command.words.len() == 1 && command.words.iter().all(|word| word.is("for"));
        if (command.is_empty() || is_loop) && self.follows(1, '(') {
            self.advance(2);
            self.nested(Reader::arithmetic_command);
            *command = Command { from: self.mark(), ..Command::default() };
            return;
        }
        self.advance(1);
        if command.is_empty() {
            return self.nested(|reader| reader.list(End::Parenthesis).unwrap_or(()));
        }
        self.blanks();
        if command.words.len() <= 2 && self.takes(')') {
            let range = command.from..self.mark();
            self.demand(range, Trust::Number, "in the name of a function");
            self.has_functions = true;
            *command = Command { from: self.mark(), ..Command::default() };
            return;
        }
        self.is_in_doubt();
        self.nested(|reader| reader.list(End::Parenthesis).unwrap_or(()));
    }

    fn finish(&mut self, command: &mut Command) {
        let done = std::mem::replace(command, Command { from: self.mark(), ..Command::default() });
        self.simple_command(&done.words, done.documents);
        command.from = self.mark();
    }

    /// Reads a word of a command. Says whether it was the `esac` that ends the branch.
    fn word_of(&mut self, command: &mut Command, end: End) -> bool {
        let position = if command.words.is_empty() { Position::Command } else { Position::Argument };
        let word = self.word(position);
        if !command.words.is_empty() {
            command.words.push(word);
            return false;
        }
        match word.bare() {
            Some("if" | "then" | "else" | "elif" | "do" | "while" | "until" | "!" | "{" | "time" | "coproc") => {}
            Some("}" | "fi" | "done") => command.has_redirection = false,
            Some("esac") => {
                if end == End::Branch {
                    return true;
                }
                self.is_in_doubt();
            }
            Some("case") => self.nested(Reader::case),
            Some("[[") => self.nested(Reader::conditional_command),
            _ if word.assigned.is_some() => {
                command.has_assignment = true;
                self.assignment(&word);
            }
            _ => command.words.push(word),
        }
        false
    }

    fn case(&mut self) {
        self.blanks();
        self.word(Position::Argument);
        self.lines();
        if !self.word(Position::Argument).is("in") {
            return self.is_in_doubt();
        }
        loop {
            self.lines();
            self.takes('(');
            if self.peek().is_none() {
                return self.is_in_doubt();
            }
            self.blanks();
            if self.word(Position::Argument).bare() == Some("esac") && !self.is(')') {
                return;
            }
            loop {
                self.blanks();
                if self.takes(')') {
                    break;
                }
                if !self.takes('|') {
                    return self.is_in_doubt();
                }
                self.blanks();
                self.word(Position::Argument);
            }
            let mut is_over = false;
            self.nested(|reader| is_over = reader.list(End::Branch).is_none());
            if is_over {
                return;
            }
        }
    }

    fn redirection(&mut self, command: &mut Command) {
        command.has_redirection = true;
        self.takes('&');
        let is_document = self.is('<') && self.follows(1, '<');
        if is_document && self.follows(2, '<') {
            self.advance(3);
            self.blanks();
            let word = self.word(Position::Argument);
            command.documents += 1;
            return self.feeds.push(word.range);
        }
        if is_document {
            self.advance(2);
            return self.document(command);
        }
        self.advance(1);
        while matches!(self.peek(), Some(Symbol::Char('<' | '>' | '&' | '|'))) && !self.is_substitution() {
            self.advance(1);
        }
        self.blanks();
        self.word(Position::Argument);
    }

    /// A here-document, whose body begins in the next line.
    fn document(&mut self, command: &mut Command) {
        let strips_tabs = self.takes('-');
        self.blanks();
        let word = self.word(Position::Argument);
        self.demand(word.range.clone(), Trust::Number, "in the word that ends a here-document");
        let is_expanded = !word.is_quoted;
        let delimiter = word.text().unwrap_or_default().to_owned();
        command.documents += 1;
        self.documents.push(Document { delimiter, strips_tabs, is_expanded, is_code: false });
    }

    /// Passes over the end of a line, and the bodies of here-documents that follow it.
    pub(super) fn line_ends(&mut self) {
        self.takes('\n');
        for document in std::mem::take(&mut self.documents) {
            let from = self.mark();
            while !self.is_at_delimiter(&document) {
                if self.peek().is_none() {
                    break;
                }
                self.line_of(&document);
            }
            let body = from..self.mark();
            if document.is_code {
                self.demand(body.clone(), Trust::Plain, "in what a shell reads as its commands");
            }
            self.feeds.push(body);
        }
    }

    fn rest_of_line(&self) -> impl Iterator<Item = Symbol> + '_ {
        let rest = self.symbols.get(self.at..self.limit).unwrap_or_default();
        rest.iter().copied().take_while(|symbol| *symbol != Symbol::Char('\n'))
    }

    /// Passes over the line that ends a here-document, where it is the next one.
    fn is_at_delimiter(&mut self, document: &Document) -> bool {
        let strips = |symbol: &Symbol| document.strips_tabs && *symbol == Symbol::Char('\t');
        let line: Vec<Symbol> = self.rest_of_line().collect();
        let ends = line.iter().copied().skip_while(strips).eq(document.delimiter.chars().map(Symbol::Char));
        if ends {
            self.advance(line.len());
            self.takes('\n');
        } else if !document.is_expanded {
            self.note_endings(&line, document);
        }
        ends
    }

    /// Notes the values that would make a line the one that ends a here-document.
    fn note_endings(&mut self, line: &[Symbol], document: &Document) {
        let Some(missing) = missing(line, &document.delimiter, document.strips_tabs) else { return };
        let pieces = line.iter().filter_map(|symbol| match symbol {
            Symbol::Placeholder(piece) => Some(*piece),
            Symbol::Char(_) => None,
        });
        let is_alone = pieces.clone().count() == 1;
        let endings = pieces.map(|piece| (piece, Ending { missing: missing.clone(), is_alone }));
        self.found.endings.extend(endings);
    }

    fn line_of(&mut self, document: &Document) {
        while let Some(symbol) = self.peek() {
            match symbol {
                Symbol::Char('\n') => return self.advance(1),
                Symbol::Placeholder(piece) if document.is_expanded => {
                    self.placeholder(piece, Manner::ExpandedDocument);
                }
                Symbol::Placeholder(piece) => self.placeholder(piece, Manner::LiteralDocument),
                Symbol::Char('\\') if document.is_expanded => self.escape(&mut Word::default()),
                Symbol::Char('$') if document.is_expanded => self.dollar(&mut Word::default(), true),
                Symbol::Char('`') if document.is_expanded => {
                    self.advance(1);
                    self.backquotes();
                }
                Symbol::Char(_) => self.advance(1),
            }
        }
    }
}

/// The values that would make a line the one that ends a here-document; none where none can.
fn missing(line: &[Symbol], delimiter: &str, strips_tabs: bool) -> Option<String> {
    let letter = |symbol: &Symbol| match symbol {
        Symbol::Char(letter) => Some(*letter),
        Symbol::Placeholder(_) => None,
    };
    if line.iter().all(|symbol| letter(symbol).is_some()) {
        return None;
    }
    let lead: String = line.iter().map_while(letter).skip_while(|letter| strips_tabs && *letter == '\t').collect();
    let tail: Vec<char> = line.iter().rev().map_while(letter).collect();
    let tail: String = tail.into_iter().rev().collect();
    Some(delimiter.strip_prefix(&*lead)?.strip_suffix(&*tail)?.to_owned())
}
