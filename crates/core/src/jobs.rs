//! Jobs: slots that are named by job ids, and open each other. Opening one opens its missing ancestors, and the success
//! of one opens the children that became possible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::event::Origin;
use kelos_model::jobs::JobGraph;
use kelos_model::trigger::Waker;
use kelos_model::{Invariant, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId};

use crate::Core;
use crate::awaited::{Awaited, Standing};
use crate::parents::explained;
use crate::relations::Knowledge;
use crate::valid::Validity;
use crate::wakes::Audience;

/// Jobs that are not open, and of which some parent has succeeded: so many are remembered. What is forgotten is found again
/// when the next of its parents succeeds.
const MOST_PROSPECTS: usize = 200_000;

/// What is known of jobs beside their slots.
#[derive(Default)]
pub(crate) struct Jobs {
    graph: JobGraph,
    /// What jobs wait for: those that are open, and prospects.
    awaited: BTreeMap<SlotRef, Awaited>,
    /// Jobs that are not open, and may have become possible, each with the parent whose success made somebody look.
    prospects: BTreeMap<SlotRef, SlotRef>,
    /// Jobs that succeeded.
    succeeded: BTreeSet<SlotRef>,
    /// How many of `awaited` are not open.
    closed: usize,
}

/// What a job's news meant to one that watches it.
enum Heard {
    /// Nothing changes by it.
    Nothing,
    /// It is to be looked at.
    News,
}

impl Jobs {
    pub(crate) fn graph(&self) -> &JobGraph {
        &self.graph
    }

    /// Whether it is counted what a job waits for.
    pub(crate) fn is_awaiting(&self, child: &SlotRef) -> bool {
        self.awaited.contains_key(child)
    }

    /// Notes that a job that is not open is to be looked at.
    fn prospect(&mut self, job: SlotRef, news_of: &SlotRef) {
        let by = self.awaited.get(&job).and_then(|awaited| awaited.opened_by.clone());
        self.prospects.insert(job, by.unwrap_or_else(|| news_of.clone()));
    }

    fn hear(&mut self, child: &SlotRef, parent: &SlotRef, standing: Standing) -> Heard {
        match self.awaited.get_mut(child) {
            Some(awaited) if awaited.has(parent) => {
                // What only the past tells of it happened before.
                if standing == Standing::Done && awaited.is_known() {
                    awaited.opened_by = Some(parent.clone());
                }
                if awaited.learn(parent, standing) { Heard::News } else { Heard::Nothing }
            }
            _ => Heard::Nothing,
        }
    }
}

impl Core {
    /// Takes what definitions say of job ids: what makes sense together. Of the others, why they lie dormant.
    pub(crate) fn define_jobs(&mut self, all: &BTreeMap<WorkflowId, Arc<Workflow>>) -> BTreeMap<WorkflowId, String> {
        let keyed = all.iter().filter_map(|(id, one)| Some((id, one.keys.jobs()?)));
        let (graph, faulty) = JobGraph::sound(keyed);
        let waiting: Vec<(SlotRef, Option<SlotRef>)> = std::mem::take(&mut self.jobs.awaited)
            .into_iter()
            .map(|(child, awaited)| {
                awaited.parents().for_each(|parent| self.wakes.upstream.stop_awaiting(&child, parent));
                (child, awaited.opened_by)
            })
            .collect();
        self.jobs.graph = graph;
        self.jobs.closed = 0;
        // What a trigger waits for may only now be a job that can be opened.
        self.wakes.upstream.lookers_for_nothing().into_iter().for_each(|slot| self.wakes.dirty.insert(slot));
        self.forget_relations();
        for (job, opened_by) in waiting {
            if self.slots.has(&job) {
                self.wake(job);
            } else if let Some(by) = opened_by {
                self.jobs.prospects.insert(job, by);
            }
        }
        faulty
    }

