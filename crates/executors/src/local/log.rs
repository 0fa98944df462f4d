//! The output of a run on disk: its head and its tail, with the bytes in between dropped once there
//! are too many.
//!
//! Every byte ever written has an offset, kept or not. `log` holds the bytes from 0 on; once it is
//! full, the output goes on in segments named by the offset of their first byte,
//! `log.tail.<offset>`, of which the newest two stay. The names and lengths of the files are all
//! there is to know, so there is nothing to repair after a crash. Beside each lie its [marks](super::marks).

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use kelos_engine::secrets::{Mask, MaskStream};

use super::error::{At, LocalError};
use super::marks::{self, Mark, Marker, Stream};
use super::records;

const HEAD: &str = "log";
const TAIL_PREFIX: &str = "log.tail.";

/// Bytes at the end of an output in which its last line is searched.
const LAST_LINE_SEARCHED: u64 = 4096;

/// The most letters of a last line.
const LONGEST_LINE: usize = 300;

/// Tail segments that stay: the newest one, and a full one so that the tail never is nearly empty.
const TAIL_SEGMENTS: usize = 2;

/// Less would make a file of every few lines.
const SMALLEST_LIMIT: u64 = 4096;

/// The number of attempts to read when a segment disappears meanwhile.
const READ_ATTEMPTS: usize = 20;

/// A piece of a run's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// The offset of the first byte. Higher than requested if the bytes there were dropped.
    pub offset: u64,
    /// The output. Empty when there is no more for now.
    pub bytes: Vec<u8>,
    /// The offset to continue at.
    pub next_offset: u64,
    /// The number of bytes between the requested offset and `offset` that the size limit dropped.
    pub dropped: u64,
    /// The run has ended and nothing comes after this chunk.
    pub ended: bool,
}

/// Reads up to `max_len` bytes of the output of the run in `dir`, from `offset` on.
///
/// Offsets count every byte that the command wrote, so they stay valid while the middle of a long
/// output is dropped.
pub fn read_log(dir: &Path, offset: u64, max_len: usize) -> Result<LogChunk, LocalError> {
    // In this order: what is written before the end is in the files by the time the end is seen.
    let ended = dir.join(records::EXIT).exists();
    let mut attempt = 1;
    loop {
        match try_read(dir, offset, max_len, ended) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < READ_ATTEMPTS => attempt += 1,
            result => return result.at("read the log in", dir),
        }
    }
}

/// The last line that is not empty of what the run in `dir` has written so far, without control characters; none where there is no
/// output. A long line is cut.
pub fn last_line(dir: &Path) -> Result<Option<String>, LocalError> {
    let end = log_len(dir)?;
    let mut from = end.saturating_sub(LAST_LINE_SEARCHED);
    let mut bytes = Vec::new();
    // A read ends with its segment, and the last line may be in the next one.
    while from < end {
        let chunk = read_log(dir, from, LAST_LINE_SEARCHED as usize)?;
        if chunk.bytes.is_empty() {
            break;
        }
        from = chunk.next_offset;
        bytes.extend(chunk.bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().rev().map(printable).find(|line| !line.is_empty()))
}

/// A line without escape sequences and other control characters, and no longer than a line of text is.
fn printable(line: &str) -> String {
    let mut pieces = line.split('\x1b');
    let first = pieces.next().unwrap_or_default().to_owned();
    // A sequence such as `[31m` ends with its first letter.
    let plain = pieces.fold(first, |plain, piece| {
        let rest = piece.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| !c.is_ascii_alphabetic()));
        plain + rest.map_or(piece, |rest| rest.get(1..).unwrap_or_default())
    });
    let visible = plain.replace(char::is_control, " ");
    visible.trim().chars().take(LONGEST_LINE).collect()
}

/// The number of bytes that the run in `dir` has written so far, dropped ones included.
pub fn log_len(dir: &Path) -> Result<u64, LocalError> {
    let segments = segments(dir).at("read the log in", dir)?;
    Ok(segments.last().map_or(0, Segment::end))
}

