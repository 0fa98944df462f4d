//! Parts of flows: graphs of steps, put together by operators.

use std::fmt;
use std::ops::{BitAnd, Shr};

use super::graph::StepGraph;
use super::signals::SignalType;
use super::step::{Step, StepWork};
use crate::embed::function::FunctionJob;
use crate::embed::placement::Placement;
use crate::embed::platform::Platform;

/// A graph of steps, which is put together of others: `a >> b` is b after a, `a & b` is both at a time. `>>` goes before `&`.
///
/// A part is a value. It can be cloned, and stand in several flows. A step that stands twice in a flow is one step; for another one like
/// it there is [`Part::prefix`]. Two steps of one id are a mistake.
///
/// ```
/// # use kelos::embed::{Context, step};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{Part, Project, flow};
///
/// fn load(table: &str) -> Part {
///     let (fetch, store) = (step("fetch", work).with(()), step("store", work).with(()));
///     (fetch >> store).prefix(&format!("{table}-"))
/// }
///
/// let report = step("report", work).with(());
/// let project = Project::new("shop", "1.0").add(flow("nightly", (load("orders") & load("customers")) >> report));
/// assert!(project.check().is_ok());
/// ```
#[derive(Clone, Default)]
pub struct Part(StepGraph);

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.nodes().iter().map(|node| &node.step.id)).finish()
    }
}

impl From<Step> for Part {
    fn from(step: Step) -> Part {
        Part(StepGraph::of(step.0))
    }
}

impl Part {
    /// The part, and another one after it: each root of the other one needs each leaf of this one. The operator is `>>`.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::Part;
    ///
    /// let steps = ["fetch", "load", "report"].map(|id| step(id, work).with(()));
    /// let chain = steps.into_iter().fold(Part::default(), Part::then);
    /// ```
    #[must_use]
    pub fn then(self, next: impl Into<Part>) -> Part {
        Part(self.0.then(next.into().0))
    }

    /// The part, and another one at the same time. The operator is `&`.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::Part;
    ///
    /// let tables = ["orders", "customers"].map(|table| step(table, work).with(()));
    /// let all = tables.into_iter().fold(Part::default(), Part::and);
    /// ```
    #[must_use]
    pub fn and(self, other: impl Into<Part>) -> Part {
        Part(self.0.and(other.into().0))
    }

    /// The part, and an error step for the failure of any of its steps, or a part of such. What comes after this part does not
    /// run then; if the error steps succeed the run of the flow succeeds, and says that it has recovered.
    ///
    /// Error steps start once all steps have ended that were running; see [`Step::at_once`]. They are given what the failed step was, as
    /// `failed`, its `error`, the `errors` of all, and the data of a [`Failure`](super::super::Failure). So that an error step may be hung
    /// on many parts, it is named after the leaves of each: `sorry-from-pay`. A failure that a step within this part handles is handled there, and here only
    /// if that fails as well.
    ///
    /// ```
    /// use kelos::embed::{Context, Failure, step};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Failed {
    ///     failed: String,
    ///     error: String,
    /// }
    ///
    /// async fn pay(_: Context, _: (), _: ()) -> Result<(), Failure> {
    ///     Err(Failure::new("no money"))
    /// }
    ///
    /// async fn sorry(context: Context, what: Failed, _: ()) -> Result<(), String> {
    ///     context.log(format!("{} failed: {}", what.failed, what.error));
    ///     Ok(())
    /// }
    ///
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let (pay, ship) = (step("pay", pay).with(()), step("ship", work).with(()));
    /// let part = (pay >> ship).or_else(step("sorry", sorry).with(()));
    /// ```
    #[must_use]
    pub fn or_else(self, error: impl Into<Part>) -> Part {
        Part(self.0.or_else(error.into().0))
    }

    /// The same with a text before the id of each step, so that it can stand in a flow once more. Signals keep their names.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let load = step("fetch", work).with(()) >> step("load", work).with(());
    /// let both = load.clone().prefix("eu-") & load.prefix("us-");
    /// ```
    #[must_use]
    pub fn prefix(mut self, text: &str) -> Part {
        self.0.rename(|id| format!("{text}{id}"));
        self
    }

    pub(super) fn graph(&self) -> &StepGraph {
        &self.0
    }

