//! The kinds of keys, which make the slots of a workflow: a schedule, job ids, facts or requests.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::WorkflowId;
use crate::jobs::JobKeys;
use crate::key::{NAMED, RunName, SlotKey, StepKey};
use crate::run::Batch;
use crate::template::KeyValues;
use crate::time::schedule::Schedule;
use crate::time::{Calendar, Period};

/// The source of a workflow's slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Keys {
    /// A slot at each time of a schedule.
    Schedule(Schedule),
    /// A slot for each job id that is submitted, or that its parents and children ask for.
    Jobs(Box<JobKeys>),
    /// A slot that collects facts until the trigger is met, and then another: an event schedule.
    Events(Box<EventKeys>),
    /// A slot for each request: a program that people start, and event schedules run.
    Requests(Box<Program>),
}

/// The settings of an event schedule, beside its trigger and its constraints. Its slots are named by the moment at which they came
/// to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventKeys {
    /// Its name, unique in its project.
    pub name: String,
    /// The workflow whose job it runs.
    pub program: WorkflowId,
    /// A slot that has not been queued this many milliseconds after it came to be expires.
    #[serde(default = "one_day")]
    pub timeout_millis: u64,
    /// Arguments of its runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// Nothing fires at or after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Timestamp>,
    /// A cron time counts up to so many milliseconds late, by a draw that its name and the time seed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_millis: u64,
    /// The treatment of misfires.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Whether it is enabled when it is created. By default a person has to enable it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
}

/// How long a slot of an event schedule may wait where nothing is said: a day.
pub const EVENT_TIMEOUT_MILLIS: u64 = 86_400_000;

fn one_day() -> u64 {
    EVENT_TIMEOUT_MILLIS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl EventKeys {
    /// A schedule of a name for a program; all else is left unsaid.
    #[must_use]
    pub fn new(name: &str, program: WorkflowId) -> EventKeys {
        EventKeys {
            name: name.to_owned(),
            program,
            timeout_millis: EVENT_TIMEOUT_MILLIS,
            properties: BTreeMap::new(),
            end_time: None,
            jitter_millis: 0,
            catch_up: CatchUp::default(),
            enabled: false,
        }
    }
}

/// The treatment of misfires: times that passed while no server was scheduling. Times that pass while an event schedule is disabled
/// never count; those that pass while another workflow is paused or removed are misfires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatchUp {
    /// They are passed over, but for what is less than a minute late.
    Skip,
    /// The latest of them counts.
    #[default]
    Latest,
    /// All of them count, one after the other, up to a thousand in a turn; of a schedule of slots all in the planning window, also those of
    /// before it was first seen.
    All,
}

impl CatchUp {
    /// Its name, as people write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CatchUp::Skip => "skip",
            CatchUp::Latest => "latest",
            CatchUp::All => "all",
        }
    }
}

