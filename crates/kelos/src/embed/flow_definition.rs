//! A flow of a project: a part under a name, and when it runs.

use std::fmt;
use std::panic::Location;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::Calendar;
use kelos_model::workers::LossPolicy;
use kelos_model::workflow::CatchUp;
use kelos_model::{Constraint, Deadline, Parameter, Trigger};

use super::draft::{JobDraft, Timing, Work, both};
use super::job::JobId;
use super::retry::Retry;
use super::steps::Part;

/// A part as a flow of a project. It is started by requests where nothing else is said.
///
/// ```
/// # use kelos::embed::{Context, step};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{Project, flow};
///
/// let (check, pay, ship) = (step("check", work).with(()), step("pay", work).with(()), step("ship", work).with(()));
/// let project = Project::new("shop", "1.0").add(flow("purchase", check >> pay >> ship));
/// assert!(project.check().is_ok());
/// ```
#[must_use]
#[track_caller]
pub fn flow(id: &str, part: impl Into<Part>) -> Flow {
    let draft = JobDraft::new(id.to_owned(), Location::caller(), Work::Flow(part.into()));
    Flow { draft: JobDraft { timing: Timing::OnDemand, retry: Retry::never(), ..draft } }
}

/// A flow of a project. Its runs are slots as those of jobs are: with times, conditions, constraints and backfills, in the same graph and on
/// the same pages.
///
/// ```
/// # use kelos::embed::{Context, step};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{Calendar, Project, Zone, flow};
///
/// let load = step("fetch", work).with(()) >> step("load", work).with(());
/// let days = Calendar::daily(Zone::parse("Europe/Paris")?);
/// let nightly = flow("nightly", load).every(&days).description("Loads the *orders* of a day.").tags(["finance"]);
/// let project = Project::new("shop", "1.0").add(nightly);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Flow {
    pub(super) draft: JobDraft,
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("id", &self.draft.id).finish_non_exhaustive()
    }
}

impl JobId for &Flow {
    fn id(&self) -> &str {
        &self.draft.id
    }
}

impl Flow {
    /// A description for people, in Markdown.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let purchase = flow("purchase", Part::default()).description("From the *order* to the parcel.");
    /// ```
    #[must_use]
    pub fn description(mut self, markdown: &str) -> Flow {
        self.draft.about.description = Some(markdown.to_owned());
        self
    }

