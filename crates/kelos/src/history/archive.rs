//! The archive of removed history: turns as they were, before they become incomplete.

use kelos_storage::{Place, Storage, StorageError};
use kelos_store::lines::{LinesError, TurnLines, before_line};
use kelos_store::{Digest, PageRequest, Queries, StoreError};

/// Digits of a digest in the name of an object.
const DIGITS: usize = 16;

/// A folder that gets an object for each stretch of turns whose history goes.
#[derive(Clone)]
pub struct Archive {
    place: Place,
}

/// Turns that can't be archived. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    /// They can't be read.
    #[error("archive history: {0}")]
    Lines(#[from] LinesError),
    /// They can't be written.
    #[error("archive history: {0}")]
    Storage(#[from] StorageError),
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> ArchiveError {
        LinesError::from(error).into()
    }
}

impl Archive {
    /// An archive below a URI. Contacts no server.
    ///
    /// # Errors
    /// If the URI is invalid, or this program can't open it.
    pub fn new(uri: &str, storage: &Storage) -> Result<Archive, StorageError> {
        Ok(Archive { place: storage.place(uri)? })
    }

    /// Its address, without passwords.
    #[must_use]
    pub fn address(&self) -> String {
        let Place { endpoint, path, .. } = &self.place;
        format!("{endpoint}{path}")
    }

    /// Keeps turns, from the first to the last of them. A second time gives the same object; those of another log have another name.
    pub(super) async fn keep(&self, reader: &dyn Queries, (first, last): (u64, u64)) -> Result<(), ArchiveError> {
        let (content, digest) = content(reader, first, last)?;
        let path = format!("{}/{}", self.place.path.trim_end_matches('/'), object_name((first, last), &digest));
        Ok(self.place.files.put(&path, &mut content.as_bytes()).await?)
    }
}

/// The name of an object: names sort by turns, and have the digest of the last of them, which covers all that is in the object.
fn object_name((first, last): (u64, u64), digest: &Digest) -> String {
    format!("turns-{first:012}-{last:012}-{:.DIGITS$}.jsonl", digest.to_string())
}

/// The lines of an object, and the digest of its last turn.
fn content(reader: &dyn Queries, first: u64, last: u64) -> Result<(String, Digest), ArchiveError> {
    let start = first.saturating_sub(2).to_string();
    let paging = PageRequest::oldest(usize::try_from(last - first).unwrap_or(usize::MAX).saturating_add(2));
    let (mut before, mut end) = (Digest::default(), Digest::default());
    let mut lines = Vec::new();
    for turn in reader.turns(if first > 2 { paging.after(Some(&start)) } else { paging })?.rows {
        if turn.turn < first {
            before = turn.digest;
        } else if turn.turn <= last {
            end = turn.digest;
            lines.extend(TurnLines::read(reader, &turn)?.all());
        }
    }
    let all = std::iter::once(before_line(&before)).chain(lines);
    Ok((all.map(|line| format!("{line}\n")).collect(), end))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use jiff::Timestamp;
    use kelos_storage::StorageConfig;
    use kelos_store::{Commit, Journal, MemoryStore, StoredState};

    use super::*;

    /// A store with five turns of a moment.
    fn store(second: i64) -> MemoryStore {
        let mut store = MemoryStore::new();
        let lease = store.lease("node", Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        for n in 0..5 {
            let registers = vec![("b".to_owned(), "k".to_owned(), Some(serde_json::json!(n)))];
            let at = Timestamp::from_second(second).unwrap();
            store.commit(lease, &Commit { at, registers, ..Commit::default() }).unwrap();
        }
        store
    }

    fn archive(folder: &Path) -> Archive {
        Archive::new(&format!("file:{}", folder.display()), &Storage::new(StorageConfig::default())).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let found = fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = found.collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn an_object_has_whole_turns_that_a_digest_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let (archive, reader) = (archive(place.path()), store(0).reader());
        archive.keep(&*reader, (1, 2)).await.unwrap();
        archive.keep(&*reader, (3, 4)).await.unwrap();
        archive.keep(&*reader, (3, 4)).await.unwrap();
        let names = names(place.path());
        let lines = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        let (first, second) = (lines(&names[0]), lines(&names[1]));
        let digests: Vec<&str> = first.lines().filter_map(|line| line.split("\"digest\":\"").nth(1)).collect();
        assert_eq!((first.lines().count(), second.lines().count(), digests.len()), (3, 3, 2));
        assert!(first.starts_with(&format!("{{\"before\":\"{}\"}}", "0".repeat(64))), "{first}");
        assert!(second.starts_with(&format!("{{\"before\":\"{}", &digests[1][..64])), "{second}");
        assert_eq!(names.len(), 2);
        assert_eq!(names[0], format!("turns-000000000001-000000000002-{}.jsonl", &digests[1][..16]));
        assert!(names[1].starts_with("turns-000000000003-000000000004-"), "{names:?}");
    }

    #[tokio::test]
    async fn two_logs_in_one_place_lose_nothing_of_each_other() {
        let place = tempfile::tempdir().unwrap();
        let archive = archive(place.path());
        archive.keep(&*store(0).reader(), (1, 4)).await.unwrap();
        let of_one = names(place.path());
        let before = fs::read_to_string(place.path().join(&of_one[0])).unwrap();
        archive.keep(&*store(100).reader(), (1, 4)).await.unwrap();
        assert_eq!(names(place.path()).len(), 2);
        assert_eq!(fs::read_to_string(place.path().join(&of_one[0])).unwrap(), before);
    }
}
