//! Questions to the outside world: each asked once for all slots that wait on it, and again with growing waits.

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

/// How long to wait before a question is asked again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// Between the first two looks.
    first: SignedDuration,
    /// The wait grows by half with each look, up to this.
    longest: SignedDuration,
    /// Where no answer comes.
    pub(super) patience: SignedDuration,
}

impl Waits {
    pub(crate) fn of(config: &Config) -> Waits {
        Waits { first: config.probe_first, longest: config.probe_longest, patience: config.patience }
    }

    /// When to look again. Questions that have waited long are asked together, at moments that all of them share: so
    /// one listing can answer many, and an idle server wakes once for all.
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

    /// The wait after a number of looks, in whole milliseconds as all times are.
    pub(crate) fn after(&self, looks: u32) -> SignedDuration {
        let (first, longest) = (self.first.as_millis(), self.longest.as_millis());
        let grown = (0..looks).try_fold(first, |wait, _| Some(wait + wait / 2).filter(|longer| *longer < longest));
        let millis = grown.unwrap_or(longest).min(longest).max(1);
        SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

/// All questions that slots wait on.
pub(crate) struct Probes {
    waits: Waits,
    asked: BTreeMap<Arc<Probe>, ProbeState>,
    /// When each is asked again, or its answer is overdue, kept for a workflow of a slot that waits for it.
    timers: Timers<Arc<Probe>>,
    /// Questions that are to be sent.
    questions: Vec<Probe>,
    breaches: Breaches,
}

#[derive(Default)]
struct ProbeState {
    answer: Option<ProbeAnswer>,
    /// When the question was last sent.
    sent_at: Timestamp,
    /// From when the answer is, at least: from when its question was sent.
    as_of: Timestamp,
    in_flight: bool,
    looks: u32,
    waiting: Few<SlotRef>,
}

impl ProbeState {
    /// The workflow that its timer is kept for.
    fn workflow(&self) -> Option<&WorkflowId> {
        self.waiting.first().map(|slot| &slot.workflow)
    }
}

impl Probes {
    /// No questions yet.
    pub(crate) fn new(waits: Waits) -> Probes {
        Probes {
            waits,
            asked: BTreeMap::new(),
            timers: Timers::default(),
            questions: Vec::new(),
            breaches: Breaches::default(),
        }
    }

    /// The last answer, unless it was forgotten since.
    pub(crate) fn answer(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.asked.get(probe)?.answer.clone()
    }

    /// Whether a slot waits for the answer.
    pub(crate) fn is_asked(&self, probe: &Probe) -> bool {
        self.asked.contains_key(probe)
    }

    /// When the question is looked at next; while its answer is on its way, when it was sent.
    pub(crate) fn next_look(&self, probe: &Probe) -> Option<Timestamp> {
        let under_way = self.asked.get(probe).filter(|asking| asking.in_flight).map(|asking| asking.sent_at);
        under_way.or_else(|| self.timers.get(self.asked.get_key_value(probe)?.0))
    }

    /// When time alone will have a question asked.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take().or_else(|| self.timers.take_breach())
    }

    /// The questions that are to be sent; they count as sent then.
    pub(crate) fn take_questions(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.questions)
    }

    /// Moves all waits by a span, where the clock was put back.
    pub(crate) fn shift(&mut self, by: SignedDuration) {
        self.timers.shift(by, |_| true);
    }

    /// Has a slot hear of what is new about an answer. Gives the question as all who wait on it share it.
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

    /// Has a slot hear of it no more. What nobody waits for is asked no more.
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

    /// Sends the question, unless it is on its way already.
    fn ask(&mut self, probe: &Arc<Probe>, now: Timestamp) {
        // Whoever asks has just found that somebody waits for the answer.
        let Some(asking) = self.asked.get_mut(probe).filter(|asking| !asking.in_flight) else { return };
        asking.in_flight = true;
        asking.sent_at = now;
        // Should the answer get lost, the question is asked once more.
        if let (Ok(at), Some(workflow)) = (now.checked_add(self.waits.patience), asking.workflow()) {
            self.timers.set(workflow, probe.clone(), at);
        }
        self.questions.push(Probe::clone(probe));
    }

    /// Asks what is due to be asked again, or whose answer is overdue: of each workflow its share, and no more than so many.
    pub(crate) fn ask_due(&mut self, now: Timestamp, most: usize) {
        let due: Vec<WorkflowId> = self.timers.due(now).map(|(_, id)| id.clone()).collect();
        let most = share(most, due.len());
        for id in due {
            for _ in 0..most {
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

    /// Asks again whatever slots of these workflows wait on. What was known is forgotten, so that no
    /// slot goes by an answer from before.
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

    /// Asks those of the questions again whose answer is from before a moment, and forgets it. Says
    /// whether there were any.
    pub(crate) fn refresh(&mut self, wakers: &[Waker], since: Timestamp, now: Timestamp) -> bool {
        let mut is_stale = false;
        for waker in wakers {
            let Waker::Probe(probe) = waker else { continue };
            // One that nobody has asked yet has no old answer.
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

    /// Notes an answer, whether it was asked for or pushed; gives the slots to which it is news.
    pub(crate) fn answered(&mut self, probe: &Probe, answer: ProbeAnswer, now: Timestamp) -> Vec<SlotRef> {
        // An answer may come when nobody waits for it any more.
        let Some(asking) = self.asked.get_mut(probe) else { return Vec::new() };
        // Details beside the verdict are told to those who ask; they wake no slot.
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