    /// Lets the runs of all steps take parts of a platform.
    pub(in crate::embed) fn may_use(&mut self, platform: &impl Platform) {
        self.0.change(|step| step.within.extend(platform.uses()));
    }

    /// The same, whose steps run where their flow says, unless they say otherwise.
    pub(in crate::embed) fn placed(&self, flow: &Placement) -> Part {
        let mut part = self.clone();
        part.0.change(|step| {
            if matches!(step.work, StepWork::Function(_)) {
                step.placement = step.placement.within(flow);
            }
        });
        part
    }

    /// The steps whose functions take a period.
    pub(in crate::embed) fn of_periods(&self) -> impl Iterator<Item = &str> {
        self.0.nodes().iter().filter(|node| node.step.is_of_period).map(|node| node.step.id.as_str())
    }

    /// The steps that say which workers may run them, or how long they are waited for.
    pub(in crate::embed) fn with_placement(&self) -> impl Iterator<Item = &str> {
        let placed = self.0.nodes().iter().filter(|node| node.step.placement.is_of_workers());
        placed.map(|node| node.step.id.as_str())
    }

    /// The steps whose functions wait for signals.
    #[cfg(feature = "worker")]
    pub(in crate::embed) fn awaiting(&self) -> impl Iterator<Item = &str> {
        let awaiting = self.0.nodes().iter().filter(|node| !node.step.signals.is_empty());
        awaiting.map(|node| node.step.id.as_str())
    }

    /// The signals that its steps wait for, and what they are to say.
    pub(in crate::embed) fn signals(&self) -> impl Iterator<Item = (&str, SignalType)> {
        self.0.nodes().iter().flat_map(|node| {
            let own = match &node.step.work {
                StepWork::Signal(signal) => Some(signal),
                StepWork::Function(_) => None,
            };
            own.into_iter().chain(&node.step.signals).map(|signal| (signal.name.as_str(), signal.fits))
        })
    }

    /// The functions of its steps.
    pub(in crate::embed) fn functions(&self) -> impl Iterator<Item = (String, FunctionJob)> {
        self.0.nodes().iter().filter_map(|node| {
            let step = &node.step;
            let StepWork::Function(body) = &step.work else { return None };
            let (body, timeout, grace) = (body.clone(), step.timeout, step.grace);
            let signals = step.signals.iter().map(|signal| signal.name.clone()).collect();
            Some((step.id.clone(), FunctionJob { body, timeout, grace, signals }))
        })
    }
}

impl Step {
    /// The step, and another part after it. The operator is `>>`.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let chain = step("fetch", work).with(()).then(step("load", work).with(()));
    /// ```
    #[must_use]
    pub fn then(self, next: impl Into<Part>) -> Part {
        Part::from(self).then(next)
    }

    /// The step, and another part at the same time. The operator is `&`.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let both = step("orders", work).with(()).and(step("customers", work).with(()));
    /// ```
    #[must_use]
    pub fn and(self, other: impl Into<Part>) -> Part {
        Part::from(self).and(other)
    }

    /// The step, and an error step for its failure: see [`Part::or_else`].
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// // Named sorry-from-pay.
    /// let paid = step("pay", work).with(()).or_else(step("sorry", work).with(()));
    /// ```
    #[must_use]
    pub fn or_else(self, error: impl Into<Part>) -> Part {
        Part::from(self).or_else(error)
    }

    /// The same with a text before its id: see [`Part::prefix`].
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let load = step("load", work).with(());
    /// let both = load.clone().prefix("eu-") & load.prefix("us-");
    /// ```
    #[must_use]
    pub fn prefix(self, text: &str) -> Part {
        Part::from(self).prefix(text)
    }
}

impl<P: Into<Part>> Shr<P> for Part {
    type Output = Part;

    fn shr(self, next: P) -> Part {
        self.then(next)
    }
}

impl<P: Into<Part>> Shr<P> for Step {
    type Output = Part;

    fn shr(self, next: P) -> Part {
        self.then(next)
    }
}

impl<P: Into<Part>> BitAnd<P> for Part {
    type Output = Part;

    fn bitand(self, other: P) -> Part {
        self.and(other)
    }
}

impl<P: Into<Part>> BitAnd<P> for Step {
    type Output = Part;

    fn bitand(self, other: P) -> Part {
        self.and(other)
    }
}
