//! Following dependent schedules to the cron schedules that they borrow.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::schedule::{CronSchedule, Schedule};
use crate::id::WorkflowId;

/// Why a dependent schedule has no times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleProblem {
    /// The chain of schedules ends at a workflow that doesn't exist or has no schedule.
    #[error("schedule depends on workflow \"{on}\", which doesn't exist or has no schedule")]
    Unknown {
        /// The missing workflow.
        on: WorkflowId,
    },
    /// The chain of schedules comes back to itself.
    #[error("schedules depend on each other in a circle: {}", Path(.path))]
    Cycle {
        /// The circle, from its smallest id round to the same id again; shared by all who run into it.
        path: Arc<[WorkflowId]>,
    },
}

/// A path as people read it: `a -> b -> a`.
struct Path<'a>(&'a [WorkflowId]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if n == 0 { "" } else { " -> " })?;
        }
        Ok(())
    }
}

type Resolved = BTreeMap<WorkflowId, Result<CronSchedule, ScheduleProblem>>;

/// The cron schedule of each workflow. Chains of any length are followed; one that ends nowhere or in
/// a circle is a problem of the workflows on it, and of no others.
pub fn resolve(schedules: &BTreeMap<WorkflowId, &Schedule>) -> Resolved {
    let mut resolved = Resolved::new();
    for start in schedules.keys() {
        let mut path = Vec::new();
        let mut places = BTreeMap::new();
        let mut at = start;
        let answer = loop {
            if let Some(known) = resolved.get(at) {
                break known.clone();
            }
            match (places.get(at), schedules.get(at)) {
                (Some(place), _) => break Err(cycle(&path[*place..])),
                (None, None) => break Err(ScheduleProblem::Unknown { on: at.clone() }),
                (None, Some(Schedule::Cron(cron))) => {
                    path.push(at);
                    break Ok(cron.clone());
                }
                (None, Some(Schedule::Dependent(on))) => {
                    places.insert(at, path.len());
                    path.push(at);
                    at = on;
                }
            }
        };
        resolved.extend(path.into_iter().map(|id| (id.clone(), answer.clone())));
    }
    resolved
}

/// The circle, told from its smallest id on.
fn cycle(circle: &[&WorkflowId]) -> ScheduleProblem {
    let smallest = (0..circle.len()).min_by_key(|n| circle[*n]).unwrap_or(0);
    let (tail, head) = circle.split_at(smallest);
    let path = head.iter().chain(tail).chain(head.first());
    ScheduleProblem::Cycle {
        path: path.map(|id| (*id).clone()).collect(),
    }
}
