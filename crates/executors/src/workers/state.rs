//! The state of a hub: the workers, the runs of each, and the runs that no worker has yet.
//!
//! Absent: the clock, which is an argument, and waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_core::Input;
use kelos_engine::executor::{Reports, Start};
use kelos_model::run::Report;
use kelos_model::workers::WorkerRecord;
use kelos_model::{Outcome, Run, RunId, WorkflowId};
use kelos_wire::{
    ClaimedRunDto, OfferRequest, OutputQuestionDto, PermitAnswerDto, RemoteWorkerDto, RunOrderDto, RunReportDto,
};

use super::entry::{Entry, Place, RunNeed, order};
use super::refusal::{HeldName, HubError};
use super::session::{Now, ServedWorkflows, Session};
use super::verdict::{ExternalId, Loss, millis};
use super::{Process, WorkerView};
use crate::local::{is_fenced, surely_over};

mod unclaimed;

pub(super) use unclaimed::Absence;

/// Everything a desk knows.
pub(super) struct State {
    /// The name of the hub.
    own: String,
    /// The epoch whose runs and sessions these are.
    epoch: u64,
    /// The prefix of the names of its sessions.
    prefix: String,
    /// How often it has begun to lead, also again in the same epoch.
    begun: u64,
    drawn: u64,
    pub(super) sessions: BTreeMap<Arc<str>, Session>,
    pub(super) runs: BTreeMap<RunId, Entry>,
    /// The workflows whose runs are left to workers.
    pub(super) served: ServedWorkflows,
    /// The time after which a silent worker on another machine loses its runs.
    remote_lease: Duration,
    /// The last heartbeats of workers on other machines that are gone.
    gone: BTreeMap<Arc<str>, Timestamp>,
    /// Runs that go back to the queue, with the last reports on them.
    returned: Vec<(Reports, RunId, Report)>,
    /// The number of runs that ended because their workers on other machines were cut off for longer than the lease.
    pub(super) fenced: u64,
}

/// The report on a run that was to end, and never began.
const KILLED: Report = Report::Ended { outcome: Outcome::Killed };

/// So many messages of a process since another one asked for its name say that both are alive. One may have been on its way.
const SIGNS_OF_LIFE: u32 = 2;

/// The most workers that are remembered after they are gone.
const MOST_GONE: usize = 1000;

impl State {
    pub(super) fn new(own: String, remote_lease: Duration) -> State {
        State {
            prefix: format!("{own}.0."),
            begun: 0,
            own,
            epoch: 0,
            drawn: 0,
            sessions: BTreeMap::new(),
            runs: BTreeMap::new(),
            served: ServedWorkflows::default(),
            remote_lease,
            gone: BTreeMap::new(),
            returned: Vec::new(),
            fenced: 0,
        }
    }

    /// The session of a worker, made if it has none.
    pub(super) fn session(
        &mut self,
        worker: &Arc<str>,
        word: &OfferRequest,
        now: Now,
    ) -> Result<(&mut Session, bool), HubError> {
        let is_ours = word.session.as_ref().is_some_and(|id| id.starts_with(&self.prefix));
        let known =
            self.sessions.get(worker).is_some_and(|session| !is_ours || Some(&session.id) == word.session.as_ref());
        if is_ours && !known {
            return Err(HubError::GivenUp);
        }
        let process = word.process.clone().map(Process::from);
        let is_succeeded = known && self.is_succeeded(worker, word, process.as_ref(), now)?;
        let known = known && !is_succeeded;
        if !known {
            self.drawn += 1;
            let id = format!("{}{}", self.prefix, self.drawn);
            let mut session = Session::new(id, now, process);
            session.unlisted = self.inherited(worker, now.monotonic);
            session.remote.clone_from(&word.remote);
            self.gone.remove(worker);
            self.sessions.insert(worker.clone(), session);
        }
        let Some(session) = self.sessions.get_mut(worker) else { return Err(HubError::GivenUp) };
        session.hear(word, now);
        (session.away, session.seeks) = (session.lacks_answers(now, self.remote_lease), word.epoch.is_some());
        session.challenged = session.challenged.map(|words| words.saturating_add(1));
        // Only these messages are answered with runs, and it sends no other of them before it has taken the runs from
        // the answer.
        session.asked |= word.wait_millis > 0 || word.leaves || word.session.is_none();
        Ok((session, !known))
    }