    /// Tells those that watch a slot where it stands.
    pub(crate) fn tell(&mut self, slot: &SlotRef, state: Option<SlotState>) {
        let since = self.state_since(slot).map(|(_, since)| since);
        let Audience { lookers, children } = self.wakes.upstream.learn(slot, state, since);
        for child in children {
            let open = self.slots.has(&child);
            match self.jobs.hear(&child, slot, Standing::of(Some(state))) {
                Heard::News if open => self.wake(child),
                Heard::News => self.jobs.prospect(child, slot),
                Heard::Nothing => {}
            }
        }
        lookers.into_iter().for_each(|looker| self.wake(looker));
    }

    /// Notes that a job succeeded: its children are looked at in the next tick.
    pub(crate) fn note_success(&mut self, slot: &SlotRef) {
        if slot.key.job().is_some() {
            self.jobs.succeeded.insert(slot.clone());
        }
    }

    /// Stops a job from listening to its parents.
    pub(crate) fn stop_awaiting(&mut self, child: &SlotRef) {
        // Only those that wait have it counted what they wait for.
        let Some(awaited) = self.jobs.awaited.remove(child) else { return };
        for parent in awaited.parents() {
            self.wakes.upstream.stop_awaiting(child, parent);
        }
    }

    /// Opens what became possible. Says whether anything was opened.
    pub(crate) fn push(&mut self) -> bool {
        for parent in std::mem::take(&mut self.jobs.succeeded) {
            // It may have been opened again meanwhile.
            let succeeded = self.slots.state(&parent) == Some(SlotState::Succeeded);
            if succeeded && self.know_children(&parent) {
                self.find_prospects(&parent);
            } else if succeeded {
                self.find_prospects_later(parent);
            }
        }
        // A function that failed is asked again.
        self.find_late_prospects();
        let mut opened = false;
        for (job, by) in std::mem::take(&mut self.jobs.prospects) {
            opened |= self.look_at_prospect(job, by);
        }
        if self.jobs.closed > MOST_PROSPECTS {
            self.forget_prospects();
        }
        opened
    }

    pub(crate) fn find_prospects(&mut self, parent: &SlotRef) {
        let Some(id) = parent.key.job() else { return self.breaches.report_slot(Invariant::JobsHaveIds, parent) };
        let listed = self.jobs.graph.children(&parent.workflow, id).unwrap_or_default();
        let listed = listed.jobs.into_iter().map(|(job, _)| SlotRef::job(job.workflow, job.id));
        let children: Vec<SlotRef> = listed.chain(self.take_children(parent)).collect();
        for child in children {
            if !self.slots.has(&child) && !self.jobs.awaited.contains_key(&child) {
                self.await_parents(&child);
                if let Some(awaited) = self.jobs.awaited.get_mut(&child) {
                    awaited.opened_by = Some(parent.clone());
                    self.jobs.closed += 1;
                    self.jobs.prospects.insert(child, parent.clone());
                }
            }
        }
    }

    fn look_at_prospect(&mut self, job: SlotRef, by: SlotRef) -> bool {
        if self.slots.has(&job) {
            self.drop_prospect(&job);
            return false;
        }
        if !self.jobs.awaited.contains_key(&job) {
            // The definitions changed: its parents are others now.
            self.await_parents(&job);
            self.jobs.closed += usize::from(self.jobs.awaited.contains_key(&job));
        }
        let Some(awaited) = self.jobs.awaited.get_mut(&job) else {
            if self.is_asking_for(&job) {
                self.jobs.prospects.insert(job, by);
            }
            return false;
        };
        awaited.opened_by = Some(by.clone());
        if !awaited.is_due() {
            return false;
        }
        if !self.slots.is_known(&job) {
            self.slots.want(job.clone());
            self.jobs.prospects.insert(job, by);
            return false;
        }
        self.jobs.closed = self.jobs.closed.saturating_sub(1);
        self.open_job(&job, Origin::Parent(by), 0)
    }

    /// A prospect turned out to exist. If it waits, it goes on listening.
    fn drop_prospect(&mut self, job: &SlotRef) {
        let waits = self.slots.state(job) == Some(SlotState::Waiting);
        if self.jobs.awaited.contains_key(job) && !waits {
            self.stop_awaiting(job);
            self.jobs.closed = self.jobs.closed.saturating_sub(1);
        }
    }

