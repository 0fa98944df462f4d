//! The settings of an `http` job.

use std::collections::BTreeMap;
use std::time::Duration;

use kelos_model::json::is_same;
use kelos_model::secret::secret_paths;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::http::{Method, StatusCode, Url};

/// The default interval of checks of a job's status, in seconds.
const EVERY: f64 = 10.0;

/// The shortest interval of checks. Scripts can't set less than a second.
const SHORTEST: Duration = Duration::from_millis(10);

/// All that a job can say.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Settings {
    /// The project of the job, which decides which secrets it may use.
    #[serde(skip)]
    pub(super) project: String,
    pub(super) url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    pub(super) headers: Headers,
    #[serde(default)]
    pub(super) body: Option<Value>,
    #[serde(default)]
    expect: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) poll: Option<Poll>,
    #[serde(default)]
    pub(super) cancel: Option<Cancel>,
}

/// Headers by name. A value that is a secret is only named here.
pub(super) type Headers = BTreeMap<String, HeaderText>;

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum HeaderText {
    /// The text itself.
    Plain(String),
    /// A secret, read for each request and kept nowhere.
    Secret {
        /// Its source.
        secret: String,
        /// The text before its value, such as `Bearer `.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
    /// The older form of a secret whose source is a variable.
    Variable {
        /// The variable's name.
        env: String,
        /// The text before its value, such as `Bearer `.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
}

impl HeaderText {
    /// The header as settings declare it.
    pub(super) fn declared(&self) -> Value {
        match self {
            HeaderText::Plain(text) => Value::from(text.as_str()),
            HeaderText::Secret { secret, prefix } => json!({"secret": secret, "prefix": prefix}),
            HeaderText::Variable { env, prefix } => json!({"secret": format!("env:{env}"), "prefix": prefix}),
        }
    }

    pub(super) fn is_secret(&self) -> bool {
        !matches!(self, HeaderText::Plain(_))
    }
}

/// The checks of a job that the service has accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Poll {
    /// A template over the answer to the start; the answer's `Location` where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// The interval of checks, in seconds.
    #[serde(default = "every", rename = "everySeconds")]
    pub(super) every: f64,
    /// When it has succeeded.
    pub(super) done: Condition,
    /// When it has failed.
    #[serde(default, skip_serializing_if = "Condition::is_empty")]
    pub(super) failed: Condition,
    /// The JSON pointer to the reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// After these many seconds the job is ended and has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_seconds: Option<f64>,
}

/// The cancellation of a job that the service has accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Cancel {
    /// A template over the answer to the start; the status URL where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// `DELETE` where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<String>,
}

/// Values or lists of values by JSON pointer. The status must have each of them, or one of each list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Condition(BTreeMap<String, Value>);

fn every() -> f64 {
    EVERY
}

impl Poll {
    /// The interval of checks.
    pub(super) fn pause(&self) -> Duration {
        Duration::try_from_secs_f64(self.every).unwrap_or(SHORTEST).max(SHORTEST)
    }

    /// The longest time that the job may take, in milliseconds.
    pub(super) fn patience(&self) -> Option<i64> {
        let patience = Duration::try_from_secs_f64(self.timeout_seconds?).ok()?;
        i64::try_from(patience.as_millis()).ok()
    }
}

impl Condition {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a status meets it. One without the values never does.
    pub(super) fn holds(&self, status: &Value) -> bool {
        let stands = |(pointer, wanted): (&String, &Value)| {
            status.pointer(pointer).is_some_and(|found| match wanted {
                Value::Array(any) => any.iter().any(|one| is_same(one, found)),
                one => is_same(one, found),
            })
        };
        !self.is_empty() && self.0.iter().all(stands)
    }
}

impl Settings {
    /// Reads the settings of a job of a project.
    pub(super) fn read(project: &str, settings: Map<String, Value>) -> Result<Self, String> {
        for (path, declared) in secret_paths(&settings) {
            declared.map_err(|why| format!("`{path}`: {why}"))?;
            if path != "body" && !["headers.", "body.", "body["].iter().any(|part| path.starts_with(part)) {
                return Err(format!(
                    "`{path}` declares a secret, expected it in a header or in the body: headers: {{Authorization: {{secret: \
                     \"env:KELOS_SECRET_API\", prefix: \"Bearer \"}}}}"
                ));
            }
        }
        let mut settings: Settings = serde_json::from_value(Value::Object(settings))
            .map_err(|error| format!("its settings make no sense: {error}"))?;
        project.clone_into(&mut settings.project);
        settings.method()?;
        for expected in settings.expect.iter().flatten() {
            class_of(expected).ok_or_else(|| {
                format!("`expect` has {expected}, expected a status such as 200 or a class of them such as \"2xx\"")
            })?;
        }
        if let Some(poll) = &settings.poll {
            duration("everySeconds", poll.every)?;
            poll.timeout_seconds.map_or(Ok(Duration::ZERO), |seconds| duration("timeoutSeconds", seconds))?;
        }
        if settings.poll.is_none() && settings.cancel.is_some() {
            return Err("it has `cancel` without `poll`: without polling its end is the answer to its start".to_owned());
        }
        Ok(settings)
    }

