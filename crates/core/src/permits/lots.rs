//! Lots: queued slots of a workflow that one run would serve, or that wait for others to join them.

use jiff::Timestamp;
use kelos_model::{SlotKey, WorkflowId};

use super::Permits;
use super::queue::{Position, Queue};
use super::queue_id::QueueId;

/// The answers about queued slots that do not depend on permits.
pub(crate) trait Readiness {
    /// Whether a queued slot may run.
    fn is_ready(&self, id: &WorkflowId, key: &SlotKey) -> bool;

    /// The slots that would run together with one that is ready, if its workflow puts slots together.
    fn lot(&self, id: &WorkflowId, queue: &Queue, first: &Position) -> Lot {
        let _ = (id, queue, first);
        Lot::alone()
    }
}

/// A slot that is ready, with the slots that would run together with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lot {
    /// They may run. These are the times of the others, ascending.
    Goes(Vec<Timestamp>),
    /// They wait for more.
    Waits {
        /// The times of the others, ascending.
        others: Vec<Timestamp>,
        /// The end of the wait.
        wait: LotWait,
    },
}

/// The end of a wait for further slots of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LotWait {
    /// A moment.
    Until(Timestamp),
    /// The next tick: slots are about to be queued.
    Tick,
    /// A change of the queue: more is drawn from the backlog once there is room.
    Room,
}

impl Lot {
    /// A slot by itself.
    pub(crate) fn alone() -> Lot {
        Lot::Goes(Vec::new())
    }

    /// The times of the slots besides the first. In the queue a slot of another kind may stand between two of them.
    pub(crate) fn others(&self) -> &[Timestamp] {
        match self {
            Lot::Goes(others) | Lot::Waits { others, .. } => others,
        }
    }
}

impl Permits {
    /// Has the queue of a workflow served in the next pass, because what its slots would run together with may have changed.
    pub(crate) fn wake_lots(&mut self, id: impl Into<QueueId>) {
        let id = id.into();
        if self.queues.get(&id).is_some_and(|queue| queue.len() > 0) {
            self.woken.insert(id);
        }
    }

    /// Has workflows served again when their slots wait for their batches no longer.
    pub(super) fn wait_for_batches(&mut self, waits: Vec<(QueueId, LotWait)>) {
        for (id, wait) in waits {
            match wait {
                LotWait::Tick => drop(self.woken.insert(id)),
                LotWait::Room => {}
                LotWait::Until(at) => {
                    let Some(queue) = self.queues.get_mut(&id) else { continue };
                    if queue.batch_until.is_none_or(|until| at < until) {
                        queue.batch_until.replace(at).map(|until| self.lots.remove(&(until, id.clone())));
                        self.lots.insert((at, id));
                    }
                }
            }
        }
    }

    /// Wakes the workflows with slots that wait for their batch no longer.
    pub(super) fn end_waits_for_batches(&mut self, now: Timestamp) {
        while let Some((at, id)) = self.lots.first().cloned().filter(|(at, _)| *at <= now) {
            self.lots.remove(&(at, id.clone()));
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.batch_until = None;
            }
            self.woken.insert(id);
        }
    }
}