    fn forget_prospects(&mut self) {
        let closed: Vec<SlotRef> = self.jobs.awaited.keys().filter(|job| !self.slots.has(job)).cloned().collect();
        for job in closed {
            self.stop_awaiting(&job);
        }
        self.jobs.closed = 0;
    }

    /// Opens a job, unless it was opened meanwhile. Says whether it did.
    fn open_job(&mut self, job: &SlotRef, origin: Origin, priority: i32) -> bool {
        self.record_if_possible(job, SlotEvent::planned(origin, priority))
    }

    /// Sees to it that a job listens to its parents. Where its id makes no sense, or what its workflow says, it doesn't.
    fn await_parents(&mut self, job: &SlotRef) {
        if self.jobs.awaited.contains_key(job) {
            return;
        }
        let Some(id) = job.key.job() else { return self.breaches.report_slot(Invariant::JobsHaveIds, job) };
        let Ok(mut groups) = self.jobs.graph.parents(&job.workflow, id) else { return };
        if !matches!(self.know_parents(job), Knowledge::Whole) {
            return;
        }
        groups.extend(self.take_parents(job));
        let mut awaited = Awaited::new(groups);
        let parents: Vec<SlotRef> = awaited.parents().cloned().collect();
        for parent in parents {
            let state = self.state_since(&parent);
            if self.wakes.upstream.await_parent(job, &parent, state) {
                self.slots.want(parent);
            } else {
                awaited.learn(&parent, Standing::of(self.wakes.upstream.known(&parent)));
            }
        }
        self.jobs.awaited.insert(job.clone(), awaited);
    }

    /// Looks at a job that is open and waits: is it worth running, have its parents succeeded?
    pub(crate) fn look_at_job(&mut self, id: &SlotRef) {
        match self.validity(id) {
            Some(Validity::No(explanation)) => {
                self.record(id, SlotEvent::Skipped { explanation });
                return;
            }
            Some(Validity::NotKnown(explanation, probe)) => {
                return self.keep_waiting(id, explanation, vec![Waker::Probe(probe)]);
            }
            Some(Validity::Yes) => self.note_valid(id),
            None => {}
        }
        self.await_parents(id);
        let Some(awaited) = self.jobs.awaited.get(id) else {
            let known = self.know_parents(id);
            return self.wait_for_functions(id, known);
        };
        if awaited.is_met() {
            let explanation = explained(awaited);
            self.look_beyond_parents(id, explanation);
        } else if awaited.is_known() {
            self.pull(id);
            if let Some(awaited) = self.jobs.awaited.get(id) {
                let explanation = explained(awaited);
                self.keep_waiting(id, explanation, Vec::new());
            }
        }
    }

    /// Opens the parents that are missing on the way by which a job goes on.
    fn pull(&mut self, id: &SlotRef) {
        let priority = self.live(id).map_or(0, |live| live.slot.priority);
        let Some(awaited) = self.jobs.awaited.get(id) else { return self.no_slot(id) };
        // Where no way is possible it waits for the definitions to change.
        let Some(way) = awaited.way() else { return };
        let missing = awaited.of_group(way).filter(|(_, standing)| *standing == Standing::Absent);
        let missing: Vec<SlotRef> = missing.map(|(parent, _)| parent.clone()).collect();
        for parent in missing {
            self.open_job(&parent, Origin::Child(id.clone()), priority);
        }
    }

    /// Opens a job that a slot's trigger waits for.
    pub(crate) fn pull_awaited(&mut self, id: &SlotRef, wakers: &[Waker]) {
        for waker in wakers {
            if let Waker::Slot(job) = waker
                && job.key.job().is_some()
                && self.wakes.upstream.known(job) == Some(None)
                && self.check_slot(job).is_ok()
            {
                let job = job.clone();
                self.open_job(&job, Origin::Child(id.clone()), 0);
            }
        }
    }
}
