//! A time of leading: the real loop over the journal of a node, and executors that start what it commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Command, Core, DEPLOYMENTS, Input, Surroundings, WORKER, drive, live_through};
use kelos_engine::turn::{Remedy, TurnError, Turns};
use kelos_model::jobs::Relation;
use kelos_model::run::Report;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Probe, RunId, SlotRef, Workflow, WorkflowId};
use kelos_store::{Journal, Lease, MemoryDisk, PageRequest, SlotFilter, StoreError, StoredState};

use super::handle::NodeHandle;
use super::journal::NodeJournal;
use super::site::{Common, Plant};
use super::workers::NodeHub;
use crate::apps::Apps;
use crate::judge;
use crate::rng::Rng;
use crate::workload::resolved;

/// The interval at which a leader renews its lease.
const RENEW: SignedDuration = SignedDuration::from_secs(100);

/// A message to the process of a leader, which is lost with it.
pub(super) enum Message {
    Input(Input),
    /// A worker asks for something to do.
    Question(usize),
    /// A run of an earlier leader is surely over by now, if no worker claimed it.
    Overdue(RunId),
    Look(Probe),
    Relate(Relation),
}

/// The parts of a node that a leader needs.
pub(super) struct NodeView<'a> {
    pub(super) handle: Arc<NodeHandle>,
    pub(super) rng: &'a mut Rng,
    pub(super) disk: &'a MemoryDisk,
}

pub(super) struct Reign<'a> {
    pub(super) life: NodeView<'a>,
    pub(super) journal: &'a mut NodeJournal,
    turns: Turns,
    pub(super) lease: Lease,
    pub(super) hub: NodeHub,
    agenda: BTreeMap<(Timestamp, u64), Message>,
    count: u64,
    apps: Apps,
    next_definitions: usize,
    renew_at: Timestamp,
    /// How many turns were taken since the time moved on.
    turns_at_once: u64,
}

/// Leads until the lease is lost, the store fails, or the node ends.
pub(super) fn lead(life: NodeView<'_>, journal: &mut NodeJournal, lease: Lease) -> Result<(), TurnError> {
    let config = life.handle.place.workload.config.clone();
    let form = life.handle.body().form;
    if life.handle.place.log_epoch() == lease.epoch && form < life.handle.place.least() {
        life.handle
            .place
            .fail(format!("node {} leads, whose program does not know the form of entries", life.handle.index));
    }
    let (turns, commands) = Turns::restore(config, journal, lease, life.handle.clock())?;
    life.handle.place.common().figures.reigns += 1;
    let renew_at = life.handle.now();
    let mut reign = Reign {
        life,
        journal,
        turns,
        lease,
        hub: NodeHub::default(),
        agenda: BTreeMap::new(),
        count: 0,
        apps: Apps::default(),
        next_definitions: 0,
        renew_at,
        turns_at_once: 0,
    };
    reign.renew()?;
    reign.await_workers();
    let plant = reign.life.handle.place.plan.plant;
    if plant == Some(Plant::HearsTooEarly) {
        reign.refuse_everything();
    }
    let clock = reign.life.handle.clock();
    reign.perform(clock, commands)?;
    let first = reign.definitions_due().into_iter().collect();
    let led = live_through(&mut reign, first).and_then(|()| drive(&mut reign));
    if led.is_err() && plant == Some(Plant::AnswersTooLate) {
        reign.refuse_everything();
    }
    led?;
    if reign.life.handle.place.relay.is_over() {
        reign.judge_at_rest();
    }
    Ok(())
}

