//! Streams of server-sent events, and the signal that ends them with the server.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::Extension;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt, unfold};
use tokio::sync::watch;

use crate::fault::Fault;

/// How often something is sent, if only a comment, so that those between don't cut the line.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How often a page hears from the server; the script of pages knows it, too.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// The signal that the server shuts down, for streams, which end by nothing else.
#[derive(Clone)]
pub struct Shutdown(watch::Receiver<bool>);

/// The end of [`Shutdown`] that the server keeps.
pub struct ShutdownSender(watch::Sender<bool>);

impl Shutdown {
    /// A signal, and its sender.
    #[must_use]
    pub fn channel() -> (ShutdownSender, Shutdown) {
        let (sender, receiver) = watch::channel(false);
        (ShutdownSender(sender), Shutdown(receiver))
    }

    /// Waits until the server shuts down.
    pub async fn begun(&mut self) {
        // A sender that was dropped without a signal means that the server has ended.
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}

impl ShutdownSender {
    /// Ends all streams.
    pub fn begin(&self) {
        let _ = self.0.send(true);
    }
}

/// The id of the last event that the client of a stream got before it reconnected.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
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

/// The server's shutdown as an extension of a request; none for a router without a server.
pub type ShutdownSignal = Option<Extension<Shutdown>>;

/// Waits until the server is to end.
pub async fn closed(closing: &mut ShutdownSignal) {
    match closing {
        Some(Extension(closing)) => closing.begun().await,
        None => std::future::pending().await,
    }
}

/// A stream from a source of events. A slow client delays only itself:
/// the next event is read once the client has received the one before.
pub fn stream<T, F>(
    source: T,
    next: impl FnMut(T) -> F + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>>
where
    F: Future<Output = Option<(Event, T)>> + Send + 'static,
    T: Send + 'static,
{
    kept_alive(source, next, KeepAlive::new().interval(ALIVE_EVERY))
}

/// The same for pages: while nothing is sent an event `beat` is, because a page does not get comments and has to say that it hears
/// nothing from the server.
pub fn beating<T, F>(
    source: T,
    next: impl FnMut(T) -> F + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>>
where
    F: Future<Output = Option<(Event, T)>> + Send + 'static,
    T: Send + 'static,
{
    let beat = Event::default().event("beat").data("1");
    kept_alive(source, next, KeepAlive::new().interval(BEAT_EVERY).event(beat))
}

fn kept_alive<T, F>(
    source: T,
    next: impl FnMut(T) -> F + Send + 'static,
    by: KeepAlive,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>>
where
    F: Future<Output = Option<(Event, T)>> + Send + 'static,
    T: Send + 'static,
{
    Sse::new(unfold(source, next).map(Ok)).keep_alive(by)
}
