//! The engine's thread: stands by, leads, takes turns, and restarts when the store fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Command, Config, Core, Input, Reply, Surroundings, TakenName, drive, live_through};
use kelos_model::references::MissingConsent;
use kelos_model::run::Report;
use kelos_model::workflow::Provenance;
use kelos_model::{Outcome, Probe, RunId, Workflow};
use kelos_store::{Lease, StoreError};
use tokio::sync::oneshot;

use super::deployments::DefinitionSets;
use super::stepping::{StepQueue, StepRequest};
use super::{EngineParts, EngineView, MENDING, Message, Pace, Status};
use crate::executor::{Reports, RunInput, Start, WORKER};
use crate::job;
use crate::prober::Prober;
use crate::timed::TimedJournal;
use crate::trace::OwnTraces;
use crate::turn::{BreachReport, Remedy, TurnError, Turns};

/// The interval at which an engine in trouble retries its store.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// The interval at which an engine with damaged data checks whether it was repaired.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The interval at which the leader reads everything that is stored and compares it with its check values.
const VERIFY_EVERY: Duration = Duration::from_secs(24 * 3600);

/// The interval at which unchanged trouble is logged again, which doubles each time, and the longest.
const SAY_AGAIN: Duration = Duration::from_secs(60);
const SAY_AT_LEAST: Duration = Duration::from_secs(3600);

/// Messages that one turn takes at the most, so that a commit stays short.
const LARGEST_TURN: usize = 4096;

/// How long reports of starts wait for other messages. Nothing is decided by a start, and the end of a short command
/// follows at once: the two share one commit then, and dependents of the end have it sooner.
const LINGER: Duration = Duration::from_millis(5);

pub(super) struct Leader {
    parts: EngineParts,
    receive: Receiver<Message>,
    shown: Arc<EngineView>,
    reports: Reports,
    prober: Prober,
    definitions: DefinitionSets,
    stepping: StepQueue,
    replies: BTreeMap<u64, oneshot::Sender<Reply>>,
    next_token: u64,
    traces: OwnTraces,
    said: SaidTrouble,
}

/// The last trouble that was logged.
#[derive(Default)]
struct SaidTrouble {
    words: String,
    at: Option<Instant>,
    /// The interval after which the same is logged again.
    again: Duration,
}

impl SaidTrouble {
    /// Whether to log a trouble at a moment: if it is another one, or the last one was logged long ago.
    fn is_due(&mut self, words: &str, now: Instant) -> bool {
        let again = if self.words == words { self.again } else { Duration::ZERO };
        if self.at.is_some_and(|at| now < at + again) {
            return false;
        }
        self.again = if again.is_zero() { SAY_AGAIN } else { (again * 2).min(SAY_AT_LEAST) };
        (self.at, self.words) = (Some(now), words.to_owned());
        true
    }
}

/// The reason for which the thread stopped taking turns.
enum ExitReason {
    /// A stop was requested.
    Stop(Option<oneshot::Sender<()>>),
    /// The store failed, or another process leads.
    Store(StoreError),
    /// An invariant is broken that can't be kept from all workflows.
    Broken(TurnError),
}

/// The sum of a batch of messages.
#[derive(Default)]
struct Batch {
    inputs: Vec<Input>,
    /// Those who wait until what came before them is committed, and are told the epoch.
    barriers: Vec<oneshot::Sender<u64>>,
    stop: Option<oneshot::Sender<()>>,
    defined: BTreeSet<Provenance>,
    /// Whether anything has come that should not wait, which is all but reports of starts.
    is_urgent: bool,
}

/// A time of leading, from the restored state to the loss of the lease.
struct Reign<'a> {
    leader: &'a mut Leader,
    turns: Turns,
    lease: Lease,
    /// The batch of the present turn; those who wait for its end get their answers before the next.
    batch: Batch,
    renew_at: Instant,
    verify_at: Instant,
}

impl Reign<'_> {
    /// Does periodic work besides turns.
    fn keep_up(&mut self) -> Result<(), StoreError> {
        if Instant::now() >= self.renew_at {
            self.leader.renew(self.lease)?;
            self.renew_at = Instant::now() + self.leader.parts.lease / 3;
        }
        if Instant::now() >= self.verify_at {
            self.leader.verify();
            self.verify_at = Instant::now() + VERIFY_EVERY;
        }
        Ok(())
    }
}

