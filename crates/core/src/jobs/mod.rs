//! Jobs: slots that are named by job ids, and open each other. The graph has the relation between them; this module has
//! the dependencies of each job, the questions to functions about them, and the candidates, which are not open and may
//! have become possible.
//!
//! The scheduler reports changes of slots, and opens, asks and evaluates what follows. Absent: slots themselves, and
//! the decision whether a job runs.

mod awaited;
mod parents;
mod relations;
#[cfg(test)]
mod tests;
mod valid;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::jobs::{Job, JobGraph, NamedJobs, Parents, Relation};
use kelos_model::{Answer, Breach, Finding, Invariant, Reason, ReasonKind, RunId, SlotRef, SlotState};

use crate::breaches::Breaches;
use awaited::{Dependencies, ParentStatus};
use parents::explained;
use relations::{ASK_AGAIN, Knowledge, Relations};
pub(crate) use valid::Validity;

/// The most candidates that are remembered. Forgotten ones are found again when their next parent succeeds.
const MOST_PROSPECTS: usize = 200_000;

/// The slots of jobs, as far as their relations depend on them.
pub(crate) trait Slots {
    /// The state of a slot in memory.
    fn state(&self, slot: &SlotRef) -> Option<SlotState>;

    /// Whether a slot is in memory.
    fn has(&self, slot: &SlotRef) -> bool {
        self.state(slot).is_some()
    }

    /// Whether a slot is in memory, or is known not to exist.
    fn is_known(&self, slot: &SlotRef) -> bool;

    /// Requests a slot from the past.
    fn read(&mut self, slot: &SlotRef);

    /// Subscribes a job to the state of a parent. Returns that state, with an inner none if the parent does not exist;
    /// none if the past has to be read first.
    fn listen(&mut self, child: &SlotRef, parent: &SlotRef) -> Option<Option<SlotState>>;

    /// Unsubscribes a job from a parent.
    fn stop_listening(&mut self, child: &SlotRef, parent: &SlotRef);

    /// Sets the timer of a job; none clears it.
    fn come_back(&mut self, job: &SlotRef, at: Option<Timestamp>);
}

/// The result of evaluating the parents of an open job.
#[derive(Debug, PartialEq)]
pub(crate) enum ParentsState {
    /// All its dependencies are met.
    Met(Reason),
    /// It waits for these parents among others, which do not exist and are to be opened.
    Missing(Vec<SlotRef>),
    /// It waits for the answers of functions about its parents, and is evaluated again at this moment, if there is one.
    AskedFor(Reason, Option<Timestamp>),
    /// The past has to be read first, or its id is not valid.
    Unknown,
}

/// The relations between jobs, and their dependencies.
#[derive(Default)]
pub(crate) struct Jobs {
    graph: JobGraph,
    relations: Relations,
    /// The dependencies of open jobs and of candidates.
    awaited: BTreeMap<SlotRef, Dependencies>,
    /// The candidates: jobs that are not open and may have become possible, each with the parent whose success is the
    /// cause.
    prospects: BTreeMap<SlotRef, SlotRef>,
    /// The number of entries of `awaited` that are not open.
    closed: usize,
    /// The jobs that succeeded, and whose children are to be examined.
    succeeded: BTreeSet<SlotRef>,
    /// Those of them whose children are not known yet, because a person marked them as succeeded.
    told: BTreeSet<SlotRef>,
    /// The runs that succeeded, and whose jobs' children are not known yet. They count as live, so that no crash can
    /// come between the success of a job and the opening of its children.
    finishing: BTreeMap<SlotRef, u32>,
    breaches: Breaches,
}

impl Jobs {
    /// The relation between jobs.
    pub(crate) fn graph(&self) -> &JobGraph {
        &self.graph
    }