    /// Whether a worker on another machine has been started again, and this is its new process. Another process gets the name only if the
    /// former has certainly ended: where a machine or a folder was copied, both are alive.
    fn is_succeeded(
        &mut self,
        worker: &Arc<str>,
        word: &OfferRequest,
        process: Option<&Process>,
        now: Now,
    ) -> Result<bool, HubError> {
        let Some(session) = self.sessions.get_mut(worker).filter(|session| session.remote.is_some()) else {
            return Ok(false);
        };
        if session.process.as_ref() == process {
            return Ok(false);
        }
        let has_ended = session.process.as_ref().is_none_or(|former| has_ended(former, word));
        if has_ended || word.epoch.is_none() {
            // An older program can't prove the end of its former process.
            return Ok(word.session.is_none());
        }
        let runs = session.runs();
        let leases = runs.iter().filter_map(|run| self.runs.get(run)).map(|entry| entry.lease(self.remote_lease));
        let longest = leases.fold(self.remote_lease, Duration::max);
        let held = HeldName {
            name: worker.clone(),
            host: session.remote.as_ref().map(|remote| remote.host.clone()).unwrap_or_default(),
            silence: now.monotonic.duration_since(session.heard),
            lease: surely_over(longest),
        };
        if session.challenged.is_some_and(|words| words >= SIGNS_OF_LIFE) && word.session.is_none() {
            return Err(HubError::NameTaken(held));
        }
        if session.challenged.is_none() {
            session.challenged = Some(0);
            session.wake.notify_waiters();
        }
        Err(HubError::NameHeld(held))
    }

    /// Whether this process has the name of a worker that is there.
    pub(super) fn is_there(&self, worker: &Arc<str>) -> bool {
        self.sessions.contains_key(worker)
    }

    /// The runs of the former process of a worker, which get to the next one: what that does not have already, it is told again, and it
    /// recognises them by their folders.
    fn inherited(&mut self, worker: &Arc<str>, now: Instant) -> BTreeSet<RunId> {
        let Some(former) = self.sessions.remove(worker) else { return BTreeSet::new() };
        former.wake.notify_waiters();
        let mut again = BTreeSet::new();
        for run in former.runs() {
            let Some(entry) = self.runs.get_mut(&run) else { continue };
            if entry.start.is_some() {
                again.insert(run);
            } else {
                let lease = entry.loss.map_or(self.remote_lease, |loss| loss.lease);
                entry.place = Place::Unclaimed(now + surely_over(lease));
            }
        }
        again
    }

    /// Processes a worker's reports on its runs; returns those that are rejected.
    pub(super) fn reported(&mut self, worker: &Arc<str>, reports: &[RunReportDto]) -> Vec<RunId> {
        let mut refused = Vec::new();
        for RunReportDto { run, what } in reports {
            if !self.belongs(run, worker) {
                refused.push(run.clone());
                continue;
            }
            self.claim(run, worker, false);
            match what {
                Report::Started { external_id } => self.started(run, worker, external_id),
                // It is kept until its end is stored: an engine that lost the lead dropped the report, which has to be
                // repeated.
                Report::Ended { .. } | Report::Gave { .. } | Report::Asks { .. } => self.say(run, what.clone()),
                // One that was put off will be asked for anew, and one that was given back, or that the next process of a worker
                // found not begun, is another run then.
                Report::Deferred { .. } | Report::GivenBack | Report::NeverStarted => {
                    let entry = self.runs.get(run);
                    let (is_cancelled, was_confirmed) =
                        entry.map_or((false, false), |entry| (entry.cancelled, entry.external_id.is_some()));
                    let what = match what {
                        Report::NeverStarted if is_cancelled => KILLED,
                        Report::NeverStarted if was_confirmed => {
                            // A command ends with its folder, and a machine that is gone with all that ran on it.
                            let reason = "its worker finds no trace of it".to_owned();
                            Report::Ended { outcome: Outcome::Unknown { reason } }
                        }
                        what => what.clone(),
                    };
                    self.say(run, what);
                    self.forget(run, worker);
                }
            }
        }
        refused
    }

