//! Enabling, disabling and firing event schedules, and starting workflows.

use std::collections::BTreeMap;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use kelos_core::{Disable, Enable, FireRequest};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::WorkflowId;
use kelos_model::workflow::{Keys, WorkflowRow};
use maud::{Markup, html};
use serde::Deserialize;

use crate::asked;
use crate::page::{segment, slot_href, workflow_href};

/// A form of actions on a schedule.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleForm {
    /// The page that follows: `list`, or the page of the schedule.
    back: Option<String>,
    /// Arguments, one `name=value` in each line.
    arguments: Option<String>,
    /// Whether constraints are passed over.
    unconstrained: Option<String>,
    reason: Option<String>,
}

/// Enables, disables or fires; shows the fired slot.
pub(crate) async fn act(
    Path((id, action)): Path<(String, String)>,
    State(app): State<App>,
    asked::Caller(who): asked::Caller,
    wanted: Result<Form<ScheduleForm>, FormRejection>,
) -> Result<Response, Fault> {
    let (id, wanted) = (asked::workflow(&id)?, asked::form(wanted)?);
    let back = match wanted.back.as_deref() {
        Some("list") => "/ui/schedules".to_owned(),
        _ => workflow_href(&id),
    };
    match action.as_str() {
        "enable" => app.ask(&who, Enable { schedule: id, reason: asked::filled(wanted.reason) }).await?,
        "disable" => app.ask(&who, Disable { schedule: id, reason: asked::filled(wanted.reason) }).await?,
        "fire" => {
            let slot = app.ask(&who, request(id, wanted)?).await?;
            return Ok(asked::back_to(&slot_href(&slot)));
        }
        _ => return Err(plain::not_found(format!("There is no action \"{action}\" on schedules."))),
    }
    Ok(asked::back_to(&back))
}

fn request(workflow: WorkflowId, wanted: ScheduleForm) -> Result<FireRequest, Fault> {
    let arguments = read(wanted.arguments.as_deref().unwrap_or_default())?;
    let reason = asked::filled(wanted.reason);
    Ok(FireRequest {
        workflow,
        arguments,
        key: None,
        priority: 0,
        unconstrained: wanted.unconstrained.is_some(),
        reason,
    })
}

/// Arguments as people write them: a line for each.
fn read(text: &str) -> Result<BTreeMap<String, String>, Fault> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let pairs = lines.map(|line| match line.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(plain::bad_request(format!("\"{line}\" is no argument, expected NAME=VALUE, one in each line."))),
    });
    pairs.collect()
}

fn action(id: &WorkflowId, name: &str) -> String {
    format!("/ui/schedules/{}/{name}", segment(id.as_str()))
}

/// The buttons of a schedule.
pub(super) fn buttons(row: &WorkflowRow, back: &str) -> Markup {
    let (path, name) = if row.enabled { ("disable", "Disable") } else { ("enable", "Enable") };
    html! {
        form method="post" action=(action(&row.id, path)) {
            input type="hidden" name="back" value=(back);
            @if back != "list" { (why()) " " }
            button aria-label=(format!("{name} {}", row.id)) { (name) }
        }
    }
}

/// The field for a reason, beside a button.
pub(crate) fn why() -> Markup {
    html! { input name="reason" maxlength="500" autocomplete="off" aria-label="Why, for the log" placeholder="why, for the log"; }
}

/// The form by which a schedule is fired, or a program started.
pub(super) fn form(row: &WorkflowRow) -> Markup {
    let (name, what) = match row.definition.keys {
        Keys::Events(_) => {
            ("Fire now", "Starts it without its trigger, whether it is enabled or not. Collecting continues.")
        }
        Keys::Schedule(_) => {
            ("Start", "It runs once, now: as a slot of this moment, without its trigger. No other slot waits for that.")
        }
        _ => ("Start", "It runs once."),
    };
    html! {
        details.action {
            summary.button { (name) "…" }
            form method="post" action=(action(&row.id, "fire")) {
                p { (what) }
                label { "Arguments, one NAME=VALUE in each line " br; textarea name="arguments" rows="3" cols="36" autocomplete="off" spellcheck="false" {} }
                @if !row.definition.constraints.is_empty() {
                    p { label { input type="checkbox" name="unconstrained" value="1"; " ignore its constraints, too" } }
                }
                label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                " " button.primary { (name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_lines() {
        let read = read("day = 2026-11-21\r\n\nurl=http://x/?a=b\n").unwrap();
        let pairs: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("day", "2026-11-21"), ("url", "http://x/?a=b")]);
        assert!(super::read("nothing").is_err() && super::read("=x").is_err());
    }
}