    /// Replaces the graph. Returns the jobs to be evaluated again.
    pub(crate) fn define(&mut self, graph: JobGraph, slots: &mut impl Slots) -> Vec<SlotRef> {
        self.graph = graph;
        self.closed = 0;
        self.relations.forget();
        let mut open = Vec::new();
        for (job, awaited) in std::mem::take(&mut self.awaited) {
            awaited.parents().for_each(|parent| slots.stop_listening(&job, parent));
            if slots.has(&job) {
                open.push(job);
            } else if let Some(by) = awaited.opened_by {
                self.prospects.insert(job, by);
            }
        }
        open
    }

    /// Announces the state of a slot to its children. Returns the open ones to be evaluated because of that.
    pub(crate) fn heard(
        &mut self,
        parent: &SlotRef,
        state: Option<SlotState>,
        children: BTreeSet<SlotRef>,
        slots: &impl Slots,
    ) -> Vec<SlotRef> {
        let mut open = Vec::new();
        for child in children {
            if !self.hears(&child, parent, ParentStatus::of(Some(state))) {
                continue;
            }
            if slots.has(&child) {
                open.push(child);
            } else {
                let by = self.awaited.get(&child).and_then(|awaited| awaited.opened_by.clone());
                self.prospects.insert(child, by.unwrap_or_else(|| parent.clone()));
            }
        }
        open
    }

    /// Notes the status of a parent. Returns whether its child is to be evaluated because of that.
    fn hears(&mut self, child: &SlotRef, parent: &SlotRef, standing: ParentStatus) -> bool {
        let awaited = self.awaited.get_mut(child).filter(|awaited| awaited.has(parent));
        let Some(awaited) = awaited else {
            self.breaches.report_slot(Invariant::ParentsAreCounted, child);
            return false;
        };
        // A success that only the past knows happened before.
        if standing == ParentStatus::Done && awaited.is_known() {
            awaited.opened_by = Some(parent.clone());
        }
        learn(awaited, child, parent, standing, &mut self.breaches)
    }

    /// Notes the success of a slot. If it is a job, its children are examined in the next tick.
    pub(crate) fn note_success(&mut self, slot: &SlotRef) {
        if slot.key.job().is_some() {
            self.succeeded.insert(slot.clone());
        }
    }

    /// Unsubscribes a job from its parents. Only waiting jobs have counted dependencies.
    pub(crate) fn stop_awaiting(&mut self, child: &SlotRef, slots: &mut impl Slots) {
        if let Some(awaited) = self.awaited.remove(child) {
            awaited.parents().for_each(|parent| slots.stop_listening(child, parent));
        }
    }

    /// Examines the children of succeeded jobs. Those that may have become possible are candidates.
    pub(crate) fn follow_successes(&mut self, now: Timestamp, slots: &mut impl Slots) {
        for parent in std::mem::take(&mut self.succeeded) {
            // It may have been reopened meanwhile.
            let succeeded = slots.state(&parent) == Some(SlotState::Succeeded);
            if succeeded && self.knows_children(&parent, now, slots) {
                self.find_prospects(&parent, now, slots);
            } else if succeeded {
                self.find_prospects_later(parent, now, slots);
            }
        }
        // A function that failed is asked again.
        self.find_late_prospects(now, slots);
    }

    /// Takes the candidates, each with the parent whose success is the cause.
    pub(crate) fn take_prospects(&mut self) -> BTreeMap<SlotRef, SlotRef> {
        std::mem::take(&mut self.prospects)
    }

    /// Whether a candidate has become possible, and is to be opened.
    pub(crate) fn is_possible(&mut self, job: &SlotRef, by: &SlotRef, now: Timestamp, slots: &mut impl Slots) -> bool {
        if slots.has(job) {
            self.drop_prospect(job, slots);
            return false;
        }
        if !self.awaited.contains_key(job) {
            // The definitions have changed, and its parents with them.
            self.await_parents(job, now, slots);
            self.closed += usize::from(self.awaited.contains_key(job));
        }
        let Some(awaited) = self.awaited.get_mut(job) else {
            // If its id is no longer valid, it is not a candidate.
            if self.knows_parents(job, now) != Knowledge::Whole {
                self.prospects.insert(job.clone(), by.clone());
            }
            return false;
        };
        awaited.opened_by = Some(by.clone());
        if !awaited.is_due() {
            return false;
        }
        if !slots.is_known(job) {
            slots.read(job);
            self.prospects.insert(job.clone(), by.clone());
            return false;
        }
        self.closed = self.closed.saturating_sub(1);
        true
    }

