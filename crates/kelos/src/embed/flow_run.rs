//! A run of a flow, as programs look at it.

use jiff::Timestamp;
use kelos_model::flow::Flow;
use kelos_model::key::RunName;
use kelos_model::{Run, Slot, SlotKey, SlotRef, SlotState, StepKey};
use kelos_store::{PageRequest, Queries, SlotRow, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::input::read_inputs;
use super::output::{self, OutputError};

/// Steps that are read at a time.
const PAGE: usize = 1_000;

/// A run of a flow: how far it is or how it ended, and what became of its steps.
///
/// ```
/// use kelos::embed::{Context, Project, flow, step};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let add = step("add", async |_: Context, (): (), more: u32| Ok::<_, String>(more)).with(2);
/// let running = Project::new("sums", "1.0").add(flow("sum", add)).start().await?;
/// let ended = running.flow("sum").run("first", &()).await?;
/// assert_eq!(ended.output::<u32>()?, 2);
/// assert!(ended.step("add").is_some_and(|add| add.outputs["add"] == 2));
/// running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct FlowRun {
    /// Its slot.
    pub slot: SlotRef,
    /// Its state.
    pub state: SlotState,
    /// The steps that failed in a run that succeeded all the same, because error steps handled it.
    pub recovered: Vec<String>,
    /// The reason of its failure; none where it has not failed.
    pub reason: Option<String>,
    /// The step of another run that it does again, and nothing else of the flow; none where it is an ordinary run.
    pub repeats: Option<SlotRef>,
    /// The steps that it has opened, in the order in which they were written, and the items of their lists.
    pub steps: Vec<StepRun>,
    /// The outputs of its last steps, merged.
    pub outputs: Map<String, Value>,
}

/// A step of a run, or an item of one.
///
/// ```
/// use kelos::embed::{FlowRun, StepRun};
///
/// fn failures(run: &FlowRun) -> Vec<String> {
///     let words = |step: &StepRun| Some(format!("{}: {}", step.name, step.error.as_ref()?));
///     run.steps.iter().filter_map(words).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRun {
    /// Its id; `load:3` is the item 3 of the list of `load`.
    pub name: String,
    /// Its state.
    pub state: SlotState,
    /// The attempts that it has had.
    pub attempts: u32,
    /// Its inputs.
    pub inputs: Map<String, Value>,
    /// Its outputs, also those of a failure with data.
    pub outputs: Map<String, Value>,
    /// The reason of its failure; none where it has not failed.
    pub error: Option<String>,
}

impl FlowRun {
    /// Whether it succeeded, by itself or because error steps did.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, StepRun};
    /// fn word(run: &FlowRun) -> &'static str {
    ///     if run.is_success() && run.recovered.is_empty() { "well" } else { "look at it" }
    /// }
    /// ```
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.state == SlotState::Succeeded
    }

    /// A step that it has opened.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, StepRun};
    /// fn has_paid(run: &FlowRun) -> bool {
    ///     run.step("pay").is_some_and(|pay| pay.state == kelos::SlotState::Succeeded)
    /// }
    /// ```
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&StepRun> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// The output of its last steps as a type. One value that is no object is read as itself.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, StepRun};
    /// #[derive(serde::Deserialize)]
    /// struct Receipt {
    ///     parcel: String,
    /// }
    ///
    /// fn parcel(run: &FlowRun) -> Result<String, kelos::embed::OutputError> {
    ///     Ok(run.output::<Receipt>()?.parcel)
    /// }
    /// ```
    ///
    /// # Errors
    /// When they gave nothing, or something of another type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        output::read_any(&self.slot.to_string(), Some(&self.outputs).filter(|outputs| !outputs.is_empty()))
    }
}

impl StepRun {
    /// Its input as a type.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, StepRun};
    /// #[derive(serde::Deserialize)]
    /// struct Order {
    ///     items: u32,
    /// }
    ///
    /// fn items(step: &StepRun) -> Result<u32, String> {
    ///     Ok(step.input::<Order>()?.items)
    /// }
    /// ```
    ///
    /// # Errors
    /// In words, with the place in the input, when it is of another type.
    pub fn input<T: DeserializeOwned + 'static>(&self) -> Result<T, String> {
        read_inputs(&self.inputs)
    }

    /// Its output as a type. One value that is no object is read as itself.
    ///
    /// ```
    /// # use kelos::embed::{FlowRun, StepRun};
    /// fn total(run: &FlowRun) -> Option<u32> {
    ///     run.step("check")?.output().ok()
    /// }
    /// ```
    ///
    /// # Errors
    /// When it gave nothing, or something of another type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        output::read_any(&self.name, Some(&self.outputs).filter(|outputs| !outputs.is_empty()))
    }
}

/// The key of a run: a name, or the time that it is about.
///
/// # Errors
/// In words, when the text is neither.
pub(super) fn key_of(run: &str) -> Result<SlotKey, String> {
    if let Ok(time) = run.parse::<Timestamp>() {
        return Ok(SlotKey::Time(time));
    }
    match RunName::new(run) {
        Ok(name) => Ok(SlotKey::Named(name)),
        // A run without a name has the key that pages show.
        Err(error) => SlotKey::parse(run).map_err(|_| error.to_string()),
    }
}

