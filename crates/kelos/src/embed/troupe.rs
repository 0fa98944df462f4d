//! The functions of a rehearsal: they run for real, each until it ends or waits for what others hold, or for a token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kelos_core::Input;
use kelos_engine::executor::{Reports, Start};
use kelos_model::{PermitAnswer, RunId, SlotRef};
use kelos_store::Queries;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::context::Context;
use super::function::{self, Failure, FunctionEnd, FunctionJob};
use super::input::{INPUT, SlotInput};
use super::locks::Locks;
use super::run_output::RunOutput;

/// The time that a function may take in earnest, before it is taken for one that never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest time in earnest until a function that has come to wait for a lock is noticed.
const GLANCE: Duration = Duration::from_millis(1);

/// Something that a function did.
pub(super) enum News {
    Reported(Input),
    Ended(RunId, FunctionEnd),
}

/// All live functions.
pub(super) struct Troupe {
    runtime: Runtime,
    locks: Locks,
    live: BTreeMap<RunId, LiveFunction>,
    doings: Doings,
}

struct LiveFunction {
    context: Context,
    output: RunOutput,
    task: AbortHandle,
    /// The time that it may take in earnest until it waits or ends.
    patience: Duration,
}

/// The doings of functions in their order. Cheap to clone.
#[derive(Clone, Default)]
struct Doings {
    done: Arc<Mutex<Vec<News>>>,
    stirred: Arc<Notify>,
}

impl Doings {
    fn push(&self, news: News) {
        self.list().push(news);
        self.stirred.notify_one();
    }

    fn list(&self) -> MutexGuard<'_, Vec<News>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Troupe {
    pub(super) fn new() -> std::io::Result<Troupe> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Troupe { runtime, locks: Locks::default(), live: BTreeMap::new(), doings: Doings::default() })
    }

    /// Calls a function, which does nothing before [`Troupe::go_on`].
    pub(super) fn begin(
        &mut self,
        job: &FunctionJob,
        start: &Start,
        reader: Arc<OnceLock<Arc<dyn Queries>>>,
    ) -> Result<(), Failure> {
        let (run, output, doings) = (start.run.clone(), RunOutput::lines(), self.doings.clone());
        let reports = Reports::new({
            let doings = doings.clone();
            move |input| doings.push(News::Reported(input))
        });
        let context = Context::new(start, output.clone(), reader, self.locks.clone(), reports);
        let json = start.given.arguments.get(INPUT).map(String::as_str);
        let input = SlotInput { workflow: &start.workflow, key: &run.slot.key, json };
        let task = function::begin(job, &context, &input, self.runtime.handle())?;
        let patience = job.timeout.unwrap_or(PATIENCE).min(PATIENCE);
        self.live.insert(run.clone(), LiveFunction { context, output, task: task.abort_handle(), patience });
        self.runtime.spawn(async move { doings.push(News::Ended(run, function::ended(task.await))) });
        Ok(())
    }

    pub(super) fn is_live(&self, run: &RunId) -> bool {
        self.live.contains_key(run)
    }

    /// Tells a function what became of a request.
    pub(super) fn answer(&self, run: &RunId, request: u64, answer: PermitAnswer) {
        if let Some(function) = self.live.get(run) {
            function.context.answered(request, answer);
        }
    }

    /// Asks a function to end. Returns whether it is live.
    pub(super) fn ask_to_end(&self, run: &RunId) -> bool {
        let function = self.live.get(run);
        function.into_iter().for_each(|function| function.context.cancel().ask());
        function.is_some()
    }

    /// Drops a function that does not end. Returns whether it was live.
    pub(super) fn drop_function(&mut self, run: &RunId) -> bool {
        let Some(function) = self.live.remove(run) else { return false };
        function.task.abort();
        true
    }

    /// Lets all functions go on until each has ended, or waits. Returns what they did.
    pub(super) fn go_on(&mut self, lines: &mut BTreeMap<SlotRef, Vec<String>>) -> Vec<News> {
        self.runtime.block_on(until_quiet(&self.live, &self.doings));
        let happenings = std::mem::take(&mut *self.doings.list());
        for (run, function) in &self.live {
            let is_over = is_over(run, &happenings);
            lines.entry(run.slot.clone()).or_default().extend(function.output.take_lines(is_over));
        }
        // What was dropped ends, too, and counts no more.
        let is_known = |one: &News| match one {
            News::Reported(Input::RunReported { run, .. }) | News::Ended(run, _) => self.live.contains_key(run),
            News::Reported(_) => true,
        };
        let known: Vec<News> = happenings.into_iter().filter(is_known).collect();
        for one in &known {
            if let News::Ended(run, _) = one {
                self.live.remove(run);
            }
        }
        known
    }
}

/// Waits until each function has ended, waits for others, or has taken too long, which ends it.
async fn until_quiet(live: &BTreeMap<RunId, LiveFunction>, doings: &Doings) {
    let begun = Instant::now();
    loop {
        // What others have let go is noticed once they yield.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let mut busy =
            live.iter().filter(|(run, function)| !is_over(run, &doings.list()) && !function.context.is_held_up());
        let Some(first) = busy.next() else { return };
        for (run, function) in std::iter::once(first).chain(busy) {
            if begun.elapsed() >= function.patience {
                function.task.abort();
                let reason = format!("its function did not end within {} s", function.patience.as_secs_f64());
                doings.push(News::Ended(run.clone(), Err(Failure { reason, code: None })));
            }
        }
        let _ = tokio::time::timeout(GLANCE, doings.stirred.notified()).await;
    }
}

fn is_over(run: &RunId, done: &[News]) -> bool {
    done.iter().any(|one| matches!(one, News::Ended(ended, _) if ended == run))
}
