//! History, kept within its settings: the folders of runs of this machine, and the log of the database where this node leads.
//!
//! A thread of its own looks at both now and then, in small portions with pauses, says what takes how much, and removes what the
//! policy lets go, once it is agreed: folders itself, and history in the database by requests to the scheduler.

mod archive;
mod consent;
mod database;
mod figures;
mod names;
mod pause;
mod sweep;
mod witness;
mod worker;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kelos_engine::Handle;
pub use kelos_engine::leap::ClockLeap;
use kelos_model::history::HistorySettings;
use tokio::runtime::Handle as Runtime;

pub use archive::Archive;
#[cfg(feature = "nodes")]
pub(crate) use consent::SHARED;
pub use consent::{AGREED, Consent};
pub use database::{DatabaseFigures, Vouch};
pub use figures::{Failures, Figures, Share, Tally};
pub use worker::WorkerHistory;

use database::DatabaseLook;
use pause::Pause;
use sweep::Sweep;
use witness::LogWitness;

/// The time between two looks at all folders.
const EVERY: Duration = Duration::from_secs(3600);
/// The time between two looks is at least so many times that of a look.
const SHARE: u32 = 50;
/// Workflows whose share is told.
const TOLD: usize = 1000;

/// The configuration of history.
pub struct HistoryConfig {
    /// The settings.
    pub settings: HistorySettings,
    /// The folders below which the folders of runs are.
    pub roots: Vec<PathBuf>,
    /// The archive of what is removed from the database, if it is kept.
    pub archive: Option<Archive>,
}

/// The parts of a node that history needs.
pub(crate) struct HistoryParts {
    /// The scheduler.
    pub(crate) handle: Handle,
    /// The runtime of its answers.
    pub(crate) runtime: Runtime,
    /// Whether several nodes share the log.
    pub(crate) is_shared: bool,
    /// Has a checkpoint made, where there are any.
    pub(crate) vouch: Option<Vouch>,
}

/// The history of a node. Cheap to clone.
#[derive(Clone)]
pub struct History {
    settings: Arc<HistorySettings>,
    known: Arc<Mutex<Knowledge>>,
    orders: Sender<Order>,
}

/// The knowledge of the folders.
#[derive(Debug, Clone, Default)]
struct Knowledge {
    figures: Option<Arc<Figures>>,
    removed: Tally,
    problem: Option<String>,
    database: Option<DatabaseFigures>,
    database_problem: Option<String>,
    is_over: bool,
}

/// An order to the thread.
enum Order {
    Look,
    End,
}

impl History {
    /// Begins to look at the folders of runs of a node.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(config: HistoryConfig, parts: HistoryParts) -> std::io::Result<History> {
        let (orders, given) = channel();
        let HistoryConfig { settings, roots, archive } = config;
        let history = History { settings: Arc::new(settings), known: Arc::default(), orders };
        let (known, settings) = (history.known.clone(), history.settings.clone());
        let work = move || {
            follow(&given, &known, || {
                sweep(&settings, &roots, &parts.handle, &known);
                trim(&settings, &parts, archive.as_ref(), &known);
            });
        };
        std::thread::Builder::new().name("history".to_owned()).spawn(work)?;
        Ok(history)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &HistorySettings {
        &self.settings
    }

    /// The figures of the last look; none before the first has ended.
    #[must_use]
    pub fn figures(&self) -> Option<Arc<Figures>> {
        lock(&self.known).figures.clone()
    }

    /// The folders that were removed since the start.
    #[must_use]
    pub fn removed(&self) -> Tally {
        lock(&self.known).removed
    }

    /// The reason for which something can't be looked at or removed, in words that complete "failed to …".
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let known = lock(&self.known);
        known.problem.clone().or_else(|| known.database_problem.clone())
    }

    /// The figures of the last look at the history in the database; none before the first, and on a node that does not lead.
    #[must_use]
    pub fn database(&self) -> Option<DatabaseFigures> {
        lock(&self.known).database.clone()
    }

    /// Has the folders looked at soon.
    pub fn look(&self) {
        // A thread that has ended looks at nothing any more.
        let _ = self.orders.send(Order::Look);
    }

    /// Ends it, within a moment.
    pub(crate) fn end(&self) {
        lock(&self.known).is_over = true;
        let _ = self.orders.send(Order::End);
    }
}

fn lock(known: &Mutex<Knowledge>) -> std::sync::MutexGuard<'_, Knowledge> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sweeps now and then, and when it is ordered, until the end.
fn follow(given: &Receiver<Order>, known: &Mutex<Knowledge>, sweep: impl Fn()) {
    loop {
        let began = Instant::now();
        sweep();
        if lock(known).is_over {
            return;
        }
        match given.recv_timeout(EVERY.max(began.elapsed() * SHARE)) {
            Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Looks at all folders once, and removes what goes if that is agreed.
fn sweep(settings: &HistorySettings, roots: &[PathBuf], handle: &Handle, known: &Mutex<Knowledge>) {
    let is_over = || lock(known).is_over;
    let (now, pause) = (handle.now(), Pause::default());
    let mut witness = LogWitness { reader: &**handle.reader(), roots, term: settings.term(), now };
    let sweep = Sweep { settings, roots, witness: &mut witness, now, pause, is_over: &is_over };
    if let Err(error) = sweep.run(&|figures, removed| note(known, figures, removed)) {
        tracing::warn!("failed to {error}; the folders of runs stay as they are for now");
        lock(known).problem = Some(error.to_string());
    }
}

/// Takes in what a look found, and what was removed after it.
fn note(known: &Mutex<Knowledge>, figures: Figures, removed: Tally) {
    tell_leap(figures.consent);
    let mut known = lock(known);
    known.problem = figures.failures.words();
    known.figures = Some(Arc::new(figures));
    known.removed.add(removed);
}

/// Logs that nothing is removed because the clock has leapt.
fn tell_leap(consent: Consent) {
    if let Some(ClockLeap { from, to }) = consent.leap() {
        tracing::warn!(
            "no history is removed: the clock went from {from} to {to} without a turn between; \
             if it is right now, agree by `kelos storage --agree`"
        );
    }
}

/// Looks through the old part of the log, and has history removed from the database if that is agreed.
fn trim(settings: &HistorySettings, parts: &HistoryParts, archive: Option<&Archive>, known: &Mutex<Knowledge>) {
    let Some(term) = settings.term() else { return };
    let is_over = || lock(known).is_over;
    let HistoryParts { handle, runtime, is_shared, vouch } = parts;
    let (is_shared, vouch, pause) = (*is_shared, vouch.as_ref(), Pause::default());
    let outcome = DatabaseLook { term, handle, runtime, is_shared, vouch, archive, pause, is_over: &is_over }.run();
    if is_over() {
        return;
    }
    if let Ok(Some(figures)) = &outcome {
        tell_leap(figures.consent);
    }
    let mut known = lock(known);
    match outcome {
        Ok(figures) => (known.database, known.database_problem) = (figures, None),
        Err(error) => {
            tracing::warn!("failed to {error}; the history in the database stays as it is for now");
            known.database_problem = Some(error.to_string());
        }
    }
}
