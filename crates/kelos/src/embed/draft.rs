//! A job without the type of its input, or a flow, and the definition that it makes.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_model::flow::FLOW;
use kelos_model::mistakes::{never_fires, parameter_mistakes};
use kelos_model::time::{Calendar, Cron, CronSchedule, Fold, Gap, Schedule, Zone};
use kelos_model::workflow::{About, CatchUp, Keys, Program, ProjectVersion, Provenance, Source};
use kelos_model::{BatchRule, Constraint, Deadline, Parameter, Trigger, Workflow, WorkflowId};
use serde_json::{Map, Value};

use super::function::{Body, FunctionJob, Functions, GRACE};
use super::input::INPUT;
use super::mistakes::Mistake;
use super::placement::Placement;
use super::platform::{Platform, PlatformUse, pools, within};
use super::retry::Retry;
use super::scheduler::OwnPlanner;
use super::steps::Part;

/// The times of a job's slots.
#[derive(Debug, Clone)]
pub(super) enum Timing {
    Unsaid,
    OnDemand,
    Once,
    Cron(String),
    Periods(Calendar),
    Own(OwnPlanner),
}

/// The work of a run.
#[derive(Clone)]
pub(super) enum Work {
    Function(Body),
    Flow(Part),
}

/// A job without the type of its input, or a flow.
#[derive(Clone)]
pub(super) struct JobDraft {
    pub(super) id: String,
    pub(super) place: &'static Location<'static>,
    pub(super) work: Work,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) timing: Timing,
    /// The words by which its times were said, each time that they were.
    pub(super) timed_by: Vec<&'static str>,
    pub(super) zone: Option<String>,
    pub(super) catch_up: CatchUp,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    pub(super) batch: Option<BatchRule>,
    pub(super) deadline: Option<Deadline>,
    pub(super) retry: Retry,
    pub(super) at_a_time: Option<u32>,
    pub(super) trigger: Trigger,
    /// The workflows whose periods it waits for, with the seconds by which its own is shifted at both ends.
    pub(super) covers: Vec<(String, i64, i64)>,
    /// The workflows whose slots of the same time it waits for.
    pub(super) after: Vec<String>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) platforms: Vec<PlatformUse>,
    /// The platforms that its runs may take parts of while they are live.
    pub(super) within: Vec<PlatformUse>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) version: Option<String>,
    /// The workers that may run it, or the steps of a flow that say nothing else.
    pub(super) placement: Placement,
    pub(super) about: About,
}

impl JobDraft {
    pub(super) fn new(id: String, place: &'static Location<'static>, work: Work) -> JobDraft {
        JobDraft {
            id,
            place,
            work,
            timeout: None,
            grace: GRACE,
            timing: Timing::Unsaid,
            timed_by: Vec::new(),
            zone: None,
            catch_up: CatchUp::Latest,
            start: None,
            end: None,
            batch: None,
            deadline: None,
            retry: Retry::default(),
            at_a_time: None,
            trigger: Trigger::Always,
            covers: Vec::new(),
            after: Vec::new(),
            constraints: Vec::new(),
            platforms: Vec::new(),
            within: Vec::new(),
            parameters: Vec::new(),
            version: None,
            placement: Placement::default(),
            about: About::default(),
        }
    }

    /// Says the times of its slots. They are said once.
    pub(super) fn time(&mut self, timing: Timing) {
        self.timed_by.push(match timing {
            Timing::Unsaid => "nothing",
            Timing::OnDemand => "`.on_demand()`",
            Timing::Once => "`.once()`",
            Timing::Cron(_) => "`.cron(…)`",
            Timing::Periods(_) => "`.every(…)`",
            Timing::Own(_) => "`.planned_by(…)`",
        });
        self.timing = timing;
    }

    /// Lets its runs take parts of a platform.
    pub(super) fn may_use(&mut self, platform: &impl Platform) {
        match &mut self.work {
            Work::Function(_) => self.within.extend(platform.uses()),
            Work::Flow(part) => part.may_use(platform),
        }
    }

