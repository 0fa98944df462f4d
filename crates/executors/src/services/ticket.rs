//! Tickets: the data of a service's answer to a start by which the job can be checked later.
//!
//! A ticket has all that polling and cancelling need, and the run's external id contains it, so that any node can
//! continue. It names secrets and contains none.

use kelos_engine::job::Address;
use kelos_model::json::JsonError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::{Cancel, Headers, Poll, Settings, allowed, url_of};
use crate::http::{Answer, Url, shown};

/// No part of an answer that a URL is made of is longer: the URL is kept with the run.
const LONGEST_VALUE: usize = 4000;

/// The job that a service has taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ticket {
    /// The URL of its start: secrets are sent to this host and to no other.
    pub(super) start: Url,
    /// The URL of its status.
    pub(super) status: Url,
    /// The project of the job, which decides which secrets it may use.
    #[serde(default)]
    pub(super) project: String,
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    pub(super) headers: Headers,
    pub(super) poll: Poll,
    /// The request that ends it, and its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cancel: Option<(Cancel, Url)>,
    /// When it has taken too long, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<i64>,
}

impl Ticket {
    /// The ticket of an answer to a start.
    pub(super) fn of(start: &Url, settings: &Settings, poll: &Poll, answer: &Answer, now: i64) -> Result<Self, String> {
        let status = match &poll.url {
            Some(template) => place(template, start, answer)?,
            None => {
                let location = answer
                    .header("location")
                    .ok_or("its answer has no header Location, expected one or `poll.url`: \"…/${answer/id}\"")?;
                if location.len() > LONGEST_VALUE {
                    return Err(format!("its header Location is longer than {LONGEST_VALUE} bytes"));
                }
                resolve(start, location)?
            }
        };
        let cancel = match &settings.cancel {
            None => None,
            Some(cancel) => {
                let url = cancel.url.as_ref().map(|template| place(template, start, answer)).transpose()?;
                Some((cancel.clone(), url.unwrap_or_else(|| status.clone())))
            }
        };
        Ok(Self {
            start: start.clone(),
            status,
            project: settings.project.clone(),
            headers: settings.headers.clone(),
            poll: poll.clone(),
            cancel,
            deadline: poll.patience().map(|patience| now.saturating_add(patience)),
        })
    }

    /// The external id of the run: where its status is, for people, and the ticket behind it.
    pub(super) fn external_id(&self) -> String {
        // It has texts as keys only, which is all that JSON asks for.
        let ticket = serde_json::to_string(self).unwrap_or_default();
        format!("{} {ticket}", shown(&self.status))
    }

    /// Reads [`Ticket::external_id`] back.
    pub(super) fn read(external_id: &str) -> Option<Self> {
        let (_, ticket) = external_id.split_once(' ')?;
        serde_json::from_str(ticket).ok()
    }
}

/// Fills a template from an answer, and makes a URL of it.
fn place(template: &str, start: &Url, answer: &Answer) -> Result<Url, String> {
    resolve(start, &filled(template, answer)?)
}

fn resolve(start: &Url, text: &str) -> Result<Url, String> {
    match start.join(text) {
        Ok(url) => allowed(url),
        Err(_) => url_of(text),
    }
}

/// Replaces `${answer/POINTER}` and `${header/NAME}`. A value that begins the template may be a whole URL;
/// elsewhere it is a part of one, and escaped.
fn filled(template: &str, answer: &Answer) -> Result<String, String> {
    let mut filled = Address::default();
    let mut rest = template;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        filled.push(before);
        let end = from.find('}').ok_or_else(|| format!("the URL {template:?} has no }} after ${{"))?;
        let name = &from[2..end];
        let value = value_of(name, answer)?;
        if value.len() > LONGEST_VALUE {
            return Err(format!(
                "${{{name}}} in its answer has {} bytes, expected at most {LONGEST_VALUE}",
                value.len()
            ));
        }
        if filled.is_empty() {
            filled.push(&value);
        } else {
            filled.push_value(name, &value)?;
        }
        rest = &from[end + 1..];
    }
    filled.push(rest);
    filled.finish()
}

