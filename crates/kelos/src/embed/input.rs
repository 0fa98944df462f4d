//! What a function is given: what its slot is about.

use std::borrow::Cow;

use jiff::Timestamp;
use kelos_model::arguments::text;
use kelos_model::{Arguments, Batch, SlotKey, Workflow};
use serde::de::DeserializeOwned;

/// The argument that has the input of a job on demand, as JSON.
pub(super) const INPUT: &str = "input";

/// The slot whose function is about to run.
///
/// ```
/// use kelos::embed::{Input, SlotInput};
///
/// /// The id of the workflow, whatever the slot.
/// struct Name(String);
///
/// impl Input for Name {
///     fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
///         Ok(Name(slot.workflow.id.to_string()))
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SlotInput<'a> {
    /// The definition.
    pub workflow: &'a Workflow,
    /// The key of the slot.
    pub key: &'a SlotKey,
    /// The input as JSON; none where somebody started the slot without one.
    pub json: Option<&'a str>,
    /// The slots that the run serves together, if there are several.
    pub batch: Option<&'a Batch>,
}

impl SlotInput<'_> {
    /// The times of the slots that the run serves, ascending: that of its own, or those of a batch.
    ///
    /// ```
    /// use kelos::embed::{Input, SlotInput};
    ///
    /// /// The number of slots that a run serves.
    /// struct Served(usize);
    ///
    /// impl Input for Served {
    ///     fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
    ///         Ok(Served(slot.times().len()))
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn times(&self) -> Vec<Timestamp> {
        self.workflow.keys.times_of_run(self.key, self.batch)
    }
}

/// The input among the arguments, as JSON: a text is that, anything else is written so.
pub(super) fn json(arguments: &Arguments) -> Option<Cow<'_, str>> {
    arguments.get(INPUT).filter(|input| !input.is_null()).map(text)
}

/// A type that a function takes as its second argument.
///
/// Any type that serde can read is the input of a job on demand. A job at times takes [`ScheduledTime`].
///
/// ```
/// use kelos::embed::{Input, SlotInput};
///
/// /// The moment of a slot in seconds since 1970.
/// struct Seconds(i64);
///
/// impl Input for Seconds {
///     fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
///         slot.key.time().map(|time| Seconds(time.as_second())).ok_or_else(|| "its slot has no time".to_owned())
///     }
/// }
/// ```
pub trait Input: Sized + Send + 'static {
    /// Reads the input of a slot.
    ///
    /// # Errors
    /// In words that follow "its input is unsound:".
    fn read(slot: &SlotInput<'_>) -> Result<Self, String>;
}

impl<T: DeserializeOwned + Send + 'static> Input for T {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        match slot.json {
            Some(json) => serde_json::from_str(json).map_err(|error| format!("{error}: {}", shortened(json))),
            // A type that asks for nothing takes nothing.
            None => serde_json::from_str("null").map_err(|_| "it was started without one".to_owned()),
        }
    }
}

fn shortened(json: &str) -> String {
    const MOST: usize = 200;
    if json.chars().count() <= MOST { json.to_owned() } else { json.chars().take(MOST).chain("...".chars()).collect() }
}

/// The time that a slot is about.
///
/// ```
/// use kelos::embed::{Context, ScheduledTime, job};
///
/// async fn report(_: Context, at: ScheduledTime, _: ()) -> Result<String, String> {
///     Ok(at.time.to_string())
/// }
///
/// let report = job("report", report).with(()).cron("0 6 * * *");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledTime {
    /// The time of the schedule; the moment of the start for a slot that somebody started by hand. Of a batch it is the first.
    pub time: Timestamp,
    /// All times that the run is about, ascending: this one, or those of a [batch](super::Job::in_batches).
    pub times: Vec<Timestamp>,
}

impl Input for ScheduledTime {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        let time = slot.key.time().ok_or_else(|| "its slot has no time".to_owned())?;
        Ok(ScheduledTime { time, times: slot.times() })
    }
}
