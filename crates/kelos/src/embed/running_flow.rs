//! The runs of a flow in a program that runs: starts, signals, resumptions and ends.

use kelos_core::{FireRequest, RepeatStep, ResumeFlow, SignalFlow};
use kelos_model::key::RunName;
use kelos_model::{SlotRef, StepName, WorkflowId};
use serde::Serialize;
use serde_json::Value;

use super::flow_run::{self, FlowRun};
use super::input::arguments_of;
use super::request_error::RequestError;
use super::running::RunningProject;

/// A flow of a project that runs. Runs are named: `order-42`, or the time that they are about.
///
/// ```
/// use kelos::embed::{Context, Project, flow, step};
/// use serde_json::{Value, json};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let pay = step("pay", async |_: Context, order: Value, ()| Ok::<_, String>(json!({ "paid": order["who"] })));
/// let running = Project::new("shop", "1.0").add(flow("purchase", pay.with(()))).start().await?;
/// let purchase = running.flow("purchase");
/// purchase.start("order-42", &json!({ "who": "Ann" })).await?;
/// let ended = purchase.end("order-42").await?;
/// assert_eq!(ended.outputs["paid"], "Ann");
/// running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RunningFlow<'p> {
    project: &'p RunningProject,
    id: String,
    priority: i32,
}

impl RunningProject {
    /// A flow, to start, signal and resume its runs, and to look at them.
    ///
    /// ```
    /// use kelos::embed::{Context, Project, flow, step};
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let greet = step("greet", async |_: Context, (): (), who: &str| Ok::<_, String>(format!("hello {who}"))).with("Ann");
    /// let running = Project::new("hello", "1.0").add(flow("greeting", greet)).start().await?;
    /// let ended = running.flow("greeting").run("first", &()).await?;
    /// assert_eq!(ended.output::<String>()?, "hello Ann");
    /// running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn flow(&self, id: &str) -> RunningFlow<'_> {
        RunningFlow { project: self, id: id.to_owned(), priority: 0 }
    }
}

