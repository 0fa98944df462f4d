//! Whether a slot may go: what its trigger and its constraints say as things stand, or stood at a moment of the past, and when it
//! has waited too long. Nothing is changed by that.

use jiff::{SignedDuration, Timestamp};
use kelos_model::constraint::{Circumstances, Judgement, LastStart, judge};
use kelos_model::facts::{Collected, Tally};
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Evaluation, Facts, evaluate};
use kelos_model::{
    Answer, Finding, Probe, ProbeAnswer, Reason, ReasonKind, SlotKey, SlotRef, SlotState, Subject, WorkflowId,
};

use crate::jobs::Validity;
use crate::plan::TICK;
use crate::programs::{Programs, Runs};
use crate::slots::SlotTable;
use crate::wakes::Wakes;
use crate::workflows::Workflows;

/// What triggers see of the world.
struct View<'a> {
    now: Timestamp,
    /// Where the world is seen as it was at `now`, what others became later does not count.
    is_past: bool,
    slots: &'a SlotTable,
    wakes: &'a Wakes,
    collected: Option<&'a Collected>,
}

impl Facts for View<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        let live = self.slots.get(slot);
        let since = live.as_ref().map(|live| live.slot.since).or_else(|| self.wakes.upstream.since(slot));
        if self.is_past && since.is_some_and(|since| since > self.now) {
            return Some(Some(SlotState::Waiting));
        }
        live.map(|live| Some(live.slot.state)).or_else(|| self.wakes.upstream.known(slot))
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.wakes.probes.answer(probe)
    }

    fn collected(&self, subject: &Subject) -> Option<&Tally> {
        self.collected.and_then(|collected| collected.of(subject))
    }
}

/// All that triggers and constraints look at.
pub(crate) struct Evaluator<'a> {
    pub(crate) now: Timestamp,
    /// When the last tick was.
    pub(crate) ticked: Timestamp,
    pub(crate) workflows: &'a Workflows,
    pub(crate) slots: &'a SlotTable,
    pub(crate) wakes: &'a Wakes,
    pub(crate) programs: &'a Programs,
}

