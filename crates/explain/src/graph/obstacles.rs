//! The obstacles of a slot at any distance upstream: the slots that it waits for, those that they wait for, and so on
//! to those that don't wait for another slot.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::reason::{Evidence, words};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Answer, Reason, ReasonKind, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use crate::why::{self, Why};

/// The most slots of one answer.
pub const MOST_STEPS: usize = 200;

/// A slot and all that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The slot itself, then what it waits for, level by level; each slot once, however many wait for it.
    pub steps: Vec<Step>,
    /// Whether there are more than [`MOST_STEPS`].
    pub is_cut: bool,
}

/// A slot on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The slot.
    pub slot: SlotRef,
    /// Its state; none where it does not exist.
    pub state: Option<SlotState>,
    /// Its distance from the slot of the question, plus one.
    pub level: u32,
    /// Its state, in one sentence.
    pub words: String,
    /// The slots that it waits for, in the order of its trigger.
    pub waits_for: Vec<SlotRef>,
    /// Its own obstacles, besides those slots.
    pub obstacles: Vec<Obstacle>,
}

/// Something that is in a slot's way and no other slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Its kind.
    pub kind: ObstacleKind,
    /// The obstacle in words.
    pub words: String,
}

/// Kinds of obstacles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObstacleKind {
    /// It failed for good.
    Failed,
    /// A person ended it.
    Killed,
    /// It waited too long.
    Expired,
    /// It will never go.
    Skipped,
    /// It does not exist.
    Missing,
    /// Its workflow is frozen.
    Frozen,
    /// Its workflow is paused.
    Paused,
    /// Its workflow is not defined any more.
    Undefined,
    /// It failed and will be tried again.
    Backoff,
    /// Its run is live, or about to start.
    UnderWay,
    /// Its constraints hold it.
    Held,
    /// It waits for a permit.
    Queued,
    /// The outside world: a path that is not there.
    Outside,
    /// Its time, or a delay after it, has not come.
    Clock,
    /// Its trigger is not met for another reason, or was not evaluated yet.
    Trigger,
}

impl ObstacleKind {
    /// Its name, for machines and people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ObstacleKind::Failed => "failed",
            ObstacleKind::Killed => "killed",
            ObstacleKind::Expired => "expired",
            ObstacleKind::Skipped => "skipped",
            ObstacleKind::Missing => "missing",
            ObstacleKind::Frozen => "frozen",
            ObstacleKind::Paused => "paused",
            ObstacleKind::Undefined => "undefined",
            ObstacleKind::Backoff => "backoff",
            ObstacleKind::UnderWay => "under-way",
            ObstacleKind::Held => "held",
            ObstacleKind::Queued => "queued",
            ObstacleKind::Outside => "outside",
            ObstacleKind::Clock => "clock",
            ObstacleKind::Trigger => "trigger",
        }
    }
}

impl Upstream {
    /// The slots with something in their way that is no other slot: where to begin.
    pub fn roots(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.obstacles.is_empty())
    }

    /// The step of a slot.
    #[must_use]
    pub fn step(&self, slot: &SlotRef) -> Option<&Step> {
        self.steps.iter().find(|step| step.slot == *slot)
    }
}

/// The slots upstream of a slot that keep it waiting. None if the slot has succeeded.
///
/// # Errors
/// When the store can't be read.
pub fn upstream(reader: &dyn Queries, slot: &SlotRef, now: Timestamp) -> Result<Upstream, StoreError> {
    let mut seen = BTreeSet::from([slot.clone()]);
    let mut queue = vec![(slot.clone(), 0)];
    let mut steps = Vec::new();
    // The queue is walked from its front while it grows at its end: level by level.
    while let Some((slot, level)) = queue.get(steps.len()).cloned() {
        if steps.len() == MOST_STEPS {
            return Ok(Upstream { steps, is_cut: true });
        }
        let step = step(reader, slot, level, now)?;
        for next in &step.waits_for {
            if seen.insert(next.clone()) {
                queue.push((next.clone(), level + 1));
            }
        }
        steps.push(step);
    }
    Ok(Upstream { steps, is_cut: false })
}

/// The slots that keep a slot waiting, or kept it until it expired, and have not succeeded since: one step of
/// [`upstream`].
pub(crate) fn waits_for(reader: &dyn Queries, slot: &SlotRef, now: Timestamp) -> Result<Vec<SlotRef>, StoreError> {
    Ok(step(reader, slot.clone(), 0, now)?.waits_for)
}

fn step(reader: &dyn Queries, slot: SlotRef, level: u32, now: Timestamp) -> Result<Step, StoreError> {
    let workflow = reader.workflow(&slot.workflow)?;
    let why = why::read(reader, &slot, now, true, None)?;
    let mut way = Way { reader, why: &why, waits_for: Vec::new(), obstacles: Vec::new() };
    way.look(workflow.as_ref())?;
    let Way { waits_for, obstacles, .. } = way;
    Ok(Step { state: why.state, level, words: why.headline, waits_for, obstacles, slot })
}

