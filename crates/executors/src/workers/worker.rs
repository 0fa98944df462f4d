//! The worker's side: asks for runs, executes them by its own executors, and repeats reports until they are
//! acknowledged.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_core::Input;
use kelos_engine::executor::{Executors, Reports, RunInput, Start};
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId, SlotRef, WorkflowId};
use kelos_wire::{AssignmentDto, ClaimedRunDto, OfferRequest, ProcessDto, RunInputDto, RunOrderDto, RunReportDto};
use tokio::sync::{Notify, mpsc};

use super::{Process, Signature};

/// The wait after a message without an answer.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// The number of ended runs that a worker remembers, so that it executes none twice.
const REMEMBERED: usize = 1024;

/// Wait of the first word, which is answered as soon as it is known whether there is something to do.
const GLANCE: Duration = Duration::from_millis(1);

/// Longest wait for something to do; the desk makes it shorter where its lease asks for that.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The transport of a worker's messages to a hub.
pub trait Door: Send + Sync + 'static {
    /// Sends a message and waits for the answer.
    fn say(&self, worker: &str, word: &OfferRequest) -> impl Future<Output = Result<AssignmentDto, NoAnswer>> + Send;
}

/// The reason for which there is no answer. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No hub can be reached now; one may be later.
    #[error("{0}")]
    Away(String),
    /// The desk gave this worker up.
    #[error("{0}")]
    GivenUp(String),
    /// It makes no sense to ask again.
    #[error("{0}")]
    Never(String),
}

/// The jobs that a worker accepts.
#[derive(Debug, Clone)]
pub struct WorkerOffer {
    /// Jobs of these workflows; none means of all.
    pub workflows: BTreeSet<WorkflowId>,
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
    /// It lost its runs, because it was silent for too long.
    GivenUp,
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

struct Inner<D> {
    name: String,
    door: D,
    executors: Executors,
    process: Option<ProcessDto>,
    reports: Reports,
    hands: Mutex<Hands>,
    /// There is something to report.
    say: Notify,
    /// The request that is waiting for an answer is out of date.
    hurry: Notify,
    /// A change that a task which waits for the end has to check.
    moved: Notify,
    tell: mpsc::UnboundedSender<News>,
}

/// The runs of a worker.
struct Hands {
    wanted: WorkerOffer,
    leaves: bool,
    declines: bool,
    /// It left, and the desk knows.
    left: bool,
    session: Option<String>,
    count: u64,
    taken: u32,
    runs: BTreeMap<RunId, WorkerRun>,
    outbox: Vec<RunReportDto>,
    /// The last reports on runs that are over.
    over: VecDeque<RunReportDto>,
}

/// A run in a worker's hands.
struct WorkerRun {
    executor: String,
    external_id: Option<String>,
    ended: bool,
    /// No report on it is needed any more.
    abandoned: bool,
}

impl Hands {
    fn free(&self) -> u32 {
        if self.leaves {
            return 0;
        }
        let busy = self.runs.values().filter(|held| !held.ended).count();
        let free = self.wanted.at_a_time.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX));
        self.wanted.in_all.map_or(free, |all| free.min(all.saturating_sub(self.taken)))
    }

    fn word(&mut self, process: Option<ProcessDto>) -> OfferRequest {
        self.count += 1;
        let claimed = |(run, held): (&RunId, &WorkerRun)| {
            (!held.abandoned).then(|| ClaimedRunDto { run: run.clone(), external_id: held.external_id.clone() })
        };
        // A run whose report is sent again is listed, so that the hub does not assign it once more meanwhile.
        let told = self.outbox.iter().filter(|told| !self.runs.contains_key(&told.run));
        let told = told.map(|told| ClaimedRunDto { run: told.run.clone(), external_id: None });
        OfferRequest {
            session: self.session.clone(),
            count: self.count,
            workflows: self.wanted.workflows.clone(),
            job: self.wanted.job.clone(),
            free: self.free(),
            attempts: self.wanted.attempts,
            runs: self.runs.iter().filter_map(claimed).chain(told).collect(),
            process,
            ..OfferRequest::default()
        }
    }

    fn forget(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.outbox.retain(|told| told.run != *run);
    }

    fn remember(&mut self, told: &RunReportDto) {
        self.over.push_back(told.clone());
        if self.over.len() > REMEMBERED {
            self.over.pop_front();
        }
    }

    /// Whether no run and no report is left.
    fn is_idle(&self) -> bool {
        self.runs.is_empty() && self.outbox.is_empty()
    }
}

