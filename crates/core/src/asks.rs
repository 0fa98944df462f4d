//! What people ask for: rerun, kill, pause, backfill, registers.

use kelos_model::event::{BackfillEvent, Origin, WorkflowEvent};
use kelos_model::ranges::Range;
use kelos_model::workflow::{Backfill, BackfillMode};
use kelos_model::{Recall, RunId, SlotEvent, SlotKey, SlotRef, SlotState, WorkflowId};

use crate::plan::range_recall;
use crate::{Ask, BackfillRequest, Command, Core, Done, Input, Inspection, Refusal, Reply};

/// Slots that one backfill may touch: they are all planned in one turn.
pub(crate) const LARGEST_BACKFILL: usize = 1_000_000;

impl Core {
    pub(crate) fn asked(&mut self, token: u64, by: String, ask: Ask) {
        let ask = self.until_now(ask);
        if let Some(recall) = self.missing(&ask) {
            self.turn.parked.push((recall.clone(), Input::Asked { token, by, ask }));
            self.command(Command::Recall(recall));
            return;
        }
        let reply = match ask {
            Ask::Rerun { slot, reason } => self.rerun(&slot, by, reason),
            Ask::Kill { slot, reason } => self.kill(&slot, by, reason),
            Ask::MarkSucceeded { slot, reason } => self.mark_succeeded(&slot, by, reason),
            Ask::Skip { slot, reason } => self.skip(&slot, by, reason),
            Ask::RerunDownstream(request) => self.rerun_downstream(&request, &by),
            Ask::Pause(id) => self.pause(&id, by),
            Ask::Resume(id) => self.resume(&id, by),
            Ask::Backfill(request) => self.backfill(&request, by),
            Ask::CancelBackfill(backfill) => Ok(self.cancel_backfill(backfill, by)),
            Ask::SetRegister { bucket, key, value } => {
                self.record_register(bucket, key, value, by);
                Ok(Done::Plainly)
            }
            Ask::Inspect(slot) => Ok(Done::Inspected(self.inspect(&slot))),
        };
        self.command(Command::Reply { token, reply });
    }

    /// A backfill is about the past: slots whose time has not come are left to the schedule.
    fn until_now(&self, ask: Ask) -> Ask {
        match ask {
            Ask::Backfill(mut request) => {
                request.range.end = request.range.end.min(self.now);
                Ask::Backfill(request)
            }
            other => other,
        }
    }

    /// What the store must be asked before this can be answered.
    fn missing(&self, ask: &Ask) -> Option<Recall> {
        match ask {
            Ask::Rerun { slot, .. }
            | Ask::Kill { slot, .. }
            | Ask::MarkSucceeded { slot, .. }
            | Ask::Skip { slot, .. } => (!self.is_known(slot)).then(|| Recall::Slots(vec![slot.clone()])),
            Ask::RerunDownstream(request) => self.missing_downstream(&request.slot),
            Ask::Backfill(request) => {
                let recall = range_recall(&request.workflow, request.range);
                let known = !self.tasks.contains_key(&request.workflow) || self.turn.recalled.contains(&recall);
                (!known).then_some(recall)
            }
            _ => None,
        }
    }

    /// Whether it is in memory, or certain not to exist.
    pub(crate) fn is_known(&self, slot: &SlotRef) -> bool {
        !self.tasks.contains_key(&slot.workflow) || self.live(slot).is_some() || self.turn.absent.contains(slot)
    }

    pub(crate) fn check_slot(&self, slot: &SlotRef) -> Result<(), Refusal> {
        let task = self.tasks.get(&slot.workflow).filter(|task| task.row.present);
        let task = task.ok_or_else(|| Refusal::NoWorkflow(slot.workflow.clone()))?;
        let SlotKey::Time(at) = slot.key;
        match &task.schedule {
            Ok(schedule) if schedule.contains(at) => Ok(()),
            Ok(_) => Err(Refusal::NotInSchedule(slot.clone())),
            Err(why) => Err(Refusal::NoSchedule(slot.workflow.clone(), why.clone())),
        }
    }

