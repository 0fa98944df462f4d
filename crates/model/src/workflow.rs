//! Definitions: what a workflow is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::backlog::Backlog;
use crate::breach::Freeze;
use crate::constraint::Constraint;
use crate::function::FunctionRef;
use crate::id::{BackfillId, PoolId, WorkflowId};
use crate::jobs::JobKeys;
use crate::key::SlotKey;
use crate::project::{ProjectName, former_member};
use crate::ranges::{Range, RangeSet};
use crate::retry::RetryPolicy;
use crate::slot::Slot;
use crate::time::schedule::{CronSchedule, Schedule};
use crate::trigger::Trigger;

/// A named definition: keys, trigger, retry and job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Its name, unique on a server.
    pub id: WorkflowId,
    /// The unit of deployment that owns it; for scripts, the name of the file without `.js`.
    pub project: String,
    /// Where it comes from.
    pub source: Source,
    /// What its slots are.
    pub keys: Keys,
    /// When a slot may go.
    pub trigger: Trigger,
    /// What must hold besides, once the trigger is met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How many of its slots may run at a time, oldest first; 0 lets none run, none sets no limit.
    #[serde(deserialize_with = "limit")]
    pub concurrency: Option<u32>,
    /// The pools whose permits each of its runs holds, ascending by pool, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// No slot before this moment is planned by the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// A slot that still waits this long after its scheduled time expires. None waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout_seconds: Option<u64>,
    /// What is executed.
    pub job: Job,
    /// What people know about it.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
}

impl Workflow {
    /// A workflow of a project of the same name, always ready, with one run at a time; all else is left unsaid.
    #[must_use]
    pub fn new(id: WorkflowId, schedule: Schedule, job: Job) -> Workflow {
        Workflow::keyed(id, Keys::Schedule(schedule), job)
    }

    /// The same with keys of any kind.
    #[must_use]
    pub fn keyed(id: WorkflowId, keys: Keys, job: Job) -> Workflow {
        Workflow {
            project: id.to_string(),
            id,
            source: Source::default(),
            keys,
            trigger: Trigger::Always,
            constraints: Vec::new(),
            concurrency: Some(1),
            pools: Vec::new(),
            retry: RetryPolicy::default(),
            start_time: None,
            wait_timeout_seconds: None,
            job,
            about: About::default(),
        }
    }
}

/// Reads a limit. Definitions of before there could be none had the largest number there.
fn limit<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let limit = Option::<u32>::deserialize(deserializer)?;
    Ok(limit.filter(|limit| *limit < u32::MAX))
}

impl Workflow {
    /// Whose runs its own count among: a schedule runs another workflow's job.
    #[must_use]
    pub fn program(&self) -> &WorkflowId {
        self.keys.events().map_or(&self.id, |events| &events.program)
    }

    /// Who gives it. Requests give event schedules only: another definition that is stored as one of theirs is a program's, from
    /// before provenance was stored.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        match self.source.provenance {
            Provenance::Api if self.keys.events().is_none() => Provenance::Code,
            provenance => provenance,
        }
    }

    /// The same, given by another.
    #[must_use]
    pub fn given_by(mut self: Arc<Workflow>, provenance: Provenance) -> Arc<Workflow> {
        if self.source.provenance != provenance {
            Arc::make_mut(&mut self).source.provenance = provenance;
        }
        self
    }

    /// The id that a schedule or a program had before separators inside of its name were escaped. None where it is the same.
    #[must_use]
    pub fn former_id(&self) -> Option<WorkflowId> {
        let (kind, name) = match &self.keys {
            Keys::Events(events) => (None, &events.name),
            Keys::Requests(program) => (program.kind.as_deref(), &program.name),
            Keys::Schedule(_) | Keys::Jobs(_) => return None,
        };
        let is_member = ProjectName::read(&self.project).member(kind, name).is_ok_and(|id| id == self.id);
        let former = WorkflowId::new(&former_member(&self.project, kind, name)).ok()?;
        (is_member && former != self.id).then_some(former)
    }

    /// The moment at which it starts, for one of its slots by time that lies before that and that nobody asked for: such a
    /// slot is left alone.
    #[must_use]
    pub fn starts_after(&self, key: &SlotKey, slot: Option<&Slot>) -> Option<Timestamp> {
        let SlotKey::Time(at) = key else { return None };
        let requested = slot.is_some_and(|slot| slot.requested);
        self.start_time.filter(|start| at < start && !requested)
    }
}

