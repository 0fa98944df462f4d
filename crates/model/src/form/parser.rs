//! The text form, read.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::DEEPEST;
use super::call::{Argument, ArgumentValue, Call, Nests, Parameter, ParameterType, Position, Signature};
use super::error::{FormError, Place};
use super::notation::Grammar;
use crate::time::Zone;

pub(super) fn parse<T: Grammar>(text: &str, zone: &Zone) -> Result<T, FormError> {
    Parser { text, at: 0, depth: 0, zone, of: PhantomData }.whole().map_err(|error| in_characters(error, text))
}

/// The parser counts bytes: only the place that is shown needs characters, and counting them takes time.
fn in_characters(error: FormError, text: &str) -> FormError {
    match error.place {
        Place::Character(byte) => {
            let number = text.get(..byte).unwrap_or_default().chars().count() + 1;
            FormError { place: Place::Character(number), ..error }
        }
        _ => error,
    }
}

struct Parser<'a, T> {
    text: &'a str,
    /// The byte that comes next.
    at: usize,
    depth: usize,
    zone: &'a Zone,
    of: PhantomData<T>,
}

impl<'a, T: Grammar> Parser<'a, T> {
    fn whole(&mut self) -> Result<T, FormError> {
        let one = self.one()?;
        self.blanks();
        if self.rest().is_empty() {
            return Ok(one);
        }
        Err(self.wrong_here(format!("the {} has ended before this: expected nothing more{}", T::NOUN, T::MORE)))
    }

    fn one(&mut self) -> Result<T, FormError> {
        self.blanks();
        let start = self.at;
        if self.depth >= DEEPEST {
            let problem = format!("{}s are nested more than {DEEPEST} deep: expected fewer levels", T::NOUN);
            return Err(self.wrong(start, problem));
        }
        let signature = self.signature()?;
        let mut call = Call {
            signature,
            place: Place::Character(start),
            arguments: Vec::new(),
            nested: Vec::new(),
            zone: self.zone,
        };
        self.blanks();
        if self.peek() == Some('(') {
            self.depth += 1;
            self.within_brackets(&mut call)?;
            self.depth -= 1;
        } else if !signature.takes_nothing() {
            let Signature { name, usage, .. } = signature;
            return Err(self.wrong_here(format!("expected \"(\" after `{name}`: {usage}")));
        }
        call.read()
    }

