//! The parents and children of a job, with their states.

use std::sync::Arc;

use kelos_model::jobs::Unwritable;
use kelos_model::{SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use super::{JobGroup, Jobs, MOST_JOBS};

/// A job beside another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    /// The job.
    pub job: SlotRef,
    /// Its state; none if it was never opened.
    pub state: Option<SlotState>,
}

/// A group of jobs of which one waits for all.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeGroup {
    /// Its name.
    pub name: Arc<str>,
    /// Its jobs, in their order; those beyond [`MOST_JOBS`] are left out.
    pub jobs: Vec<Relative>,
    /// Those of them that can't be opened, because they have no valid job id: the group is never met.
    pub unwritable: Vec<Unwritable>,
}

impl RelativeGroup {
    /// The number of members, including those without a valid job id.
    #[must_use]
    pub fn total(&self) -> usize {
        self.jobs.len() + self.unwritable.iter().map(|one| one.count).sum::<usize>()
    }

    /// The number that has succeeded.
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

/// Whether dependents of a job in this state are blocked until it is opened again.
fn is_bad(state: Option<SlotState>) -> bool {
    state.is_some_and(|state| state.is_final() && state != SlotState::Succeeded)
}

/// The parents of a job: the groups that apply to it, one of which is enough.
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

/// The children of a job, each with the group that contains the job.
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
