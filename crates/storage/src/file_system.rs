//! The contract of a file system.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::AsyncRead;

use crate::{Entry, StorageError};

/// Entries that a folder may have to be listed.
pub const MOST_ENTRIES: usize = 100_000;

/// The error of a folder with more entries than are listed.
pub(crate) fn too_many(folder: &str) -> StorageError {
    let detail = format!("it has more than the {MOST_ENTRIES} entries that are listed at most");
    StorageError::Other { what: "list", place: folder.to_owned(), detail }
}

/// One file system. Paths are absolute, decoded, with `/` between their parts and none at the end.
///
/// Nothing here retries or limits itself; [`crate::Storage`] does that around it.
#[async_trait]
pub trait FileSystem: Send + Sync {
    /// What is at a path; none where nothing is. On object stores a prefix with objects below it is a folder.
    ///
    /// # Errors
    /// When it can't be told.
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError>;

    /// What lies directly in a folder, in order of names; none where the folder is not there.
    ///
    /// # Errors
    /// When it can't be told, or where it has no way of listing (`http:`).
    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError>;

    /// The bytes of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// When it is not there, is larger, or can't be read.
    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError>;

    /// Puts a whole file at a path, replacing what is there: nobody ever sees half of it. Makes missing folders.
    ///
    /// # Errors
    /// When it can't be written; then what was there before is still there.
    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError>;

    /// Makes a folder, and those that it lies in; one that exists is fine.
    ///
    /// # Errors
    /// When it can't be made.
    async fn make_folder(&self, path: &str) -> Result<(), StorageError>;

    /// Gives a file or folder another path in the same file system, where nothing may be yet.
    ///
    /// # Errors
    /// When it can't be moved; then all is as before.
    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError>;

    /// Removes a file, or a folder with all that is in it; where nothing is, that is fine.
    ///
    /// # Errors
    /// When it can't be removed whole.
    async fn remove(&self, path: &str) -> Result<(), StorageError>;
}
