//! Object stores: S3 and compatible ones, Google's, Azure's.
//!
//! They have no folders. A prefix of an object's name counts as one, and so does a marker: an empty object whose
//! name ends with a slash.

mod conditional;
mod fault;
mod open;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use opendal::{EntryMode, Lister, Metadata, Operator};
use tokio::io::AsyncRead;

use crate::file_system::{MOST_ENTRIES, too_many};
use crate::java::Operation;
use crate::local::file_name;
use crate::transfer::{PIECE, Source, collect, in_time, next_piece};
use crate::{Entry, FileSystem, Kind, StorageError};

pub use conditional::{ConditionalObjects, ObjectName, ObjectVersion, WriteAnswer};
use fault::fault;
pub use open::{AzureSettings, GcsSettings, S3Keys, S3Settings};
pub(crate) use open::{azure, gcs, s3};

/// How many bytes a part of a large object has. S3 accepts 10 000 parts: objects of 160 GB.
const PART: usize = 16 << 20;

/// The objects of one bucket.
pub(crate) struct Objects {
    endpoint: String,
    operator: Operator,
}

impl Objects {
    pub(crate) fn new(endpoint: String, operator: Operator) -> Self {
        Self { endpoint, operator }
    }

    fn asked<'a>(&'a self, what: &'static str, path: &'a str) -> Operation<'a> {
        Operation { what, endpoint: &self.endpoint, path }
    }

    /// Lists the objects below a folder, including those in its folders if `recursive`.
    async fn lister(&self, asked: &Operation<'_>, recursive: bool) -> Result<Lister, StorageError> {
        let prefix = prefix(asked.path);
        let listing = self.operator.lister_with(&prefix).recursive(recursive).await;
        listing.map_err(|error| fault(asked, error))
    }

    async fn is_prefix(&self, asked: &Operation<'_>) -> Result<bool, StorageError> {
        let prefix = prefix(asked.path);
        let listing = self.operator.lister_with(&prefix).limit(1).await;
        let first = listing.map_err(|error| fault(asked, error))?.next().await;
        first.map_or(Ok(None), |first| self.listed(asked, first)).map(|first| first.is_some())
    }

    /// The next item of a list. If it is missing, Azure means the folder; the others mean the bucket.
    fn listed<T>(&self, asked: &Operation<'_>, next: opendal::Result<T>) -> Result<Option<T>, StorageError> {
        match absent_is_none(asked, next)? {
            None if !self.endpoint.starts_with("abfs:") => Err(asked.other("there is no such bucket")),
            next => Ok(next),
        }
    }

    async fn object(&self, asked: &Operation<'_>) -> Result<Option<Metadata>, StorageError> {
        absent_is_none(asked, self.operator.stat(key(asked.path)).await)
    }

    /// Moves one object. Most stores can only copy it.
    async fn move_object(&self, asked: &Operation<'_>, from: &str, to: &str) -> Result<(), StorageError> {
        let can_copy = self.operator.info().capability().copy;
        let moved = if can_copy {
            match self.operator.copy(from, to).await {
                Ok(_) => self.operator.delete(from).await,
                Err(error) => Err(error),
            }
        } else {
            self.operator.rename(from, to).await
        };
        moved.map_err(|error| fault(asked, error))
    }

    async fn move_folder(&self, asked: &Operation<'_>, to: &str) -> Result<(), StorageError> {
        let (from_prefix, to_prefix) = (prefix(asked.path), prefix(to));
        let keys = self.keys_below(asked).await?;
        if keys.is_empty() {
            return Err(asked.not_found());
        }
        // Copied first and removed afterwards: an interruption in between loses nothing.
        for key in &keys {
            let rest = key.strip_prefix(&from_prefix).unwrap_or(key);
            let copied = self.operator.copy(key, &format!("{to_prefix}{rest}")).await;
            copied.map_err(|error| fault(asked, error))?;
        }
        let removed = self.operator.delete_iter(keys).await;
        removed.map_err(|error| fault(asked, error))
    }

    async fn keys_below(&self, asked: &Operation<'_>) -> Result<Vec<String>, StorageError> {
        let mut listing = self.lister(asked, true).await?;
        let mut keys = Vec::new();
        while let Some(found) = listing.next().await {
            let found = found.map_err(|error| fault(asked, error))?;
            if keys.len() == MOST_ENTRIES {
                return Err(too_many(&asked.place()));
            }
            keys.push(found.path().to_owned());
        }
        Ok(keys)
    }
}

