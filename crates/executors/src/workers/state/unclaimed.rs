//! Runs whose worker does not name them, or has not come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kelos_model::RunId;
use kelos_model::run::Report;
use kelos_wire::{ClaimedRunDto, OfferRequest};

use super::{MOST_GONE, State, is_sought};
use crate::local::surely_over;
use crate::workers::entry::{Entry, Place};
use crate::workers::session::{Now, Session};
use crate::workers::verdict::HandedRun;

/// The reason for which a run of another leader is at no worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workers) enum Absence {
    /// Its worker was told nothing of it, or has not begun with it.
    NeverStarted,
    /// Its worker did not come; why is said in words.
    Unclaimed(&'static str),
}

impl State {
    /// Assigns again to a worker the runs that it had and does not list any more, though their end was not reported;
    /// one that can't be assigned is checked as an unclaimed one.
    pub(in crate::workers) fn miss(&mut self, worker: &Arc<str>, has: &[ClaimedRunDto]) {
        let Some(session) = self.sessions.get_mut(worker) else { return };
        let has: BTreeSet<&RunId> = has.iter().map(|claimed| &claimed.run).collect();
        let missing: Vec<RunId> = session.listed.iter().filter(|run| !has.contains(run)).cloned().collect();
        for run in missing {
            session.forget(&run);
            let Some(entry) = self.runs.get_mut(&run) else { continue };
            if entry.start.is_some() {
                session.unlisted.insert(run);
            } else {
                let wait = entry.loss.map_or(Duration::ZERO, |loss| surely_over(loss.lease));
                entry.place = Place::Unclaimed(session.heard + wait);
                let given = HandedRun { worker: Some(worker.clone()), loss: entry.loss, is_sure: true };
                entry.handed = entry.loss.is_some().then_some(given);
            }
        }
    }

    /// Returns runs to the queue that were only in answers which their worker did not receive. A worker waits for one answer at a time: once
    /// a later request does not list a run, no earlier answer can start it any more.
    pub(super) fn take_undelivered(&mut self, worker: &Arc<str>, word: &OfferRequest) {
        let lacks_answers = |session: &&Session| session.away && word.wait_millis > 0 && word.count > session.told_at;
        let Some(session) = self.sessions.get(worker).filter(lacks_answers) else { return };
        let listed: BTreeSet<&RunId> = word.runs.iter().map(|claimed| &claimed.run).collect();
        let can_go_back = |run: &&RunId| {
            let entry = self.runs.get(run);
            !listed.contains(run) && entry.is_some_and(|entry| entry.start.is_some() && entry.external_id.is_none())
        };
        let undelivered: Vec<RunId> = session.unlisted.iter().filter(can_go_back).cloned().collect();
        if !undelivered.is_empty() {
            tracing::warn!(worker = &**worker, "a worker does not receive the answers of this server: it gets no runs");
        }
        undelivered.iter().for_each(|run| self.give_back(run));
    }

