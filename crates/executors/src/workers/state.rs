//! The state of a hub: the workers, the runs of each, and the runs that no worker has yet.
//!
//! Absent: the clock, which is an argument, and waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kelos_core::{Input, Offer};
use kelos_engine::executor::{Reports, RunInput, Start};
use kelos_model::run::Report;
use kelos_model::{RunId, WorkflowId};
use kelos_wire::{ClaimedRunDto, OfferRequest, RunInputDto, RunOrderDto, RunReportDto};
use serde_json::json;
use tokio::sync::Notify;

use super::{Process, Seen, verdict};

/// Everything a desk knows.
pub(super) struct State {
    /// The prefix of the names of its sessions.
    own: String,
    drawn: u64,
    pub(super) sessions: BTreeMap<Arc<str>, Session>,
    pub(super) runs: BTreeMap<RunId, Entry>,
    /// The workflows that those get who take all.
    pub(super) apps: BTreeSet<WorkflowId>,
}

/// A worker, from its first word until it leaves or is given up.
pub(super) struct Session {
    pub(super) id: String,
    count: u64,
    pub(super) heard: Instant,
    /// It asked for runs, so it has all that an earlier leader assigned to it, and has listed them.
    asked: bool,
    pub(super) process: Option<Process>,
    pub(super) wake: Arc<Notify>,
    workflows: BTreeSet<WorkflowId>,
    job: Option<kelos_model::SlotRef>,
    attempts: Option<u32>,
    free: u32,
    leaves: bool,
    /// Runs assigned to it that it has not listed: repeated in each answer.
    unlisted: BTreeSet<RunId>,
    /// The runs that it listed.
    listed: BTreeSet<RunId>,
    /// The runs that it was told to end.
    told_to_end: BTreeSet<RunId>,
    /// Its offer as the core knows it.
    believed: Option<Offer>,
}

/// A run that the hub knows.
pub(super) struct Entry {
    pub(super) reports: Reports,
    pub(super) place: Place,
    start: Option<Start>,
    /// Whether an answer to its worker contained it.
    told: bool,
    pub(super) external_id: Option<String>,
    pub(super) cancelled: bool,
}

/// The place of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// At no worker: none with room accepts it.
    Waiting,
    /// With a worker.
    Given(Arc<str>),
    /// Another leader gave it to a worker that has not come yet.
    Unclaimed(Instant),
    /// Its worker is gone, and it is being ended.
    Ending,
}

impl Entry {
    pub(super) fn unclaimed(reports: Reports, until: Instant, external_id: Option<String>) -> Entry {
        Entry { reports, place: Place::Unclaimed(until), start: None, told: true, external_id, cancelled: false }
    }

    fn waiting(start: Start, reports: Reports) -> Entry {
        Entry { reports, place: Place::Waiting, start: Some(start), told: false, external_id: None, cancelled: false }
    }
}

impl Session {
    fn new(id: String, now: Instant, process: Option<Process>) -> Session {
        Session {
            id,
            count: 0,
            heard: now,
            asked: false,
            process,
            wake: Arc::default(),
            workflows: BTreeSet::new(),
            job: None,
            attempts: None,
            free: 0,
            leaves: false,
            unlisted: BTreeSet::new(),
            listed: BTreeSet::new(),
            told_to_end: BTreeSet::new(),
            believed: None,
        }
    }

    /// The number of further runs that it accepts.
    fn room(&self) -> u32 {
        self.free.saturating_sub(u32::try_from(self.unlisted.len()).unwrap_or(u32::MAX))
    }

    fn takes(&self, run: &RunId) -> bool {
        let serves = self.workflows.is_empty() || self.workflows.contains(&run.slot.workflow);
        serves && self.job.as_ref().is_none_or(|job| *job == run.slot) && self.room() > 0
    }

    fn offer(&self, apps: &BTreeSet<WorkflowId>) -> Option<Offer> {
        let workflows = if self.workflows.is_empty() { apps } else { &self.workflows };
        let (job, attempts) = (self.job.clone(), self.attempts);
        (!self.leaves).then(|| Offer { workflows: workflows.clone(), job, free: self.room(), attempts })
    }

