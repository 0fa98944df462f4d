//! The runs of a flow in a rehearsal.

use std::time::Duration;

use jiff::SignedDuration;
use kelos_core::{FireRequest, Input, RepeatStep, ResumeFlow, SignalFlow};
use kelos_model::key::RunName;
use kelos_model::{Actor, SlotRef, StepName};
use serde::Serialize;

use super::flow_run::{self, FlowRun};
use super::input::arguments_of;
use super::rehearsal::{Rehearsal, RehearsalError, id, unsound};

/// A flow in a rehearsal. Its runs are named as in a program that runs: `order-42`, or the time that they are about.
///
/// ```
/// use kelos::SlotState;
/// use kelos::embed::{Context, Project, Rehearsal, Retry, flow, signal, step};
/// use std::time::Duration;
///
/// async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> {
///     Ok(3)
/// }
///
/// let pay = step("pay", pay).with(()).retry(Retry::fixed(Duration::from_secs(60)).times(3));
/// let part = pay >> signal::<String>("approval").within(Duration::from_secs(2 * 24 * 3600));
/// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(flow("purchase", part)))?;
/// let mut purchase = rehearsal.flow("purchase");
/// purchase.fail("order-42", "pay", 2)?;
/// purchase.start("order-42", &())?;
/// purchase.signal_after("order-42", "approval", &"Ann", Duration::from_secs(4 * 3600))?;
/// rehearsal.run_until("2026-03-28T03:00Z")?;
/// assert_eq!(rehearsal.flow("purchase").look("order-42")?.state, SlotState::Running);
/// rehearsal.run_until("2026-03-28T05:00Z")?;
/// let run = rehearsal.flow("purchase").look("order-42")?;
/// assert_eq!((run.state, run.step("pay").map(|pay| pay.attempts)), (SlotState::Succeeded, Some(3)));
/// assert_eq!(run.outputs["approval"], "Ann");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RehearsedFlow<'r> {
    rehearsal: &'r mut Rehearsal,
    flow: String,
}

impl Rehearsal {
    /// A flow, to start, signal and resume its runs, and to look at them.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// assert_eq!(rehearsal.flow("purchase").look("order-42")?.output::<u32>()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn flow(&mut self, id: &str) -> RehearsedFlow<'_> {
        RehearsedFlow { rehearsal: self, flow: id.to_owned() }
    }
}

