//! The requests: the start, the check of the status, the cancellation.

use std::time::Duration;

use kelos_engine::secrets::{Mask, SecretError, Secrets};
use kelos_model::json::JsonError;
use percent_encoding::{CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

use super::settings::{HeaderText, Headers, Settings, method_of, url_of};
use super::ticket::Ticket;
use crate::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
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
    /// It was not asked, because the job lacks a secret.
    Lacks(SecretError),
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
    /// The service does not know it now.
    Gone(String),
    /// The service knew it, and never will again.
    Removed(String),
    /// Its status can't be had now.
    Hidden(String),
}

/// The client of all services, with the secrets that their jobs may be given.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) http: Http,
    pub(super) secrets: Secrets,
}

/// A request, and the mask of the secrets in it.
struct PreparedRequest {
    request: RequestBuilder,
    mask: Mask,
}

/// Asks a service to start a job.
pub(super) async fn start(client: &Client, key: &str, settings: &Settings, now: i64) -> StartAnswer {
    let later = |reason, doubtful| StartAnswer::Later { reason, after: None, doubtful };
    let (url, prepared) = match request(client, key, settings).await {
        Ok(made) => made,
        Err(Unmade::Now(reason)) => return later(reason, false),
        Err(Unmade::Ever(reason)) => return StartAnswer::Refused(reason),
        Err(Unmade::Secret(error)) => return StartAnswer::Lacks(error),
    };
    match client.http.send_and_hear(prepared.request).await {
        Ok(answer) => judge(&url, settings, &answer.masked(&prepared.mask), now),
        Err(HttpError::NotSent(why)) => later(format!("failed to {why}"), false),
        Err(HttpError::NoAnswer(why)) => later(format!("failed to {why}"), true),
    }
}

/// The reason for which a request can't be made.
enum Unmade {
    /// The server lacks something.
    Now(String),
    /// The job makes no sense.
    Ever(String),
    /// The job lacks a secret.
    Secret(SecretError),
}

impl Unmade {
    fn words(self) -> String {
        match self {
            Unmade::Now(why) | Unmade::Ever(why) => why,
            Unmade::Secret(error) => error.to_string(),
        }
    }
}

async fn request(client: &Client, key: &str, settings: &Settings) -> Result<(Url, PreparedRequest), Unmade> {
    let url = url_of(&settings.url).map_err(Unmade::Ever)?;
    let method = settings.method().map_err(Unmade::Ever)?;
    let made = client.http.request(method, url.clone()).map_err(|error| Unmade::Now(format!("failed to {error}")))?;
    let headers = settings.headers.iter().map(|(name, text)| (name.clone(), text.declared())).collect();
    let mut declared = Map::from_iter([("headers".to_owned(), Value::Object(headers))]);
    if let Some(body) = &settings.body {
        declared.insert("body".to_owned(), body.clone());
    }
    let filled = client.secrets.fill(&settings.project, &declared).await.map_err(Unmade::Secret)?;
    let headers = filled.settings.get("headers").and_then(Value::as_object).cloned().unwrap_or_default();
    let key = utf8_percent_encode(key, CONTROLS).to_string();
    let request = with_body(made.header(KEY, key), filled.settings.get("body"));
    let request = request.headers(header_map(&headers, &settings.headers)?);
    Ok((url, PreparedRequest { request, mask: filled.mask() }))
}

fn with_body(request: RequestBuilder, body: Option<&Value>) -> RequestBuilder {
    match body {
        None => request,
        Some(Value::String(text)) => request.header(CONTENT_TYPE, "text/plain; charset=utf-8").body(text.clone()),
        Some(json) => request.header(CONTENT_TYPE, "application/json").body(json.to_string()),
    }
}

/// Headers with their values, those that are secrets marked so that nothing shows them.
fn header_map(filled: &Map<String, Value>, declared: &Headers) -> Result<HeaderMap, Unmade> {
    let mut map = HeaderMap::new();
    for (name, value) in filled {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Unmade::Ever(format!("{name:?} can't be the name of a header")))?;
        let mut value = HeaderValue::from_str(value.as_str().unwrap_or_default()).map_err(|_| {
            Unmade::Ever(format!("the value of the header {name} has characters that no header may have"))
        })?;
        value.set_sensitive(declared.get(name).is_some_and(HeaderText::is_secret));
        map.insert(parsed, value);
    }
    Ok(map)
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
pub(super) async fn look(client: &Client, ticket: &Ticket) -> Look {
    let answer = match ask(client, Method::GET, &ticket.status, ticket).await {
        Ok(answer) => answer,
        Err(why) => return Look::Hidden(why),
    };
    match answer.status {
        StatusCode::NOT_FOUND => return Look::Gone(answer.summary()),
        StatusCode::GONE => return Look::Removed(answer.summary()),
        _ => {}
    }
    if !answer.status.is_success() {
        return Look::Hidden(format!("{} answered {}", shown(&ticket.status), answer.summary()));
    }
    match answer.json() {
        Ok(status) => read(ticket, status.value()),
        Err(JsonError::Json(_)) => {
            Look::Hidden(format!("{} answered no JSON: {}", shown(&ticket.status), answer.summary()))
        }
        Err(error) => Look::Hidden(format!("{} answered JSON that can't be used: {error}", shown(&ticket.status))),
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
pub(super) async fn cancel(client: &Client, ticket: &Ticket) -> Result<(), String> {
    let Some((cancel, url)) = &ticket.cancel else { return Ok(()) };
    let answer = ask(client, method_of(cancel.method.as_deref().unwrap_or("DELETE"))?, url, ticket).await?;
    // A job that it does not know, or that has ended, needs no end.
    let over = [StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::CONFLICT];
    if answer.status.is_success() || over.contains(&answer.status) {
        return Ok(());
    }
    Err(format!("{} answered {}", shown(url), answer.summary()))
}

async fn ask(client: &Client, method: Method, url: &Url, ticket: &Ticket) -> Result<Answer, String> {
    let request = client.http.request(method, url.clone()).map_err(|error| format!("failed to {error}"))?;
    // Secrets are sent to the host of the start, and to no other.
    let trusted = url.origin() == ticket.start.origin();
    let sent = ticket.headers.iter().filter(|(_, text)| trusted || !text.is_secret());
    let declared = sent.map(|(name, text)| (name.clone(), text.declared())).collect();
    let filled = client.secrets.fill(&ticket.project, &declared).await.map_err(|error| error.to_string())?;
    let headers = header_map(&filled.settings, &ticket.headers).map_err(Unmade::words)?;
    let answer = client.http.send(request.headers(headers)).await.map_err(|error| format!("failed to {error}"))?;
    Ok(answer.masked(&filled.mask()))
}
