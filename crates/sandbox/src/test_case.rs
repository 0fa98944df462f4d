//! A test as its file describes it: plain data, checked by the prelude of test files.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::backfill::BackfillMode;
use kelos_model::{Arguments, RunState, SlotRef, SlotState, WorkflowId};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A test of a file.
#[derive(Debug, Clone)]
pub struct TestCase {
    /// Its name, unique in the file.
    pub name: String,
    /// Line of the call that made it, from 1; 0 where unknown.
    pub line: u32,
    /// The preconditions and expectations.
    pub plan: TestPlan,
}

/// A function of a test, to be called by its place in the file.
pub type TestFunction = u32;

/// The preconditions and expectations of a test.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestPlan {
    /// The clock starts here; slots are from here on.
    pub from: Timestamp,
    /// Slots are before this moment, and the clock stops here.
    pub until: Timestamp,
    /// How much longer the clock runs, in milliseconds.
    #[serde(default)]
    pub settle_ms: u64,
    /// The workflows that are scheduled; none means all.
    pub workflows: Option<Vec<WorkflowId>>,
    /// Workflows whose triggers are taken to be met.
    #[serde(default)]
    pub met: Vec<WorkflowId>,
    /// The slots before the start.
    #[serde(default)]
    pub before: Before,
    /// The inputs from outside.
    pub inputs: Vec<TestInput>,
    /// Bucket, key and value of each register at the start.
    #[serde(default)]
    pub registers: Vec<(String, String, Value)>,
    /// The outcomes of runs, by workflow; `*` matches all others.
    pub runs: Vec<(String, Fake)>,
    /// The actions of people.
    pub actions: Vec<TestAction>,
    /// Live runs of all workflows together.
    pub max_running: Option<u32>,
    /// The executors of the runs.
    #[serde(default)]
    pub executors: TestExecutors,
    /// Paths of the project that real commands need.
    #[serde(default)]
    pub copy: Vec<String>,
    /// The expected results.
    pub expect: Expectations,
}

/// The slots before the start of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// All have succeeded.
    #[default]
    Succeeded,
    /// There are none.
    Nothing,
}

/// The executors of a test's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestExecutors {
    /// No executor: the test gives the outcomes.
    #[default]
    Fake,
    /// The executors of a server, but for workflows whose outcomes the test gives.
    Real,
}

/// One path, or one for each of some slots.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestPaths {
    /// The path, a template with `each`.
    pub path: Option<String>,
    /// The function that returns the path for a slot; it replaces the path.
    pub path_function: Option<TestFunction>,
    /// A workflow, or a cron expression.
    pub each: Option<String>,
    /// Times that are left out.
    #[serde(default)]
    pub except: Vec<Timestamp>,
    /// The only times; none means all.
    pub only: Option<Vec<Timestamp>>,
}

/// Something that comes from outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestInput {
    /// The paths.
    #[serde(flatten)]
    pub paths: TestPaths,
    /// The time at which it appears; none means from the start.
    pub at: Option<Timestamp>,
    /// The time after the slot's time at which it appears, in milliseconds.
    #[serde(default)]
    pub after_ms: u64,
    /// The function that returns that delay; it replaces it.
    pub after_function: Option<TestFunction>,
    /// The time at which it disappears.
    pub gone_at: Option<Timestamp>,
    /// The time between its appearance and its disappearance, in milliseconds.
    pub gone_after_ms: Option<u64>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Its content.
    pub content: Option<String>,
    /// A file or folder beside the test that it is a copy of.
    pub from: Option<String>,
}

