//! The part of a leader that deals with workers: it has the log know them before it tells them anything, and finds out from the log who may have a run.
//!
//! It hears workers from when its restored runs are in its table until its epoch ends. The judges here check that no run is dropped which the
//! log has as alive, none counts as never begun which began, and none as lost whose worker is there with its result.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Input, SetRegister};
use kelos_model::register::WORKERS_BUCKET;
use kelos_model::run::Report;
use kelos_model::workers::WorkerRecord;
use kelos_model::{Actor, Outcome, RunId};
use kelos_store::{Journal, StoredState};

use super::reign::{Message, Reign};
use super::site::{Common, Plant};
use super::workers::{RunPlace, SURELY_OVER, WorkerSession};
use crate::judge;

/// The longest time between two questions of a worker, in milliseconds.
const ASKS: i64 = 60_000;

/// The mark of the worker in the name of a run at its executor.
const AT: &str = " at ";

impl Reign<'_> {
    /// Has the workers ask for the first time.
    pub(super) fn await_workers(&mut self) {
        let count = self.life.handle.place.common().workers.len();
        for index in 0..count {
            let wait = self.life.rng.between(1, ASKS);
            self.after(wait, Message::Question(index));
        }
    }

    /// Has the outside go on until now.
    pub(super) fn let_workers_live(&self) {
        let now = self.now();
        let common = &mut *self.life.handle.place.common();
        let Common { workers, world, .. } = common;
        workers.iter_mut().for_each(|worker| worker.live(world, now));
    }

    /// Hands a run to the worker that it was dispatched to. One that is not there any more can't be told.
    pub(super) fn hand(&mut self, run: &RunId, worker: &Arc<str>) {
        if !self.hub.give(run, worker) {
            self.report(0, run, Report::NeverStarted);
        }
    }

    /// Finds out from the log who has a run that an earlier leader gave away.
    pub(super) fn expect(&mut self, run: &RunId, external_id: Option<&str>) {
        if self.hub.runs.contains_key(run) {
            return;
        }
        let place = self.life.handle.place.clone();
        let confirmed = external_id.and_then(|id| Some(Arc::from(id.split_once(AT)?.1)));
        let dispatched = self.journal.reader().worker_of(run).ok().flatten();
        let Some(worker) = confirmed.clone().or(dispatched) else {
            return place.fail(format!("the log does not say which worker has {run}"));
        };
        let is_known = self.journal.reader().register(WORKERS_BUCKET, &worker).ok().flatten().is_some();
        if !is_known {
            return place.fail(format!("{run} was given to worker {worker}, which the log does not know"));
        }
        self.hub.runs.insert(run.clone(), RunPlace::Handed { worker, was_confirmed: confirmed.is_some() });
        let wait = i64::try_from(SURELY_OVER.as_millis()).unwrap_or(i64::MAX);
        self.after(wait, Message::Overdue(run.clone()));
    }

    /// Ends a run that a worker has, or may have.
    pub(super) fn end(&mut self, run: &RunId, external_id: Option<&str>) {
        self.expect(run, external_id);
        if let Some(RunPlace::Given { is_told: false, .. }) = self.hub.runs.get(run) {
            self.hub.forget(run);
            return self.report(0, run, Report::Ended { outcome: Outcome::Killed });
        }
        self.hub.cancelled.insert(run.clone());
    }

    /// Gives up a run that was not claimed for so long that its command is surely over.
    pub(super) fn give_up(&mut self, run: &RunId) -> Vec<Input> {
        if !matches!(self.hub.runs.get(run), Some(RunPlace::Handed { .. })) {
            return Vec::new();
        }
        self.hub.forget(run);
        self.lose(run).into_iter().collect()
    }

    fn lose(&self, run: &RunId) -> Option<Input> {
        self.let_workers_live();
        let place = &self.life.handle.place;
        let (now, common) = (self.now(), place.common());
        let is_live = common.world.alive(now).any(|one| one == run);
        let worker = self.journal.reader().worker_of(run).ok().flatten();
        let machine = common.workers.iter().find(|machine| Some(&machine.name) == worker.as_ref());
        let ended = common.world.runs.get(run).filter(|execution| execution.outcome != Outcome::Killed);
        // Its worker was told to forget a result that was in the lost end of the log.
        let may_be_lost = common.lost_after.is_some();
        if ended.is_some() && !is_live && !may_be_lost && machine.is_some_and(|machine| machine.is_connected(now)) {
            drop(common);
            place.fail(format!("{run} counts as lost at {now}, and its worker is there, where its command ended"));
            return None;
        }
        drop(common);
        if is_live {
            place.fail(format!("{run} is given up, and its command is alive at {now}"));
            return None;
        }
        let outcome = Outcome::Unknown { reason: "its worker did not come back".to_owned() };
        Some(Input::RunReported { run: run.clone(), report: Report::Ended { outcome } })
    }

    /// A worker asks for something to do, unless it is down or is not heard.
    pub(super) fn asked(&mut self, index: usize) -> Vec<Input> {
        let wait = self.life.rng.between(1, ASKS);
        self.after(wait, Message::Question(index));
        self.let_workers_live();
        let (place, now) = (self.life.handle.place.clone(), self.now());
        let is_faulty = place.common().per_mille > 0;
        let is_heard = !(is_faulty && self.life.rng.percent(5)) && self.journal.holds(self.lease);
        let name = {
            let common = place.common();
            let worker = &common.workers[index];
            if !is_heard || !worker.is_up(now) {
                drop(common);
                return self.miss(index, now);
            }
            if worker.epoch > self.lease.epoch {
                let (name, newest, epoch) = (worker.name.clone(), worker.epoch, self.lease.epoch);
                drop(common);
                place.fail(format!(
                    "worker {name} has heard of epoch {newest}, and is answered by one of epoch {epoch}"
                ));
                return Vec::new();
            }
            worker.name.clone()
        };
        if self.journal.reader().register(WORKERS_BUCKET, &name).ok().flatten().is_none() {
            return vec![self.register(&name)];
        }
        let session = WorkerSession { heard: now, believed: None };
        self.hub.sessions.entry(name.clone()).or_insert(session).heard = now;
        let mut inputs = self.listed(index, &name, now);
        if !(is_faulty && self.life.rng.percent(5)) {
            self.tell(index, &name, now);
        }
        if let Some(offer) = self.hub.offer(&name, &place.workload) {
            inputs.push(Input::Offered { worker: name, offer: Some(offer) });
        }
        inputs
    }

    fn register(&self, worker: &Arc<str>) -> Input {
        let lease_millis = u64::try_from(SURELY_OVER.as_millis()).unwrap_or(u64::MAX);
        let value = serde_json::to_value(WorkerRecord { lease_millis, ..WorkerRecord::default() }).ok();
        let ask = SetRegister { bucket: WORKERS_BUCKET.to_owned(), key: worker.to_string(), value, reason: None };
        Input::Asked { token: u64::MAX, by: Actor::system("workers"), ask: ask.into(), warrant: None }
    }

    /// A worker that is silent for so long that its commands are surely over loses its runs.
    fn miss(&mut self, index: usize, now: Timestamp) -> Vec<Input> {
        let name = self.life.handle.place.common().workers[index].name.clone();
        let is_lost = |session: &WorkerSession| now.duration_since(session.heard) > SURELY_OVER;
        if !self.hub.sessions.get(&name).is_some_and(is_lost) {
            return Vec::new();
        }
        self.hub.sessions.remove(&name);
        let mut inputs = vec![Input::Offered { worker: name.clone(), offer: None }];
        for (run, place) in self.hub.at(&name) {
            match place {
                RunPlace::Handed { .. } => continue,
                RunPlace::Given { is_told: true, .. } => inputs.extend(self.lose(&run)),
                RunPlace::Given { is_told: false, .. } => {
                    inputs.push(Input::RunReported { run: run.clone(), report: Report::NeverStarted });
                }
            }
            self.hub.forget(&run);
        }
        inputs
    }

    /// Whether the log says that a run is over.
    fn is_over(&self, run: &RunId) -> bool {
        let slot = self.journal.reader().slot(&run.slot).ok().flatten();
        slot.is_none_or(|slot| !slot.run_alive || slot.last_run != run.number)
    }

    /// Has all workers drop what they have, as a hub does that does not know their runs. Only a planted bug does so.
    pub(super) fn refuse_everything(&self) {
        self.let_workers_live();
        let (place, now) = (self.life.handle.place.clone(), self.now());
        let common = &mut *place.common();
        let Common { workers, world, failure, .. } = common;
        for worker in workers.iter_mut().filter(|worker| worker.is_up(now)) {
            for run in std::mem::take(&mut worker.held).into_keys() {
                if !self.is_over(&run) {
                    failure.get_or_insert(format!("{run} is dropped at {now}, and the log has it as alive"));
                    place.relay.end();
                    return;
                }
                world.cancel(&run, now);
            }
        }
    }

    /// The reports of a worker on its runs, with what follows from those that it does not name.
    fn listed(&mut self, index: usize, name: &Arc<str>, now: Timestamp) -> Vec<Input> {
        let place = self.life.handle.place.clone();
        let common = &mut *place.common();
        let Common { workers, world, .. } = common;
        let worker = &mut workers[index];
        let mut said = Vec::new();
        for (run, begun) in worker.held.clone() {
            let is_over = self.is_over(&run);
            if is_over || self.hub.runs.get(&run).is_some_and(|place| place.worker() != name) {
                // Its end is in the log, or it is told to drop it.
                world.cancel(&run, now);
                worker.held.remove(&run);
                self.hub.forget(&run);
                continue;
            }
            if !self.hub.runs.contains_key(&run) {
                // Only its worker may know how it ended, and keeps it.
                continue;
            }
            self.hub.runs.insert(run.clone(), RunPlace::Given { worker: name.clone(), is_told: true });
            if self.hub.cancelled.contains(&run) {
                world.cancel(&run, now);
            } else if !begun {
                // The next process of the worker finds it not begun, and sees to it that it does not begin any more.
                worker.held.remove(&run);
                self.hub.forget(&run);
                said.push((run, Report::NeverStarted));
                continue;
            }
            let Some(execution) = world.runs.get(&run).cloned() else { continue };
            said.push((run.clone(), Report::Started { external_id: format!("x-{run}{AT}{name}") }));
            if execution.ends_at <= now {
                let gives = world.outputs(&run).filter(|_| place.workload.gives);
                said.extend(gives.map(|outputs| (run.clone(), Report::Gave { outputs })));
                // Its shim ended it with its lease.
                let is_lost = execution.outcome == Outcome::Killed && !self.hub.cancelled.contains(&run);
                let lost = Outcome::Unknown { reason: "its lease was over".to_owned() };
                if place.plan.plant == Some(Plant::ForgetsTooEarly) {
                    worker.held.remove(&run);
                }
                said.push((run, Report::Ended { outcome: if is_lost { lost } else { execution.outcome } }));
            }
        }
        for (run, at) in self.hub.at(name) {
            let is_open = matches!(at, RunPlace::Handed { was_confirmed: false, .. });
            if is_open && !worker.held.contains_key(&run) {
                let was_cancelled = self.hub.cancelled.contains(&run);
                self.hub.forget(&run);
                let killed = Report::Ended { outcome: Outcome::Killed };
                said.push((run, if was_cancelled { killed } else { Report::NeverStarted }));
            }
        }
        said.into_iter().map(|(run, report)| Input::RunReported { run, report }).collect()
    }

    /// An answer reaches a worker: it begins with what is new to it. Sometimes it is killed before it does.
    fn tell(&mut self, index: usize, name: &Arc<str>, now: Timestamp) {
        let place = self.life.handle.place.clone();
        let is_faulty = place.common().per_mille > 0;
        let orders: Vec<RunId> = self.hub.at(name).into_iter().map(|(run, _)| run).collect();
        {
            let worker = &mut place.common().workers[index];
            (worker.answered, worker.epoch) = (now, self.lease.epoch);
        }
        let mut found = Ok(());
        for run in orders {
            let Some(at @ RunPlace::Given { .. }) = self.hub.runs.get_mut(&run) else { continue };
            *at = RunPlace::Given { worker: name.clone(), is_told: true };
            let common = &mut *place.common();
            let Common { workers, world, figures, lost_after, .. } = common;
            let worker = &mut workers[index];
            if worker.held.contains_key(&run) {
                continue;
            }
            if is_faulty && self.life.rng.percent(4) {
                if self.life.rng.percent(50) {
                    worker.held.insert(run, false);
                }
                let down = self.life.rng.between(1, 1800);
                worker.dies((now + jiff::SignedDuration::from_secs(down)).min(place.workload.end));
                return;
            }
            figures.runs += u64::from(world.start(&run, now));
            worker.held.insert(run, true);
            let judged = match lost_after {
                Some(_) => Ok(()),
                None => judge::after_start(&place.workload, world, now),
            };
            found = found.and(judged);
        }
        if let Err(wrong) = found {
            place.fail(format!("{wrong} at {now}"));
        }
    }
}
