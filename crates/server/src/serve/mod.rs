//! A router on a port: accepts connections within limits, and ends them in good order.
//!
//! Connections have limits of their own because the engine lives in the same process: whatever clients do, descriptors and
//! memory are left for it. What is *absent*: routes.

mod connection;
mod connections;
mod handshake;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use kelos_front::stream::Shutdown;
use kelos_front::{LimitSettings, TrustedProxies};
use kelos_tls::{Change, ServerCertificate};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower_http::timeout::RequestBodyTimeoutLayer;

use self::connection::Port;
use self::connections::Connections;

/// The time that requests under way get to finish once the server is to end.
const GRACE: Duration = Duration::from_secs(5);
/// The pause after a failed accept, which mostly means that the process has no descriptor left.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);
/// Between two looks at the files of the certificate.
const RENEWALS: Duration = Duration::from_secs(1);
/// Most connections at a time, however many descriptors there are.
const MOST_CONNECTIONS: usize = 8192;

/// The part of all connections that one address may have.
const SHARE: usize = 4;

/// The limits on connections and requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. One more ends the one that has been idle longest; if none is idle, it is answered 503.
    pub connections: usize,
    /// Connections of one address at a time, but of this machine and of trusted proxies. One more ends the one of that address that has
    /// been idle longest; if none is idle, it is answered 503.
    pub connections_per_address: usize,
    /// The time for the whole head of a request, counted from the moment at which one could begin: also the longest that a
    /// connection stays idle.
    pub head: Duration,
    /// The longest pause between two pieces of a request's body.
    pub body: Duration,
    /// The longest time for which a client may read nothing of an answer.
    pub stall: Duration,
}

impl Limits {
    /// Limits for this process: connections get half of its descriptors, the engine keeps the others.
    #[must_use]
    pub fn of_process() -> Limits {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = descriptors.map_or(MOST_CONNECTIONS, |most| usize::try_from(most / 2).unwrap_or(MOST_CONNECTIONS));
        let patience = Duration::from_secs(30);
        let connections = half.clamp(1, MOST_CONNECTIONS);
        let connections_per_address = connections.div_ceil(SHARE);
        Limits { connections, connections_per_address, head: patience, body: patience, stall: patience }
    }

    /// The same, but for what a file sets. More connections than there is room for are never taken.
    #[must_use]
    pub fn with(self, settings: &LimitSettings) -> Limits {
        let at_most = |set: Option<u32>, most: usize| set.map(|set| usize::try_from(set).unwrap_or(most).min(most));
        let connections = at_most(settings.connections, self.connections).unwrap_or(self.connections);
        let of_address = at_most(settings.connections_per_address, connections);
        Limits { connections, connections_per_address: of_address.unwrap_or(connections.div_ceil(SHARE)), ..self }
    }
}

/// The way in which a server is reached.
#[derive(Clone, Debug)]
pub struct Transport {
    /// The limits on connections and requests.
    pub limits: Limits,
    /// The certificate of a server that speaks TLS, and nothing else.
    pub certificate: Option<ServerCertificate>,
    /// The proxies that speak TLS in place of the server, if it is behind some; then it answers to nobody else but this machine.
    pub proxies: Option<TrustedProxies>,
}

impl From<Limits> for Transport {
    /// Without TLS.
    fn from(limits: Limits) -> Transport {
        Transport { limits, certificate: None, proxies: None }
    }
}

/// Answers requests until `shutdown` is done; then ends streams, and gives other requests a few seconds.
///
/// # Errors
/// When the listener can't be used at all. A failed accept is tried again.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    transport: impl Into<Transport>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    listener.local_addr()?;
    let Transport { limits, certificate, proxies } = transport.into();
    let (close, closing) = Shutdown::channel();
    let router = router
        .layer(RequestBodyTimeoutLayer::new(limits.body))
        .layer(Extension(closing.clone()))
        // Once for all connections: otherwise each connection would build all routes again.
        .with_state(());
    let connections = Arc::new(Connections::new(limits.connections, limits.connections_per_address));
    let mut tasks = JoinSet::new();
    let renewals = certificate.clone().map(|certificate| tokio::spawn(keep_current(certificate)));
    let port = Arc::new(Port { router, limits, certificate, proxies, closing });
    tokio::pin!(shutdown);
    loop {
        let stream = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = tasks.join_next() => continue,
            stream = accept(&listener, &connections) => stream,
        };
        match connections.admit(port.counted(&stream)) {
            Some(admission) => {
                tasks.spawn(connection::run(stream, port.clone(), admission));
            }
            None => port.turn_away(&stream),
        }
    }
    if let Some(renewals) = renewals {
        renewals.abort();
    }
    drop(listener);
    close.begin();
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all_ended).await.is_err() {
        tracing::warn!("requests were still under way {} s after the end was asked for", GRACE.as_secs());
    }
    Ok(())
}

/// Takes over new files of the certificate while the server runs.
async fn keep_current(certificate: ServerCertificate) {
    loop {
        tokio::time::sleep(RENEWALS).await;
        let looked = certificate.clone();
        match tokio::task::spawn_blocking(move || looked.look()).await.unwrap_or(Change::None) {
            Change::None => {}
            Change::Renewed => {
                let now = certificate.certificate();
                tracing::info!("new connections are shown the new certificate, valid until {}", now.not_after);
            }
            Change::Broken(why) => {
                tracing::error!("failed to {why}; the certificate that was read before is still shown")
            }
        }
    }
}

/// The next connection. If accepting fails an idle connection is closed, since the usual cause is a lack of descriptors.
async fn accept(listener: &TcpListener, connections: &Connections) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small answers and single events are not to wait for more bytes.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => {
                tracing::warn!("failed to accept a connection: {error}");
                connections.evict();
                tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
            }
        }
    }
}
