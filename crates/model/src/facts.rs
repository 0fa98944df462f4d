//! Facts: what happened outside a slot that a trigger may wait for, and what a slot has collected of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::parameter::Arguments;
use crate::state::SlotState;

/// The subject of a fact. Triggers name subjects, and facts are counted by them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// New partitions of a dataset.
    Partitions(Arc<str>),
    /// A run of a program came to such an end.
    Ended(WorkflowId, SlotState),
    /// A time of a cron expression passed, named by [`crate::time::Firing::name`].
    Fired(Arc<str>),
    /// A signal was given.
    Signal(Arc<str>),
}

/// A text that names no subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not what a fact is about: expected partition:DATASET, ended:STATE:PROGRAM, time:CRON or signal:NAME"
)]
pub struct SubjectError {
    /// The text as given.
    pub text: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Partitions(dataset) => write!(f, "partition:{dataset}"),
            Subject::Ended(program, state) => write!(f, "ended:{state}:{program}"),
            Subject::Fired(cron) => write!(f, "time:{cron}"),
            Subject::Signal(name) => write!(f, "signal:{name}"),
        }
    }
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Subject, SubjectError> {
        let none = || SubjectError { text: text.to_owned() };
        let (kind, rest) = text.split_once(':').filter(|(_, rest)| !rest.is_empty()).ok_or_else(none)?;
        match kind {
            "partition" => Ok(Subject::Partitions(rest.into())),
            "time" => Ok(Subject::Fired(rest.into())),
            "signal" => Ok(Subject::Signal(rest.into())),
            "ended" => {
                let (state, program) = rest.split_once(':').ok_or_else(none)?;
                let state = SlotState::parse(state).filter(|state| ENDS.contains(state)).ok_or_else(none)?;
                Ok(Subject::Ended(WorkflowId::new(program).map_err(|_| none())?, state))
            }
            _ => Err(none()),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The ends of a run that triggers can wait for.
pub const ENDS: [SlotState; 3] = [SlotState::Succeeded, SlotState::Failed, SlotState::Killed];

/// An occurrence: what a fact says has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "occurrence", rename_all = "kebab-case")]
pub enum Occurrence {
    /// A dataset has new partitions.
    Partitions {
        /// The dataset.
        dataset: Arc<str>,
        /// The number of partitions; may be 0.
        count: u32,
        /// Their names, where the source tells.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// A run of a program has ended.
    Ended {
        /// The program.
        program: WorkflowId,
        /// The state in which it ended, one of [`ENDS`].
        state: SlotState,
        /// The name of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arguments: Arguments,
        /// Its outputs.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        outputs: Map<String, Value>,
    },
    /// A time of a cron expression passed.
    Fired {
        /// Its name.
        cron: Arc<str>,
        /// The time, as scheduled.
        time: Timestamp,
    },
    /// A signal was given.
    Signal {
        /// The name of the signal.
        name: Arc<str>,
        /// The payload.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        /// The run of a flow that it is given to; none where it is for all workflows that wait for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<SlotRef>,
    },
}

impl Occurrence {
    /// Its subject.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match self {
            Occurrence::Partitions { dataset, .. } => Subject::Partitions(dataset.clone()),
            Occurrence::Ended { program, state, .. } => Subject::Ended(program.clone(), *state),
            Occurrence::Fired { cron, .. } => Subject::Fired(cron.clone()),
            Occurrence::Signal { name, .. } => Subject::Signal(name.clone()),
        }
    }

    /// The run of a flow that it is for alone; none where it is for all workflows that wait for it.
    #[must_use]
    pub fn run_of_flow(&self) -> Option<&SlotRef> {
        match self {
            Occurrence::Signal { run, .. } => run.as_ref(),
            _ => None,
        }
    }

    /// How much it counts.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Occurrence::Partitions { count, .. } => u64::from(*count),
            _ => 1,
        }
    }

    /// The same without what only the log keeps: the names of partitions.
    #[must_use]
    pub fn brief(&self) -> Occurrence {
        match self {
            Occurrence::Partitions { dataset, count, .. } => {
                Occurrence::Partitions { dataset: dataset.clone(), count: *count, keys: Vec::new() }
            }
            other => other.clone(),
        }
    }
}

/// Says in a few words what happened: `2 new partitions of purchases`.
impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Occurrence::Partitions { dataset, count: 1, .. } => write!(f, "a new partition of {dataset}"),
            Occurrence::Partitions { dataset, count, .. } => write!(f, "{count} new partitions of {dataset}"),
            Occurrence::Ended { program, state, run, .. } => match run {
                Some(run) => write!(f, "{program} {state} ({run})"),
                None => write!(f, "{program} {state}"),
            },
            Occurrence::Fired { cron, time } => {
                write!(f, "{cron} fired for {}", crate::time::text::format_short(*time))
            }
            Occurrence::Signal { name, run: None, .. } => write!(f, "signal {name}"),
            Occurrence::Signal { name, run: Some(run), .. } => write!(f, "signal {name} for {}", run.short()),
        }
    }
}

