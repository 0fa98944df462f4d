//! The worker's side: asks for runs, executes them by its own executors, and repeats reports until they are
//! acknowledged.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_core::Input;
use kelos_engine::executor::{Executors, Reports, RunInput, Start};
use kelos_model::run::Report;
use kelos_model::workers::FUNCTION;
use kelos_model::{Outcome, RunId, WorkflowId};
use kelos_wire::{
    AssignmentDto, OfferRequest, OutputAnswerDto, PermitAnswerDto, ProcessDto, RunInputDto, RunOrderDto, RunReportDto,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::disk::{Disk, HeldRun};
use super::door::{Door, NoAnswer};
use super::hands::{Hands, WorkerOffer, WorkerRun};
use super::waits::Waits;
use super::{Process, Signature, output, verdict};
use crate::local::{BootMoment, Launcher};

/// The first and the longest wait after a message without an answer. One that shares the leader's folder takes the lead itself, and does
/// not wait longer than the first.
const TRY_AGAIN: Duration = Duration::from_millis(100);
const LONGEST_TRY: Duration = Duration::from_secs(1);

/// Wait of the first word, which is answered as soon as it is known whether there is something to do.
const GLANCE: Duration = Duration::from_millis(1);

/// Longest wait for something to do in the folder of the leader; the desk makes it shorter where its lease asks for that.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// For how long a worker that has nothing left to do or to report tells a leader which does not answer that it leaves.
const GOODBYE: Duration = Duration::from_secs(10);

/// The time that an answer may take beyond the wait for something to do, in the folder of the leader.
const BEYOND_WAIT: Duration = Duration::from_secs(5);

/// So many messages in a row that ask the next node are given up soon. By then the lease is over, and a leader that is slow needs more.
const SHORT_TRIES: u32 = 6;

/// The executor that reads what is left of a run, of whatever kind it was.
const COMMAND: &str = "command";

/// That a run is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// The run.
    pub run: RunId,
    /// Its outcome by the executor; the hub may have recorded another one.
    pub outcome: Outcome,
}

/// An event of a worker, for the program that started it.
#[derive(Debug, Clone)]
pub enum News {
    /// Its offer was accepted.
    Came,
    /// It began with a run.
    Began(RunId),
    /// A run is over.
    Over(RunEnd),
    /// The leader can't be reached any more; why completes "failed to …".
    Away(String),
    /// The leader answers again.
    Back,
    /// It lost its runs, because it was silent for too long.
    GivenUp,
    /// These workflows of its project have another definition by now, and it gets no runs of them; none once that is over.
    Outdated(BTreeSet<WorkflowId>),
    /// It is of no use here: why completes "failed to …".
    Useless(String),
}

/// A worker at work. Cheap to clone.
pub struct Worker<D> {
    inner: Arc<Inner<D>>,
}

impl<D> Clone for Worker<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

/// The place of the runs of a worker.
pub enum WorkerHome {
    /// The folder of the leader, where it keeps its signature on the roll for as long as it asks.
    Shared(Signature),
    /// A disk of its own.
    Own(Disk),
}

struct Inner<D> {
    name: String,
    door: D,
    executors: Executors,
    process: Option<ProcessDto>,
    reports: Reports,
    hands: Mutex<Hands>,
    /// Its disk, if it does not share the leader's folder.
    disk: Option<Mutex<Disk>>,
    /// There is something to report.
    say: Notify,
    /// The request that is waiting for an answer is out of date.
    hurry: Notify,
    /// A change that a task which waits for the end has to check.
    moved: Notify,
    tell: mpsc::UnboundedSender<News>,
}

