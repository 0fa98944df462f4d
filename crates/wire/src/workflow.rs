//! Workflows, their definitions, and what is wrong with these.

use kelos_model::Freeze;
use kelos_model::retry::{Growth, OnUnknown, RetryPolicy};
use kelos_model::time::schedule::{Fold, Gap, Schedule};
use kelos_model::workflow::{Contact, Keys, PoolUse, Properties, Source, Workflow, WorkflowRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, ConstraintDto, Counts, Instant, TriggerDto, secrets};

/// A workflow in short.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowDto {
    /// Its id.
    pub id: String,
    /// The unit of deployment that owns it.
    pub project: String,
    /// Whether it is defined now; false once its definition went away.
    pub present: bool,
    /// Whether it is in force at all: an event schedule is disabled until somebody enables it, all else is always enabled.
    pub enabled: bool,
    /// Whether a person paused it.
    pub paused: bool,
    /// Since when and why nothing of it is planned, looked at or started: the scheduler found something wrong in itself
    /// about it. `POST /workflows/{id}/resume` ends that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FreezeDto>,
    /// Counts its definitions, from 1.
    pub version: u32,
    /// When its slots are.
    pub schedule: ScheduleDto,
    /// The executor of its job.
    pub executor: String,
    /// What it is for.
    pub description: Option<String>,
    /// A page about it.
    pub url: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Where it is defined.
    pub source: SourceDto,
}

/// The reason why a workflow is left alone until somebody resumes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FreezeDto {
    /// Since when.
    pub since: Instant,
    /// Code of the invariant that broke; it never changes.
    pub code: Code,
    /// What broke, in words.
    pub text: String,
    /// Runs whose reports were set aside: they are not heard until the workflow is resumed, and asked about then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<String>,
}

/// A workflow in full.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowDetailDto {
    /// What lists show of it.
    #[serde(flatten)]
    pub summary: WorkflowDto,
    /// Its definition.
    pub definition: DefinitionDto,
    /// The next times of its schedule.
    pub next_times: Vec<Instant>,
    /// Why its schedule has no times, where it can't be followed.
    pub schedule_problem: Option<String>,
    /// How many of its slots are in each state.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub counts: Counts,
    /// What is wrong with its file.
    pub problems: Vec<ProblemDto>,
}

/// What makes the slots of a workflow: the times of a cron expression, or those of another workflow, or job ids.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScheduleDto {
    /// A Quartz cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone in which it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What happens to times that the zone leaves out: `shift` or `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Code>,
    /// What happens to times that the zone has twice: `first`, `second` or `both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<Code>,
    /// The workflow whose schedule it borrows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<String>,
    /// How its job ids are made of identifiers: `{date}_{client_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The workflow that it runs, where it is an event schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// Whether it has no schedule of its own: a program, which people start and event schedules run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_request: Option<bool>,
}

/// Where a definition comes from, and where it stands there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceDto {
    /// Who gives it: `file`, `api` (an event schedule that was made or changed by a request) or `code` (the program that Kelos is a
    /// library of). What one of them says leaves the definitions of the others alone.
    pub provenance: Code,
    /// The file, relative to the folder of definitions; empty where it is in none.
    pub file: String,
    /// The line, from 1; 0 where unknown.
    pub line: u32,
}

/// The definition of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DefinitionDto {
    /// The unit of deployment that owns it.
    pub project: String,
    /// Where it stands.
    pub source: SourceDto,
    /// When its slots are.
    pub schedule: ScheduleDto,
    /// When a slot may go.
    pub trigger: TriggerDto,
    /// What must hold besides, once the trigger is met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<ConstraintDto>,
    /// How many of its slots may run at a time; null where that has no limit.
    pub concurrency: Option<u32>,
    /// The pools whose permits each of its runs holds.
    pub pools: Vec<PoolUseDto>,
    /// What happens after a failure.
    pub retry: RetryDto,
    /// No slot before this moment is planned by the schedule.
    pub start_time: Option<Instant>,
    /// A slot that still waits this long after its time expires; none waits for ever.
    pub wait_timeout_seconds: Option<u64>,
    /// What is executed.
    pub job: JobDto,
    /// What it is for.
    pub description: Option<String>,
    /// A page about it.
    pub url: Option<String>,
    /// Who knows more.
    pub contacts: Vec<ContactDto>,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// What each run takes of a pool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PoolUseDto {
    /// Its name.
    pub pool: String,
    /// How many permits it has by this definition; the smallest that a definition says holds.
    pub size: u32,
    /// How many of them a run takes.
    pub permits: u32,
}

/// How often a failed slot is tried again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryDto {
    /// Retries after the first attempt.
    pub count: u32,
    /// Wait before the first retry.
    pub delay_seconds: u64,
    /// How the wait grows: `fixed` or `exponential`.
    pub growth: Code,
    /// No wait is longer than this.
    pub cap_seconds: Option<u64>,
    /// Up to this share of the wait is taken off by chance.
    pub jitter_percent: u8,
    /// What an unknown outcome leads to: `retry` or `fail`.
    pub on_unknown: Code,
}

/// What is executed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobDto {
    /// The name of the executor.
    pub executor: String,
    /// What the executor needs; texts inside are templates.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub settings: Map<String, Value>,
    /// What the job is given; none where a function of the script says so for each slot.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub properties: Option<Map<String, Value>>,
}

/// A person or a team.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContactDto {
    /// Name, where given.
    pub name: Option<String>,
    /// Address, where given.
    pub email: Option<String>,
}

/// A definition as it once was.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PastDefinitionDto {
    /// Counts the definitions of a workflow, from 1.
    pub version: u32,
    /// When it came into force.
    pub at: Instant,
    /// The definition.
    pub definition: DefinitionDto,
    /// The text of the file that it came from, where known.
    pub source: Option<String>,
}

/// Something wrong with a file of definitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemDto {
    /// `error` or `warning`.
    pub severity: Code,
    /// Of which kind it is: a word that stays the same.
    pub code: Code,
    /// The file, relative to the folder of definitions.
    pub file: String,
    /// Line, from 1; 0 where unknown.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
    /// What is wrong and what was expected.
    pub message: String,
    /// What could be done about it.
    pub hint: Option<String>,
    /// The workflow that it is about.
    pub workflow: Option<String>,
    /// Whether an earlier, good version of the file is in use in its place.
    pub kept_last_good: bool,
    /// The text of that line.
    pub source_line: Option<String>,
}

/// Times of a schedule.
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

impl From<&Workflow> for SourceDto {
    fn from(workflow: &Workflow) -> SourceDto {
        let Source { file, line, .. } = &workflow.source;
        SourceDto { provenance: workflow.provenance().as_str().into(), file: file.clone(), line: *line }
    }
}

impl From<&PoolUse> for PoolUseDto {
    fn from(one: &PoolUse) -> PoolUseDto {
        PoolUseDto { pool: one.pool.to_string(), size: one.size, permits: one.permits }
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
            pools: workflow.pools.iter().map(PoolUseDto::from).collect(),
            retry: workflow.retry.into(),
            start_time: workflow.start_time.map(Instant),
            wait_timeout_seconds: workflow.wait_timeout_seconds,
            job: workflow.into(),
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
            },
        }
    }
}

impl From<&Workflow> for JobDto {
    fn from(workflow: &Workflow) -> JobDto {
        JobDto {
            executor: workflow.job.executor.clone(),
            settings: secrets::masked_fields(&workflow.job.settings),
            properties: match &workflow.job.properties {
                Properties::Fixed(properties) => Some(secrets::masked_fields(properties)),
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
