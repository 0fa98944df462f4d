//! Oozie's web service, version 1, which every Oozie since 3.0 speaks.
//!
//! Absent: when to ask, and what follows from an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::order::{Order, Place};
use crate::http::{self, Answer, Http, HttpError, Method, RequestBuilder, StatusCode, Url, header};

/// Oozie does not know a job.
const NO_SUCH_JOB: &str = "E0604";
/// Oozie does not understand a filter.
const BAD_FILTER: &str = "E0420";
/// More of Oozie's words than this are not shown.
const LONGEST_MESSAGE: usize = 300;

/// The reason for which there is no usable answer. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// Oozie refuses, in words of its own.
    #[error("get Oozie to do it: it says {code}: {message}")]
    Said { code: String, message: String },
    /// The request had no effect, or no answer of Oozie tells whether it had.
    #[error("{reason}")]
    NoWord {
        /// The message.
        reason: String,
        /// Whether Oozie may have done it all the same.
        may_be_done: bool,
    },
}

impl Trouble {
    fn no_word(reason: String) -> Self {
        Trouble::NoWord { reason, may_be_done: false }
    }

    /// Whether Oozie answered that there is no such job.
    pub(super) fn is_no_such_job(&self) -> bool {
        matches!(self, Trouble::Said { code, .. } if code == NO_SUCH_JOB)
    }

    /// Whether this Oozie can't list jobs by their ids.
    pub(super) fn is_bad_filter(&self) -> bool {
        matches!(self, Trouble::Said { code, .. } if code == BAD_FILTER)
    }

    /// Whether Oozie would say the same however often it is asked, because what it was handed is wrong in itself.
    pub(super) fn is_for_good(&self) -> bool {
        let Trouble::Said { code, .. } = self else { return false };
        // Missing properties; malformed and contradictory workflow definitions; properties that users may not set;
        // expressions.
        let number = code.strip_prefix('E').and_then(|number| number.parse::<u32>().ok());
        let of_definition = |n| matches!(n, 700 | 701 | 703..=708 | 711 | 723 | 724 | 730..=769);
        number.is_some_and(|n| matches!(n, 401 | 404 | 405 | 804 | 808 | 1004) || of_definition(n))
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::NotSent(reason) => Trouble::NoWord { reason, may_be_done: false },
            HttpError::NoAnswer(reason) => Trouble::NoWord { reason, may_be_done: true },
        }
    }
}

/// An action on a job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Start,
    Kill,
}

/// A job as Oozie shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Job {
    pub(super) id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) console_url: Option<String>,
    pub(super) actions: Vec<JobAction>,
}

