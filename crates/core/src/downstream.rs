//! The slots downstream of a slot: found level by level, and reopened together with it.
//!
//! A slot depends on the slots that its trigger refers to, and on all that they depend on. Only existing slots count,
//! and only the present definitions of their workflows.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::paths::PathGraph;
use kelos_model::trigger::Coverage;
use kelos_model::{Actor, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::jobs::Jobs;
use crate::past::PastOf;
use crate::slots::SlotTable;
use crate::warrant::Warrant;
use crate::workflows::Workflows;
use crate::{Core, DownstreamOutcome, DownstreamRequest, Refusal};

/// The most slots that one request may reopen, since they are all recorded in one turn.
pub(crate) const LARGEST_DOWNSTREAM: usize = 100_000;

/// The least number of slots that are read from the past at once, so that a long chain needs few questions.
const FEWEST_READ: usize = 256;

/// For each workflow, the workflows whose triggers refer to its slots, and how.
type Lookers<'a> = BTreeMap<&'a WorkflowId, Vec<(&'a WorkflowId, Look<'a>)>>;

/// The way in which a trigger refers to slots of another workflow.
#[derive(Clone, Copy)]
enum Look<'a> {
    /// The slot that lies so many seconds later.
    Later(i64),
    /// The slots whose periods intersect its own.
    Periods(Coverage<'a>),
}

/// The result of a search for the slots downstream of one.
#[derive(Default)]
struct DownstreamTree {
    /// The existing slots, the most upstream one first.
    slots: Vec<SlotRef>,
    /// The slots that only the past may know.
    unknown: Vec<SlotRef>,
}

/// All organs that know what is downstream of a slot.
pub(crate) struct Dependents<'a> {
    now: Timestamp,
    workflows: &'a Workflows,
    slots: &'a SlotTable,
    jobs: &'a Jobs,
}

impl Dependents<'_> {
    /// A slot and all existing slots downstream of it, the most upstream one first. They have been recalled.
    pub(crate) fn tree(&self, root: &SlotRef) -> Vec<SlotRef> {
        self.follow(root, &BTreeSet::new()).slots
    }

    /// Searches downstream of a slot. It passes through unknown slots whose time has come as if they existed, as long
    /// as the number of them is worth one question.
    fn follow(&self, root: &SlotRef, opened: &BTreeSet<SlotRef>) -> DownstreamTree {
        let (lookers, paths) = (self.lookers(), self.paths());
        let mut found = DownstreamTree::default();
        let mut seen = BTreeSet::from([root.clone()]);
        let mut frontier = vec![root.clone()];
        while !frontier.is_empty() && found.slots.len() <= LARGEST_DOWNSTREAM {
            let mut next = Vec::new();
            for slot in frontier {
                let known = self.slots.is_known(&slot);
                let exists = self.slots.has(&slot) || slot == *root || opened.contains(&slot);
                let may_exist = !known && slot.key.time().is_none_or(|at| at < self.now);
                if exists || may_exist && found.unknown.len() < found.slots.len().max(FEWEST_READ) {
                    next.extend(self.of(&lookers, &paths, &slot).filter(|dependent| seen.insert(dependent.clone())));
                }
                match (known, exists) {
                    (true, true) => found.slots.push(slot),
                    (false, _) => found.unknown.push(slot),
                    (true, false) => {}
                }
            }
            frontier = next;
        }
        found
    }

    fn lookers(&self) -> Lookers<'_> {
        let mut lookers = Lookers::new();
        for (id, workflow) in self.workflows.iter().filter(|(_, workflow)| workflow.is_present()) {
            let trigger = &workflow.definition().trigger;
            let later = trigger.looks_at().into_iter().map(|(upstream, seconds)| (upstream, Look::Later(seconds)));
            let periods = trigger.covered().into_iter().map(|covered| (covered.workflow, Look::Periods(covered)));
            for (upstream, look) in later.chain(periods) {
                lookers.entry(upstream).or_default().push((id, look));
            }
        }
        lookers
    }

    /// The relation by the paths that slots write and wait for.
    fn paths(&self) -> PathGraph {
        let present = || self.workflows.iter().filter(|(_, workflow)| workflow.is_present());
        if present().all(|(_, workflow)| workflow.definition().writes.is_empty()) {
            return PathGraph::default();
        }
        PathGraph::of(present().map(|(_, workflow)| (workflow.definition().clone(), workflow.schedule().ok().cloned())))
    }

    /// The slots whose triggers refer to a slot, or to a path that it writes, whether they exist or not.
    fn of<'b>(
        &'b self,
        lookers: &'b Lookers<'b>,
        paths: &'b PathGraph,
        slot: &'b SlotRef,
    ) -> impl Iterator<Item = SlotRef> + 'b {
        let of = lookers.get(&slot.workflow).map_or(&[][..], Vec::as_slice);
        let by_trigger = of.iter().flat_map(move |(id, look)| match look {
            Look::Later(seconds) => {
                let key = seconds.checked_neg().and_then(|earlier| slot.key.offset(earlier));
                key.map(|key| SlotRef::new((*id).clone(), key)).into_iter().collect()
            }
            Look::Periods(covered) => self.covering(id, covered, slot),
        });
        let all = by_trigger.chain(self.jobs.listed_children(slot)).chain(paths.readers(slot));
        // A slot that its workflow has no time for is dormant, and left alone.
        all.filter(|dependent| self.may_exist(dependent))
    }

    /// The slots of a workflow whose triggers wait for the period of a slot.
    fn covering(&self, id: &WorkflowId, covered: &Coverage<'_>, slot: &SlotRef) -> Vec<SlotRef> {
        let waiting = || {
            let (upstream, own) = (self.workflows.times(&slot.workflow)?, self.workflows.times(id)?);
            Some(covered.waiting_for(slot.key.scheduled()?, &upstream, id, &own))
        };
        waiting().unwrap_or_default().into_iter().map(|time| SlotRef::at(id.clone(), time)).collect()
    }

    /// Whether a slot fits the schedule or the job ids of its workflow.
    fn may_exist(&self, slot: &SlotRef) -> bool {
        let exists = || self.slots.has(slot);
        self.workflows.get(&slot.workflow).is_some_and(|workflow| workflow.check_slot(slot, exists).is_ok())
    }
}