    /// Adds its functions to those of the program.
    pub(super) fn add_functions(&self, id: &WorkflowId, all: &mut Functions) {
        match &self.work {
            Work::Function(body) => {
                let (body, timeout, grace) = (body.clone(), self.timeout, self.grace);
                all.add_job(id.clone(), FunctionJob { body, timeout, grace, signals: Vec::new() });
            }
            Work::Flow(part) => all.add_steps(id.clone(), part.functions()),
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

    /// Mistakes of what acts only where a server hands runs to workers, for a project whose scheduler is in this program.
    pub(super) fn of_workers(&self) -> Vec<Mistake> {
        let hint = "leave `runs_on` and the wait of `on_lost` out, or run the project for a server: `.work_for(url)`";
        let words = "its runs are placed on workers, and this program runs all of them itself";
        let own = self.placement.is_of_workers().then(|| self.mistake(words).hint(hint));
        let part = match &self.work {
            Work::Flow(part) => Some(part),
            Work::Function(_) => None,
        };
        let steps = part.into_iter().flat_map(|part| part.with_placement());
        own.into_iter().chain(steps.map(|step| self.mistake(format!("step \"{step}\": {words}")).hint(hint))).collect()
    }

    /// Mistakes of what needs a scheduler in this program, for a project that works for a server.
    #[cfg(feature = "worker")]
    pub(super) fn of_own_scheduler(&self) -> Vec<Mistake> {
        let planned = self.planner().map(|_| {
            let words = "a scheduler of this program plans its slots, and the project works for a server";
            self.mistake(words).hint("end its definition with `.cron(…)`, `.every(&calendar)` or `.on_demand()`")
        });
        let part = match &self.work {
            Work::Flow(part) => Some(part),
            Work::Function(_) => None,
        };
        let steps = part.into_iter().flat_map(|part| part.awaiting());
        let waits = steps.map(|step| {
            let words = format!("step \"{step}\": its function waits for signals, and the project works for a server");
            self.mistake(words).hint("let a step of the flow wait: `signal::<T>(\"approval\") >> pay`")
        });
        planned.into_iter().chain(waits).collect()
    }

    /// The definition, or its mistakes.
    pub(super) fn workflow(&self, project: &str, version: Option<&ProjectVersion>) -> Result<Workflow, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let id =
            WorkflowId::new(&self.id).map_err(|error| vec![self.mistake(format!("its id is refused: {error}"))])?;
        let keys = self.keys().map_err(|mistake| mistakes.push(mistake)).ok();
        let words = |words: String| self.mistake(words);
        let pools = pools(&self.platforms, "each run", &words, &mut mistakes);
        let within = within(&self.within, &words, &mut mistakes);
        let flow = match &self.work {
            Work::Function(_) => None,
            Work::Flow(part) => part
                .placed(&self.placement)
                .flow(&self.id, self.place)
                .map_err(|more| mistakes.extend(more))
                .ok()
                .map(Arc::new),
        };
        let trigger = self.whole_trigger(&mut mistakes);
        let own_version = self.own_version(&mut mistakes);
        if self.at_a_time == Some(0) {
            mistakes
                .push(self.mistake("`at_a_time(0)` lets no slot run").hint("pause the job to keep it from running"));
        }
        let (start_time, end_time) = self.bounds();
        mistakes.extend(self.empty_bounds(start_time, end_time));
        mistakes.extend(self.placement.mistakes(|words| self.mistake(words)));
        mistakes.extend(self.of_times(keys.as_ref(), &trigger));
        if let Some(mistake) = self.batch.and_then(|batch| batch.mistake()) {
            mistakes.push(self.mistake(format!("its batches are refused: {mistake}")));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            mistakes.push(self.mistake("its timeout is zero, so every attempt fails"));
        }
        let Some(keys) = keys.filter(|_| mistakes.is_empty()) else { return Err(mistakes) };
        let catch_up = keys.schedule().map(|_| self.catch_up);
        let (job, retry) = match &flow {
            Some(_) => (kelos_model::Job::new(FLOW, Map::new()), self.retry.policy()),
            None => (self.placement.job(), self.placement.policy(self.retry)),
        };
        let line = self.place.line();
        let workflow = Workflow {
            project: project.to_owned(),
            source: Source { provenance: Provenance::Code, file: self.place.file().to_owned(), line },
            trigger,
            constraints: self.constraints.clone(),
            concurrency: self.at_a_time,
            batch: self.batch,
            deadline: self.deadline.clone(),
            pools,
            within,
            retry,
            catch_up,
            flow,
            version: own_version.or_else(|| version.cloned()),
            start_time,
            end_time,
            about: self.about.clone(),
            parameters: self.parameters(&keys),
            ..Workflow::keyed(id, keys, job)
        };
        mistakes.extend(parameter_mistakes(&workflow).into_iter().map(|words| self.mistake(words)));
        if mistakes.is_empty() { Ok(workflow) } else { Err(mistakes) }
    }

    /// The mistake of bounds between which no slot lies, given the bounds as they are rounded.
    fn empty_bounds(&self, start_time: Option<Timestamp>, end_time: Option<Timestamp>) -> Option<Mistake> {
        let (start, end) = self.start.zip(self.end)?;
        if start >= end {
            return Some(self.mistake(format!("its start {start} is not before its end {end}, so it has no slots")));
        }
        let is_empty = start_time >= end_time;
        is_empty.then(|| self.mistake(format!("no period lies between its start {start} and its end {end}")))
    }

    /// The parameters, with one for the input where starts bring one.
    fn parameters(&self, keys: &Keys) -> Vec<Parameter> {
        let mut all = self.parameters.clone();
        // The input of a flow is its arguments.
        let is_job = matches!(self.work, Work::Function(_));
        let has_input = is_job && matches!(keys, Keys::Requests(_)) && !all.is_empty();
        if has_input && all.iter().all(|one| one.name != INPUT) {
            all.push(Parameter::plain(INPUT, Value::Null));
        }
        all
    }

    /// The version of its own.
    fn own_version(&self, mistakes: &mut Vec<Mistake>) -> Option<ProjectVersion> {
        let version = self.version.as_deref().map(ProjectVersion::new).transpose();
        version.unwrap_or_else(|error| {
            mistakes.push(self.mistake(format!("its version is refused: {error}")));
            None
        })
    }

    /// Its start and its end. Of periods the first begins at the start or later, and the last ends by the end.
    fn bounds(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let Timing::Periods(calendar) = &self.timing else { return (self.start, self.end) };
        let start = self.start.map(|start| calendar.ceil(start).unwrap_or(start));
        (start, self.end.map(|end| calendar.truncate(end).unwrap_or(end)))
    }

    /// Mistakes of its times, and of what needs them.
    fn of_times(&self, keys: Option<&Keys>, trigger: &Trigger) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.timed_by.len() > 1 {
            let words = format!("its times are said by {}", self.timed_by.join(" and "));
            mistakes.push(self.mistake(words).hint("say them once"));
        }
        if matches!(keys, Some(Keys::Requests(_))) {
            // What it covers is said where the whole project is looked at.
            if self.covers.is_empty() && !matches!(trigger, Trigger::Always) {
                let words = "it has conditions, and it is started by requests, which ask for none";
                let hint = "give it times, `.every(&calendar)` or `.cron(\"0 6 * * *\")`, or let its function look";
                mistakes.push(self.mistake(words).hint(hint));
            }
            let part = match &self.work {
                Work::Flow(part) => Some(part),
                Work::Function(_) => None,
            };
            mistakes.extend(part.into_iter().flat_map(|part| part.of_periods()).map(|step| {
                let words = format!("step \"{step}\" is about a period, and the flow has no times");
                self.mistake(words).hint("give the flow a calendar: `.every(&calendar)`")
            }));
        }
        if let Timing::Periods(calendar) = &self.timing {
            let wrong = self.covers.iter().filter(|(_, from, to)| is_empty(calendar, *from, *to));
            mistakes.extend(wrong.map(|(id, ..)| {
                let words = format!("it covers nothing of \"{id}\": the shifted interval ends before it begins");
                self.mistake(words).hint("`from` is added to the start of its period, and `to` to the end")
            }));
        }
        mistakes
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
                if never_fires(&cron) {
                    return Err(self.mistake(format!("its cron expression \"{expression}\" has no times")));
                }
                let zone = self.zone.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::parse);
                let zone = zone.map_err(|error| self.mistake(format!("its zone is refused: {error}")))?;
                Ok(Keys::Schedule(Schedule::Cron(CronSchedule::new(cron, zone, Gap::default(), Fold::default()))))
            }
        }
    }

    /// Its conditions, and the slots and periods that it waits for.
    fn whole_trigger(&self, mistakes: &mut Vec<Mistake>) -> Trigger {
        let mut whole = self.trigger.clone();
        for id in &self.after {
            match WorkflowId::new(id) {
                Ok(workflow) => whole = both(whole, Trigger::Success { workflow }),
                Err(error) => mistakes.push(self.mistake(format!("the id of what it is after is refused: {error}"))),
            }
        }
        for (id, from, to) in &self.covers {
            match WorkflowId::new(id) {
                Ok(workflow) => whole = both(whole, Trigger::Covers { workflow, from: *from, to: *to }),
                Err(error) => mistakes.push(self.mistake(format!("the id of what it covers is refused: {error}"))),
            }
        }
        whole
    }

    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        let message = message.into();
        let kind = match self.work {
            Work::Function(_) => "job",
            Work::Flow(_) => "flow",
        };
        Mistake::new(&self.id, self.place, format!("{kind} \"{}\": {message}", self.id))
    }
}

/// Whether the periods of a calendar, shifted by so many seconds at both ends, are empty, all that are looked at: a year of them, once a month.
fn is_empty(calendar: &Calendar, from: i64, to: i64) -> bool {
    const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);
    // The first day of 2026.
    let first = Timestamp::from_second(1_767_225_600).unwrap_or_default();
    let moments = std::iter::successors(Some(first), |at| at.checked_add(MONTH).ok()).take(13);
    let mut periods = moments.filter_map(|at| calendar.period_with(at)).peekable();
    periods.peek().is_some()
        && periods.all(|one| one.end.duration_since(one.start).as_secs().saturating_add(to).saturating_sub(from) <= 0)
}

/// A trigger that is met when both are.
pub(super) fn both(before: Trigger, trigger: Trigger) -> Trigger {
    match before {
        Trigger::Always => trigger,
        Trigger::And { mut triggers } => {
            triggers.push(trigger);
            Trigger::And { triggers }
        }
        before => Trigger::And { triggers: vec![before, trigger] },
    }
}
