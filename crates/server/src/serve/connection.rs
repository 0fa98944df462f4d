//! One connection: requests, answers, and what ends it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kelos_front::fault::Fault;
use kelos_front::limiter::line;
use kelos_front::{ClientAddress, ClientCertificate, TrustedProxies};
use kelos_tls::ServerCertificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;
use tower::Service;

use super::connections::Admission;
use super::{Limits, Shutdown, handshake};
use crate::guarded::guarded;

/// Largest head of a request, and most bytes of an answer that wait to be sent.
const BUFFER: usize = 64 << 10;

/// The settings that all connections of a port share.
pub(super) struct Port {
    pub(super) router: Router,
    pub(super) limits: Limits,
    pub(super) certificate: Option<ServerCertificate>,
    pub(super) proxies: Option<TrustedProxies>,
    pub(super) closing: Shutdown,
}

impl Port {
    /// Answers a connection for which there is no room. It never waits: whatever does not fit the socket's buffer is lost. A client that
    /// expects TLS could not read the answer, and gets none.
    pub(super) fn turn_away(&self, stream: &TcpStream) {
        const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
            Content-Type: text/plain\r\nContent-Length: 59\r\n\r\n\
            failed to answer: all connections of the server are in use\n";
        if self.certificate.is_none() {
            let _ = stream.try_write(ANSWER);
        }
    }

    /// The address that a connection counts for: none for those of this machine and of proxies, which are many clients.
    pub(super) fn counted(&self, stream: &TcpStream) -> Option<IpAddr> {
        let ip = stream.peer_addr().ok()?.ip().to_canonical();
        let is_proxy = self.proxies.as_ref().is_some_and(|proxies| proxies.include(ip));
        (!ip.is_loopback() && !is_proxy).then(|| line(ip))
    }
}

/// The other end of a connection, for each of its requests.
struct Peer {
    address: Option<ClientAddress>,
    certificate: Option<ClientCertificate>,
}

impl Peer {
    /// Tells a request who sent it.
    fn introduce<B>(&self, request: &mut hyper::Request<B>, proxies: Option<&TrustedProxies>) -> Result<(), Fault> {
        if let Some(connection) = self.address {
            let client = proxies.map_or(Ok(connection), |proxies| proxies.client(connection, request.headers()))?;
            request.extensions_mut().insert(client);
        }
        self.certificate.clone().map(|certificate| request.extensions_mut().insert(certificate));
        Ok(())
    }
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
    let proxies = port.proxies.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let request_guard = handle.begin();
        let introduced = peer.introduce(&mut request, proxies.as_ref());
        let answer = introduced.map(|()| router.clone().call(request.map(Body::new)));
        async move {
            let answer = match answer {
                Ok(answer) => answer.await?,
                Err(fault) => fault.text(fault.status, format!("failed to answer: {}\n", fault.what)),
            };
            // The connection is busy until the last byte has been taken.
            Ok::<Response, Infallible>(guarded(answer, request_guard))
        }
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
