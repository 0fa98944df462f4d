//! This machine's own files.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use tokio::fs;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::file_system::{MOST_ENTRIES, too_many};
use crate::guard::LOOK;
use crate::{Entry, FileSystem, Kind, StorageError};

/// The endpoint of this machine's files.
pub(crate) const FILE: &str = "file:";
/// The permits for calls under way, including those that hang.
static PLACES: Semaphore = Semaphore::const_new(64);

/// A counter that tells apart the unfinished files of one process.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// The files of this machine.
pub struct LocalFiles;

#[async_trait]
impl FileSystem for LocalFiles {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        let path = path.to_owned();
        look(move || match std::fs::metadata(&path) {
            Ok(found) => Ok(Some(entry(file_name(&path), &found))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(failure("look at", &path, &error)),
        })
        .await
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        let folder = folder.to_owned();
        look(move || match listed(&folder) {
            Ok(entries) => entries.map(Some).ok_or_else(|| too_many(&folder)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(failure("list", &folder, &error)),
        })
        .await
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        let file = fs::File::open(path).await.map_err(|error| failure("read", path, &error))?;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).await.map_err(|error| failure("read", path, &error))?;
        if bytes.len() as u64 > limit {
            return Err(StorageError::too_large(path, limit));
        }
        Ok(bytes.into())
    }

    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        let target = Path::new(path);
        let folder = target.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).await.map_err(|error| failure("make the folder of", path, &error))?;
        let unfinished = folder.join(unfinished_name(path));
        let written = write_whole(&unfinished, target, content).await;
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished).await;
            return Err(failure("write", path, &error));
        }
        Ok(())
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        fs::create_dir_all(path).await.map_err(|error| failure("make the folder", path, &error))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        if fs::symlink_metadata(to).await.is_ok() {
            let detail = format!("{to} exists already");
            return Err(StorageError::Other { what: "rename", place: from.to_owned(), detail });
        }
        fs::rename(from, to).await.map_err(|error| failure("rename", from, &error))
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        let removed = match fs::symlink_metadata(path).await {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path).await,
            Ok(_) => fs::remove_file(path).await,
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if !is_absent(&error) => Err(failure("remove", path, &error)),
            _ => Ok(()),
        }
    }
}

/// Makes a call that may hang, as on a network mount, with a time limit. One that hangs keeps its permit until it returns,
/// so that a dead mount holds no more threads than there are permits.
async fn look<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    let in_place = async {
        let place = PLACES.acquire().await;
        spawn_blocking(move || {
            let _place = place;
            call()
        })
        .await
    };
    match timeout(LOOK, in_place).await {
        Ok(Ok(result)) => result,
        Ok(Err(panicked)) => Err(StorageError::Unreachable { endpoint: FILE.to_owned(), detail: panicked.to_string() }),
        Err(_) => Err(StorageError::TimedOut { endpoint: FILE.to_owned(), after: LOOK }),
    }
}

/// The entries of a folder, in order of names; none if there are too many.
fn listed(folder: &str) -> io::Result<Option<Vec<Entry>>> {
    let mut entries = Vec::new();
    for found in std::fs::read_dir(folder)? {
        let found = found?;
        // A link may be broken, and a file may be removed while the folder is read.
        let Ok(about) = std::fs::metadata(found.path()) else { continue };
        // A FIFO, a socket or a device holds no data that was written there.
        if !about.is_file() && !about.is_dir() || leads_back(&found, folder) {
            continue;
        }
        if entries.len() == MOST_ENTRIES {
            return Ok(None);
        }
        entries.push(entry(found.file_name().to_string_lossy().into_owned(), &about));
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(entries))
}

/// Whether an entry is a link to its own folder, or to one above, whose content is listed already.
fn leads_back(found: &std::fs::DirEntry, folder: &str) -> bool {
    let is_link = found.file_type().is_ok_and(|kind| kind.is_symlink());
    let leads = || Some(std::fs::canonicalize(folder).ok()?.starts_with(std::fs::canonicalize(found.path()).ok()?));
    is_link && leads().unwrap_or(false)
}

async fn write_whole(unfinished: &Path, target: &Path, content: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<()> {
    let mut file = fs::File::create(unfinished).await?;
    tokio::io::copy(content, &mut file).await?;
    file.flush().await?;
    file.sync_all().await?;
    fs::rename(unfinished, target).await
}

/// A name beside the file that script folders and lists don't take for a finished one.
pub(crate) fn unfinished_name(path: &str) -> String {
    let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
    format!(".{}.{}-{number}.unfinished", file_name(path), std::process::id())
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> String {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}

fn entry(name: String, about: &std::fs::Metadata) -> Entry {
    let modified = about.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
    let (kind, bytes) = if about.is_dir() { (Kind::Folder, 0) } else { (Kind::File, about.len()) };
    Entry { name, kind, bytes, modified }
}

/// Whether an error means that there is no such file. A name that is too long can't exist either.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

fn failure(what: &'static str, path: &str, error: &io::Error) -> StorageError {
    let (place, detail) = (path.to_owned(), error.to_string());
    match error.kind() {
        io::ErrorKind::NotFound => StorageError::NotFound { place },
        io::ErrorKind::PermissionDenied => StorageError::Denied { place, detail },
        _ => StorageError::Other { what, place, detail },
    }
}
