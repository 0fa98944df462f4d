//! Workflows, their definitions and the problems of these.

use jiff::civil::Weekday;
use kelos_model::retry::{Growth, OnUnknown, RetryPolicy};
use kelos_model::secret::masks;
use kelos_model::time::schedule::{Fold, Gap, Schedule};
use kelos_model::time::{Calendar, CalendarUnit, Dates};
use kelos_model::workflow::{Contact, Keys, PoolUse, Properties, Source, TokenRate, Workflow, WorkflowRow};
use kelos_model::{BatchRule, Freeze, Parameter, ParameterKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, ConstraintDto, Counts, Instant, TriggerDto};

/// A summary of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowDto {
    /// Its id.
    pub id: String,
    /// The project that owns it.
    pub project: String,
    /// Whether it is defined; false once its definition is removed.
    pub present: bool,
    /// Whether it is enabled: an event schedule is disabled until it is enabled, every other workflow is always enabled.
    pub enabled: bool,
    /// Whether a person paused it.
    pub paused: bool,
    /// Its freeze, during which none of its slots is planned, evaluated or started: an invariant of the scheduler broke for it.
    /// `POST /workflows/{id}/resume` ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FreezeDto>,
    /// The version of its definition, from 1.
    pub version: u32,
    /// Its schedule.
    pub schedule: ScheduleDto,
    /// The time zone of its times, in which times without an offset are read in requests about it: that of its schedule or calendar, also of
    /// one that it borrows. None if it has none, which means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The executor of its job.
    pub executor: String,
    /// Its description.
    pub description: Option<String>,
    /// The address of a page about it.
    pub url: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The origin of its definition.
    pub source: SourceDto,
}

/// The freeze of a workflow, which lasts until it is resumed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FreezeDto {
    /// When it was frozen.
    pub since: Instant,
    /// The stable code of the broken invariant.
    pub code: Code,
    /// The broken invariant in words.
    pub text: String,
    /// Runs whose reports were set aside until the workflow is resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<String>,
}

/// A workflow in detail.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowDetailDto {
    /// Its summary, as in lists.
    #[serde(flatten)]
    pub summary: WorkflowDto,
    /// Its definition.
    pub definition: DefinitionDto,
    /// The next times of its schedule.
    pub next_times: Vec<Instant>,
    /// The reason that its schedule has no times, if it is invalid.
    pub schedule_problem: Option<String>,
    /// The number of its slots in each state.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub counts: Counts,
    /// The problems of its file.
    pub problems: Vec<ProblemDto>,
}

/// The source of a workflow's slots: a cron expression, a calendar, the schedule of another workflow, or job ids.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScheduleDto {
    /// A cron expression: five fields as in a crontab, six or seven as in Quartz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The length of the periods that its slots are about, where it has a calendar: `hourly`, `daily`, `weekly`, `monthly`, `business` or `dates`. Each
    /// is named by the start of its period, and due at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Code>,
    /// The number of hours of an hourly period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<u8>,
    /// The day on which a weekly period begins: `monday`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_day: Option<Code>,
    /// The days of the week that are no business days: `saturday`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekend: Vec<Code>,
    /// The holidays of business days, or the dates from each of which a period reaches to the next: `2026-12-25`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// The time zone of the expression or the calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The handling of times that the zone skips: `shift` or `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Code>,
    /// The handling of times that the zone has twice: `first`, `second` or `both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<Code>,
    /// The workflow whose schedule it borrows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<String>,
    /// The template of its job ids: `{date}_{client_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The workflow that it runs, if it is an event schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// Whether it has no schedule: a program, which people start and event schedules run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_request: Option<bool>,
}

/// The origin of a definition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceDto {
    /// Its provenance: `file`, `api` (an event schedule that was made or changed by a request) or `code` (the program that Kelos is a
    /// library of). Definitions of one provenance never change those of another.
    pub provenance: Code,
    /// The file, relative to the folder of definitions; empty if it is in none.
    pub file: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
}

