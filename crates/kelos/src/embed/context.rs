//! What a function knows of its run, and what it can say about it.

use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kelos_engine::executor::{Reports, Start};
use kelos_executors::local::Stream;
use kelos_model::{Arguments, PermitAnswer, PoolId, Run, RunId, RunState, SlotRef};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, watch};

use super::cancel::Cancel;
use super::command::{self, CommandError};
use super::locks::{Lock, Locks};
use super::outcome::reason;
use super::outlook::Outlook;
use super::platform::{Platform, Processes, permits_of};
use super::requests::{Permits, PlatformError, RunRequests};
use super::run_output::RunOutput;

/// The surroundings of a run of a function. Cheap to clone.
///
/// ```
/// # use kelos::embed::Context;
/// async fn import(context: Context, table: String, _: ()) -> Result<(), String> {
///     context.log(format!("{}: importing {table}", context.run()));
///     context.progress("3 of 4 files");
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Context(Arc<ContextState>);

struct ContextState {
    run: RunId,
    arguments: Arguments,
    /// The earlier runs of its slot, where they are not in the store of this program.
    earlier: Vec<Run>,
    cancel: Cancel,
    log: RunOutput,
    locks: Locks,
    outlook: Arc<Outlook>,
    /// The signals that it may wait for.
    signals: Vec<String>,
    said: Mutex<RunNote>,
    over: watch::Sender<bool>,
    requests: RunRequests,
    processes: Option<ProcessGate>,
}

/// The limit on the programs that a run runs at the same time.
struct ProcessGate {
    pool: PoolId,
    /// More of one run at once would not be granted anyway.
    own: Semaphore,
}

/// The most programs of one run that run or wait at the same time, if they are limited at all.
const MOST_PROGRAMS: usize = 100;

/// The words of a run about itself while it is live.
#[derive(Default)]
struct RunNote {
    waits_for: Option<String>,
    progress: Option<String>,
}

/// A failed attempt of the same slot.
///
/// ```
/// # use kelos::embed::Context;
/// async fn import(context: Context, _: (), _: ()) -> Result<(), String> {
///     for failure in context.previous_failures() {
///         context.log(format!("attempt {} failed: {}", failure.run.number, failure.reason));
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousFailure {
    /// The run.
    pub run: RunId,
    /// When it ended, where that is known.
    pub ended_at: Option<Timestamp>,
    /// The reason, with the causes of its error.
    pub reason: String,
}

impl Context {
    pub(super) fn new(
        (start, signals): (&Start, &[String]),
        log: RunOutput,
        outlook: Arc<Outlook>,
        locks: Locks,
        reports: Reports,
    ) -> Context {
        let processes = start.workflow.within.iter().find(|one| one.pool.as_str() == Processes::NAME);
        let processes = processes.map(|one| ProcessGate {
            pool: one.pool.clone(),
            own: Semaphore::new(usize::try_from(one.size).unwrap_or(MOST_PROGRAMS).min(MOST_PROGRAMS)),
        });
        Context(Arc::new(ContextState {
            run: start.run.clone(),
            arguments: start.given.arguments.clone(),
            earlier: start.earlier.clone(),
            cancel: Cancel::new(),
            log,
            locks,
            outlook,
            signals: signals.to_vec(),
            said: Mutex::default(),
            over: watch::Sender::new(false),
            requests: RunRequests::new(start.run.clone(), reports),
            processes,
        }))
    }

