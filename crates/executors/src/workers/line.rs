//! The line of a worker to a server on any machine, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use kelos_model::nesting;
use kelos_tls::Trust;
use kelos_wire::{AssignmentDto, OfferRequest, ProblemDetailsDto};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::{Door, NoAnswer};
use crate::http::{Answer, Http, HttpError, Method, StatusCode, Url};

/// How long a connection to the server may take.
pub const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take where nothing else is said.
const ANSWER: Duration = Duration::from_secs(30);

/// A text that is no address of a server. It completes "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("use the server {0}: expected an address such as https://kelos.example")]
pub struct AddressError(String);

/// A worker's line to one server.
pub struct RemoteLine {
    base: String,
    token: Option<Arc<str>>,
    http: Http,
}

impl RemoteLine {
    /// A line to a server at an address that is known to be one.
    #[must_use]
    pub fn of(base: String, token: Option<Arc<str>>, http: Http) -> RemoteLine {
        RemoteLine { base, token, http }
    }

    /// The address of a server as people write it, in full.
    ///
    /// # Errors
    /// When the text is no address over HTTP.
    pub fn address(server: &str) -> Result<String, AddressError> {
        let base = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        let base = base.trim_end_matches('/').to_owned();
        let scheme = Url::parse(&base).map(|url| url.scheme().to_owned()).unwrap_or_default();
        if ["http", "https"].contains(&scheme.as_str()) { Ok(base) } else { Err(AddressError(base)) }
    }

    /// The client of such lines.
    #[must_use]
    pub fn client(trust: &Trust) -> Http {
        Http::with_patience(trust, CONNECT, ANSWER)
    }

    /// Sends a request, whose path has [escaped] names.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Answer, NoAnswer> {
        self.send_within(ANSWER, method, path, body).await
    }

    /// The same, but it waits no longer than this for the connection and the answer.
    async fn send_within(
        &self,
        patience: Duration,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Answer, NoAnswer> {
        let url = Url::parse(&format!("{}{path}", self.base));
        let url = url.map_err(|error| NoAnswer::Never(format!("reach {}: {error}", self.base)))?;
        let away = |error: HttpError| NoAnswer::Away(error.to_string());
        let request = self.http.request(method, url).map_err(away)?;
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        self.http.send(request.json(body).timeout(patience)).await.map_err(away)
    }
}

/// A name as a part of a path.
#[must_use]
pub fn escaped(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

impl Door for RemoteLine {
    async fn say(&self, worker: &str, offer: &OfferRequest, patience: Duration) -> Result<AssignmentDto, NoAnswer> {
        let path = format!("/api/v1/workers/{}/offer", escaped(worker));
        let answer = self.send_within(patience, Method::POST, &path, offer).await?;
        let detail = || detail(&answer);
        match answer.status {
            StatusCode::OK => nesting::read(&answer.body)
                .map_err(|error| NoAnswer::Never(format!("understand the server at {}: {error}", self.base))),
            StatusCode::GONE => Err(NoAnswer::GivenUp(detail())),
            StatusCode::NOT_FOUND => Err(NoAnswer::Away(detail())),
            status if is_passing(status) => Err(NoAnswer::Away(detail())),
            _ => Err(NoAnswer::Never(format!("work for {}: {}", self.base, detail()))),
        }
    }
}

/// Whether a server that answers so may answer otherwise soon, or another node at once.
#[must_use]
pub fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}

/// The problem that an answer tells; it completes "failed to …".
#[must_use]
pub fn detail(answer: &Answer) -> String {
    let detail = serde_json::from_slice::<ProblemDetailsDto>(&answer.body).map(|problem| problem.detail);
    let detail = detail.unwrap_or_else(|_| answer.summary());
    detail.strip_prefix("failed to ").map(str::to_owned).unwrap_or(detail)
}
