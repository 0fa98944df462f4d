//! A job: metadata and an async function.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::Calendar;
use kelos_model::workers::LossPolicy;
use kelos_model::workflow::CatchUp;
use kelos_model::{BatchRule, Constraint, Deadline, Parameter, Trigger};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::draft::{JobDraft, Timing, Work, both};
use super::input::{AtTime, Input, ScheduledTime};
use super::period::{InPeriod, Period};
use super::platform::Platform;
use super::retry::Retry;
use super::scheduler::{OwnPlanner, Scheduler};
use super::typed::{AnyError, TypedFunction};

/// A job of an async function, which is called with a [`Context`], an [`Input`] and a state.
///
/// What the function returns is the output of its run: a struct as its fields, anything else under `output`, and `()` as nothing. An error
/// is a failed attempt, with its causes. So is a panic. A closure may be called many times, so it moves nothing into its future: what it
/// needs is its state, which [`Function::with`] gives it.
///
/// ```
/// use kelos::embed::{Context, ScheduledTime, job};
///
/// async fn count(context: Context, hour: ScheduledTime, table: &'static str) -> Result<u64, std::io::Error> {
///     context.log(format!("counting {table} at {}", hour.time));
///     Ok(3)
/// }
///
/// let hourly = job("count", count).with("clicks").cron("0 * * * *");
/// ```
#[track_caller]
pub fn job<I, S, O, E, F>(id: &str, function: impl Fn(Context, I, S) -> F + Send + Sync + 'static) -> Function<I, S, E>
where
    I: Input,
    O: Serialize,
    E: Into<AnyError> + 'static,
    F: Future<Output = Result<O, E>> + Send + 'static,
{
    Function(TypedFunction::new(id, Location::caller(), function))
}

/// A function that has no state yet.
///
/// ```
/// # use kelos::embed::{Context, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// let function = job("work", work);
/// let job = function.with(()).on_demand();
/// ```
pub struct Function<I, S, E>(TypedFunction<I, S, E>);

impl<I, S, E> fmt::Debug for Function<I, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl<I, S, E> Function<I, S, E>
where
    I: Input,
    S: Clone + Send + Sync + 'static,
    E: Into<AnyError> + 'static,
{
    /// No retry follows an error of which this is true.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn parse(_: Context, text: String, _: ()) -> Result<u8, std::num::ParseIntError> { text.parse() }
    /// let parse = job("parse", parse).unless(|_| true).with(()).on_demand();
    /// ```
    #[must_use]
    pub fn unless(self, is_final: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        Function(self.0.unless(is_final))
    }

    /// The job, with the state of which each run gets a clone: a client, a connection pool, `()`.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// use std::sync::Arc;
    ///
    /// async fn greet(_: Context, name: String, words: Arc<Vec<String>>) -> Result<String, String> {
    ///     Ok(format!("{} {name}", words.join(" ")))
    /// }
    ///
    /// let greet = job("greet", greet).with(Arc::new(vec!["good".to_owned(), "morning".to_owned()])).on_demand();
    /// ```
    #[must_use]
    pub fn with(self, state: S) -> Job<I> {
        let (id, place, body) = self.0.with_state(state);
        Job { draft: JobDraft::new(id, place, Work::Function(body)), input: PhantomData }
    }
}

/// A job of a project. Its slots are opened by a schedule, or by requests.
///
/// ```
/// # use kelos::embed::{Context, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{Job, Project};
///
/// let jobs: [Job<()>; 2] = ["first", "second"].map(|id| job(id, work).with(()).once());
/// let project = jobs.into_iter().fold(Project::new("two", "1.0"), Project::add);
/// assert_eq!(project.check()?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Job<I> {
    pub(super) draft: JobDraft,
    input: PhantomData<fn() -> I>,
}

impl<I> fmt::Debug for Job<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", &self.draft.id).finish_non_exhaustive()
    }
}

impl<I> Job<I> {
    /// A description for people, in Markdown.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).description("Loads the *orders* of a day.").on_demand();
    /// ```
    #[must_use]
    pub fn description(mut self, markdown: &str) -> Self {
        self.draft.about.description = Some(markdown.to_owned());
        self
    }