impl Reign<'_> {
    pub(super) fn now(&self) -> Timestamp {
        self.life.handle.now()
    }

    fn renew(&mut self) -> Result<(), StoreError> {
        if self.now() < self.renew_at {
            return Ok(());
        }
        match self.journal.ask(&self.life.handle)? {
            Some(held) if held == self.lease => {}
            _ => return Err(StoreError::LeaseLost { held: self.lease.epoch }),
        }
        self.renew_at = self.now() + RENEW;
        Ok(())
    }

    /// Sometimes stores a snapshot, and trims the log.
    fn store_a_snapshot(&mut self) {
        if self.life.rng.percent(3) {
            let keep = self.life.rng.below(40);
            match self.journal.inner.snapshot(keep) {
                Ok(_) => self.life.handle.place.common().figures.snapshots += 1,
                Err(error) => self.life.handle.bears(&error),
            }
        }
    }

    pub(super) fn after(&mut self, millis: i64, message: Message) {
        self.count += 1;
        let at = self.now() + SignedDuration::from_millis(millis);
        self.agenda.insert((at, self.count), message);
    }

    /// The inputs that are due by now.
    fn happens(&mut self) -> Vec<Input> {
        let now = self.now();
        let mut inputs = Vec::new();
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            inputs.push(match entry.remove() {
                Message::Question(index) => {
                    inputs.extend(self.asked(index));
                    continue;
                }
                Message::Overdue(run) => {
                    inputs.extend(self.give_up(&run));
                    continue;
                }
                Message::Input(input) => input,
                Message::Look(probe) => {
                    let answer = self.life.handle.place.common().world.answer(&probe, now);
                    Input::ProbeAnswered { probe, answer }
                }
                Message::Relate(relation) => {
                    let answer = Ok(self.apps.related(&relation));
                    Input::Related { relation, answer }
                }
            });
        }
        inputs.splice(0..0, self.definitions_due());
        loop {
            let mut common = self.life.handle.place.common();
            let Some((_, token, ask)) = common.asks.pop_front_if(|(at, ..)| *at <= now) else { break };
            drop(common);
            let ask = resolved(ask, |id| self.slots_of(id));
            inputs.push(Input::Asked { token, by: Actor::person("somebody"), ask, warrant: None });
        }
        inputs
    }

    /// The stored slots of a workflow.
    fn slots_of(&self, id: &WorkflowId) -> Vec<SlotRef> {
        let filter = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
        let page = self.journal.reader().slots(&filter, PageRequest::newest(crate::ALL));
        page.map(|page| page.rows.into_iter().map(|row| row.id).collect()).unwrap_or_default()
    }

    /// The definitions in the files by now, if they changed.
    fn definitions_due(&mut self) -> Option<Input> {
        let (place, now) = (self.life.handle.place.clone(), self.now());
        let workload = &place.workload;
        let due = workload.definitions[self.next_definitions..].iter().take_while(|(at, _)| *at <= now);
        self.next_definitions += due.clone().count();
        let (at, all) = due.last()?;
        self.apps = Apps::of(all, &workload.meant);
        let reader = self.journal.reader();
        let digest = |project: &str| reader.register(DEPLOYMENTS, project).ok()??.as_str().map(str::to_owned);
        let deployed = workload.deployed(*at, digest);
        // As the engine does: a log in an older form says of nothing that it is done again.
        let knows_again = self.journal.knows_again();
        let known = |one: &Arc<Workflow>| if knows_again { one.clone() } else { Arc::new(one.never_again()) };
        Some(Input::Definitions { provenance: Provenance::File, all: all.iter().map(known).collect(), deployed })
    }

    /// The true time of the next event, if the scheduler is due at a moment of its clock.
    fn next_moment(&self, due: Option<Timestamp>) -> Timestamp {
        let handle = &self.life.handle;
        let due = due.map(|at| if at <= handle.clock() { self.now() } else { at - handle.skew() });
        let agenda = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let definitions = handle.place.workload.definitions.get(self.next_definitions).map(|(at, _)| *at);
        let ask = handle.place.common().asks.front().map(|(at, ..)| *at);
        [due, agenda, definitions, ask].into_iter().flatten().fold(self.renew_at, Timestamp::min)
    }

    /// Performs commands. By then nobody else may have taken the lease.
    fn send(&mut self, commands: Vec<Command>) -> Result<(), TurnError> {
        let place = self.life.handle.place.clone();
        let in_force = place.performing_epoch();
        if !commands.is_empty() && in_force != self.lease.epoch {
            let (node, epoch) = (self.life.handle.index, self.lease.epoch);
            place.fail(format!("node {node} performs commands of epoch {epoch}, and epoch {in_force} has taken over"));
            return Err(StoreError::LeaseLost { held: epoch }.into());
        }
        for command in commands {
            self.perform_one(command);
        }
        Ok(())
    }

    fn perform_one(&mut self, command: Command) {
        let (place, now) = (self.life.handle.place.clone(), self.now());
        let slow = if place.common().per_mille > 0 && self.life.rng.percent(3) { 200_000 } else { 3000 };
        let wait = self.life.rng.between(1, slow);
        match command {
            Command::Probe(probe) => self.after(wait, Message::Look(probe)),
            Command::Relate(relation) => self.after(wait, Message::Relate(relation)),
            Command::StartRun { run, worker: Some(worker), .. } => self.hand(&run, &worker),
            Command::CheckRun { run, executor, external_id } if executor == WORKER => {
                self.expect(&run, external_id.as_deref());
            }
            Command::CancelRun { run, executor, external_id } if executor == WORKER => {
                self.end(&run, external_id.as_deref());
            }
            Command::StartRun { run, .. } => {
                let mut common = place.common();
                let is_new = common.world.start(&run, now);
                common.figures.runs += u64::from(is_new);
                // A run of the lost end of the log is live for nobody.
                let judged = if common.lost_after.is_some() {
                    Ok(())
                } else {
                    judge::after_start(&place.workload, &common.world, now)
                };
                drop(common);
                if let Err(wrong) = judged {
                    place.fail(format!("{wrong} at {now}"));
                }
                self.report_on(&run);
            }
            Command::CheckRun { run, .. } if !place.common().world.runs.contains_key(&run) => {
                self.report(0, &run, Report::NeverStarted);
            }
            Command::CheckRun { run, .. } => self.report_on(&run),
            Command::CancelRun { run, .. } => {
                place.common().world.cancel(&run, now);
                self.report_on(&run);
            }
            Command::AnswerRun { .. } | Command::Reply { .. } => {}
        }
    }

    fn report_on(&mut self, run: &RunId) {
        let (place, now) = (self.life.handle.place.clone(), self.now());
        let (found, outputs) = {
            let Common { world, .. } = &*place.common();
            (world.runs.get(run).cloned(), world.outputs(run))
        };
        let Some(execution) = found else { return };
        self.report(0, run, Report::Started { external_id: format!("x-{run}") });
        let workload = &place.workload;
        let is_heard = !workload.schedules.is_empty() || run.slot.key.step().is_some() || workload.gives;
        if let Some(outputs) = outputs.filter(|_| is_heard) {
            self.report(1, run, Report::Gave { outputs });
        }
        let left = (execution.ends_at.as_millisecond() - now.as_millisecond()).max(0);
        self.report(left, run, Report::Ended { outcome: execution.outcome });
    }

    pub(super) fn report(&mut self, after: i64, run: &RunId, report: Report) {
        let late = if self.life.handle.place.common().per_mille > 0 { self.life.rng.between(0, 2000) } else { 1 };
        self.after(after + late, Message::Input(Input::RunReported { run: run.clone(), report }));
    }

    /// Sometimes the process stands still between two things that it does.
    fn stall(&mut self) {
        let pause = {
            let mut common = self.life.handle.place.common();
            let often = 2 * common.per_mille;
            if common.rng.below(1000) < often { common.pause() } else { SignedDuration::ZERO }
        };
        self.life.handle.pause(pause);
    }

    /// Notes the turn that was just committed.
    fn acknowledge(&mut self) -> Result<(), StoreError> {
        let newest = self.journal.reader().turns(PageRequest::newest(1))?;
        let position = self.journal.shown.status().followed;
        let handle = &self.life.handle;
        if handle.is_ahead() {
            handle.place.fail(format!("node {} leads with entries that the log has lost", handle.index));
        }
        if let Some(record) = newest.rows.into_iter().next() {
            handle.place.common().ledger.acknowledge(handle.index, position, record);
        }
        Ok(())
    }

    /// Hours after the last fault everything is as it must be, as the last leader has it.
    fn judge_at_rest(&self) {
        let handle = &self.life.handle;
        let place = &handle.place;
        let common = place.common();
        if common.lost_after.is_some() || common.failure.is_some() {
            return;
        }
        let judged = match &place.workload.config.planted {
            Some(planted) => crate::planted::judge(Some(&planted.workflow), self.life.disk),
            None => {
                let (workload, now) = (&place.workload, place.relay.now());
                judge::at_rest(workload, &common.world, self.life.disk, self.turns.core(), now).map(drop)
            }
        };
        drop(common);
        if let Err(wrong) = judged {
            place.fail(wrong);
        }
    }
}

