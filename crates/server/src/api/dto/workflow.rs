//! Workflows and their definitions on the wire.

use kelos_model::Freeze;
use kelos_model::retry::{Growth, OnUnknown, RetryPolicy};
use kelos_model::time::schedule::{Fold, Gap, Schedule};
use kelos_model::workflow::{Contact, Keys, PoolUse, Properties, Source, Workflow, WorkflowRow};
use kelos_sandbox::{Problem, Severity};
use kelos_store::PastDefinition;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::constraint::ConstraintDto;
use super::trigger::TriggerDto;
use super::{Counts, Instant};
use crate::secrets;

/// A workflow in short.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowDto {
    /// Its id.
    id: String,
    /// The unit of deployment that owns it.
    project: String,
    /// Whether it is defined now; false once its definition went away.
    present: bool,
    /// Whether it is in force at all: an event schedule is disabled until somebody enables it, all else is always enabled.
    enabled: bool,
    /// Whether a person paused it.
    paused: bool,
    /// Since when and why nothing of it is planned, looked at or started: the scheduler found something wrong in itself
    /// about it. `POST /workflows/{id}/resume` ends that.
    #[serde(skip_serializing_if = "Option::is_none")]
    frozen: Option<FreezeDto>,
    /// Counts its definitions, from 1.
    version: u32,
    /// When its slots are.
    schedule: ScheduleDto,
    /// The executor of its job.
    executor: String,
    /// What it is for.
    description: Option<String>,
    /// A page about it.
    url: Option<String>,
    /// Words to find it by.
    tags: Vec<String>,
    /// Where it is defined.
    source: SourceDto,
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

/// The reason why a workflow is left alone until somebody resumes it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FreezeDto {
    /// Since when.
    since: Instant,
    /// Code of the invariant that broke; it never changes.
    code: &'static str,
    /// What broke, in words.
    text: String,
    /// Runs whose reports were set aside: they are not heard until the workflow is resumed, and asked about then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_aside: Vec<String>,
}

impl From<&Freeze> for FreezeDto {
    fn from(freeze: &Freeze) -> FreezeDto {
        FreezeDto {
            since: freeze.at.into(),
            code: freeze.breach.invariant.code(),
            text: freeze.breach.to_string(),
            set_aside: freeze.set_aside.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A workflow in full.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowDetailDto {
    /// What lists show of it.
    #[serde(flatten)]
    pub(crate) summary: WorkflowDto,
    /// Its definition.
    pub(crate) definition: DefinitionDto,
    /// The next times of its schedule.
    pub(crate) next_times: Vec<Instant>,
    /// Why its schedule has no times, where it can't be followed.
    pub(crate) schedule_problem: Option<String>,
    /// How many of its slots are in each state.
    #[schema(value_type = std::collections::BTreeMap<String, u64>)]
    pub(crate) counts: Counts,
    /// What is wrong with its file.
    pub(crate) problems: Vec<ProblemDto>,
}

/// What makes the slots of a workflow: the times of a cron expression, or those of another workflow, or job ids.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduleDto {
    /// A Quartz cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// The time zone in which it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// What happens to times that the zone leaves out: `shift` or `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<&'static str>,
    /// What happens to times that the zone has twice: `first`, `second` or `both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    fold: Option<&'static str>,
    /// The workflow whose schedule it borrows.
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<String>,
    /// How its job ids are made of identifiers: `{date}_{client_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    /// The workflow that it runs, where it is an event schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<String>,
    /// Whether it has no schedule of its own: a program, which people start and event schedules run.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_request: Option<bool>,
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
                    Gap::Shift => "shift",
                    Gap::Skip => "skip",
                }),
                fold: Some(match cron.effective_fold() {
                    Fold::Second => "second",
                    Fold::Both => "both",
                    Fold::Auto | Fold::First => "first",
                }),
                ..ScheduleDto::default()
            },
        }
    }
}

/// Where a definition comes from, and where it stands there.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceDto {
    /// Who gives it: `file`, `api` (an event schedule that was made or changed by a request) or `code` (the program that Kelos is a
    /// library of). What one of them says leaves the definitions of the others alone.
    provenance: &'static str,
    /// The file, relative to the folder of definitions; empty where it is in none.
    file: String,
    /// The line, from 1; 0 where unknown.
    line: u32,
}

impl From<&Workflow> for SourceDto {
    fn from(workflow: &Workflow) -> SourceDto {
        let Source { file, line, .. } = &workflow.source;
        SourceDto { provenance: workflow.provenance().as_str(), file: file.clone(), line: *line }
    }
}

