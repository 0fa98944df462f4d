//! Broken invariants: what must always hold of a workflow or a slot, and did not. Each has a code that stays the same, and
//! its words are made here and nowhere else.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::run::RunId;

/// A condition that must always hold. The owner of the state checks it, and a broken one is a fault of the scheduler itself, not of a
/// definition or of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// An event that was decided for a slot can happen in its state.
    EventFits,
    /// Accounts are kept of known workflows only.
    WorkflowIsKnown,
    /// A slot that was decided about is in memory.
    SlotIsInMemory,
    /// The past answers what it was asked, and nothing else.
    PastAnswersWhatWasAsked,
    /// Permits are given to a queued slot without a live run.
    PermitsGoToQueued,
    /// Runs that are counted no more were counted.
    RunsAreCounted,
    /// A workflow that waits for permits has a queue, and its pools are known.
    WaitersHaveQueues,
    /// A held slot is in the line that it is noted for, and waits for one thing only.
    HeldStandInLine,
    /// A question with a timer has a slot that waits for it.
    QuestionsHaveWaiters,
    /// A timer is where its table says.
    TimersAreSet,
    /// A slot that is taken for a job is named by a job id.
    JobsHaveIds,
    /// A slot whose change reaches a job is a parent of it, and is counted among those that it waits for.
    ParentsAreCounted,
    /// A workflow that waits for facts is listed under all that they are about.
    ListenersAreListed,
    /// A slot that waits for another is known from both ends.
    BondsGoBothWays,
    /// A slot that is stored in little room keeps all that it is.
    SlotsAreStoredWhole,
    /// Times are left in a backlog by a schedule that says which they are.
    BacklogsHaveSchedules,
    /// A worker that offers to do jobs of a workflow is listed as one that does.
    OffersAreListed,
    /// Stored rows can be read back.
    RowsAreReadable,
    /// One that the simulation breaks on purpose.
    Planted,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Invariant; 20] = [
        Invariant::EventFits,
        Invariant::WorkflowIsKnown,
        Invariant::SlotIsInMemory,
        Invariant::PastAnswersWhatWasAsked,
        Invariant::PermitsGoToQueued,
        Invariant::RunsAreCounted,
        Invariant::WaitersHaveQueues,
        Invariant::HeldStandInLine,
        Invariant::QuestionsHaveWaiters,
        Invariant::TimersAreSet,
        Invariant::JobsHaveIds,
        Invariant::ParentsAreCounted,
        Invariant::ListenersAreListed,
        Invariant::BondsGoBothWays,
        Invariant::SlotsAreStoredWhole,
        Invariant::BacklogsHaveSchedules,
        Invariant::OffersAreListed,
        Invariant::RowsAreReadable,
        Invariant::Planted,
        Invariant::Unknown,
    ];

    /// Its code, as it is stored and shown: it never changes.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Invariant::EventFits => "event-fits",
            Invariant::WorkflowIsKnown => "workflow-is-known",
            Invariant::SlotIsInMemory => "slot-is-in-memory",
            Invariant::PastAnswersWhatWasAsked => "past-answers-what-was-asked",
            Invariant::PermitsGoToQueued => "permits-go-to-queued",
            Invariant::RunsAreCounted => "runs-are-counted",
            Invariant::WaitersHaveQueues => "waiters-have-queues",
            Invariant::HeldStandInLine => "held-stand-in-line",
            Invariant::QuestionsHaveWaiters => "questions-have-waiters",
            Invariant::TimersAreSet => "timers-are-set",
            Invariant::JobsHaveIds => "jobs-have-ids",
            Invariant::ParentsAreCounted => "parents-are-counted",
            Invariant::ListenersAreListed => "listeners-are-listed",
            Invariant::BondsGoBothWays => "bonds-go-both-ways",
            Invariant::SlotsAreStoredWhole => "slots-are-stored-whole",
            Invariant::BacklogsHaveSchedules => "backlogs-have-schedules",
            Invariant::OffersAreListed => "offers-are-listed",
            Invariant::RowsAreReadable => "rows-are-readable",
            Invariant::Planted => "planted",
            Invariant::Unknown => "unknown",
        }
    }

    /// The state that was found instead, in words that follow the name of the slot or workflow.
    const fn words(self) -> &'static str {
        match self {
            Invariant::EventFits => "an event does not fit the state of its slot",
            Invariant::WorkflowIsKnown => "there are records of a workflow that does not exist",
            Invariant::SlotIsInMemory => "an event is about a slot that is not in memory",
            Invariant::PastAnswersWhatWasAsked => "the store returned a row that was not asked for",
            Invariant::PermitsGoToQueued => "permits went to a slot that is not queued or has a live run",
            Invariant::RunsAreCounted => "a run ended that had not been counted",
            Invariant::WaitersHaveQueues => "it waits for permits without a queue, or of an unknown pool",
            Invariant::HeldStandInLine => "it is held, and missing from the index of held slots",
            Invariant::QuestionsHaveWaiters => "a probe is due that no slot waits for",
            Invariant::TimersAreSet => "its timer is not where it was set",
            Invariant::JobsHaveIds => "it is treated as a job, and has no job id",
            Invariant::ParentsAreCounted => "its count of unfinished parents is wrong",
            Invariant::ListenersAreListed => "it waits for facts, and is missing from their index",
            Invariant::BondsGoBothWays => "a dependency between slots is recorded at one end only",
            Invariant::SlotsAreStoredWhole => "its compact form lost data",
            Invariant::BacklogsHaveSchedules => "a backlog was planned for it, and it has no schedule",
            Invariant::OffersAreListed => "a worker offers to run its jobs, and is missing from the index of offers",
            Invariant::RowsAreReadable => {
                "a stored row of it can't be read: `kelos verify` names it, and a new definition replaces one that can't be read"
            }
            Invariant::Planted => "the simulation broke it",
            Invariant::Unknown => "an invariant of another version of Kelos broke",
        }
    }
}

