//! Reasons: why a slot starts, waits or ends, as data: a tree of findings with stable codes. It is stored in events and hashed; in which
//! words people read it is decided where it is shown, by [`words`], so that a better sentence changes neither.

mod digest;
mod finding;
mod fnv;
mod old;
mod present;
pub mod words;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use finding::{Blockage, Finding};

use crate::key::SlotRef;
use crate::probe::{Probe, Verdict};
use crate::state::SlotState;

/// The three answers of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It may start.
    Met,
    /// It may not start yet.
    NotYet,
    /// It will never start.
    Never,
}

/// The kind of a node of a reason: of trigger, of constraint, or of what a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of triggers and gates")]
pub enum ReasonKind {
    Always,
    And,
    Or,
    Not,
    Offset,
    Delay,
    Success,
    /// The periods of another workflow: some of those that have not succeeded are nested.
    Covers,
    HdfsPath,
    LocalPath,
    Path,
    Function,
    /// A job of a given id.
    Job,
    /// The parents of a job: the groups that are about it are nested.
    Parents,
    /// A group of parents: some of those that have not succeeded are nested.
    Group,
    /// The children of a job.
    Children,
    /// Whether a job is worth running.
    Valid,
    Partitions,
    Ended,
    Fired,
    Signal,
    /// A person started the slot.
    Asked,
    /// The constraints of a workflow: each is nested.
    Constraints,
    Concurrency,
    Window,
    SinceLastRun,
    /// A kind of a newer version, by its name there.
    #[serde(untagged)]
    Other(String),
}

impl ReasonKind {
    /// Its name, in the log and on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            ReasonKind::Always => "always",
            ReasonKind::And => "and",
            ReasonKind::Or => "or",
            ReasonKind::Not => "not",
            ReasonKind::Offset => "offset",
            ReasonKind::Delay => "delay",
            ReasonKind::Success => "success",
            ReasonKind::Covers => "covers",
            ReasonKind::HdfsPath => "hdfs-path",
            ReasonKind::LocalPath => "local-path",
            ReasonKind::Path => "path",
            ReasonKind::Function => "function",
            ReasonKind::Job => "job",
            ReasonKind::Parents => "parents",
            ReasonKind::Group => "group",
            ReasonKind::Children => "children",
            ReasonKind::Valid => "valid",
            ReasonKind::Partitions => "partitions",
            ReasonKind::Ended => "ended",
            ReasonKind::Fired => "fired",
            ReasonKind::Signal => "signal",
            ReasonKind::Asked => "asked",
            ReasonKind::Constraints => "constraints",
            ReasonKind::Concurrency => "concurrency",
            ReasonKind::Window => "window",
            ReasonKind::SinceLastRun => "since-last-run",
            ReasonKind::Other(name) => name,
        }
    }
}

/// One node's answer with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "old::StoredReason")]
pub struct Reason {
    /// The kind of the node.
    pub kind: ReasonKind,
    /// The answer.
    pub answer: Answer,
    /// The finding.
    pub finding: Finding,
    /// The answers of what is nested, all of them, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Reason>,
}

/// The evidence of a finding: the clock, another slot, or the outside world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence<'a> {
    /// The clock.
    Clock {
        /// The time that it showed.
        now: Timestamp,
        /// The moment it is compared with.
        until: Timestamp,
    },
    /// Another slot.
    Slot {
        /// The slot.
        slot: &'a SlotRef,
        /// Its state, none where it does not exist.
        state: Option<SlotState>,
    },
    /// The outside world.
    Probe {
        /// The question.
        probe: &'a Probe,
        /// The verdict.
        verdict: Verdict,
        /// Details in words; may be empty.
        detail: &'a str,
        /// When it was looked at.
        looked_at: Timestamp,
    },
    /// Nothing yet: the question is on its way.
    Asked,
}

impl Reason {
    /// A reason with nothing nested.
    #[must_use]
    pub fn leaf(kind: ReasonKind, answer: Answer, finding: Finding) -> Reason {
        Reason { kind, answer, finding, nested: Vec::new() }
    }

    /// The evidence of this node itself.
    #[must_use]
    pub fn evidence(&self) -> Option<Evidence<'_>> {
        self.finding.evidence()
    }

    /// Whether it may be met in truth, because a question was not answered yet or could not be: its
    /// negation is then not known either. One certain "no" settles an `and`, whatever is not known beside it.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        let open = |nested: &Reason| nested.answer == Answer::Met || nested.is_uncertain();
        match (self.answer, &self.kind) {
            (Answer::Met | Answer::Never, _) => false,
            (Answer::NotYet, ReasonKind::And) => self.nested.iter().all(open),
            (Answer::NotYet, _) => self.is_unanswered() || self.nested.iter().any(Reason::is_uncertain),
        }
    }

    fn is_unanswered(&self) -> bool {
        matches!(self.evidence(), Some(Evidence::Asked | Evidence::Probe { verdict: Verdict::Failed, .. }))
    }

    /// Whether some leaf's question is still on its way.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.evidence(), Some(Evidence::Asked)) || self.nested.iter().any(Reason::is_pending)
    }
}