/// The obstacles of one slot, as far as they were found.
struct Way<'a> {
    reader: &'a dyn Queries,
    why: &'a Why,
    waits_for: Vec<SlotRef>,
    obstacles: Vec<Obstacle>,
}

impl Way<'_> {
    fn look(&mut self, workflow: Option<&WorkflowRow>) -> Result<(), StoreError> {
        let itself = |way: &mut Self, kind| way.add(kind, way.why.headline.clone());
        match self.why.state {
            Some(SlotState::Succeeded) => {}
            Some(SlotState::Waiting) => self.waiting(workflow)?,
            Some(SlotState::Held) => itself(self, ObstacleKind::Held),
            // These ended without a run of their own: what they waited for is worth knowing.
            Some(SlotState::Expired) => {
                itself(self, ObstacleKind::Expired);
                self.slots_of_trigger()?;
            }
            Some(SlotState::Skipped) => {
                itself(self, ObstacleKind::Skipped);
                self.slots_of_trigger()?;
            }
            Some(SlotState::Failed) => itself(self, ObstacleKind::Failed),
            Some(SlotState::Killed) => itself(self, ObstacleKind::Killed),
            Some(SlotState::Backoff) => itself(self, ObstacleKind::Backoff),
            Some(SlotState::Queued) => itself(self, ObstacleKind::Queued),
            Some(SlotState::Dispatched | SlotState::Running) => itself(self, ObstacleKind::UnderWay),
            None => itself(self, ObstacleKind::Missing),
        }
        Ok(())
    }

    fn add(&mut self, kind: ObstacleKind, words: String) {
        self.obstacles.push(Obstacle { kind, words });
    }

    fn waiting(&mut self, workflow: Option<&WorkflowRow>) -> Result<(), StoreError> {
        match workflow {
            Some(row) if row.present && row.frozen().is_some() => {
                self.add(ObstacleKind::Frozen, "its workflow is frozen, see Problems".to_owned())
            }
            Some(row) if row.present && row.paused => {
                self.add(ObstacleKind::Paused, "its workflow is paused".to_owned())
            }
            Some(row) if row.present => {}
            _ => self.add(ObstacleKind::Undefined, "its workflow is no longer defined".to_owned()),
        }
        match &self.why.trigger {
            Some(trigger) => self.leaves(trigger)?,
            None => self.defined(workflow)?,
        }
        if self.obstacles.is_empty() && self.waits_for.is_empty() {
            self.add(ObstacleKind::Trigger, "its trigger is about to be asked".to_owned());
        }
        Ok(())
    }

    /// The slots that its trigger depends on by its definition, if it was never evaluated.
    fn defined(&mut self, workflow: Option<&WorkflowRow>) -> Result<(), StoreError> {
        let Some(workflow) = workflow else { return Ok(()) };
        for (on, later) in workflow.definition.trigger.looks_at() {
            if let Some(key) = self.why.slot.key.offset(later) {
                self.slot(SlotRef::new(on.clone(), key))?;
            }
        }
        Ok(())
    }

    /// Only the slots among the unmet conditions of its trigger.
    fn slots_of_trigger(&mut self) -> Result<(), StoreError> {
        let own = self.obstacles.len();
        if let Some(trigger) = &self.why.trigger {
            self.leaves(trigger)?;
        }
        self.obstacles.truncate(own);
        Ok(())
    }

    /// The unmet leaves of a trigger.
    fn leaves(&mut self, node: &Reason) -> Result<(), StoreError> {
        match (node.answer, &node.kind) {
            (Answer::Met, _) => {}
            (_, ReasonKind::Not) if !node.is_uncertain() => {
                self.add(ObstacleKind::Trigger, words::unwanted(node.nested.first().unwrap_or(node)));
            }
            _ if !node.nested.is_empty() => {
                for nested in &node.nested {
                    self.leaves(nested)?;
                }
            }
            _ => self.leaf(node)?,
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &Reason) -> Result<(), StoreError> {
        // The account has the beginning of an outage, which the leaf has not.
        let own = words::text(leaf);
        let words = self.why.blockers.iter().find(|blocker| blocker.starts_with(&own)).cloned().unwrap_or(own);
        match leaf.evidence() {
            Some(Evidence::Slot { slot, .. }) => self.slot(slot.clone())?,
            Some(Evidence::Clock { .. }) => self.add(ObstacleKind::Clock, words),
            Some(Evidence::Probe { .. }) => self.add(ObstacleKind::Outside, words),
            Some(Evidence::Asked) | None => self.add(ObstacleKind::Trigger, words),
        }
        Ok(())
    }

    /// A slot that the trigger depends on, unless it has succeeded since.
    fn slot(&mut self, slot: SlotRef) -> Result<(), StoreError> {
        let state = self.reader.slot(&slot)?.map(|slot| slot.state);
        if state != Some(SlotState::Succeeded) && !self.waits_for.contains(&slot) {
            self.waits_for.push(slot);
        }
        Ok(())
    }
}
