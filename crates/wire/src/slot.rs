//! Slots, and why they are in their state.

use std::collections::BTreeMap;
use std::fmt;

use kelos_model::facts::{ManualStart, Tally};
use kelos_model::run::shown_id;
use kelos_model::{Collection, Slot, SlotKey, SlotRef, Subject};
use serde::{Deserialize, Serialize};

use crate::{Code, EventDto, ExplanationDto, Instant, RunDto, secrets};

/// Which slot of its workflow: its time or its job id. All answers that name a slot have these fields beside their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyDto {
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl From<&SlotKey> for KeyDto {
    fn from(key: &SlotKey) -> KeyDto {
        KeyDto { time: key.time().map(Instant), job: key.job().map(|id| id.to_string()) }
    }
}

impl fmt::Display for KeyDto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.job, self.time) {
            (Some(job), _) => f.write_str(job),
            (None, Some(time)) => f.write_str(&time.exact()),
            (None, None) => Ok(()),
        }
    }
}

/// The name of a slot. Its text is `wordcount@2016-01-01T00:00Z` or `modelBuild@1_purchase`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotNameDto {
    /// Whose slot.
    pub workflow: String,
    /// Which of its slots.
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
    /// Since when.
    pub since: Instant,
    /// Failed attempts since it was planned or last reopened.
    pub retries: u32,
    /// The number of its latest run; 0 before the first.
    pub last_run: u32,
    /// Whether that run may still be alive; also for a killed or skipped slot whose run is being ended.
    pub run_alive: bool,
    /// What the executor calls that run.
    pub external_id: Option<String>,
    /// Larger goes first; 0 is normal.
    pub priority: i32,
    /// The backfill that last asked for it.
    pub backfill: Option<String>,
    /// When the retry is due, in state `backoff`.
    pub due: Option<Instant>,
    /// What it has collected, where its trigger or its constraints ask for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<CollectedDto>,
}

/// Why a slot stands, or stood, where it does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The moment that this is about.
    pub at: Instant,
    /// The state then; none where the slot did not exist.
    pub state: Option<Code>,
    /// Since when it was in that state.
    pub since: Option<Instant>,
    /// The answer in one sentence.
    pub headline: String,
    /// What stands in the way.
    pub blockers: Vec<String>,
    /// Why it waits for no job though its workflow depends on others: an identifier that none of its groups is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_group: Option<String>,
    /// The jobs that wait for it and are never opened, since their ids can't be written; only for the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless_children: Option<String>,
    /// When it is looked at next by itself; only for the present.
    pub next_look: Option<Instant>,
    /// The event that put it into that state.
    pub decision: Option<EventDto>,
    /// What its trigger was last found to say, with what each leaf read.
    pub trigger: Option<ExplanationDto>,
    /// When that was found.
    pub found_at: Option<Instant>,
    /// What its constraints were last found to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<ExplanationDto>,
    /// When that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints_at: Option<Instant>,
    /// When it expires, if it still waits then; only of a slot of an event schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Instant>,
    /// Its runs up to then, oldest first.
    pub runs: Vec<RunDto>,
}

/// What a slot has collected of the facts that its trigger waits for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CollectedDto {
    /// Since when: timeouts and delays count from here.
    pub since: Instant,
    /// The same in words: `4 partitions of purchases`.
    pub words: Vec<String>,
    /// What came, by what it is about.
    pub tallies: Vec<TallyDto>,
    /// What somebody wants who had it go without its trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedDto>,
    /// Whether its trigger was met once; it stays so.
    pub met: bool,
}

/// What came about one thing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TallyDto {
    /// What it is about: `partition:purchases`.
    pub about: String,
    /// How many facts.
    pub facts: u32,
    /// How much they count together: partitions.
    pub count: u64,
    /// The first of them, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

/// What somebody wants who had a slot go.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AskedDto {
    /// Arguments beside those of its workflow.
    pub arguments: BTreeMap<String, String>,
    /// Whether its constraints are passed over, too.
    pub unconstrained: bool,
    /// Who they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl SlotDto {
    /// The slot of that name.
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
            arguments: secrets::masked_texts(&asked.arguments),
            unconstrained: asked.unconstrained,
            by: asked.by.as_ref().map(ToString::to_string),
        }
    }
}
