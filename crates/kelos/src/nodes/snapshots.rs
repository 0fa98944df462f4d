//! Snapshots of a log on a storage URL: the log itself has a note of where they are.
//!
//! A snapshot is a folder with parts of some megabytes. It is read back before the log gets its note, and so before anything is trimmed
//! behind it. The note says where it is, so that a node reads it whether it was told of the folder or not.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use kelos_storage::{Place, Storage, StorageConfig, StorageError};
use kelos_store::log::adapter::{Action, next_part};
use kelos_store::log::{Holder, Inbox, LeaseRecord, Log, LogEnds, LogEntry, LogError, LogStore};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Builder;

use super::nonce;

/// The bytes of a part.
const PART: usize = 16 << 20;
/// The largest note.
const NOTE: usize = 1 << 20;
/// The beginning of each note. Snapshots that the log has itself begin otherwise: they are files of SQLite.
const BEGINNING: &[u8] = b"{\"kelosSnapshot\":";

/// A log whose snapshots are in a folder of some storage, or in the log itself.
pub(super) struct SnapshotFolder {
    log: Arc<dyn LogStore>,
    files: SnapshotFiles,
}

/// The note that the log has of a snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    /// The form of this note. It comes first, see [`BEGINNING`].
    kelos_snapshot: u32,
    /// The URL of the folder of the snapshot.
    at: String,
    /// The SHA-256 of each part.
    parts: Vec<String>,
}

impl SnapshotFolder {
    /// A log with its snapshots in a folder, if one is given.
    ///
    /// # Errors
    /// When the folder is not one that this program could open.
    pub(super) fn new(
        log: Arc<dyn LogStore>,
        folder: Option<&str>,
        config: StorageConfig,
    ) -> Result<SnapshotFolder, StorageError> {
        if let Some(folder) = folder {
            Storage::new(config.clone()).check(folder)?;
        }
        // Logs that share a folder must not sweep away each other's snapshots.
        let prefix = format!("snapshot-{}-", &digest(log.name().as_bytes())[..12]);
        let folder = folder.map(|folder| folder.trim_end_matches('/').to_owned());
        Ok(SnapshotFolder { log, files: SnapshotFiles { folder, prefix, config } })
    }
}

impl LogStore for SnapshotFolder {
    fn name(&self) -> String {
        self.log.name()
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        Ok(Box::new(NotedLog { log: self.log.open()?, files: self.files.clone() }))
    }

    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        self.log.inbox()
    }
}

/// A connection to such a log.
struct NotedLog {
    log: Box<dyn Log>,
    files: SnapshotFiles,
}

impl Log for NotedLog {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        self.log.lease()
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        self.log.take(seen, nonce, holder)
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        self.log.renew(held)
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        self.log.release(held)
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        self.log.append(epoch, position, body)
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        self.log.read(after, limit)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        self.log.ends()
    }

    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        self.log.clock_millis()
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        self.log.wait(after, patience)
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let Some(folder) = self.files.folder.clone() else { return self.log.put_snapshot(position, source) };
        let doing = format!("store the snapshot at entry {position}");
        let action = Action::read(&doing);
        let at = format!("{folder}/{}{position:020}-{:016x}", self.files.prefix, nonce());
        let note = Note { kelos_snapshot: 1, parts: self.files.put(action, &at, source)?, at };
        let bytes = serde_json::to_vec(&note).map_err(|error| action.failed(error.to_string()))?;
        self.log.put_snapshot(position, &mut &*bytes)?;
        self.files.sweep(action, &folder, &note.at)
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        self.log.snapshot()
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let doing = format!("read the snapshot at entry {position}");
        let action = Action::read(&doing);
        let mut content = NoteOrContent { target, head: Vec::new(), is_content: false };
        self.log.read_snapshot(position, &mut content)?;
        let Some(note) = content.end(action)? else { return Ok(()) };
        let note: Note = serde_json::from_slice(&note).map_err(|error| LogError::Corrupt {
            place: format!("the note of the snapshot at entry {position}"),
            what: error.to_string(),
        })?;
        self.files.read(action, &note, target)
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        self.log.trim(before)
    }
}

