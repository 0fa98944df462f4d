//! What a function is given: what its slot is about.

use std::any::TypeId;
use std::borrow::Cow;

use jiff::Timestamp;
use kelos_engine::executor::Start;
use kelos_model::arguments::text;
use kelos_model::{Arguments, Batch, SlotKey, Workflow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::output::OUTPUT;

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
    /// The key of the slot; of a step that of the flow's run.
    pub key: &'a SlotKey,
    /// The input as JSON; none where somebody started the slot without one, and of steps.
    pub json: Option<&'a str>,
    /// All that the run is given, of a step and of a job at times: what the slots gave that its own depends on, and its arguments. None of a
    /// job on demand.
    pub inputs: Option<&'a Arguments>,
    /// The slots that the run serves together, if there are several.
    pub batch: Option<&'a Batch>,
}

impl<'a> SlotInput<'a> {
    /// The input of a run, whose [subject](Start::subject) is a key.
    pub(super) fn of(start: &'a Start, key: &'a SlotKey, json: Option<&'a str>) -> SlotInput<'a> {
        let has_inputs = start.run.slot.key.step().is_some() || start.workflow.keys.schedule().is_some();
        SlotInput {
            workflow: &start.workflow,
            key,
            json: json.filter(|_| !has_inputs),
            inputs: has_inputs.then_some(&start.given.arguments),
            batch: start.given.batch.as_ref(),
        }
    }
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

/// The input of a flow's run as its arguments: the fields of an object, anything else as one argument.
pub(super) fn arguments_of(input: &(impl Serialize + ?Sized)) -> Result<Arguments, serde_json::Error> {
    Ok(match serde_json::to_value(input)? {
        Value::Null => Arguments::new(),
        Value::Object(fields) => fields.into_iter().collect(),
        other => [(INPUT.to_owned(), other)].into(),
    })
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the input of a function",
    note = "the second argument is of a type that serde reads (`#[derive(serde::Deserialize)]`), or a `ScheduledTime`, `Period`, `AtTime<T>` or `InPeriod<T>`"
)]
pub trait Input: Sized + Send + 'static {
    /// Reads the input of a slot.
    ///
    /// # Errors
    /// In words that follow "its input is unsound:".
    fn read(slot: &SlotInput<'_>) -> Result<Self, String>;

    /// Whether only slots that are periods of a calendar can be read.
    #[doc(hidden)]
    #[must_use]
    fn is_of_period() -> bool {
        false
    }
}

impl<T: DeserializeOwned + Send + 'static> Input for T {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        if let Some(inputs) = slot.inputs {
            return read_inputs(inputs);
        }
        match slot.json {
            Some(json) => serde_json::from_str(json).map_err(|error| format!("{error}: {}", shortened(json))),
            // A type that asks for nothing takes nothing.
            None => serde_json::from_str("null").map_err(|_| "it was started without one".to_owned()),
        }
    }
}

/// Reads what a run is given, and says where it is of another type.
pub(super) fn read_inputs<'a, T: DeserializeOwned + 'static>(
    inputs: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> Result<T, String> {
    if TypeId::of::<T>() == TypeId::of::<()>() {
        // An input that asks for nothing takes nothing.
        return serde_json::from_value(Value::Null).map_err(|error| error.to_string());
    }
    let inputs: Map<String, Value> = inputs.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let bare = with_bare_outputs(&inputs);
    let whole = read_object(inputs);
    match bare {
        // Both forms are taken: the one that is stored, and the one that the other function returned.
        Some(bare) if whole.is_err() => read_object(bare),
        _ => whole,
    }
}

fn read_object<T: DeserializeOwned>(inputs: Map<String, Value>) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(inputs.clone())).map_err(|error| {
        let (path, given) = (error.path().to_string(), Value::Object(inputs).to_string());
        let place = if path == "." { String::new() } else { format!("at {path}: ") };
        format!("{place}{}: {}", error.into_inner(), shortened(&given))
    })
}

/// The same with lists of outputs that are no structs as the functions returned them; none where there are no such lists.
fn with_bare_outputs(inputs: &Map<String, Value>) -> Option<Map<String, Value>> {
    let bare = |item: &Value| item.as_object().filter(|one| one.len() == 1)?.get(OUTPUT).cloned();
    let list = |value: &Value| {
        let items = value.as_array().filter(|items| !items.is_empty())?;
        items.iter().map(bare).collect::<Option<Vec<Value>>>().map(Value::Array)
    };
    let mut is_changed = false;
    let mut changed = |value: &Value| {
        let list = list(value);
        is_changed |= list.is_some();
        list.unwrap_or_else(|| value.clone())
    };
    let all = inputs.iter().map(|(name, value)| (name.clone(), changed(value))).collect();
    is_changed.then_some(all)
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

/// The time that a slot is about, and all that its run is given: what the slots gave that it depends on, and its arguments.
///
/// ```
/// use kelos::embed::{AtTime, Context, ScheduledTime, job};
///
/// #[derive(serde::Deserialize)]
/// struct Extracted {
///     rows: u64,
/// }
///
/// # async fn extract(_: Context, _: ScheduledTime, _: ()) -> Result<serde_json::Value, String> { Ok(serde_json::json!({ "rows": 3 })) }
/// async fn load(context: Context, given: AtTime<Extracted>, _: ()) -> Result<(), String> {
///     context.log(format!("loading {} rows of {}", given.input.rows, given.at.time));
///     Ok(())
/// }
///
/// let extract = job("extract", extract).with(()).cron("0 6 * * *");
/// let load = job("load", load).with(()).cron("0 6 * * *").after(&extract);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtTime<T> {
    /// The time.
    pub at: ScheduledTime,
    /// The input of the run.
    pub input: T,
}

impl<T: Input> Input for AtTime<T> {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        Ok(AtTime { at: ScheduledTime::read(slot)?, input: T::read(slot)? })
    }
}

impl Input for ScheduledTime {
    fn read(slot: &SlotInput<'_>) -> Result<Self, String> {
        let time = slot.key.time().ok_or_else(|| "its slot has no time".to_owned())?;
        Ok(ScheduledTime { time, times: slot.times() })
    }
}
