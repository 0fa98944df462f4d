//! A job: metadata and an async function.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::{Calendar, Cron, CronSchedule, Fold, Gap, Schedule, Zone};
use kelos_model::workflow::{About, CatchUp, Keys, PoolUse, Program, ProjectVersion, Provenance, Source};
use kelos_model::{Constraint, FailureCode, Trigger, Workflow, WorkflowId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::context::Context;
use super::function::{Body, BodyFuture, FUNCTION, Failure};
use super::input::{Input, ScheduledTime, SlotInput};
use super::mistakes::Mistake;
use super::output;
use super::period::Period;
use super::platform::PlatformUse;
use super::retry::Retry;
use super::scheduler::{OwnPlanner, Scheduler};

/// The time that a function has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Errors of functions, as those of `std` and most libraries are.
type AnyError = Box<dyn Error + Send + Sync>;

type Call<I, S, E> =
    Arc<dyn Fn(Context, I, S) -> std::pin::Pin<Box<dyn Future<Output = Result<Output, E>> + Send>> + Send + Sync>;
type Output = Result<Option<Map<String, Value>>, String>;
type IsFinal<E> = Arc<dyn Fn(&E) -> bool + Send + Sync>;

/// A job of an async function, which is called with a [`Context`], an [`Input`] and a state.
///
/// What the function returns is the output of its run: a struct as its fields, anything else under `output`, and `()` as nothing. An error
/// is a failed attempt, with its causes. So is a panic.
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
    F: Future<Output = Result<O, E>> + Send + 'static,
{
    let call: Call<I, S, E> = Arc::new(move |context, input, state| {
        let running = function(context, input, state);
        Box::pin(async move { running.await.map(|given| output::of(&given)) })
    });
    Function { id: id.to_owned(), place: Location::caller(), call, is_final: None }
}

/// A function that has no state yet.
pub struct Function<I, S, E> {
    id: String,
    place: &'static Location<'static>,
    call: Call<I, S, E>,
    is_final: Option<IsFinal<E>>,
}

impl<I, S, E> fmt::Debug for Function<I, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("id", &self.id).finish_non_exhaustive()
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
        Function { is_final: Some(Arc::new(is_final)), ..self }
    }

    /// The job, with the state of which each run gets a clone: a client, a connection pool, `()`.
    #[must_use]
    pub fn with(self, state: S) -> Job<I> {
        let Function { id, place, call, is_final } = self;
        let body: Body = Arc::new(move |context, given: &SlotInput<'_>| -> BodyFuture {
            let input = match I::read(given) {
                Ok(input) => input,
                Err(reason) => {
                    let failure = Failure::last(format!("its input is unsound: {reason}"));
                    return Box::pin(std::future::ready(Err(failure)));
                }
            };
            let running = call(context, input, state.clone());
            let is_final = is_final.clone();
            Box::pin(async move {
                match running.await {
                    Ok(Ok(output)) => Ok(output),
                    Ok(Err(reason)) => Err(Failure::last(reason)),
                    Err(error) => {
                        let code = is_final.is_some_and(|is| is(&error)).then_some(FailureCode::FINAL);
                        Err(Failure { reason: causes(&*error.into()), code })
                    }
                }
            })
        });
        Job { draft: JobDraft::new(id, place, body), input: PhantomData }
    }
}

/// An error with its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Many errors repeat their cause.
        if !words.ends_with(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}

/// The times of a job's slots.
#[derive(Debug, Clone)]
enum Timing {
    Unsaid,
    OnDemand,
    Once,
    Cron(String),
    Periods(Calendar),
    Own(OwnPlanner),
}

/// A job without the type of its input.
#[derive(Clone)]
pub(super) struct JobDraft {
    pub(super) id: String,
    pub(super) place: &'static Location<'static>,
    pub(super) body: Body,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    timing: Timing,
    zone: Option<String>,
    catch_up: CatchUp,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    retry: Retry,
    at_a_time: Option<u32>,
    trigger: Trigger,
    /// The workflows whose periods it waits for, with the seconds by which its own is shifted at both ends.
    covers: Vec<(String, i64, i64)>,
    constraints: Vec<Constraint>,
    platforms: Vec<PlatformUse>,
    version: Option<String>,
    about: About,
}

