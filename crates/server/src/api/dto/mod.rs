//! What goes over the wire, apart from the model: names here stay when the model changes.

mod collected;
mod constraint;
mod critical_path;
mod event;
mod event_schedule;
mod project;
mod run;
mod slot;
mod trigger;
mod workflow;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::time::format_full;
use kelos_model::{SlotKey, SlotState};
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use critical_path::CriticalPathDto;
pub(super) use event::{EventDto, mode_name};
pub(super) use event_schedule::{DecisionDto, EventScheduleDto, has_kind, zone_of};
pub(super) use project::{DeploymentDto, ProjectDto};
pub(super) use run::RunDto;
pub(super) use slot::{SlotDto, SlotNameDto, WhyDto};
pub(super) use workflow::{FreezeDto, PastDefinitionDto, ProblemDto, WorkflowDetailDto, WorkflowDto};

/// A moment in UTC, to the millisecond: `2015-09-13T13:40:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2015-09-13T13:40:00.000Z"))]
pub(crate) struct Instant(pub(crate) Timestamp);

impl Serialize for Instant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_full(self.0))
    }
}

impl From<Timestamp> for Instant {
    fn from(at: Timestamp) -> Instant {
        Instant(at)
    }
}

/// The scheduled time of a slot; none of a job.
pub(super) fn time(key: &SlotKey) -> Option<Instant> {
    key.time().map(Instant)
}

/// The job id of a job; none of a slot by time.
pub(super) fn job(key: &SlotKey) -> Option<String> {
    key.job().map(|id| id.to_string())
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageDto<T> {
    /// The rows. A page may hold fewer than asked for although the list goes on.
    pub(super) items: Vec<T>,
    /// Hand it back as `cursor` for the next page; none at the end.
    pub(super) next: Option<String>,
}

impl<T> PageDto<T> {
    pub(super) fn of<M>(page: kelos_store::Page<M>) -> PageDto<T>
    where
        T: From<M>,
    {
        PageDto { items: page.rows.into_iter().map(T::from).collect(), next: page.next }
    }
}

/// A whole list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListDto<T> {
    /// The rows.
    pub(super) items: Vec<T>,
}

impl<T> ListDto<T> {
    pub(super) fn of<M>(rows: impl IntoIterator<Item = M>) -> ListDto<T>
    where
        T: From<M>,
    {
        ListDto { items: rows.into_iter().map(T::from).collect() }
    }
}

/// How many slots are in each state; states without slots are left out.
pub(super) type Counts = BTreeMap<&'static str, u64>;

pub(super) fn counts(counts: BTreeMap<SlotState, u64>) -> Counts {
    counts.into_iter().filter(|(_, slots)| *slots > 0).map(|(state, slots)| (state.as_str(), slots)).collect()
}
