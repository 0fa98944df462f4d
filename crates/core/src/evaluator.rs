//! The evaluation of triggers and constraints of a slot, now or as of a moment of the past, and of its timeout. It
//! changes nothing.

use jiff::{SignedDuration, Timestamp};
use kelos_model::constraint::{Circumstances, Judgement, LastStart, judge};
use kelos_model::facts::{Collection, Tally};
use kelos_model::ranges::Range;
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Dependencies, Evaluation, Facts, evaluate};
use kelos_model::{
    Answer, Finding, Probe, ProbeAnswer, Reason, ReasonKind, SlotEvent, SlotKey, SlotRef, SlotState, Subject,
    WorkflowId,
};

use crate::jobs::Validity;
use crate::moments::TICK;
use crate::programs::{Programs, Runs};
use crate::slots::SlotTable;
use crate::wakes::Wakes;
use crate::workflows::Workflows;

/// The facts that a trigger may use.
struct View<'a> {
    now: Timestamp,
    /// Whether this is a view of the past, in which states that slots took on later do not count.
    is_past: bool,
    workflows: &'a Workflows,
    slots: &'a SlotTable,
    wakes: &'a Wakes,
    collected: Option<&'a Collection>,
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

    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        self.workflows.times(workflow)?.period(time)
    }

    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        Some(self.workflows.times(workflow)?.slots_in(interval))
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.wakes.probes.answer(probe)
    }

    fn collected(&self, subject: &Subject) -> Option<&Tally> {
        self.collected.and_then(|collected| collected.of(subject))
    }
}

/// All organs that triggers and constraints depend on.
pub(crate) struct Evaluator<'a> {
    pub(crate) now: Timestamp,
    /// The moment of the last tick.
    pub(crate) ticked: Timestamp,
    pub(crate) workflows: &'a Workflows,
    pub(crate) slots: &'a SlotTable,
    pub(crate) wakes: &'a Wakes,
    pub(crate) programs: &'a Programs,
}

/// The result of evaluating the trigger of a slot.
#[derive(Debug, PartialEq)]
pub(crate) enum TriggerResult {
    /// The present answer.
    Now(Evaluation),
    /// It is met now, and was not met when the slot timed out: this was its answer then.
    TooLate(Evaluation),
}

