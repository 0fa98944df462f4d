//! Looking at a waiting slot: may it go, must it wait, has it waited too long?

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::template::KeyValues;
use kelos_model::trigger::{Evaluation, Explanation, Facts, TriggerKind, Waker, evaluate};
use kelos_model::{Answer, Probe, ProbeAnswer, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::Core;
use crate::memory::Task;
use crate::probes::Probes;
use crate::timers::Timer;
use crate::upstream::Upstream;

struct View<'a> {
    now: Timestamp,
    tasks: &'a BTreeMap<WorkflowId, Task>,
    upstream: &'a Upstream,
    probes: &'a Probes,
}

impl Facts for View<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        let live = self.tasks.get(&slot.workflow).and_then(|task| task.slots.get(&slot.key));
        live.map(|live| Some(live.slot.state)).or_else(|| self.upstream.known(slot))
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.probes.answer(probe)
    }
}

impl Core {
    /// Looks at a slot that something woke.
    pub(crate) fn look(&mut self, id: &SlotRef) {
        let Some(task) = self.tasks.get(&id.workflow) else { return };
        let Some(live) = task.slots.get(&id.key) else { return };
        if task.dormant(&id.key).is_some() {
            self.unsubscribe(id);
            return;
        }
        match live.slot.state {
            SlotState::Backoff => self.look_at_backoff(id, live.slot.due),
            SlotState::Waiting if id.key.job().is_some() => self.look_at_job(id),
            SlotState::Waiting => self.look_at_trigger(id),
            SlotState::Dispatched if live.deferred.is_some() => self.start_again(id),
            _ => {}
        }
    }

    fn look_at_backoff(&mut self, id: &SlotRef, due: Option<Timestamp>) {
        match due {
            Some(due) if due > self.now => self.timers.set(Timer::Slot(id.clone()), due),
            _ => {
                self.record(id, SlotEvent::BackoffEnded);
            }
        }
    }

    fn look_at_trigger(&mut self, id: &SlotRef) {
        let Some(Evaluation { explanation, wakers }) = self.evaluate(id) else { return };
        self.decide(id, explanation, wakers);
    }

    /// Looks at the trigger of a job whose parents have succeeded.
    pub(crate) fn look_beyond_parents(&mut self, id: &SlotRef, parents: Explanation) {
        let Some(Evaluation { explanation, wakers }) = self.evaluate(id) else { return };
        if explanation.kind == TriggerKind::Always {
            return self.decide(id, parents, wakers);
        }
        let both = Explanation {
            kind: TriggerKind::And,
            answer: explanation.answer,
            text: "Its parents and its trigger".to_owned(),
            evidence: None,
            nested: vec![parents, explanation],
        };
        self.decide(id, both, wakers);
    }

    fn decide(&mut self, id: &SlotRef, explanation: Explanation, wakers: Vec<Waker>) {
        match explanation.answer {
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

    fn evaluate(&self, id: &SlotRef) -> Option<Evaluation> {
        let task = self.tasks.get(&id.workflow)?;
        let view = View { now: self.now, tasks: &self.tasks, upstream: &self.upstream, probes: &self.probes };
        let definition = &task.row.definition;
        Some(evaluate(&definition.trigger, &id.workflow, &KeyValues::of(&definition.keys, &id.key), &view))
    }

    pub(crate) fn keep_waiting(&mut self, id: &SlotRef, explanation: Explanation, wakers: Vec<Waker>) {
        let expiry = self.expiry(id);
        // A question that is on its way is answered first: a slot that is ready never expires.
        let mut pending = explanation.is_pending();
        // Nor does one expire while the outside can't be asked: an outage is not its fault.
        if let Some((timeout_seconds, at)) = expiry.filter(|(_, at)| *at <= self.now && !explanation.is_uncertain()) {
            // Nor does one go by an answer from before its timeout.
            pending = self.refresh_probes(&wakers, at);
            if !pending {
                self.record(id, SlotEvent::Expired { timeout_seconds, explanation });
                return;
            }
        }
        let said = self.live(id).map_or(0, |live| live.slot.said);
        if !pending && explanation.digest() != said {
            self.record(id, SlotEvent::Looked { explanation });
        }
        self.subscribe(id, wakers, expiry.map(|(_, at)| at));
    }

    /// The wait timeout, and the first moment at which it has passed.
    fn expiry(&self, id: &SlotRef) -> Option<(u64, Timestamp)> {
        let seconds = self.tasks.get(&id.workflow)?.row.definition.wait_timeout_seconds?;
        let wait = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
        // A job has no time to count from.
        let at = id.key.time()?.checked_add(wait).ok()?;
        Some((seconds, at.checked_add(SignedDuration::from_millis(1)).ok()?))
    }

    /// Listens to what can wake a slot, and to nothing else.
    fn subscribe(&mut self, id: &SlotRef, wakers: Vec<Waker>, expiry: Option<Timestamp>) {
        let next = wakers.iter().filter_map(|waker| if let Waker::At(at) = waker { Some(*at) } else { None });
        match next.chain(expiry).filter(|at| *at > self.now).min() {
            Some(at) => self.timers.set(Timer::Slot(id.clone()), at),
            None => self.timers.clear(&Timer::Slot(id.clone())),
        }
        let live = self.tasks.get_mut(&id.workflow).and_then(|task| task.slots.get_mut(&id.key));
        let Some(live) = live else { return };
        let before = std::mem::replace(&mut live.wakers, wakers.clone());
        for waker in wakers.iter().filter(|waker| !before.contains(waker)) {
            self.listen(waker, id);
        }
        for waker in before.iter().filter(|waker| !wakers.contains(waker)) {
            self.unlisten(waker, id);
        }
    }

    fn listen(&mut self, waker: &Waker, id: &SlotRef) {
        match waker {
            Waker::At(_) => {}
            Waker::Probe(probe) => self.watch_probe(probe, id),
            Waker::Slot(upstream) => {
                let state = self.live(upstream).map(|live| live.slot.state);
                if self.upstream.watch(upstream, id, state) {
                    self.turn.to_recall.insert(upstream.clone());
                }
            }
        }
    }
}
