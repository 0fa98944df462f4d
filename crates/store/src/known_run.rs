//! The knowledge of a single run, also of one whose record was removed with the history of its slot.

use jiff::Timestamp;
use kelos_model::{Run, RunId};

use crate::contract::StoreError;
use crate::queries::Queries;

/// A run that there is, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownRun {
    /// Its record.
    Kept(Box<Run>),
    /// One whose record was removed: it has ended.
    Removed(RemovedRun),
}

/// A run whose record was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRun {
    /// The run.
    pub id: RunId,
    /// The executor's id, of the latest run of a slot.
    pub external_id: Option<String>,
    /// The moment up to which history may have been removed.
    pub until: Option<Timestamp>,
}

impl KnownRun {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        match self {
            KnownRun::Kept(run) => &run.id,
            KnownRun::Removed(run) => &run.id,
        }
    }

    /// The run that did the work, and has the output. Of a removed one it is not known any more whether it served a batch.
    #[must_use]
    pub fn leader(&self) -> RunId {
        match self {
            KnownRun::Kept(run) => run.leader(),
            KnownRun::Removed(run) => run.id.clone(),
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            KnownRun::Kept(run) => run.state.is_final(),
            KnownRun::Removed(_) => true,
        }
    }
}

impl dyn Queries + '_ {
    /// A run; none if its slot never had it, as far as this log goes.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn known_run(&self, id: &RunId) -> Result<Option<KnownRun>, StoreError> {
        // Before the runs, so that one that is dispatched meanwhile is not taken for one that was removed.
        let slot = self.slot(&id.slot)?;
        let mut runs = self.slot_runs(&id.slot)?;
        if let Some(place) = runs.iter().position(|run| run.id.number == id.number) {
            return Ok(Some(KnownRun::Kept(Box::new(runs.swap_remove(place)))));
        }
        let Some(slot) = slot.filter(|slot| (1..=slot.last_run).contains(&id.number)) else { return Ok(None) };
        // It, or a later one: a run is found by the one after it.
        let later = runs.iter().find(|run| run.id.number > id.number);
        let missing = later.map_or(slot.last_run_seq, |run| run.previous);
        let removed = self.removed_history()?;
        Ok((missing > 0 && removed.covers(missing)).then(|| {
            let external_id = slot.external_id.filter(|_| slot.last_run == id.number);
            KnownRun::Removed(RemovedRun { id: id.clone(), external_id, until: removed.at })
        }))
    }
}
