//! The slots within the range of a backfill, and the treatment of each: a function of their current states.

use jiff::Timestamp;
use kelos_model::backfill::BackfillMode;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::{DefinedVersion, VersionChoice};
use kelos_model::{SlotKey, SlotRef, SlotState, Stretch, WorkflowId};

use crate::planner::free_of_slots;
use crate::requests::LISTED;
use crate::slots::SlotTable;
use crate::workflows::WorkflowState;
use crate::{BackfillOutcome, BackfillRequest, SlotList};

/// The times of a workflow within a range.
pub(super) struct Scope {
    range: Range,
    /// The number of times.
    times: u64,
    /// The number of times that were never planned.
    uncovered: u64,
    /// The number of times in the backlog.
    in_backlog: u64,
    planned: Vec<Stretch>,
}

impl Scope {
    pub(super) fn of(workflow: &WorkflowState, slots: &SlotTable, range: Range, schedule: &CronSchedule) -> Scope {
        let mut free = RangeSet::default();
        free.insert(range);
        workflow.planned().ranges.within(range).for_each(|part| free.remove(part));
        let planned: Vec<Stretch> = slots.backlog(workflow.id()).within(range).collect();
        let count = |parts: &mut dyn Iterator<Item = Range>| parts.map(|part| schedule.count(part)).sum();
        Scope {
            range,
            times: schedule.count(range),
            uncovered: count(&mut free.ranges().iter().copied()),
            in_backlog: count(&mut planned.iter().map(|stretch| stretch.range)),
            planned,
        }
    }

    /// The number of times.
    pub(super) fn times(&self) -> u64 {
        self.times
    }

    /// The largest possible number of times with slots of their own.
    pub(super) fn existing(&self) -> u64 {
        self.times.saturating_sub(self.uncovered).saturating_sub(self.in_backlog)
    }
}

/// A version, among the definitions of its workflow.
pub(super) struct Maker<'a> {
    pub(super) definitions: &'a [DefinedVersion],
    pub(super) version: VersionChoice,
}

impl Maker<'_> {
    /// Whether a run that was dispatched at a position of the log is its own.
    fn made(&self, dispatch: u64) -> bool {
        DefinedVersion::at(self.definitions, dispatch).is_some_and(|one| self.version.is_of(one))
    }
}

/// The slots of a backfill, by their treatment.
#[derive(Default)]
pub(super) struct ScopePlan {
    /// The times without any slots.
    pub(super) missing: RangeSet,
    pub(super) reopened: Vec<SlotRef>,
    pub(super) adopted: Vec<SlotRef>,
    /// The parts of the backlog that are reopened.
    pub(super) reopened_later: Vec<Stretch>,
    pub(super) adopted_later: Vec<Stretch>,
    untouched: u64,
    /// Whether all times of the range have slots once it is carried out.
    pub(super) is_whole: bool,
}

impl ScopePlan {
    /// Sorts the slots of a backfill by their treatment.
    pub(super) fn of(
        request: &BackfillRequest,
        scope: Scope,
        workflow: &WorkflowState,
        slots: &SlotTable,
        schedule: &CronSchedule,
    ) -> ScopePlan {
        let id = workflow.id();
        let missing = free_of_slots(slots, id, scope.range);
        let mut sorted = ScopePlan { missing, is_whole: true, ..ScopePlan::default() };
        for (time, live) in slots.within(id, scope.range).filter(|(time, _)| schedule.contains(*time)) {
            let slot = SlotRef::at(id.clone(), time);
            let is_out = workflow.out_of_bounds(&slot.key, Some(&live.slot)).is_some();
            match treatment(request, live.slot.state, live.slot.priority, is_out) {
                Treatment::Reopen => sorted.reopened.push(slot),
                Treatment::Adopt => sorted.adopted.push(slot),
                Treatment::None => sorted.untouched += 1,
            }
        }
        for stretch in cut_at_bounds(workflow, schedule, scope.planned) {
            sorted.missing.remove(stretch.range);
            let first = SlotKey::Time(stretch.range.start);
            let is_out = workflow.out_of_bounds(&first, Some(&stretch.slot())).is_some();
            let is_out = is_out && stretch.backfill.is_none();
            match treatment(request, stretch.state(), stretch.priority, is_out) {
                Treatment::Reopen => sorted.reopened_later.push(stretch),
                Treatment::Adopt => sorted.adopted_later.push(stretch),
                Treatment::None => sorted.untouched += schedule.count(stretch.range),
            }
        }
        sorted
    }

