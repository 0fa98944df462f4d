//! Backfills: opening the slots of a range, and what people ask for afterwards: pause, resume, another priority,
//! opening the failures again, cancelling.

mod rows;

use kelos_model::event::{BackfillEvent, Origin};
use kelos_model::workflow::{Backfill, BackfillMode, Pause};
use kelos_model::{Actor, BackfillId, SlotEvent, SlotRef, SlotState};

pub(crate) use rows::Backfills;

use crate::permits::Position;
use crate::slots::Live;
use crate::{BackfillOutcome, BackfillRequest, Core, Refusal};

/// Slots that one backfill may touch: they are all planned in one turn.
pub const LARGEST_BACKFILL: usize = 1_000_000;

impl Core {
    pub(crate) fn backfill(&mut self, request: &BackfillRequest, by: Actor) -> Result<BackfillOutcome, Refusal> {
        let task = self.tasks.get(&request.workflow).filter(|task| task.row.present);
        let task = task.ok_or_else(|| Refusal::NoWorkflow(request.workflow.clone()))?;
        if self.backfills.contains_key(&request.id) {
            return Err(Refusal::NameTaken(request.id.clone()));
        }
        let schedule =
            task.schedule.ready().map_err(|why| Refusal::NoSchedule(request.workflow.clone(), why.to_string()))?;
        let times: Vec<_> = schedule.times(request.range.start, request.range.end).take(LARGEST_BACKFILL + 1).collect();
        if times.len() > LARGEST_BACKFILL {
            return Err(Refusal::TooMany { slots: times.len(), limit: LARGEST_BACKFILL });
        }
        let slots = times.into_iter().map(|at| SlotRef::at(request.workflow.clone(), at));
        let sorted = self.sort_for(request, slots.collect());
        if !request.dry_run {
            self.open(request, &sorted, by);
        }
        let Sorted { created, reopened, adopted, untouched } = sorted;
        Ok(BackfillOutcome { created, reopened, adopted, untouched })
    }

    /// Sorts the slots of a backfill by what it does with them.
    fn sort_for(&self, request: &BackfillRequest, slots: Vec<SlotRef>) -> Sorted {
        let mut sorted = Sorted::default();
        for slot in slots {
            match self.live(&slot).map(|live| (live.slot.state, live.slot.priority)) {
                None => sorted.created.push(slot),
                // What goes anyway is taken over only to go sooner.
                Some((state, priority))
                    if !state.is_final() && (request.priority > priority || self.before_start(&slot).is_some()) =>
                {
                    sorted.adopted.push(slot)
                }
                Some((state, _)) if state.is_final() && reopens(request.mode, state) => sorted.reopened.push(slot),
                Some(_) => sorted.untouched += 1,
            }
        }
        sorted
    }

    fn open(&mut self, request: &BackfillRequest, sorted: &Sorted, by: Actor) {
        let BackfillRequest { id, workflow, range, mode, priority, reason, .. } = request.clone();
        let slots = sorted.touched();
        let row = Backfill {
            id: id.clone(),
            workflow: workflow.clone(),
            range,
            mode,
            priority,
            by: by.clone(),
            created_at: self.now,
            cancelled_at: None,
            slots,
            reason: reason.clone(),
            paused: None,
            resumed_at: None,
        };
        self.open_slots(&row, sorted);
        let what = BackfillEvent::Created { workflow, range, mode, priority, by, slots, reason };
        self.change_backfill(row, what);
    }

    fn open_slots(&mut self, row: &Backfill, sorted: &Sorted) {
        let (id, priority) = (&row.id, row.priority);
        for slot in &sorted.created {
            let what = SlotEvent::Planned {
                origin: Origin::Backfill,
                priority,
                backfill: Some(id.clone()),
                by: None,
                reason: None,
            };
            self.record(slot, what);
        }
        self.cover(&row.workflow, row.range);
        for slot in &sorted.reopened {
            self.reopen_for(row, slot, row.by.clone(), Some(format!("backfill {id}")));
        }
        for slot in &sorted.adopted {
            self.record(slot, SlotEvent::Prioritised { priority, backfill: id.clone(), by: None, reason: None });
        }
    }

    fn reopen_for(&mut self, row: &Backfill, slot: &SlotRef, by: Actor, reason: Option<String>) {
        let (priority, backfill) = (row.priority, Some(row.id.clone()));
        self.record(slot, SlotEvent::Reopened { by, reason, priority, backfill });
    }

    /// Takes over a row as the store has it.
    pub(crate) fn know_backfill(&mut self, row: Backfill) {
        if let Some(task) = self.tasks.get_mut(&row.workflow) {
            task.follow_pause(&row);
        }
        self.backfills.restore(row);
    }

    /// The one door through which the row of a backfill changes.
    fn change_backfill(&mut self, row: Backfill, what: BackfillEvent) {
        let id = row.id.clone();
        let Some(task) = self.tasks.get_mut(&row.workflow) else { return self.no_workflow(&row.workflow) };
        task.follow_pause(&row);
        self.backfills.change(row);
        self.record_backfill(&id, what);
    }

