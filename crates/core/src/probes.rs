//! Questions to the outside world: each asked once for all slots that wait on it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::trigger::Waker;
use kelos_model::{Probe, ProbeAnswer, SlotRef, WorkflowId};

use crate::timers::Timer;
use crate::{Command, Core, Only};

#[derive(Default)]
struct Asking {
    answer: Option<ProbeAnswer>,
    /// When the question was last sent.
    sent_at: Timestamp,
    /// From when the answer is, at least: from when its question was sent.
    as_of: Timestamp,
    in_flight: bool,
    looks: u32,
    waiting: BTreeSet<SlotRef>,
}

#[derive(Default)]
pub(crate) struct Probes {
    asked: BTreeMap<Probe, Asking>,
}

impl Probes {
    pub(crate) fn answer(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.asked.get(probe)?.answer.clone()
    }

    /// When the question was sent whose answer is on its way.
    pub(crate) fn asked_since(&self, probe: &Probe) -> Option<Timestamp> {
        self.asked.get(probe).filter(|asking| asking.in_flight).map(|asking| asking.sent_at)
    }
}

impl Core {
    /// Whether a slot waits for the answer to a question: an outside that repeats questions by itself need not
    /// repeat others.
    #[must_use]
    pub fn is_asked(&self, probe: &Probe) -> bool {
        self.probes.asked.contains_key(probe)
    }

    pub(crate) fn watch_probe(&mut self, probe: &Probe, slot: &SlotRef) {
        let asking = self.probes.asked.entry(probe.clone()).or_default();
        asking.waiting.insert(slot.clone());
        if asking.answer.is_none() && !asking.in_flight {
            self.ask_probe(probe);
        }
    }

    pub(crate) fn unwatch_probe(&mut self, probe: &Probe, slot: &SlotRef) {
        let Some(asking) = self.probes.asked.get_mut(probe) else { return };
        asking.waiting.remove(slot);
        if asking.waiting.is_empty() {
            self.probes.asked.remove(probe);
            self.timers.clear(&Timer::Probe(probe.clone()));
        }
    }

    /// Sends the question, unless it is on its way already.
    pub(crate) fn ask_probe(&mut self, probe: &Probe) {
        let Some(asking) = self.probes.asked.get_mut(probe) else { return };
        if !asking.in_flight {
            asking.in_flight = true;
            asking.sent_at = self.now;
            // Should the answer get lost, the question is asked once more.
            if let (Ok(at), Some(slot)) = (self.now.checked_add(self.config.patience), asking.waiting.first()) {
                self.timers.set(&slot.workflow, Timer::Probe(probe.clone()), at);
            }
            self.command(Command::Probe(probe.clone()));
        }
    }

    /// The workflow of a slot that waits for an answer.
    pub(crate) fn waits_for(&self, probe: &Probe) -> Option<WorkflowId> {
        Some(self.probes.asked.get(probe)?.waiting.first()?.workflow.clone())
    }

    /// A probe's next look is due, or its answer is overdue.
    pub(crate) fn probe_due(&mut self, probe: &Probe) {
        if let Some(asking) = self.probes.asked.get_mut(probe) {
            asking.in_flight = false;
            self.ask_probe(probe);
        }
    }

    /// Asks again whatever slots of these workflows wait on. What was known is forgotten, so that no
    /// slot goes by an answer from before.
    pub(crate) fn ask_all_probes(&mut self, only: &Only) {
        let concerned = |asking: &Asking| {
            only.as_ref().is_none_or(|only| asking.waiting.iter().any(|slot| only.contains(&slot.workflow)))
        };
        let asked = self.probes.asked.iter_mut().filter(|(_, asking)| concerned(asking));
        let forget = |(probe, asking): (&Probe, &mut Asking)| {
            asking.answer = None;
            probe.clone()
        };
        for probe in asked.map(forget).collect::<Vec<_>>() {
            self.ask_probe(&probe);
        }
    }

