//! Conditions: `test`, `[` and `[[`.

use super::Trust;
use super::reader::{Reader, Symbol};
use super::word::{Position, Word};

const COMPARES_NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
const COMPARES: [&str; 9] = ["=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"];
const NAMES_A_VARIABLE: [&str; 2] = ["-v", "-R"];
const JOINS: [&str; 7] = ["!", "(", ")", "&&", "||", "-a", "-o"];

/// The operator beside an operand, which says what the operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Compares,
    ComparesNumbers,
    NamesVariable,
    Asks,
    Operand,
}

fn beside(word: Option<&Word>) -> Beside {
    let Some(word) = word else { return Beside::Nothing };
    match word.text() {
        Some(text) if COMPARES.contains(&text) => Beside::Compares,
        Some(text) if COMPARES_NUMBERS.contains(&text) => Beside::ComparesNumbers,
        Some(text) if NAMES_A_VARIABLE.contains(&text) => Beside::NamesVariable,
        Some(text) if JOINS.contains(&text) => Beside::Nothing,
        Some(text) if text.len() == 2 && text.starts_with('-') => Beside::Asks,
        _ => Beside::Operand,
    }
}

impl Reader {
    /// Reads a conditional command, from behind `[[` up to `]]`.
    pub(super) fn conditional_command(&mut self) {
        let mut words: Vec<Word> = Vec::new();
        loop {
            let Some(symbol) = self.peek() else {
                self.is_in_doubt();
                break;
            };
            let is_expression = words.last().is_some_and(|word| word.is("=~"));
            let is_substitution = self.follows(1, '(') && (self.is('<') || self.is('>'));
            match symbol {
                Symbol::Char('\n') => self.line_ends(),
                Symbol::Char(' ' | '\t') => self.advance(1),
                Symbol::Char(letter @ ('&' | '|' | '(' | ')' | '<' | '>' | ';'))
                    if !(is_substitution || (is_expression && letter == '(')) =>
                {
                    self.advance(1);
                    if letter == '&' || letter == '|' {
                        self.takes(letter);
                    }
                    let text = if "&|".contains(letter) { "&&".to_owned() } else { letter.to_string() };
                    words.push(Word { lead: text, range: self.mark()..self.mark(), ..Word::default() });
                }
                _ => {
                    let word = self.word(if is_expression { Position::Expression } else { Position::Conditional });
                    if word.bare() == Some("]]") {
                        break;
                    }
                    words.push(word);
                }
            }
        }
        self.condition(&words, true);
    }

    /// Judges the operands of a condition.
    pub(super) fn condition(&mut self, words: &[Word], is_double: bool) {
        for (at, word) in words.iter().enumerate().filter(|(_, word)| word.is_dynamic) {
            let before = beside(at.checked_sub(1).and_then(|at| words.get(at)));
            let after = beside(words.get(at + 1));
            let position = match (before, after) {
                (Beside::NamesVariable, _) => "in the name of a variable",
                (Beside::ComparesNumbers, _) | (_, Beside::ComparesNumbers) if is_double => {
                    "in a comparison of numbers"
                }
                // Several words where one was meant.
                _ if !is_double && word.splits => "without quotes in a condition",
                (Beside::Compares | Beside::ComparesNumbers | Beside::Asks, _)
                | (_, Beside::Compares | Beside::ComparesNumbers)
                | (Beside::Nothing, Beside::Nothing) => continue,
                _ if !word.begins_dynamic() && !word.begins_with_minus() => continue,
                _ => "in a condition where it may be an operator",
            };
            self.demand(word.range.clone(), Trust::Number, position);
        }
    }
}
