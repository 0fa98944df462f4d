//! The identity of files: a path may come to name another file, or none.

use std::path::{Path, PathBuf};

use super::fault::Fault;

/// A file that is in use, and the path by which it was opened.
#[derive(Debug)]
pub(super) struct FilePlace {
    path: PathBuf,
    what: &'static str,
    identity: Option<(u64, u64)>,
}

impl FilePlace {
    /// The file that is at `path` now. `what` names it in messages.
    pub(super) fn of(path: &Path, what: &'static str) -> Self {
        // The working directory may change.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let identity = identity(&path);
        Self { path, what, identity }
    }

    /// Fails if the path no longer names this file.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let now = identity(&self.path);
        if now == self.identity {
            return Ok(());
        }
        let (what, became) = (self.what, if now.is_some() { "replaced" } else { "deleted" });
        Err(Fault::Damaged(format!(
            "{what} was {became} while it was in use: put it back, or restart to begin with what is there"
        )))
    }
}

/// The device and inode number of a file; none if there is no file at `path`.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
