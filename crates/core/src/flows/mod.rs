//! Live runs of flows: the definitions that they follow, and how far each is.
//!
//! The progress of a run follows from its steps, which are slots. It is put together when something happens to the run for the first time since
//! the scheduler began, so that runs that wait cost nothing at a restart. Absent: slots, events, and what a step is given.

mod pinned;
mod progress;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::{Slot, SlotRef, Workflow, WorkflowId};

pub(crate) use pinned::PinnedFlow;
pub(crate) use progress::{FlowProgress, StepEnd};

/// All live runs of flows.
#[derive(Default)]
pub(crate) struct Flows {
    /// The definitions that live runs follow.
    pinned: BTreeMap<(WorkflowId, u32), Arc<PinnedFlow>>,
    /// The number of live slots that follow each.
    followers: BTreeMap<(WorkflowId, u32), usize>,
    /// The live slots that follow a definition, and its number.
    live: BTreeMap<SlotRef, LiveFlow>,
    /// The runs whose steps have changed.
    touched: BTreeSet<SlotRef>,
}

struct LiveFlow {
    definition: u32,
    /// None until something happens to the run.
    progress: Option<Box<FlowProgress>>,
}

impl Flows {
    /// Has a definition ready for the runs that follow it. One whose graph is wrong is left out.
    pub(crate) fn pin(&mut self, definition: &Workflow, number: u32) {
        let key = (definition.id.clone(), number);
        if let Entry::Vacant(entry) = self.pinned.entry(key)
            && let Ok(pinned) = PinnedFlow::new(definition)
        {
            entry.insert(Arc::new(pinned));
        }
    }

    /// Whether a definition is ready.
    pub(crate) fn is_pinned(&self, id: &WorkflowId, number: u32) -> bool {
        self.pinned.contains_key(&(id.clone(), number))
    }

    /// A definition that is ready.
    pub(crate) fn pinned(&self, id: &WorkflowId, number: u32) -> Option<&Arc<PinnedFlow>> {
        self.pinned.get(&(id.clone(), number))
    }

    /// Follows a change of a slot that is a run of a flow, or may become one.
    pub(crate) fn follow_run(&mut self, id: &SlotRef, after: &Slot) {
        let definition = after.run_of_flow().map_or(0, |run| run.definition);
        let is_live = definition > 0 && after.is_live();
        if self.live.get(id).is_some_and(|live| !is_live || live.definition != definition) {
            self.leave(id);
        }
        if is_live && !self.live.contains_key(id) {
            *self.followers.entry((id.workflow.clone(), definition)).or_default() += 1;
            self.live.insert(id.clone(), LiveFlow { definition, progress: None });
        }
    }

    /// Forgets a run that is live no more, and its definition if no other run follows it.
    fn leave(&mut self, id: &SlotRef) {
        self.touched.remove(id);
        let Some(LiveFlow { definition, .. }) = self.live.remove(id) else { return };
        let key = (id.workflow.clone(), definition);
        let Some(followers) = self.followers.get_mut(&key) else { return };
        *followers -= 1;
        if *followers == 0 {
            self.followers.remove(&key);
            self.pinned.remove(&key);
        }
    }

    /// The definition that a live run follows.
    pub(crate) fn of(&self, run: &SlotRef) -> Option<&Arc<PinnedFlow>> {
        let live = self.live.get(run)?;
        self.pinned.get(&(run.workflow.clone(), live.definition))
    }

    /// The definition of a step or an item, as executors see it.
    pub(crate) fn definition(&self, step: &SlotRef) -> Option<&Arc<Workflow>> {
        let key = step.key.step()?;
        self.of(&SlotRef::new(step.workflow.clone(), key.run()))?.definition(key)
    }

    /// Has a run begin. Where it goes on with what steps have done before, that has to be read.
    pub(crate) fn begin(&mut self, run: &SlotRef, fresh: Option<FlowProgress>) {
        if let Some(live) = self.live.get_mut(run) {
            live.progress = fresh.map(Box::new);
            self.touched.insert(run.clone());
        }
    }

    /// The progress of a run, if it is known.
    pub(crate) fn progress(&mut self, run: &SlotRef) -> Option<&mut FlowProgress> {
        self.live.get_mut(run)?.progress.as_deref_mut()
    }

    /// Keeps how far a run is.
    pub(crate) fn keep(&mut self, run: &SlotRef, progress: FlowProgress) {
        if let Some(live) = self.live.get_mut(run) {
            live.progress = Some(Box::new(progress));
        }
    }

    /// Forgets how far a run is, so that it is put together anew.
    pub(crate) fn forget_progress(&mut self, run: &SlotRef) {
        if let Some(live) = self.live.get_mut(run) {
            live.progress = None;
        }
    }

    /// Follows a change of a step or an item.
    pub(crate) fn follow_step(
        &mut self,
        id: &SlotRef,
        before: Option<&Slot>,
        after: &Slot,
        end: impl FnOnce() -> StepEnd,
    ) {
        let Some(key) = id.key.step() else { return };
        let run = SlotRef::new(id.workflow.clone(), key.run());
        let Some(pinned) = self.of(&run).cloned() else { return };
        if let Some(progress) = self.progress(&run) {
            let before = before.map_or(Default::default(), |slot| slot.state.into());
            progress.follow(pinned.graph(), key, before, after, end);
        }
        if after.state.is_final() {
            self.touched.insert(run);
        }
    }

    /// Has a run advanced.
    pub(crate) fn touch(&mut self, run: &SlotRef) {
        if self.live.contains_key(run) {
            self.touched.insert(run.clone());
        }
    }

    /// Takes the runs that are to be advanced.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<SlotRef> {
        std::mem::take(&mut self.touched)
    }
}
