//! Storage: what takes how much, and how long history is kept.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// The sizes of what is stored on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StorageDto {
    /// The database.
    pub database: DatabaseDto,
    /// The terms on which runs are kept, their history and their folders, in words; none if everything is kept.
    pub terms: Option<String>,
    /// The terms of single projects.
    pub projects: Vec<ProjectTermsDto>,
    /// Whether folders are removed: `new` (from the beginning), `agreed`, or `missing` until somebody agrees.
    pub consent: Option<String>,
    /// The leap of the clock for which history and folders of runs stay until somebody agrees.
    #[serde(default)]
    pub clock_leap: Option<ClockLeapDto>,
    /// The folders of runs; none before the first look at them has ended.
    pub runs: Option<RunFoldersDto>,
    /// The folders that were removed since the server started.
    pub removed: FoldersDto,
    /// The folders of workers on other machines, as far as they told the leader.
    #[serde(default)]
    pub workers: Vec<WorkerStorageDto>,
    /// The reason for which something can't be looked at or removed, which completes "failed to …".
    pub problem: Option<String>,
}

/// A gap in the log: the server did not run, or its clock went ahead.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClockLeapDto {
    /// The moment of the turn before it.
    pub from: Instant,
    /// The moment of the turn after it.
    pub to: Instant,
}

impl ClockLeapDto {
    /// Both moments, in words.
    #[must_use]
    pub fn words(&self) -> String {
        format!("the clock went from {} to {} without a turn between", self.from.short(), self.to.short())
    }
}

/// The folders of the runs of a worker on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkerStorageDto {
    /// The worker.
    pub worker: String,
    /// Its folders.
    pub runs: WorkerFoldersDto,
}

/// The folders of runs on the disk of a worker, as it tells its server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkerFoldersDto {
    /// When it looked at them, by its clock.
    pub looked_at: Instant,
    /// All folders.
    pub all: FoldersDto,
    /// The end of the oldest run.
    pub oldest_at: Option<Instant>,
    /// The folders that were removed since it started.
    pub removed: FoldersDto,
}

/// The terms of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectTermsDto {
    /// The project.
    pub project: String,
    /// How long its folders are kept, in words.
    pub terms: String,
}

/// The database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseDto {
    /// The bytes of its file; none of a store in memory.
    pub bytes: Option<u64>,
    /// The bytes of its write-ahead log.
    pub log_bytes: Option<u64>,
    /// The bytes of its file that are free for new data.
    pub free_bytes: Option<u64>,
    /// Events in the log, without those that were removed.
    pub events: u64,
    /// Slots, with the times of backlogs.
    pub slots: u64,
    /// The moment up to which its history is incomplete; none while nothing was removed.
    pub removed_until: Option<Instant>,
    /// The number of events that were removed.
    pub removed_events: u64,
    /// The number of runs that were removed.
    pub removed_runs: u64,
    /// Whether history is removed: `new` (from the beginning), `agreed`, or `missing` until somebody agrees; none on a node that does
    /// not lead, and before the first look.
    pub consent: Option<String>,
    /// When it was last looked at.
    pub looked_at: Option<Instant>,
    /// The number of events that went by that look, or would go if somebody agreed.
    pub going_events: u64,
}

/// A number of folders, and the bytes that they take on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoldersDto {
    /// The number of folders.
    pub folders: u64,
    /// The bytes that they take.
    pub bytes: u64,
}

/// The folders of one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowFoldersDto {
    /// The workflow; the name of a folder if no workflow has it.
    pub workflow: String,
    /// Its folders.
    pub folders: u64,
    /// The bytes that they take.
    pub bytes: u64,
}

/// The folders of runs, as they were at the last look.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunFoldersDto {
    /// When the look began.
    pub looked_at: Instant,
    /// Milliseconds that it took.
    pub took_millis: u64,
    /// All folders.
    pub all: FoldersDto,
    /// The workflows with most bytes, the largest first, at most 1000.
    pub workflows: Vec<WorkflowFoldersDto>,
    /// The number of further workflows.
    pub more_workflows: u64,
    /// Folders that the terms let go now; they stay until somebody agrees.
    pub going: FoldersDto,
    /// Folders that the terms would let go, but which stay: their run or slot is live, or its outcome is not known.
    pub held: FoldersDto,
    /// Folders that go within seven days.
    pub soon: FoldersDto,
    /// When the next one goes, at the earliest.
    pub next_at: Option<Instant>,
    /// The workflow of that one.
    pub next_workflow: Option<String>,
}