/// The outcomes of the runs of a workflow.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fake {
    /// The n-th of a slot's runs, the last for all further ones.
    Runs(Vec<FakeRun>),
    /// A function that returns the outcome of each run.
    Function(TestFunction),
}

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FakeRun {
    /// Its duration in milliseconds.
    pub takes_ms: Option<u64>,
    /// The first so many runs of the slot fail.
    pub fails: u32,
    /// The reason of a failure.
    pub reason: Option<String>,
    /// Whether the outcome can't be known.
    pub unknown: bool,
    /// It never ends.
    pub hangs: bool,
    /// The files that it writes if it succeeds.
    pub writes: Vec<FakeWrite>,
    /// Its outputs; of a step that waits for a signal what the signal says.
    pub gives: Option<Map<String, Value>>,
}

/// A path that a made-up run writes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FakeWrite {
    /// The path, a template.
    pub path: String,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Its content.
    pub content: Option<String>,
}

/// Something that people do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestAction {
    /// The time of the action.
    pub at: Timestamp,
    /// The reason that is recorded.
    pub reason: Option<String>,
    /// The action.
    #[serde(flatten)]
    pub what: TestVerb,
}

/// An action that people can take in a test.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the requests of the same names")]
pub enum TestVerb {
    /// Open a slot again.
    Rerun { slot: SlotRef },
    /// End a slot.
    Kill { slot: SlotRef },
    /// Leave a workflow alone.
    Pause { workflow: WorkflowId },
    /// Start a workflow, as a run of a name, or only a step of a run of a flow that has ended.
    Start {
        workflow: WorkflowId,
        step: Option<SlotRef>,
        name: Option<String>,
        #[serde(default)]
        arguments: Arguments,
    },
    /// Give a signal to a run of a flow.
    Signal {
        slot: SlotRef,
        signal: String,
        #[serde(default)]
        payload: Value,
    },
    /// End a pause.
    Resume { workflow: WorkflowId },
    /// Open the slots of a range.
    Backfill { workflow: WorkflowId, from: Timestamp, until: Timestamp, mode: BackfillMode },
    /// Set a register, or delete it.
    SetRegister { bucket: String, key: String, value: Option<Value> },
}

/// The expected results of a test.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expectations {
    /// The number of slots of a workflow in each state.
    pub slots: Vec<(WorkflowId, ExpectedCounts)>,
    /// The states of single slots.
    pub states: Vec<ExpectedState>,
    /// The paths that exist.
    pub outputs: Vec<TestPaths>,
    /// The paths that don't exist.
    pub missing: Vec<TestPaths>,
    /// The parameters and outcomes of single runs.
    pub runs: Vec<ExpectedRun>,
    /// The most runs of a workflow that are live at once.
    pub most_at_once: Vec<(WorkflowId, u32)>,
    /// The files that real commands wrote.
    pub files: Vec<(String, ExpectedFile)>,
    /// A function that returns an error message.
    pub check: Option<TestFunction>,
}

/// The states of a workflow's slots.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpectedCounts {
    /// All are in one state.
    All(SlotState),
    /// So many in each; none in others.
    Counts(BTreeMap<SlotState, u64>),
}

/// The expected state of a slot.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedState {
    /// The slot.
    pub slot: SlotRef,
    /// Its state.
    pub state: SlotState,
    /// Whether it has to have recovered from failures of steps.
    #[serde(default)]
    pub recovered: bool,
    /// A part of the reason.
    pub because: Option<String>,
}

/// A run, and what is expected of it.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedRun {
    /// The slot of the run.
    pub slot: SlotRef,
    /// The number of the run; none means the latest.
    pub number: Option<u32>,
    /// The state of the run.
    pub state: Option<RunState>,
    /// Settings of the job, besides others.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Properties of the job, besides others.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Inputs of a step, or arguments, besides others.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Its outputs, besides others.
    #[serde(default)]
    pub gives: Map<String, Value>,
}

/// The expected file or folder.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedFile {
    /// The file or folder beside the test.
    pub like: String,
    /// The method of comparison.
    pub compare: Compare,
}

/// A method of comparing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Compare {
    /// Byte by byte.
    #[serde(rename = "bytes")]
    Bytes,
    /// As JSON, line by line, in any order.
    #[serde(rename = "json lines")]
    JsonLines,
}
