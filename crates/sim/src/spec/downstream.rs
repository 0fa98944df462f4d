//! Reruns with all that follows, by a scan: the slots that a slot's success or files lead to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_core::DownstreamRequest;
use kelos_model::facts::Tally;
use kelos_model::probe::plain;
use kelos_model::ranges::Range;
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Facts, Waker, evaluate};
use kelos_model::{Probe, ProbeAnswer, RunId, SlotRef, SlotState, Subject, WorkflowId};

use super::{Spec, SpecSlot};
use crate::world::Scan;

impl Spec {
    /// The downstream slots of a slot: all whose trigger depends on a member of the set when it is evaluated.
    pub(super) fn downstream(&self, root: &SlotRef) -> BTreeSet<SlotRef> {
        let schedules = self.schedules();
        let here = |slot: &&SlotRef| {
            self.is_job(slot) || schedules.get(&slot.workflow).is_some_and(|schedule| schedule.has(&slot.key))
        };
        let written = self.written(root);
        let upstream = |slot| [self.looks_at(slot), self.reads(slot, &written)].concat();
        let looks_at: Vec<(&SlotRef, Vec<SlotRef>)> =
            self.slots.keys().filter(here).map(|slot| (slot, upstream(slot))).collect();
        let mut members = BTreeSet::from([root.clone()]);
        loop {
            let before = members.len();
            let more = looks_at.iter().filter(|(_, upstream)| upstream.iter().any(|one| members.contains(one)));
            let more: Vec<_> = more.map(|(slot, _)| (*slot).clone()).collect();
            members.extend(more);
            if members.len() == before {
                return members;
            }
        }
    }

    /// The paths that are written, with the slots that write them: all that exist, and one that may not yet.
    fn written(&self, root: &SlotRef) -> BTreeMap<String, Vec<SlotRef>> {
        let mut written: BTreeMap<String, Vec<SlotRef>> = BTreeMap::new();
        for slot in self.slots.keys().filter(|slot| *slot != root).chain([root]) {
            let Some(workflow) = self.workflows.get(&slot.workflow) else { continue };
            let values = KeyValues::of(&workflow.keys, &slot.key);
            for path in &workflow.writes {
                written.entry(values.fill(path).into_owned()).or_default().push(slot.clone());
            }
        }
        written
    }

    /// The slots that write a path that the trigger of a slot asks for.
    fn reads(&self, slot: &SlotRef, written: &BTreeMap<String, Vec<SlotRef>>) -> Vec<SlotRef> {
        let Some(workflow) = self.workflows.get(&slot.workflow) else { return Vec::new() };
        let values = KeyValues::of(&workflow.keys, &slot.key);
        let evaluation = evaluate(&workflow.trigger, &slot.workflow, &values, &self.unknown());
        let paths = evaluation.wakers.into_iter().filter_map(|waker| match waker {
            Waker::Probe(Probe::Path { uri, .. }) => Some(plain(&uri).into_owned()),
            _ => None,
        });
        paths.filter_map(|path| written.get(&path)).flatten().cloned().collect()
    }

    /// All facts of the outside unknown, for a trigger that is only asked for its dependencies.
    fn unknown(&self) -> NoFacts<'_> {
        NoFacts { times: &self.scan }
    }

    fn looks_at(&self, slot: &SlotRef) -> Vec<SlotRef> {
        if slot.key.job().is_some() {
            return self.all_parents(slot);
        }
        let workflow = &self.workflows[&slot.workflow];
        let values = KeyValues::of(&workflow.keys, &slot.key);
        let evaluation = evaluate(&workflow.trigger, &slot.workflow, &values, &self.unknown());
        let slots = evaluation.wakers.into_iter().filter_map(|waker| match waker {
            Waker::Slot(slot) if slot.key.job().is_none() => Some(slot),
            _ => None,
        });
        slots.collect()
    }

    pub(super) fn rerun_downstream(&mut self, request: &DownstreamRequest, now: Timestamp) -> Vec<RunId> {
        let mut members = self.downstream(&request.slot);
        members.extend(members.clone().iter().flat_map(|slot| self.ending_with(slot)));
        let running = |slot: &SlotRef| self.slots.get(slot).is_some_and(|state| state.state == SlotState::Running);
        if request.dry_run || !request.kill_live && members.iter().any(running) {
            return Vec::new();
        }
        let mut ended = Vec::new();
        let mut cancelled = BTreeSet::new();
        for slot in members {
            let state = self.slots.entry(slot.clone()).or_insert_with(|| SpecSlot::requested(now));
            if state.state == SlotState::Running {
                let own = RunId { slot, number: state.last_run };
                cancelled.insert(state.leader.clone().unwrap_or_else(|| own.clone()));
                ended.push(own);
            }
            if !matches!(state.state, SlotState::Waiting | SlotState::Backoff) {
                state.reopen(0, None, now);
            }
        }
        for run in &ended {
            self.has_ended(run, SlotState::Killed, now);
        }
        cancelled.into_iter().collect()
    }
}

/// Facts of the outside that are all unknown.
struct NoFacts<'a> {
    times: &'a Scan,
}

impl Facts for NoFacts<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn slot(&self, _: &SlotRef) -> Option<Option<SlotState>> {
        None
    }

    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        self.times.period(workflow, time)
    }

    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        self.times.slots_in(workflow, interval)
    }

    fn probe(&self, _: &Probe) -> Option<ProbeAnswer> {
        None
    }

    fn collected(&self, _: &Subject) -> Option<&Tally> {
        None
    }
}
