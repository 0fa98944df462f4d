//! Asking a trigger: a pure function of the slot's key, the clock and the facts at hand.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Coverage, FileSystem, PathCheck, Trigger};
use crate::facts::{Occurrence, Subject, Tally};
use crate::function::FunctionRef;
use crate::id::WorkflowId;
use crate::key::{SlotKey, SlotRef};
use crate::probe::{Probe, ProbeAnswer, Verdict};
use crate::ranges::Range;
use crate::reason::{Answer, Finding, Reason, ReasonKind};
use crate::state::SlotState;
use crate::template::KeyValues;
use crate::time::Firing;

/// The most periods that a reason names.
const NAMED: usize = 3;

/// The knowledge that a trigger is evaluated with. An outer none means "not known yet": the question is then
/// among the wakers, and the answer is not-yet.
pub trait Facts {
    /// The clock.
    fn now(&self) -> Timestamp;
    /// The state of another slot; an inner none where it does not exist.
    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>>;
    /// The period of the slot of a workflow at a time, up to the next time of its schedule; none without a schedule.
    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range>;
    /// The slots of a workflow whose periods intersect an interval, ascending; none where the workflow has no times.
    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>>;
    /// The outside world's answer.
    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer>;
    /// The tally of a subject that the slot has collected.
    fn collected(&self, subject: &Subject) -> Option<&Tally>;
}

/// A change that can change a trigger's answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// The clock passing a moment.
    At(Timestamp),
    /// Another slot changing its state.
    Slot(SlotRef),
    /// The outside world's answer.
    Probe(Probe),
}

/// A trigger's answer with its reasons, and what to listen to until the next look.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The answer of every node.
    pub explanation: Reason,
    /// The changes that can change it; all leaves are evaluated, as the explanation shows them all.
    pub wakers: Vec<Waker>,
}

/// Evaluates a trigger for a slot.
#[must_use]
pub fn evaluate(trigger: &Trigger, workflow: &WorkflowId, key: &KeyValues, facts: &dyn Facts) -> Evaluation {
    let mut asking = TriggerWalk { workflow, facts, wakers: Vec::new() };
    let explanation = asking.ask(trigger, key);
    Evaluation { explanation, wakers: asking.wakers }
}

struct TriggerWalk<'a> {
    workflow: &'a WorkflowId,
    facts: &'a dyn Facts,
    wakers: Vec<Waker>,
}

