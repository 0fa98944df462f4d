//! Explanations of triggers and constraints.

use kelos_model::probe::Verdict;
use kelos_model::reason::{Evidence, words};
use kelos_model::{Answer, Reason};
use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// The explanation of a trigger's answer: a tree of the same shape as the trigger.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplanationDto {
    /// The kind of trigger, as in a definition.
    #[serde(rename = "type")]
    pub kind: Code,
    /// The stable code of the finding.
    pub code: Code,
    /// `met`, `not-yet` or `never`.
    pub answer: Code,
    /// The answer in words.
    pub text: String,
    /// The evidence of a leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceDto>,
    /// The explanations of the nested triggers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub nested: Vec<ExplanationDto>,
}

/// The evidence for the answer of a leaf.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "read", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EvidenceDto {
    /// A reading of the clock.
    Clock {
        /// The current time.
        now: Instant,
        /// The time that it was compared with.
        until: Instant,
    },
    /// The state of another slot.
    Slot {
        /// The slot.
        #[serde(flatten)]
        slot: SlotNameDto,
        /// Its state; none if it does not exist.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<Code>,
    },
    /// The answer of a probe.
    Probe {
        /// The question.
        probe: String,
        /// The answer: `yes`, `no`, `never` or `failed`.
        verdict: Code,
        /// Details of the answer, or why the probe failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The time of the answer.
        looked_at: Instant,
    },
    /// A probe that has not answered yet.
    Asked {},
    /// Evidence of a newer version.
    #[serde(untagged)]
    Other {
        /// Its kind.
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
