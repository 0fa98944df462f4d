//! The rules: what counts as stuck.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{Queries, SlotRow, StoreError};

use super::usual::{self, DueMoment};
use super::{FLOOR, Kind, LATE, LONG, LOOKED_AT, Stuck, StuckReport, TOLD, UNKNOWN, backlog};
use crate::failures::{self, Failures};
use crate::roots::{self, Root};
use crate::{account, rows, run_times, schedule, schedules};

/// Slots of a workflow whose history is read, of the oldest and of the newest that may be late, before the others are taken not to be.
/// One of the others is told of once it has been in its state for as long as makes a slot late.
const ASKED: usize = 5;
/// Times of a paused workflow that are counted: of those that were not planned, and of its backlog.
const UNPLANNED: usize = 1_000;
/// Times of the backlog of a workflow that may be late.
const BEHIND: usize = 100;

/// Finds what is stuck at a moment. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, now: Timestamp) -> Result<StuckReport, StoreError> {
    let workflows: BTreeMap<WorkflowId, WorkflowRow> =
        reader.workflows(None)?.into_iter().map(|row| (row.id.clone(), row)).collect();
    let (live, is_partial) = live(reader)?;
    let failures = failures::find(reader, now)?;
    let followers: &BTreeSet<&SlotRef> = &failures.followers().map(|follower| &follower.slot).collect();
    let (mut rows, mut overdue) = (Vec::new(), BTreeMap::new());
    for (id, workflow) in workflows.iter().filter(|(_, row)| !rests(row)) {
        let slots = live.get(id).map_or(&[][..], Vec::as_slice);
        let search = Search { reader, now, workflow, slots, followers };
        let times: Vec<Timestamp> = search.past_deadline().filter_map(|(row, _)| row.id.key.time()).collect();
        if !times.is_empty() {
            overdue.insert(id.clone(), times);
        }
        rows.extend([search.overdue(), search.waiting()?, search.backoff()?, search.running()?].into_iter().flatten());
    }
    rows.extend(failed(&failures, now));
    for workflow in workflows.values().filter(|row| rests(row) && row.present) {
        let slots = live.get(&workflow.id).map_or(&[][..], Vec::as_slice);
        rows.extend(Search { reader, now, workflow, slots, followers }.at_rest()?);
    }
    rows.sort_by_key(|row| (row.kind == Kind::Paused, Reverse(row.beyond), row.since));
    let more = rows.len().saturating_sub(TOLD);
    rows.truncate(TOLD);
    for row in rows.iter_mut().filter(|row| row.reason.is_empty()) {
        (row.reason, row.root) = reason(reader, &row.slot, now)?;
    }
    Ok(StuckReport { rows, more, is_partial: is_partial || failures.is_partial, overdue })
}

/// Whether a workflow is dormant until somebody resumes it.
pub(crate) fn rests(row: &WorkflowRow) -> bool {
    row.paused || row.frozen().is_some()
}

/// The live slots of each workflow, of each state the oldest, and whether there are more.
fn live(reader: &dyn Queries) -> Result<(BTreeMap<WorkflowId, Vec<SlotRow>>, bool), StoreError> {
    let (mut live, mut is_partial) = (BTreeMap::<_, Vec<SlotRow>>::new(), false);
    for state in rows::live_states() {
        let mut room = LOOKED_AT;
        let take = |row: SlotRow| {
            let has_room = room > 0;
            if has_room {
                room -= 1;
                live.entry(row.id.workflow.clone()).or_default().push(row);
            }
            Ok(has_room)
        };
        is_partial |= !rows::each(state, |filter, paging| reader.slots(filter, paging), take)?;
    }
    for slots in live.values_mut() {
        slots.sort_by_key(|row| row.id.key.time().unwrap_or(row.slot.since));
    }
    Ok((live, is_partial))
}

/// When a slot of a workflow began to wait: when it was due; a job has no time, and began when it was opened, or went on, last.
fn began(workflow: &WorkflowRow, row: &SlotRow) -> Timestamp {
    workflow.definition.keys.due(&row.id.key).unwrap_or(row.slot.since)
}

/// The reason for the state of a slot, and the first root of its wait, if it waits for something.
fn reason(reader: &dyn Queries, slot: &SlotRef, now: Timestamp) -> Result<(String, Option<Root>), StoreError> {
    let why = account::read(reader, slot, now, true, None)?;
    let waits = why.state.is_some_and(|state| !state.is_final());
    if !waits || why.blockers.is_empty() {
        return Ok((why.headline, None));
    }
    let roots = roots::read_few(reader, slot, now)?.rows;
    // The slot's own account says what is in its way.
    let upstream: Vec<String> = roots.iter().filter(|root| root.way.len() > 1).map(Root::sentence).collect();
    let reason = if upstream.is_empty() { why.blockers.join("; ") } else { upstream.join("; ") };
    Ok((reason, roots.into_iter().next()))
}

