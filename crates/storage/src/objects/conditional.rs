//! Objects that are written under conditions, so that several writers can share them without a server of their own.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kelos_tls::Trust;
use opendal::{Error, ErrorKind};
use tokio::time::timeout;

use super::{Objects, S3Settings, absent_is_none, fault, key, s3};
use crate::StorageError;
use crate::java::Operation;
use crate::uri::{Scheme, parse, shown};
use crate::web::Web;

/// Patience with one request.
const PATIENCE: Duration = Duration::from_secs(15);
/// Deletions that are asked for at a time.
const DELETED: usize = 1000;

/// A folder of objects that are written under conditions: not at all if one exists, or only in place of the one that was read. Paths are
/// below the folder. Nothing is tried twice.
pub struct ConditionalObjects {
    objects: Objects,
    folder: String,
}

/// An object, and the tag that says which of its versions it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    /// Its content.
    pub content: Bytes,
    /// The tag of this version.
    pub tag: String,
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Its path below the folder.
    pub path: String,
    /// When it was written, if that is told.
    pub modified: Option<Timestamp>,
}

/// The answer to a write under a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAnswer {
    /// It was written.
    Done,
    /// The condition does not hold, and nothing was written.
    Refused,
}

impl ConditionalObjects {
    /// Opens a folder of a bucket: `s3://bucket/folder`. Contacts no server.
    ///
    /// # Errors
    /// If the URI is invalid, or names a store that is not known to keep conditions.
    pub fn open(uri: &str, settings: &S3Settings, trust: &Trust) -> Result<ConditionalObjects, StorageError> {
        let parsed = parse(uri)?;
        let bad = |reason: String| StorageError::BadUri { uri: shown(uri), reason };
        if parsed.scheme != Scheme::S3 {
            return Err(bad("its scheme is not s3".to_owned()));
        }
        let client = Web::new(trust).map_err(bad)?.following;
        let objects = s3(&parsed.authority, settings, client).map_err(bad)?;
        let folder = key(&parsed.path).to_owned();
        Ok(ConditionalObjects { objects, folder })
    }

    fn path(&self, path: &str) -> String {
        if self.folder.is_empty() { path.to_owned() } else { format!("{}/{path}", self.folder) }
    }

    fn asked<'a>(&'a self, what: &'static str, path: &'a str) -> Operation<'a> {
        self.objects.asked(what, path)
    }

    /// Waits for an answer, at most for a time.
    async fn in_time<T>(&self, asking: impl Future<Output = T>) -> Result<T, StorageError> {
        let endpoint = self.objects.endpoint.clone();
        timeout(PATIENCE, asking).await.map_err(|_| StorageError::TimedOut { endpoint, after: PATIENCE })
    }

    /// Reads an object; none if there is none.
    ///
    /// # Errors
    /// If the store fails, or does not tell the version.
    pub async fn read(&self, path: &str) -> Result<Option<ObjectVersion>, StorageError> {
        let path = format!("/{}", self.path(path));
        let asked = self.asked("read", &path);
        let reading = async {
            let mut stream = self.objects.operator.reader(key(&path)).await?.into_stream(..).await?;
            let tag = stream.metadata().await?.etag().map(str::to_owned);
            let pieces: Vec<_> = stream.try_collect().await?;
            Ok::<_, Error>((pieces.into_iter().flatten().collect::<opendal::Buffer>().to_bytes(), tag))
        };
        match absent_is_none(&asked, self.in_time(reading).await?)? {
            None => Ok(None),
            Some((content, Some(tag))) => Ok(Some(ObjectVersion { content, tag })),
            Some((_, None)) => Err(asked.unsupported("the store does not tell the versions of objects")),
        }
    }

    /// Whether there is an object.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn exists(&self, path: &str) -> Result<bool, StorageError> {
        let path = format!("/{}", self.path(path));
        let asked = self.asked("look at", &path);
        Ok(self.in_time(self.objects.object(&asked)).await??.is_some())
    }

    /// Writes an object unless there is one.
    ///
    /// # Errors
    /// If the store fails: see [`ConditionalObjects::is_refusal`].
    pub async fn create(&self, path: &str, content: Bytes) -> Result<WriteAnswer, StorageError> {
        let path = format!("/{}", self.path(path));
        let writing = self.objects.operator.write_with(key(&path), content).if_not_exists(true);
        written(&self.asked("write", &path), self.in_time(writing.into_future()).await?.map(drop))
    }

    /// Replaces an object if it still has the version of a tag.
    ///
    /// # Errors
    /// If the store fails: see [`ConditionalObjects::is_refusal`].
    pub async fn replace(&self, path: &str, content: Bytes, tag: &str) -> Result<WriteAnswer, StorageError> {
        let path = format!("/{}", self.path(path));
        let writing = self.objects.operator.write_with(key(&path), content).if_match(tag);
        written(&self.asked("write", &path), self.in_time(writing.into_future()).await?.map(drop))
    }

    /// The objects of a folder in the order of their names, from the one after a name, at most `limit`.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self, folder: &str, after: &str, limit: usize) -> Result<Vec<ObjectName>, StorageError> {
        let path = format!("/{}/", self.path(folder));
        let asked = self.asked("list", &path);
        let start = format!("{}{after}", key(&path));
        let listing = async {
            let lister =
                self.objects.operator.lister_with(key(&path)).start_after(&start).limit(limit).recursive(true).await?;
            lister.take(limit).try_collect::<Vec<_>>().await
        };
        let found = absent_is_none(&asked, self.in_time(listing).await?)?.unwrap_or_default();
        let own = self.path("");
        let listed = found.into_iter().filter_map(|entry| {
            let path = entry.path().strip_prefix(own.as_str())?.to_owned();
            let modified = entry.metadata().last_modified().map(|at| at.into_inner());
            Some(ObjectName { path, modified })
        });
        Ok(listed.collect())
    }

    /// Deletes objects; those that are absent already are none of its errors.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn remove(&self, paths: &[String]) -> Result<(), StorageError> {
        for paths in paths.chunks(DELETED) {
            let all: Vec<String> = paths.iter().map(|path| self.path(path)).collect();
            let asked = self.asked("delete", paths.first().map_or("", String::as_str));
            let deleted = self.in_time(self.objects.operator.delete_iter(all)).await?;
            deleted.map_err(|error| fault(&asked, error))?;
        }
        Ok(())
    }

    /// Whether an error of a write says for certain that nothing was written, and nothing will be.
    #[must_use]
    pub fn is_refusal(error: &StorageError) -> bool {
        match error {
            StorageError::BadUri { .. }
            | StorageError::NotFound { .. }
            | StorageError::Denied { .. }
            | StorageError::Login { .. }
            | StorageError::Broken { .. }
            | StorageError::Unsupported { .. } => true,
            StorageError::Unreachable { .. } | StorageError::TimedOut { .. } => false,
            StorageError::Other { detail, .. } => detail == "there is no such bucket",
        }
    }
}

fn written(asked: &Operation<'_>, answer: Result<(), Error>) -> Result<WriteAnswer, StorageError> {
    match answer {
        Ok(()) => Ok(WriteAnswer::Done),
        // Another write of the same object is in progress: the store has refused this one.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists | ErrorKind::Conflict
            ) =>
        {
            Ok(WriteAnswer::Refused)
        }
        Err(error) => Err(fault(asked, error)),
    }
}
