//! Past slots that definitions will open, counted before they do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::resolve;
use kelos_model::workflow::{WorkflowRow, past_slots};
use kelos_model::{Workflow, WorkflowId};

/// The most workflows that are named.
const MOST_NAMED: usize = 5;

/// The numbers of past slots that definitions will open at once, by workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastSlots(BTreeMap<WorkflowId, u64>);

impl PastSlots {
    /// Those of definitions beside the rows that are stored, with a planning window that ends now.
    #[must_use]
    pub fn of(all: &[Arc<Workflow>], rows: &[WorkflowRow], window: SignedDuration, now: Timestamp) -> PastSlots {
        let schedules = all.iter().filter_map(|one| Some((one.id.clone(), one.keys.ticks()?))).collect();
        let schedules = resolve(&schedules);
        let rows: BTreeMap<&WorkflowId, &WorkflowRow> = rows.iter().map(|row| (&row.id, row)).collect();
        let of_one = |one: &Arc<Workflow>| {
            let schedule = schedules.get(&one.id)?.as_ref().ok()?;
            let times = past_slots(one, rows.get(&one.id).copied(), schedule, window, now);
            // A feed opens as many jobs at each of its times.
            let slots = times * one.keys.jobs().map_or(1, |jobs| jobs.fed_at(now).len() as u64);
            (slots > 0).then(|| (one.id.clone(), slots))
        };
        PastSlots(all.iter().filter_map(of_one).collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers by workflow.
    #[must_use]
    pub fn by_workflow(&self) -> &BTreeMap<WorkflowId, u64> {
        &self.0
    }
}

/// In words: `170 past slots will run: hourly 168, daily 2`.
impl fmt::Display for PastSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum: u64 = self.0.values().sum();
        let slots = if sum == 1 { "slot" } else { "slots" };
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(id, slots)| (std::cmp::Reverse(**slots), *id));
        let mut named: Vec<String> = all.iter().take(MOST_NAMED).map(|(id, slots)| format!("{id} {slots}")).collect();
        if let Some(more) = all.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            let rest: u64 = all.iter().skip(MOST_NAMED).map(|(_, slots)| **slots).sum();
            named.push(format!("{more} more {rest}"));
        }
        write!(f, "{sum} past {slots} will run: {}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_by_workflow_and_in_sum() {
        let named = |n: u64| (WorkflowId::new(&format!("w{n}")).unwrap(), n);
        assert_eq!(PastSlots([named(1)].into()).to_string(), "1 past slot will run: w1 1");
        assert_eq!(PastSlots([named(1), named(2)].into()).to_string(), "3 past slots will run: w2 2, w1 1");
        let many: BTreeMap<_, _> = (1..8).map(named).collect();
        assert_eq!(PastSlots(many).to_string(), "28 past slots will run: w7 7, w6 6, w5 5, w4 4, w3 3, 2 more 3");
    }
}