/// The search among the live slots of one workflow.
struct Search<'a> {
    reader: &'a dyn Queries,
    now: Timestamp,
    workflow: &'a WorkflowRow,
    /// Oldest first.
    slots: &'a [SlotRow],
    /// The slots that wait for a failure, and are told with it.
    followers: &'a BTreeSet<&'a SlotRef>,
}

impl Search<'_> {
    fn age(&self, row: &SlotRow) -> SignedDuration {
        self.now.duration_since(began(self.workflow, row))
    }

    /// Whether a slot is dormant because its workflow starts later.
    fn is_out_of_bounds(&self, row: &SlotRow) -> bool {
        self.workflow.definition.out_of_bounds(&row.id.key, Some(&row.slot)).is_some()
    }

    /// The slots whose deadline has passed, with it.
    fn past_deadline(&self) -> impl Iterator<Item = (&SlotRow, Timestamp)> {
        let within = self.slots.iter().filter(|row| !self.is_out_of_bounds(row));
        within.filter_map(|row| Some((row, self.deadline_missed(row)?)))
    }

    /// The slots whose deadline has passed. They are not told again for being late by what is usual.
    fn overdue(&self) -> Option<Stuck> {
        let mut missed = self.past_deadline();
        let (row, deadline) = missed.next()?;
        let stuck = self.stuck(row, Kind::Overdue, deadline, None, SignedDuration::ZERO);
        Some(Stuck { others: missed.count(), ..stuck })
    }

    /// The deadline of a slot, where that has passed.
    fn deadline_missed(&self, row: &SlotRow) -> Option<Timestamp> {
        self.workflow.definition.missed_deadline(&row.id.key, &row.slot, self.now)
    }

    /// The slots that have not begun to run, where one of them is late or will expire soon.
    fn waiting(&self) -> Result<Option<Stuck>, StoreError> {
        let before_its_run = |row: &&SlotRow| {
            row.slot.state < SlotState::Running && row.slot.backfill.is_none() && !self.is_out_of_bounds(row)
        };
        let behind = backlog::first(self.workflow, BEHIND, |stretch| stretch.backfill.is_none());
        let mut waiting: Vec<&SlotRow> =
            self.slots.iter().chain(&behind).filter(before_its_run).filter(|row| self.age(row) > FLOOR).collect();
        waiting.sort_by_key(|row| began(self.workflow, row));
        if waiting.is_empty() {
            return Ok(None);
        }
        let expiring = waiting.iter().find(|row| self.expires_soon(row).is_some());
        let usual = usual::lateness(self.reader, self.workflow)?;
        let limit = self.limit(usual);
        // A slot that collects facts, or is held by constraints, waits by design.
        let is_patient = |row: &SlotRow| match row.slot.state {
            SlotState::Held => true,
            SlotState::Waiting => self.workflow.definition.keys.are_moments(),
            _ => false,
        };
        // A time of a backlog has no deadline to miss before it has a slot.
        let is_overdue = |row: &SlotRow| !row.slot.is_only_planned() && self.deadline_missed(row).is_some();
        let is_told = |row: &SlotRow| self.followers.contains(&row.id) || is_overdue(row);
        let is_late =
            |row: &&SlotRow| self.age(row) > limit && !is_patient(row) && !is_told(row) && !self.has_just_moved(row);
        let late: Vec<&SlotRow> = waiting.iter().copied().filter(is_late).collect();
        if let Some(row) = expiring {
            let others = waiting.iter().filter(|row| self.expires_soon(row).is_some()).count() - 1;
            let stuck = Stuck { others, ..self.stuck(row, Kind::Expiring, began(self.workflow, row), usual, limit) };
            return Ok(Some(Stuck { next: self.expires_soon(row), ..stuck }));
        }
        let Some((before, row, due)) = self.first_late(&late, limit)? else { return Ok(None) };
        let others = late.len() - before - 1;
        Ok(Some(Stuck { others, ..self.stuck(row, Kind::Late, due, usual, limit) }))
    }

    /// The first late slot that is not merely catching up, with its place among the late ones and the time at which it was due.
    fn first_late<'r>(
        &self,
        late: &[&'r SlotRow],
        limit: SignedDuration,
    ) -> Result<Option<(usize, &'r SlotRow, Timestamp)>, StoreError> {
        let is_beyond = |due: Timestamp| self.now.duration_since(due) > limit;
        let sure = late.iter().position(|row| is_beyond(DueMoment::of(self.workflow, row).latest()));
        let before = late.iter().copied().enumerate().take(sure.unwrap_or(late.len()));
        let is_open = |(_, row): &(usize, &'r SlotRow)| matches!(DueMoment::of(self.workflow, row), DueMoment::By(_));
        let open: Vec<(usize, &'r SlotRow)> = before.filter(is_open).collect();
        // What catches up was planned at once, and what was planned in time comes after it.
        let newest = open.len().saturating_sub(ASKED).max(ASKED);
        let asked = open.iter().take(ASKED).chain(open.iter().skip(newest)).copied();
        for (place, row) in asked {
            let due = usual::due(self.reader, self.workflow, row)?;
            if is_beyond(due) {
                return Ok(Some((place, row, due)));
            }
        }
        let Some((place, row)) = sure.and_then(|place| Some((place, *late.get(place)?))) else { return Ok(None) };
        Ok(Some((place, row, usual::due(self.reader, self.workflow, row)?)))
    }

    /// Whether a slot that does not wait for its trigger any more was queued or dispatched a moment ago: it is late, and not stuck.
    fn has_just_moved(&self, row: &SlotRow) -> bool {
        let has_moved = matches!(row.slot.state, SlotState::Queued | SlotState::Dispatched);
        has_moved && self.now.duration_since(row.slot.since) <= FLOOR
    }

    /// When a slot expires, where that is soon.
    fn expires_soon(&self, row: &SlotRow) -> Option<Timestamp> {
        if self.workflow.definition.keys.events().is_some() {
            let expires = schedules::expires(&self.workflow.definition, &row.id, &row.slot)?;
            let left = expires.duration_since(self.now).as_secs();
            let whole = expires.duration_since(began(self.workflow, row)).as_secs();
            return (left < whole / 5 && self.workflow.present).then_some(expires);
        }
        let definition = &self.workflow.definition;
        let timeout = i64::try_from(definition.wait_timeout_seconds?).ok()?;
        let expires = definition.waits_until(&row.id.key, &row.slot, self.workflow.moments.resumed)?;
        let soon = expires.duration_since(self.now).as_secs() < timeout / 5;
        (soon && row.slot.state == SlotState::Waiting && self.workflow.present).then_some(expires)
    }

    /// The time after which a slot that is due is late.
    fn limit(&self, usual: Option<SignedDuration>) -> SignedDuration {
        let floor = if usual.is_some() { FLOOR } else { UNKNOWN };
        let floor = floor + SignedDuration::from_secs(self.workflow.definition.trigger.longest_delay());
        usual.and_then(|usual| usual.checked_mul(LATE)).map_or(floor, |late| late.max(floor))
    }

    fn stuck(
        &self,
        row: &SlotRow,
        kind: Kind,
        since: Timestamp,
        usual: Option<SignedDuration>,
        limit: SignedDuration,
    ) -> Stuck {
        let beyond = (self.now.duration_since(since) - limit).max(SignedDuration::ZERO);
        let gone = !self.workflow.present;
        let reason = if gone { "its workflow is no longer defined".to_owned() } else { String::new() };
        Stuck {
            slot: row.id.clone(),
            kind,
            state: Some(row.slot.state),
            since,
            usual,
            beyond,
            reason,
            next: None,
            others: 0,
            followers: 0,
            root: None,
        }
    }

    /// The slots that wait to be tried again.
    fn backoff(&self) -> Result<Option<Stuck>, StoreError> {
        let waits = |row: &&SlotRow| row.slot.state == SlotState::Backoff && !self.is_out_of_bounds(row);
        let mut waiting = self.slots.iter().filter(waits);
        let Some(row) = waiting.next() else { return Ok(None) };
        let usual = usual::lateness(self.reader, self.workflow)?;
        let due = usual::due(self.reader, self.workflow, row)?;
        let attempts = u64::from(self.workflow.definition.retry.count) + u64::from(row.slot.again) + 1;
        let runs = self.reader.slot_runs(&row.id)?;
        let outcome = runs.last().and_then(|run| run.outcome.as_ref()).map(|outcome| format!(": {outcome}"));
        let reason = format!("attempt {} of {attempts} failed{}", row.slot.retries, outcome.unwrap_or_default());
        let stuck = self.stuck(row, Kind::Backoff, due, usual, self.limit(usual));
        Ok(Some(Stuck { since: row.slot.since, reason, next: row.slot.due, others: waiting.count(), ..stuck }))
    }

    /// The slots whose runs take unusually long.
    fn running(&self) -> Result<Option<Stuck>, StoreError> {
        let goes_on = |row: &&SlotRow| row.slot.state == SlotState::Running;
        let took = |row: &SlotRow| self.now.duration_since(row.slot.since);
        let mut running: Vec<&SlotRow> = self.slots.iter().filter(goes_on).filter(|row| took(row) > FLOOR).collect();
        if running.is_empty() {
            return Ok(None);
        }
        running.sort_by_key(|row| row.slot.since);
        let Some(usual) = run_times::run_time(self.reader, &self.workflow.id)? else { return Ok(None) };
        let limit = usual.checked_mul(LONG).map_or(FLOOR, |long| long.max(FLOOR));
        running.retain(|row| took(row) > limit);
        let Some(row) = running.first() else { return Ok(None) };
        let stuck = self.stuck(row, Kind::Long, row.slot.since, Some(usual), limit);
        Ok(Some(Stuck { others: running.len() - 1, ..stuck }))
    }

    /// The due slots of a workflow that is paused or frozen, planned or not.
    fn at_rest(&self) -> Result<Option<Stuck>, StoreError> {
        let is_due = |row: &&SlotRow| self.workflow.definition.keys.due(&row.id.key).is_none_or(|at| at <= self.now);
        let has_run = |row: &&SlotRow| matches!(row.slot.state, SlotState::Dispatched | SlotState::Running);
        let rests = |row: &&SlotRow| has_run(row) || self.is_out_of_bounds(row);
        let behind = backlog::first(self.workflow, UNPLANNED, |_| true);
        let mut due: Vec<&SlotRow> =
            self.slots.iter().chain(&behind).filter(is_due).filter(|row| !rests(row)).collect();
        due.sort_by_key(|row| began(self.workflow, row));
        let missed = self.missed()?;
        let others = (due.len() + missed.len()).saturating_sub(1);
        let (kind, rests) = match self.workflow.frozen() {
            Some(_) => (Kind::Frozen, "frozen, see Problems"),
            None => (Kind::Paused, "paused"),
        };
        let reason = format!("its workflow is {rests}; {}", due_words(others + 1));
        let first = due.first().map(|row| (row.id.clone(), Some(row.slot.state), began(self.workflow, row)));
        let missed = missed.first().map(|at| {
            let slot = SlotRef::at(self.workflow.id.clone(), *at);
            let since = self.workflow.definition.keys.due(&slot.key).unwrap_or(*at);
            (slot, None, since)
        });
        let Some((slot, state, since)) = first.or(missed) else { return Ok(None) };
        let beyond = self.now.duration_since(since);
        Ok(Some(Stuck {
            slot,
            kind,
            state,
            since,
            usual: None,
            beyond,
            reason,
            next: None,
            others,
            followers: 0,
            root: None,
        }))
    }

    /// The times that went by since it was last planned.
    fn missed(&self) -> Result<Vec<Timestamp>, StoreError> {
        let Some(until) = self.workflow.planned.until else { return Ok(Vec::new()) };
        let schedule = schedule::resolved(self.reader, self.workflow)?;
        let Ok(schedule) = schedule else { return Ok(Vec::new()) };
        let due = schedule.due_in(Range::new(Timestamp::MIN, self.now));
        let end = due.end.min(self.workflow.definition.bounds(&schedule).end);
        Ok(schedule.times(until, end).take(UNPLANNED).collect())
    }
}

fn due_words(slots: usize) -> String {
    match slots {
        1 => "one slot is due".to_owned(),
        slots if slots >= UNPLANNED => format!("at least {UNPLANNED} slots are due"),
        slots => format!("{slots} slots are due"),
    }
}

/// A row for each workflow with failures: the oldest of them.
fn failed(failures: &Failures, now: Timestamp) -> Vec<Stuck> {
    let mut of: BTreeMap<&WorkflowId, Stuck> = BTreeMap::new();
    let mut rows: Vec<_> = failures.rows.iter().collect();
    rows.sort_by_key(|row| (row.slot.key.time().unwrap_or(row.since), &row.slot));
    for row in rows {
        let stuck = of.entry(&row.slot.workflow).and_modify(|stuck| stuck.others += 1).or_insert_with(|| Stuck {
            slot: row.slot.clone(),
            kind: Kind::Failed,
            state: Some(row.state),
            since: row.since,
            usual: None,
            beyond: now.duration_since(row.since).max(SignedDuration::ZERO),
            reason: String::new(),
            next: None,
            others: 0,
            followers: 0,
            root: None,
        });
        stuck.followers += row.followers.len();
    }
    of.into_values().collect()
}