/// The definition of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DefinitionDto {
    /// The project that owns it.
    pub project: String,
    /// Its origin.
    pub source: SourceDto,
    /// Its schedule.
    pub schedule: ScheduleDto,
    /// Its trigger.
    pub trigger: TriggerDto,
    /// Its constraints, which are evaluated once the trigger is met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<ConstraintDto>,
    /// The limit of its concurrent runs; null for none.
    pub concurrency: Option<u32>,
    /// The way in which adjacent slots are put together for one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchRuleDto>,
    /// The pools whose permits each of its runs holds.
    pub pools: Vec<PoolUseDto>,
    /// The pools of which its runs may take permits while they are live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<PoolUseDto>,
    /// Its retry policy.
    pub retry: RetryDto,
    /// The time before which its schedule plans no slot.
    pub start_time: Option<Instant>,
    /// The time from which on its schedule plans no slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Instant>,
    /// The treatment of misfires: `all`, `latest` or `skip`; null plans all of the planning window, as Celos does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
    /// Seconds after which a waiting slot expires; null for never.
    pub wait_timeout_seconds: Option<u64>,
    /// The moment from which these seconds count: `time`, the slot's, or `opening`, when it could first have gone.
    pub wait_timeout_from: Code,
    /// The deadline of its slots, as a definition has it; none if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<serde_json::Value>,
    /// The job that a run executes.
    pub job: JobDto,
    /// The arguments that its runs expect; if none are named, they take any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ParameterDto>,
    /// The templates of the paths that its runs write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The version of its project, with which its runs are marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_version: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The address of a page about it.
    pub url: Option<String>,
    /// Its contacts.
    pub contacts: Vec<ContactDto>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// An argument that a workflow expects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ParameterDto {
    /// Its name, which is that of the argument.
    pub name: String,
    /// The kind of its values: `text`, `integer`, `number`, `boolean`, `date`, `time`, `choice` or `json`. A text in a request is read by it.
    #[serde(rename = "type")]
    pub kind: Code,
    /// The choices of a `choice`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Whether a request must give it, because it has no default.
    pub required: bool,
    /// The value if no request gives one, with secrets masked; a text may be a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

impl From<&Parameter> for ParameterDto {
    fn from(parameter: &Parameter) -> ParameterDto {
        ParameterDto {
            name: parameter.name.clone(),
            kind: parameter.kind.name().into(),
            choices: match &parameter.kind {
                ParameterKind::Choice { choices } => choices.clone(),
                _ => Vec::new(),
            },
            required: parameter.default.is_none(),
            default: parameter.default.clone(),
            about: parameter.about.clone(),
        }
    }
}

/// The use of a pool by each run of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PoolUseDto {
    /// The name of the pool.
    pub pool: String,
    /// The size of the pool by this definition, and null if its rate alone limits it; the smallest size in any definition applies.
    pub size: Option<u32>,
    /// The number of permits that a run holds.
    pub permits: u32,
    /// How fast permits may be taken; left out if only their number is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateDto>,
}

/// How fast permits of a pool may be taken.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RateDto {
    /// The number of tokens that come in the time.
    pub tokens: u32,
    /// The time, in milliseconds.
    pub millis: u64,
    /// The number of tokens that add up while nobody takes them.
    pub burst: u32,
}

/// `60 in 60 s`
impl std::fmt::Display for RateDto {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.millis % 1000 {
            0 => write!(f, "{} in {} s", self.tokens, self.millis / 1000),
            _ => write!(f, "{} in {} ms", self.tokens, self.millis),
        }
    }
}

impl From<&TokenRate> for RateDto {
    fn from(rate: &TokenRate) -> RateDto {
        let TokenRate { tokens, millis, burst } = *rate;
        RateDto { tokens, millis, burst }
    }
}

/// The retry policy of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryDto {
    /// The number of retries after the first attempt.
    pub count: u32,
    /// The delay of the first retry in seconds.
    pub delay_seconds: u64,
    /// The growth of the delay: `fixed` or `exponential`.
    pub growth: Code,
    /// The longest delay in seconds.
    pub cap_seconds: Option<u64>,
    /// The share of the delay, in percent, up to which it is shortened at random.
    pub jitter_percent: u8,
    /// The handling of an unknown outcome: `again`, `retry` or `fail`.
    pub on_unknown: Code,
}

/// The job that a run executes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobDto {
    /// The name of the executor.
    pub executor: String,
    /// The settings for the executor; texts in them are templates.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub settings: Map<String, Value>,
    /// The properties of the job; none if a function of the script computes them for each slot.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub properties: Option<Map<String, Value>>,
}

