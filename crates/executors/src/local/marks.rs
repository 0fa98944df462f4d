//! Where each part of an output comes from, and when it came: marks beside the bytes.
//!
//! The bytes of an output stay as the command wrote them. Beside each of its files lies one with marks, `log.marks` beside
//! `log`: a mark is the offset from which on bytes were written to another stream, or later, than those before. It is two
//! numbers, in bytes of seven bits, the lowest first: the distance from the mark before and the stream, and the difference
//! of their times. A mark reaches its file before the bytes that it is about, so whoever reads the bytes first has all
//! marks of them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The ending of a file of marks, after the name of the file with the bytes.
const ENDING: &str = ".marks";

/// Of a file's room for bytes, its marks may take this part.
const SHARE: u64 = 4;

/// More than a mark, and the one that says that no more follow, ever need.
const LONGEST: usize = 48;

/// The stream that output was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Kelos itself, about the run.
    Kelos,
}

impl Stream {
    /// All streams.
    pub const ALL: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Kelos];

    /// Its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
            Stream::Kelos => "kelos",
        }
    }
}

/// From an offset on, the stream and the time of the bytes; neither is known of output without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) offset: u64,
    /// The stream, and the milliseconds since 1970.
    pub(crate) origin: Option<(Stream, i64)>,
}

/// The marks of the bytes in this file.
pub(crate) fn path(bytes: &Path) -> PathBuf {
    let mut name = bytes.as_os_str().to_owned();
    name.push(ENDING);
    name.into()
}

/// The marks of a file of bytes that begins at `start`. Never empty: what has no mark has an unknown origin.
pub(crate) fn read(bytes: &Path, start: u64) -> io::Result<Vec<Mark>> {
    let encoded = match fs::read(path(bytes)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        result => result?,
    };
    let mut marks = vec![Mark { offset: start, origin: None }];
    let (mut rest, mut offset, mut time) = (encoded.as_slice(), start, 0_i64);
    while let Some((mark, after)) = decode(rest, &mut offset, &mut time) {
        marks.push(mark);
        rest = after;
    }
    Ok(marks)
}

/// A mark from the front of `bytes`; none if there is no whole one.
fn decode<'a>(bytes: &'a [u8], offset: &mut u64, time: &mut i64) -> Option<(Mark, &'a [u8])> {
    let (first, rest) = number(bytes)?;
    let (second, rest) = number(rest)?;
    *offset = offset.checked_add(first >> 2)?;
    *time = time.wrapping_add((second >> 1).cast_signed() ^ -(second & 1).cast_signed());
    let stream = match first & 3 {
        0 => Some(Stream::Stdout),
        1 => Some(Stream::Stderr),
        2 => Some(Stream::Kelos),
        _ => None,
    };
    Some((Mark { offset: *offset, origin: stream.map(|stream| (stream, *time)) }, rest))
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let value = bytes[..length].iter().rev().fold(0, |value: u64, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, &bytes[length..]))
}

fn push_number(encoded: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        encoded.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    encoded.push(value as u8);
}

/// Writes the marks of one file of bytes.
///
/// Like the bytes, they never fail for the caller. A mark that can't be written is made up for by the next one.
#[derive(Debug)]
pub(crate) struct Marker {
    path: PathBuf,
    file: Option<File>,
    /// The bytes that are written, and those for which there is room.
    written: u64,
    room: u64,
    /// The last mark that is written: what the next one is told apart from.
    last: Mark,
    time: i64,
    /// From here on a mark is missing.
    missing: Option<u64>,
    full: bool,
}

impl Marker {
    /// The marks of a file of bytes that begins at `start` and has `room` for bytes. Its file comes with the first mark.
    pub(crate) fn new(bytes: &Path, start: u64, room: u64) -> Self {
        let last = Mark { offset: start, origin: None };
        let room = (room / SHARE).max(LONGEST as u64);
        Self { path: path(bytes), file: None, written: 0, room, last, time: 0, missing: None, full: false }
    }

