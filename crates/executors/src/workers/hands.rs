//! The runs in a worker's hands, and what it has to say about them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use kelos_model::workers::Label;
use kelos_model::{RunId, SlotRef, WorkflowId};
use kelos_wire::{AssignmentDto, ClaimedRunDto, OfferRequest, OfferedProjectDto, OutputAnswerDto, RunReportDto};

/// The number of ended runs that a worker remembers, so that it executes none twice.
const REMEMBERED: usize = 1024;

/// The jobs that a worker accepts.
#[derive(Debug, Clone)]
pub struct WorkerOffer {
    /// Jobs of these workflows; none means of all.
    pub workflows: BTreeSet<WorkflowId>,
    /// The project whose functions it has, if it is a program of one.
    pub project: Option<OfferedProjectDto>,
    /// Its labels.
    pub labels: BTreeSet<Label>,
    /// Only this one.
    pub job: Option<SlotRef>,
    /// So many at a time.
    pub at_a_time: u32,
    /// So many in all, and then no more.
    pub in_all: Option<u32>,
    /// The number of attempts for its jobs, if it differs from that of their workflow.
    pub attempts: Option<u32>,
    /// It offers that, and does nothing before [`Worker::go`].
    pub held: bool,
}

/// The runs of a worker.
pub(super) struct Hands {
    pub(super) wanted: WorkerOffer,
    pub(super) leaves: bool,
    pub(super) declines: bool,
    /// It left, and the desk knows.
    pub(super) left: bool,
    /// The leader can't be reached, and that was told.
    pub(super) alone: bool,
    /// Its disk can't be written, and that was said.
    pub(super) is_stuck: bool,
    pub(super) session: Option<String>,
    /// The newest epoch of a leader that it has heard of.
    pub(super) epoch: u64,
    /// Messages without an answer since the last one that had one.
    pub(super) unanswered: u32,
    /// Its lease, once it is known.
    pub(super) lease: Option<Duration>,
    pub(super) count: u64,
    /// The newest of its messages that had an answer, by their counts.
    pub(super) answered: u64,
    pub(super) taken: u32,
    pub(super) runs: BTreeMap<RunId, WorkerRun>,
    pub(super) outbox: Vec<RunReportDto>,
    /// The workflows of its project that have another definition, as the leader said last.
    pub(super) outdated: BTreeSet<WorkflowId>,
    /// Output that was asked for.
    pub(super) outputs: Vec<OutputAnswerDto>,
    /// The last reports on runs that are over.
    pub(super) over: VecDeque<RunReportDto>,
}

/// A run in a worker's hands.
pub(super) struct WorkerRun {
    pub(super) executor: String,
    pub(super) external_id: Option<String>,
    /// The lease that its order named.
    pub(super) lease_millis: Option<u64>,
    pub(super) ended: bool,
    /// No report on it is needed any more.
    pub(super) abandoned: bool,
}

impl Hands {
    /// Those of a worker that has no runs yet.
    pub(super) fn new(wanted: WorkerOffer) -> Hands {
        Hands {
            wanted,
            leaves: false,
            declines: false,
            left: false,
            alone: false,
            is_stuck: false,
            session: None,
            epoch: 0,
            unanswered: 0,
            lease: None,
            count: 0,
            answered: 0,
            taken: 0,
            runs: BTreeMap::new(),
            outbox: Vec::new(),
            outdated: BTreeSet::new(),
            outputs: Vec::new(),
            over: VecDeque::new(),
        }
    }

    pub(super) fn free(&self) -> u32 {
        if self.leaves {
            return 0;
        }
        let busy = self.runs.values().filter(|held| !held.ended).count();
        let free = self.wanted.at_a_time.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX));
        self.wanted.in_all.map_or(free, |all| free.min(all.saturating_sub(self.taken)))
    }

    pub(super) fn word(&mut self) -> OfferRequest {
        self.count += 1;
        let claimed = |(run, held): (&RunId, &WorkerRun)| {
            (!held.abandoned).then(|| ClaimedRunDto {
                run: run.clone(),
                external_id: held.external_id.clone(),
                lease_millis: held.lease_millis,
            })
        };
        // A run whose report is sent again is listed, so that the hub does not assign it once more meanwhile.
        let told = self.outbox.iter().filter(|told| !self.runs.contains_key(&told.run));
        let told = told.map(|told| ClaimedRunDto { run: told.run.clone(), external_id: None, lease_millis: None });
        OfferRequest {
            session: self.session.clone(),
            epoch: Some(self.epoch),
            count: self.count,
            answered: Some(self.answered),
            workflows: self.wanted.workflows.clone(),
            project: self.wanted.project.clone(),
            labels: self.wanted.labels.clone(),
            job: self.wanted.job.clone(),
            free: self.free(),
            attempts: self.wanted.attempts,
            runs: self.runs.iter().filter_map(claimed).chain(told).collect(),
            ..OfferRequest::default()
        }
    }

    /// Whether an answer is one of the newest leader that it has heard of. An older program does not name its epoch, and is believed in all
    /// but its verdicts.
    pub(super) fn believes(&mut self, answer: &mut AssignmentDto) -> bool {
        match answer.epoch {
            Some(epoch) if epoch < self.epoch => return false,
            Some(epoch) => self.epoch = epoch,
            None if self.epoch > 0 => answer.refused.clear(),
            None => {}
        }
        true
    }

    /// Notes that a message had an answer.
    pub(super) fn was_answered(&mut self, count: u64) {
        (self.unanswered, self.answered) = (0, self.answered.max(count));
    }

    pub(super) fn forget(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.outbox.retain(|told| told.run != *run);
    }

    pub(super) fn remember(&mut self, told: &RunReportDto) {
        self.over.push_back(told.clone());
        if self.over.len() > REMEMBERED {
            self.over.pop_front();
        }
    }

    /// Whether no run and no report is left.
    pub(super) fn is_idle(&self) -> bool {
        self.runs.is_empty() && self.outbox.is_empty()
    }
}