#[async_trait]
impl FileSystem for Objects {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        let asked = self.asked("look at", path);
        if path != "/"
            && let Some(found) = self.object(&asked).await?
        {
            return Ok(Some(entry(file_name(path), &found)));
        }
        let folder = Entry { name: file_name(path), kind: Kind::Folder, bytes: 0, modified: None };
        let is_there = self.is_prefix(&asked).await? || path == "/";
        Ok(is_there.then_some(folder))
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        let asked = self.asked("list", folder);
        let own = prefix(folder);
        let mut listing = self.lister(&asked, false).await?;
        let (mut entries, mut is_there) = (Vec::new(), folder == "/");
        while let Some(found) = listing.next().await {
            let Some(found) = self.listed(&asked, found)? else { break };
            is_there = true;
            if found.path().trim_start_matches('/') == own {
                continue;
            }
            if entries.len() == MOST_ENTRIES {
                return Err(too_many(&asked.place()));
            }
            entries.push(entry(file_name(found.path()), found.metadata()));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(is_there.then_some(entries))
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        let asked = self.asked("read", path);
        let place = asked.place();
        let size = in_time(&self.endpoint, self.operator.stat(key(path))).await?;
        let size = size.map_err(|error| fault(&asked, error))?.content_length();
        if size > limit {
            return Err(StorageError::too_large(&place, limit));
        }
        let reader = self.operator.reader(key(path)).await.map_err(|error| fault(&asked, error))?;
        let pieces = in_time(&self.endpoint, reader.into_bytes_stream(0..size)).await?;
        let pieces = pieces.map_err(|error| fault(&asked, error))?;
        let source = Source { endpoint: &self.endpoint, place: &place };
        collect(pieces, limit, source, |error| asked.unreachable(error.to_string())).await
    }

    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        let asked = self.asked("write", path);
        let opened = self.operator.writer_with(key(path)).chunk(PART).await;
        let mut writer = opened.map_err(|error| fault(&asked, error))?;
        let written = async {
            loop {
                let piece = next_piece(&asked.place(), content).await?;
                if piece.is_empty() {
                    break;
                }
                writer.write(piece).await.map_err(|error| fault(&asked, error))?;
            }
            writer.close().await.map(drop).map_err(|error| fault(&asked, error))
        };
        let result = written.await;
        if result.is_err() {
            let _ = writer.abort().await;
        }
        result
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        let made = self.operator.create_dir(&prefix(path)).await;
        made.map_err(|error| fault(&self.asked("make the folder", path), error))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let asked = self.asked("rename", from);
        if self.stat(to).await?.is_some() {
            return Err(asked.other(format!("{to} exists already")));
        }
        match self.object(&asked).await? {
            Some(_) => self.move_object(&asked, key(from), key(to)).await,
            None if self.operator.info().capability().copy => self.move_folder(&asked, to).await,
            None => self.move_object(&asked, &prefix(from), &prefix(to)).await,
        }
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        let asked = self.asked("remove", path);
        if path == "/" {
            return Err(asked.unsupported("a whole bucket is not removed"));
        }
        let object = self.operator.delete(key(path)).await;
        absent_is_none(&asked, object)?;
        let below = self.operator.delete_with(&prefix(path)).recursive(true).await;
        absent_is_none(&asked, below).map(drop)
    }
}

/// The name of an object.
fn key(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// The prefix of the names of all objects in a folder.
fn prefix(path: &str) -> String {
    match key(path) {
        "" => "/".to_owned(),
        key => format!("{key}/"),
    }
}

fn absent_is_none<T>(asked: &Operation<'_>, result: opendal::Result<T>) -> Result<Option<T>, StorageError> {
    match result {
        Err(error) if error.kind() == opendal::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(asked, error)),
        Ok(found) => Ok(Some(found)),
    }
}

fn entry(name: String, about: &Metadata) -> Entry {
    let is_folder = about.mode() == EntryMode::DIR;
    let (kind, bytes) = if is_folder { (Kind::Folder, 0) } else { (Kind::File, about.content_length()) };
    let modified = about.last_modified().filter(|_| !is_folder).map(|at| at.into_inner());
    Entry { name, kind, bytes, modified }
}

const _: () = assert!(PIECE < PART, "parts are made of pieces");