fn value_of(name: &str, answer: &Answer) -> Result<String, String> {
    if let Some(header) = name.strip_prefix("header/") {
        return answer.header(header).map(str::to_owned).ok_or_else(|| format!("its answer has no header {header}"));
    }
    let Some(pointer) = name.strip_prefix("answer").filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
    else {
        return Err(format!("a URL has ${{{name}}}, expected ${{answer/id}} or ${{header/Location}}"));
    };
    if let Some(why) = &answer.cut {
        return Err(format!("its answer was not heard to the end: failed to {why}"));
    }
    let json = answer.json().map_err(|error| match error {
        JsonError::Json(_) => format!("its answer is no JSON: {}", answer.summary()),
        error => format!("its answer can't be used: {error}"),
    })?;
    match json.part(pointer).map_err(|number| format!("its answer at {pointer} can't be used: {number}"))? {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        _ => Err(format!("its answer has no text or number at {pointer}: {}", answer.words())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::StatusCode;
    use crate::http::header::{HeaderMap, HeaderValue, LOCATION};

    fn answer(body: &Value) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_static("/jobs/8"));
        Answer { status: StatusCode::CREATED, headers, body: body.to_string().into_bytes(), cut: None }
    }

    fn ticket(job: Value, body: &Value) -> Result<Ticket, String> {
        let mut settings = json!({"url": "http://svc/v1/jobs?x=1", "poll": {"done": {"/s": "OK"}}});
        for (name, value) in job.as_object().unwrap() {
            settings[name] = value.clone();
        }
        let settings = Settings::read("p", settings.as_object().unwrap().clone())?;
        let poll = settings.poll.clone().unwrap();
        Ticket::of(&url_of(&settings.url)?, &settings, &poll, &answer(body), 5000)
    }

    #[test]
    fn urls_are_filled_from_the_answer() {
        let status = |url: &str, body: Value| {
            let done = ticket(json!({"poll": {"url": url, "done": {"/s": "OK"}}}), &body);
            done.map(|ticket| ticket.status.to_string())
        };
        assert_eq!(status("http://other/${answer/job/id}", json!({"job": {"id": 7}})).unwrap(), "http://other/7");
        assert_eq!(status("jobs/${answer/id}/s", json!({"id": "a/b"})).unwrap(), "http://svc/v1/jobs/a%2Fb/s");
        assert_eq!(status("${answer/link}", json!({"link": "/x/1?t=2"})).unwrap(), "http://svc/x/1?t=2");
        assert_eq!(status("${header/location}", json!({})).unwrap(), "http://svc/jobs/8");
        assert_eq!(
            status("/${answer/id}", json!({"id": []})).unwrap_err(),
            "its answer has no text or number at /id: {\"id\":[]}"
        );
        assert_eq!(
            status("/${id}", json!({})).unwrap_err(),
            "a URL has ${id}, expected ${answer/id} or ${header/Location}"
        );
        assert_eq!(
            status("${answer/link}", json!({"link": "file:///etc/passwd"})).unwrap_err(),
            "the URL's scheme is \"file\", expected http or https"
        );
    }

    #[test]
    fn a_ticket_survives_as_the_runs_external_id() {
        let job = json!({
            "headers": {"Authorization": {"secret": "env:TOKEN", "prefix": "Bearer "}, "X-Old": {"env": "OLD"}},
            "poll": {"done": {"/s": "OK"}, "timeoutSeconds": 60},
            "cancel": {},
        });
        let ticket = ticket(job, &json!({})).unwrap();
        assert_eq!(ticket.deadline, Some(65_000));
        assert_eq!(ticket.cancel.as_ref().map(|(_, url)| url.as_str()), Some("http://svc/jobs/8"));
        let external_id = ticket.external_id();
        assert!(external_id.starts_with("http://svc/jobs/8 {"), "{external_id}");
        assert_eq!(Ticket::read(&external_id), Some(ticket));
        assert_eq!(Ticket::read("4711"), None);
    }
}
