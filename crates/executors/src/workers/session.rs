//! A worker as its hub knows it, from its first message until it leaves or is given up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_core::Offer;
use kelos_model::workers::{Label, WorkerRecord};
use kelos_model::{RunId, WorkflowId};
use kelos_wire::{
    OfferRequest, OfferedProjectDto, OutputQuestionDto, PermitAnswerDto, RemoteWorkerDto, WorkerFoldersDto,
};
use tokio::sync::Notify;

use super::Process;
use super::entry::{Entry, RunNeed};

/// The workflows whose runs are left to workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ServedWorkflows {
    /// Those that workers get who take all.
    pub(super) apps: BTreeSet<WorkflowId>,
    /// Those whose functions programs have, with the versions of their definitions.
    pub(super) functions: BTreeMap<WorkflowId, u32>,
}

/// A worker, from its first word until it leaves or is given up.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) count: u64,
    pub(super) heard: Instant,
    /// The newest answer that it says it received, by the count of the request, and since when that is known.
    pub(super) answered: (u64, Instant),
    /// It asked for runs, so it has all that an earlier leader assigned to it, and has listed them.
    pub(super) asked: bool,
    pub(super) process: Option<Process>,
    /// Whether it looks for runs that it is asked for by name.
    pub(super) seeks: bool,
    /// The runs that the next answer asks it for.
    pub(super) sought: BTreeSet<RunId>,
    /// Another process wants its name; and the number of messages of this one since.
    pub(super) challenged: Option<u32>,
    pub(super) wake: Arc<Notify>,
    pub(super) workflows: BTreeSet<WorkflowId>,
    /// It takes jobs of all workflows.
    pub(super) takes_all: bool,
    pub(super) labels: BTreeSet<Label>,
    /// The project whose functions it has, if it is a program of one.
    pub(super) project: Option<OfferedProjectDto>,
    /// The description of one on another machine.
    pub(super) remote: Option<RemoteWorkerDto>,
    /// The folders of its runs, as it told last.
    pub(super) folders: Option<WorkerFoldersDto>,
    /// The record in the log of one on another machine. Until it is there, nothing is offered.
    pub(super) record: Option<WorkerRecord>,
    pub(super) since: Timestamp,
    pub(super) job: Option<kelos_model::SlotRef>,
    pub(super) attempts: Option<u32>,
    pub(super) free: u32,
    pub(super) leaves: bool,
    /// It is on another machine, and has been silent, or without answers, for so long that it gets no runs.
    pub(super) away: bool,
    /// Questions for output that no answer contained yet.
    pub(super) questions: Vec<OutputQuestionDto>,
    /// Answers to requests of its runs for permits that no answer to it contained yet.
    pub(super) permits: Vec<PermitAnswerDto>,
    /// Runs assigned to it that it has not listed: repeated in each answer.
    pub(super) unlisted: BTreeSet<RunId>,
    /// The last request whose answer contained runs, by its count.
    pub(super) told_at: u64,
    /// The runs that it listed.
    pub(super) listed: BTreeSet<RunId>,
    /// The runs that it was told to end.
    pub(super) told_to_end: BTreeSet<RunId>,
    /// Its offer as the core knows it.
    pub(super) believed: Option<Offer>,
}

impl Session {
    pub(super) fn new(id: String, now: Now, process: Option<Process>) -> Session {
        Session {
            id,
            count: 0,
            heard: now.monotonic,
            answered: (0, now.monotonic),
            asked: false,
            process,
            seeks: false,
            sought: BTreeSet::new(),
            challenged: None,
            wake: Arc::default(),
            workflows: BTreeSet::new(),
            takes_all: false,
            labels: BTreeSet::new(),
            project: None,
            remote: None,
            folders: None,
            record: None,
            since: now.wall,
            job: None,
            attempts: None,
            free: 0,
            leaves: false,
            away: false,
            questions: Vec::new(),
            permits: Vec::new(),
            unlisted: BTreeSet::new(),
            told_at: 0,
            listed: BTreeSet::new(),
            told_to_end: BTreeSet::new(),
            believed: None,
        }
    }

    /// Notes that a request of it arrived, and which answers it has received.
    pub(super) fn hear(&mut self, word: &OfferRequest, now: Now) {
        self.heard = now.monotonic;
        // An older program does not say what it received.
        if word.answered.is_none_or(|count| count > self.answered.0) {
            self.answered = (word.answered.unwrap_or_default(), now.monotonic);
        }
    }

