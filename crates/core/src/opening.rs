//! Jobs open each other: opening a job opens its missing ancestors, and its success opens the children that became
//! possible. This carries out what [`Jobs`](crate::jobs::Jobs) decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::event::Origin;
use kelos_model::jobs::{Direction, JobGraph, NamedJobs, Relation};
use kelos_model::run::Report;
use kelos_model::sharing::Reference;
use kelos_model::trigger::{Evaluation, Waker};
use kelos_model::{Outcome, RunId, SlotEvent, SlotRef, SlotState, Workflow, WorkflowId};

use crate::jobs::{ParentsState, Slots, Validity};
use crate::slots::SlotTable;
use crate::wakes::{Audience, Wakes};
use crate::{Command, Core};

/// The slots and wakes, as the graph of jobs uses them.
struct Surroundings<'a> {
    slots: &'a mut SlotTable,
    wakes: &'a mut Wakes,
}

impl Slots for Surroundings<'_> {
    fn state(&self, slot: &SlotRef) -> Option<SlotState> {
        self.slots.state(slot)
    }

    fn is_known(&self, slot: &SlotRef) -> bool {
        self.slots.is_known(slot)
    }

    fn read(&mut self, slot: &SlotRef) {
        self.slots.want(slot.clone());
    }

    fn listen(&mut self, child: &SlotRef, parent: &SlotRef) -> Option<Option<SlotState>> {
        let in_memory = self.slots.get(parent).map(|live| (live.slot.state, live.slot.since));
        if self.wakes.upstream.await_parent(child, parent, in_memory) {
            self.read(parent);
        }
        self.wakes.upstream.known(parent)
    }

    fn stop_listening(&mut self, child: &SlotRef, parent: &SlotRef) {
        self.wakes.upstream.stop_awaiting(child, parent);
    }

    fn come_back(&mut self, job: &SlotRef, at: Option<Timestamp>) {
        match at {
            Some(at) => self.wakes.look_at_moment(job, at),
            None => self.wakes.forget_moment(job),
        }
    }
}

impl Core {
    /// Takes the sound definitions of job ids. Returns the reasons why the others are dormant.
    pub(crate) fn define_jobs(&mut self, all: &BTreeMap<WorkflowId, Arc<Workflow>>) -> BTreeMap<WorkflowId, String> {
        let keyed = all.iter().filter_map(|(id, one)| Some((id, one.keys.jobs()?)));
        let (graph, faulty) = JobGraph::sound(keyed);
        let open = self.jobs.define(graph, &mut Surroundings { slots: &mut self.slots, wakes: &mut self.wakes });
        // A trigger may refer to a job that can be opened only now.
        self.wakes.upstream.lookers_for_nothing().into_iter().for_each(|slot| self.wakes.dirty.insert(slot));
        self.finish();
        open.into_iter().for_each(|job| self.wake(job));
        faulty
    }

    /// Announces the state of a slot to the slots that wait for it.
    pub(crate) fn tell(&mut self, slot: &SlotRef, state: Option<SlotState>) {
        if !self.wakes.upstream.has(slot) {
            return;
        }
        let since = self.slots.get(slot).map(|live| live.slot.since);
        let Audience { lookers, children } = self.wakes.upstream.learn(slot, state, since);
        let surroundings = Surroundings { slots: &mut self.slots, wakes: &mut self.wakes };
        let open = self.jobs.heard(slot, state, children, &surroundings);
        open.into_iter().chain(lookers).for_each(|one| self.wake(one));
    }

    /// Unsubscribes a job from its parents.
    pub(crate) fn stop_awaiting(&mut self, child: &SlotRef) {
        self.jobs.stop_awaiting(child, &mut Surroundings { slots: &mut self.slots, wakes: &mut self.wakes });
    }

    /// Opens the jobs that became possible. Returns whether there were any.
    pub(crate) fn push(&mut self) -> bool {
        let now = self.now;
        let mut surroundings = Surroundings { slots: &mut self.slots, wakes: &mut self.wakes };
        self.jobs.follow_successes(now, &mut surroundings);
        let mut opened = false;
        for (job, by) in self.jobs.take_prospects() {
            let mut surroundings = Surroundings { slots: &mut self.slots, wakes: &mut self.wakes };
            if self.jobs.is_possible(&job, &by, now, &mut surroundings) {
                // It may have been opened meanwhile.
                opened |= self.record_if_possible(&job, SlotEvent::planned(Origin::Parent(by), 0));
            }
        }
        self.jobs.bound_prospects(&mut Surroundings { slots: &mut self.slots, wakes: &mut self.wakes });
        self.ask_functions();
        opened
    }

