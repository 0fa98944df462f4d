//! Reading files of users: only regular files, up to a size, and within a time limit.
//!
//! A folder of users can hold anything: a FIFO without a writer, a device without an end, a file on an unreachable
//! server.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kelos_model::json::{MARK, MARKS_OF_16};
use rustix::fs::OFlags;

/// The time limit for one answer of a file system.
const PATIENCE: Duration = Duration::from_secs(5);
/// Threads that may be kept by file systems that don't answer; then nothing is asked until one does.
const MOST_STUCK: usize = 4;
/// The problem with a file that does not exist; completes "the file …".
pub(crate) const NOT_THERE: &str = "is not there";
/// Threads that wait for further work.
const MOST_IDLE: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<Sender<Work>>> = Mutex::new(Vec::new());
static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Reads a whole file that has at most so many bytes.
///
/// # Errors
/// In words that complete "the file …": it is not there, is no file, is longer, or can't be read in time.
pub fn read_file(path: &Path, longest: u64) -> Result<Vec<u8>, String> {
    let owned = path.to_owned();
    let read = in_time(PATIENCE, move || read_now(&owned, longest));
    read.unwrap_or_else(|error| Err(unreadable(&error)))
}

/// The text of a file of at most so many bytes, without the byte order mark that it may begin with.
///
/// # Errors
/// The errors of [`read_file`], and if the file isn't UTF-8 text.
pub fn read_text(path: &Path, longest: u64) -> Result<Arc<str>, String> {
    let mut bytes = read_file(path, longest)?;
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    if MARKS_OF_16.iter().any(|mark| bytes.starts_with(mark)) {
        return Err("begins with the byte order mark of UTF-16, expected UTF-8".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("is not UTF-8 text: the first bad byte is in line {line}")
    })?;
    if let Some(at) = text.find('\0') {
        let before = &text[..at];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        return Err(format!("contains a NUL character in line {line}, column {column}"));
    }
    Ok(text.into())
}

/// Whether a file may exist; also true if the file system can't tell.
pub(crate) fn may_be_there(path: &Path) -> bool {
    let owned = path.to_owned();
    !matches!(in_time(PATIENCE, move || owned.try_exists()), Ok(Ok(false)))
}

/// Runs a question to the file system on a thread of its own, with a time limit.
///
/// # Errors
/// The error of the file system, and `TimedOut` if it does not answer within five seconds.
pub fn answered<T: Send + 'static>(ask: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    in_time(PATIENCE, ask)?
}

fn read_now(path: &Path, longest: u64) -> Result<Vec<u8>, String> {
    // Before it is opened, because that can mean something to a device.
    judge(&fs::metadata(path).map_err(|error| unreadable(&error))?, longest)?;
    let file = open(path).map_err(|error| unreadable(&error))?;
    // By now the path may name another file than the one that was opened.
    judge(&file.metadata().map_err(|error| unreadable(&error))?, longest)?;
    let mut bytes = Vec::new();
    file.take(longest.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > longest {
        return Err(too_long(longest));
    }
    Ok(bytes)
}

/// Opens a file without waiting for a writer at its other end.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or(0)).open(path)
}

fn judge(meta: &Metadata, longest: u64) -> Result<(), String> {
    let kind = meta.file_type();
    let found = match () {
        () if kind.is_file() && meta.len() > longest => return Err(too_long(longest)),
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    };
    Err(format!("is {found}, expected a file"))
}

fn too_long(longest: u64) -> String {
    format!("is longer than {longest} bytes")
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => NOT_THERE.to_owned(),
        _ => format!("can't be read: {error}"),
    }
}

/// Has a thread do what a file system can keep it from ending. A thread that is kept is left alone.
fn in_time<T: Send + 'static>(patience: Duration, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if STUCK.load(Ordering::Relaxed) >= MOST_STUCK {
        let why = format!("{MOST_STUCK} earlier files are still waited for");
        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
    }
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let thread = idle.map_or_else(begin, Ok)?;
    let (answer, answered) = channel();
    let done: Work = Box::new(move || {
        if answer.send(work()).is_err() {
            // The question timed out before.
            STUCK.fetch_sub(1, Ordering::Relaxed);
        }
    });
    thread.send(done).map_err(|_| io::Error::other("the thread for files is gone"))?;
    match answered.recv_timeout(patience) {
        Ok(answer) => {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MOST_IDLE {
                idle.push(thread);
            }
            Ok(answer)
        }
        Err(RecvTimeoutError::Timeout) => {
            STUCK.fetch_add(1, Ordering::Relaxed);
            let why = format!("its file system did not answer within {} seconds", patience.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread for files is gone")),
    }
}

/// Starts a thread that works until its sender is dropped.
fn begin() -> io::Result<Sender<Work>> {
    let (thread, works): (Sender<Work>, Receiver<Work>) = channel();
    let work = move || works.into_iter().for_each(|work| work());
    std::thread::Builder::new().name("kelos-files".to_owned()).spawn(work)?;
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    /// A FIFO in a folder of scripts kept the server from starting.
    #[test]
    fn only_files_are_read_and_never_more_than_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let told = |name: &str| read_text(&at(name), 1000).map(|text| text.to_string());
        assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        File::create(at("sparse")).unwrap().set_len(5 << 30).unwrap();
        fs::write(at("file"), "text").unwrap();
        fs::write(at("latin"), b"a\nb\xe9").unwrap();
        for (name, to) in [
            ("zero", "/dev/zero"),
            ("self", "self"),
            ("link", "file"),
            ("to-fifo", "fifo"),
            ("proc", "/proc/self/environ"),
            ("nowhere", "gone"),
        ] {
            symlink(to, at(name)).unwrap();
        }
        for (name, expected) in [
            ("fifo", "is a FIFO, expected a file"),
            ("to-fifo", "is a FIFO, expected a file"),
            ("socket", "is a socket, expected a file"),
            ("zero", "is a device, expected a file"),
            ("folder", "is a folder, expected a file"),
            ("sparse", "is longer than 1000 bytes"),
            ("nowhere", "is not there"),
            ("latin", "is not UTF-8 text: the first bad byte is in line 2"),
        ] {
            assert_eq!(told(name).unwrap_err(), expected, "{name}");
        }
        assert!(told("self").unwrap_err().starts_with("can't be read: "));
        assert_eq!(told("link").as_deref(), Ok("text"));
        assert_eq!(read_file(&at("file"), 3).unwrap_err(), "is longer than 3 bytes");
        // A file of unknown length is read up to the limit.
        assert!(read_file(&at("proc"), 1).is_err());
    }

    #[test]
    fn a_file_system_that_does_not_answer_is_not_waited_for() {
        let (release, held) = channel::<()>();
        let told = in_time(Duration::from_millis(10), move || held.recv()).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::TimedOut);
        assert_eq!(in_time(PATIENCE, || 1).unwrap(), 1, "others are answered meanwhile");
        drop(release);
    }
}
