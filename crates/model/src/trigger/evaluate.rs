//! Asking a trigger: a pure function of the slot's key, the clock and the facts at hand.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::path::plain;
use super::{Answer, Evidence, Explanation, FileSystem, PathCheck, Probe, ProbeAnswer, Trigger, TriggerKind, Verdict};
use crate::facts::{Subject, Tally};
use crate::function::FunctionRef;
use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::slot::SlotState;
use crate::template::KeyValues;
use crate::time::{Firing, text};

/// What is known when a trigger is asked. An outer none means "not known yet": the question is then
/// among the wakers, and the answer is not-yet.
pub trait Facts {
    /// The clock.
    fn now(&self) -> Timestamp;
    /// The state of another slot; an inner none where it does not exist.
    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>>;
    /// The outside world's answer.
    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer>;
    /// What the slot has collected about a subject.
    fn collected(&self, subject: &Subject) -> Option<&Tally>;
}

/// What can change a trigger's answer.
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
    pub explanation: Explanation,
    /// What can change it; all leaves are asked, as the explanation shows them all.
    pub wakers: Vec<Waker>,
}

/// Asks a trigger about a slot.
#[must_use]
pub fn evaluate(trigger: &Trigger, workflow: &WorkflowId, key: &KeyValues, facts: &dyn Facts) -> Evaluation {
    let mut asking = Asking { workflow, facts, wakers: Vec::new() };
    let explanation = asking.ask(trigger, key);
    Evaluation { explanation, wakers: asking.wakers }
}

struct Asking<'a> {
    workflow: &'a WorkflowId,
    facts: &'a dyn Facts,
    wakers: Vec<Waker>,
}

