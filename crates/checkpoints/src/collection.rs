//! Checkpoints read back from where they were sent: a folder of objects, one object, lines of JSON, the log of a server.

use futures_util::{StreamExt as _, stream};
use kelos_storage::{Kind, Place, Storage};
use serde_json::Value;

use crate::checkpoint::{Checkpoint, CheckpointProblem};

/// The largest file that is read.
const LARGEST: u64 = 1 << 30;
/// How many are read at a time: as many as an endpoint allows.
const AT_ONCE: usize = kelos_storage::TRANSFERS;
/// The beginning of a checkpoint in a line of a log.
const MARK: &str = "{\"checkpoint\":";

/// The checkpoints of a place, and what should be one and is none.
#[derive(Debug, Default)]
pub struct Collection {
    /// The checkpoints, each with the name of where it is, in the order of their turns and then of their moments.
    pub checkpoints: Vec<(String, Checkpoint)>,
    /// The names of things in their place, each with the reason for which it is no checkpoint.
    pub unreadable: Vec<(String, CheckpointProblem)>,
}

impl Collection {
    /// Reads all checkpoints at a URI, or at an absolute path of this machine: those of a folder, or of a file. Errors complete
    /// "failed to …".
    ///
    /// # Errors
    /// When nothing is there, or it can't be read.
    pub async fn read(storage: &Storage, uri: &str) -> Result<Collection, String> {
        let words = |error: kelos_storage::StorageError| error.to_string();
        let place = storage.place(uri).map_err(words)?;
        let mut collection = Collection::default();
        match place.files.stat(&place.path).await.map_err(words)? {
            None => return Err(format!("read checkpoints from {uri}: nothing is there")),
            Some(found) if found.kind == Kind::Folder => collection.add_folder(&place).await?,
            Some(_) => {
                let bytes = place.files.read(&place.path, LARGEST).await.map_err(words)?;
                collection.add_file(&place.path, &String::from_utf8_lossy(&bytes));
            }
        }
        collection.checkpoints.sort_by_key(|(_, checkpoint)| (checkpoint.turn, checkpoint.at));
        Ok(collection)
    }

    async fn add_folder(&mut self, place: &Place) -> Result<(), String> {
        let words = |error: kelos_storage::StorageError| error.to_string();
        let entries = place.files.list(&place.path).await.map_err(words)?.unwrap_or_default();
        let names = entries.into_iter().filter(|entry| entry.kind == Kind::File && has_checkpoints(&entry.name));
        let folder = place.path.trim_end_matches('/');
        let paths = names.map(|entry| format!("{folder}/{}", entry.name));
        let reads = paths.map(|path| async move {
            let bytes = place.files.read(&path, LARGEST).await;
            (path, bytes)
        });
        let mut reads = stream::iter(reads).buffered(AT_ONCE);
        while let Some((path, bytes)) = reads.next().await {
            self.add_file(&path, &String::from_utf8_lossy(&bytes.map_err(words)?));
        }
        Ok(())
    }

    /// Adds those of a text: one checkpoint, or lines among which some hold one.
    pub fn add_file(&mut self, name: &str, text: &str) {
        let is_object = name.ends_with(".json");
        if is_object {
            return self.add(name.to_owned(), Checkpoint::read(text));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(read) = of_line(line) {
                self.add(format!("{name}:{number}"), read);
            }
        }
    }

    fn add(&mut self, name: String, read: Result<Checkpoint, CheckpointProblem>) {
        match read {
            Ok(checkpoint) => self.checkpoints.push((name, checkpoint)),
            Err(problem) => self.unreadable.push((name, problem)),
        }
    }
}

/// Whether a file of a folder has checkpoints, by its name.
fn has_checkpoints(name: &str) -> bool {
    name.starts_with("checkpoint-") && name.ends_with(".json") || name.ends_with(".log") || name.ends_with(".jsonl")
}

