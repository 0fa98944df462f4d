//! One attempt to execute a job for a slot.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{PoolId, WorkflowId};
use crate::json::LongNumber;
use crate::key::{SlotKey, SlotRef};
use crate::nesting::{TooDeep, check_object};
use crate::parameter::Arguments;

/// A run's name: derived from its slot and number, so that a repeated start is recognised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    /// The slot of the run.
    pub slot: SlotRef,
    /// The number of the run, from 1; it never resets.
    pub number: u32,
}

/// Writes the name by which executors know the run, with the key as it is [given](SlotKey::given).
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match &self.slot.key {
            SlotKey::Moment(at) => write!(f, "{}#{number}", SlotRef::at(self.slot.workflow.clone(), *at)),
            _ => write!(f, "{}#{number}", self.slot),
        }
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// The intent is stored.
    Dispatched,
    /// The executor has confirmed the start.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended badly, or could not be started.
    Failed,
    /// It was ended on a person's word.
    Killed,
    /// Its outcome can't be known.
    Unknown,
}

impl RunState {
    /// Every state.
    pub const ALL: [RunState; 6] = [
        RunState::Dispatched,
        RunState::Running,
        RunState::Succeeded,
        RunState::Failed,
        RunState::Killed,
        RunState::Unknown,
    ];

    /// The name in columns and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Dispatched => "dispatched",
            RunState::Running => "running",
            RunState::Succeeded => "succeeded",
            RunState::Failed => "failed",
            RunState::Killed => "killed",
            RunState::Unknown => "unknown",
        }
    }

    /// Reads [`RunState::as_str`] back.
    #[must_use]
    pub fn parse(name: &str) -> Option<RunState> {
        RunState::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_final(self) -> bool {
        self >= RunState::Succeeded
    }
}

/// The outcome of a run. A run that fails is an outcome, never an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Outcome {
    /// The run succeeded.
    Succeeded,
    /// The run failed.
    Failed {
        /// In words: `exited with status 3`, `timed out after 60 s`.
        reason: String,
        /// The exit status, where there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_status: Option<i32>,
        /// The kind of failure, where more is known than the exit status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<FailureCode>,
    },
    /// It was never started, and won't be: its parameters were refused, or no worker fetched it.
    Refused {
        /// In words.
        reason: String,
        /// The kind of refusal, where more is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<FailureCode>,
    },
    /// Ended on a person's word.
    Killed,
    /// Its outcome can't be known. Nothing of it runs any more, so that another attempt is alone.
    Unknown {
        /// The reason that its outcome can't be known.
        reason: String,
    },
    /// It was begun for certain, its outcome can't be known, and it may still be running or is not to be done twice: no other attempt is made
    /// by itself.
    Lost {
        /// The reason that its outcome can't be known.
        reason: String,
    },
}

/// A kind of failure: a word that stays the same. One that a newer version, or another's executor, made is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailureCode(Cow<'static, str>);

