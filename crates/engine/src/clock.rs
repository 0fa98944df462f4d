//! The source of the time.

use std::sync::Arc;

use jiff::Timestamp;

/// Gives the present moment.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The machine's clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| whole_millis(Timestamp::now()))
}

/// Cuts a moment to whole milliseconds, the precision of everything that is stored.
#[must_use]
pub fn whole_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}