/// What a run takes of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolUse {
    /// The pool.
    pub pool: PoolId,
    /// How many permits it has, as this definition has it; where definitions disagree, the smallest size holds.
    pub size: u32,
    /// How many of them each run takes.
    pub permits: u32,
}

/// Where a definition comes from, and where it stands there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "StoredSource", into = "StoredSource")]
pub struct Source {
    /// Who gives it, and may take it away again.
    pub provenance: Provenance,
    /// Path of the file, relative to the folder of definitions; empty where it is in none.
    pub file: String,
    /// Line of the call that defined it, from 1; 0 where unknown.
    pub line: u32,
}

impl Source {
    /// A place in a file of definitions.
    #[must_use]
    pub fn file(file: impl Into<String>, line: u32) -> Source {
        Source { provenance: Provenance::File, file: file.into(), line }
    }
}

/// Who gives a definition. What one of them says leaves the definitions of the others alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// The files of definitions, all of them together.
    File,
    /// Requests: an event schedule that somebody created or changed.
    Api,
    /// The program that Kelos is a library of.
    #[default]
    Code,
}

impl Provenance {
    /// Its name, as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Provenance::File => "file",
            Provenance::Api => "api",
            Provenance::Code => "code",
        }
    }

    /// What a definition of it is, in words that follow "is".
    #[must_use]
    pub fn whose(self) -> &'static str {
        match self {
            Provenance::File => "defined by a file",
            Provenance::Api => "made over the API",
            Provenance::Code => "defined by the program",
        }
    }

    /// What a source says that was stored before provenance was: what is in no file was created by a request.
    fn of_old(file: &str) -> Provenance {
        if file.is_empty() { Provenance::Api } else { Provenance::File }
    }
}

/// In words: "the files of definitions", "the API", "the program".
impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Provenance::File => "the files of definitions",
            Provenance::Api => "the API",
            Provenance::Code => "the program",
        })
    }
}

/// A source as JSON has it: without its provenance where the file says it.
#[derive(Serialize, Deserialize)]
struct StoredSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
    file: String,
    line: u32,
}

impl From<StoredSource> for Source {
    fn from(StoredSource { provenance, file, line }: StoredSource) -> Source {
        Source { provenance: provenance.unwrap_or_else(|| Provenance::of_old(&file)), file, line }
    }
}

impl From<Source> for StoredSource {
    fn from(Source { provenance, file, line }: Source) -> StoredSource {
        StoredSource { provenance: Some(provenance).filter(|one| *one != Provenance::of_old(&file)), file, line }
    }
}

/// What makes a workflow's slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Keys {
    /// A slot at each time of a schedule.
    Schedule(Schedule),
    /// A slot for each job id that somebody submits, or that its parents and children ask for.
    Jobs(Box<JobKeys>),
    /// A slot that collects facts until the trigger is met, and then another: an event schedule.
    Events(Box<EventKeys>),
    /// A slot for each request: a program that people start, and event schedules run.
    Requests(Box<Program>),
}

/// What an event schedule is, beside its trigger and its constraints. Its slots are named by the moment at which they came
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
    /// What happens to cron times that passed while nobody scheduled.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Whether it is enabled when it comes to be. By default somebody has to enable it.
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

/// What happens to cron times that passed while nobody scheduled. Those that pass while a schedule is disabled never count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatchUp {
    /// They are passed over, but for what is less than a minute late.
    Skip,
    /// The latest of them counts.
    #[default]
    Latest,
    /// All of them count, one after the other, up to a thousand in a turn.
    All,
}

