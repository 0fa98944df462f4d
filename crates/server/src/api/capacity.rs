//! What runs need that there is not enough of: who holds it, who waits.

use axum::Json;
use axum::extract::State;
use kelos_core::{Capacity, FullWorkflow, Holder, InspectCapacity, PoolState, Waiter};
use kelos_engine::AskError;
use kelos_model::Actor;
use serde::Serialize;
use utoipa::ToSchema;

use super::dto::{Instant, job, time};
use super::extract::{NoParameters, Query};
use crate::app::App;
use crate::problem::Problem;

/// What runs need that there is not enough of.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CapacityDto {
    /// The limit on the live runs of all workflows.
    runs: AllRunsDto,
    /// All pools that definitions name, or whose permits are held.
    pools: Vec<PoolDto>,
    /// Workflows with queued slots whose own concurrency is used up, most queued first.
    workflows: Vec<FullWorkflowDto>,
    /// How many more workflows are.
    more_workflows: usize,
}

/// The limit on the live runs of all workflows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AllRunsDto {
    /// The limit.
    limit: u32,
    /// How many runs are alive.
    held: u32,
    /// The workflows that have them, most first.
    holders: Vec<WorkflowRunsDto>,
    /// How many more workflows have some.
    more_holders: usize,
    /// Queued slots of workflows that only this limit holds back.
    queued: u64,
    /// The next slots of the first of these workflows, in the order of their turns.
    first: Vec<WaiterDto>,
}

/// The live runs of a workflow.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WorkflowRunsDto {
    /// Its id.
    workflow: String,
    /// How many.
    runs: u32,
}

/// A named number of permits that runs of several workflows share.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PoolDto {
    /// Its name.
    name: String,
    /// How many permits it has; none once no definition names it.
    size: Option<u32>,
    /// Whether definitions give it different sizes, so that the smallest holds.
    disputed: bool,
    /// How many permits are held.
    held: u64,
    /// The runs that hold them.
    holders: Vec<HolderDto>,
    /// How many more runs do.
    more_holders: u64,
    /// Queued slots of the workflows that stand in its line.
    queued: u64,
    /// When the one that has waited longest, of the slots that go next, was queued.
    oldest_since: Option<Instant>,
    /// The next slots of the first workflows in its line.
    first: Vec<WaiterDto>,
}

/// A run that holds permits.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HolderDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// The number of the run.
    run: u32,
    /// How many permits.
    permits: u32,
    /// When it was dispatched.
    since: Instant,
}

/// A queued slot, the next of its workflow.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WaiterDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// How many permits its run takes.
    permits: u32,
    /// Larger goes first.
    priority: i32,
    /// When it was queued.
    since: Instant,
    /// Queued slots of the same workflow that go after it.
    behind: u64,
}

/// A workflow with queued slots whose concurrency is used up.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FullWorkflowDto {
    /// Its id.
    workflow: String,
    /// How many of its slots may run at a time.
    concurrency: u32,
    /// How many run.
    held: u32,
    /// How many are queued.
    queued: u64,
    /// The one that goes next.
    first: WaiterDto,
}

impl From<Capacity> for CapacityDto {
    fn from(found: Capacity) -> CapacityDto {
        let holder =
            |(workflow, runs): (kelos_model::WorkflowId, u32)| WorkflowRunsDto { workflow: workflow.to_string(), runs };
        CapacityDto {
            runs: AllRunsDto {
                limit: found.limit,
                held: found.running,
                holders: found.runs.into_iter().map(holder).collect(),
                more_holders: found.more_runs,
                queued: found.queued,
                first: found.first.into_iter().map(WaiterDto::from).collect(),
            },
            pools: found.pools.into_iter().map(PoolDto::from).collect(),
            workflows: found.full.into_iter().map(FullWorkflowDto::from).collect(),
            more_workflows: found.more_full,
        }
    }
}

impl From<PoolState> for PoolDto {
    fn from(pool: PoolState) -> PoolDto {
        PoolDto {
            name: pool.pool.to_string(),
            size: pool.size,
            disputed: pool.is_disputed,
            held: pool.held,
            holders: pool.holders.into_iter().map(HolderDto::from).collect(),
            more_holders: pool.more_holders,
            queued: pool.queued,
            oldest_since: pool.oldest_since.map(Instant),
            first: pool.first.into_iter().map(WaiterDto::from).collect(),
        }
    }
}

impl From<Holder> for HolderDto {
    fn from(holder: Holder) -> HolderDto {
        let slot = holder.run.slot;
        HolderDto {
            workflow: slot.workflow.to_string(),
            time: time(&slot.key),
            job: job(&slot.key),
            run: holder.run.number,
            permits: holder.permits,
            since: holder.since.into(),
        }
    }
}

impl From<Waiter> for WaiterDto {
    fn from(waiter: Waiter) -> WaiterDto {
        WaiterDto {
            workflow: waiter.slot.workflow.to_string(),
            time: time(&waiter.slot.key),
            job: job(&waiter.slot.key),
            permits: waiter.permits,
            priority: waiter.priority,
            since: waiter.since.into(),
            behind: waiter.behind,
        }
    }
}

impl From<FullWorkflow> for FullWorkflowDto {
    fn from(full: FullWorkflow) -> FullWorkflowDto {
        FullWorkflowDto {
            workflow: full.workflow.to_string(),
            concurrency: full.concurrency,
            held: full.active,
            queued: full.queued,
            first: full.first.into(),
        }
    }
}

/// Asks the scheduler: only its memory knows who stands in which line.
pub(crate) async fn ask(app: &App) -> Result<Capacity, AskError> {
    app.ask(&Actor::system("server"), InspectCapacity).await
}

/// Tells who holds the places for all runs, the permits of each pool and those of workflows at their limit, and who waits.
#[utoipa::path(get, path = "/capacity", tag = "server", responses(
    (status = 200, description = "Who holds what, and who waits", body = CapacityDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn capacity(_: Query<NoParameters>, State(app): State<App>) -> Result<Json<CapacityDto>, Problem> {
    Ok(Json(ask(&app).await?.into()))
}
