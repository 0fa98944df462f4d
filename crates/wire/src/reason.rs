//! Reasons: what triggers and constraints found.

use kelos_model::probe::Verdict;
use kelos_model::reason::{Evidence, words};
use kelos_model::{Answer, Reason};
use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// Why a trigger gave its answer: a tree of the same shape as the trigger.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplanationDto {
    /// The kind of trigger, as in a definition.
    #[serde(rename = "type")]
    pub kind: Code,
    /// What was found, for programs: the code stays the same while the words may get better.
    pub code: Code,
    /// `met`, `not-yet` or `never`.
    pub answer: Code,
    /// The answer in words.
    pub text: String,
    /// What a leaf read to find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceDto>,
    /// The answers of the nested triggers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub nested: Vec<ExplanationDto>,
}

/// What a leaf of a trigger read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "read", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EvidenceDto {
    /// The clock.
    Clock {
        /// What it said.
        now: Instant,
        /// The moment that it is compared with.
        until: Instant,
    },
    /// Another slot.
    Slot {
        /// That slot.
        #[serde(flatten)]
        slot: SlotNameDto,
        /// Its state; none where it does not exist.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<Code>,
    },
    /// The outside world.
    Probe {
        /// What it was asked.
        probe: String,
        /// What it said: `yes`, `no`, `never` or `failed`.
        verdict: Code,
        /// What was seen, or why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// When it was looked at.
        looked_at: Instant,
    },
    /// Nothing yet: the question is on its way.
    Asked {},
    /// Something that this version does not know.
    #[serde(untagged)]
    Other {
        /// What was read.
        read: Code,
    },
}

impl From<Reason> for ExplanationDto {
    fn from(reason: Reason) -> ExplanationDto {
        ExplanationDto {
            kind: reason.kind.as_str().to_owned().into(),
            code: reason.finding.code().to_owned().into(),
            answer: match reason.answer {
                Answer::Met => "met",
                Answer::NotYet => "not-yet",
                Answer::Never => "never",
            }
            .into(),
            text: words::text(&reason),
            evidence: reason.evidence().map(EvidenceDto::from),
            nested: reason.nested.into_iter().map(ExplanationDto::from).collect(),
        }
    }
}

impl From<Evidence<'_>> for EvidenceDto {
    fn from(evidence: Evidence<'_>) -> EvidenceDto {
        match evidence {
            Evidence::Clock { now, until } => EvidenceDto::Clock { now: now.into(), until: until.into() },
            Evidence::Slot { slot, state } => {
                EvidenceDto::Slot { slot: slot.into(), state: state.map(|state| state.as_str().into()) }
            }
            Evidence::Probe { probe, verdict, detail, looked_at } => EvidenceDto::Probe {
                probe: probe.to_string(),
                verdict: verdict_name(verdict).into(),
                detail: Some(detail.to_owned()).filter(|detail| !detail.is_empty()),
                looked_at: looked_at.into(),
            },
            Evidence::Asked => EvidenceDto::Asked {},
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
