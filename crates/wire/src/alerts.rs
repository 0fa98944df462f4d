//! Alerts: open ones, rules, and the channels by which people hear of them.

use serde::{Deserialize, Serialize};

use crate::value::Instant;

/// All that there is to know of alerts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertsDto {
    /// Whether this server sends them: only the one that leads does.
    pub sends: bool,
    /// The open alerts, the latest first.
    pub open: Vec<AlertDto>,
    /// The news of the last hour, which do not last, such as the end of a backfill; the latest first.
    #[serde(default)]
    pub news: Vec<AlertDto>,
    /// The rules.
    pub rules: Vec<AlertRuleDto>,
    /// The channels.
    pub channels: Vec<AlertChannelDto>,
    /// The reason for which they can't be kept, which completes "failed to …".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Everything that has one cause, and is not over or happened lately.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertDto {
    /// The condition: `failed`, `paused` …
    pub condition: String,
    /// The name of the cause.
    pub cause: String,
    /// When it began.
    pub opened_at: Instant,
    /// The last event, in one sentence.
    pub words: String,
    /// The first of the slots, files or endpoints that it is about.
    pub members: Vec<String>,
    /// The number of all of them.
    pub count: u64,
    /// The rules that have told it.
    pub told: Vec<String>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertRuleDto {
    /// Its name.
    pub name: String,
    /// The conditions that it tells.
    pub when: Vec<String>,
    /// Its limits in words; empty where it tells of everything.
    pub only: String,
    /// The channels by which it tells them.
    pub to: Vec<String>,
    /// Its quiet hours, how often it repeats, and how long it waits, in words.
    pub timing: String,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertChannelDto {
    /// Its name.
    pub name: String,
    /// Its kind and place, without anything secret.
    pub kind: String,
    /// The number of alerts that wait for it.
    pub waiting: u64,
    /// The number that it accepted since the server leads.
    pub sent: u64,
    /// The number of attempts that failed since the server leads.
    pub failed: u64,
    /// When it last accepted one, from whatever server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Instant>,
    /// The reason for which the last attempt failed, which completes "failed to …".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
