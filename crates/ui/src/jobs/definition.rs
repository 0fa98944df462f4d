//! The template of a workflow's job ids, and the dependencies of its jobs, in words.

use kelos_model::jobs::{DateForm, Group, JobKeys, Kind, Member, ValueFilter};
use maud::{Markup, html};

use crate::page::workflow_href;

/// Values of an identifier that are named; of the others there is a number.
const NAMED: usize = 20;

/// Facts of a definition that only keyed workflows have.
pub(crate) fn facts(keys: &JobKeys) -> Markup {
    html! {
        dt { "Identifiers" } dd {
            ul.plain { @for name in keys.template.identifiers() {
                li {
                    b { (name) } ": " (kind(keys.identifiers.get(name).unwrap_or(&Kind::Text)))
                    @if let Some(domain) = keys.domains.get(name) { "; all there are: " (listed(domain)) }
                }
            } }
        }
        dt { "Its jobs wait for" } dd { (dependencies(&keys.depends_on)) }
        @if let Some(valid) = &keys.valid {
            dt { "Worth running" } dd {
                ul.plain {
                    @for (name, values) in &valid.values { li { (name) " is one of " (listed(values)) } }
                    @if let Some(function) = &valid.function { li { "a function of " (function.file) " says so" } }
                }
            }
        }
        @if let Some(feed) = &keys.feed {
            dt { "Opened by itself" } dd { "for each day of " b { (feed.identifier) } ", at " (crate::words::cron(&feed.schedule).unwrap_or_default()) }
        }
    }
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Text => "any text".to_owned(),
        Kind::Integer { min, max } => {
            let bound =
                |word: &str, bound: &Option<i64>| bound.map(|bound| format!(" {word} {bound}")).unwrap_or_default();
            format!("a whole number{}{}", bound("from", min), bound("to", max))
        }
        Kind::Date { form: DateForm::Compact } => "a day, as 20140601".to_owned(),
        Kind::Date { form: DateForm::Dashed } => "a day, as 2014-06-01".to_owned(),
        Kind::Choice { of } => format!("one of {}", listed(of)),
        Kind::Pattern { pattern } => format!("a text in which {} is found", pattern.as_str()),
    }
}

fn listed<T: std::fmt::Display>(values: &[T]) -> String {
    let named: Vec<String> = values.iter().take(NAMED).map(T::to_string).collect();
    match values.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn dependencies(groups: &[Group]) -> Markup {
    html! {
        @if groups.is_empty() { "nothing" }
        @if groups.len() > 1 { p.soft { "One of these groups is enough." } }
        @for group in groups {
            p { "all of group " b { (group.name) } ":" }
            ul.plain {
                @for member in &group.members { li { (told(member)) } }
                @if let Some(functions) = &group.functions {
                    li { "the jobs of " (workflows(&functions.workflows)) " that a function of " (functions.parents.file) " names" }
                }
            }
        }
    }
}

fn workflows(ids: &[kelos_model::WorkflowId]) -> Markup {
    html! { @for (n, id) in ids.iter().enumerate() { @if n > 0 { ", " } a href=(workflow_href(id)) { (id) } } }
}

fn told(member: &Member) -> Markup {
    html! {
        (workflows(&member.workflows))
        @for (name, wanted) in &member.values {
            ", " b { (name) } " "
            @match wanted { ValueFilter::All => "each that there is", ValueFilter::Of(values) => { "each of " (listed(values)) } }
        }
        @if let Some(ids) = &member.job_ids { ", only " (listed(ids)) }
        @else { span.soft { "; what is not named here is the same on both sides" } }
    }
}
