//! The mark of folders of runs that were bounded from their beginning.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The file that marks a folder that never had runs before history was bounded.
const MARK: &str = ".bounded";

/// Makes a folder for runs, and marks it as a new one; one that is there stays as it is.
///
/// # Errors
/// When it can't be made.
pub fn mark_new(root: &Path) -> io::Result<()> {
    if root.exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    fs::write(root.join(MARK), "history is bounded here from the beginning: kelos storage\n")
}

/// Whether a folder of runs never kept them for ever.
#[must_use]
pub fn is_new(root: &Path) -> bool {
    root.join(MARK).is_file() || !root.exists()
}
