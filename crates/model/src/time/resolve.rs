//! Following dependent schedules to the cron schedules that they borrow.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::schedule::{CronSchedule, Schedule};
use crate::id::WorkflowId;

/// The reason that a dependent schedule has no times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleProblem {
    /// The chain of schedules ends at a workflow that doesn't exist or has no schedule.
    #[error("schedule depends on workflow \"{on}\", which doesn't exist or has no schedule")]
    Unknown {
        /// The missing workflow.
        on: WorkflowId,
    },
    /// The chain of schedules ends at a workflow whose slots are about periods.
    #[error(
        "schedule depends on workflow \"{on}\", whose slots are about periods: expected the same calendar for both"
    )]
    Periods {
        /// The workflow with the calendar.
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

type Resolution = BTreeMap<WorkflowId, Result<CronSchedule, ScheduleProblem>>;

/// The cron schedule of each workflow. Chains of any length are followed; one that ends nowhere or in
/// a circle is a problem of the workflows on it, and of no others.
pub fn resolve(schedules: &BTreeMap<WorkflowId, &Schedule>) -> Resolution {
    let mut resolved = Resolution::new();
    for start in schedules.keys() {
        let mut path = Vec::new();
        let mut places = BTreeMap::new();
        let mut at = start;
        let answer = loop {
            if let Some(known) = resolved.get(at) {
                let is_of_periods = known.as_ref().is_ok_and(CronSchedule::is_of_periods);
                break if is_of_periods { Err(ScheduleProblem::Periods { on: at.clone() }) } else { known.clone() };
            }
            match (places.get(at), schedules.get(at)) {
                (Some(place), _) => break Err(cycle(&path[*place..])),
                (None, None) => break Err(ScheduleProblem::Unknown { on: at.clone() }),
                (None, Some(Schedule::Cron(cron))) => {
                    path.push(at);
                    break Ok(cron.clone());
                }
                (None, Some(Schedule::Calendar(calendar))) => {
                    resolved.insert(at.clone(), Ok(calendar.schedule().clone()));
                    break Err(ScheduleProblem::Periods { on: at.clone() });
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

/// The circle, from its smallest id on.
fn cycle(circle: &[&WorkflowId]) -> ScheduleProblem {
    let smallest = (0..circle.len()).min_by_key(|n| circle[*n]).unwrap_or(0);
    let (tail, head) = circle.split_at(smallest);
    let path = head.iter().chain(tail).chain(head.first());
    ScheduleProblem::Cycle { path: path.map(|id| (*id).clone()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Calendar, Zone};

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn on(name: &str) -> Schedule {
        Schedule::Dependent(id(name))
    }

    fn resolve_all(schedules: &[(&str, Schedule)]) -> Resolution {
        let given = schedules.iter().map(|(name, schedule)| (id(name), schedule));
        resolve(&given.collect())
    }

    #[test]
    fn chains_lead_to_the_schedule_at_their_end() {
        let found = resolve_all(&[
            ("a", on("b")),
            ("b", on("c")),
            ("c", Schedule::Cron(CronSchedule::hourly())),
            ("d", on("b")),
            ("e", Schedule::Cron(CronSchedule::minutely())),
        ]);
        for name in ["a", "b", "c", "d"] {
            assert_eq!(found[&id(name)], Ok(CronSchedule::hourly()), "{name}");
        }
        assert_eq!(found[&id("e")], Ok(CronSchedule::minutely()));
    }

    #[test]
    fn periods_are_not_borrowed() {
        let days = || Schedule::Calendar(Calendar::daily(Zone::utc()));
        let found = resolve_all(&[("a", on("z")), ("b", on("a")), ("z", days()), ("zz", on("z"))]);
        assert_eq!(found[&id("z")], Ok(Calendar::daily(Zone::utc()).schedule().clone()));
        for name in ["a", "b", "zz"] {
            assert_eq!(found[&id(name)], Err(ScheduleProblem::Periods { on: id("z") }), "{name}");
        }
    }

    #[test]
    fn a_missing_workflow_is_named_along_the_chain() {
        let found = resolve_all(&[("a", on("b")), ("b", on("gone"))]);
        for name in ["a", "b"] {
            let problem = found[&id(name)].clone().expect_err("a problem");
            assert_eq!(problem, ScheduleProblem::Unknown { on: id("gone") });
            assert!(problem.to_string().contains("\"gone\", which doesn't exist"));
        }
    }

    #[test]
    fn circles_are_named_in_full_by_all_who_run_into_them() {
        let found = resolve_all(&[
            ("a", on("d")),
            ("b", on("c")),
            ("c", on("d")),
            ("d", on("b")),
            ("self", on("self")),
            ("fine", Schedule::Cron(CronSchedule::hourly())),
        ]);
        let message = |name| found[&id(name)].clone().expect_err("a problem").to_string();
        for name in ["a", "b", "c", "d"] {
            assert_eq!(message(name), "schedules depend on each other in a circle: b -> c -> d -> b");
        }
        assert_eq!(message("self"), "schedules depend on each other in a circle: self -> self");
        assert!(found[&id("fine")].is_ok());
    }

    #[test]
    fn long_chains_and_long_circles_are_followed() {
        let name = |n: usize| id(&format!("w{n:06}"));
        let last = 100_000;
        let links: Vec<Schedule> = (0..last).map(|n| Schedule::Dependent(name(n + 1))).collect();
        let mut schedules: BTreeMap<_, _> = (0..last).map(name).zip(&links).collect();
        let end = Schedule::Cron(CronSchedule::hourly());
        schedules.insert(name(last), &end);
        assert_eq!(resolve(&schedules)[&name(0)], Ok(CronSchedule::hourly()));
        let back = Schedule::Dependent(name(0));
        schedules.insert(name(last), &back);
        let found = resolve(&schedules);
        let Err(ScheduleProblem::Cycle { path }) = &found[&name(last / 2)] else {
            panic!("no circle");
        };
        assert_eq!((path.len(), &path[0], path.last()), (last + 2, &name(0), Some(&name(0))));
    }
}