impl Surroundings for Reign<'_> {
    type Trouble = TurnError;

    fn core(&self) -> &Core {
        self.turns.core()
    }

    fn now(&self) -> Timestamp {
        self.leader.now()
    }

    fn wait(&mut self, due: Option<Timestamp>) -> Result<Option<Vec<Input>>, TurnError> {
        for barrier in self.batch.barriers.drain(..) {
            let _ = barrier.send(self.lease.epoch);
        }
        if self.batch.stop.is_some() {
            return Ok(None);
        }
        self.keep_up()?;
        self.batch = self.leader.collect(due, self.renew_at);
        let mut happened = std::mem::take(&mut self.batch.inputs);
        if !self.batch.defined.is_empty() {
            let is_new = |provenance| self.batch.defined.contains(&provenance);
            happened.splice(0..0, self.leader.definitions(&mut self.turns, is_new)?);
        }
        Ok(Some(happened))
    }

    /// The tick that the pace asks for.
    fn tick(&mut self) -> Vec<Input> {
        let by_itself =
            (self.leader.parts.pace == Pace::ByItself).then_some(Input::Woke { only: None, look_again: false });
        // An engine that schedules by itself may be stepped, too: evaluate everything now.
        by_itself.into_iter().chain(self.leader.stepping.tick()).collect()
    }

    fn turn(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Command>, TurnError> {
        let mut journal = TimedJournal::begin(&mut *self.leader.parts.store, &self.leader.shown.timings);
        let acted = self.turns.turn(&mut journal, now, inputs)?;
        journal.end();
        acted.broken.iter().for_each(say_broken);
        acted.refused.iter().for_each(|what| tracing::error!("{what}; it is refused, all else continues"));
        self.leader.show_taken(self.turns.core().taken_names());
        self.leader.show_unshared(self.turns.core().unshared());
        if acted.events > 0 {
            self.leader.tell_of_commit();
        }
        Ok(acted.commands)
    }

    /// All that comes of it comes by messages.
    fn perform(&mut self, _: Timestamp, commands: Vec<Command>) -> Result<Vec<Input>, TurnError> {
        // A leader that was held up may have been replaced meanwhile; the next one asks about every run.
        if !(commands.is_empty() || self.leader.parts.store.holds(self.lease)) {
            return Err(StoreError::LeaseLost { held: self.lease.epoch }.into());
        }
        let began = Instant::now();
        self.leader.perform(commands);
        self.leader.shown.timings.perform.add(began.elapsed());
        self.leader.stepping.finish_if_quiet();
        Ok(Vec::new())
    }
}

impl Leader {
    pub(super) fn new(
        parts: EngineParts,
        send: Sender<Message>,
        receive: Receiver<Message>,
        shown: Arc<EngineView>,
    ) -> Self {
        let reports = Reports::new(move |input| {
            // If the engine has ended, the next request gets an error.
            let _ = send.send(Message::Input(input));
        });
        let (runtime, clock) = (parts.runtime.clone(), parts.clock.clone());
        let prober = Prober::new(runtime, clock, parts.functions.clone(), parts.storage.clone());
        Self {
            parts,
            receive,
            shown,
            reports,
            prober,
            definitions: DefinitionSets::default(),
            stepping: StepQueue::default(),
            replies: BTreeMap::new(),
            next_token: 0,
            traces: OwnTraces::default(),
            said: SaidTrouble::default(),
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let left = match self.stand_by() {
                Ok(Ok(lease)) => self.lead(lease),
                Ok(Err(stop)) => ExitReason::Stop(stop),
                Err(error) => ExitReason::Store(error),
            };
            self.parts.executors.stand_by();
            // Waiting requests get an error.
            self.replies.clear();
            self.shown.timings.hold_until(None);
            self.show_taken(&BTreeSet::new());
            self.stepping = StepQueue::default();
            match left {
                ExitReason::Stop(done) => {
                    self.show(Status::Stopped);
                    drop(self.parts.store);
                    let _ = done.map(|done| done.send(()));
                    return;
                }
                ExitReason::Store(StoreError::Deposed { held, .. } | StoreError::LeaseLost { held }) => {
                    tracing::warn!(epoch = held, "another process leads, or may lead; standing by");
                }
                left => {
                    let (status, wait) = self.troubled(left);
                    self.show(status);
                    if let Some(done) = self.idle(wait) {
                        self.show(Status::Stopped);
                        let _ = done.send(());
                        return;
                    }
                }
            }
        }
    }