impl Evaluator<'_> {
    /// Evaluates the trigger of a slot, up to its timeout.
    pub(crate) fn trigger(&self, id: &SlotRef) -> Option<TriggerResult> {
        if let Some(explanation) = self.needs_no_trigger(id) {
            return Some(TriggerResult::Now(Evaluation { explanation, wakers: Vec::new() }));
        }
        let now = self.evaluate(id, None)?;
        let is_met = now.explanation.answer == Answer::Met;
        let in_time = is_met.then(|| self.evaluate_in_time(id)).flatten();
        Some(match in_time.filter(|then| then.explanation.answer != Answer::Met) {
            Some(then) => TriggerResult::TooLate(then),
            None => TriggerResult::Now(now),
        })
    }

    /// Evaluates the trigger of a job whose parents have succeeded, and combines both reasons.
    pub(crate) fn beyond_parents(&self, id: &SlotRef, parents: Reason) -> Option<Evaluation> {
        let Evaluation { explanation, wakers } = self.evaluate(id, None)?;
        if explanation.kind == ReasonKind::Always {
            return Some(Evaluation { explanation: parents, wakers });
        }
        let explanation = Reason {
            kind: ReasonKind::And,
            answer: explanation.answer,
            finding: Finding::ParentsAndTrigger,
            nested: vec![parents, explanation],
        };
        Some(Evaluation { explanation, wakers })
    }

    /// Evaluates the constraints of a slot, up to its timeout: if they kept it waiting until then, nothing that comes
    /// later starts it.
    pub(crate) fn constraints(&self, id: &SlotRef) -> Option<Judgement> {
        let in_time = self.last_in_time(id).and_then(|last| self.judgement(id, Some(last)));
        match in_time.filter(|then| then.explanation.answer == Answer::NotYet) {
            Some(Judgement { explanation, .. }) => {
                Some(Judgement { explanation, wake: None, room_below: None, until_end: false })
            }
            None => self.judgement(id, None),
        }
    }

    /// The event that ends a slot that had timed out by a moment; none if it had not.
    pub(crate) fn expired(&self, id: &SlotRef, moment: Timestamp) -> Option<SlotEvent> {
        let (timeout_seconds, _) = self.expiry(id).filter(|(_, at)| *at <= moment)?;
        let explanation = self.evaluate(id, None)?.explanation;
        Some(SlotEvent::Expired { timeout_seconds, explanation })
    }

    /// The answer of a trigger at the last moment before the timeout, if that has passed. The time since when a probe
    /// would have succeeded is unknown, so its answer counts as in time.
    fn evaluate_in_time(&self, id: &SlotRef) -> Option<Evaluation> {
        self.evaluate(id, Some(self.last_in_time(id)?))
    }

    /// The last moment before the timeout of a slot that has not run yet, if that has passed. A trigger that is met
    /// later is too late, even if it was not evaluated in between.
    fn last_in_time(&self, id: &SlotRef) -> Option<Timestamp> {
        let live = self.slots.get(id).filter(|live| live.slot.last_run == 0)?;
        let (_, expiry) = self.expiry(id).filter(|(_, at)| *at <= self.now)?;
        let last = expiry.checked_sub(TICK).ok()?;
        Some(live.slot.asked_at.map_or(last, |asked| last.max(asked)))
    }

    /// The reason why a slot runs regardless of its present trigger; none if the trigger decides.
    fn needs_no_trigger(&self, id: &SlotRef) -> Option<Reason> {
        let collected = self.slots.collected(id).filter(|_| id.key.is_of_request())?;
        let finding = match (&collected.asked, collected.met) {
            (Some(_), _) => Finding::FiredByHand,
            (None, true) => Finding::MetBefore,
            (None, false) => return None,
        };
        Some(Reason::leaf(ReasonKind::Asked, Answer::Met, finding))
    }

    /// Whether the slot has constraints that apply.
    pub(crate) fn is_constrained(&self, id: &SlotRef) -> bool {
        if self.workflows.get(&id.workflow).is_none_or(|workflow| workflow.definition().constraints.is_empty()) {
            return false;
        }
        let collected = self.slots.collected(id);
        let asked = collected.and_then(|collected| collected.asked.as_ref());
        asked.is_none_or(|asked| !asked.unconstrained)
    }

    /// Whether a trigger is met, or was met at a moment of the past.
    fn is_met(&self, id: &SlotRef, past: Option<Timestamp>) -> bool {
        self.evaluate(id, past).is_some_and(|evaluation| evaluation.explanation.answer == Answer::Met)
    }

    /// The answer of a trigger, now or as of a moment of the past.
    fn evaluate(&self, id: &SlotRef, past: Option<Timestamp>) -> Option<Evaluation> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        let values = KeyValues::of(&definition.keys, &id.key);
        Some(evaluate(&definition.trigger, &id.workflow, &values, &self.view(id, past)))
    }

    /// The slots that a slot depends on by its trigger.
    pub(crate) fn dependencies(&self, id: &SlotRef) -> Option<Dependencies> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        let values = KeyValues::of(&definition.keys, &id.key);
        Some(Dependencies::of(&definition.trigger, &id.workflow, &values, &self.view(id, None)))
    }

    /// The facts that a trigger may use, now or as of a moment of the past.
    fn view(&self, id: &SlotRef, past: Option<Timestamp>) -> View<'_> {
        View {
            now: past.unwrap_or(self.now),
            is_past: past.is_some(),
            workflows: self.workflows,
            slots: self.slots,
            wakes: self.wakes,
            collected: self.slots.collected(id),
        }
    }

    /// Whether the collected facts alone explain the trigger. Its evaluations then need no events of their own.
    pub(crate) fn tells_by_facts(&self, id: &SlotRef) -> bool {
        // The caller has checked that the workflow exists.
        let Some(workflow) = self.workflows.get(&id.workflow) else { return false };
        let waiting = self.slots.state(id) == Some(SlotState::Waiting);
        waiting && workflow.definition().trigger.is_of_facts()
    }

    /// Whether a slot had timed out by a moment.
    pub(crate) fn is_over(&self, id: &SlotRef, moment: Timestamp) -> bool {
        self.expiry(id).is_some_and(|(_, at)| at <= moment)
    }

    /// The wait timeout in seconds, and the first moment after it.
    pub(crate) fn expiry(&self, id: &SlotRef) -> Option<(u64, Timestamp)> {
        let workflow = self.workflows.get(&id.workflow)?;
        let definition = workflow.definition();
        if let Some(events) = definition.keys.events() {
            // A slot that has run before was in time.
            self.slots.get(id).filter(|live| live.slot.last_run == 0)?;
            let collected = self.slots.collected(id);
            let since = collected.map(|collected| collected.since).or_else(|| id.key.time())?;
            let wait = SignedDuration::from_millis(i64::try_from(events.timeout_millis).ok()?);
            return Some((events.timeout_millis / 1000, since.checked_add(wait).ok()?.checked_add(TICK).ok()?));
        }
        let seconds = definition.wait_timeout_seconds?;
        let live = self.slots.get(id)?;
        // While it is paused nothing is said of how long it will have waited.
        if !definition.wait_from.is_time() && workflow.is_paused(&live.slot) {
            return None;
        }
        let last = definition.waits_until(&id.key, &live.slot, workflow.resumed(&live.slot))?;
        Some((seconds, last.checked_add(TICK).ok()?))
    }

    /// When a waiting slot that has not run since was opened, where its timeout counts from there.
    pub(crate) fn opened_at(&self, id: &SlotRef) -> Option<Timestamp> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        let counts = matches!(id.key, SlotKey::Time(_)) && !definition.wait_from.is_time();
        definition.wait_timeout_seconds.filter(|_| counts)?;
        self.slots.get(id).filter(|live| live.slot.retries == 0)?.slot.opened_at()
    }

    /// Whether a job is valid; none if there is no condition, or it is already known to be met.
    pub(crate) fn validity(&self, id: &SlotRef) -> Option<Validity> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        let valid = definition.keys.jobs()?.valid.as_ref()?;
        if self.slots.get(id)?.valid {
            return None;
        }
        let values = KeyValues::of(&definition.keys, &id.key);
        Some(Validity::of(valid, id, values.identifiers(), |probe| self.wakes.probes.answer(probe)))
    }

    /// The judgement of the constraints of a slot, now or as of a moment of the past.
    fn judgement(&self, id: &SlotRef, past: Option<Timestamp>) -> Option<Judgement> {
        let workflow = self.workflows.get(&id.workflow)?;
        let live = self.slots.get(id)?;
        let slot = &live.slot;
        let collected = slot.collected.as_deref();
        let program = self.programs.of(&id.workflow);
        let (active, last_start) = self.runs_at(program, past);
        let world = Circumstances {
            now: past.unwrap_or(self.now),
            created: match id.key {
                SlotKey::Time(at) => workflow.definition().keys.due(&id.key).unwrap_or(at),
                _ => collected.map_or(slot.since, |one| one.since),
            },
            program,
            active,
            last_start,
            again: slot.last_run > 0,
        };
        Some(judge(&workflow.definition().constraints, &world))
    }

    /// Whether constraints start or end a slot, or did so at a moment of the past.
    fn is_judged(&self, id: &SlotRef, past: Option<Timestamp>) -> bool {
        self.judgement(id, past).is_some_and(|judgement| judgement.explanation.answer != Answer::NotYet)
    }

    /// The runs of a program now or at a moment of the past, before the first later change.
    pub(crate) fn runs_at(&self, program: &WorkflowId, past: Option<Timestamp>) -> Runs {
        let before = past.and_then(|past| self.programs.runs_before(program, past.max(self.ticked)));
        before.unwrap_or_else(|| (self.programs.runs(program), self.last_start(program)))
    }

    /// The start of the latest run of a program that has succeeded, is live, or is about to start.
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

    /// Whether a collecting slot was complete by a moment, so that facts from then on belong to the next slot.
    pub(crate) fn may_go_on(&self, slot: &SlotRef, moment: Timestamp) -> bool {
        let past = (moment < self.now).then_some(moment);
        // A fact that was just collected may have been refused.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kelos_model::time::{CronSchedule, Schedule};
    use kelos_model::{Job, Slot, Trigger, Workflow};

    use super::*;
    use crate::Config;
    use crate::wakes::Waits;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn slot() -> SlotRef {
        SlotRef::at("wf".parse().expect("an id"), at(0))
    }

    /// The result of an evaluation some seconds after the time of a slot, whose trigger is met after two minutes and
    /// which times out after one.
    fn seen<T>(seconds: i64, look: impl Fn(&Evaluator<'_>) -> T) -> T {
        let id = slot().workflow;
        let schedule = Schedule::Cron(CronSchedule::hourly());
        let plain = Workflow::new(id.clone(), schedule, Job::new("command", serde_json::Map::new()));
        let trigger = Trigger::Delay { seconds: 120 };
        let definition = Workflow { trigger, wait_timeout_seconds: Some(60), ..plain };
        let mut workflows = Workflows::default();
        workflows.define(&id, &Arc::new(definition), at(0));
        let mut slots = SlotTable::default();
        slots.add_workflow(&id);
        slots.restore(&slot(), Slot::new(SlotState::Waiting, at(0)));
        let wakes = Wakes::new(Waits::of(&Config::default()));
        let (now, programs) = (at(seconds), Programs::default());
        let (workflows, slots, wakes, programs) = (&workflows, &slots, &wakes, &programs);
        look(&Evaluator { now, ticked: now, workflows, slots, wakes, programs })
    }

    #[test]
    fn what_comes_to_be_met_after_the_time_of_a_slot_comes_too_late() {
        let answer = |seconds| match seen(seconds, |evaluator| evaluator.trigger(&slot())) {
            Some(TriggerResult::Now(evaluation)) => (true, evaluation.explanation.answer),
            Some(TriggerResult::TooLate(evaluation)) => (false, evaluation.explanation.answer),
            None => panic!("its workflow is known"),
        };
        assert_eq!(answer(30), (true, Answer::NotYet));
        assert_eq!(answer(90), (true, Answer::NotYet));
        assert_eq!(answer(150), (false, Answer::NotYet));
    }

    #[test]
    fn a_slot_expires_once_it_has_waited_for_longer_than_its_timeout() {
        let has_expired = |second| seen(90, |evaluator| evaluator.expired(&slot(), at(second)).is_some());
        assert_eq!((has_expired(60), has_expired(61)), (false, true));
        assert!(seen(90, |evaluator| !evaluator.is_constrained(&slot())));
    }

    #[test]
    fn the_reason_of_a_job_is_that_of_its_parents_and_of_its_trigger() {
        let parents = || Reason::leaf(ReasonKind::Asked, Answer::Met, Finding::MetBefore);
        let both = seen(30, |evaluator| evaluator.beyond_parents(&slot(), parents()));
        let explanation = both.expect("its workflow is known").explanation;
        assert_eq!((explanation.answer, explanation.nested.len()), (Answer::NotYet, 2));
    }

    #[test]
    fn nothing_is_seen_of_a_slot_of_no_workflow() {
        let other = SlotRef::at("other".parse().expect("an id"), at(0));
        assert_eq!(seen(0, |evaluator| evaluator.trigger(&other)), None);
    }
}
