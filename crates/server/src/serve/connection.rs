//! One connection: requests, answers, and what ends it.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kelos_front::{ClientAddress, ClientCertificate};
use kelos_tls::ServerCertificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;
use tower::Service;

use super::connections::{Admission, RequestGuard};
use super::{Limits, Shutdown, handshake};

/// Largest head of a request, and most bytes of an answer that wait to be sent.
const BUFFER: usize = 64 << 10;

/// What all connections of a port share.
pub(super) struct Port {
    pub(super) router: Router,
    pub(super) limits: Limits,
    pub(super) certificate: Option<ServerCertificate>,
    pub(super) closing: Shutdown,
}

/// What is known of the other end of a connection, for each of its requests.
struct Peer {
    address: Option<ClientAddress>,
    certificate: Option<ClientCertificate>,
}

/// Answers the requests of a connection until the client or a limit ends it, another connection needs its room, or the
/// server is to end.
pub(super) async fn run(stream: TcpStream, port: Arc<Port>, admission: Admission) {
    let address = stream.peer_addr().ok().map(|peer| ClientAddress::direct(peer.ip(), port.certificate.is_some()));
    let Some(certificate) = &port.certificate else {
        return answer(stream, Peer { address, certificate: None }, &port, admission).await;
    };
    let mut closing = port.closing.clone();
    let (config, limit, Admission { handle, mut ended }) = (certificate.config(), port.limits.head, admission);
    let shaken = tokio::select! {
        shaken = handshake::shake_hands(stream, config, limit) => shaken,
        _ = &mut ended => return tracing::debug!("ended a handshake in favour of a new connection"),
        () = closing.begun() => return,
    };
    let Some((stream, certificate)) = shaken else { return };
    answer(stream, Peer { address, certificate }, &port, Admission { handle, ended }).await;
}

async fn answer<S>(stream: S, peer: Peer, port: &Port, admission: Admission)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Admission { handle, ended } = admission;
    let (router, limits, mut closing) = (port.router.clone(), port.limits, port.closing.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let request_guard = handle.begin();
        peer.address.map(|address| request.extensions_mut().insert(address));
        peer.certificate.clone().map(|certificate| request.extensions_mut().insert(certificate));
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
