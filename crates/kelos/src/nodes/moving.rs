//! Moving between a file and a log: all of it, verified before the old place is sealed; and recovery from a log that lost its end.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::register::HISTORY_BUCKET;
use kelos_model::{Actor, Event, EventRecord, Run};
use kelos_sandbox::Folders;
use kelos_store::log::{
    EntryBody, FORM, Holder, LeaseRecord, LocalState, Log, LogError, LogStore, Reign, entry_bytes, read_entry,
};
use kelos_store::{Commit, Journal, StoreError, StoredState, TurnRecord};
use kelos_store_sqlite::{SqliteState, SqliteStore};
use sha2::{Digest as _, Sha256};

use super::files::{SharedFiles, definitions, registers_of};
use super::{FilesError, LogPlace, nonce};
use crate::history::SHARED;

/// A lease that is not renewed for so long is that of nobody.
const SILENCE: Duration = Duration::from_secs(4);

/// Entries that are read at a time.
const PAGE: usize = 512;

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

fn refused(what: impl Into<String>) -> MoveError {
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
    if let Some(scripts) = scripts {
        write_files(&mut file, lease, scripts, now)?;
    }
    let before = file.restore()?;
    file.release(lease)?;
    let last = before.last_turn.ok_or_else(|| refused(format!("move {}: it is empty", database.display())))?;
    drop(file);
    // Sealed first, so that no server goes on with it; unsealed if the rest fails.
    SqliteState::of_embedded(&database, last.turn)?;
    let moved = put_state(&database, folder, &mut *log, last.turn);
    match moved {
        Ok(bytes) => Ok(MoveReport { entry: last.turn, turn: Some(last), events: before.last_seq, bytes }),
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

/// Writes the scripts to the registers from which nodes have them.
fn write_files(
    file: &mut SqliteStore,
    lease: kelos_store::Lease,
    scripts: Folders,
    at: Timestamp,
) -> Result<(), MoveError> {
    write_registers(file, lease, registers_of(&SharedFiles::new(scripts).scripts()?), at)
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
    let lease = take_when_silent(&mut *log, "kelos move", Some(SEALED))?;
    let moved = follow_to_end(&mut state, &mut *log, folder).and_then(|()| {
        SharedFiles::new(definitions(folder)?).follow(&*state.reader())?;
        let position = state.position()?;
        let snapshot = state.restore()?;
        Ok(MoveReport { entry: position.entry, turn: position.turn, events: snapshot.last_seq, bytes: 0 })
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

/// Refuses a log whose data were moved to a file: its nodes would wait for a leader for ever.
pub(super) fn check_open(store: &dyn LogStore) -> Result<(), StoreError> {
    let lease = store.open().and_then(|mut log| log.lease());
    let unread = |error: LogError| StoreError::Medium {
        doing: format!("read the lease of {}", store.name()),
        cause: error.to_string(),
    };
    if lease.map_err(unread)?.holder.least < SEALED {
        return Ok(());
    }
    Err(StoreError::Medium {
        doing: format!("use {}", store.name()),
        cause: "`kelos move --from` has moved its data to a file, where a server with `--db` goes on; to come back, move that file to an \
                empty log"
            .to_owned(),
    })
}

/// Takes the lease of a log on which no node leads. Programs that read less than `least` may not lead from then on.
fn take_when_silent(log: &mut dyn Log, node: &str, least: Option<u32>) -> Result<LeaseRecord, MoveError> {
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
    let holder = Holder {
        node: node.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        writes: before.writes(),
        least: least.unwrap_or_else(|| before.least()),
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

/// The end of the state of a node that its log lacks.
#[derive(Debug, Clone)]
pub struct Tail {
    /// The last entry of the node.
    pub local: u64,
    /// The last entry of the log.
    pub log: u64,
    /// The runs that were live when the node saw them last: their commands may be at work.
    pub live: Vec<Run>,
}

/// Compares the state of a node, which does not run, with its log.
///
/// # Errors
/// When the log or the state can't be read.
pub fn tail(place: &LogPlace, folder: &Path) -> Result<Tail, MoveError> {
    let mut log = place.store()?.open()?;
    let mut state = SqliteState::open(folder.join("kelos.db"))?;
    Ok(Tail { local: state.position()?.entry, log: log.ends()?.last, live: state.restore()?.runs })
}

/// Makes the log what a node has: for a log that lost its end. All other nodes take the state over from there, and must not run
/// meanwhile.
///
/// # Errors
/// When a node leads, or the log fails; the same may be done again then.
pub fn append_tail(place: &LogPlace, folder: &Path) -> Result<MoveReport, MoveError> {
    let store = place.store()?;
    let mut log = store.open()?;
    let mut state = SqliteState::open(folder.join("kelos.db"))?;
    let position = state.position()?;
    let report = |entry, events| MoveReport { entry, turn: position.turn, events, bytes: 0 };
    let events = state.restore()?.last_seq;
    if log.ends()?.last == 0 {
        let (_, mut copy) = state.copy(folder)?;
        log.put_snapshot(position.entry, &mut copy)?;
        return Ok(report(position.entry, events));
    }
    let lease = take_when_silent(&mut *log, "kelos recover", None)?;
    let reign = Reign {
        epoch: lease.epoch,
        node: lease.holder.node.clone(),
        address: None,
        at: Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap_or_default(),
        reason: "what a node had was put into the log, which had lost it".to_owned(),
    };
    let plug = entry_bytes(lease.writes(), &EntryBody::Plug(reign.clone())).map_err(refused)?;
    // The numbers that were lost are passed over; what they were is in the snapshot.
    let next = log.ends()?.last.max(position.entry) + 1;
    for entry in log.ends()?.last + 1..=next {
        log.append(lease.epoch, entry, &plug)?;
    }
    for entry in position.entry + 1..=next {
        state.begin(entry, &reign)?;
    }
    let (_, mut copy) = state.copy(folder)?;
    log.put_snapshot(next, &mut copy)?;
    log.trim(next + 1)?;
    log.release(&lease)?;
    Ok(report(next, events))
}

/// Takes the log as it is: the state of the node is put aside, and begins anew from there. Returns where the state is now.
///
/// # Errors
/// When the node runs, or its files can't be renamed.
pub fn accept_loss(folder: &Path) -> Result<PathBuf, MoveError> {
    let database = folder.join("kelos.db");
    drop(SqliteState::open(&database)?);
    let aside = folder.join(format!("kelos.db.ahead-{}", Timestamp::now().as_second()));
    for end in ["", "-wal", "-shm"] {
        let with = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        match std::fs::rename(with(&database), with(&aside)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(refused(format!("rename {}: {error}", with(&database).display())));
            }
            _ => {}
        }
    }
    Ok(aside)
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