/// A contact: a person or a team.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContactDto {
    /// Its name, if given.
    pub name: Option<String>,
    /// Its address, if given.
    pub email: Option<String>,
}

/// A version of a definition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PastDefinitionDto {
    /// The version, from 1.
    pub version: u32,
    /// When it took effect.
    pub at: Instant,
    /// The definition.
    pub definition: DefinitionDto,
    /// The text of its file, if known.
    pub source: Option<String>,
}

/// A problem of a file of definitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemDto {
    /// `error` or `warning`.
    pub severity: Code,
    /// The stable code of the kind of problem.
    pub code: Code,
    /// The file, relative to the folder of definitions.
    pub file: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// The fault in words, and what was expected.
    pub message: String,
    /// A hint on how to solve the problem.
    pub hint: Option<String>,
    /// The workflow concerned.
    pub workflow: Option<String>,
    /// Whether the last good version of the file is in use instead.
    pub kept_last_good: bool,
    /// The text of the line.
    pub source_line: Option<String>,
}

/// A list of times of a schedule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimesDto {
    /// The times, ascending.
    pub times: Vec<Instant>,
}

impl From<&WorkflowRow> for WorkflowDto {
    fn from(row: &WorkflowRow) -> WorkflowDto {
        let definition = &row.definition;
        WorkflowDto {
            id: row.id.to_string(),
            project: definition.project.clone(),
            present: row.present,
            enabled: row.enabled,
            paused: row.paused,
            frozen: row.frozen().map(FreezeDto::from),
            version: row.version,
            schedule: (&definition.keys).into(),
            zone: definition.zone().map(|zone| zone.name().to_owned()),
            executor: definition.job.executor.clone(),
            description: definition.about.description.clone(),
            url: definition.about.url.clone(),
            tags: definition.about.tags.clone(),
            source: (&**definition).into(),
        }
    }
}

