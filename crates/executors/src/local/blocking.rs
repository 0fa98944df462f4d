//! Work with files and processes, which blocks, off the threads of the runtime.

use tokio::task::spawn_blocking;

/// Runs blocking work on a thread of its own, and waits for its result. A panic of the work is passed on.
pub(crate) async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}