impl<D: Door> Worker<D> {
    /// Sets a worker to work on the current runtime; what happens comes out of the channel. It keeps its signature on the roll for
    /// as long as it asks.
    #[must_use]
    pub fn start(
        name: String,
        door: D,
        executors: Executors,
        wanted: WorkerOffer,
        signature: Signature,
    ) -> (Worker<D>, mpsc::UnboundedReceiver<News>) {
        let (tell, told) = mpsc::unbounded_channel();
        let (heard, mut hears) = mpsc::unbounded_channel();
        let reports = Reports::new(move |input| {
            if let Input::RunReported { run, report } = input {
                let _ = heard.send((run, report));
            }
        });
        let hands = Hands {
            wanted,
            leaves: false,
            declines: false,
            left: false,
            session: None,
            count: 0,
            taken: 0,
            runs: BTreeMap::new(),
            outbox: Vec::new(),
            over: VecDeque::new(),
        };
        let inner = Arc::new(Inner {
            name,
            door,
            executors,
            process: Process::own().ok().map(ProcessDto::from),
            reports,
            hands: Mutex::new(hands),
            say: Notify::new(),
            hurry: Notify::new(),
            moved: Notify::new(),
            tell,
        });
        let worker = Worker { inner };
        let (asks, says, listens) = (worker.inner.clone(), worker.inner.clone(), worker.inner.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = asks.ask() => {}
                () = signature.beat() => {}
            }
        });
        tokio::spawn(async move { says.report().await });
        tokio::spawn(async move {
            while let Some((run, report)) = hears.recv().await {
                listens.reported(&run, report);
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

impl<D: Door> Inner<D> {
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something to do, again and again, until it left.
    async fn ask(self: Arc<Self>) {
        while let Some(word) = self.question() {
            let was_heard = tokio::select! {
                was_heard = self.say_word(&word) => was_heard,
                // An answer that was not waited for is repeated with the next one.
                () = self.hurry.notified() => false,
            };
            while self.is_held() {
                self.hurry.notified().await;
            }
            if was_heard && word.leaves && self.hands().is_idle() {
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
            Some(_) => LONGEST_WAIT,
        };
        let wait_millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let declines = hands.declines;
        Some(OfferRequest { leaves, declines, wait_millis, ..hands.word(self.process.clone()) })
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
                OfferRequest { reports: hands.outbox.clone(), ..hands.word(self.process.clone()) }
            };
            if word.reports.is_empty() {
                self.say.notified().await;
            } else if self.say_word(&word).await {
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
                }
                // It may be asked for again.
                Report::Deferred { .. } | Report::GivenBack | Report::NeverStarted => {
                    hands.runs.remove(&told.run);
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
        match self.door.say(&self.name, word).await {
            Ok(answer) => {
                if word.session.is_none() {
                    let _ = self.tell.send(News::Came);
                }
                self.do_as_told(answer);
                return true;
            }
            Err(NoAnswer::GivenUp(why)) => {
                tracing::warn!("failed to {why}");
                self.start_over(word);
                return false;
            }
            Err(NoAnswer::Never(why)) => {
                let _ = self.tell.send(News::Useless(why));
                self.hands().left = true;
                self.moved.notify_waiters();
                self.say.notify_one();
                return false;
            }
            Err(NoAnswer::Away(why)) => tracing::debug!("failed to {why}; trying again"),
        }
        tokio::time::sleep(TRY_AGAIN).await;
        false
    }

    fn do_as_told(self: &Arc<Self>, answer: AssignmentDto) {
        self.hands().session = Some(answer.session);
        for run in &answer.refused {
            self.abandon(run);
        }
        for order in answer.starts {
            self.begin(order);
        }
        for run in &answer.cancels {
            self.end(run);
        }
    }

    fn begin(&self, order: RunOrderDto) {
        let RunOrderDto { run, workflow, settings, properties, given } = order;
        {
            let mut hands = self.hands();
            if hands.runs.contains_key(&run) {
                return;
            }
            // The hub has not got its end, or this order was under way when it did.
            if let Some(told) = hands.over.iter().find(|told| told.run == run).cloned() {
                if !hands.outbox.contains(&told) {
                    hands.outbox.push(told);
                }
                self.say.notify_one();
                return;
            }
            hands.taken = hands.taken.saturating_add(1);
            let executor = workflow.job.executor.clone();
            hands.runs.insert(run.clone(), WorkerRun { executor, external_id: None, ended: false, abandoned: false });
        }
        let _ = self.tell.send(News::Began(run.clone()));
        let executor = self.executors.get(&workflow.job.executor);
        let RunInputDto { arguments, behind_key, triggered_by } = given;
        let given = RunInput { arguments, behind_key, triggered_by, ..RunInput::default() };
        executor.start(Start { run, workflow, settings, properties, given, worker: None }, self.reports.clone());
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
            return;
        }
        held.abandoned = true;
        drop(hands);
        self.end(run);
    }

    /// Begins a new session with nothing in hand, once for all words of the one that was given up.
    fn start_over(&self, word: &OfferRequest) {
        let runs: Vec<RunId> = {
            let mut hands = self.hands();
            if hands.session != word.session {
                return;
            }
            hands.session = None;
            hands.runs.keys().cloned().collect()
        };
        runs.iter().for_each(|run| self.abandon(run));
        let _ = self.tell.send(News::GivenUp);
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
            // Those who wait to leave have nothing left to report.
            self.hurry.notify_one();
        }
        drop(hands);
        self.say.notify_one();
        self.moved.notify_waiters();
    }
}
