//! The text form of a trigger, printed.

use std::borrow::Cow;
use std::fmt;

use super::call::{Position, Signature};
use super::notation::{PartValue, notation};
use crate::time::format_duration;
use crate::trigger::Trigger;

pub(super) fn print(trigger: &Trigger, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let whole = notation(trigger);
    let signature = whole.signature;
    f.write_str(signature.name)?;
    if signature.takes_nothing() {
        return Ok(());
    }
    f.write_str("(")?;
    let mut is_first = true;
    for (name, value) in &whole.values {
        let Some(parameter) = signature.parameters.iter().find(|one| one.name == *name) else { continue };
        for word in words(value, signature) {
            match parameter.position {
                Position::AfterAt => write!(f, " @ {word}")?,
                Position::InOrder => write!(f, "{}{word}", separator(&mut is_first))?,
                Position::Named | Position::Condition => write!(f, "{}{name}={word}", separator(&mut is_first))?,
            }
        }
    }
    for trigger in whole.nested {
        write!(f, "{}{trigger}", separator(&mut is_first))?;
    }
    f.write_str(")")
}

fn separator(is_first: &mut bool) -> &'static str {
    if std::mem::replace(is_first, false) { "" } else { ", " }
}

/// The words of a value; none where it need not be written.
fn words<'a>(value: &PartValue<'a>, signature: &Signature) -> Vec<Cow<'a, str>> {
    match value {
        PartValue::Implied(_) => Vec::new(),
        PartValue::Text(text) => vec![word(text, signature)],
        PartValue::Number(number) => vec![number.to_string().into()],
        PartValue::Seconds(seconds) => vec![format_duration(*seconds).into()],
        PartValue::Ends(states) => states.iter().map(|state| state.as_str().into()).collect(),
    }
}

/// A text as one word: in quotes, as in JSON, where it would be read as something else without.
fn word<'a>(text: &'a str, signature: &Signature) -> Cow<'a, str> {
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.starts_with('"')
        // A cron expression has commas of its own.
        && (signature.takes_cron() || !text.contains(','))
        && !text.contains(|letter: char| matches!(letter, '(' | ')') || letter.is_control())
        && text.split_once('=').is_none_or(|(name, _)| signature.by_name(name.trim()).is_none());
    if is_plain { text.into() } else { serde_json::Value::from(text).to_string().into() }
}