    /// Words to find it by, and to [pause](super::RunningProject::pause_tag) it by with others.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).tags(["nightly", "finance"]).on_demand();
    /// ```
    #[must_use]
    pub fn tags<'t>(mut self, tags: impl IntoIterator<Item = &'t str>) -> Self {
        self.draft.about.tags.extend(tags.into_iter().map(str::to_owned));
        self
    }

    /// The version with which its runs are marked, in place of that of the project: what it made is found by it, and can be
    /// [made again](crate::requests::BackfillRequest::made_by). Nothing runs again because it changes.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, job};
    /// # async fn count(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// let clicks = job("clicks", count).with(()).every(&Calendar::hourly()).version("2");
    /// ```
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.draft.version = Some(version.to_owned());
        self
    }

    /// An argument that its runs expect, which functions read by [`Context::argument`]. Without parameters they take any. At times of a
    /// schedule nobody gives one, so there it needs a default.
    ///
    /// ```
    /// use kelos::embed::{Context, Project, Rehearsal, job};
    /// use kelos::{Parameter, ParameterKind};
    ///
    /// async fn load(context: Context, _: (), _: ()) -> Result<u64, String> {
    ///     Ok(2 * context.argument::<u64>("rows")?)
    /// }
    ///
    /// let load = job("load", load).with(())
    ///     .parameter(Parameter::plain("rows", 1000.into()))
    ///     .parameter(Parameter::plain("table", "orders".into()).kind(ParameterKind::Choice { choices: vec!["orders".into(), "visits".into()] }))
    ///     .on_demand();
    /// let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("shop", "1.0").add(load))?;
    /// let slot = rehearsal.start("load", &())?;
    /// assert_eq!(rehearsal.output::<u64>("load", &slot.key.to_string())?, 2000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.draft.parameters.push(parameter);
        self
    }

    /// The retries of failed slots; see [`Retry::default`].
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use std::time::Duration;
    /// use kelos::embed::Retry;
    ///
    /// let job = job("work", work).with(()).retry(Retry::fixed(Duration::from_secs(60)).times(3)).on_demand();
    /// ```
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.draft.retry = retry;
        self
    }

    /// The deadline of its slots: one that has not succeeded by then is late, which is recorded. It counts from the time of a slot or the end of
    /// its period; for a job without times, from its opening.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// use std::time::Duration;
    /// use kelos::embed::{Dates, LocalDeadline, Zone};
    ///
    /// let load = job("load", work).with(()).deadline(Duration::from_secs(7200)).cron("0 3 * * *");
    /// let morning = LocalDeadline::new("07:30", Zone::parse("Europe/Berlin")?)?;
    /// let report = job("report", work).with(()).deadline(morning.business_days_later(1, &Dates::default())?).cron("0 3 * * *");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.draft.deadline = Some(deadline.into());
        self
    }

    /// The longest time that an attempt may take. It fails after that, and is tried again as after any other failure.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).timeout(std::time::Duration::from_secs(3600)).on_demand();
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.timeout = Some(timeout);
        self
    }

    /// The time that the function has to end once it is [asked to](super::Cancel), before it is dropped: ten seconds where nothing is said.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).grace(std::time::Duration::from_secs(60)).on_demand();
    /// ```
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.draft.grace = grace;
        self
    }

    /// Runs it only on workers that have these labels, all of them. For projects that work for a server by `Project::work_for`.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let train = job("train", work).with(()).runs_on(["gpu"]).on_demand();
    /// ```
    #[must_use]
    pub fn runs_on<'l>(mut self, labels: impl IntoIterator<Item = &'l str>) -> Self {
        self.draft.placement.labels.extend(labels.into_iter().map(str::to_owned));
        self
    }

    /// The treatment of its run when the program that has it is lost or killed: done again up to three times, or with `LossPolicy::End` failed.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::LossPolicy;
    ///
    /// let pay = job("pay", work).with(()).on_lost(LossPolicy::End).on_demand();
    /// ```
    #[must_use]
    pub fn on_lost(mut self, policy: LossPolicy) -> Self {
        self.draft.placement.on_lost = Some(policy);
        self
    }

    /// The most slots that run at the same time, oldest first; without it there is no limit but those of places.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).at_a_time(1).on_demand();
    /// ```
    #[must_use]
    pub fn at_a_time(mut self, slots: u32) -> Self {
        self.draft.at_a_time = Some(slots);
        self
    }

    /// Takes something scarce for each run before it starts: places that it holds, tokens of a rate that it spends. A run gets all that it
    /// needs or none.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::embed::Places;
    ///
    /// let (gpus, licences) = (Places::new("gpu", 4), Places::new("licence", 1));
    /// let job = job("work", work).with(()).on((&gpus, 2)).on(&licences).on_demand();
    /// ```
    #[must_use]
    pub fn on(mut self, platform: impl Platform) -> Self {
        self.draft.platforms.extend(platform.uses());
        self
    }

    /// Lets its runs take parts of something scarce while they are live, by [`Context::on`]. How many they take they say then.
    ///
    /// ```
    /// # use kelos::embed::{Context, PlatformError, Places, job};
    /// async fn train(context: Context, _: (), gpus: Places) -> Result<(), PlatformError> {
    ///     let _gpu = context.on(&gpus).await?;
    ///     context.log("training");
    ///     Ok(())
    /// }
    ///
    /// let gpus = Places::new("gpu", 4);
    /// let train = job("train", train).with(gpus.clone()).may_use(&gpus).on_demand();
    /// ```
    #[must_use]
    pub fn may_use(mut self, platform: impl Platform) -> Self {
        self.draft.may_use(&platform);
        self
    }

    /// A condition for each slot, such as the success of another workflow's slot of the same time. All conditions must be met.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn load(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::Trigger;
    ///
    /// let load = job("load", load).with(()).cron("0 6 * * *").when(Trigger::Success { workflow: "fetch".parse().unwrap() });
    /// ```
    #[must_use]
    pub fn when(mut self, trigger: Trigger) -> Self {
        self.draft.trigger = both(std::mem::replace(&mut self.draft.trigger, Trigger::Always), trigger);
        self
    }

    /// Waits for the success of another workflow's slot of the same time, and is given what that [gave](super::AtTime). The other one is a
    /// job, or the id of a workflow.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// let extract = job("extract", work).with(()).cron("0 6 * * *");
    /// let load = job("load", work).with(()).cron("0 6 * * *").after(&extract);
    /// ```
    #[must_use]
    pub fn after(mut self, upstream: impl JobId) -> Self {
        self.draft.after.push(upstream.id().to_owned());
        self
    }

    /// Waits for all periods of another workflow that intersect its own: a day for its 23, 24 or 25 hours, an hour for the day that it lies
    /// in. The other one is a job, or the id of a workflow.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, Zone, job};
    /// # async fn count(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// let clicks = job("clicks", count).with(()).every(&Calendar::hourly());
    /// let visits = job("visits", count).with(()).every(&Calendar::daily(Zone::utc())).covers(&clicks);
    /// ```
    #[must_use]
    pub fn covers(self, upstream: impl JobId) -> Self {
        self.covers_from(upstream, SignedDuration::ZERO, SignedDuration::ZERO)
    }

    /// The same with the start of its own period shifted by `from`, and the end by `to`. Of the job itself only earlier periods count.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, Zone, job};
    /// # async fn count(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// use jiff::SignedDuration;
    ///
    /// // The hours of the day and the last one before it; and no day before all of the week before have succeeded.
    /// let visits = job("visits", count).with(()).every(&Calendar::daily(Zone::utc()))
    ///     .covers_from("clicks", SignedDuration::from_hours(-1), SignedDuration::ZERO)
    ///     .covers_from("visits", SignedDuration::from_hours(-7 * 24), SignedDuration::ZERO);
    /// ```
    #[must_use]
    pub fn covers_from(mut self, upstream: impl JobId, from: SignedDuration, to: SignedDuration) -> Self {
        self.draft.covers.push((upstream.id().to_owned(), from.as_secs(), to.as_secs()));
        self
    }

    /// A constraint for slots whose conditions are met: a time window, a gap after the last run.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// let nightly = job("work", work).with(()).cron("0 * * * *").constraint("window(22:00-06:00 @ Europe/Berlin, wait)".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn constraint(mut self, constraint: Constraint) -> Self {
        self.draft.constraints.push(constraint);
        self
    }
}

