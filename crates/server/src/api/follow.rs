//! Streams of server-sent events: what all of them need.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::Extension;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt, unfold};

use crate::fault::Fault;
use crate::serve::Shutdown;

/// How often something is sent, if only a comment, so that those between don't cut the line.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Where the client of a stream left off: the id of the last event that it got.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    match value.to_str().ok().and_then(|text| text.trim().parse().ok()) {
        Some(id) => Ok(Some(id)),
        None => {
            let detail = "the header `Last-Event-ID` must be the id of an event of this stream, a number";
            Err(Fault::bad_request("bad-header", detail))
        }
    }
}

/// What a request tells about the end of the server; nothing in tests.
pub(crate) type ShutdownSignal = Option<Extension<Shutdown>>;

/// Waits until the server is to end.
pub(crate) async fn closed(closing: &mut ShutdownSignal) {
    match closing {
        Some(Extension(closing)) => closing.closed().await,
        None => std::future::pending().await,
    }
}

/// A stream out of something that gives one event after the other. A slow client only holds up itself:
/// the next event is looked for when the one before has been taken.
pub(crate) fn stream<T, F>(
    source: T,
    next: impl FnMut(T) -> F + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>>
where
    F: Future<Output = Option<(Event, T)>> + Send + 'static,
    T: Send + 'static,
{
    Sse::new(unfold(source, next).map(Ok)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY))
}
