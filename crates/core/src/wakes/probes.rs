//! Probes: each is asked once for all slots that wait for it, and again after growing waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::trigger::Waker;
use kelos_model::{Breach, Invariant, Probe, ProbeAnswer, SlotRef, WorkflowId};

use super::timers::Timers;
use crate::Config;
use crate::breaches::Breaches;
use crate::budget::share;
use crate::few::Few;
use crate::filter::WorkflowFilter;
use crate::rota::both_ends;

/// The waits before a probe is asked again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// The wait between the first two checks.
    first: SignedDuration,
    /// The longest wait. It grows by half with each check, up to this.
    longest: SignedDuration,
    /// The wait for a missing answer.
    pub(super) patience: SignedDuration,
}

impl Waits {
    pub(crate) fn of(config: &Config) -> Waits {
        Waits { first: config.probe_first, longest: config.probe_longest, patience: config.patience }
    }

    /// The moment of the next check. Probes that have waited long are asked together, at moments common to all of them,
    /// so that one listing can answer many, and an idle server wakes only once.
    fn next_look(&self, now: Timestamp, looks: u32) -> Option<Timestamp> {
        let (wait, longest) = (self.after(looks), self.longest.as_millis());
        let at = now.checked_add(wait).ok()?;
        if wait.as_millis() < longest || longest <= 1 {
            return Some(at);
        }
        let past = i128::from(at.as_millisecond()).rem_euclid(longest);
        let shared = at.checked_sub(SignedDuration::from_millis(i64::try_from(past).ok()?)).ok()?;
        Some(if shared > now { shared } else { at })
    }

    /// The wait after a number of checks, in whole milliseconds as all times are.
    pub(crate) fn after(&self, looks: u32) -> SignedDuration {
        let (first, longest) = (self.first.as_millis(), self.longest.as_millis());
        let grown = (0..looks).try_fold(first, |wait, _| Some(wait + wait / 2).filter(|longer| *longer < longest));
        let millis = grown.unwrap_or(longest).min(longest).max(1);
        SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

/// All probes that slots wait for.
pub(crate) struct Probes {
    waits: Waits,
    asked: BTreeMap<Arc<Probe>, ProbeState>,
    /// The timers for the next checks and for overdue answers, each under the workflow of a slot that waits for it.
    timers: Timers<Arc<Probe>>,
    /// The probes to be sent.
    questions: Vec<Probe>,
    breaches: Breaches,
}

#[derive(Default)]
struct ProbeState {
    answer: Option<ProbeAnswer>,
    /// The moment at which the probe was last sent.
    sent_at: Timestamp,
    /// The earliest possible moment of the answer: when the probe was sent.
    as_of: Timestamp,
    in_flight: bool,
    looks: u32,
    waiting: Few<SlotRef>,
}

impl ProbeState {
    /// The workflow of its timer.
    fn workflow(&self) -> Option<&WorkflowId> {
        self.waiting.first().map(|slot| &slot.workflow)
    }
}

impl Probes {
    /// An organ without probes.
    pub(crate) fn new(waits: Waits) -> Probes {
        Probes {
            waits,
            asked: BTreeMap::new(),
            timers: Timers::default(),
            questions: Vec::new(),
            breaches: Breaches::default(),
        }
    }

    /// The latest answer, unless it was forgotten since.
    pub(crate) fn answer(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.asked.get(probe)?.answer.clone()
    }

    /// Whether a slot waits for the answer.
    pub(crate) fn is_asked(&self, probe: &Probe) -> bool {
        self.asked.contains_key(probe)
    }

    /// The moment of the next check; for a probe in flight, the moment at which it was sent.
    pub(crate) fn next_look(&self, probe: &Probe) -> Option<Timestamp> {
        let under_way = self.asked.get(probe).filter(|asking| asking.in_flight).map(|asking| asking.sent_at);
        under_way.or_else(|| self.timers.get(self.asked.get_key_value(probe)?.0))
    }

    /// The next moment at which a timer is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take().or_else(|| self.timers.take_breach())
    }

    /// Takes the probes to be sent. They count as sent from then on.
    pub(crate) fn take_questions(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.questions)
    }

    /// Moves all waits back with the clock.
    pub(crate) fn shift(&mut self, by: SignedDuration) {
        self.timers.shift(by, |_| true);
    }

    /// Subscribes a slot to a probe. Returns the probe in the form that all its slots share.
    pub(crate) fn watch(&mut self, probe: &Probe, slot: &SlotRef, now: Timestamp) -> Arc<Probe> {
        let shared = self.asked.get_key_value(probe).map(|(shared, _)| shared.clone());
        let shared = shared.unwrap_or_else(|| Arc::new(probe.clone()));
        let asking = self.asked.entry(shared.clone()).or_default();
        asking.waiting.insert(slot.clone());
        if asking.answer.is_none() {
            self.ask(&shared, now);
        }
        shared
    }

