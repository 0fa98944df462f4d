//! What went wrong, as this dialect tells it: a status and a plain text.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kelos_core::Refusal;
use kelos_engine::AskError;
use kelos_store::StoreError;

use crate::problem;

/// A status and a plain text.
#[derive(Debug)]
pub(super) struct Fault {
    status: StatusCode,
    code: Option<&'static str>,
    message: String,
}

impl Fault {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Fault {
        Fault { status, code: None, message: message.into() }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn conflict(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// For those who answer about several things in one response.
    pub(super) fn parts(self) -> (u16, String) {
        (self.status.as_u16(), self.message)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        problem::plain(self.status, self.code, self.message)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::unavailable(format!("failed to {error}"))
    }
}

impl From<AskError> for Fault {
    fn from(error: AskError) -> Fault {
        let code = Some(problem::code_of(&error));
        match error {
            AskError::Refused(refusal) => refusal.into(),
            error => Fault { code, ..Fault::unavailable(format!("failed to {error}")) },
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let message = refusal.to_string();
        let code = Some(refusal.code());
        let fault = match refusal {
            Refusal::NoWorkflow(_) | Refusal::NoEventSchedule(_) | Refusal::NoProgram { .. } => {
                Fault::not_found(message)
            }
            Refusal::ScheduleTaken(_)
            | Refusal::AlreadyEnabled(_)
            | Refusal::AlreadyDisabled(_)
            | Refusal::NotPausable(_)
            | Refusal::NotStartable(_) => Fault::conflict(message),
            Refusal::Broken(_) => Fault::new(StatusCode::INTERNAL_SERVER_ERROR, message),
            _ => Fault::bad_request(message),
        };
        Fault { code, ..fault }
    }
}
