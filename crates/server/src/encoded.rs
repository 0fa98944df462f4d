//! Compressed bodies of requests are refused: nothing here unpacks them, and without a word they would be unreadable JSON.

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kelos_front::fault::Fault;

/// Lets a request through unless its body has an encoding.
pub(crate) async fn refuse(request: Request, next: Next) -> Response {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING);
    let encoded = encodings.iter().find(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let Some(encoding) = encoded else { return next.run(request).await };
    let what = format!("the body is encoded as {encoding:?}, expected one that is not compressed");
    let fault = Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded-body", what);
    fault.with_hint("send it without the header Content-Encoding").into_response()
}
