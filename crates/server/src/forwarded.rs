//! Requests that only the leader can answer, at a node that does not lead: they are sent on to it, and answered once this node has what
//! they changed.
//!
//! So any node's address will do, and every client reads what it wrote. The leader checks the credential of the request itself, and
//! believes the node what it saw of the client's connection ([`kelos_front::EVIDENCE`]). A node
//! that was asked by another one sends nothing on: where the leader has just changed, the first one asks again.

use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kelos_executors::http::{Answer, Http, HttpError, Url};
use kelos_front::fault::Fault;
use kelos_front::{App, EVIDENCE, guard};
use kelos_store::log::LogState;

/// The last entry of the log that an answer knows of.
const ENTRY: HeaderName = HeaderName::from_static("kelos-entry");
/// The node that sent a request on.
const FORWARDED_BY: HeaderName = HeaderName::from_static("kelos-forwarded-by");
/// Marks the answer of a node that does not lead, in the form of whichever door.
const STANDBY: HeaderName = HeaderName::from_static("kelos-standby");
/// How long a request waits for a leader; a leader that was killed is replaced sooner.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval at which a node without a leader looks for one.
const LOOK: Duration = Duration::from_millis(50);
/// How long a node waits to follow the entries of a change; the change is made in any case.
const CATCH_UP: Duration = Duration::from_secs(5);
/// How long the leader may take to answer: workers wait for something to do.
const ANSWER: Duration = Duration::from_secs(120);
/// The interval at which a node that waits for an answer looks whether the leader was replaced.
const LOOK_FOR_NEXT: Duration = Duration::from_millis(100);
/// How long a leader that was replaced may still take to answer a request that it may have done. What workers say is said again to the
/// next one, so that they don't wait.
const LATE_ANSWER: Duration = Duration::from_secs(5);
/// Largest body that is sent on.
const LARGEST_BODY: usize = 256 << 20;
/// Headers that are about one connection, or about the address of this node.
const OF_THE_CONNECTION: [HeaderName; 10] = [
    header::CONNECTION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::EXPECT,
    // The page that a request comes from was checked by this node.
    header::ORIGIN,
    header::REFERER,
    // The client means this node.
    HeaderName::from_static(guard::INSTANCE),
];

/// The paths of workers.
const WORKERS: &str = "/api/v1/workers";
/// Paths of what the leader alone has heard of.
const OF_LEADER_ALONE: [&str; 2] = [WORKERS, "/ui/workers"];

/// Answers a request, or has the leader answer it.
pub(crate) async fn forward(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let Some(log) = app.node().log().cloned() else { return next.run(request).await };
    let was_forwarded = request.headers().contains_key(FORWARDED_BY);
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is_of_leader_alone = OF_LEADER_ALONE.iter().any(|of| request.uri().path().starts_with(of));
    let leads = log.status().leads;
    if was_forwarded && !leads && (changes || is_of_leader_alone) {
        let mut answer = refusal("do that: this node does not lead", "the node that was asked first asks again");
        answer.headers_mut().insert(STANDBY, HeaderValue::from_static("true"));
        return answer;
    }
    if leads || was_forwarded {
        app.access().believe(app.handle(), &mut request);
        let mut answer = next.run(request).await;
        if is_of_a_standby(&answer) {
            answer.headers_mut().insert(STANDBY, HeaderValue::from_static("true"));
        }
        return with_entry(answer, &log);
    }
    let http = app.node().http().clone();
    let seen = app.access().vouch(app.handle(), request.method(), request.uri(), request.extensions());
    request.headers_mut().remove(EVIDENCE);
    request.headers_mut().extend(seen.map(|seen| (EVIDENCE, seen)));
    if changes || is_of_leader_alone {
        return match ForwardRequest::of(request).await {
            Ok(forwarding) => {
                let answer = forwarding.send(&http, &log).await;
                // The author of a change sees it at once, here as well.
                app.read_projects_anew();
                answer
            }
            Err(response) => response,
        };
    }
    // Reads are answered here, unless only the leader knows the answer.
    let forwarding = ForwardRequest {
        method: request.method().clone(),
        uri: request.uri().clone(),
        headers: request.headers().clone(),
        body: Vec::new(),
    };
    let answer = next.run(request).await;
    if is_of_a_standby(&answer) { forwarding.send(&http, &log).await } else { with_entry(answer, &log) }
}

