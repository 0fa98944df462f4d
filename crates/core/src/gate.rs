//! Looking at a waiting slot: may it go, must it wait, has it waited too long?

use jiff::{SignedDuration, Timestamp};
use kelos_model::facts::{Collected, Tally};
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Evaluation, Facts, Waker, evaluate};
use kelos_model::{Answer, Finding, Probe, ProbeAnswer, Reason, ReasonKind, SlotEvent, SlotRef, SlotState, Subject};

use crate::Core;
use crate::plan::TICK;
use crate::slots::SlotTable;
use crate::wakes::Wakes;

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

impl Core {
    /// Looks at a slot that something woke.
    pub(crate) fn look(&mut self, id: &SlotRef) {
        let Some(task) = self.tasks.get(&id.workflow) else { return self.no_workflow(&id.workflow) };
        // A job that may become possible is woken like others, and is not open yet.
        let Some(live) = self.slots.get(id) else { return };
        if task.dormant(&id.key, Some(&live.slot)).is_some() {
            self.unsubscribe(id);
            return;
        }
        match live.slot.state {
            SlotState::Backoff => self.look_at_backoff(id, live.slot.due),
            SlotState::Waiting if id.key.job().is_some() => self.look_at_job(id),
            SlotState::Waiting => self.look_at_trigger(id),
            SlotState::Held => self.look_at_constraints(id),
            SlotState::Dispatched if live.is_deferred() => self.start_again(id),
            _ => {}
        }
    }

    fn look_at_backoff(&mut self, id: &SlotRef, due: Option<Timestamp>) {
        match due {
            Some(due) if due > self.now => self.wakes.look_at_moment(id, due),
            _ => {
                self.record(id, SlotEvent::BackoffEnded);
            }
        }
    }

    fn look_at_trigger(&mut self, id: &SlotRef) {
        if let Some(explanation) = self.needs_no_trigger(id) {
            return self.decide(id, explanation, Vec::new());
        }
        let Some(Evaluation { explanation, wakers }) = self.evaluate(id, None) else { return self.no_slot(id) };
        if explanation.answer == Answer::Met
            && let Some(Evaluation { explanation, wakers }) = self.evaluate_in_time(id)
            && explanation.answer != Answer::Met
        {
            return self.keep_waiting(id, explanation, wakers);
        }
        self.decide(id, explanation, wakers);
    }

    /// What a trigger said at the last moment of a slot's time, where that is over. Nobody knows when something came to be there
    /// that a probe finds now, so it counts as in time.
    fn evaluate_in_time(&self, id: &SlotRef) -> Option<Evaluation> {
        self.evaluate(id, Some(self.last_in_time(id)?))
    }

    /// The last moment of a slot's time, where that is over and it has not run yet: what comes to be met later comes too late,
    /// also where nobody looked in between.
    pub(crate) fn last_in_time(&self, id: &SlotRef) -> Option<Timestamp> {
        let live = self.live(id).filter(|live| live.slot.last_run == 0)?;
        let (_, expiry) = self.expiry(id).filter(|(_, at)| *at <= self.now)?;
        let last = expiry.checked_sub(TICK).ok()?;
        Some(live.slot.asked_at.map_or(last, |asked| last.max(asked)))
    }

    /// Why a slot goes whatever its trigger says now; none where that decides.
    fn needs_no_trigger(&self, id: &SlotRef) -> Option<Reason> {
        let collected = self.slots.collected(id).filter(|_| id.key.is_moment())?;
        let finding = match (&collected.asked, collected.met) {
            (Some(_), _) => Finding::FiredByHand,
            (None, true) => Finding::MetBefore,
            (None, false) => return None,
        };
        Some(Reason::leaf(ReasonKind::Asked, Answer::Met, finding))
    }

    /// Whether constraints are to be looked at before a slot may go.
    fn is_constrained(&self, id: &SlotRef) -> bool {
        if self.tasks.get(&id.workflow).is_none_or(|task| task.row.definition.constraints.is_empty()) {
            return false;
        }
        let collected = self.slots.collected(id);
        let asked = collected.and_then(|collected| collected.asked.as_ref());
        asked.is_none_or(|asked| !asked.unconstrained)
    }

    /// Looks at the trigger of a job whose parents have succeeded.
    pub(crate) fn look_beyond_parents(&mut self, id: &SlotRef, parents: Reason) {
        let Some(Evaluation { explanation, wakers }) = self.evaluate(id, None) else { return self.no_slot(id) };
        if explanation.kind == ReasonKind::Always {
            return self.decide(id, parents, wakers);
        }
        let both = Reason {
            kind: ReasonKind::And,
            answer: explanation.answer,
            finding: Finding::ParentsAndTrigger,
            nested: vec![parents, explanation],
        };
        self.decide(id, both, wakers);
    }

