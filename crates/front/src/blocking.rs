//! Work that may block, away from the threads that answer requests.

use kelos_engine::reads::Lane;
use kelos_store::StoreError;

/// Does something on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    Lane::Requests.read("read from the store", work).await
}