    /// Takes in what a worker offers and what it has; gives the runs that are not its own.
    pub(super) fn offered(&mut self, worker: &Arc<str>, word: &OfferRequest) -> Vec<RunId> {
        let Some(session) = self.sessions.get_mut(worker) else { return Vec::new() };
        if word.count <= session.count {
            return Vec::new();
        }
        session.count = word.count;
        session.workflows.clone_from(&word.workflows);
        session.takes_all = word.workflows.is_empty() && !word.is_limited && word.project.is_none();
        session.labels.clone_from(&word.labels);
        session.project.clone_from(&word.project);
        session.remote.clone_from(&word.remote);
        session.folders.clone_from(&word.folders);
        session.job.clone_from(&word.job);
        (session.attempts, session.free, session.leaves) = (word.attempts, word.free, word.leaves);
        self.miss(worker, &word.runs);
        if word.leaves {
            self.take_unfetched(worker);
        }
        self.take_undelivered(worker, word);
        let mut refused = Vec::new();
        for claimed in &word.runs {
            if !self.belongs(&claimed.run, worker) {
                refused.push(claimed.run.clone());
                continue;
            }
            self.claim(&claimed.run, worker, true);
            self.agree(claimed, worker);
            if let Some(external_id) = &claimed.external_id {
                self.started(&claimed.run, worker, external_id);
            }
        }
        refused
    }

    /// Takes note of what a worker on another machine was told about the loss of a run.
    fn agree(&mut self, claimed: &ClaimedRunDto, worker: &Arc<str>) {
        let is_remote = self.sessions.get(worker).is_some_and(|session| session.remote.is_some());
        if let Some(entry) = self.runs.get_mut(&claimed.run).filter(|_| is_remote) {
            let told = claimed.lease_millis.map_or(self.remote_lease, Duration::from_millis);
            let handed = entry.handed.take().and_then(|handed| handed.loss);
            match handed {
                Some(handed) => entry.loss = Some(Loss { lease: told, ..handed }),
                None => drop(entry.agree(told)),
            }
        }
    }

    /// Whether a run is a worker's, or could be.
    fn belongs(&self, run: &RunId, worker: &Arc<str>) -> bool {
        self.runs.get(run).is_some_and(|entry| match &entry.place {
            Place::Given(other) => other == worker,
            Place::Unread | Place::Unclaimed(_) => true,
            Place::Ending => false,
        })
    }

    fn claim(&mut self, run: &RunId, worker: &Arc<str>, listed: bool) {
        let (Some(entry), Some(session)) = (self.runs.get_mut(run), self.sessions.get_mut(worker)) else { return };
        entry.place = Place::Given(worker.clone());
        if listed {
            // It may begin at any moment.
            entry.told = true;
            session.unlisted.remove(run);
            session.listed.insert(run.clone());
        } else if !session.has(run) {
            session.listed.insert(run.clone());
        }
    }

    /// Once for each run: its executor may say it again.
    fn started(&mut self, run: &RunId, worker: &Arc<str>, external_id: &str) {
        let Some(entry) = self.runs.get_mut(run).filter(|entry| entry.external_id.is_none()) else { return };
        let external_id = ExternalId { own: external_id, worker: Some(worker.clone()), loss: entry.loss }.text();
        entry.external_id = Some(external_id.clone());
        self.say(run, Report::Started { external_id });
    }

    /// Records that a worker's reports on its runs are stored.
    pub(super) fn stored(&mut self, worker: &Arc<str>, reports: &[RunReportDto]) {
        for RunReportDto { run, what } in reports {
            let is_its = |entry: &Entry| matches!(&entry.place, Place::Given(other) if other == worker);
            let Report::Ended { outcome } = what else { continue };
            if self.runs.get(run).is_some_and(is_its) {
                // Its worker came back after the lease, and tells that the command was ended by it.
                self.fenced += u64::from(matches!(outcome, Outcome::Unknown { reason } if is_fenced(reason)));
                self.forget(run, worker);
            }
        }
    }

    fn forget(&mut self, run: &RunId, worker: &Arc<str>) {
        self.runs.remove(run);
        if let Some(session) = self.sessions.get_mut(worker) {
            session.forget(run);
        }
    }

