//! Requests of people and programs: rerun, kill, pause, backfill, registers and the like.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::event::{Origin, WorkflowEvent};
use kelos_model::ranges::Range;
use kelos_model::{Actor, Arguments, SlotEvent, SlotKey, SlotRef, SlotState, StepKey, StepName, WorkflowId};

use crate::mandate::Mandate;
use crate::moments::TICK;
use crate::nesting::check_request;
use crate::past::PastOf;
use crate::requests::{
    BackfillRequest, CancelBackfill, ChangeSchedule, CreateSchedules, DeleteSchedules, DeployProject, Disable,
    DownstreamRequest, Enable, EnableByTime, FireRequest, Inspect, InspectCapacity, Kill, MarkSuccess, Pause,
    PauseBackfill, PrioritiseBackfill, RecordAccess, RepeatStep, Rerun, RerunBackfill, Resume, ResumeBackfill,
    ResumeFlow, SetRegister, SignalFlow, Skip, SubmitRequest, Tell, TrimHistory,
};
use crate::survey::Survey;
use crate::warrant::Warrant;
use crate::{Ask, Command, Core, Refusal, Reply, Request};

/// The rights of whoever asks; none for Kelos itself.
type Asker<'a> = Option<&'a Warrant>;

impl Core {
    pub(crate) fn asked<E>(
        &mut self,
        token: u64,
        by: Actor,
        ask: Ask,
        warrant: Option<&Warrant>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        if let Err(refusal) = check_request(&ask) {
            self.turn.command(Command::Reply { token, reply: Err(refusal) });
            return Ok(());
        }
        let ask = self.until_now(of_step(ask));
        let reply = match self.check_rights(warrant, &ask) {
            Ok(()) => self.carry_out(by, ask, warrant, past)?,
            Err(refusal) => Err(refusal),
        };
        let reply = reply.map_err(|refusal| match self.rights(warrant) {
            Some(rights) => rights.hiding(refusal),
            None => refusal,
        });
        self.turn.command(Command::Reply { token, reply });
        Ok(())
    }

