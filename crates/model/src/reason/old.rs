//! Reasons as logs have them: of now, and of before, when each node had its sentence and its evidence instead of a finding.

use jiff::Timestamp;
use serde::Deserialize;

use super::fnv::hashed;
use super::{Answer, Evidence, Finding, Reason, ReasonKind};
use crate::key::SlotRef;
use crate::probe::{Probe, Verdict};
use crate::state::SlotState;

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

/// The evidence of a leaf in the old form.
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

/// The number of success among the old kinds of evidence.
const SUCCEEDED: u8 = 24;

/// The digest of a reason in the old form, made as it was made then: rows of slots have it, and the fold of the log must agree with them.
pub(super) fn hash(reason: &Reason, before: u64) -> u64 {
    let text = if let Finding::Text { text, .. } = &reason.finding { text.as_str() } else { "" };
    let own = [kind(&reason.kind), answer(reason.answer), evidence(reason), reason.nested.len() as u8];
    let hash = text.bytes().chain(own).fold(before, hashed);
    reason.nested.iter().fold(hash, |hash, nested| self::hash(nested, hash))
}

fn evidence(reason: &Reason) -> u8 {
    match reason.evidence() {
        Some(Evidence::Probe { verdict: Verdict::Yes, .. }) => 0,
        Some(Evidence::Probe { verdict: Verdict::No, .. }) => 1,
        Some(Evidence::Probe { verdict: Verdict::Never, .. }) => 2,
        Some(Evidence::Probe { verdict: Verdict::Failed, .. }) => 3,
        Some(Evidence::Slot { state: None, .. }) => 16,
        Some(Evidence::Slot { state: Some(state), .. }) => match state {
            SlotState::Succeeded => SUCCEEDED,
            SlotState::Failed => SUCCEEDED + 1,
            SlotState::Expired => SUCCEEDED + 2,
            SlotState::Skipped => SUCCEEDED + 3,
            SlotState::Killed => SUCCEEDED + 4,
            _ => 17,
        },
        Some(Evidence::Asked) => 64,
        Some(Evidence::Clock { .. }) | None => 65,
    }
}

fn answer(answer: Answer) -> u8 {
    match answer {
        Answer::Met => 0,
        Answer::NotYet => 1,
        Answer::Never => 2,
    }
}

/// The places that kinds had.
fn kind(kind: &ReasonKind) -> u8 {
    match kind {
        ReasonKind::Always => 0,
        ReasonKind::And => 1,
        ReasonKind::Or => 2,
        ReasonKind::Not => 3,
        ReasonKind::Offset => 4,
        ReasonKind::Delay => 5,
        ReasonKind::Success | ReasonKind::Covers => 6,
        ReasonKind::HdfsPath => 7,
        ReasonKind::LocalPath => 8,
        ReasonKind::Path => 9,
        ReasonKind::Function => 10,
        ReasonKind::Job => 11,
        ReasonKind::Parents => 12,
        ReasonKind::Group => 13,
        ReasonKind::Valid => 14,
        ReasonKind::Partitions => 15,
        ReasonKind::Ended => 16,
        ReasonKind::Fired => 17,
        ReasonKind::Signal => 18,
        ReasonKind::Asked => 19,
        ReasonKind::Constraints => 20,
        ReasonKind::Concurrency => 21,
        ReasonKind::Window => 22,
        ReasonKind::SinceLastRun => 23,
        // What came later had none.
        ReasonKind::Children | ReasonKind::Other(_) => u8::MAX,
    }
}
