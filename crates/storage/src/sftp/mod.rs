//! Files behind SSH. One connection for each server is shared, and replaced if it breaks.
//!
//! Absent: passwords, jump hosts, and trust on first use: a server with an unknown key is refused.

mod known_hosts;
mod login;
mod pattern;
mod session;
mod settings;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, StatusCode};
use tokio::io::AsyncRead;

use crate::local::{file_name, unfinished_name};
use crate::{Entry, FileSystem, Kind, StorageError};

use session::{Session, SharedSession};
pub use settings::SshSettings;
use settings::Target;

/// How many entries a folder may have to be listed.
const MOST_ENTRIES: usize = 100_000;

/// The files of a server.
pub(crate) struct SftpFiles {
    shared: SharedSession,
}

/// The files of the server `user@host:port`. Contacts no server.
pub(crate) fn open(authority: &str, settings: &SshSettings) -> Result<SftpFiles, StorageError> {
    Ok(SftpFiles { shared: SharedSession::new(Target::of(authority, settings)?) })
}

impl SftpFiles {
    /// Turns the outcome of a call into a result, and drops the connection if it is broken.
    fn judge<T>(&self, called: Result<T, SftpError>, what: &'static str, path: &str) -> Result<T, StorageError> {
        called.map_err(|error| {
            let endpoint = self.shared.endpoint().to_owned();
            let place = format!("{endpoint}{path}");
            match error {
                SftpError::Status(status) => match status.status_code {
                    StatusCode::NoSuchFile => StorageError::NotFound { place },
                    StatusCode::PermissionDenied => StorageError::Denied { place, detail: status.error_message },
                    _ => StorageError::Other { what, place, detail: status.error_message },
                },
                SftpError::Timeout => {
                    self.shared.forget();
                    StorageError::TimedOut { endpoint, after: session::PATIENCE }
                }
                SftpError::Limited(detail) => StorageError::Other { what, place, detail },
                broken => {
                    self.shared.forget();
                    StorageError::Unreachable { endpoint, detail: format!("the connection broke: {broken}") }
                }
            }
        })
    }

    /// The attributes at a path itself; a link is not followed.
    async fn itself(&self, session: &Session, path: &str) -> Result<Option<FileAttributes>, StorageError> {
        self.judge(present(session.raw.lstat(path).await.map(|found| found.attrs)), "look at", path)
    }

    async fn entries(&self, session: &Session, folder: &str) -> Result<Option<Vec<Raw>>, StorageError> {
        let listed = self.judge(present(session.list(folder, MOST_ENTRIES).await), "list", folder);
        match listed {
            // A file can't be opened as a folder: servers call that a failure, or say that nothing exists there.
            Err(StorageError::Other { .. }) if !self.is_folder(session, folder).await? => Ok(None),
            other => other,
        }
    }

    async fn is_folder(&self, session: &Session, path: &str) -> Result<bool, StorageError> {
        let found = self.judge(present(session.raw.stat(path).await), "look at", path)?;
        Ok(found.is_some_and(|found| found.attrs.is_dir()))
    }

    /// The target of a link; none if it is broken.
    async fn followed(&self, session: &Session, folder: &str, raw: Raw) -> Result<Option<Entry>, StorageError> {
        if !raw.1.is_symlink() {
            return Ok(Some(entry(raw.0, &raw.1)));
        }
        let path = below(folder, &raw.0);
        let found = self.judge(present(session.raw.stat(path.as_str()).await), "look at", &path)?;
        Ok(found.map(|found| entry(raw.0, &found.attrs)))
    }

    async fn remove_folder(&self, session: &Session, path: &str) -> Result<(), StorageError> {
        let mut open = vec![path.to_owned()];
        let mut empty = Vec::new();
        while let Some(folder) = open.pop() {
            for (name, about) in self.entries(session, &folder).await?.unwrap_or_default() {
                let path = below(&folder, &name);
                match about.is_dir() {
                    true => open.push(path),
                    false => self.judge(gone(session.raw.remove(path.as_str()).await), "remove", &path)?,
                }
            }
            empty.push(folder);
        }
        for folder in empty.iter().rev() {
            self.judge(gone(session.raw.rmdir(folder.as_str()).await), "remove", folder)?;
        }
        Ok(())
    }
}

/// An entry of a folder: its name and its attributes.
type Raw = (String, FileAttributes);

#[async_trait]
impl FileSystem for SftpFiles {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        let session = self.shared.session().await?;
        let found = self.judge(present(session.raw.stat(path).await), "look at", path)?;
        Ok(found.map(|found| entry(file_name(path), &found.attrs)))
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        let session = self.shared.session().await?;
        let Some(raw) = self.entries(&session, folder).await? else { return Ok(None) };
        let mut entries = Vec::with_capacity(raw.len());
        for one in raw {
            entries.extend(self.followed(&session, folder, one).await?);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        let session = self.shared.session().await?;
        match self.judge(session.read(path, limit).await, "read", path)? {
            Some(bytes) => Ok(bytes.into()),
            None => Err(StorageError::too_large(&format!("{}{path}", self.shared.endpoint()), limit)),
        }
    }

    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.make_folder(folder).await?;
        let session = self.shared.session().await?;
        let unfinished = below(folder, &unfinished_name(path));
        let written = async {
            self.judge(session.write(&unfinished, content).await, "write", path)?;
            self.judge(session.replace(&unfinished, path).await, "write", path)
        };
        let written = written.await;
        if written.is_err() {
            let _ = session.raw.remove(unfinished).await;
        }
        written
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        let session = self.shared.session().await?;
        if path.is_empty() || self.is_folder(&session, path).await? {
            return Ok(());
        }
        let parts = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]).filter(|part| !part.is_empty());
        for part in parts {
            let made = session.raw.mkdir(part, FileAttributes::empty()).await;
            if made.is_err() && !self.is_folder(&session, part).await? {
                self.judge(made, "make the folder", part)?;
            }
        }
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let session = self.shared.session().await?;
        if self.itself(&session, to).await?.is_some() {
            let place = format!("{}{from}", self.shared.endpoint());
            return Err(StorageError::Other { what: "rename", place, detail: format!("{to} exists already") });
        }
        self.judge(session.raw.rename(from, to).await.map(drop), "rename", from)
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        let session = self.shared.session().await?;
        match self.itself(&session, path).await? {
            None => Ok(()),
            Some(about) if about.is_dir() => self.remove_folder(&session, path).await,
            Some(_) => self.judge(gone(session.raw.remove(path).await), "remove", path),
        }
    }
}

fn entry(name: String, about: &FileAttributes) -> Entry {
    let modified = about.mtime.and_then(|second| Timestamp::from_second(second.into()).ok());
    let (kind, bytes) = if about.is_dir() { (Kind::Folder, 0) } else { (Kind::File, about.size.unwrap_or(0)) };
    Entry { name, kind, bytes, modified }
}

fn below(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// Turns the error of a missing file into none.
fn present<T>(called: Result<T, SftpError>) -> Result<Option<T>, SftpError> {
    match called {
        Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
        other => other.map(Some),
    }
}

/// Ignores the error of a missing file, which is removed already.
fn gone<T>(called: Result<T, SftpError>) -> Result<(), SftpError> {
    present(called).map(drop)
}
