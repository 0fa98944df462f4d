//! A session: one connection for all calls, and the calls that take several messages.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::rawsession::Limits;
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, Status, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Raw;
use super::login::{self, Connection};
use super::settings::Target;
use crate::StorageError;
use crate::local::unfinished_name;

/// How long an answer to one message may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How many bytes of a file one message has; every server accepts as many.
const CHUNK: u32 = 32 * 1024 - 1024;

/// How many messages that write a file may be unanswered: the client does not wait for a distant server each time.
const WRITES_AT_A_TIME: usize = 16;

/// The extension that replaces a file by another one atomically.
const POSIX_RENAME: &str = "posix-rename@openssh.com";

/// A connection with the SFTP protocol on it.
pub(super) struct Session {
    pub(super) raw: RawSftpSession,
    can_replace: bool,
    can_sync: bool,
    /// The connection, which is closed with its last user.
    connection: Connection,
}

/// The session with a server, made when it is needed.
pub(super) struct SharedSession {
    target: Target,
    current: Mutex<Option<Arc<Session>>>,
    /// A lock that is held while a connection is made, so that only one is made.
    making: tokio::sync::Mutex<()>,
}

impl SharedSession {
    pub(super) fn new(target: Target) -> SharedSession {
        SharedSession { target, current: Mutex::default(), making: tokio::sync::Mutex::default() }
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.target.endpoint
    }

    /// The open session, or a new one.
    pub(super) async fn session(&self) -> Result<Arc<Session>, StorageError> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let _making = self.making.lock().await;
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let session = Arc::new(Session::open(&self.target).await?);
        *self.place() = Some(session.clone());
        Ok(session)
    }

    /// Drops a broken session; calls that still use it keep it.
    pub(super) fn forget(&self) {
        *self.place() = None;
    }

    fn current(&self) -> Option<Arc<Session>> {
        self.place().clone().filter(|session| !session.connection.is_closed())
    }

    fn place(&self) -> std::sync::MutexGuard<'_, Option<Arc<Session>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    async fn open(target: &Target) -> Result<Session, StorageError> {
        let connection = login::connect(target).await?;
        let unreachable = |detail| StorageError::Unreachable { endpoint: target.endpoint.clone(), detail };
        let channel = connection.channel_open_session().await.map_err(|error| unreachable(login::why(&error)))?;
        let asked = channel.request_subsystem(true, "sftp").await;
        asked.map_err(|error| unreachable(login::why(&error)))?;
        let mut raw = RawSftpSession::new(channel.into_stream());
        raw.set_timeout(PATIENCE.as_secs());
        let no_sftp = |error: SftpError| unreachable(format!("it does not offer SFTP to this user: {error}"));
        let version = raw.init().await.map_err(no_sftp)?;
        let has = |name: &str| version.extensions.contains_key(name);
        if has(russh_sftp::extensions::LIMITS) {
            let limits = raw.limits().await.map_err(no_sftp)?;
            raw.set_limits(Limits::from(limits));
        }
        let can_sync = has(russh_sftp::extensions::FSYNC);
        Ok(Session { raw, can_replace: has(POSIX_RENAME), can_sync, connection })
    }

    /// The names in a folder, in any order.
    pub(super) async fn list(&self, folder: &str, most: usize) -> Result<Vec<Raw>, SftpError> {
        let handle = self.raw.opendir(folder).await?.handle;
        let mut found = Vec::new();
        let read = loop {
            match self.raw.readdir(handle.as_str()).await {
                Ok(some) => found.extend(some.files.into_iter().map(|file| (file.filename, file.attrs))),
                Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break Ok(()),
                Err(error) => break Err(error),
            }
            if found.len() > most {
                break Err(SftpError::Limited(format!("it has more than the {most} entries that are listed at most")));
            }
        };
        let _ = self.raw.close(handle).await;
        found.retain(|(name, _)| name != "." && name != "..");
        read.map(|()| found)
    }

    /// The content of a file; none if it has more than `limit` bytes.
    pub(super) async fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SftpError> {
        let handle = self.raw.open(path, OpenFlags::READ, FileAttributes::empty()).await?.handle;
        let mut bytes = Vec::new();
        let read = loop {
            match self.raw.read(handle.as_str(), bytes.len() as u64, CHUNK).await {
                Ok(some) => bytes.extend(some.data),
                Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break Ok(Some(())),
                Err(error) => break Err(error),
            }
            if bytes.len() as u64 > limit {
                break Ok(None);
            }
        };
        let _ = self.raw.close(handle).await;
        Ok(read?.map(|()| bytes))
    }

    /// Writes a new file completely, and syncs it to the disk.
    pub(super) async fn write(
        &self,
        path: &str,
        content: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<(), SftpError> {
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
        let handle = self.raw.open(path, flags, FileAttributes::empty()).await?.handle;
        let written = self.write_all(&handle, content).await;
        let closed = self.raw.close(handle).await;
        written?;
        closed.map(drop)
    }

    async fn write_all(&self, handle: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), SftpError> {
        let mut offset = 0;
        let mut under_way = FuturesUnordered::new();
        loop {
            let mut chunk = Vec::new();
            let read = content.take(CHUNK.into()).read_to_end(&mut chunk).await?;
            if read == 0 {
                break;
            }
            under_way.push(self.raw.write(handle, offset, chunk));
            offset += read as u64;
            if under_way.len() >= WRITES_AT_A_TIME {
                under_way.next().await.transpose()?;
            }
        }
        while let Some(written) = under_way.next().await {
            written?;
        }
        match self.can_sync {
            true => self.raw.fsync(handle).await.map(drop),
            false => Ok(()),
        }
    }

    /// Replaces a file by another one.
    pub(super) async fn replace(&self, from: &str, to: &str) -> Result<(), SftpError> {
        if self.can_replace {
            return done(self.raw.extended(POSIX_RENAME, two_texts(from, to)).await?);
        }
        // Without the extension the file is missing for a moment; the old one is kept until the new one is in place.
        let aside = format!("{}/{}", to.rsplit_once('/').map_or("", |(folder, _)| folder), unfinished_name(to));
        let had_one = super::present(self.raw.rename(to, aside.as_str()).await)?.is_some();
        let renamed = self.raw.rename(from, to).await;
        if had_one {
            let _ = match renamed.is_ok() {
                true => self.raw.remove(aside).await,
                false => self.raw.rename(aside, to).await,
            };
        }
        renamed.map(drop)
    }
}

