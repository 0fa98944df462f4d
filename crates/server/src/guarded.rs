//! Answers that keep something until their last byte has been taken.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};

/// An answer that drops a guard once its last byte has been taken, or nobody wants it any more.
pub(crate) fn guarded<G: Send + Unpin + 'static>(answer: Response, guard: G) -> Response {
    answer.map(|body| Body::new(GuardedBody { body, _guard: guard }))
}

struct GuardedBody<G> {
    body: Body,
    _guard: G,
}

impl<G: Unpin> HttpBody for GuardedBody<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