impl<I: DeserializeOwned> Job<I> {
    /// A slot for each [start](super::RunningProject::start), from this program, the command line or a page.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// async fn greet(_: Context, name: String, _: ()) -> Result<String, String> {
    ///     Ok(format!("hello {name}"))
    /// }
    ///
    /// let greet = job("greet", greet).with(()).on_demand();
    /// ```
    #[must_use]
    pub fn on_demand(mut self) -> Self {
        self.draft.time(Timing::OnDemand);
        self
    }
}

impl<I: Serialize + DeserializeOwned + Send + 'static> Job<I> {
    /// The slots that a [scheduler](Scheduler) of your own plans.
    ///
    /// ```
    /// use jiff::Timestamp;
    /// use kelos::embed::{Context, Plan, PlannedSlots, Scheduler, job};
    ///
    /// /// A slot for each line of a text that has none yet.
    /// struct Lines(&'static str);
    ///
    /// impl Scheduler for Lines {
    ///     type Context = String;
    ///
    ///     fn plan(&mut self, _: Timestamp, slots: &PlannedSlots<String>) -> Plan<String> {
    ///         self.0.lines().skip(slots.len()).fold(Plan::none(), |plan, line| plan.start(line.to_owned()))
    ///     }
    /// }
    ///
    /// async fn work(_: Context, line: String, _: ()) -> Result<String, String> {
    ///     Ok(line.to_uppercase())
    /// }
    ///
    /// let job = job("work", work).with(()).planned_by(Lines("one\ntwo"));
    /// ```
    #[must_use]
    pub fn planned_by(mut self, scheduler: impl Scheduler<Context = I>) -> Self {
        self.draft.time(Timing::Own(OwnPlanner::new(scheduler)));
        self
    }
}