/// The target of what the log has: content, which goes on to where it is wanted, or a note, which stays here.
struct NoteOrContent<'a> {
    target: &'a mut dyn Write,
    head: Vec<u8>,
    is_content: bool,
}

impl Write for NoteOrContent<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.is_content {
            return self.target.write(bytes);
        }
        self.head.extend(bytes);
        let seen = self.head.len().min(BEGINNING.len());
        if self.head[..seen] != BEGINNING[..seen] || self.head.len() > NOTE {
            self.is_content = true;
            self.target.write_all(&std::mem::take(&mut self.head))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.target.flush()
    }
}

impl NoteOrContent<'_> {
    /// The note, if it is one.
    fn end(self, action: Action<'_>) -> Result<Option<Vec<u8>>, LogError> {
        if self.is_content {
            return Ok(None);
        }
        if self.head.len() >= BEGINNING.len() {
            return Ok(Some(self.head));
        }
        self.target.write_all(&self.head).map_err(|error| action.failed(error.to_string()))?;
        Ok(None)
    }
}

/// The files of snapshots.
#[derive(Clone)]
struct SnapshotFiles {
    folder: Option<String>,
    /// The beginning of the names of this log's snapshots.
    prefix: String,
    config: StorageConfig,
}

impl SnapshotFiles {
    /// Writes the parts of a snapshot to a folder, and reads each of them back. The digests of the parts.
    fn put(&self, action: Action<'_>, at: &str, source: &mut dyn Read) -> Result<Vec<String>, LogError> {
        let mut parts = Vec::new();
        loop {
            let part = next_part(source, PART)?;
            if part.is_empty() {
                return Ok(parts);
            }
            let digest = digest(&part);
            let url = part_url(at, parts.len());
            self.within(action, &url, async |place| {
                place.files.put(&place.path, &mut &*part).await?;
                place.files.read(&place.path, PART as u64).await
            })
            .and_then(|found| check(action, &url, &found, &digest))?;
            parts.push(digest);
        }
    }

    /// Reads the parts of a snapshot.
    fn read(&self, action: Action<'_>, note: &Note, target: &mut dyn Write) -> Result<(), LogError> {
        for (number, digest) in note.parts.iter().enumerate() {
            let url = part_url(&note.at, number);
            let part = self.within(action, &url, async |place| place.files.read(&place.path, PART as u64).await)?;
            check(action, &url, &part, digest)?;
            target.write_all(&part).map_err(|error| action.failed(error.to_string()))?;
        }
        Ok(())
    }

    /// Removes snapshots that are older than the latest one, which is at this URL. The log ignores a leader who completes one of them now.
    fn sweep(&self, action: Action<'_>, folder: &str, latest: &str) -> Result<(), LogError> {
        let name = latest.rsplit('/').next().unwrap_or_default();
        let entries = self.within(action, folder, async |place| place.files.list(&place.path).await)?;
        let names = entries.unwrap_or_default().into_iter().map(|entry| entry.name);
        for old in names.filter(|other| other.starts_with(&self.prefix) && other.as_str() < name) {
            let url = format!("{folder}/{old}");
            self.within(action, &url, async |place| place.files.remove(&place.path).await)?;
        }
        Ok(())
    }

