//! What a job waits for and what waits for it, with where they stand.

use std::sync::Arc;

use kelos_model::jobs::Unwritable;
use kelos_model::{SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use super::{JobGroup, Jobs, MOST_JOBS};

/// A job beside another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    /// Which.
    pub job: SlotRef,
    /// Where it stands; none where it was never opened.
    pub state: Option<SlotState>,
}

/// A group of jobs of which one waits for all.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeGroup {
    /// Its name.
    pub name: Arc<str>,
    /// Its jobs, in their order; those beyond [`MOST_JOBS`] are left out.
    pub jobs: Vec<Relative>,
    /// Those of them that nobody can open, since they have no job id: the group is never met.
    pub unwritable: Vec<Unwritable>,
}

impl RelativeGroup {
    /// How many there are, with those that have no job id.
    #[must_use]
    pub fn total(&self) -> usize {
        self.jobs.len() + self.unwritable.iter().map(|one| one.count).sum::<usize>()
    }

    /// How many have succeeded.
    #[must_use]
    pub fn succeeded(&self) -> usize {
        self.count(|state| state == Some(SlotState::Succeeded))
    }

    /// Those that have ended without success.
    pub fn ended_badly(&self) -> impl Iterator<Item = &Relative> {
        self.jobs.iter().filter(|one| is_bad(one.state))
    }

    fn count(&self, is: impl Fn(Option<SlotState>) -> bool) -> usize {
        self.jobs.iter().filter(|one| is(one.state)).count()
    }
}

/// Whether what waits for a job in this state waits in vain, until somebody opens it again.
fn is_bad(state: Option<SlotState>) -> bool {
    state.is_some_and(|state| state.is_final() && state != SlotState::Succeeded)
}

/// What a job waits for: the groups that are about it, of which one is enough.
///
/// # Errors
/// When the store can't be read.
pub fn parents(jobs: &Jobs, reader: &dyn Queries, job: &SlotRef) -> Result<Vec<RelativeGroup>, StoreError> {
    let mut left = MOST_JOBS;
    let mut group = |JobGroup { name, jobs, unwritable }| {
        let shown = jobs.len().min(left);
        left -= shown;
        Ok(RelativeGroup { name, jobs: with_states(reader, jobs.into_iter().take(shown))?, unwritable })
    };
    jobs.groups(job).into_iter().map(&mut group).collect()
}

/// What waits for a job, each with the group by which it does.
///
/// # Errors
/// When the store can't be read.
pub fn children(jobs: &Jobs, reader: &dyn Queries, job: &SlotRef) -> Result<Vec<(Relative, Arc<str>)>, StoreError> {
    let (children, groups): (Vec<_>, Vec<_>) = jobs.waiting_for(job).into_iter().take(MOST_JOBS).unzip();
    Ok(with_states(reader, children.into_iter())?.into_iter().zip(groups).collect())
}

fn with_states(reader: &dyn Queries, jobs: impl Iterator<Item = SlotRef>) -> Result<Vec<Relative>, StoreError> {
    jobs.map(|job| Ok(Relative { state: reader.slot(&job)?.map(|slot| slot.state), job })).collect()
}