    /// Carries out a request that is allowed.
    fn carry_out<E>(&mut self, by: Actor, ask: Ask, warrant: Asker<'_>, past: PastOf<'_, E>) -> Result<Reply, E> {
        self.recall_for(&ask, past)?;
        Ok(match ask {
            Ask::Submit(request) => SubmitRequest::reply(self.submit(&request, &by, warrant)),
            Ask::Rerun(Rerun { slot, arguments, reason }) => {
                Rerun::reply(self.rerun(&slot, &arguments, Mandate { by, reason }))
            }
            Ask::Kill(Kill { slot, reason }) => Kill::reply(self.kill(&slot, by, reason)),
            Ask::MarkSuccess(MarkSuccess { slot, reason }) => {
                MarkSuccess::reply(self.mark_succeeded(&slot, by, reason))
            }
            Ask::Skip(Skip { slot, reason }) => Skip::reply(self.skip(&slot, by, reason)),
            Ask::RerunDownstream(request) => DownstreamRequest::reply(self.rerun_downstream(&request, &by, warrant)),
            Ask::Pause(Pause { workflow, reason }) => {
                Pause::reply(self.set_paused(&workflow, true, &Mandate { by, reason }))
            }
            Ask::Resume(Resume { workflow, reason }) => {
                Resume::reply(self.thaw_or_resume(&workflow, &Mandate { by, reason }))
            }
            Ask::Backfill(request) => BackfillRequest::reply(self.backfill(&request, by)),
            Ask::CancelBackfill(CancelBackfill { backfill, reason }) => {
                CancelBackfill::reply(self.cancel_backfill(&backfill, by, reason))
            }
            Ask::PauseBackfill(PauseBackfill { backfill, reason }) => {
                PauseBackfill::reply(self.set_backfill_paused(&backfill, true, Mandate { by, reason }))
            }
            Ask::ResumeBackfill(ResumeBackfill { backfill, reason }) => {
                ResumeBackfill::reply(self.set_backfill_paused(&backfill, false, Mandate { by, reason }))
            }
            Ask::PrioritiseBackfill(PrioritiseBackfill { backfill, priority, reason }) => {
                PrioritiseBackfill::reply(self.prioritise_backfill(&backfill, priority, by, reason))
            }
            Ask::RerunBackfill(RerunBackfill { backfill, reason }) => {
                RerunBackfill::reply(self.rerun_backfill(&backfill, by, reason))
            }
            Ask::Tell(request) => Tell::reply(Ok(self.told(&by, request, past)?)),
            Ask::DeployProject(request) => DeployProject::reply(self.deploy_project(request, by)),
            Ask::CreateSchedules(CreateSchedules { new, reason }) => {
                CreateSchedules::reply(self.create_schedules(new, &Mandate { by, reason }))
            }
            Ask::ChangeSchedule(ChangeSchedule { changed, reason }) => {
                ChangeSchedule::reply(self.change_schedule(changed, &Mandate { by, reason }))
            }
            Ask::DeleteSchedules(DeleteSchedules { schedules, reason }) => {
                DeleteSchedules::reply(self.delete_schedules(&schedules, &Mandate { by, reason }))
            }
            Ask::Enable(Enable { schedule, reason }) => {
                Enable::reply(self.switch(&schedule, true, &Mandate { by, reason }))
            }
            Ask::Disable(Disable { schedule, reason }) => {
                Disable::reply(self.switch(&schedule, false, &Mandate { by, reason }))
            }
            Ask::EnableByTime(EnableByTime { schedules, range, reason }) => {
                EnableByTime::reply(self.enable_changed(&schedules, range, &Mandate { by, reason }))
            }
            Ask::Fire(request) => FireRequest::reply(self.fire_now(request, by)),
            Ask::RepeatStep(request) => RepeatStep::reply(self.repeat_step(request, by, past)?),
            Ask::SignalFlow(request) => SignalFlow::reply(self.signal_flow(request, by)),
            Ask::ResumeFlow(request) => ResumeFlow::reply(self.resume_flow(request, by, past)?),
            Ask::SetRegister(request) => SetRegister::reply(self.set_register(request, by)),
            Ask::RecordAccess(request) => RecordAccess::reply(self.record_access(request, by)),
            Ask::TrimHistory(request) => TrimHistory::reply(self.trim_history(request)),
            Ask::Inspect(Inspect { slot }) => Inspect::reply(Ok(self.survey().inspection(&slot))),
            Ask::InspectCapacity(InspectCapacity) => InspectCapacity::reply(Ok(self.survey().capacity())),
        })
    }

    fn set_register(&mut self, request: SetRegister, by: Actor) -> Result<(), Refusal> {
        let SetRegister { bucket, key, value, reason } = request;
        self.turn.set_register(self.now, (bucket, key), value, Mandate { by, reason });
        Ok(())
    }

    fn trim_history(&mut self, TrimHistory { trim }: TrimHistory) -> Result<(), Refusal> {
        self.turn.trim(trim);
        Ok(())
    }

    fn record_access(&mut self, RecordAccess { what }: RecordAccess, by: Actor) -> Result<(), Refusal> {
        self.turn.log_access(self.now, what, by);
        Ok(())
    }