impl TriggerWalk<'_> {
    fn ask(&mut self, trigger: &Trigger, key: &KeyValues) -> Reason {
        match trigger {
            Trigger::Always => Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always),
            Trigger::And { triggers } => self.all(triggers, key),
            Trigger::Or { triggers } => self.any(triggers, key),
            Trigger::Not { trigger } => self.not(trigger, key),
            Trigger::Offset { seconds, trigger } => self.offset(*seconds, trigger, key),
            Trigger::Delay { seconds } => self.delay(*seconds, key),
            Trigger::Success { workflow } => self.success(workflow, key),
            Trigger::Covers { workflow, from, to } => self.covers(workflow, *from, *to, key),
            Trigger::Job { workflow, job } => self.job(workflow, job, key),
            Trigger::Path(check) => self.path(check, key),
            Trigger::Function { function } => self.function(function, key),
            Trigger::Partitions { dataset, count } => self.partitions(dataset, *count),
            Trigger::Ended { program, states } => self.ended(program, states),
            Trigger::Fired { firing } => self.fired(firing),
            Trigger::Signal { name } => self.signal(name),
        }
    }

    fn partitions(&self, dataset: &Arc<str>, want: u32) -> Reason {
        let tally = self.facts.collected(&Subject::Partitions(dataset.clone()));
        let (facts, have) = tally.map_or((0, 0), |tally| (tally.facts, tally.count));
        // A fact may tell of no partitions at all; one has to come.
        let met = facts > 0 && have >= u64::from(want);
        let finding = Finding::PartitionsCounted { dataset: dataset.clone(), have, want };
        Reason::leaf(ReasonKind::Partitions, answer_of(met), finding)
    }

    fn ended(&self, program: &WorkflowId, states: &[SlotState]) -> Reason {
        let came = states.iter().find_map(|state| self.first(&Subject::Ended(program.clone(), *state)));
        let awaited = || Finding::RunAwaited { program: program.clone(), states: states.to_vec() };
        once(ReasonKind::Ended, came, awaited)
    }

    fn fired(&self, firing: &Firing) -> Reason {
        let cron = firing.name();
        once(ReasonKind::Fired, self.first(&Subject::Fired(cron.clone())), || Finding::TimeAwaited { cron })
    }

    fn signal(&self, name: &Arc<str>) -> Reason {
        let awaited = || Finding::SignalAwaited { name: name.clone() };
        once(ReasonKind::Signal, self.first(&Subject::Signal(name.clone())), awaited)
    }

    /// The first that came of something.
    fn first(&self, subject: &Subject) -> Option<&Occurrence> {
        self.facts.collected(subject)?.first.as_deref()
    }

    fn all(&mut self, triggers: &[Trigger], key: &KeyValues) -> Reason {
        let nested: Vec<_> = triggers.iter().map(|trigger| self.ask(trigger, key)).collect();
        // The worst answer decides: one "never" settles it, one "not yet" delays it.
        let answer = nested.iter().map(|one| one.answer).max().unwrap_or(Answer::Met);
        Reason { kind: ReasonKind::And, answer, finding: Finding::AllOf, nested }
    }

    fn any(&mut self, triggers: &[Trigger], key: &KeyValues) -> Reason {
        let nested: Vec<_> = triggers.iter().map(|trigger| self.ask(trigger, key)).collect();
        // An empty one stays not-yet: Celos keeps such a slot waiting until its timeout.
        let answer = nested.iter().map(|one| one.answer).min().unwrap_or(Answer::NotYet);
        Reason { kind: ReasonKind::Or, answer, finding: Finding::AnyOf, nested }
    }

    fn not(&mut self, trigger: &Trigger, key: &KeyValues) -> Reason {
        let inner = self.ask(trigger, key);
        let answer = match inner.answer {
            Answer::Met => Answer::NotYet,
            // While a question is on its way its negation is not known either.
            Answer::NotYet if inner.is_uncertain() => Answer::NotYet,
            Answer::NotYet | Answer::Never => Answer::Met,
        };
        Reason { kind: ReasonKind::Not, answer, finding: Finding::NoneOf, nested: vec![inner] }
    }

    fn offset(&mut self, seconds: i64, trigger: &Trigger, key: &KeyValues) -> Reason {
        let Some(shifted) = key.offset(seconds) else {
            return Reason::leaf(ReasonKind::Offset, Answer::Never, Finding::OffsetBeyondTime { seconds });
        };
        let inner = self.ask(trigger, &shifted);
        let (answer, finding) = (inner.answer, Finding::Offset { seconds });
        Reason { kind: ReasonKind::Offset, answer, finding, nested: vec![inner] }
    }

    fn delay(&mut self, seconds: i64, key: &KeyValues) -> Reason {
        let never = |finding| Reason::leaf(ReasonKind::Delay, Answer::Never, finding);
        let Some(time) = key.due() else { return never(Finding::NoDay) };
        let Ok(until) = time.checked_add(SignedDuration::from_secs(seconds)) else {
            return never(Finding::DelayBeyondTime { seconds });
        };
        let now = self.facts.now();
        if now <= until {
            self.wakers.push(Waker::At(just_after(until)));
        }
        Reason::leaf(ReasonKind::Delay, answer_of(now > until), Finding::DelayUntil { now, until })
    }

    fn success(&mut self, workflow: &WorkflowId, key: &KeyValues) -> Reason {
        self.other(ReasonKind::Success, slot_of_success(workflow, key))
    }

    fn covers(&mut self, workflow: &WorkflowId, from: i64, to: i64, key: &KeyValues) -> Reason {
        let Some(period) = own_period(self.workflow, key, self.facts) else {
            let finding = Finding::NoPeriods { workflow: self.workflow.clone() };
            return Reason::leaf(ReasonKind::Covers, Answer::Never, finding);
        };
        let interval = Coverage { workflow, later: 0, from, to }.interval(self.workflow, period);
        cover(workflow, interval, self.facts, &mut self.wakers)
    }

    fn job(&mut self, workflow: &WorkflowId, job: &str, key: &KeyValues) -> Reason {
        let id = key.fill(job);
        if id.is_empty() {
            let finding = Finding::EmptyJobId { workflow: workflow.clone() };
            return Reason::leaf(ReasonKind::Job, Answer::Never, finding);
        }
        self.other(ReasonKind::Job, SlotRef::job(workflow.clone(), (*id).into()))
    }

    /// Another slot is to have succeeded.
    fn other(&mut self, kind: ReasonKind, slot: SlotRef) -> Reason {
        let known = self.facts.slot(&slot);
        self.wakers.push(Waker::Slot(slot.clone()));
        let finding = match known {
            None => Finding::UpstreamAsked { slot },
            Some(None) => Finding::UpstreamMissing { slot },
            Some(Some(state)) => Finding::UpstreamIs { slot, state },
        };
        Reason::leaf(kind, answer_of(known == Some(Some(SlotState::Succeeded))), finding)
    }

    fn path(&mut self, check: &PathCheck, key: &KeyValues) -> Reason {
        let kind = match check.system {
            FileSystem::Hdfs => ReasonKind::HdfsPath,
            FileSystem::Local => ReasonKind::LocalPath,
            FileSystem::Any => ReasonKind::Path,
        };
        self.probe(kind, Probe::Path { uri: check.uri(key), conditions: check.conditions(key) })
    }

    fn function(&mut self, function: &FunctionRef, key: &KeyValues) -> Reason {
        let probe =
            Probe::Function { function: function.clone(), workflow: self.workflow.clone(), key: key.key().clone() };
        self.probe(ReasonKind::Function, probe)
    }

    fn probe(&mut self, kind: ReasonKind, probe: Probe) -> Reason {
        self.wakers.push(Waker::Probe(probe.clone()));
        let Some(ProbeAnswer { verdict, detail, at: looked_at }) = self.facts.probe(&probe) else {
            return Reason::leaf(kind, Answer::NotYet, Finding::ProbeAsked { probe });
        };
        let answer = match verdict {
            Verdict::Yes => Answer::Met,
            Verdict::No | Verdict::Failed => Answer::NotYet,
            Verdict::Never => Answer::Never,
        };
        Reason::leaf(kind, answer, Finding::ProbeAnswered { probe, verdict, detail, looked_at })
    }
}

