//! What makes one slot of a workflow different from the next.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::{WorkflowId, is_invisible};
use crate::ranges::Range;
use crate::step_name::StepName;
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
    /// A name that somebody gave to what they started, so that it is started once.
    Named(RunName),
    /// A step of a run of a flow.
    Step(StepKey),
}

/// The first letter in the text of a job's key: no address has to escape it, and no time begins with it.
const JOB: char = '~';

/// The same of a moment.
const MOMENT: char = '_';

/// The same of a name and of a step, and the separator between a run and its step.
pub(crate) const NAMED: char = '.';

/// The separator between a step and the number of its item, where it is done for each item of a list.
const ITEM: char = ':';

/// Letters that the name of a run may have.
const LONGEST_NAME: usize = 200;

/// The name of a run: letters, digits, `_`, `-` and `:`, of which the first is a letter or a digit: `order-42`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunName(Arc<str>);

/// A text that can't name a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" can't name a run: expected at most {LONGEST_NAME} letters, digits, _, - or :, beginning with a letter or a digit, \
     and no time, such as order-42"
)]
pub struct RunNameError {
    /// The text as given.
    pub text: String,
}

impl RunName {
    /// Takes a text as a name.
    ///
    /// # Errors
    /// If it has other letters, or too many, or is read as a time.
    pub fn new(name: &str) -> Result<RunName, RunNameError> {
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric();
        let may_follow = |letter: u8| is_plain(letter) || matches!(letter, b'_' | b'-' | b':');
        let fits = name.bytes().next().is_some_and(is_plain) && name.bytes().all(may_follow);
        // A time stands for a time, wherever it is typed.
        match fits && name.len() <= LONGEST_NAME && text::parse_instant(name).is_err() {
            true => Ok(RunName(name.into())),
            false => Err(RunNameError { text: name.to_owned() }),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it reads as a time with a mistake, such as `2015-13-01` or `noon`: then only the dot before it shows that it is a name.
    #[must_use]
    pub fn reads_as_time(&self) -> bool {
        let is_of_time = |letter: u8| letter.is_ascii_digit() || matches!(letter, b'-' | b':' | b'T' | b'Z');
        let is_of_digits = self.0.contains(['-', ':']) && self.0.bytes().all(is_of_time);
        is_of_digits || !self.0.bytes().any(|letter| letter.is_ascii_digit())
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of a step of a run of a flow: the key of the run, the name of the step, and the number of the item, where the step is done for
/// each item of a list: `order-42.pay`, `2026-11-21T00:00:00.000Z.load:3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepKey(Arc<str>);

impl StepKey {
    /// The key of a step of a run; none if a step itself is given as the run.
    #[must_use]
    pub fn new(run: &SlotKey, step: &StepName) -> Option<StepKey> {
        match run {
            SlotKey::Step(_) => None,
            SlotKey::Named(name) => Some(StepKey(format!("{name}{NAMED}{step}").into())),
            other => Some(StepKey(format!("{other}{NAMED}{step}").into())),
        }
    }

    /// The key of a step of a run, or of an item of its list, as people write it beside its run: `load`, `load:3`. None if the text is
    /// neither, or a step itself is given as the run.
    #[must_use]
    pub fn named(run: &SlotKey, text: &str) -> Option<StepKey> {
        let (name, item) = text.split_once(ITEM).map_or((text, None), |(name, item)| (name, Some(item)));
        let key = StepKey::new(run, &StepName::new(name).ok()?)?;
        match item {
            None => Some(key),
            Some(item) => Some(key.item(item.parse().ok()?)),
        }
    }

    /// The key of one item of the step.
    #[must_use]
    pub fn item(&self, number: u32) -> StepKey {
        StepKey(format!("{}{ITEM}{number}", self.whole()).into())
    }

    /// The same step of another run; none if a step itself is given as the run.
    #[must_use]
    pub fn of(&self, run: &SlotKey) -> Option<StepKey> {
        let key = StepKey::new(run, &StepName::new(self.step()).ok()?)?;
        Some(self.item_number().map_or_else(|| key.clone(), |number| key.item(number)))
    }

    /// The key of the run.
    #[must_use]
    pub fn run(&self) -> SlotKey {
        let (run, _) = self.parts();
        // It was one when the key was made.
        run_of(run).unwrap_or(SlotKey::Time(Timestamp::UNIX_EPOCH))
    }

    /// The name of the step.
    #[must_use]
    pub fn step(&self) -> &str {
        let (_, step) = self.parts();
        step.split_once(ITEM).map_or(step, |(step, _)| step)
    }

    /// The number of the item, where it is one of a list.
    #[must_use]
    pub fn item_number(&self) -> Option<u32> {
        let (_, step) = self.parts();
        step.split_once(ITEM)?.1.parse().ok()
    }

    /// The step as people read it beside its run: `pay`, `load:3`.
    #[must_use]
    pub fn within_run(&self) -> &str {
        self.parts().1
    }

    /// The form that people read: `order-42.pay`, `2026-11-21T00:00Z.load:3`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}{NAMED}{}", self.run().short(), self.within_run())
    }

    /// The place before the keys of all steps of a run, among keys in order; none if a step itself is given as the run.
    #[must_use]
    pub fn first_of(run: &SlotKey) -> Option<StepKey> {
        let prefix = StepKey::prefix(run);
        let text = prefix.strip_prefix(NAMED)?;
        (!matches!(run, SlotKey::Step(_))).then(|| StepKey(text.into()))
    }

    /// Whether it begins with the text of [`StepKey::prefix`].
    #[must_use]
    pub fn is_within(&self, prefix: &str) -> bool {
        prefix.strip_prefix(NAMED).is_some_and(|prefix| self.0.starts_with(prefix))
    }

    /// The text with which the keys of all steps of a run begin, as [`SlotKey`] writes them.
    #[must_use]
    pub fn prefix(run: &SlotKey) -> String {
        match run {
            SlotKey::Named(name) => format!("{NAMED}{name}{NAMED}"),
            other => format!("{NAMED}{other}{NAMED}"),
        }
    }

    /// The key without the number of the item.
    fn whole(&self) -> &str {
        let (run, step) = self.parts();
        let item = step.find(ITEM).map_or(0, |at| step.len() - at);
        debug_assert!(!run.is_empty());
        self.0.get(..self.0.len() - item).unwrap_or(&self.0)
    }

    fn parts(&self) -> (&str, &str) {
        self.0.rsplit_once(NAMED).unwrap_or((&self.0, ""))
    }

    /// A step as people write it, with any form of the key of its run, which `read` reads.
    pub(crate) fn read(text: &str, read: impl FnOnce(&str) -> Option<SlotKey>) -> Option<StepKey> {
        let (run, step) = text.rsplit_once(NAMED)?;
        StepKey::named(&read(run)?, step)
    }

    fn parse(text: &str) -> Option<StepKey> {
        let (run, step) = text.rsplit_once(NAMED)?;
        let (name, item) = step.split_once(ITEM).map_or((step, None), |(name, item)| (name, Some(item)));
        let is_number = |item: &str| item.parse::<u32>().is_ok_and(|number| number.to_string() == item);
        let fits = StepName::new(name).is_ok() && item.is_none_or(is_number) && run_of(run).is_some();
        fits.then(|| StepKey(text.into()))
    }
}

/// The key of a run as the keys of its steps contain it.
fn run_of(text: &str) -> Option<SlotKey> {
    if let Ok(name) = RunName::new(text) {
        return Some(SlotKey::Named(name));
    }
    let key = SlotKey::parse(text).ok().filter(|key| key.to_string() == text)?;
    (!matches!(key, SlotKey::Named(_) | SlotKey::Step(_))).then_some(key)
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not the key of a slot: expected a time such as 2015-09-13T13:40Z, a job id after a ~, or a name after a dot"
)]
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
            SlotKey::Job(_) | SlotKey::Named(_) | SlotKey::Step(_) => None,
        }
    }

    /// The time of a schedule that it names; none for any other key, also for a moment.
    #[must_use]
    pub fn scheduled(&self) -> Option<Timestamp> {
        match self {
            SlotKey::Time(at) => Some(*at),
            SlotKey::Job(_) | SlotKey::Moment(_) | SlotKey::Named(_) | SlotKey::Step(_) => None,
        }
    }

    /// The job id of a job's key.
    #[must_use]
    pub fn job(&self) -> Option<&Arc<str>> {
        match self {
            SlotKey::Job(id) => Some(id),
            SlotKey::Time(_) | SlotKey::Moment(_) | SlotKey::Named(_) | SlotKey::Step(_) => None,
        }
    }

    /// The step that it names.
    #[must_use]
    pub fn step(&self) -> Option<&StepKey> {
        match self {
            SlotKey::Step(step) => Some(step),
            _ => None,
        }
    }

    /// The key of the run that a step belongs to; of all else the key itself.
    #[must_use]
    pub fn of_run(&self) -> SlotKey {
        self.step().map_or_else(|| self.clone(), StepKey::run)
    }

    /// Whether it is the moment at which the slot came to be.
    #[must_use]
    pub fn is_moment(&self) -> bool {
        matches!(self, SlotKey::Moment(_))
    }

    /// Whether a fact or a request made the slot: it is a moment or a name.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        matches!(self, SlotKey::Moment(_) | SlotKey::Named(_))
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
            SlotKey::Named(name) => name.to_string(),
            SlotKey::Step(step) => step.short(),
        }
    }

    /// The form by which jobs and executors know it: the full time also of a moment, and the canonical text of all else. It stays
    /// as it is, because runs outlive the program that began them.
    #[must_use]
    pub fn given(&self) -> String {
        match self {
            SlotKey::Time(at) | SlotKey::Moment(at) => text::format_full(*at),
            SlotKey::Job(_) | SlotKey::Named(_) | SlotKey::Step(_) => self.to_string(),
        }
    }

    /// The text by which people name it, which [`Keys::read`](crate::workflow::Keys::read) reads back: without the letter that marks its
    /// kind, unless it would read as something else.
    #[must_use]
    pub fn typed(&self) -> String {
        match self {
            SlotKey::Time(at) | SlotKey::Moment(at) => text::format_short(*at),
            SlotKey::Job(id) => id.to_string(),
            SlotKey::Named(name) if name.reads_as_time() => self.to_string(),
            SlotKey::Named(name) => name.to_string(),
            SlotKey::Step(step) => match step.run() {
                SlotKey::Job(_) => self.to_string(),
                SlotKey::Named(name) if name.reads_as_time() => self.to_string(),
                run => format!("{}{NAMED}{}", run.typed(), step.within_run()),
            },
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
        if let Some(named) = text.strip_prefix(NAMED) {
            let name = RunName::new(named).map(SlotKey::Named);
            return name.or_else(|_| StepKey::parse(named).map(SlotKey::Step).ok_or_else(no_key));
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
/// `.order-42`; `.order-42.pay`.
impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotKey::Time(at) => f.write_str(&text::format_full(*at)),
            SlotKey::Job(id) => write!(f, "{JOB}{id}"),
            SlotKey::Moment(at) => write!(f, "{MOMENT}{}", text::format_full(*at)),
            SlotKey::Named(name) => write!(f, "{NAMED}{name}"),
            SlotKey::Step(step) => write!(f, "{NAMED}{step}"),
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

/// The same of a step of a run that is a job.
const OF_STEP: &str = "@.~";

/// Writes the canonical text: `wordcount@2015-09-13T13:40:00.000Z`, `modelBuild@~1_purchaseRevenue`. Where the id of a workflow
/// has an `@` before a `~` or a `%`, a `%` is put between them, so that different slots have different texts.
impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflow = self.workflow.as_str();
        if [OF_JOB, OF_STEP, "@%"].iter().any(|one| workflow.contains(one)) {
            let escaped = workflow.replace("@%", "@%%").replace(OF_JOB, "@%~").replace(OF_STEP, "@%.~");
            return write!(f, "{escaped}@{}", self.key);
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
        let at = [text.find(OF_JOB), text.find(OF_STEP)].into_iter().flatten().min().or_else(|| text.rfind('@'));
        let parts = at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)));
        let none = || SlotRefError { text: text.to_owned() };
        let (workflow, key) = parts.ok_or_else(none)?;
        let workflow = workflow.replace("@%~", OF_JOB).replace("@%.~", OF_STEP).replace("@%%", "@%");
        let workflow = WorkflowId::new(&workflow).map_err(|_| none())?;
        Ok(SlotRef { workflow, key: SlotKey::parse(key).map_err(|_| none())? })
    }
}
