//! Headers with which browsers protect what they are given, for every answer of every door.

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use kelos_front::ClientAddress;

/// The policy of answers that are no pages: they load nothing, run nothing, and are shown in no frame.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";
/// How long browsers ask over TLS only, once they have.
const STRICT: &str = "max-age=2592000";

/// Adds the headers that an answer has not set otherwise.
pub(crate) async fn protect(request: Request, next: Next) -> Response {
    // Names of this machine are those of other servers, too, which may have no TLS.
    let client = request.extensions().get::<ClientAddress>();
    let is_strict = client.is_some_and(|client| client.is_secure && !client.is_local);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if is_strict {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT));
    }
    response
}
