//! Errors of the native API, as RFC 9457 describes them.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kelos::AskError;
use kelos::core::Refusal;
use kelos::store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong (`application/problem+json`, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Names the kind of problem: `urn:kelos:problem:` and a word that stays the same.
    #[serde(rename = "type")]
    #[schema(examples("urn:kelos:problem:workflow-not-found"))]
    kind: String,
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
    pub(crate) fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("urn:kelos:problem:{kind}"),
            title: status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            instance: None,
            hint: None,
        }
    }

    pub(crate) fn bad_request(kind: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, kind, detail)
    }

    pub(crate) fn not_found(kind: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, kind, detail)
    }

    pub(crate) fn conflict(kind: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, kind, detail)
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
            AskError::Standby => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "standby", detail),
            AskError::NoAnswer(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", detail),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let detail = refusal.to_string();
        match refusal {
            Refusal::NoWorkflow(_) => Problem::not_found("workflow-not-found", detail).with_hint(
                "GET /api/v1/workflows lists the workflows, GET /api/v1/problems says which files are broken",
            ),
            Refusal::NotInSchedule(slot) => Problem::not_found("not-in-schedule", detail)
                .with_hint(format!("GET /api/v1/workflows/{{id}}/times lists the times of \"{}\"", slot.workflow)),
            Refusal::NeverOpened(_) => {
                Problem::conflict("never-opened", detail).with_hint("skip it, where it is never to run")
            }
            Refusal::NoEventSchedule(_) => Problem::not_found("schedule-not-found", detail)
                .with_hint("GET /api/v1/schedules lists the event schedules"),
            Refusal::NotStartable(_) => Problem::conflict("not-startable", detail),
            Refusal::ScheduleTaken(_) => Problem::conflict("name-taken", detail),
            Refusal::NoProgram { .. } => Problem::not_found("program-not-found", detail),
            Refusal::AlreadyEnabled(_) => Problem::conflict("already-enabled", detail),
            Refusal::AlreadyDisabled(_) => Problem::conflict("already-disabled", detail),
            Refusal::NeverCameToBe(_) => Problem::not_found("slot-not-found", detail),
            Refusal::NoJobId(..) => Problem::bad_request("no-job-id", detail),
            Refusal::NoSchedule(..) => Problem::conflict("no-schedule", detail),
            Refusal::StillLive(..) => Problem::conflict("still-live", detail).with_hint("kill it first"),
            Refusal::AlreadyFinal(..) => Problem::conflict("already-final", detail),
            Refusal::NotSkippable(..) => Problem::conflict("already-final", detail),
            Refusal::AlreadySucceeded(_) => Problem::conflict("already-succeeded", detail),
            Refusal::RunAlive(..) => {
                Problem::conflict("run-alive", detail).with_hint("kill it first, and mark it once its run has ended")
            }
            Refusal::DownstreamLive(..) => Problem::conflict("downstream-live", detail)
                .with_hint("have them killed too (`killLive`), or wait until they have ended"),
            Refusal::TooManyDownstream { .. } => Problem::bad_request("too-many", detail),
            Refusal::NoBackfill(_) => Problem::not_found("backfill-not-found", detail),
            Refusal::BackfillCancelled(_) => Problem::conflict("backfill-cancelled", detail),
            Refusal::BackfillOver(_) => Problem::conflict("backfill-over", detail),
            Refusal::NameTaken(_) => Problem::conflict("name-taken", detail),
            Refusal::TooMany { .. } => Problem::bad_request("too-many", detail),
        }
    }
}
