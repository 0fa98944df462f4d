//! Work that may block, away from the threads that answer requests.

use kelos_store::StoreError;

/// Does something on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(StoreError::Medium { doing: "read from the store".to_owned(), cause: error.to_string() }),
        },
    }
}