/// A broken invariant: which, and about what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breach {
    /// The invariant.
    pub invariant: Invariant,
    /// The workflow that it is about.
    pub workflow: WorkflowId,
    /// The slot, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotRef>,
}

impl Breach {
    /// A breach about a workflow as a whole.
    #[must_use]
    pub fn of(invariant: Invariant, workflow: &WorkflowId) -> Breach {
        Breach { invariant, workflow: workflow.clone(), slot: None }
    }

    /// A breach about a slot.
    #[must_use]
    pub fn of_slot(invariant: Invariant, slot: &SlotRef) -> Breach {
        Breach { invariant, workflow: slot.workflow.clone(), slot: Some(slot.clone()) }
    }
}

/// `wf@2026-11-22T05:00Z: permits went to a slot that is not queued or has a live run (permits-go-to-queued)`.
impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.slot {
            Some(slot) => f.write_str(&slot.short())?,
            None => write!(f, "{}", self.workflow)?,
        }
        write!(f, ": {} ({})", self.invariant.words(), self.invariant.code())
    }
}

/// The state of a workflow of which an invariant broke: it is left alone until a person resumes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Freeze {
    /// Since when.
    pub at: Timestamp,
    /// The first breach.
    pub breach: Breach,
    /// Runs of which a report was set aside: they are not heard until the workflow is resumed, and asked about then.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub set_aside: BTreeSet<RunId>,
}

/// The hint about a frozen workflow: what happens to it, and what people can do.
pub const THAWING: &str = "its live runs continue and are recorded, nothing else is scheduled: report this with the server's log, \
    then resume the workflow, ideally after an upgrade; it freezes again if the check still fails";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_what_is_stored() {
        for invariant in Invariant::ALL {
            let stored = serde_json::to_value(invariant).unwrap();
            assert_eq!(stored, invariant.code());
            assert_eq!(serde_json::from_value::<Invariant>(stored).unwrap(), invariant);
        }
        let later = serde_json::from_value::<Invariant>("one-of-a-later-version".into()).unwrap();
        assert_eq!(later, Invariant::Unknown);
    }

    #[test]
    fn a_breach_names_what_it_is_about() {
        let workflow: WorkflowId = "wf".parse().unwrap();
        let slot = SlotRef::at(workflow.clone(), "2026-11-22T05:00:00Z".parse().unwrap());
        let breach = Breach::of_slot(Invariant::EventFits, &slot);
        let words = "wf@2026-11-22T05:00Z: an event does not fit the state of its slot (event-fits)";
        assert_eq!(breach.to_string(), words);
        let of_workflow = Breach::of(Invariant::TimersAreSet, &workflow);
        assert_eq!(of_workflow.to_string(), "wf: its timer is not where it was set (timers-are-set)");
        let stored = serde_json::to_string(&of_workflow).unwrap();
        assert_eq!(stored, r#"{"invariant":"timers-are-set","workflow":"wf"}"#);
    }
}
