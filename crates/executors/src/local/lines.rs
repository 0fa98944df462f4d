//! The output of a run as lines, each with its stream and its time.
//!
//! A line ends with a newline, or where the other stream goes on before it has ended: the output is shown in the order in
//! which it came. Its time is that at which its first byte came.

use std::path::Path;

use jiff::Timestamp;

use super::error::LocalError;
use super::log::{LogChunk, log_len, read_log, read_marks};
use super::marks::{Mark, Stream};

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The offset of its first byte in all output of the run.
    pub offset: u64,
    /// When its first byte came; not known of runs from before there were times.
    pub at: Option<Timestamp>,
    /// The stream that it was written to; not known like the time.
    pub stream: Option<Stream>,
    /// The bytes, without the end of the line.
    pub bytes: Vec<u8>,
    /// Whether it ends here: not if it goes on below, has not been ended yet, or its end was dropped.
    pub whole: bool,
}

/// Lines of an output that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLines {
    /// The lines. The last one is not whole and begins at `next_offset` if more of it may come.
    pub lines: Vec<LogLine>,
    /// The offset to continue at: always the beginning of a line, unless one is longer than what was asked for.
    pub next_offset: u64,
    /// The number of bytes between the requested offset and the first line that the size limit dropped.
    pub dropped: u64,
    /// The run has ended and nothing comes after these lines.
    pub ended: bool,
}

impl LogLines {
    /// The same, of a run that is over whatever its files say: what is unfinished will stay so.
    #[must_use]
    pub fn of_ended_run(mut self) -> LogLines {
        let unfinished = self.lines.last().filter(|last| last.offset == self.next_offset);
        if self.lines.is_empty() || unfinished.is_some() {
            self.next_offset += unfinished.map_or(0, |line| line.bytes.len() as u64);
            self.ended = true;
        }
        self
    }
}

/// Reads lines of up to `max_len` bytes in all from the output of the run in `dir`, from `offset` on.
pub fn read_lines(dir: &Path, offset: u64, max_len: usize) -> Result<LogLines, LocalError> {
    let piece = read_piece(dir, offset, max_len)?;
    // After the bytes: a mark is there before them.
    let marks = read_marks(dir)?;
    Ok(piece.lines(&marks))
}

/// Reads the last lines of the run in `dir`: up to `most` of them, of up to `max_len` bytes. The offset of the first one
/// says whether there are more.
pub fn last_lines(dir: &Path, most: usize, max_len: usize) -> Result<LogLines, LocalError> {
    let end = log_len(dir)?;
    let start = end.saturating_sub(max_len as u64);
    // From one byte before, so that a line which begins there is seen to begin.
    let mut read = read_lines(dir, start.saturating_sub(1), max_len.saturating_add(1))?;
    if start > 0 && read.dropped == 0 && read.lines.len() > 1 {
        read.lines.remove(0);
    }
    // A gap ends what is read at once, and below it there is more.
    while read.next_offset < end && read.lines.last().is_none_or(|last| last.offset < read.next_offset) {
        let more = read_lines(dir, read.next_offset, max_len)?;
        if more.lines.is_empty() {
            break;
        }
        if more.dropped > 0 {
            read.lines.clear();
        }
        read.lines.extend(more.lines);
        (read.next_offset, read.ended) = (more.next_offset, more.ended);
    }
    read.lines.drain(..read.lines.len().saturating_sub(most));
    read.dropped = 0;
    Ok(read)
}

/// Bytes that follow each other, maybe of several files.
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
    dropped: u64,
    /// Whether bytes are missing behind it, or the run is over: a line at its end is not continued.
    is_final: bool,
    /// Whether there was no more, rather than no more room.
    is_all: bool,
    ended: bool,
}

fn read_piece(dir: &Path, offset: u64, max_len: usize) -> Result<Piece, LocalError> {
    let LogChunk { offset: from, bytes, mut next_offset, dropped, mut ended } = read_log(dir, offset, max_len)?;
    let mut piece = Piece { offset: from, bytes, dropped, is_final: false, is_all: false, ended: false };
    while !ended && piece.bytes.len() < max_len {
        let chunk = read_log(dir, next_offset, max_len - piece.bytes.len())?;
        if chunk.dropped > 0 {
            piece.is_final = true;
            return Ok(piece);
        }
        ended = chunk.ended;
        if chunk.bytes.is_empty() {
            piece.is_all = true;
            break;
        }
        next_offset = chunk.next_offset;
        piece.bytes.extend(chunk.bytes);
    }
    (piece.is_final, piece.is_all) = (ended, piece.is_all || ended);
    piece.ended = ended;
    Ok(piece)
}