    fn signature(&mut self) -> Result<&'static Signature<T>, FormError> {
        let start = self.at;
        let end = self.rest().find(['(', ')', ',', '"']).unwrap_or(self.rest().len());
        let name = self.rest().get(..end).unwrap_or_default().trim_end();
        self.at += name.len();
        if name.is_empty() {
            return Err(self.wrong(start, format!("expected a {}: {}", T::NOUN, usages::<T>())));
        }
        T::named(name).map_err(|likely| {
            let problem = format!("{:?} is no {}: expected {}", shortened(name), T::NOUN, usages::<T>());
            self.wrong(start, problem).with_hint(likely.map(|likely| format!("did you mean {likely:?}?")))
        })
    }

    /// The arguments between brackets, of which the first comes next.
    fn within_brackets(&mut self, call: &mut Call<'a, T>) -> Result<(), FormError> {
        let open = self.at;
        self.at += 1;
        self.blanks();
        if self.peek() == Some(')') {
            self.at += 1;
            return Ok(());
        }
        let mut in_order = call.signature.in_order().peekable();
        loop {
            self.argument(call, &mut in_order)?;
            self.blanks();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(')') => {
                    self.at += 1;
                    return Ok(());
                }
                None => return Err(self.unclosed(open)),
                Some(_) => return Err(self.wrong_here("expected \",\" or \")\"")),
            }
        }
    }

    /// One argument: a value of the next parameter, of a named one, or a nested trigger.
    fn argument(
        &mut self,
        call: &mut Call<'a, T>,
        in_order: &mut std::iter::Peekable<impl Iterator<Item = &'static Parameter>>,
    ) -> Result<(), FormError> {
        self.blanks();
        let start = self.at;
        if let Some(parameter) = self.name_of_parameter(call.signature) {
            return self.value(call, parameter);
        }
        match in_order.peek() {
            Some(parameter) => {
                let parameter = *parameter;
                // Of the ends of runs there may be several.
                if parameter.of != ParameterType::Ends {
                    in_order.next();
                }
                self.value(call, parameter)
            }
            None if call.signature.nests == Nests::Nothing => {
                let Signature { name, usage, .. } = call.signature;
                Err(self.wrong(start, format!("`{name}` takes no more than this: {usage}")))
            }
            None => {
                call.nested.push(self.one()?);
                Ok(())
            }
        }
    }

    /// The parameter whose name comes next, with a `=` behind it; both are passed over.
    fn name_of_parameter(&mut self, signature: &'static Signature<T>) -> Option<&'static Parameter> {
        let end = self.rest().find(['=', ',', '(', ')', '"'])?;
        let (name, rest) = self.rest().split_at(end);
        if !rest.starts_with('=') {
            return None;
        }
        let parameter = signature.by_name(name.trim())?;
        self.at += end + 1;
        self.blanks();
        Some(parameter)
    }

    /// The value of a parameter, and of those that may follow it.
    fn value(&mut self, call: &mut Call<'a, T>, parameter: &'static Parameter) -> Result<(), FormError> {
        let mut followers = call.signature.followers(parameter);
        self.push_word(call, parameter, followers)?;
        while let Some(letter) = self.peek()
            && let Some(next) = followers.iter().position(|one| one.position == Position::After(letter))
            && let Some((parameter, rest)) = followers.get(next..).and_then(<[Parameter]>::split_first)
        {
            self.at += letter.len_utf8();
            self.blanks();
            followers = rest;
            self.push_word(call, parameter, followers)?;
        }
        Ok(())
    }

    fn push_word(
        &mut self,
        call: &mut Call<'a, T>,
        parameter: &'static Parameter,
        followers: &[Parameter],
    ) -> Result<(), FormError> {
        let start = self.at;
        let word = self.word(parameter.of == ParameterType::Cron, followers)?;
        if call.arguments.iter().any(|one| one.name == parameter.name) && parameter.of != ParameterType::Ends {
            return Err(self.wrong(start, format!("{} is given twice: expected one value", parameter.name)));
        }
        let place = Place::Character(start);
        call.arguments.push(Argument { name: parameter.name, place, value: ArgumentValue::Word(word) });
        Ok(())
    }

    /// A word: in quotes as in JSON, or bare, up to a comma or bracket that is not its own, or the character before what may follow
    /// it. Commas are a cron expression's own.
    fn word(&mut self, is_cron: bool, followers: &[Parameter]) -> Result<Cow<'a, str>, FormError> {
        let start = self.at;
        if self.peek() == Some('"') {
            let word = self.quoted()?;
            self.blanks();
            return Ok(word.into());
        }
        let mut open = Vec::new();
        let end = self.rest().char_indices().find(|(at, letter)| match letter {
            '(' => {
                open.push(start + at);
                false
            }
            ')' => open.pop().is_none(),
            ',' => open.is_empty() && !is_cron,
            letter => followers.iter().any(|one| one.position == Position::After(*letter)),
        });
        let end = end.map_or(self.text.len(), |(at, _)| start + at);
        if let (true, Some(open)) = (end == self.text.len(), open.last()) {
            return Err(self.unclosed(*open));
        }
        self.at = end;
        let word = self.text.get(start..end).unwrap_or_default().trim_end();
        if word.is_empty() {
            return Err(self.wrong(start, "expected a word here, or \"\" for none"));
        }
        Ok(word.into())
    }

    fn quoted(&mut self) -> Result<String, FormError> {
        let start = self.at;
        let mut is_escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, letter)| {
            let ends = *letter == '"' && !is_escaped;
            is_escaped = *letter == '\\' && !is_escaped;
            ends
        });
        let (end, _) =
            end.ok_or_else(|| self.wrong(start, "the quote that begins here does not end: expected another '\"'"))?;
        let text = self.rest().get(..=end).unwrap_or_default();
        self.at += end + 1;
        serde_json::from_str(text)
            .map_err(|_| self.wrong(start, format!("{} is not a text as JSON has it", shortened(text))))
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, at: usize, problem: impl Into<String>) -> FormError {
        FormError::new(Place::Character(at), problem)
    }

    fn wrong_here(&self, problem: impl Into<String>) -> FormError {
        self.wrong(self.at, problem)
    }

    fn unclosed(&self, open: usize) -> FormError {
        self.wrong(open, "the bracket that opens here is not closed: expected a \")\"")
    }
}

/// All that can be written, for messages.
fn usages<T: Grammar>() -> String {
    let usages: Vec<&str> = T::signatures().iter().map(|one| one.usage).collect();
    usages.join(", ")
}

/// The beginning of what may be long.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