/// The definition of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DefinitionDto {
    /// The unit of deployment that owns it.
    project: String,
    /// Where it stands.
    source: SourceDto,
    /// When its slots are.
    schedule: ScheduleDto,
    /// When a slot may go.
    trigger: TriggerDto,
    /// What must hold besides, once the trigger is met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<ConstraintDto>,
    /// How many of its slots may run at a time; null where that has no limit.
    concurrency: Option<u32>,
    /// The pools whose permits each of its runs holds.
    pools: Vec<PoolUseDto>,
    /// What happens after a failure.
    retry: RetryDto,
    /// No slot before this moment is planned by the schedule.
    start_time: Option<Instant>,
    /// A slot that still waits this long after its time expires; none waits for ever.
    wait_timeout_seconds: Option<u64>,
    /// What is executed.
    job: JobDto,
    /// What it is for.
    description: Option<String>,
    /// A page about it.
    url: Option<String>,
    /// Who knows more.
    contacts: Vec<ContactDto>,
    /// Words to find it by.
    tags: Vec<String>,
}

/// What each run takes of a pool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolUseDto {
    /// Its name.
    pool: String,
    /// How many permits it has by this definition; the smallest that a definition says holds.
    size: u32,
    /// How many of them a run takes.
    permits: u32,
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

/// How often a failed slot is tried again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryDto {
    /// Retries after the first attempt.
    count: u32,
    /// Wait before the first retry.
    delay_seconds: u64,
    /// How the wait grows: `fixed` or `exponential`.
    growth: &'static str,
    /// No wait is longer than this.
    cap_seconds: Option<u64>,
    /// Up to this share of the wait is taken off by chance.
    jitter_percent: u8,
    /// What an unknown outcome leads to: `retry` or `fail`.
    on_unknown: &'static str,
}

impl From<RetryPolicy> for RetryDto {
    fn from(retry: RetryPolicy) -> RetryDto {
        RetryDto {
            count: retry.count,
            delay_seconds: retry.delay_seconds,
            growth: match retry.growth {
                Growth::Fixed => "fixed",
                Growth::Exponential => "exponential",
            },
            cap_seconds: retry.cap_seconds,
            jitter_percent: retry.jitter_percent,
            on_unknown: match retry.on_unknown {
                OnUnknown::Retry => "retry",
                OnUnknown::Fail => "fail",
            },
        }
    }
}

/// What is executed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobDto {
    /// The name of the executor.
    executor: String,
    /// What the executor needs; texts inside are templates.
    #[schema(value_type = Object)]
    settings: Map<String, Value>,
    /// What the job is given; none where a function of the script says so for each slot.
    #[schema(value_type = Option<Object>)]
    properties: Option<Map<String, Value>>,
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

/// A person or a team.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContactDto {
    /// Name, where given.
    name: Option<String>,
    /// Address, where given.
    email: Option<String>,
}

impl From<&Contact> for ContactDto {
    fn from(contact: &Contact) -> ContactDto {
        ContactDto { name: contact.name.clone(), email: contact.email.clone() }
    }
}

/// A definition as it once was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PastDefinitionDto {
    /// Counts the definitions of a workflow, from 1.
    version: u32,
    /// When it came into force.
    at: Instant,
    /// The definition.
    definition: DefinitionDto,
    /// The text of the file that it came from, where known.
    source: Option<String>,
}

impl From<PastDefinition> for PastDefinitionDto {
    fn from(past: PastDefinition) -> PastDefinitionDto {
        PastDefinitionDto {
            version: past.version,
            at: past.at.into(),
            definition: (&past.definition).into(),
            source: past.source.as_deref().map(secrets::masked_source),
        }
    }
}

/// Something wrong with a file of definitions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemDto {
    /// `error` or `warning`.
    severity: &'static str,
    /// Of which kind it is: a word that stays the same.
    code: &'static str,
    /// The file, relative to the folder of definitions.
    file: String,
    /// Line, from 1; 0 where unknown.
    line: u32,
    /// Column, from 1; 0 where unknown.
    column: u32,
    /// What is wrong and what was expected.
    message: String,
    /// What could be done about it.
    hint: Option<String>,
    /// The workflow that it is about.
    workflow: Option<String>,
    /// Whether an earlier, good version of the file is in use in its place.
    kept_last_good: bool,
    /// The text of that line.
    source_line: Option<String>,
}

impl From<Problem> for ProblemDto {
    fn from(problem: Problem) -> ProblemDto {
        ProblemDto {
            severity: match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: problem.code.as_str(),
            file: problem.file,
            line: problem.line,
            column: problem.column,
            message: problem.message,
            hint: problem.hint,
            workflow: problem.workflow.map(String::from),
            kept_last_good: problem.kept_last_good,
            source_line: problem.source_line.as_deref().map(secrets::masked_source),
        }
    }
}
