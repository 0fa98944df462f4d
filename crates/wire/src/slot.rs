//! Slots, and explanations of their states.

use std::collections::BTreeMap;
use std::fmt;

use kelos_model::facts::{ManualStart, Tally};
use kelos_model::run::shown_id;
use kelos_model::{Collection, Slot, SlotKey, SlotRef, Subject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Code, EventDto, ExplanationDto, Instant, RootDto, RunDto};

/// The key of a slot: its time, its job id, or its name. All answers that name a slot have these fields beside their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyDto {
    /// Its scheduled time; absent for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Instant>,
    /// Its job id; only for a job, which is a slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its complete key; only for a run that was started by a name, `.order-42`, and for a step of a flow, `.order-42.pay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl From<&SlotKey> for KeyDto {
    fn from(key: &SlotKey) -> KeyDto {
        let is_named = matches!(key, SlotKey::Named(_) | SlotKey::Step(_));
        KeyDto {
            time: key.time().map(Instant),
            job: key.job().map(|id| id.to_string()),
            key: is_named.then(|| key.to_string()),
        }
    }
}

impl fmt::Display for KeyDto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.job, self.time) {
            (Some(job), _) => f.write_str(job),
            (None, Some(time)) => f.write_str(&time.exact()),
            (None, None) => {
                let key = self.key.as_deref().unwrap_or_default();
                let typed = SlotKey::parse(key).map(|key| key.typed());
                f.write_str(typed.as_deref().unwrap_or(key))
            }
        }
    }
}

/// The name of a slot. Its text is `wordcount@2016-01-01T00:00Z` or `modelBuild@1_purchase`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotNameDto {
    /// Its workflow.
    pub workflow: String,
    /// Its key.
    #[serde(flatten)]
    pub key: KeyDto,
}

impl From<&SlotRef> for SlotNameDto {
    fn from(slot: &SlotRef) -> SlotNameDto {
        SlotNameDto { workflow: slot.workflow.to_string(), key: (&slot.key).into() }
    }
}

impl fmt::Display for SlotNameDto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.workflow, self.key)
    }
}

/// A slot: a workflow at a time, or one of its jobs; the unit of state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlotDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `waiting`, `held`, `queued`, `dispatched`, `running`, `backoff`, `succeeded`, `failed`, `expired`,
    /// `skipped` or `killed`.
    pub state: Code,
    /// When it entered this state.
    pub since: Instant,
    /// Failed attempts since it was planned or last reopened.
    pub retries: u32,
    /// The number of its latest run; 0 before the first.
    pub last_run: u32,
    /// Whether that run may still be live; also for a killed or skipped slot whose run is being ended.
    pub run_alive: bool,
    /// The executor's name of that run.
    pub external_id: Option<String>,
    /// Its priority: larger numbers run first; 0 by default.
    pub priority: i32,
    /// The latest backfill that it belongs to.
    pub backfill: Option<String>,
    /// When the retry is due, in state `backoff`.
    pub due: Option<Instant>,
    /// The deadline that it missed since it was last opened, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Instant>,
    /// The facts that it has collected, if its trigger waits for facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<CollectedDto>,
}

