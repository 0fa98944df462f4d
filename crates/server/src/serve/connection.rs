//! One connection: requests, answers, and what ends it.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;
use tower::Service;

use super::connections::{Admission, RequestGuard};
use super::{Limits, Shutdown};

/// Largest head of a request, and most bytes of an answer that wait to be sent.
const BUFFER: usize = 64 << 10;

/// Answers the requests of a connection until the client or a limit ends it, another connection needs its room, or the
/// server is to end.
pub(super) async fn run(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    admission: Admission,
    mut closing: Shutdown,
) {
    let Admission { handle, ended } = admission;
    let peer = stream.peer_addr().ok();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let request_guard = handle.begin();
        peer.map(|peer| request.extensions_mut().insert(ConnectInfo(peer)));
        let answer = router.clone().call(request.map(Body::new));
        async move { Ok::<Response, Infallible>(guarded(answer.await, request_guard)) }
    });
    let mut writer = TimeoutWriter::new(stream);
    writer.set_timeout(Some(limits.stall));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(Box::pin(writer)), service)
    );
    // A client that hangs up, is silent or sends nonsense affects only itself.
    tokio::select! {
        outcome = connection.as_mut() => return log(outcome),
        _ = ended => return tracing::debug!("ended an idle connection in favour of a new one"),
        () = closing.begun() => connection.as_mut().graceful_shutdown(),
    }
    log(connection.await);
}

fn log(outcome: hyper::Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!("a connection ended early: {error}");
    }
}

/// Answers a connection for which there is no room. It never waits: whatever does not fit the socket's buffer is lost.
pub(super) fn turn_away(stream: &TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
        Content-Type: text/plain\r\nContent-Length: 59\r\n\r\n\
        failed to answer: all connections of the server are in use\n";
    let _ = stream.try_write(ANSWER);
}

/// An answer that keeps its connection busy until the last byte has been taken.
fn guarded(answer: Result<Response, Infallible>, request_guard: RequestGuard) -> Response {
    let Ok(answer) = answer;
    answer.map(|body| Body::new(GuardedBody { body, _request: request_guard }))
}

struct GuardedBody {
    body: Body,
    _request: RequestGuard,
}

impl HttpBody for GuardedBody {
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