    /// Brings the slots of a request into memory, wherever they were, so that the answer takes all of them into
    /// account.
    fn recall_for<E>(&mut self, ask: &Ask, past: PastOf<'_, E>) -> Result<(), E> {
        match ask {
            Ask::Fire(FireRequest { workflow, key: Some(name), .. }) => {
                self.slots.recall([SlotRef::new(workflow.clone(), SlotKey::Named(name.clone()))], past)
            }
            Ask::Rerun(Rerun { slot, .. }) if slot.key.step().is_some() => {
                self.slots.recall([SlotRef::new(slot.workflow.clone(), slot.key.of_run())], past)
            }
            Ask::Rerun(Rerun { slot, .. }) => {
                self.slots.recall([slot.clone()], past)?;
                self.pin_repeated(slot, past)
            }
            Ask::RepeatStep(RepeatStep { step, key, .. }) => {
                let named = key.clone().map(|name| SlotRef::new(step.workflow.clone(), SlotKey::Named(name)));
                let run = SlotRef::new(step.workflow.clone(), step.key.of_run());
                self.slots.recall([step.clone(), run].into_iter().chain(named), past)
            }
            Ask::Tell(Tell { facts, .. }) => {
                let runs = facts.iter().filter_map(|fact| fact.what.run_of_flow()).cloned();
                self.slots.recall(runs, past)
            }
            Ask::SignalFlow(SignalFlow { run: slot, .. })
            | Ask::ResumeFlow(ResumeFlow { run: slot, .. })
            | Ask::Kill(Kill { slot, .. })
            | Ask::MarkSuccess(MarkSuccess { slot, .. })
            | Ask::Skip(Skip { slot, .. }) => self.slots.recall([slot.clone()], past),
            Ask::RerunDownstream(request) => {
                self.recall_downstream(std::slice::from_ref(&request.slot), &BTreeSet::new(), past)?;
                self.pin_repeated(&request.slot, past)
            }
            Ask::Submit(request) => self.recall_submitted(request, past),
            Ask::Backfill(request) => self.recall_backfill(request, past),
            Ask::RerunBackfill(RerunBackfill { backfill, .. }) => match self.backfills.get(backfill) {
                Some(row) => self.slots.recall_range(&row.workflow.clone(), row.range, past),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Refuses a slot that can't be opened by a request. A job with parents that can't all be named would wait forever.
    pub(crate) fn check_openable(&self, slot: &SlotRef) -> Result<(), Refusal> {
        if slot.key.step().is_some() {
            // Only its run opens it.
            return Err(Refusal::NoFlow(slot.workflow.clone()));
        }
        self.workflows.check_slot(slot, || self.slots.has(slot))?;
        let no_way = slot.key.job().and_then(|id| self.jobs.graph().no_way(&slot.workflow, id));
        no_way.map_or(Ok(()), |why| Err(Refusal::NoJobId(slot.clone(), why)))
    }

    fn rerun(&mut self, slot: &SlotRef, arguments: &Arguments, mandate: Mandate) -> Result<(), Refusal> {
        self.check_openable(slot)?;
        if slot.key.step().is_some() {
            // Arguments are the whole run's.
            return Err(Refusal::NoFlow(slot.workflow.clone()));
        }
        let arguments = self.accepted_by(slot, arguments)?;
        let Mandate { by, reason } = mandate;
        let giver = by.clone();
        match self.slots.state(slot) {
            None => self.plan_asked(slot, 0, Some(by), reason),
            Some(state) if !state.is_final() && self.workflows.is_out_of_bounds(slot, &self.slots) => {
                self.record(slot, SlotEvent::Requested { by, reason });
            }
            Some(state) if !state.is_final() => return Err(Refusal::StillLive(slot.clone(), state)),
            Some(_) => {
                self.record(slot, SlotEvent::Reopened { by, reason, priority: 0, backfill: None });
            }
        }
        self.set_arguments(slot, &giver, &arguments);
        Ok(())
    }

    /// Opens a slot by request. Without an actor, the next event names it.
    pub(crate) fn plan_asked(&mut self, slot: &SlotRef, priority: i32, by: Option<Actor>, reason: Option<String>) {
        self.record(slot, SlotEvent::Planned { origin: Origin::Request, priority, backfill: None, by, reason });
        if let Some(at) = slot.key.scheduled() {
            // Any other key is in no range.
            self.workflows.cover(&slot.workflow, Range::new(at, at.checked_add(TICK).unwrap_or(Timestamp::MAX)));
        }
    }

    fn kill(&mut self, slot: &SlotRef, by: Actor, reason: Option<String>) -> Result<(), Refusal> {
        // A slot of a time will exist by itself and may be killed before; a job that is never opened will not.
        if slot.key.job().is_some() && !self.slots.has(slot) {
            self.workflows.check_slot(slot, || self.slots.has(slot))?;
            return Err(Refusal::NeverOpened(slot.clone()));
        }
        let state = self.see_to(slot)?;
        let done = self.end(slot, SlotEvent::Killed { by, reason });
        if done { Ok(()) } else { Err(Refusal::AlreadyFinal(slot.clone(), state)) }
    }

    fn skip(&mut self, slot: &SlotRef, by: Actor, reason: Option<String>) -> Result<(), Refusal> {
        let state = self.see_to(slot)?;
        let done = self.end(slot, SlotEvent::SkippedBy { by, reason });
        if done { Ok(()) } else { Err(Refusal::NotSkippable(slot.clone(), state)) }
    }

    fn mark_succeeded(&mut self, slot: &SlotRef, by: Actor, reason: Option<String>) -> Result<(), Refusal> {
        if let Some(live) = self.slots.get(slot).filter(|live| live.slot.run_alive) {
            return Err(Refusal::RunAlive(slot.clone(), live.slot.last_run));
        }
        self.see_to(slot)?;
        let done = self.record_if_possible(slot, SlotEvent::MarkedSucceeded { by, reason });
        if done { Ok(()) } else { Err(Refusal::AlreadySucceeded(slot.clone())) }
    }

    /// Plans a slot that does not exist, so that it can be ended; returns its state.
    fn see_to(&mut self, slot: &SlotRef) -> Result<SlotState, Refusal> {
        if let Some(live) = self.slots.get(slot) {
            // An existing slot can be ended even if its workflow, or its time, is no longer defined.
            return Ok(live.slot.state);
        }
        self.workflows.check_slot(slot, || self.slots.has(slot))?;
        self.plan_asked(slot, 0, None, None);
        Ok(SlotState::Waiting)
    }

    /// Records the event that ends a slot, and cancels its run, which ends the other slots of a batch as well. Returns whether that was
    /// possible.
    pub(crate) fn end(&mut self, slot: &SlotRef, what: SlotEvent) -> bool {
        let (run, together) = (self.serving_run(slot), self.ending_with(slot));
        let done = self.record_if_possible(slot, what.clone());
        if let Some(run) = run.filter(|_| done) {
            let others = together.iter().filter(|other| *other != slot);
            others.for_each(|other| self.record(other, what.clone()));
            self.end_steps(slot, &what);
            self.cancel(&run);
        }
        done
    }

    /// Ends the live steps of a run of a flow together with it, and the items of a list with its step.
    pub(crate) fn end_steps(&mut self, slot: &SlotRef, what: &SlotEvent) {
        let of = slot.key.step().map(StepKey::step);
        let run = SlotRef::new(slot.workflow.clone(), slot.key.of_run());
        let is_meant = |id: &SlotRef| match (of, id.key.step()) {
            (Some(step), Some(key)) => key.step() == step && key.item_number().is_some(),
            (None, Some(_)) => true,
            _ => false,
        };
        let steps = self.slots.steps_of(&run).filter(|(id, live)| is_meant(id) && !live.slot.state.is_final());
        for step in steps.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.end(&step, what.clone());
        }
    }

    /// Pauses or resumes a workflow.
    pub(crate) fn set_paused(&mut self, id: &WorkflowId, paused: bool, mandate: &Mandate) -> Result<(), Refusal> {
        if self.workflows.set_paused(id, paused, self.now)? {
            let Mandate { by, reason } = mandate.clone();
            let what =
                if paused { WorkflowEvent::Paused { by, reason } } else { WorkflowEvent::Resumed { by, reason } };
            self.agree_on_terms(id);
            self.turn.log_workflow(self.now, id, what);
            self.wake_all(id);
        }
        Ok(())
    }

    /// A request as of now. A backfill is about the past: slots that are not due yet are left to the schedule.
    fn until_now(&self, ask: Ask) -> Ask {
        let Ask::Backfill(mut request) = ask else { return ask };
        let schedule = self.workflows.get(&request.workflow).and_then(|one| one.schedule().ok());
        let due = Range::new(Timestamp::MIN, self.now);
        let due = schedule.map_or(due, |schedule| schedule.due_in(due));
        request.range.end = request.range.end.min(due.end);
        Ask::Backfill(request)
    }

    /// The view of all organs that inspections are answered from.
    fn survey(&self) -> Survey<'_> {
        Survey {
            now: self.now,
            workflows: &self.workflows,
            slots: &self.slots,
            permits: &self.permits,
            planner: &self.planner,
            programs: &self.programs,
            jobs: &self.jobs,
            wakes: &self.wakes,
        }
    }
}

/// A request as its run is asked for it: a step is run again by the run that it belongs to, which goes on from there.
fn of_step(ask: Ask) -> Ask {
    let Ask::Rerun(Rerun { slot, arguments, reason }) = ask else { return ask };
    let step = slot.key.step().and_then(|step| StepName::new(step.step()).ok());
    match step.filter(|_| arguments.is_empty()) {
        None => Ask::Rerun(Rerun { slot, arguments, reason }),
        from => Ask::ResumeFlow(ResumeFlow { run: SlotRef::new(slot.workflow, slot.key.of_run()), from, reason }),
    }
}