    /// Sorts them where only what a version made is reopened: slots that have succeeded, with a last run by it.
    pub(super) fn made_by(
        maker: &Maker<'_>,
        scope: Scope,
        id: &WorkflowId,
        slots: &SlotTable,
        schedule: &CronSchedule,
    ) -> ScopePlan {
        let mut sorted = ScopePlan { untouched: scope.in_backlog, ..ScopePlan::default() };
        for (time, live) in slots.within(id, scope.range).filter(|(time, _)| schedule.contains(*time)) {
            if live.slot.state == SlotState::Succeeded && maker.made(live.slot.last_run_seq) {
                sorted.reopened.push(SlotRef::at(id.clone(), time));
            } else {
                sorted.untouched += 1;
            }
        }
        sorted
    }

    pub(super) fn missing_times<'a>(&self, schedule: &'a CronSchedule) -> impl Iterator<Item = Timestamp> + use<'a> {
        let parts = self.missing.ranges().to_vec();
        parts.into_iter().flat_map(|part| schedule.times(part.start, part.end))
    }

    pub(super) fn missing_count(&self, schedule: &CronSchedule) -> u64 {
        self.missing.ranges().iter().map(|part| schedule.count(*part)).sum()
    }

    pub(super) fn touched(&self, schedule: &CronSchedule) -> u64 {
        let later = self.reopened_later.iter().chain(&self.adopted_later).map(|stretch| schedule.count(stretch.range));
        let listed = self.reopened.len() + self.adopted.len();
        self.missing_count(schedule) + later.sum::<u64>() + listed as u64
    }

    pub(super) fn outcome(self, id: &WorkflowId, schedule: &CronSchedule) -> BackfillOutcome {
        let slot = |time| SlotRef::at(id.clone(), time);
        let created: Vec<SlotRef> = self.missing_times(schedule).take(LISTED).map(slot).collect();
        let created = SlotList { count: self.missing_count(schedule), first: created };
        let list = |slots: Vec<SlotRef>, later: &[Stretch]| {
            let count = slots.len() as u64 + later.iter().map(|stretch| schedule.count(stretch.range)).sum::<u64>();
            let times = later.iter().flat_map(|stretch| schedule.times(stretch.range.start, stretch.range.end));
            let mut first: Vec<SlotRef> = times.take(LISTED).map(slot).chain(slots).collect();
            first.sort();
            first.truncate(LISTED);
            SlotList { count, first }
        };
        BackfillOutcome {
            created,
            reopened: list(self.reopened, &self.reopened_later),
            adopted: list(self.adopted, &self.adopted_later),
            untouched: self.untouched,
        }
    }
}

/// Splits stretches at the start and at the end of their workflow.
fn cut_at_bounds(workflow: &WorkflowState, schedule: &CronSchedule, stretches: Vec<Stretch>) -> Vec<Stretch> {
    let bounds = workflow.bounds(schedule);
    let cut = |stretch: Stretch| {
        let Range { start, end } = stretch.range;
        let parts = [
            Range::new(start, end.min(bounds.start)),
            Range::new(start.max(bounds.start), end.min(bounds.end)),
            Range::new(start.max(bounds.start).max(bounds.end), end),
        ];
        parts.map(|range| Stretch { range, ..stretch.clone() })
    };
    stretches.into_iter().flat_map(cut).filter(|stretch| !stretch.range.is_empty()).collect()
}

/// The treatment of an existing slot by a backfill.
enum Treatment {
    Reopen,
    Adopt,
    None,
}

fn treatment(request: &BackfillRequest, state: SlotState, priority: i32, is_out: bool) -> Treatment {
    match state.is_final() {
        true if reopens(request.mode, state) => Treatment::Reopen,
        // A slot that runs anyway is adopted only to run sooner.
        false if request.priority > priority || is_out => Treatment::Adopt,
        _ => Treatment::None,
    }
}

