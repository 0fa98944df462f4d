//! Live runs of flows: the definitions that they follow, and how far each is.
//!
//! The progress of a run follows from its steps, which are slots. It is put together when something happens to the run for the first time since
//! the scheduler began, so that runs that wait cost nothing at a restart. Absent: slots, events, and what a step is given.

mod pinned;
mod progress;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Slot, SlotKey, SlotRef, Workflow, WorkflowId};

pub(crate) use pinned::PinnedFlow;
pub(crate) use progress::{FlowProgress, StepEnd};

/// The key before all others.
const FIRST_KEY: SlotKey = SlotKey::Time(Timestamp::MIN);

/// All live runs of flows.
#[derive(Default)]
pub(crate) struct Flows {
    /// The definitions that live runs follow.
    pinned: BTreeMap<(WorkflowId, u32), Arc<PinnedFlow>>,
    /// Those that became ready in this turn: what no run follows is forgotten with its end.
    fresh: BTreeSet<(WorkflowId, u32)>,
    /// The number of live slots that follow each.
    followers: BTreeMap<(WorkflowId, u32), usize>,
    /// The live slots that follow a definition, and its number.
    live: BTreeMap<SlotRef, LiveFlow>,
    /// The flows of the live runs that do one step of another run again.
    repeats: BTreeMap<SlotRef, Arc<PinnedFlow>>,
    /// The live runs whose definition can't be read any more.
    lost: BTreeSet<SlotRef>,
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
    pub(crate) fn pin(&mut self, definition: &Arc<Workflow>, number: u32) {
        let key = (definition.id.clone(), number);
        if let Entry::Vacant(entry) = self.pinned.entry(key)
            && let Ok(pinned) = PinnedFlow::new(definition)
        {
            self.fresh.insert(entry.key().clone());
            entry.insert(Arc::new(pinned));
        }
    }

    /// Ends the turn: forgets the definitions that became ready in it, and that no run follows.
    pub(crate) fn settle(&mut self) {
        for key in std::mem::take(&mut self.fresh) {
            if !self.followers.contains_key(&key) {
                self.pinned.remove(&key);
            }
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

    /// Follows a change of a slot that is a run of a flow, or may become one. Returns the flow that it followed if no other run does.
    pub(crate) fn follow_run(&mut self, id: &SlotRef, after: &Slot) -> Option<Arc<PinnedFlow>> {
        let definition = after.run_of_flow().map_or(0, |run| run.definition);
        let is_live = definition > 0 && after.is_live();
        let is_over = self.live.get(id).is_some_and(|live| !is_live || live.definition != definition);
        let left = if is_over { self.leave(id) } else { None };
        if is_live && !self.live.contains_key(id) {
            *self.followers.entry((id.workflow.clone(), definition)).or_default() += 1;
            let repeats = after.run_of_flow().and_then(|run| run.repeats.as_deref());
            let whole = self.pinned.get(&(id.workflow.clone(), definition));
            let own = repeats.zip(whole).and_then(|(repeats, whole)| whole.repeating(repeats)).map(Arc::new);
            self.repeats.extend(own.map(|own| (id.clone(), own)));
            self.live.insert(id.clone(), LiveFlow { definition, progress: None });
        }
        left
    }

    /// Forgets a run that is live no more, and its definition if no other run follows it. Returns what none follows any more.
    fn leave(&mut self, id: &SlotRef) -> Option<Arc<PinnedFlow>> {
        self.touched.remove(id);
        self.lost.remove(id);
        let own = self.repeats.remove(id);
        let LiveFlow { definition, .. } = self.live.remove(id)?;
        let key = (id.workflow.clone(), definition);
        let followers = self.followers.get_mut(&key)?;
        *followers -= 1;
        if *followers > 0 {
            return own;
        }
        self.followers.remove(&key);
        self.pinned.remove(&key)
    }

    /// Whether a live run of a workflow follows a definition.
    pub(crate) fn is_any_pinned(&self, workflow: &WorkflowId) -> bool {
        self.pinned.range((workflow.clone(), 0)..=(workflow.clone(), u32::MAX)).next().is_some()
    }

    /// The definitions of a step, or of the items of its list, that live runs follow: the newest last.
    pub(crate) fn definitions_of(&self, workflow: &WorkflowId, step: &str, is_item: bool) -> Vec<Arc<Workflow>> {
        let of_workflow = self.repeats.range(SlotRef::new(workflow.clone(), FIRST_KEY)..);
        let repeats = of_workflow.take_while(|(id, _)| id.workflow == *workflow).map(|(_, flow)| flow);
        let pinned = self.pinned.range((workflow.clone(), 0)..=(workflow.clone(), u32::MAX)).map(|(_, flow)| flow);
        repeats.chain(pinned).filter_map(|flow| flow.definition_of(step, is_item)).cloned().collect()
    }

    /// The definition that a live run follows.
    pub(crate) fn of(&self, run: &SlotRef) -> Option<&Arc<PinnedFlow>> {
        let live = self.live.get(run)?;
        self.repeats.get(run).or_else(|| self.pinned.get(&(run.workflow.clone(), live.definition)))
    }

    /// The definition of a step or an item, as executors see it.
    pub(crate) fn definition(&self, step: &SlotRef) -> Option<&Arc<Workflow>> {
        let key = step.key.step()?;
        self.of(&SlotRef::new(step.workflow.clone(), key.run()))?.definition(key)
    }

    /// Takes a live run again after a restart. One whose definition is not ready is lost.
    pub(crate) fn restore(&mut self, id: &SlotRef, slot: &Slot) {
        // Nothing is left before it.
        drop(self.follow_run(id, slot));
        if self.live.contains_key(id) && self.of(id).is_none() {
            self.lost.insert(id.clone());
        }
    }

    /// The live runs whose definition can't be read any more.
    pub(crate) fn lost(&self) -> &BTreeSet<SlotRef> {
        &self.lost
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
