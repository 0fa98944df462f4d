//! The consent to remove folders: it comes with folders that are new, and by request with those of before.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use kelos_model::register::HISTORY_BUCKET;
use kelos_store::{Queries, StoreError};

/// The register that somebody's consent is kept in.
pub const AGREED: &str = "agreed";

/// The file that marks a folder that never had runs before history was bounded.
const MARK: &str = ".bounded";

/// The consent to remove folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The folders are new: they never were kept for ever.
    New,
    /// Somebody agreed.
    Agreed,
    /// There is no consent yet.
    Missing,
}

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

/// The consent to remove folders below these.
pub(super) fn consent(roots: &[PathBuf], reader: &dyn Queries) -> Result<Consent, StoreError> {
    if reader.register(HISTORY_BUCKET, AGREED)?.is_some() {
        return Ok(Consent::Agreed);
    }
    let is_new = |root: &PathBuf| root.join(MARK).is_file() || !root.exists();
    Ok(if roots.iter().all(is_new) { Consent::New } else { Consent::Missing })
}