fn try_read(dir: &Path, offset: u64, max_len: usize, ended: bool) -> io::Result<LogChunk> {
    let segments = segments(dir)?;
    let end = segments.last().map_or(0, Segment::end);
    let Some(segment) = segments.iter().find(|segment| segment.end() > offset) else {
        return Ok(LogChunk { offset, bytes: Vec::new(), next_offset: offset, dropped: 0, ended });
    };
    let start = offset.max(segment.start);
    let mut file = File::open(&segment.path)?;
    file.seek(SeekFrom::Start(start - segment.start))?;
    let mut bytes = Vec::new();
    file.take(max_len as u64).read_to_end(&mut bytes)?;
    let next_offset = start + bytes.len() as u64;
    Ok(LogChunk { offset: start, bytes, next_offset, dropped: start - offset, ended: ended && next_offset >= end })
}

/// The marks of all that is kept of the output in `dir`, in the order of their offsets.
pub(crate) fn read_marks(dir: &Path) -> Result<Vec<Mark>, LocalError> {
    let mut all = Vec::new();
    for segment in segments(dir).at("read the log in", dir)? {
        all.extend(marks::read(&segment.path, segment.start).at("read the marks of", &segment.path)?);
    }
    Ok(all)
}

struct Segment {
    start: u64,
    len: u64,
    path: PathBuf,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// The files of the log in the order of their offsets. A segment that disappears meanwhile is left
/// out.
fn segments(dir: &Path) -> io::Result<Vec<Segment>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(start) = name.to_str().and_then(start_of) else {
            continue;
        };
        match entry.metadata() {
            Ok(metadata) => segments.push(Segment { start, len: metadata.len(), path: entry.path() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    segments.sort_by_key(|segment| segment.start);
    Ok(segments)
}

fn start_of(name: &str) -> Option<u64> {
    if name == HEAD { Some(0) } else { name.strip_prefix(TAIL_PREFIX)?.parse().ok() }
}

/// Writes the log of a run within its limit.
///
/// Writing never fails for the caller: a command must not break because a disk is full. Bytes that can't be written
/// count as dropped, and the writer continues with a new segment as soon as the disk allows it.
#[derive(Debug)]
pub(crate) struct LogWriter {
    dir: PathBuf,
    limit: u64,
    /// Bytes seen so far.
    offset: u64,
    /// The file that is written to.
    current: Option<Open>,
    /// Whether the last byte ended a line.
    at_line_start: bool,
    /// Tail segments on disk, oldest first.
    tail: Vec<PathBuf>,
    complained: bool,
    /// The masks of secrets for standard output and standard error; none for a run without secrets.
    masks: Option<Masks>,
}

/// The masks of the two streams of a command, each of which may cut a secret in pieces.
#[derive(Debug)]
struct Masks {
    mask: Mask,
    stdout: MaskStream,
    stderr: MaskStream,
}

/// An open file of the log.
#[derive(Debug)]
struct Open {
    file: File,
    /// How much still fits into it.
    room: u64,
    marker: Marker,
}

/// A piece of output as it came.
struct Arrival<'a> {
    stream: Stream,
    at_ms: i64,
    bytes: &'a [u8],
    begins_line: bool,
}

impl LogWriter {
    /// Starts an empty log: half of the limit for the head, a quarter for each segment of the tail.
    /// Files come with the first byte.
    pub(crate) fn new(dir: &Path, limit: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            limit: limit.max(SMALLEST_LIMIT),
            offset: 0,
            current: None,
            at_line_start: true,
            tail: Vec::new(),
            complained: false,
            masks: None,
        }
    }

    /// The same, with secrets hidden in what is written.
    pub(crate) fn hiding(mut self, mask: Mask) -> Self {
        self.masks = (!mask.is_empty()).then(|| Masks { stdout: mask.stream(), stderr: mask.stream(), mask });
        self
    }

    /// The mask of what is written.
    pub(crate) fn mask(&self) -> Mask {
        self.masks.as_ref().map(|masks| masks.mask.clone()).unwrap_or_default()
    }

    /// Takes the next bytes of the output, which come now.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        match &mut self.masks {
            None => self.write_plain(stream, bytes),
            Some(masks) => {
                let shown = match stream {
                    Stream::Stdout => masks.stdout.push(bytes),
                    Stream::Stderr => masks.stderr.push(bytes),
                    Stream::Kelos => masks.mask.text(&String::from_utf8_lossy(bytes)).into_bytes(),
                };
                self.write_plain(stream, &shown);
            }
        }
    }

    /// Writes what was held back because it might have been the beginning of a secret: nothing follows.
    pub(crate) fn finish(&mut self) {
        let Some(masks) = &mut self.masks else { return };
        let (stdout, stderr) = (masks.stdout.finish(), masks.stderr.finish());
        self.write_plain(Stream::Stdout, &stdout);
        self.write_plain(Stream::Stderr, &stderr);
    }

    fn write_plain(&mut self, stream: Stream, mut bytes: &[u8]) {
        let at_ms = records::now_ms();
        while !bytes.is_empty() {
            let inner = &bytes[..bytes.len() - 1];
            let begins_line = self.at_line_start || inner.contains(&b'\n');
            match self.write_some(&Arrival { stream, at_ms, bytes, begins_line }) {
                Ok(written) => {
                    self.at_line_start = bytes[..written].ends_with(b"\n");
                    bytes = &bytes[written..];
                }
                Err(error) => {
                    self.complain_once(&error);
                    self.current = None;
                    self.at_line_start = bytes.ends_with(b"\n");
                    self.offset += bytes.len() as u64;
                    return;
                }
            }
            if self.current.as_ref().is_some_and(|open| open.room == 0) {
                self.current = None;
            }
        }
    }

    fn write_some(&mut self, piece: &Arrival<'_>) -> io::Result<usize> {
        let written = match &mut self.current {
            Some(open) => open.write(self.offset, piece)?,
            None if self.offset == 0 => self.open_head(piece)?,
            None => self.open_segment(piece)?,
        };
        self.offset += written as u64;
        Ok(written)
    }

    fn open_head(&mut self, piece: &Arrival<'_>) -> io::Result<usize> {
        let mut open = Open::create(&self.dir.join(HEAD), 0, self.limit / 2)?;
        let written = open.write(0, piece)?;
        self.current = Some(open);
        Ok(written)
    }

    /// Old segments go only once the new one holds something, so a full disk doesn't cost the tail
    /// that is there.
    fn open_segment(&mut self, piece: &Arrival<'_>) -> io::Result<usize> {
        let path = self.dir.join(format!("{TAIL_PREFIX}{}", self.offset));
        let mut open = Open::create(&path, self.offset, self.limit / 4)?;
        let written = open.write(self.offset, piece).inspect_err(|_| remove(&path))?;
        self.tail.push(path);
        self.current = Some(open);
        while self.tail.len() > TAIL_SEGMENTS {
            remove(&self.tail.remove(0));
        }
        Ok(written)
    }

    fn complain_once(&mut self, error: &io::Error) {
        if !self.complained {
            self.complained = true;
            self.complain(&format!("failed to write the log, some output is lost: {error}"));
        }
    }

    /// Keeps what is wrong with the run next to its log.
    pub(crate) fn complain(&self, complaint: &str) {
        records::complain(&self.dir, complaint);
    }
}

