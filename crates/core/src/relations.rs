//! Functions that know which jobs belong together. They are asked outside the step, so whoever needs to know waits for the
//! answer: an open job before it looks at its parents, and a run that succeeded before that is recorded. Until then the
//! run counts as going on, so that no crash can come between the success of a job and the opening of its children.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::jobs::{Direction, NamedJobs, Parents, Relation};
use kelos_model::run::Report;
use kelos_model::trigger::Waker;
use kelos_model::{Answer, Finding, Outcome, Reason, ReasonKind, RunId, SlotRef, SlotState};

use crate::{Command, Core};

/// A function that failed is asked again after this time.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// What functions were asked, and said.
#[derive(Default)]
pub(crate) struct Relations {
    asked: BTreeSet<Relation>,
    answers: BTreeMap<Relation, Result<Vec<SlotRef>, Trouble>>,
    /// Runs that succeeded, and of which it is not known yet whom that concerns.
    finishing: BTreeMap<SlotRef, u32>,
    /// Jobs of which a person said that they succeeded, and of which it is not known yet whom that concerns.
    told: BTreeSet<SlotRef>,
}

/// Why a function gave no answer, and since when.
struct Trouble {
    why: String,
    since: Timestamp,
}

/// How far the functions are that know a job's parents.
pub(crate) enum Knowledge {
    /// They have said everything.
    Whole,
    /// Some are being asked.
    Asked,
    /// One failed, and is asked again at this moment.
    Failed(String, Timestamp),
}

impl Core {
    /// Asks what is not known yet.
    fn know(&mut self, questions: &[Relation]) -> Knowledge {
        let mut known = Knowledge::Whole;
        for question in questions {
            match self.relations.answers.get(question) {
                Some(Ok(_)) => {}
                Some(Err(trouble)) if self.now < trouble.since + ASK_AGAIN => {
                    known = Knowledge::Failed(trouble.why.clone(), trouble.since + ASK_AGAIN);
                }
                _ => {
                    self.ask_function(question);
                    if !matches!(known, Knowledge::Failed(..)) {
                        known = Knowledge::Asked;
                    }
                }
            }
        }
        known
    }

    fn ask_function(&mut self, question: &Relation) {
        self.relations.answers.remove(question);
        if self.relations.asked.insert(question.clone()) {
            self.command(Command::Relate(question.clone()));
        }
    }

    /// Whether functions have said what a job waits for. Where not, they are asked.
    pub(crate) fn know_parents(&mut self, job: &SlotRef) -> Knowledge {
        let questions = self.parent_questions(job);
        self.know(&questions)
    }

    /// Whether functions are being asked what a job waits for.
    pub(crate) fn is_asking_for(&mut self, job: &SlotRef) -> bool {
        !matches!(self.know_parents(job), Knowledge::Whole)
    }

    fn parent_questions(&self, job: &SlotRef) -> Vec<Relation> {
        job.key.job().map(|id| self.jobs.graph().asks_parents(&job.workflow, id)).unwrap_or_default()
    }

    fn child_questions(&self, job: &SlotRef) -> Vec<Relation> {
        job.key.job().map(|id| self.jobs.graph().asks_children(&job.workflow, id)).unwrap_or_default()
    }

