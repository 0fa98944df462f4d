//! The contract of a file system.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::AsyncRead;

use crate::{Entry, StorageError};

/// How many entries a folder may have to be listed.
pub const MOST_ENTRIES: usize = 100_000;

/// The error of a folder with more entries than are listed.
pub(crate) fn too_many(folder: &str) -> StorageError {
    let detail = format!("it has more than the {MOST_ENTRIES} entries that are listed at most");
    StorageError::Other { what: "list", place: folder.to_owned(), detail }
}

/// One file system. Paths are absolute, decoded, with `/` between their parts and none at the end.
///
/// Implementations don't retry and have no limits; [`crate::Storage`] adds both.
#[async_trait]
pub trait FileSystem: Send + Sync {
    /// The entry at a path, if any. On object stores a prefix with objects below it is a folder.
    ///
    /// # Errors
    /// If the system can't be asked.
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError>;

    /// The entries directly in a folder, in order of names; none if there is no such folder.
    ///
    /// # Errors
    /// If the system can't be asked, or can't list (`http:`).
    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError>;

    /// The bytes of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// If it does not exist, is larger, or can't be read.
    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError>;

    /// Writes a whole file to a path, replacing an existing one: no reader ever sees half of it. Creates missing folders.
    ///
    /// # Errors
    /// If it can't be written; then the old file is unchanged.
    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError>;

    /// Creates a folder and its missing parents; an existing one is no error.
    ///
    /// # Errors
    /// If it can't be created.
    async fn make_folder(&self, path: &str) -> Result<(), StorageError>;

    /// Moves a file or folder to another path in the same file system, at which nothing may exist yet.
    ///
    /// # Errors
    /// If it can't be moved; then nothing has changed.
    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError>;

    /// Removes a file, or a folder with its content; a path at which nothing exists is no error.
    ///
    /// # Errors
    /// If it can't be removed as a whole.
    async fn remove(&self, path: &str) -> Result<(), StorageError>;
}
