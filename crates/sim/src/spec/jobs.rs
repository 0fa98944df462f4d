//! The rules of jobs, as scans: every waiting job has all its parents evaluated, and whenever one succeeds, all its children.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_core::SubmitRequest;
use kelos_model::jobs::Parents;
use kelos_model::template::KeyValues;
use kelos_model::time::CronSchedule;
use kelos_model::trigger::{Evaluation, Waker, evaluate};
use kelos_model::{Answer, SlotRef, SlotState, WorkflowId};

use super::{Spec, SpecSlot};
use crate::apps::{Validity, is_due, is_met, slots_of, validity};
use crate::spec::schedules_of_feeds;
use crate::world::{World, WorldView};

impl Spec {
    /// Whether a slot is a valid job of its app.
    pub(super) fn is_job(&self, slot: &SlotRef) -> bool {
        self.apps.parents(slot).is_some()
    }

    pub(super) fn is_done(&self, groups: &[Parents]) -> bool {
        is_met(groups, |slot| self.slots.get(slot).map(|slot| slot.state))
    }

    /// Opens the jobs of feeds.
    pub(super) fn feed(&mut self, now: Timestamp) {
        let feeds = schedules_of_feeds(&self.workflows.values().cloned().collect::<Vec<_>>());
        for (id, schedule) in feeds.into_iter().filter(|(id, _)| !self.is_paused(id)).collect::<Vec<_>>() {
            self.feed_one(&id, &schedule, now);
        }
    }

    fn feed_one(&mut self, id: &WorkflowId, schedule: &CronSchedule, now: Timestamp) {
        let workflow = self.workflows[id].clone();
        let Some(jobs) = workflow.keys.jobs() else { return };
        for job in self.take_times(id, schedule, now).into_iter().flat_map(|at| jobs.fed_at(at)) {
            self.open(SlotRef::job(id.clone(), job), 0);
        }
    }

    fn open(&mut self, slot: SlotRef, priority: i32) -> bool {
        let is_new = !self.slots.contains_key(&slot);
        if is_new {
            self.slots.insert(slot, SpecSlot::waiting(priority, None));
        }
        is_new
    }

    /// Evaluates every job. Returns whether any changed.
    pub(super) fn gate_jobs(&mut self, now: Timestamp, world: &World) -> bool {
        let waits = |state: &SpecSlot| match state.state {
            SlotState::Backoff => state.due.is_some_and(|due| due <= now),
            other => other == SlotState::Waiting,
        };
        let mine = self.slots.iter().filter(|(slot, state)| {
            slot.key.job().is_some() && waits(state) && self.is_job(slot) && !self.is_paused(&slot.workflow)
        });
        let mine: Vec<SlotRef> = mine.map(|(slot, _)| slot.clone()).collect();
        mine.iter().filter(|slot| self.gate_job(slot, now, world)).count() > 0
    }

    fn gate_job(&mut self, slot: &SlotRef, now: Timestamp, world: &World) -> bool {
        let groups = self.apps.parents(slot).unwrap_or_default();
        match validity(&self.apps, slot, world, now) {
            Validity::No => return self.becomes(slot, SlotState::Skipped, now),
            Validity::NotKnown => return self.becomes(slot, SlotState::Waiting, now),
            Validity::Yes => {}
        }
        if !self.is_done(&groups) {
            let opened = self.pull(slot, &groups);
            return self.becomes(slot, SlotState::Waiting, now) || opened;
        }
        let workflow = self.workflows[&slot.workflow].clone();
        let state = |slot: &SlotRef| self.slots.get(slot).map(|slot| slot.state);
        let collected = self.slots[slot].collected.as_ref();
        let seen = WorldView { now, past: None, world, state: &state, times: &self.scan, collected };
        let looked = evaluate(&workflow.trigger, &slot.workflow, &KeyValues::of(&workflow.keys, &slot.key), &seen);
        let opened = self.pull_awaited(&looked);
        let next = match looked.explanation.answer {
            Answer::Met => SlotState::Queued,
            Answer::Never => SlotState::Skipped,
            Answer::NotYet => SlotState::Waiting,
        };
        self.becomes(slot, next, now) || opened
    }