    fn rerun(&mut self, slot: &SlotRef, by: String, reason: Option<String>) -> Reply {
        self.check_slot(slot)?;
        match self.live(slot).map(|live| live.slot.state) {
            None => self.plan_asked(slot),
            Some(state) if !state.is_final() => return Err(Refusal::StillLive(slot.clone(), state)),
            Some(_) => {
                self.record(slot, SlotEvent::Reopened { by, reason, priority: 0, backfill: None });
            }
        }
        Ok(Done::Plainly)
    }

    pub(crate) fn plan_asked(&mut self, slot: &SlotRef) {
        self.record(slot, SlotEvent::Planned { origin: Origin::Request, priority: 0, backfill: None });
        self.cover_slot(slot);
    }

    fn kill(&mut self, slot: &SlotRef, by: String, reason: Option<String>) -> Reply {
        let state = self.see_to(slot)?;
        let done = self.end(slot, SlotEvent::Killed { by, reason });
        if done { Ok(Done::Plainly) } else { Err(Refusal::AlreadyFinal(slot.clone(), state)) }
    }

    fn skip(&mut self, slot: &SlotRef, by: String, reason: Option<String>) -> Reply {
        let state = self.see_to(slot)?;
        let done = self.end(slot, SlotEvent::SkippedBy { by, reason });
        if done { Ok(Done::Plainly) } else { Err(Refusal::NotSkippable(slot.clone(), state)) }
    }

    fn mark_succeeded(&mut self, slot: &SlotRef, by: String, reason: Option<String>) -> Reply {
        if let Some(live) = self.live(slot).filter(|live| live.slot.run_alive) {
            return Err(Refusal::RunAlive(slot.clone(), live.slot.last_run));
        }
        self.see_to(slot)?;
        let done = self.record(slot, SlotEvent::MarkedSucceeded { by, reason });
        if done { Ok(Done::Plainly) } else { Err(Refusal::AlreadySucceeded(slot.clone())) }
    }

    /// Plans a slot that does not exist, so that something can be done to it; gives its state.
    fn see_to(&mut self, slot: &SlotRef) -> Result<SlotState, Refusal> {
        if let Some(live) = self.live(slot) {
            // What exists can be ended even if its workflow, or its time, is not defined any more.
            return Ok(live.slot.state);
        }
        self.check_slot(slot)?;
        self.plan_asked(slot);
        Ok(SlotState::Waiting)
    }

    /// Records the event that ends a slot, and has its run ended. Says whether that could be.
    pub(crate) fn end(&mut self, slot: &SlotRef, what: SlotEvent) -> bool {
        let alive = self.live(slot).filter(|live| live.slot.run_alive);
        let run = alive.map(|live| RunId { slot: slot.clone(), number: live.slot.last_run });
        let done = self.record(slot, what);
        if let Some(run) = run.filter(|_| done) {
            self.cancel(&run);
        }
        done
    }

    fn pause(&mut self, id: &WorkflowId, by: String) -> Reply {
        if self.set_paused(id, true)? {
            self.record_workflow(id, WorkflowEvent::Paused { by });
            self.wake_all(id);
        }
        Ok(Done::Plainly)
    }

    fn resume(&mut self, id: &WorkflowId, by: String) -> Reply {
        if self.set_paused(id, false)? {
            self.record_workflow(id, WorkflowEvent::Resumed { by });
            self.wake_all(id);
        }
        Ok(Done::Plainly)
    }

    /// Says whether that changed anything.
    fn set_paused(&mut self, id: &WorkflowId, paused: bool) -> Result<bool, Refusal> {
        let task = self.tasks.get_mut(id).filter(|task| task.row.present);
        let task = task.ok_or_else(|| Refusal::NoWorkflow(id.clone()))?;
        let changed = task.row.paused != paused;
        task.row.paused = paused;
        Ok(changed)
    }

    fn backfill(&mut self, request: &BackfillRequest, by: String) -> Reply {
        let task = self.tasks.get(&request.workflow).filter(|task| task.row.present);
        let task = task.ok_or_else(|| Refusal::NoWorkflow(request.workflow.clone()))?;
        if self.backfills.contains(&request.id) {
            return Err(Refusal::NameTaken(request.id.clone()));
        }
        let schedule =
            task.schedule.as_ref().map_err(|why| Refusal::NoSchedule(request.workflow.clone(), why.clone()))?;
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
        Ok(Done::Backfill { created, reopened, adopted, untouched })
    }