/// One action of a job.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct JobAction {
    pub(super) name: Option<String>,
    pub(super) status: Option<String>,
    pub(super) error_code: Option<String>,
    pub(super) error_message: Option<String>,
    pub(super) console_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct JobList {
    workflows: Vec<Job>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JobId {
    id: Option<String>,
}

/// An Oozie, spoken to as one user. Cheap to clone.
#[derive(Clone)]
pub(super) struct Oozie {
    http: Http,
    place: Place,
    patience: Duration,
}

impl Oozie {
    pub(super) fn new(http: Http, place: Place, patience: Duration) -> Self {
        Self { http, place, patience }
    }

    /// Its URL as it may be shown.
    pub(super) fn shown(&self) -> String {
        http::shown(&self.place.url)
    }

    /// Submits a job, which is not started by that.
    pub(super) async fn submit(&self, order: &Order) -> Result<String, Trouble> {
        let request = self.request(Method::POST, &["v1", "jobs"], &[])?;
        let request = request.header(header::CONTENT_TYPE, "application/xml;charset=UTF-8").body(order.xml());
        let answer: JobId = self.json(request).await?;
        let lost = || Trouble::NoWord { reason: format!("read the job's id in {}", self.whose()), may_be_done: true };
        answer.id.filter(|id| !id.is_empty()).ok_or_else(lost)
    }

    /// Starts or kills a job.
    pub(super) async fn act(&self, job: &str, action: Action) -> Result<(), Trouble> {
        let action = match action {
            Action::Start => "start",
            Action::Kill => "kill",
        };
        let request = self.request(Method::PUT, &["v1", "job", job], &[("action", action)])?;
        // Some servers refuse a PUT that does not say how long it is.
        self.answer(request.header(header::CONTENT_LENGTH, 0)).await.map(|_| ())
    }

    /// The job that was submitted with an external id.
    pub(super) async fn find(&self, external_id: &str) -> Result<Option<String>, Trouble> {
        let query = [("jobtype", "wf"), ("external-id", external_id)];
        let found: JobId = self.json(self.request(Method::GET, &["v1", "jobs"], &query)?).await?;
        Ok(found.id.filter(|id| !id.is_empty()))
    }

    /// The statuses of many jobs by their ids, in one request. What Oozie does not know is left out.
    pub(super) async fn statuses(&self, jobs: &[&str]) -> Result<BTreeMap<String, String>, Trouble> {
        let filter: Vec<String> = jobs.iter().map(|job| format!("id={job}")).collect();
        let (filter, len) = (filter.join(";"), jobs.len().to_string());
        let query = [("jobtype", "wf"), ("filter", &*filter), ("offset", "1"), ("len", &*len)];
        let found: JobList = self.json(self.request(Method::GET, &["v1", "jobs"], &query)?).await?;
        Ok(found.workflows.into_iter().filter_map(|job| Some((job.id?, job.status?))).collect())
    }

    /// The status of one job.
    pub(super) async fn status(&self, job: &str) -> Result<String, Trouble> {
        // With a length of 0 Oozie gives all actions; one is the least.
        let found = self.job(job, "1").await?;
        found.status.ok_or_else(|| Trouble::no_word(format!("read the status of {job} in {}", self.whose())))
    }

    /// A job with its actions.
    pub(super) async fn details(&self, job: &str) -> Result<Job, Trouble> {
        self.job(job, "1000").await
    }

    async fn job(&self, job: &str, actions: &str) -> Result<Job, Trouble> {
        let query = [("show", "info"), ("offset", "1"), ("len", actions)];
        self.json(self.request(Method::GET, &["v1", "job", job], &query)?).await
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> Result<RequestBuilder, Trouble> {
        let mut url = self.place.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url.query_pairs_mut().append_pair("user.name", &self.place.user).extend_pairs(query);
        Ok(self.http.request(method, url)?.timeout(self.patience))
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Trouble> {
        let answer = self.answer(request).await?;
        serde_json::from_slice(&answer.body).map_err(|_| self.not_oozie(&answer))
    }

    /// An answer that Oozie gave, and gave gladly.
    async fn answer(&self, request: RequestBuilder) -> Result<Answer, Trouble> {
        let answer = self.http.send(request).await?;
        // Oozie wraps its refusals in pages of its web server; these headers distinguish them from a proxy's.
        if let Some(code) = answer.header("oozie-error-code") {
            return Err(Trouble::Said { code: code.to_owned(), message: said(&answer) });
        }
        match answer.status {
            status if status.is_success() && !answer.is_html() => Ok(answer),
            StatusCode::UNAUTHORIZED if asks_for_kerberos(&answer) => Err(Trouble::no_word(format!(
                "log in to {}: it asks for Kerberos (Negotiate), which Kelos can't do yet; expected simple authentication: \
                 use an Oozie or a gateway in front of it that takes user.name, or basic authentication by \
                 http://USER:PASSWORD@HOST",
                self.whose()
            ))),
            status if status.is_redirection() => Err(Trouble::no_word(format!(
                "talk to {}: it answers {status} and leads to {}; expected Oozie's web service: use that URL in the script",
                self.whose(),
                target(&answer)
            ))),
            _ => Err(self.not_oozie(&answer)),
        }
    }

    /// The answer is not from Oozie's web service, or that is in trouble.
    fn not_oozie(&self, answer: &Answer) -> Trouble {
        let kind = if answer.is_html() { "a page instead of JSON" } else { "what is no answer of Oozie's" };
        let reason = format!(
            "talk to {}: it answers with {kind}, {}; check that the URL is the root of Oozie's web service, such as \
             http://oozie:11000/oozie, and any proxy on the way",
            self.whose(),
            quoted(answer)
        );
        // A gateway timeout doesn't tell whether Oozie got the request.
        Trouble::NoWord { reason, may_be_done: answer.status.is_server_error() || answer.status.is_success() }
    }

    fn whose(&self) -> String {
        format!("Oozie at {}", self.shown())
    }
}

/// `"502 Bad Gateway: The upstream …"`.
fn quoted(answer: &Answer) -> String {
    format!("\"{}\"", answer.summary())
}

fn asks_for_kerberos(answer: &Answer) -> bool {
    let asked = answer.headers.get_all(header::WWW_AUTHENTICATE);
    asked.iter().any(|way| way.to_str().is_ok_and(|way| way.to_ascii_lowercase().contains("negotiate")))
}

/// Oozie's message without the code, which often begins it.
fn said(answer: &Answer) -> String {
    let message = answer.header("oozie-error-message").map_or_else(|| answer.words(), str::to_owned);
    let code = answer.header("oozie-error-code").unwrap_or_default();
    let message = message.trim().strip_prefix(code).map_or(message.trim(), |rest| rest.trim_start_matches([':', ' ']));
    // The text after a tab is a Java stack trace.
    let message = message.split('\t').next().unwrap_or_default().trim_end_matches([',', ' ']);
    let shown: String = message.chars().take(LONGEST_MESSAGE).collect();
    format!("{shown}{}", hint(code, message))
}

/// The advice for people.
fn hint(code: &str, message: &str) -> &'static str {
    let absent = code == "E0307" && message.contains("does not exist");
    match code {
        _ if absent || matches!(code, "E0504" | "E0505" | "E0506") => {
            "; deploy the workflow's files, or correct the property oozie.wf.application.path"
        }
        _ if message.contains("Permission denied") => "; the property user.name says as whom it is submitted",
        _ => "",
    }
}

fn target(answer: &Answer) -> String {
    let target = answer.header("location").unwrap_or("nowhere");
    Url::parse(target)
        .map_or_else(|_| target.split(['?', '#']).next().unwrap_or_default().to_owned(), |url| http::shown(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waiting_can_not_mend_is_known_by_its_code() {
        let said = |code: &str| Trouble::Said { code: code.to_owned(), message: String::new() }.is_for_good();
        for code in ["E0401", "E0405", "E0701", "E0705", "E0736", "E0738", "E0808", "E1004"] {
            assert!(said(code), "{code}");
        }
        for code in ["E0501", "E0504", "E0505", "E0507", "E0604", "E0710", "E0803", "E0902", "JA001", ""] {
            assert!(!said(code), "{code}");
        }
    }

    #[test]
    fn a_message_does_not_repeat_its_code() {
        let mut headers = header::HeaderMap::new();
        headers.insert("oozie-error-code", "E0504".parse().unwrap());
        headers.insert("oozie-error-message", "E0504: App directory [/x] does not exist\tat org.X".parse().unwrap());
        let answer = Answer { status: StatusCode::UNAUTHORIZED, headers, body: Vec::new(), cut: None };
        let expected = "App directory [/x] does not exist; deploy the workflow's files, or correct the property \
                        oozie.wf.application.path";
        assert_eq!(said(&answer), expected);
    }
}
