//! Moving between a file and a log: all of it, verified before the old place is sealed.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::register::HISTORY_BUCKET;
use kelos_model::{Actor, Event, EventRecord};
use kelos_sandbox::Folders;
use kelos_store::log::{EntryBody, FORM, Holder, LeaseRecord, LocalState, Log, LogError, LogStore, read_entry};
use kelos_store::{Commit, Journal, StoreError, StoredState, TurnRecord};
use kelos_store_sqlite::{SqliteState, SqliteStore};
use sha2::{Digest as _, Sha256};

use super::files::{SharedFiles, definitions, registers_of};
use super::{FilesError, LogPlace, nonce};
use crate::history::SHARED;

/// A lease that is not renewed for so long is that of nobody.
const SILENCE: Duration = Duration::from_secs(4);

/// Entries that are read at a time.
pub(super) const PAGE: usize = 512;

/// The form that is needed to lead on a log whose data were moved away: none.
const SEALED: u32 = u32::MAX;

/// How long the lease of a file is, which is not renewed while it is moved.
const HOUR_MILLIS: u64 = 3_600_000;

/// The result of a move or a recovery.
#[derive(Debug, Clone)]
pub struct MoveReport {
    /// The last entry of the log.
    pub entry: u64,
    /// The last turn, with the digest of all turns.
    pub turn: Option<TurnRecord>,
    /// The number of events.
    pub events: u64,
    /// The bytes of the snapshot.
    pub bytes: u64,
    /// The files of definitions that were moved.
    pub files: Vec<String>,
    /// Files beside them that are no text, and stay where they are.
    pub left: Vec<String>,
}

/// The error of a move. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// A store or the log fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log fails.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The files of definitions can't be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The log is not what it has to be.
    #[error("{0}")]
    Refused(String),
}

pub(super) fn refused(what: impl Into<String>) -> MoveError {
    MoveError::Refused(what.into())
}

/// Moves the data in a folder, which no server uses, to an empty log, together with the scripts that they belong to. The folder becomes
/// the state of a node.
///
/// # Errors
/// When a server uses the data, the log has a history, or what was written does not read back. The data are unchanged then.
pub fn to_log(folder: &Path, place: &LogPlace, scripts: Option<Folders>) -> Result<MoveReport, MoveError> {
    let store = place.store()?;
    let mut log = store.open()?;
    let (ends, lease) = (log.ends()?, log.lease()?);
    if ends.last > 0 || lease.epoch > 0 || log.snapshot()?.is_some() {
        return Err(refused(format!(
            "move to {}: it has a history of {} entries; expected an empty one",
            store.name(),
            ends.last
        )));
    }
    let database = folder.join("kelos.db");
    let mut file = SqliteStore::open(&database)?;
    let now = Timestamp::now();
    let taken = file.lease("kelos move", now, HOUR_MILLIS)?;
    let lease =
        taken.ok_or_else(|| refused(format!("move {}: a server uses it; stop that first", database.display())))?;
    let (files, left) = match scripts {
        Some(scripts) => write_files(&mut file, lease, scripts, now)?,
        None => Default::default(),
    };
    let before = file.restore()?;
    file.release(lease)?;
    let last = before.last_turn.ok_or_else(|| refused(format!("move {}: it is empty", database.display())))?;
    drop(file);
    // Sealed first, so that no server goes on with it; unsealed if the rest fails.
    SqliteState::of_embedded(&database, last.turn)?;
    let moved = put_state(&database, folder, &mut *log, last.turn).and_then(|bytes| {
        // Workers that run on have heard of a leader of this epoch.
        let begun = take_when_silent(&mut *log, "kelos move", None, lease.epoch)?;
        log.release(&begun)?;
        Ok(bytes)
    });
    match moved {
        Ok(bytes) => Ok(MoveReport { entry: last.turn, turn: Some(last), events: before.last_seq, bytes, files, left }),
        Err(error) => {
            SqliteState::into_embedded(&database)?;
            Err(error)
        }
    }
}

/// Puts a state into the log as its snapshot, and reads it back.
fn put_state(database: &Path, folder: &Path, log: &mut dyn Log, entry: u64) -> Result<u64, MoveError> {
    let mut state = SqliteState::open(database)?;
    let damaged = state.reader().damage(1)?;
    if let Some(what) = damaged.first() {
        return Err(refused(format!("move {}: {what}; see `kelos verify`", database.display())));
    }
    let (position, mut copy) = state.copy(folder)?;
    if position.entry != entry {
        return Err(refused(format!("move {}: it has changed meanwhile", database.display())));
    }
    let mut source = DigestStream::new(&mut *copy);
    log.put_snapshot(entry, &mut source)?;
    let (written, bytes) = source.sum();
    let mut target = DigestStream::new(std::io::sink());
    log.read_snapshot(entry, &mut target)?;
    if target.sum() != (written, bytes) {
        return Err(refused("read back what was written to the log: it is not the same"));
    }
    Ok(bytes)
}