    fn decide(&mut self, id: &SlotRef, explanation: Reason, wakers: Vec<Waker>) {
        match explanation.answer {
            Answer::Met if self.is_constrained(id) => {
                self.record(id, SlotEvent::Held { explanation });
            }
            Answer::Met => {
                self.record(id, SlotEvent::TriggerMet { explanation });
            }
            Answer::Never => {
                self.record(id, SlotEvent::Skipped { explanation });
            }
            Answer::NotYet => {
                self.pull_awaited(id, &wakers);
                self.keep_waiting(id, explanation, wakers);
            }
        }
    }

    /// Whether a trigger is met, or was at a moment of the past.
    pub(crate) fn is_met(&self, id: &SlotRef, past: Option<Timestamp>) -> bool {
        self.evaluate(id, past).is_some_and(|evaluation| evaluation.explanation.answer == Answer::Met)
    }

    /// What a trigger says now, or said at a moment of the past.
    fn evaluate(&self, id: &SlotRef, past: Option<Timestamp>) -> Option<Evaluation> {
        let task = self.tasks.get(&id.workflow)?;
        let collected = self.slots.collected(id);
        let view = View {
            now: past.unwrap_or(self.now),
            is_past: past.is_some(),
            slots: &self.slots,
            wakes: &self.wakes,
            collected,
        };
        let definition = &task.row.definition;
        Some(evaluate(&definition.trigger, &id.workflow, &KeyValues::of(&definition.keys, &id.key), &view))
    }

    pub(crate) fn keep_waiting(&mut self, id: &SlotRef, explanation: Reason, wakers: Vec<Waker>) {
        let expiry = self.expiry(id);
        // A question that is on its way is answered first: a slot that is ready never expires.
        let mut pending = explanation.is_pending();
        // Nor does one expire while the outside can't be asked: an outage is not its fault.
        if let Some((timeout_seconds, at)) = expiry.filter(|(_, at)| *at <= self.now && !explanation.is_uncertain()) {
            // Nor does one go by an answer from before its timeout.
            pending = self.wakes.probes.refresh(&wakers, at, self.now);
            if !pending {
                self.record(id, SlotEvent::Expired { timeout_seconds, explanation });
                return;
            }
        }
        let said = self.live(id).map_or(0, |live| live.slot.said);
        if !pending && explanation.digest() != said && !self.tells_by_facts(id) {
            self.record(id, SlotEvent::Looked { explanation });
        }
        self.subscribe(id, &wakers, expiry.map(|(_, at)| at));
    }

    /// Whether what a slot collected says all that its trigger could: then looks need no lines of their own.
    fn tells_by_facts(&self, id: &SlotRef) -> bool {
        let Some(task) = self.tasks.get(&id.workflow) else { return false };
        let waiting = self.slots.state(id) == Some(SlotState::Waiting);
        waiting && task.row.definition.trigger.is_of_facts()
    }

    /// Whether the time of a slot was over at a moment.
    pub(crate) fn is_over(&self, id: &SlotRef, moment: Timestamp) -> bool {
        self.expiry(id).is_some_and(|(_, at)| at <= moment)
    }

    /// Ends a slot whose timeout has passed before something came, at a moment, that is for another. Says whether it did.
    pub(crate) fn expire_if_over(&mut self, id: &SlotRef, moment: Timestamp) -> bool {
        let Some((timeout_seconds, _)) = self.expiry(id).filter(|(_, at)| *at <= moment) else { return false };
        let Some(Evaluation { explanation, .. }) = self.evaluate(id, None) else { return false };
        self.record(id, SlotEvent::Expired { timeout_seconds, explanation });
        true
    }

    /// The wait timeout, and the first moment at which it has passed.
    fn expiry(&self, id: &SlotRef) -> Option<(u64, Timestamp)> {
        let definition = &self.tasks.get(&id.workflow)?.row.definition;
        if let Some(events) = definition.keys.events() {
            // What has run before was in time.
            self.live(id).filter(|live| live.slot.last_run == 0)?;
            let collected = self.slots.collected(id);
            let since = collected.map_or(id.key.scheduled_at(), |collected| collected.since);
            let wait = SignedDuration::from_millis(i64::try_from(events.timeout_millis).ok()?);
            return Some((events.timeout_millis / 1000, since.checked_add(wait).ok()?.checked_add(TICK).ok()?));
        }
        let seconds = definition.wait_timeout_seconds?;
        let wait = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
        // A job has no time to count from.
        let at = id.key.time()?.checked_add(wait).ok()?;
        Some((seconds, at.checked_add(SignedDuration::from_millis(1)).ok()?))
    }

    /// Has a slot be woken by these and by nothing else, and when it has waited too long.
    fn subscribe(&mut self, id: &SlotRef, wakers: &[Waker], expiry: Option<Timestamp>) {
        let slots = &self.slots;
        let in_memory = |slot: &SlotRef| slots.get(slot).map(|live| (live.slot.state, live.slot.since));
        let unread = self.wakes.subscribe(id, wakers, expiry, self.now, in_memory);
        unread.into_iter().for_each(|slot| self.slots.want(slot));
    }
}
