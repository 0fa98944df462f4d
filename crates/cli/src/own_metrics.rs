//! The address at which a worker shows its metrics, and whether it is live and ready.

use std::net::{SocketAddr, TcpListener};

use kelos_metrics::WorkerMetrics;
use kelos_server::{Limits, serve, worker_router};

use crate::failure::Failure;
use crate::text;

/// The metrics of this worker, and the socket at which they are read.
pub(crate) struct OwnMetrics {
    counts: WorkerMetrics,
    listener: Option<TcpListener>,
}

impl OwnMetrics {
    /// Opens the address of `--metrics`, if there is one.
    pub(crate) fn open(address: Option<SocketAddr>, places: u32) -> Result<OwnMetrics, Failure> {
        let open = |address: SocketAddr| {
            TcpListener::bind(address).map_err(|error| {
                let failure = Failure::bad(format!("listen on {address} for --metrics: {error}"));
                failure.hint("--metrics names an address of this machine and a free port, such as 127.0.0.1:9475")
            })
        };
        let listener = address.map(open).transpose()?;
        Ok(OwnMetrics { counts: WorkerMetrics::new(env!("CARGO_PKG_VERSION"), places), listener })
    }

    /// The metrics, for whoever hears of what the worker does.
    pub(crate) fn counts(&self) -> &WorkerMetrics {
        &self.counts
    }

    /// Answers on the current runtime, until that ends.
    pub(crate) fn serve(&self) -> Result<(), Failure> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let listener = listener
            .try_clone()
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .and_then(tokio::net::TcpListener::from_std)
            .map_err(|error| Failure::bad(format!("answer requests for --metrics: {error}")))?;
        if let Ok(address) = listener.local_addr() {
            text::line(format!("its metrics are at http://{address}/metrics"));
        }
        let router = worker_router(self.counts.clone());
        tokio::spawn(serve(listener, router, Limits::of_process(), std::future::pending()));
        Ok(())
    }
}
