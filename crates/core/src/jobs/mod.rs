//! Jobs: slots that are named by job ids, and open each other. The graph says which belong together; here is what each waits for,
//! what functions are asked about them, and which of those that are not open may have become possible.
//!
//! The scheduler tells what becomes of slots, and opens, asks and looks at what follows. Absent: slots themselves, and
//! whether a job that may go does.

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

/// Jobs that are not open, and of which some parent has succeeded: so many are remembered. What is forgotten is found again
/// when the next of its parents succeeds.
const MOST_PROSPECTS: usize = 200_000;

/// The slots that jobs are, as far as they have to know of them.
pub(crate) trait Slots {
    /// The state of a slot in memory.
    fn state(&self, slot: &SlotRef) -> Option<SlotState>;

    /// Whether a slot is in memory.
    fn has(&self, slot: &SlotRef) -> bool {
        self.state(slot).is_some()
    }

    /// Whether a slot is in memory, or certain not to exist.
    fn is_known(&self, slot: &SlotRef) -> bool;

    /// Has a slot read of the past.
    fn read(&mut self, slot: &SlotRef);

    /// Has a job hear from now on what becomes of a parent. Gives the state of that, an inner none where it does not exist; none
    /// where the past is read first.
    fn listen(&mut self, child: &SlotRef, parent: &SlotRef) -> Option<Option<SlotState>>;

    /// Has a job hear of a parent no more.
    fn stop_listening(&mut self, child: &SlotRef, parent: &SlotRef);

    /// Has the scheduler come back to a job at a moment; at none where it need not.
    fn come_back(&mut self, job: &SlotRef, at: Option<Timestamp>);
}

/// What a look at the parents of an open job led to.
#[derive(Debug, PartialEq)]
pub(crate) enum ParentsSeen {
    /// It waits for none of them any more.
    Met(Reason),
    /// It waits, and these are to be opened, which it waits for and which do not exist.
    Missing(Vec<SlotRef>),
    /// It waits for what functions say of its parents, and is looked at again at this moment, where there is one.
    AskedFor(Reason, Option<Timestamp>),
    /// The past is read first, or its id makes no sense.
    Unknown,
}

/// What is known of jobs beside their slots.
#[derive(Default)]
pub(crate) struct Jobs {
    graph: JobGraph,
    relations: Relations,
    /// What jobs wait for: those that are open, and prospects.
    awaited: BTreeMap<SlotRef, Dependencies>,
    /// Jobs that are not open, and may have become possible, each with the parent whose success made somebody look.
    prospects: BTreeMap<SlotRef, SlotRef>,
    /// How many of `awaited` are not open.
    closed: usize,
    /// Jobs that succeeded, and whose children are to be looked at.
    succeeded: BTreeSet<SlotRef>,
    /// Those of them of which it is not known yet what waits for them: a person said that they succeeded.
    told: BTreeSet<SlotRef>,
    /// Runs that succeeded, and of which it is not known yet what waits for their jobs. They count as going on, so that no
    /// crash can come between the success of a job and the opening of its children.
    finishing: BTreeMap<SlotRef, u32>,
    breaches: Breaches,
}

impl Jobs {
    /// The relation between jobs.
    pub(crate) fn graph(&self) -> &JobGraph {
        &self.graph
    }

    /// Takes what definitions say of job ids from now on. Gives the jobs that are to be looked at again.
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

    /// Tells the children of a slot where that stands. Gives those that are open and to be looked at because of that.
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

    /// Notes where a parent stands. Says whether its child is to be looked at because of that.
    fn hears(&mut self, child: &SlotRef, parent: &SlotRef, standing: ParentStatus) -> bool {
        let awaited = self.awaited.get_mut(child).filter(|awaited| awaited.has(parent));
        let Some(awaited) = awaited else {
            self.breaches.report_slot(Invariant::ParentsAreCounted, child);
            return false;
        };
        // What only the past tells of it happened before.
        if standing == ParentStatus::Done && awaited.is_known() {
            awaited.opened_by = Some(parent.clone());
        }
        learn(awaited, child, parent, standing, &mut self.breaches)
    }

    /// Notes that a slot succeeded: if it is a job its children are looked at in the next tick.
    pub(crate) fn note_success(&mut self, slot: &SlotRef) {
        if slot.key.job().is_some() {
            self.succeeded.insert(slot.clone());
        }
    }

