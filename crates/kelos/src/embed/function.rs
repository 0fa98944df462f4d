//! The executor that calls functions of this program.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_executors::local::{FENCE_GRACE, Launcher};
use kelos_executors::run_ref;
use kelos_model::run::Report;
pub(super) use kelos_model::workers::FUNCTION;
use kelos_model::{FailureCode, Outcome, PermitAnswer, RunId, SlotRef, WorkflowId};
use kelos_store::Queries;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::context::Context;
use super::input::{self, SlotInput};
use super::locks::Locks;
use super::outlook::Outlook;
use super::run_output::RunOutput;

/// The time that a function has to end when it is asked to.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FailedCall {
    pub(super) reason: String,
    pub(super) code: Option<FailureCode>,
    /// The output that it has all the same.
    pub(super) data: Option<Map<String, Value>>,
}

impl FailedCall {
    /// One that no other attempt follows, because it would be given the same.
    pub(super) fn last(reason: String) -> FailedCall {
        FailedCall { reason, code: Some(FailureCode::FINAL), data: None }
    }

    pub(super) fn outcome(self) -> Outcome {
        Outcome::Failed { reason: self.reason, exit_status: None, code: self.code }
    }

    /// The reports of its end.
    pub(super) fn reports(mut self) -> Vec<Report> {
        let data = self.data.take().map(|outputs| Report::Gave { outputs });
        data.into_iter().chain([Report::Ended { outcome: self.outcome() }]).collect()
    }
}

/// The end of a function: its output, where it gave one.
pub(super) type FunctionEnd = Result<Option<Map<String, Value>>, FailedCall>;
pub(super) type BodyFuture = Pin<Box<dyn Future<Output = FunctionEnd> + Send>>;