    /// Logs the trouble, and returns the time to wait before the next attempt.
    fn troubled(&mut self, left: ExitReason) -> (Status, Duration) {
        let mending = format!("nothing is scheduled: {MENDING}");
        let over = "restoring from the store until it works";
        match left {
            ExitReason::Store(error @ StoreError::Corrupt { .. }) => {
                self.say(&error.to_string(), &mending);
                (Status::Damaged { reason: error.to_string() }, LOOK_AGAIN)
            }
            ExitReason::Store(error) => {
                self.say(&error.to_string(), over);
                (Status::Troubled { reason: error.to_string() }, TRY_AGAIN)
            }
            ExitReason::Broken(error) => {
                self.say(&error.to_string(), over);
                (Status::Troubled { reason: error.to_string() }, LOOK_AGAIN)
            }
            ExitReason::Stop(_) => (Status::Stopped, Duration::ZERO),
        }
    }

    /// Logs trouble, but not every half second while it stays the same.
    fn say(&mut self, error: &str, what_follows: &str) {
        if self.said.is_due(error, Instant::now()) {
            tracing::error!("failed to {error}; {what_follows}");
        }
    }

    /// Waits for the lease. An inner error is the word to stop.
    fn stand_by(&mut self) -> Result<Result<Lease, Option<oneshot::Sender<()>>>, StoreError> {
        let mut heard = None;
        let mut watch = None;
        loop {
            if let Some(lease) = self.take_lease()? {
                return Ok(Ok(lease));
            }
            self.show(Status::Standby);
            let watch = match &mut watch {
                Some(watch) => watch,
                None => watch.insert(self.parts.store.watch()?),
            };
            let last = watch.last_turn()?;
            if heard.replace(last) != Some(last) {
                self.tell_of_commit();
            }
            let interval = Duration::from_millis(self.parts.store.stand_by_millis());
            if let Some(done) = self.idle(interval) {
                return Ok(Err(Some(done)));
            }
        }
    }

    fn take_lease(&mut self) -> Result<Option<Lease>, StoreError> {
        let millis = u64::try_from(self.parts.lease.as_millis()).unwrap_or(u64::MAX);
        let (now, asked) = ((self.parts.clock)(), Instant::now());
        let lease = self.parts.store.lease(&self.parts.node, now, millis);
        let holds = matches!(lease, Ok(Some(_)));
        self.shown.timings.hold_until(holds.then(|| asked + self.parts.lease));
        lease
    }