    /// The name of the run, such as `count@2026-11-22T06:00:00.000Z#1`: the same if the start is repeated, so it can tell another
    /// service that it has seen a request before.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn pay(context: Context, amount: u32, _: ()) -> Result<String, String> {
    ///     // The same for a repeated start, so that the bank takes the money once.
    ///     let idempotency_key = context.run().to_string();
    ///     Ok(format!("{amount} by {idempotency_key}"))
    /// }
    /// ```
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.0.run
    }

    /// The slot of the run.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn load(context: Context, _: (), _: ()) -> Result<String, String> {
    ///     Ok(format!("/data/{}", context.slot().workflow))
    /// }
    /// ```
    #[must_use]
    pub fn slot(&self) -> &SlotRef {
        &self.0.run.slot
    }

    /// All that the run is given, by name: its arguments, and what the slots gave that its own depends on. The parameters of its job that
    /// nobody gave have their defaults.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn load(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     for (name, value) in context.arguments() {
    ///         context.log(format!("{name}={value}"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn arguments(&self) -> &Arguments {
        &self.0.arguments
    }

    /// An argument as any type that serde can read. One that is missing reads as null, which is none.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn load(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     let rows: u64 = context.argument("rows")?;
    ///     let table: Option<String> = context.argument("table")?;
    ///     context.log(format!("{rows} rows of {}", table.unwrap_or_default()));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// In words, when it is missing or not of this type.
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let value = self.0.arguments.get(name).cloned().unwrap_or_default();
        serde_json::from_value(value.clone())
            .map_err(|error| format!("the argument {name} is {value}, expected another type: {error}"))
    }

    /// The earlier runs of the slot that did not succeed, the latest last.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn import(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     let is_careful = !context.previous_failures().is_empty();
    ///     if is_careful { context.log("in small steps this time") }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn previous_failures(&self) -> Vec<PreviousFailure> {
        let runs = match self.0.outlook.reader() {
            Some(reader) => reader.slot_runs(self.slot()).unwrap_or_default(),
            None => self.0.earlier.clone(),
        };
        let earlier = runs.into_iter().filter(|run| run.id.number < self.0.run.number);
        let failed = earlier.filter(|run| run.state.is_final() && run.state != RunState::Succeeded);
        let failure = |run: Run| {
            let reason = run.outcome.as_ref().and_then(reason).unwrap_or_default().to_owned();
            PreviousFailure { ended_at: run.ended_at, reason, run: run.id }
        };
        failed.map(failure).collect()
    }

    /// Writes a line into the output of the run.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn count(context: Context, rows: Vec<u32>, _: ()) -> Result<(), String> {
    ///     context.log(format!("{} rows", rows.len()));
    ///     Ok(())
    /// }
    /// ```
    pub fn log(&self, line: impl Display) {
        self.0.log.line(Stream::Stdout, &line.to_string());
    }

    /// Writes a line into the output of the run, marked as one about an error.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn count(context: Context, rows: Vec<i32>, _: ()) -> Result<(), String> {
    ///     for row in rows.iter().filter(|row| **row < 0) {
    ///         context.error(format!("{row} is left out"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn error(&self, line: impl Display) {
        self.0.log.line(Stream::Stderr, &line.to_string());
    }

    /// The word to end, for functions that take long.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn poll(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     while !context.cancel().is_asked() {
    ///         tokio::task::yield_now().await;
    ///     }
    ///     Err("ended".to_owned())
    /// }
    /// ```
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Waits for something outside. Meanwhile the run is shown as waiting for it.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn import(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     let approval = async { "yes" };
    ///     match context.park("the approval", approval).await {
    ///         "yes" => Ok(()),
    ///         _ => Err("it was refused".to_owned()),
    ///     }
    /// }
    /// ```
    pub async fn park<T>(&self, words: &str, outside: impl Future<Output = T>) -> T {
        self.said().waits_for = Some(words.to_owned());
        let waited = WaitNote(self);
        let came = outside.await;
        drop(waited);
        came
    }

    /// Shows how far the run is: `context.progress("12 of 40 files")`.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn copy(context: Context, files: Vec<String>, _: ()) -> Result<(), String> {
    ///     for (done, file) in files.iter().enumerate() {
    ///         context.progress(format!("{done} of {} files", files.len()));
    ///         context.log(file);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn progress(&self, words: impl Display) {
        self.said().progress = Some(words.to_string());
    }

    /// Waits for a lock, which one run of the project has at a time.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn migrate(context: Context, table: String, _: ()) -> Result<(), String> {
    ///     let _lock = context.lock(&table).await;
    ///     context.log("no other run migrates this table now");
    ///     Ok(())
    /// }
    /// ```
    pub async fn lock(&self, name: &str) -> Lock {
        self.park(&format!("the lock \"{name}\""), self.0.locks.lock(name)).await
    }

    /// Takes parts of what is scarce within the run: a token for the next call, a place for a while. It waits for all that it asks for at
    /// once, in the same lines as slots that are to start, and holds none of it meanwhile. What it takes is returned when the result is
    /// dropped, or with the end of the run.
    ///
    /// The job names what it [may use](super::Job::may_use).
    ///
    /// ```
    /// use std::time::Duration;
    /// use kelos::embed::{Context, Places, PlatformError, Rate, Rehearsal, Project, job};
    ///
    /// async fn sync(context: Context, customers: u32, (crm, yarn): (Rate, Places)) -> Result<(), PlatformError> {
    ///     for customer in 0..customers {
    ///         let _call = context.on(&crm).await?;
    ///         context.log(format!("calling for customer {customer}"));
    ///     }
    ///     context.on((&crm, (&yarn, 2))).await?.call(async { context.log("a call and two machines") }).await;
    ///     Ok(())
    /// }
    ///
    /// let crm = Rate::new("crm-api", 1, Duration::from_secs(60));
    /// let yarn = Places::new("yarn", 4);
    /// let sync = job("sync", sync).with((crm.clone(), yarn.clone())).may_use((&crm, &yarn)).on_demand();
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("customers", "1.0").add(sync))?;
    /// let slot = rehearsal.start("sync", &3)?;
    /// rehearsal.run_until("2026-03-28T00:02:30Z")?;
    /// assert_eq!(rehearsal.lines("sync", &slot.key.to_string())?.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it can never be given, the run has taken something already, or is to end.
    pub async fn on(&self, platform: impl Platform) -> Result<Permits, PlatformError> {
        let permits = permits_of(&platform.uses())?;
        self.0.requests.take(permits, &self.0.cancel).await
    }

    /// Runs a program, whose output goes into that of the run. It ends with all its processes when the run is to end. It waits while as many
    /// programs run as the [`Processes`](super::Processes) allow that the job may use.
    ///
    /// ```
    /// # use kelos::embed::{CommandError, Context};
    /// async fn pack(context: Context, folder: String, _: ()) -> Result<(), CommandError> {
    ///     context.command("tar", ["-czf", "all.tar.gz", &folder]).await
    /// }
    /// ```
    ///
    /// # Errors
    /// When it can't be started, exits with another status than 0, or a signal ends it.
    pub async fn command<'a>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), CommandError> {
        let arguments = arguments.into_iter().collect();
        let Some(gate) = self.0.processes.as_ref().filter(|_| !self.0.requests.holds(Processes::NAME)) else {
            return command::run(program, arguments, &self.0.log, &self.0.cancel).await;
        };
        // It is never closed.
        let _own = gate.own.acquire().await;
        let permits = [(gate.pool.clone(), 1)].into();
        let process = self.0.requests.take_last(permits, &self.0.cancel).await;
        let _process = process.map_err(|source| CommandError::Platform { program: program.to_owned(), source })?;
        command::run(program, arguments, &self.0.log, &self.0.cancel).await
    }

    /// The view of what is stored.
    pub(super) fn outlook(&self) -> &Outlook {
        &self.0.outlook
    }

    /// Whether its step says that it may wait for a signal.
    pub(super) fn may_wait_for(&self, signal: &str) -> bool {
        self.0.signals.iter().any(|known| known == signal)
    }

    /// Hears what became of a request.
    pub(super) fn answered(&self, request: u64, answer: PermitAnswer) {
        self.0.requests.answered(request, answer);
    }

    /// Reports once more what the run asks for.
    pub(super) fn repeat_requests(&self) {
        self.0.requests.repeat();
    }

    /// Whether it waits for something outside, for what other runs hold, or for a token.
    pub(super) fn is_parked(&self) -> bool {
        self.said().waits_for.is_some() || self.0.requests.waits_for().is_some()
    }

    /// Takes the lines out that it has written, where they are kept in memory: those that are complete, or all of a run that is over.
    pub(super) fn take_lines(&self, is_over: bool) -> Vec<String> {
        self.0.log.take_lines(is_over)
    }

    /// The state for people.
    pub(super) fn note(&self) -> Option<String> {
        let said = self.said();
        let waits_for = said.waits_for.clone().or_else(|| self.0.requests.waits_for());
        waits_for.map(|what| format!("waits for {what}")).or_else(|| said.progress.clone())
    }

    /// Closes the output.
    pub(super) fn close(&self) {
        self.0.log.end();
    }

    /// Lets those go on who wait for the end: what became of the run has been reported.
    pub(super) fn end(&self) {
        self.0.over.send_replace(true);
    }

    /// Waits until the run is over.
    pub(super) async fn over(&self) {
        let mut over = self.0.over.subscribe();
        let _ = over.wait_for(|over| *over).await;
    }

    fn said(&self) -> MutexGuard<'_, RunNote> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the wait of a run, also when what it waits for is dropped.
struct WaitNote<'c>(&'c Context);

impl Drop for WaitNote<'_> {
    fn drop(&mut self) {
        self.0.said().waits_for = None;
    }
}
