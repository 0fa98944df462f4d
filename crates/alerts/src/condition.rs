//! The conditions that alerts are about.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// A kind of trouble, or of news, that a rule can name in `when`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// A slot failed with no retry left, or expired.
    Failed,
    /// A slot missed its deadline.
    Late,
    /// A workflow is paused or disabled.
    Paused,
    /// A broken invariant froze a workflow.
    Frozen,
    /// All slots of a backfill have ended.
    Backfill,
    /// A run ended because its worker was lost.
    Worker,
    /// A file of definitions is broken, or a definition of it is refused.
    Script,
    /// An endpoint of storage does not answer, or a source of facts fails.
    Endpoint,
    /// A disk on which the server writes is nearly full.
    Disk,
    /// A live slot is expected to end after its deadline.
    WillBeLate,
    /// A slot waits, or runs, for longer than usual, and no other condition says why.
    Stuck,
    /// The lead changed hands without anybody's doing, or the store refused turns for a while.
    Leader,
    /// A node that shares the log lags or is not heard of, or no other node could take over.
    Nodes,
}

impl Condition {
    /// All of them.
    pub const ALL: [Condition; 13] = [
        Condition::Failed,
        Condition::Late,
        Condition::Paused,
        Condition::Frozen,
        Condition::Backfill,
        Condition::Worker,
        Condition::Script,
        Condition::Endpoint,
        Condition::Disk,
        Condition::WillBeLate,
        Condition::Stuck,
        Condition::Leader,
        Condition::Nodes,
    ];

    /// Its name in files and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Condition::Failed => "failed",
            Condition::Late => "late",
            Condition::Paused => "paused",
            Condition::Frozen => "frozen",
            Condition::Backfill => "backfill",
            Condition::Worker => "worker",
            Condition::Script => "script",
            Condition::Endpoint => "endpoint",
            Condition::Disk => "disk",
            Condition::WillBeLate => "will-be-late",
            Condition::Stuck => "stuck",
            Condition::Leader => "leader",
            Condition::Nodes => "nodes",
        }
    }

    /// The condition with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Condition> {
        Condition::ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// Whether it is told once and never over: it happened, and does not last.
    #[must_use]
    pub const fn is_moment(self) -> bool {
        matches!(self, Condition::Backfill | Condition::Worker | Condition::Leader)
    }

    /// Whether it is seen by looking, and is in no event.
    #[must_use]
    pub const fn is_observed(self) -> bool {
        match self {
            Condition::Failed | Condition::Late | Condition::Paused | Condition::Frozen => false,
            Condition::Backfill | Condition::Worker => false,
            Condition::Script | Condition::Endpoint | Condition::Disk => true,
            Condition::WillBeLate | Condition::Stuck | Condition::Leader | Condition::Nodes => true,
        }
    }

    /// Whether it is over once no look names it any more: nothing tells of an endpoint that nobody asks, or of the disk of another machine.
    #[must_use]
    pub const fn fades(self) -> bool {
        matches!(self, Condition::Endpoint | Condition::Disk)
    }

    /// The time that it has to last before it is told, where a rule says nothing.
    #[must_use]
    pub const fn usual_patience(self) -> SignedDuration {
        match self {
            Condition::Paused => SignedDuration::from_hours(24),
            Condition::Stuck => SignedDuration::from_mins(30),
            Condition::WillBeLate | Condition::Nodes => SignedDuration::from_mins(5),
            Condition::Script | Condition::Endpoint | Condition::Disk => SignedDuration::from_mins(1),
            _ => SignedDuration::ZERO,
        }
    }
}
