//! Positions of values in a text for a shell, and what a shell would make of them there.
//!
//! A shell evaluates more than what is written as a command: in arithmetic, and where a name is expected, bash runs the
//! `$(…)` in the index of an array, also where it has just read that from a variable. So a text is read as a shell reads it, far enough to say
//! of each value how it can be quoted, and whether it may be there at all. Whatever is uncertain counts as evaluated.

mod commands;
mod conditions;
mod expansions;
mod lists;
mod placeholder;
mod reader;
mod word;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub use placeholder::{Piece, Placeholders};

/// The manner in which a value is given to a shell at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// A word, or a part of one, outside quotes.
    Unquoted,
    /// Inside double quotes, or what is expanded as if it were.
    Double,
    /// Inside single quotes.
    Single,
    /// Inside `[[ … ]]`, where a word that looks like an operator is one.
    Conditional,
    /// A number in arithmetic.
    Arithmetic {
        /// Whether it is a part of a longer number or name.
        joined: bool,
    },
    /// The body of a here-document in which the shell expands variables.
    ExpandedDocument,
    /// The body of a here-document that the shell takes as it is.
    LiteralDocument,
}

/// How far what a value may be is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Any text.
    Free,
    /// A word whose characters all mean themselves to a shell.
    Plain,
    /// A whole number or a day.
    Number,
}

/// A value at a position that can't have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellFault {
    /// The name of the value.
    pub name: String,
    /// The variable that holds it there, where it is not there itself.
    pub variable: Option<String>,
    /// The position, such as "in arithmetic".
    pub position: &'static str,
    /// The trust that the position demands.
    pub expected: Trust,
}

/// A mention of a value in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mention {
    /// A placeholder, by the number of its piece.
    Placeholder(usize),
    /// A variable of the shell; `@` for the arguments of a function or of the text.
    Variable(String),
}

/// A demand on all mentions of a range.
#[derive(Debug, Clone)]
struct Demand {
    range: Range<usize>,
    trust: Trust,
    position: &'static str,
}

/// A value that would make its line the end of a here-document.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ending {
    missing: String,
    /// Whether no other value is in the line.
    is_alone: bool,
}

/// A text for a shell, as far as it says what becomes of values.
#[derive(Debug, Default)]
pub struct ShellText {
    names: BTreeMap<usize, String>,
    manners: BTreeMap<usize, Manner>,
    endings: BTreeMap<usize, Ending>,
    mentions: Vec<Mention>,
    demands: Vec<Demand>,
    /// Variables, and the mentions that their values are made of.
    flows: Vec<(String, Range<usize>)>,
}

