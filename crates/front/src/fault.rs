//! Faults of requests, once for all doors. Each renders them in its own way: as problem details (RFC 9457), as a plain
//! text of its dialect, or as a page.

use std::any::Any;
use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kelos_core::Refusal;
use kelos_engine::AskError;
use kelos_store::StoreError;
use kelos_wire::ProblemDetailsDto;

/// A request that was not carried out, and the reason.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The status of the response, as the native API has it.
    pub status: StatusCode,
    /// The kind of fault: a word that never changes.
    pub code: Cow<'static, str>,
    /// A description of what is wrong and what was expected: a fragment, or whole sentences.
    pub what: String,
    /// A hint about the way out, in terms of the native API.
    pub hint: Option<String>,
    /// The refusal of the scheduler, if it was one: the dialects have words of their own for some.
    pub refusal: Option<Refusal>,
}

impl Fault {
    /// A fault with a status, a code and a description.
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, what: impl Into<String>) -> Fault {
        Fault { status, code: code.into(), what: what.into(), hint: None, refusal: None }
    }

    /// A fault with status 400.
    pub fn bad_request(code: &'static str, what: impl Into<String>) -> Fault {
        Fault::new(StatusCode::BAD_REQUEST, code, what)
    }

    /// A fault with status 404.
    pub fn not_found(code: &'static str, what: impl Into<String>) -> Fault {
        Fault::new(StatusCode::NOT_FOUND, code, what)
    }

    /// A fault with status 409.
    pub fn conflict(code: &'static str, what: impl Into<String>) -> Fault {
        Fault::new(StatusCode::CONFLICT, code, what)
    }

    /// The same, with the subject before the description.
    pub fn about(self, what: &impl std::fmt::Display) -> Fault {
        Fault { what: format!("{what}: {}", self.what), ..self }
    }

    /// The same fault with a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }

    /// The fault as problem details.
    pub fn details(&self, path: String) -> ProblemDetailsDto {
        ProblemDetailsDto {
            kind: format!("urn:kelos:problem:{}", self.code),
            code: self.code.to_string(),
            title: self.title().to_owned(),
            status: self.status.as_u16(),
            detail: self.what.clone(),
            instance: Some(path),
            hint: self.hint.clone(),
        }
    }

    /// The status in words.
    pub fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Problem")
    }

    /// The response of the native API to a request for a path.
    pub fn problem(&self, path: String) -> Response {
        let mut response = (self.status, Json(self.details(path))).into_response();
        let media = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        response
    }

    /// The response of a door that answers in plain text, with its own text and status: the code is in a header.
    pub fn text(&self, status: StatusCode, text: String) -> Response {
        let mut response = (status, text).into_response();
        if let Ok(code) = HeaderValue::from_str(&self.code) {
            response.headers_mut().insert(CODE, code);
        }
        response
    }
}

