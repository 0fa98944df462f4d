//! Arguments in forms: a field for each parameter by its kind, or lines where any argument is taken.

use std::collections::BTreeMap;

use kelos_front::fault::{Fault, plain};
use kelos_model::arguments::text;
use kelos_model::{Arguments, Parameter, ParameterKind};
use maud::{Markup, html};

/// The names of fields of parameters begin with it.
const FIELD: &str = "argument.";

/// The fields. One that stays empty gives nothing: the run has what the slot has already, or the default. `must` tells whether those without
/// a default have to be filled in.
pub(crate) fn fields(parameters: &[Parameter], present: &Arguments, must: bool) -> Markup {
    if parameters.is_empty() {
        return lines("");
    }
    html! {
        @for parameter in parameters {
            p {
                label {
                    (parameter.name) " "
                    (field(parameter, &hint(parameter, present), must && parameter.default.is_none()))
                }
                @if let Some(about) = &parameter.about { " " span.soft { (about) } }
            }
        }
    }
}

/// The parameters of a definition: `rows: integer, 1000 by default`.
pub(crate) fn list(parameters: &[Parameter]) -> Markup {
    html! {
        ul.plain {
            @for parameter in parameters {
                li {
                    code { (parameter.name) } ": " (parameter.kind.name())
                    @match &parameter.default {
                        Some(_) => { ", " code { (hint(parameter, &Arguments::new())) } " by default" }
                        None => ", required",
                    }
                    @if let Some(about) = &parameter.about { " " span.soft { (about) } }
                }
            }
        }
    }
}

/// Lines with any arguments, which are read by the types of the parameters.
pub(crate) fn lines(value: &str) -> Markup {
    html! {
        label {
            "Arguments, one NAME=VALUE in each line " br;
            textarea name="arguments" rows="3" cols="36" autocomplete="off" spellcheck="false" { (value) }
        }
    }
}

/// The same arguments in a form that only confirms them.
pub(crate) fn hidden(arguments: &Arguments) -> Markup {
    html! {
        @for (name, value) in arguments { input type="hidden" name=(format!("{FIELD}{name}")) value=(text(value)); }
    }
}

/// The value that holds where the field stays empty.
fn hint(parameter: &Parameter, present: &Arguments) -> String {
    let value = present.get(&parameter.name).or(parameter.default.as_ref());
    value.map(|value| text(value).into_owned()).unwrap_or_default()
}

fn field(parameter: &Parameter, hint: &str, required: bool) -> Markup {
    let name = format!("{FIELD}{}", parameter.name);
    let options = |all: &[&str]| {
        html! {
            select name=(name) required[required] {
                option value="" { (hint) }
                @for one in all { option value=(one) { (one) } }
            }
        }
    };
    let input = |kind: &str, step: Option<&str>| {
        html! {
            input type=(kind) name=(name) step=[step] placeholder=(hint) required[required] autocomplete="off";
            // A field of this type shows no placeholder.
            @if matches!(kind, "date" | "datetime-local") && !hint.is_empty() { " " span.soft { "else " (hint) } }
        }
    };
    match &parameter.kind {
        ParameterKind::Text => input("text", None),
        ParameterKind::Integer => input("number", Some("1")),
        ParameterKind::Number => input("number", Some("any")),
        ParameterKind::Date => input("date", None),
        ParameterKind::Time => html! { (input("datetime-local", Some("1"))) " UTC" },
        ParameterKind::Boolean => options(&["true", "false"]),
        ParameterKind::Choice { choices } => options(&choices.iter().map(String::as_str).collect::<Vec<_>>()),
        ParameterKind::Json => html! {
            textarea name=(name) rows="2" cols="36" placeholder=(hint) required[required] autocomplete="off" spellcheck="false" {}
        },
    }
}

/// The arguments of a form: of its fields and of its lines, as texts that the scheduler reads by the kinds of the parameters.
pub(crate) fn read(others: BTreeMap<String, String>, written: Option<&str>) -> Result<Arguments, Fault> {
    let mut all = read_lines(written.unwrap_or_default())?;
    for (field, value) in others {
        let Some(name) = field.strip_prefix(FIELD) else {
            return Err(plain::bad_request(format!("The form has an unknown field \"{field}\".")));
        };
        let value = value.trim();
        if !value.is_empty() {
            all.insert(name.to_owned(), value.into());
        }
    }
    Ok(all)
}

/// Arguments as people write them: a line for each.
pub(crate) fn read_lines(text: &str) -> Result<Arguments, Fault> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let pairs = lines.map(|line| match line.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().into())),
        _ => Err(plain::bad_request(format!("\"{line}\" is no argument, expected NAME=VALUE, one in each line."))),
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_lines() {
        let read = read_lines("day = 2026-11-21\r\n\nurl=http://x/?a=b\n").unwrap();
        let pairs: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        assert_eq!(pairs, [("day", "2026-11-21"), ("url", "http://x/?a=b")]);
        assert!(read_lines("nothing").is_err() && read_lines("=x").is_err());
    }

    #[test]
    fn fields_are_of_the_kinds_and_empty_ones_give_nothing() {
        let parameters =
            [Parameter::new("day", ParameterKind::Date), Parameter::plain("rows", 1000.into()).about("how many")];
        let shown = fields(&parameters, &Arguments::new(), true).into_string();
        assert!(shown.contains(r#"<input type="date" name="argument.day" placeholder="" required"#), "{shown}");
        assert!(shown.contains(r#"<input type="number" name="argument.rows" step="1" placeholder="1000""#), "{shown}");
        let form = [("argument.day", "2026-11-21"), ("argument.rows", " ")];
        let form: BTreeMap<_, _> = form.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(read(form, None).unwrap(), [("day".to_owned(), "2026-11-21".into())].into());
        assert!(read([("day".to_owned(), "x".to_owned())].into(), None).is_err());
    }
}