/// What is known of a program beside its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Its name, unique in its project.
    pub name: String,
    /// What kind of program it is, where that is not a workflow: `spark`, `mapreduce`. Only workflows are scheduled.
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

    /// What an event schedule is, where it is one.
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

    /// What yields times: the schedule, or that which opens jobs.
    #[must_use]
    pub fn ticks(&self) -> Option<&Schedule> {
        match self {
            Keys::Schedule(schedule) => Some(schedule),
            Keys::Jobs(jobs) => jobs.feed.as_ref().map(|feed| &feed.schedule),
            Keys::Events(_) | Keys::Requests(_) => None,
        }
    }

    /// How its job ids are made, where it has any.
    #[must_use]
    pub fn jobs(&self) -> Option<&JobKeys> {
        match self {
            Keys::Jobs(jobs) => Some(jobs),
            _ => None,
        }
    }

    /// The key that is meant by one that was read without knowing whose it is: a time stands for a moment where slots are named by
    /// these.
    #[must_use]
    pub fn resolve(&self, key: SlotKey) -> SlotKey {
        match key {
            SlotKey::Time(at) if self.are_moments() => SlotKey::Moment(at),
            key => key,
        }
    }

    /// Reads a key as people write it: a time, which stands for a moment where slots are named by these, or a job id with or without
    /// the ~ that marks it. A job id comes back in its normal form.
    ///
    /// # Errors
    /// In words, when the text is no key of such a workflow.
    pub fn read(&self, text: &str) -> Result<SlotKey, String> {
        match self {
            Keys::Schedule(_) | Keys::Events(_) | Keys::Requests(_) => {
                SlotKey::parse(text).map(|key| self.resolve(key)).map_err(|error| error.to_string())
            }
            Keys::Jobs(jobs) => {
                let id = text.strip_prefix('~').unwrap_or(text);
                jobs.normal(id).map(SlotKey::Job).map_err(|error| error.to_string())
            }
        }
    }
}

/// What gets executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Name of the executor: `command`, `oozie`.
    pub executor: String,
    /// What the executor needs besides the properties; strings inside are templates.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// What the job is given.
    #[serde(default)]
    pub properties: Properties,
}

impl Job {
    /// A job for an executor, given nothing but its settings.
    #[must_use]
    pub fn new(executor: &str, settings: Map<String, Value>) -> Job {
        Job { executor: executor.to_owned(), settings, properties: Properties::default() }
    }
}

/// The properties of a job: data, or a script's function of the slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Properties {
    /// The same for each slot, but for the templates inside.
    Fixed(Map<String, Value>),
    /// Asked of the script when a run is started.
    Function(FunctionRef),
}

impl Default for Properties {
    fn default() -> Self {
        Properties::Fixed(Map::new())
    }
}

/// What people know about a workflow; the scheduler reads none of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct About {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A page about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Who knows more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contacts: Vec<Contact>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl About {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == About::default()
    }
}

/// A person or a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// Name, where given.
    pub name: Option<String>,
    /// Address, where given.
    pub email: Option<String>,
}

/// What the scheduler remembers of a workflow beside its slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowRow {
    /// Its name.
    pub id: WorkflowId,
    /// Its latest definition.
    pub definition: Arc<Workflow>,
    /// Which definition that is, counted from 1.
    pub version: u32,
    /// Whether it is defined now; false once its definition went away.
    pub present: bool,
    /// Whether it is in force at all: an event schedule is disabled until somebody enables it, all else is always enabled.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Whether a person paused it. An event schedule never is: it is disabled.
    pub paused: bool,
    /// What has been planned of it.
    pub planned: PlanState,
    /// Moments of its past that matter to what comes.
    #[serde(default)]
    pub moments: Moments,
}

fn enabled() -> bool {
    true
}

impl WorkflowRow {
    /// Since when and why it is left alone, where an invariant of it broke.
    #[must_use]
    pub fn frozen(&self) -> Option<&Freeze> {
        self.moments.frozen.as_ref()
    }
}

/// Moments of a workflow's past that matter to what comes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Moments {
    /// When an event schedule was last created, changed, enabled or disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    /// The cron times of its trigger up to here, inclusive, are done with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired_until: Option<Timestamp>,
    /// The last time of each cron expression of an event schedule that counted, by [`crate::time::Firing::name`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fired: BTreeMap<Arc<str>, Timestamp>,
    /// Its successful run that was dispatched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Since when and why it is frozen: an invariant of it broke, and nobody has resumed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Freeze>,
}