impl Job<()> {
    /// One slot, as soon as the project runs, and none again in this store.
    ///
    /// ```
    /// # use kelos::embed::{Context, job};
    /// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).once();
    /// ```
    #[must_use]
    pub fn once(mut self) -> Self {
        self.draft.time(Timing::Once);
        self
    }
}

impl<I: ByCron> Job<I> {
    /// A slot at each time of a cron expression, in UTC where no [zone](Job::zone) is given. Five fields are those of a crontab, six and
    /// seven those of Quartz.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// let nightly = job("nightly", work).with(()).cron("30 2 * * *");
    /// let each_ten_seconds = job("often", work).with(()).cron("0/10 * * * * ?");
    /// ```
    #[must_use]
    pub fn cron(mut self, expression: &str) -> Self {
        self.draft.time(Timing::Cron(expression.to_owned()));
        self
    }

    /// The time zone of the expression, such as `Europe/Paris`.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).cron("0 6 * * mon-fri").zone("Europe/Paris");
    /// ```
    #[must_use]
    pub fn zone(mut self, name: &str) -> Self {
        self.draft.zone = Some(name.to_owned());
        self
    }
}

impl<I: ByPeriods> Job<I> {
    /// A slot for each period of a calendar, which is due once the period has ended.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, job};
    /// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).every(&Calendar::hourly());
    /// ```
    #[must_use]
    pub fn every(mut self, calendar: &Calendar) -> Self {
        self.draft.time(Timing::Periods(calendar.clone()));
        self
    }
}

impl<I: AtTimes> Job<I> {
    /// The treatment of times that passed while nothing was scheduling: the latest of them counts where nothing is said.
    ///
    /// ```
    /// # use kelos::embed::{Context, ScheduledTime, job};
    /// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
    /// use kelos::CatchUp;
    ///
    /// let job = job("work", work).with(()).cron("0 6 * * *").catch_up(CatchUp::All);
    /// ```
    #[must_use]
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.draft.catch_up = policy;
        self
    }

    /// Runs adjacent slots together, up to `size` of them: one run is about all of them, and its end is theirs. Where fewer are ready, they
    /// wait for others as long as `delay` allows; with no delay the run takes what there is.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use kelos::embed::{Calendar, Context, Period, Project, Rehearsal, job};
    ///
    /// async fn load(_: Context, hours: Period, _: ()) -> Result<usize, String> {
    ///     Ok(hours.periods().count())
    /// }
    ///
    /// // No hour is later than six hours after its end.
    /// let load = job("load", load).with(()).every(&Calendar::hourly()).since("2026-03-27T00:00Z".parse()?)
    ///     .in_batches(6, Duration::from_secs(6 * 3600));
    /// let mut rehearsal = Rehearsal::at("2026-03-27T00:00Z", Project::new("web", "1.0").add(load))?;
    /// rehearsal.run_until("2026-03-27T07:00Z")?;
    /// assert_eq!(rehearsal.output::<usize>("load", "2026-03-27T05:00Z")?, 6);
    /// assert_eq!(rehearsal.started().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn in_batches(mut self, size: u32, delay: Duration) -> Self {
        let delay_millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.draft.batch = Some(BatchRule { size, delay_millis });
        self
    }

    /// No slot before this moment is planned. Of periods the first is the first that begins then or later.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, job};
    /// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// let job = job("work", work).with(()).every(&Calendar::hourly()).since("2026-01-01T00:00:00Z".parse()?);
    /// # Ok::<(), jiff::Error>(())
    /// ```
    #[must_use]
    pub fn since(mut self, moment: Timestamp) -> Self {
        self.draft.start = Some(moment);
        self
    }

    /// No slot from this moment on is planned. Of periods the last is the last that ends by then.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, job};
    /// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// let year = |text: &str| text.parse::<jiff::Timestamp>();
    /// let job = job("work", work).with(()).every(&Calendar::hourly()).since(year("2026-01-01T00:00:00Z")?).until(year("2027-01-01T00:00:00Z")?);
    /// # Ok::<(), jiff::Error>(())
    /// ```
    #[must_use]
    pub fn until(mut self, moment: Timestamp) -> Self {
        self.draft.end = Some(moment);
        self
    }
}