/// The fault is attached to an empty response, and rendered on its way out, where the door is known.
impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Whether a path belongs to the native API, which renders faults as problem details.
pub fn is_native(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// The answer to a method that a path does not have.
pub async fn wrong_method(method: Method) -> Fault {
    let what = format!("{method} is not possible here; the header `allow` lists what is");
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", what)
}

/// The answer to a request at which the server panicked. The panic itself has been written to the log by then.
pub fn panicked(_: Box<dyn Any + Send>) -> Response {
    let what = "this is a bug in the server; see its log";
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", what).into_response()
}

/// Faults without a code of their own: the code follows from the status.
pub mod plain {
    use super::{Fault, StatusCode};

    /// A fault whose code is derived from its status.
    pub fn of(status: StatusCode, what: impl Into<String>) -> Fault {
        let code = status.canonical_reason().unwrap_or("problem").to_ascii_lowercase().replace(' ', "-");
        Fault::new(status, code, what)
    }

    /// A fault with status 400.
    pub fn bad_request(what: impl Into<String>) -> Fault {
        of(StatusCode::BAD_REQUEST, what)
    }

    /// A fault with status 404.
    pub fn not_found(what: impl Into<String>) -> Fault {
        of(StatusCode::NOT_FOUND, what)
    }

    /// A fault with status 409.
    pub fn conflict(what: impl Into<String>) -> Fault {
        of(StatusCode::CONFLICT, what)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        let detail = format!("failed to {error}");
        match error {
            StoreError::Cursor { .. } => Fault::bad_request("bad-query", detail),
            StoreError::Medium { .. }
            | StoreError::Deposed { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::Ahead { .. }
            | StoreError::NewerForm { .. } => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", detail),
            StoreError::TooNew { .. }
            | StoreError::TooOld { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Unreadable { .. } => {
                Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "store-unreadable", detail)
            }
        }
    }
}

impl From<AskError> for Fault {
    fn from(error: AskError) -> Fault {
        // Who asked says what was asked for.
        let detail = error.lack().unwrap_or_else(|| format!("failed to {error}"));
        match error {
            AskError::Refused(refusal) => refusal.into(),
            AskError::Forbidden { .. } => Fault::new(StatusCode::FORBIDDEN, code_of(&error), detail),
            AskError::ReasonMissing { .. } => {
                let fault = Fault::bad_request(code_of(&error), detail);
                fault
                    .with_hint("give one: `reason` in the request, --reason on the command line, the field on the page")
            }
            AskError::Standby | AskError::NoAnswer(_) => {
                Fault::new(StatusCode::SERVICE_UNAVAILABLE, code_of(&error), detail)
            }
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let fault = Fault::new(status(&refusal), refusal.code(), refusal.to_string());
        Fault { hint: hint(&refusal), refusal: Some(refusal), ..fault }
    }
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NoWorkflow(_)
        | Refusal::NoEventSchedule(_)
        | Refusal::NoProgram { .. }
        | Refusal::NoBackfill(_)
        | Refusal::NoVersion { .. }
        | Refusal::NoSignal { .. }
        | Refusal::NoStep { .. }
        | Refusal::NotInSchedule(_)
        | Refusal::NeverCameToBe(_) => StatusCode::NOT_FOUND,
        Refusal::NotAllowed { .. } | Refusal::NotShared(_) => StatusCode::FORBIDDEN,
        Refusal::ReasonMissing { .. }
        | Refusal::Masked { .. }
        | Refusal::NoJobId(..)
        | Refusal::TooManyDownstream { .. }
        | Refusal::TooMany { .. }
        | Refusal::ArgumentsTooLarge { .. }
        | Refusal::TooDeep(_)
        | Refusal::Unreadable { .. }
        | Refusal::ArgumentsMismatched { .. }
        | Refusal::InputsMismatched { .. } => StatusCode::BAD_REQUEST,
        Refusal::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    }
}

/// The hint for a refusal, in terms of the native API.
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
        Refusal::ProjectOfFile { .. } | Refusal::NameOfProject { .. } => {
            "rename it in the program, or take away what has the name: GET /api/v1/projects lists the projects"
        }
        Refusal::NeverOpened(_) => "skip it, where it is never to run",
        Refusal::NotShared(unshared) => {
            return Some(format!("the project that it belongs to can allow it: {}", unshared.line()));
        }
        Refusal::NoEventSchedule(_) => "GET /api/v1/schedules lists the event schedules",
        Refusal::NotPausable(id) => {
            return Some(format!("POST /api/v1/schedules/{id}/disable, and /enable to continue"));
        }
        Refusal::ArgumentsMismatched { workflow, .. } => {
            return Some(format!("GET /api/v1/workflows/{workflow} lists its parameters"));
        }
        Refusal::InputsMismatched { step, .. } => {
            let run = step.key.of_run();
            let shown = format!("GET /api/v1/workflows/{}/slots/{run}/flow", step.workflow);
            return Some(format!("{shown} shows what the step was given"));
        }
        Refusal::StepOfLiveRun(..) => "kill the run first, or wait until it has ended",
        Refusal::NeverRan(_) => "GET /api/v1/workflows/{id}/slots/{time}/flow shows which steps ran",
        Refusal::OnlyWaits(..) => "POST …/resume with `from`",
        Refusal::ArgumentsTooLarge { .. } => "write what is large to a file, and give its path",
        Refusal::Unreadable { .. } => "this is a bug in Kelos: please report it, with the request",
        Refusal::TooDeep(_) => "flatten it, or give what is deep as a text of JSON",
        Refusal::StillLive(..) => "kill it first",
        Refusal::NoFlow(_) => "GET /api/v1/workflows/{id}/slots/{time}/flow shows a run of a flow",
        Refusal::RunOver(..) => "POST …/resume has it go on; a run of another name is a new run",
        Refusal::NothingToResume(_) => "POST …/resume with `from`, or POST …/rerun",
        Refusal::RunAlive(..) => "kill it first, and mark it once its run has ended",
        Refusal::DownstreamLive(..) => "have them killed too (`killLive`), or wait until they have ended",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The header with the code of a fault, for the doors that answer in plain text.
pub const CODE: HeaderName = HeaderName::from_static("kelos-code");

/// The code of an error of asking.
fn code_of(error: &AskError) -> &'static str {
    match error {
        AskError::Refused(refusal) => refusal.code(),
        AskError::Forbidden { .. } => "forbidden",
        AskError::ReasonMissing { .. } => "reason-missing",
        AskError::Standby => "standby",
        AskError::NoAnswer(_) => "no-answer",
    }
}
