//! Errors as pages.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kelos_engine::AskError;
use kelos_store::StoreError;
use maud::html;

use super::page::Page;
use crate::problem::Problem;

/// Why a page can't be shown.
#[derive(Debug)]
pub(super) struct Trouble {
    status: StatusCode,
    /// A sentence.
    detail: String,
}

impl Trouble {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Trouble {
        Trouble { status, detail: detail.into() }
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Trouble {
        Trouble::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Trouble {
        Trouble::new(StatusCode::BAD_REQUEST, detail)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        let hint =
            "Reload the page in a moment; if it still fails, check the server's log and the disk with its database.";
        Trouble::new(StatusCode::SERVICE_UNAVAILABLE, format!("Failed to {error}. {hint}"))
    }
}

impl From<AskError> for Trouble {
    fn from(error: AskError) -> Trouble {
        Problem::from(error).into()
    }
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Trouble {
        let (status, told) = problem.told();
        let first = told.chars().next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        let rest: String = told.chars().skip(1).collect();
        Trouble::new(status, format!("{first}{rest}."))
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let body = html! {
            section.narrow {
                h1 { (title) }
                p { (self.detail) }
                p { a href="/ui" { "Go to the board" } }
            }
        };
        (self.status, Page::bare(title).show(&body)).into_response()
    }
}
