//! A step of a flow: an async function with a name, or the wait for a signal.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use kelos_model::workers::LossPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::signals::{SignalType, type_of};
use crate::embed::context::Context;
use crate::embed::function::{Body, GRACE};
use crate::embed::input::Input;
use crate::embed::placement::Placement;
use crate::embed::platform::{Platform, PlatformUse};
use crate::embed::retry::Retry;
use crate::embed::typed::TypedFunction;

/// A step of an async function, which is called with a [`Context`], what it is given and a state, like that of a [job](super::super::job).
///
/// A step is given an object: its own [inputs](Step::inputs), the input of the run, and what the steps before it gave. Its second argument
/// is anything that serde reads from that, `serde_json::Value` too; an input that does not fit fails the step for good, and says where.
/// In a flow that runs for periods it may also be a [`Period`](super::super::Period), or an
/// [`InPeriod`](super::super::InPeriod) of both.
///
/// A struct that it returns is given to the next steps as its fields, anything else under the name of the step, and `()` as nothing. An
/// error is a failure, with its causes; a [`Failure`](super::super::Failure) carries data.
///
/// ```
/// use kelos::embed::{Context, step};
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     items: Vec<u32>,
/// }
///
/// #[derive(serde::Serialize)]
/// struct Checked {
///     total: u32,
/// }
///
/// async fn check(_: Context, order: Order, most: u32) -> Result<Checked, String> {
///     let total = order.items.iter().sum();
///     if total <= most { Ok(Checked { total }) } else { Err(format!("{total} is more than {most}")) }
/// }
///
/// let check = step("check", check).with(500);
/// ```
#[track_caller]
pub fn step<I, S, O, E, F>(
    id: &str,
    function: impl Fn(Context, I, S) -> F + Send + Sync + 'static,
) -> StepFunction<I, S, E>
where
    I: Input,
    O: Serialize,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
    F: Future<Output = Result<O, E>> + Send + 'static,
{
    StepFunction(TypedFunction::new(id, Location::caller(), function))
}

/// A step that waits for a signal, whose name is its id. What the signal says is given to the next steps: the fields of a struct, anything
/// else under the name of the signal. A signal is kept with the run, so that it may come before the step waits, and before the run was
/// started.
///
/// `T` is what [the program that signals](super::super::RunningFlow::signal) has to say.
///
/// ```
/// use kelos::embed::signal;
/// use std::time::Duration;
///
/// #[derive(serde::Deserialize)]
/// struct Approval {
///     by: String,
/// }
///
/// let approval = signal::<Approval>("approval").within(Duration::from_secs(2 * 24 * 3600));
/// ```
#[must_use]
#[track_caller]
pub fn signal<T: DeserializeOwned + 'static>(name: &str) -> Step {
    let wait = SignalDraft { name: name.to_owned(), fits: type_of::<T>() };
    Step(Arc::new(StepDraft::new(name.to_owned(), Location::caller(), StepWork::Signal(wait))))
}

/// A function of a step that has no state yet.
///
/// ```
/// # use kelos::embed::{Context, step};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// let function = step("work", work);
/// let step = function.with(());
/// ```
pub struct StepFunction<I, S, E>(TypedFunction<I, S, E>);

impl<I, S, E> fmt::Debug for StepFunction<I, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepFunction").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl<I, S, E> StepFunction<I, S, E>
where
    I: Input,
    S: Clone + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    /// No retry follows an error of which this is true.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn pay(_: Context, _: (), _: ()) -> Result<(), std::io::Error> { Ok(()) }
    /// use std::io::ErrorKind;
    ///
    /// let pay = step("pay", pay).unless(|error| error.kind() == ErrorKind::PermissionDenied).with(());
    /// ```
    #[must_use]
    pub fn unless(self, is_final: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        StepFunction(self.0.unless(is_final))
    }

    /// The step, with the state of which each run gets a clone: a client, a connection pool, `()`.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// async fn greet(_: Context, _: (), greeting: &'static str) -> Result<String, String> {
    ///     Ok(greeting.to_owned())
    /// }
    ///
    /// let greet = step("greet", greet).with("hello");
    /// ```
    #[must_use]
    pub fn with(self, state: S) -> Step {
        let (id, place, body) = self.0.with_state(state);
        let draft = StepDraft::new(id, place, StepWork::Function(body));
        Step(Arc::new(StepDraft { is_of_period: I::is_of_period(), ..draft }))
    }
}