    /// Waits while not leading: definitions are kept, requests dropped, which gives their senders an error.
    fn idle(&mut self, wait: Duration) -> Option<oneshot::Sender<()>> {
        let until = Instant::now() + wait;
        loop {
            match self.receive.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Stop(done)) => return Some(done),
                Ok(Message::Definitions(definitions)) => self.definitions.take(definitions, false),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// The inputs with the definitions of all provenances, or of some.
    fn definitions(&self, turns: &mut Turns, wanted: impl Fn(Provenance) -> bool) -> Result<Vec<Input>, StoreError> {
        turns.set_sources(self.definitions.sources());
        self.definitions.inputs(wanted, &*self.parts.store.reader(), self.parts.store.knows_again())
    }

    fn lead(&mut self, lease: Lease) -> ExitReason {
        match self.take_turns(lease) {
            Ok(done) => {
                if let Err(error) = self.parts.store.release(lease) {
                    tracing::warn!("failed to {error}");
                }
                ExitReason::Stop(done)
            }
            Err(TurnError::Store(error)) => ExitReason::Store(error),
            Err(error) => ExitReason::Broken(error),
        }
    }

    fn take_turns(&mut self, lease: Lease) -> Result<Option<oneshot::Sender<()>>, TurnError> {
        let now = self.now();
        let (turns, commands) = Turns::restore(self.config(), &mut *self.parts.store, lease, now)?;
        // That may have taken its time.
        self.renew(lease)?;
        tracing::info!(epoch = lease.epoch, slots = turns.core().live_slots(), "leading");
        let renew_at = Instant::now() + self.parts.lease / 3;
        let mut reign =
            Reign { leader: self, turns, lease, batch: Batch::default(), renew_at, verify_at: Instant::now() };
        reign.leader.parts.executors.lead(lease.epoch);
        reign.perform(now, commands)?;
        let first = reign.leader.definitions(&mut reign.turns, |_| true)?;
        live_through(&mut reign, first)?;
        reign.leader.show(Status::Leading { epoch: lease.epoch });
        reign.renew_at = Instant::now() + reign.leader.parts.lease / 3;
        drive(&mut reign)?;
        Ok(reign.batch.stop)
    }

    /// The tunables; a step by hand is about everything, however many turns it takes.
    fn config(&self) -> Config {
        let config = self.parts.config.clone();
        match self.parts.pace {
            Pace::ByItself => config,
            Pace::Stepped => Config { at_once: usize::MAX, ..config },
        }
    }

    /// Has everything read, on a thread of its own. The store knows then what is damaged, and takes no turn any more.
    fn verify(&self) {
        let reader = self.parts.store.reader();
        let look = move || match reader.damage(1) {
            Ok(found) => found.iter().for_each(|what| tracing::error!("what is stored is damaged: {what}")),
            Err(error) => tracing::warn!("failed to {error}"),
        };
        if let Err(error) = std::thread::Builder::new().name("kelos-verify".to_owned()).spawn(look) {
            tracing::warn!("failed to start a thread: {error}");
        }
    }

    fn renew(&mut self, lease: Lease) -> Result<(), StoreError> {
        match self.take_lease()? {
            Some(held) if held == lease => Ok(()),
            other => Err(StoreError::Deposed { held: lease.epoch, current: other.map_or(0, |held| held.epoch) }),
        }
    }

    /// Waits for the first message or moment, and drains what else has come.
    fn collect(&mut self, due: Option<Timestamp>, renew_at: Instant) -> Batch {
        let mut batch = Batch::default();
        let until = renew_at.min(Instant::now() + self.patience(due));
        match self.receive.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => self.take(message, &mut batch),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return batch,
        }
        let linger_until = until.min(Instant::now() + LINGER);
        while batch.inputs.len() < LARGEST_TURN && batch.stop.is_none() {
            let patience = match batch.is_urgent {
                true => Duration::ZERO,
                false => linger_until.saturating_duration_since(Instant::now()),
            };
            match self.receive.recv_timeout(patience) {
                Ok(message) => self.take(message, &mut batch),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        batch
    }

    /// The time until the next work that no message announces.
    fn patience(&self, due: Option<Timestamp>) -> Duration {
        const LONG: Duration = Duration::from_secs(3600);
        if self.stepping.is_waiting() {
            return Duration::ZERO;
        }
        match (self.parts.pace, due) {
            (Pace::ByItself, Some(due)) => {
                let wait = due.duration_since((self.parts.clock)()).max(SignedDuration::ZERO);
                Duration::try_from(wait).map_or(LONG, |wait| wait.min(LONG))
            }
            _ => LONG,
        }
    }

    fn take(&mut self, message: Message, batch: &mut Batch) {
        batch.is_urgent |=
            !matches!(message, Message::Input(Input::RunReported { report: Report::Started { .. }, .. }));
        match message {
            Message::Input(input) => {
                self.stepping.came_back(&input);
                batch.inputs.push(input);
            }
            Message::Ask { by, ask, warrant, reply } => {
                self.next_token += 1;
                self.replies.insert(self.next_token, reply);
                batch.inputs.push(Input::Asked { token: self.next_token, by, ask, warrant });
            }
            Message::Step { at, only, done } => self.stepping.want(StepRequest { at, only, done }),
            Message::Definitions(definitions) => {
                let follows = !batch.defined.insert(definitions.provenance);
                self.definitions.take(definitions, follows);
            }
            Message::Barrier(done) => batch.barriers.push(done),
            Message::Stop(done) => batch.stop = Some(done),
        }
    }

    /// Publishes the definitions that are left out, and logs new ones.
    fn show_taken(&self, taken: &BTreeSet<TakenName>) {
        let mut shown = self.shown.taken.write().unwrap_or_else(PoisonError::into_inner);
        if *shown != *taken {
            for TakenName { workflow, source, holder } in taken.difference(&shown) {
                let from = source.provenance;
                tracing::warn!("the workflow {workflow} of {from} is left out: one of that name is {}", holder.whose());
            }
            shown.clone_from(taken);
        }
    }

    /// Publishes the references that other projects don't share, and logs new ones.
    fn show_unshared(&self, unshared: &BTreeSet<MissingConsent>) {
        let mut shown = self.shown.unshared.write().unwrap_or_else(PoisonError::into_inner);
        if *shown != *unshared {
            for one in unshared.difference(&shown) {
                tracing::warn!("{one}; it lies dormant until that project says {}", one.line());
            }
            shown.clone_from(unshared);
        }
    }

    /// Notifies those who watch commits.
    fn tell_of_commit(&self) {
        self.shown.commits.send_modify(|commits| *commits += 1);
    }

    /// The moment of a turn: the machine's, or the latest step's.
    fn now(&self) -> Timestamp {
        if self.parts.pace == Pace::ByItself {
            return (self.parts.clock)();
        }
        let mut stepped_at = self.shown.stepped_at.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = self.stepping.now() {
            *stepped_at = Some(at);
        }
        stepped_at.unwrap_or_else(|| (self.parts.clock)())
    }

    fn perform(&mut self, commands: Vec<Command>) {
        let mut probes: Vec<Probe> = Vec::new();
        let mut replies = Vec::new();
        for command in commands {
            self.stepping.sent(&command);
            match command {
                Command::Probe(probe) => probes.push(probe),
                Command::StartRun { run, workflow, worker, collected, batch, inputs, about } => {
                    let inputs = Arc::unwrap_or_clone(inputs);
                    let given = RunInput::of(&workflow, &run.slot.key, collected.as_deref(), inputs);
                    let given = given.serving(batch).about(about);
                    self.start_run(run, workflow, given, worker);
                }
                Command::CheckRun { run, executor, external_id } => {
                    self.parts.executors.get(&executor).check(&run, external_id.as_deref(), self.reports.clone());
                }
                Command::CancelRun { run, executor, external_id } => {
                    self.parts.executors.get(&executor).cancel(&run, external_id.as_deref(), self.reports.clone());
                }
                Command::AnswerRun { run, executor, request, answer } => {
                    self.parts.executors.get(&executor).answer(&run, request, answer, self.reports.clone());
                }
                Command::Relate(relation) => {
                    let (functions, reports) = (self.parts.functions.clone(), self.reports.clone());
                    let asked = relation.clone();
                    let call = self.parts.runtime.spawn_blocking(move || functions.related(&asked));
                    // Whatever becomes of the call: who asked waits for an answer.
                    self.parts.runtime.spawn(async move {
                        let answer = call.await.unwrap_or_else(|error| Err(error.to_string()));
                        reports.deliver(Input::Related { relation, answer });
                    });
                }
                Command::Reply { token, reply } => replies.extend(self.replies.remove(&token).zip(Some(reply))),
            }
        }
        if !probes.is_empty() {
            self.prober.ask(probes, &self.reports);
        }
        // The answer is sent after what followed from the request.
        for (asker, reply) in replies {
            let _ = asker.send(reply);
        }
    }

    fn start_run(&self, run: RunId, workflow: Arc<Workflow>, given: RunInput, worker: Option<Arc<str>>) {
        let (functions, reports) = (self.parts.functions.clone(), self.reports.clone());
        let name = if worker.is_some() { WORKER } else { &*workflow.job.executor };
        let executor = self.parts.executors.get(name);
        // A script's function may take its time; everything else is filled in here.
        let calls_a_script = job::calls_a_script(&workflow);
        let given = match self.parts.traces {
            true => given.traced(self.traces.parent(&*self.parts.store.reader(), &run)),
            false => given,
        };
        let go = move || match job::fill(&run, &workflow, given, &*functions) {
            Ok(start) => executor.start(Start { worker, ..start }, reports),
            Err(reason) => reports.run(&run, Report::Ended { outcome: Outcome::refused(reason) }),
        };
        if calls_a_script {
            self.parts.runtime.spawn_blocking(go);
        } else {
            go();
        }
    }

    fn show(&self, status: Status) {
        self.shown.status.send_if_modified(|shown| {
            let changed = *shown != status;
            *shown = status;
            changed
        });
    }
}

/// Logs a broken invariant.
fn say_broken(broken: &BreachReport) {
    let BreachReport { breach, input, remedy } = broken;
    let what_follows = match remedy {
        Remedy::Repeated => "it was repeated on restored state, and passed; nothing is lost".to_owned(),
        Remedy::Frozen => {
            format!("the workflow {} is frozen until it is resumed, all others continue", breach.workflow)
        }
        Remedy::SetAside => "it is set aside, as it breaks what is frozen".to_owned(),
    };
    tracing::error!(code = breach.invariant.code(), "{input} breaks an invariant: {breach}; {what_follows}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_trouble_is_logged_again_at_growing_intervals() {
        let (began, mut said) = (Instant::now(), SaidTrouble::default());
        let at = |millis: u64| began + Duration::from_millis(millis);
        let logged = |said: &mut SaidTrouble, from: u64, to: u64| {
            (from..to).step_by(500).filter(|millis| said.is_due("full", at(*millis))).count()
        };
        assert_eq!(logged(&mut said, 0, 60_000), 1);
        assert_eq!(logged(&mut said, 60_000, 420_000), 2, "after one minute, and after two more");
        assert_eq!(logged(&mut said, 420_000, 24 * 3_600_000), 4 + 22, "hourly at last");
        assert!(said.is_due("another", at(24 * 3_600_000)));
    }
}