impl Core {
    /// The view of all organs that know what is downstream of a slot.
    pub(crate) fn dependents(&self) -> Dependents<'_> {
        Dependents { now: self.now, workflows: &self.workflows, slots: &self.slots, jobs: &self.jobs }
    }

    /// Brings slots into memory with all slots downstream of them. Slots that are about to be opened count as existing.
    pub(crate) fn recall_downstream<E>(
        &mut self,
        roots: &[SlotRef],
        opened: &BTreeSet<SlotRef>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        loop {
            let dependents = self.dependents();
            let unknown: BTreeSet<SlotRef> =
                roots.iter().flat_map(|root| dependents.follow(root, opened).unknown).collect();
            if unknown.is_empty() {
                return Ok(());
            }
            self.slots.recall(unknown, past)?;
        }
    }

    pub(crate) fn rerun_downstream(
        &mut self,
        request: &DownstreamRequest,
        by: &Actor,
        warrant: Option<&Warrant>,
    ) -> Result<DownstreamOutcome, Refusal> {
        self.check_openable(&request.slot)?;
        if request.slot.key.step().is_some() {
            // Its run is resumed from it.
            return Err(Refusal::NoFlow(request.slot.workflow.clone()));
        }
        let arguments = self.accepted_by(&request.slot, &request.arguments)?;
        let slots = self.with_batches(self.dependents().tree(&request.slot));
        if slots.len() > LARGEST_DOWNSTREAM {
            return Err(Refusal::TooManyDownstream { limit: LARGEST_DOWNSTREAM });
        }
        let tree = Tree::of(slots, &self.slots);
        self.check_spread(warrant, tree.changed())?;
        if request.dry_run {
            return Ok(tree.outcome());
        }
        if let Some((slot, state)) = tree.killed.first().filter(|_| !request.kill_live) {
            return Err(Refusal::DownstreamLive(slot.clone(), *state, tree.killed.len()));
        }
        self.open_tree(&tree, request, 0, by);
        self.set_arguments(&request.slot, by, &arguments);
        Ok(tree.outcome())
    }

    pub(crate) fn open_tree(&mut self, tree: &Tree, request: &DownstreamRequest, priority: i32, by: &Actor) {
        if let Some(slot) = &tree.created {
            self.plan_asked(slot, priority, Some(by.clone()), request.reason.clone());
        }
        for slot in tree.reopened.iter().chain(tree.killed.iter().map(|(slot, _)| slot)) {
            let reason = reason_for(slot, request);
            // The trigger of a queued or held slot was met by a slot that is about to be reopened, and has to be
            // evaluated again.
            if self.slots.get(slot).is_some_and(|live| !live.slot.state.is_final()) {
                self.end(slot, SlotEvent::Killed { by: by.clone(), reason: reason.clone() });
            }
            self.record(slot, SlotEvent::Reopened { by: by.clone(), reason, priority, backfill: None });
        }
    }
}

/// The reason given for the request; for a downstream slot also the slot it was reopened with.
fn reason_for(slot: &SlotRef, request: &DownstreamRequest) -> Option<String> {
    if *slot == request.slot {
        return request.reason.clone();
    }
    let with = format!("with {}", request.slot.short());
    Some(request.reason.as_ref().map_or(with.clone(), |reason| format!("{reason}; {with}")))
}

#[derive(Default)]
pub(crate) struct Tree {
    created: Option<SlotRef>,
    reopened: Vec<SlotRef>,
    killed: Vec<(SlotRef, SlotState)>,
    untouched: u32,
}

impl Tree {
    /// Sorts a slot and those downstream of it by their treatment.
    pub(crate) fn of(slots: Vec<SlotRef>, table: &SlotTable) -> Tree {
        let mut tree = Tree::default();
        for slot in slots {
            match table.state(&slot) {
                None => tree.created = Some(slot),
                Some(state @ (SlotState::Dispatched | SlotState::Running)) => tree.killed.push((slot, state)),
                Some(SlotState::Queued | SlotState::Held) => tree.reopened.push(slot),
                Some(state) if state.is_final() => tree.reopened.push(slot),
                Some(_) => tree.untouched += 1,
            }
        }
        tree
    }

    /// The same tree, but dispatched and running slots stay as they are.
    pub(crate) fn without_live(mut self) -> Tree {
        self.killed.clear();
        self
    }

    /// The slots that are opened, reopened or killed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &SlotRef> {
        self.created.iter().chain(&self.reopened).chain(self.killed.iter().map(|(slot, _)| slot))
    }

    /// The number of slots that are reopened besides the first.
    pub(crate) fn descendants(&self) -> u32 {
        u32::try_from(self.reopened.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    fn outcome(self) -> DownstreamOutcome {
        DownstreamOutcome {
            created: self.created,
            reopened: self.reopened,
            killed: self.killed.into_iter().map(|(slot, _)| slot).collect(),
            untouched: self.untouched,
        }
    }
}
