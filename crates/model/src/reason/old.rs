//! Reasons as logs have them: of now, and of before, when each node had its sentence and its evidence instead of a finding.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Finding, Reason, ReasonKind};
use crate::key::SlotRef;
use crate::slot::SlotState;
use crate::trigger::{Answer, Probe, Verdict};

/// A reason of any version.
#[derive(Deserialize)]
pub(super) struct StoredReason {
    kind: ReasonKind,
    answer: Answer,
    #[serde(default)]
    finding: Option<Finding>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    evidence: Option<StoredEvidence>,
    #[serde(default)]
    nested: Vec<Reason>,
}

/// What a leaf of before had read.
#[derive(Deserialize)]
#[serde(tag = "read", rename_all = "kebab-case")]
enum StoredEvidence {
    Clock {
        now: Timestamp,
        until: Timestamp,
    },
    Slot {
        slot: SlotRef,
        state: Option<SlotState>,
    },
    Probe {
        probe: Probe,
        verdict: Verdict,
        #[serde(default)]
        detail: String,
        looked_at: Timestamp,
    },
    Asked,
}

impl TryFrom<StoredReason> for Reason {
    type Error = &'static str;

    fn try_from(stored: StoredReason) -> Result<Reason, Self::Error> {
        let StoredReason { kind, answer, finding, text, evidence, nested } = stored;
        let of_before = || Some(Finding::Text { text: text?, about: evidence.map(|read| Box::new(read.into())) });
        let finding = finding.or_else(of_before).ok_or("a reason has neither a finding nor a text")?;
        Ok(Reason { kind, answer, finding, nested })
    }
}

impl From<StoredEvidence> for Finding {
    fn from(evidence: StoredEvidence) -> Finding {
        match evidence {
            StoredEvidence::Clock { now, until } => Finding::DelayUntil { now, until },
            StoredEvidence::Slot { slot, state: Some(state) } => Finding::UpstreamIs { slot, state },
            StoredEvidence::Slot { slot, state: None } => Finding::UpstreamMissing { slot },
            StoredEvidence::Probe { probe, verdict, detail, looked_at } => {
                Finding::ProbeAnswered { probe, verdict, detail, looked_at }
            }
            StoredEvidence::Asked => Finding::Asked,
        }
    }
}
