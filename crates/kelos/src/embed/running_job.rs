//! Starts of a job on demand under a name and with a priority, and looks at slots of a program that runs.

use kelos_core::FireRequest;
use kelos_executors::local::{LocalError, LogLine};
use kelos_explain::why;
use kelos_model::SlotRef;
use kelos_model::key::RunName;
use serde::Serialize;

use super::input::INPUT;
use super::request_error::RequestError;
use super::running::{EndedSlot, RunningProject, known};

/// The most lines of output that are read, and the most bytes.
const MOST_LINES: usize = 10_000;
const MOST_BYTES: usize = 1 << 20;

/// A job on demand of a project that runs.
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn bill(_: Context, items: u32, price: u32) -> Result<u32, String> { Ok(items * price) }
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let running = Project::new("shop", "1.0").add(job("bill", bill).with(5).on_demand()).start().await?;
/// let ended = running.job("bill").named("order-42").priority(3).run(&3).await?;
/// assert_eq!(ended.output::<u32>()?, 15);
/// // The same name is the same run.
/// assert_eq!(running.job("bill").named("order-42").run(&7).await?.output::<u32>()?, 15);
/// running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct RunningJob<'p> {
    project: &'p RunningProject,
    id: String,
    name: Option<String>,
    priority: i32,
}

impl RunningProject {
    /// A job on demand, to start it under a name or with a priority.
    ///
    /// ```
    /// # use kelos::embed::{EndedSlot, RequestError, RunningProject};
    /// async fn bill(running: &RunningProject, order: &str) -> Result<EndedSlot, RequestError> {
    ///     running.job("bill").named(order).run(&()).await
    /// }
    /// ```
    pub fn job(&self, id: &str) -> RunningJob<'_> {
        RunningJob { project: self, id: id.to_owned(), name: None, priority: 0 }
    }

    /// The reason for the state of a slot, as `kelos why` has it: what it waits for, what failed, when it is tried again.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
    /// # let greet = job("greet", greet).with(()).on_demand();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(greet).start().await?;
    /// running.pause("greet").await?;
    /// let slot = running.start("greet", "Ann").await?;
    /// assert!(running.why(&slot).await?.contains("paused"));
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn why(&self, slot: &SlotRef) -> Result<String, RequestError> {
        let account = why::why(self.handle(), slot, None).await?;
        Ok(std::iter::once(account.headline).chain(account.blockers).collect::<Vec<_>>().join("; "))
    }

    /// The lines that the latest run of a slot has written so far: the last 10,000, or those of the last MiB. None where there is no run.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, job};
    /// async fn greet(context: Context, name: String, _: ()) -> Result<(), String> {
    ///     context.log(format!("hello {name}"));
    ///     Ok(())
    /// }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let running = Project::new("hello", "1.0").add(job("greet", greet).with(()).on_demand()).start().await?;
    /// let slot = running.run("greet", "Ann").await?.slot;
    /// assert_eq!(running.lines(&slot).await?, ["hello Ann"]);
    /// # running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store or the output can't be read.
    pub async fn lines(&self, slot: &SlotRef) -> Result<Vec<String>, RequestError> {
        let Some(run) = self.reader().slot_runs(slot)?.pop() else { return Ok(Vec::new()) };
        let output = self.node().output(&run.leader()).await;
        let line = |line: &LogLine| String::from_utf8_lossy(&line.bytes).into_owned();
        match output.last_lines(MOST_LINES, MOST_BYTES).await {
            Ok(found) => Ok(found.lines.iter().map(line).collect()),
            Err(LocalError::NotStarted(_)) => Ok(Vec::new()),
            Err(error) => Err(RequestError::Output { slot: slot.clone(), reason: error.to_string() }),
        }
    }
}

impl RunningJob<'_> {
    /// The name of the run: one that is known is the same run, whatever became of it, and its first input counts.
    ///
    /// ```
    /// # use kelos::embed::{RequestError, RunningProject};
    /// async fn bill(running: &RunningProject) -> Result<(), RequestError> {
    ///     running.job("bill").named("order-42").start(&3).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn named(self, name: &str) -> Self {
        RunningJob { name: Some(name.to_owned()), ..self }
    }

    /// The priority of the run. Larger goes first in lines; 0 is normal.
    ///
    /// ```
    /// # use kelos::embed::{RequestError, RunningProject};
    /// async fn bill(running: &RunningProject) -> Result<(), RequestError> {
    ///     running.job("bill").priority(10).start(&3).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn priority(self, priority: i32) -> Self {
        RunningJob { priority, ..self }
    }

    /// Starts it, and returns at once.
    ///
    /// ```
    /// # use kelos::embed::{RequestError, RunningProject};
    /// async fn bill(running: &RunningProject) -> Result<(), RequestError> {
    ///     let slot = running.job("bill").named("order-42").start(&3).await?;
    ///     println!("{slot}");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such job, it is a flow, the name can't be one, or the engine refuses.
    pub async fn start(&self, input: &(impl Serialize + ?Sized)) -> Result<SlotRef, RequestError> {
        let workflow = known(&self.id)?;
        if self.project.is_flow(&workflow) {
            return Err(RequestError::IsFlow(self.id.clone()));
        }
        let unnamed = |name: &str, reason: String| {
            let (flow, name) = (self.id.clone(), name.to_owned());
            RequestError::Name { flow, name, reason }
        };
        let named = |name: &String| RunName::new(name).map_err(|error| unnamed(name, error.to_string()));
        let key = self.name.as_ref().map(named).transpose()?;
        let unfit = |source| RequestError::Input { job: self.id.clone(), source };
        let json = serde_json::to_string(input).map_err(unfit)?;
        let arguments = [(INPUT.to_owned(), json.into())].into();
        let priority = self.priority;
        let request = FireRequest { workflow, arguments, key, priority, unconstrained: false, reason: None };
        Ok(self.project.ask(request).await?.slot)
    }

    /// Starts it, and waits for its end.
    ///
    /// ```
    /// # use kelos::embed::RunningProject;
    /// async fn bill(running: &RunningProject) -> Result<u32, Box<dyn std::error::Error>> {
    ///     Ok(running.job("bill").named("order-42").run(&3).await?.output()?)
    /// }
    /// ```
    ///
    /// # Errors
    /// As those of [`RunningJob::start`], and when the engine ends.
    pub async fn run(&self, input: &(impl Serialize + ?Sized)) -> Result<EndedSlot, RequestError> {
        let slot = self.start(input).await?;
        self.project.end(&slot).await
    }
}