/// A published fact: stored before it is acknowledged, and counted once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The source: facts of one source count in the order in which they come.
    pub source: Arc<str>,
    /// The idempotency key among the facts of its source about the same subject. None where each publication counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// An occurrence: what a fact says has happened.
    pub what: Occurrence,
}

/// The identity of a fact: its source, its subject and its key. Two datasets may well have a partition of the same day.
/// In order by what it has from the top, as stores keep them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FactKey {
    /// The source.
    pub source: Arc<str>,
    /// Its name there.
    pub key: Arc<str>,
    /// The text of its [`Subject`].
    pub about: Arc<str>,
}

impl Fact {
    /// Its identity, where it has an idempotency key.
    #[must_use]
    pub fn name(&self) -> Option<FactKey> {
        let key = self.key.clone()?;
        Some(FactKey { source: self.source.clone(), about: self.what.subject().to_string().into(), key })
    }
}

/// The facts that a slot has collected so far, as a fold whose size does not grow with their number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collection {
    /// When the slot came to be, or was last opened again: timeouts and delays count from here.
    pub since: Timestamp,
    /// The tallies, by subject.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tallies: BTreeMap<Subject, Tally>,
    /// Fired by hand without its trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ManualStart>,
    /// The arguments that later requests gave it: reruns, backfills and submits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: Arguments,
    /// Its trigger was met once; it stays so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub met: bool,
    /// It ended, and was opened again: it starts with what it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// The tally of the facts about one subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How many facts.
    pub facts: u32,
    /// How much they count together.
    pub count: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Arc<Occurrence>>,
}

/// A request to start a slot without its trigger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ManualStart {
    /// Arguments beside those of its workflow.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: Arguments,
    /// Whether its constraints are passed over, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconstrained: bool,
    /// The actor who asked for it, where that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

impl Collection {
    /// Nothing yet.
    #[must_use]
    pub fn new(since: Timestamp) -> Collection {
        Collection {
            since,
            tallies: BTreeMap::new(),
            asked: None,
            arguments: Arguments::new(),
            met: false,
            again: false,
        }
    }

    /// The collection in words, a line for each subject: `4 partitions of purchases`, `signal go, 3 times`.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        self.tallies.iter().map(|(subject, tally)| tallied(subject, tally)).collect()
    }

    /// Counts what happened.
    pub fn add(&mut self, what: &Occurrence) {
        let tally = self.tallies.entry(what.subject()).or_default();
        tally.facts = tally.facts.saturating_add(1);
        tally.count = tally.count.saturating_add(what.count());
        if tally.first.is_none() {
            tally.first = Some(Arc::new(what.brief()));
        }
    }

    /// The tally of a subject.
    #[must_use]
    pub fn of(&self, subject: &Subject) -> Option<&Tally> {
        self.tallies.get(subject)
    }
}

fn tallied(subject: &Subject, tally: &Tally) -> String {
    match (subject, &tally.first) {
        (Subject::Partitions(dataset), _) if tally.count == 1 => format!("1 partition of {dataset}"),
        (Subject::Partitions(dataset), _) => format!("{} partitions of {dataset}", tally.count),
        (_, Some(first)) if tally.facts == 1 => first.to_string(),
        (_, Some(first)) => format!("{first}, {} times", tally.facts),
        (other, None) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_read_as_it_is_written() {
        for text in ["partition:ns.ds", "ended:failed:app:w", "time:0 4 * * *", "signal:go"] {
            assert_eq!(text.parse::<Subject>().expect("a subject").to_string(), text);
        }
        for text in ["", "partition:", "ended:running:x", "ended:failed", "wind:north"] {
            assert!(text.parse::<Subject>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_collected_does_not_grow_with_the_number_of_facts() {
        let mut collected = Collection::new(Timestamp::UNIX_EPOCH);
        for n in 0..1000 {
            let keys = vec![format!("p{n}")];
            collected.add(&Occurrence::Partitions { dataset: "ds".into(), count: 2, keys });
        }
        let tally = collected.of(&Subject::Partitions("ds".into())).expect("a tally");
        assert_eq!((tally.facts, tally.count), (1000, 2000));
        assert!(serde_json::to_string(&collected).expect("json").len() < 250);
    }
}
