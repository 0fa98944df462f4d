//! Critical paths on the wire.

use kelos_explain::critical_path::{CriticalPath, Link, Step, Waited};
use kelos_model::SlotState;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Instant, job, time};

/// What determined when a slot ended, or keeps it from ending.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CriticalPathDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// When the path begins: when the first of its slots was planned, or opened again.
    from: Instant,
    /// When the slot ended; the present where it has not.
    until: Instant,
    /// Whether the slot has ended.
    is_over: bool,
    /// How long the path is.
    millis: i64,
    /// The slots on it, the furthest back first; the last one is the slot itself.
    links: Vec<LinkDto>,
    /// Why it is not traced further back, where that is not because it begins there.
    cut: Option<String>,
}

/// A slot on a path, and its share of the time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Its state when the path leaves it; none where it did not exist.
    state: Option<&'static str>,
    /// From when on the path is at this slot.
    from: Instant,
    /// Until when.
    until: Instant,
    /// How long.
    millis: i64,
    /// Its share of the path.
    percent: f64,
    /// What it did, in one sentence.
    sentence: String,
    /// How it came to be open, where the path begins here.
    opened: Option<String>,
    /// Its wait for the slot before it on the path.
    waited: Option<WaitedDto>,
    /// What it did in its share of the time, oldest first, without gaps.
    steps: Vec<StepDto>,
    /// What stands in its way besides, in words.
    besides: Vec<String>,
}

/// A wait for another slot.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WaitedDto {
    /// Whose slot it waited for.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Since when.
    from: Instant,
    /// Until when.
    until: Instant,
}

/// A stretch of time on a path.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StepDto {
    /// `waited`, `queued`, `starting`, `ran`, `backed-off`, or `stuck` (it had ended without success).
    kind: &'static str,
    /// From when on.
    from: Instant,
    /// Until when.
    until: Instant,
    /// How long.
    millis: i64,
    /// The number of the run that it is about.
    run: Option<u32>,
    /// What was waited for, or how it ended; may be empty.
    text: String,
}

impl From<CriticalPath> for CriticalPathDto {
    fn from(path: CriticalPath) -> CriticalPathDto {
        CriticalPathDto {
            workflow: path.slot.workflow.to_string(),
            time: time(&path.slot.key),
            job: job(&path.slot.key),
            from: path.from.into(),
            until: path.until.into(),
            is_over: path.is_over,
            millis: path.millis(),
            links: path.links.iter().map(|link| LinkDto::of(&path, link)).collect(),
            cut: path.cut,
        }
    }
}

impl LinkDto {
    fn of(path: &CriticalPath, link: &Link) -> LinkDto {
        LinkDto {
            workflow: link.slot.workflow.to_string(),
            time: time(&link.slot.key),
            job: job(&link.slot.key),
            state: link.state.map(SlotState::as_str),
            from: link.from.into(),
            until: link.until.into(),
            millis: link.millis(),
            percent: (path.percent(link.millis()) * 10.0).round() / 10.0,
            sentence: path.sentence(link),
            opened: link.opened.clone(),
            waited: link.waited.as_ref().map(WaitedDto::from),
            steps: link.steps.iter().map(StepDto::from).collect(),
            besides: link.besides.clone(),
        }
    }
}

impl From<&Waited> for WaitedDto {
    fn from(waited: &Waited) -> WaitedDto {
        WaitedDto {
            workflow: waited.on.workflow.to_string(),
            time: time(&waited.on.key),
            job: job(&waited.on.key),
            from: waited.from.into(),
            until: waited.until.into(),
        }
    }
}

impl From<&Step> for StepDto {
    fn from(step: &Step) -> StepDto {
        StepDto {
            kind: step.kind.as_str(),
            from: step.from.into(),
            until: step.until.into(),
            millis: step.millis(),
            run: step.run,
            text: step.words.clone(),
        }
    }
}
