//! Definitions of workflows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::deadline::LocalDeadline;
use kelos_model::flow::{ItemList, SignalWait};
use kelos_model::jobs::JobKeys;
use kelos_model::retry::{Growth, OnUnknown};
use kelos_model::sharing::{Sees, Sends, Share, Shares};
use kelos_model::time::schedule::Schedule;
use kelos_model::time::{Dates, Window, Zone};
use kelos_model::workers::{Label, LossPolicy};
use kelos_model::workflow::{
    About, CatchUp, Contact, EventKeys, Keys, Program, ProjectVersion, Properties, Provenance, Source, WaitStart,
};
use kelos_model::{
    BatchRule, Constraint, Deadline, Flow, FunctionRef, Gate, Job, Otherwise, Parameter, ParameterKind, PoolId,
    PoolUse, RetryPolicy, Step, StepName, TokenRate, Trigger, Workflow, WorkflowId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::jobs::StoredJobKeys;
use super::names::StoredName;
use super::schedule::{StoredDates, StoredSchedule, StoredWindow, StoredZone};
use super::trigger::{StoredFunctionRef, StoredTrigger};
use crate::stored::form::{As, Form, forms, is_false, is_zero, present};

/// How long a slot of an event schedule may wait in old definitions, which could not set it.
const DAY_MILLIS: u64 = 86_400_000;

fn a_day_in_millis() -> u64 {
    DAY_MILLIS
}

/// Reads a limit. Old definitions, in which every workflow had a limit, contain the largest number for none.
fn read_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let limit = Option::<u32>::deserialize(deserializer)?;
    Ok(limit.filter(|limit| *limit < u32::MAX))
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Workflow", rename_all = "camelCase")]
pub(crate) struct StoredWorkflow {
    #[serde(with = "As::<StoredName>")]
    id: WorkflowId,
    project: String,
    #[serde(with = "As::<StoredSource>")]
    source: Source,
    #[serde(with = "As::<StoredKeys>")]
    keys: Keys,
    #[serde(with = "As::<StoredTrigger>")]
    trigger: Trigger,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredConstraint>>")]
    constraints: Vec<Constraint>,
    #[serde(deserialize_with = "read_limit")]
    concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredBatchRule>>")]
    batch: Option<BatchRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredPoolUse>>")]
    pools: Vec<PoolUse>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredPoolUse>>")]
    within: Vec<PoolUse>,
    #[serde(with = "As::<StoredRetryPolicy>")]
    retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredCatchUp>>")]
    catch_up: Option<CatchUp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait_timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "WaitStart::is_time", with = "As::<StoredWaitStart>")]
    wait_from: WaitStart,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredDeadline>>")]
    deadline: Option<Deadline>,
    #[serde(with = "As::<StoredJob>")]
    job: Job,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Arc<StoredFlow>>>")]
    flow: Option<Arc<Flow>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredParameter>>")]
    parameters: Vec<Parameter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredName>>")]
    version: Option<ProjectVersion>,
    #[serde(default, skip_serializing_if = "About::is_empty", with = "As::<StoredAbout>")]
    about: About,
    #[serde(default, skip_serializing_if = "Shares::is_empty", with = "As::<StoredShares>")]
    shares: Shares,
}

/// The declaration of a project, by the name of the other project.
#[derive(Serialize, Deserialize)]
struct StoredShares(BTreeMap<Arc<str>, StoredShare>);

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct StoredShare {
    #[serde(skip_serializing_if = "StoredNames::is_empty")]
    sees: StoredNames,
    #[serde(skip_serializing_if = "StoredNames::is_empty")]
    sends: StoredNames,
}

/// Names by what they are names of.
type StoredNames = BTreeMap<String, BTreeSet<Arc<str>>>;