    fn say(&self, run: &RunId, what: Report) {
        if let Some(entry) = self.runs.get(run) {
            entry.reports.run(run, entry.judged(what));
        }
    }

    /// Assigns a run to the worker that it was dispatched to. If that is not there any more, the run goes back to the queue: the log
    /// says who has it, so that no other worker gets it without another dispatch.
    pub(super) fn start(&mut self, start: Start, reports: Reports) {
        let (run, worker) = (start.run.clone(), start.worker.clone().unwrap_or_default());
        if let Some(known) = self.runs.get_mut(&run) {
            known.reports = reports;
            known.start = Some(start);
            return;
        }
        self.runs.insert(run.clone(), Entry::given(start, reports, worker.clone()));
        match self.sessions.get_mut(&worker).filter(|session| !session.leaves && !session.away) {
            Some(session) => {
                if let Some(believed) = &mut session.believed {
                    believed.free = believed.free.saturating_sub(1);
                }
                session.unlisted.insert(run);
                session.wake.notify_waiters();
                self.pass_on();
            }
            None => self.give_back(&run),
        }
    }

    /// Returns a run that its worker was not told of to the queue.
    fn give_back(&mut self, run: &RunId) {
        let Some(entry) = self.runs.remove(run) else { return };
        if let Place::Given(worker) = &entry.place
            && let Some(session) = self.sessions.get_mut(worker)
        {
            session.forget(run);
            // The core may think that it has room.
            session.believed = None;
        }
        let report = if entry.cancelled { KILLED } else { Report::NeverStarted };
        self.returned.push((entry.reports, run.clone(), report));
    }

    /// Returns runs to the queue whose workers have no room for them, if others have, and those of functions that their programs have
    /// no longer as they are in force.
    pub(super) fn pass_on(&mut self) {
        let mut late = Vec::new();
        for session in self.sessions.values() {
            let outdated = session.outdated(&self.served.functions);
            let is_old = |run: &&RunId| {
                let entry = self.runs.get(run);
                entry.is_some_and(|entry| !entry.is_told() && entry.needed() != RunNeed::Any)
                    && outdated.contains(&run.slot.workflow)
            };
            late.extend(session.unlisted.iter().filter(is_old).cloned());
            if session.is_full() {
                let (_, beyond) = self.due(session);
                let is_wanted = |run: &&RunId| {
                    let takes = |entry: &Entry| self.sessions.values().any(|other| other.takes(run, entry));
                    self.runs.get(run).is_some_and(takes)
                };
                late.extend(beyond.into_iter().filter(is_wanted).cloned());
            }
        }
        late.iter().for_each(|run| self.give_back(run));
    }

