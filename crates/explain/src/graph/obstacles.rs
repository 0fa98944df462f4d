//! The obstacles of a slot at any distance upstream: the slots that it waits for, those that they wait for, and so on
//! to those that don't wait for another slot.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_core::Inspection;
use kelos_model::paths::PathWriters;
use kelos_model::probe::{Verdict, plain};
use kelos_model::reason::{Evidence, words};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Answer, Finding, Probe, Reason, ReasonKind, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use super::pauses;
use crate::account::{self, Account};
use crate::definitions::Definitions;
use crate::history;
use crate::jobs::{self, RelativeGroup};

/// The most slots of one answer.
pub const MOST_STEPS: usize = 200;
/// The obstacle of a slot for which nothing else is known to be in the way.
const ABOUT_TO_BE_ASKED: &str = "its trigger is about to be asked";

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
    /// The path that is not there, where it is that and nothing else.
    pub path: Option<String>,
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
    /// It waits for itself, through others.
    Circle,
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
            ObstacleKind::Circle => "circle",
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
    let view = View::new(reader, now, true);
    let mut seen = BTreeSet::from([slot.clone()]);
    let mut queue = vec![(slot.clone(), 0)];
    let mut steps = Vec::new();
    // The queue is walked from its front while it grows at its end: level by level.
    while let Some((slot, level)) = queue.get(steps.len()).cloned() {
        if steps.len() == MOST_STEPS {
            return Ok(Upstream { steps, is_cut: true });
        }
        let step = view.look(&slot, None)?.step(level);
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
    Ok(View::new(reader, now, true).look(slot, None)?.step(0).waits_for)
}

/// A moment at which slots are looked at, one after the other.
pub(crate) struct View<'a> {
    definitions: Definitions<'a>,
    at: Timestamp,
    /// Whether the moment is the present: the past is read from the log alone.
    at_present: bool,
}

/// A slot with everything that is in its way.
pub(crate) struct Look {
    /// The account of the slot itself.
    pub(crate) why: Account,
    /// The slots that it waits for, in the order of its trigger, each once.
    pub(crate) waits_for: Vec<Wait>,
    /// Its own obstacles, besides those slots.
    pub(crate) obstacles: Vec<Obstacle>,
}

/// A slot that another one waits for.
pub(crate) struct Wait {
    pub(crate) slot: SlotRef,
    /// The path that it writes and that is not there, if it is waited for because of one.
    pub(crate) path: Option<String>,
    /// Its state; none where it does not exist.
    pub(crate) state: Option<SlotState>,
}

impl Obstacle {
    /// Whether nothing tells how long it is in the way: the outside world, a person, or a condition besides times and slots.
    pub(crate) fn has_no_known_end(&self) -> bool {
        match self.kind {
            ObstacleKind::Trigger => self.words != ABOUT_TO_BE_ASKED,
            ObstacleKind::Outside
            | ObstacleKind::Held
            | ObstacleKind::Paused
            | ObstacleKind::Frozen
            | ObstacleKind::Undefined => true,
            _ => false,
        }
    }
}

