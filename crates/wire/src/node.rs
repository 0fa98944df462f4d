//! The nodes that share a log.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// The nodes that share a log, as the node that answers knows them: the leader by their reports, others by what the leader last told them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodesDto {
    /// The address of the log, without passwords; none where this server has its own.
    pub store: Option<String>,
    /// The last entry of the log that is known of.
    pub last_entry: u64,
    /// The form in which the leader writes entries: no program follows or leads that does not read it. 0 where this server has its own log.
    #[serde(default)]
    pub writes: u32,
    /// The nodes, by name.
    pub nodes: Vec<NodeStateDto>,
    /// The last changes of leader, the newest first.
    pub leaders: Vec<LeaderDto>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeStateDto {
    /// Its name.
    pub name: String,
    /// The address at which it is reached.
    pub address: Option<String>,
    /// The version of its program.
    pub version: String,
    /// Whether it leads.
    pub leads: bool,
    /// The newest form of entries that its program reads and writes.
    #[serde(default = "first_form")]
    pub reads: u32,
    /// The last entry of the log that it has followed.
    pub followed: u64,
    /// The entries that it lacks.
    pub behind: u64,
    /// Milliseconds since the leader heard of it.
    pub heard_millis: u64,
    /// The load of its machine, in the last minute.
    pub load: Option<f64>,
    /// The reason for which it does not follow, or does not compete for the lead, if so.
    pub trouble: Option<String>,
    /// The reason for which it does not reach the leader, as it says itself; none if it reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreached: Option<String>,
    /// By how many milliseconds its clock is ahead of the leader's; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_millis: Option<i64>,
}

/// A time of leading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeaderDto {
    /// The epoch, which grows with each change.
    pub epoch: u64,
    /// The node that led.
    pub node: String,
    /// Its address.
    pub address: Option<String>,
    /// When it began, by its clock.
    pub since: Instant,
    /// The reason for the change.
    pub reason: String,
}

/// The form of entries of programs that say nothing about it.
fn first_form() -> u32 {
    1
}

/// A report of a node to the leader, which may be an older program: what it does not know of the report, it passes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeReportRequest {
    /// The address at which it is reached.
    pub address: Option<String>,
    /// The version of its program.
    pub version: String,
    /// The newest form of entries that it reads and writes.
    #[serde(default = "first_form")]
    pub reads: u32,
    /// The last entry of the log that it has followed.
    pub followed: u64,
    /// The load of its machine, in the last minute.
    pub load: Option<f64>,
    /// The reason for which it does not follow, or does not compete for the lead, if so.
    pub trouble: Option<String>,
    /// The time that its clock shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Instant>,
    /// A word that differs from process to process: two with one name are told apart by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// A request to raise the form in which the leader writes entries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RaiseFormRequest {
    /// The form; the newest that the leader's program writes if it is left out.
    #[serde(default)]
    pub form: Option<u32>,
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// The result of raising the form of entries, or of a preview of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RaisedFormDto {
    /// The form in which entries were written before.
    pub from: u32,
    /// The form that was asked for. The same if there is nothing to raise.
    pub to: u32,
    /// The number of nodes that were heard of, all of which read it.
    pub nodes: u32,
    /// Whether it was raised now.
    pub is_raised: bool,
}
