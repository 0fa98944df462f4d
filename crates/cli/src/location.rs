//! Where the server of a folder is found: the names of its files, and `server.json`, by which processes on one machine find each
//! other. Absent is everything that talks to a server.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_tls::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::access;
use crate::failure::Failure;
use crate::{folder, text};

/// The port of a server for which no other is named.
pub(crate) const PORT: u16 = 7437;
/// The folder of state, in the folder of scripts.
pub(crate) const STATE: &str = ".kelos";
/// The database, in the folder of state.
pub(crate) const DATABASE: &str = "kelos.db";
/// The file, in the folder of state, that says where the server is.
pub(crate) const SERVER_JSON: &str = "server.json";

/// The address of a running server, and what identifies it and its workers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: String,
    /// The name that a client expects the server to have; none where an older version wrote the file.
    pub(crate) instance: Option<Arc<str>>,
    /// The token of its workers; none where the server accepts no workers.
    pub(crate) token: Option<Arc<str>>,
    /// The fingerprint of its certificate, where it speaks TLS: on this machine no authority has to vouch for it.
    pub(crate) pin: Option<Fingerprint>,
    /// The token of the server's owner, in a file of its own.
    pub(crate) owner: Option<Arc<str>>,
}

/// The content of `server.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    address: String,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<String>,
}

impl Location {
    /// The location that is recorded in a folder of state.
    pub(crate) fn read(state: &Path) -> Option<Location> {
        let record: Record = serde_json::from_str(&std::fs::read_to_string(state.join(SERVER_JSON)).ok()?).ok()?;
        let pin = record.pin.and_then(|pin| pin.parse().ok());
        let owner = access::owner(state);
        Some(Location { address: record.address, instance: record.instance, token: record.token, pin, owner })
    }

    /// The process of the server whose location is recorded in a folder of state.
    pub(crate) fn process(state: &Path) -> Option<u32> {
        let record: Record = serde_json::from_str(&std::fs::read_to_string(state.join(SERVER_JSON)).ok()?).ok()?;
        Some(record.pid).filter(|pid| *pid > 0)
    }

    /// The location of the server of the current folder, or of the nearest folder above it that has one.
    pub(crate) fn nearby() -> Option<Location> {
        let mut dir: Option<PathBuf> = std::env::current_dir().ok();
        while let Some(here) = dir {
            if let Some(location) = Location::read(&here.join(STATE)) {
                return Some(location);
            }
            dir = here.parent().map(Path::to_owned);
        }
        None
    }

    /// Records the location in a folder of state, in a file that only its owner may read: who has the token is given jobs.
    pub(crate) fn write(&self, state: &Path) -> Result<(), Failure> {
        let file = state.join(SERVER_JSON);
        let fail = |error: std::io::Error| Failure::bad(format!("write {}: {error}", file.display()));
        let record = Record {
            address: self.address.clone(),
            pid: std::process::id(),
            started_at: text::wire(Timestamp::now()),
            instance: self.instance.clone(),
            token: self.token.clone(),
            pin: self.pin.map(|pin| pin.to_string()),
        };
        let line = serde_json::to_string(&record).map_err(|error| fail(error.into()))? + "\n";
        let beside = file.with_extension(format!("json.{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut written = options.open(&beside).map_err(fail)?;
        written.write_all(line.as_bytes()).map_err(fail)?;
        std::fs::rename(&beside, &file).map_err(fail)
    }

    /// Removes the record from a folder of state.
    pub(crate) fn remove(state: &Path) {
        let _ = std::fs::remove_file(state.join(SERVER_JSON));
    }
}

/// Makes the folder of state, closed to other users and ignored by git.
pub(crate) fn make_state(state: &Path) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::bad(format!("keep state in {}: {error}", state.display()));
    folder::make_private(state).map_err(fail)?;
    let ignore = state.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(ignore, "*\n").map_err(fail)?;
    }
    Ok(())
}

/// A random text that can't be guessed, for a token or the name of an instance.
pub(crate) fn random() -> Result<Arc<str>, Failure> {
    let drawn = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    let drawn = drawn.map_err(|error| Failure::bad(format!("generate a token: {error}")))?;
    Ok(drawn.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_older_versions_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |text: &str| std::fs::write(dir.path().join(SERVER_JSON), text).expect("a file");
        write(r#"{"address":"http://127.0.0.1:1","pid":3,"startedAt":"2026-01-01T00:00:00.000Z","later":[1]}"#);
        let old = Location::read(dir.path()).expect("a location");
        assert_eq!((&*old.address, old.instance, old.token), ("http://127.0.0.1:1", None, None));
        write("{}");
        assert!(Location::read(dir.path()).is_none());
        let new = Location {
            address: "http://a".into(),
            instance: Some("i".into()),
            token: None,
            pin: Some(Fingerprint::of(b"c")),
            owner: None,
        };
        new.write(dir.path()).expect("a file");
        assert!(Location::read(dir.path()) == Some(new));
        assert_eq!(Location::process(dir.path()), Some(std::process::id()));
        Location::remove(dir.path());
        assert!(Location::read(dir.path()).is_none());
    }
}
