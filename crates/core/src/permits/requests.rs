//! Requests of live runs for permits beside those that they were started with.
//!
//! While a request waits it stands in the lines of its pools as the first slot of a workflow does. Absent: what runs hold, which is in the
//! rows of their slots.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::{PermitAnswer, PoolId, PoolUse, Slot, SlotRef};

use super::queue::{LinePosition, Position};
use super::queue_id::QueueId;

/// A request of the live run of a slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId {
    pub(crate) slot: SlotRef,
    /// The number by which the run counts its requests.
    pub(crate) number: u64,
}

/// The requests of live runs, as far as they reported since this scheduler began.
#[derive(Default)]
pub(super) struct Requests {
    open: BTreeMap<RequestId, RequestStage>,
    /// The latest version of the requests of each run.
    versions: BTreeMap<SlotRef, u64>,
}

/// The stage of a request.
enum RequestStage {
    Waiting(WaitingRequest),
    Answered(PermitAnswer),
}

/// A request that stands in the lines of its pools.
pub(crate) struct WaitingRequest {
    /// The permits that it asks for, on the terms of the definition.
    pub(crate) uses: Vec<PoolUse>,
    pub(crate) position: LinePosition,
    /// The moment at which it was made.
    pub(crate) since: Timestamp,
    /// The moment at which it becomes starved in the lines of its pools.
    pub(super) patient_until: Option<Timestamp>,
}

/// The age of a report on the requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportAge {
    /// A later one is known.
    Late,
    /// It is known, or the first one since this scheduler began, and its answers may have been lost.
    Repeated,
    New,
}

impl Requests {
    /// Hears a report on the requests of a run.
    pub(super) fn hear(&mut self, slot: &SlotRef, version: u64) -> ReportAge {
        match self.versions.get(slot) {
            Some(known) if version < *known => return ReportAge::Late,
            Some(known) if version == *known => return ReportAge::Repeated,
            Some(_) => self.versions.insert(slot.clone(), version),
            None => {
                self.versions.insert(slot.clone(), version);
                return ReportAge::Repeated;
            }
        };
        ReportAge::New
    }

    /// Whether no request of any run is known.
    pub(super) fn are_none(&self) -> bool {
        self.open.is_empty()
    }

    /// The numbers of the known requests of a run.
    pub(super) fn of(&self, slot: &SlotRef) -> impl Iterator<Item = u64> {
        let id = |number| RequestId { slot: slot.clone(), number };
        self.open.range(id(0)..=id(u64::MAX)).map(|(id, _)| id.number)
    }

    /// Whether a request is known: it waits, or was answered.
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.open.contains_key(id)
    }

    /// The answer to a request; none if it waits.
    pub(super) fn answer_to(&self, id: &RequestId) -> Option<&PermitAnswer> {
        match self.open.get(id)? {
            RequestStage::Answered(answer) => Some(answer),
            RequestStage::Waiting(_) => None,
        }
    }

    pub(super) fn waiting(&self, id: &RequestId) -> Option<&WaitingRequest> {
        match self.open.get(id)? {
            RequestStage::Waiting(waiting) => Some(waiting),
            RequestStage::Answered(_) => None,
        }
    }

    pub(super) fn waiting_mut(&mut self, id: &RequestId) -> Option<&mut WaitingRequest> {
        match self.open.get_mut(id)? {
            RequestStage::Waiting(waiting) => Some(waiting),
            RequestStage::Answered(_) => None,
        }
    }

    /// All requests that wait.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = (&RequestId, &WaitingRequest)> {
        self.open.iter().filter_map(|(id, stage)| match stage {
            RequestStage::Waiting(waiting) => Some((id, waiting)),
            RequestStage::Answered(_) => None,
        })
    }

    pub(super) fn wait(&mut self, id: RequestId, waiting: WaitingRequest) {
        self.open.insert(id, RequestStage::Waiting(waiting));
    }

    pub(super) fn answer(&mut self, id: RequestId, answer: PermitAnswer) {
        self.open.insert(id, RequestStage::Answered(answer));
    }

    /// Forgets a request. Returns it if it waited.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<WaitingRequest> {
        match self.open.remove(id)? {
            RequestStage::Waiting(waiting) => Some(waiting),
            RequestStage::Answered(_) => None,
        }
    }

    /// Forgets the reports of a run that is not live any more.
    pub(super) fn forget(&mut self, slot: &SlotRef) {
        self.versions.remove(slot);
    }
}

impl WaitingRequest {
    /// A request of a live run, made at a moment.
    pub(super) fn new(id: &RequestId, live: &Slot, uses: Vec<PoolUse>, since: Timestamp) -> WaitingRequest {
        let place = Position::of(live, &id.slot.key).in_line(&QueueId::of(&id.slot));
        let position = LinePosition { request: Some(id.number), ..place };
        WaitingRequest { uses, position, since, patient_until: None }
    }

    /// The permits of a pool that it asks for; none if it does not ask for any.
    pub(crate) fn permits(&self, pool: &PoolId) -> Option<u32> {
        self.uses.iter().find(|one| one.pool == *pool).map(|one| one.permits)
    }
}

/// A party in the lines of pools: a workflow with its first slot, or a request of a live run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    Workflow(QueueId),
    Request(RequestId),
}

impl LinePosition {
    /// The party that stands there.
    pub(crate) fn party(&self) -> Party {
        match self.request {
            Some(number) => {
                let slot = self.queue.slot(&self.key);
                Party::Request(RequestId { slot, number })
            }
            None => Party::Workflow(self.queue.clone()),
        }
    }
}