impl Surroundings for Reign<'_> {
    type Trouble = TurnError;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.life.handle.clock()
    }

    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, TurnError> {
        loop {
            if !self.life.handle.is_alive() {
                return Ok(None);
            }
            if self.now() >= self.renew_at {
                self.store_a_snapshot();
            }
            self.renew()?;
            let next = self.next_moment(due);
            if next <= self.now() {
                self.turns_at_once += 1;
                if self.turns_at_once > 10_000 {
                    self.life.handle.place.fail(format!("it takes turns without end at {next}"));
                }
                let inputs = self.happens();
                // Most questions of workers are answered with nothing.
                let is_nothing = inputs.is_empty() && due.is_none_or(|at| at > self.life.handle.clock());
                if is_nothing && self.life.handle.place.plan.has_workers {
                    continue;
                }
                return Ok(Some(inputs));
            }
            self.turns_at_once = 0;
            self.life.handle.rest(next);
        }
    }

    fn turn(&mut self, clock: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, TurnError> {
        self.stall();
        let acted = self.turns.turn(self.journal, clock, inputs)?;
        let place = &self.life.handle.place;
        let planted = place.workload.config.planted.as_ref().map(|planted| &planted.workflow);
        if let Some(broken) = acted.broken.iter().find(|broken| planted != Some(&broken.breach.workflow)) {
            place.fail(format!("{} breaks an invariant: {}", broken.input, broken.breach));
        }
        if let Some(refused) = acted.refused.first() {
            place.fail(refused.clone());
        }
        {
            let mut common = place.common();
            for broken in &acted.broken {
                common.figures.frozen += u64::from(broken.remedy == Remedy::Frozen);
                common.figures.set_aside += u64::from(broken.remedy == Remedy::SetAside);
            }
            common.figures.turns += 1;
            common.figures.events += acted.events as u64;
        }
        if acted.events > 0 {
            self.acknowledge()?;
        }
        self.stall();
        Ok(acted.commands)
    }

    fn perform(&mut self, _: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, TurnError> {
        // It may have died between the commit and the commands.
        if !self.life.handle.is_alive() {
            return Ok(Vec::new());
        }
        if !(commands.is_empty() || self.journal.holds(self.lease)) {
            return Err(StoreError::LeaseLost { held: self.lease.epoch }.into());
        }
        self.send(commands)?;
        Ok(Vec::new())
    }
}