    /// The same with the context of a trace as a header, unless the job has one of its own.
    pub(super) fn traced(mut self, traceparent: Option<String>) -> Settings {
        const HEADER: &str = "traceparent";
        if let Some(traceparent) =
            traceparent.filter(|_| !self.headers.keys().any(|name| name.eq_ignore_ascii_case(HEADER)))
        {
            self.headers.insert(HEADER.to_owned(), HeaderText::Plain(traceparent));
        }
        self
    }

    /// The method of the start.
    pub(super) fn method(&self) -> Result<Method, String> {
        method_of(self.method.as_deref().unwrap_or("POST"))
    }

    /// Whether a status code means that the service has accepted the job.
    pub(super) fn expects(&self, status: StatusCode) -> bool {
        match &self.expect {
            None => status.is_success(),
            Some(list) => {
                list.iter().filter_map(class_of).any(|(least, most)| (least..=most).contains(&status.as_u16()))
            }
        }
    }
}

fn duration(name: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("`poll.{name}` is {seconds}, expected a number of seconds"))
}

/// Reads a method.
pub(super) fn method_of(name: &str) -> Result<Method, String> {
    Method::from_bytes(name.as_bytes())
        .map_err(|_| format!("`method` is {name:?}, expected one such as \"GET\" or \"POST\""))
}

/// Reads a URL that jobs may name.
pub(super) fn url_of(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| {
        format!("the URL {text:?} can't be read ({error}), expected one such as \"https://jobs.example.org/v1/jobs\"")
    })?;
    allowed(url)
}

/// Refuses URLs of other kinds, and such with secrets inside.
pub(super) fn allowed(url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("the URL's scheme is \"{}\", expected http or https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL has a name or password inside, expected them in a header: \
                    headers: {Authorization: {secret: \"env:KELOS_SECRET_API\", prefix: \"Bearer \"}}"
            .to_owned());
    }
    Ok(url)
}

/// `200` or `"2xx"` as a range.
fn class_of(value: &Value) -> Option<(u16, u16)> {
    if let Some(status) = value.as_u64().or_else(|| value.as_str()?.parse().ok()) {
        let status = u16::try_from(status).ok().filter(|status| (100..600).contains(status))?;
        return Some((status, status));
    }
    let digit: u16 = value.as_str()?.strip_suffix("xx")?.parse().ok().filter(|digit| (1..=5).contains(digit))?;
    Some((digit * 100, digit * 100 + 99))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(settings: Value) -> Result<Settings, String> {
        Settings::read("p", settings.as_object().unwrap().clone())
    }

    #[test]
    fn statuses_are_expected_one_by_one_or_by_class() {
        let settings = read(json!({"url": "http://a", "expect": [200, "3xx", "404"]})).unwrap();
        let expected = |status: u16| settings.expects(StatusCode::from_u16(status).unwrap());
        assert!(expected(200) && expected(302) && expected(404) && !expected(201) && !expected(500));
        let usual = read(json!({"url": "http://a"})).unwrap();
        assert!(usual.expects(StatusCode::NO_CONTENT) && !usual.expects(StatusCode::FOUND));
    }

    #[test]
    fn conditions_look_at_all_places() {
        let holds = |condition: Value, status: Value| Condition::deserialize(condition).unwrap().holds(&status);
        assert!(holds(json!({"/s": "OK"}), json!({"s": "OK"})));
        assert!(holds(json!({"/s": ["OK", 1]}), json!({"s": 1})));
        assert!(holds(json!({"/a/0": true, "/b": null}), json!({"a": [true], "b": null})));
        assert!(!holds(json!({"/a": 1, "/b": 2}), json!({"a": 1})));
        assert!(!holds(json!({}), json!({})));
    }

    #[test]
    fn mistakes_are_told() {
        let wrong = |settings: Value| read(settings).unwrap_err();
        all_equal(&[
            (wrong(json!({})), "its settings make no sense: missing field `url`"),
            (
                wrong(json!({"url": "http://a", "method": "A B"})),
                "`method` is \"A B\", expected one such as \"GET\" or \"POST\"",
            ),
            (
                wrong(json!({"url": "http://a", "expect": ["2x"]})),
                "`expect` has \"2x\", expected a status such as 200 or a class of them such as \"2xx\"",
            ),
            (
                wrong(json!({"url": "http://a", "cancel": {}})),
                "it has `cancel` without `poll`: without polling its end is the answer to its start",
            ),
            (
                wrong(json!({"url": {"secret": "env:URL"}})),
                "`url` declares a secret, expected it in a header or in the body: headers: {Authorization: {secret: \
                 \"env:KELOS_SECRET_API\", prefix: \"Bearer \"}}",
            ),
            (
                wrong(json!({"url": "http://a", "headers": {"A": {"secret": "hunter2"}}})),
                "`headers.A`: expected the source of a secret, not the secret itself: \"env:NAME\", \"file:PATH\" or \
                 \"exec:COMMAND\"",
            ),
            (
                url_of("http://me:secret@a/").unwrap_err(),
                "the URL has a name or password inside, expected them in a header: \
                 headers: {Authorization: {secret: \"env:KELOS_SECRET_API\", prefix: \"Bearer \"}}",
            ),
            (url_of("ftp://a/").unwrap_err(), "the URL's scheme is \"ftp\", expected http or https"),
        ]);
    }

    fn all_equal(cases: &[(String, &str)]) {
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}