    /// The runs that the next answer to a worker contains: those that it was told of and does not list, and as many others as it has room
    /// for. Then those for which it has none. A run of a function is in neither until it is known that the program has it as it is in
    /// force.
    fn due<'s>(&self, session: &'s Session) -> (Vec<&'s RunId>, Vec<&'s RunId>) {
        let is_told = |run: &&RunId| self.runs.get(run).is_some_and(Entry::is_told);
        let (mut due, mut others): (Vec<_>, Vec<_>) = session.unlisted.iter().partition(is_told);
        others.retain(|run| {
            let fits = |entry: &Entry| session.has_functions(&run.slot.workflow, entry.needed());
            self.runs.get(*run).is_some_and(fits)
        });
        let room = usize::try_from(session.free).unwrap_or(usize::MAX).saturating_sub(due.len());
        let beyond = others.split_off(room.min(others.len()));
        due.extend(others);
        (due, beyond)
    }

    /// The changes of offers for the core.
    pub(super) fn news(&mut self) -> Vec<Input> {
        let mut news = Vec::new();
        for (worker, session) in &mut self.sessions {
            let offer = session.offer(&self.served);
            if offer != session.believed {
                session.believed.clone_from(&offer);
                news.push(Input::Offered { worker: worker.clone(), offer });
            }
        }
        news
    }

    /// The runs that go back to the queue, with the last reports on them. The core has to hear the [news](State::news) before.
    pub(super) fn returned(&mut self) -> Vec<(Reports, RunId, Report)> {
        std::mem::take(&mut self.returned)
    }

    /// Marks all offers to be sent to the core again.
    pub(super) fn doubt_offers(&mut self) {
        self.sessions.values_mut().for_each(|session| session.believed = None);
    }

    /// The runs that a worker has to execute, and those to end.
    pub(super) fn orders(&mut self, worker: &Arc<str>) -> (Vec<RunOrderDto>, Vec<RunId>) {
        let Some(session) = self.sessions.get(worker) else { return Default::default() };
        let is_remote = session.remote.is_some();
        // One that receives no answers is told of no run, so that others can have those which it does not list.
        let due = if session.away { Vec::new() } else { self.due(session).0 };
        let due: Vec<RunId> = due.into_iter().cloned().collect();
        let mut starts = Vec::new();
        for run in due {
            let Some(entry) = self.runs.get_mut(&run) else { continue };
            entry.told |= entry.start.is_some();
            let loss = is_remote.then(|| entry.agree(self.remote_lease));
            starts.extend(entry.start.as_ref().map(|start| order(start, loss)));
        }
        let is_cancelled = |run: &RunId| self.runs.get(run).is_some_and(|entry| entry.cancelled);
        let Some(session) = self.sessions.get_mut(worker) else { return Default::default() };
        let cancels: Vec<RunId> = session.listed.iter().filter(|run| is_cancelled(run)).cloned().collect();
        session.told_to_end.extend(cancels.iter().cloned());
        if !starts.is_empty() {
            session.told_at = session.count;
        }
        (starts, cancels)
    }

    /// Whether the log does not have all that it has to have before a worker is told its orders.
    pub(super) fn is_unregistered(&self, worker: &Arc<str>) -> bool {
        let known = self.sessions.get(worker).and_then(|session| session.record.as_ref());
        self.record(worker, known).is_some_and(|wanted| known != Some(&wanted))
    }

    /// The record that the log has to have of a worker on another machine: of its leases the longest, also of runs of before.
    pub(super) fn record(&self, worker: &Arc<str>, known: Option<&WorkerRecord>) -> Option<WorkerRecord> {
        let session = self.sessions.get(worker)?;
        let RemoteWorkerDto { host, version, node, outputs } = session.remote.clone()?;
        let process = session.process.as_ref().map(Process::text);
        let runs = session.runs();
        let leases = runs.iter().filter_map(|run| self.runs.get(run)).map(|entry| entry.lease(self.remote_lease));
        let known = known.map(WorkerRecord::lease).unwrap_or_default();
        let lease_millis = millis(leases.fold(self.remote_lease.max(known), Duration::max));
        Some(WorkerRecord { lease_millis, host, version, node, process, labels: session.labels.clone(), outputs })
    }

    /// Notes what the log has of a worker.
    pub(super) fn registered(&mut self, worker: &Arc<str>, record: WorkerRecord) {
        if let Some(session) = self.sessions.get_mut(worker) {
            session.record = Some(record);
        }
    }

    /// Whether a worker is there, or a run may be at it.
    pub(super) fn needs(&self, worker: &Arc<str>) -> bool {
        self.sessions.contains_key(worker) || self.runs.values().any(|entry| entry.may_be_at(worker))
    }

    /// The runs that a worker may have which has not come back.
    pub(super) fn runs_named_for(&self, worker: &Arc<str>) -> Vec<RunId> {
        self.runs.iter().filter(|(_, entry)| entry.may_be_at(worker)).map(|(run, _)| run.clone()).collect()
    }

    /// The workers on other machines.
    pub(super) fn remote_workers(&self) -> Vec<Arc<str>> {
        self.sessions.iter().filter(|(_, session)| session.remote.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// Asks a worker for output; false where it is not there.
    pub(super) fn ask(&mut self, worker: &Arc<str>, question: OutputQuestionDto) -> bool {
        let Some(session) = self.sessions.get_mut(worker).filter(|session| !session.away) else { return false };
        session.questions.push(question);
        session.wake.notify_waiters();
        true
    }

    /// The questions for output that a worker has to answer.
    pub(super) fn questions(&mut self, worker: &Arc<str>) -> Vec<OutputQuestionDto> {
        self.sessions.get_mut(worker).map(|session| std::mem::take(&mut session.questions)).unwrap_or_default()
    }

    /// Tells the worker of a run what became of a request for permits. A worker that is away asks again when it comes back.
    pub(super) fn permit(&mut self, permit: PermitAnswerDto) {
        let place = self.runs.get(&permit.run).map(|entry| &entry.place);
        let Some(Place::Given(worker)) = place else { return };
        let Some(session) = self.sessions.get_mut(worker) else { return };
        session.permits.push(permit);
        session.wake.notify_waiters();
    }

    /// The answers to requests for permits that a worker has to be told.
    pub(super) fn permits(&mut self, worker: &Arc<str>) -> Vec<PermitAnswerDto> {
        self.sessions.get_mut(worker).map(|session| std::mem::take(&mut session.permits)).unwrap_or_default()
    }

    /// The workflows of a worker's project that have another definition by now.
    pub(super) fn outdated(&self, worker: &Arc<str>) -> BTreeSet<WorkflowId> {
        self.sessions.get(worker).map(|session| session.outdated(&self.served.functions)).unwrap_or_default()
    }

    /// Takes note of the definition in force of a workflow, for a run of one of its functions, which its program is told of then if it
    /// has that one, and of the earlier runs of its slot.
    pub(super) fn know_version(&mut self, run: &RunId, version: u32, earlier: Vec<Run>) {
        let known = self.served.functions.entry(run.slot.workflow.clone()).or_default();
        *known = version.max(*known);
        if let Some(entry) = self.runs.get_mut(run) {
            entry.version = Some(version);
            entry.start.iter_mut().for_each(|start| start.earlier.clone_from(&earlier));
        }
        self.pass_on();
        let Some(Place::Given(worker)) = self.runs.get(run).map(|entry| &entry.place) else { return };
        if let Some(session) = self.sessions.get(worker) {
            session.wake.notify_waiters();
        }
    }

    /// Puts off a run that its worker can't be told of now: it is asked for anew.
    pub(super) fn put_off(&mut self, run: &RunId, reason: String) {
        let Some(Place::Given(worker)) = self.runs.get(run).map(|entry| entry.place.clone()) else { return };
        self.say(run, Report::Deferred { reason });
        self.forget(run, &worker);
    }

    /// The last heartbeat of a worker, where it is not there.
    pub(super) fn away_since(&self, worker: &Arc<str>, now: Now) -> Option<Timestamp> {
        match self.sessions.get(worker) {
            Some(session) => session.away.then(|| now.at(session.last_seen())),
            None => self.gone.get(worker).copied(),
        }
    }

    /// Returns the runs to the queue that no answer to a worker contained.
    fn take_unfetched(&mut self, worker: &Arc<str>) {
        let Some(session) = self.sessions.get(worker) else { return };
        let is_told = |run: &&RunId| self.runs.get(run).is_some_and(Entry::is_told);
        let untold: Vec<RunId> = session.unlisted.iter().filter(|run| !is_told(run)).cloned().collect();
        untold.iter().for_each(|run| self.give_back(run));
    }

    /// Whether there are runs, or runs to end, that a worker doesn't know of.
    pub(super) fn has_orders(&self, worker: &Arc<str>) -> bool {
        let Some(session) = self.sessions.get(worker) else { return true };
        let to_end =
            |run: &RunId| !session.told_to_end.contains(run) && self.runs.get(run).is_some_and(|entry| entry.cancelled);
        session.away
            || !self.due(session).0.is_empty()
            || session.challenged == Some(0)
            || !session.sought.is_empty()
            || !session.questions.is_empty()
            || !session.permits.is_empty()
            || session.listed.iter().any(to_end)
    }

    /// Records that a run is to end; false if it isn't known.
    pub(super) fn cancel(&mut self, run: &RunId, reports: Reports) -> bool {
        let Some(entry) = self.runs.get_mut(run) else { return false };
        entry.reports = reports;
        entry.cancelled = true;
        match entry.place.clone() {
            Place::Given(worker) => {
                if let Some(session) = self.sessions.get(&worker) {
                    session.wake.notify_waiters();
                }
            }
            Place::Unread | Place::Unclaimed(_) | Place::Ending => {}
        }
        true
    }

    /// Returns the runs to the queue that were assigned to a worker which declines them.
    pub(super) fn take_back(&mut self, worker: &Arc<str>) {
        let Some(session) = self.sessions.get(worker) else { return };
        let declined: Vec<RunId> = session.unlisted.iter().cloned().collect();
        declined.iter().for_each(|run| self.give_back(run));
    }

    /// Dismisses all workers; returns the runs that none of them knows.
    pub(super) fn dismiss(&mut self) -> Vec<RunId> {
        self.sessions.values_mut().for_each(|session| session.leaves = true);
        let is_with_nobody = |entry: &Entry| match entry.place {
            Place::Given(_) => !entry.is_told(),
            Place::Unread | Place::Unclaimed(_) | Place::Ending => false,
        };
        let mut unfetched = Vec::new();
        for (run, entry) in self.runs.iter_mut().filter(|(_, entry)| is_with_nobody(entry)) {
            entry.place = Place::Ending;
            unfetched.push(run.clone());
        }
        unfetched
    }

    /// Whether it knows neither workers nor runs.
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.runs.is_empty()
    }

    /// Begins an epoch, whose restored runs are checked next. What workers said before is said again. Only a hub that shares its log with
    /// no other keeps its workers and runs, unless another process led in between.
    pub(super) fn begin(&mut self, epoch: u64, may_keep: bool, now: Now) {
        if may_keep && epoch <= self.epoch + 1 {
            for session in self.sessions.values_mut() {
                (session.asked, session.record) = (false, None);
                session.begin_waiting(now.monotonic);
            }
        } else {
            self.clear();
            self.begun += 1;
            self.prefix = format!("{}.{epoch}.{}.", self.own, self.begun);
        }
        self.epoch = epoch;
    }

    /// Adds a time in which no worker could be heard to the leases of workers, and to the waits for those that have not come yet.
    pub(super) fn was_deaf(&mut self, now: Instant, pause: Duration) {
        self.sessions.values_mut().for_each(|session| session.begin_waiting(now));
        for entry in self.runs.values_mut() {
            if let Place::Unclaimed(until) = &mut entry.place {
                *until += pause;
            }
        }
    }

    /// Whether for some unclaimed run it isn't known yet if it began.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.runs.values().any(|entry| entry.place == Place::Ending && entry.external_id.is_none())
    }

    /// Forgets workers and their runs: another node leads.
    pub(super) fn clear(&mut self) {
        self.sessions.clear();
        self.runs.clear();
        self.returned.clear();
    }

    /// Those who are there.
    pub(super) fn seen(&self, now: Now) -> Vec<WorkerView> {
        let seen = |(name, session): (&Arc<str>, &Session)| WorkerView {
            name: name.clone(),
            workflows: session.workflows.clone(),
            project: session.project.clone(),
            labels: session.labels.clone(),
            free: session.room(),
            runs: session.runs(),
            remote: session.remote.clone(),
            folders: session.folders.clone(),
            since: session.since,
            leaves: session.leaves,
            away_since: session.away.then(|| now.at(session.last_seen())),
        };
        self.sessions.iter().map(seen).collect()
    }

    /// Forgets a worker; gives what it had, which is to be ended.
    pub(super) fn give_up(&mut self, worker: &Arc<str>) -> Option<Vec<RunId>> {
        let session = self.sessions.remove(worker)?;
        session.wake.notify_waiters();
        let had = session.runs();
        for run in &had {
            if let Some(entry) = self.runs.get_mut(run) {
                entry.place = Place::Ending;
            }
        }
        Some(had)
    }
}

/// Whether the worker of a run that no worker has claimed is asked for it: one on another machine, and no other can have it.
fn is_sought(entry: &Entry) -> bool {
    let is_sure = entry.external_id.is_some() || entry.handed.as_ref().is_some_and(|handed| handed.is_sure);
    matches!(entry.place, Place::Unclaimed(_)) && entry.loss.is_some() && is_sure
}

/// Whether a process has ended, by the word of the next one of its folder.
pub(super) fn has_ended(former: &Process, word: &OfferRequest) -> bool {
    word.succeeds.iter().any(|ended| Process::from(ended.clone()) == *former)
}