fn reopens(mode: BackfillMode, state: SlotState) -> bool {
    match mode {
        BackfillMode::Missing => false,
        BackfillMode::Unsuccessful => state != SlotState::Succeeded,
        BackfillMode::All => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kelos_model::time::Schedule;
    use kelos_model::{Job, Slot, Workflow};

    use super::*;
    use crate::workflows::Workflows;

    fn hour(hours: i64) -> Timestamp {
        Timestamp::from_second(3600 * hours).expect("a time")
    }

    fn hours(start: i64, end: i64) -> Range {
        Range::new(hour(start), hour(end))
    }

    fn id() -> WorkflowId {
        "wf".parse().expect("an id")
    }

    fn backfill(mode: BackfillMode) -> BackfillRequest {
        BackfillRequest { mode, ..BackfillRequest::missing("b".parse().expect("a name"), id(), hours(0, 9)) }
    }

    /// An hourly workflow that starts at the third hour, with slots at the second and fifth, with the sixth to eighth
    /// in the backlog, and with everything before that planned.
    fn world() -> (Workflows, SlotTable) {
        let job = Job::new("command", serde_json::Map::new());
        let hourly = Workflow::new(id(), Schedule::Cron(CronSchedule::hourly()), job);
        let definition = Workflow { start_time: Some(hour(3)), ..hourly };
        let mut workflows = Workflows::default();
        workflows.define(&id(), &Arc::new(definition), hour(0));
        workflows.cover(&id(), hours(0, 8));
        let mut slots = SlotTable::default();
        slots.add_workflow(&id());
        slots.reschedule(&id(), &CronSchedule::hourly());
        slots.restore(&SlotRef::at(id(), hour(2)), Slot::new(SlotState::Waiting, hour(2)));
        slots.restore(&SlotRef::at(id(), hour(5)), Slot::new(SlotState::Failed, hour(5)));
        let stretch = Stretch { range: hours(6, 8), since: hour(6), backfill: None, priority: 0, killed: None };
        slots.backlog_mut(&id()).put(stretch);
        (workflows, slots)
    }

    fn sorted(request: &BackfillRequest) -> (u64, ScopePlan) {
        let (workflows, slots) = world();
        let workflow = workflows.get(&id()).expect("it is defined");
        let schedule = CronSchedule::hourly();
        let scope = Scope::of(workflow, &slots, request.range, &schedule);
        (scope.existing(), ScopePlan::of(request, scope, workflow, &slots, &schedule))
    }

    #[test]
    fn what_is_missing_has_no_slot_and_lies_in_no_backlog() {
        let (existing, sorted) = sorted(&backfill(BackfillMode::Missing));
        assert_eq!((existing, sorted.missing_count(&CronSchedule::hourly())), (6, 5));
        let adopted = vec![SlotRef::at(id(), hour(2))];
        assert_eq!((sorted.adopted, sorted.reopened, sorted.untouched), (adopted, Vec::new(), 3));
    }

    #[test]
    fn what_failed_is_opened_again_and_what_waits_goes_sooner() {
        let request = BackfillRequest { priority: 1, ..backfill(BackfillMode::Unsuccessful) };
        let (_, sorted) = sorted(&request);
        assert_eq!((sorted.reopened, sorted.untouched), (vec![SlotRef::at(id(), hour(5))], 0));
        let later: Vec<_> = sorted.adopted_later.iter().map(|stretch| stretch.range).collect();
        assert_eq!(later, [hours(6, 8)]);
    }

    #[test]
    fn stretches_are_cut_where_their_workflow_begins() {
        let (workflows, _) = world();
        let workflow = workflows.get(&id()).expect("it is defined");
        let stretch = Stretch { range: hours(1, 6), since: hour(1), backfill: None, priority: 0, killed: None };
        let cut: Vec<_> = cut_at_bounds(workflow, &CronSchedule::hourly(), vec![stretch])
            .into_iter()
            .map(|part| part.range)
            .collect();
        assert_eq!(cut, [hours(1, 3), hours(3, 6)]);
    }
}
