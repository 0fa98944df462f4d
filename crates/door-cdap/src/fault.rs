//! Faults in this dialect: a status and a plain text.

use axum::http::StatusCode;
use axum::response::Response;
use kelos_core::Refusal;
use kelos_front::fault::Fault;

/// The response of a fault.
pub fn response(fault: &Fault) -> Response {
    let (status, text) = told(fault);
    fault.text(status, text)
}

/// The status and the text; also for those who answer about several things in one response.
pub(super) fn told(fault: &Fault) -> (StatusCode, String) {
    let status = match &fault.refusal {
        Some(refusal) => status(refusal),
        // Errors of the store are not distinguished.
        None if fault.code == "store-unreadable" => StatusCode::SERVICE_UNAVAILABLE,
        None => fault.status,
    };
    (status, fault.what.clone())
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NoWorkflow(_) | Refusal::NoEventSchedule(_) | Refusal::NoProgram { .. } => StatusCode::NOT_FOUND,
        Refusal::ScheduleTaken(_)
        | Refusal::AlreadyEnabled(_)
        | Refusal::AlreadyDisabled(_)
        | Refusal::NotPausable(_)
        | Refusal::NotStartable(_) => StatusCode::CONFLICT,
        Refusal::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}
