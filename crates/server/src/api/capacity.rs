//! Capacity: the holders of places and permits, and the slots that wait for them.

use axum::Json;
use kelos_core::{Capacity, FullWorkflow, Holder, PoolState, RateState, Waiter};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_wire::{
    AllRunsDto, CapacityDto, FullWorkflowDto, HolderDto, Instant, PoolDto, ProblemDetailsDto, RateStateDto, WaiterDto,
    WorkflowRunsDto,
};

use super::dto::FromLibrary;
use super::extract::{NoParameters, Query};

impl FromLibrary<Capacity> for CapacityDto {
    fn from_library(found: Capacity) -> CapacityDto {
        let holder =
            |(workflow, runs): (kelos_model::WorkflowId, u32)| WorkflowRunsDto { workflow: workflow.to_string(), runs };
        CapacityDto {
            runs: AllRunsDto {
                limit: found.limit,
                held: found.running,
                holders: found.runs.into_iter().map(holder).collect(),
                more_holders: found.more_runs,
                queued: found.queued,
                first: found.first.into_iter().map(WaiterDto::from_library).collect(),
            },
            pools: found.pools.into_iter().map(PoolDto::from_library).collect(),
            workflows: found.full.into_iter().map(FullWorkflowDto::from_library).collect(),
            more_workflows: found.more_full,
        }
    }
}

impl FromLibrary<PoolState> for PoolDto {
    fn from_library(pool: PoolState) -> PoolDto {
        PoolDto {
            name: pool.pool.to_string(),
            size: pool.size,
            rate: pool.rate.map(RateStateDto::from_library),
            disputed: pool.is_disputed,
            held: pool.held,
            holders: pool.holders.into_iter().map(HolderDto::from_library).collect(),
            more_holders: pool.more_holders,
            queued: pool.queued,
            oldest_since: pool.oldest_since.map(Instant),
            first: pool.first.into_iter().map(WaiterDto::from_library).collect(),
        }
    }
}

impl FromLibrary<RateState> for RateStateDto {
    fn from_library(state: RateState) -> RateStateDto {
        RateStateDto { rate: (&state.rate).into(), left: state.tokens, next: state.next.map(Instant) }
    }
}

impl FromLibrary<Holder> for HolderDto {
    fn from_library(holder: Holder) -> HolderDto {
        let slot = holder.run.slot;
        HolderDto {
            slot: (&slot).into(),
            run: holder.run.number,
            permits: holder.permits,
            since: holder.since.into(),
            within: holder.is_within,
        }
    }
}

impl FromLibrary<Waiter> for WaiterDto {
    fn from_library(waiter: Waiter) -> WaiterDto {
        WaiterDto {
            slot: (&waiter.slot).into(),
            permits: waiter.permits,
            priority: waiter.priority,
            since: waiter.since.into(),
            behind: waiter.behind,
            within: waiter.is_within,
        }
    }
}

impl FromLibrary<FullWorkflow> for FullWorkflowDto {
    fn from_library(full: FullWorkflow) -> FullWorkflowDto {
        FullWorkflowDto {
            workflow: full.workflow.to_string(),
            concurrency: full.concurrency,
            held: full.active,
            queued: full.queued,
            first: WaiterDto::from_library(full.first),
        }
    }
}

/// Tells who holds the places for all runs, the permits of each pool and those of workflows at their limit, and who waits.
#[utoipa::path(get, path = "/capacity", tag = "server", responses(
    (status = 200, description = "Who holds what, and who waits", body = CapacityDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn capacity(_: Query<NoParameters>, app: App) -> Result<Json<CapacityDto>, Fault> {
    Ok(Json(CapacityDto::from_library(app.capacity().await?)))
}