    /// Asks those of the questions again whose answer is from before a moment, and forgets it. Says
    /// whether there were any.
    pub(crate) fn refresh_probes(&mut self, wakers: &[Waker], since: Timestamp) -> bool {
        let mut stale = false;
        for waker in wakers {
            let Waker::Probe(probe) = waker else { continue };
            let Some(asking) = self.probes.asked.get_mut(probe) else { continue };
            if asking.as_of < since {
                stale = true;
                asking.answer = None;
                self.ask_probe(probe);
            }
        }
        stale
    }

    /// The answers to the questions among these.
    pub(crate) fn answers_to(&self, wakers: &[Waker]) -> Vec<(Probe, ProbeAnswer)> {
        let answered = |waker: &Waker| match waker {
            Waker::Probe(probe) => Some((probe.clone(), self.probes.answer(probe)?)),
            Waker::At(_) | Waker::Slot(_) => None,
        };
        wakers.iter().filter_map(answered).collect()
    }

    /// Notes an answer, whether it was asked for or pushed, and wakes those to whom it is news.
    pub(crate) fn probe_answered(&mut self, probe: &Probe, answer: ProbeAnswer) {
        let looks = self.probes.asked.get(probe).map_or(0, |asking| asking.looks);
        let next_look = self.config.next_look(self.now, looks);
        let Some(asking) = self.probes.asked.get_mut(probe) else { return };
        // What was seen beside that is told to those who ask; it wakes nobody.
        let news = asking.answer.as_ref().is_none_or(|before| before.verdict != answer.verdict);
        asking.as_of = if asking.in_flight { asking.sent_at } else { self.now };
        asking.in_flight = false;
        asking.looks = asking.looks.saturating_add(1);
        asking.answer = Some(answer);
        if news {
            asking.waiting.iter().for_each(|slot| self.dirty.insert(slot.clone()));
        }
        if let (Some(at), Some(slot)) = (next_look, asking.waiting.first()) {
            self.timers.set(&slot.workflow, Timer::Probe(probe.clone()), at);
        }
    }
}

impl crate::Config {
    /// When to look again. Questions that have waited long are asked together, at moments that all of them share: so
    /// one listing can answer many, and an idle server wakes once for all.
    fn next_look(&self, now: Timestamp, looks: u32) -> Option<Timestamp> {
        let (wait, longest) = (self.probe_wait(looks), self.probe_longest.as_millis());
        let at = now.checked_add(wait).ok()?;
        if wait.as_millis() < longest || longest <= 1 {
            return Some(at);
        }
        let past = i128::from(at.as_millisecond()).rem_euclid(longest);
        let shared = at.checked_sub(SignedDuration::from_millis(i64::try_from(past).ok()?)).ok()?;
        Some(if shared > now { shared } else { at })
    }

    /// The wait after a number of looks, in whole milliseconds as all times are.
    pub(crate) fn probe_wait(&self, looks: u32) -> SignedDuration {
        let (first, longest) = (self.probe_first.as_millis(), self.probe_longest.as_millis());
        let grown = (0..looks).try_fold(first, |wait, _| Some(wait + wait / 2).filter(|longer| *longer < longest));
        let millis = grown.unwrap_or(longest).min(longest).max(1);
        SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_have_waited_long_come_to_be_asked_together() {
        let config = crate::Config::default();
        let at = |text: &str| text.parse::<Timestamp>().expect("a moment");
        let next = |now: &str, looks: u32| config.next_look(at(now), looks).map(|at| at.to_string());
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(next("2026-01-01T00:00:07.3Z", 0), is("2026-01-01T00:00:08.3Z"), "at first each by itself");
        assert_eq!(next("2026-01-01T00:00:07.3Z", 50), is("2026-01-01T00:00:30Z"));
        assert_eq!(next("2026-01-01T00:00:29.9Z", 50), is("2026-01-01T00:00:30Z"));
        assert_eq!(next("2026-01-01T00:00:30Z", 50), is("2026-01-01T00:01:00Z"));
        assert_eq!(next("2026-01-01T00:00:30.2Z", 50), is("2026-01-01T00:01:00Z"), "and stay together");
        assert_eq!(next("1969-12-31T23:59:59Z", 50), is("1970-01-01T00:00:00Z"));
    }
}