/// A job of a project. Its slots are opened by a schedule, or by requests.
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
    #[must_use]
    pub fn description(mut self, markdown: &str) -> Self {
        self.draft.about.description = Some(markdown.to_owned());
        self
    }

    /// Words to find it by, and to [pause](super::RunningProject::pause_tag) it by with others.
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

    /// The retries of failed slots; see [`Retry::default`].
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.draft.retry = retry;
        self
    }

    /// The longest time that an attempt may take. It fails after that, and is tried again as after any other failure.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.timeout = Some(timeout);
        self
    }

    /// The time that the function has to end once it is [asked to](super::Cancel), before it is dropped: ten seconds where nothing is said.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.draft.grace = grace;
        self
    }

    /// The most slots that run at the same time, oldest first; without it there is no limit but those of places.
    #[must_use]
    pub fn at_a_time(mut self, slots: u32) -> Self {
        self.draft.at_a_time = Some(slots);
        self
    }

    /// Takes something scarce for each run before it starts: places that it holds, tokens of a rate that it spends. A run gets all that it
    /// needs or none.
    #[must_use]
    pub fn on(mut self, platform: impl Into<PlatformUse>) -> Self {
        self.draft.platforms.push(platform.into());
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
    #[must_use]
    pub fn constraint(mut self, constraint: Constraint) -> Self {
        self.draft.constraints.push(constraint);
        self
    }
}

impl<I: DeserializeOwned> Job<I> {
    /// A slot for each [start](super::RunningProject::start), from this program, the command line or a page.
    #[must_use]
    pub fn on_demand(mut self) -> Self {
        self.draft.timing = Timing::OnDemand;
        self
    }
}

impl<I: Serialize + DeserializeOwned + Send + 'static> Job<I> {
    /// The slots that a [scheduler](Scheduler) of your own plans.
    #[must_use]
    pub fn planned_by(mut self, scheduler: impl Scheduler<Context = I>) -> Self {
        self.draft.timing = Timing::Own(OwnPlanner::new(scheduler));
        self
    }
}

impl Job<()> {
    /// One slot, as soon as the project runs, and none again in this store.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.draft.timing = Timing::Once;
        self
    }
}

impl Job<ScheduledTime> {
    /// A slot at each time of a cron expression, in UTC where no [zone](Job::zone) is given. Five fields are those of a crontab, six and
    /// seven those of Quartz.
    #[must_use]
    pub fn cron(mut self, expression: &str) -> Self {
        self.draft.timing = Timing::Cron(expression.to_owned());
        self
    }

    /// The time zone of the expression, such as `Europe/Paris`.
    #[must_use]
    pub fn zone(mut self, name: &str) -> Self {
        self.draft.zone = Some(name.to_owned());
        self
    }
}

impl Job<Period> {
    /// A slot for each period of a calendar, which is due once the period has ended.
    #[must_use]
    pub fn every(mut self, calendar: &Calendar) -> Self {
        self.draft.timing = Timing::Periods(calendar.clone());
        self
    }
}

impl<I: AtTimes> Job<I> {
    /// The treatment of times that passed while nothing was scheduling: the latest of them counts where nothing is said.
    #[must_use]
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.draft.catch_up = policy;
        self
    }

    /// No slot before this moment is planned. Of periods the first is the first that begins then or later.
    #[must_use]
    pub fn since(mut self, moment: Timestamp) -> Self {
        self.draft.start = Some(moment);
        self
    }

    /// No slot from this moment on is planned. Of periods the last is the last that ends by then.
    #[must_use]
    pub fn until(mut self, moment: Timestamp) -> Self {
        self.draft.end = Some(moment);
        self
    }
}

/// A job, or the id of a workflow.
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
pub trait AtTimes: Input {}

impl AtTimes for ScheduledTime {}
impl AtTimes for Period {}

impl JobDraft {
    fn new(id: String, place: &'static Location<'static>, body: Body) -> JobDraft {
        JobDraft {
            id,
            place,
            body,
            timeout: None,
            grace: GRACE,
            timing: Timing::Unsaid,
            zone: None,
            catch_up: CatchUp::Latest,
            start: None,
            end: None,
            retry: Retry::default(),
            at_a_time: None,
            trigger: Trigger::Always,
            covers: Vec::new(),
            constraints: Vec::new(),
            platforms: Vec::new(),
            version: None,
            about: About::default(),
        }
    }

    /// Whether it is to be started once.
    pub(super) fn is_once(&self) -> bool {
        matches!(self.timing, Timing::Once)
    }

    /// The scheduler of one's own that plans its slots.
    pub(super) fn planner(&self) -> Option<&OwnPlanner> {
        match &self.timing {
            Timing::Own(planner) => Some(planner),
            _ => None,
        }
    }