impl<'p> RunningFlow<'p> {
    /// The priority of runs that are started by it, and of their steps. Larger goes first in lines.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn urgent(running: &RunningProject) -> Result<FlowRun, RequestError> {
    ///     running.flow("purchase").priority(10).run("order-42", &()).await
    /// }
    /// ```
    #[must_use]
    pub fn priority(self, priority: i32) -> RunningFlow<'p> {
        RunningFlow { priority, ..self }
    }

    /// Starts a run under a name, and returns at once. A name is started once: one that is known is the same run, whatever became of it,
    /// and its first input counts.
    ///
    /// The input is an object, whose fields every step is given; of anything else `input` is.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// #[derive(serde::Serialize)]
    /// struct Order {
    ///     items: u32,
    /// }
    ///
    /// async fn order(running: &RunningProject) -> Result<(), RequestError> {
    ///     running.flow("purchase").start("order-42", &Order { items: 3 }).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such flow, the name is none, or the engine refuses.
    pub async fn start(&self, run: &str, input: &(impl Serialize + ?Sized)) -> Result<SlotRef, RequestError> {
        let workflow = self.workflow()?;
        let key = RunName::new(run).map_err(|error| self.unnamed(run, error))?;
        let arguments = arguments_of(input).map_err(|source| RequestError::Input { job: self.id.clone(), source })?;
        let (key, priority) = (Some(key), self.priority);
        let request = FireRequest { workflow, arguments, key, priority, unconstrained: false, reason: None };
        Ok(self.project.ask(request).await?.slot)
    }

    /// Does one step of a run that has ended again, as a run of its own, and returns at once. `load:3` is the item 3 of the list of `load`.
    ///
    /// The step is given what it was given then, with the fields of `input` in the place of those of the same name, and follows the same
    /// definition. No other step is opened, also no error step, and nothing else of the project is told of it.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn pay_again(running: &RunningProject) -> Result<FlowRun, RequestError> {
    ///     let purchase = running.flow("purchase");
    ///     purchase.start_step("pay-again", ("order-42", "pay"), &serde_json::json!({ "amount": 250 })).await?;
    ///     purchase.end("pay-again").await
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such run, it is live, the step never ran, an input is none of its inputs, or the name belongs to another run.
    pub async fn start_step(
        &self,
        run: &str,
        (of, step): (&str, &str),
        input: &(impl Serialize + ?Sized),
    ) -> Result<SlotRef, RequestError> {
        let key = RunName::new(run).map_err(|error| self.unnamed(run, error))?;
        let step = flow_run::step_of(&self.slot(of)?, step).map_err(|error| self.unnamed(step, error))?;
        let arguments = arguments_of(input).map_err(|source| RequestError::Input { job: self.id.clone(), source })?;
        let (key, priority) = (Some(key), self.priority);
        let request = RepeatStep { step, arguments, key, priority, unconstrained: false, reason: None };
        Ok(self.project.ask(request).await?.slot)
    }

    /// Does one step of a run again, as a run of its own, and waits for its end.
    ///
    /// ```
    /// use kelos::embed::{Context, Project, flow, step};
    /// use serde_json::{Value, json};
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let double = step("double", async |_: Context, order: Value, ()| Ok::<_, String>(order["n"].as_u64().map(|n| 2 * n)));
    /// let running = Project::new("sums", "1.0").add(flow("sum", double.with(()))).start().await?;
    /// let sum = running.flow("sum");
    /// assert_eq!(sum.run("first", &json!({ "n": 3 })).await?.output::<u64>()?, 6);
    /// let again = sum.run_step("again", ("first", "double"), &json!({ "n": 4 })).await?;
    /// assert_eq!(again.output::<u64>()?, 8);
    /// assert_eq!(again.repeats.map(|step| step.to_string()).as_deref(), Some("sum@.first.double"));
    /// running.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As those of [`RunningFlow::start_step`] and [`RunningFlow::end`].
    pub async fn run_step(
        &self,
        run: &str,
        step: (&str, &str),
        input: &(impl Serialize + ?Sized),
    ) -> Result<FlowRun, RequestError> {
        self.start_step(run, step, input).await?;
        self.end(run).await
    }

    /// Waits for the end of a run: also of one that somebody else started, that began before a restart, or that ended long ago.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn receipt(running: &RunningProject) -> Result<FlowRun, RequestError> {
    ///     running.flow("purchase").end("order-42").await
    /// }
    /// ```
    ///
    /// # Errors
    /// When the store can't be read, or the engine ends. For a run that nobody has started it waits.
    pub async fn end(&self, run: &str) -> Result<FlowRun, RequestError> {
        let slot = self.slot(run)?;
        self.project.end(&slot).await?;
        let ended = flow_run::read(&**self.project.reader(), &slot)?;
        ended.ok_or_else(|| RequestError::Run { flow: self.id.clone(), run: run.to_owned() })
    }

    /// Starts a run under a name, and waits for its end.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn purchase(running: &RunningProject) -> Result<String, Box<dyn std::error::Error>> {
    ///     let ended = running.flow("purchase").run("order-42", &()).await?;
    ///     Ok(ended.output()?)
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such flow, the name is none, the engine refuses, or ends.
    pub async fn run(&self, run: &str, input: &(impl Serialize + ?Sized)) -> Result<FlowRun, RequestError> {
        self.start(run, input).await?;
        self.end(run).await
    }

    /// A run as it is now.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// fn steps(running: &RunningProject) -> Result<Vec<String>, RequestError> {
    ///     let run = running.flow("purchase").look("order-42")?;
    ///     Ok(run.steps.iter().map(|step| format!("{}: {}", step.name, step.state)).collect())
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such run, or the store can't be read.
    pub fn look(&self, run: &str) -> Result<FlowRun, RequestError> {
        let found = flow_run::read(&**self.project.reader(), &self.slot(run)?)?;
        found.ok_or_else(|| RequestError::Run { flow: self.id.clone(), run: run.to_owned() })
    }

    /// Gives a signal to a run: to all its steps that wait for it, now or later. A run that has a name may be given one before it is
    /// started. Of several signals of a name the last counts.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn approve(running: &RunningProject) -> Result<(), RequestError> {
    ///     running.flow("purchase").signal("order-42", "approval", &"Ann").await
    /// }
    /// ```
    ///
    /// # Errors
    /// When the flow has no such signal, the value is not of its type, or the run is over.
    pub async fn signal(&self, run: &str, signal: &str, value: &(impl Serialize + ?Sized)) -> Result<(), RequestError> {
        let unfit = |reason: String| RequestError::Signal { signal: signal.to_owned(), reason };
        let payload: Value = serde_json::to_value(value).map_err(|error| unfit(error.to_string()))?;
        self.project.signals().check(&self.workflow()?, signal, &payload).map_err(unfit)?;
        let (run, signal) = (self.slot(run)?, signal.to_owned());
        self.project.ask(SignalFlow { run, signal, payload, reason: None }).await
    }

    /// Does the failed steps of a run again, with what the others gave: also after a restart.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn again(running: &RunningProject) -> Result<FlowRun, RequestError> {
    ///     let purchase = running.flow("purchase");
    ///     purchase.resume("order-42").await?;
    ///     purchase.end("order-42").await
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such run, it is live, or nothing of it failed.
    pub async fn resume(&self, run: &str) -> Result<(), RequestError> {
        let run = self.slot(run)?;
        self.project.ask(ResumeFlow { run, from: None, reason: None }).await
    }

    /// Does a step of a run again, and all steps after it, with what those before gave.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, RequestError, RunningProject};
    /// async fn again(running: &RunningProject) -> Result<(), RequestError> {
    ///     running.flow("purchase").resume_from("order-42", "pay").await
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such run or step, or the run is live.
    pub async fn resume_from(&self, run: &str, step: &str) -> Result<(), RequestError> {
        let from = StepName::new(step).map_err(|error| self.unnamed(step, error))?;
        let run = self.slot(run)?;
        self.project.ask(ResumeFlow { run, from: Some(from), reason: None }).await
    }

    fn workflow(&self) -> Result<WorkflowId, RequestError> {
        let id = WorkflowId::new(&self.id).map_err(|_| RequestError::Flow(self.id.clone()))?;
        let found = self.project.reader().workflow(&id)?;
        found
            .filter(|row| row.definition.flow.is_some())
            .map(|row| row.id)
            .ok_or_else(|| RequestError::Flow(self.id.clone()))
    }

    fn slot(&self, run: &str) -> Result<SlotRef, RequestError> {
        let key = flow_run::key_of(run).map_err(|error| self.unnamed(run, error))?;
        Ok(SlotRef::new(self.workflow()?, key))
    }

    fn unnamed(&self, name: &str, error: impl ToString) -> RequestError {
        RequestError::Name { flow: self.id.clone(), name: name.to_owned(), reason: error.to_string() }
    }
}
