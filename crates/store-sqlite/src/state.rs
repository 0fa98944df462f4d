//! The state of a node in a SQLite file: it follows a log, and answers what is read on this node.
//!
//! The file is a copy of what the log says, and nothing waits for the disk: after a power failure its last turns may be missing, and
//! are followed once more.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kelos_model::{FactKey, Recall, Run};
use kelos_store::log::{LocalState, Position, Reign};
use kelos_store::{
    Commit, Lease, Queries, SlotRow, Snapshot, StoreError, StoredState, TurnRecord, UnreadableRow, Watch,
};
use rusqlite::backup::Backup;
use rusqlite::{Connection, TransactionBehavior};

use super::fault::Fault;
use super::leader::Leadership;
use super::reader::SqliteReader;
use super::watch::FileWatch;
use super::writer::Writer;
use super::{connection, epochs, followed, lock_path, open, trim, turns};

/// The state of a node in a SQLite file.
#[derive(Debug)]
pub struct SqliteState {
    place: Arc<str>,
    writer: Writer,
    reader: Arc<SqliteReader>,
    /// Locked as long as the node lives: two nodes need two files.
    _lock: Leadership,
}

impl SqliteState {
    /// Opens the file, and makes it where it is missing.
    ///
    /// # Errors
    /// When another process uses it, it has a history that is not of a log, or it can't be read and written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let place: Arc<str> = path.display().to_string().into();
        let mut lock = Leadership::of(lock_path(path));
        let opened = open_state(path, &mut lock);
        let conn = opened.map_err(|fault| fault.tell("open", &place))?;
        let reader = Arc::new(SqliteReader::new(path.to_owned(), Arc::clone(&place)));
        Ok(Self { place, writer: Writer::new(conn, path), reader, _lock: lock })
    }

    /// Makes a file that has its own log the state of a node which has followed a log up to a position.
    ///
    /// # Errors
    /// When a process uses the file, or it can't be written.
    pub fn of_embedded(path: impl AsRef<Path>, entry: u64) -> Result<(), StoreError> {
        change(path.as_ref(), |conn| {
            followed::is_own_log(conn, &path.as_ref().display().to_string())?;
            followed::write(conn, entry, epochs::current(conn)?)
        })
    }

    /// Makes the state of a node a file that has its own log.
    ///
    /// # Errors
    /// When a process uses the file, or it can't be written.
    pub fn into_embedded(path: impl AsRef<Path>) -> Result<(), StoreError> {
        change(path.as_ref(), followed::leave)
    }

    fn told<T>(&self, doing: &str, outcome: Result<T, Fault>) -> Result<T, StoreError> {
        outcome.map_err(|fault| fault.tell(doing, &self.place))
    }
}

fn open_state(path: &Path, lock: &mut Leadership) -> Result<Connection, Fault> {
    drop(open::writer(path, lock)?);
    if !lock.try_lock()? {
        return Err(in_use(path));
    }
    let conn = connection::follower(path)?;
    if followed::read(&conn)?.is_none() {
        if turns::last(&conn)?.is_some() {
            return Err(StoreError::Medium {
                doing: format!("use {} as the state of a node", path.display()),
                cause:
                    "it has a history of its own; bring that to the store with `kelos move`, or choose another folder"
                        .to_owned(),
            }
            .into());
        }
        followed::write(&conn, 0, 0)?;
    }
    Ok(conn)
}

fn in_use(path: &Path) -> Fault {
    let cause = "another process uses it; each node needs a folder of its own".to_owned();
    StoreError::Medium { doing: format!("lock {}", path.display()), cause }.into()
}

/// Changes a file that no process uses.
fn change(path: &Path, what: impl FnOnce(&Connection) -> Result<(), Fault>) -> Result<(), StoreError> {
    let mut lock = Leadership::of(lock_path(path));
    let outcome = open::writer(path, &mut lock).and_then(|mut conn| {
        if !lock.try_lock()? {
            return Err(in_use(path));
        }
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        what(&tx)?;
        tx.commit()?;
        // The note is about the database from now on: a log that it followed counts epochs of its own.
        lock.accept(&conn)
    });
    outcome.map_err(|fault| fault.tell("change", &path.display().to_string()))
}

impl StoredState for SqliteState {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.reader.restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        self.reader.recall(recall)
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.reader.recall_runs(seqs)
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.reader.known_facts(names)
    }

    fn unreadable(&self) -> Vec<UnreadableRow> {
        self.reader.met_unreadable()
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        let watch = FileWatch::new(self.reader.path(), Arc::clone(&self.place));
        self.told("watch", watch).map(|watch| Box::new(watch) as Box<dyn Watch>)
    }

    fn reader(&self) -> Arc<dyn Queries> {
        Arc::clone(&self.reader) as Arc<dyn Queries>
    }
}

impl LocalState for SqliteState {
    fn position(&mut self) -> Result<Position, StoreError> {
        let outcome = position(&self.writer.conn);
        self.told("read", outcome)
    }

    fn begin(&mut self, entry: u64, reign: &Reign) -> Result<(), StoreError> {
        self.reader.is_sound()?;
        let outcome = begin(&mut self.writer, entry, reign);
        self.told("write to", outcome)
    }