impl FailureCode {
    /// A signal ended it that was not sent from here.
    pub const SIGNAL: FailureCode = FailureCode(Cow::Borrowed("signal"));
    /// It took longer than its timeout allows.
    pub const TIMED_OUT: FailureCode = FailureCode(Cow::Borrowed("timed-out"));
    /// It gave a number that would be rounded.
    pub const OUTPUTS_LONG_NUMBER: FailureCode = FailureCode(Cow::Borrowed("outputs-long-number"));
    /// It gave more than a run keeps.
    pub const OUTPUTS_TOO_LARGE: FailureCode = FailureCode(Cow::Borrowed("outputs-too-large"));
    /// Its outputs are nested too deeply.
    pub const OUTPUTS_TOO_DEEP: FailureCode = FailureCode(Cow::Borrowed("outputs-too-deep"));
    /// Its outputs could not be read back once they are stored.
    pub const OUTPUTS_UNREADABLE: FailureCode = FailureCode(Cow::Borrowed("outputs-unreadable"));
    /// It would have been given more than a run keeps.
    pub const ARGUMENTS_TOO_LARGE: FailureCode = FailureCode(Cow::Borrowed("arguments-too-large"));
    /// It would have been given other arguments than its parameters expect.
    pub const ARGUMENTS_MISMATCHED: FailureCode = FailureCode(Cow::Borrowed("arguments-mismatched"));
    /// The job said that another attempt would fail in the same way.
    pub const FINAL: FailureCode = FailureCode(Cow::Borrowed("final"));
    /// A secret of the job could not be read.
    pub const SECRET_UNREAD: FailureCode = FailureCode(Cow::Borrowed("secret-unread"));
    /// The service that does the job said that it failed.
    pub const REPORTED: FailureCode = FailureCode(Cow::Borrowed("reported"));

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of failure that a word names.
impl From<String> for FailureCode {
    fn from(word: String) -> FailureCode {
        FailureCode(Cow::Owned(word))
    }
}

impl Outcome {
    /// The failure of a run whose outputs have more bytes than a run keeps.
    #[must_use]
    pub fn gave_too_much(bytes: usize) -> Outcome {
        let reason = format!(
            "its outputs have {bytes} bytes, expected at most {LARGEST_GIVEN}: write what is large to a file, and give its path"
        );
        Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::OUTPUTS_TOO_LARGE) }
    }

    /// The failure of a run with a number among its outputs that would be rounded.
    #[must_use]
    pub fn gave_long_number(number: LongNumber) -> Outcome {
        let reason = format!("its outputs can't be kept: {number}");
        Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::OUTPUTS_LONG_NUMBER) }
    }

    /// The failure of a run whose outputs are nested too deeply.
    #[must_use]
    pub fn gave_too_deep(error: TooDeep) -> Outcome {
        let reason = format!("its outputs are {error}: flatten them, or give what is deep as a text of JSON");
        Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::OUTPUTS_TOO_DEEP) }
    }

    /// The failure of a run whose outputs could not be read back once they are stored, for a reason in words.
    #[must_use]
    pub fn gave_unreadable(why: &str) -> Outcome {
        let reason = format!("its outputs could not be read back once they are stored: {why}");
        Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::OUTPUTS_UNREADABLE) }
    }

    /// The failure of a run whose outputs are not kept: they are too large or nested too deeply. None if they are kept.
    #[must_use]
    pub fn of_unkept(outputs: &Map<String, Value>) -> Option<Outcome> {
        let is_too_deep = || check_object(outputs.values()).err().map(Outcome::gave_too_deep);
        beyond_largest(outputs).map(Outcome::gave_too_much).or_else(is_too_deep)
    }

    /// A run that was never started, and won't be.
    #[must_use]
    pub fn refused(reason: impl Into<String>) -> Outcome {
        Outcome::Refused { reason: reason.into(), code: None }
    }

    /// The end of a run that would be given more bytes of arguments than a run keeps.
    #[must_use]
    pub fn given_too_much(bytes: usize) -> Outcome {
        let reason = format!(
            "its arguments have {bytes} bytes, expected at most {LARGEST_GIVEN}: write what is large to a file, and give its path"
        );
        Outcome::Refused { reason, code: Some(FailureCode::ARGUMENTS_TOO_LARGE) }
    }

    /// The same where outputs of other workflows are a part of it: these workflows, in words.
    #[must_use]
    pub fn given_too_much_by(bytes: usize, givers: &str) -> Outcome {
        let reason = format!(
            "its arguments and the outputs of {givers} have {bytes} bytes, expected at most {LARGEST_GIVEN}: write what is large to a file, and give its path"
        );
        Outcome::Refused { reason, code: Some(FailureCode::ARGUMENTS_TOO_LARGE) }
    }

    /// The end of a run whose arguments are not those that its parameters expect: one mistake or more, in words.
    #[must_use]
    pub fn given_wrongly(mistakes: &[String]) -> Outcome {
        let reason = format!("its arguments are wrong: {}", mistakes.join("; "));
        Outcome::Refused { reason, code: Some(FailureCode::ARGUMENTS_MISMATCHED) }
    }

    /// The code of how it ended. Logs of before say no more of a failure than its exit status.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed { code: Some(code), .. } | Outcome::Refused { code: Some(code), .. } => code.as_str(),
            Outcome::Failed { exit_status: Some(_), .. } => "exit-status",
            Outcome::Failed { .. } => "failed",
            Outcome::Refused { .. } => "refused",
            Outcome::Killed => "killed",
            Outcome::Unknown { .. } => "unknown",
            Outcome::Lost { .. } => "lost",
        }
    }

    /// The state of a run that ended so.
    #[must_use]
    pub fn state(&self) -> RunState {
        match self {
            Outcome::Succeeded => RunState::Succeeded,
            Outcome::Failed { .. } | Outcome::Refused { .. } => RunState::Failed,
            Outcome::Killed => RunState::Killed,
            Outcome::Unknown { .. } | Outcome::Lost { .. } => RunState::Unknown,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Succeeded => f.write_str("succeeded"),
            Outcome::Failed { reason, .. } => f.write_str(reason),
            Outcome::Refused { reason, .. } => write!(f, "could not be started: {reason}"),
            Outcome::Killed => f.write_str("killed"),
            Outcome::Unknown { reason } | Outcome::Lost { reason } => write!(f, "outcome unknown: {reason}"),
        }
    }
}

