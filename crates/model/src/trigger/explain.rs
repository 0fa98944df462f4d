//! Why a trigger gave its answer: a tree of the same shape as the trigger.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Answer, Probe, Verdict};
use crate::key::SlotRef;
use crate::slot::SlotState;

/// Which kind of trigger a node explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the trigger's variants")]
pub enum TriggerKind {
    Always,
    And,
    Or,
    Not,
    Offset,
    Delay,
    Success,
    HdfsPath,
    LocalPath,
    Path,
    Function,
    /// A job of a given id.
    Job,
    /// The parents of a job: the groups that are about it are nested.
    Parents,
    /// A group of parents: those that stand in the way are nested, not more than a few.
    Group,
    /// Whether a job is worth running.
    Valid,
    Partitions,
    Ended,
    Fired,
    Signal,
    /// Somebody had the slot go.
    Asked,
    /// The constraints of a workflow: each is nested.
    Constraints,
    Concurrency,
    Window,
    SinceLastRun,
}

/// What a leaf read to find its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "read", rename_all = "kebab-case")]
pub enum Evidence {
    /// The clock.
    Clock {
        /// What it said.
        now: Timestamp,
        /// The moment it is compared with.
        until: Timestamp,
    },
    /// Another slot.
    Slot {
        /// Which.
        slot: SlotRef,
        /// Its state, none where it does not exist.
        state: Option<SlotState>,
    },
    /// The outside world.
    Probe {
        /// What was asked.
        probe: Probe,
        /// What it said.
        verdict: Verdict,
        /// What was seen, in words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
        /// When it was looked at.
        looked_at: Timestamp,
    },
    /// Nothing yet: the question is on its way.
    Asked,
}

/// One node's answer, in words and with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The kind of trigger.
    pub kind: TriggerKind,
    /// Its answer.
    pub answer: Answer,
    /// The answer in words. Where Celos has a text for it, it is that text.
    pub text: String,
    /// What a leaf read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The nested triggers' answers, all of them, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Explanation>,
}

impl Explanation {
    /// A digest of what it says, whenever it was asked: another digest is worth a new line in the log. Never 0.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let hash = self.hash_into(0xcbf2_9ce4_8422_2325);
        ((hash ^ (hash >> 32)) as u32).max(1)
    }

    fn hash_into(&self, hash: u64) -> u64 {
        let finding = match &self.evidence {
            Some(Evidence::Probe { verdict, .. }) => *verdict as u8,
            // Which live state another slot is in is no news; whether it is there and has ended is.
            Some(Evidence::Slot { state: None, .. }) => 16,
            Some(Evidence::Slot { state: Some(state), .. }) if !state.is_final() => 17,
            Some(Evidence::Slot { state: Some(state), .. }) => 18 + *state as u8,
            Some(Evidence::Asked) => 64,
            Some(Evidence::Clock { .. }) | None => 65,
        };
        let own = [self.kind as u8, self.answer as u8, finding, self.nested.len() as u8];
        let hash = self
            .text
            .bytes()
            .chain(own)
            .fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        self.nested.iter().fold(hash, |hash, nested| nested.hash_into(hash))
    }

    /// Whether it may be met in truth, because a question was not answered yet or could not be: its
    /// negation is then not known either. One certain "no" settles an `and`, whatever is not known beside it.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        let open = |nested: &Explanation| nested.answer == Answer::Met || nested.is_uncertain();
        match (self.answer, self.kind) {
            (Answer::Met | Answer::Never, _) => false,
            (Answer::NotYet, TriggerKind::And) => self.nested.iter().all(open),
            (Answer::NotYet, _) => self.is_unanswered() || self.nested.iter().any(Explanation::is_uncertain),
        }
    }

    fn is_unanswered(&self) -> bool {
        match &self.evidence {
            Some(Evidence::Asked) => true,
            Some(Evidence::Probe { verdict, .. }) => *verdict == Verdict::Failed,
            _ => false,
        }
    }

    /// Whether some leaf's question is still on its way.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.evidence, Some(Evidence::Asked)) || self.nested.iter().any(Explanation::is_pending)
    }

    /// The leaves that stand in the way, in words.
    #[must_use]
    pub fn blockers(&self) -> Vec<String> {
        match (self.answer, self.kind) {
            (Answer::Met, _) => Vec::new(),
            (_, TriggerKind::Not) if self.is_uncertain() => {
                self.nested.iter().flat_map(Explanation::blockers).collect()
            }
            (_, TriggerKind::Not) => vec![
                self.nested
                    .first()
                    .map_or_else(|| self.text.clone(), |inner| format!("{} (must not be so)", inner.text)),
            ],
            _ if self.nested.is_empty() => vec![self.text.clone()],
            _ => self.nested.iter().flat_map(Explanation::blockers).collect(),
        }
    }
}
