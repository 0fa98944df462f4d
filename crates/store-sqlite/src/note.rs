//! The file beside the database: a lock that is released when its process dies, and one line that names its holder, the
//! end of its lease, and the end of the committed log.
//!
//! The line is written after each commit, without a flush: it outlives the process, and a machine that crashes may lose
//! the latest line; the one before claims less than is true.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file_identity::identity;
use super::wal::LogEnd;

/// Length of the line, its end included: always the same, so that it is replaced by one write.
const LENGTH: usize = 256;
/// Characters of the holder's name that are kept.
const NAME: usize = 64;
/// The number of attempts to lock a file that is replaced meanwhile.
const TRIES: usize = 8;

/// The content of the line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Note {
    /// The epoch that was in force.
    pub(super) epoch: u64,
    /// The end of the lease, in milliseconds since 1970; 0 if no process has it.
    pub(super) until: i64,
    /// The high-water mark: the position of the last event that was committed.
    pub(super) committed: u64,
    /// The end of the committed part of the write-ahead log.
    pub(super) log: LogEnd,
    /// The holder of the lease.
    pub(super) node: String,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoteState {
    /// Nothing: a program wrote it that keeps no note, or the machine went down before the line reached the disk.
    Nothing,
    /// A note.
    Note(Note),
    /// A line that no version of the program writes.
    Nonsense,
}

impl Note {
    /// Takes the name of who holds the lease.
    pub(super) fn name(&mut self, node: &str) {
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
        self.node = node.chars().take(NAME).map(plain).collect();
    }

    fn line(&self) -> Vec<u8> {
        let Note { epoch, until, committed, log: LogEnd { salts, frames }, node } = self;
        let said =
            format!("kelos 1 epoch {epoch} until {until} committed {committed} wal {salts:x}+{frames} by {node}");
        let line = format!("{said} check {:08x}", crc32fast::hash(said.as_bytes()));
        format!("{line:<width$}\n", width = LENGTH - 1).into_bytes()
    }

    fn parse(line: &[u8]) -> Option<Note> {
        let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
        let value = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied();
        let (salts, frames) = value("wal")?.split_once('+')?;
        let note = Note {
            epoch: value("epoch")?.parse().ok()?,
            until: value("until")?.parse().ok()?,
            committed: value("committed")?.parse().ok()?,
            log: LogEnd { salts: u64::from_str_radix(salts, 16).ok()?, frames: frames.parse().ok()? },
            node: value("by").filter(|word| *word != "check").unwrap_or_default().to_owned(),
        };
        // A line that parses to this note but is written differently was changed by another program.
        (note.line() == line).then_some(note)
    }

    /// Writes it into the file.
    pub(super) fn write(&self, file: &File) -> std::io::Result<()> {
        file.write_all_at(&self.line(), 0)
    }
}

/// Reads the note beside a database.
pub(super) fn read(path: &Path) -> std::io::Result<NoteState> {
    let mut line = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(2 * LENGTH as u64).read_to_end(&mut line)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(NoteState::Nothing),
        Err(error) => return Err(error),
    };
    if line.iter().all(|byte| *byte == 0) {
        return Ok(NoteState::Nothing);
    }
    Ok(Note::parse(&line).map_or(NoteState::Nonsense, NoteState::Note))
}

/// Locks the file and creates it if needed; none if another process has it locked.
pub(super) fn lock(path: &Path) -> std::io::Result<Option<File>> {
    for _ in 0..TRIES {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            // Another one may have come to its place meanwhile.
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Replaces a file that another process has locked by a new one, which is locked and has this note.
pub(super) fn replace(path: &Path, note: &Note) -> std::io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let beside = format!("lock.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let beside = path.with_extension(beside);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let placed = file
        .try_lock()
        .map_err(std::io::Error::from)
        .and_then(|()| note.write(&file))
        .and_then(|()| std::fs::rename(&beside, path));
    if placed.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    placed.map(|()| file)
}

/// Whether the file is the one at the path.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|known| identity(path) == Some((known.dev(), known.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Note {
        let log = LogEnd { salts: 0x1234_5678_9abc_def0, frames: 12 };
        Note { epoch: 3, until: 1_700_000_000_000, committed: 4711, log, node: "12@host".to_owned() }
    }

    #[test]
    fn a_note_reads_back_and_no_other_bit_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kelos.db.lock");
        assert_eq!(read(&path).unwrap(), NoteState::Nothing);
        let file = lock(&path).unwrap().unwrap();
        assert_eq!(read(&path).unwrap(), NoteState::Nothing);
        let mut unnamed = note();
        unnamed.name("");
        for note in [note(), Note::default(), unnamed] {
            note.write(&file).unwrap();
            assert_eq!(read(&path).unwrap(), NoteState::Note(note.clone()));
            let line = std::fs::read(&path).unwrap();
            for bit in 0..line.len() * 8 {
                let mut flipped = line.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Note::parse(&flipped), None, "bit {bit} of {note:?}");
            }
        }
        std::fs::write(&path, [0; LENGTH]).unwrap();
        assert_eq!(read(&path).unwrap(), NoteState::Nothing);
    }

    #[test]
    fn a_name_stays_one_word() {
        let mut note = note();
        note.name(&format!("a b\n{}", "x".repeat(100)));
        assert_eq!(note.node, format!("a_b_{}", "x".repeat(60)));
        assert_eq!(note.line().len(), LENGTH);
        note.epoch = u64::MAX;
        note.until = i64::MIN;
        note.committed = u64::MAX;
        note.log = LogEnd { salts: u64::MAX, frames: u64::MAX };
        assert_eq!(Note::parse(&note.line()), Some(note));
    }

    #[test]
    fn a_lock_is_held_once_and_a_file_in_its_place_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kelos.db.lock");
        let first = lock(&path).unwrap().unwrap();
        assert!(lock(&path).unwrap().is_none());
        let second = replace(&path, &note()).unwrap();
        assert!(!is_at(&first, &path) && is_at(&second, &path));
        assert!(lock(&path).unwrap().is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
        drop(second);
        assert!(lock(&path).unwrap().is_some());
        assert_eq!(read(&path).unwrap(), NoteState::Note(note()));
    }
}