    /// Stops a job from listening to its parents. Only those that wait have it counted what they wait for.
    pub(crate) fn stop_awaiting(&mut self, child: &SlotRef, slots: &mut impl Slots) {
        if let Some(awaited) = self.awaited.remove(child) {
            awaited.parents().for_each(|parent| slots.stop_listening(child, parent));
        }
    }

    /// Looks for children of those that succeeded: what may have become possible is a prospect.
    pub(crate) fn follow_successes(&mut self, now: Timestamp, slots: &mut impl Slots) {
        for parent in std::mem::take(&mut self.succeeded) {
            // It may have been opened again meanwhile.
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

    /// Takes out what may have become possible, each with the parent whose success made somebody look.
    pub(crate) fn take_prospects(&mut self) -> BTreeMap<SlotRef, SlotRef> {
        std::mem::take(&mut self.prospects)
    }

    /// Whether a prospect has become possible, and is to be opened.
    pub(crate) fn is_possible(&mut self, job: &SlotRef, by: &SlotRef, now: Timestamp, slots: &mut impl Slots) -> bool {
        if slots.has(job) {
            self.drop_prospect(job, slots);
            return false;
        }
        if !self.awaited.contains_key(job) {
            // The definitions changed: its parents are others now.
            self.await_parents(job, now, slots);
            self.closed += usize::from(self.awaited.contains_key(job));
        }
        let Some(awaited) = self.awaited.get_mut(job) else {
            // Where its id makes no sense any more, it is no prospect.
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

    /// A prospect turned out to exist. If it waits, it goes on listening.
    fn drop_prospect(&mut self, job: &SlotRef, slots: &mut impl Slots) {
        let waits = slots.state(job) == Some(SlotState::Waiting);
        if self.awaited.contains_key(job) && !waits {
            self.stop_awaiting(job, slots);
            self.closed = self.closed.saturating_sub(1);
        }
    }

    /// Forgets all prospects where there are too many.
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

    /// Looks again at the children of those that succeeded because a person said so.
    pub(crate) fn find_late_prospects(&mut self, now: Timestamp, slots: &mut impl Slots) {
        for parent in std::mem::take(&mut self.told) {
            if slots.state(&parent).is_some_and(|state| state != SlotState::Succeeded) {
                // It was opened again.
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

    /// Sees to it that a job listens to its parents. Where its id makes no sense, or what its workflow says, it doesn't.
    fn await_parents(&mut self, job: &SlotRef, now: Timestamp, slots: &mut impl Slots) {
        if self.awaited.contains_key(job) {
            return;
        }
        let Some(id) = job.key.job() else { return self.breaches.report_slot(Invariant::JobsHaveIds, job) };
        // What its workflow says of parents may make no sense for it: then it waits for none.
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

    /// Looks at the parents of a job that is open and waits.
    pub(crate) fn look_at_parents(&mut self, job: &SlotRef, now: Timestamp, slots: &mut impl Slots) -> ParentsSeen {
        self.await_parents(job, now, slots);
        let Some(awaited) = self.awaited.get(job) else {
            let known = self.knows_parents(job, now);
            return known.explained().map_or(ParentsSeen::Unknown, |(why, again)| ParentsSeen::AskedFor(why, again));
        };
        if awaited.is_met() {
            ParentsSeen::Met(explained(awaited))
        } else if awaited.is_known() {
            ParentsSeen::Missing(missing(awaited))
        } else {
            ParentsSeen::Unknown
        }
    }

    /// Why an open job waits for its parents.
    pub(crate) fn explained(&mut self, job: &SlotRef) -> Option<Reason> {
        let awaited = self.awaited.get(job);
        self.breaches.check_slot(awaited.is_some(), Invariant::ParentsAreCounted, job);
        awaited.map(explained)
    }

    /// Whether functions have said what a job waits for. Where not, they are asked.
    fn knows_parents(&mut self, job: &SlotRef, now: Timestamp) -> Knowledge {
        let questions = self.parent_questions(job);
        self.relations.know(&questions, now)
    }

    /// Whether it is known what waits for a job, and what each of these waits for besides. Where not, functions are asked.
    fn knows_children(&mut self, job: &SlotRef, now: Timestamp, slots: &impl Slots) -> bool {
        if !self.graph.asks_functions() {
            return true;
        }
        let mut questions = self.child_questions(job);
        let named = questions.iter().filter_map(|question| self.relations.named(question));
        let mut children: Vec<SlotRef> = named.flatten().cloned().collect();
        children.extend(self.listed_children(job));
        // Those that are open have asked for themselves.
        let closed = children.iter().filter(|child| !slots.has(child) && !self.awaited.contains_key(*child));
        let beyond: Vec<Relation> = closed.flat_map(|child| self.parent_questions(child)).collect();
        questions.extend(beyond);
        self.relations.know(&questions, now) == Knowledge::Whole
    }

    fn parent_questions(&self, job: &SlotRef) -> Vec<Relation> {
        job.key.job().map(|id| self.graph.asks_parents(&job.workflow, id)).unwrap_or_default()
    }

    fn child_questions(&self, job: &SlotRef) -> Vec<Relation> {
        job.key.job().map(|id| self.graph.asks_children(&job.workflow, id)).unwrap_or_default()
    }

    /// What definitions alone say that waits for a job.
    pub(crate) fn listed_children(&self, job: &SlotRef) -> Vec<SlotRef> {
        let children = job.key.job().and_then(|id| self.graph.children(&job.workflow, id).ok());
        children.unwrap_or_default().jobs.into_iter().map(|(job, _)| slot_of(job)).collect()
    }

    /// What functions said that a job waits for. It is forgotten with that.
    fn take_parents(&mut self, job: &SlotRef) -> Vec<Parents> {
        let mut groups = Vec::new();
        for question in self.parent_questions(job) {
            let parents = self.take_named(&question, job);
            let jobs = parents.into_iter().filter_map(|slot| {
                let id = slot.key.job()?.clone();
                Some(Job { id, workflow: slot.workflow })
            });
            let jobs: Vec<_> = jobs.collect();
            // A function that names nobody is not about the job.
            if !jobs.is_empty() {
                groups.push(Parents { group: question.group, jobs, unwritable: Vec::new() });
            }
        }
        groups
    }

    /// What functions said that waits for a job. It is forgotten with that.
    fn take_children(&mut self, job: &SlotRef) -> Vec<SlotRef> {
        let questions = self.child_questions(job);
        questions.iter().flat_map(|question| self.take_named(question, job)).collect()
    }

    /// Takes what a function said, which has been waited for.
    fn take_named(&mut self, question: &Relation, job: &SlotRef) -> Vec<SlotRef> {
        let named = self.relations.take_named(question);
        self.breaches.check_slot(named.is_some(), Invariant::ParentsAreCounted, job);
        named.unwrap_or_default()
    }

    /// Whether the success of a run can be recorded: it is known what waits for its job. Where not, the run counts as going on, also
    /// one that ended while nobody led and is told of before the files have been read.
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

    /// The reason that holds up the success of a job's run.
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

    /// Takes what a function said. Says whether that was waited for.
    pub(crate) fn related(&mut self, question: &Relation, answer: Result<NamedJobs, String>, now: Timestamp) -> bool {
        let is_awaited = self.relations.take_asked(question);
        if is_awaited {
            let answer = answer.and_then(|named| self.graph.answered(question, &named));
            let answer = answer.map(|jobs| jobs.into_iter().map(slot_of).collect());
            self.relations.keep(question.clone(), answer, now);
        }
        is_awaited
    }

    /// Takes the questions out that functions are to be asked.
    pub(crate) fn take_questions(&mut self) -> Vec<Relation> {
        self.relations.take_questions()
    }

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

fn slot_of(job: Job) -> SlotRef {
    SlotRef::job(job.workflow, job.id)
}

/// Notes where a parent stands. Says whether the job is to be looked at because of that.
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

/// The parents that do not exist on the way by which a job goes on. Where no way is possible it waits for the definitions to
/// change.
fn missing(awaited: &Dependencies) -> Vec<SlotRef> {
    let of_way = awaited.way().into_iter().flat_map(|way| awaited.of_group(way));
    of_way.filter(|(_, standing)| *standing == ParentStatus::Absent).map(|(parent, _)| parent.clone()).collect()
}