impl Open {
    fn create(path: &Path, start: u64, room: u64) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, room, marker: Marker::new(path, start, room) })
    }

    /// Writes what fits of a piece that begins at `offset`, and before that its mark.
    fn write(&mut self, offset: u64, piece: &Arrival<'_>) -> io::Result<usize> {
        self.marker.mark(offset, piece.stream, piece.at_ms, piece.begins_line);
        let len = piece.bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        loop {
            match self.file.write(&piece.bytes[..len]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.room -= written as u64;
                    return Ok(written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Removes a file of the log with its marks.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(marks::path(path));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte `i` of the output, so that every kept byte can be checked.
    fn byte(i: u64) -> u8 {
        (i.wrapping_mul(2_654_435_761) >> 7) as u8
    }

    fn written(dir: &Path, limit: u64, total: u64, piece: usize) {
        let mut writer = LogWriter::new(dir, limit);
        let bytes: Vec<u8> = (0..total).map(byte).collect();
        bytes.chunks(piece).for_each(|piece| writer.write(Stream::Stdout, piece));
    }

    /// Reads all there is: (kept bytes, dropped bytes).
    fn read_all(dir: &Path, max_len: usize) -> (u64, u64) {
        let (mut offset, mut kept, mut dropped) = (0, 0, 0);
        loop {
            let chunk = read_log(dir, offset, max_len).unwrap();
            if chunk.bytes.is_empty() {
                return (kept, dropped);
            }
            let expected: Vec<u8> = (chunk.offset..chunk.next_offset).map(byte).collect();
            assert_eq!(chunk.bytes, expected);
            assert_eq!(chunk.offset, offset + chunk.dropped);
            kept += chunk.bytes.len() as u64;
            dropped += chunk.dropped;
            offset = chunk.next_offset;
        }
    }

    #[test]
    fn the_last_line_is_plain_text() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last_line(dir.path()).unwrap(), None, "nothing was written");
        let last = |text: &[u8]| {
            fs::write(dir.path().join(HEAD), text).unwrap();
            last_line(dir.path()).unwrap()
        };
        assert_eq!(last(b"first\nno file a.csv\n\n  \n").as_deref(), Some("no file a.csv"));
        assert_eq!(last(b"\x1b[1;31merror:\x1b[0m bad\tinput\r\n").as_deref(), Some("error: bad input"));
        assert_eq!(last("\u{1b}\u{1b}[é".as_bytes()), None, "broken sequences have no text");
        assert_eq!(last(b"\n\n"), None);
        assert_eq!(last(&[b'x'; 9000]).map(|line| line.len()), Some(LONGEST_LINE));
        assert_eq!(last(&[0xff, b'a']).as_deref(), Some("\u{fffd}a"));
    }

    #[test]
    fn nothing_is_dropped_within_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), 8192, 8192, 100);
        assert_eq!(read_all(dir.path(), 333), (8192, 0));
        assert_eq!(log_len(dir.path()).unwrap(), 8192);
    }

    #[test]
    fn head_and_tail_stay_beyond_the_limit() {
        for (total, piece) in [(8193, 1000), (100_000, 7), (100_000, 65_536), (1_000_003, 4096)] {
            let dir = tempfile::tempdir().unwrap();
            written(dir.path(), 8192, total, piece);
            let (kept, dropped) = read_all(dir.path(), 1000);
            assert_eq!(kept + dropped, total);
            assert!((8192 * 3 / 4 - 8..=8192).contains(&kept), "{kept} of {total} kept");
            assert_eq!(read_log(dir.path(), 0, 5000).unwrap().bytes.len(), 4096, "the head is half of the limit");
            let last = read_log(dir.path(), total - 1, 10).unwrap();
            assert_eq!((last.bytes, last.next_offset), (vec![byte(total - 1)], total));
            assert_eq!(log_len(dir.path()).unwrap(), total);
        }
    }

    #[test]
    fn the_end_is_told_with_the_last_chunk() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), 8192, 6000, 100);
        assert!(!read_log(dir.path(), 6000, 10).unwrap().ended);
        fs::write(dir.path().join(records::EXIT), "{}").unwrap();
        assert!(!read_log(dir.path(), 0, 8192).unwrap().ended, "the tail comes after the head");
        assert!(read_log(dir.path(), 4096, 8192).unwrap().ended);
        assert!(read_log(dir.path(), 9999, 10).unwrap().ended);
    }

    #[test]
    fn a_run_without_output_has_an_empty_log() {
        let dir = tempfile::tempdir().unwrap();
        let chunk = read_log(&dir.path().join("none"), 0, 10).unwrap();
        assert_eq!(chunk, LogChunk { offset: 0, bytes: vec![], next_offset: 0, dropped: 0, ended: false });
    }
}