    /// What functions said that a job waits for. It is forgotten with that.
    pub(crate) fn take_parents(&mut self, job: &SlotRef) -> Vec<Parents> {
        let mut groups = Vec::new();
        for question in self.parent_questions(job) {
            let Some(Ok(parents)) = self.relations.answers.remove(&question) else { continue };
            let jobs = parents.into_iter().filter_map(|slot| {
                Some(kelos_model::jobs::Job { id: slot.key.job()?.clone(), workflow: slot.workflow })
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
    pub(crate) fn take_children(&mut self, job: &SlotRef) -> Vec<SlotRef> {
        let questions = self.child_questions(job);
        questions.iter().filter_map(|question| self.relations.answers.remove(question)?.ok()).flatten().collect()
    }

    /// Whether it is known what waits for a job, and what each of these waits for besides. Where not, functions are asked.
    pub(crate) fn know_children(&mut self, job: &SlotRef) -> bool {
        if !self.jobs.graph().asks_functions() {
            return true;
        }
        let mut questions = self.child_questions(job);
        let named = questions.iter().filter_map(|question| self.relations.answers.get(question)?.as_ref().ok());
        let mut children: Vec<SlotRef> = named.flatten().cloned().collect();
        if let Some(id) = job.key.job() {
            let listed = self.jobs.graph().children(&job.workflow, id).unwrap_or_default();
            children.extend(listed.jobs.into_iter().map(|(job, _)| SlotRef::job(job.workflow, job.id)));
        }
        // Those that are open have asked for themselves.
        let closed = children.iter().filter(|child| !self.slots.has(child) && !self.jobs.is_awaiting(child));
        let beyond: Vec<Relation> = closed.flat_map(|child| self.parent_questions(child)).collect();
        questions.extend(beyond);
        matches!(self.know(&questions), Knowledge::Whole)
    }

    /// Whether the success of a run can be recorded: whom it concerns is known. Where not, the run counts as going on, also one that
    /// ended while nobody led and is told of before the files have been read.
    pub(crate) fn may_succeed(&mut self, run: &RunId) -> bool {
        let is_told_early = !self.defined && run.slot.key.job().is_some();
        if !is_told_early && self.know_children(&run.slot) {
            self.relations.finishing.remove(&run.slot);
            return true;
        }
        self.relations.finishing.insert(run.slot.clone(), run.number);
        false
    }

    /// Takes what a function said.
    pub(crate) fn related(&mut self, relation: Relation, answer: Result<NamedJobs, String>) {
        if !self.relations.asked.remove(&relation) {
            return;
        }
        let answer = answer.and_then(|named| self.jobs.graph().answered(&relation, &named));
        let slots = |jobs: Vec<kelos_model::jobs::Job>| {
            jobs.into_iter().map(|job| SlotRef::job(job.workflow, job.id)).collect::<Vec<_>>()
        };
        let answer = answer.map(slots).map_err(|why| Trouble { why, since: self.now });
        self.relations.answers.insert(relation.clone(), answer);
        if relation.direction == Direction::Parents && (self.slots.state(&relation.of) == Some(SlotState::Waiting)) {
            self.wake(relation.of.clone());
        }
        self.finish();
        self.find_late_prospects();
    }

    /// The success of a job was recorded before it was known whom that concerns: a person said that it succeeded.
    pub(crate) fn find_prospects_later(&mut self, parent: SlotRef) {
        self.wakes.look_at_moment(&parent, self.now + ASK_AGAIN);
        self.relations.told.insert(parent);
    }

    /// Looks again at the children of those that succeeded because a person said so.
    pub(crate) fn find_late_prospects(&mut self) {
        for parent in std::mem::take(&mut self.relations.told) {
            let reopened = self.live(&parent).is_some_and(|live| live.slot.state != SlotState::Succeeded);
            if reopened {
                continue;
            }
            if self.know_children(&parent) {
                self.wakes.forget_moment(&parent);
                self.find_prospects(&parent);
            } else {
                self.find_prospects_later(parent);
            }
        }
    }

    /// Judges those runs again whose success waits for an answer.
    pub(crate) fn finish(&mut self) {
        for (slot, number) in self.relations.finishing.clone() {
            self.run_reported(&RunId { slot, number }, Report::Ended { outcome: Outcome::Succeeded });
        }
    }

    /// The definitions changed: what was said counts no more.
    pub(crate) fn forget_relations(&mut self) {
        self.relations.asked.clear();
        self.relations.answers.clear();
        self.finish();
    }

    /// What holds up the success of a job's run, in words.
    pub(crate) fn finishing(&self, job: &SlotRef) -> Option<String> {
        self.relations.finishing.get(job)?;
        if !self.defined {
            return Some(
                "its run succeeded; what waits for it is known once the definitions have been read".to_owned(),
            );
        }
        let questions = self.child_questions(job);
        let trouble = questions.iter().find_map(|question| self.relations.answers.get(question)?.as_ref().err());
        Some(match trouble {
            Some(trouble) => format!("its run succeeded; what waits for it can't be asked: {}", trouble.why),
            None => "its run succeeded; its workflow's functions are asked what waits for it".to_owned(),
        })
    }

    /// A job waits for what functions say of its parents.
    pub(crate) fn wait_for_functions(&mut self, id: &SlotRef, known: Knowledge) {
        let (finding, again) = match known {
            Knowledge::Whole => return,
            Knowledge::Asked => (Finding::ParentsAsked, None),
            Knowledge::Failed(message, at) => (Finding::ParentsUnknown { message }, Some(at)),
        };
        let explanation = Reason::leaf(ReasonKind::Parents, Answer::NotYet, finding);
        self.keep_waiting(id, explanation, again.map(Waker::At).into_iter().collect());
    }
}