impl Piece {
    fn lines(self, marks: &[Mark]) -> LogLines {
        let end = self.offset + self.bytes.len() as u64;
        let mut read = LogLines { lines: Vec::new(), next_offset: end, dropped: self.dropped, ended: self.ended };
        let mut next_mark = marks.partition_point(|mark| mark.offset <= self.offset);
        let mut origin = marks[..next_mark].last().and_then(|mark| mark.origin);
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let offset = end - rest.len() as u64;
            while let Some(mark) = marks.get(next_mark).filter(|mark| mark.offset <= offset) {
                (origin, next_mark) = (mark.origin, next_mark + 1);
            }
            let stream = origin.map(|(stream, _)| stream);
            // Marks within the line are of its later bytes, unless they are of another stream.
            let other = marks[next_mark..].iter().find(|mark| mark.origin.map(|(stream, _)| stream) != stream);
            let until = other.map_or(end, |mark| mark.offset.min(end));
            let most = usize::try_from(until - offset).unwrap_or(rest.len());
            let (line, whole) = match rest[..most].iter().position(|byte| *byte == b'\n') {
                Some(newline) => (&rest[..=newline], true),
                None => (&rest[..most], false),
            };
            rest = &rest[line.len()..];
            let at = origin.and_then(|(_, at)| Timestamp::from_millisecond(at).ok());
            let bytes = if whole { without_end(line) } else { line }.to_vec();
            read.lines.push(LogLine { offset, at, stream, bytes, whole });
        }
        self.unfinished(&mut read);
        read
    }

    /// Settles a line that has not ended where the piece does.
    fn unfinished(&self, read: &mut LogLines) {
        let is_first = read.lines.len() == 1;
        let Some(last) = read.lines.last_mut().filter(|last| !last.whole && !self.is_final) else { return };
        match (self.is_all, is_first) {
            (true, _) => read.next_offset = last.offset,
            (false, false) => {
                read.next_offset = last.offset;
                read.lines.pop();
            }
            (false, true) => {
                let cut = last.bytes.len() - unfinished_char(&last.bytes);
                // Less than a character was asked for.
                if cut > 0 {
                    last.bytes.truncate(cut);
                    read.next_offset = last.offset + cut as u64;
                }
            }
        }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// How many bytes at the end of a text are the beginning of a character.
#[must_use]
pub fn unfinished_char(bytes: &[u8]) -> usize {
    match std::str::from_utf8(&bytes[bytes.len().saturating_sub(4)..]) {
        Ok(_) => 0,
        Err(_) => {
            let start = bytes.iter().rev().take(3).position(|byte| *byte >= 0xC0);
            let length = |first: u8| match first {
                0xF0.. => 4,
                0xE0.. => 3,
                _ => 2,
            };
            start.filter(|back| back + 1 < length(bytes[bytes.len() - 1 - back])).map_or(0, |back| back + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::log::LogWriter;
    use super::super::records;
    use super::*;
    use Stream::{Kelos, Stderr, Stdout};

    /// The output of a run that wrote these pieces.
    fn written(limit: u64, pieces: &[(Stream, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(dir.path(), limit);
        pieces.iter().for_each(|(stream, bytes)| writer.write(*stream, bytes));
        dir
    }

    fn end(dir: &Path) {
        fs::write(dir.join(records::EXIT), "{}").unwrap();
    }

    /// Streams, texts and a sign where the line is not whole.
    fn shown(read: &LogLines) -> Vec<String> {
        let text = |line: &LogLine| {
            let sign = if line.whole { "" } else { "…" };
            format!("{} {}{sign}", line.stream.map_or("?", Stream::as_str), String::from_utf8_lossy(&line.bytes))
        };
        read.lines.iter().map(text).collect()
    }

    #[test]
    fn lines_have_streams_and_times() {
        let pieces: &[(Stream, &[u8])] =
            &[(Stdout, b"one\ntwo\r\n"), (Stderr, b"bad\n\n"), (Stdout, b"three\n"), (Kelos, b"kelos: so\n")];
        let dir = written(1 << 20, pieces);
        let before = Timestamp::now();
        let read = read_lines(dir.path(), 0, 1000).unwrap();
        assert_eq!(
            shown(&read),
            ["stdout one", "stdout two", "stderr bad", "stderr ", "stdout three", "kelos kelos: so"]
        );
        assert_eq!((read.next_offset, read.dropped, read.ended), (30, 0, false));
        assert!(read.lines.iter().all(|line| line.at.is_some_and(|at| at <= before)));
        let offsets: Vec<u64> = read.lines.iter().map(|line| line.offset).collect();
        assert_eq!(offsets, [0, 4, 9, 13, 14, 20]);
        end(dir.path());
        assert!(read_lines(dir.path(), 14, 1000).unwrap().ended);
        assert_eq!(shown(&read_lines(dir.path(), 9, 1000).unwrap())[0], "stderr bad", "marks before hold");
    }

    #[test]
    fn a_line_has_the_time_of_its_first_byte() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("log"), "first half, second half\nnext\n").unwrap();
        let mut marker = super::super::marks::Marker::new(&dir.path().join("log"), 0, 1 << 20);
        marker.mark(0, Stdout, 1_000, true);
        marker.mark(11, Stdout, 2_000, true);
        let read = read_lines(dir.path(), 0, 1000).unwrap();
        let times: Vec<i64> = read.lines.iter().map(|line| line.at.unwrap().as_millisecond()).collect();
        assert_eq!(times, [1_000, 2_000]);
    }

    #[test]
    fn a_line_that_goes_on_below_the_other_stream_says_so() {
        let dir = written(1 << 20, &[(Stdout, b"50 %"), (Stderr, b"slow\n"), (Stdout, b" 100 %\n")]);
        let read = read_lines(dir.path(), 0, 1000).unwrap();
        assert_eq!(shown(&read), ["stdout 50 %…", "stderr slow", "stdout  100 %"]);
    }

    #[test]
    fn an_unfinished_line_is_read_again_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(dir.path(), 1 << 20);
        writer.write(Stdout, b"done\nhalf");
        let read = read_lines(dir.path(), 0, 1000).unwrap();
        assert_eq!((shown(&read), read.next_offset), (vec!["stdout done".into(), "stdout half…".into()], 5));
        writer.write(Stdout, b" and half\n");
        let read = read_lines(dir.path(), read.next_offset, 1000).unwrap();
        assert_eq!((shown(&read), read.next_offset), (vec!["stdout half and half".to_owned()], 19));
        writer.write(Stdout, b"the end");
        end(dir.path());
        let read = read_lines(dir.path(), 19, 1000).unwrap();
        assert_eq!((shown(&read), read.next_offset, read.ended), (vec!["stdout the end…".to_owned()], 26, true));
    }

    #[test]
    fn long_lines_come_in_parts_of_whole_characters() {
        let text = "é".repeat(1000);
        let dir = written(1 << 20, &[(Stdout, b"x\n"), (Stdout, text.as_bytes()), (Stderr, b"bad\n")]);
        let (mut offset, mut all) = (0, Vec::new());
        loop {
            let read = read_lines(dir.path(), offset, 101).unwrap();
            let last = read.lines.last().unwrap();
            assert!(last.offset < read.next_offset && std::str::from_utf8(&last.bytes).is_ok());
            all.extend(read.lines.iter().flat_map(|line| line.bytes.clone()));
            if last.bytes == b"bad" {
                break;
            }
            offset = read.next_offset;
        }
        assert_eq!(String::from_utf8(all).unwrap(), format!("x{text}bad"));
        // Less than a character, and no text at all.
        assert_eq!(read_lines(dir.path(), 2, 1).unwrap().next_offset, 3);
        let dir = written(1 << 20, &[(Stdout, &[0xc3; 300])]);
        assert_eq!(read_lines(dir.path(), 0, 100).unwrap().next_offset, 99);
    }

    #[test]
    fn lines_go_on_from_file_to_file_and_end_at_a_gap() {
        let line = b"0123456789\n";
        let all: Vec<u8> = line.iter().copied().cycle().take(11 * 3000).collect();
        let dir = written(4096, &[(Stdout, &all)]);
        let head = read_lines(dir.path(), 2030, 1000).unwrap();
        assert_eq!((shown(&head).len(), head.next_offset), (3, 2048), "the rest of its last line is dropped");
        let tail = read_lines(dir.path(), 2048, 100_000).unwrap();
        assert!(tail.dropped > 20_000 && tail.lines.len() > 90 && tail.lines.iter().all(|line| line.at.is_some()));
        assert_eq!(tail.next_offset, 33_000);
        let last = last_lines(dir.path(), 3, 100_000).unwrap();
        assert_eq!(shown(&last), ["stdout 0123456789"; 3]);
        assert_eq!((last.lines[0].offset, last.next_offset), (32_967, 33_000));
        assert_eq!(last_lines(dir.path(), 9999, 110).unwrap().lines.len(), 10, "whole lines alone");
        assert!(last_lines(dir.path(), 9999, 100_000).unwrap().lines[0].offset > 30_000, "nothing from before the gap");
    }

    #[test]
    fn output_from_before_has_neither_times_nor_streams() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("log"), "one\ntwo\n").unwrap();
        let read = read_lines(dir.path(), 0, 1000).unwrap();
        assert_eq!(shown(&read), ["? one", "? two"]);
        assert_eq!(last_lines(&dir.path().join("none"), 10, 10).unwrap(), LogLines::default());
    }

    #[test]
    fn only_the_beginning_of_a_character_is_held_back() {
        let text = "aé€😀".as_bytes();
        let held: Vec<usize> = (0..=text.len()).map(|end| unfinished_char(&text[..end])).collect();
        assert_eq!(held, [0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0]);
        assert_eq!(unfinished_char(b"\xff\xfe\x80\x80\x80"), 0, "what is no text at all is not held back");
    }
}