/// A step of a flow. A clone of it is the same step, wherever it stands in a flow.
///
/// A step that fails is not tried again where nothing else is [said](Step::retry): the flow's [error steps](super::Part::or_else) handle it,
/// or the run fails and can be [resumed](super::super::RunningFlow::resume).
///
/// ```
/// # use kelos::embed::{Context, step};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// let (check, pay, ship) = (step("check", work).with(()), step("pay", work).with(()), step("ship", work).with(()));
/// let part = check >> pay >> ship;
/// ```
#[derive(Clone)]
pub struct Step(pub(super) Arc<StepDraft>);

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("id", &self.0.id).finish_non_exhaustive()
    }
}

/// The work of a run.
#[derive(Clone)]
pub(super) enum StepWork {
    Function(Body),
    Signal(SignalDraft),
}

/// The signal that a step waits for.
#[derive(Clone)]
pub(super) struct SignalDraft {
    pub(super) name: String,
    pub(super) fits: SignalType,
}

/// The list of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ListDraft {
    pub(super) input: Option<String>,
    pub(super) at_a_time: Option<u32>,
    pub(super) at_most: Option<u32>,
}

/// A step without the type of its input.
#[derive(Clone)]
pub(super) struct StepDraft {
    pub(super) id: String,
    pub(super) place: &'static Location<'static>,
    pub(super) work: StepWork,
    pub(super) inputs: Value,
    pub(super) list: ListDraft,
    pub(super) at_once: bool,
    /// The time for which it waits for its signal.
    pub(super) wait: Option<Duration>,
    pub(super) retry: Retry,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) platforms: Vec<PlatformUse>,
    /// The platforms that its runs may take parts of while they are live.
    pub(super) within: Vec<PlatformUse>,
    /// The signals that its runs may wait for while they are live.
    pub(super) signals: Vec<SignalDraft>,
    pub(super) placement: Placement,
    pub(super) description: Option<String>,
    /// Whether its function takes a period.
    pub(super) is_of_period: bool,
}

impl StepDraft {
    fn new(id: String, place: &'static Location<'static>, work: StepWork) -> StepDraft {
        StepDraft {
            id,
            place,
            work,
            inputs: Value::Object(Map::new()),
            list: ListDraft::default(),
            at_once: false,
            wait: None,
            retry: Retry::never(),
            timeout: None,
            grace: GRACE,
            platforms: Vec::new(),
            within: Vec::new(),
            signals: Vec::new(),
            placement: Placement::default(),
            description: None,
            is_of_period: false,
        }
    }

    /// Whether it is the same step, and not another one of its id.
    pub(super) fn is_same_as(&self, other: &StepDraft) -> bool {
        let same_work = match (&self.work, &other.work) {
            (StepWork::Function(one), StepWork::Function(other)) => {
                std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
            }
            (StepWork::Signal(one), StepWork::Signal(other)) => one.name == other.name,
            _ => false,
        };
        let limits = |one: &StepDraft| (one.retry, one.timeout, one.grace, one.wait, one.at_once);
        same_work
            && (&self.id, self.place) == (&other.id, other.place)
            && limits(self) == limits(other)
            && (&self.inputs, &self.list) == (&other.inputs, &other.list)
            && (&self.platforms, &self.within) == (&other.platforms, &other.within)
            && self.signals.iter().map(|one| &one.name).eq(other.signals.iter().map(|one| &one.name))
            && (&self.placement, &self.description) == (&other.placement, &other.description)
    }
}

impl Step {
    fn draft(&mut self) -> &mut StepDraft {
        Arc::make_mut(&mut self.0)
    }

    /// Its inputs where neither the run nor a step before it gives others: a JSON object.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let load = step("load", work).with(()).inputs(serde_json::json!({ "table": "orders" }));
    /// ```
    #[must_use]
    pub fn inputs(mut self, defaults: Value) -> Step {
        self.draft().inputs = defaults;
        self
    }