    /// Marks the bytes from `offset` on, if they need it. The time of bytes with which no line begins is not kept.
    pub(crate) fn mark(&mut self, offset: u64, stream: Stream, at_ms: i64, begins_line: bool) {
        let is_new = match self.last.origin {
            Some((last, time)) => last != stream || (begins_line && time != at_ms),
            None => true,
        };
        if self.full || !(is_new || self.missing.is_some()) {
            return;
        }
        let mut encoded = Vec::with_capacity(LONGEST);
        let (mut last, mut time) = (self.last.offset, self.time);
        let mut encode = |mark: Mark| {
            let (code, at) = match mark.origin {
                Some((stream, at)) => (stream as u64, at),
                None => (3, time),
            };
            push_number(&mut encoded, (mark.offset - last) << 2 | code);
            let difference = at.wrapping_sub(time);
            push_number(&mut encoded, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
            (last, time) = (mark.offset, at);
        };
        if let Some(missing) = self.missing {
            encode(Mark { offset: missing, origin: None });
        }
        self.full = self.written + LONGEST as u64 > self.room;
        let mark = Mark { offset, origin: (!self.full).then_some((stream, at_ms)) };
        encode(mark);
        match self.write(&encoded) {
            Ok(()) => (self.last, self.time, self.missing) = (mark, time, None),
            Err(_) => {
                self.full = false;
                self.missing.get_or_insert(offset);
            }
        }
    }

    /// Writes all of it or nothing: after half a mark, all others would be read wrongly.
    fn write(&mut self, encoded: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::create(&self.path)?),
        };
        if let Err(error) = file.write_all(encoded) {
            file.set_len(self.written)?;
            io::Seek::seek(file, io::SeekFrom::Start(self.written))?;
            return Err(error);
        }
        self.written += encoded.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(offset: u64, stream: Stream, at_ms: i64) -> Mark {
        Mark { offset, origin: Some((stream, at_ms)) }
    }

    #[test]
    fn marks_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = dir.path().join("log.tail.1000");
        let mut marker = Marker::new(&bytes, 1000, 1 << 20);
        let now = 1_763_900_000_000;
        let all = [
            mark(1000, Stream::Stdout, now),
            mark(1010, Stream::Stderr, now),
            mark(1011, Stream::Kelos, now + 86_400_000),
            // A clock that was put back, and one that nobody has set.
            mark(1 << 40, Stream::Stdout, now - 5),
            mark((1 << 40) + 1, Stream::Stderr, -1),
        ];
        for Mark { offset, origin } in all {
            let (stream, at) = origin.unwrap();
            marker.mark(offset, stream, at, true);
        }
        assert_eq!(read(&bytes, 1000).unwrap()[1..], all);
        assert_eq!(read(&bytes, 1000).unwrap()[0], Mark { offset: 1000, origin: None });
        assert!(fs::metadata(path(&bytes)).unwrap().len() < 50, "they are small");
    }

    #[test]
    fn only_what_changes_is_marked() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = dir.path().join("log");
        let mut marker = Marker::new(&bytes, 0, 1 << 20);
        marker.mark(0, Stream::Stdout, 5, true);
        marker.mark(10, Stream::Stdout, 5, true);
        marker.mark(20, Stream::Stdout, 6, false);
        marker.mark(30, Stream::Stdout, 6, true);
        marker.mark(40, Stream::Stderr, 6, false);
        let expected = [mark(0, Stream::Stdout, 5), mark(30, Stream::Stdout, 6), mark(40, Stream::Stderr, 6)];
        assert_eq!(read(&bytes, 0).unwrap()[1..], expected);
    }

    #[test]
    fn marks_take_a_part_of_the_room_and_say_when_they_stop() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = dir.path().join("log");
        let mut marker = Marker::new(&bytes, 0, 2048);
        for offset in 0..2048 {
            let stream = if offset % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
            marker.mark(offset, stream, i64::try_from(offset).unwrap() * 1000, true);
        }
        assert!(fs::metadata(path(&bytes)).unwrap().len() <= 512);
        let marks = read(&bytes, 0).unwrap();
        assert!(marks.len() > 100);
        assert_eq!(marks.last().unwrap().origin, None, "what follows is not taken for the last that was marked");
    }

    #[test]
    fn damaged_marks_end_where_they_are_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = dir.path().join("log");
        assert_eq!(read(&bytes, 7).unwrap(), [Mark { offset: 7, origin: None }], "a run from before");
        for (encoded, marks) in [(&[0x04, 0x02, 0x84][..], 1), (&[0xff; 40], 0), (&[0x00; 4], 2), (&[0x80], 0)] {
            fs::write(path(&bytes), encoded).unwrap();
            assert_eq!(read(&bytes, 0).unwrap().len(), 1 + marks, "{encoded:?}");
        }
    }

    #[test]
    fn a_mark_that_could_not_be_written_is_made_up_for() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = dir.path().join("log");
        let mut marker = Marker::new(&bytes, 0, 1 << 20);
        marker.mark(0, Stream::Stdout, 5, true);
        // As on a full disk.
        let good = marker.file.replace(File::open(path(&bytes)).unwrap());
        marker.mark(10, Stream::Stderr, 6, true);
        marker.mark(20, Stream::Stdout, 7, true);
        marker.file = good;
        marker.mark(30, Stream::Stdout, 8, true);
        let expected = [mark(0, Stream::Stdout, 5), Mark { offset: 10, origin: None }, mark(30, Stream::Stdout, 8)];
        assert_eq!(read(&bytes, 0).unwrap()[1..], expected);
    }
}
