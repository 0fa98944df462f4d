//! A workflow as the prelude describes it, and its conversion to a definition.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::constraint::Constraint;
use kelos_model::flow::Flow;
use kelos_model::nesting;
use kelos_model::parameter::Parameters;
use kelos_model::project::of_script;
use kelos_model::sharing::Shares;
use kelos_model::time::{Calendar, Cron, CronSchedule, Fold, Gap, Schedule, Zone};
use kelos_model::workflow::{About, CatchUp, Keys, Program, ProjectVersion, Source, WaitStart};
use kelos_model::{BatchRule, Deadline, Job, PoolUse, RetryPolicy, Trigger, Workflow, WorkflowId};
use serde::Deserialize;
use serde_json::Value;

/// A workflow as the prelude writes it: everything is checked already, but for what Rust alone can read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Draft {
    pub(crate) id: WorkflowId,
    /// Its schedule; none where only requests and event schedules begin runs.
    #[serde(default)]
    schedule: Option<ScheduleDraft>,
    concurrency: u32,
    #[serde(default)]
    batch: Option<BatchRule>,
    #[serde(default)]
    pools: Vec<PoolUse>,
    trigger: Trigger,
    #[serde(default)]
    constraints: Vec<ConstraintDraft>,
    job: Job,
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    flow: Option<FlowDraft>,
    #[serde(default)]
    start_time: Option<i64>,
    #[serde(default)]
    end_time: Option<i64>,
    #[serde(default)]
    catch_up: Option<CatchUp>,
    retry: RetryPolicy,
    #[serde(default)]
    wait_timeout_seconds: Option<u64>,
    #[serde(default)]
    wait_timeout_from: WaitStart,
    #[serde(default)]
    deadline: Option<Deadline>,
    #[serde(default)]
    writes: Vec<String>,
    #[serde(default)]
    version: Option<ProjectVersion>,
    about: About,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ScheduleDraft {
    Dependent {
        dependent: WorkflowId,
    },
    Calendar {
        calendar: Calendar,
    },
    Cron {
        expression: String,
        zone: Option<String>,
        #[serde(default)]
        gap: Gap,
        #[serde(default)]
        fold: Fold,
    },
}

impl ScheduleDraft {
    fn schedule(self) -> Result<Schedule, String> {
        Ok(match self {
            ScheduleDraft::Dependent { dependent } => Schedule::Dependent(dependent),
            ScheduleDraft::Calendar { calendar } => Schedule::Calendar(calendar),
            ScheduleDraft::Cron { expression, zone, gap, fold } => {
                let cron = Cron::parse(&expression).map_err(|error| error.to_string())?;
                let zone = zone.map_or_else(|| Ok(Zone::utc()), |name| Zone::parse(&name));
                let zone = zone.map_err(|error| error.to_string())?;
                Schedule::Cron(CronSchedule::new(cron, zone, gap, fold))
            }
        })
    }
}

impl Draft {
    pub(crate) fn parse(json: &str) -> Result<Draft, String> {
        nesting::read(json.as_bytes()).map_err(|error| error.to_string())
    }

    /// The workflow, defined in `line` of `file`.
    pub(crate) fn workflow(self, file: &str, line: u32) -> Result<Workflow, String> {
        let start_time = self.start_time.map(Timestamp::from_millisecond).transpose();
        let end_time = self.end_time.map(Timestamp::from_millisecond).transpose();
        let start_time = start_time.map_err(|error| format!("startTime: {error}"))?;
        let end_time = end_time.map_err(|error| format!("endTime: {error}"))?;
        if end_time.is_some_and(|end| start_time.is_some_and(|start| end <= start)) {
            return Err(format!("\"{}\" ends before it starts: expected an endTime after the startTime", self.id));
        }
        let keys = match self.schedule {
            Some(schedule) => Keys::Schedule(schedule.schedule()?),
            None => Keys::Requests(Box::new(Program { name: self.id.to_string(), kind: None })),
        };
        Ok(Workflow {
            id: self.id,
            project: of_script(file).to_owned(),
            source: Source::file(file, line),
            keys,
            trigger: self.trigger,
            constraints: self.constraints.into_iter().map(ConstraintDraft::constraint).collect(),
            concurrency: Some(self.concurrency),
            batch: self.batch,
            pools: ascending(self.pools),
            within: Vec::new(),
            retry: self.retry,
            start_time,
            end_time,
            catch_up: self.catch_up,
            wait_timeout_seconds: self.wait_timeout_seconds,
            wait_from: self.wait_timeout_from,
            deadline: self.deadline,
            job: self.job,
            flow: self.flow.map(FlowDraft::flow),
            parameters: self.parameters.0,
            writes: self.writes,
            version: self.version,
            about: self.about,
            shares: Shares::default(),
        })
    }
}

pub(crate) fn ascending(mut pools: Vec<PoolUse>) -> Vec<PoolUse> {
    pools.sort_by(|a, b| a.pool.cmp(&b.pool));
    pools
}

/// A flow as the prelude writes it: in the JSON form of the model, with the pools of its steps in any order.
#[derive(Debug, Deserialize)]
#[serde(from = "Flow")]
pub struct FlowDraft(Arc<Flow>);

impl FlowDraft {
    /// The flow.
    #[must_use]
    pub fn flow(self) -> Arc<Flow> {
        self.0
    }
}

impl From<Flow> for FlowDraft {
    fn from(mut flow: Flow) -> FlowDraft {
        for step in &mut flow.steps {
            step.pools = ascending(std::mem::take(&mut step.pools));
        }
        FlowDraft(Arc::new(flow))
    }
}

/// A constraint as the prelude writes it: in the JSON form of the model, where the consequence may be left out.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub struct ConstraintDraft(Constraint);

impl ConstraintDraft {
    /// The constraint.
    #[must_use]
    pub fn constraint(self) -> Constraint {
        self.0
    }
}

impl TryFrom<Value> for ConstraintDraft {
    type Error = String;

    fn try_from(json: Value) -> Result<ConstraintDraft, String> {
        // The message names the script's own call, so no path is added here.
        let read = Constraint::from_json(&json, &Zone::utc(), "constraint");
        read.map(ConstraintDraft).map_err(|error| error.problem)
    }
}