/// A job, or the id of a workflow.
///
/// ```
/// # use kelos::embed::{Calendar, Context, Period, job};
/// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
/// let clicks = job("clicks", work).with(()).every(&Calendar::hourly());
/// let by_job = job("visits", work).with(()).every(&Calendar::hourly()).covers(&clicks);
/// let by_id = job("visits", work).with(()).every(&Calendar::hourly()).covers("clicks");
/// ```
pub trait JobId {
    /// The id.
    fn id(&self) -> &str;
}

impl<I> JobId for &Job<I> {
    fn id(&self) -> &str {
        &self.draft.id
    }
}

impl JobId for &str {
    fn id(&self) -> &str {
        self
    }
}

/// The inputs of jobs whose slots have times.
///
/// ```
/// # use kelos::embed::{Calendar, Context, Period, job};
/// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{AtTimes, Job};
///
/// fn from_this_year_on<I: AtTimes>(job: Job<I>) -> Job<I> {
///     job.since("2026-01-01T00:00:00Z".parse().expect("a moment"))
/// }
///
/// let job = from_this_year_on(job("work", work).with(()).every(&Calendar::hourly()));
/// ```
pub trait AtTimes: Input {}

impl AtTimes for ScheduledTime {}
impl AtTimes for Period {}
impl<T: Input> AtTimes for AtTime<T> {}
impl<T: Input> AtTimes for InPeriod<T> {}

/// The inputs of jobs whose slots are at the times of a cron expression.
///
/// ```
/// # use kelos::embed::{Context, ScheduledTime, job};
/// # async fn work(_: Context, _: ScheduledTime, _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{ByCron, Job};
///
/// fn nightly<I: ByCron>(job: Job<I>) -> Job<I> {
///     job.cron("30 2 * * *").zone("Europe/Paris")
/// }
///
/// let job = nightly(job("work", work).with(()));
/// ```
#[diagnostic::on_unimplemented(
    message = "a job with a cron expression takes a `ScheduledTime`, and this one takes `{Self}`",
    note = "take `ScheduledTime`, or `AtTime<T>` for what other jobs gave besides; a job about periods has a calendar: `.every(&calendar)`"
)]
pub trait ByCron: AtTimes {}

impl ByCron for ScheduledTime {}
impl<T: Input> ByCron for AtTime<T> {}

/// The inputs of jobs whose slots are the periods of a calendar.
///
/// ```
/// # use kelos::embed::{Calendar, Context, Period, job};
/// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{ByPeriods, Job};
///
/// fn hourly<I: ByPeriods>(job: Job<I>) -> Job<I> {
///     job.every(&Calendar::hourly())
/// }
///
/// let job = hourly(job("work", work).with(()));
/// ```
#[diagnostic::on_unimplemented(
    message = "a job with a calendar takes a `Period`, and this one takes `{Self}`",
    note = "take `Period`, or `InPeriod<T>` for what other jobs gave besides; a job at times has a cron expression: `.cron(\"0 6 * * *\")`"
)]
pub trait ByPeriods: AtTimes {}

impl ByPeriods for Period {}
impl<T: Input> ByPeriods for InPeriod<T> {}