/// Writes the scripts to the registers from which nodes have them. Returns their names, and those of files that are no text.
fn write_files(
    file: &mut SqliteStore,
    lease: kelos_store::Lease,
    scripts: Folders,
    at: Timestamp,
) -> Result<(Vec<String>, Vec<String>), MoveError> {
    let (texts, left) = SharedFiles::new(scripts).texts()?;
    write_registers(file, lease, registers_of(&texts), at)?;
    Ok((texts.into_keys().collect(), left))
}

fn write_registers(
    file: &mut SqliteStore,
    lease: kelos_store::Lease,
    registers: Vec<(String, String, Option<serde_json::Value>)>,
    at: Timestamp,
) -> Result<(), MoveError> {
    let first = file.restore()?.last_seq + 1;
    let by = Actor::system("move");
    let event = |(seq, (bucket, key, value)): (u64, &(String, String, Option<serde_json::Value>))| EventRecord {
        seq,
        at,
        previous: 0,
        event: Event::Register {
            bucket: bucket.clone(),
            key: key.clone(),
            value: value.clone(),
            by: Some(by.clone()),
            reason: None,
        },
    };
    let events = (first..).zip(&registers).map(event).collect();
    file.commit(lease, &Commit { at, events, registers, ..Commit::default() })?;
    Ok(())
}

/// Moves what a log has to the folder of the state of a node, which becomes the data of a server with its own log. The log is sealed: no
/// node leads on it any more.
///
/// # Errors
/// When a node leads, or the state can't follow the log to its end. The log goes on then.
pub fn to_file(place: &LogPlace, folder: &Path) -> Result<MoveReport, MoveError> {
    let store = place.store()?;
    let mut log = store.open()?;
    let database = folder.join("kelos.db");
    let mut state = SqliteState::open(&database)?;
    let lease = take_when_silent(&mut *log, "kelos move", Some(SEALED), 0)?;
    let moved = follow_to_end(&mut state, &mut *log, folder).and_then(|()| {
        SharedFiles::new(definitions(folder)?).follow(&*state.reader())?;
        let position = state.position()?;
        let snapshot = state.restore()?;
        let files = SharedFiles::new(definitions(folder)?).texts()?.0.into_keys().collect();
        let (entry, turn, events) = (position.entry, position.turn, snapshot.last_seq);
        Ok(MoveReport { entry, turn, events, bytes: 0, files, left: Vec::new() })
    });
    drop(state);
    match moved {
        Ok(report) => {
            SqliteState::into_embedded(&database)?;
            note_origin(&database)?;
            Ok(report)
        }
        Err(error) => {
            reopen(&mut *log, &lease)?;
            Err(error)
        }
    }
}

/// Notes in a file that it has the history of several nodes, which waits for consent there as it did in their log.
fn note_origin(database: &Path) -> Result<(), MoveError> {
    let mut file = SqliteStore::open(database)?;
    if !file.reader().removed_history()?.is_new {
        return Ok(());
    }
    let now = Timestamp::now();
    let lease = file.lease("kelos move", now, HOUR_MILLIS)?;
    let lease = lease.ok_or_else(|| refused(format!("change {}: another process uses it", database.display())))?;
    let origin = (HISTORY_BUCKET.to_owned(), SHARED.to_owned(), Some(serde_json::Value::Bool(true)));
    write_registers(&mut file, lease, vec![origin], now)?;
    Ok(file.release(lease)?)
}

/// How long the lease of a process with the same name is watched: it is renewed more often than that, if the process is alive.
const TWIN_WATCHED: Duration = Duration::from_millis(1500);

/// Refuses a log whose data were moved to a file, as its nodes would wait for a leader for ever, and one on which another process of the
/// same name leads.
pub(super) fn check_open(store: &dyn LogStore, node: &str) -> Result<(), LogError> {
    let refused = |why: String| Err(LogError::Corrupt { place: store.name(), what: why });
    let mut log = store.open()?;
    let lease = log.lease()?;
    if lease.holder.least == SEALED {
        let why = "`kelos move --from` has moved its data to a file, where a server with `--db` goes on; to come back, move that file to an \
                   empty log";
        return refused(why.to_owned());
    }
    if lease.epoch == 0 || lease.is_free || lease.holder.node != node {
        return Ok(());
    }
    std::thread::sleep(TWIN_WATCHED);
    let again = log.lease()?;
    if again == lease || again.is_free || again.holder.node != node {
        return Ok(());
    }
    let place = again.holder.address.map(|address| format!(" at {address}")).unwrap_or_default();
    refused(format!(
        "another process{place} leads as node {node}, and is alive; end it, or start this one with another --node and a folder of its own"
    ))
}

/// The error of a log that a node can't use.
pub(super) fn unusable(store: &dyn LogStore, error: &LogError) -> StoreError {
    let name = store.name();
    match error {
        LogError::Corrupt { what, .. } => StoreError::Medium { doing: format!("use {name}"), cause: what.clone() },
        error => StoreError::Medium { doing: format!("read the lease of {name}"), cause: error.to_string() },
    }
}

