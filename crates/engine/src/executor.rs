//! Executors, which perform runs.
//!
//! The engine calls an executor to start, check or cancel a run, and the executor reports its progress, from any task
//! or thread. It must recognise a repeated start by the run's id, because delivery is at least once: after a crash the
//! engine may ask for the same start again.

mod absent;
mod given;
mod triggered_by;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kelos_core::Input;
use kelos_model::run::Report;
use kelos_model::workflow::Properties;
use kelos_model::{PermitAnswer, Run, RunId, SlotKey, Workflow};
use serde_json::{Map, Value};

pub use absent::AbsentExecutor;
pub use given::{ARGUMENT, ARGUMENTS, RunInput, TRACEPARENT, TRIGGERED_BY, check_variable};

/// A run to be started, with everything filled in for its slot.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its name, the same each time it is asked for.
    pub run: RunId,
    /// The workflow of the job.
    pub workflow: Arc<Workflow>,
    /// The job's settings, templates filled.
    pub settings: Map<String, Value>,
    /// The job's properties, templates filled.
    pub properties: Map<String, Value>,
    /// The arguments from the facts that its slot collected.
    pub given: RunInput,
    /// The worker that offered to do it, where one did.
    pub worker: Option<Arc<str>>,
    /// Of a run at a worker on another machine: how long it may go on without a word from the leader.
    pub lease: Option<Duration>,
    /// Of a function that a program does for the leader: the earlier runs of its slot, which that program can't look up.
    pub earlier: Vec<Run>,
}

/// Name of the executor that hands runs to workers.
pub const WORKER: &str = kelos_core::WORKER;

impl Start {
    /// The settings of the job: those of its definition, or for a job that is a function of the slot what that returned.
    #[must_use]
    pub fn whole_settings(&self) -> Map<String, Value> {
        let mut settings = self.settings.clone();
        if matches!(self.workflow.job.properties, Properties::Function(_)) {
            settings.extend(self.properties.clone());
        }
        settings
    }

    /// The key whose time and identifiers the job is given: that of its slot or, of a step, of the flow's run; of a step that is done
    /// again, of the run that did it first.
    #[must_use]
    pub fn subject(&self) -> SlotKey {
        self.given.key(&self.run.slot.key).of_run()
    }
}

/// The sender for reports of executors. Cheap to clone; reporting never blocks.
#[derive(Clone)]
pub struct Reports {
    deliver: Arc<dyn Fn(Input) + Send + Sync>,
}

impl Reports {
    /// Reports that end up in a function.
    pub fn new(deliver: impl Fn(Input) + Send + Sync + 'static) -> Self {
        Self { deliver: Arc::new(deliver) }
    }

    /// Reports the progress of a run.
    pub fn run(&self, run: &RunId, report: Report) {
        (self.deliver)(Input::RunReported { run: run.clone(), report });
    }

    /// Delivers any input, such as a probe's answer.
    pub fn deliver(&self, input: Input) {
        (self.deliver)(input);
    }
}

/// Does runs of one kind.
pub trait Executor: Send + Sync {
    /// Starts a run and reports [`Report::Started`], then [`Report::Ended`] — or [`Report::Deferred`] if it can't be
    /// started now. Must not block.
    fn start(&self, start: Start, reports: Reports);

    /// Checks a run that another process started: reports [`Report::NeverStarted`] (or an unknown outcome, if its start
    /// had been confirmed and so `external_id` is known), or follows it as [`Executor::start`] would. Must not block.
    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports);

    /// Ends a run; its end is reported as any other. Must not block.
    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports);

    /// Tells a live run what became of its request for permits, which it had reported by [`Report::Asks`]. An answer may come twice, or too
    /// late. Must not block.
    fn answer(&self, run: &RunId, request: u64, answer: PermitAnswer, reports: Reports) {
        let _ = (run, request, answer, reports);
    }

    /// The obstacle to the progress of a live run, as a message for people; it is not stored.
    fn note(&self, run: &RunId) -> Option<String> {
        let _ = run;
        None
    }

    /// The engine begins to lead. All that it asks for from now on belongs to this epoch, first the checks of the runs that it restored.
    /// Must not block.
    fn lead(&self, epoch: u64) {
        let _ = epoch;
    }

    /// The engine does not lead any more. Must not block.
    fn stand_by(&self) {}
}

/// Executors by name.
#[derive(Clone, Default)]
pub struct Executors {
    by_name: BTreeMap<String, Arc<dyn Executor>>,
    /// The one for all other names.
    otherwise: Option<Arc<dyn Executor>>,
}

impl Executors {
    /// One and the same for every name.
    #[must_use]
    pub fn only(executor: impl Executor + 'static) -> Self {
        Self { by_name: BTreeMap::new(), otherwise: Some(Arc::new(executor)) }
    }

    /// Adds or replaces one.
    #[must_use]
    pub fn with(mut self, name: &str, executor: impl Executor + 'static) -> Self {
        self.by_name.insert(name.to_owned(), Arc::new(executor));
        self
    }

    /// Adds or replaces all of another set.
    #[must_use]
    pub fn and(mut self, others: Executors) -> Self {
        self.by_name.extend(others.by_name);
        self.otherwise = others.otherwise.or(self.otherwise);
        self
    }

    /// The executor of a name; for an unknown name one that defers every start and gives the reason.
    #[must_use]
    pub fn get(&self, name: &str) -> Arc<dyn Executor> {
        let known = self.by_name.get(name).or(self.otherwise.as_ref()).cloned();
        known.unwrap_or_else(|| Arc::new(AbsentExecutor::new(name, self.names())))
    }

    /// Has all of them know that the engine begins to lead.
    pub(crate) fn lead(&self, epoch: u64) {
        self.by_name.values().chain(&self.otherwise).for_each(|executor| executor.lead(epoch));
    }

    /// Has all of them know that the engine does not lead any more.
    pub(crate) fn stand_by(&self) {
        self.by_name.values().chain(&self.otherwise).for_each(|executor| executor.stand_by());
    }

    /// The same, with each start changed before it is begun.
    #[must_use]
    pub fn adjusted(self, adjust: impl Fn(&mut Start) + Send + Sync + 'static) -> Executors {
        let adjust: Arc<dyn Fn(&mut Start) + Send + Sync> = Arc::new(adjust);
        let adjusted = |inner: Arc<dyn Executor>| -> Arc<dyn Executor> {
            Arc::new(AdjustingExecutor { inner, adjust: adjust.clone() })
        };
        Executors {
            by_name: self.by_name.into_iter().map(|(name, inner)| (name, adjusted(inner))).collect(),
            otherwise: self.otherwise.map(adjusted),
        }
    }

    /// The names, ascending.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }
}

/// An executor whose starts are changed before they are begun.
struct AdjustingExecutor {
    inner: Arc<dyn Executor>,
    adjust: Arc<dyn Fn(&mut Start) + Send + Sync>,
}

impl Executor for AdjustingExecutor {
    fn start(&self, mut start: Start, reports: Reports) {
        (self.adjust)(&mut start);
        self.inner.start(start, reports);
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.inner.check(run, external_id, reports);
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        self.inner.cancel(run, external_id, reports);
    }

    fn answer(&self, run: &RunId, request: u64, answer: PermitAnswer, reports: Reports) {
        self.inner.answer(run, request, answer, reports);
    }

    fn note(&self, run: &RunId) -> Option<String> {
        self.inner.note(run)
    }

    fn lead(&self, epoch: u64) {
        self.inner.lead(epoch);
    }

    fn stand_by(&self) {
        self.inner.stand_by();
    }
}