/// The checkpoint of a line, if it has one: the line itself, or in a log its message, in a line for people or in the JSON of one.
fn of_line(line: &str) -> Option<Result<Checkpoint, CheckpointProblem>> {
    if !line.contains("\"checkpoint\"") && !line.contains("\\\"checkpoint\\\"") {
        return None;
    }
    if let Ok(value) = serde_json::from_str::<Value>(line) {
        if value.get("checkpoint").is_some() {
            return Some(Checkpoint::of_json(&value));
        }
        return value.get("message").and_then(Value::as_str).and_then(of_words);
    }
    of_words(line)
}

fn of_words(words: &str) -> Option<Result<Checkpoint, CheckpointProblem>> {
    let json = words.get(words.find(MARK)?..)?;
    let first = serde_json::Deserializer::from_str(json).into_iter::<Value>().next()?;
    Some(match first {
        Ok(value) => Checkpoint::of_json(&value),
        Err(error) => Err(CheckpointProblem::Json(error.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kelos_store::{Digest, TurnRecord};

    use super::*;
    use crate::key::PrivateKey;

    fn checkpoint(turn: u64) -> Checkpoint {
        let at = Timestamp::UNIX_EPOCH;
        let digest = Digest::from_bytes(&[u8::try_from(turn).unwrap(); 32]).unwrap();
        let record = TurnRecord { turn, epoch: 1, at, first_event: 1, events: 0, body: 2, digest };
        Checkpoint::sign(&PrivateKey::of_seed([7; 32]), "a", &record, at)
    }

    #[test]
    fn they_are_found_in_every_kind_of_log() {
        let (one, two, three) =
            (checkpoint(1).json().to_string(), checkpoint(2).json().to_string(), checkpoint(3).json());
        let of_program =
            serde_json::json!({"timestamp": "…", "level": "INFO", "message": three.to_string(), "target": "kelos"});
        let log = format!(
            "{one}\n2026-01-31T00:00:00Z \u{1b}[32m INFO\u{1b}[0m kelos_checkpoints::recorder: {two}\n{of_program}\nother \"checkpoint\"\n{{\"a\": 1}}\n"
        );
        let mut collection = Collection::default();
        collection.add_file("kelos.log", &log);
        let found: Vec<(String, u64)> =
            collection.checkpoints.into_iter().map(|(name, one)| (name, one.turn)).collect();
        assert_eq!(
            found,
            [("kelos.log:1".to_owned(), 1), ("kelos.log:2".to_owned(), 2), ("kelos.log:3".to_owned(), 3)]
        );
        assert!(collection.unreadable.is_empty());
    }

    #[test]
    fn what_should_be_one_and_is_none_is_named() {
        let mut collection = Collection::default();
        let torn = checkpoint(1).json().to_string();
        collection.add_file("a.log", &torn[..60]);
        collection.add_file("checkpoint-1.json", "{}");
        let names: Vec<&str> = collection.unreadable.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a.log:1", "checkpoint-1.json"]);
    }

    #[tokio::test]
    async fn a_folder_is_read_with_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for turn in [9, 2] {
            let checkpoint = checkpoint(turn);
            std::fs::write(folder.path().join(checkpoint.object_name()), checkpoint.json().to_string()).unwrap();
        }
        std::fs::write(folder.path().join("readme.json"), "{}").unwrap();
        let (storage, path) =
            (Storage::new(kelos_storage::StorageConfig::default()), folder.path().display().to_string());
        let read = Collection::read(&storage, &path).await.unwrap();
        let turns: Vec<u64> = read.checkpoints.iter().map(|(_, one)| one.turn).collect();
        assert_eq!((turns, read.unreadable.len()), (vec![2, 9], 0));
        let nothing = Collection::read(&storage, &format!("{path}/x")).await.unwrap_err();
        assert_eq!(nothing, format!("read checkpoints from {path}/x: nothing is there"));
    }
}
