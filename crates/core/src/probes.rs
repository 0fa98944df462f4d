//! Questions to the outside world: each asked once for all slots that wait on it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::trigger::Waker;
use kelos_model::{Probe, ProbeAnswer, SlotRef};

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
}

impl Core {
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
            if let Ok(at) = self.now.checked_add(self.config.patience) {
                self.timers.set(Timer::Probe(probe.clone()), at);
            }
            self.command(Command::Probe(probe.clone()));
        }
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

    /// Notes an answer, whether it was asked for or pushed, and wakes those to whom it is news.
    pub(crate) fn probe_answered(&mut self, probe: &Probe, answer: ProbeAnswer) {
        let wait = self.config.probe_wait(self.probes.asked.get(probe).map_or(0, |asking| asking.looks));
        let Some(asking) = self.probes.asked.get_mut(probe) else { return };
        let news = asking.answer.as_ref().is_none_or(|before| before.verdict != answer.verdict);
        asking.as_of = if asking.in_flight { asking.sent_at } else { self.now };
        asking.in_flight = false;
        asking.looks = asking.looks.saturating_add(1);
        asking.answer = Some(answer);
        if news {
            self.dirty.extend(asking.waiting.iter().cloned());
        }
        if let Ok(at) = self.now.checked_add(wait) {
            self.timers.set(Timer::Probe(probe.clone()), at);
        }
    }
}

impl crate::Config {
    /// The wait after a number of looks, in whole milliseconds as all times are.
    pub(crate) fn probe_wait(&self, looks: u32) -> SignedDuration {
        let (first, longest) = (self.probe_first.as_millis(), self.probe_longest.as_millis());
        let grown = (0..looks).try_fold(first, |wait, _| Some(wait + wait / 2).filter(|longer| *longer < longest));
        let millis = grown.unwrap_or(longest).min(longest).max(1);
        SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}
