//! The text form, printed.

use std::borrow::Cow;
use std::fmt;

use super::call::{Parameter, ParameterType, Position, Signature};
use super::notation::{Grammar, PartValue};
use crate::time::{format_duration, format_millis};

pub(super) fn print<T: Grammar>(one: &T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let whole = one.notation();
    let signature = whole.signature;
    f.write_str(signature.name)?;
    if signature.takes_nothing() {
        return Ok(());
    }
    f.write_str("(")?;
    let mut is_first = true;
    for (name, value) in &whole.values {
        let Some(parameter) = signature.parameters.iter().find(|one| one.name == *name) else { continue };
        for word in words(value, signature, parameter) {
            match parameter.position {
                Position::After('@') => write!(f, " @ {word}")?,
                Position::After(letter) => write!(f, "{letter}{word}")?,
                Position::InOrder => write!(f, "{}{word}", separator(&mut is_first))?,
                Position::Named | Position::Condition => write!(f, "{}{name}={word}", separator(&mut is_first))?,
            }
        }
    }
    for nested in whole.nested {
        f.write_str(separator(&mut is_first))?;
        print(nested, f)?;
    }
    f.write_str(")")
}

fn separator(is_first: &mut bool) -> &'static str {
    if std::mem::replace(is_first, false) { "" } else { ", " }
}

/// The words of a value; none where it need not be written.
fn words<'a, T>(value: &PartValue<'a>, signature: &Signature<T>, parameter: &Parameter) -> Vec<Cow<'a, str>> {
    match value {
        PartValue::Implied(_) => Vec::new(),
        PartValue::Text(text) => vec![word(text, signature, parameter)],
        PartValue::Number(number) => vec![number.to_string().into()],
        PartValue::Seconds(seconds) => vec![format_duration(*seconds).into()],
        PartValue::Millis(millis) => vec![format_millis(*millis).into()],
        PartValue::Ends(states) => states.iter().map(|state| state.as_str().into()).collect(),
    }
}

/// A text as one word: in quotes, as in JSON, where it would be read as something else without.
fn word<'a, T>(text: &'a str, signature: &Signature<T>, parameter: &Parameter) -> Cow<'a, str> {
    let ends = |letter| signature.followers(parameter).iter().any(|one| one.position == Position::After(letter));
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.starts_with('"')
        // A cron expression has commas of its own.
        && (parameter.of == ParameterType::Cron || !text.contains(','))
        && !text.contains(|letter: char| matches!(letter, '(' | ')') || letter.is_control() || ends(letter))
        && text.split_once('=').is_none_or(|(name, _)| signature.by_name(name.trim()).is_none());
    if is_plain { text.into() } else { serde_json::Value::from(text).to_string().into() }
}
