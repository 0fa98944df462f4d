//! The budget of a tick: how many slots it may handle, shared by workflows or programs.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;

/// The number of slots that a tick may still handle in one of its parts.
pub(crate) struct Budget {
    /// The budget of each workflow, or program.
    share: usize,
    /// The rest of those that have used some of it.
    left: BTreeMap<WorkflowId, usize>,
    /// The rest of all of them together; none if each has a share.
    rest: Option<usize>,
}

impl Budget {
    /// A budget that some workflows share.
    pub(crate) fn new(most: usize, workflows: usize) -> Budget {
        Budget::in_shares_of(most, workflows, 1)
    }

    /// A budget in which no share is less than this. If there are too many workflows for that, a tick serves some of them.
    pub(crate) fn in_shares_of(most: usize, workflows: usize, least: usize) -> Budget {
        let least = least.max(1);
        let is_for_all = workflows <= most / least;
        Budget {
            share: if is_for_all { most / workflows.max(1) } else { least },
            left: BTreeMap::new(),
            rest: (!is_for_all).then_some(most),
        }
    }

    /// Whether there is a share for everybody. Otherwise it is used by one after another, until nothing is left.
    pub(crate) fn is_for_all(&self) -> bool {
        self.rest.is_none()
    }

    /// Whether anything is left for those who have used nothing.
    pub(crate) fn is_left(&self) -> bool {
        self.rest != Some(0)
    }

    pub(crate) fn of(&self, id: &WorkflowId) -> usize {
        let own = self.left.get(id).copied().unwrap_or(self.share);
        self.rest.map_or(own, |rest| own.min(rest))
    }

    pub(crate) fn use_up(&mut self, id: WorkflowId, slots: usize) {
        let left = self.of(&id).saturating_sub(slots);
        self.left.insert(id, left);
        self.rest = self.rest.map(|rest| rest.saturating_sub(slots));
    }
}

/// The share of each workflow in the budget of a tick: at least one.
pub(crate) fn share(most: usize, workflows: usize) -> usize {
    (most / workflows.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_have_a_share_each_and_many_share_what_there_is() {
        let [a, b, c]: [WorkflowId; 3] = ["a", "b", "c"].map(|id| id.parse().expect("an id"));
        let mut few = Budget::in_shares_of(8, 2, 4);
        few.use_up(a.clone(), 9);
        assert_eq!((few.is_for_all(), few.is_left(), few.of(&a), few.of(&b)), (true, true, 0, 4));
        let mut many = Budget::in_shares_of(8, 3, 4);
        many.use_up(a.clone(), 1);
        many.use_up(b, 5);
        assert_eq!((many.is_for_all(), many.of(&a), many.of(&c)), (false, 2, 2));
        many.use_up(c.clone(), 2);
        assert_eq!((many.is_left(), many.of(&a), many.of(&c)), (false, 0, 0));
        assert!(Budget::new(usize::MAX, 9).is_for_all());
    }
}