    /// Sorts the slots of a backfill by what it does with them.
    fn sort_for(&self, request: &BackfillRequest, slots: Vec<SlotRef>) -> Sorted {
        let mut sorted = Sorted::default();
        for slot in slots {
            match self.live(&slot).map(|live| (live.slot.state, live.slot.priority)) {
                None => sorted.created.push(slot),
                // What goes anyway is taken over only to go sooner.
                Some((state, priority)) if !state.is_final() && request.priority > priority => {
                    sorted.adopted.push(slot)
                }
                Some((state, _)) if state.is_final() && reopens(request.mode, state) => sorted.reopened.push(slot),
                Some(_) => sorted.untouched += 1,
            }
        }
        sorted
    }

    fn open(&mut self, request: &BackfillRequest, sorted: &Sorted, by: String) {
        let BackfillRequest { id, workflow, range, mode, priority, .. } = request.clone();
        let backfill = Some(id.clone());
        for slot in &sorted.created {
            self.record(slot, SlotEvent::Planned { origin: Origin::Backfill, priority, backfill: backfill.clone() });
        }
        self.cover(&workflow, range);
        for slot in &sorted.reopened {
            let reason = Some(format!("backfill {id}"));
            self.record(slot, SlotEvent::Reopened { by: by.clone(), reason, priority, backfill: backfill.clone() });
        }
        for slot in &sorted.adopted {
            self.record(slot, SlotEvent::Prioritised { priority, backfill: id.clone() });
        }
        let slots =
            u32::try_from(sorted.created.len() + sorted.reopened.len() + sorted.adopted.len()).unwrap_or(u32::MAX);
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
        };
        self.backfills.insert(id.clone());
        self.turn.backfills.insert(id.clone(), row);
        self.record_backfill(&id, BackfillEvent::Created { workflow, range, mode, priority, by, slots });
    }

    fn cancel_backfill(&mut self, mut backfill: Backfill, by: String) -> Done {
        if backfill.cancelled_at.is_some() {
            return Done::Plainly;
        }
        let slots = self.tasks.get(&backfill.workflow).map(|task| {
            let mine = task.slots.iter().filter(|(_, live)| live.slot.backfill.as_ref() == Some(&backfill.id));
            let idle = mine.filter(|(_, live)| {
                matches!(live.slot.state, SlotState::Waiting | SlotState::Held | SlotState::Queued | SlotState::Backoff)
            });
            idle.map(|(key, _)| SlotRef::new(backfill.workflow.clone(), key.clone())).collect::<Vec<_>>()
        });
        for slot in slots.unwrap_or_default() {
            let reason = Some(format!("backfill {} was cancelled", backfill.id));
            self.record(&slot, SlotEvent::Killed { by: by.clone(), reason });
        }
        backfill.cancelled_at = Some(self.now);
        self.record_backfill(&backfill.id, BackfillEvent::Cancelled { by });
        self.turn.backfills.insert(backfill.id.clone(), backfill);
        Done::Plainly
    }

    fn inspect(&self, slot: &SlotRef) -> Inspection {
        let Some(task) = self.tasks.get(&slot.workflow) else { return Inspection::default() };
        let live = task.slots.get(&slot.key);
        let place = live.filter(|live| live.slot.state == SlotState::Queued).map(|live| live.place(&slot.key));
        let ahead = place.map_or(0, |place| task.queue.range(..place).count());
        Inspection {
            next_look: live.and_then(|live| self.next_look(slot, &live.wakers)),
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
            active: task.active,
            at_global_limit: self.running >= self.config.max_running,
            dormant: task.dormant(&slot.key),
        }
    }
}

#[derive(Default)]
struct Sorted {
    created: Vec<SlotRef>,
    reopened: Vec<SlotRef>,
    adopted: Vec<SlotRef>,
    untouched: u32,
}

fn reopens(mode: BackfillMode, state: SlotState) -> bool {
    match mode {
        BackfillMode::Missing => false,
        BackfillMode::Unsuccessful => state != SlotState::Succeeded,
        BackfillMode::All => true,
    }
}

impl BackfillRequest {
    /// A request for what is missing in a range, after current work.
    #[must_use]
    pub fn missing(id: kelos_model::BackfillId, workflow: WorkflowId, range: Range) -> Self {
        BackfillRequest { id, workflow, range, mode: BackfillMode::Missing, priority: -1, dry_run: false }
    }
}
