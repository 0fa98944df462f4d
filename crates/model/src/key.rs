//! What makes one slot of a workflow different from the next.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::{WorkflowId, is_invisible};
use crate::ranges::Range;
use crate::time::{CronSchedule, text};

/// The key of a slot. Each kind has a text form of its own, known by its first character, that sorts within its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKey {
    /// A time that a schedule yields, in whole milliseconds.
    Time(Timestamp),
    /// A job id in its normal form: `20140601_testID1`. Never empty, without slashes and invisible characters.
    Job(Arc<str>),
    /// The moment at which the slot came to be, in whole milliseconds: by a fact or a request.
    Moment(Timestamp),
    /// A run of a flow, or a step of one.
    Flow(FlowKey),
}

/// The first letter in the text of a job's key: no address has to escape it, and no time begins with it.
const JOB: char = '~';

/// The same of a moment.
const MOMENT: char = '_';

/// The same of a run of a flow, and the separator between the run and its step. It comes before all letters of a run's id, so that the
/// steps of a run come right after it.
const FLOW: char = '.';

/// The key of a run of a flow, or of one of its steps: `7f3a`, `7f3a.extract`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(Arc<str>);

impl FlowKey {
    /// Names a run by an id of letters, digits and `_`.
    ///
    /// # Errors
    /// When the id has anything else in it, or nothing.
    pub fn run(id: &str) -> Result<FlowKey, KeyError> {
        match is_run(id) {
            true => Ok(FlowKey(id.into())),
            false => Err(KeyError { text: format!("{FLOW}{id}") }),
        }
    }

    /// Names a step of a run; of a step the step beside it. A step has no slashes, no `@` and no invisible characters.
    ///
    /// # Errors
    /// When the name of the step has any of these in it, or nothing.
    pub fn step(&self, step: &str) -> Result<FlowKey, KeyError> {
        let text = format!("{}{FLOW}{step}", self.run_id());
        match is_step(step) {
            true => Ok(FlowKey(text.into())),
            false => Err(KeyError { text: format!("{FLOW}{text}") }),
        }
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        self.0.split_once(FLOW).map_or(&self.0, |(run, _)| run)
    }

    /// The step, where it is one.
    #[must_use]
    pub fn step_name(&self) -> Option<&str> {
        self.0.split_once(FLOW).map(|(_, step)| step)
    }

    fn parse(text: &str) -> Option<FlowKey> {
        let (run, step) = text.split_once(FLOW).map_or((text, None), |(run, step)| (run, Some(step)));
        (is_run(run) && step.is_none_or(is_step)).then(|| FlowKey(text.into()))
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_run(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

fn is_step(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '@']) && !name.contains(is_invisible)
}

/// A text that is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not the key of a slot: expected a time such as 2015-09-13T13:40Z, or a job id after a ~")]
pub struct KeyError {
    /// The text as given.
    pub text: String,
}

impl SlotKey {
    /// The point in time that it names: that of a schedule, or the moment at which the slot came to be.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        match self {
            SlotKey::Time(at) | SlotKey::Moment(at) => Some(*at),
            SlotKey::Job(_) | SlotKey::Flow(_) => None,
        }
    }

    /// The time of a schedule that it names; none for any other key, also for a moment.
    #[must_use]
    pub fn scheduled(&self) -> Option<Timestamp> {
        match self {
            SlotKey::Time(at) => Some(*at),
            SlotKey::Job(_) | SlotKey::Moment(_) | SlotKey::Flow(_) => None,
        }
    }

    /// The job id of a job's key.
    #[must_use]
    pub fn job(&self) -> Option<&Arc<str>> {
        match self {
            SlotKey::Job(id) => Some(id),
            SlotKey::Time(_) | SlotKey::Moment(_) | SlotKey::Flow(_) => None,
        }
    }

    /// Whether it is the moment at which the slot came to be.
    #[must_use]
    pub fn is_moment(&self) -> bool {
        matches!(self, SlotKey::Moment(_))
    }

    /// The key that lies `seconds` later, or none where time ends or the key is not the time of a schedule.
    #[must_use]
    pub fn offset(&self, seconds: i64) -> Option<SlotKey> {
        self.scheduled()?.checked_add(SignedDuration::from_secs(seconds)).ok().map(SlotKey::Time)
    }

    /// The form that people read: `2015-09-13T13:40Z`, or the job id. A moment reads as a time does.
    #[must_use]
    pub fn short(&self) -> String {
        match self {
            SlotKey::Time(at) | SlotKey::Moment(at) => text::format_short(*at),
            SlotKey::Job(id) => id.to_string(),
            SlotKey::Flow(flow) => flow.to_string(),
        }
    }

    /// The form by which jobs and executors know it: the full time also of a moment, and the canonical text of all else. It stays
    /// as it is, because runs outlive the program that began them.
    #[must_use]
    pub fn given(&self) -> String {
        match self {
            SlotKey::Time(at) | SlotKey::Moment(at) => text::format_full(*at),
            SlotKey::Job(_) | SlotKey::Flow(_) => self.to_string(),
        }
    }

    /// Reads the text that [`fmt::Display`] writes, and the shorter forms that people type. What looks like a time is one:
    /// [`Keys::read`](crate::workflow::Keys::read) knows where it stands for a moment.
    ///
    /// # Errors
    /// When the text is of no kind.
    pub fn parse(text: &str) -> Result<SlotKey, KeyError> {
        let no_key = || KeyError { text: text.to_owned() };
        let time = |text| text::parse_instant(text).map_err(|_| no_key());
        if let Some(id) = text.strip_prefix(JOB) {
            let is_id = !id.is_empty() && !id.contains('/') && !id.contains(is_invisible);
            return if is_id { Ok(SlotKey::Job(id.into())) } else { Err(no_key()) };
        }
        if let Some(at) = text.strip_prefix(MOMENT) {
            return time(at).map(SlotKey::Moment);
        }
        if let Some(flow) = text.strip_prefix(FLOW) {
            return FlowKey::parse(flow).map(SlotKey::Flow).ok_or_else(no_key);
        }
        time(text).map(SlotKey::Time)
    }
}

