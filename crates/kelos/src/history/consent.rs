//! The consent to remove folders: it comes with folders that are new, and by request with those of before.

use std::path::PathBuf;

use kelos_executors::local::is_new;
use kelos_model::register::HISTORY_BUCKET;
use kelos_store::{Queries, StoreError};

/// The register that somebody's consent is kept in.
pub const AGREED: &str = "agreed";

/// The register that is set where a database has the history of several nodes, which waits for somebody's consent.
pub(crate) const SHARED: &str = "shared";

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

/// The consent to remove folders below these.
pub(super) fn consent(roots: &[PathBuf], reader: &dyn Queries) -> Result<Consent, StoreError> {
    if reader.register(HISTORY_BUCKET, AGREED)?.is_some() {
        return Ok(Consent::Agreed);
    }
    Ok(if roots.iter().all(|root| is_new(root)) { Consent::New } else { Consent::Missing })
}
