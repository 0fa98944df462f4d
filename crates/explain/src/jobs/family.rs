//! A job with its ancestors and its descendants, as a graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::{SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use super::Jobs;

/// A job with its ancestors and its descendants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// The job itself comes first; then its ancestors, level by level, then its descendants.
    pub members: Vec<FamilyMember>,
    /// The dependencies: parent, child, and the groups of the child that have the parent.
    pub edges: BTreeMap<(usize, usize), BTreeSet<Arc<str>>>,
    /// The number of relatives that were left out; they may have ancestors and descendants of their own.
    pub left_out: usize,
}

/// A job of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyMember {
    /// The job.
    pub job: SlotRef,
    /// Its state; none if it was never opened.
    pub state: Option<SlotState>,
    /// The number of levels above the job of the question; below it if negative.
    pub above: i32,
}

/// The size of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Levels of ancestors.
    pub up: u32,
    /// Levels of descendants.
    pub down: u32,
    /// Jobs in all.
    pub most: usize,
}

/// The ancestors and descendants of a job. Of a level that is too wide those that have not succeeded come first.
///
/// # Errors
/// When the store can't be read.
pub fn family(jobs: &Jobs, reader: &dyn Queries, job: &SlotRef, reach: Reach) -> Result<Family, StoreError> {
    let mut growing =
        FamilyBuilder { jobs, reader, most: reach.most, numbers: BTreeMap::new(), family: Family::default() };
    growing.add(job.clone(), 0)?;
    growing.grow(reach.up, 1)?;
    growing.grow(reach.down, -1)?;
    Ok(growing.family)
}

struct FamilyBuilder<'a> {
    jobs: &'a Jobs,
    reader: &'a dyn Queries,
    most: usize,
    numbers: BTreeMap<SlotRef, usize>,
    family: Family,
}

impl FamilyBuilder<'_> {
    fn add(&mut self, job: SlotRef, above: i32) -> Result<usize, StoreError> {
        let number = self.family.members.len();
        let state = self.reader.slot(&job)?.map(|slot| slot.state);
        self.numbers.insert(job.clone(), number);
        self.family.members.push(FamilyMember { job, state, above });
        Ok(number)
    }

    /// Adds ancestors, or descendants, of the job of the question.
    fn grow(&mut self, levels: u32, way: i32) -> Result<(), StoreError> {
        let mut level = vec![0];
        let mut above = 0;
        for _ in 0..levels {
            above += way;
            level = self.next(&level, above, way)?;
            if level.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// The next level, and the edges that lead to it.
    fn next(&mut self, level: &[usize], above: i32, way: i32) -> Result<Vec<usize>, StoreError> {
        let mut found: BTreeMap<SlotRef, Vec<(usize, Arc<str>)>> = BTreeMap::new();
        for number in level {
            let job = self.family.members[*number].job.clone();
            let relatives: Vec<(SlotRef, Arc<str>)> = if way > 0 {
                let groups = self.jobs.groups(&job).into_iter();
                groups.flat_map(|group| group.jobs.into_iter().map(move |job| (job, group.name.clone()))).collect()
            } else {
                self.jobs.waiting_for(&job)
            };
            relatives.into_iter().for_each(|(job, group)| found.entry(job).or_default().push((*number, group)));
        }
        let (known, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|(job, _)| self.numbers.contains_key(job));
        for (job, edges) in known {
            let number = self.numbers.get(&job).copied();
            edges.into_iter().for_each(|(from, group)| self.edge(number, from, group, way));
        }
        let mut added = Vec::new();
        for (job, edges) in self.worst_first(new)? {
            if self.family.members.len() >= self.most {
                self.family.left_out += 1;
                continue;
            }
            let number = self.add(job, above)?;
            edges.into_iter().for_each(|(from, group)| self.edge(Some(number), from, group, way));
            added.push(number);
        }
        Ok(added)
    }

    /// If there are too many, those that have not succeeded come first.
    fn worst_first<T>(&self, mut new: Vec<(SlotRef, T)>) -> Result<Vec<(SlotRef, T)>, StoreError> {
        if new.len() + self.family.members.len() > self.most {
            let mut done = BTreeSet::new();
            for (job, _) in new.iter().take(super::MOST_JOBS) {
                if self.reader.slot(job)?.is_some_and(|slot| slot.state == SlotState::Succeeded) {
                    done.insert(job.clone());
                }
            }
            new.sort_by_key(|(job, _)| done.contains(job));
        }
        Ok(new)
    }

    fn edge(&mut self, relative: Option<usize>, of: usize, group: Arc<str>, way: i32) {
        let Some(relative) = relative else { return };
        let ends = if way > 0 { (relative, of) } else { (of, relative) };
        self.family.edges.entry(ends).or_default().insert(group);
    }
}
