//! The executor that calls functions of this program.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_executors::local::Launcher;
use kelos_executors::run_ref;
use kelos_model::run::Report;
use kelos_model::{FailureCode, Outcome, PermitAnswer, RunId, WorkflowId};
use kelos_store::Queries;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::context::Context;
use super::input::{self, SlotInput};
use super::locks::Locks;
use super::run_output::RunOutput;

/// The name of the executor.
pub(super) const FUNCTION: &str = "function";

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) code: Option<FailureCode>,
}

impl Failure {
    /// One that no other attempt follows, because it would be given the same.
    pub(super) fn last(reason: String) -> Failure {
        Failure { reason, code: Some(FailureCode::FINAL) }
    }

    pub(super) fn outcome(self) -> Outcome {
        Outcome::Failed { reason: self.reason, exit_status: None, code: self.code }
    }
}

/// The end of a function: its output, where it gave one.
pub(super) type FunctionEnd = Result<Option<Map<String, Value>>, Failure>;
pub(super) type BodyFuture = Pin<Box<dyn Future<Output = FunctionEnd> + Send>>;

/// A function with its state, without the types of its input and output.
pub(super) type Body = Arc<dyn Fn(Context, &SlotInput<'_>) -> BodyFuture + Send + Sync>;

/// A function and the limits of its runs.
#[derive(Clone)]
pub(super) struct FunctionJob {
    pub(super) body: Body,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
}

/// Calls functions. Cheap to clone.
#[derive(Clone)]
pub(super) struct FunctionExecutor(Arc<ExecutorState>);

struct ExecutorState {
    jobs: BTreeMap<WorkflowId, FunctionJob>,
    runtime: Handle,
    launcher: Launcher,
    locks: Locks,
    /// The reader of the store, once there is an engine.
    reader: Arc<OnceLock<Arc<dyn Queries>>>,
    live: Mutex<BTreeMap<RunId, Context>>,
}

impl FunctionExecutor {
    pub(super) fn new(jobs: BTreeMap<WorkflowId, FunctionJob>, runtime: Handle, launcher: Launcher) -> Self {
        let (locks, reader, live) = Default::default();
        Self(Arc::new(ExecutorState { jobs, runtime, launcher, locks, reader, live }))
    }

    /// Lets functions read what is stored.
    pub(super) fn connect(&self, reader: Arc<dyn Queries>) {
        let _ = self.0.reader.set(reader);
    }

    /// Asks all live functions to end, and waits until they have, or their grace is over.
    pub(super) async fn stop(&self) {
        let live: Vec<Context> = self.live().values().cloned().collect();
        live.iter().for_each(|context| context.cancel().ask());
        for context in live {
            context.over().await;
        }
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<RunId, Context>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function and waits for its end, its timeout, or the word to end.
    async fn call(&self, job: FunctionJob, start: &Start, context: &Context) -> (FunctionEnd, Option<Outcome>) {
        let json = input::json(&start.given.arguments);
        let batch = start.given.batch.as_ref();
        let slot = SlotInput { workflow: &start.workflow, key: &start.run.slot.key, json: json.as_deref(), batch };
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
        tokio::select! {
            end = &mut task => (ended(end), None),
            () = cancel.asked() => (give_grace(&mut task, job.grace).await, Some(Outcome::Killed)),
            () = timeout => {
                context.cancel().ask();
                give_grace(&mut task, job.grace).await.ok();
                let seconds = job.timeout.unwrap_or_default().as_secs_f64();
                let reason = format!("timed out after {seconds} s");
                (Err(Failure { reason, code: Some(FailureCode::TIMED_OUT) }), None)
            }
        }
    }

    async fn perform(self, job: FunctionJob, start: Start, context: Context, reports: Reports) {
        let run = start.run.clone();
        let (end, otherwise) = self.call(job, &start, &context).await;
        let outcome = match end {
            Ok(output) => {
                if let Some(outputs) = output {
                    reports.run(&run, Report::Gave { outputs });
                }
                // Who was asked to end, and was done by then, has done it.
                Outcome::Succeeded
            }
            Err(failure) => {
                context.error(&failure.reason);
                otherwise.unwrap_or_else(|| failure.outcome())
            }
        };
        context.end();
        reports.run(&run, Report::Ended { outcome });
        self.live().remove(&run);
    }
}

/// Calls a function, which then runs as a task.
fn begin(
    job: &FunctionJob,
    context: &Context,
    slot: &SlotInput<'_>,
    runtime: &Handle,
) -> Result<JoinHandle<FunctionEnd>, Failure> {
    // What reads the input may panic as well as the function.
    let begun = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (job.body)(context.clone(), slot)));
    begun.map(|running| runtime.spawn(running)).map_err(|panic| panicked(&*panic))
}

/// Waits for a function that was asked to end, and drops it after its grace.
async fn give_grace(task: &mut JoinHandle<FunctionEnd>, grace: Duration) -> FunctionEnd {
    match tokio::time::timeout(grace, &mut *task).await {
        Ok(end) => ended(end),
        Err(_) => {
            task.abort();
            // A function that never awaits can't be dropped, and is over when it returns.
            ended(task.await)
        }
    }
}

/// The end of a function's task.
fn ended(end: Result<FunctionEnd, tokio::task::JoinError>) -> FunctionEnd {
    match end {
        Ok(end) => end,
        Err(error) if error.is_panic() => Err(panicked(&*error.into_panic())),
        Err(_) => Err(Failure { reason: "it was ended".to_owned(), code: None }),
    }
}

pub(super) fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let reason = message.map_or_else(|| "panicked".to_owned(), |message| format!("panicked: {message}"));
    Failure { reason, code: None }
}

impl Executor for FunctionExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let run = start.run.clone();
        let Some(job) = self.0.jobs.get(&start.workflow.id).cloned() else {
            let reason = format!("this program has no function for \"{}\"", start.workflow.id);
            return reports.run(&run, Report::Deferred { reason });
        };
        let state = &self.0;
        let log = RunOutput::Files(state.launcher.own_log(&run_ref(&run)));
        let context = {
            let mut live = self.live();
            if live.contains_key(&run) {
                drop(live);
                return reports.run(&run, started());
            }
            let context = Context::new(&start, log, state.reader.clone(), state.locks.clone(), reports.clone());
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
