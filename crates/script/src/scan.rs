//! Looking at a folder, reading as little as possible.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A file that was changed this recently may change again without its stamp showing it.
const SETTLED: Duration = Duration::from_secs(2);

/// How the names of test files end.
pub const TEST_FILE: &str = ".test.js";

/// What a file's metadata says about its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
    /// Whether the same stamp later means the same content.
    settled: bool,
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> io::Result<Stamp> {
        let meta = fs::metadata(path)?;
        let modified = meta.modified().ok();
        let age = modified.and_then(|at| SystemTime::now().duration_since(at).ok());
        Ok(Stamp { length: meta.len(), modified, inode: inode(&meta), settled: age.is_some_and(|age| age > SETTLED) })
    }

    /// Whether the content is surely what it was when `earlier` was taken.
    pub(crate) fn same_content(&self, earlier: &Stamp) -> bool {
        earlier.settled && self == earlier
    }
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// The names of all scripts directly in a folder, sorted. Hidden files, test files and folders are none.
pub(crate) fn script_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A name that is not UTF-8 is shown as well as it can be, and then can't be read.
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".js") && !name.ends_with(TEST_FILE) && !name.starts_with('.') && !entry.file_type()?.is_dir()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The text of a file, or what is wrong with it; completes "the file …".
pub(crate) fn read_text(path: &Path, longest: u64) -> Result<Arc<str>, String> {
    let describe = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("can't be read: {error}"),
    };
    let file = fs::File::open(path).map_err(describe)?;
    let mut bytes = Vec::new();
    file.take(longest + 1).read_to_end(&mut bytes).map_err(describe)?;
    if bytes.len() as u64 > longest {
        return Err(format!("is longer than {longest} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("is not UTF-8 text: the first bad byte is in line {line}")
    })?;
    if text.contains('\0') {
        return Err("contains a NUL character".to_owned());
    }
    Ok(text.into())
}
