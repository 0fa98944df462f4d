//! Requests of pages: names in paths, queries and forms, with mistakes in words.

use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use kelos_front::fault::{Fault, plain};
use kelos_front::query::bad_query;
use kelos_front::{App, key};
use kelos_model::time::{Zone, parse_written};
use kelos_model::{SlotRef, WorkflowId};

/// A workflow named in a path.
pub(super) fn workflow(id: &str) -> Result<WorkflowId, Fault> {
    WorkflowId::new(id).map_err(|error| plain::bad_request(format!("{error}.")))
}

/// A slot named in a path: by its time, or its job id.
pub(super) async fn slot(app: &App, id: &str, key: &str) -> Result<SlotRef, Fault> {
    let named = key::slot(app, &workflow(id)?, key).await;
    named.map_err(|problem| match problem.status {
        // Its hint is for programs.
        StatusCode::NOT_FOUND => plain::not_found(format!("No workflow has ever been named \"{id}\".")),
        _ => problem,
    })
}

/// A slot in a query: `ID@TIME` or `ID@JOB_ID`. A time has no @, but an id may; if both may, `ID@~JOB_ID` is unambiguous.
pub(super) async fn slot_of(app: &App, name: &str, text: &str) -> Result<SlotRef, Fault> {
    let expected = || {
        plain::bad_request(format!(
            "\"{name}\" is \"{text}\", expected a slot such as ID@2015-09-13T13:40Z or ID@JOB_ID."
        ))
    };
    if let Ok(named) = text.parse::<SlotRef>() {
        return slot(app, named.workflow.as_str(), &named.key.to_string()).await;
    }
    let (id, key) = text.split_once('@').ok_or_else(expected)?;
    slot(app, id, key).await
}

/// A moment that is written out; without an offset it is one of the zone.
pub(super) fn moment(text: &str, zone: &Zone) -> Result<Timestamp, Fault> {
    parse_written(text, zone).map_err(|error| plain::bad_request(format!("{error}.")))
}

/// A parameter that is not understood.
pub(super) fn wrong(name: &str, given: &str, expected: &str) -> Fault {
    plain::bad_request(format!("The parameter \"{name}\" is \"{given}\", expected {expected}."))
}

/// The zone of a page.
pub(super) fn zone(name: &str) -> Result<Zone, Fault> {
    Zone::parse(name).map_err(|_| wrong("zone", name, "UTC or a name such as Europe/Berlin"))
}

/// A field, or none if the form was sent with an empty one.
pub(super) fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(super) fn query<T>(query: Result<axum::extract::Query<T>, QueryRejection>) -> Result<T, Fault> {
    query.map(|query| query.0).map_err(|rejection| bad_query(&rejection.body_text()))
}

pub(super) fn form<T>(form: Result<axum::Form<T>, FormRejection>) -> Result<T, Fault> {
    form.map(|form| form.0).map_err(|rejection| plain::bad_request(format!("{}.", rejection.body_text())))
}

/// Back to a page after something was done, so that loading it again does not do it again.
pub(super) fn back_to(href: &str) -> Response {
    Redirect::to(href).into_response()
}