/// Takes the lease of a log on which no node leads, with an epoch beyond that of `after`. Programs that read less than `least` may not
/// lead from then on.
pub(super) fn take_when_silent(
    log: &mut dyn Log,
    node: &str,
    least: Option<u32>,
    after: u64,
) -> Result<LeaseRecord, MoveError> {
    let before = log.lease()?;
    if before.writes() > FORM {
        let writes = before.writes();
        return Err(refused(format!(
            "take over the log: it is written in form {writes}, and this program writes up to form {FORM}; use the program of its nodes"
        )));
    }
    if !before.is_free && before.epoch > 0 {
        std::thread::sleep(SILENCE);
        if log.lease()? != before {
            let leader = &before.holder.node;
            return Err(refused(format!("take over the log: the node {leader} leads; stop all nodes first")));
        }
    }
    // A new log begins with the forms of this program.
    let (writes, own) = if before.epoch == 0 { (FORM, FORM) } else { (before.writes(), before.least()) };
    let holder = Holder {
        node: node.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        writes,
        least: least.unwrap_or(own),
        after,
        ..Holder::default()
    };
    let taken = log.take(&before, nonce(), &holder)?;
    taken.ok_or_else(|| refused("take over the log: a node has just taken the lead; stop all nodes first"))
}

/// Lets nodes lead again on a log that was to be sealed.
fn reopen(log: &mut dyn Log, lease: &LeaseRecord) -> Result<(), MoveError> {
    let holder = Holder { least: lease.writes(), ..lease.holder.clone() };
    let now = log.lease()?;
    if let Some(again) = log.take(&now, nonce(), &holder)? {
        log.release(&again)?;
    }
    Ok(())
}

fn follow_to_end(state: &mut SqliteState, log: &mut dyn Log, folder: &Path) -> Result<(), MoveError> {
    loop {
        let after = state.position()?.entry;
        let entries = match log.read(after, PAGE) {
            Ok(entries) => entries,
            Err(LogError::RemovedHistory { .. }) => {
                adopt(state, log, folder)?;
                continue;
            }
            Err(other) => return Err(other.into()),
        };
        if entries.is_empty() {
            let last = log.ends()?.last;
            return match last == after {
                true => Ok(()),
                false => Err(StoreError::Ahead { local: after, log: last }.into()),
            };
        }
        for entry in &entries {
            match read_entry(entry, FORM)? {
                EntryBody::Plug(reign) => state.begin(entry.position, &reign)?,
                EntryBody::Turn { record, commit } => {
                    state.follow(entry.position, entry.epoch, &commit, &mut |followed| match *followed == record {
                        true => Ok(()),
                        false => Err(StoreError::Ahead { local: after, log: entry.position }),
                    })?;
                }
            }
        }
    }
}

fn adopt(state: &mut SqliteState, log: &mut dyn Log, folder: &Path) -> Result<(), MoveError> {
    let none = || refused("follow the log: its first entries are trimmed, and it has no snapshot");
    let position = log.snapshot()?.ok_or_else(none)?;
    let path = folder.join("snapshot.part");
    let failed = |error: std::io::Error| refused(format!("write {}: {error}", path.display()));
    let mut file = std::fs::File::create(&path).map_err(failed)?;
    log.read_snapshot(position, &mut file)?;
    let mut file = std::fs::File::open(&path).map_err(failed)?;
    let adopted = state.adopt(&mut file, folder, &mut |_| Ok(()));
    let _ = std::fs::remove_file(&path);
    Ok(adopted?)
}

/// Bytes on their way, with their digest.
struct DigestStream<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> DigestStream<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn sum(self) -> (Vec<u8>, u64) {
        (self.hash.finalize().to_vec(), self.bytes)
    }
}

impl<T: Read> Read for DigestStream<T> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.add(&buffer[..count]);
        Ok(count)
    }
}

impl<T: Write> Write for DigestStream<T> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use kelos_tls::Trust;

    use super::super::append_tail;
    use super::*;

    #[test]
    fn epochs_go_on_in_the_log_to_which_data_are_moved() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SqliteStore::open(folder.path().join("kelos.db")).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let lead = |file: &mut SqliteStore| file.lease("one", now, HOUR_MILLIS).unwrap().unwrap();
        for _ in 0..20 {
            let lease = lead(&mut file);
            file.release(lease).unwrap();
        }
        let lease = lead(&mut file);
        let register = ("b".to_owned(), "k".to_owned(), Some(serde_json::Value::Bool(true)));
        write_registers(&mut file, lease, vec![register], now).unwrap();
        drop(file);
        let log = folder.path().join("log");
        let place = LogPlace::new(&format!("file:{}", log.display()), &Trust::default());
        let begins = || {
            let begun = place.store().unwrap().open().unwrap().lease().unwrap();
            assert!(begun.is_free && begun.epoch > lease.epoch && begun.writes() == FORM, "{begun:?}");
        };
        to_log(folder.path(), &place, None).unwrap();
        begins();
        // The store lost everything.
        std::fs::remove_dir_all(&log).unwrap();
        append_tail(&place, folder.path(), None).unwrap();
        begins();
    }
}
