//! The rules of pools, as a scan over everything that is queued.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_core::POOL_PATIENCE;
use kelos_model::time::CronSchedule;
use kelos_model::{PoolId, PoolUse, RunId, WorkflowId};

use super::{Place, Spec};

type Schedules = BTreeMap<WorkflowId, CronSchedule>;

impl Spec {
    /// One sweep after the other, until nobody goes any more: who has started leaves others with less to keep.
    pub(super) fn dispatch_pools(
        &mut self,
        ids: &[WorkflowId],
        schedules: &Schedules,
        now: Timestamp,
        started: &mut Vec<RunId>,
    ) {
        loop {
            let before = started.len();
            self.sweep(ids, schedules, now, started);
            if started.len() == before {
                return;
            }
        }
    }

    /// Everybody in line has a turn, from the front to the back: who has all permits goes, who lacks those of one pool
    /// keeps what is left of it, and who is first everywhere and has waited long keeps all that it needs.
    fn sweep(&mut self, ids: &[WorkflowId], schedules: &Schedules, now: Timestamp, started: &mut Vec<RunId>) {
        let mut left = self.left();
        let mut last: Option<Place> = None;
        loop {
            let line = self.line(ids, schedules);
            let next = line.iter().find(|place| last.as_ref().is_none_or(|last| *place > last)).cloned();
            let Some(place) = next else { return };
            let uses = self.workflows[&place.slot.workflow].pools.clone();
            let short: Vec<&PoolUse> = uses.iter().filter(|one| left[&one.pool] < one.permits).collect();
            let kept: Vec<&PoolUse> = match short.len() {
                0 => uses.iter().collect(),
                _ if self.is_patient(&place, &line, now) => uses.iter().collect(),
                1 => short.clone(),
                _ => Vec::new(),
            };
            let fits = short.is_empty();
            for one in kept {
                left.entry(one.pool.clone()).and_modify(|left| *left = left.saturating_sub(one.permits));
            }
            if fits && self.free() > 0 {
                self.start(place.slot.clone(), started);
            }
            last = Some(place);
        }
    }

    /// What is free in each pool: its smallest size, less what live runs hold by the latest definitions of theirs.
    fn left(&self) -> BTreeMap<PoolId, u32> {
        let mut left = self.sizes();
        for (id, workflow) in &self.known {
            let runs = u32::try_from(self.active(id)).unwrap_or(u32::MAX);
            for one in &workflow.pools {
                left.entry(one.pool.clone()).and_modify(|left| *left = left.saturating_sub(runs * one.permits));
            }
        }
        left
    }

    fn sizes(&self) -> BTreeMap<PoolId, u32> {
        let mut sizes: BTreeMap<PoolId, u32> = BTreeMap::new();
        for one in self.workflows.values().flat_map(|workflow| &workflow.pools) {
            sizes.entry(one.pool.clone()).and_modify(|size| *size = one.size.min(*size)).or_insert(one.size);
        }
        sizes
    }

    /// The first in the queue of each workflow with pools that its concurrency allows another run, but for those whose
    /// runs need more than there is.
    fn line(&self, ids: &[WorkflowId], schedules: &Schedules) -> BTreeSet<Place> {
        let sizes = self.sizes();
        let could_go = |id: &&WorkflowId| {
            let pools = &self.workflows[*id].pools;
            !pools.is_empty() && self.places(id) > 0 && pools.iter().all(|one| one.permits <= sizes[&one.pool])
        };
        ids.iter().filter(could_go).filter_map(|id| self.queue(id, schedules).into_iter().next()).collect()
    }

    fn is_patient(&self, place: &Place, line: &BTreeSet<Place>, now: Timestamp) -> bool {
        let names = |place: &Place, pool: &PoolId| {
            self.workflows[&place.slot.workflow].pools.iter().any(|one| one.pool == *pool)
        };
        let mine = &self.workflows[&place.slot.workflow].pools;
        let first = mine.iter().all(|one| line.iter().find(|other| names(other, &one.pool)) == Some(place));
        first && now.duration_since(self.slots[&place.slot].since) >= POOL_PATIENCE
    }
}
