//! Triggers and their explanations on the wire.

use kelos_model::reason::{Evidence, words};
use kelos_model::trigger::{Conditions, FileSystem, Verdict};
use kelos_model::{Answer, Reason, ReasonKind, Trigger};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Instant, job, time};

/// A trigger: a tree over leaves that look at the clock, at other slots, or at the outside world.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TriggerDto {
    /// `always`, `and`, `or`, `not`, `offset`, `delay`, `success`, `job`, `hdfs-path`, `local-path`, `path`, `function`,
    /// `partitions`, `ended`, `fired` or `signal`.
    #[serde(rename = "type")]
    kind: String,
    /// Of `offset` and `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<i64>,
    /// Of `success`, `job` and `ended`: the other workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    /// Of `job`: a template of its job id.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Of `hdfs-path`, `local-path` and `path`: a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The file system that a path without a scheme belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    /// What must hold of what is at the path, beside that it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<ConditionsDto>,
    /// Of `function`: the file that defined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Of `partitions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Of `partitions`: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    /// Of `ended`: `succeeded`, `failed`, `killed`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    states: Vec<&'static str>,
    /// Of `fired`: an expression of five or six fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// Of `fired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// Of `signal`: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// The nested triggers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    nested: Vec<TriggerDto>,
}

/// What must hold of what is at a path.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionsDto {
    /// Files of the folder whose names match this.
    #[serde(skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    /// How many files must be there at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_count: Option<u32>,
    /// How many bytes must be in it at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_bytes: Option<u64>,
    /// For how many seconds nothing must have been written to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_age_seconds: Option<u32>,
}

impl From<&Conditions> for ConditionsDto {
    fn from(conditions: &Conditions) -> ConditionsDto {
        let Conditions { glob, min_count, min_bytes, min_age_seconds } = conditions.clone();
        ConditionsDto { glob, min_count, min_bytes, min_age_seconds }
    }
}

impl TriggerDto {
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }
}

impl From<&Trigger> for TriggerDto {
    fn from(trigger: &Trigger) -> TriggerDto {
        let nested = trigger.nested().iter().map(TriggerDto::from).collect();
        let of = |kind: ReasonKind| TriggerDto { kind: kind.as_str().to_owned(), ..TriggerDto::default() };
        let own = match trigger {
            Trigger::Always => of(ReasonKind::Always),
            Trigger::And { .. } => of(ReasonKind::And),
            Trigger::Or { .. } => of(ReasonKind::Or),
            Trigger::Not { .. } => of(ReasonKind::Not),
            Trigger::Offset { seconds, .. } => TriggerDto { seconds: Some(*seconds), ..of(ReasonKind::Offset) },
            Trigger::Delay { seconds } => TriggerDto { seconds: Some(*seconds), ..of(ReasonKind::Delay) },
            Trigger::Success { workflow } => {
                TriggerDto { workflow: Some(workflow.to_string()), ..of(ReasonKind::Success) }
            }
            Trigger::Job { workflow, job } => {
                TriggerDto { workflow: Some(workflow.to_string()), job: Some(job.clone()), ..of(ReasonKind::Job) }
            }
            Trigger::Path(check) => {
                let kind = match check.system {
                    FileSystem::Hdfs => ReasonKind::HdfsPath,
                    FileSystem::Local => ReasonKind::LocalPath,
                    FileSystem::Any => ReasonKind::Path,
                };
                let conditions = Some(ConditionsDto::from(&check.conditions)).filter(|_| !check.conditions.is_empty());
                let (path, base) = (Some(check.path.clone()), Some(check.base.clone()));
                TriggerDto { path, base, conditions, ..of(kind) }
            }
            Trigger::Partitions { dataset, count } => {
                TriggerDto { dataset: Some(dataset.to_string()), count: Some(*count), ..of(ReasonKind::Partitions) }
            }
            Trigger::Ended { program, states } => TriggerDto {
                workflow: Some(program.to_string()),
                states: states.iter().map(|state| state.as_str()).collect(),
                ..of(ReasonKind::Ended)
            },
            Trigger::Fired { firing } => TriggerDto {
                cron: Some(firing.text().to_owned()),
                zone: Some(firing.zone().name().to_owned()),
                ..of(ReasonKind::Fired)
            },
            Trigger::Signal { name } => TriggerDto { signal: Some(name.to_string()), ..of(ReasonKind::Signal) },
            Trigger::Function { function } => {
                TriggerDto { file: Some(function.file.clone()), ..of(ReasonKind::Function) }
            }
        };
        TriggerDto { nested, ..own }
    }
}

/// Why a trigger gave its answer: a tree of the same shape as the trigger.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplanationDto {
    /// The kind of trigger, as in a definition.
    #[serde(rename = "type")]
    kind: String,
    /// What was found, for programs: the code stays the same while the words may get better.
    code: String,
    /// `met`, `not-yet` or `never`.
    answer: &'static str,
    /// The answer in words.
    text: String,
    /// What a leaf read to find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<EvidenceDto>,
    /// The answers of the nested triggers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    nested: Vec<ExplanationDto>,
}

/// What a leaf of a trigger read.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvidenceDto {
    /// `clock`, `slot`, `probe`, or `asked` while the question is on its way.
    read: &'static str,
    /// What the clock said.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Instant>,
    /// The moment that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Instant>,
    /// The workflow of the slot that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    /// The time of the slot that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// The job id of the slot that was read, where it is a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// The state of that slot; none where it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// What the outside world was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<String>,
    /// What it said: `yes`, `no`, `never` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    /// What was seen, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// When it was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_at: Option<Instant>,
}

impl From<Reason> for ExplanationDto {
    fn from(explanation: Reason) -> ExplanationDto {
        ExplanationDto {
            kind: explanation.kind.as_str().to_owned(),
            code: explanation.finding.code().to_owned(),
            answer: match explanation.answer {
                Answer::Met => "met",
                Answer::NotYet => "not-yet",
                Answer::Never => "never",
            },
            text: words::text(&explanation),
            evidence: explanation.evidence().map(EvidenceDto::from),
            nested: explanation.nested.into_iter().map(ExplanationDto::from).collect(),
        }
    }
}

impl From<Evidence<'_>> for EvidenceDto {
    fn from(evidence: Evidence<'_>) -> EvidenceDto {
        match evidence {
            Evidence::Clock { now, until } => EvidenceDto {
                read: "clock",
                now: Some(now.into()),
                until: Some(until.into()),
                ..EvidenceDto::default()
            },
            Evidence::Slot { slot, state } => EvidenceDto {
                read: "slot",
                workflow: Some(slot.workflow.to_string()),
                time: time(&slot.key),
                job: job(&slot.key),
                state: state.map(kelos_model::SlotState::as_str),
                ..EvidenceDto::default()
            },
            Evidence::Probe { probe, verdict, detail, looked_at } => EvidenceDto {
                read: "probe",
                probe: Some(probe.to_string()),
                verdict: Some(verdict_name(verdict)),
                detail: Some(detail.to_owned()).filter(|detail| !detail.is_empty()),
                looked_at: Some(looked_at.into()),
                ..EvidenceDto::default()
            },
            Evidence::Asked => EvidenceDto { read: "asked", ..EvidenceDto::default() },
        }
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Never => "never",
        Verdict::Failed => "failed",
    }
}
