//! The dependencies of a job. They are counted, so that a change of one parent costs the same for any number of
//! parents.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::jobs::{Parents, Unwritable};
use kelos_model::{SlotRef, SlotState};

/// The status of a parent, as far as it matters to its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParentStatus {
    /// Its slot is not read from the past yet.
    Unknown,
    /// It was never opened.
    Absent,
    /// It has not ended; this is its state.
    Live(SlotState),
    /// It has succeeded.
    Done,
    /// It ended without success, and will not succeed unless it is reopened; this is its state.
    Dead(SlotState),
}

impl ParentStatus {
    pub(super) fn of(known: Option<Option<SlotState>>) -> ParentStatus {
        match known {
            None => ParentStatus::Unknown,
            Some(None) => ParentStatus::Absent,
            Some(Some(SlotState::Succeeded)) => ParentStatus::Done,
            Some(Some(state)) if state.is_final() => ParentStatus::Dead(state),
            Some(Some(state)) => ParentStatus::Live(state),
        }
    }

    fn is_dead(self) -> bool {
        matches!(self, ParentStatus::Dead(_))
    }

    pub(super) fn state(self) -> Option<SlotState> {
        match self {
            ParentStatus::Unknown | ParentStatus::Absent => None,
            ParentStatus::Done => Some(SlotState::Succeeded),
            ParentStatus::Live(state) | ParentStatus::Dead(state) => Some(state),
        }
    }
}

/// A dependency group of a job.
#[derive(Debug)]
pub(super) struct AwaitedGroup {
    pub(super) name: Arc<str>,
    /// The number of its parents.
    pub(super) total: usize,
    /// The number of parents that have not succeeded.
    pub(super) missing: usize,
    /// The number of those that ended without success.
    pub(super) dead: usize,
    /// Parents that can't be opened because they have no job id. They count as parents that never succeed.
    pub(super) unwritable: Vec<Unwritable>,
    /// The number of parents without a job id.
    nameless: usize,
}

#[derive(Debug)]
struct AwaitedParent {
    standing: ParentStatus,
    groups: Vec<usize>,
}

/// The dependencies of a job: all parents of any one group have to succeed.
#[derive(Debug)]
pub(super) struct Dependencies {
    groups: Vec<AwaitedGroup>,
    parents: BTreeMap<SlotRef, AwaitedParent>,
    unknown: usize,
    /// The parent whose success made the job a candidate, as long as the job is not open.
    pub(super) opened_by: Option<SlotRef>,
}

impl Dependencies {
    pub(super) fn new(groups: Vec<Parents>) -> Dependencies {
        let mut parents: BTreeMap<SlotRef, AwaitedParent> = BTreeMap::new();
        let mut counted = Vec::with_capacity(groups.len());
        for (at, group) in groups.into_iter().enumerate() {
            let total = group.total();
            let nameless = total - group.jobs.len();
            let unwritable = group.unwritable;
            let (name, dead) = (group.group, nameless);
            counted.push(AwaitedGroup { name, total, missing: total, dead, unwritable, nameless });
            for job in group.jobs {
                let parent = parents.entry(SlotRef::job(job.workflow, job.id)).or_insert_with(|| AwaitedParent {
                    standing: ParentStatus::Unknown,
                    groups: Vec::with_capacity(1),
                });
                parent.groups.push(at);
            }
        }
        Dependencies { groups: counted, unknown: parents.len(), parents, opened_by: None }
    }

    pub(super) fn groups(&self) -> &[AwaitedGroup] {
        &self.groups
    }

    pub(super) fn parents(&self) -> impl Iterator<Item = &SlotRef> {
        self.parents.keys()
    }

    pub(super) fn has(&self, parent: &SlotRef) -> bool {
        self.parents.contains_key(parent)
    }

    /// The parents of a group, with their statuses.
    pub(super) fn of_group(&self, group: usize) -> impl Iterator<Item = (&SlotRef, ParentStatus)> {
        let of = move |(_, parent): &(&SlotRef, &AwaitedParent)| parent.groups.contains(&group);
        self.parents.iter().filter(of).map(|(slot, parent)| (slot, parent.standing))
    }

    /// Notes the status of a parent. Returns whether the job is to be evaluated because of that; none if it is not a
    /// parent of the job, or if the counts are wrong.
    pub(super) fn learn(&mut self, parent: &SlotRef, now: ParentStatus) -> Option<bool> {
        let known = self.parents.get_mut(parent)?;
        let before = std::mem::replace(&mut known.standing, now);
        let mut news = false;
        if before == ParentStatus::Unknown && now != ParentStatus::Unknown {
            self.unknown = self.unknown.checked_sub(1)?;
            news |= self.unknown == 0;
        }
        for group in &known.groups {
            let group = self.groups.get_mut(*group)?;
            let (missing, dead) = (group.missing, group.dead);
            group.missing = changed(missing, before != ParentStatus::Done, now != ParentStatus::Done)?;
            group.dead = changed(dead, before.is_dead(), now.is_dead())?;
            let rest = group.nameless;
            news |= (missing == rest) != (group.missing == rest) || (dead == 0) != (group.dead == 0);
        }
        // A parent that vanished has to be opened again.
        Some(news || now == ParentStatus::Absent && before != ParentStatus::Unknown)
    }

    /// Whether no dependency is missing.
    pub(super) fn is_met(&self) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| group.missing == 0)
    }

    /// Whether the success of a parent opens the job: no dependency is missing, or only jobs without an id. In the
    /// second case the job can never run, and is opened so that it says why.
    pub(super) fn is_due(&self) -> bool {
        let is_hopeless = |group: &AwaitedGroup| group.nameless > 0;
        let is_all_but = |group: &AwaitedGroup| group.missing == group.nameless && group.total > group.nameless;
        let is_stuck = || self.groups.iter().all(is_hopeless) && self.groups.iter().any(is_all_but);
        !self.groups.is_empty() && (self.is_met() || is_stuck())
    }

    /// Whether the statuses of all parents are known.
    pub(super) fn is_known(&self) -> bool {
        self.unknown == 0
    }

    /// The group to continue with: the first one without a failed parent.
    pub(super) fn way(&self) -> Option<usize> {
        self.groups.iter().position(|group| group.dead == 0)
    }
}

/// A count after a change of one item; none if that is impossible.
fn changed(count: usize, was: bool, is: bool) -> Option<usize> {
    match (was, is) {
        (true, false) => count.checked_sub(1),
        (false, true) => Some(count + 1),
        _ => Some(count),
    }
}