impl Form<Shares> for StoredShares {
    fn write<S: Serializer>(value: &Shares, serializer: S) -> Result<S::Ok, S::Error> {
        let names = |all: &[(&str, &BTreeSet<Arc<str>>)]| -> StoredNames {
            let some = all.iter().filter(|(_, names)| !names.is_empty());
            some.map(|(field, names)| ((*field).to_owned(), (*names).clone())).collect()
        };
        let shared = |(project, Share { sees, sends }): (&str, &Share)| {
            let Sees { runs, datasets, signals, registers } = sees;
            let sees = names(&[("runs", runs), ("datasets", datasets), ("signals", signals), ("registers", registers)]);
            let Sends { starts, ends, datasets, signals } = sends;
            let sends = names(&[("starts", starts), ("ends", ends), ("datasets", datasets), ("signals", signals)]);
            (Arc::from(project), StoredShare { sees, sends })
        };
        StoredShares(value.iter().map(shared).collect()).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Shares, D::Error> {
        let shared = |(project, StoredShare { mut sees, mut sends }): (Arc<str>, StoredShare)| {
            let mut seen = |field: &str| sees.remove(field).unwrap_or_default();
            let sees = Sees {
                runs: seen("runs"),
                datasets: seen("datasets"),
                signals: seen("signals"),
                registers: seen("registers"),
            };
            let mut sent = |field: &str| sends.remove(field).unwrap_or_default();
            let sends = Sends {
                starts: sent("starts"),
                ends: sent("ends"),
                datasets: sent("datasets"),
                signals: sent("signals"),
            };
            (project, Share { sees, sends })
        };
        Ok(StoredShares::deserialize(deserializer)?.0.into_iter().map(shared).collect())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Parameter", rename_all = "camelCase")]
struct StoredParameter {
    name: String,
    #[serde(flatten, with = "As::<StoredParameterKind>")]
    kind: ParameterKind,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ParameterKind", tag = "type", rename_all = "kebab-case")]
enum StoredParameterKind {
    Text,
    Integer,
    Number,
    Boolean,
    Date,
    Time,
    Choice { choices: Vec<String> },
    Json,
}

/// A deadline: a length of time as its text, or a time of the day.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredDeadline {
    After(String),
    At(StoredLocalDeadline),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredLocalDeadline {
    at: String,
    #[serde(with = "As::<StoredZone>")]
    zone: Zone,
    #[serde(default, skip_serializing_if = "is_zero")]
    days: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    business_days: bool,
    #[serde(default, skip_serializing_if = "Dates::is_empty", with = "As::<StoredDates>")]
    holidays: Dates,
}

impl Form<Deadline> for StoredDeadline {
    fn write<S: Serializer>(value: &Deadline, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match value {
            Deadline::After(_) => StoredDeadline::After(value.to_string()),
            Deadline::At(local) => StoredDeadline::At(StoredLocalDeadline {
                at: local.time().to_owned(),
                zone: local.zone().clone(),
                days: local.days(),
                business_days: local.is_by_business_days(),
                holidays: local.holidays().clone(),
            }),
        };
        form.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Deadline, D::Error> {
        let read = match StoredDeadline::deserialize(deserializer)? {
            StoredDeadline::After(text) => Deadline::of_text(&text),
            StoredDeadline::At(StoredLocalDeadline { at, zone, days, business_days, holidays }) => {
                LocalDeadline::new(&at, zone)
                    .and_then(|one| match business_days {
                        true => one.business_days_later(days, &holidays),
                        false => one.days_later(days),
                    })
                    .map(Deadline::At)
            }
        };
        read.map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WaitStart", rename_all = "kebab-case")]
enum StoredWaitStart {
    Time,
    Opening,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "BatchRule", rename_all = "camelCase")]
struct StoredBatchRule {
    size: u32,
    #[serde(default)]
    delay_millis: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PoolUse", rename_all = "camelCase")]
pub(super) struct StoredPoolUse {
    #[serde(with = "As::<StoredName>")]
    pool: PoolId,
    size: u32,
    permits: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredTokenRate>>")]
    rate: Option<TokenRate>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TokenRate", rename_all = "camelCase")]
struct StoredTokenRate {
    tokens: u32,
    millis: u64,
    burst: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Provenance", rename_all = "kebab-case")]
enum StoredProvenance {
    File,
    Api,
    Code,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Keys", rename_all = "camelCase")]
enum StoredKeys {
    Schedule(#[serde(with = "As::<StoredSchedule>")] Schedule),
    Jobs(#[serde(with = "As::<Box<StoredJobKeys>>")] Box<JobKeys>),
    Events(#[serde(with = "As::<Box<StoredEventKeys>>")] Box<EventKeys>),
    Requests(#[serde(with = "As::<Box<StoredProgram>>")] Box<Program>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EventKeys", rename_all = "camelCase")]
struct StoredEventKeys {
    name: String,
    #[serde(with = "As::<StoredName>")]
    program: WorkflowId,
    #[serde(default = "a_day_in_millis")]
    timeout_millis: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    jitter_millis: u64,
    #[serde(default, with = "As::<StoredCatchUp>")]
    catch_up: CatchUp,
    #[serde(default, skip_serializing_if = "is_false")]
    enabled: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CatchUp", rename_all = "kebab-case")]
enum StoredCatchUp {
    Skip,
    Latest,
    All,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Program", rename_all = "camelCase")]
struct StoredProgram {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Job", rename_all = "camelCase")]
pub(super) struct StoredJob {
    executor: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    settings: Map<String, Value>,
    #[serde(default, with = "As::<StoredProperties>")]
    properties: Properties,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty", with = "As::<BTreeSet<StoredName>>")]
    runs_on: BTreeSet<Label>,
    #[serde(default, skip_serializing_if = "LossPolicy::is_default", with = "As::<StoredLossPolicy>")]
    on_lost: LossPolicy,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LossPolicy", rename_all = "kebab-case")]
enum StoredLossPolicy {
    Retry,
    End,
    Wait(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Properties", rename_all = "camelCase")]
enum StoredProperties {
    Fixed(Map<String, Value>),
    Function(#[serde(with = "As::<StoredFunctionRef>")] FunctionRef),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "About", rename_all = "camelCase")]
struct StoredAbout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredContact>>")]
    contacts: Vec<Contact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Contact")]
struct StoredContact {
    name: Option<String>,
    email: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Constraint", rename_all = "camelCase")]
struct StoredConstraint {
    #[serde(with = "As::<StoredGate>")]
    gate: Gate,
    #[serde(with = "As::<StoredOtherwise>")]
    otherwise: Otherwise,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Gate", rename_all = "camelCase")]
enum StoredGate {
    Concurrency(u32),
    Delay(u64),
    Window(#[serde(with = "As::<StoredWindow>")] Window),
    SinceLastRun(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Otherwise", rename_all = "kebab-case")]
enum StoredOtherwise {
    Wait,
    Abort,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RetryPolicy", rename_all = "camelCase")]
pub(super) struct StoredRetryPolicy {
    #[serde(default)]
    count: u32,
    #[serde(default)]
    delay_seconds: u64,
    #[serde(default, with = "As::<StoredGrowth>")]
    growth: Growth,
    #[serde(default)]
    cap_seconds: Option<u64>,
    #[serde(default)]
    jitter_percent: u8,
    #[serde(default, with = "As::<StoredOnUnknown>")]
    on_unknown: OnUnknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Growth", rename_all = "kebab-case")]
enum StoredGrowth {
    Fixed,
    Exponential,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "OnUnknown", rename_all = "kebab-case")]
enum StoredOnUnknown {
    Retry,
    Fail,
    Again,
}

/// A source: without its provenance if the file implies it.
#[derive(Serialize, Deserialize)]
struct StoredSource {
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredProvenance>>")]
    provenance: Option<Provenance>,
    file: String,
    line: u32,
}

/// The provenance of a source that was stored without one: a definition without a file was created by a request.
fn provenance_of_old(file: &str) -> Provenance {
    if file.is_empty() { Provenance::Api } else { Provenance::File }
}

impl Form<Source> for StoredSource {
    fn write<S: Serializer>(value: &Source, serializer: S) -> Result<S::Ok, S::Error> {
        let Source { provenance, file, line } = value.clone();
        let provenance = Some(provenance).filter(|one| *one != provenance_of_old(&file));
        StoredSource { provenance, file, line }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Source, D::Error> {
        let StoredSource { provenance, file, line } = StoredSource::deserialize(deserializer)?;
        Ok(Source { provenance: provenance.unwrap_or_else(|| provenance_of_old(&file)), file, line })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Flow", rename_all = "camelCase")]
struct StoredFlow {
    #[serde(with = "As::<Vec<StoredStep>>")]
    steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Step", rename_all = "camelCase")]
struct StoredStep {
    #[serde(with = "As::<StoredName>")]
    name: StepName,
    #[serde(with = "As::<StoredJob>")]
    job: Job,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredName>>")]
    needs: Vec<StepName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredName>>")]
    handles: Vec<StepName>,
    #[serde(default, skip_serializing_if = "is_false")]
    at_once: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredItemList>>")]
    for_each: Option<ItemList>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredSignalWait>>")]
    signal: Option<SignalWait>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    inputs: Map<String, Value>,
    #[serde(with = "As::<StoredRetryPolicy>")]
    retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredPoolUse>>")]
    pools: Vec<PoolUse>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredPoolUse>>")]
    within: Vec<PoolUse>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    signals: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ItemList", rename_all = "camelCase")]
struct StoredItemList {
    input: String,
    most: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SignalWait", rename_all = "camelCase")]
struct StoredSignalWait {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within_seconds: Option<u64>,
}

forms! {
    StoredFlow of Flow,
    StoredStep of Step,
    StoredItemList of ItemList,
    StoredSignalWait of SignalWait,
    StoredWorkflow of Workflow,
    StoredParameter of Parameter,
    StoredParameterKind of ParameterKind,
    StoredBatchRule of BatchRule,
    StoredPoolUse of PoolUse,
    StoredTokenRate of TokenRate,
    StoredWaitStart of WaitStart,
    StoredProvenance of Provenance,
    StoredKeys of Keys,
    StoredEventKeys of EventKeys,
    StoredCatchUp of CatchUp,
    StoredProgram of Program,
    StoredJob of Job,
    StoredProperties of Properties,
    StoredAbout of About,
    StoredContact of Contact,
    StoredConstraint of Constraint,
    StoredGate of Gate,
    StoredOtherwise of Otherwise,
    StoredRetryPolicy of RetryPolicy,
    StoredGrowth of Growth,
    StoredLossPolicy of LossPolicy,
    StoredOnUnknown of OnUnknown,
}
