//! Slots that do not exist: the reason why.

use jiff::Timestamp;
use kelos_model::time::{CronSchedule, ScheduleProblem, text};
use kelos_model::workflow::{CatchUp, WorkflowRow};
use kelos_model::{SlotKey, SlotRef};

use crate::out_of_range::OutOfRange;

/// The reason for which a workflow, as it is defined now, has no slot at a time, with the nearest times that it has.
fn outside(
    workflow: &WorkflowRow,
    schedule: &Result<CronSchedule, ScheduleProblem>,
    time: Timestamp,
) -> Option<String> {
    let reason = OutOfRange::of_time(&workflow.definition, schedule.as_ref(), time)?;
    Some(format!("{reason}{}", nearest(&reason, schedule, time)))
}

/// The same for a slot that exists; there a removal is a reason, too.
pub(super) fn out_of_range(
    workflow: &WorkflowRow,
    schedule: &Result<CronSchedule, ScheduleProblem>,
    key: &SlotKey,
) -> Option<String> {
    let reason = OutOfRange::of(workflow, schedule.as_ref(), key)?;
    Some(format!("{reason}{}", nearest(&reason, schedule, key.time()?)))
}

/// The times around one that a schedule does not have: `; the nearest are … and …`.
fn nearest(reason: &OutOfRange, schedule: &Result<CronSchedule, ScheduleProblem>, time: Timestamp) -> String {
    let schedule = schedule.as_ref().ok().filter(|_| *reason == OutOfRange::NotInSchedule);
    let near = schedule.into_iter().flat_map(|one| [one.previous_before(time), one.next_after(time)]).flatten();
    let near: Vec<String> = near.map(text::format_short).collect();
    if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(" and ")) }
}

/// A slot that does not exist, or did not at some moment.
pub(super) struct Absent<'a> {
    pub(super) workflow: Option<&'a WorkflowRow>,
    pub(super) schedule: Option<Result<CronSchedule, ScheduleProblem>>,
    /// When it came to exist after all.
    pub(super) planned_at: Option<Timestamp>,
    /// The reason for which it can't be opened, for a job.
    pub(super) no_way: Option<String>,
}

impl Absent<'_> {
    /// The first reason that holds, from the firmest to the weakest.
    pub(super) fn because(&self, slot: &SlotRef, at: Timestamp, at_present: bool) -> String {
        let Some(workflow) = self.workflow else {
            return format!("no workflow has ever been named \"{}\"", slot.workflow);
        };
        if slot.key.job().is_none() && slot.key.time().is_none() {
            return self.no_run(slot);
        }
        let Some(time) = slot.key.time() else { return self.no_job(workflow, at_present) };
        if workflow.definition.keys.are_moments() || slot.key.is_moment() {
            return self.no_moment(workflow);
        }
        if self.planned_at.is_none()
            && let Some(never) = self.never(workflow, time)
        {
            return never;
        }
        let period = workflow.definition.keys.period_of(&slot.key);
        if let Some(period) = period.filter(|period| period.end >= at) {
            let end = text::format_short(period.end);
            return match at_present {
                true => format!("its period ends at {end}: it is not due before"),
                false => format!("its period ended at {end}: it was not due before"),
            };
        }
        if time >= at {
            return format!("its time {} not come", if at_present { "has" } else { "had" });
        }
        if let Some(planned_at) = self.planned_at {
            return format!("it had not been planned yet; that happened at {}", text::format_full(planned_at));
        }
        if workflow.frozen().is_some() {
            return "it was not planned: its workflow is frozen, see Problems".to_owned();
        }
        if workflow.paused {
            return "it was not planned: its workflow is paused".to_owned();
        }
        if workflow.planned.until.is_none_or(|until| time >= until) {
            return "it has not been planned yet".to_owned();
        }
        "it was never planned: it lay before the planning window when its workflow was looked at; \
         rerun it, or backfill a range, to open it"
            .to_owned()
    }

    /// The explanation for a key that is the moment of opening: a fact or a request opens such a slot.
    fn no_moment(&self, workflow: &WorkflowRow) -> String {
        match self.planned_at {
            Some(planned_at) => format!("it had not come to be yet; that was at {}", text::format_full(planned_at)),
            None if !workflow.definition.keys.are_moments() => {
                "nobody started its workflow at that moment, and its schedule has no such time".to_owned()
            }
            None => {
                "nothing opened it: its workflow's slots are named by the moments at which they came to be".to_owned()
            }
        }
    }

    /// The explanation for a run with a name, and for a step where nothing is known of its flow.
    fn no_run(&self, slot: &SlotRef) -> String {
        match (self.planned_at, slot.key.step()) {
            (Some(planned_at), _) => {
                format!("it had not come to be yet; that was at {}", text::format_full(planned_at))
            }
            (None, Some(_)) => "its workflow is no flow with such a step".to_owned(),
            (None, None) => format!("nobody started a run named {}", slot.key.short()),
        }
    }

    /// The explanation for a job: a request opens it.
    fn no_job(&self, workflow: &WorkflowRow, at_present: bool) -> String {
        match self.planned_at {
            Some(planned_at) => {
                format!("it had not been opened yet; that happened at {}", text::format_full(planned_at))
            }
            None if !workflow.present => "it was never opened, and its workflow is no longer defined".to_owned(),
            None if self.no_way.is_some() => {
                format!("it was never opened, and can't be: {}", self.no_way.as_deref().unwrap_or_default())
            }
            None if at_present => "it was never opened: submit it, or a job that waits for it".to_owned(),
            None => "it was never opened".to_owned(),
        }
    }

    /// The reason for which it will never be planned.
    fn never(&self, workflow: &WorkflowRow, time: Timestamp) -> Option<String> {
        if !workflow.present {
            return Some("it was never planned, and its workflow is no longer defined".to_owned());
        }
        if let Some(outside) = outside(workflow, self.schedule.as_ref()?, time) {
            return Some(outside);
        }
        let since = Some(workflow.opens_from()).filter(|since| time < *since)?;
        let policy = workflow.definition.catch_up.map(CatchUp::as_str).unwrap_or_default();
        Some(format!(
            "it was never planned: with catchUp \"{policy}\" its workflow opens no slots of before {}, when its schedule was first seen or \
             misfires were passed over; rerun it, or backfill a range, to open it",
            text::format_short(since)
        ))
    }
}
