//! The buckets of registers that belong to Kelos itself.

/// The bucket of the records of users and tokens. Its values are shown to nobody.
pub const ACCESS_BUCKET: &str = "kelos.access";

/// The bucket of the workers on other machines, by name: each has a [`WorkerRecord`](crate::workers::WorkerRecord).
pub const WORKERS_BUCKET: &str = "kelos.workers";

/// The bucket of how far the log was read for collectors: of `traces`, and of `lineage`.
pub const TELEMETRY_BUCKET: &str = "kelos.telemetry";

/// The bucket of what people agreed to about history.
pub const HISTORY_BUCKET: &str = "kelos.history";

/// The bucket of alerts, with what has to be told and was not accepted yet.
pub const ALERTS_BUCKET: &str = "kelos.alerts";

/// Whether a bucket belongs to Kelos itself: people and scripts set none of its registers directly.
#[must_use]
pub fn is_reserved(bucket: &str) -> bool {
    bucket == "kelos" || bucket.starts_with("kelos.")
}