/// The settings of a program beside its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Its name, unique in its project.
    pub name: String,
    /// The kind of program, where that is not a workflow: `spark`, `mapreduce`. Only workflows are scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl Keys {
    /// The schedule, where there is one.
    #[must_use]
    pub fn schedule(&self) -> Option<&Schedule> {
        match self {
            Keys::Schedule(schedule) => Some(schedule),
            _ => None,
        }
    }

    /// The calendar, where its slots are about periods.
    #[must_use]
    pub fn calendar(&self) -> Option<&Calendar> {
        match self.schedule() {
            Some(Schedule::Calendar(calendar)) => Some(calendar),
            _ => None,
        }
    }

    /// The period that the slot of a key is about, where slots are about periods.
    #[must_use]
    pub fn period_of(&self, key: &SlotKey) -> Option<Period> {
        match key {
            SlotKey::Time(at) => self.calendar()?.period_of(*at),
            _ => None,
        }
    }

    /// The period that a run is about: that of its slot, or from the start of the first slot of a batch to the end of the last.
    #[must_use]
    pub fn period_of_run(&self, key: &SlotKey, batch: Option<&Batch>) -> Option<Period> {
        let own = self.period_of(key)?;
        let last = batch.and_then(|batch| self.period_of(&SlotKey::Time(batch.last)));
        Some(Period { end: last.map_or(own.end, |last| last.end), ..own })
    }

    /// The times of the slots that a run serves, ascending: that of its own, or those of a batch. Where slots have the times of another
    /// workflow, only the first and the last of a batch are known.
    #[must_use]
    pub fn times_of_run(&self, key: &SlotKey, batch: Option<&Batch>) -> Vec<Timestamp> {
        let Some(batch) = batch else { return key.time().into_iter().collect() };
        let schedule = match self.schedule() {
            Some(Schedule::Cron(cron)) => Some(cron),
            Some(Schedule::Calendar(calendar)) => Some(calendar.schedule()),
            Some(Schedule::Dependent(_)) | None => None,
        };
        let before_last = schedule.map_or(vec![batch.first], |all| all.times(batch.first, batch.last).collect());
        before_last.into_iter().chain([batch.last]).collect()
    }

    /// When the slot of a key is due: at the end of its period, or at its time.
    #[must_use]
    pub fn due(&self, key: &SlotKey) -> Option<Timestamp> {
        self.period_of(key).map(|period| period.end).or_else(|| key.time())
    }

    /// The settings of the event schedule, where it is one.
    #[must_use]
    pub fn events(&self) -> Option<&EventKeys> {
        match self {
            Keys::Events(events) => Some(events),
            _ => None,
        }
    }

    /// Whether its slots are named by the moment at which they came to be.
    #[must_use]
    pub fn are_moments(&self) -> bool {
        matches!(self, Keys::Events(_) | Keys::Requests(_))
    }

    /// The schedule that yields times: that of the slots, or that which opens jobs.
    #[must_use]
    pub fn ticks(&self) -> Option<&Schedule> {
        match self {
            Keys::Schedule(schedule) => Some(schedule),
            Keys::Jobs(jobs) => jobs.feed.as_ref().map(|feed| &feed.schedule),
            Keys::Events(_) | Keys::Requests(_) => None,
        }
    }

    /// The part about jobs, where it has job ids.
    #[must_use]
    pub fn jobs(&self) -> Option<&JobKeys> {
        match self {
            Keys::Jobs(jobs) => Some(jobs),
            _ => None,
        }
    }

    /// Whether people can start it: then it has slots named by the moments of their requests, beside those of its schedule where it
    /// has one. An event schedule that is fired has its slot in the same way.
    #[must_use]
    pub fn can_be_started(&self) -> bool {
        !matches!(self, Keys::Jobs(_))
    }

    /// The first moment from another one on that can name a slot: a whole millisecond, and beside the times of a schedule, which are
    /// whole seconds, one that is no whole second, so that the moment reads as no such time.
    #[must_use]
    pub fn moment_from(&self, at: Timestamp) -> Timestamp {
        let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
        let is_taken = self.schedule().is_some() && !is_beside_times(at);
        if is_taken { at.checked_add(SignedDuration::from_millis(1)).unwrap_or(at) } else { at }
    }

    /// The key that is meant by one that was read without knowing whose it is: a time stands for a moment where slots are named by
    /// these, and beside a schedule where it is no whole second.
    #[must_use]
    pub fn resolve(&self, key: SlotKey) -> SlotKey {
        match key {
            SlotKey::Time(at) if self.are_moments() || self.schedule().is_some() && is_beside_times(at) => {
                SlotKey::Moment(at)
            }
            SlotKey::Step(step) => SlotKey::Step(step.of(&self.resolve(step.run())).unwrap_or(step)),
            key => key,
        }
    }

    /// Reads a key as people write it: a time, which stands for a moment where it can be none of the schedule, or a job id with or
    /// without the ~ that marks it. A job id comes back in its normal form. Names of runs and steps need no dot before them where they
    /// read as nothing else; a step of a job does.
    ///
    /// # Errors
    /// In words, when the text is no key of such a workflow.
    pub fn read(&self, text: &str) -> Result<SlotKey, String> {
        match self {
            Keys::Schedule(_) | Keys::Events(_) | Keys::Requests(_) => {
                let key = SlotKey::parse(text).map(|key| self.resolve(key));
                key.or_else(|error| self.without_dot(text).ok_or_else(|| error.to_string()))
            }
            Keys::Jobs(jobs) => {
                if let Some(step) = SlotKey::parse(text).ok().filter(|key| key.step().is_some()) {
                    return Ok(step);
                }
                let id = text.strip_prefix('~').unwrap_or(text);
                jobs.normal(id).map(SlotKey::Job).map_err(|error| error.to_string())
            }
        }
    }
}

impl Keys {
    /// The name of a run or a step, written without the dot that marks it, or with a short form of a time in it.
    fn without_dot(&self, text: &str) -> Option<SlotKey> {
        let text = text.strip_prefix(NAMED).unwrap_or(text);
        let step = StepKey::read(text, |run| self.read(run).ok()).map(SlotKey::Step);
        let name = || RunName::new(text).ok().filter(|name| !name.reads_as_time()).map(SlotKey::Named);
        step.or_else(name)
    }
}

/// Whether no schedule has this time, because it is no whole second.
fn is_beside_times(at: Timestamp) -> bool {
    at.subsec_nanosecond() != 0
}

impl KeyValues {
    /// The values of a workflow's key. A job id that is none of the workflow's yields nothing; a step has the values of its run.
    #[must_use]
    pub fn of(keys: &Keys, key: &SlotKey) -> KeyValues {
        let run = key.of_run();
        let read = match (keys, &run) {
            (Keys::Jobs(jobs), SlotKey::Job(id)) => jobs.read(id).ok(),
            _ => None,
        };
        let (identifiers, day) = read.unwrap_or_default();
        let values = KeyValues::new(key.clone(), identifiers, day.or_else(|| run.time()));
        match keys.period_of(&run) {
            Some(period) => values.about(period),
            None => values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::CronSchedule;

    #[test]
    fn a_step_has_the_values_of_its_run() {
        let keys = Keys::Schedule(Schedule::Cron(CronSchedule::hourly()));
        let at = |text: &str| KeyValues::of(&keys, &SlotKey::parse(text).expect("a key"));
        let [run, step] = ["2026-11-21T03:00Z", ".2026-11-21T03:00:00.000Z.load:2"].map(at);
        assert_eq!(step.fill("${year}-${hour}"), "2026-03");
        assert_eq!(step.named(), run.named());
        assert_eq!(at(".order-42.load").named(), []);
    }
}