    fn has(&self, run: &RunId) -> bool {
        self.listed.contains(run) || self.unlisted.contains(run)
    }

    fn forget(&mut self, run: &RunId) {
        self.listed.remove(run);
        self.unlisted.remove(run);
        self.told_to_end.remove(run);
    }

    /// All that was given to it.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.listed.union(&self.unlisted).cloned().collect()
    }
}

impl State {
    pub(super) fn new(own: String) -> State {
        State { own, drawn: 0, sessions: BTreeMap::new(), runs: BTreeMap::new(), apps: BTreeSet::new() }
    }

    /// The session of a worker, made where it has none; none where it was given up.
    pub(super) fn session(
        &mut self,
        worker: &Arc<str>,
        word: &OfferRequest,
        now: Instant,
    ) -> Option<(&mut Session, bool)> {
        let is_ours = word.session.as_ref().is_some_and(|id| id.starts_with(&self.own));
        let known =
            self.sessions.get(worker).is_some_and(|session| !is_ours || Some(&session.id) == word.session.as_ref());
        if is_ours && !known {
            return None;
        }
        if !known {
            self.drawn += 1;
            let id = format!("{}.{}", self.own, self.drawn);
            self.sessions.insert(worker.clone(), Session::new(id, now, word.process.clone().map(Process::from)));
        }
        let session = self.sessions.get_mut(worker)?;
        session.heard = now;
        // Only these messages are answered with runs, and it sends no other of them before it has taken the runs from
        // the answer.
        session.asked |= word.wait_millis > 0 || word.leaves || word.session.is_none();
        Some((session, !known))
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
                Report::Ended { .. } | Report::Gave { .. } => self.say(run, what.clone()),
                // One that was put off will be asked for anew, and one that was given back is another run then.
                Report::Deferred { .. } | Report::GivenBack => {
                    self.say(run, what.clone());
                    self.forget(run, worker);
                }
                // Runs of workers never ask for permits.
                Report::NeverStarted | Report::Asks { .. } => {}
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
        session.job.clone_from(&word.job);
        (session.attempts, session.free, session.leaves) = (word.attempts, word.free, word.leaves);
        self.miss(worker, &word.runs);
        let mut refused = Vec::new();
        for claimed in &word.runs {
            if !self.belongs(&claimed.run, worker) {
                refused.push(claimed.run.clone());
                continue;
            }
            self.claim(&claimed.run, worker, true);
            if let Some(external_id) = &claimed.external_id {
                self.started(&claimed.run, worker, external_id);
            }
        }
        refused
    }

    /// Assigns again to a worker the runs that it had and does not list any more, though their end was not reported;
    /// one that can't be assigned is checked as an unclaimed one.
    fn miss(&mut self, worker: &Arc<str>, has: &[ClaimedRunDto]) {
        let Some(session) = self.sessions.get_mut(worker) else { return };
        let has: BTreeSet<&RunId> = has.iter().map(|claimed| &claimed.run).collect();
        let missing: Vec<RunId> = session.listed.iter().filter(|run| !has.contains(run)).cloned().collect();
        for run in missing {
            session.forget(&run);
            let Some(entry) = self.runs.get_mut(&run) else { continue };
            if entry.start.is_some() {
                session.unlisted.insert(run);
            } else {
                entry.place = Place::Unclaimed(session.heard);
            }
        }
    }

    /// Whether a run is a worker's, or could be.
    fn belongs(&self, run: &RunId, worker: &Arc<str>) -> bool {
        self.runs.get(run).is_some_and(|entry| match &entry.place {
            Place::Given(other) => other == worker,
            Place::Waiting | Place::Unclaimed(_) => true,
            Place::Ending => false,
        })
    }

    fn claim(&mut self, run: &RunId, worker: &Arc<str>, listed: bool) {
        let (Some(entry), Some(session)) = (self.runs.get_mut(run), self.sessions.get_mut(worker)) else { return };
        entry.place = Place::Given(worker.clone());
        if listed {
            session.unlisted.remove(run);
            session.listed.insert(run.clone());
        } else if !session.has(run) {
            session.listed.insert(run.clone());
        }
    }

