//! Shell commands with placeholders such as `{date}` for values of the job.
//!
//! A value never becomes a part of the text that the shell parses, unless all its characters are harmless: the shell
//! reads it from a variable. Where a shell also evaluates the content of a variable, only numbers are allowed. Only
//! `{date:raw}` is pasted unchecked.

use std::collections::BTreeMap;

use kelos_engine::executor::Start;
use kelos_model::jobs::shown;
use kelos_model::shell::{Manner, Piece, Placeholders, ShellText, Trust, is_plain, trust_of};
use serde_json::{Map, Value, json};

use super::translated::JobValues;

/// The settings of a command for a job: `shell` with its placeholders filled.
pub(super) fn command(start: &Start) -> Result<Map<String, Value>, String> {
    let mut settings = start.whole_settings();
    let text = settings.get("shell").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let text = text.ok_or("there is nothing to run: give its app a bash_cmd")?;
    let quoted = quoted(&Placeholders::read(text)?, &JobValues::of(start))?;
    settings.insert("shell".to_owned(), Value::String(quoted.text));
    let env = settings.entry("env").or_insert_with(|| json!({}));
    let env = env.as_object_mut().ok_or("`env` must be an object of strings")?;
    env.extend(quoted.variables.into_iter().map(|(name, value)| (name, Value::String(value))));
    Ok(settings)
}

/// A text for the shell, and the variables that it reads values from.
#[derive(Debug, Default, PartialEq, Eq)]
struct QuotedText {
    text: String,
    variables: BTreeMap<String, String>,
}

fn quoted(placeholders: &Placeholders, values: &JobValues) -> Result<QuotedText, String> {
    let text = ShellText::read(placeholders, |name| values.get(name));
    let trust = |name: &str| values.get(name).map_or(Trust::Free, trust_of);
    // The variables are judged when the command is started.
    if let Some(fault) = text.faults(trust, |_| None).first() {
        let value = values.get(&fault.name).unwrap_or_default();
        return Err(format!("its command can't be given \"{}\": {fault}", shown(value)));
    }
    let mut quoted = QuotedText::default();
    for (at, piece) in placeholders.pieces.iter().enumerate() {
        let (name, raw) = match piece {
            Piece::Text(text) => {
                quoted.text.push_str(text);
                continue;
            }
            Piece::Value { name, raw } => (name, *raw),
        };
        let value = values.get(name).ok_or_else(|| format!("its command has {{{name}}}, which is not known"))?;
        let manner = text.manner(at);
        if !raw && text.ends_a_document(at, value) {
            return Err(format!(
                "its command can't be given \"{}\": {{{name}}} would end a here-document",
                shown(value)
            ));
        }
        if raw || is_pasted(value, manner, placeholders.pieces.get(at + 1)) {
            quoted.text.push_str(value);
        } else if let Some(number) = in_arithmetic(value, manner) {
            quoted.text.push_str(&number);
        } else {
            let variable = format!("KELOS_VALUE_{}", at + 1);
            quoted.text.push_str(&reference(&variable, manner));
            quoted.variables.insert(variable, value.to_owned());
        }
    }
    Ok(quoted)
}

/// Whether a value has no special meaning at its position, so that it can be pasted there.
fn is_pasted(value: &str, manner: Manner, next: Option<&Piece>) -> bool {
    // `1>file` redirects.
    let redirects = matches!(next, Some(Piece::Text(text)) if text.starts_with(['<', '>']));
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    match manner {
        // A line could be the one that ends the document.
        Manner::Arithmetic { .. } | Manner::ExpandedDocument => false,
        // There the shell reads neither quotes nor variables.
        Manner::LiteralDocument => true,
        Manner::Conditional if value.starts_with('-') => false,
        _ => is_plain(value) && !(redirects && is_number),
    }
}

/// A number as arithmetic reads it: without the zeros that would make it octal, and with parentheses where it has a sign.
fn in_arithmetic(value: &str, manner: Manner) -> Option<String> {
    let Manner::Arithmetic { joined } = manner else { return None };
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    Some(match value.strip_prefix('-') {
        _ if joined => value.to_owned(),
        None if is_number => {
            Some(value.trim_start_matches('0')).filter(|rest| !rest.is_empty()).unwrap_or("0").to_owned()
        }
        Some(_) => format!("({value})"),
        None => value.to_owned(),
    })
}

/// The expression that expands a variable as a part of one word.
fn reference(variable: &str, manner: Manner) -> String {
    match manner {
        Manner::Unquoted | Manner::Conditional => format!("\"${{{variable}}}\""),
        Manner::Single => format!("'\"${{{variable}}}\"'"),
        Manner::Double | Manner::ExpandedDocument | Manner::LiteralDocument | Manner::Arithmetic { .. } => {
            format!("${{{variable}}}")
        }
    }
}

#[cfg(test)]
mod tests;
