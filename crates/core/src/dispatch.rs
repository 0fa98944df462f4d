//! Permits: which queued slots may run now. A run needs a place in its workflow's concurrency, the permits of its pools,
//! and a place among all runs; it gets all of them or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{PoolUse, RunId, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId};

use crate::memory::{Place, Task, place};
use crate::pools::{POOL_PATIENCE, Pools, Rank, Standing, Sweep};
use crate::timers::Timer;
use crate::{Command, Core, Only};

impl Core {
    /// Gives what is free to queued slots: first to those that the limit on all runs held back, in turn, then to those
    /// that something woke.
    pub(crate) fn dispatch(&mut self, woken: &BTreeSet<WorkflowId>, only: &Only) {
        for id in woken {
            if self.line_up(id) {
                self.mark_pools_of(id);
            }
        }
        // A workflow whose run just ended comes after those that have been waiting for its place.
        self.dispatch_starved(only);
        for id in woken {
            self.dispatch_free(id);
        }
        self.dispatch_to_workers(woken, only);
        self.dispatch_lines(only);
    }

    /// Gives places that became free to the workflows that the limit on all runs held back, in turn.
    fn dispatch_starved(&mut self, only: &Only) {
        let mut waiting = std::mem::take(&mut self.starved);
        while self.has_place() {
            let next = waiting.iter().position(|id| allows(only, id));
            let Some(id) = next.and_then(|next| waiting.remove(next)) else { break };
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            task.starved = false;
            self.dispatch_again(&id, only);
        }
        // Those that still wait come before those that had a turn and want another.
        waiting.append(&mut self.starved);
        self.starved = waiting;
    }

    fn dispatch_again(&mut self, id: &WorkflowId, only: &Only) {
        let Some(task) = self.tasks.get(id) else { return };
        if !task.row.definition.pools.is_empty() {
            self.take_turn(id, only);
        } else if self.is_by_workers(task) {
            self.dispatch_to_workers(&BTreeSet::from([id.clone()]), only);
        } else {
            self.dispatch_free(id);
        }
    }