    /// Once for each run: its executor may say it again.
    fn started(&mut self, run: &RunId, worker: &Arc<str>, external_id: &str) {
        let Some(entry) = self.runs.get_mut(run).filter(|entry| entry.external_id.is_none()) else { return };
        let external_id = format!("{external_id} {}", json!({ "worker": worker }));
        entry.external_id = Some(external_id.clone());
        self.say(run, Report::Started { external_id });
    }

    /// Records that a worker's reports on its runs are stored.
    pub(super) fn stored(&mut self, worker: &Arc<str>, reports: &[RunReportDto]) {
        for RunReportDto { run, what } in reports {
            let is_its = |entry: &Entry| matches!(&entry.place, Place::Given(other) if other == worker);
            if matches!(what, Report::Ended { .. }) && self.runs.get(run).is_some_and(is_its) {
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
            entry.reports.run(run, what);
        }
    }

    /// Assigns a run: to the worker that offered to execute it, to another one, or to none yet.
    pub(super) fn start(&mut self, start: Start, reports: Reports) {
        let (run, hint) = (start.run.clone(), start.worker.clone().unwrap_or_default());
        if let Some(known) = self.runs.get_mut(&run) {
            known.reports = reports;
            known.start = Some(start);
        } else {
            self.runs.insert(run.clone(), Entry::waiting(start, reports));
        }
        if let Some(believed) = self.sessions.get_mut(&hint).and_then(|session| session.believed.as_mut()) {
            believed.free = believed.free.saturating_sub(1);
        }
        self.assign(&run, Some(&hint));
    }

    fn assign(&mut self, run: &RunId, hint: Option<&Arc<str>>) {
        let Some(entry) = self.runs.get_mut(run).filter(|entry| entry.place == Place::Waiting) else { return };
        let hinted = hint.filter(|hint| self.sessions.get(*hint).is_some_and(|session| session.room() > 0));
        let takers = || self.sessions.iter().filter(|(_, session)| session.takes(run));
        // Workers that want this very job come before those that accept any.
        let other = || takers().max_by_key(|(_, session)| session.job.is_some()).map(|(name, _)| name);
        let Some(worker) = hinted.or_else(other).cloned() else { return };
        entry.place = Place::Given(worker.clone());
        if let Some(session) = self.sessions.get_mut(&worker) {
            session.unlisted.insert(run.clone());
            session.wake.notify_waiters();
        }
    }

    /// Gives what waits to those who have room now.
    pub(super) fn assign_waiting(&mut self) {
        let waiting = self.runs.iter().filter(|(_, entry)| entry.place == Place::Waiting);
        let waiting: Vec<RunId> = waiting.map(|(run, _)| run.clone()).collect();
        waiting.iter().for_each(|run| self.assign(run, None));
    }

    /// The changes of offers for the core.
    pub(super) fn news(&mut self) -> Vec<Input> {
        let mut news = Vec::new();
        for (worker, session) in &mut self.sessions {
            let offer = session.offer(&self.apps);
            if offer != session.believed {
                session.believed.clone_from(&offer);
                news.push(Input::Offered { worker: worker.clone(), offer });
            }
        }
        news
    }

    /// Marks all offers to be sent to the core again.
    pub(super) fn doubt_offers(&mut self) {
        self.sessions.values_mut().for_each(|session| session.believed = None);
    }

    /// The runs that a worker has to execute, and those to end.
    pub(super) fn orders(&mut self, worker: &Arc<str>) -> (Vec<RunOrderDto>, Vec<RunId>) {
        let Some(session) = self.sessions.get_mut(worker) else { return Default::default() };
        let mut starts = Vec::new();
        for run in &session.unlisted {
            let Some(entry) = self.runs.get_mut(run) else { continue };
            entry.told |= entry.start.is_some();
            starts.extend(entry.start.as_ref().map(order));
        }
        let is_cancelled = |run: &RunId| self.runs.get(run).is_some_and(|entry| entry.cancelled);
        let cancels: Vec<RunId> = session.listed.iter().filter(|run| is_cancelled(run)).cloned().collect();
        session.told_to_end.extend(cancels.iter().cloned());
        (starts, cancels)
    }

    /// Whether there are runs, or runs to end, that a worker doesn't know of.
    pub(super) fn has_orders(&self, worker: &Arc<str>) -> bool {
        let Some(session) = self.sessions.get(worker) else { return true };
        let to_end =
            |run: &RunId| !session.told_to_end.contains(run) && self.runs.get(run).is_some_and(|entry| entry.cancelled);
        !session.unlisted.is_empty() || session.listed.iter().any(to_end)
    }

    /// Records that a run is to end. One that no worker has can be forgotten; one that isn't known has to be ended by
    /// another part.
    pub(super) fn cancel(&mut self, run: &RunId, reports: Reports) -> CancelResult {
        let Some(entry) = self.runs.get_mut(run) else { return CancelResult::Unknown };
        entry.reports = reports;
        entry.cancelled = true;
        match entry.place.clone() {
            Place::Waiting => {
                self.runs.remove(run);
                return CancelResult::NeverBegan;
            }
            Place::Given(worker) => {
                if let Some(session) = self.sessions.get(&worker) {
                    session.wake.notify_waiters();
                }
            }
            Place::Unclaimed(_) | Place::Ending => {}
        }
        CancelResult::Noted
    }

    /// Takes back the runs that were assigned to a worker and not listed by it.
    pub(super) fn take_back(&mut self, worker: &Arc<str>) {
        let Some(session) = self.sessions.get_mut(worker) else { return };
        for run in std::mem::take(&mut session.unlisted) {
            if let Some(entry) = self.runs.get_mut(&run) {
                (entry.place, entry.told) = (Place::Waiting, false);
            }
        }
    }

    /// Dismisses all workers; returns the runs that none of them knows.
    pub(super) fn dismiss(&mut self) -> Vec<RunId> {
        self.sessions.values_mut().for_each(|session| session.leaves = true);
        let is_with_nobody = |entry: &Entry| match entry.place {
            Place::Waiting => true,
            Place::Given(_) => !entry.told && entry.external_id.is_none(),
            Place::Unclaimed(_) | Place::Ending => false,
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

    /// Whether a worker may come with a run of another leader.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.runs.values().any(|entry| matches!(entry.place, Place::Unclaimed(_)))
    }

    /// Whether for some unclaimed run it isn't known yet if it began.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.runs.values().any(|entry| entry.place == Place::Ending && entry.external_id.is_none())
    }

    /// The runs of another leader that no worker claims, with the reason, by the workers that are alive.
    pub(super) fn left(&self, living: &BTreeSet<Arc<str>>, now: Instant) -> Vec<(RunId, &'static str)> {
        let has_asked = |worker: &Arc<str>| self.sessions.get(worker).is_some_and(|session| session.asked);
        let may_come = |worker: &Arc<str>| living.contains(worker) && !has_asked(worker);
        let anybody = living.iter().any(may_come);
        let why = |entry: &Entry| {
            let Place::Unclaimed(until) = entry.place else { return None };
            if until <= now {
                return Some("its worker did not come back");
            }
            let worker = entry.external_id.as_deref().and_then(verdict::worker_of);
            let awaited = worker.map_or(anybody, |worker| may_come(&worker));
            (!awaited).then_some("its worker ended")
        };
        self.runs.iter().filter_map(|(run, entry)| Some((run.clone(), why(entry)?))).collect()
    }

    /// Those who are there.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let seen = |(name, session): (&Arc<str>, &Session)| Seen {
            name: name.clone(),
            workflows: session.workflows.clone(),
            free: session.room(),
            runs: session.runs(),
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

/// The result of cancelling a run.
pub(super) enum CancelResult {
    /// Its worker gets the order.
    Noted,
    /// No worker had it.
    NeverBegan,
    /// The desk knows nothing of it.
    Unknown,
}

fn order(start: &Start) -> RunOrderDto {
    let Start { run, workflow, settings, properties, given, .. } = start.clone();
    let RunInput { arguments, behind_key, triggered_by, .. } = given;
    let given = RunInputDto { arguments, behind_key, triggered_by };
    RunOrderDto { run, workflow, settings, properties, given }
}