/// A successful run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LastRun {
    /// Log position of its dispatch.
    pub seq: u64,
    /// When it was started.
    pub started: Timestamp,
}

/// What has been planned of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanState {
    /// The parts of its schedule whose slots all exist, or are its backlog.
    pub ranges: RangeSet,
    /// The resolved schedule that `ranges` holds for, in words; another one asks for planning anew.
    pub schedule: String,
    /// No slot at or after this moment has ever been planned; none when no slot has.
    pub until: Option<Timestamp>,
    /// The times within `ranges` that have no slots yet.
    #[serde(default, skip_serializing_if = "Backlog::is_empty")]
    pub backlog: Backlog,
    /// The schedule that says which times lie in the backlog, in words, where it is an earlier one than `schedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_schedule: Option<String>,
}

impl PlanState {
    /// The schedule that says which times lie in the backlog; none where there is no backlog.
    #[must_use]
    pub fn schedule_of_backlog(&self) -> Option<CronSchedule> {
        let words = self.backlog_schedule.as_ref().unwrap_or(&self.schedule);
        // The scheduler wrote it there, from a schedule.
        serde_json::from_str(words).ok().filter(|_| !self.backlog.is_empty())
    }

    /// How many times have no slots yet.
    #[must_use]
    pub fn in_backlog(&self) -> u64 {
        self.schedule_of_backlog().map_or(0, |schedule| self.backlog.count(&schedule))
    }
}

/// Which existing slots a backfill opens again; slots that don't exist are always planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackfillMode {
    /// None: only what is missing is planned.
    #[default]
    Missing,
    /// Those that ended without success.
    Unsuccessful,
    /// All that are final.
    All,
}

/// A named request over past slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backfill {
    /// Its name.
    pub id: BackfillId,
    /// Whose slots.
    pub workflow: WorkflowId,
    /// Which of them.
    pub range: Range,
    /// Which states it reopens.
    pub mode: BackfillMode,
    /// Larger goes first.
    pub priority: i32,
    /// Who asked.
    pub by: Actor,
    /// When.
    pub created_at: Timestamp,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// How many slots it asked for.
    pub slots: u32,
    /// Why, in the words of who asked.
    pub reason: Option<String>,
    /// Since when it is paused, and by whom; none while it goes on.
    pub paused: Option<Pause>,
    /// When it was last resumed.
    pub resumed_at: Option<Timestamp>,
}

/// That a backfill is left alone for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// Who asked.
    pub by: Actor,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(json: &str) -> Source {
        serde_json::from_str(json).expect("a source")
    }

    #[test]
    fn a_source_of_before_says_its_provenance_by_its_file() {
        let of_file = source(r#"{"file":"a.js","line":3}"#);
        assert_eq!(of_file, Source::file("a.js", 3));
        assert_eq!(serde_json::to_string(&of_file).expect("json"), r#"{"file":"a.js","line":3}"#);
        assert_eq!(source(r#"{"file":"","line":0}"#).provenance, Provenance::Api);
        for (provenance, file) in [(Provenance::Api, "a.js"), (Provenance::Code, ""), (Provenance::File, "")] {
            let source = Source { provenance, file: file.to_owned(), line: 0 };
            let json = serde_json::to_string(&source).expect("json");
            assert!(json.contains(provenance.as_str()), "{json}");
            assert_eq!(serde_json::from_str::<Source>(&json).expect("a source"), source);
        }
    }

    #[test]
    fn what_is_no_event_schedule_was_never_made_by_a_request() {
        let id = WorkflowId::new("a").expect("an id");
        let mut one = Workflow::new(id, Schedule::Cron(crate::time::CronSchedule::hourly()), Job::new("x", Map::new()));
        one.source = source(r#"{"file":"","line":0}"#);
        assert_eq!(one.provenance(), Provenance::Code);
        one.keys = Keys::Events(Box::new(EventKeys::new("s", one.id.clone())));
        assert_eq!(one.provenance(), Provenance::Api);
    }
}