impl<D: Door> Worker<D> {
    /// Sets a worker to work on the current runtime; what happens comes out of the channel. On a disk of its own it goes on with the runs
    /// of its former process.
    #[must_use]
    pub fn start(
        name: String,
        door: D,
        executors: Executors,
        wanted: WorkerOffer,
        footing: WorkerHome,
    ) -> (Worker<D>, mpsc::UnboundedReceiver<News>) {
        let (tell, told) = mpsc::unbounded_channel();
        let (heard, mut hears) = mpsc::unbounded_channel();
        let reports = Reports::new(move |input| {
            if let Input::RunReported { run, report } = input {
                let _ = heard.send((run, report));
            }
        });
        let (signature, disk) = match footing {
            WorkerHome::Shared(signature) => (Some(signature), None),
            WorkerHome::Own(disk) => (None, Some(Mutex::new(disk))),
        };
        let inner = Arc::new(Inner {
            name,
            door,
            disk,
            executors,
            process: Process::own().ok().map(ProcessDto::from),
            reports,
            hands: Mutex::new(Hands::new(wanted)),
            say: Notify::new(),
            hurry: Notify::new(),
            moved: Notify::new(),
            tell,
        });
        inner.go_on();
        let worker = Worker { inner };
        let (asks, says, listens) = (worker.inner.clone(), worker.inner.clone(), worker.inner.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = asks.ask() => {}
                () = beat(signature) => {}
            }
        });
        tokio::spawn(async move { says.report().await });
        tokio::spawn(async move {
            while let Some((run, report)) = hears.recv().await {
                let launcher = listens.disk().and_then(|disk| disk.launcher().cloned());
                match launcher.filter(|_| report == Report::NeverStarted) {
                    Some(launcher) => drop(tokio::spawn(listens.clone().never_started(launcher, run))),
                    None => listens.reported(&run, report),
                }
            }
        });
        (worker, told)
    }

    /// Accepts no more runs, and returns once all that it had are over and reported. Runs that are assigned to it
    /// meanwhile are executed.
    pub async fn leave(&self) {
        self.inner.hands().leaves = true;
        self.inner.hurry.notify_one();
        loop {
            let moved = self.inner.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.inner.hands().left {
                return;
            }
            moved.await;
        }
    }

    /// Lets it do what it offered.
    pub fn go(&self) {
        self.inner.hands().wanted.held = false;
        self.inner.hurry.notify_one();
    }

    /// The same as [`Worker::leave`], but what is given to it on its way out is left to others.
    pub async fn decline(&self) {
        self.inner.hands().declines = true;
        self.leave().await;
    }

    /// Ends everything that it does.
    pub fn end_all(&self) {
        let runs: Vec<RunId> = self.inner.hands().runs.keys().cloned().collect();
        runs.iter().for_each(|run| self.inner.end(run));
    }

    /// Whether it has nothing to do or to say.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inner.hands().is_idle()
    }
}

/// Keeps a signature; one who has none waits for nothing.
async fn beat(signature: Option<Signature>) {
    match signature {
        Some(signature) => signature.beat().await,
        None => std::future::pending().await,
    }
}