    /// Counts its silence from a moment on.
    pub(super) fn begin_waiting(&mut self, now: Instant) {
        (self.heard, self.answered.1) = (now, now);
    }

    /// The last time at which both its requests and the answers to them arrived.
    pub(super) fn last_seen(&self) -> Instant {
        if self.remote.is_some() { self.heard.min(self.answered.1) } else { self.heard }
    }

    /// Whether it has received no answer for so long that it gets no runs, although its requests arrive.
    pub(super) fn lacks_answers(&self, now: Now, lease: Duration) -> bool {
        self.remote.is_some() && now.monotonic.duration_since(self.answered.1) > lease / 2
    }

    /// The number of further runs that it accepts.
    pub(super) fn room(&self) -> u32 {
        self.free.saturating_sub(u32::try_from(self.unlisted.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn takes(&self, run: &RunId, entry: &Entry) -> bool {
        let id = &run.slot.workflow;
        let serves = match entry.needed() {
            RunNeed::Functions(_) => self.has_functions(id, entry.needed()),
            RunNeed::Any => self.project.is_none() && (self.takes_all || self.workflows.contains(id)),
        };
        let fits = entry.labels().is_none_or(|labels| labels.is_subset(&self.labels));
        serves && fits && self.job.as_ref().is_none_or(|job| *job == run.slot) && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.room() > 0 && !self.away && self.is_registered()
    }

    /// Whether all that it accepts is assigned to it, or more.
    pub(super) fn is_full(&self) -> bool {
        self.room() == 0
    }

    fn is_registered(&self) -> bool {
        self.remote.is_none() || self.record.is_some()
    }

    /// Whether it has the functions that a run of a workflow needs, if it needs any.
    pub(super) fn has_functions(&self, id: &WorkflowId, need: RunNeed) -> bool {
        let own = self.project.as_ref().and_then(|project| project.definitions.get(id));
        match need {
            RunNeed::Functions(version) => own.is_some() && own.copied() == version,
            RunNeed::Any => true,
        }
    }

    /// The workflows of its project that have another definition, by the versions in force.
    pub(super) fn outdated(&self, in_force: &BTreeMap<WorkflowId, u32>) -> BTreeSet<WorkflowId> {
        let own = self.project.iter().flat_map(|project| &project.definitions);
        // A version that is not known yet is newer than those that are.
        let is_old = |(id, version): &(&WorkflowId, &u32)| in_force.get(*id).is_some_and(|known| known > version);
        own.filter(is_old).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn offer(&self, served: &ServedWorkflows) -> Option<Offer> {
        let outdated = self.outdated(&served.functions);
        let workflows = match &self.project {
            Some(project) => project.definitions.keys().filter(|id| !outdated.contains(*id)).cloned().collect(),
            None if self.takes_all => served.apps.clone(),
            None => self.workflows.clone(),
        };
        let (labels, job, attempts) = (self.labels.clone(), self.job.clone(), self.attempts);
        let is_here = self.is_registered() && !self.leaves && !self.away;
        is_here.then(|| Offer { workflows, labels, job, free: self.room(), attempts, outdated })
    }

    pub(super) fn has(&self, run: &RunId) -> bool {
        self.listed.contains(run) || self.unlisted.contains(run)
    }

    pub(super) fn forget(&mut self, run: &RunId) {
        self.listed.remove(run);
        self.unlisted.remove(run);
        self.told_to_end.remove(run);
    }

    /// All that was given to it.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.listed.union(&self.unlisted).cloned().collect()
    }
}

/// A moment, by the clock that measures leases and by that of the wall.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) monotonic: Instant,
    pub(super) wall: Timestamp,
}

impl Now {
    pub(super) fn read() -> Now {
        Now { monotonic: Instant::now(), wall: Timestamp::now() }
    }

    /// The time of the wall at an earlier moment.
    pub(super) fn at(self, earlier: Instant) -> Timestamp {
        let ago = SignedDuration::try_from(self.monotonic.duration_since(earlier)).unwrap_or(SignedDuration::MAX);
        self.wall.checked_sub(ago).unwrap_or(Timestamp::MIN)
    }
}