    /// Deals with workers on other machines that are silent: first they get no more runs, then they lose those whose lease is surely over.
    pub(in crate::workers) fn miss_remote(&mut self, now: Now) -> Vec<(RunId, Report)> {
        let mut lost = Vec::new();
        let remote = self.sessions.iter().filter(|(_, session)| session.remote.is_some());
        let silent = remote.filter(|(_, session)| now.monotonic.duration_since(session.heard) > self.remote_lease / 2);
        for worker in silent.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.take_unfetched(&worker);
            let Some(session) = self.sessions.get_mut(&worker) else { continue };
            session.away = true;
            let silence = now.monotonic.duration_since(session.heard);
            for run in session.runs() {
                let Some(entry) = self.runs.get_mut(&run) else { continue };
                let loss = entry.agree(self.remote_lease);
                if silence > surely_over(loss.lease) {
                    session.forget(&run);
                    entry.place = Place::Ending;
                    lost.push((run, loss.report(&worker, silence)));
                    self.fenced += 1;
                }
            }
            if session.runs().is_empty() && silence > surely_over(self.remote_lease) {
                let heard = now.at(session.heard);
                self.give_up(&worker);
                if self.gone.len() >= MOST_GONE {
                    self.gone.pop_first();
                }
                self.gone.insert(worker, heard);
            }
        }
        lost
    }

    /// Whether a worker may come with a run of another leader.
    pub(in crate::workers) fn has_unclaimed(&self) -> bool {
        self.runs.values().any(|entry| matches!(entry.place, Place::Unclaimed(_)))
    }

    /// Notes what the log tells of a run that another leader gave away, unless a worker claimed it meanwhile.
    pub(in crate::workers) fn read_of(&mut self, run: &RunId, handed: HandedRun, now: Instant, lease: Duration) {
        let unread = self.runs.get_mut(run).filter(|entry| entry.place == Place::Unread);
        let Some(entry) = unread else { return };
        entry.place = Place::Unclaimed(now + handed.loss.map_or(lease, |loss| surely_over(loss.lease)));
        (entry.loss, entry.handed) = (handed.loss, Some(handed));
    }

    /// Whether it has to be read from the log yet who has a run.
    pub(in crate::workers) fn is_unread(&self, run: &RunId) -> bool {
        self.runs.get(run).is_some_and(|entry| entry.place == Place::Unread)
    }

    /// Whether another worker than this one has a run.
    pub(in crate::workers) fn is_at_another(&self, run: &RunId, worker: &Arc<str>) -> bool {
        let place = self.runs.get(run).map(|entry| &entry.place);
        matches!(place, Some(Place::Given(other)) if other != worker)
    }

    /// Asks the workers that are there for the runs which the log has at them, and which they did not list.
    pub(in crate::workers) fn seek(&mut self) {
        let unclaimed = self.runs.iter().filter(|(_, entry)| is_sought(entry));
        let unclaimed: Vec<_> = unclaimed.filter_map(|(run, entry)| Some((run.clone(), entry.named()?))).collect();
        for (run, worker) in unclaimed {
            let session = self.sessions.get_mut(&worker);
            if let Some(session) = session.filter(|session| session.asked && session.seeks && !session.away) {
                session.sought.insert(run);
                session.wake.notify_waiters();
            }
        }
    }

    /// The runs that a worker is asked for by name. Those of which it says nothing are asked for again.
    pub(in crate::workers) fn sought(&mut self, worker: &Arc<str>) -> Vec<RunId> {
        let Some(session) = self.sessions.get_mut(worker) else { return Vec::new() };
        let sought = std::mem::take(&mut session.sought);
        let is_open = |run: &RunId| self.runs.get(run).is_some_and(is_sought);
        sought.into_iter().filter(is_open).collect()
    }

    /// The runs of another leader that no worker has, by the workers of the leader's folder that are alive.
    pub(in crate::workers) fn left(&self, living: &BTreeSet<Arc<str>>, now: Instant) -> Vec<(RunId, Absence)> {
        let has_asked = |worker: &Arc<str>| self.sessions.get(worker).is_some_and(|session| session.asked);
        let may_come = |worker: &Arc<str>| living.contains(worker) && !has_asked(worker);
        let anybody = living.iter().any(may_come);
        // The worker is there, and has not yet said what it has of the run.
        let is_asked = |worker: &Arc<str>| {
            let session = self.sessions.get(worker);
            session.is_some_and(|session| session.asked && session.seeks && !session.away)
        };
        let why = |entry: &Entry| {
            let Place::Unclaimed(until) = entry.place else { return None };
            if is_sought(entry) && entry.named().as_ref().is_some_and(is_asked) {
                return None;
            }
            if until <= now {
                return Some(Absence::Unclaimed("its worker did not come back"));
            }
            if entry.loss.is_some() {
                // Its worker is on another machine, and its command is surely over only then. But a worker that asks for more has said
                // what it has.
                let handed = entry.handed.as_ref().filter(|handed| handed.is_sure);
                let has_not = handed.and_then(|handed| handed.worker.as_ref()).is_some_and(has_asked);
                return has_not.then_some(Absence::NeverStarted);
            }
            let awaited = entry.named().map_or(anybody, |worker| may_come(&worker));
            (!awaited).then_some(Absence::Unclaimed("its worker ended"))
        };
        self.runs.iter().filter_map(|(run, entry)| Some((run.clone(), why(entry)?))).collect()
    }
}