impl Evaluator<'_> {
    /// What a trigger said at the last moment of a slot's time, where that is over. Nobody knows when something came to be there
    /// that a probe finds now, so it counts as in time.
    pub(crate) fn evaluate_in_time(&self, id: &SlotRef) -> Option<Evaluation> {
        self.evaluate(id, Some(self.last_in_time(id)?))
    }

    /// The last moment of a slot's time, where that is over and it has not run yet: what comes to be met later comes too late,
    /// also where nobody looked in between.
    fn last_in_time(&self, id: &SlotRef) -> Option<Timestamp> {
        let live = self.slots.get(id).filter(|live| live.slot.last_run == 0)?;
        let (_, expiry) = self.expiry(id).filter(|(_, at)| *at <= self.now)?;
        let last = expiry.checked_sub(TICK).ok()?;
        Some(live.slot.asked_at.map_or(last, |asked| last.max(asked)))
    }

    /// Why a slot goes whatever its trigger says now; none where that decides.
    pub(crate) fn needs_no_trigger(&self, id: &SlotRef) -> Option<Reason> {
        let collected = self.slots.collected(id).filter(|_| id.key.is_moment())?;
        let finding = match (&collected.asked, collected.met) {
            (Some(_), _) => Finding::FiredByHand,
            (None, true) => Finding::MetBefore,
            (None, false) => return None,
        };
        Some(Reason::leaf(ReasonKind::Asked, Answer::Met, finding))
    }

    /// Whether constraints are to be looked at before a slot may go.
    pub(crate) fn is_constrained(&self, id: &SlotRef) -> bool {
        if self.workflows.get(&id.workflow).is_none_or(|workflow| workflow.definition().constraints.is_empty()) {
            return false;
        }
        let collected = self.slots.collected(id);
        let asked = collected.and_then(|collected| collected.asked.as_ref());
        asked.is_none_or(|asked| !asked.unconstrained)
    }

    /// Whether a trigger is met, or was at a moment of the past.
    fn is_met(&self, id: &SlotRef, past: Option<Timestamp>) -> bool {
        self.evaluate(id, past).is_some_and(|evaluation| evaluation.explanation.answer == Answer::Met)
    }

    /// What a trigger says now, or said at a moment of the past.
    pub(crate) fn evaluate(&self, id: &SlotRef, past: Option<Timestamp>) -> Option<Evaluation> {
        let workflow = self.workflows.get(&id.workflow)?;
        let collected = self.slots.collected(id);
        let view = View {
            now: past.unwrap_or(self.now),
            is_past: past.is_some(),
            slots: self.slots,
            wakes: self.wakes,
            collected,
        };
        let definition = workflow.definition();
        Some(evaluate(&definition.trigger, &id.workflow, &KeyValues::of(&definition.keys, &id.key), &view))
    }

    /// Whether what a slot collected says all that its trigger could: then looks need no lines of their own.
    pub(crate) fn tells_by_facts(&self, id: &SlotRef) -> bool {
        // Whoever has it looked at has seen that there is such a workflow.
        let Some(workflow) = self.workflows.get(&id.workflow) else { return false };
        let waiting = self.slots.state(id) == Some(SlotState::Waiting);
        waiting && workflow.definition().trigger.is_of_facts()
    }

    /// Whether the time of a slot was over at a moment.
    pub(crate) fn is_over(&self, id: &SlotRef, moment: Timestamp) -> bool {
        self.expiry(id).is_some_and(|(_, at)| at <= moment)
    }

    /// The wait timeout, and the first moment at which it has passed.
    pub(crate) fn expiry(&self, id: &SlotRef) -> Option<(u64, Timestamp)> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        if let Some(events) = definition.keys.events() {
            // What has run before was in time.
            self.slots.get(id).filter(|live| live.slot.last_run == 0)?;
            let collected = self.slots.collected(id);
            let since = collected.map(|collected| collected.since).or_else(|| id.key.time())?;
            let wait = SignedDuration::from_millis(i64::try_from(events.timeout_millis).ok()?);
            return Some((events.timeout_millis / 1000, since.checked_add(wait).ok()?.checked_add(TICK).ok()?));
        }
        let seconds = definition.wait_timeout_seconds?;
        let wait = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
        // A job has no time to count from.
        let at = id.key.time()?.checked_add(wait).ok()?;
        Some((seconds, at.checked_add(SignedDuration::from_millis(1)).ok()?))
    }

    /// Whether a job is worth running; none where nothing is said of that, or it is known already.
    pub(crate) fn validity(&self, id: &SlotRef) -> Option<Validity> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        let valid = definition.keys.jobs()?.valid.as_ref()?;
        if self.slots.get(id)?.valid {
            return None;
        }
        let values = KeyValues::of(&definition.keys, &id.key);
        Some(Validity::of(valid, id, values.identifiers(), |probe| self.wakes.probes.answer(probe)))
    }

    /// What the constraints of a slot say now, or said at a moment of the past.
    pub(crate) fn judgement(&self, id: &SlotRef, past: Option<Timestamp>) -> Option<Judgement> {
        let workflow = self.workflows.get(&id.workflow)?;
        let live = self.slots.get(id)?;
        let slot = &live.slot;
        let collected = slot.collected.as_deref();
        let program = self.programs.of(&id.workflow);
        let (active, last_start) = self.runs_at(program, past);
        let world = Circumstances {
            now: past.unwrap_or(self.now),
            created: match id.key {
                SlotKey::Time(at) => at,
                _ => collected.map_or(slot.since, |one| one.since),
            },
            program,
            active,
            last_start,
            again: slot.last_run > 0,
        };
        Some(judge(&workflow.definition().constraints, &world))
    }

    /// What the constraints of a slot said at the last moment of its time, where that is over.
    pub(crate) fn judgement_in_time(&self, id: &SlotRef) -> Option<Judgement> {
        self.judgement(id, Some(self.last_in_time(id)?))
    }

    /// Whether constraints let a slot go or end it, or did at a moment of the past.
    fn is_judged(&self, id: &SlotRef, past: Option<Timestamp>) -> bool {
        self.judgement(id, past).is_some_and(|judgement| judgement.explanation.answer != Answer::NotYet)
    }

    /// How the runs of a program stand now, or stood at a moment of the past: before the first change that came later.
    pub(crate) fn runs_at(&self, program: &WorkflowId, past: Option<Timestamp>) -> Runs {
        let before = past.and_then(|past| self.programs.runs_before(program, past.max(self.ticked)));
        before.unwrap_or_else(|| (self.programs.runs(program), self.last_start(program)))
    }

    /// The start of the program's last run that succeeded, or that may yet: it goes on, or is about to start.
    fn last_start(&self, program: &WorkflowId) -> Option<LastStart> {
        if self.programs.is_about_to_run(program) {
            return Some(LastStart { at: self.now, over: false });
        }
        let over = self.programs.members(program).filter_map(|member| self.workflows.get(member)?.last_run()).max();
        let going = self.programs.latest_going(program).filter(|(seq, _)| over.is_none_or(|over| over.seq < *seq));
        let going = going.and_then(|(_, slot)| self.slots.run(slot));
        let going = going.map(|run| LastStart { at: run.started_at.unwrap_or(run.dispatched_at), over: false });
        going.or(over.map(|run| LastStart { at: run.started, over: true }))
    }

    /// Whether what a slot waits for had come by a moment, so that what comes then is for another.
    pub(crate) fn may_go_on(&self, slot: &SlotRef, moment: Timestamp) -> bool {
        let past = (moment < self.now).then_some(moment);
        // What was just collected for it may have been refused.
        let Some(workflow) = self.workflows.get(&slot.workflow) else { return false };
        let Some(live) = self.slots.get(slot) else { return false };
        let trigger = &workflow.definition().trigger;
        match live.slot.state {
            SlotState::Waiting if trigger.is_of_facts() => {
                live.slot.collected.as_ref().is_some_and(|collected| trigger.is_met_by(collected))
            }
            SlotState::Waiting => self.is_met(slot, past),
            SlotState::Held => self.is_judged(slot, past),
            _ => false,
        }
    }
}
