//! Names of queues.

use std::fmt;
use std::sync::Arc;

use kelos_model::{SlotKey, SlotRef, WorkflowId};

/// The name of a queue: of the slots of a workflow, or of those of one step in all runs of a flow. Each has terms of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueId {
    pub(crate) workflow: WorkflowId,
    /// The step, and whether the slots are items of its list.
    step: Option<(Arc<str>, bool)>,
}

impl QueueId {
    /// The queue of a slot.
    pub(crate) fn of(slot: &SlotRef) -> QueueId {
        let step = slot.key.step().map(|step| (step.step().into(), step.item_number().is_some()));
        QueueId { workflow: slot.workflow.clone(), step }
    }

    /// The queue of a step of a flow, or of the items of its list.
    pub(crate) fn of_step(workflow: &WorkflowId, step: &str, is_item: bool) -> QueueId {
        QueueId { workflow: workflow.clone(), step: Some((step.into(), is_item)) }
    }

    /// A slot in the queue.
    pub(crate) fn slot(&self, key: &SlotKey) -> SlotRef {
        SlotRef::new(self.workflow.clone(), key.clone())
    }

    /// Whether it is of the slots of a workflow.
    pub(crate) fn is_whole(&self) -> bool {
        self.step.is_none()
    }
}

impl From<&WorkflowId> for QueueId {
    fn from(workflow: &WorkflowId) -> QueueId {
        QueueId { workflow: workflow.clone(), step: None }
    }
}

impl From<&QueueId> for QueueId {
    fn from(id: &QueueId) -> QueueId {
        id.clone()
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some((step, _)) => write!(f, "{}.{step}", self.workflow),
            None => write!(f, "{}", self.workflow),
        }
    }
}