    /// Commands the questions to scripts' functions that are due.
    fn ask_functions(&mut self) {
        let questions = self.jobs.take_questions();
        questions.into_iter().for_each(|question| self.turn.command(Command::Relate(question)));
    }

    /// Evaluates a waiting job: whether it is valid, and whether its parents have succeeded.
    pub(crate) fn look_at_job(&mut self, id: &SlotRef) {
        match self.evaluator().validity(id) {
            Some(Validity::No(explanation)) => return self.record(id, SlotEvent::Skipped { explanation }),
            Some(Validity::NotKnown(explanation, probe)) => {
                return self.keep_waiting(id, Evaluation { explanation, wakers: vec![Waker::Probe(probe)] });
            }
            Some(Validity::Yes) => self.slots.set_valid(id),
            None => {}
        }
        let mut surroundings = Surroundings { slots: &mut self.slots, wakes: &mut self.wakes };
        let seen = self.jobs.look_at_parents(id, self.now, &mut surroundings);
        self.ask_functions();
        match seen {
            ParentsState::Met(parents) => match self.evaluator().beyond_parents(id, parents) {
                Some(evaluation) => self.decide(id, evaluation),
                None => self.breaches.no_slot(id),
            },
            ParentsState::Missing(parents) => self.open_parents(id, &parents),
            ParentsState::AskedFor(explanation, again) => {
                let wakers = again.map(Waker::At).into_iter().collect();
                self.keep_waiting(id, Evaluation { explanation, wakers });
            }
            ParentsState::Unknown => {}
        }
    }

    /// Opens the missing parents of a job.
    fn open_parents(&mut self, id: &SlotRef, parents: &[SlotRef]) {
        let priority = self.slots.get(id).map_or(0, |live| live.slot.priority);
        for parent in parents.iter().filter(|parent| self.may_open(id, parent)).cloned().collect::<Vec<_>>() {
            let parent = &parent;
            self.record_if_possible(parent, SlotEvent::planned(Origin::Child(id.clone()), priority));
        }
        if let Some(explanation) = self.jobs.explained(id) {
            self.keep_waiting(id, Evaluation { explanation, wakers: Vec::new() });
        }
    }

    /// Whether a slot opens another one that it waits for. One of a project that does not let it waits until somebody else opens that.
    fn may_open(&self, id: &SlotRef, parent: &SlotRef) -> bool {
        self.shares(&id.workflow, &Reference::Start(parent.workflow.clone()))
    }

    /// Opens the jobs that a slot's trigger waits for.
    pub(crate) fn pull_awaited(&mut self, id: &SlotRef, wakers: &[Waker]) {
        for waker in wakers {
            if let Waker::Slot(job) = waker
                && job.key.job().is_some()
                && self.may_open(id, job)
                && self.wakes.upstream.known(job) == Some(None)
                && self.workflows.check_slot(job, || self.slots.has(job)).is_ok()
            {
                self.record_if_possible(job, SlotEvent::planned(Origin::Child(id.clone()), 0));
            }
        }
    }

    /// Whether the success of a run can be recorded, because the jobs that wait for it are known. Otherwise functions
    /// are asked, and the run counts as live.
    pub(crate) fn may_succeed(&mut self, run: &RunId) -> bool {
        let surroundings = Surroundings { slots: &mut self.slots, wakes: &mut self.wakes };
        let may = self.jobs.may_succeed(run, self.workflows.are_given(), self.now, &surroundings);
        self.ask_functions();
        may
    }

    /// Judges the runs again whose success waits for an answer.
    pub(crate) fn finish(&mut self) {
        for run in self.jobs.finishing() {
            self.run_reported(&run, Report::Ended { outcome: Outcome::Succeeded });
        }
    }

    /// Takes the answer of a script's function.
    pub(crate) fn related(&mut self, question: &Relation, answer: Result<NamedJobs, String>) {
        if !self.jobs.related(question, answer, self.now) {
            return;
        }
        let waits = self.slots.state(&question.of) == Some(SlotState::Waiting);
        if question.direction == Direction::Parents && waits {
            self.wake(question.of.clone());
        }
        self.finish();
        let mut surroundings = Surroundings { slots: &mut self.slots, wakes: &mut self.wakes };
        self.jobs.find_late_prospects(self.now, &mut surroundings);
        self.ask_functions();
    }
}