    /// Does some work at a URL to its end, on a thread of its own: snapshots are rare, and the caller may be within another runtime.
    fn within<T: Send>(
        &self,
        action: Action<'_>,
        url: &str,
        work: impl AsyncFnOnce(Place) -> Result<T, StorageError> + Send,
    ) -> Result<T, LogError> {
        let told = |error: StorageError| action.failed(format!("failed to {error}"));
        let place = Storage::new(self.config.clone()).place(url).map_err(told)?;
        let work = || {
            let runtime = Builder::new_current_thread().enable_all().build();
            runtime.map_err(|error| action.failed(error.to_string()))?.block_on(work(place)).map_err(told)
        };
        std::thread::scope(|scope| match scope.spawn(work).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

fn part_url(at: &str, number: usize) -> String {
    format!("{at}/part-{number:05}")
}

fn digest(part: &[u8]) -> String {
    Sha256::digest(part).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(action: Action<'_>, url: &str, part: &[u8], expected: &str) -> Result<(), LogError> {
    if digest(part) == expected {
        return Ok(());
    }
    Err(action.failed(format!("{url} is not what was written there, by its digest")))
}

#[cfg(test)]
mod tests {
    use kelos_store::log::MemoryLogStore;
    use kelos_store::suite::log_suite;
    use tempfile::TempDir;

    use super::*;

    fn noted(log: &MemoryLogStore, folder: Option<&TempDir>) -> Box<dyn Log> {
        let folder = folder.map(|folder| folder.path().to_str().unwrap().to_owned());
        let store = SnapshotFolder::new(Arc::new(log.clone()), folder.as_deref(), StorageConfig::default()).unwrap();
        store.open().unwrap()
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn read(log: &mut dyn Log, position: u64) -> Result<Vec<u8>, LogError> {
        let mut content = Vec::new();
        log.read_snapshot(position, &mut content).map(|()| content)
    }

    #[test]
    fn a_log_with_its_snapshots_elsewhere_keeps_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        let mut number = 0;
        log_suite(&mut || {
            number += 1;
            let at = folder.path().join(number.to_string()).display().to_string();
            let log = Arc::new(MemoryLogStore::default());
            Box::new(SnapshotFolder::new(log, Some(&at), StorageConfig::default()).unwrap())
        });
        log_suite(&mut || {
            let log = Arc::new(MemoryLogStore::default());
            Box::new(SnapshotFolder::new(log, None, StorageConfig::default()).unwrap())
        });
    }

    #[test]
    fn the_folder_has_the_latest_snapshot_and_each_node_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("snapshot-of-somebody-else")).unwrap();
        let shared = MemoryLogStore::default();
        let mut log = noted(&shared, Some(&folder));
        let content: Vec<u8> = (0..PART + 10).map(|number| (number % 251) as u8).collect();
        for position in [3, 9] {
            log.put_snapshot(position, &mut &*content).unwrap();
            assert_eq!(names(&folder).len(), 2, "{:?}", names(&folder));
            assert_eq!(read(&mut *log, position).unwrap(), content);
        }
        assert_eq!(read(&mut *noted(&shared, None), 9).unwrap(), content);
        let mut note = Vec::new();
        shared.open().unwrap().read_snapshot(9, &mut note).unwrap();
        assert!(note.starts_with(BEGINNING) && note.len() < 1000, "{}", String::from_utf8_lossy(&note));
    }

    #[test]
    fn a_log_that_has_its_snapshot_itself_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let shared = MemoryLogStore::default();
        for content in [&b"SQLite format 3"[..], b"{\"kelos", b""] {
            shared.open().unwrap().put_snapshot(4, &mut &*content).unwrap();
            assert_eq!(read(&mut *noted(&shared, Some(&folder)), 4).unwrap(), content);
        }
    }

    #[test]
    fn a_damaged_part_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let shared = MemoryLogStore::default();
        let mut log = noted(&shared, Some(&folder));
        log.put_snapshot(4, &mut &b"content"[..]).unwrap();
        let part = folder.path().join(&names(&folder)[0]).join("part-00000");
        std::fs::write(&part, "contents").unwrap();
        let error = read(&mut *log, 4).unwrap_err().to_string();
        assert!(error.contains("part-00000 is not what was written there"), "{error}");
        std::fs::remove_file(&part).unwrap();
        let error = read(&mut *log, 4).unwrap_err().to_string();
        assert!(error.starts_with("read the snapshot at entry 4: failed to find"), "{error}");
    }

    #[test]
    fn a_folder_that_makes_no_sense_is_refused() {
        let log = Arc::new(MemoryLogStore::default());
        let refused = SnapshotFolder::new(log, Some("ftp://host/path"), StorageConfig::default());
        assert!(refused.err().unwrap().to_string().contains("ftp"));
    }
}