/// The slot of another workflow whose success one waits for: a job that names a day looks at the slots of that day, any other at the job of
/// the same id.
pub(super) fn slot_of_success(workflow: &WorkflowId, key: &KeyValues) -> SlotRef {
    match key.time() {
        Some(time) => SlotRef::at(workflow.clone(), time),
        None => SlotRef::new(workflow.clone(), key.key().clone()),
    }
}

/// The period of a slot of a workflow: that of its schedule, or the day that a job names.
pub(super) fn own_period(workflow: &WorkflowId, key: &KeyValues, facts: &dyn Facts) -> Option<Range> {
    let time = key.time()?;
    match key.key() {
        SlotKey::Time(_) => facts.period(workflow, time),
        SlotKey::Job(_) => Some(Range::new(time, time.checked_add(SignedDuration::from_hours(24)).ok()?)),
        SlotKey::Moment(_) | SlotKey::Named(_) | SlotKey::Step(_) => None,
    }
}

/// Whether the periods of a workflow that intersect an interval have all succeeded. Without such a period they have.
fn cover(workflow: &WorkflowId, interval: Range, facts: &dyn Facts, wakers: &mut Vec<Waker>) -> Reason {
    let Some(times) = facts.slots_in(workflow, interval) else {
        return Reason::leaf(ReasonKind::Covers, Answer::NotYet, Finding::NoPeriods { workflow: workflow.clone() });
    };
    let total = times.len() as u64;
    let mut open: Vec<(u8, SlotRef, Option<Option<SlotState>>)> = Vec::new();
    for time in times {
        let slot = SlotRef::at(workflow.clone(), time);
        let known = facts.slot(&slot);
        wakers.push(Waker::Slot(slot.clone()));
        if known != Some(Some(SlotState::Succeeded)) {
            open.push((urgency(known), slot, known));
        }
    }
    let succeeded = total - open.len() as u64;
    let finding = Finding::PeriodsCounted {
        workflow: workflow.clone(),
        from: interval.start,
        to: interval.end,
        succeeded,
        total,
    };
    open.sort_by_key(|(urgency, ..)| *urgency);
    let answer = if open.is_empty() { Answer::Met } else { Answer::NotYet };
    let named = open.into_iter().take(NAMED);
    let nested = named.map(|(_, slot, known)| {
        let finding = match known {
            None => Finding::UpstreamAsked { slot },
            Some(None) => Finding::UpstreamMissing { slot },
            Some(Some(state)) => Finding::UpstreamIs { slot, state },
        };
        Reason::leaf(ReasonKind::Success, Answer::NotYet, finding)
    });
    Reason { kind: ReasonKind::Covers, answer, finding, nested: nested.collect() }
}

