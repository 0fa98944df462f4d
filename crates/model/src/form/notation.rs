//! A trigger or a constraint that is being written: its signature, and a value for each parameter.

use super::call::Signature;
use crate::similar::closest;
use crate::state::SlotState;

/// A noun with one form in text and one in JSON.
pub(super) trait Grammar: Sized + 'static {
    /// Its name in messages.
    const NOUN: &'static str;
    /// The end of the message about text that follows a whole one: what else could be expected there.
    const MORE: &'static str;

    /// All its kinds, in the order in which they are explained.
    fn signatures() -> &'static [&'static Signature<Self>];

    /// Its signature, and the values to write.
    fn notation(&self) -> Notation<'_, Self>;

    /// The signature of a name in text.
    ///
    /// # Errors
    /// With what was probably meant, where something was.
    fn named(name: &str) -> Result<&'static Signature<Self>, Option<&'static str>> {
        let found = Self::signatures().iter().find(|one| one.name == name || one.aliases.contains(&name));
        found.copied().ok_or_else(|| likely(name, Self::signatures().iter().map(|one| one.name)))
    }

    /// The signature of a `type` in JSON.
    ///
    /// # Errors
    /// With what was probably meant, where something was.
    fn of_type(name: &str) -> Result<&'static Signature<Self>, Option<&'static str>> {
        let found = Self::signatures().iter().find(|one| one.json == name);
        found.copied().ok_or_else(|| likely(name, Self::signatures().iter().map(|one| one.json)))
    }
}

/// The closest of some words, where the wrong one is short enough to be one of them.
fn likely(wrong: &str, words: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if wrong.len() > 64 { None } else { closest(wrong, words) }
}

/// A signature with the values of its parameters, ready to be written in either form.
pub(super) struct Notation<'a, T: 'static> {
    pub(super) signature: &'static Signature<T>,
    pub(super) values: Vec<(&'static str, PartValue<'a>)>,
    pub(super) nested: &'a [T],
}

/// The value of a parameter.
pub(super) enum PartValue<'a> {
    Text(&'a str),
    /// A text that may be left out where people read it, as it is what is meant without.
    Implied(&'a str),
    Number(u64),
    Seconds(i64),
    Millis(u64),
    Ends(&'a [SlotState]),
}
