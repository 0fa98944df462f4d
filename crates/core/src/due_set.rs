//! Workflows with something to do in the next tick: all of them at once, or in turn when they are too many.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::WorkflowId;

use crate::filter::{WorkflowFilter, allows, take_allowed};
use crate::rota::Rota;

/// Workflows with something to do in the next tick.
#[derive(Default)]
pub(crate) struct DueSet {
    all: BTreeSet<WorkflowId>,
    /// Their order, as far as they were put in order.
    order: Rota<WorkflowId>,
}

impl DueSet {
    pub(crate) fn insert(&mut self, id: &WorkflowId) {
        if !self.all.contains(id) {
            self.all.insert(id.clone());
        }
    }

    pub(crate) fn contains(&self, id: &WorkflowId) -> bool {
        self.all.contains(id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes all that a tick includes.
    pub(crate) fn take_all(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        self.order.clear();
        take_allowed(&mut self.all, only, |id| id)
    }

    /// Puts those in order that are not yet, each with a time.
    pub(crate) fn line_up(&mut self, time: impl Fn(&WorkflowId) -> Option<Timestamp>) {
        self.order.line_up(self.all.iter(), time);
    }

    /// Takes the next one in order, of those that a tick includes.
    pub(crate) fn take_next(&mut self, only: &WorkflowFilter) -> Option<WorkflowId> {
        let all = &mut self.all;
        std::iter::from_fn(|| self.order.take_next(|id| allows(only, id))).find(|id| all.remove(id))
    }

    /// Notes how much the last one got.
    pub(crate) fn charge(&mut self, cost: usize) {
        self.order.charge(cost);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn id(name: &str) -> WorkflowId {
        name.parse().expect("an id")
    }

    #[test]
    fn one_that_is_put_in_order_twice_is_taken_once() {
        let mut due = DueSet::default();
        for name in ["a", "b", "c"] {
            due.insert(&id(name));
        }
        due.line_up(|_| None);
        let only = Some(Arc::new(BTreeSet::from([id("b")])));
        assert_eq!((due.take_next(&only), due.take_next(&only)), (Some(id("b")), None));
        due.insert(&id("b"));
        due.line_up(|_| None);
        let order: Vec<WorkflowId> = std::iter::from_fn(|| due.take_next(&None)).collect();
        assert_eq!(order, ["a", "c", "b"].map(id));
        assert!(due.is_empty());
    }
}
