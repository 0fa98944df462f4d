//! Transfers: a time limit for each piece instead of the whole.

use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::StorageError;

/// How long a transfer may stall before it is given up.
pub(crate) const STALLED: Duration = Duration::from_secs(30);
/// How many bytes are read from content at a time.
pub(crate) const PIECE: usize = 256 << 10;
/// How many pieces may wait to be sent.
const WAITING: usize = 4;

/// Content that records when it was last asked for more, which proves that the server accepted the bytes before.
pub(crate) struct WatchedContent<'a> {
    content: &'a mut (dyn AsyncRead + Send + Unpin),
    progress: Arc<Progress>,
}

/// The moment at which a transfer last progressed.
pub(crate) struct Progress {
    moved: Mutex<Instant>,
    is_content_late: AtomicBool,
}

impl<'a> WatchedContent<'a> {
    pub(crate) fn new(content: &'a mut (dyn AsyncRead + Send + Unpin)) -> Self {
        let progress = Progress { moved: Mutex::new(Instant::now()), is_content_late: AtomicBool::new(false) };
        Self { content, progress: Arc::new(progress) }
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}

impl AsyncRead for WatchedContent<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut *self.content).poll_read(context, buffer);
        self.progress.is_content_late.store(polled.is_pending(), Ordering::Relaxed);
        if polled.is_ready() {
            *self.progress.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        polled
    }
}

impl Progress {
    /// Returns once the transfer has stalled for too long.
    pub(crate) async fn stalled(&self) {
        loop {
            let last = *self.moved.lock().unwrap_or_else(PoisonError::into_inner);
            sleep_until(last + STALLED).await;
            let is_same = last == *self.moved.lock().unwrap_or_else(PoisonError::into_inner);
            if is_same {
                return;
            }
        }
    }

    /// Whether the transfer waits for the content, and not for the server.
    pub(crate) fn is_content_late(&self) -> bool {
        self.is_content_late.load(Ordering::Relaxed)
    }
}

/// The source of a read, for messages.
pub(crate) struct Source<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) place: &'a str,
}

/// All pieces together, at most `limit` bytes, each with its time limit.
pub(crate) async fn collect<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    limit: u64,
    source: Source<'_>,
    fault: impl Fn(E) -> StorageError,
) -> Result<Bytes, StorageError> {
    let mut pieces = std::pin::pin!(pieces);
    let mut all = BytesMut::new();
    while let Some(piece) = in_time(source.endpoint, pieces.next()).await? {
        let piece = piece.map_err(&fault)?;
        if (all.len() + piece.len()) as u64 > limit {
            return Err(StorageError::too_large(source.place, limit));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// Runs one step of a transfer, with its time limit.
pub(crate) async fn in_time<T>(endpoint: &str, step: impl Future<Output = T>) -> Result<T, StorageError> {
    timeout(STALLED, step).await.map_err(|_| StorageError::TimedOut { endpoint: endpoint.to_owned(), after: STALLED })
}

/// The next piece of content; empty at its end.
pub(crate) async fn next_piece(
    place: &str,
    content: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<Bytes, StorageError> {
    let mut piece = BytesMut::with_capacity(PIECE);
    while piece.len() < PIECE {
        let read = content.read_buf(&mut piece).await.map_err(|error| unreadable(place, &error))?;
        if read == 0 || piece.len() == piece.capacity() {
            break;
        }
    }
    Ok(piece.freeze())
}

fn unreadable(place: &str, error: &dyn Display) -> StorageError {
    let detail = format!("what was to be written could not be read: {error}");
    StorageError::Other { what: "write", place: place.to_owned(), detail }
}

/// A body for an HTTP client, and the sender that fills it.
#[cfg(feature = "web")]
pub(crate) fn body() -> (mpsc::Sender<io::Result<Bytes>>, reqwest::Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let pieces = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<_>| {
        let piece: io::Result<Bytes> = receiver.recv().await?;
        Some((piece, receiver))
    });
    (sender, reqwest::Body::wrap_stream(pieces))
}

/// Fills a body. If the content fails, so does the request, and nothing is written; if the request ends early, so does this task.
pub(crate) async fn fill(
    place: &str,
    content: &mut (dyn AsyncRead + Send + Unpin),
    body: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), StorageError> {
    loop {
        let piece = match next_piece(place, content).await {
            Ok(piece) if piece.is_empty() => return Ok(()),
            Ok(piece) => piece,
            Err(error) => {
                let _ = body.send(Err(io::Error::other("the content broke off"))).await;
                return Err(error);
            }
        };
        if body.send(Ok(piece)).await.is_err() {
            return Ok(());
        }
    }
}