impl Look {
    fn step(self, level: u32) -> Step {
        let Look { why, waits_for, obstacles } = self;
        let waits_for = waits_for.into_iter().map(|wait| wait.slot).collect();
        Step { state: why.state, level, words: why.headline, waits_for, obstacles, slot: why.slot }
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(reader: &'a dyn Queries, at: Timestamp, at_present: bool) -> View<'a> {
        View { definitions: Definitions::new(reader), at, at_present }
    }

    fn reader(&self) -> &'a dyn Queries {
        self.definitions.reader()
    }

    /// Looks at a slot, with what is known of it otherwise.
    pub(crate) fn look(&self, slot: &SlotRef, inspection: Option<&Inspection>) -> Result<Look, StoreError> {
        let workflow = self.reader().workflow(&slot.workflow)?;
        let why = account::read_with(&self.definitions, slot, self.at, self.at_present, inspection)?;
        let mut way =
            Way { view: self, why: &why, waits_for: Vec::new(), seen: BTreeSet::new(), obstacles: Vec::new() };
        way.look(workflow.as_ref())?;
        let Way { waits_for, obstacles, .. } = way;
        Ok(Look { why, waits_for, obstacles })
    }

    /// The state of a slot; none where it does not exist.
    pub(crate) fn state(&self, slot: &SlotRef) -> Result<Option<SlotState>, StoreError> {
        match self.at_present {
            true => Ok(self.reader().slot(slot)?.map(|slot| slot.state)),
            false => Ok(history::slot_at(self.reader(), slot, self.at)?.map(|slot| slot.state)),
        }
    }

    /// Whether a person had paused a workflow.
    fn is_paused(&self, row: &WorkflowRow) -> Result<bool, StoreError> {
        if self.at_present { Ok(row.paused) } else { pauses::was_paused(self.reader(), &row.id, self.at) }
    }
}

/// The obstacles of one slot, as far as they were found.
struct Way<'a> {
    view: &'a View<'a>,
    why: &'a Account,
    waits_for: Vec<Wait>,
    /// The slots that were examined.
    seen: BTreeSet<SlotRef>,
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
        self.obstacles.push(Obstacle { kind, words, path: None });
    }

    fn waiting(&mut self, workflow: Option<&WorkflowRow>) -> Result<(), StoreError> {
        match workflow {
            // Whether it was frozen, or not defined yet, is not asked of the past.
            Some(row) if row.present && row.frozen().is_some() && self.view.at_present => {
                self.add(ObstacleKind::Frozen, "its workflow is frozen, see Problems".to_owned())
            }
            Some(row) if self.view.is_paused(row)? => {
                self.add(ObstacleKind::Paused, "its workflow is paused".to_owned())
            }
            Some(row) if row.present || !self.view.at_present => {}
            _ => self.add(ObstacleKind::Undefined, "its workflow is no longer defined".to_owned()),
        }
        match &self.why.trigger {
            Some(trigger) => self.leaves(trigger)?,
            None => self.defined(workflow)?,
        }
        if self.obstacles.is_empty() && self.waits_for.is_empty() {
            self.add(ObstacleKind::Trigger, ABOUT_TO_BE_ASKED.to_owned());
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
            (_, ReasonKind::Parents) if self.parents()? => {}
            _ if !node.nested.is_empty() => {
                for nested in &node.nested {
                    self.leaves(nested)?;
                }
            }
            _ => self.leaf(node)?,
        }
        Ok(())
    }

    /// The parents of a job by the relation, of which the tree of its trigger names only some; whether that knows them.
    fn parents(&mut self) -> Result<bool, StoreError> {
        let job = &self.why.slot;
        let jobs = self.view.definitions.jobs()?;
        if !self.view.at_present || !jobs.knows_parents(job) || jobs.faulty.contains_key(&job.workflow) {
            return Ok(false);
        }
        let groups = jobs::parents(jobs, self.view.reader(), job)?;
        if groups.iter().any(|group| group.succeeded() == group.total()) {
            return Ok(true);
        }
        let is_stuck = |group: &&RelativeGroup| {
            let waits = |one: &jobs::Relative| jobs.is_paused(&one.job, one.state);
            !group.unwritable.is_empty() || group.ended_badly().next().is_some() || group.jobs.iter().any(waits)
        };
        // A group that nobody has to do anything for is what it really waits for.
        let all_stuck = groups.iter().all(|group| is_stuck(&group));
        for group in groups.iter().filter(|group| all_stuck || !is_stuck(group)) {
            for one in &group.unwritable {
                let nameless = Reason::leaf(ReasonKind::Job, Answer::NotYet, Finding::from(one));
                self.add(ObstacleKind::Trigger, words::text(&nameless));
            }
            for parent in group.jobs.iter().filter(|parent| parent.state != Some(SlotState::Succeeded)) {
                if self.seen.insert(parent.job.clone()) {
                    self.waits_for.push(Wait { slot: parent.job.clone(), path: None, state: parent.state });
                }
            }
        }
        Ok(!groups.is_empty())
    }

    fn leaf(&mut self, leaf: &Reason) -> Result<(), StoreError> {
        match leaf.evidence() {
            Some(Evidence::Slot { slot, .. }) => self.slot(slot.clone())?,
            Some(Evidence::Clock { .. }) => self.add(ObstacleKind::Clock, words::text(leaf)),
            Some(Evidence::Probe { probe, verdict, .. }) => {
                let (words, path) = (self.with_beginning(leaf, verdict), missing_path(probe, verdict));
                let written = match (probe, verdict) {
                    (Probe::Path { uri, .. }, Verdict::No) => self.writers(uri)?,
                    _ => Authorship::ByNobody,
                };
                match written {
                    Authorship::Later => {}
                    Authorship::ByNobody => self.obstacles.push(Obstacle { kind: ObstacleKind::Outside, words, path }),
                    Authorship::Told(more) => {
                        let words = format!("{words}; {more}");
                        self.obstacles.push(Obstacle { kind: ObstacleKind::Outside, words, path: None });
                    }
                }
            }
            Some(Evidence::Asked) | None => self.add(ObstacleKind::Trigger, words::text(leaf)),
        }
        Ok(())
    }

    /// A leaf in words, with the beginning of its outage, which the account of the slot has.
    fn with_beginning(&self, leaf: &Reason, verdict: Verdict) -> String {
        let own = words::text(leaf);
        // Not for thousands of paths.
        let is_told = verdict == Verdict::Failed && self.obstacles.len() < MOST_STEPS;
        let mut blockers = self.why.blockers.iter().filter(|_| is_told);
        blockers.find(|blocker| blocker.starts_with(&own)).cloned().unwrap_or(own)
    }

    /// The slots that write a path that is not there: those that have not succeeded are waited for.
    fn writers(&mut self, uri: &str) -> Result<Authorship, StoreError> {
        let own = &self.why.slot;
        let PathWriters { mut slots, others } =
            self.view.definitions.paths()?.writers(&own.workflow, uri, own.key.time());
        let is_own = slots.remove(own);
        let (mut succeeded, mut awaited) = (None, Vec::new());
        for slot in slots {
            match self.view.state(&slot)? {
                Some(SlotState::Succeeded) => succeeded = Some(slot),
                state => awaited.push((slot, state)),
            }
        }
        // Where many write it, those that will only come to be say nothing.
        if succeeded.is_some() || awaited.iter().any(|(_, state)| state.is_some()) {
            awaited.retain(|(_, state)| state.is_some());
        }
        let is_awaited = !awaited.is_empty();
        for (slot, state) in awaited {
            if self.seen.insert(slot.clone()) {
                self.waits_for.push(Wait { slot, path: Some(plain(uri).into_owned()), state });
            }
        }
        let other = others.into_iter().next();
        Ok(match (is_awaited, succeeded, other) {
            (true, ..) => Authorship::Later,
            (_, Some(slot), _) => Authorship::Told(format!("{} writes it, and has succeeded", slot.short())),
            (_, _, Some(id)) => {
                Authorship::Told(format!("{id} writes such paths, but none of its slots is known to write this one"))
            }
            _ if is_own => Authorship::Told("only the slot itself writes it".to_owned()),
            _ => Authorship::ByNobody,
        })
    }

    /// A slot that the trigger depends on, unless it has succeeded since.
    fn slot(&mut self, slot: SlotRef) -> Result<(), StoreError> {
        if self.seen.insert(slot.clone()) {
            let state = self.view.state(&slot)?;
            if state != Some(SlotState::Succeeded) {
                self.waits_for.push(Wait { slot, path: None, state });
            }
        }
        Ok(())
    }
}

/// The authorship of a path that is not there.
enum Authorship {
    /// No workflow says that it does.
    ByNobody,
    /// Slots that have not succeeded yet.
    Later,
    /// Writers that explain nothing further, in words.
    Told(String),
}

/// The path of a question that was answered with no, and asked for nothing else than that it is there.
fn missing_path(probe: &Probe, verdict: Verdict) -> Option<String> {
    match (probe, verdict) {
        (Probe::Path { uri, conditions }, Verdict::No) if conditions.is_empty() => Some(plain(uri).into_owned()),
        _ => None,
    }
}
