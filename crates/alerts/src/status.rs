//! The state of alerts, as people are shown it.

use jiff::Timestamp;

use crate::incident::Incident;
use crate::rule::Rule;

/// All that people are shown of alerts.
#[derive(Debug, Clone, Default)]
pub struct AlertsStatus {
    /// Whether this process sends them.
    pub sends: bool,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The channels.
    pub channels: Vec<ChannelStatus>,
    /// The open incidents, the latest first.
    pub open: Vec<Incident>,
    /// The news of the last hour, which do not last, such as the end of a backfill; the latest first.
    pub news: Vec<Incident>,
    /// The reason for which they can't be kept, as a message that completes "failed to …".
    pub problem: Option<String>,
}

/// The status of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    /// Its name.
    pub name: String,
    /// Its kind and place, without anything secret.
    pub kind: String,
    /// The notices that wait for it.
    pub waiting: usize,
    /// The notices that it accepted since this process sends.
    pub sent: u64,
    /// The attempts that failed since this process sends.
    pub failed: u64,
    /// The reason for which the last attempt failed, as a message that completes "failed to …"; none once it has accepted one.
    pub problem: Option<String>,
    /// When it last accepted one, from whatever process.
    pub sent_at: Option<Timestamp>,
}