fn done(answer: Packet) -> Result<(), SftpError> {
    match answer {
        Packet::Status(Status { status_code: StatusCode::Ok, .. }) => Ok(()),
        Packet::Status(status) => Err(SftpError::Status(status)),
        _ => Err(SftpError::UnexpectedPacket),
    }
}

/// Two texts, each with its length before it.
fn two_texts(one: &str, other: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + one.len() + other.len());
    for text in [one, other] {
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod real {
    use super::*;
    use crate::SshSettings;

    #[tokio::test]
    #[ignore = "needs a real server: servers/run with sftp -- cargo test -- --ignored real::"]
    async fn files_are_replaced_without_the_extension_too() {
        let Some(address) = kelos_test_servers::address("KELOS_TEST_SFTP") else { return };
        let path = |name: &str| std::env::var_os(name).map(Into::into);
        let ssh = SshSettings {
            known_hosts: path("KELOS_TEST_SFTP_KNOWN_HOSTS"),
            key: path("KELOS_TEST_SFTP_KEY"),
            ..SshSettings::default()
        };
        let target = Target::of(address.trim_start_matches("sftp://"), &ssh).unwrap();
        let mut session = Session::open(&target).await.unwrap();
        assert!(session.can_replace, "OpenSSH has the extension");
        session.can_replace = false;
        let folder = format!("{}/replace-{}", std::env::var("KELOS_TEST_SFTP_DIR").unwrap(), std::process::id());
        session.raw.mkdir(folder.as_str(), FileAttributes::empty()).await.unwrap();
        let (from, to) = (format!("{folder}/from"), format!("{folder}/to"));
        for text in ["one", "two"] {
            session.write(&from, &mut text.as_bytes()).await.unwrap();
            session.replace(&from, &to).await.unwrap();
            assert_eq!(session.read(&to, 9).await.unwrap().unwrap(), text.as_bytes());
        }
        assert!(session.replace(&from, &to).await.is_err(), "there is nothing to put in its place");
        assert_eq!(session.read(&to, 9).await.unwrap().unwrap(), b"two", "the old one is back");
        assert_eq!(session.list(&folder, 9).await.unwrap().len(), 1, "nothing is left beside it");
        session.raw.remove(to).await.unwrap();
        session.raw.rmdir(folder).await.unwrap();
    }
}
