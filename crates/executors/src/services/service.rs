//! The requests: the start, the check of the status, the cancellation.

use std::time::Duration;

use percent_encoding::{CONTROLS, utf8_percent_encode};
use serde_json::Value;

use super::settings::{HeaderText, Headers, Settings, method_of, url_of};
use super::ticket::Ticket;
use crate::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use crate::http::{Answer, Http, HttpError, Method, RequestBuilder, StatusCode, Url, shown};

/// By which a service recognises a start that it was asked for before.
const KEY: &str = "idempotency-key";

/// The answer of a service to a start.
#[derive(Debug)]
pub(super) enum StartAnswer {
    /// The job has been done: there is nothing to ask for later.
    Done,
    /// It has taken the job.
    Going(Box<Ticket>),
    /// It has taken the job, and how to ask for it can't be known.
    Lost(String),
    /// It can't start now.
    Later {
        /// The reason.
        reason: String,
        /// The service wants to be left alone for so long.
        after: Option<Duration>,
        /// Whether it may have taken the job all the same.
        doubtful: bool,
    },
    /// It will never start.
    Refused(String),
}

/// The result of a check of the status.
#[derive(Debug, PartialEq)]
pub(super) enum Look {
    /// The job has succeeded.
    Done,
    /// It has failed, and why.
    Failed(String),
    /// The job is running.
    Going,
    /// The service does not know it.
    Gone(String),
    /// Its status can't be had now.
    Hidden(String),
}

/// Asks a service to start a job.
pub(super) async fn start(http: &Http, key: &str, settings: &Settings, now: i64) -> StartAnswer {
    let asked = match request(http, key, settings) {
        Ok(asked) => asked,
        Err(Unmade::Now(reason)) => return StartAnswer::Later { reason, after: None, doubtful: false },
        Err(Unmade::Ever(reason)) => return StartAnswer::Refused(reason),
    };
    match http.send_and_hear(asked.1).await {
        Ok(answer) => judge(&asked.0, settings, &answer, now),
        Err(HttpError::NotSent(why)) => {
            StartAnswer::Later { reason: format!("failed to {why}"), after: None, doubtful: false }
        }
        Err(HttpError::NoAnswer(why)) => {
            StartAnswer::Later { reason: format!("failed to {why}"), after: None, doubtful: true }
        }
    }
}

/// The reason for which a request can't be made.
enum Unmade {
    /// The server lacks something.
    Now(String),
    /// The job makes no sense.
    Ever(String),
}

fn request(http: &Http, key: &str, settings: &Settings) -> Result<(Url, RequestBuilder), Unmade> {
    let url = url_of(&settings.url).map_err(Unmade::Ever)?;
    let method = settings.method().map_err(Unmade::Ever)?;
    let made = http.request(method, url.clone()).map_err(|error| Unmade::Now(format!("failed to {error}")))?;
    let key = utf8_percent_encode(key, CONTROLS).to_string();
    let made = with_body(made.header(KEY, key), settings.body.as_ref());
    Ok((url, with_headers(made, &settings.headers, true)?))
}

fn with_body(request: RequestBuilder, body: Option<&Value>) -> RequestBuilder {
    match body {
        None => request,
        Some(Value::String(text)) => request.header(CONTENT_TYPE, "text/plain; charset=utf-8").body(text.clone()),
        Some(json) => request.header(CONTENT_TYPE, "application/json").body(json.to_string()),
    }
}

/// Adds headers, in the place of those that are there; secrets only where they may go.
fn with_headers(request: RequestBuilder, headers: &Headers, secrets: bool) -> Result<RequestBuilder, Unmade> {
    let mut map = crate::http::header::HeaderMap::new();
    for (name, text) in headers {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Unmade::Ever(format!("{name:?} can't be the name of a header")))?;
        let value = match text {
            HeaderText::Plain(text) => value_of(text).map(Some),
            HeaderText::Variable { env, prefix } if secrets => secret(env, prefix)?.map(Some),
            HeaderText::Variable { .. } => Some(None),
        };
        let value = value.ok_or_else(|| {
            Unmade::Ever(format!("the value of the header {name} has characters that no header may have"))
        })?;
        if let Some(value) = value {
            map.insert(parsed, value);
        }
    }
    Ok(request.headers(map))
}