impl<D: Door> Inner<D> {
    fn disk(&self) -> Option<MutexGuard<'_, Disk>> {
        self.disk.as_ref().map(|disk| disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes up the runs that the former process of this worker left.
    fn go_on(&self) {
        let held = self.disk().map(|disk| disk.held()).unwrap_or_default();
        for HeldRun { run, executor, lease_millis } in held {
            let known = WorkerRun { executor, external_id: None, lease_millis, ended: false, abandoned: false };
            let executor = self.executors.get(&known.executor);
            self.hands().runs.insert(run.clone(), known);
            executor.check(&run, None, self.reports.clone());
        }
    }

    /// The next word, with what is known of this process.
    fn word(&self, hands: &mut Hands) -> OfferRequest {
        let (remote, folders, succeeds) = match self.disk() {
            Some(disk) => (Some(disk.about().clone()), disk.told(), disk.ended().to_vec()),
            None => (None, None, Vec::new()),
        };
        OfferRequest { process: self.process.clone(), remote, folders, succeeds, ..hands.word() }
    }

    /// Forgets a run that the leader needs no more reports on.
    fn let_go(&self, run: &RunId) {
        if let Some(disk) = self.disk() {
            disk.let_go(run);
        }
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something to do, again and again, until it left.
    async fn ask(self: Arc<Self>) {
        let mut goodbye = None;
        while let Some(word) = self.question() {
            let was_heard = tokio::select! {
                was_heard = self.say_word(&word) => was_heard,
                // An answer that was not waited for is repeated with the next one.
                () = self.hurry.notified() => false,
            };
            while self.is_held() {
                self.hurry.notified().await;
            }
            if !word.leaves {
                continue;
            }
            let since = *goodbye.get_or_insert_with(Instant::now);
            // A leader that is gone learns it from the silence.
            let is_unheard = self.hands().alone && since.elapsed() >= GOODBYE;
            if (was_heard || is_unheard) && self.hands().is_idle() {
                if let Some(mut disk) = self.disk() {
                    disk.release();
                }
                self.hands().left = true;
                self.moved.notify_waiters();
            }
        }
    }

    /// The next word of one who wants something to do; none once it left.
    fn question(&self) -> Option<OfferRequest> {
        let mut hands = self.hands();
        if hands.left {
            return None;
        }
        let leaves = hands.leaves && hands.is_idle();
        let wait = match hands.session {
            _ if leaves => Duration::ZERO,
            // The first word only makes the offer known, and takes what is there.
            None if hands.wanted.held => Duration::ZERO,
            None => GLANCE,
            // Whether there is something to do can wait until it is known that there is a leader.
            Some(_) if self.disk.is_some() && hands.unanswered > 0 => GLANCE,
            Some(_) => self.waits(&hands).for_work,
        };
        let wait_millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let declines = hands.declines;
        Some(OfferRequest { leaves, declines, wait_millis, ..self.word(&mut hands) })
    }

    /// Whether it is not to do anything yet.
    fn is_held(&self) -> bool {
        let hands = self.hands();
        hands.wanted.held && hands.session.is_some() && !hands.leaves
    }

    /// Sends reports on runs until they are acknowledged.
    async fn report(self: Arc<Self>) {
        while !self.hands().left {
            let word = {
                let mut hands = self.hands();
                let (reports, outputs) = (hands.outbox.clone(), hands.outputs.clone());
                OfferRequest { reports, outputs, ..self.word(&mut hands) }
            };
            if word.reports.is_empty() && word.outputs.is_empty() {
                self.say.notified().await;
            } else if self.say_word(&word).await {
                let is_answered = |answer: &OutputAnswerDto| word.outputs.iter().any(|one| one.number == answer.number);
                self.hands().outputs.retain(|answer| !is_answered(answer));
                self.was_heard(&word.reports);
            }
        }
    }

    fn was_heard(&self, reports: &[RunReportDto]) {
        let mut hands = self.hands();
        hands.outbox.retain(|told| !reports.contains(told));
        for told in reports {
            match told.what {
                Report::Started { .. } | Report::Gave { .. } | Report::Asks { .. } => {}
                Report::Ended { .. } => {
                    hands.forget(&told.run);
                    hands.remember(told);
                    self.let_go(&told.run);
                }
                // It may be asked for again.
                Report::Deferred { .. } | Report::GivenBack | Report::NeverStarted => {
                    hands.runs.remove(&told.run);
                    self.let_go(&told.run);
                }
            }
        }
        let leaves = hands.leaves && hands.is_idle();
        drop(hands);
        self.moved.notify_waiters();
        if leaves {
            self.hurry.notify_one();
        }
    }

    /// Sends a message, and does what the answer orders; false if there was none.
    async fn say_word(self: &Arc<Self>, word: &OfferRequest) -> bool {
        // The leader hears it at this moment at the earliest, so its lease ends no earlier than the one that begins now.
        let asked = BootMoment::now();
        let answer = self.door.say(&self.name, word, self.patience(word)).await;
        let answer = answer.and_then(|answer| self.believed(answer));
        match answer {
            Ok(answer) if answer.given_up => {
                tracing::warn!("the leader received no heartbeat of this worker for too long, and took its runs away");
                self.start_over(word);
            }
            Ok(answer) => {
                self.hands().was_answered(word.count);
                if let Some(mut disk) = self.disk() {
                    disk.renew(asked);
                }
                if std::mem::take(&mut self.hands().alone) {
                    let _ = self.tell.send(News::Back);
                    self.repeat_requests();
                }
                if word.session.is_none() {
                    let _ = self.tell.send(News::Came);
                }
                if !self.do_as_told(answer) {
                    // The same answer comes at once, until its disk can be written or a run has ended.
                    tokio::time::sleep(LONGEST_TRY).await;
                }
                return true;
            }
            Err(NoAnswer::GivenUp(why)) if self.hands().epoch == 0 => {
                tracing::warn!("failed to {why}");
                self.start_over(word);
            }
            // An older program says it, which may have been replaced: it is asked again, as if for the first time.
            Err(NoAnswer::GivenUp(why)) => {
                tracing::warn!("failed to {why}; the runs go on, as a leader of a newer epoch has them");
                self.hands().session = None;
            }
            Err(NoAnswer::Never(why)) => {
                let _ = self.tell.send(News::Useless(why));
                self.hands().left = true;
                self.moved.notify_waiters();
                self.say.notify_one();
                return false;
            }
            Err(NoAnswer::Away(why)) => {
                tracing::debug!("failed to {why}; trying again");
                // One that shares the leader's folder takes the lead itself.
                if self.disk.is_some() && !std::mem::replace(&mut self.hands().alone, true) {
                    let _ = self.tell.send(News::Away(why));
                }
            }
        }
        tokio::time::sleep(self.wait_to_try()).await;
        false
    }

    /// An answer, if it is not one of a leader that has been replaced.
    fn believed(&self, mut answer: AssignmentDto) -> Result<AssignmentDto, NoAnswer> {
        let mut hands = self.hands();
        if hands.believes(&mut answer) {
            return Ok(answer);
        }
        let (old, newest) = (answer.epoch.unwrap_or_default(), hands.epoch);
        let hint = "if the log was put back, start this worker again";
        let why =
            format!("believe the leader: its epoch is {old}, and one of epoch {newest} has answered before; {hint}");
        Err(NoAnswer::Away(why))
    }

    fn wait_to_try(&self) -> Duration {
        let mut hands = self.hands();
        let failures = hands.unanswered;
        hands.unanswered = failures.saturating_add(1);
        match &self.disk {
            Some(_) => TRY_AGAIN.saturating_mul(1 << failures.min(4)).min(LONGEST_TRY),
            None => TRY_AGAIN,
        }
    }

    fn waits(&self, hands: &Hands) -> Waits {
        match &self.disk {
            Some(_) => Waits::of(hands.lease),
            None => {
                let third = hands.lease.map_or(LONGEST_WAIT, |lease| lease / 3).min(LONGEST_WAIT);
                Waits { for_work: LONGEST_WAIT, for_answer: BEYOND_WAIT, at_most: third + BEYOND_WAIT }
            }
        }
    }

    /// How long the leader may take to answer. A connection that is cut, or a process that stands still, says nothing.
    fn patience(&self, word: &OfferRequest) -> Duration {
        let hands = self.hands();
        let waits = self.waits(&hands);
        // The lease of what it runs is at stake, and others may know the leader.
        let is_pressing = (1..=SHORT_TRIES).contains(&hands.unanswered) && !hands.runs.is_empty();
        let is_glance = word.wait_millis > 0 && Duration::from_millis(word.wait_millis) <= GLANCE;
        if self.disk.is_some() && is_glance && is_pressing { waits.for_answer } else { waits.at_most }
    }

    /// Does what an answer orders; false if something was left undone, which the next answer orders again.
    fn do_as_told(self: &Arc<Self>, answer: AssignmentDto) -> bool {
        {
            let mut hands = self.hands();
            let is_another = hands.session.as_ref().is_some_and(|session| *session != answer.session);
            (hands.session, hands.lease) = (Some(answer.session), Some(Duration::from_millis(answer.lease_millis)));
            if hands.outdated != answer.outdated {
                hands.outdated.clone_from(&answer.outdated);
                let _ = self.tell.send(News::Outdated(answer.outdated));
            }
            drop(hands);
            if is_another {
                self.repeat_requests();
            }
        }
        for PermitAnswerDto { run, request, answer } in answer.permits {
            let executor = self.hands().runs.get(&run).map(|held| self.executors.get(&held.executor));
            if let Some(executor) = executor {
                executor.answer(&run, request, answer, self.reports.clone());
            }
        }
        for run in &answer.refused {
            self.abandon(run);
        }
        let mut is_done = true;
        for run in answer.sought {
            is_done &= self.look_for(run);
        }
        for order in answer.starts {
            is_done &= self.begin(order);
        }
        for run in &answer.cancels {
            self.end(run);
        }
        for question in answer.outputs {
            let Some(launcher) = self.disk().and_then(|disk| disk.launcher().cloned()) else { continue };
            let this = self.clone();
            tokio::spawn(async move {
                let read = output::answer(&launcher, &question).await;
                this.hands().outputs.push(read);
                this.say.notify_one();
            });
        }
        is_done
    }

    /// Has functions ask again for the permits that they wait for: an answer may have been lost, and the leader may be another one.
    fn repeat_requests(&self) {
        let hands = self.hands();
        let functions = hands.runs.iter().filter(|(_, held)| held.executor == FUNCTION && !held.ended);
        let runs: Vec<(RunId, Option<String>)> =
            functions.map(|(run, held)| (run.clone(), held.external_id.clone())).collect();
        drop(hands);
        let executor = self.executors.get(FUNCTION);
        runs.iter().for_each(|(run, id)| executor.check(run, id.as_deref(), self.reports.clone()));
    }

    /// Begins with a run; false if its disk can't be written.
    fn begin(&self, order: RunOrderDto) -> bool {
        let RunOrderDto { run, workflow, settings, properties, given, lease_millis, earlier } = order;
        {
            let mut hands = self.hands();
            if hands.runs.contains_key(&run) {
                return true;
            }
            // The hub has not got its end, or this order was under way when it did.
            if let Some(told) = hands.over.iter().find(|told| told.run == run).cloned() {
                if !hands.outbox.contains(&told) {
                    hands.outbox.push(told);
                }
                self.say.notify_one();
                return true;
            }
            let executor = workflow.job.executor.clone();
            let held = HeldRun { run: run.clone(), executor: executor.clone(), lease_millis };
            if let Some(Err(error)) = self.disk().map(|disk| disk.hold(&held)) {
                // It is told again with each answer, and said once.
                if !std::mem::replace(&mut hands.is_stuck, true) {
                    tracing::warn!(%run, "failed to note a run before it begins: {error}; it waits until that works");
                }
                return false;
            }
            if std::mem::take(&mut hands.is_stuck) {
                tracing::info!(%run, "runs can be noted again");
            }
            hands.taken = hands.taken.saturating_add(1);
            let known = WorkerRun { executor, external_id: None, lease_millis, ended: false, abandoned: false };
            hands.runs.insert(run.clone(), known);
        }
        let _ = self.tell.send(News::Began(run.clone()));
        let executor = self.executors.get(&workflow.job.executor);
        let RunInputDto { arguments, behind_key, triggered_by, batch, about, traceparent } = given;
        let given = RunInput { arguments, behind_key, triggered_by, batch, about, traceparent };
        let lease = lease_millis.map(Duration::from_millis);
        let start = Start { run, workflow, settings, properties, given, worker: None, lease, earlier };
        executor.start(start, self.reports.clone());
        true
    }

    /// Looks on the disk for a run that the log has at this worker and that it does not list. One that it finds is its own again; one that
    /// it does not find is kept from beginning, and reported as never begun. False if it says nothing of the run before that has ended.
    fn look_for(&self, run: RunId) -> bool {
        let mut hands = self.hands();
        if let Some(held) = hands.runs.get(&run) {
            return !held.abandoned;
        }
        if hands.outbox.iter().any(|told| told.run == run) {
            return true;
        }
        if let Some(told) = hands.over.iter().find(|told| told.run == run).cloned() {
            hands.outbox.push(told);
            drop(hands);
            self.say.notify_one();
            return true;
        }
        if hands.wanted.project.is_some() {
            // The functions of a program leave nothing behind.
            hands.outbox.push(RunReportDto { run, what: Report::NeverStarted });
            drop(hands);
            self.say.notify_one();
            return true;
        }
        let executor = COMMAND.to_owned();
        let known = WorkerRun { executor, external_id: None, lease_millis: None, ended: false, abandoned: false };
        let executor = self.executors.get(&known.executor);
        hands.runs.insert(run.clone(), known);
        drop(hands);
        executor.check(&run, None, self.reports.clone());
        true
    }

    fn end(&self, run: &RunId) {
        let hands = self.hands();
        let Some(held) = hands.runs.get(run).filter(|held| !held.ended) else { return };
        let (executor, external_id) = (self.executors.get(&held.executor), held.external_id.clone());
        drop(hands);
        executor.cancel(run, external_id.as_deref(), self.reports.clone());
    }

    /// Ends a run whose reports are not needed any more.
    fn abandon(&self, run: &RunId) {
        let mut hands = self.hands();
        hands.outbox.retain(|told| told.run != *run);
        let Some(held) = hands.runs.get_mut(run) else { return };
        if held.ended {
            hands.forget(run);
            self.let_go(run);
            return;
        }
        held.abandoned = true;
        drop(hands);
        self.end(run);
    }

    /// Begins a new session with nothing but results in hand, once for all words of the one that was given up.
    fn start_over(&self, word: &OfferRequest) {
        let runs: Vec<RunId> = {
            let mut hands = self.hands();
            if hands.session != word.session {
                return;
            }
            hands.session = None;
            // They were asked for by the session that is over. One that leaves would begin another session for them, and stay in it.
            hands.outputs.clear();
            // Results are said again: the leader refuses those of runs that it has ended by then.
            hands.runs.iter().filter(|(_, held)| !held.ended).map(|(run, _)| run.clone()).collect()
        };
        runs.iter().for_each(|run| self.abandon(run));
        let _ = self.tell.send(News::GivenUp);
    }

    /// Sees to it that a run which the former process of this worker had not begun does not begin any more, and reports it.
    async fn never_started(self: Arc<Self>, launcher: Launcher, run: RunId) {
        let report = verdict::unclaimed(&launcher, &run, false, "its worker ended as it began").await;
        self.reported(&run, report);
    }

    /// Processes a report of an executor.
    fn reported(&self, run: &RunId, report: Report) {
        let mut hands = self.hands();
        let Some(held) = hands.runs.get_mut(run).filter(|held| !held.ended) else { return };
        match &report {
            Report::Started { external_id } => held.external_id = Some(external_id.clone()),
            Report::Gave { .. } | Report::Asks { .. } => {}
            _ => held.ended = true,
        }
        let abandoned = held.abandoned;
        if let Report::Ended { outcome } = &report {
            let _ = self.tell.send(News::Over(RunEnd { run: run.clone(), outcome: outcome.clone() }));
        }
        if !abandoned {
            hands.outbox.push(RunReportDto { run: run.clone(), what: report });
        } else if hands.runs.get(run).is_some_and(|held| held.ended) {
            hands.forget(run);
            self.let_go(run);
            // Those who wait to leave have nothing left to report.
            self.hurry.notify_one();
        }
        drop(hands);
        self.say.notify_one();
        self.moved.notify_waiters();
    }
}