    fn becomes(&mut self, slot: &SlotRef, next: SlotState, now: Timestamp) -> bool {
        let Some(state) = self.slots.get_mut(slot) else { return false };
        state.since = now;
        std::mem::replace(&mut state.state, next) != next
    }

    /// Opens the missing parents of the first group in which no parent has failed.
    fn pull(&mut self, slot: &SlotRef, groups: &[Parents]) -> bool {
        let has_failed = |slot: SlotRef| {
            self.slots.get(&slot).is_some_and(|slot| slot.state.is_final() && slot.state != SlotState::Succeeded)
        };
        let may_go = |group: &&Parents| group.unwritable.is_empty() && !slots_of(group).any(has_failed);
        let Some(way) = groups.iter().find(may_go) else { return false };
        let priority = self.slots[slot].priority;
        slots_of(way).filter(|parent| self.open(parent.clone(), priority)).count() > 0
    }

    /// Opens the jobs that a trigger waits for.
    pub(super) fn pull_awaited(&mut self, looked: &Evaluation) -> bool {
        if looked.explanation.answer != Answer::NotYet {
            return false;
        }
        let jobs = looked.wakers.iter().filter_map(|waker| match waker {
            Waker::Slot(job) if self.is_job(job) => Some(job.clone()),
            _ => None,
        });
        jobs.collect::<Vec<_>>().into_iter().filter(|job| self.open(job.clone(), 0)).count() > 0
    }

    /// Handles a job that succeeded: its children are evaluated from now on.
    pub(super) fn succeeded(&mut self, parent: &SlotRef) {
        if let Some(id) = parent.key.job() {
            let children = self.apps.graph.children(&parent.workflow, id).unwrap_or_default();
            self.prospects.extend(children.jobs.into_iter().map(|(job, _)| SlotRef::job(job.workflow, job.id)));
            self.push();
        }
    }

    /// Opens jobs of which one parent had succeeded, and now all have.
    pub(super) fn push(&mut self) {
        for job in std::mem::take(&mut self.prospects) {
            let groups = self.apps.parents(&job);
            match groups {
                Some(groups) if is_due(&groups, |slot| self.slots.get(slot).map(|slot| slot.state)) => {
                    self.open(job, 0);
                }
                Some(_) => drop(self.prospects.insert(job)),
                None => {}
            }
        }
    }

    pub(super) fn submit(&mut self, request: &SubmitRequest, now: Timestamp) {
        if !request.jobs.iter().all(|job| self.is_job(job) && !self.apps.is_hopeless(job)) {
            return;
        }
        for job in &request.jobs {
            let is_final = self.slots.get(job).is_some_and(|state| state.state.is_final());
            if is_final && request.readd {
                self.readd(job, request.priority, now);
            } else {
                self.open(job.clone(), request.priority);
            }
        }
    }

    fn readd(&mut self, job: &SlotRef, priority: i32, now: Timestamp) {
        for slot in self.downstream(job) {
            let Some(state) = self.slots.get_mut(&slot) else { continue };
            if state.state.is_final() || state.state == SlotState::Queued {
                state.reopen(priority, None, now);
            }
        }
    }

    /// The parents of a job in all groups; functions are not followed.
    pub(super) fn all_parents(&self, slot: &SlotRef) -> Vec<SlotRef> {
        let groups = self.apps.parents(slot).unwrap_or_default();
        let listed = groups.iter().filter(|group| !self.apps.is_asked(slot, group));
        let all: BTreeSet<SlotRef> = listed.flat_map(slots_of).collect();
        all.into_iter().collect()
    }
}
