//! The write-ahead log, as far as it has to be known outside SQLite: which part of it is committed, and whether that
//! part is complete.
//!
//! SQLite treats a truncated log as one that ends there: after a crash it can't know that more was written. So the end
//! is noted elsewhere, and compared. The format is documented at <https://www.sqlite.org/fileformat2.html#walformat>.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kelos_store::StoreError;

use super::fault::Fault;

const HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// The end of the committed part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LogEnd {
    /// Drawn anew whenever the log is begun anew; 0 of none.
    pub(super) salts: u64,
    /// The number of committed frames.
    pub(super) frames: u64,
}

/// The log of a database, read beside SQLite, which takes no locks on this file.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    end: LogEnd,
}

/// The header of a log.
#[derive(Debug, Clone, Copy)]
struct Header {
    salts: u64,
    page: u64,
    sums: (u32, u32),
    is_big_endian: bool,
}

impl Log {
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: None, end: LogEnd::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The end when the log was last followed.
    pub(super) fn end(&self) -> LogEnd {
        self.end
    }

    /// Continues to the last commit in the log, after a commit. Fails if the header is gone.
    pub(super) fn follow(&mut self) -> Result<LogEnd, Fault> {
        let Some(header) = self.header()? else {
            return Err(Fault::Damaged("its write-ahead log lost its head while it was in use".to_owned()));
        };
        if self.end.salts != header.salts {
            self.end = LogEnd { salts: header.salts, frames: 0 };
        }
        let mut next = self.end.frames;
        let mut head = [0; 16];
        while self.read(&mut head, HEADER + next * (FRAME_HEADER + header.page))? {
            if salts(&head[8..16]) != header.salts {
                break;
            }
            next += 1;
            if word(&head[4..8]) != 0 {
                self.end.frames = next;
            }
        }
        Ok(self.end)
    }

    /// Fails when less is left of the log than was committed.
    pub(super) fn is_whole(&mut self) -> Result<(), Fault> {
        let Some(header) = self.header()?.filter(|header| header.salts == self.end.salts) else { return Ok(()) };
        let needed = HEADER + self.end.frames * (FRAME_HEADER + header.page);
        let length = self.open()?.map_or(Ok(0), |file| file.metadata().map(|known| known.len()));
        if length.map_err(|error| self.unreadable(&error))? < needed {
            return Err(Fault::Damaged("its write-ahead log was cut while it was in use".to_owned()));
        }
        Ok(())
    }

    /// Reads the log from its head, with all its check values, and gives where the last commit ends.
    pub(super) fn walk(&mut self) -> Result<LogEnd, Fault> {
        self.file = None;
        self.end = LogEnd::default();
        let Some(header) = self.header()? else { return Ok(self.end) };
        self.end.salts = header.salts;
        let mut frame = vec![0; usize::try_from(FRAME_HEADER + header.page).unwrap_or(0)];
        let (mut sums, mut next) = (header.sums, 0);
        while self.read(&mut frame, HEADER + next * (FRAME_HEADER + header.page))? {
            let (head, page) = frame.split_at(24);
            sums = summed(sums, &head[..8], header.is_big_endian);
            sums = summed(sums, page, header.is_big_endian);
            if salts(&head[8..16]) != header.salts || sums != (word(&head[16..20]), word(&head[20..24])) {
                break;
            }
            next += 1;
            if word(&head[4..8]) != 0 {
                self.end.frames = next;
            }
        }
        Ok(self.end)
    }

    /// The head of the log; none where there is no log, or no head that makes sense.
    fn header(&mut self) -> Result<Option<Header>, Fault> {
        let mut bytes = [0; HEADER as usize];
        if !self.read(&mut bytes, 0)? {
            return Ok(None);
        }
        let magic = word(&bytes[..4]);
        let is_big_endian = magic & 1 == 1;
        let sums = summed((0, 0), &bytes[..24], is_big_endian);
        let is_one = magic & !1 == 0x377f_0682 && sums == (word(&bytes[24..28]), word(&bytes[28..32]));
        let page = u64::from(word(&bytes[8..12]));
        Ok((is_one && page >= 512).then(|| Header { salts: salts(&bytes[16..24]), page, sums, is_big_endian }))
    }

    /// Fills the buffer from a place on; false where the file ends before.
    fn read(&mut self, buffer: &mut [u8], at: u64) -> Result<bool, Fault> {
        let Some(file) = self.open()? else { return Ok(false) };
        match file.read_exact_at(buffer, at) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    fn open(&mut self) -> Result<Option<&File>, Fault> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
        Ok(self.file.as_ref())
    }

    fn unreadable(&self, error: &std::io::Error) -> Fault {
        StoreError::Medium { doing: format!("read {}", self.path.display()), cause: error.to_string() }.into()
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn salts(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// SQLite's check value over words of four bytes, two at a time.
fn summed((mut first, mut second): (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    for pair in bytes.chunks_exact(8) {
        first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
        second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
    }
    (first, second)
}