/// The slot of a step of a run, or of an item of its list, which is written `load:3`.
///
/// # Errors
/// In words, when the text is neither.
pub(super) fn step_of(run: &SlotRef, text: &str) -> Result<SlotRef, String> {
    let key = StepKey::named(&run.key, text);
    let key = key.ok_or_else(|| "expected the id of a step, or of an item such as load:3".to_owned())?;
    Ok(SlotRef::new(run.workflow.clone(), SlotKey::Step(key)))
}

/// A run as it is stored; none where there is no such run.
pub(super) fn read(reader: &dyn Queries, id: &SlotRef) -> Result<Option<FlowRun>, StoreError> {
    let Some(slot) = reader.slot(id)? else { return Ok(None) };
    let flow = definition(reader, id, &slot)?;
    let since = slot.run_of_flow().map_or(0, |run| run.since_run);
    let mut rows = steps(reader, id)?;
    rows.retain(|row| row.slot.step_of_run().is_some_and(|step| step.run >= since));
    rows.sort_by_key(|row| {
        let key = row.id.key.step();
        let position =
            |flow: &Flow| flow.steps.iter().position(|step| key.is_some_and(|key| key.step() == step.name.as_str()));
        let item = key.and_then(|key| key.item_number());
        (flow.as_ref().and_then(|flow| position(flow)).unwrap_or(usize::MAX), item)
    });
    let is_recovered = |row: &&SlotRow| {
        let failed = matches!(row.slot.state, SlotState::Failed | SlotState::Expired | SlotState::Killed);
        let is_step = row.id.key.step().is_some_and(|key| key.item_number().is_none());
        failed && is_step && row.slot.step_of_run().is_some_and(|step| step.run == slot.last_run)
    };
    let recovered = rows.iter().filter(|_| slot.state == SlotState::Succeeded).filter(is_recovered);
    let recovered = recovered.map(|row| name(&row.id)).collect();
    let last = reader.slot_runs(id)?.pop();
    let steps = rows.into_iter().map(|row| step(reader, row)).collect::<Result<_, _>>()?;
    Ok(Some(FlowRun {
        slot: id.clone(),
        state: slot.state,
        recovered,
        reason: reason(slot.state, last.as_ref()),
        repeats: repeated(id, &slot),
        steps,
        outputs: last.and_then(|run| run.outputs).map(|outputs| (*outputs).clone()).unwrap_or_default(),
    }))
}

/// All slots of the steps of a run, and of the items of their lists.
fn steps(reader: &dyn Queries, run: &SlotRef) -> Result<Vec<SlotRow>, StoreError> {
    let mut rows = Vec::new();
    let mut from = None;
    loop {
        let page = reader.steps(run, PageRequest::newest(PAGE).after(from.as_deref()))?;
        rows.extend(page.rows);
        from = page.next;
        if from.is_none() {
            return Ok(rows);
        }
    }
}

/// The definition that a run follows.
fn definition(reader: &dyn Queries, id: &SlotRef, slot: &Slot) -> Result<Option<std::sync::Arc<Flow>>, StoreError> {
    let Some(number) = slot.run_of_flow().map(|run| run.definition).filter(|number| *number > 0) else {
        return Ok(None);
    };
    let found = reader.definitions(&id.workflow, Some(number))?.pop();
    Ok(found.and_then(|found| found.definition.flow.clone()))
}

/// The step of another run that a run does again.
fn repeated(id: &SlotRef, slot: &Slot) -> Option<SlotRef> {
    let step = slot.run_of_flow()?.repeats.as_ref()?.key()?;
    Some(SlotRef::new(id.workflow.clone(), SlotKey::Step(step)))
}

fn step(reader: &dyn Queries, row: SlotRow) -> Result<StepRun, StoreError> {
    let last = if row.slot.last_run > 0 { reader.slot_runs(&row.id)?.pop() } else { None };
    Ok(StepRun {
        name: name(&row.id),
        state: row.slot.state,
        attempts: row.slot.last_run,
        inputs: row.slot.step_of_run().map(|step| step.inputs.clone()).unwrap_or_default(),
        error: reason(row.slot.state, last.as_ref()),
        outputs: last.and_then(|run| run.outputs).map(|outputs| (*outputs).clone()).unwrap_or_default(),
    })
}

fn name(step: &SlotRef) -> String {
    step.key.step().map_or(String::new(), |key| key.within_run().to_owned())
}

/// The reason for which a slot failed, or for which its next attempt is needed.
fn reason(state: SlotState, last: Option<&Run>) -> Option<String> {
    match state {
        SlotState::Expired => Some("what it waited for did not come in time".to_owned()),
        SlotState::Killed => Some("it was killed".to_owned()),
        SlotState::Failed | SlotState::Backoff => Some(last?.outcome.as_ref()?.to_string()),
        _ => None,
    }
}
