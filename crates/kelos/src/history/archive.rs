//! The archive of removed history: turns as they were, before they become incomplete.

use kelos_storage::{Place, Storage, StorageError};
use kelos_store::lines::{LinesError, TurnLines, before_line};
use kelos_store::{Digest, PageRequest, Queries, StoreError};

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

    /// Keeps turns, from the first to the last of them. A second time gives the same object.
    pub(super) async fn keep(&self, reader: &dyn Queries, (first, last): (u64, u64)) -> Result<(), ArchiveError> {
        let content = content(reader, first, last)?;
        let path = format!("{}/{}", self.place.path.trim_end_matches('/'), object_name(first, last));
        Ok(self.place.files.put(&path, &mut content.as_bytes()).await?)
    }
}

/// The name of an object: names sort by turns.
fn object_name(first: u64, last: u64) -> String {
    format!("turns-{first:012}-{last:012}.jsonl")
}

fn content(reader: &dyn Queries, first: u64, last: u64) -> Result<String, ArchiveError> {
    let start = first.saturating_sub(2).to_string();
    let paging = PageRequest::oldest(usize::try_from(last - first).unwrap_or(usize::MAX).saturating_add(2));
    let mut before = Digest::default();
    let mut lines = Vec::new();
    for turn in reader.turns(if first > 2 { paging.after(Some(&start)) } else { paging })?.rows {
        if turn.turn < first {
            before = turn.digest;
        } else if turn.turn <= last {
            lines.extend(TurnLines::read(reader, &turn)?.all());
        }
    }
    let all = std::iter::once(before_line(&before)).chain(lines);
    Ok(all.map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kelos_storage::StorageConfig;
    use kelos_store::{Commit, Journal, MemoryStore, StoredState};

    use super::*;

    #[tokio::test]
    async fn an_object_has_whole_turns_that_a_digest_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let uri = format!("file:{}", place.path().display());
        let archive = Archive::new(&uri, &Storage::new(StorageConfig::default())).unwrap();
        let mut store = MemoryStore::new();
        let lease = store.lease("node", jiff::Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        for n in 0..5 {
            let registers = vec![("b".to_owned(), "k".to_owned(), Some(serde_json::json!(n)))];
            store.commit(lease, &Commit { registers, ..Commit::default() }).unwrap();
        }
        let reader = store.reader();
        archive.keep(&*reader, (1, 2)).await.unwrap();
        archive.keep(&*reader, (3, 4)).await.unwrap();
        archive.keep(&*reader, (3, 4)).await.unwrap();
        let mut names: Vec<String> =
            fs::read_dir(place.path()).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["turns-000000000001-000000000002.jsonl", "turns-000000000003-000000000004.jsonl"]);
        let lines = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        let (first, second) = (lines(&names[0]), lines(&names[1]));
        let digests: Vec<&str> = first.lines().filter_map(|line| line.split("\"digest\":\"").nth(1)).collect();
        assert_eq!((first.lines().count(), second.lines().count(), digests.len()), (3, 3, 2));
        assert!(first.starts_with(&format!("{{\"before\":\"{}\"}}", "0".repeat(64))), "{first}");
        assert!(second.starts_with(&format!("{{\"before\":\"{}", &digests[1][..64])), "{second}");
    }
}