    /// Unsubscribes a slot from a probe. A probe without slots is no longer asked.
    pub(crate) fn unwatch(&mut self, probe: &Probe, slot: &SlotRef) {
        let Some(asking) = self.asked.get_mut(probe) else {
            return self.breaches.report_slot(Invariant::QuestionsHaveWaiters, slot);
        };
        asking.waiting.remove(slot);
        if asking.waiting.is_empty()
            && let Some((shared, _)) = self.asked.remove_entry(probe)
        {
            self.timers.clear(&shared);
        }
    }

    /// Sends a probe, unless it is in flight.
    fn ask(&mut self, probe: &Arc<Probe>, now: Timestamp) {
        // The caller has just found it.
        let Some(asking) = self.asked.get_mut(probe).filter(|asking| !asking.in_flight) else { return };
        asking.in_flight = true;
        asking.sent_at = now;
        // If the answer is lost, the probe is sent again.
        if let (Ok(at), Some(workflow)) = (now.checked_add(self.waits.patience), asking.workflow()) {
            self.timers.set(workflow, probe.clone(), at);
        }
        self.questions.push(Probe::clone(probe));
    }

    /// Sends the probes whose check is due or whose answer is overdue, a share for each workflow and up to a limit.
    pub(crate) fn ask_due(&mut self, now: Timestamp, most: usize) {
        let due: Vec<WorkflowId> = self.timers.due(now).map(|(_, id)| id.clone()).collect();
        let share = share(most, due.len());
        for id in both_ends(due, most) {
            for _ in 0..share {
                let Some(probe) = self.timers.pop(&id, now) else { break };
                let Some(asking) = self.asked.get_mut(&probe) else {
                    self.breaches.report(Invariant::QuestionsHaveWaiters, &id);
                    continue;
                };
                asking.in_flight = false;
                self.ask(&probe, now);
            }
        }
    }

    /// Sends the probes of these workflows' slots again. Their answers are forgotten, so that no slot uses an old one.
    pub(crate) fn ask_all(&mut self, only: &WorkflowFilter, now: Timestamp) {
        let concerned = |asking: &ProbeState| {
            only.as_ref().is_none_or(|only| asking.waiting.iter().any(|slot| only.contains(&slot.workflow)))
        };
        let asked = self.asked.iter_mut().filter(|(_, asking)| concerned(asking));
        let forget = |(probe, asking): (&Arc<Probe>, &mut ProbeState)| {
            asking.answer = None;
            probe.clone()
        };
        for probe in asked.map(forget).collect::<Vec<_>>() {
            self.ask(&probe, now);
        }
    }

    /// Sends those of some probes again whose answer is from before a moment, and forgets it. Returns whether there
    /// were any.
    pub(crate) fn refresh(&mut self, wakers: &[Waker], since: Timestamp, now: Timestamp) -> bool {
        let mut is_stale = false;
        for waker in wakers {
            let Waker::Probe(probe) = waker else { continue };
            // A probe that was not asked yet has no old answer.
            let Some((shared, asking)) = self.asked.get_key_value(probe) else { continue };
            if asking.as_of >= since {
                continue;
            }
            let shared = shared.clone();
            is_stale = true;
            self.asked.entry(shared.clone()).and_modify(|asking| asking.answer = None);
            self.ask(&shared, now);
        }
        is_stale
    }

