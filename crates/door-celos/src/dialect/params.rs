//! Parameters of requests: from the query and, as servlets do, from a form in the body.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::of_request;
use kelos_model::time::{TimeTextError, parse_instant};
use kelos_model::{Actor, SlotKey, SlotRef, WorkflowId};
use percent_encoding::percent_decode;

use super::LARGEST_BODY;

/// The parameters of a request, its body, and its sender.
pub(super) struct Params {
    pairs: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) by: Actor,
}

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Params, Fault> {
        let mut pairs = decode(request.uri().query().unwrap_or_default().as_bytes());
        // The body of a PUT is the value itself, whatever type curl gives it.
        let form = *request.method() == Method::POST && is_form(request.headers());
        let by = of_request(request.extensions())?.actor.clone();
        let body = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| plain::of(rejection.status(), too_large_or(&rejection)))?;
        if form {
            pairs.extend(decode(&body));
        }
        Ok(Params { pairs, body, by })
    }
}

fn too_large_or(rejection: &BytesRejection) -> String {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("The body is too large, expected at most {LARGEST_BODY} bytes")
        }
        _ => rejection.body_text(),
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    media.is_some_and(|media| media.starts_with("application/x-www-form-urlencoded"))
}

impl Params {
    /// The first value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn require(&self, name: &str) -> Result<&str, Fault> {
        self.get(name).ok_or_else(|| plain::bad_request(format!("{name} parameter missing.")))
    }

    /// The workflow of the parameter `id`.
    pub(super) fn id(&self) -> Result<WorkflowId, Fault> {
        let id = WorkflowId::new(self.require("id")?);
        id.map_err(|error| plain::bad_request(error.to_string()))
    }

    /// A time, if it is given.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, Fault> {
        let parse = |text: &str| {
            parse_instant(text).map_err(|error| match error {
                TimeTextError::NotUtc { text } => {
                    plain::bad_request(format!("Scheduled time must be in UTC, but isn't: {text}"))
                }
                form @ TimeTextError::Form { .. } => plain::bad_request(form.to_string()),
            })
        };
        self.get(name).map(parse).transpose()
    }

    /// The slot of `id` and `time`; without `time` the one of the current moment.
    pub(super) async fn slot(&self, app: &App) -> Result<SlotRef, Fault> {
        let (id, at) = (self.id()?, self.time("time")?.unwrap_or_else(|| app.handle().now()));
        let workflow = id.clone();
        let row = app.read(move |reader| reader.workflow(&workflow)).await?;
        // Celos starts nothing beside its schedules, so a time is no moment there.
        let is_moment = row.is_some_and(|row| row.definition.keys.are_moments());
        Ok(SlotRef::new(id, if is_moment { SlotKey::Moment(at) } else { SlotKey::Time(at) }))
    }
}

/// Name and value pairs as browsers and curl write them.
fn decode(text: &[u8]) -> Vec<(String, String)> {
    let word = |bytes: &[u8]| {
        let spaced: Vec<u8> = bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        percent_decode(&spaced).decode_utf8_lossy().into_owned()
    };
    let pair = |pair: &[u8]| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        (word(&pair[..equals]), word(pair.get(equals + 1..).unwrap_or_default()))
    };
    text.split(|byte| *byte == b'&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Checks the name of a register, which in Celos is a name of a file.
pub(super) fn register_name(name: &str, text: &str) -> Result<String, Fault> {
    if text.contains(['/', '.']) {
        return Err(plain::of(
            StatusCode::BAD_REQUEST,
            format!("{name} is \"{text}\", expected a name without \"/\" and \".\""),
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_once() {
        let pairs = decode("id=a%26b+c&time=&flag&x=1=2&&%C3%B1=ñ".as_bytes());
        let expected = [("id", "a&b c"), ("time", ""), ("flag", ""), ("x", "1=2"), ("ñ", "ñ")];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
