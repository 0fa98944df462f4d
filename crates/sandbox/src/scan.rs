//! Looking at a folder, reading as little as possible.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::files;

/// A file that was changed this recently may change again without its stamp showing it.
const SETTLED: Duration = Duration::from_secs(2);

/// Scripts in a folder, and other things, at most.
const MOST_ENTRIES: usize = 100_000;

/// The suffix of the names of test files.
pub const TEST_FILE: &str = ".test.js";

/// The metadata by which a changed file is recognised.
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
        let path = path.to_owned();
        let meta = files::answered(move || fs::metadata(path))?;
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
    let folder = folder.to_owned();
    files::answered(move || names_in(&folder))
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for (count, entry) in fs::read_dir(folder)?.enumerate() {
        if count >= MOST_ENTRIES {
            return Err(io::Error::other(format!("it holds more than {MOST_ENTRIES} files")));
        }
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

/// The text of a script, or what is wrong with it; completes "the file …".
pub(crate) fn script_text(folder: &Path, name: &str, longest: u64) -> Result<Arc<str>, String> {
    let is_replaced = name.contains(char::REPLACEMENT_CHARACTER);
    files::read_text(&folder.join(name), longest).map_err(|why| match is_replaced {
        true => "has a name that is not UTF-8, expected one that is".to_owned(),
        false => why,
    })
}