    fn follow(
        &mut self,
        entry: u64,
        epoch: u64,
        commit: &Commit,
        confirm: &mut dyn FnMut(&TurnRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.reader.is_sound()?;
        let outcome = self.writer.follow(entry, Lease { epoch }, commit, confirm);
        self.told("write to", outcome)
    }

    fn test_write(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.reader.is_sound()?;
        test_file(&folder.join("test.part"))?;
        let outcome = write_again(&mut self.writer);
        self.told("write to", outcome)
    }

    fn reigns(&mut self, limit: usize) -> Result<Vec<Reign>, StoreError> {
        let outcome = followed::reigns(&self.writer.conn, limit);
        self.told("read", outcome)
    }

    fn copy(&mut self, folder: &Path) -> Result<(Position, Box<dyn Read + Send>), StoreError> {
        let outcome = Copy::begin(self.reader.path(), folder.join("copy.part"));
        let (position, copy) = self.told("copy", outcome)?;
        Ok((position, Box::new(copy)))
    }

    fn adopt(
        &mut self,
        copy: &mut dyn Read,
        folder: &Path,
        check: &mut dyn FnMut(Position) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let path = folder.join("adopt.part");
        let outcome = adopt(&mut self.writer, copy, &path, check);
        remove(&path);
        self.told("replace", outcome)
    }
}

/// Bytes that a test writes: those of a turn with some output.
const TESTED: usize = 1 << 20;

/// Writes a file that exists for a moment, and flushes it to the disk. The database alone may still have room in pages of its own.
fn test_file(path: &Path) -> Result<(), StoreError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(&vec![0; TESTED])?;
        file.sync_all()
    });
    remove(path);
    let cause = |error: std::io::Error| error.to_string();
    written.map_err(|error| StoreError::Medium { doing: format!("write {}", path.display()), cause: cause(error) })
}

/// Writes the position of the node as it is.
fn write_again(writer: &mut Writer) -> Result<(), Fault> {
    let tx = writer.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some((entry, epoch)) = followed::read(&tx)? {
        followed::write(&tx, entry, epoch)?;
    }
    Ok(tx.commit()?)
}

fn position(conn: &Connection) -> Result<Position, Fault> {
    let (entry, epoch) = followed::read(conn)?.unwrap_or_default();
    Ok(Position { entry, epoch, turn: turns::last(conn)? })
}

fn begin(writer: &mut Writer, entry: u64, reign: &Reign) -> Result<(), Fault> {
    let tx = writer.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    followed::advance(&tx, entry)?;
    followed::write(&tx, entry, reign.epoch)?;
    followed::write_reign(&tx, reign)?;
    epochs::put(&tx, reign.epoch, &reign.node, reign.at.as_millisecond())?;
    Ok(tx.commit()?)
}

/// Copies another database over this one, so that connections that are open read the new content.
fn adopt(
    writer: &mut Writer,
    copy: &mut dyn Read,
    path: &Path,
    check: &mut dyn FnMut(Position) -> Result<(), StoreError>,
) -> Result<(), Fault> {
    let written = File::create(path).and_then(|mut file| {
        std::io::copy(copy, &mut file)?;
        file.flush()
    });
    written.map_err(|error| unusable("write", path, &error))?;
    let place = path.display().to_string();
    let mut source = Connection::open(path)?;
    // While nodes are upgraded one after the other, that of the leader may be the older program.
    super::schema::migrate(&mut source, super::schema::STEPS, &place)?;
    if followed::read(&source)?.is_none() {
        return Err(Fault::Damaged("the snapshot is not the state of a node".to_owned()));
    }
    check(position(&source)?)?;
    is_past_of(&writer.conn, &source)?;
    writer.forget();
    let backup = Backup::new(&source, &mut writer.conn)?;
    backup.step(-1)?;
    Ok(())
}

/// Fails if a copy lacks the last turn or the last plug of this state, or has another one in its place.
fn is_past_of(own: &Connection, copy: &Connection) -> Result<(), Fault> {
    let (here, there) = (position(own)?, position(copy)?);
    let has_turn = match here.turn {
        // The records of turns that were removed there were those of all nodes.
        Some(last) => last.turn < trim::read(copy)?.turn || turns::at(copy, last.turn)? == Some(last),
        None => true,
    };
    let has_plug = match followed::reigns(own, 1)?.pop() {
        Some(last) => followed::may_have_had(copy, &last)?,
        None => true,
    };
    match has_turn && has_plug {
        true => Ok(()),
        false => Err(StoreError::Ahead { local: here.entry, log: there.entry }.into()),
    }
}

fn unusable(doing: &str, path: &Path, error: &std::io::Error) -> Fault {
    StoreError::Medium { doing: format!("{doing} {}", path.display()), cause: error.to_string() }.into()
}

/// Removes a file that existed for a moment, with those that SQLite put beside it.
fn remove(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let _ = std::fs::remove_file(PathBuf::from(name));
    }
}

/// A copy of the state as it was at one moment. It is made when it is first read, while the node goes on.
struct Copy {
    source: Connection,
    path: PathBuf,
    file: Option<File>,
}

impl Copy {
    fn begin(source: &Path, path: PathBuf) -> Result<(Position, Self), Fault> {
        let source = connection::reader(source)?;
        // The transaction begins with what it reads first, and stays open.
        source.execute_batch("BEGIN")?;
        let position = position(&source)?;
        Ok((position, Self { source, path, file: None }))
    }

    fn make(&self) -> Result<File, Fault> {
        remove(&self.path);
        let mut target = Connection::open(&self.path)?;
        let backup = Backup::new(&self.source, &mut target)?;
        backup.step(-1)?;
        drop(backup);
        // One file is the whole copy.
        target.pragma_update(None, "journal_mode", "DELETE")?;
        drop(target);
        File::open(&self.path).map_err(|error| unusable("read", &self.path, &error))
    }
}

impl Read for Copy {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let place = self.path.display().to_string();
                let made = self.make().map_err(|fault| std::io::Error::other(fault.tell("copy", &place)))?;
                self.file.insert(made)
            }
        };
        file.read(buffer)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        remove(&self.path);
    }
}