impl RehearsedFlow<'_> {
    /// Starts a run under a name, as [`RunningFlow::start`](super::RunningFlow::start) does, and lets happen what happens at once.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// let slot = rehearsal.flow("purchase").start("order-42", &serde_json::json!({ "items": 3 }))?;
    /// assert_eq!(slot.to_string(), "purchase@.order-42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such flow, or the text is no name.
    pub fn start(&mut self, run: &str, input: &(impl Serialize + ?Sized)) -> Result<SlotRef, RehearsalError> {
        let key = RunName::new(run).map_err(|error| unsound(&format!("the name \"{run}\""), &error))?;
        let arguments = arguments_of(input).map_err(|error| unsound("the input", &error))?;
        let (workflow, key) = (id(&self.flow)?, Some(key));
        let request = FireRequest { workflow, arguments, key, priority: 0, unconstrained: false, reason: None };
        Ok(self.rehearsal.ask(request)?.slot)
    }

    /// Does one step of a run that has ended again, as a run of its own, as [`RunningFlow::start_step`](super::RunningFlow::start_step) does,
    /// and lets happen what happens at once. `load:3` is the item 3 of the list of `load`.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// use serde_json::json;
    ///
    /// let double = step("double", async |_: Context, order: serde_json::Value, ()| Ok::<_, String>(order["n"].as_u64().map(|n| 2 * n)));
    /// let project = Project::new("sums", "1.0").add(flow("sum", double.with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("sum").start("first", &json!({ "n": 3 }))?;
    /// rehearsal.flow("sum").start_step("again", ("first", "double"), &json!({ "n": 4 }))?;
    /// assert_eq!(rehearsal.flow("sum").look("again")?.output::<u64>()?, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such run or step, the run is live, or a text is no name.
    pub fn start_step(
        &mut self,
        run: &str,
        (of, step): (&str, &str),
        input: &(impl Serialize + ?Sized),
    ) -> Result<SlotRef, RehearsalError> {
        let key = RunName::new(run).map_err(|error| unsound(&format!("the name \"{run}\""), &error))?;
        let arguments = arguments_of(input).map_err(|error| unsound("the input", &error))?;
        let (step, key, reason) = (self.step(of, step)?, Some(key), None);
        let request = RepeatStep { step, arguments, key, priority: 0, unconstrained: false, reason };
        Ok(self.rehearsal.ask(request)?.slot)
    }

    /// A run as it is now.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").start("order-42", &serde_json::json!({ "day": "monday" }))?;
    /// let run = rehearsal.flow("purchase").look("order-42")?;
    /// assert_eq!(run.step("pay").map(|pay| pay.inputs["day"].clone()), Some("monday".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such run.
    pub fn look(&self, run: &str) -> Result<FlowRun, RehearsalError> {
        let found = flow_run::read(&**self.rehearsal.reader(), &self.slot(run)?)?;
        found.ok_or_else(|| unsound(&format!("the run \"{run}\" of {}", self.flow), &"there is none"))
    }

    /// Lets the next attempts of a step fail, without a call of its function. `load:3` is the item 3 of the list of `load`.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").fail("order-42", "pay", 1)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// assert!(!rehearsal.flow("purchase").look("order-42")?.is_success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the texts are no names.
    pub fn fail(&mut self, run: &str, step: &str, times: u32) -> Result<(), RehearsalError> {
        let slot = self.step(run, step)?;
        self.rehearsal.stage().failing.insert(slot, times);
        Ok(())
    }

    /// Says how long each run of a step takes.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// use kelos::SlotState;
    /// use std::time::Duration;
    ///
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").takes("pay", Duration::from_secs(3600))?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// rehearsal.run_until("2026-03-28T00:30Z")?;
    /// assert_eq!(rehearsal.flow("purchase").look("order-42")?.state, SlotState::Running);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the flow's text is no id.
    pub fn takes(&mut self, step: &str, length: Duration) -> Result<(), RehearsalError> {
        let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
        let flow = id(&self.flow)?;
        self.rehearsal.stage().lengths.insert((flow, Some(step.to_owned())), length);
        Ok(())
    }

    /// Gives a signal to a run now.
    ///
    /// ```
    /// use kelos::embed::{Project, Rehearsal, flow, signal};
    ///
    /// let project = Project::new("shop", "1.0").add(flow("purchase", signal::<String>("approval")));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").signal("order-42", "approval", &"Ann")?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// assert_eq!(rehearsal.flow("purchase").look("order-42")?.outputs["approval"], "Ann");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the flow has no such signal, the value is not of its type, or the run is over.
    pub fn signal(&mut self, run: &str, signal: &str, value: &(impl Serialize + ?Sized)) -> Result<(), RehearsalError> {
        let request = self.signalled(run, signal, value)?;
        self.rehearsal.ask(request)
    }

    /// Gives a signal to a run once so much virtual time has passed. One that is refused then is as one that never came.
    ///
    /// ```
    /// use kelos::embed::{Project, Rehearsal, flow, signal};
    /// use std::time::Duration;
    ///
    /// let project = Project::new("shop", "1.0").add(flow("purchase", signal::<String>("approval")));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// rehearsal.flow("purchase").signal_after("order-42", "approval", &"Ann", Duration::from_secs(4 * 3600))?;
    /// rehearsal.run_until("2026-03-28T04:00Z")?;
    /// assert!(rehearsal.flow("purchase").look("order-42")?.is_success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the value is not of the signal's type, or the texts are no names.
    pub fn signal_after(
        &mut self,
        run: &str,
        signal: &str,
        value: &(impl Serialize + ?Sized),
        after: Duration,
    ) -> Result<(), RehearsalError> {
        let ask = self.signalled(run, signal, value)?.into();
        let at = self.rehearsal.now().checked_add(after).map_err(|error| unsound("the duration", &error))?;
        self.rehearsal.stage().later(at, Input::Asked { token: 0, by: Actor::person("test"), ask, warrant: None });
        Ok(())
    }

    /// Does the failed steps of a run again, with what the others gave.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").fail("order-42", "pay", 1)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// rehearsal.flow("purchase").resume("order-42")?;
    /// assert!(rehearsal.flow("purchase").look("order-42")?.is_success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such run, it is live, or nothing of it failed.
    pub fn resume(&mut self, run: &str) -> Result<(), RehearsalError> {
        let run = self.slot(run)?;
        self.rehearsal.ask(ResumeFlow { run, from: None, reason: None })
    }

    /// Does a step of a run again, and all steps after it.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// rehearsal.flow("purchase").resume_from("order-42", "pay")?;
    /// assert_eq!(rehearsal.flow("purchase").look("order-42")?.step("pay").map(|pay| pay.attempts), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such run or step, or the run is live.
    pub fn resume_from(&mut self, run: &str, step: &str) -> Result<(), RehearsalError> {
        let from = Some(step_name(step)?);
        let run = self.slot(run)?;
        self.rehearsal.ask(ResumeFlow { run, from, reason: None })
    }

    /// The account of `kelos why` of a run now, in one line.
    ///
    /// ```
    /// use kelos::embed::{Project, Rehearsal, flow, signal};
    ///
    /// let project = Project::new("shop", "1.0").add(flow("purchase", signal::<String>("approval")));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// assert!(!rehearsal.flow("purchase").why("order-42")?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no name, or there is no such run.
    pub fn why(&mut self, run: &str) -> Result<String, RehearsalError> {
        let slot = self.slot(run)?;
        self.rehearsal.why_slot(&slot)
    }

    /// The same of a step, or of an item of its list.
    ///
    /// ```
    /// # use kelos::embed::{Context, Project, Rehearsal, flow, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<u32, String> { Ok(3) }
    /// # let project = Project::new("shop", "1.0").add(flow("purchase", step("pay", pay).with(())));
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project)?;
    /// rehearsal.flow("purchase").start("order-42", &())?;
    /// assert!(rehearsal.flow("purchase").why_step("order-42", "pay")?.contains("succeeded"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the texts are no names, or there is no such step.
    pub fn why_step(&mut self, run: &str, step: &str) -> Result<String, RehearsalError> {
        let slot = self.step(run, step)?;
        self.rehearsal.why_slot(&slot)
    }

    fn signalled(
        &mut self,
        run: &str,
        signal: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<SignalFlow, RehearsalError> {
        let what = format!("the signal \"{signal}\"");
        let payload = serde_json::to_value(value).map_err(|error| unsound(&what, &error))?;
        let flow = id(&self.flow)?;
        self.rehearsal.stage().signals.check(&flow, signal, &payload).map_err(|error| unsound(&what, &error))?;
        Ok(SignalFlow { run: self.slot(run)?, signal: signal.to_owned(), payload, reason: None })
    }

    fn slot(&self, run: &str) -> Result<SlotRef, RehearsalError> {
        let key = flow_run::key_of(run).map_err(|error| unsound(&format!("the name \"{run}\""), &error))?;
        Ok(SlotRef::new(id(&self.flow)?, key))
    }

    fn step(&self, run: &str, step: &str) -> Result<SlotRef, RehearsalError> {
        let run = self.slot(run)?;
        flow_run::step_of(&run, step).map_err(|error| unsound(&format!("the step \"{step}\""), &error))
    }
}

fn step_name(step: &str) -> Result<StepName, RehearsalError> {
    StepName::new(step).map_err(|error| unsound(&format!("the step \"{step}\""), &error))
}