    /// The definition, or its mistakes.
    pub(super) fn workflow(&self, project: &str, version: Option<&ProjectVersion>) -> Result<Workflow, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let id =
            WorkflowId::new(&self.id).map_err(|error| vec![self.mistake(format!("its id is refused: {error}"))])?;
        let keys = self.keys().map_err(|mistake| mistakes.push(mistake)).ok();
        let pools = self.pools(&mut mistakes);
        let trigger = self.whole_trigger(&mut mistakes);
        let own_version = self.own_version(&mut mistakes);
        if self.at_a_time == Some(0) {
            mistakes
                .push(self.mistake("`at_a_time(0)` lets no slot run").hint("pause the job to keep it from running"));
        }
        if let (Some(start), Some(end)) = (self.start, self.end)
            && start >= end
        {
            mistakes.push(self.mistake(format!("its start {start} is not before its end {end}, so it has no slots")));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            mistakes.push(self.mistake("its timeout is zero, so every attempt fails"));
        }
        let Some(keys) = keys.filter(|_| mistakes.is_empty()) else { return Err(mistakes) };
        let catch_up = keys.schedule().map(|_| self.catch_up);
        let job = kelos_model::Job::new(FUNCTION, Map::new());
        let line = self.place.line();
        Ok(Workflow {
            project: project.to_owned(),
            source: Source { provenance: Provenance::Code, file: self.place.file().to_owned(), line },
            trigger,
            constraints: self.constraints.clone(),
            concurrency: self.at_a_time,
            pools,
            retry: self.retry.policy(),
            catch_up,
            version: own_version.or_else(|| version.cloned()),
            start_time: self.start,
            end_time: self.end,
            about: self.about.clone(),
            ..Workflow::keyed(id, keys, job)
        })
    }

    /// The version of its own.
    fn own_version(&self, mistakes: &mut Vec<Mistake>) -> Option<ProjectVersion> {
        let version = self.version.as_deref().map(ProjectVersion::new).transpose();
        version.unwrap_or_else(|error| {
            mistakes.push(self.mistake(format!("its version is refused: {error}")));
            None
        })
    }

    fn keys(&self) -> Result<Keys, Mistake> {
        match &self.timing {
            Timing::Unsaid => Err(self.mistake("nothing says when it runs").hint(
                "end its definition with `.cron(\"0 6 * * *\")`, `.every(&calendar)`, `.on_demand()`, `.once()` or `.planned_by(scheduler)`",
            )),
            Timing::OnDemand | Timing::Once | Timing::Own(_) => {
                Ok(Keys::Requests(Box::new(Program { name: self.id.clone(), kind: None })))
            }
            Timing::Periods(calendar) => Ok(Keys::Schedule(Schedule::Calendar(calendar.clone()))),
            Timing::Cron(expression) => {
                let cron = Cron::parse(expression).map_err(|error| {
                    self.mistake(format!("its cron expression \"{expression}\" is refused: {error}"))
                })?;
                let zone = self.zone.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::parse);
                let zone = zone.map_err(|error| self.mistake(format!("its zone is refused: {error}")))?;
                Ok(Keys::Schedule(Schedule::Cron(CronSchedule::new(cron, zone, Gap::default(), Fold::default()))))
            }
        }
    }

    /// Its conditions, and the periods that it waits for.
    fn whole_trigger(&self, mistakes: &mut Vec<Mistake>) -> Trigger {
        let mut whole = self.trigger.clone();
        for (id, from, to) in &self.covers {
            match WorkflowId::new(id) {
                Ok(workflow) => whole = both(whole, Trigger::Covers { workflow, from: *from, to: *to }),
                Err(error) => mistakes.push(self.mistake(format!("the id of what it covers is refused: {error}"))),
            }
        }
        whole
    }

    /// Its pools, ascending, each once.
    fn pools(&self, mistakes: &mut Vec<Mistake>) -> Vec<PoolUse> {
        let mut pools: Vec<PoolUse> = Vec::new();
        for one in &self.platforms {
            match one.pool() {
                Ok(pool) => match pools.iter_mut().find(|other| other.pool == pool.pool) {
                    Some(other) => other.permits = other.permits.saturating_add(pool.permits),
                    None => pools.push(pool),
                },
                Err(error) => mistakes.push(self.mistake(format!("the name of what is scarce is refused: {error}"))),
            }
        }
        let flaws = pools.iter().filter_map(PoolUse::flaw);
        mistakes.extend(flaws.map(|words| self.mistake(format!("each run {words}"))));
        pools.sort_by(|a, b| a.pool.cmp(&b.pool));
        pools
    }

    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        let message = message.into();
        Mistake::new(&self.id, self.place, format!("job \"{}\": {message}", self.id))
    }
}

/// A trigger that is met when both are.
fn both(before: Trigger, trigger: Trigger) -> Trigger {
    match before {
        Trigger::Always => trigger,
        Trigger::And { mut triggers } => {
            triggers.push(trigger);
            Trigger::And { triggers }
        }
        before => Trigger::And { triggers: vec![before, trigger] },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("read the order")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct Inner;

    #[test]
    fn an_error_keeps_its_causes() {
        assert_eq!(causes(&Outer(Inner)), "read the order: the disk is full");
        assert_eq!(causes(&*AnyError::from("plain")), "plain");
    }
}