    /// Words to find it by, and to [pause](super::RunningProject::pause_tag) it by with others.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let purchase = flow("purchase", Part::default()).tags(["orders", "finance"]);
    /// ```
    #[must_use]
    pub fn tags<'t>(mut self, tags: impl IntoIterator<Item = &'t str>) -> Flow {
        self.draft.about.tags.extend(tags.into_iter().map(str::to_owned));
        self
    }

    /// The version with which its runs are marked, in place of that of the project. A live run follows the definition with which it began.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let purchase = flow("purchase", Part::default()).version("2");
    /// ```
    #[must_use]
    pub fn version(mut self, version: &str) -> Flow {
        self.draft.version = Some(version.to_owned());
        self
    }

    /// An argument that its runs expect: a field of their input. Without parameters they take any.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::Parameter;
    ///
    /// let purchase = flow("purchase", Part::default()).parameter(Parameter::plain("items", 1.into()));
    /// ```
    #[must_use]
    pub fn parameter(mut self, parameter: Parameter) -> Flow {
        self.draft.parameters.push(parameter);
        self
    }

    /// Runs its steps only on workers that have these labels, all of them, but for steps that name others. For projects that
    /// work for a server by `Project::work_for`.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let training = flow("training", Part::default()).runs_on(["gpu"]);
    /// ```
    #[must_use]
    pub fn runs_on<'l>(mut self, labels: impl IntoIterator<Item = &'l str>) -> Flow {
        self.draft.placement.labels.extend(labels.into_iter().map(str::to_owned));
        self
    }

    /// The treatment of the runs of its steps when the program that has one is lost or killed: they are done again, three times at most.
    /// With `LossPolicy::End` the step fails. A wait is for projects that work for a server by `Project::work_for`.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::embed::LossPolicy;
    ///
    /// let purchase = flow("purchase", Part::default()).on_lost(LossPolicy::End);
    /// ```
    #[must_use]
    pub fn on_lost(mut self, policy: LossPolicy) -> Flow {
        self.draft.placement.on_lost = Some(policy);
        self
    }

    /// The retries of a run that failed, each of which resumes it: the failed steps are done again, with what the others gave. Never where nothing is
    /// said; most often the retries of [steps](super::Step::retry) are meant.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::embed::Retry;
    /// use std::time::Duration;
    ///
    /// let purchase = flow("purchase", Part::default()).retry(Retry::fixed(Duration::from_secs(3600)).times(3));
    /// ```
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Flow {
        self.draft.retry = retry;
        self
    }

    /// The deadline of its runs: one that has not succeeded by then is late, which is recorded. It counts from the time of a run, and of one without
    /// a time from its opening.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use std::time::Duration;
    ///
    /// let purchase = flow("purchase", Part::default()).deadline(Duration::from_secs(7200));
    /// ```
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Flow {
        self.draft.deadline = Some(deadline.into());
        self
    }

    /// The most runs at the same time, oldest first; without it there is no limit but those of the places that its steps take.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let purchase = flow("purchase", Part::default()).at_a_time(10);
    /// ```
    #[must_use]
    pub fn at_a_time(mut self, runs: u32) -> Flow {
        self.draft.at_a_time = Some(runs);
        self
    }

    /// A condition for each run, such as the success of another workflow's slot of the same time. All conditions must be met.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::Trigger;
    ///
    /// let nightly = flow("nightly", Part::default()).cron("0 6 * * *").when(Trigger::Success { workflow: "fetch".parse()? });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn when(mut self, trigger: Trigger) -> Flow {
        self.draft.trigger = both(std::mem::replace(&mut self.draft.trigger, Trigger::Always), trigger);
        self
    }

    /// Waits for the success of another workflow's slot of the same time, as [`Job::after`](super::Job::after) does. What that gave are
    /// arguments of the run.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::embed::Calendar;
    ///
    /// let clicks = flow("clicks", Part::default()).every(&Calendar::hourly());
    /// let visits = flow("visits", Part::default()).every(&Calendar::hourly()).after(&clicks);
    /// ```
    #[must_use]
    pub fn after(mut self, upstream: impl JobId) -> Flow {
        self.draft.after.push(upstream.id().to_owned());
        self
    }

    /// Waits for all periods of another workflow that intersect its own, as [`Job::covers`](super::Job::covers) does.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::embed::{Calendar, Zone};
    ///
    /// let hourly = flow("clicks", Part::default()).every(&Calendar::hourly());
    /// let daily = flow("visits", Part::default()).every(&Calendar::daily(Zone::utc())).covers(&hourly);
    /// ```
    #[must_use]
    pub fn covers(self, upstream: impl JobId) -> Flow {
        self.covers_from(upstream, SignedDuration::ZERO, SignedDuration::ZERO)
    }

    /// The same for an interval that begins and ends a duration after its own.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use jiff::SignedDuration;
    /// use kelos::embed::{Calendar, Zone};
    ///
    /// let daily = flow("visits", Part::default()).every(&Calendar::daily(Zone::utc()));
    /// let with_hour_before = daily.covers_from("clicks", SignedDuration::from_hours(-1), SignedDuration::ZERO);
    /// ```
    #[must_use]
    pub fn covers_from(mut self, upstream: impl JobId, from: SignedDuration, to: SignedDuration) -> Flow {
        self.draft.covers.push((upstream.id().to_owned(), from.as_secs(), to.as_secs()));
        self
    }

    /// A check that follows once the conditions are met. All must hold.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let purchase = flow("purchase", Part::default()).constraint("window(22:00-06:00 @ Europe/Berlin, wait)".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn constraint(mut self, constraint: Constraint) -> Flow {
        self.draft.constraints.push(constraint);
        self
    }

    /// A run for each time of a cron expression, in UTC or another [zone](Flow::zone).
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let nightly = flow("nightly", Part::default()).cron("0 6 * * mon-fri").zone("Europe/Paris");
    /// ```
    #[must_use]
    pub fn cron(mut self, expression: &str) -> Flow {
        self.draft.time(Timing::Cron(expression.to_owned()));
        self
    }

    /// The zone of its cron expression.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let nightly = flow("nightly", Part::default()).cron("0 6 * * *").zone("America/New_York");
    /// ```
    #[must_use]
    pub fn zone(mut self, name: &str) -> Flow {
        self.draft.zone = Some(name.to_owned());
        self
    }

    /// A run for each period of a calendar, once it has ended. Steps may take the [`Period`](super::Period).
    ///
    /// ```
    /// use kelos::embed::{Calendar, Context, Period, flow, step};
    ///
    /// async fn load(context: Context, hour: Period, _: ()) -> Result<(), String> {
    ///     context.log(format!("loading {hour}"));
    ///     Ok(())
    /// }
    ///
    /// let clicks = flow("clicks", step("load", load).with(())).every(&Calendar::hourly());
    /// ```
    #[must_use]
    pub fn every(mut self, calendar: &Calendar) -> Flow {
        self.draft.time(Timing::Periods(calendar.clone()));
        self
    }

    /// The times that count of those that passed while no program ran: the latest where nothing is said.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// use kelos::CatchUp;
    ///
    /// let nightly = flow("nightly", Part::default()).cron("0 6 * * *").catch_up(CatchUp::All);
    /// ```
    #[must_use]
    pub fn catch_up(mut self, policy: CatchUp) -> Flow {
        self.draft.catch_up = policy;
        self
    }

    /// No run of its schedule before this moment.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let nightly = flow("nightly", Part::default()).cron("0 6 * * *").since("2026-01-01T00:00:00Z".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn since(mut self, moment: Timestamp) -> Flow {
        self.draft.start = Some(moment);
        self
    }

    /// No run of its schedule at or after this moment.
    ///
    /// ```
    /// # use kelos::embed::{Part, flow};
    /// let nightly = flow("nightly", Part::default()).cron("0 6 * * *").until("2027-01-01T00:00:00Z".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn until(mut self, moment: Timestamp) -> Flow {
        self.draft.end = Some(moment);
        self
    }
}
