//! Submitting a job from its workflow's page.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use kelos_core::SubmitRequest;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::{Actor, Arguments, Parameter, SlotRef, WorkflowId};
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::{slot_href, workflow_href};
use crate::viewer;
use crate::{arguments, asked};

/// The lowest priority, which is the default, as people see it: 1 is the highest.
const LAST_PRIORITY: i32 = 100;

/// The form for submitting jobs.
#[derive(Default, Deserialize)]
pub(crate) struct Submit {
    job: Option<String>,
    priority: Option<String>,
    readd: Option<String>,
    pub(crate) reason: Option<String>,
    arguments: Option<String>,
    /// Fields of parameters.
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

/// The form by which a job is submitted.
pub(crate) fn form(id: &WorkflowId, template: &str, parameters: &[Parameter]) -> Markup {
    html! {
        details.action {
            summary.button { "Submit a job…" }
            form method="post" action=(format!("{}/submit", workflow_href(id))) { (viewer::proof())
                p { "Submits it, with its missing ancestors. A job that exists is unchanged." }
                label { "Job id, as " code { (template) } " " input name="job" required maxlength="512" autocomplete="off"; }
                details { summary { "Arguments" } (arguments::fields(parameters, &Arguments::new(), false)) }
                label { "Priority, 1 is first " input name="priority" type="number" min="1" max=(LAST_PRIORITY) placeholder=(LAST_PRIORITY); }
                p { label { input type="checkbox" name="readd" value="1"; " if it has ended, reopen it, with everything downstream that has ended" } }
                label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; }
                " " button.primary { "Submit" }
            }
        }
    }
}

/// Submits a job, and leads to it.
pub(crate) async fn submit(app: &App, by: &Actor, id: WorkflowId, wanted: Submit) -> Result<Response, Fault> {
    let job = asked::slot(app, id.as_str(), wanted.job.as_deref().unwrap_or_default().trim()).await?;
    if job.key.job().is_none() {
        return Err(plain::of(StatusCode::BAD_REQUEST, format!("\"{id}\" has no job ids.")));
    }
    let request = SubmitRequest {
        jobs: vec![SlotRef::clone(&job)],
        priority: LAST_PRIORITY - priority(wanted.priority)?,
        readd: wanted.readd.is_some(),
        arguments: arguments::read(wanted.others, wanted.arguments.as_deref())?,
        reason: asked::filled(wanted.reason),
    };
    app.ask(by, request).await?;
    Ok(asked::back_to(&slot_href(&job)))
}

fn priority(given: Option<String>) -> Result<i32, Fault> {
    let Some(text) = asked::filled(given) else { return Ok(LAST_PRIORITY) };
    let number = text.parse().ok().filter(|number| (1..=LAST_PRIORITY).contains(number));
    number.ok_or_else(|| plain::bad_request(format!("The priority is \"{text}\", expected 1 to {LAST_PRIORITY}.")))
}