impl Asking<'_> {
    fn ask(&mut self, trigger: &Trigger, key: &KeyValues) -> Explanation {
        match trigger {
            Trigger::Always => leaf(TriggerKind::Always, Answer::Met, "Always ready".into(), None),
            Trigger::And { triggers } => self.all(triggers, key),
            Trigger::Or { triggers } => self.any(triggers, key),
            Trigger::Not { trigger } => self.not(trigger, key),
            Trigger::Offset { seconds, trigger } => self.offset(*seconds, trigger, key),
            Trigger::Delay { seconds } => self.delay(*seconds, key),
            Trigger::Success { workflow } => self.success(workflow, key),
            Trigger::Job { workflow, job } => self.job(workflow, job, key),
            Trigger::Path(check) => self.path(check, key),
            Trigger::Function { function } => self.function(function, key),
            Trigger::Partitions { dataset, count } => self.partitions(dataset, *count),
            Trigger::Ended { program, states } => self.ended(program, states),
            Trigger::Fired { firing } => self.fired(firing),
            Trigger::Signal { name } => {
                self.once(TriggerKind::Signal, &Subject::Signal(name.clone()), &format!("signal {name}"))
            }
        }
    }

    fn partitions(&self, dataset: &Arc<str>, wanted: u32) -> Explanation {
        let tally = self.facts.collected(&Subject::Partitions(dataset.clone()));
        let (facts, count) = tally.map_or((0, 0), |tally| (tally.facts, tally.count));
        // A fact may tell of no partitions at all; one has to come.
        let met = facts > 0 && count >= u64::from(wanted);
        let text = format!("{count} of {wanted} partitions of {dataset}");
        leaf(TriggerKind::Partitions, answer_of(met), text, None)
    }

    fn ended(&self, program: &WorkflowId, states: &[SlotState]) -> Explanation {
        let subject = |state: &SlotState| Subject::Ended(program.clone(), *state);
        let seen = states.iter().find_map(|state| self.facts.collected(&subject(state))?.first.clone());
        let wanted = states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(" or ");
        let text = match &seen {
            Some(first) => first.to_string(),
            None => format!("No run of {program} has {wanted} yet"),
        };
        leaf(TriggerKind::Ended, answer_of(seen.is_some()), text, None)
    }

    fn fired(&self, firing: &Firing) -> Explanation {
        self.once(TriggerKind::Fired, &Subject::Fired(firing.name()), &firing.name())
    }

    /// Something that has to come once.
    fn once(&self, kind: TriggerKind, subject: &Subject, what: &str) -> Explanation {
        let first = self.facts.collected(subject).and_then(|tally| tally.first.as_ref());
        let text = first.map_or_else(|| format!("{what} has not come yet"), ToString::to_string);
        leaf(kind, answer_of(first.is_some()), text, None)
    }

    fn all(&mut self, triggers: &[Trigger], key: &KeyValues) -> Explanation {
        let nested: Vec<_> = triggers.iter().map(|trigger| self.ask(trigger, key)).collect();
        // The worst answer decides: one "never" settles it, one "not yet" delays it.
        let answer = nested.iter().map(|one| one.answer).max().unwrap_or(Answer::Met);
        let text =
            if answer == Answer::Met { "All nested triggers are ready" } else { "Not all nested triggers are ready" };
        node(TriggerKind::And, answer, text.into(), nested)
    }

    fn any(&mut self, triggers: &[Trigger], key: &KeyValues) -> Explanation {
        let nested: Vec<_> = triggers.iter().map(|trigger| self.ask(trigger, key)).collect();
        // An empty one stays not-yet: Celos keeps such a slot waiting until its timeout.
        let answer = nested.iter().map(|one| one.answer).min().unwrap_or(Answer::NotYet);
        let text = if answer == Answer::Met {
            "One or more nested triggers are ready"
        } else {
            "None of the nested triggers are ready"
        };
        node(TriggerKind::Or, answer, text.into(), nested)
    }

    fn not(&mut self, trigger: &Trigger, key: &KeyValues) -> Explanation {
        let inner = self.ask(trigger, key);
        let (answer, text) = match inner.answer {
            Answer::Met => (Answer::NotYet, "Not ready, nested trigger is ready"),
            // While a question is on its way its negation is not known either.
            Answer::NotYet if inner.is_uncertain() => (Answer::NotYet, "Not ready, nested trigger is not known"),
            Answer::NotYet | Answer::Never => (Answer::Met, "Ready, nested trigger isn't ready"),
        };
        node(TriggerKind::Not, answer, text.into(), vec![inner])
    }

    fn offset(&mut self, seconds: i64, trigger: &Trigger, key: &KeyValues) -> Explanation {
        let Some(shifted) = key.offset(seconds) else {
            return leaf(
                TriggerKind::Offset,
                Answer::Never,
                format!("Time ends before an offset of {seconds} seconds"),
                None,
            );
        };
        let inner = self.ask(trigger, &shifted);
        let word = if inner.answer == Answer::Met { "ready" } else { "not ready" };
        let text = format!("Nested trigger offset by {seconds} seconds {word}");
        node(TriggerKind::Offset, inner.answer, text, vec![inner])
    }

    fn delay(&mut self, seconds: i64, key: &KeyValues) -> Explanation {
        let until = key.time().map(|time| time.checked_add(SignedDuration::from_secs(seconds)));
        let Some(until) = until else {
            return leaf(TriggerKind::Delay, Answer::Never, "A job id without a day has no time".into(), None);
        };
        let Ok(until) = until else {
            return leaf(
                TriggerKind::Delay,
                Answer::Never,
                format!("Time ends before a delay of {seconds} seconds"),
                None,
            );
        };
        let now = self.facts.now();
        let evidence = Some(Evidence::Clock { now, until });
        if now > until {
            return leaf(
                TriggerKind::Delay,
                Answer::Met,
                format!("Ready since {}", text::format_full(until)),
                evidence,
            );
        }
        self.wakers.push(Waker::At(just_after(until)));
        leaf(TriggerKind::Delay, Answer::NotYet, format!("Delayed until {}", text::format_full(until)), evidence)
    }

    fn success(&mut self, workflow: &WorkflowId, key: &KeyValues) -> Explanation {
        // A job that names a day looks at the slots of that day; any other at the job of the same id.
        let slot = match key.time() {
            Some(time) => SlotRef::at(workflow.clone(), time),
            None => SlotRef::new(workflow.clone(), key.key().clone()),
        };
        self.other(TriggerKind::Success, slot)
    }

    fn job(&mut self, workflow: &WorkflowId, job: &str, key: &KeyValues) -> Explanation {
        let id = key.fill(job);
        if id.is_empty() {
            return leaf(TriggerKind::Job, Answer::Never, format!("No job of {workflow} has an empty id"), None);
        }
        self.other(TriggerKind::Job, SlotRef::job(workflow.clone(), (*id).into()))
    }

    /// Another slot is to have succeeded.
    fn other(&mut self, kind: TriggerKind, slot: SlotRef) -> Explanation {
        let known = self.facts.slot(&slot);
        let succeeded = known == Some(Some(SlotState::Succeeded));
        let (answer, word) = if succeeded { (Answer::Met, "is ready") } else { (Answer::NotYet, "is not ready") };
        let text = format!("Workflow slot {} {word}", slot.short());
        let evidence = known.map_or(Evidence::Asked, |state| Evidence::Slot { slot: slot.clone(), state });
        self.wakers.push(Waker::Slot(slot));
        leaf(kind, answer, text, Some(evidence))
    }

    fn path(&mut self, check: &PathCheck, key: &KeyValues) -> Explanation {
        let (uri, conditions) = (check.uri(key), check.conditions(key));
        let (kind, mut subject) = match check.system {
            FileSystem::Hdfs if uri.starts_with("file:///") => {
                (TriggerKind::HdfsPath, format!("HDFS path file://{}", plain(&uri)))
            }
            FileSystem::Hdfs => (TriggerKind::HdfsPath, format!("HDFS path {uri}")),
            FileSystem::Local => (TriggerKind::LocalPath, format!("File {}", plain(&uri))),
            FileSystem::Any => (TriggerKind::Path, format!("Path {uri}")),
        };
        if !conditions.is_empty() {
            subject = format!("{subject} ({conditions})");
        }
        self.probe(kind, Probe::Path { uri, conditions }, &subject)
    }

    fn function(&mut self, function: &FunctionRef, key: &KeyValues) -> Explanation {
        let subject = format!("Function of {}", function.file);
        let probe =
            Probe::Function { function: function.clone(), workflow: self.workflow.clone(), key: key.key().clone() };
        self.probe(TriggerKind::Function, probe, &subject)
    }

    fn probe(&mut self, kind: TriggerKind, probe: Probe, subject: &str) -> Explanation {
        self.wakers.push(Waker::Probe(probe.clone()));
        let Some(answer) = self.facts.probe(&probe) else {
            return leaf(kind, Answer::NotYet, format!("{subject} is not ready"), Some(Evidence::Asked));
        };
        let (said, text) = match answer.verdict {
            Verdict::Yes => (Answer::Met, format!("{subject} is ready")),
            Verdict::No if answer.detail.is_empty() => (Answer::NotYet, format!("{subject} is not ready")),
            Verdict::No => (Answer::NotYet, format!("{subject} is not ready: {}", answer.detail)),
            Verdict::Never => (Answer::Never, format!("{subject} will never be ready")),
            Verdict::Failed => (Answer::NotYet, format!("{subject} can't be checked: {}", answer.detail)),
        };
        let ProbeAnswer { verdict, detail, at: looked_at } = answer;
        leaf(kind, said, text, Some(Evidence::Probe { probe, verdict, detail, looked_at }))
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

fn leaf(kind: TriggerKind, answer: Answer, text: String, evidence: Option<Evidence>) -> Explanation {
    Explanation { kind, answer, text, evidence, nested: Vec::new() }
}

fn node(kind: TriggerKind, answer: Answer, text: String, nested: Vec<Explanation>) -> Explanation {
    Explanation { kind, answer, text, evidence: None, nested }
}