    /// Dispatches what the concurrency of a workflow without pools allows.
    fn dispatch_free(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get(id).filter(|task| task.row.definition.pools.is_empty()) else { return };
        if self.is_by_workers(task) {
            return;
        }
        let free = self.config.max_running.saturating_sub(self.running);
        // One more than there is room for tells whether the limit on all runs holds anything back.
        let wanted: Vec<_> = going(task).take(self.places(task).min(free.saturating_add(1)) as usize).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|(_, _, key)| key.clone()).collect();
        let starved = wanted.len() > free as usize;
        for key in wanted.into_iter().take(free as usize) {
            self.dispatch_slot(&SlotRef::new(id.clone(), key));
        }
        if starved {
            self.starve(id);
        }
    }

    /// Sweeps the lines of pools that something changed for, until nobody goes any more: whom a start leaves short in more
    /// pools than before lets others pass that it held back, even further in front.
    fn dispatch_lines(&mut self, only: &Only) {
        let mut put_off = BTreeSet::new();
        loop {
            let changed = self.pools.take_changed();
            if changed.is_empty() {
                break;
            }
            let mut sweep = Sweep::of(&self.pools, changed);
            while let Some(rank) = sweep.next(&self.pools) {
                if allows(only, &rank.2) {
                    self.serve(&rank, &mut sweep, true);
                } else {
                    put_off.insert(rank.2);
                }
            }
        }
        // They wait for a tick that is about them, and until then are in nobody's way.
        for id in &put_off {
            self.mark_pools_of(id);
        }
    }

    /// Has the lines swept that a workflow stands in.
    pub(crate) fn mark_pools_of(&mut self, id: &WorkflowId) {
        if let Some(task) = self.tasks.get(id) {
            self.pools.mark(&task.row.definition.pools);
        }
    }

    /// Gives a place to a workflow with pools whose turn it is, if those before it in its lines leave it the permits.
    fn take_turn(&mut self, id: &WorkflowId, only: &Only) {
        let Some(task) = self.tasks.get(id) else { return };
        let uses = task.row.definition.clone();
        let mut sweep = Sweep::of(&self.pools, uses.pools.iter().map(|one| one.pool.clone()).collect());
        while let Some(rank) = sweep.next(&self.pools) {
            if allows(only, &rank.2) {
                self.serve(&rank, &mut sweep, rank.2 == *id);
            }
            if self.tasks.get(id).and_then(|task| task.rank.as_ref()).is_none_or(|mine| *mine <= rank) {
                break;
            }
        }
        // It may have kept from others what it could not use.
        self.pools.mark(&uses.pools);
    }

    /// The turn of somebody in line: it goes, or keeps permits for itself, or lets others pass.
    fn serve(&mut self, rank: &Rank, sweep: &mut Sweep, may_start: bool) {
        let Some(task) = self.tasks.get(&rank.2) else { return };
        let workflow: Arc<Workflow> = task.row.definition.clone();
        if !self.pools.are_large_enough(&workflow.pools) {
            return;
        }
        match sweep.standing(&workflow.pools) {
            Standing::Fits => {
                sweep.keep(&workflow.pools);
                if may_start {
                    self.start_or_starve(rank);
                }
            }
            Standing::Short(pools) => self.wait_in_line(rank, &workflow.pools, pools, sweep),
        }
    }

    fn wait_in_line(&mut self, rank: &Rank, uses: &[PoolUse], short: usize, sweep: &mut Sweep) {
        let patient_from = self.patient_from(rank, uses);
        if patient_from.is_some_and(|from| from <= self.now) {
            return sweep.keep(uses);
        }
        if let Some(from) = patient_from {
            // What it keeps from then on may leave others short in more pools, and they let others pass.
            self.timers.set(&rank.2, Timer::Line(rank.2.clone()), from);
        }
        // What it would keep in one pool would lie idle for as long as the others have too little.
        if short == 1 {
            sweep.keep_short(uses);
        }
    }

    fn start_or_starve(&mut self, rank: &Rank) {
        if self.has_place() {
            self.dispatch_slot(&SlotRef::new(rank.2.clone(), rank.1.clone()));
            self.line_up(&rank.2);
            self.mark_pools_of(&rank.2);
        } else {
            self.starve(&rank.2);
        }
    }

    /// From when on somebody whom nobody is before has waited long: then it is kept all that it needs, lest others who need
    /// one pool alone always find theirs free sooner than it finds all of its own.
    fn patient_from(&self, rank: &Rank, uses: &[PoolUse]) -> Option<Timestamp> {
        let since = self.tasks.get(&rank.2).and_then(|task| task.queued_at)?;
        let is_first = uses.iter().all(|one| self.is_first(rank, one));
        is_first.then(|| since.checked_add(POOL_PATIENCE).ok()).flatten()
    }

    fn is_first(&self, rank: &Rank, one: &PoolUse) -> bool {
        let fits = |other: &&Rank| could_ever_go(&self.pools, self.tasks.get(&other.2));
        self.pools.get(&one.pool).and_then(|pool| pool.line().iter().find(fits)) == Some(rank)
    }

    /// Moves a workflow to where the slot that goes next belongs. Says whether anything is new about that: the place, or
    /// since when it waits.
    pub(crate) fn line_up(&mut self, id: &WorkflowId) -> bool {
        let task = self.tasks.get(id).filter(|task| !task.row.definition.pools.is_empty());
        let now = task.and_then(|task| self.next(task));
        let Some(task) = self.tasks.get_mut(id).filter(|task| !task.row.definition.pools.is_empty()) else {
            return false;
        };
        let queued_at = now.as_ref().and_then(|rank| task.slots.get(&rank.1)).map(|live| live.slot.since);
        if now == task.rank && queued_at == task.queued_at {
            return false;
        }
        self.pools.stand(&task.row.definition.pools, task.rank.as_ref(), now.as_ref());
        task.rank = now;
        task.queued_at = queued_at;
        self.timers.clear(&Timer::Line(id.clone()));
        true
    }

    /// Takes a workflow out of all accounts of pools, before its definition changes.
    pub(crate) fn leave_pools(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let uses = &task.row.definition.pools;
        self.pools.stand(uses, task.rank.take().as_ref(), None);
        self.timers.clear(&Timer::Line(id.clone()));
        self.pools.hold(id, uses, 0);
        if task.row.present {
            self.pools.unnamed(uses);
        }
    }

    /// Takes a workflow into the accounts of its pools. Runs of a removed one go on, and hold what they hold.
    pub(crate) fn join_pools(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get(id) else { return };
        let uses = &task.row.definition.pools;
        if task.row.present {
            self.pools.named(uses);
        }
        self.pools.hold(id, uses, task.active);
    }

    fn has_place(&self) -> bool {
        self.running < self.config.max_running
    }

    fn starve(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if !std::mem::replace(&mut task.starved, true) {
            self.starved.push_back(id.clone());
        }
    }

    /// Stores the intent to run a slot, and has it started: by a worker, where workers run it and one offers to.
    fn dispatch_slot(&mut self, slot: &SlotRef) {
        let Some(task) = self.tasks.get(&slot.workflow) else { return };
        let Some(live) = task.slots.get(&slot.key) else { return };
        debug_assert_eq!(live.slot.state, SlotState::Queued, "only queued slots are in the queue");
        let number = live.slot.last_run + 1;
        let workflow = task.row.definition.clone();
        let collected = live.slot.collected.as_deref().map(|collected| Arc::new(collected.clone()));
        let taker = if self.is_by_workers(task) {
            let Some(taker) = self.offers.take(slot) else { return };
            Some(taker)
        } else {
            None
        };
        let worker = taker.as_ref().map(|taker| taker.worker.clone());
        if self.record(slot, SlotEvent::Dispatched { run: number, worker: worker.as_deref().map(str::to_owned) }) {
            if let Some(live) = self.tasks.get_mut(&slot.workflow).and_then(|task| task.slots.get_mut(&slot.key)) {
                live.attempts = taker.and_then(|taker| taker.attempts);
            }
            let run = RunId { slot: slot.clone(), number };
            self.command(Command::StartRun { run, workflow, worker, collected });
        }
    }

    /// Whether the jobs of a workflow are for workers to run.
    pub(crate) fn is_by_workers(&self, task: &Task) -> bool {
        self.config.by_workers && task.jobs.is_some()
    }

    /// How many more runs its concurrency allows a workflow, and its workers offer.
    fn places(&self, task: &Task) -> u32 {
        if task.is_off() || !task.row.present {
            return 0;
        }
        let allowed = task.row.definition.concurrency.saturating_sub(task.active);
        if self.is_by_workers(task) { allowed.min(self.offers.free_for(&task.row.id)) } else { allowed }
    }

    /// The slot of a workflow that goes next, as long as there is a place for it.
    fn next(&self, task: &Task) -> Option<Rank> {
        let (priority, _, key) = going(task).next().filter(|_| self.places(task) > 0)?;
        Some((*priority, key.clone(), task.row.id.clone()))
    }

    /// Gives jobs to the workers that offer to do them: across workflows by priority, then the one that was queued first.
    fn dispatch_to_workers(&mut self, woken: &BTreeSet<WorkflowId>, only: &Only) {
        if !self.config.by_workers {
            return;
        }
        // They stand in no line, so whatever woke others may be what they wait for.
        let named: Vec<SlotRef> = self.offers.named().filter(|job| allows(only, &job.workflow)).cloned().collect();
        for job in named {
            if self.may_go_now(&job) {
                self.dispatch_slot(&job);
                self.line_up(&job.workflow);
                self.mark_pools_of(&job.workflow);
            }
        }
        let mut heads: BTreeSet<(Place, WorkflowId)> = woken.iter().filter_map(|id| self.head(id)).collect();
        while let Some((place, id)) = heads.pop_first() {
            if !self.has_place() {
                self.starve(&id);
                continue;
            }
            self.dispatch_slot(&SlotRef::new(id.clone(), place.2.clone()));
            heads.extend(self.head(&id).filter(|(next, _)| *next != place));
        }
    }

    /// The job of a workflow without pools that goes next to a worker.
    fn head(&self, id: &WorkflowId) -> Option<(Place, WorkflowId)> {
        let task =
            self.tasks.get(id).filter(|task| task.row.definition.pools.is_empty() && self.is_by_workers(task))?;
        let place = going(task).next().filter(|_| self.places(task) > 0)?;
        Some((place.clone(), id.clone()))
    }

    /// Whether a job that a worker asks for by name is queued, and its workflow and its pools have room for it: whoever waits
    /// for one job passes those in line.
    fn may_go_now(&self, job: &SlotRef) -> bool {
        let Some(task) = self.tasks.get(&job.workflow) else { return false };
        let queued = task.slots.get(&job.key).is_some_and(|live| task.queue.contains(&place(&live.slot, &job.key)));
        let free = !task.row.paused && task.row.present && task.active < task.row.definition.concurrency;
        let free = free && self.has_place() && self.pools.have_room(&task.row.definition.pools);
        queued && free && going(task).any(|(_, _, key)| *key == job.key)
    }
}

pub(crate) fn allows(only: &Only, id: &WorkflowId) -> bool {
    only.as_ref().is_none_or(|only| only.contains(id))
}

/// The queued slots of a workflow that may go, in the order in which they do.
fn going(task: &Task) -> impl Iterator<Item = &Place> {
    // A killed run that is still dying holds its slot back; so does a time that left the schedule.
    task.queue.iter().filter(|(_, _, key)| {
        task.slots.get(key).is_some_and(|live| !live.slot.run_alive) && task.dormant(key).is_none()
    })
}

fn could_ever_go(pools: &Pools, task: Option<&Task>) -> bool {
    task.is_some_and(|task| pools.are_large_enough(&task.row.definition.pools))
}
