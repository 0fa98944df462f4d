//! Workers that start and die, and the desk through which the leader assigns runs to them. The desk dies with the leader; workers
//! don't, and report their runs to the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Command, Input, Offer};
use kelos_model::run::Report;
use kelos_model::workers::Label;
use kelos_model::{Outcome, RunId, WorkflowId};

use crate::rng::Rng;
use crate::workload::{WorkerPlan, Workload};
use crate::world::World;

/// How long a worker may be silent before its runs are assigned to others.
const LEASE: SignedDuration = SignedDuration::from_secs(300);

/// An event among workers.
#[derive(Debug, Clone)]
pub enum Deed {
    /// A worker's process begins.
    Born(Arc<str>),
    /// It is killed.
    Dies(Arc<str>),
    /// A worker accepts nothing more, and ends once it has no runs.
    Leaves(Arc<str>),
    /// A worker sends a message: its runs, their outcomes, and its offer. A heartbeat is followed by the next.
    Word(Arc<str>, bool),
    /// A start arrives at a worker.
    Order(Arc<str>, RunId),
    /// The desk checks whether a session is over: because its worker was silent, or its process is known to be gone.
    Lookout(Arc<str>, u64, bool),
    /// No worker reported a run that an earlier leader had assigned to one.
    Unclaimed(RunId),
}

impl Deed {
    /// Whether it also happens if the leader changes.
    #[must_use]
    pub fn outlives_the_leader(&self) -> bool {
        !matches!(self, Deed::Lookout(..) | Deed::Unclaimed(_))
    }
}

/// The consequences of an event.
#[derive(Debug, Default)]
pub struct Consequences {
    /// Inputs of the scheduler.
    pub inputs: Vec<Input>,
    /// Events that happen so many milliseconds later.
    pub later: Vec<(i64, Deed)>,
    /// Reports that arrive so many milliseconds later, when nobody waits for them any more.
    pub stale: Vec<(i64, Input)>,
}

/// The environment of workers at an event.
pub struct FleetView<'a> {
    /// The executions of runs.
    pub world: &'a mut World,
    /// The moment of the event.
    pub now: Timestamp,
    /// The source of random numbers.
    pub rng: &'a mut Rng,
    /// Whether messages may be lost.
    pub faulty: bool,
}

#[derive(Debug)]
struct Worker {
    plan: WorkerPlan,
    /// The leader to which it is connected, and its session there.
    session: Option<(u64, u64)>,
    /// Its runs, and whether it has reported their start.
    has: BTreeMap<RunId, bool>,
}

impl Worker {
    fn is_silent(&self, now: Timestamp) -> bool {
        self.plan.silent.is_some_and(|(from, until)| from <= now && now < until)
    }
}

#[derive(Debug)]
struct Session {
    number: u64,
    heard: Timestamp,
    /// The offer that the core knows, less the runs that it assigned since.
    believed: Option<Offer>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Waiting,
    Given(Arc<str>),
    /// The moment since when it is unclaimed.
    Unclaimed(Timestamp),
}

/// All workers, and the desk of the current leader.
#[derive(Debug, Default)]
pub struct Fleet {
    plans: BTreeMap<Arc<str>, WorkerPlan>,
    workers: BTreeMap<Arc<str>, Worker>,
    sessions: BTreeMap<Arc<str>, Session>,
    runs: BTreeMap<RunId, Place>,
    leader: u64,
    count: u64,
    /// Runs whose end was reported; their workers forget them once that is committed.
    said: Vec<(Arc<str>, RunId)>,
    /// Starts on their way to workers.
    flying: BTreeSet<(Arc<str>, RunId)>,
    /// Offers that the core has not used up yet: compared with its dispatches.
    offered: BTreeMap<Arc<str>, Offer>,
    /// Runs that were in a command before: a start that is repeated is no new dispatch.
    seen: BTreeSet<RunId>,
    /// The labels that the jobs of each workflow need.
    labels: BTreeMap<WorkflowId, BTreeSet<Label>>,
}

impl Fleet {
    /// A fleet without workers yet.
    #[must_use]
    pub fn new(workload: &Workload) -> Fleet {
        let plans = workload.workers.iter().map(|plan| (plan.name.clone(), plan.clone())).collect();
        let defined = workload.definitions.iter().flat_map(|(_, set)| set);
        let labels = defined.map(|one| (one.id.clone(), one.job.runs_on.clone())).collect();
        Fleet { plans, labels, ..Fleet::default() }
    }