    /// Runs it only on workers that have these labels, all of them, in place of those that its flow names. For projects that
    /// work for a server.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let train = step("train", work).with(()).runs_on(["gpu"]);
    /// ```
    #[must_use]
    pub fn runs_on<'l>(mut self, labels: impl IntoIterator<Item = &'l str>) -> Step {
        self.draft().placement.labels.extend(labels.into_iter().map(str::to_owned));
        self
    }

    /// The treatment of its run when the program that has it is lost or killed: it is done again, three times at most. With `LossPolicy::End`
    /// it fails. A wait is for projects that work for a server.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::LossPolicy;
    ///
    /// let pay = step("pay", work).with(()).on_lost(LossPolicy::End);
    /// ```
    #[must_use]
    pub fn on_lost(mut self, policy: LossPolicy) -> Step {
        self.draft().placement.on_lost = Some(policy);
        self
    }

    /// Does it for each item of a list, which is the input of this name. Each time it is given all other inputs, the item as `item` and its
    /// number from 0 as `index`. Its output is the list of the outputs, under its id; one item that fails fails it, once the others have
    /// ended.
    ///
    /// ```
    /// use kelos::embed::{Context, step};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct File {
    ///     item: String,
    ///     index: usize,
    /// }
    ///
    /// async fn load(_: Context, file: File, _: ()) -> Result<usize, String> {
    ///     Ok(file.item.len() + file.index)
    /// }
    ///
    /// let load = step("load", load).with(()).for_each("files").at_a_time(4);
    /// ```
    #[must_use]
    pub fn for_each(mut self, input: &str) -> Step {
        self.draft().list.input = Some(input.to_owned());
        self
    }

    /// The most items of its list that run at the same time; without it there is no limit but those of places.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let load = step("load", work).with(()).for_each("files").at_a_time(4);
    /// ```
    #[must_use]
    pub fn at_a_time(mut self, items: u32) -> Step {
        self.draft().list.at_a_time = Some(items);
        self
    }

    /// A list that is longer fails the step: 10,000 items where nothing is said.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let load = step("load", work).with(()).for_each("files").at_most(100);
    /// ```
    #[must_use]
    pub fn at_most(mut self, items: u32) -> Step {
        self.draft().list.at_most = Some(items);
        self
    }

    /// The time for which it waits for its signal, after which it fails; without it the wait has no end.
    ///
    /// ```
    /// use kelos::embed::signal;
    ///
    /// let approval = signal::<bool>("approval").within(std::time::Duration::from_secs(3600));
    /// ```
    #[must_use]
    pub fn within(mut self, time: Duration) -> Step {
        self.draft().wait = Some(time);
        self
    }

    /// As an [error step](super::Part::or_else) it handles a failure at once, instead of when all steps have ended that were running then.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let (pay, alarm) = (step("pay", work).with(()), step("alarm", work).with(()));
    /// let part = pay.or_else(alarm.at_once());
    /// ```
    #[must_use]
    pub fn at_once(mut self) -> Step {
        self.draft().at_once = true;
        self
    }

    /// The retries of the step; [`Retry::never`] where nothing is said.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::Retry;
    /// use std::time::Duration;
    ///
    /// let pay = step("pay", work).with(()).retry(Retry::fixed(Duration::from_secs(30)).times(3));
    /// ```
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Step {
        self.draft().retry = retry;
        self
    }

    /// The longest time that an attempt may take.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let pay = step("pay", work).with(()).timeout(std::time::Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Step {
        self.draft().timeout = Some(timeout);
        self
    }

    /// The time that the function has to end once it is [asked to](super::super::Cancel), before it is dropped: ten seconds where nothing is
    /// said.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let pay = step("pay", work).with(()).grace(std::time::Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Step {
        self.draft().grace = grace;
        self
    }

    /// Takes something scarce for each run before it starts, as [`Job::on`](super::super::Job::on) does.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::Places;
    ///
    /// let gpus = Places::new("gpu", 4);
    /// let train = step("train", work).with(()).on((&gpus, 2));
    /// ```
    #[must_use]
    pub fn on(mut self, platform: impl Platform) -> Step {
        self.draft().platforms.extend(platform.uses());
        self
    }

    /// Lets its runs take parts of something scarce while they are live, by [`Context::on`].
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::Places;
    ///
    /// let train = step("train", work).with(()).may_use(Places::new("gpu", 4));
    /// ```
    #[must_use]
    pub fn may_use(mut self, platform: impl Platform) -> Step {
        self.draft().within.extend(platform.uses());
        self
    }

    /// Lets its function wait for a signal to the run, by [`Context::signal`]. `T` is what the program that signals has to say. A step that
    /// does nothing but wait is a [`signal`].
    ///
    /// ```
    /// use kelos::embed::{Context, SignalError, step};
    ///
    /// async fn pay(context: Context, _: (), _: ()) -> Result<String, SignalError> {
    ///     context.signal::<String>("approval").await
    /// }
    ///
    /// let pay = step("pay", pay).with(()).may_wait_for::<String>("approval");
    /// ```
    #[must_use]
    pub fn may_wait_for<T: DeserializeOwned + 'static>(mut self, signal: &str) -> Step {
        self.draft().signals.push(SignalDraft { name: signal.to_owned(), fits: type_of::<T>() });
        self
    }

    /// A description for people, in Markdown.
    ///
    /// ```
    /// # use kelos::embed::{Context, step};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let pay = step("pay", work).with(()).description("Asks the *bank*.");
    /// ```
    #[must_use]
    pub fn description(mut self, markdown: &str) -> Step {
        self.draft().description = Some(markdown.to_owned());
        self
    }
}