    /// Drops a candidate that turned out to exist. If it waits, it stays subscribed.
    fn drop_prospect(&mut self, job: &SlotRef, slots: &mut impl Slots) {
        let waits = slots.state(job) == Some(SlotState::Waiting);
        if self.awaited.contains_key(job) && !waits {
            self.stop_awaiting(job, slots);
            self.closed = self.closed.saturating_sub(1);
        }
    }

    /// Forgets all candidates if there are too many.
    pub(crate) fn bound_prospects(&mut self, slots: &mut impl Slots) {
        if self.closed <= MOST_PROSPECTS {
            return;
        }
        let closed: Vec<SlotRef> = self.awaited.keys().filter(|job| !slots.has(job)).cloned().collect();
        closed.iter().for_each(|job| self.stop_awaiting(job, slots));
        self.closed = 0;
    }

    fn find_prospects(&mut self, parent: &SlotRef, now: Timestamp, slots: &mut impl Slots) {
        self.breaches.check_slot(parent.key.job().is_some(), Invariant::JobsHaveIds, parent);
        let listed = self.listed_children(parent);
        for child in listed.into_iter().chain(self.take_children(parent)) {
            if slots.has(&child) || self.awaited.contains_key(&child) {
                continue;
            }
            self.await_parents(&child, now, slots);
            if let Some(awaited) = self.awaited.get_mut(&child) {
                awaited.opened_by = Some(parent.clone());
                self.closed += 1;
                self.prospects.insert(child, parent.clone());
            }
        }
    }

    fn find_prospects_later(&mut self, parent: SlotRef, now: Timestamp, slots: &mut impl Slots) {
        slots.come_back(&parent, Some(now + ASK_AGAIN));
        self.told.insert(parent);
    }

    /// Examines the children of jobs that a person marked as succeeded.
    pub(crate) fn find_late_prospects(&mut self, now: Timestamp, slots: &mut impl Slots) {
        for parent in std::mem::take(&mut self.told) {
            if slots.state(&parent).is_some_and(|state| state != SlotState::Succeeded) {
                // It was reopened.
                continue;
            }
            if self.knows_children(&parent, now, slots) {
                slots.come_back(&parent, None);
                self.find_prospects(&parent, now, slots);
            } else {
                self.find_prospects_later(parent, now, slots);
            }
        }
    }

    /// Subscribes a job to its parents, unless its id or its workflow's relation is not valid.
    fn await_parents(&mut self, job: &SlotRef, now: Timestamp, slots: &mut impl Slots) {
        if self.awaited.contains_key(job) {
            return;
        }
        let Some(id) = job.key.job() else { return self.breaches.report_slot(Invariant::JobsHaveIds, job) };
        // The relation may not be valid for this job, which then waits for no parents.
        let Ok(mut groups) = self.graph.parents(&job.workflow, id) else { return };
        if self.knows_parents(job, now) != Knowledge::Whole {
            return;
        }
        groups.extend(self.take_parents(job));
        let mut awaited = Dependencies::new(groups);
        for parent in awaited.parents().cloned().collect::<Vec<_>>() {
            let standing = ParentStatus::of(slots.listen(job, &parent));
            learn(&mut awaited, job, &parent, standing, &mut self.breaches);
        }
        self.awaited.insert(job.clone(), awaited);
    }

