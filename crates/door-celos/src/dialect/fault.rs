//! Faults in this dialect: a status and a plain text.

use axum::http::StatusCode;
use axum::response::Response;
use kelos_core::Refusal;
use kelos_front::fault::Fault;

use super::status_of;

/// The response of a fault.
pub fn response(fault: &Fault) -> Response {
    let (status, text) = match &fault.refusal {
        Some(refusal) => refused(refusal),
        // Errors of the store are not distinguished.
        None if fault.code == "store-unreadable" => (StatusCode::SERVICE_UNAVAILABLE, fault.what.clone()),
        None => (fault.status, fault.what.clone()),
    };
    fault.text(status, text)
}

/// In Celos's own words, where it has some.
fn refused(refusal: &Refusal) -> (StatusCode, String) {
    match refusal {
        Refusal::NoWorkflow(id) => (StatusCode::NOT_FOUND, format!("Workflow not found: {id}")),
        Refusal::NotInSchedule(slot) => (StatusCode::NOT_FOUND, format!("Slot is not found: {slot}")),
        Refusal::StillLive(_, state) => {
            let status = status_of(*state);
            (StatusCode::BAD_REQUEST, format!("Slot must be in successful or failed, but is: {status}"))
        }
        Refusal::AlreadyFinal(_, state) => {
            let status = status_of(*state);
            (StatusCode::BAD_REQUEST, format!("Slot must be in indeterminate state, but is: {status}"))
        }
        other => (StatusCode::BAD_REQUEST, other.to_string()),
    }
}