    /// The starts and ends of workers.
    pub fn agenda(&self) -> impl Iterator<Item = (Timestamp, Deed)> + '_ {
        let born = self.plans.values().map(|plan| (plan.born, Deed::Born(plan.name.clone())));
        let dies = self.plans.values().filter_map(|plan| Some((plan.dies?, Deed::Dies(plan.name.clone()))));
        let leaves = self.plans.values().filter_map(|plan| Some((plan.leaves?, Deed::Leaves(plan.name.clone()))));
        born.chain(dies).chain(leaves)
    }

    /// Removes the leader and its desk.
    pub fn lose_the_desk(&mut self) {
        self.leader += 1;
        self.sessions.clear();
        self.runs.clear();
        self.said.clear();
        self.offered.clear();
    }

    /// Ends the leader gracefully: nothing more is assigned, and starts without a worker are taken back.
    pub fn dismiss(&mut self) -> Vec<Input> {
        let sessions = std::mem::take(&mut self.sessions);
        let gone = sessions.into_keys().map(|worker| Input::Offered { worker, offer: None });
        let mut inputs: Vec<Input> = gone.collect();
        let (workers, flying) = (&self.workers, &self.flying);
        self.runs.retain(|run, place| {
            let has = |name: &Arc<str>| workers.get(name).is_some_and(|worker| worker.has.contains_key(run));
            let fetched = match place {
                Place::Waiting => false,
                Place::Given(name) => has(name) || flying.contains(&(name.clone(), run.clone())),
                Place::Unclaimed(_) => true,
            };
            if !fetched {
                inputs.push(Input::RunReported { run: run.clone(), report: Report::NeverStarted });
            }
            fetched
        });
        inputs
    }

    /// Commits the reports.
    pub fn committed(&mut self) {
        for (name, run) in std::mem::take(&mut self.said) {
            if let Some(worker) = self.workers.get_mut(&name) {
                worker.has.remove(&run);
            }
        }
    }

    /// Applies an event.
    ///
    /// # Errors
    /// If two workers have the same run.
    pub fn happens(&mut self, deed: Deed, around: &mut FleetView<'_>) -> Result<Consequences, String> {
        let mut followed = Consequences::default();
        match deed {
            Deed::Born(name) => self.born(&name, &mut followed),
            Deed::Dies(name) => self.dies(&name, around.rng, &mut followed),
            Deed::Word(name, beat) => self.word(&name, beat, around, &mut followed),
            Deed::Order(name, run) => self.order(&name, &run, around, &mut followed)?,
            Deed::Lookout(name, number, gone) => self.look_out(&name, number, gone, around, &mut followed),
            Deed::Leaves(name) => self.leaves(&name, around, &mut followed),
            Deed::Unclaimed(run) => self.unclaimed(run, around, &mut followed),
        }
        Ok(followed)
    }

    /// Decides about a run that no worker has claimed: it waits for live workers that have not reported their runs yet, but not for ever.
    fn unclaimed(&mut self, run: RunId, around: &mut FleetView<'_>, followed: &mut Consequences) {
        let Some(Place::Unclaimed(since)) = self.runs.get(&run) else { return };
        let may_come = |(name, worker): (&Arc<str>, &Worker)| {
            let is_told_late = self.flying.iter().any(|(other, _)| other == name);
            !self.sessions.contains_key(name) || is_told_late || worker.has.contains_key(&run)
        };
        if *since + LEASE > around.now && self.workers.iter().any(may_come) {
            followed.later.push((around.rng.between(100, 300), Deed::Unclaimed(run)));
            return;
        }
        self.runs.remove(&run);
        followed.inputs.push(if around.world.runs.contains_key(&run) {
            settled(&run, around)
        } else {
            // It can't be started any more.
            Input::RunReported { run, report: Report::NeverStarted }
        });
    }

    fn leaves(&mut self, name: &Arc<str>, around: &mut FleetView<'_>, followed: &mut Consequences) {
        let Some(worker) = self.workers.get(name) else { return };
        let given = |place: &Place| matches!(place, Place::Given(other) if other == name);
        let is_told_late = self.flying.iter().any(|(other, _)| other == name);
        if !worker.has.is_empty() || is_told_late || self.runs.values().any(given) {
            // It starts the runs that it was assigned, and reports them.
            followed.later.push((0, Deed::Word(name.clone(), false)));
            followed.later.push((around.rng.between(500, 2500), Deed::Leaves(name.clone())));
            return;
        }
        self.workers.remove(name);
        if self.sessions.remove(name).is_some() {
            followed.inputs.push(Input::Offered { worker: name.clone(), offer: None });
        }
    }

    fn born(&mut self, name: &Arc<str>, followed: &mut Consequences) {
        let Some(plan) = self.plans.get(name).cloned() else { return };
        self.workers.insert(name.clone(), Worker { plan, session: None, has: BTreeMap::new() });
        followed.later.push((0, Deed::Word(name.clone(), true)));
    }

    fn dies(&mut self, name: &Arc<str>, rng: &mut Rng, followed: &mut Consequences) {
        self.workers.remove(name);
        if let Some(session) = self.sessions.get(name).filter(|_| rng.percent(50)) {
            // On the same machine the end of a process is visible.
            followed.later.push((rng.between(0, 2000), Deed::Lookout(name.clone(), session.number, true)));
        }
    }

    fn word(&mut self, name: &Arc<str>, beat: bool, around: &mut FleetView<'_>, followed: &mut Consequences) {
        let Some(worker) = self.workers.get(name) else { return };
        if beat {
            followed.later.push((around.rng.between(50_000, 110_000), Deed::Word(name.clone(), true)));
        }
        if worker.is_silent(around.now) || around.faulty && around.rng.percent(4) {
            return;
        }
        self.meet(name, around, followed);
        self.claim(name, around);
        self.tell(name, around, &mut followed.inputs);
        self.hand_out(name, around.rng, followed);
        self.offer(name, around, &mut followed.inputs);
    }

    /// Makes sure that a worker has a session. A worker whose session was given up ends its runs.
    fn meet(&mut self, name: &Arc<str>, around: &mut FleetView<'_>, followed: &mut Consequences) {
        let known = self.sessions.get_mut(name);
        let Some(worker) = self.workers.get_mut(name) else { return };
        if let Some(session) = known
            && worker.session == Some((self.leader, session.number))
        {
            session.heard = around.now;
            return;
        }
        if worker.session.is_some_and(|(leader, _)| leader == self.leader) {
            std::mem::take(&mut worker.has).keys().for_each(|run| around.world.cancel(run, around.now));
        }
        self.count += 1;
        worker.session = Some((self.leader, self.count));
        worker.has.values_mut().for_each(|told| *told = false);
        self.sessions.insert(name.clone(), Session { number: self.count, heard: around.now, believed: None });
        followed.later.push((LEASE.as_secs() * 1000, Deed::Lookout(name.clone(), self.count, false)));
    }

    /// Assigns a worker the runs that it reports, unless the desk has assigned them to another or settled them.
    fn claim(&mut self, name: &Arc<str>, around: &mut FleetView<'_>) {
        let Some(worker) = self.workers.get_mut(name) else { return };
        let runs = &mut self.runs;
        worker.has.retain(|run, _| {
            let belongs = match runs.get(run) {
                Some(Place::Given(other)) => other == name,
                Some(Place::Waiting | Place::Unclaimed(_)) => true,
                None => false,
            };
            if belongs {
                runs.insert(run.clone(), Place::Given(name.clone()));
            } else {
                around.world.cancel(run, around.now);
            }
            belongs
        });
    }

    fn tell(&mut self, name: &Arc<str>, around: &FleetView<'_>, inputs: &mut Vec<Input>) {
        let Some(worker) = self.workers.get_mut(name) else { return };
        for (run, told) in &mut worker.has {
            let Some(execution) = around.world.runs.get(run) else { continue };
            if !std::mem::replace(told, true) {
                let report = Report::Started { external_id: format!("x-{run}") };
                inputs.push(Input::RunReported { run: run.clone(), report });
            }
            if execution.ends_at <= around.now {
                let report = Report::Ended { outcome: execution.outcome.clone() };
                inputs.push(Input::RunReported { run: run.clone(), report });
                self.runs.remove(run);
                self.said.push((name.clone(), run.clone()));
            }
        }
    }

    /// Sends a worker the starts that did not arrive, and those that wait for a worker.
    fn hand_out(&mut self, name: &Arc<str>, rng: &mut Rng, followed: &mut Consequences) {
        let Some(worker) = self.workers.get(name) else { return };
        let mine = |(run, place): &(&RunId, &Place)| match place {
            Place::Given(other) => other == name && !worker.has.contains_key(*run),
            _ => false,
        };
        let again: Vec<RunId> = self.runs.iter().filter(mine).map(|(run, _)| run.clone()).collect();
        let waiting = self.runs.iter().filter(|(_, place)| **place == Place::Waiting);
        let waiting: Vec<RunId> = waiting.map(|(run, _)| run.clone()).collect();
        for run in waiting {
            if self.takes(name, &run) {
                self.runs.insert(run.clone(), Place::Given(name.clone()));
                self.flying.insert((name.clone(), run.clone()));
                followed.later.push((rng.between(1, 2000), Deed::Order(name.clone(), run)));
            }
        }
        for run in again {
            self.flying.insert((name.clone(), run.clone()));
            followed.later.push((rng.between(1, 2000), Deed::Order(name.clone(), run)));
        }
    }

    /// How many more runs a worker would accept.
    fn room(&self, name: &Arc<str>) -> u32 {
        let Some(plan) = self.plans.get(name) else { return 0 };
        let given = self.runs.values().filter(|place| matches!(place, Place::Given(other) if other == name)).count();
        plan.slots.saturating_sub(u32::try_from(given).unwrap_or(u32::MAX))
    }

    fn takes(&self, name: &Arc<str>, run: &RunId) -> bool {
        let fits = |plan: &WorkerPlan| {
            let serves = plan.workflows.contains(&run.slot.workflow);
            let labels = self.labels.get(&run.slot.workflow).is_none_or(|labels| labels.is_subset(&plan.labels));
            serves && labels && plan.job.as_ref().is_none_or(|job| *job == run.slot)
        };
        self.sessions.contains_key(name) && self.plans.get(name).is_some_and(fits) && self.room(name) > 0
    }

    fn offer(&mut self, name: &Arc<str>, around: &mut FleetView<'_>, inputs: &mut Vec<Input>) {
        let free = self.room(name);
        let (Some(plan), Some(session)) = (self.plans.get(name), self.sessions.get_mut(name)) else { return };
        let (workflows, labels) = (plan.workflows.clone(), plan.labels.clone());
        let offer = Offer {
            workflows,
            labels,
            job: plan.job.clone(),
            free,
            attempts: plan.attempts,
            outdated: BTreeSet::new(),
        };
        if session.believed.as_ref() != Some(&offer) {
            session.believed = Some(offer.clone());
            let times = if around.faulty && around.rng.percent(5) { 2 } else { 1 };
            for _ in 0..times {
                inputs.push(Input::Offered { worker: name.clone(), offer: Some(offer.clone()) });
            }
        }
    }

    fn order(
        &mut self,
        name: &Arc<str>,
        run: &RunId,
        around: &mut FleetView<'_>,
        followed: &mut Consequences,
    ) -> Result<(), String> {
        let now = around.now;
        self.flying.remove(&(name.clone(), run.clone()));
        let goes_on = around.world.runs.get(run).is_some_and(|execution| execution.ends_at > now);
        let other = self.workers.iter().find(|(other, worker)| *other != name && worker.has.contains_key(run));
        let Some(worker) = self.workers.get(name) else { return Ok(()) };
        if worker.is_silent(now) || worker.has.contains_key(run) {
            return Ok(());
        }
        if let Some((other, _)) = other.filter(|_| goes_on) {
            return Err(format!("{run} is given to {name} while {other} does it"));
        }
        if !around.world.start(run, now) {
            return Ok(());
        }
        let left = around.world.runs[run].ends_at.as_millisecond() - now.as_millisecond();
        if let Some(worker) = self.workers.get_mut(name) {
            worker.has.insert(run.clone(), false);
        }
        let rng = &mut *around.rng;
        followed.later.push((rng.between(1, 1000), Deed::Word(name.clone(), false)));
        followed.later.push((left.max(0) + rng.between(1, 1500), Deed::Word(name.clone(), false)));
        Ok(())
    }

    fn look_out(
        &mut self,
        name: &Arc<str>,
        number: u64,
        gone: bool,
        around: &mut FleetView<'_>,
        followed: &mut Consequences,
    ) {
        let Some(session) = self.sessions.get(name).filter(|session| session.number == number) else { return };
        let left = (session.heard + LEASE).as_millisecond() - around.now.as_millisecond();
        if !gone && left > 0 {
            followed.later.push((left, Deed::Lookout(name.clone(), number, false)));
            return;
        }
        self.sessions.remove(name);
        followed.inputs.push(Input::Offered { worker: name.clone(), offer: None });
        let mine = |place: &Place| matches!(place, Place::Given(other) if other == name);
        let had: Vec<RunId> = self.runs.iter().filter(|(_, place)| mine(place)).map(|(run, _)| run.clone()).collect();
        for run in had {
            self.runs.remove(&run);
            followed.inputs.push(settled(&run, around));
            if around.faulty && around.rng.percent(30) {
                let report = Report::Ended { outcome: Outcome::Succeeded };
                followed.stale.push((around.rng.between(0, 7_200_000), Input::RunReported { run, report }));
            }
        }
    }

    /// Starts a run. Returns false if the desk can report its outcome itself.
    pub fn start(
        &mut self,
        run: &RunId,
        hint: &Arc<str>,
        world: &World,
        rng: &mut Rng,
        later: &mut Vec<(i64, Deed)>,
    ) -> bool {
        if let Some(believed) = self.sessions.get_mut(hint).and_then(|session| session.believed.as_mut()) {
            believed.free = believed.free.saturating_sub(1);
        }
        match self.runs.get(run) {
            Some(Place::Given(_) | Place::Unclaimed(_)) => return true,
            _ if world.runs.contains_key(run) => return false,
            _ => {}
        }
        let hinted = Some(hint).filter(|hint| self.sessions.contains_key(*hint) && self.room(hint) > 0);
        let other = || self.sessions.keys().find(|name| self.takes(name, run));
        let place = match hinted.or_else(other).cloned() {
            Some(name) => {
                let wait = rng.between(1, 2000);
                if !rng.percent(3) {
                    self.flying.insert((name.clone(), run.clone()));
                    later.push((wait, Deed::Order(name.clone(), run.clone())));
                }
                Place::Given(name)
            }
            None => Place::Waiting,
        };
        self.runs.insert(run.clone(), place);
        true
    }

    /// Asks for a run: a worker will report it, or nobody claims it.
    pub fn check(&mut self, run: &RunId, now: Timestamp, later: &mut Vec<(i64, Deed)>) {
        if !self.runs.contains_key(run) {
            self.runs.insert(run.clone(), Place::Unclaimed(now));
            later.push((10, Deed::Unclaimed(run.clone())));
        }
    }

    /// Cancels a run. Returns false if the desk itself reports that it ended.
    pub fn cancel(&mut self, run: &RunId, world: &mut World, now: Timestamp, later: &mut Vec<(i64, Deed)>) -> bool {
        world.cancel(run, now);
        if let Some(Place::Given(name)) = self.runs.get(run)
            && self.workers.get(name).is_some_and(|worker| worker.has.contains_key(run))
        {
            later.push((700, Deed::Word(name.clone(), false)));
            return true;
        }
        self.runs.remove(run);
        false
    }

    /// Notes the inputs of the core.
    pub fn hear(&mut self, inputs: &[Input]) {
        for input in inputs {
            if let Input::Offered { worker, offer } = input {
                match offer {
                    Some(offer) => self.offered.insert(worker.clone(), offer.clone()),
                    None => self.offered.remove(worker),
                };
            }
        }
    }

    /// Checks that a job is assigned to a worker that offered to run it, and has room for it.
    ///
    /// # Errors
    /// The start that is assigned wrongly.
    pub fn judge(&mut self, workload: &Workload, commands: &[Command]) -> Result<(), String> {
        for command in commands {
            match command {
                Command::StartRun { run, worker, workflow, .. } => {
                    let is_new = self.seen.insert(run.clone());
                    let by_worker = workload.config.leaves_to_workers(workflow);
                    if worker.is_some() != by_worker {
                        return Err(format!("{run} is given to {worker:?}"));
                    }
                    if let Some(worker) = worker.as_ref().filter(|_| is_new) {
                        self.judge_dispatch(run, worker, &workflow.job.runs_on)?;
                    }
                }
                Command::CheckRun { run, .. } => drop(self.seen.insert(run.clone())),
                _ => {}
            }
        }
        Ok(())
    }

    fn judge_dispatch(&mut self, run: &RunId, worker: &Arc<str>, labels: &BTreeSet<Label>) -> Result<(), String> {
        let offer =
            self.offered.get_mut(worker).ok_or_else(|| format!("{run} is given to {worker}, who is not there"))?;
        let covers =
            offer.workflows.contains(&run.slot.workflow) && offer.job.as_ref().is_none_or(|job| *job == run.slot);
        if !covers || !labels.is_subset(&offer.labels) || offer.free == 0 {
            return Err(format!("{run} is given to {worker}, who offers {offer:?}"));
        }
        offer.free -= 1;
        Ok(())
    }
}

/// The outcome of a run whose worker is gone: it is ended, and files that it left may say how it ended before.
fn settled(run: &RunId, around: &mut FleetView<'_>) -> Input {
    let FleetView { world, now, rng, .. } = around;
    let known = world.runs.get(run).filter(|execution| execution.ends_at <= *now && rng.percent(50));
    let outcome = known.map(|execution| execution.outcome.clone());
    world.cancel(run, *now);
    let outcome = outcome.unwrap_or_else(|| Outcome::Unknown { reason: "its worker is gone".to_owned() });
    Input::RunReported { run: run.clone(), report: Report::Ended { outcome } }
}
