//! Errors of the native API, as RFC 9457 describes them.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kelos_core::Refusal;
use kelos_engine::AskError;
use kelos_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong (`application/problem+json`, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Names the kind of problem: `urn:kelos:problem:` and a word that stays the same.
    #[serde(rename = "type")]
    #[schema(examples("urn:kelos:problem:workflow-not-found"))]
    kind: String,
    /// The same word alone.
    #[schema(examples("workflow-not-found"))]
    code: String,
    /// The kind of problem in words.
    #[schema(examples("Not Found"))]
    title: String,
    /// The status of the response.
    #[schema(examples(404))]
    status: u16,
    /// What is wrong with this request, and what was expected.
    detail: String,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("urn:kelos:problem:{code}"),
            code: code.to_owned(),
            title: status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            instance: None,
            hint: None,
        }
    }

    pub(crate) fn bad_request(code: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(crate) fn not_found(code: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub(crate) fn conflict(code: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// The status, and in one text what is wrong and what to do.
    pub(crate) fn told(&self) -> (StatusCode, String) {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, format!("{}{hint}", self.detail))
    }

    /// The status of the response that tells it.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The same, with what it is about before what is wrong.
    pub(crate) fn about(self, what: &impl std::fmt::Display) -> Problem {
        Problem { detail: format!("{what}: {}", self.detail), ..self }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(&self)).into_response();
        let media = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        // For `name_instance`, which knows the path.
        response.extensions_mut().insert(self);
        response
    }
}

/// Adds the path of the request to a problem on its way out.
pub(crate) async fn name_instance(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<Problem>() else {
        return response;
    };
    let headers = response.headers().clone();
    let mut named = Problem { instance: Some(path), ..problem }.into_response();
    // Such as `allow`, which others added meanwhile.
    for (name, value) in headers.iter().filter(|(name, _)| **name != header::CONTENT_LENGTH) {
        named.headers_mut().insert(name, value.clone());
    }
    named
}

/// Whether a path belongs to the native API, so that errors are problems in JSON.
pub(crate) fn is_native(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

pub(crate) fn unknown_path(path: &str) -> Problem {
    Problem::not_found("unknown-path", format!("there is nothing at {path}"))
        .with_hint("all paths are described at /api/v1/openapi.json")
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let detail = format!("failed to {error}");
        match error {
            StoreError::Cursor { .. } => Problem::bad_request("bad-query", detail),
            StoreError::Medium { .. } | StoreError::Deposed { .. } => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", detail)
            }
            StoreError::TooNew { .. } | StoreError::TooOld { .. } | StoreError::Corrupt { .. } => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "store-unreadable", detail)
            }
        }
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Problem {
        let detail = format!("failed to {error}");
        match error {
            AskError::Refused(refusal) => refusal.into(),
            AskError::Standby | AskError::NoAnswer(_) => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, code_of(&error), detail)
            }
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let problem = Problem::new(status(&refusal), refusal.code(), refusal.to_string());
        match hint(&refusal) {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NoWorkflow(_)
        | Refusal::NoEventSchedule(_)
        | Refusal::NoProgram { .. }
        | Refusal::NoBackfill(_)
        | Refusal::NotInSchedule(_)
        | Refusal::NeverCameToBe(_) => StatusCode::NOT_FOUND,
        Refusal::NoJobId(..)
        | Refusal::TooManyDownstream { .. }
        | Refusal::TooMany { .. }
        | Refusal::ArgumentsTooLarge { .. } => StatusCode::BAD_REQUEST,
        Refusal::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    }
}

/// What to do about it, in terms of this API.
fn hint(refusal: &Refusal) -> Option<String> {
    let hint = match refusal {
        Refusal::NoWorkflow(_) => {
            "GET /api/v1/workflows lists the workflows, GET /api/v1/problems says which files are broken"
        }
        Refusal::NotInSchedule(slot) => {
            return Some(format!("GET /api/v1/workflows/{{id}}/times lists the times of \"{}\"", slot.workflow));
        }
        Refusal::Broken(breach) => {
            let workflow = &breach.workflow;
            return Some(format!(
                "POST /api/v1/workflows/{workflow}/resume once it is mended; GET /api/v1/health lists what is frozen"
            ));
        }
        Refusal::NeverOpened(_) => "skip it, where it is never to run",
        Refusal::NoEventSchedule(_) => "GET /api/v1/schedules lists the event schedules",
        Refusal::NotPausable(id) => {
            return Some(format!("POST /api/v1/schedules/{id}/disable, and /enable to continue"));
        }
        Refusal::ArgumentsTooLarge { .. } => "write what is large to a file, and give its path",
        Refusal::StillLive(..) => "kill it first",
        Refusal::RunAlive(..) => "kill it first, and mark it once its run has ended",
        Refusal::DownstreamLive(..) => "have them killed too (`killLive`), or wait until they have ended",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The header in which the doors that answer in plain text say the code of what went wrong.
pub(crate) const CODE: HeaderName = HeaderName::from_static("kelos-code");

/// What a door in plain text answers: its own words and status, and the code that all doors have.
pub(crate) fn plain(status: StatusCode, code: Option<&'static str>, message: String) -> Response {
    let mut response = (status, message).into_response();
    if let Some(code) = code {
        response.headers_mut().insert(CODE, HeaderValue::from_static(code));
    }
    response
}

/// The code of an error of asking.
pub(crate) fn code_of(error: &AskError) -> &'static str {
    match error {
        AskError::Refused(refusal) => refusal.code(),
        AskError::Standby => "standby",
        AskError::NoAnswer(_) => "no-answer",
    }
}