    /// Evaluates the parents of a waiting job.
    pub(crate) fn look_at_parents(&mut self, job: &SlotRef, now: Timestamp, slots: &mut impl Slots) -> ParentsState {
        self.await_parents(job, now, slots);
        let Some(awaited) = self.awaited.get(job) else {
            let known = self.knows_parents(job, now);
            return known.explained().map_or(ParentsState::Unknown, |(why, again)| ParentsState::AskedFor(why, again));
        };
        if awaited.is_met() {
            ParentsState::Met(explained(awaited))
        } else if awaited.is_known() {
            ParentsState::Missing(missing(awaited))
        } else {
            ParentsState::Unknown
        }
    }

    /// The reason why an open job waits for its parents.
    pub(crate) fn explained(&mut self, job: &SlotRef) -> Option<Reason> {
        let awaited = self.awaited.get(job);
        self.breaches.check_slot(awaited.is_some(), Invariant::ParentsAreCounted, job);
        awaited.map(explained)
    }

    /// Whether the functions have answered all questions about a job's parents. If not, they are asked.
    fn knows_parents(&mut self, job: &SlotRef, now: Timestamp) -> Knowledge {
        let questions = self.parent_questions(job);
        self.relations.know(&questions, now)
    }

    /// Whether the children of a job are known, and the other parents of each. If not, functions are asked.
    fn knows_children(&mut self, job: &SlotRef, now: Timestamp, slots: &impl Slots) -> bool {
        if !self.graph.asks_functions() {
            return true;
        }
        let mut questions = self.child_questions(job);
        let named = questions.iter().filter_map(|question| self.relations.named(question));
        let mut children: Vec<SlotRef> = named.flatten().cloned().collect();
        children.extend(self.listed_children(job));
        // Open jobs have asked for themselves.
        let closed = children.iter().filter(|child| !slots.has(child) && !self.awaited.contains_key(*child));
        let beyond: Vec<Relation> = closed.flat_map(|child| self.parent_questions(child)).collect();
        questions.extend(beyond);
        self.relations.know(&questions, now) == Knowledge::Whole
    }

    /// The parents of a job that its definition names, as groups of which one must have succeeded. What functions name is not among them:
    /// they would have to be asked again.
    pub(crate) fn written_parents(&self, job: &SlotRef) -> Vec<BTreeSet<SlotRef>> {
        let groups = job.key.job().and_then(|id| self.graph.parents(&job.workflow, id).ok()).unwrap_or_default();
        let writable = groups.into_iter().filter(|group| group.unwritable.is_empty());
        let groups = writable.map(|group| group.jobs.into_iter().map(slot_of).collect());
        // A group that a function names may be the one that has succeeded.
        let asked = self.parent_questions(job).into_iter().map(|_| BTreeSet::new());
        groups.chain(asked).collect()
    }

    fn parent_questions(&self, job: &SlotRef) -> Vec<Relation> {
        job.key.job().map(|id| self.graph.asks_parents(&job.workflow, id)).unwrap_or_default()
    }

    fn child_questions(&self, job: &SlotRef) -> Vec<Relation> {
        job.key.job().map(|id| self.graph.asks_children(&job.workflow, id)).unwrap_or_default()
    }

    /// The children of a job according to definitions alone.
    pub(crate) fn listed_children(&self, job: &SlotRef) -> Vec<SlotRef> {
        let children = job.key.job().and_then(|id| self.graph.children(&job.workflow, id).ok());
        children.unwrap_or_default().jobs.into_iter().map(|(job, _)| slot_of(job)).collect()
    }

    /// Takes the answers of functions about a job's parents.
    fn take_parents(&mut self, job: &SlotRef) -> Vec<Parents> {
        let mut groups = Vec::new();
        for question in self.parent_questions(job) {
            let parents = self.take_named(&question, job);
            let jobs = parents.into_iter().filter_map(|slot| {
                let id = slot.key.job()?.clone();
                Some(Job { id, workflow: slot.workflow })
            });
            let jobs: Vec<_> = jobs.collect();
            // An empty answer means that the function is not about the job.
            if !jobs.is_empty() {
                groups.push(Parents { group: question.group, jobs, unwritable: Vec::new() });
            }
        }
        groups
    }

