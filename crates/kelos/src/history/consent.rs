//! The consent to remove history: it comes with what is new, and by request with what is from before or was made old by a leap of the clock.

use std::path::PathBuf;

use jiff::Timestamp;
use kelos_engine::leap::{ClockLeap, leap};
use kelos_executors::local::is_new;
use kelos_model::history::Term;
use kelos_model::register::HISTORY_BUCKET;
use kelos_store::{Queries, StoreError};

/// The register that somebody's consent is kept in.
pub const AGREED: &str = "agreed";

/// The register that is set where a database has the history of several nodes, which waits for somebody's consent.
pub(crate) const SHARED: &str = "shared";

/// The register of the last turn that was taken only to show that the leader runs.
pub(super) const SEEN: &str = "seen";

/// The consent to remove history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// No consent is needed: what there is is new, and never was kept for ever.
    New,
    /// It was given by somebody.
    Agreed,
    /// There is no consent yet.
    Missing,
    /// It is missing since the clock has leapt.
    Leapt(ClockLeap),
}

impl Consent {
    /// Whether history may be removed.
    #[must_use]
    pub fn is_given(self) -> bool {
        matches!(self, Consent::New | Consent::Agreed)
    }

    /// The leap of the clock that makes it wait.
    #[must_use]
    pub fn leap(self) -> Option<ClockLeap> {
        match self {
            Consent::Leapt(leap) => Some(leap),
            Consent::New | Consent::Agreed | Consent::Missing => None,
        }
    }
}

/// The consent to remove history that is new, or not; `term` has the terms on which it is kept, if it is not kept for ever.
pub(super) fn consent(
    reader: &dyn Queries,
    term: Option<&Term>,
    now: Timestamp,
    is_new: impl FnOnce() -> Result<bool, StoreError>,
) -> Result<Consent, StoreError> {
    let agreed = reader.register(HISTORY_BUCKET, AGREED)?;
    // Agreement from before a leap was not about it. One that does not say when it was made is from before.
    let at = agreed.as_ref().and_then(|agreed| agreed.get("at")?.as_str()?.parse::<Timestamp>().ok());
    let leap = term.map_or(Ok(None), |term| leap(reader, term, now))?;
    if let Some(leap) = leap.filter(|leap| at.is_none_or(|at| at < leap.to)) {
        return Ok(Consent::Leapt(leap));
    }
    Ok(match (agreed, is_new()?) {
        (Some(_), _) => Consent::Agreed,
        (None, true) => Consent::New,
        (None, false) => Consent::Missing,
    })
}

/// Whether folders are new.
pub(super) fn are_new(roots: &[PathBuf]) -> bool {
    roots.iter().all(|root| is_new(root))
}