/// The explanation of a slot's state, now or at an earlier time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The time of the explanation.
    pub at: Instant,
    /// The state at that time; none if the slot did not exist.
    pub state: Option<Code>,
    /// When it entered that state.
    pub since: Option<Instant>,
    /// The answer in one sentence.
    pub headline: String,
    /// The obstacles that block it.
    pub blockers: Vec<String>,
    /// The reason that it has no parents although its app has dependencies: an identifier that no group covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
    /// The reason that its workflow, as it is defined now, would not plan it: its start was moved, its calendar changed, or it was
    /// removed; only for the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_range: Option<String>,
    /// The version of the definition with which its latest run by then began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_version: Option<u32>,
    /// The version of the project that this definition carries, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_version: Option<String>,
    /// Its children that are never opened, because their ids can't be formed; only for the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless_children: Option<String>,
    /// The next time at which it is evaluated without an event; only for the present.
    pub next_look: Option<Instant>,
    /// The event by which it entered that state.
    pub decision: Option<EventDto>,
    /// The latest answer of its trigger, with the evidence of each leaf.
    pub trigger: Option<ExplanationDto>,
    /// The time of that answer.
    pub found_at: Option<Instant>,
    /// The latest answer of its constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<ExplanationDto>,
    /// The time of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints_at: Option<Instant>,
    /// When it expires unless it is queued before; only for a slot of an event schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Instant>,
    /// Its deadline, if its workflow has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Instant>,
    /// Whether it has missed that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The deadline in words, with whether it was missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_words: Option<String>,
    /// The expected end of a live slot with a deadline, from recorded runs; only for the present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Instant>,
    /// The comparison of that with the deadline, with the slot that decides it, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<String>,
    /// Its runs up to that time, oldest first.
    pub runs: Vec<RunDto>,
    /// The root causes of its wait, however far upstream: what a person has to repair comes first.
    #[serde(default)]
    pub roots: Vec<RootDto>,
    /// The number of further roots, which are omitted.
    #[serde(default)]
    pub more_roots: usize,
    /// The number of slots on the way that were not examined, because there are too many.
    #[serde(default)]
    pub unexamined: usize,
}

/// The facts that a slot has collected.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CollectedDto {
    /// When it began to collect, from which timeouts and delays count.
    pub since: Instant,
    /// The facts in words: `4 partitions of purchases`.
    pub words: Vec<String>,
    /// The facts by their subjects.
    pub tallies: Vec<TallyDto>,
    /// The manual start, if it was fired by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedDto>,
    /// The arguments that later requests gave it: reruns, backfills and submits. Secrets are masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// Whether its trigger has been met, which lasts.
    pub met: bool,
}

/// The facts about one subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TallyDto {
    /// The subject: `partition:purchases`.
    pub about: String,
    /// The number of facts.
    pub facts: u32,
    /// Their total, such as the number of partitions.
    pub count: u64,
    /// The first fact in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

/// A manual start of a slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AskedDto {
    /// Arguments in addition to those of its workflow.
    pub arguments: BTreeMap<String, Value>,
    /// Whether its constraints are ignored, too.
    pub unconstrained: bool,
    /// The name of the actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl SlotDto {
    /// A slot with its name.
    #[must_use]
    pub fn new(id: &SlotRef, slot: Slot) -> SlotDto {
        SlotDto {
            slot: id.into(),
            state: slot.state.as_str().into(),
            since: slot.since.into(),
            retries: slot.retries,
            last_run: slot.last_run,
            run_alive: slot.run_alive,
            external_id: slot.external_id.as_deref().map(shown_id).map(str::to_owned),
            priority: slot.priority,
            backfill: slot.backfill.map(String::from),
            due: slot.due.map(Instant),
            late: slot.late.map(Instant),
            collected: slot.collected.as_deref().map(CollectedDto::from),
        }
    }
}

impl From<&Collection> for CollectedDto {
    fn from(collected: &Collection) -> CollectedDto {
        CollectedDto {
            since: collected.since.into(),
            words: collected.words(),
            tallies: collected.tallies.iter().map(TallyDto::from).collect(),
            asked: collected.asked.as_ref().map(AskedDto::from),
            arguments: collected.arguments.clone(),
            met: collected.met,
        }
    }
}

impl From<(&Subject, &Tally)> for TallyDto {
    fn from((subject, tally): (&Subject, &Tally)) -> TallyDto {
        TallyDto {
            about: subject.to_string(),
            facts: tally.facts,
            count: tally.count,
            first: tally.first.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&ManualStart> for AskedDto {
    fn from(asked: &ManualStart) -> AskedDto {
        AskedDto {
            arguments: asked.arguments.clone(),
            unconstrained: asked.unconstrained,
            by: asked.by.as_ref().map(ToString::to_string),
        }
    }
}