/// The rank of a slot among those that a reason names: not known yet, ended otherwise than with success, live or absent.
fn urgency(known: Option<Option<SlotState>>) -> u8 {
    match known {
        None => 0,
        Some(Some(state)) if state.is_final() => 1,
        Some(_) => 2,
    }
}

impl Reason {
    /// The same reason with the periods that have succeeded by now, which no log line tells of one by one. No answer changes.
    #[must_use]
    pub fn with_periods(mut self, facts: &dyn Facts) -> Reason {
        if let Finding::PeriodsCounted { workflow, from, to, .. } = &self.finding {
            let now = cover(workflow, Range::new(*from, *to), facts, &mut Vec::new());
            return if now.answer == self.answer { now } else { self };
        }
        self.nested = self.nested.into_iter().map(|nested| nested.with_periods(facts)).collect();
        self
    }
}

/// Something that has to come once.
fn once(kind: ReasonKind, came: Option<&Occurrence>, awaited: impl FnOnce() -> Finding) -> Reason {
    Reason::leaf(kind, answer_of(came.is_some()), came.map_or_else(awaited, found))
}

/// The finding about an occurrence, without its payload.
fn found(what: &Occurrence) -> Finding {
    match what {
        Occurrence::Partitions { dataset, count, .. } => {
            Finding::PartitionsCounted { dataset: dataset.clone(), have: u64::from(*count), want: 1 }
        }
        Occurrence::Ended { program, state, run, .. } => {
            Finding::RunEnded { program: program.clone(), state: *state, run: run.clone() }
        }
        Occurrence::Fired { cron, time } => Finding::TimeFired { cron: cron.clone(), time: *time },
        Occurrence::Signal { name, .. } => Finding::SignalGiven { name: name.clone() },
    }
}

fn answer_of(met: bool) -> Answer {
    if met { Answer::Met } else { Answer::NotYet }
}

/// The first millisecond after a moment: comparisons with the clock are strict, as in Celos.
#[must_use]
pub(crate) fn just_after(at: Timestamp) -> Timestamp {
    at.checked_add(SignedDuration::from_millis(1)).unwrap_or(Timestamp::MAX)
}