fn value_of(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

/// The value of a variable of the environment, marked so that nothing shows it.
fn secret(name: &str, prefix: &str) -> Result<Option<HeaderValue>, Unmade> {
    let value = std::env::var(name).map_err(|_| {
        Unmade::Now(format!("the server has no environment variable {name}, which a header of the job names"))
    })?;
    Ok(value_of(&format!("{prefix}{}", value.trim_end_matches(['\r', '\n']))).map(|mut value| {
        value.set_sensitive(true);
        value
    }))
}

/// The meaning of an answer to a start.
fn judge(url: &Url, settings: &Settings, answer: &Answer, now: i64) -> StartAnswer {
    let status = answer.status;
    if settings.expects(status) {
        let Some(poll) = &settings.poll else { return StartAnswer::Done };
        return match Ticket::of(url, settings, poll, answer, now) {
            Ok(ticket) => StartAnswer::Going(Box::new(ticket)),
            Err(why) => StartAnswer::Lost(format!("the service took it, and can't be asked about it: {why}")),
        };
    }
    let said = format!("{} answered {}", shown(url), answer.summary());
    if status.is_success() {
        // It has taken something, whatever was expected: asking again might do the job twice.
        return StartAnswer::Lost(format!("{said}, which is none of the statuses of `expect`"));
    }
    let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY];
    if status.is_server_error() || busy.contains(&status) {
        return StartAnswer::Later { reason: said, after: answer.retry_after(), doubtful: status.is_server_error() };
    }
    if status.is_redirection() && answer.headers.contains_key(LOCATION) {
        return StartAnswer::Refused(format!("{said}; redirections are not followed, give the final address as `url`"));
    }
    StartAnswer::Refused(said)
}

/// Checks the status of a job.
pub(super) async fn look(http: &Http, ticket: &Ticket) -> Look {
    let answer = match ask(http, Method::GET, &ticket.status, ticket).await {
        Ok(answer) => answer,
        Err(why) => return Look::Hidden(why),
    };
    if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
        return Look::Gone(answer.summary());
    }
    if !answer.status.is_success() {
        return Look::Hidden(format!("{} answered {}", shown(&ticket.status), answer.summary()));
    }
    match answer.json() {
        Some(status) => read(ticket, &status),
        None => Look::Hidden(format!("{} answered no JSON: {}", shown(&ticket.status), answer.summary())),
    }
}

fn read(ticket: &Ticket, status: &Value) -> Look {
    if ticket.poll.failed.holds(status) {
        let why = ticket.poll.message.as_ref().and_then(|pointer| status.pointer(pointer)).map(words);
        return Look::Failed(why.unwrap_or_else(|| "the service says that it has failed".to_owned()));
    }
    if ticket.poll.done.holds(status) { Look::Done } else { Look::Going }
}

fn words(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(500).collect()
}

/// Requests the end of a job. The error is the reason for which the service did not accept it.
pub(super) async fn cancel(http: &Http, ticket: &Ticket) -> Result<(), String> {
    let Some((cancel, url)) = &ticket.cancel else { return Ok(()) };
    let answer = ask(http, method_of(cancel.method.as_deref().unwrap_or("DELETE"))?, url, ticket).await?;
    // A job that it does not know, or that has ended, needs no end.
    let over = [StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::CONFLICT];
    if answer.status.is_success() || over.contains(&answer.status) {
        return Ok(());
    }
    Err(format!("{} answered {}", shown(url), answer.summary()))
}

async fn ask(http: &Http, method: Method, url: &Url, ticket: &Ticket) -> Result<Answer, String> {
    let request = http.request(method, url.clone()).map_err(|error| format!("failed to {error}"))?;
    let trusted = url.origin() == ticket.start.origin();
    let request = match with_headers(request, &ticket.headers, trusted) {
        Ok(request) => request,
        Err(Unmade::Now(why) | Unmade::Ever(why)) => return Err(why),
    };
    http.send(request).await.map_err(|error| format!("failed to {error}"))
}
