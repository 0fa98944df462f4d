//! Putting a router on a port, and taking it off again in good order.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::serve::ListenerExt;
use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long requests that are under way may take once the server is to end.
const GRACE: Duration = Duration::from_secs(5);

/// Tells streams, which end by nothing else, that the server is to end.
#[derive(Clone)]
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits until the server is to end.
    pub(crate) async fn closed(&mut self) {
        // A sender that is gone without a word means that nobody serves any more.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}

/// Answers requests until `shutdown` is done; then ends streams, and gives other requests a few seconds.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (close, closing) = watch::channel(false);
    let router = router.layer(Extension(Closing(closing.clone())));
    // Small answers and single events are not to wait for more bytes.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let ended = async move {
        shutdown.await;
        let _ = close.send(true);
    };
    let patience = async move {
        Closing(closing).closed().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(ended) => served,
        () = patience => {
            tracing::warn!("requests were still under way {} s after the end was asked for", GRACE.as_secs());
            Ok(())
        }
    }
}
