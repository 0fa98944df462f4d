//! What pages are asked for: names in paths, queries and forms, with troubles in words.

use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use kelos::model::time::parse_instant;
use kelos::model::{SlotRef, WorkflowId};

use super::trouble::Trouble;
use crate::api;

/// A workflow named in a path.
pub(super) fn workflow(id: &str) -> Result<WorkflowId, Trouble> {
    WorkflowId::new(id).map_err(|error| Trouble::bad_request(format!("{error}.")))
}

/// A slot named in a path.
pub(super) fn slot(id: &str, time: &str) -> Result<SlotRef, Trouble> {
    Ok(SlotRef::at(workflow(id)?, moment(time)?))
}

pub(super) fn moment(text: &str) -> Result<Timestamp, Trouble> {
    parse_instant(text).map_err(|error| Trouble::bad_request(format!("{error}.")))
}

/// A field that a form sends empty where nobody filled it in.
pub(super) fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(super) fn query<T>(query: Result<axum::extract::Query<T>, QueryRejection>) -> Result<T, Trouble> {
    query.map(|query| query.0).map_err(|rejection| api::bad_query(&rejection.body_text()).into())
}

pub(super) fn form<T>(form: Result<axum::Form<T>, FormRejection>) -> Result<T, Trouble> {
    form.map(|form| form.0).map_err(|rejection| Trouble::bad_request(format!("{}.", rejection.body_text())))
}

/// Who sends a form; pages can't say, so it is the web.
pub(super) fn who(headers: &HeaderMap) -> Result<String, Trouble> {
    api::who(headers, "web").map_err(Trouble::bad_request)
}

/// Back to a page after something was done, so that loading it again does not do it again.
pub(super) fn back_to(href: &str) -> Response {
    Redirect::to(href).into_response()
}