/// Whether an answer says that this node does not lead.
fn is_of_a_standby(answer: &Response) -> bool {
    answer.status() == StatusCode::SERVICE_UNAVAILABLE
        && answer.extensions().get::<Fault>().is_some_and(|fault| fault.code == "standby")
}

/// Adds the last entry that the node has followed.
fn with_entry(mut answer: Response, log: &LogState) -> Response {
    answer.headers_mut().insert(ENTRY, HeaderValue::from(log.status().followed));
    answer
}

/// A request that is sent on.
struct ForwardRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl ForwardRequest {
    async fn of(request: Request) -> Result<ForwardRequest, Response> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, LARGEST_BODY).await.map_err(|error| {
            Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", format!("failed to read the request: {error}"))
                .into_response()
        })?;
        Ok(ForwardRequest { method: parts.method, uri: parts.uri, headers: parts.headers, body: body.to_vec() })
    }

    /// Sends it to the leader, whichever node that is by then, and answers once this node has followed it.
    async fn send(self, http: &Http, log: &LogState) -> Response {
        let until = Instant::now() + PATIENCE;
        loop {
            let why = match self.attempt(http, log).await {
                Ok(answer) => return answered(answer, log).await,
                Err(NoLeader::Lost(why)) => {
                    return refusal(&why, "whether it was done is not known; look before it is sent again");
                }
                Err(NoLeader::Away(why)) => why,
            };
            if Instant::now() >= until {
                return refusal(&why, "it is tried again as soon as a node leads; `kelos nodes` shows them");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn attempt(&self, http: &Http, log: &LogState) -> Result<Answer, NoLeader> {
        let status = log.status();
        let away = |why: &str| NoLeader::Away(why.to_owned());
        // It may be this node itself by now.
        if status.lease.is_free || status.lease.epoch == 0 {
            return Err(away("reach the leader: no node leads at the moment"));
        }
        let holder = status.lease.holder;
        let address = holder.address.ok_or_else(|| away("reach the leader: it has no address"))?;
        let rest = self.uri.path_and_query().map_or("/", |rest| rest.as_str());
        let url: Url = format!("{address}{rest}").parse().map_err(|error| {
            NoLeader::Away(format!("reach the leader {}: its address is no URL: {error}", holder.node))
        })?;
        let failed = |error: HttpError| match error {
            HttpError::NotSent(why) => NoLeader::Away(format!("reach the leader {}: {why}", holder.node)),
            HttpError::NoAnswer(why) => NoLeader::Lost(format!("hear from the leader {}: {why}", holder.node)),
        };
        let mut headers = self.headers.clone();
        OF_THE_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
        let by = HeaderValue::from_str(log.node()).unwrap_or(HeaderValue::from_static("a node"));
        headers.insert(FORWARDED_BY, by);
        let request = http.request(self.method.clone(), url).map_err(failed)?;
        let request = request.headers(headers).body(self.body.clone()).timeout(ANSWER);
        let late = if self.uri.path().starts_with(WORKERS) { Duration::ZERO } else { LATE_ANSWER };
        let answer = tokio::select! {
            answer = http.send(request) => answer.map_err(failed)?,
            () = replaced(log, status.lease.epoch, late) => {
                return Err(NoLeader::Lost(format!("hear from the leader {}: another node leads by now", holder.node)));
            }
        };
        // It has ceased to lead, and nothing was done.
        if answer.headers.contains_key(STANDBY) { Err(away("reach the leader: it is changing")) } else { Ok(answer) }
    }
}

/// Waits until the time of a leader is over, and then this much longer. One that stands still, or is cut off, holds its connections and
/// never answers.
async fn replaced(log: &LogState, epoch: u64, late: Duration) {
    while log.status().lease.epoch == epoch {
        tokio::time::sleep(LOOK_FOR_NEXT).await;
    }
    tokio::time::sleep(late).await;
}

/// The reason for which the leader did not answer.
enum NoLeader {
    /// It can't have heard the request.
    Away(String),
    /// It may have.
    Lost(String),
}

fn refusal(why: &str, hint: &str) -> Response {
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "no-leader", format!("failed to {why}")).with_hint(hint).into_response()
}

/// The answer of the leader, once this node has what it changed.
async fn answered(answer: Answer, log: &LogState) -> Response {
    let entry = answer.header(ENTRY.as_str()).and_then(|entry| entry.parse().ok());
    if let Some(entry) = entry {
        let log = log.clone();
        let _ = tokio::task::spawn_blocking(move || log.wait_for(entry, CATCH_UP)).await;
    }
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
        response.headers_mut().remove(name);
    }
    response
}
