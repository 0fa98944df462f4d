//! The history in the database: what of it goes, and the requests by which it does.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_core::{SetRegister, TrimHistory};
use kelos_engine::leap::LOOK_OF_LIFE;
use kelos_engine::trimming::TrimLook;
use kelos_engine::{AskError, Handle, Status};
use kelos_model::Actor;
use kelos_model::history::{Term, Trim};
use kelos_model::register::HISTORY_BUCKET;
use kelos_store::{PageRequest, Queries, StoreError};
use serde_json::json;
use tokio::runtime::Handle as Runtime;

use super::archive::{Archive, ArchiveError};
use super::consent::{Consent, SEEN, SHARED, consent};
use super::pause::Pause;

/// Has a signed checkpoint made that vouches for the log up to now.
pub type Vouch = Box<dyn Fn() -> Result<(), String> + Send>;

/// A look at the database that failed. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub(super) enum DatabaseError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No checkpoint can be made.
    #[error("make a checkpoint before history is removed: {0}")]
    Checkpoint(String),
    /// The archive can't be written before.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The scheduler does not remove it.
    #[error("remove history: {0}")]
    Refused(#[from] AskError),
}

/// Figures of a look at the history in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFigures {
    /// When it began.
    pub at: Timestamp,
    /// The duration of the look.
    pub took: Duration,
    /// Whether history may be removed.
    pub consent: Consent,
    /// The number of events that went by this look, or would go if somebody agreed.
    pub going: u64,
}

/// One look at the database, and what follows from it.
pub(super) struct DatabaseLook<'a> {
    pub(super) term: &'a Term,
    pub(super) handle: &'a Handle,
    pub(super) runtime: &'a Runtime,
    /// Whether nodes share the log: then only a request is consent, because a new node has a new database for an old log.
    pub(super) is_shared: bool,
    pub(super) vouch: Option<&'a Vouch>,
    pub(super) archive: Option<&'a Archive>,
    pub(super) pause: Pause,
    /// Whether it has to end.
    pub(super) is_over: &'a dyn Fn() -> bool,
}

impl DatabaseLook<'_> {
    /// Looks through the old part of the log, and has history removed if that is agreed; none on a node that does not lead.
    pub(super) fn run(mut self) -> Result<Option<DatabaseFigures>, DatabaseError> {
        let (began, at, reader) = (Instant::now(), self.handle.now(), &**self.handle.reader());
        let newest = reader.turns(PageRequest::newest(1))?.rows.pop();
        let Some(newest) = newest.filter(|_| self.leads()) else { return Ok(None) };
        let consent = consent(reader, Some(self.term), at, || is_new(reader, self.is_shared))?;
        self.show_life(at, newest.at)?;
        let mut look = TrimLook::new(reader, self.term, at, newest.turn);
        // A checkpoint is made once, before the first removal.
        let mut vouch = self.vouch;
        let mut going = 0;
        loop {
            let portion = look.portion()?;
            if let Some(trim) = portion.trim {
                going += events(&trim);
                if consent.is_given() {
                    vouch.take().map_or(Ok(()), |vouch| vouch()).map_err(DatabaseError::Checkpoint)?;
                    if let Some((archive, turns)) = self.archive.zip(portion.turns) {
                        self.runtime.block_on(archive.keep(reader, turns))?;
                    }
                    let by = Actor::system("history");
                    self.runtime.block_on(self.handle.ask(&by, TrimHistory { trim }))?;
                }
            }
            if portion.is_last || (self.is_over)() || !self.leads() {
                return Ok(Some(DatabaseFigures { at, took: began.elapsed(), consent, going }));
            }
            self.pause.take();
        }
    }

    /// Takes a turn if the newest is a day old: a log without a gap shows that its clock did not leap.
    fn show_life(&self, now: Timestamp, newest: Timestamp) -> Result<(), DatabaseError> {
        if now.duration_since(newest) < LOOK_OF_LIFE {
            return Ok(());
        }
        let (bucket, key) = (HISTORY_BUCKET.to_owned(), SEEN.to_owned());
        let value = Some(json!({"at": now.to_string()}));
        let seen = SetRegister { bucket, key, value, reason: None };
        self.runtime.block_on(self.handle.ask(&Actor::system("history"), seen))?;
        Ok(())
    }

    fn leads(&self) -> bool {
        matches!(self.handle.status(), Status::Leading { .. })
    }
}

fn events(trim: &Trim) -> u64 {
    trim.stretches.iter().map(|(first, last)| last - first + 1).sum()
}

/// Whether nobody has to agree to the removal of history from a database.
fn is_new(reader: &dyn Queries, is_shared: bool) -> Result<bool, StoreError> {
    let is_of_nodes = is_shared || reader.register(HISTORY_BUCKET, SHARED)?.is_some();
    Ok(!is_of_nodes && reader.removed_history()?.is_new)
}