    /// Takes an answer, requested or pushed. Returns the slots to be evaluated because of that.
    pub(crate) fn answered(&mut self, probe: &Probe, answer: ProbeAnswer, now: Timestamp) -> Vec<SlotRef> {
        // An answer may come when no slot waits for it any more.
        let Some(asking) = self.asked.get_mut(probe) else { return Vec::new() };
        // A change of details alone is stored, but wakes no slot.
        let is_news = asking.answer.as_ref().is_none_or(|before| before.verdict != answer.verdict);
        let next_look = self.waits.next_look(now, asking.looks);
        asking.as_of = if asking.in_flight { asking.sent_at } else { now };
        asking.in_flight = false;
        asking.looks = asking.looks.saturating_add(1);
        asking.answer = Some(answer);
        let woken = if is_news { asking.waiting.iter().cloned().collect() } else { Vec::new() };
        let workflow = asking.workflow().cloned();
        if let (Some(at), Some(workflow), Some((shared, _))) = (next_look, workflow, self.asked.get_key_value(probe)) {
            self.timers.set(&workflow, shared.clone(), at);
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::probe::Verdict;

    use super::*;

    #[test]
    fn questions_that_have_waited_long_come_to_be_asked_together() {
        let waits = Waits::of(&Config::default());
        let moment = |text: &str| text.parse::<Timestamp>().expect("a moment");
        let next = |now: &str, looks: u32| waits.next_look(moment(now), looks).map(|at| at.to_string());
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(next("2026-01-01T00:00:07.3Z", 0), is("2026-01-01T00:00:08.3Z"), "at first each by itself");
        assert_eq!(next("2026-01-01T00:00:07.3Z", 50), is("2026-01-01T00:00:30Z"));
        assert_eq!(next("2026-01-01T00:00:29.9Z", 50), is("2026-01-01T00:00:30Z"));
        assert_eq!(next("2026-01-01T00:00:30Z", 50), is("2026-01-01T00:01:00Z"));
        assert_eq!(next("2026-01-01T00:00:30.2Z", 50), is("2026-01-01T00:01:00Z"), "and stay together");
        assert_eq!(next("1969-12-31T23:59:59Z", 50), is("1970-01-01T00:00:00Z"));
    }

    fn slot(workflow: &str) -> SlotRef {
        SlotRef::at(workflow.parse().expect("an id"), Timestamp::UNIX_EPOCH)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn said(verdict: Verdict) -> ProbeAnswer {
        ProbeAnswer { verdict, detail: String::new(), at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a_question_is_sent_once_for_all_who_wait_and_again_while_the_answer_is_no() {
        let mut probes = Probes::new(Waits::of(&Config::default()));
        let probe = Probe::path("file:///x".to_owned());
        probes.watch(&probe, &slot("a"), at(0));
        probes.watch(&probe, &slot("b"), at(0));
        assert_eq!(probes.take_questions(), std::slice::from_ref(&probe));
        assert_eq!(probes.answered(&probe, said(Verdict::No), at(1)), [slot("a"), slot("b")]);
        assert_eq!(probes.next(), Some(at(2)));
        probes.ask_due(at(1), 10);
        assert!(probes.take_questions().is_empty());
        probes.ask_due(at(2), 10);
        assert_eq!(probes.take_questions(), std::slice::from_ref(&probe));
        assert!(probes.answered(&probe, said(Verdict::No), at(3)).is_empty(), "that is no news");
        assert_eq!(probes.answered(&probe, said(Verdict::Yes), at(3)).len(), 2);
    }

    #[test]
    fn what_nobody_waits_for_is_asked_no_more() {
        let mut probes = Probes::new(Waits::of(&Config::default()));
        let probe = Probe::path("file:///x".to_owned());
        probes.watch(&probe, &slot("a"), at(0));
        probes.unwatch(&probe, &slot("a"));
        assert!(!probes.is_asked(&probe));
        assert_eq!(probes.next(), None);
        assert!(probes.answered(&probe, said(Verdict::Yes), at(1)).is_empty());
    }

    #[test]
    fn a_question_whose_answer_got_lost_is_asked_once_more() {
        let mut probes = Probes::new(Waits::of(&Config::default()));
        let probe = Probe::path("file:///x".to_owned());
        probes.watch(&probe, &slot("a"), at(0));
        assert_eq!(probes.take_questions().len(), 1);
        let overdue = at(0) + Config::default().patience;
        assert_eq!(probes.next_look(&probe), Some(at(0)), "it is on its way");
        probes.ask_due(overdue, 10);
        assert_eq!(probes.take_questions(), [probe]);
    }

    #[test]
    fn an_answer_from_before_a_moment_is_forgotten_and_asked_for_again() {
        let mut probes = Probes::new(Waits::of(&Config::default()));
        let probe = Probe::path("file:///x".to_owned());
        probes.watch(&probe, &slot("a"), at(0));
        probes.answered(&probe, said(Verdict::No), at(1));
        probes.take_questions();
        let wakers = [Waker::Probe(probe.clone())];
        assert!(!probes.refresh(&wakers, at(0), at(5)), "its question was sent then");
        assert!(probes.refresh(&wakers, at(1), at(5)));
        assert_eq!(probes.answer(&probe), None);
        assert_eq!(probes.take_questions(), [probe]);
    }

    #[test]
    fn workflows_share_what_a_tick_may_ask() {
        let mut probes = Probes::new(Waits::of(&Config::default()));
        for number in 0..10 {
            probes.watch(&Probe::path(format!("file:///many/{number}")), &slot("many"), at(0));
        }
        probes.watch(&Probe::path("file:///one".to_owned()), &slot("one"), at(0));
        assert_eq!(probes.take_questions().len(), 11);
        let overdue = at(0) + Config::default().patience;
        probes.ask_due(overdue, 4);
        assert_eq!(probes.take_questions().len(), 3, "two of many, and the one");
    }
}