    /// Takes the answers of functions about a job's children.
    fn take_children(&mut self, job: &SlotRef) -> Vec<SlotRef> {
        let questions = self.child_questions(job);
        questions.iter().flat_map(|question| self.take_named(question, job)).collect()
    }

    /// Takes the answer of a function, which is known to be there.
    fn take_named(&mut self, question: &Relation, job: &SlotRef) -> Vec<SlotRef> {
        let named = self.relations.take_named(question);
        self.breaches.check_slot(named.is_some(), Invariant::ParentsAreCounted, job);
        named.unwrap_or_default()
    }

    /// Whether the success of a run can be recorded, because the children of its job are known. If not, the run counts
    /// as live; so does one that ended while there was no leader and is reported before the definitions have been
    /// given.
    pub(crate) fn may_succeed(&mut self, run: &RunId, is_defined: bool, now: Timestamp, slots: &impl Slots) -> bool {
        let is_told_early = !is_defined && run.slot.key.job().is_some();
        if !is_told_early && self.knows_children(&run.slot, now, slots) {
            self.finishing.remove(&run.slot);
            return true;
        }
        self.finishing.insert(run.slot.clone(), run.number);
        false
    }

    /// The runs whose success waits for an answer.
    pub(crate) fn finishing(&self) -> Vec<RunId> {
        self.finishing.iter().map(|(slot, number)| RunId { slot: slot.clone(), number: *number }).collect()
    }

    /// The reason why the success of a job's run is not recorded yet.
    pub(crate) fn why_finishing(&self, job: &SlotRef, is_defined: bool) -> Option<Reason> {
        self.finishing.get(job)?;
        let questions = self.child_questions(job);
        let trouble = questions.iter().find_map(|question| self.relations.trouble(question));
        let finding = match trouble {
            _ if !is_defined => Finding::DefinitionsAwaited,
            Some(message) => Finding::ChildrenUnknown { message: message.to_owned() },
            None => Finding::ChildrenAsked,
        };
        Some(Reason::leaf(ReasonKind::Children, Answer::NotYet, finding))
    }

    /// Takes the answer of a function. Returns whether it was awaited.
    pub(crate) fn related(&mut self, question: &Relation, answer: Result<NamedJobs, String>, now: Timestamp) -> bool {
        let is_awaited = self.relations.take_asked(question);
        if is_awaited {
            let answer = answer.and_then(|named| self.graph.answered(question, &named));
            let answer = answer.map(|jobs| jobs.into_iter().map(slot_of).collect());
            self.relations.keep(question.clone(), answer, now);
        }
        is_awaited
    }

    /// Takes the questions to functions that are due.
    pub(crate) fn take_questions(&mut self) -> Vec<Relation> {
        self.relations.take_questions()
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

fn slot_of(job: Job) -> SlotRef {
    SlotRef::job(job.workflow, job.id)
}

/// Notes the status of a parent. Returns whether the job is to be evaluated because of that.
fn learn(
    awaited: &mut Dependencies,
    child: &SlotRef,
    parent: &SlotRef,
    standing: ParentStatus,
    breaches: &mut Breaches,
) -> bool {
    let news = awaited.learn(parent, standing);
    breaches.check_slot(news.is_some(), Invariant::ParentsAreCounted, child);
    news.unwrap_or_default()
}

/// The parents that do not exist in the group that a job continues with. If no group is possible, it waits for a change
/// of definitions.
fn missing(awaited: &Dependencies) -> Vec<SlotRef> {
    let of_way = awaited.way().into_iter().flat_map(|way| awaited.of_group(way));
    of_way.filter(|(_, standing)| *standing == ParentStatus::Absent).map(|(parent, _)| parent.clone()).collect()
}