/// The record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// Log position of its dispatch: the key of the record, ascending in time.
    pub seq: u64,
    /// Log position of the same slot's run before it; 0 for the first.
    pub previous: u64,
    /// The state.
    pub state: RunState,
    /// The executor of the run.
    pub executor: String,
    /// The executor's id of the run.
    pub external_id: Option<String>,
    /// When the intent was stored.
    pub dispatched_at: Timestamp,
    /// When the executor confirmed.
    pub started_at: Option<Timestamp>,
    /// When its end was recorded.
    pub ended_at: Option<Timestamp>,
    /// The outcome of the run.
    pub outcome: Option<Outcome>,
    /// The arguments that it was dispatched with, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: Arguments,
    /// Its outputs for the runs that it triggers; none where it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Box<Map<String, Value>>>,
    /// The batch that it serves, where one run serves several slots. Each of these has a record, and the run of the first does the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
}

impl Run {
    /// The run that does the work, and has the output: the same, or for a slot of a batch the run of the first slot.
    #[must_use]
    pub fn leader(&self) -> RunId {
        self.batch.map_or_else(|| self.id.clone(), |batch| batch.leader(&self.id.slot.workflow))
    }

    /// Whether it leaves the work to the run of another slot.
    #[must_use]
    pub fn is_follower(&self) -> bool {
        self.batch.is_some_and(|batch| batch.is_follower(&self.id.slot.key))
    }
}

/// Bytes that the arguments of a run may have as JSON, and so may its outputs: both are kept with the run for good.
pub const LARGEST_GIVEN: usize = 64 * 1024;

/// How many bytes a value has as JSON, where that is more than a run keeps.
#[must_use]
pub fn beyond_largest(value: &impl Serialize) -> Option<usize> {
    let bytes = serde_json::to_vec(value).map_or(usize::MAX, |json| json.len());
    Some(bytes).filter(|bytes| *bytes > LARGEST_GIVEN)
}

/// Adjacent slots of a workflow that one run serves: that of the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// The time of the first slot.
    pub first: Timestamp,
    /// The number of the run of the first slot, which does the work.
    pub run: u32,
    /// The time of the last slot.
    pub last: Timestamp,
    /// How many slots there are.
    pub slots: u32,
}

impl Batch {
    /// The run that does the work.
    #[must_use]
    pub fn leader(&self, workflow: &WorkflowId) -> RunId {
        RunId { slot: SlotRef::at(workflow.clone(), self.first), number: self.run }
    }

    /// Whether a slot of it leaves the work to the run of the first.
    #[must_use]
    pub fn is_follower(&self, key: &SlotKey) -> bool {
        key.time() != Some(self.first)
    }
}

/// Writes the times of the first and the last slot.
impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.first, self.last)
    }
}

/// A report of an executor about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Report {
    /// It has started.
    Started {
        /// The executor's id of the run.
        external_id: String,
    },
    /// It could not be started now, and can be later: the executor's server is down. The intent remains.
    Deferred {
        /// In words.
        reason: String,
    },
    /// It has ended.
    Ended {
        /// The outcome.
        outcome: Outcome,
    },
    /// It said what it gives to those that it triggers. Comes before the end.
    Gave {
        /// The outputs.
        outputs: Map<String, Value>,
    },
    /// All that it asks for of pools beside the permits of its start, be it that it waits for them or holds them. Whatever it asked for
    /// before and is not there is returned.
    Asks {
        /// Counts the changes, so that a late report is known as such.
        version: u64,
        /// The number of permits by pool, of each request by its number.
        #[serde(with = "numbered")]
        requests: BTreeMap<u64, BTreeMap<PoolId, u32>>,
    },
    /// The program that did it comes to its end, and gives it back undone: it is to be done again, without using up a retry.
    GivenBack,
    /// Asked about a run whose start was never confirmed, the executor has never seen it: the intent was
    /// stored and the start got lost. About a confirmed one it says that the outcome is unknown. Of a run that is for workers:
    /// none has fetched it, and none will.
    NeverStarted,
}

/// Requests by number as pairs: numbers can't be read again as names of fields within a tagged form.
mod numbered {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::PoolId;

    type Requests = BTreeMap<u64, BTreeMap<PoolId, u32>>;

    pub(super) fn serialize<S: Serializer>(requests: &Requests, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(requests)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Requests, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

/// The part of an external id that people see; an executor's own data follows it as a JSON object.
#[must_use]
pub fn shown_id(external_id: &str) -> &str {
    external_id.split_once(" {").map_or(external_id, |(shown, _)| shown)
}