impl Range {
    /// Whether the time of a schedule that a key names lies in it. Any other key lies in no range.
    #[must_use]
    pub fn holds(&self, key: &SlotKey) -> bool {
        key.scheduled().is_some_and(|at| self.contains(at))
    }
}

impl CronSchedule {
    /// Whether a key is one of the times. A moment is none, whatever it is.
    #[must_use]
    pub fn has(&self, key: &SlotKey) -> bool {
        key.scheduled().is_some_and(|at| self.contains(at))
    }
}

/// Writes the canonical text: `2015-09-13T13:40:00.000Z`, fixed in width; `~20140601_testID1`; `_2015-09-13T13:40:00.000Z`;
/// `.7f3a` or `.7f3a.extract`.
impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotKey::Time(at) => f.write_str(&text::format_full(*at)),
            SlotKey::Job(id) => write!(f, "{JOB}{id}"),
            SlotKey::Moment(at) => write!(f, "{MOMENT}{}", text::format_full(*at)),
            SlotKey::Flow(flow) => write!(f, "{FLOW}{flow}"),
        }
    }
}

impl Serialize for SlotKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SlotKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        SlotKey::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A slot: the unit of state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotRef {
    /// The workflow of the slot.
    pub workflow: WorkflowId,
    /// The key of the slot.
    pub key: SlotKey,
}

impl SlotRef {
    /// Names the slot of a workflow at a key.
    #[must_use]
    pub fn new(workflow: WorkflowId, key: SlotKey) -> Self {
        Self { workflow, key }
    }

    /// Names the slot of a workflow at a time of its schedule.
    #[must_use]
    pub fn at(workflow: WorkflowId, time: Timestamp) -> Self {
        Self::new(workflow, SlotKey::Time(time))
    }

    /// Names the slot that came to be at a moment.
    #[must_use]
    pub fn moment(workflow: WorkflowId, at: Timestamp) -> Self {
        Self::new(workflow, SlotKey::Moment(at))
    }

    /// Names a job: the slot of a workflow with a job id, in its normal form.
    #[must_use]
    pub fn job(workflow: WorkflowId, id: Arc<str>) -> Self {
        Self::new(workflow, SlotKey::Job(id))
    }

    /// The short form that people read: `wordcount@2015-09-13T13:40Z`, `modelBuild@1_purchaseRevenue`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}@{}", self.workflow, self.key.short())
    }
}

/// The separator before a job's key in the text of its slot.
const OF_JOB: &str = "@~";

/// Writes the canonical text: `wordcount@2015-09-13T13:40:00.000Z`, `modelBuild@~1_purchaseRevenue`. Where the id of a workflow
/// has an `@` before a `~` or a `%`, a `%` is put between them, so that different slots have different texts.
impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflow = self.workflow.as_str();
        if workflow.contains(OF_JOB) || workflow.contains("@%") {
            return write!(f, "{}@{}", workflow.replace("@%", "@%%").replace(OF_JOB, "@%~"), self.key);
        }
        write!(f, "{workflow}@{}", self.key)
    }
}

/// A text that names no slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" names no slot: expected a form such as wordcount@2015-09-13T13:40Z or modelBuild@~1_purchaseRevenue"
)]
pub struct SlotRefError {
    /// The text as given.
    pub text: String,
}

impl std::str::FromStr for SlotRef {
    type Err = SlotRefError;

    fn from_str(text: &str) -> Result<SlotRef, SlotRefError> {
        // No key but a job's has an @, and no written workflow one before a ~.
        let at = text.find(OF_JOB).or_else(|| text.rfind('@'));
        let parts = at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)));
        let none = || SlotRefError { text: text.to_owned() };
        let (workflow, key) = parts.ok_or_else(none)?;
        let workflow = workflow.replace("@%~", OF_JOB).replace("@%%", "@%");
        let workflow = WorkflowId::new(&workflow).map_err(|_| none())?;
        Ok(SlotRef { workflow, key: SlotKey::parse(key).map_err(|_| none())? })
    }
}
