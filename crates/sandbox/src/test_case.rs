//! A test as its file says it: plain data, checked by the prelude of test files.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::backfill::BackfillMode;
use kelos_model::{RunState, SlotRef, SlotState, WorkflowId};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A test of a file.
#[derive(Debug, Clone)]
pub struct TestCase {
    /// Its name, unique in the file.
    pub name: String,
    /// Line of the call that made it, from 1; 0 where unknown.
    pub line: u32,
    /// What is supposed, and what is expected of it.
    pub plan: TestPlan,
}

/// A function of a test, to be called by its place in the file.
pub type TestFunction = u32;

/// What a test supposes and expects.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestPlan {
    /// The clock starts here; slots are from here on.
    pub from: Timestamp,
    /// Slots are before this moment, and the clock stops here.
    pub until: Timestamp,
    /// How much longer the clock goes on.
    #[serde(default)]
    pub settle_ms: u64,
    /// Who takes part; none means all workflows.
    pub workflows: Option<Vec<WorkflowId>>,
    /// Workflows whose triggers are taken to be met.
    #[serde(default)]
    pub met: Vec<WorkflowId>,
    /// What lies before the start.
    #[serde(default)]
    pub before: Before,
    /// What comes from outside.
    pub inputs: Vec<TestInput>,
    /// Bucket, key and value of each register at the start.
    #[serde(default)]
    pub registers: Vec<(String, String, Value)>,
    /// What becomes of runs, by workflow; `*` stands for all others.
    pub runs: Vec<(String, Fake)>,
    /// What people do.
    pub actions: Vec<TestAction>,
    /// Live runs of all workflows together.
    pub max_running: Option<u32>,
    /// Who does the runs.
    #[serde(default)]
    pub executors: TestExecutors,
    /// Paths of the project that real commands need.
    #[serde(default)]
    pub copy: Vec<String>,
    /// What is to come of it.
    pub expect: Expectations,
}

/// What is supposed of slots before a test's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// All have succeeded.
    #[default]
    Succeeded,
    /// There are none.
    Nothing,
}

/// Who does the runs of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestExecutors {
    /// Nobody: the test says what becomes of them.
    #[default]
    Fake,
    /// The executors of a server, but for workflows of which the test says what becomes.
    Real,
}

/// One path, or one for each of some slots.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestPaths {
    /// The path, a template with `each`.
    pub path: Option<String>,
    /// The function that tells the path of a slot, in its place.
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
    /// Where.
    #[serde(flatten)]
    pub paths: TestPaths,
    /// When; none means from the start.
    pub at: Option<Timestamp>,
    /// How long after the slot's time.
    #[serde(default)]
    pub after_ms: u64,
    /// The function that tells that, in its place.
    pub after_function: Option<TestFunction>,
    /// When it vanishes.
    pub gone_at: Option<Timestamp>,
    /// How long after it came it vanishes.
    pub gone_after_ms: Option<u64>,
    /// How large it is, in bytes.
    pub size: Option<u64>,
    /// What is in it.
    pub content: Option<String>,
    /// A file or folder beside the test that it is a copy of.
    pub from: Option<String>,
}

/// What becomes of the runs of a workflow.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fake {
    /// The n-th of a slot's runs, the last for all further ones.
    Runs(Vec<FakeRun>),
    /// A function of the run says it.
    Function(TestFunction),
}

/// What becomes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FakeRun {
    /// How long it takes.
    pub takes_ms: Option<u64>,
    /// The first so many runs of the slot fail.
    pub fails: u32,
    /// Why.
    pub reason: Option<String>,
    /// Nobody can tell how it ended.
    pub unknown: bool,
    /// It never ends.
    pub hangs: bool,
    /// What it leaves behind when it succeeds.
    pub writes: Vec<FakeWrite>,
}

/// A path that a made-up run writes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FakeWrite {
    /// A template.
    pub path: String,
    /// How large it is, in bytes.
    pub size: Option<u64>,
    /// What is in it.
    pub content: Option<String>,
}

/// Something that people do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestAction {
    /// When.
    pub at: Timestamp,
    /// Why, in their words.
    pub reason: Option<String>,
    /// What.
    #[serde(flatten)]
    pub what: TestVerb,
}

/// What people can do in a test.
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
    /// End a pause.
    Resume { workflow: WorkflowId },
    /// Open the slots of a range.
    Backfill { workflow: WorkflowId, from: Timestamp, until: Timestamp, mode: BackfillMode },
    /// Set a register, or delete it.
    SetRegister { bucket: String, key: String, value: Option<Value> },
}

/// What is to come of a test.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expectations {
    /// How many slots of a workflow are in each state.
    pub slots: Vec<(WorkflowId, ExpectedCounts)>,
    /// Where single slots stand.
    pub states: Vec<ExpectedState>,
    /// What is there.
    pub outputs: Vec<TestPaths>,
    /// What is not.
    pub missing: Vec<TestPaths>,
    /// What single runs were given, and became of them.
    pub runs: Vec<ExpectedRun>,
    /// How many runs of a workflow are alive at once, at the most.
    pub most_at_once: Vec<(WorkflowId, u32)>,
    /// What real commands wrote.
    pub files: Vec<(String, ExpectedFile)>,
    /// A function that says what is wrong.
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

/// Where a slot stands.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedState {
    /// Which.
    pub slot: SlotRef,
    /// Its state.
    pub state: SlotState,
    /// A part of the reason.
    pub because: Option<String>,
}

/// A run, and what is expected of it.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedRun {
    /// Whose.
    pub slot: SlotRef,
    /// Which; none means the latest.
    pub number: Option<u32>,
    /// Where it stands.
    pub state: Option<RunState>,
    /// Settings of the job, besides others.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Properties of the job, besides others.
    #[serde(default)]
    pub properties: Map<String, Value>,
}

/// What a file or folder is to be like.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedFile {
    /// The file or folder beside the test.
    pub like: String,
    /// How they are compared.
    pub compare: Compare,
}

/// How files are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Compare {
    /// Byte by byte.
    #[serde(rename = "bytes")]
    Bytes,
    /// As JSON, line by line, in any order.
    #[serde(rename = "json lines")]
    JsonLines,
}