impl ShellText {
    /// Reads a text. `raw` gives the values that are pasted as they are; where it has none, a word is assumed.
    pub fn read<'a>(text: &Placeholders, raw: impl Fn(&str) -> Option<&'a str>) -> ShellText {
        let mut symbols = Vec::new();
        let mut names = BTreeMap::new();
        for (at, piece) in text.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => symbols.extend(text.chars().map(reader::Symbol::Char)),
                Piece::Value { name, raw: true } => {
                    symbols.extend(raw(name).unwrap_or("x").chars().map(reader::Symbol::Char));
                }
                Piece::Value { name, raw: false } => {
                    symbols.push(reader::Symbol::Placeholder(at));
                    names.insert(at, name.clone());
                }
            }
        }
        ShellText { names, ..lists::read(symbols, 0) }
    }

    /// Reads a text without placeholders.
    #[must_use]
    pub fn of_variables(text: &str) -> ShellText {
        lists::read(text.chars().map(reader::Symbol::Char).collect(), 0)
    }

    /// The manner in which the value of a piece is given.
    #[must_use]
    pub fn manner(&self, piece: usize) -> Manner {
        self.manners.get(&piece).copied().unwrap_or(Manner::Unquoted)
    }

    /// Whether a value would make its line the one that ends a here-document, or break that line.
    #[must_use]
    pub fn ends_a_document(&self, piece: usize, value: &str) -> bool {
        let ends = self.endings.get(&piece).is_some_and(|ending| match ending.is_alone {
            true => ending.missing == value,
            false => ending.missing.contains(value),
        });
        self.manner(piece) == Manner::LiteralDocument && (ends || value.contains('\n'))
    }

    /// Values at positions that can't have them, each once. `value` and `variable` say how far the values of placeholders and of the
    /// variables that the shell is started with are known; none for a variable that it is started without.
    pub fn faults(&self, value: impl Fn(&str) -> Trust, variable: impl Fn(&str) -> Option<Trust>) -> Vec<ShellFault> {
        let origins = self.origins(&value, &variable);
        let mut faults: Vec<ShellFault> = Vec::new();
        for demand in &self.demands {
            for mention in self.within(&demand.range) {
                let found: Vec<ShellFault> = match mention {
                    Mention::Placeholder(piece) => {
                        let name = self.name(*piece);
                        let fault = (value(&name) < demand.trust).then(|| demand.fault(&name, None));
                        fault.into_iter().collect()
                    }
                    Mention::Variable(name) => {
                        let told = origins.get(name).into_iter().flatten().filter(|(_, trust)| *trust < demand.trust);
                        told.map(|(origin, _)| demand.fault(origin, Some(name))).collect()
                    }
                };
                faults.extend(found);
            }
        }
        let mut known = BTreeSet::new();
        faults.retain(|fault| known.insert((fault.name.clone(), fault.position)));
        faults
    }

    /// The values that each variable may hold, by their names.
    fn origins(
        &self,
        value: &impl Fn(&str) -> Trust,
        variable: &impl Fn(&str) -> Option<Trust>,
    ) -> BTreeMap<String, BTreeSet<(String, Trust)>> {
        let mut origins: BTreeMap<String, BTreeSet<(String, Trust)>> = BTreeMap::new();
        for mention in &self.mentions {
            let Mention::Variable(name) = mention else { continue };
            if let Some(trust) = variable(name) {
                origins.entry(name.clone()).or_default().insert((name.clone(), trust));
            }
        }
        loop {
            let mut grew = false;
            for (target, range) in &self.flows {
                let mut held: BTreeSet<(String, Trust)> = BTreeSet::new();
                for mention in self.within(range) {
                    match mention {
                        Mention::Placeholder(piece) => {
                            let name = self.name(*piece);
                            let trust = value(&name);
                            held.insert((name, trust));
                        }
                        Mention::Variable(name) => held.extend(origins.get(name).into_iter().flatten().cloned()),
                    }
                }
                let known = origins.entry(target.clone()).or_default();
                let before = known.len();
                known.extend(held);
                grew |= known.len() > before;
            }
            if !grew {
                return origins;
            }
        }
    }

    fn within(&self, range: &Range<usize>) -> &[Mention] {
        self.mentions.get(range.clone()).unwrap_or_default()
    }

    fn name(&self, piece: usize) -> String {
        self.names.get(&piece).cloned().unwrap_or_default()
    }
}

impl Demand {
    fn fault(&self, name: &str, variable: Option<&str>) -> ShellFault {
        let variable = variable.map(str::to_owned);
        ShellFault { name: name.to_owned(), variable, position: self.position, expected: self.trust }
    }
}

impl std::fmt::Display for ShellFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.variable {
            None => write!(f, "{{{}}} stands {}", self.name, self.position)?,
            Some(variable) if *variable == self.name => write!(f, "${variable} stands {}", self.position)?,
            Some(variable) if variable.starts_with('@') => {
                write!(f, "an argument that holds {{{}}} stands {}", self.name, self.position)?;
            }
            Some(variable) => write!(f, "${variable}, which holds {{{}}}, stands {}", self.name, self.position)?,
        }
        let expected = match self.expected {
            Trust::Number => "an integer or a date",
            _ => "an integer, a date or one of a list of plain words",
        };
        write!(f, ", where a shell may run what is in it, expected {expected}")
    }
}

/// Whether all characters of a value mean themselves wherever a shell reads it.
#[must_use]
pub fn is_plain(value: &str) -> bool {
    const RESERVED: [&str; 17] = [
        "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "time",
        "function", "select", "coproc",
    ];
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:@%+,-".contains(letter);
    !value.is_empty() && !RESERVED.contains(&value) && value.chars().all(plain)
}

/// How far a value itself can be trusted.
#[must_use]
pub fn trust_of(value: &str) -> Trust {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_day = value.len() == 10 && value.split('-').map(str::len).eq([4, 2, 2]) && value.split('-').all(digits);
    if is_day || digits(value.strip_prefix('-').unwrap_or(value)) {
        Trust::Number
    } else if is_plain(value) && !value.starts_with('-') {
        Trust::Plain
    } else {
        Trust::Free
    }
}
