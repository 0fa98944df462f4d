//! The parent that a job's wait was for: the log names only a few of them, so the relation and the logs of the parents
//! are read.

use std::cell::OnceCell;

use kelos_model::{SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use super::moment::{Moment, succeeded};
use crate::jobs::{self, Jobs, RelativeGroup};

/// The relation between jobs, read when it is first needed.
#[derive(Default)]
pub(super) struct Relation(OnceCell<Jobs>);

impl Relation {
    fn groups(&self, reader: &dyn Queries, job: &SlotRef) -> Result<Vec<RelativeGroup>, StoreError> {
        let all = match self.0.get() {
            Some(all) => all,
            None => {
                let read = Jobs::read(reader)?;
                self.0.get_or_init(|| read)
            }
        };
        jobs::parents(all, reader, job)
    }

    /// The parent whose success came last, of the group that was complete first; and when it came.
    pub(super) fn last(
        &self,
        reader: &dyn Queries,
        job: &SlotRef,
        to: Moment,
    ) -> Result<Option<(SlotRef, Moment)>, StoreError> {
        let mut first: Option<(SlotRef, Moment)> = None;
        for group in self.groups(reader, job)? {
            let mut last: Option<(SlotRef, Moment)> = None;
            let mut is_complete = group.unwritable.is_empty();
            for parent in group.jobs {
                match succeeded(reader, &parent.job, to)? {
                    Some(moment) if last.as_ref().is_none_or(|(_, last)| last.seq < moment.seq) => {
                        last = Some((parent.job, moment));
                    }
                    Some(_) => {}
                    None => is_complete = false,
                }
            }
            let is_first = |last: &(SlotRef, Moment)| first.as_ref().is_none_or(|(_, first)| last.1.seq < first.seq);
            if let Some(last) = last.filter(|last| is_complete && is_first(last)) {
                first = Some(last);
            }
        }
        Ok(first)
    }

    /// The parent that keeps a job waiting now, the worst of the group that is most likely to be met; and how many
    /// others of that group have not succeeded.
    pub(super) fn worst(&self, reader: &dyn Queries, job: &SlotRef) -> Result<Option<(SlotRef, usize)>, StoreError> {
        let groups = self.groups(reader, job)?;
        let may_go = |group: &&RelativeGroup| group.unwritable.is_empty() && group.ended_badly().next().is_none();
        let way = groups.iter().find(may_go).or(groups.first());
        let missing = way.into_iter().flat_map(|group| &group.jobs);
        let missing: Vec<_> = missing.filter(|one| one.state != Some(SlotState::Succeeded)).collect();
        let worst = missing.iter().max_by_key(|one| weight(one.state));
        Ok(worst.map(|one| (one.job.clone(), missing.len() - 1)))
    }
}

/// A parent that needs a person is worse than one that waits itself, and that than one that is running.
fn weight(state: Option<SlotState>) -> u8 {
    match state {
        Some(state) if state.is_final() => 3,
        Some(SlotState::Waiting) => 2,
        Some(_) => 1,
        None => 0,
    }
}