    /// The same, with slots that are live.
    fn going_on(&self, id: &BackfillId) -> Result<Backfill, Refusal> {
        let row = self.backfills.standing(id)?;
        if self.slots_of(&row, |live| !live.slot.state.is_final()).is_empty() {
            return Err(Refusal::BackfillOver(id.clone()));
        }
        Ok(row)
    }

    /// Its slots in memory that are wanted.
    fn slots_of(&self, row: &Backfill, wanted: impl Fn(&Live) -> bool) -> Vec<SlotRef> {
        let is_its = |live: &Live| live.slot.backfill.as_ref() == Some(&row.id);
        let mine = self.slots.of(&row.workflow).filter(|(_, live)| is_its(live) && wanted(live));
        mine.map(|(slot, _)| slot).collect()
    }

    pub(crate) fn pause_backfill(&mut self, id: &BackfillId, by: Actor, reason: Option<String>) -> Result<(), Refusal> {
        let mut row = self.backfills.standing(id)?;
        if row.paused.is_none() {
            self.going_on(id)?;
            row.paused = Some(Pause { at: self.now, by: by.clone() });
            self.change_backfill(row, BackfillEvent::Paused { by, reason });
            self.wake_backfill(id);
        }
        Ok(())
    }

    pub(crate) fn resume_backfill(
        &mut self,
        id: &BackfillId,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        let mut row = self.backfills.standing(id)?;
        if row.paused.is_some() {
            row.paused = None;
            row.resumed_at = Some(self.now);
            self.change_backfill(row, BackfillEvent::Resumed { by, reason });
            self.wake_backfill(id);
        }
        Ok(())
    }

    /// Has its slots looked at that have no run, as a pause or its end has it, and puts those that may run in their
    /// place in the queue.
    fn wake_backfill(&mut self, id: &BackfillId) {
        // The caller has just changed it.
        let Some(row) = self.backfills.get(id).cloned() else { return };
        let idle = self.slots_of(&row, |live| live.slot.state.is_idle());
        let Some(task) = self.tasks.get(&row.workflow) else { return self.no_workflow(&row.workflow) };
        for slot in &idle {
            let Some(live) = self.slots.get(slot) else { continue };
            match task.is_in_line(&live.slot) {
                true => self.permits.enqueue(slot, &live.slot),
                false => self.permits.withdraw(slot, &Position::of(&live.slot, &slot.key)),
            }
        }
        idle.into_iter().for_each(|slot| self.wake(slot));
        self.permits.wake(&row.workflow);
    }

    pub(crate) fn prioritise_backfill(
        &mut self,
        id: &BackfillId,
        priority: i32,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        let mut row = self.going_on(id)?;
        if row.priority == priority {
            return Ok(());
        }
        row.priority = priority;
        for slot in self.slots_of(&row, |live| !live.slot.state.is_final()) {
            let (backfill, by, reason) = (id.clone(), Some(by.clone()), reason.clone());
            self.record(&slot, SlotEvent::Prioritised { priority, backfill, by, reason });
        }
        self.change_backfill(row, BackfillEvent::Prioritised { priority, by, reason });
        Ok(())
    }

    /// All slots of its range are in memory for this turn.
    pub(crate) fn rerun_backfill(
        &mut self,
        id: &BackfillId,
        by: Actor,
        reason: Option<String>,
    ) -> Result<Vec<SlotRef>, Refusal> {
        let row = self.backfills.standing(id)?;
        let failed = |live: &Live| matches!(live.slot.state, SlotState::Failed | SlotState::Expired);
        let mut reopened = self.slots_of(&row, failed);
        reopened.retain(|slot| self.check_slot(slot).is_ok());
        let why = reason.clone().or_else(|| Some(format!("what failed of backfill {id}")));
        reopened.iter().for_each(|slot| self.reopen_for(&row, slot, by.clone(), why.clone()));
        if let Some(slots) = u32::try_from(reopened.len()).ok().filter(|slots| *slots > 0) {
            self.change_backfill(row, BackfillEvent::Reopened { slots, by, reason });
        }
        Ok(reopened)
    }

    pub(crate) fn cancel_backfill(
        &mut self,
        id: &BackfillId,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        let mut row = match self.backfills.standing(id) {
            Err(Refusal::BackfillCancelled(_)) => return Ok(()),
            other => other?,
        };
        for slot in self.slots_of(&row, |live| live.slot.state.is_idle()) {
            let reason = Some(format!("backfill {id} was cancelled"));
            self.record(&slot, SlotEvent::Killed { by: by.clone(), reason });
        }
        row.cancelled_at = Some(self.now);
        row.paused = None;
        self.change_backfill(row, BackfillEvent::Cancelled { by, reason });
        Ok(())
    }
}

#[derive(Default)]
struct Sorted {
    created: Vec<SlotRef>,
    reopened: Vec<SlotRef>,
    adopted: Vec<SlotRef>,
    untouched: u32,
}

impl Sorted {
    fn touched(&self) -> u32 {
        u32::try_from(self.created.len() + self.reopened.len() + self.adopted.len()).unwrap_or(u32::MAX)
    }
}

fn reopens(mode: BackfillMode, state: SlotState) -> bool {
    match mode {
        BackfillMode::Missing => false,
        BackfillMode::Unsuccessful => state != SlotState::Succeeded,
        BackfillMode::All => true,
    }
}
