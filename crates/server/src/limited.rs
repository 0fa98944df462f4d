//! Limits on what one client asks, once it is known who that is.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kelos_front::fault::Fault;
use kelos_front::limiter::{ClientKey, Limiter, TooManyStreams};

use crate::guarded::guarded;

/// The route of the messages of workers.
const OFFER: &str = "/api/v1/workers/{name}/offer";

/// When a client that has too many streams is asked to come again.
const LATER: Duration = Duration::from_secs(5);

/// Lets a request through, or refuses it because its client has asked too much.
pub(crate) async fn limit(State(limiter): State<Limiter>, request: Request, next: Next) -> Response {
    // Workers send as many messages as they run jobs, and one token may be that of many workers.
    let is_of_worker = request.extensions().get::<MatchedPath>().is_some_and(|path| path.as_str() == OFFER);
    let key = ClientKey::by_identity(request.extensions()).filter(|_| !is_of_worker);
    if let Some(refusal) = key.as_ref().and_then(|key| too_many(&limiter, key)) {
        return refusal;
    }
    let answer = next.run(request).await;
    if !is_stream(&answer) {
        return answer;
    }
    match limiter.open_stream(key.as_ref()) {
        Ok(guard) => guarded(answer, guard),
        Err(TooManyStreams::OfClient(most)) => {
            let who = key.as_ref().map_or_else(|| "this machine".to_owned(), shown);
            let why = format!("{who} has {most} open streams, and may have no more");
            refusal(StatusCode::TOO_MANY_REQUESTS, "too-many-streams", &why, LATER)
        }
        Err(TooManyStreams::OfAll(most)) => {
            let why = format!("all clients together have {most} open streams, and the server takes no more");
            refusal(StatusCode::SERVICE_UNAVAILABLE, "all-streams-open", &why, LATER)
        }
    }
}

/// The refusal of a request that came by an unknown or missing credential, if its address has sent too many of those.
pub(crate) fn unknown(limiter: &Limiter, extensions: &Extensions) -> Option<Response> {
    too_many(limiter, &ClientKey::by_address(extensions)?)
}

fn too_many(limiter: &Limiter, key: &ClientKey) -> Option<Response> {
    let wait = limiter.take(key, Instant::now()).err()?;
    let most = limiter.quota().requests_per_second;
    let why = format!("{} asks more than {most} times a second", shown(key));
    Some(refusal(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", &why, wait))
}

fn shown(key: &ClientKey) -> String {
    let address = key.address.map(|address| address.to_string());
    key.actor.as_deref().map(str::to_owned).or(address).unwrap_or_else(|| "the client".to_owned())
}

fn is_stream(answer: &Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn refusal(status: StatusCode, code: &'static str, why: &str, wait: Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let fault = Fault::new(status, code, why);
    let hint = format!("try again in {seconds} s; \"limits\" in the file of --config says how much is too much");
    let mut response = fault.with_hint(hint).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}