impl From<&Freeze> for FreezeDto {
    fn from(freeze: &Freeze) -> FreezeDto {
        FreezeDto {
            since: freeze.at.into(),
            code: freeze.breach.invariant.code().into(),
            text: freeze.breach.to_string(),
            set_aside: freeze.set_aside.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&Keys> for ScheduleDto {
    fn from(keys: &Keys) -> ScheduleDto {
        match keys {
            Keys::Schedule(schedule) => schedule.into(),
            Keys::Events(events) => ScheduleDto { runs: Some(events.program.to_string()), ..ScheduleDto::default() },
            Keys::Requests(_) => ScheduleDto { on_request: Some(true), ..ScheduleDto::default() },
            Keys::Jobs(jobs) => {
                ScheduleDto { job_id: Some(jobs.template.as_str().to_owned()), ..ScheduleDto::default() }
            }
        }
    }
}

impl From<&Schedule> for ScheduleDto {
    fn from(schedule: &Schedule) -> ScheduleDto {
        match schedule {
            Schedule::Dependent(on) => ScheduleDto { depends_on: Some(on.to_string()), ..ScheduleDto::default() },
            Schedule::Calendar(calendar) => calendar.into(),
            Schedule::Cron(cron) => ScheduleDto {
                cron: Some(cron.cron().as_str().to_owned()),
                zone: Some(cron.zone().name().to_owned()),
                gap: Some(match cron.gap() {
                    Gap::Shift => "shift".into(),
                    Gap::Skip => "skip".into(),
                }),
                fold: Some(match cron.effective_fold() {
                    Fold::Second => "second".into(),
                    Fold::Both => "both".into(),
                    Fold::Auto | Fold::First => "first".into(),
                }),
                ..ScheduleDto::default()
            },
        }
    }
}

impl From<&Calendar> for ScheduleDto {
    fn from(calendar: &Calendar) -> ScheduleDto {
        let zone = Some(calendar.zone().name().to_owned());
        let dto = |period: &'static str| ScheduleDto { period: Some(period.into()), zone, ..ScheduleDto::default() };
        let day = |day: &Weekday| Code::from(format!("{day:?}").to_lowercase());
        let texts = |dates: &Dates| dates.iter().map(|date| date.to_string()).collect();
        match calendar.unit() {
            CalendarUnit::Hourly { hours } => ScheduleDto { hours: Some(*hours), ..dto("hourly") },
            CalendarUnit::Daily { .. } => dto("daily"),
            CalendarUnit::Weekly { first, .. } => ScheduleDto { first_day: Some(day(first)), ..dto("weekly") },
            CalendarUnit::Monthly { .. } => dto("monthly"),
            CalendarUnit::Business { weekend, holidays, .. } => {
                let weekend = weekend.iter().map(day).collect();
                ScheduleDto { weekend, dates: texts(holidays), ..dto("business") }
            }
            CalendarUnit::Dates { dates, .. } => ScheduleDto { dates: texts(dates), ..dto("dates") },
        }
    }
}

impl From<&Workflow> for SourceDto {
    fn from(workflow: &Workflow) -> SourceDto {
        let Source { file, line, .. } = &workflow.source;
        SourceDto { provenance: workflow.provenance().as_str().into(), file: file.clone(), line: *line }
    }
}

impl From<&PoolUse> for PoolUseDto {
    fn from(one: &PoolUse) -> PoolUseDto {
        PoolUseDto {
            pool: one.pool.to_string(),
            size: one.limit(),
            permits: one.permits,
            rate: one.rate.as_ref().map(RateDto::from),
        }
    }
}

/// The way in which a workflow puts adjacent slots together.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchRuleDto {
    /// The most slots of a run.
    pub size: u32,
    /// For how many milliseconds a queued slot waits for others where fewer are ready.
    pub delay_millis: u64,
}

impl From<BatchRule> for BatchRuleDto {
    fn from(BatchRule { size, delay_millis }: BatchRule) -> BatchRuleDto {
        BatchRuleDto { size, delay_millis }
    }
}

impl From<&Workflow> for DefinitionDto {
    fn from(workflow: &Workflow) -> DefinitionDto {
        DefinitionDto {
            project: workflow.project.clone(),
            source: workflow.into(),
            schedule: (&workflow.keys).into(),
            trigger: (&workflow.trigger).into(),
            constraints: workflow.constraints.iter().map(ConstraintDto::from).collect(),
            concurrency: workflow.concurrency,
            batch: workflow.batch.map(BatchRuleDto::from),
            pools: workflow.pools.iter().map(PoolUseDto::from).collect(),
            within: workflow.within.iter().map(PoolUseDto::from).collect(),
            retry: workflow.retry.into(),
            start_time: workflow.start_time.map(Instant),
            end_time: workflow.end_time.map(Instant),
            catch_up: workflow.catch_up.map(|policy| policy.as_str().to_owned()),
            wait_timeout_seconds: workflow.wait_timeout_seconds,
            wait_timeout_from: workflow.wait_from.as_str().into(),
            deadline: workflow.deadline.as_ref().and_then(|one| serde_json::to_value(one).ok()),
            job: workflow.into(),
            parameters: workflow.parameters.iter().map(ParameterDto::from).collect(),
            writes: workflow.writes.clone(),
            project_version: workflow.version.clone().map(String::from),
            description: workflow.about.description.clone(),
            url: workflow.about.url.clone(),
            contacts: workflow.about.contacts.iter().map(ContactDto::from).collect(),
            tags: workflow.about.tags.clone(),
        }
    }
}

impl From<RetryPolicy> for RetryDto {
    fn from(retry: RetryPolicy) -> RetryDto {
        RetryDto {
            count: retry.count,
            delay_seconds: retry.delay_seconds,
            growth: match retry.growth {
                Growth::Fixed => "fixed".into(),
                Growth::Exponential => "exponential".into(),
            },
            cap_seconds: retry.cap_seconds,
            jitter_percent: retry.jitter_percent,
            on_unknown: match retry.on_unknown {
                OnUnknown::Retry => "retry".into(),
                OnUnknown::Fail => "fail".into(),
                OnUnknown::Again => "again".into(),
            },
        }
    }
}

impl From<&Workflow> for JobDto {
    fn from(workflow: &Workflow) -> JobDto {
        JobDto {
            executor: workflow.job.executor.clone(),
            settings: masks::masked_fields(&workflow.job.settings),
            properties: match &workflow.job.properties {
                Properties::Fixed(properties) => Some(masks::masked_fields(properties)),
                Properties::Function(_) => None,
            },
        }
    }
}

impl From<&Contact> for ContactDto {
    fn from(contact: &Contact) -> ContactDto {
        ContactDto { name: contact.name.clone(), email: contact.email.clone() }
    }
}