/// A function with its state, without the types of its input and output.
pub(super) type Body = Arc<dyn Fn(Context, &SlotInput<'_>) -> BodyFuture + Send + Sync>;

/// A function and the limits of its runs.
#[derive(Clone)]
pub(super) struct FunctionJob {
    pub(super) body: Body,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    /// The signals that its runs may wait for.
    pub(super) signals: Vec<String>,
}

/// The functions of a program: those of its jobs, and those of the steps of its flows.
#[derive(Clone, Default)]
pub(super) struct Functions {
    jobs: BTreeMap<WorkflowId, FunctionJob>,
    steps: BTreeMap<WorkflowId, BTreeMap<String, FunctionJob>>,
}

impl Functions {
    /// Takes the function of a job.
    pub(super) fn add_job(&mut self, id: WorkflowId, function: FunctionJob) {
        self.jobs.insert(id, function);
    }

    /// Takes the functions of the steps of a flow.
    pub(super) fn add_steps(&mut self, id: WorkflowId, functions: impl IntoIterator<Item = (String, FunctionJob)>) {
        self.steps.entry(id).or_default().extend(functions);
    }

    /// The function of a slot.
    pub(super) fn of(&self, slot: &SlotRef) -> Option<&FunctionJob> {
        match slot.key.step() {
            Some(step) => self.steps.get(&slot.workflow)?.get(step.step()),
            None => self.jobs.get(&slot.workflow),
        }
    }
}

/// Calls functions. Cheap to clone.
#[derive(Clone)]
pub(super) struct FunctionExecutor(Arc<ExecutorState>);

struct ExecutorState {
    functions: Functions,
    runtime: Handle,
    launcher: Launcher,
    locks: Locks,
    outlook: Arc<Outlook>,
    live: Mutex<BTreeMap<RunId, Context>>,
    /// Whether the program comes to its end: what is not done is left to the next one.
    is_ending: AtomicBool,
    /// Whether functions are dropped rather than given time to end.
    is_dropped: watch::Sender<bool>,
}

impl FunctionExecutor {
    pub(super) fn new(functions: Functions, runtime: Handle, launcher: Launcher) -> Self {
        let (locks, outlook, live, is_ending, is_dropped) = Default::default();
        Self(Arc::new(ExecutorState { functions, runtime, launcher, locks, outlook, live, is_ending, is_dropped }))
    }

    /// Lets functions read what is stored.
    pub(super) fn connect(&self, reader: Arc<dyn Queries>) {
        self.0.outlook.connect(reader);
    }

    /// Has functions see each commit of the engine.
    pub(super) fn follow(&self, commits: watch::Receiver<u64>) {
        self.0.outlook.follow(commits, &self.0.runtime);
    }

    /// Asks all live functions to end, and waits until they have, or their grace is over. Those that were not done are given back, to be done
    /// again by the next program.
    pub(super) async fn stop(&self) {
        let live: Vec<Context> = {
            // A start that comes meanwhile is either among them or put off.
            let live = self.live();
            self.0.is_ending.store(true, Ordering::SeqCst);
            live.values().cloned().collect()
        };
        live.iter().for_each(|context| context.cancel().ask());
        for context in live {
            context.over().await;
        }
    }

    /// Drops all live functions, gives them back, and then does something else, without waiting for it. Where the runtime is gone, nothing is
    /// done, and what was to be done is dropped at once.
    pub(super) fn abandon(&self, then: impl Future<Output = ()> + Send + 'static) {
        self.0.is_dropped.send_replace(true);
        let functions = self.clone();
        self.0.runtime.spawn(async move {
            functions.stop().await;
            then.await;
        });
    }

    /// Waits for a function that was asked to end, and drops it after its grace.
    async fn give_grace(&self, task: &mut JoinHandle<FunctionEnd>, grace: Duration) -> FunctionEnd {
        let mut is_dropped = self.0.is_dropped.subscribe();
        let dropped = async { is_dropped.wait_for(|is_dropped| *is_dropped).await.map(drop) };
        tokio::select! {
            end = &mut *task => return ended(end),
            () = tokio::time::sleep(grace) => {}
            _ = dropped => {}
        }
        task.abort();
        // A function that never awaits can't be dropped, and is over when it returns.
        ended(task.await)
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<RunId, Context>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function and waits for its end, its timeout, or the word to end.
    async fn call(&self, job: FunctionJob, start: &Start, context: &Context) -> (FunctionEnd, Option<Outcome>) {
        let (key, json) = (start.subject(), input::json(&start.given.arguments));
        let slot = SlotInput::of(start, &key, json.as_deref());
        let mut task = match begin(&job, context, &slot, &self.0.runtime) {
            Ok(task) => task,
            Err(failure) => return (Err(failure), None),
        };
        let cancel = context.cancel().clone();
        let timeout = async {
            match job.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let fence = async {
            match start.lease {
                Some(lease) => self.0.launcher.own_fence(lease).over().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Both may be so: a function that ends because it was asked to has not failed by itself.
            end = &mut task => (ended(end), cancel.is_asked().then_some(Outcome::Killed)),
            () = cancel.asked() => (self.give_grace(&mut task, job.grace).await, Some(Outcome::Killed)),
            reason = fence => {
                // The leader gives it up, and may have another program do it.
                context.cancel().ask();
                self.give_grace(&mut task, FENCE_GRACE.min(job.grace)).await.ok();
                (Err(FailedCall { reason: reason.clone(), ..FailedCall::default() }), Some(Outcome::Unknown { reason }))
            }
            () = timeout => {
                context.cancel().ask();
                self.give_grace(&mut task, job.grace).await.ok();
                let seconds = job.timeout.unwrap_or_default().as_secs_f64();
                let reason = format!("timed out after {seconds} s");
                (Err(FailedCall { reason, code: Some(FailureCode::TIMED_OUT), data: None }), None)
            }
        }
    }

    async fn perform(self, job: FunctionJob, start: Start, context: Context, reports: Reports) {
        let run = start.run.clone();
        let (end, otherwise) = self.call(job, &start, &context).await;
        let ended = match end {
            // A function that was done when it was asked to end has succeeded.
            Ok(output) => succeeded(output),
            Err(failure) => {
                context.error(&failure.reason);
                match otherwise {
                    Some(_) if self.0.is_ending.load(Ordering::SeqCst) => vec![Report::GivenBack],
                    Some(outcome) => vec![Report::Ended { outcome }],
                    None => failure.reports(),
                }
            }
        };
        context.close();
        ended.into_iter().for_each(|report| reports.run(&run, report));
        self.live().remove(&run);
        context.end();
    }
}

/// The reports of a function's success.
pub(super) fn succeeded(output: Option<Map<String, Value>>) -> Vec<Report> {
    let gave = output.map(|outputs| Report::Gave { outputs });
    gave.into_iter().chain([Report::Ended { outcome: Outcome::Succeeded }]).collect()
}

/// Calls a function, which then runs as a task.
fn begin(
    job: &FunctionJob,
    context: &Context,
    slot: &SlotInput<'_>,
    runtime: &Handle,
) -> Result<JoinHandle<FunctionEnd>, FailedCall> {
    // What reads the input may panic as well as the function.
    let begun = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (job.body)(context.clone(), slot)));
    begun.map(|running| runtime.spawn(running)).map_err(|panic| panicked(&*panic))
}

/// The end of a function's task.
fn ended(end: Result<FunctionEnd, tokio::task::JoinError>) -> FunctionEnd {
    match end {
        Ok(end) => end,
        Err(error) if error.is_panic() => Err(panicked(&*error.into_panic())),
        Err(_) => Err(FailedCall { reason: "it was ended".to_owned(), ..FailedCall::default() }),
    }
}

pub(super) fn panicked(panic: &(dyn Any + Send)) -> FailedCall {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let reason = message.map_or_else(|| "panicked".to_owned(), |message| format!("panicked: {message}"));
    FailedCall { reason, ..FailedCall::default() }
}

impl Executor for FunctionExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let run = start.run.clone();
        let Some(job) = self.0.functions.of(&run.slot).cloned() else {
            let what = run.slot.key.step().map_or(String::new(), |step| format!(", step \"{}\"", step.step()));
            let reason = format!("this program has no function for \"{}\"{what}", start.workflow.id);
            return reports.run(&run, Report::Deferred { reason });
        };
        let state = &self.0;
        let log = RunOutput::Files(state.launcher.own_log(&run_ref(&run)));
        let context = {
            let mut live = self.live();
            if state.is_ending.load(Ordering::SeqCst) {
                drop(live);
                return reports.run(&run, Report::Deferred { reason: "the program comes to its end".to_owned() });
            }
            if live.contains_key(&run) {
                drop(live);
                return reports.run(&run, started());
            }
            let context =
                Context::new((&start, &job.signals), log, state.outlook.clone(), state.locks.clone(), reports.clone());
            live.insert(run.clone(), context.clone());
            context
        };
        reports.run(&run, started());
        state.runtime.spawn(self.clone().perform(job, start, context, reports));
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let live = self.live().get(run).cloned();
        if let Some(context) = live {
            reports.run(run, started());
            return context.repeat_requests();
        }
        if external_id.is_none() {
            return reports.run(run, Report::NeverStarted);
        }
        let reason = "the program that did it has ended".to_owned();
        reports.run(run, Report::Ended { outcome: Outcome::Unknown { reason } });
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let live = self.live().get(run).cloned();
        match live {
            Some(context) => context.cancel().ask(),
            None => self.check(run, external_id.or(Some("")), reports),
        }
    }

    fn answer(&self, run: &RunId, request: u64, answer: PermitAnswer, _: Reports) {
        let live = self.live().get(run).cloned();
        // A run that has ended has returned all.
        if let Some(context) = live {
            context.answered(request, answer);
        }
    }

    fn note(&self, run: &RunId) -> Option<String> {
        self.live().get(run).and_then(Context::note)
    }
}

fn started() -> Report {
    Report::Started { external_id: format!("pid {}", std::process::id()) }
}
