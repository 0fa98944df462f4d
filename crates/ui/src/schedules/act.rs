//! Enabling, disabling and firing event schedules, and starting workflows.

use std::collections::BTreeMap;

use axum::Form;
use axum::extract::Path;
use axum::extract::rejection::FormRejection;
use axum::response::Response;
use kelos_core::{Disable, Enable, FireRequest};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::Caller;
use kelos_model::workflow::{Keys, WorkflowRow};
use kelos_model::{Arguments, RunName, WorkflowId};
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::{segment, slot_href, workflow_href};
use crate::viewer;
use crate::{arguments, asked};

/// A form of actions on a schedule.
#[derive(Default, Deserialize)]
pub(crate) struct ScheduleForm {
    /// The page that follows: `list`, or the page of the schedule.
    back: Option<String>,
    /// Arguments, one `name=value` in each line.
    arguments: Option<String>,
    /// Whether constraints are passed over.
    unconstrained: Option<String>,
    reason: Option<String>,
    /// The name of the run.
    name: Option<String>,
    /// Fields of parameters.
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

/// Enables, disables or fires; shows the fired slot.
pub(crate) async fn act(
    Path((id, action)): Path<(String, String)>,
    app: App,
    Caller(who): Caller,
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
            let fired = app.ask(&who, request(id, wanted)?).await?;
            return Ok(asked::back_to(&slot_href(&fired.slot)));
        }
        _ => return Err(plain::not_found(format!("There is no action \"{action}\" on schedules."))),
    }
    Ok(asked::back_to(&back))
}

fn request(workflow: WorkflowId, wanted: ScheduleForm) -> Result<FireRequest, Fault> {
    let arguments = arguments::read(wanted.others, wanted.arguments.as_deref())?;
    let reason = asked::filled(wanted.reason);
    let key = asked::filled(wanted.name).map(|name| RunName::new(&name)).transpose();
    Ok(FireRequest {
        workflow,
        arguments,
        key: key.map_err(|error| plain::bad_request(format!("{error}.")))?,
        priority: 0,
        unconstrained: wanted.unconstrained.is_some(),
        reason,
    })
}

fn action(id: &WorkflowId, name: &str) -> String {
    format!("/ui/schedules/{}/{name}", segment(id.as_str()))
}

/// The buttons of a schedule.
pub(super) fn buttons(row: &WorkflowRow, back: &str) -> Markup {
    let (path, name) = if row.enabled { ("disable", "Disable") } else { ("enable", "Enable") };
    html! {
        form method="post" action=(action(&row.id, path)) { (viewer::proof())
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
            form method="post" action=(action(&row.id, "fire")) { (viewer::proof())
                p { (what) }
                @if matches!(row.definition.keys, Keys::Requests(_)) {
                    p { label { "Name, which is started once; without one it is that of the moment " input name="name" maxlength="200" autocomplete="off"; } }
                }
                (arguments::fields(&row.definition.parameters, &Arguments::new(), true))
                @if !row.definition.constraints.is_empty() {
                    p { label { input type="checkbox" name="unconstrained" value="1"; " ignore its constraints, too" } }
                }
                label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                " " button.primary { (name) }
            }
        }
    }
}
